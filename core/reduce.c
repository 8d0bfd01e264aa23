/*
 * reduce.c - element-wise reductions, a block of elements at a time
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/reduce.h"

/* Elements reduced at once: the accumulators stay in the first-level cache. */
#define BLOCK_N 512

bool zipccl_reduce_serves(enum zipccl_dtype dtype, enum zipccl_redop redop)
{
    return (unsigned)redop < ZIPCCL_NUM_REDOPS && (unsigned)dtype < ZIPCCL_NUM_DTYPES &&
           dtype != ZIPCCL_FLOAT8_E4M3 && dtype != ZIPCCL_FLOAT8_E5M2;
}

static float step_f(enum zipccl_redop redop, float acc, float x)
{
    switch (redop) {
    case ZIPCCL_PROD: return acc * x;
    case ZIPCCL_MAX: return acc < x || x != x ? x : acc;
    case ZIPCCL_MIN: return acc > x || x != x ? x : acc;
    default: return acc + x;
    }
}

/* 'nsources' contributions to 'n' fp32 accumulators; 'read' gives element i of a source. */
static void accumulate_f(enum zipccl_redop redop, float *acc, const float *x, size_t n, bool first)
{
    if (first) {
        memcpy(acc, x, n * sizeof *acc);
        return;
    }
    if (redop == ZIPCCL_SUM || redop == ZIPCCL_AVG) {
        for (size_t i = 0; i < n; i++)
            acc[i] += x[i];
        return;
    }
    for (size_t i = 0; i < n; i++)
        acc[i] = step_f(redop, acc[i], x[i]);
}

static void load_floats(enum zipccl_dtype dtype, const void *source, size_t start, size_t n,
                        float *out)
{
    if (dtype == ZIPCCL_FLOAT32) {
        memcpy(out, (const float *)source + start, n * sizeof *out);
        return;
    }
    const uint16_t *x = (const uint16_t *)source + start;

    for (size_t i = 0; i < n; i++)
        out[i] = dtype == ZIPCCL_BFLOAT16 ? zipccl_bf16_to_float(x[i]) : zipccl_fp16_to_float(x[i]);
}

static void store_floats(enum zipccl_dtype dtype, const float *acc, size_t start, size_t n,
                         void *dst)
{
    if (dtype == ZIPCCL_FLOAT32) {
        uint32_t *y = (uint32_t *)dst + start;

        for (size_t i = 0; i < n; i++)
            y[i] = acc[i] != acc[i] ? ZIPCCL_FP32_NAN : zipccl_float_to_bits(acc[i]);
        return;
    }
    uint16_t *y = (uint16_t *)dst + start;

    for (size_t i = 0; i < n; i++)
        y[i] = dtype == ZIPCCL_BFLOAT16 ? zipccl_bf16_from_float(acc[i])
                                        : zipccl_fp16_from_float(acc[i]);
}

static void reduce_float(enum zipccl_dtype dtype, enum zipccl_redop redop,
                         const void *const *sources, size_t nsources, size_t n, void *dst)
{
    float acc[BLOCK_N], x[BLOCK_N];

    for (size_t start = 0; start < n; start += BLOCK_N) {
        size_t len = n - start < BLOCK_N ? n - start : BLOCK_N;

        for (size_t s = 0; s < nsources; s++) {
            load_floats(dtype, sources[s], start, len, x);
            accumulate_f(redop, acc, x, len, s == 0);
        }
        if (redop == ZIPCCL_AVG)
            for (size_t i = 0; i < len; i++)
                acc[i] /= (float)nsources;
        store_floats(dtype, acc, start, len, dst);
    }
}

void zipccl_accumulate(enum zipccl_dtype dtype, float *acc, const void *x, size_t n, bool first)
{
    float block[BLOCK_N];

    for (size_t start = 0; start < n; start += BLOCK_N) {
        size_t len = n - start < BLOCK_N ? n - start : BLOCK_N;

        load_floats(dtype, x, start, len, first ? acc + start : block);
        if (!first)
            accumulate_f(ZIPCCL_SUM, acc + start, block, len, false);
    }
}

void zipccl_round_sums(enum zipccl_dtype dtype, const float *acc, size_t n, uint32_t divisor,
                       void *dst)
{
    float block[BLOCK_N];

    if (divisor == 1) {
        store_floats(dtype, acc, 0, n, dst);
        return;
    }
    for (size_t start = 0; start < n; start += BLOCK_N) {
        size_t len = n - start < BLOCK_N ? n - start : BLOCK_N;

        for (size_t i = 0; i < len; i++)
            block[i] = acc[start + i] / (float)divisor;
        store_floats(dtype, block, 0, len, (char *)dst + start * zipccl_dtype_size(dtype));
    }
}

static void reduce_double(enum zipccl_redop redop, const void *const *sources, size_t nsources,
                          size_t n, void *dst)
{
    static const uint64_t nan_bits = ZIPCCL_FP64_NAN;

    for (size_t i = 0; i < n; i++) {
        double acc = ((const double *)sources[0])[i];

        for (size_t s = 1; s < nsources; s++) {
            double x = ((const double *)sources[s])[i];

            switch (redop) {
            case ZIPCCL_PROD: acc *= x; break;
            case ZIPCCL_MAX: acc = acc < x || x != x ? x : acc; break;
            case ZIPCCL_MIN: acc = acc > x || x != x ? x : acc; break;
            default: acc += x; break;
            }
        }
        if (redop == ZIPCCL_AVG)
            acc /= (double)nsources;
        if (acc != acc)
            memcpy(&acc, &nan_bits, sizeof acc);
        memcpy((char *)dst + i * sizeof acc, &acc, sizeof acc);
    }
}

/* Integers widen to 64 bits, wrap there, and are cut back: the same as wrapping at each step,
 * except that avg divides what wrapped in the type itself, as NCCL does. */
static uint64_t load_int(enum zipccl_dtype dtype, const void *p)
{
    switch (dtype) {
    case ZIPCCL_INT8: return (uint64_t)(int64_t) * (const int8_t *)p;
    case ZIPCCL_UINT8: return *(const uint8_t *)p;
    case ZIPCCL_INT32: return (uint64_t)(int64_t) * (const int32_t *)p;
    case ZIPCCL_UINT32: return *(const uint32_t *)p;
    default: return *(const uint64_t *)p;
    }
}

static void store_int(size_t size, uint64_t x, void *p)
{
    uint8_t x8 = (uint8_t)x;
    uint32_t x32 = (uint32_t)x;

    if (size == 1)
        memcpy(p, &x8, 1);
    else if (size == 4)
        memcpy(p, &x32, 4);
    else
        memcpy(p, &x, 8);
}

static uint64_t step_int(enum zipccl_redop redop, bool is_signed, uint64_t acc, uint64_t x)
{
    bool less = is_signed ? (int64_t)acc < (int64_t)x : acc < x;

    switch (redop) {
    case ZIPCCL_PROD: return acc * x;
    case ZIPCCL_MAX: return less ? x : acc;
    case ZIPCCL_MIN: return less ? acc : x;
    default: return acc + x;
    }
}

static void reduce_int(enum zipccl_dtype dtype, enum zipccl_redop redop, const void *const *sources,
                       size_t nsources, size_t n, void *dst)
{
    size_t size = zipccl_dtype_size(dtype);
    bool is_signed = dtype == ZIPCCL_INT8 || dtype == ZIPCCL_INT32 || dtype == ZIPCCL_INT64;

    for (size_t i = 0; i < n; i++) {
        char *out = (char *)dst + i * size;
        uint64_t acc = load_int(dtype, (const char *)sources[0] + i * size);

        for (size_t s = 1; s < nsources; s++)
            acc = step_int(redop, is_signed, acc,
                           load_int(dtype, (const char *)sources[s] + i * size));
        store_int(size, acc, out);
        if (redop == ZIPCCL_AVG) {
            acc = load_int(dtype, out);
            acc = is_signed ? (uint64_t)((int64_t)acc / (int64_t)nsources) : acc / nsources;
            store_int(size, acc, out);
        }
    }
}

zipccl_status zipccl_reduce(enum zipccl_dtype dtype, enum zipccl_redop redop,
                            const void *const *sources, size_t nsources, size_t n, void *dst)
{
    if (!zipccl_reduce_serves(dtype, redop))
        return ZIPCCL_ERR_UNSUPPORTED;
    if (nsources == 0)
        return ZIPCCL_ERR_ARG;
    if (nsources == 1) {
        if (n > 0)
            memmove(dst, sources[0], n * zipccl_dtype_size(dtype));
        return ZIPCCL_OK;
    }
    if (dtype == ZIPCCL_BFLOAT16 || dtype == ZIPCCL_FLOAT16 || dtype == ZIPCCL_FLOAT32)
        reduce_float(dtype, redop, sources, nsources, n, dst);
    else if (dtype == ZIPCCL_FLOAT64)
        reduce_double(redop, sources, nsources, n, dst);
    else
        reduce_int(dtype, redop, sources, nsources, n, dst);
    return ZIPCCL_OK;
}
