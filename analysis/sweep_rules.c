/*
 * sweep_rules.c - what a page relies on of schema "zipccl.sweep", version 1
 *
 * docs/sweep.md describes the keys.  A point has what its modes gave, a failed one an error alone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/sweep_html.h"

#include "analysis/document.h"
#include "analysis/result_check.h"

#include <string.h>

/* No sweep has more; maps are drawn over two axes. */
enum { MAX_AXES = 48, MAX_VALUES = 1000, MAX_COMBINATIONS = 20000 };

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

/* Objects of names and values that are read as texts, whatever they are. */
static const struct zipccl_rule place_rules[] = {END};

static const struct zipccl_rule axis_rules[] = {MUST("name", TEXT, NULL),
                                                MUST("values", LIST, NULL), END};

static const struct zipccl_rule cluster_rules[] = {MUST("name", TEXT, NULL),
                                                   MAY("codec", TEXT, NULL),
                                                   MAY("provenance_of_steps", TEXT, NULL),
                                                   MAY("settings", LIST, zipccl_note_rules),
                                                   MAY("assumptions", LIST, zipccl_note_rules),
                                                   END};

static const struct zipccl_rule tensor_rules[] = {MAY("origin", TEXT, NULL), END};

static const struct zipccl_rule point_rules[] = {MUST("axes", OBJECT, place_rules),
                                                 MAY("error", TEXT, NULL),
                                                 MAY("nranks", AMOUNT, NULL),
                                                 MAY("memory_bytes", AMOUNT, NULL),
                                                 MAY("step_time_raw_s", AMOUNT, NULL),
                                                 MAY("step_time_adaptive_s", AMOUNT, NULL),
                                                 MAY("end_to_end_speedup", AMOUNT, NULL),
                                                 MAY("comm_speedup", AMOUNT, NULL),
                                                 MAY("exposed_comm_share", NUMBER, NULL),
                                                 MAY("tokens_per_s_per_gpu_raw", AMOUNT, NULL),
                                                 MAY("tokens_per_s_per_gpu_adaptive", AMOUNT, NULL),
                                                 MAY("limit", TEXT, NULL),
                                                 MAY("most_exposed_op", TEXT, NULL),
                                                 MAY("most_exposed_group", TEXT, NULL),
                                                 END};

static const struct zipccl_rule skipped_rules[] = {
    MUST("axes", OBJECT, place_rules), MAY("kind", TEXT, NULL), MAY("reason", TEXT, NULL), END};

static const struct zipccl_rule crossing_rules[] = {MAY("value", AMOUNT, NULL), END};

static const struct zipccl_rule along_rules[] = {MUST("axis", TEXT, NULL),
                                                 MAY("unit", TEXT, NULL),
                                                 MAY("lines", AMOUNT, NULL),
                                                 MAY("pay_everywhere", AMOUNT, NULL),
                                                 MAY("pay_nowhere", AMOUNT, NULL),
                                                 MAY("break_even", LIST, crossing_rules),
                                                 END};

static const struct zipccl_rule summary_rules[] = {MAY("points_that_pay", AMOUNT, NULL),
                                                   MAY("along", LIST, along_rules), END};

static const struct zipccl_rule rules[] = {MUST("kind", TEXT, NULL),
                                           MUST("fidelity", TEXT, NULL),
                                           MAY("run", AMOUNT, NULL),
                                           MAY("not_run", AMOUNT, NULL),
                                           MUST("axes", LIST, axis_rules),
                                           MUST("points", LIST, point_rules),
                                           MAY("clusters", LIST, cluster_rules),
                                           MAY("tensors", LIST, tensor_rules),
                                           MAY("skipped", LIST, skipped_rules),
                                           MAY("summary", OBJECT, summary_rules),
                                           END};

static zipccl_status check_most(const char *path, const char *what, size_t n, size_t most,
                                struct zipccl_error *error)
{
    if (n <= most)
        return ZIPCCL_OK;
    return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: %s: found %zu, expected at most %zu", path,
                       what, n, most);
}

zipccl_status zipccl_sweep_check(yajl_val sweep, const char *path, struct zipccl_error *error)
{
    size_t naxes = zipccl_document_length(sweep, "axes"), combinations = 1;
    const char *tier;

    ZIPCCL_TRY(zipccl_result_check(sweep, rules, path, error));
    tier = zipccl_document_text(sweep, "fidelity");
    if (strcmp(zipccl_document_text(sweep, "kind"), "simulated") != 0)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%s: kind: found another word, expected simulated", path);
    if (strcmp(tier, "t0") != 0 && strcmp(tier, "t1") != 0)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%s: fidelity: found another word, expected t0 or t1", path);
    ZIPCCL_TRY(check_most(path, "axes", naxes, MAX_AXES, error));
    for (size_t i = 0; i < naxes; i++) {
        size_t n = zipccl_document_length(zipccl_document_item(sweep, "axes", i), "values");

        ZIPCCL_TRY(check_most(path, "values of an axis", n, MAX_VALUES, error));
        combinations *= n > 0 ? n : 1;
        ZIPCCL_TRY(check_most(path, "combinations", combinations, MAX_COMBINATIONS, error));
    }
    ZIPCCL_TRY(check_most(path, "points", zipccl_document_length(sweep, "points"), MAX_COMBINATIONS,
                          error));
    return check_most(path, "skipped", zipccl_document_length(sweep, "skipped"), MAX_COMBINATIONS,
                      error);
}
