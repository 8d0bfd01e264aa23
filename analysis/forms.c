/*
 * forms.c - what is shown of comparisons, plans, measurements of the codec and checks of a GPU
 *
 * docs/compare.md, docs/plan.md, docs/bench.md and docs/gpu-build.md have the keys.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/form.h"

#include <stddef.h>

#define TEXT(key, title)                                                                           \
    {                                                                                              \
        key, title, ZIPCCL_COLUMN_TEXT, false, 1, 0                                                \
    }
#define BOOL(key, title)                                                                           \
    {                                                                                              \
        key, title, ZIPCCL_COLUMN_BOOL, false, 1, 0                                                \
    }
#define NUMBER(key, title, scale, decimals)                                                        \
    {                                                                                              \
        key, title, ZIPCCL_COLUMN_NUMBER, false, scale, decimals                                   \
    }
#define TEXT_MUST(key, title)                                                                      \
    {                                                                                              \
        key, title, ZIPCCL_COLUMN_TEXT, true, 1, 0                                                 \
    }
#define BOOL_MUST(key, title)                                                                      \
    {                                                                                              \
        key, title, ZIPCCL_COLUMN_BOOL, true, 1, 0                                                 \
    }
#define NUMBER_MUST(key, title, scale, decimals)                                                   \
    {                                                                                              \
        key, title, ZIPCCL_COLUMN_NUMBER, true, scale, decimals                                    \
    }
#define END                                                                                        \
    {                                                                                              \
        NULL, NULL, ZIPCCL_COLUMN_TEXT, false, 0, 0                                                \
    }
#define END_TABLE                                                                                  \
    {                                                                                              \
        NULL, NULL, false, false, NULL                                                             \
    }

#define CALL                                                                                       \
    TEXT_MUST("op", "op"), TEXT_MUST("dtype", "type"), NUMBER("bytes", "bytes", 1, 0),             \
        NUMBER("nranks", "ranks", 1, 0), NUMBER("nodes", "nodes", 1, 0), TEXT("group", "group"),   \
        TEXT("mode", "mode"), TEXT("strategy", "strategy")

static const struct zipccl_column compare_head[] = {
    TEXT_MUST("kind", "Comparison"), TEXT_MUST("first.path", "First"), TEXT("first.kind", "It is"),
    TEXT("first.on", "On"),          TEXT("first.cluster", "Cluster"), END};

static const struct zipccl_column compare_file[] = {
    TEXT_MUST("path", "file"),  TEXT("kind", "kind"),         TEXT("on", "on"),
    TEXT("cluster", "cluster"), NUMBER("rows", "rows", 1, 0), END};

static const struct zipccl_column compare_sum[] = {
    NUMBER_MUST("rows", "rows", 1, 0), NUMBER("median_error", "median %", 100, 1),
    NUMBER("worst_error", "worst %", 100, 1),
    NUMBER("median_signed_error", "median with sign %", 100, 1), END};

static const struct zipccl_column compare_row[] = {
    CALL, NUMBER_MUST("first_time_s", "first us", 1e6, 1),
    NUMBER_MUST("second_time_s", "second us", 1e6, 1), NUMBER_MUST("error", "off %", 100, 1), END};

static const struct zipccl_column compare_single[] = {
    CALL, NUMBER("time_s", "time us", 1e6, 1), TEXT("file", "only in"),
    TEXT("nearest_differs_in", "the nearest differs in"), END};

static const struct zipccl_form_table compare_tables[] = {
    {"second", "Compared with it", true, false, compare_file},
    {"by_op", "By collective", false, true, compare_sum},
    {"by_mode", "By mode", false, true, compare_sum},
    {"rows", "Rows", true, false, compare_row},
    {"unmatched", "Rows without a partner", false, false, compare_single},
    END_TABLE};

static const struct zipccl_column plan_head[] = {
    TEXT_MUST("op", "Collective"),
    TEXT_MUST("dtype", "Type"),
    NUMBER_MUST("count", "Count", 1, 0),
    NUMBER("size_bytes", "Bytes", 1, 0),
    NUMBER("nranks", "Ranks", 1, 0),
    NUMBER("nodes", "Nodes", 1, 0),
    TEXT("cluster", "Cluster"),
    TEXT("mode", "Mode"),
    NUMBER("ratio", "Ratio", 1, 3),
    TEXT("input", "Tensors"),
    NUMBER("chosen", "Chosen: candidate (from 0)", 1, 0),
    NUMBER("best_raw", "Best uncompressed", 1, 0),
    NUMBER("gain", "Gain over it", 1, 3),
    END};

static const struct zipccl_column plan_row[] = {TEXT_MUST("strategy", "strategy"),
                                                NUMBER("nchunks", "chunks", 1, 0),
                                                TEXT("effort", "effort"),
                                                TEXT("capacity_class", "class"),
                                                BOOL("compressed", "compressed"),
                                                NUMBER_MUST("time_s", "time us", 1e6, 1),
                                                NUMBER("wire_s", "wire us", 1e6, 1),
                                                NUMBER("alpha_s", "latency us", 1e6, 1),
                                                NUMBER("codec_s", "codec us", 1e6, 1),
                                                NUMBER("reduce_s", "reduce us", 1e6, 1),
                                                NUMBER("fence_s", "fence us", 1e6, 1),
                                                NUMBER("wire_bytes", "wire MB", 1e-6, 3),
                                                NUMBER("raw_bytes", "raw MB", 1e-6, 3),
                                                END};

static const struct zipccl_column plan_flip[] = {
    NUMBER("from_size_bytes", "from bytes", 1, 0), TEXT_MUST("strategy", "strategy"),
    TEXT("effort", "effort"), BOOL("compressed", "compressed"), END};

static const struct zipccl_form_table plan_tables[] = {
    {"candidates", "Candidates, times predicted", true, false, plan_row},
    {"flips", "Where the choice flips", false, false, plan_flip},
    END_TABLE};

static const struct zipccl_column bench_head[] = {
    TEXT_MUST("date", "Date"),
    TEXT("command", "Command"),
    TEXT("machine.cpu", "Processor"),
    NUMBER("machine.cores", "Cores", 1, 0),
    NUMBER("machine.load_before", "Load before", 1, 2),
    NUMBER("machine.load_after", "Load after", 1, 2),
    TEXT("machine.compiler", "Compiler"),
    TEXT("clock", "Clock"),
    NUMBER("threads", "Threads", 1, 0),
    TEXT("not_in_this_build", "Not in this build"),
    END};

static const struct zipccl_column bench_row[] = {TEXT_MUST("codec", "codec"),
                                                 TEXT("isa", "isa"),
                                                 TEXT_MUST("dtype", "type"),
                                                 TEXT("input", "input"),
                                                 TEXT("cache", "from"),
                                                 NUMBER_MUST("raw_bytes", "raw<br>bytes", 1, 0),
                                                 NUMBER("ratio", "ratio", 1, 4),
                                                 NUMBER("bound_percent", "% of<br>bound", 1, 1),
                                                 NUMBER("encode_GBps", "encode<br>GB/s", 1, 2),
                                                 NUMBER("encode_q1_GBps", "q1", 1, 2),
                                                 NUMBER("encode_q3_GBps", "q3", 1, 2),
                                                 NUMBER("decode_GBps", "decode<br>GB/s", 1, 2),
                                                 NUMBER("decode_q1_GBps", "q1", 1, 2),
                                                 NUMBER("decode_q3_GBps", "q3", 1, 2),
                                                 NUMBER("memcpy_GBps", "memcpy<br>GB/s", 1, 2),
                                                 NUMBER("wrong_elements", "wrong", 1, 0),
                                                 END};

static const struct zipccl_form_table bench_tables[] = {
    {"rows", "Codecs side by side, measured", true, false, bench_row}, END_TABLE};

static const struct zipccl_column check_head[] = {
    TEXT_MUST("kind", "This is"),
    BOOL_MUST("emulated", "Emulated"),
    BOOL_MUST("good", "All right"),
    TEXT("device", "Device"),
    NUMBER("sms", "Multiprocessors", 1, 0),
    NUMBER("conformance.cases", "Cases of the codec", 1, 0),
    NUMBER("conformance.messages_wrong", "Messages wrong", 1, 0),
    NUMBER("conformance.elements_wrong", "Elements wrong", 1, 0),
    NUMBER("conformance.sums_wrong", "Sums wrong", 1, 0),
    NUMBER("nccl.version", "NCCL", 1, 0),
    BOOL("nccl.fixed_right", "Fixed messages right"),
    BOOL("nccl.overflow_right", "Overflow right"),
    TEXT("nvcomp.not_measured", "nvCOMP"),
    END};

static const struct zipccl_column check_row[] = {TEXT("peer", "peer"),
                                                 TEXT_MUST("work", "work"),
                                                 NUMBER("raw_bytes", "raw<br>bytes", 1, 0),
                                                 NUMBER("sms", "SMs", 1, 0),
                                                 NUMBER("median_s", "median us", 1e6, 1),
                                                 NUMBER("q1_s", "q1 us", 1e6, 1),
                                                 NUMBER("q3_s", "q3 us", 1e6, 1),
                                                 NUMBER("share_of_copy", "share of a copy", 1, 3),
                                                 NUMBER("ratio", "ratio", 1, 4),
                                                 END};

static const struct zipccl_form_table check_tables[] = {
    {"rows", "Speed", true, false, check_row},
    {"nvcomp.rows", "nvCOMP beside it", false, false, check_row},
    END_TABLE};

const struct zipccl_form zipccl_forms[] = {
    {"zipccl.compare", "Comparison", compare_head, compare_tables},
    {"zipccl.plan", "Plans of a call (predicted, T0)", plan_head, plan_tables},
    {"zipccl.codec-bench", "Speed of the codec", bench_head, bench_tables},
    {"zipccl.device_check", "Check of a GPU", check_head, check_tables},
    {NULL, NULL, NULL, NULL}};
