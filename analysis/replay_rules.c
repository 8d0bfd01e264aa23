/*
 * replay_rules.c - what a page relies on of schema "zipccl.replay", version 1
 *
 * docs/replay.md describes the keys.  What all files of version 1 have is a must; keys that were
 * added to it are not.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/result_check.h"

#include <stddef.h>

#define TEXT(key)                                                                                  \
    {                                                                                              \
        key, ZIPCCL_RULE_TEXT, false, NULL                                                         \
    }
#define NUMBER(key)                                                                                \
    {                                                                                              \
        key, ZIPCCL_RULE_NUMBER, false, NULL                                                       \
    }
#define AMOUNT(key)                                                                                \
    {                                                                                              \
        key, ZIPCCL_RULE_AMOUNT, false, NULL                                                       \
    }
#define MUST(key, kind, rules)                                                                     \
    {                                                                                              \
        key, ZIPCCL_RULE_##kind, true, rules                                                       \
    }
#define MAY(key, kind, rules)                                                                      \
    {                                                                                              \
        key, ZIPCCL_RULE_##kind, false, rules                                                      \
    }
#define END                                                                                        \
    {                                                                                              \
        NULL, ZIPCCL_RULE_TEXT, false, NULL                                                        \
    }

const struct zipccl_rule zipccl_note_rules[] = {MUST("name", TEXT, NULL), MUST("value", NOTE, NULL),
                                                TEXT("unit"), TEXT("source"), END};

static const struct zipccl_rule trace_rules[] = {MUST("name", TEXT, NULL), TEXT("model"),
                                                 TEXT("provenance"), AMOUNT("nranks"), END};

static const struct zipccl_rule cluster_rules[] = {MUST("name", TEXT, NULL), TEXT("summary"),
                                                   TEXT("codec"), END};

static const struct zipccl_rule row_rules[] = {MUST("op", TEXT, NULL),
                                               MUST("group", TEXT, NULL),
                                               MUST("dtype", TEXT, NULL),
                                               MUST("calls", AMOUNT, NULL),
                                               MUST("raw_bytes", AMOUNT, NULL),
                                               AMOUNT("count"),
                                               AMOUNT("nranks"),
                                               TEXT("stream"),
                                               AMOUNT("wire_bytes"),
                                               AMOUNT("ratio"),
                                               TEXT("ratio_source"),
                                               TEXT("strategy_raw"),
                                               TEXT("strategy_compressed"),
                                               TEXT("strategy"),
                                               AMOUNT("time_raw_s"),
                                               AMOUNT("time_compressed_s"),
                                               AMOUNT("time_adaptive_s"),
                                               NUMBER("exposed_raw_s"),
                                               NUMBER("exposed_compressed_s"),
                                               NUMBER("exposed_adaptive_s"),
                                               END};

static const struct zipccl_rule total_rules[] = {AMOUNT("step_time_recorded_s"),
                                                 AMOUNT("step_time_raw_s"),
                                                 AMOUNT("step_time_compressed_s"),
                                                 AMOUNT("step_time_adaptive_s"),
                                                 AMOUNT("comm_speedup"),
                                                 AMOUNT("end_to_end_speedup"),
                                                 NUMBER("exposed_comm_share"),
                                                 AMOUNT("raw_bytes"),
                                                 AMOUNT("wire_bytes"),
                                                 END};

/* Differences of times: rounding may leave them a little below 0. */
static const struct zipccl_rule step_rules[] = {MUST("step_s", AMOUNT, NULL),
                                                MUST("compute_s", NUMBER, NULL),
                                                NUMBER("codec_slow_s"),
                                                MUST("exposed_s", NUMBER, NULL),
                                                NUMBER("wait_s"),
                                                AMOUNT("measured_steps"),
                                                AMOUNT("step_q1_s"),
                                                AMOUNT("step_q3_s"),
                                                END};

static const struct zipccl_rule steps_rules[] = {MAY("raw", OBJECT, step_rules),
                                                 MAY("compressed", OBJECT, step_rules),
                                                 MAY("adaptive", OBJECT, step_rules), END};

static const struct zipccl_rule sensitivity_rules[] = {
    MUST("name", TEXT, NULL), AMOUNT("step_time_raw_s"),    AMOUNT("step_time_adaptive_s"),
    AMOUNT("comm_speedup"),   AMOUNT("end_to_end_speedup"), END};

static const struct zipccl_rule break_even_rules[] = {
    AMOUNT("gain_under_2_percent_nic_Bps"), TEXT("gain_under_2_percent_note"),
    AMOUNT("raw_match_nic_Bps"), TEXT("raw_match_note"), END};

static const struct zipccl_rule item_rules[] = {MUST("what", TEXT, NULL),
                                                MAY("guess", BOOL, NULL),
                                                AMOUNT("count"),
                                                AMOUNT("line"),
                                                TEXT("text"),
                                                END};

static const struct zipccl_rule interval_rules[] = {MUST("low_class", TEXT, NULL),
                                                    MUST("low_ratio", AMOUNT, NULL),
                                                    MUST("low_end_to_end_speedup", AMOUNT, NULL),
                                                    MUST("high_class", TEXT, NULL),
                                                    MUST("high_ratio", AMOUNT, NULL),
                                                    MUST("high_end_to_end_speedup", AMOUNT, NULL),
                                                    END};

static const struct zipccl_rule import_rules[] = {
    MUST("format", TEXT, NULL), MAY("items", LIST, item_rules),
    MAY("ratio_interval", OBJECT, interval_rules), END};

const struct zipccl_rule zipccl_replay_rules[] = {MUST("kind", TEXT, NULL),
                                                  MUST("fidelity", TEXT, NULL),
                                                  MUST("trace", OBJECT, trace_rules),
                                                  MUST("cluster", OBJECT, cluster_rules),
                                                  MUST("settings", LIST, zipccl_note_rules),
                                                  MUST("assumptions", LIST, zipccl_note_rules),
                                                  MUST("rows", LIST, row_rules),
                                                  MUST("totals", OBJECT, total_rules),
                                                  MUST("steps", OBJECT, steps_rules),
                                                  MAY("sensitivities", LIST, sensitivity_rules),
                                                  MAY("break_even", OBJECT, break_even_rules),
                                                  MAY("import", OBJECT, import_rules),
                                                  MAY("warnings", LIST, NULL),
                                                  TEXT("baseline"),
                                                  TEXT("why"),
                                                  TEXT("adaptive_note"),
                                                  END};
