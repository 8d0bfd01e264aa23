/*
 * encode_message.cuh - the messages of a launch, their items, and what is done with whole messages
 *
 * An item is a superblock of a message; every message has at least one.  Items of all messages are
 * numbered through, and so are their slots and their words of the look-back.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_ENCODE_MESSAGE_CUH
#define ZIPCCL_GPU_ENCODE_MESSAGE_CUH

#include "core/codec/header.h"
#include "gpu/encode_superblock.cuh"
#include "gpu/kernels.h"

/* Types that are only stored raw: as bytes, an item of so many. */
#define ENC_RAW       ZIPCCL_NUM_SPLITS
#define ENC_RAW_BYTES 32768u
/* Of look-back words: what they say, above shares in units of 64 bytes and variable bytes. */
#define ENC_OWN      (1ull << 62)
#define ENC_UPTO     (2ull << 62)
#define ENC_STATE    (3ull << 62)
#define ENC_SHARE_AT 34

/* Start of the workspace; all 0 between launches. */
struct enc_control {
    uint32_t ticket[2]; /* next item to code, next one to finish */
    uint32_t nfinished; /* blocks that are through */
    uint32_t unused;
    uint32_t ndone[ZIPCCL_GPU_MAX_MESSAGES]; /* items coded */
};

/* What the kernel is told. */
struct enc_params {
    struct zipccl_gpu_batch batch;
    enum zipccl_dtype dtype;
    uint32_t size;      /* bytes of an element */
    uint32_t max_items; /* that the workspace has room for */
    bool flag_any;
    bool floats;                 /* elements are fp32, to be rounded */
    struct zipccl_fields fields; /* of ENC_ANY */
    struct enc_control *control;
    uint64_t *words; /* [max_items] */
    uint8_t *slots;  /* [max_items] of slot_nbytes */
    uint8_t *rests;  /* [blocks], each of rest_nbytes */
    uint32_t slot_nbytes, rest_nbytes;
    struct zipccl_gpu_result *results;
};

/* One message of the launch. */
struct enc_message {
    const uint8_t *elements;
    uint8_t *wire;
    uint64_t n, capacity, bound, limit;
    uint64_t fixed; /* where shares start */
    uint32_t nitems;
    bool valid, coded; /* arguments that can be; it may become shorter */
};

static __device__ __forceinline__ uint64_t enc_share_bytes(uint64_t word)
{
    return (word & ~ENC_STATE) >> ENC_SHARE_AT << 6;
}

static __device__ __forceinline__ uint64_t enc_variable_bytes(uint64_t word)
{
    return word & ((1ull << ENC_SHARE_AT) - 1);
}

/* Items of 'n' elements; more than there can be if they are too many. */
template <int SPLIT> static __device__ __forceinline__ uint32_t enc_items(uint64_t n, uint32_t size)
{
    uint64_t items = SPLIT == ENC_RAW ? (n * size + ENC_RAW_BYTES - 1) / ENC_RAW_BYTES
                                      : (n + ZIPCCL_SUPERBLOCK - 1) / ZIPCCL_SUPERBLOCK;
    return items == 0 ? 1 : items < 0x7fffffffu ? (uint32_t)items : 0x7fffffffu;
}

/* Message 'i' of the launch. */
template <int SPLIT>
static __device__ __forceinline__ struct enc_message enc_message_at(const struct enc_params *p,
                                                                    uint32_t i)
{
    struct zipccl_gpu_slot slot = p->batch.first;
    struct enc_message msg;
    if (p->batch.d_slots) {
        slot = p->batch.d_slots[i];
    } else {
        slot.elements = (uint8_t *)slot.elements + i * p->batch.elements_stride;
        slot.wire = (uint8_t *)slot.wire + i * p->batch.wire_stride;
    }
    msg.elements = (const uint8_t *)slot.elements;
    msg.wire = (uint8_t *)slot.wire;
    msg.n = slot.n;
    msg.capacity = slot.capacity;
    msg.bound = ZIPCCL_MESSAGE_HEADER_BYTES + slot.n * p->size;
    msg.limit = msg.capacity < msg.bound ? msg.capacity : msg.bound;
    msg.nitems = enc_items<SPLIT>(slot.n, p->size);
    msg.valid = slot.capacity >= ZIPCCL_MESSAGE_HEADER_BYTES &&
                (uintptr_t)slot.wire % ZIPCCL_GPU_WIRE_ALIGN == 0 && slot.n < 1ull << 56;
    msg.coded = false;
    msg.fixed = 0;
    if (SPLIT != ENC_RAW) {
        constexpr struct zipccl_fields fields = enc_fields[SPLIT == ENC_RAW ? 0 : ENC_AS(SPLIT)];
        struct zipccl_layout layout;
        msg.coded = msg.valid && slot.n > 0 && zipccl_layout_of(&fields, slot.n, &layout) &&
                    layout.fixed <= msg.limit;
        msg.fixed = msg.coded ? layout.fixed : 0;
    }
    return msg;
}

/* What a message became: its bytes and flags, from the last item's look-back word. */
static __device__ __forceinline__ uint64_t enc_outcome(const struct enc_message *msg, uint64_t word,
                                                       uint32_t *flags)
{
    uint64_t used = msg->fixed + enc_share_bytes(word) + enc_variable_bytes(word);
    *flags = 0;
    if (msg->coded && used <= msg->limit && used < msg->bound)
        return used;
    *flags = msg->capacity < msg->bound ? ZIPCCL_MESSAGE_OVERFLOW : ZIPCCL_MESSAGE_RAW;
    return msg->capacity < msg->bound ? ZIPCCL_MESSAGE_HEADER_BYTES : msg->bound;
}

/*
 * Sizes of the items of a message before item 'i', by decoupled look-back (Merrill and Garland,
 * "Single-pass parallel prefix scan with decoupled look-back", 2016).  One warp calls it, with the
 * item's own sizes; words are those of the message's items.
 */
static __device__ __forceinline__ uint64_t enc_look_back(uint64_t *words, uint32_t i, uint64_t own,
                                                         uint32_t lane)
{
    uint64_t before = 0;
    if (lane == 0)
        simt_st_release(&words[i], i == 0 ? ENC_UPTO | own : ENC_OWN | own);
    if (i == 0)
        return 0;
    for (uint32_t end = i;;) {
        /* Lane 0 looks at the nearest one.  Before the first one there is nothing. */
        bool there = lane < end;
        uint64_t word = there ? simt_ld_acquire(&words[end - 1 - lane]) : ENC_UPTO;
        while (__any_sync(ALL_LANES, (word & ENC_STATE) == 0)) {
            if ((word & ENC_STATE) == 0) {
                simt_backoff();
                word = simt_ld_acquire(&words[end - 1 - lane]);
            }
        }
        uint32_t upto = __ballot_sync(ALL_LANES, (word & ENC_STATE) == ENC_UPTO);
        uint32_t last = upto ? (uint32_t)__ffs((int)upto) - 1 : 31;
        uint64_t sum = lane <= last ? word & ~ENC_STATE : 0;
        for (int step = 16; step > 0; step /= 2)
            sum += __shfl_xor_sync(ALL_LANES, sum, step);
        before += sum;
        if (upto)
            break;
        end -= 32;
    }
    if (lane == 0)
        simt_st_release(&words[i], ENC_UPTO | (before + own));
    return before;
}

/* Copy 'nbytes' by a block of threads; any alignment, 16 bytes at a time; reads nothing else. */
static __device__ __forceinline__ void enc_copy(uint8_t *dst, const uint8_t *src, uint64_t nbytes,
                                                uint32_t thread)
{
    uint64_t head = (0 - (uintptr_t)dst) & 15;
    if (((uintptr_t)src + head) % 4 && head < 4)
        head += 16;
    head = head < nbytes ? head : nbytes;
    uint32_t shift = 8 * (uint32_t)(((uintptr_t)src + head) % 4);
    /* The last word would be read beyond the end. */
    uint64_t left = nbytes - head, nunits = left / 16 - (shift && left >= 16);
    const uint32_t *in = (const uint32_t *)(src + head - shift / 8);
    uint4 *out = (uint4 *)(dst + head);
    bool wide = ((uintptr_t)src + head) % 16 == 0;
    for (uint64_t u = thread; u < nunits; u += ENC_THREADS) {
        if (wide) {
            out[u] = ((const uint4 *)in)[u];
            continue;
        }
        uint32_t w[5];
        SIMT_UNROLL
        for (int k = 0; k < 5; k++)
            w[k] = k < 4 || shift ? in[4 * u + k] : 0;
        SIMT_UNROLL
        for (int k = 0; k < 4; k++)
            w[k] = (uint32_t)(((uint64_t)w[k + 1] << 32 | w[k]) >> shift);
        out[u] = make_uint4(w[0], w[1], w[2], w[3]);
    }
    for (uint64_t i = thread; i < head; i += ENC_THREADS)
        dst[i] = src[i];
    for (uint64_t i = head + 16 * nunits + thread; i < nbytes; i += ENC_THREADS)
        dst[i] = src[i];
}

/* Item 'i' of 'nitems' zeroes its part of bytes [from, end). */
static __device__ __forceinline__ void enc_zero(uint8_t *wire, uint64_t from, uint64_t end,
                                                uint32_t i, uint32_t nitems, uint32_t thread)
{
    if (from >= end)
        return;
    uint64_t start = (from + 15) & ~15ull;
    start = start < end ? start : end;
    uint64_t nunits = (end - start) / 16;
    for (uint64_t u = (uint64_t)i * ENC_THREADS + thread; u < nunits;
         u += (uint64_t)nitems * ENC_THREADS)
        *(uint4 *)(wire + start + 16 * u) = make_uint4(0, 0, 0, 0);
    if (i == 0 && thread < start - from)
        wire[from + thread] = 0;
    if (i == 0 && thread < (end - start) % 16)
        wire[start + 16 * nunits + thread] = 0;
}

#endif
