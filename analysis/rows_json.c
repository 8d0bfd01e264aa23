/*
 * rows_json.c - rows of schema "zipccl.perf" and "zipccl.replay"
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/rows_parts.h"

#include "analysis/document.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* No call takes longer, or is of more: 11 days, and what 63 bits hold. */
#define MAX_SECONDS 1e6
#define MAX_BYTES   9223372036854775808.0

/* What quantiles between two equal times may be off by, relative. */
#define ROUNDING 1e-9

/* nccl-tests cuts what it divides among ranks to 16 bytes. */
#define SHARE_BYTES 16.0

/* What every result of ours says at its top. */
static zipccl_status read_top(yajl_val root, struct zipccl_rows *rows, struct zipccl_error *error)
{
    struct zipccl_row_place at = {rows->path, 0, error};
    yajl_val cluster = zipccl_document_get(root, "cluster");
    char kind[16];

    ZIPCCL_TRY(zipccl_row_text(&at, root, "kind", true, kind, sizeof kind));
    if (strcmp(kind, "measured") != 0 && strcmp(kind, "simulated") != 0)
        return zipccl_row_fail(&at, "key \"kind\": found \"%s\", expected measured or simulated",
                               kind);
    rows->measured = strcmp(kind, "measured") == 0;
    snprintf(rows->on, sizeof rows->on, "%s", rows->measured ? "" : "sim");
    ZIPCCL_TRY(zipccl_row_text(&at, root, "on", false, rows->on, sizeof rows->on));
    if (YAJL_IS_OBJECT(cluster))
        ZIPCCL_TRY(
            zipccl_row_text(&at, cluster, "name", false, rows->cluster, sizeof rows->cluster));
    else
        ZIPCCL_TRY(
            zipccl_row_text(&at, root, "cluster", false, rows->cluster, sizeof rows->cluster));
    if (!YAJL_IS_ARRAY(zipccl_document_get(root, "rows")))
        return zipccl_row_fail(&at, "key \"rows\": expected a list of rows");
    return ZIPCCL_OK;
}

/* What rows of both have in common. */
static zipccl_status read_call(const struct zipccl_row_place *at, yajl_val item,
                               struct zipccl_row *row)
{
    uint64_t nranks = 0;

    zipccl_row_init(row);
    row->place = (unsigned)at->row;
    if (!YAJL_IS_OBJECT(item))
        return zipccl_row_fail(at, "expected an object");
    ZIPCCL_TRY(zipccl_row_op(at, item, row));
    ZIPCCL_TRY(zipccl_row_integer(at, item, "count", true, (uint64_t)1 << 53, &row->count));
    ZIPCCL_TRY(zipccl_row_integer(at, item, "nranks", true, 1 << 20, &nranks));
    row->nranks = (uint32_t)nranks;
    return ZIPCCL_OK;
}

static zipccl_status check_mode(const struct zipccl_row_place *at, const char *mode)
{
    static const char *const modes[] = {"raw", "native", "compressed", "adaptive"};

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(mode, modes[i]) == 0)
            return ZIPCCL_OK;
    return zipccl_row_fail(
        at, "key \"mode\": found \"%s\", expected raw, native, compressed or adaptive", mode);
}

static zipccl_status read_seconds(const struct zipccl_row_place *at, yajl_val item, const char *key,
                                  bool must, double *out)
{
    ZIPCCL_TRY(zipccl_row_number(at, item, key, must, out));
    if (*out > MAX_SECONDS)
        return zipccl_row_fail(at, "key \"%s\": found %.12g s, expected at most %.0f s", key, *out,
                               MAX_SECONDS);
    return ZIPCCL_OK;
}

static zipccl_status read_bytes(const struct zipccl_row_place *at, yajl_val item, const char *key,
                                double *out)
{
    ZIPCCL_TRY(zipccl_row_number(at, item, key, false, out));
    if (*out >= MAX_BYTES)
        return zipccl_row_fail(at, "key \"%s\": found %.12g bytes, expected less than 2^63", key,
                               *out);
    return ZIPCCL_OK;
}

/* The median and what is around it; each is at least the one before, of those that are there. */
static zipccl_status read_times(const struct zipccl_row_place *at, yajl_val item,
                                struct zipccl_row *row)
{
    double least = NAN, most = NAN, before = NAN;
    const struct {
        const char *key;
        double *value;
    } times[] = {{"time_min_s", &least},
                 {"time_q1_s", &row->q1_s},
                 {"time_s", &row->time_s},
                 {"time_q3_s", &row->q3_s},
                 {"time_max_s", &most}};
    const char *last = NULL;

    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        double *value = times[i].value;

        ZIPCCL_TRY(read_seconds(at, item, times[i].key, value == &row->time_s, value));
        if (isnan(*value))
            continue;
        if (last != NULL && *value < before * (1 - ROUNDING))
            return zipccl_row_fail(at, "key \"%s\": found %.12g, expected at least %s, %.12g",
                                   times[i].key, *value, last, before);
        before = *value;
        last = times[i].key;
    }
    return ZIPCCL_OK;
}

/* Size as nccl-tests counts it, up to what is cut off to divide it among ranks. */
static zipccl_status check_size(const struct zipccl_row_place *at, const struct zipccl_row *row)
{
    bool blocks = row->op == ZIPCCL_ALL_GATHER || row->op == ZIPCCL_REDUCE_SCATTER ||
                  row->op == ZIPCCL_ALLTOALL || row->op == ZIPCCL_ALLTOALLV;
    double n = row->nranks;
    double expected = (double)row->count * (double)zipccl_dtype_size(row->dtype) * (blocks ? n : 1);

    if (isnan(row->size_bytes) || fabs(row->size_bytes - expected) <= SHARE_BYTES * n)
        return ZIPCCL_OK;
    return zipccl_row_fail(
        at, "key \"size_bytes\": found %.0f, expected %.0f for %s of %.0f %s on %.0f ranks",
        row->size_bytes, expected, zipccl_op_name(row->op), (double)row->count,
        zipccl_dtype_name(row->dtype), n);
}

/* A call of nothing, and one within a group of one, has no time; of any other none is an error. */
static zipccl_status add_timed(const struct zipccl_row_place *at, const char *key,
                               const struct zipccl_row *row, struct zipccl_rows *rows)
{
    if (row->time_s > 0 && row->count > 0)
        return zipccl_rows_add(rows, row, at->error);
    if (row->time_s == 0 && row->count > 0 && (row->nranks > 1 || rows->kind == ZIPCCL_ROWS_PERF))
        return zipccl_row_fail(at, "key \"%s\": found 0, expected a time above 0", key);
    rows->nskipped++;
    return ZIPCCL_OK;
}

static zipccl_status read_perf_row(const struct zipccl_row_place *at, yajl_val item,
                                   struct zipccl_row *row)
{
    uint64_t nodes = 0, root = 0, nchunks = 1;
    yajl_val in_place = zipccl_document_get(item, "in_place");

    ZIPCCL_TRY(read_call(at, item, row));
    ZIPCCL_TRY(zipccl_row_integer(at, item, "nodes", true, 1 << 20, &nodes));
    ZIPCCL_TRY(zipccl_row_integer(at, item, "root", false, 1 << 20, &root));
    ZIPCCL_TRY(zipccl_row_integer(at, item, "nchunks", false, 1 << 20, &nchunks));
    if (nchunks == 0 && row->count > 0) /* a call of nothing has no plan */
        return zipccl_row_fail(at, "key \"nchunks\": found 0, expected 1 or more");
    row->nodes = (uint32_t)nodes;
    row->root = (uint32_t)root;
    row->nchunks = (uint32_t)nchunks;
    if (in_place != NULL && !YAJL_IS_NULL(in_place) && !YAJL_IS_TRUE(in_place) &&
        !YAJL_IS_FALSE(in_place))
        return zipccl_row_fail(at, "key \"in_place\": expected true or false");
    row->in_place = YAJL_IS_TRUE(in_place);
    ZIPCCL_TRY(zipccl_row_text(at, item, "mode", true, row->mode, sizeof row->mode));
    ZIPCCL_TRY(check_mode(at, row->mode));
    ZIPCCL_TRY(zipccl_row_text(at, item, "strategy", true, row->strategy, sizeof row->strategy));
    ZIPCCL_TRY(zipccl_row_text(at, item, "effort", false, row->effort, sizeof row->effort));
    ZIPCCL_TRY(zipccl_row_text(at, item, "input", false, row->input, sizeof row->input));
    ZIPCCL_TRY(read_bytes(at, item, "size_bytes", &row->size_bytes));
    ZIPCCL_TRY(check_size(at, row));
    ZIPCCL_TRY(zipccl_row_number(at, item, "iters", false, &row->iters));
    ZIPCCL_TRY(read_times(at, item, row));
    ZIPCCL_TRY(read_bytes(at, item, "raw_bytes", &row->raw_bytes));
    ZIPCCL_TRY(read_bytes(at, item, "wire_bytes", &row->wire_bytes));
    ZIPCCL_TRY(zipccl_row_number(at, item, "ratio", false, &row->ratio));
    ZIPCCL_TRY(read_seconds(at, item, "encode_s", false, &row->encode_s));
    ZIPCCL_TRY(read_seconds(at, item, "decode_s", false, &row->decode_s));
    return zipccl_row_number(at, item, "wrong", false, &row->wrong);
}

zipccl_status zipccl_rows_perf(yajl_val root, struct zipccl_rows *rows, struct zipccl_error *error)
{
    rows->kind = ZIPCCL_ROWS_PERF;
    ZIPCCL_TRY(read_top(root, rows, error));
    for (size_t i = 0; i < zipccl_document_length(root, "rows"); i++) {
        struct zipccl_row_place at = {rows->path, i + 1, error};
        struct zipccl_row row;

        ZIPCCL_TRY(read_perf_row(&at, zipccl_document_item(root, "rows", i), &row));
        ZIPCCL_TRY(add_timed(&at, "time_s", &row, rows));
    }
    return ZIPCCL_OK;
}

/* A row of a step becomes one for each mode that was run. */
static zipccl_status add_modes(const struct zipccl_row_place *at, yajl_val item,
                               const struct zipccl_row *call, struct zipccl_rows *rows)
{
    static const struct {
        const char *mode, *time, *strategy;
    } modes[] = {{"raw", "time_raw_s", "strategy_raw"},
                 {"compressed", "time_compressed_s", "strategy_compressed"},
                 {"adaptive", "time_adaptive_s", "strategy"}};

    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        struct zipccl_row row = *call;

        snprintf(row.mode, sizeof row.mode, "%s", modes[m].mode);
        ZIPCCL_TRY(read_seconds(at, item, modes[m].time, false, &row.time_s));
        ZIPCCL_TRY(
            zipccl_row_text(at, item, modes[m].strategy, false, row.strategy, sizeof row.strategy));
        ZIPCCL_TRY(add_timed(at, modes[m].time, &row, rows));
    }
    return ZIPCCL_OK;
}

zipccl_status zipccl_rows_replay(yajl_val root, struct zipccl_rows *rows,
                                 struct zipccl_error *error)
{
    rows->kind = ZIPCCL_ROWS_REPLAY;
    ZIPCCL_TRY(read_top(root, rows, error));
    for (size_t i = 0; i < zipccl_document_length(root, "rows"); i++) {
        struct zipccl_row_place at = {rows->path, i + 1, error};
        yajl_val item = zipccl_document_item(root, "rows", i);
        struct zipccl_row row;

        ZIPCCL_TRY(read_call(&at, item, &row));
        ZIPCCL_TRY(zipccl_row_text(&at, item, "group", true, row.group, sizeof row.group));
        ZIPCCL_TRY(zipccl_row_text(&at, item, "stream", true, row.stream, sizeof row.stream));
        ZIPCCL_TRY(zipccl_row_integer(&at, item, "calls", true, (uint64_t)1 << 53, &row.calls));
        ZIPCCL_TRY(zipccl_row_number(&at, item, "raw_bytes", false, &row.raw_bytes));
        ZIPCCL_TRY(zipccl_row_number(&at, item, "ratio", false, &row.ratio));
        ZIPCCL_TRY(add_modes(&at, item, &row, rows));
    }
    return ZIPCCL_OK;
}
