/*
 * timed_exec.c - times what an exec's codec calls take
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/perf/timed_exec.h"

#include <time.h>

double zipccl_now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static struct zipccl_timed_exec *timed_of(struct zipccl_exec *e)
{
    return (struct zipccl_timed_exec *)(uintptr_t)e->ops;
}

/* A room as large as any message of 'n' can get is one for a message of exact size. */
static void count(struct zipccl_timed_exec *timed, enum zipccl_dtype dtype, size_t n,
                  size_t capacity, size_t nbytes, zipccl_status status)
{
    double raw = (double)n * (double)zipccl_dtype_size(dtype);

    timed->coded_raw += raw;
    timed->coded_wire += (double)(capacity >= zipccl_bound(dtype, n) ? nbytes : capacity);
    if (status == ZIPCCL_ERR_OVERFLOW)
        timed->coded_wire += raw;
}

static zipccl_status timed_encode(struct zipccl_exec *e, enum zipccl_dtype dtype, const void *src,
                                  size_t n, void *dst, size_t capacity, size_t *nbytes)
{
    struct zipccl_timed_exec *timed = timed_of(e);
    double start = zipccl_now_s();
    zipccl_status status = timed->inner->encode(e, dtype, src, n, dst, capacity, nbytes);

    timed->encode_s += zipccl_now_s() - start;
    if (status == ZIPCCL_OK || status == ZIPCCL_ERR_OVERFLOW)
        count(timed, dtype, n, capacity, *nbytes, status);
    return status;
}

static zipccl_status timed_decode(struct zipccl_exec *e, enum zipccl_dtype dtype, const void *wire,
                                  size_t nbytes, void *dst, size_t n)
{
    struct zipccl_timed_exec *timed = timed_of(e);
    double start = zipccl_now_s();
    zipccl_status status = timed->inner->decode(e, dtype, wire, nbytes, dst, n);

    timed->decode_s += zipccl_now_s() - start;
    return status;
}

static zipccl_status timed_encode_many(struct zipccl_exec *e, enum zipccl_dtype dtype,
                                       struct zipccl_slice *slices, size_t nslices)
{
    struct zipccl_timed_exec *timed = timed_of(e);
    double start = zipccl_now_s();
    zipccl_status status = timed->inner->encode_many(e, dtype, slices, nslices);

    timed->encode_s += zipccl_now_s() - start;
    for (size_t i = 0; i < nslices && (status == ZIPCCL_OK || status == ZIPCCL_ERR_OVERFLOW); i++)
        count(timed, dtype, slices[i].n, slices[i].capacity, slices[i].nbytes, slices[i].status);
    return status;
}

static zipccl_status timed_encode_early(struct zipccl_exec *e, enum zipccl_dtype dtype,
                                        const void *src, size_t n, void *dst, size_t capacity,
                                        struct zipccl_encoder *encoder)
{
    struct zipccl_timed_exec *timed = timed_of(e);
    double start = zipccl_now_s();
    zipccl_status status = timed->inner->encode_early(e, dtype, src, n, dst, capacity, encoder);

    timed->encode_s += zipccl_now_s() - start;
    return status;
}

static zipccl_status timed_encode_rest(struct zipccl_exec *e, struct zipccl_encoder *encoder,
                                       size_t *nbytes)
{
    struct zipccl_timed_exec *timed = timed_of(e);
    double start = zipccl_now_s();
    size_t n = encoder->n, capacity = encoder->capacity;
    enum zipccl_dtype dtype = encoder->dtype;
    zipccl_status status = timed->inner->encode_rest(e, encoder, nbytes);

    timed->encode_s += zipccl_now_s() - start;
    /* One of exact size that does not stand in parts is encoded again, and counted then. */
    if (status == ZIPCCL_OK || (status == ZIPCCL_ERR_OVERFLOW && capacity < zipccl_bound(dtype, n)))
        count(timed, dtype, n, capacity, *nbytes, status);
    return status;
}

static zipccl_status timed_decode_sum(struct zipccl_exec *e, enum zipccl_dtype dtype,
                                      struct zipccl_term *terms, size_t nterms, size_t n,
                                      uint32_t divisor, void *dst)
{
    struct zipccl_timed_exec *timed = timed_of(e);
    double start = zipccl_now_s();
    bool decodes = false;

    for (size_t i = 0; i < nterms; i++)
        decodes = decodes || terms[i].is_message;
    zipccl_status status = timed->inner->decode_sum(e, dtype, terms, nterms, n, divisor, dst);
    if (decodes)
        timed->decode_s += zipccl_now_s() - start;
    return status;
}

void zipccl_time_exec(struct zipccl_timed_exec *timed, struct zipccl_exec *exec)
{
    *timed = (struct zipccl_timed_exec){.ops = *exec->ops, .inner = exec->ops};
    timed->ops.encode = timed_encode;
    timed->ops.decode = timed_decode;
    if (timed->inner->encode_many != NULL)
        timed->ops.encode_many = timed_encode_many;
    if (timed->inner->encode_early != NULL)
        timed->ops.encode_early = timed_encode_early;
    if (timed->inner->encode_rest != NULL)
        timed->ops.encode_rest = timed_encode_rest;
    if (timed->inner->decode_sum != NULL)
        timed->ops.decode_sum = timed_decode_sum;
    exec->ops = &timed->ops;
}
