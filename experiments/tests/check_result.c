/*
 * check_result.c - checks a result file: schema "zipccl.replay", every key, sums that must hold
 *
 * check_result FILE [KEY=VALUE]...    with "totals.comm_speedup=null" and the like;
 * "adaptive=better": adaptive is no slower than the better of raw and compressed, by the step
 * exactly and by row within 2 %; "ratio=X": compressed rows put as many bytes on the wire
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/document.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 1 << 24 };

static int failures;

static void fail(const char *what, const char *name)
{
    fprintf(stderr, "check_result: %s: %s\n", what, name);
    failures++;
}

static void check_keys(yajl_val object, const char *const *keys, const char *where)
{
    for (; *keys != NULL; keys++)
        if (zipccl_document_get(object, *keys) == NULL) {
            fail(where, *keys);
        }
}

static void check_rows(yajl_val result)
{
    static const char *const keys[] = {"op",
                                       "group",
                                       "dtype",
                                       "count",
                                       "nranks",
                                       "stream",
                                       "calls",
                                       "raw_bytes",
                                       "wire_bytes",
                                       "ratio",
                                       "ratio_source",
                                       "strategy_raw",
                                       "strategy_compressed",
                                       "strategy",
                                       "capacity_class",
                                       "capacity_ratio",
                                       "overflows_settled",
                                       "time_recorded_s",
                                       "time_raw_s",
                                       "time_compressed_s",
                                       "time_adaptive_s",
                                       "exposed_raw_s",
                                       "exposed_compressed_s",
                                       "exposed_adaptive_s",
                                       NULL};
    static const char sources[] = " captured class model given none ";
    size_t n = zipccl_document_length(result, "rows");

    if (n == 0)
        fail("no rows", "rows");
    for (size_t i = 0; i < n; i++) {
        yajl_val row = zipccl_document_item(result, "rows", i);
        double ratio = zipccl_document_number(row, "ratio");
        double raw = zipccl_document_number(row, "raw_bytes");
        double wire = zipccl_document_number(row, "wire_bytes");
        const char *source = zipccl_document_text(row, "ratio_source");

        check_keys(row, keys, "a row has no key");
        if (wire > 0 && !(fabs(ratio - raw / wire) <= 1e-6 * ratio))
            fail("ratio is not raw_bytes / wire_bytes", zipccl_document_text(row, "op"));
        if (source[0] == '\0' || strstr(sources, source) == NULL)
            fail("unknown ratio_source", source);
    }
}

/* Largest saving of exposed time first; totals are sums of the rows. */
static void check_order(yajl_val result)
{
    static const char *const sums[] = {"raw_bytes", "wire_bytes", "calls"};
    yajl_val totals = zipccl_document_get(result, "totals");
    size_t n = zipccl_document_length(result, "rows");
    double before = HUGE_VAL, sum[3] = {0};

    for (size_t i = 0; i < n; i++) {
        yajl_val row = zipccl_document_item(result, "rows", i);
        double saved = zipccl_document_number(row, "exposed_raw_s") -
                       zipccl_document_number(row, "exposed_adaptive_s");

        if (saved > before)
            fail("the rows are not sorted by exposed time saved", zipccl_document_text(row, "op"));
        before = isnan(saved) ? before : saved;
        for (int k = 0; k < 3; k++)
            sum[k] += zipccl_document_number(row, sums[k]);
    }
    for (int k = 0; k < 3; k++)
        if (!(fabs(sum[k] - zipccl_document_number(totals, sums[k])) <= 1e-9 * sum[k]))
            fail("the rows do not add up to the total", sums[k]);
}

/* "ratio=1.4": with that ratio given, rows that are compressed put as many bytes on the wire. */
static void check_ratio(yajl_val result, double ratio)
{
    size_t ncompressed = 0;

    for (size_t i = 0; i < zipccl_document_length(result, "rows"); i++) {
        yajl_val row = zipccl_document_item(result, "rows", i);
        bool raw = strcmp(zipccl_document_text(row, "strategy"),
                          zipccl_document_text(row, "strategy_raw")) == 0;
        double expected = zipccl_document_number(row, "raw_bytes") / (raw ? 1 : ratio);

        if (!(fabs(zipccl_document_number(row, "wire_bytes") / expected - 1) <= 0.01))
            fail("wire_bytes do not follow the given ratio", zipccl_document_text(row, "op"));
        ncompressed += !raw;
    }
    if (ncompressed == 0)
        fail("no row is compressed", "ratio");
}

/* Quartiles lie about the median, least and largest about these. */
static void check_spread(yajl_val step, const char *mode)
{
    static const char *const keys[] = {"step_min_s", "step_q1_s",  "step_s",
                                       "step_q3_s",  "step_max_s", NULL};
    double before = 0;

    check_keys(step, keys, "a measured step has no key");
    for (size_t k = 0; keys[k] != NULL; k++) {
        double now = zipccl_document_number(step, keys[k]);

        /* The parts of a step are added up from those of its rank. */
        if (!(now >= before * (1 - 1e-6)) || !(zipccl_document_number(step, "measured_steps") >= 1))
            fail("the spread of measured steps is out of order", mode);
        before = now;
    }
}

static void check_steps(yajl_val result)
{
    static const char *const keys[] = {"step_s", "compute_s", "codec_slow_s", "exposed_s",
                                       "wait_s", "comm_s",    "codec_s",      NULL};
    static const char *const modes[] = {"raw", "compressed", "adaptive"};
    yajl_val steps = zipccl_document_get(result, "steps");

    for (size_t m = 0; m < 3; m++) {
        yajl_val step = zipccl_document_get(steps, modes[m]);
        double sum = 0, whole = zipccl_document_number(step, "step_s");

        if (step == NULL)
            fail("no mode", modes[m]);
        if (!YAJL_IS_OBJECT(step))
            continue;
        check_keys(step, keys, "a step has no key");
        for (size_t k = 1; k < 5; k++)
            sum += zipccl_document_number(step, keys[k]);
        if (!(fabs(sum - whole) <= 1e-6 * whole))
            fail("the parts do not add up to the step", modes[m]);
        if (strcmp(zipccl_document_text(result, "kind"), "measured") == 0)
            check_spread(step, modes[m]);
    }
}

static void check_notes(yajl_val result, const char *key)
{
    static const char *const keys[] = {"name", "value", "unit", "source", NULL};

    if (zipccl_document_length(result, key) == 0)
        fail("empty", key);
    for (size_t i = 0; i < zipccl_document_length(result, key); i++)
        check_keys(zipccl_document_item(result, key, i), keys, "a note has no key");
}

static void check_result(yajl_val result)
{
    static const char *const keys[] = {
        "schema",        "kind",        "fidelity",      "trace",      "cluster",
        "settings",      "assumptions", "rows",          "totals",     "steps",
        "adaptive_note", "why",         "sensitivities", "break_even", "warnings",
        "import",        NULL};
    static const char *const totals[] = {"step_time_recorded_s",
                                         "step_time_raw_s",
                                         "step_time_compressed_s",
                                         "step_time_adaptive_s",
                                         "compute_s",
                                         "codec_s",
                                         "codec_sms",
                                         "wait_s",
                                         "comm_speedup",
                                         "end_to_end_speedup",
                                         "exposed_comm_share",
                                         NULL};
    yajl_val schema = zipccl_document_get(result, "schema");

    check_keys(result, keys, "no key");
    check_keys(zipccl_document_get(result, "totals"), totals, "totals has no key");
    if (strcmp(zipccl_document_text(schema, "name"), "zipccl.replay") != 0 ||
        zipccl_document_number(schema, "version") != 1)
        fail("schema", zipccl_document_text(schema, "name"));
    if (strcmp(zipccl_document_text(result, "kind"), "simulated") != 0 &&
        strcmp(zipccl_document_text(result, "kind"), "measured") != 0)
        fail("kind", zipccl_document_text(result, "kind"));
    check_rows(result);
    check_order(result);
    check_steps(result);
    check_notes(result, "settings");
    check_notes(result, "assumptions");
}

static void check_better(yajl_val result)
{
    yajl_val totals = zipccl_document_get(result, "totals");
    double raw = zipccl_document_number(totals, "step_time_raw_s");
    double compressed = zipccl_document_number(totals, "step_time_compressed_s");

    if (!(zipccl_document_number(totals, "step_time_adaptive_s") <=
          fmin(raw, compressed) * (1 + 1e-9)))
        fail("the adaptive step is slower than raw or compressed", "totals");
    for (size_t i = 0; i < zipccl_document_length(result, "rows"); i++) {
        yajl_val row = zipccl_document_item(result, "rows", i);
        double best = fmin(zipccl_document_number(row, "time_raw_s"),
                           zipccl_document_number(row, "time_compressed_s"));

        if (!(zipccl_document_number(row, "time_adaptive_s") <= best * 1.02))
            fail("an adaptive row is more than 2 % slower than the better of raw and compressed",
                 zipccl_document_text(row, "op"));
    }
}

/* "totals.comm_speedup=null": the value as it stands in the file. */
static void check_value(yajl_val result, const char *assignment)
{
    char copy[256];
    yajl_val value = result;

    if (strcmp(assignment, "adaptive=better") == 0) {
        check_better(result);
        return;
    }
    if (strncmp(assignment, "ratio=", 6) == 0) {
        check_ratio(result, atof(assignment + 6));
        return;
    }
    snprintf(copy, sizeof copy, "%s", assignment);
    char *expected = strchr(copy, '=');
    if (expected == NULL) {
        fail("not KEY=VALUE", assignment);
        return;
    }
    *expected++ = '\0';
    for (char *key = strtok(copy, "."); key != NULL; key = strtok(NULL, "."))
        value = zipccl_document_get(value, key);
    const char *found = YAJL_IS_NULL(value)     ? "null"
                        : YAJL_IS_NUMBER(value) ? YAJL_GET_NUMBER(value)
                        : YAJL_IS_STRING(value) ? YAJL_GET_STRING(value)
                                                : "?";
    if (strcmp(found, expected) != 0) {
        fprintf(stderr, "check_result: %s: found %s\n", assignment, found);
        failures++;
    }
}

int main(int argc, char **argv)
{
    struct zipccl_error error = {""};
    yajl_val result = NULL;
    FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
    char *text = malloc(MAX_BYTES);

    if (file == NULL || text == NULL) {
        fprintf(stderr, "check_result: cannot read %s\n", argc > 1 ? argv[1] : "(no file)");
        free(text);
        return 2;
    }
    size_t n = fread(text, 1, MAX_BYTES, file);
    fclose(file);
    if (zipccl_document_parse(text, n, &result, &error) != ZIPCCL_OK) {
        fprintf(stderr, "check_result: %s\n", error.text);
        free(text);
        return 1;
    }
    check_result(result);
    for (int i = 2; i < argc; i++)
        check_value(result, argv[i]);
    yajl_tree_free(result);
    free(text);
    return failures == 0 ? 0 : 1;
}
