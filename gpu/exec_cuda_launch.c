/*
 * exec_cuda_launch.c - messages of a step become one launch
 *
 * Messages that lie at regular distances go as strides, others as a table that is copied to the device
 * in front of the launch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/exec_cuda.h"

#include "gpu/gate.h"

#include <stdlib.h>
#include <string.h>

void zipccl_cuda_list_start(struct zipccl_exec_cuda *e)
{
    e->nlist = 0;
    e->read = 0;
}

zipccl_status zipccl_cuda_list_add(struct zipccl_exec_cuda *e, struct zipccl_gpu_slot message)
{
    if (e->nlist == e->room_list) {
        size_t room = e->room_list > 0 ? 2 * e->room_list : 64;
        struct zipccl_gpu_slot *more = realloc(e->list, room * sizeof *more);

        if (more == NULL)
            return ZIPCCL_ERR_NOMEM;
        e->list = more;
        e->room_list = room;
    }
    e->list[e->nlist++] = message;
    return ZIPCCL_OK;
}

/* True if 'slots' lie at regular distances and are alike, which 'batch' then says. */
static bool is_regular(const struct zipccl_gpu_slot *slots, size_t n,
                       struct zipccl_gpu_batch *batch)
{
    uintptr_t elements = (uintptr_t)slots[0].elements, wire = (uintptr_t)slots[0].wire;
    size_t elements_stride = 0, wire_stride = 0;

    if (n > 1) {
        if ((uintptr_t)slots[1].elements < elements || (uintptr_t)slots[1].wire < wire)
            return false;
        elements_stride = (uintptr_t)slots[1].elements - elements;
        wire_stride = (uintptr_t)slots[1].wire - wire;
    }
    for (size_t i = 1; i < n; i++)
        if ((uintptr_t)slots[i].elements != elements + i * elements_stride ||
            (uintptr_t)slots[i].wire != wire + i * wire_stride || slots[i].n != slots[0].n ||
            slots[i].capacity != slots[0].capacity)
            return false;
    batch->first = slots[0];
    batch->elements_stride = elements_stride;
    batch->wire_stride = wire_stride;
    return true;
}

/* Bring 'nbytes' of 'bytes' to the device; where they are there. */
static zipccl_status upload(struct zipccl_exec_cuda *e, const void *bytes, size_t nbytes,
                            const void **out)
{
    struct zipccl_cuda_region *tables = &e->arena->tables;
    size_t at = zipccl_cuda_take(tables, nbytes);

    memcpy(tables->h + at, bytes, nbytes);
    ZIPCCL_CUDA_TRY(
        e, cudaMemcpyAsync(tables->d + at, tables->h + at, nbytes, cudaMemcpyHostToDevice, e->now));
    *out = tables->d + at;
    return ZIPCCL_OK;
}

static zipccl_status make_batch(struct zipccl_exec_cuda *e, const struct zipccl_gpu_slot *slots,
                                size_t n, struct zipccl_gpu_batch *batch)
{
    const void *table;

    *batch = (struct zipccl_gpu_batch){.nmessages = (uint32_t)n};
    if (is_regular(slots, n, batch))
        return ZIPCCL_OK;
    for (size_t i = 0; i < n; i++)
        batch->total_n += slots[i].n;
    ZIPCCL_TRY(upload(e, slots, n * sizeof *slots, &table));
    batch->d_slots = table;
    return ZIPCCL_OK;
}

/* Messages of the next launch from the 'first' on. */
static size_t launch_size(size_t first, size_t n)
{
    return n - first < ZIPCCL_GPU_MAX_MESSAGES ? n - first : ZIPCCL_GPU_MAX_MESSAGES;
}

static struct zipccl_gpu_result *device_results(struct zipccl_cuda_region *region, size_t n,
                                                size_t *at)
{
    *at = zipccl_cuda_take(region, n * sizeof(struct zipccl_gpu_result));
    return (struct zipccl_gpu_result *)(void *)(region->d + *at);
}

/* Copy results to the host; where they will be there. */
static zipccl_status fetch(struct zipccl_exec_cuda *e, size_t at, size_t n,
                           const struct zipccl_gpu_result **out)
{
    struct zipccl_cuda_region *results = &e->arena->results;

    ZIPCCL_CUDA_TRY(e, cudaMemcpyAsync(results->h + at, results->d + at,
                                       n * sizeof(struct zipccl_gpu_result), cudaMemcpyDeviceToHost,
                                       e->now));
    *out = (const struct zipccl_gpu_result *)(const void *)(results->h + at);
    return ZIPCCL_OK;
}

static zipccl_status encode_list(struct zipccl_exec_cuda *e, enum zipccl_dtype dtype,
                                 struct zipccl_gpu_result *d_results)
{
    for (size_t i = 0; i < e->nlist; i += ZIPCCL_GPU_MAX_MESSAGES) {
        struct zipccl_gpu_encode_args args = {.dtype = dtype,
                                              .effort = (int)e->base.effort,
                                              .flag_any = true,
                                              .nsms = e->nsms,
                                              .d_workspace = e->encode.d,
                                              .workspace_nbytes = e->encode.nbytes,
                                              .d_results = d_results + i};

        ZIPCCL_TRY(make_batch(e, e->list + i, launch_size(i, e->nlist), &args.batch));
        ZIPCCL_CUDA_TRY(e, zipccl_gpu_encode(&args, e->now));
    }
    return ZIPCCL_OK;
}

zipccl_status zipccl_cuda_encode_many(struct zipccl_exec *exec, enum zipccl_dtype dtype,
                                      struct zipccl_slice *slices, size_t nslices)
{
    struct zipccl_exec_cuda *e = zipccl_cuda_of(exec);
    struct zipccl_gpu_result *d_results;
    size_t at;

    e->seen = NULL;
    if (nslices == 0)
        return ZIPCCL_OK;
    zipccl_cuda_list_start(e);
    for (size_t i = 0; i < nslices; i++)
        ZIPCCL_TRY(zipccl_cuda_list_add(
            e, (struct zipccl_gpu_slot){.elements = (void *)(uintptr_t)slices[i].src,
                                        .wire = slices[i].dst,
                                        .n = slices[i].n,
                                        .capacity = slices[i].capacity}));
    d_results = device_results(&e->arena->results, nslices, &at);
    ZIPCCL_TRY(zipccl_cuda_span_start(e, false));
    ZIPCCL_TRY(encode_list(e, dtype, d_results));
    ZIPCCL_TRY(zipccl_cuda_span_end(e));
    return fetch(e, at, nslices, &e->seen);
}

zipccl_status zipccl_cuda_look(struct zipccl_exec_cuda *e, enum zipccl_dtype dtype)
{
    struct zipccl_gpu_result *d_results;
    struct zipccl_gpu_seen *d_seen;
    size_t at, seen_at = zipccl_cuda_take(&e->arena->results, sizeof *d_seen);

    d_seen = (struct zipccl_gpu_seen *)(void *)(e->arena->results.d + seen_at);
    d_results = device_results(&e->arena->results, e->nlist, &at);
    for (size_t i = 0; i < e->nlist; i += ZIPCCL_GPU_MAX_MESSAGES) {
        struct zipccl_gpu_batch batch;

        ZIPCCL_TRY(make_batch(e, e->list + i, launch_size(i, e->nlist), &batch));
        ZIPCCL_CUDA_TRY(e, zipccl_gpu_resolve(dtype, &batch, d_results + i, d_seen, e->now));
    }
    return fetch(e, at, e->nlist, &e->seen);
}

zipccl_status zipccl_cuda_decode(struct zipccl_exec_cuda *e, enum zipccl_dtype dtype)
{
    struct zipccl_gpu_result *d_results;
    size_t at;

    if (e->nlist == 0)
        return ZIPCCL_OK;
    d_results = device_results(&e->arena->outcomes, e->nlist, &at);
    ZIPCCL_TRY(zipccl_cuda_span_start(e, true));
    for (size_t i = 0; i < e->nlist; i += ZIPCCL_GPU_MAX_MESSAGES) {
        struct zipccl_gpu_decode_args args = {.dtype = dtype,
                                              .nsms = e->nsms,
                                              .d_workspace = e->decode.d,
                                              .workspace_nbytes = e->decode.nbytes,
                                              .d_results = d_results + i};

        ZIPCCL_TRY(make_batch(e, e->list + i, launch_size(i, e->nlist), &args.batch));
        ZIPCCL_CUDA_TRY(e, zipccl_gpu_decode(&args, e->now));
    }
    return zipccl_cuda_span_end(e);
}

/* Terms of which all but one are messages at regular distances, in 'args'; false if they are not. */
static bool regular_terms(const struct zipccl_term *terms, size_t nterms,
                          struct zipccl_gpu_sum_args *args)
{
    size_t a = terms[0].is_message ? 0 : 1, b = a + 1;
    uintptr_t base, stride;

    if (nterms < 3)
        return false;
    if (!terms[b].is_message)
        b++;
    if (b >= nterms || !terms[a].is_message || !terms[b].is_message ||
        (uintptr_t)terms[b].bytes < (uintptr_t)terms[a].bytes)
        return false;
    stride = ((uintptr_t)terms[b].bytes - (uintptr_t)terms[a].bytes) / (b - a);
    if (stride == 0 || a * stride > (uintptr_t)terms[a].bytes)
        return false;
    base = (uintptr_t)terms[a].bytes - a * stride;
    args->own = -1;
    for (size_t t = 0; t < nterms; t++) {
        if (!terms[t].is_message) {
            if (args->own >= 0)
                return false;
            args->own = (int32_t)t;
            args->d_own = terms[t].bytes;
        } else if ((uintptr_t)terms[t].bytes != base + t * stride ||
                   terms[t].nbytes != terms[a].nbytes) {
            return false;
        }
    }
    args->d_wire = (const void *)base;
    args->wire_stride = stride;
    args->wire_nbytes = terms[a].nbytes;
    return true;
}

static zipccl_status terms_table(struct zipccl_exec_cuda *e, const struct zipccl_term *terms,
                                 size_t nterms, const void **out)
{
    struct zipccl_cuda_region *tables = &e->arena->tables;
    size_t nbytes = nterms * sizeof(struct zipccl_gpu_term), at = zipccl_cuda_take(tables, nbytes);
    struct zipccl_gpu_term *table = (struct zipccl_gpu_term *)(void *)(tables->h + at);

    for (size_t t = 0; t < nterms; t++)
        table[t] =
            (struct zipccl_gpu_term){terms[t].bytes, terms[t].is_message ? terms[t].nbytes : 0};
    ZIPCCL_CUDA_TRY(e,
                    cudaMemcpyAsync(tables->d + at, table, nbytes, cudaMemcpyHostToDevice, e->now));
    *out = tables->d + at;
    return ZIPCCL_OK;
}

zipccl_status zipccl_cuda_decode_sum(struct zipccl_exec *exec, enum zipccl_dtype dtype,
                                     struct zipccl_term *terms, size_t nterms, size_t n,
                                     uint32_t divisor, void *dst)
{
    struct zipccl_exec_cuda *e = zipccl_cuda_of(exec);
    struct zipccl_gpu_sum_args args = {.dtype = dtype,
                                       .nsms = e->nsms,
                                       .nterms = (uint32_t)nterms,
                                       .divisor = divisor,
                                       .n = n,
                                       .d_dst = dst,
                                       .d_workspace = e->sum.d,
                                       .workspace_nbytes = e->sum.nbytes};
    const void *table;
    bool decodes = false;
    size_t at;

    if (nterms > ZIPCCL_GPU_MAX_MESSAGES)
        return ZIPCCL_ERR_UNSUPPORTED;
    if (zipccl_gate_is_on(e) || !regular_terms(terms, nterms, &args)) {
        ZIPCCL_TRY(terms_table(e, terms, nterms, &table));
        if (zipccl_gate_is_on(e))
            ZIPCCL_TRY(zipccl_gate_summed(e, terms, (void *)(uintptr_t)table, nterms));
        args.d_terms = table;
    }
    args.d_results = device_results(&e->arena->outcomes, nterms, &at);
    for (size_t t = 0; t < nterms; t++)
        decodes = decodes || terms[t].is_message;
    if (decodes)
        ZIPCCL_TRY(zipccl_cuda_span_start(e, true));
    ZIPCCL_CUDA_TRY(e, zipccl_gpu_decode_sum(&args, e->now));
    return decodes ? zipccl_cuda_span_end(e) : ZIPCCL_OK;
}

zipccl_status zipccl_cuda_message_read(struct zipccl_exec *exec, enum zipccl_dtype dtype, size_t n,
                                       const void *at, struct zipccl_message *message)
{
    struct zipccl_exec_cuda *e = zipccl_cuda_of(exec);
    const struct zipccl_gpu_result *r;

    /* The walk listed them in the order in which the step asks. */
    if (e->read >= e->nlist || e->list[e->read].wire != at || e->list[e->read].n != n)
        return ZIPCCL_ERR_INTERNAL;
    r = &e->seen[e->read++];
    if (r->error != ZIPCCL_OK && r->error != ZIPCCL_ERR_OVERFLOW)
        return ZIPCCL_ERR_CORRUPT;
    *message =
        (struct zipccl_message){.dtype = dtype, .flags = r->flags, .n = n, .nbytes = r->nbytes};
    return ZIPCCL_OK;
}
