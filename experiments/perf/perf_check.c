/*
 * perf_check.c - compares what a collective left with what it must have left, element by element
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/perf/perf_check.h"

#include "core/reduce.h"
#include "core/reference.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Elements compared at once: what every rank sent of them stays in the cache. */
#define PIECE_N 8192u

/* Elements from 'src' to 'dst' of an uneven call. */
static size_t split_n(const struct zipccl_perf_call *call, const size_t *splits, uint32_t nranks,
                      uint32_t src, uint32_t dst)
{
    if (splits != NULL)
        return splits[(size_t)src * nranks + dst];
    if (call->op == ZIPCCL_ALLTOALLV)
        return zipccl_perf_split_n(call->count, nranks, src, dst);
    return (src + 1) % nranks == dst ? call->count : 0;
}

size_t zipccl_perf_block(const struct zipccl_perf_call *call, const size_t *splits, uint32_t nranks,
                         uint32_t src, uint32_t dst, size_t *send_at, size_t *recv_at)
{
    *send_at = *recv_at = 0;
    switch (call->op) {
    case ZIPCCL_ALL_GATHER: *recv_at = src * call->count; return call->count;
    case ZIPCCL_ALLTOALL:
        *send_at = dst * call->count;
        *recv_at = src * call->count;
        return call->count;
    case ZIPCCL_ALLTOALLV:
    case ZIPCCL_SENDRECV:
        for (uint32_t p = 0; p < dst; p++)
            *send_at += split_n(call, splits, nranks, src, p);
        for (uint32_t p = 0; p < src; p++)
            *recv_at += split_n(call, splits, nranks, p, dst);
        return split_n(call, splits, nranks, src, dst);
    case ZIPCCL_BROADCAST: return src == call->root ? call->count : 0;
    default: return 0;
    }
}

static uint64_t count_wrong(const unsigned char *want, const unsigned char *got, size_t n,
                            size_t size)
{
    uint64_t wrong = 0;

    if (memcmp(want, got, n * size) == 0)
        return 0;
    for (size_t i = 0; i < n; i++)
        wrong += memcmp(want + i * size, got + i * size, size) != 0;
    return wrong;
}

static zipccl_status check_moved(const struct zipccl_perf_check *c, const unsigned char *recv,
                                 uint64_t *wrong)
{
    size_t size = zipccl_dtype_size(c->call->dtype), send_at, recv_at;
    uint32_t nranks = c->topology->nranks;
    unsigned char *want = malloc(PIECE_N * size);

    if (want == NULL)
        return ZIPCCL_ERR_NOMEM;
    for (uint32_t src = 0; src < nranks; src++) {
        size_t n = zipccl_perf_block(c->call, c->splits, nranks, src, c->rank, &send_at, &recv_at);

        for (size_t at = 0; at < n; at += PIECE_N) {
            size_t len = n - at < PIECE_N ? n - at : PIECE_N;

            c->sent(c->context, src, send_at + at, len, want);
            *wrong += count_wrong(want, recv + (recv_at + at) * size, len, size);
        }
    }
    free(want);
    return ZIPCCL_OK;
}

static bool is_float(enum zipccl_dtype dtype)
{
    return dtype == ZIPCCL_FLOAT16 || dtype == ZIPCCL_FLOAT32 || dtype == ZIPCCL_FLOAT64 ||
           dtype == ZIPCCL_BFLOAT16;
}

static long double value_at(enum zipccl_dtype dtype, const void *data, size_t i)
{
    uint16_t half;
    float single;
    double wide;

    switch (dtype) {
    case ZIPCCL_FLOAT64: memcpy(&wide, (const char *)data + 8 * i, 8); return wide;
    case ZIPCCL_FLOAT32: memcpy(&single, (const char *)data + 4 * i, 4); return single;
    default: break;
    }
    memcpy(&half, (const char *)data + 2 * i, 2);
    return dtype == ZIPCCL_FLOAT16 ? zipccl_fp16_to_float(half) : zipccl_bf16_to_float(half);
}

/* What a type can tell apart, next to 1 and next to 0, and where it ends. */
struct precision {
    long double eps, least, most;
};

static struct precision precision_of(enum zipccl_dtype dtype)
{
    switch (dtype) {
    case ZIPCCL_FLOAT64: return (struct precision){DBL_EPSILON, 0x1p-1074L, DBL_MAX};
    case ZIPCCL_FLOAT32: return (struct precision){FLT_EPSILON, 0x1p-149L, FLT_MAX};
    case ZIPCCL_FLOAT16: return (struct precision){0x1p-10L, 0x1p-24L, 65504};
    default: return (struct precision){0x1p-7L, 0x1p-133L, 0x1.fep127L};
    }
}

/*
 * True if element 'i' may come out as 'got' when 'n' operands are combined in any order, each
 * partial result rounded to the type: n rounding errors of at most eps of the sum of magnitudes.
 */
static bool within_rounding(enum zipccl_dtype dtype, enum zipccl_redop redop, const void *const *x,
                            uint32_t n, size_t i, long double got)
{
    struct precision p = precision_of(dtype);
    long double result = value_at(dtype, x[0], i), size = fabsl(result), slack;

    for (uint32_t k = 1; k < n; k++) {
        long double v = value_at(dtype, x[k], i);

        result = redop == ZIPCCL_PROD ? result * v : result + v;
        size = redop == ZIPCCL_PROD ? size * fabsl(v) : size + fabsl(v);
    }
    if (redop == ZIPCCL_AVG) {
        result /= n;
        size /= n;
    }
    if (isnan(result) || isnan(got))
        return isnan(result) && isnan(got);
    slack = (n + 1) * (p.eps * size + p.least);
    if (isinf(result) || isinf(got))
        return result == got || fabsl(result) + slack >= p.most;
    return fabsl(result - got) <= slack;
}

/* Pieces of all ranks' send buffers, side by side. */
struct pieces {
    unsigned char *memory; /* [nranks + 1] pieces; the last is for what is expected */
    const void **of;       /* [nranks] */
    unsigned char *want;
};

static zipccl_status pieces_open(struct pieces *pieces, uint32_t nranks, size_t size)
{
    pieces->memory = malloc(((size_t)nranks + 1) * PIECE_N * size);
    pieces->of = malloc(nranks * sizeof *pieces->of);
    if (pieces->memory == NULL || pieces->of == NULL) {
        free(pieces->memory);
        free(pieces->of);
        return ZIPCCL_ERR_NOMEM;
    }
    for (uint32_t r = 0; r < nranks; r++)
        pieces->of[r] = pieces->memory + (size_t)r * PIECE_N * size;
    pieces->want = pieces->memory + (size_t)nranks * PIECE_N * size;
    return ZIPCCL_OK;
}

/* One piece of a native reduction. */
static zipccl_status check_native(const struct zipccl_perf_check *c, const struct pieces *pieces,
                                  size_t n, const unsigned char *got, uint64_t *wrong)
{
    enum zipccl_dtype dtype = c->call->dtype;
    enum zipccl_redop redop = c->call->redop;
    bool exact = redop == ZIPCCL_MIN || redop == ZIPCCL_MAX || !is_float(dtype);
    uint32_t nranks = c->topology->nranks;

    if (c->rank_order || exact) {
        ZIPCCL_TRY(zipccl_reduce(dtype, redop, pieces->of, nranks, n, pieces->want));
        *wrong += count_wrong(pieces->want, got, n, zipccl_dtype_size(dtype));
        return ZIPCCL_OK;
    }
    for (size_t i = 0; i < n; i++)
        *wrong += !within_rounding(dtype, redop, pieces->of, nranks, i, value_at(dtype, got, i));
    return ZIPCCL_OK;
}

static bool is_native(const struct zipccl_plan *plan)
{
    for (uint32_t i = 0; i < plan->nsteps; i++)
        if (plan->steps[i].kind == ZIPCCL_STEP_NATIVE)
            return true;
    return false;
}

static zipccl_status check_reduced(const struct zipccl_perf_check *c, const unsigned char *recv,
                                   uint64_t *wrong)
{
    size_t size = zipccl_dtype_size(c->call->dtype), n = c->call->recv_n;
    size_t own = c->call->op == ZIPCCL_REDUCE_SCATTER ? c->rank * n : 0;
    bool native = is_native(c->plan);
    struct zipccl_reference reference;
    zipccl_status status = ZIPCCL_OK;
    struct pieces pieces;

    if (!native)
        ZIPCCL_TRY(zipccl_reference_init(&reference, c->plan, c->topology));
    ZIPCCL_TRY(pieces_open(&pieces, c->topology->nranks, size));
    for (size_t at = 0; at < n && status == ZIPCCL_OK; at += PIECE_N) {
        size_t len = n - at < PIECE_N ? n - at : PIECE_N;

        for (uint32_t r = 0; r < c->topology->nranks; r++)
            c->sent(c->context, r, own + at, len, pieces.memory + (size_t)r * PIECE_N * size);
        if (native) {
            status = check_native(c, &pieces, len, recv + at * size, wrong);
            continue;
        }
        status = zipccl_reference_result(&reference, pieces.of, 0, len, pieces.want);
        if (status == ZIPCCL_OK)
            *wrong += count_wrong(pieces.want, recv + at * size, len, size);
    }
    free(pieces.of);
    free(pieces.memory);
    return status;
}

zipccl_status zipccl_perf_check(const struct zipccl_perf_check *check, const void *recv,
                                uint64_t *wrong)
{
    bool reduces = zipccl_is_reduction(check->call->op);

    return reduces ? check_reduced(check, recv, wrong) : check_moved(check, recv, wrong);
}
