/*
 * decode_wire.cuh - what a decoder reads and checks before it trusts a message: header and directory
 *
 * The rules of core/FORMAT.md, as core/codec/message.c and layout.c apply them on the CPU.  It
 * knows nothing of how a superblock's elements are coded.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_DECODE_WIRE_CUH
#define ZIPCCL_GPU_DECODE_WIRE_CUH

#include "gpu/portable.cuh"

extern "C" {
#include "core/codec/ans.h"
#include "core/codec/header.h"
#include "core/codec/layout.h"
#include "core/reduce.h"
}

#include "gpu/kernels.h"

ZIPCCL_TABLE struct zipccl_tier_program decode_programs[ZIPCCL_NUM_PROGRAMS] = {
#include "core/codec/programs.inc"
};

ZIPCCL_TABLE struct zipccl_tier decode_ans_tiers[ZIPCCL_ANS_TIERS] = {
#include "core/codec/ans_tiers.inc"
};

/* What there is to decode: the messages of a batch, or the terms of a sum. */
struct decode_input {
    struct zipccl_gpu_batch batch; /* of a sum: n, and where term 0 lies, if there is no table */
    const struct zipccl_gpu_term *d_terms;
    bool is_sum;
    int32_t own; /* of a sum without a table: the term that is elements d_own; -1 if none */
    const void *d_own;
    struct zipccl_fields fields; /* size 0: a type that is only stored raw */
    uint32_t dtype, size;        /* bytes of an element */
    struct zipccl_gpu_result *d_results;
};

/* One of them. */
struct decode_slot {
    const uint8_t *wire;
    uint8_t *elements; /* a batch's: where they go */
    uint64_t n, capacity;
    bool is_elements; /* a term's, as they are; no wire */
};

static __device__ inline struct decode_slot slot_of_term(const struct decode_input *in, uint32_t t)
{
    struct decode_slot slot;
    slot.n = in->batch.first.n;
    if (in->d_terms) {
        struct zipccl_gpu_term term = in->d_terms[t];
        slot.wire = slot.elements = (uint8_t *)term.bytes;
        slot.capacity = term.nbytes;
        slot.is_elements = term.nbytes == 0;
        return slot;
    }
    slot.is_elements = (int32_t)t == in->own;
    slot.wire = (const uint8_t *)in->batch.first.wire + (size_t)t * in->batch.wire_stride;
    slot.elements = (uint8_t *)in->d_own;
    slot.capacity = in->batch.first.capacity;
    return slot;
}

static __device__ inline struct decode_slot slot_at(const struct decode_input *in, uint32_t i)
{
    const struct zipccl_gpu_batch *batch = &in->batch;
    if (in->is_sum)
        return slot_of_term(in, i);
    struct zipccl_gpu_slot from = batch->first;
    if (batch->d_slots) {
        from = batch->d_slots[i];
    } else {
        from.wire = (uint8_t *)from.wire + (size_t)i * batch->wire_stride;
        from.elements = (uint8_t *)from.elements + (size_t)i * batch->elements_stride;
    }
    struct decode_slot slot = {(const uint8_t *)from.wire, (uint8_t *)from.elements, from.n,
                               from.capacity, false};
    return slot;
}

/* The 32 bytes of a header or an entry, aligned to 16. */
struct wire_words {
    uint32_t w[8];
};

static __device__ inline struct wire_words words_at(const uint8_t *p)
{
    struct wire_words x;
    uint4 lower = ((const uint4 *)p)[0], upper = ((const uint4 *)p)[1];
    memcpy(x.w, &lower, 16);
    memcpy(x.w + 4, &upper, 16);
    return x;
}

static __device__ inline uint32_t header_checksum(const struct wire_words *x)
{
    uint32_t h = 2166136261u;
    SIMT_UNROLL
    for (int i = 0; i < ZIPCCL_AT_CHECK; i++)
        h = (h ^ (x->w[i / 4] >> 8 * (i % 4) & 255)) * 16777619u;
    return h;
}

/*
 * Check the header of a slot's message as zipccl_message_read() and zipccl_reader_open() do.
 * Fills 'result'; nbytes stays 0 where it cannot be told.
 */
static __device__ inline void header_read(const struct decode_slot *slot, uint32_t dtype,
                                          uint32_t size, bool compressible,
                                          struct zipccl_gpu_result *result)
{
    result->nbytes = 0;
    result->flags = 0;
    result->error = ZIPCCL_ERR_CORRUPT;
    if (!slot->wire || (uintptr_t)slot->wire % ZIPCCL_GPU_WIRE_ALIGN != 0) {
        result->error = ZIPCCL_ERR_ARG;
        return;
    }
    if (slot->capacity < ZIPCCL_MESSAGE_HEADER_BYTES)
        return;
    const struct wire_words x = words_at(slot->wire);
    uint64_t n = x.w[2] | (uint64_t)x.w[3] << 32, nbody = x.w[4] | (uint64_t)x.w[5] << 32;
    uint32_t flags = x.w[1] >> 16 & 255;
    bool raw = flags & ZIPCCL_MESSAGE_RAW, overflow = flags & ZIPCCL_MESSAGE_OVERFLOW;
    /* Version, dtype and the byte that is zero at once. */
    if (x.w[0] != ZIPCCL_WIRE_MAGIC ||
        (x.w[1] & 0xff00ffffu) != (ZIPCCL_WIRE_VERSION | dtype << 8) ||
        (flags & ~(uint32_t)ZIPCCL_MESSAGE_FLAGS) || x.w[6] != 0 || x.w[7] != header_checksum(&x))
        return;
    if (n != slot->n || nbody > slot->capacity - ZIPCCL_MESSAGE_HEADER_BYTES || (raw && overflow) ||
        (raw && nbody != n * size) || (overflow && nbody != 0) ||
        (!raw && !overflow && (!compressible || nbody >= n * size)))
        return;
    result->nbytes = ZIPCCL_MESSAGE_HEADER_BYTES + nbody;
    result->flags = flags;
    result->error = overflow ? ZIPCCL_ERR_OVERFLOW : ZIPCCL_OK;
}

/* Fields of an entry's words. */
static __device__ inline unsigned entry_half(const struct wire_words *x, int i)
{
    return x->w[i / 2] >> 16 * (i % 2) & 0xffff;
}

/* True if bytes [from, 16) of the base field are 0. */
static __device__ inline bool bases_end(const struct wire_words *x, unsigned from)
{
    uint32_t any = 0;
    SIMT_UNROLL
    for (unsigned k = 0; k < 4; k++) {
        unsigned here = from > 4 * k ? from - 4 * k : 0;
        any |= here < 4 ? x->w[4 + k] >> 8 * here : 0;
    }
    return any == 0;
}

static __device__ inline unsigned bases_of(unsigned rest)
{
    return (rest + ZIPCCL_SUBBLOCK - 1) / ZIPCCL_SUBBLOCK;
}

/* As ans_sizes() of layout.c. */
static __device__ inline bool ans_sizes(const struct zipccl_fields *fields,
                                        const struct wire_words *x, unsigned rest, unsigned planes,
                                        size_t *nshare, size_t *nvariable)
{
    unsigned reach = entry_half(x, 1), law = entry_half(x, 1 + ZIPCCL_ANS_AT_LAW),
             stream = entry_half(x, 1 + ZIPCCL_ANS_AT_STREAM);
    if (planes >> zipccl_ans_planes(fields) || reach > rest || law >> 8 >= ZIPCCL_ANS_SHAPES ||
        stream > rest)
        return false;
    struct zipccl_share share = zipccl_ans_share_of(fields, rest, __popc(planes));
    *nshare = share.end - zipccl_ans_carried(&share);
    *nvariable = ZIPCCL_ANS_STATE_BYTES + stream;
    for (int t = 0; t < ZIPCCL_ANS_TIERS; t++) {
        *nvariable += zipccl_plane_bytes(reach, decode_ans_tiers[t].width);
        if (entry_half(x, 2 + t) > reach)
            return false;
        reach = entry_half(x, 2 + t);
    }
    *nvariable += reach;
    return bases_end(x, bases_of(rest)) && *nshare + *nvariable < (size_t)rest * fields->size;
}

/* As tier_sizes() of layout.c. */
static __device__ inline bool tier_sizes(const struct zipccl_fields *fields,
                                         const struct wire_words *x, unsigned id, unsigned rest,
                                         unsigned planes, size_t *nshare, size_t *nvariable)
{
    const struct zipccl_tier_program *program = &decode_programs[id];
    unsigned reach = rest;
    int width = program->tier[0].width;
    if (planes >> fields->nplanes)
        return false;
    *nshare = zipccl_share_of(fields, rest, __popc(planes), width).end;
    *nvariable = width == 3 ? 8 * zipccl_groups(rest) : 0;
    for (int t = 0; t < ZIPCCL_MAX_TIERS; t++) {
        unsigned escapes = entry_half(x, 1 + t);
        if (escapes > (t < program->ntiers ? reach : 0))
            return false;
        if (t > 0 && t < program->ntiers)
            *nvariable += zipccl_plane_bytes(reach, program->tier[t].width);
        if (t + 1 == program->ntiers)
            *nvariable += escapes;
        reach = escapes;
    }
    return bases_end(x, bases_of(rest)) && *nshare + *nvariable < (size_t)rest * fields->size;
}

/*
 * As zipccl_entry_read(): false if any field of a superblock of 'm' elements cannot have been
 * written; else the bytes of its share, a multiple of 64, and its variable bytes.
 */
static __device__ inline bool entry_sizes(const struct zipccl_fields *fields,
                                          const struct wire_words *x, unsigned m, unsigned *nshare,
                                          unsigned *nvariable)
{
    unsigned program = x->w[0] & 255, planes = x->w[0] >> 8 & 255;
    unsigned rest = entry_half(x, 6), ngroups = entry_half(x, 7);
    unsigned id = program & ~(unsigned)ZIPCCL_PROGRAM_ZEROS;
    bool zeros = program & ZIPCCL_PROGRAM_ZEROS, others = (x->w[0] >> 8 | x->w[1] | x->w[2]) != 0;
    size_t share = 0, variable = 0;
    if (program == ZIPCCL_PROGRAM_CONSTANT) {
        *nshare = *nvariable = 0;
        return !others && x->w[3] == 0 && bases_end(x, fields->size);
    }
    if ((id >= ZIPCCL_NUM_PROGRAMS && id != ZIPCCL_PROGRAM_ANS) || rest > m || rest == 0)
        return false;
    if (zeros ? ngroups == 0 || ngroups > zipccl_groups(m) : ngroups != 0 || rest != m)
        return false;
    if (id == ZIPCCL_PROGRAM_RAW) {
        if (others || !bases_end(x, 0))
            return false;
        share = zipccl_raw_share(fields, rest);
        variable = (size_t)rest * fields->size - share;
    } else if (id == ZIPCCL_PROGRAM_ANS) {
        if (!ans_sizes(fields, x, rest, planes, &share, &variable))
            return false;
    } else if (!tier_sizes(fields, x, id, rest, planes, &share, &variable)) {
        return false;
    }
    *nshare = (unsigned)zipccl_align64(share);
    *nvariable = (unsigned)(variable + zipccl_bitmap_bytes(m, ngroups));
    return true;
}

#endif
