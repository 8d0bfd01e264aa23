/*
 * perf_rows.c - calls as nccl-tests derives them, and the statistics of rows
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/perf/perf_rows.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* nccl-tests cuts what it divides among ranks to 16 bytes. */
#define SHARE_BYTES 16

void zipccl_perf_call_of(struct zipccl_perf_call *call, enum zipccl_op op, enum zipccl_dtype dtype,
                         enum zipccl_redop redop, uint32_t root, size_t count, uint32_t nranks)
{
    size_t all = count;

    *call = (struct zipccl_perf_call){.op = op,
                                      .dtype = dtype,
                                      .redop = redop,
                                      .root = root,
                                      .count = count,
                                      .send_n = count,
                                      .recv_n = count,
                                      .has_in_place = true};
    switch (op) {
    case ZIPCCL_ALL_GATHER: call->recv_n = count * nranks; break;
    case ZIPCCL_REDUCE_SCATTER: call->send_n = count * nranks; break;
    case ZIPCCL_ALLTOALL:
    case ZIPCCL_ALLTOALLV:
        all = count * nranks;
        call->has_in_place = false;
        if (op == ZIPCCL_ALLTOALLV)
            for (uint32_t k = all = 0; k < nranks; k++)
                all += zipccl_perf_split_n(count, nranks, 0, k);
        call->send_n = call->recv_n = all;
        break;
    default: call->has_in_place = op != ZIPCCL_SENDRECV; break;
    }
    call->size = (uint64_t)(call->send_n > call->recv_n ? call->send_n : call->recv_n) *
                 zipccl_dtype_size(dtype);
}

void zipccl_perf_call_init(struct zipccl_perf_call *call, enum zipccl_op op,
                           enum zipccl_dtype dtype, enum zipccl_redop redop, uint32_t root,
                           uint64_t nbytes, uint32_t nranks)
{
    size_t element = zipccl_dtype_size(dtype), n = (size_t)(nbytes / element);
    size_t share = n / nranks / (SHARE_BYTES / element) * (SHARE_BYTES / element);
    bool whole = op == ZIPCCL_ALL_REDUCE || op == ZIPCCL_BROADCAST || op == ZIPCCL_SENDRECV;

    zipccl_perf_call_of(call, op, dtype, redop, root, whole ? n : share, nranks);
}

/* The k-th of n has (2k + 1) / n of the mean, so each row and each column sums to n times it. */
size_t zipccl_perf_split_n(size_t count, uint32_t nranks, uint32_t src, uint32_t dst)
{
    size_t k = ((size_t)src + dst) % nranks;

    return count / nranks * (2 * k + 1) + count % nranks * (2 * k + 1) / nranks;
}

double zipccl_perf_algbw(const struct zipccl_perf_call *call, double time_s)
{
    return time_s > 0 ? 1e-9 * (double)call->size / time_s : 0;
}

double zipccl_perf_busbw(const struct zipccl_perf_call *call, uint32_t nranks, double time_s)
{
    double n = nranks, factor = (n - 1) / n;

    if (call->op == ZIPCCL_ALL_REDUCE)
        factor *= 2;
    else if (call->op == ZIPCCL_BROADCAST || call->op == ZIPCCL_SENDRECV)
        factor = 1;
    return factor * zipccl_perf_algbw(call, time_s);
}

double zipccl_perf_ratio(const struct zipccl_perf_row *row)
{
    return row->coded_wire > 0 ? row->coded_raw / row->coded_wire : 1;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Of sorted values; between two of them linearly. */
static double quantile(const double *sorted, uint32_t n, double q)
{
    double at = q * (n - 1);
    uint32_t below = (uint32_t)at;

    return below + 1 < n ? sorted[below] + (at - below) * (sorted[below + 1] - sorted[below])
                         : sorted[n - 1];
}

void zipccl_perf_row_times(struct zipccl_perf_row *row, double *times, uint32_t n)
{
    double sum = 0, squares = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += times[i];
    row->time_mean_s = sum / n;
    for (uint32_t i = 0; i < n; i++)
        squares += (times[i] - row->time_mean_s) * (times[i] - row->time_mean_s);
    row->time_cv = row->time_mean_s > 0 ? sqrt(squares / n) / row->time_mean_s : 0;
    qsort(times, n, sizeof *times, by_value);
    row->iters = n;
    row->time_s = quantile(times, n, 0.5);
    row->time_min_s = times[0];
    row->time_q1_s = quantile(times, n, 0.25);
    row->time_q3_s = quantile(times, n, 0.75);
    row->time_p99_s = quantile(times, n, 0.99);
    row->time_max_s = times[n - 1];
}

/*
 * The interval of the median that needs no distribution: between the order statistics n/2 -+
 * 0.98 sqrt(n), the binomial's 95 % in normal form; all of the values where n is small.
 */
void zipccl_perf_row_pairs(struct zipccl_perf_row *row, const double *raw, const double *own,
                           uint32_t n, double *scratch)
{
    double reach = 0.98 * sqrt(n);
    double low = floor((n - 1) / 2.0 - reach), high = ceil((n - 1) / 2.0 + reach);

    for (uint32_t i = 0; i < n; i++)
        scratch[i] = own[i] > 0 ? raw[i] / own[i] : 0;
    qsort(scratch, n, sizeof *scratch, by_value);
    row->to_raw = quantile(scratch, n, 0.5);
    row->to_raw_low = scratch[low > 0 ? (uint32_t)low : 0];
    row->to_raw_high = scratch[high < n - 1 ? (uint32_t)high : n - 1];
}

zipccl_status zipccl_perf_add(struct zipccl_perf_result *result, const struct zipccl_perf_row *row)
{
    if (result->nrows == result->room) {
        size_t room = result->room > 0 ? 2 * result->room : 64;
        struct zipccl_perf_row *rows = realloc(result->rows, room * sizeof *rows);

        if (rows == NULL)
            return ZIPCCL_ERR_NOMEM;
        result->rows = rows;
        result->room = room;
    }
    result->rows[result->nrows++] = *row;
    return ZIPCCL_OK;
}

zipccl_status zipccl_perf_note(struct zipccl_result_note **notes, size_t *n, const char *name,
                               const char *unit, const char *source, const char *format, ...)
{
    struct zipccl_result_note *grown = realloc(*notes, (*n + 1) * sizeof *grown), *note;
    va_list args;

    if (grown == NULL)
        return ZIPCCL_ERR_NOMEM;
    *notes = grown;
    note = &grown[(*n)++];
    snprintf(note->name, sizeof note->name, "%s", name);
    snprintf(note->unit, sizeof note->unit, "%s", unit);
    snprintf(note->source, sizeof note->source, "%s", source);
    va_start(args, format);
    vsnprintf(note->value, sizeof note->value, format, args);
    va_end(args);
    return ZIPCCL_OK;
}

void zipccl_perf_release(struct zipccl_perf_result *result)
{
    for (size_t i = 0; i < result->nrows; i++)
        free(result->rows[i].times_s);
    free(result->rows);
    free(result->settings);
    free(result->assumptions);
    memset(result, 0, sizeof *result);
}

uint64_t zipccl_perf_wrong(const struct zipccl_perf_result *result)
{
    uint64_t wrong = 0;

    for (size_t i = 0; i < result->nrows; i++)
        if (result->rows[i].wrong > 0)
            wrong += (uint64_t)result->rows[i].wrong;
    return wrong;
}
