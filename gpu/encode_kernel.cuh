/*
 * encode_kernel.cuh - messages written on a GPU: the kernel
 *
 * One persistent kernel in two rounds over the items (superblocks) of all messages, handed out by
 * tickets.  First each item is coded: its share and directory entry go to their places, found by a
 * look-back over the items before, its variable bytes to a slot, since where they lie follows from
 * all shares.  Then, once all items of a message are coded, its slots are copied to their places, or
 * its elements as they are, and what is left of the capacity is zeroed.  The last block to finish
 * writes headers and results, which may tell of other messages, and clears the workspace.
 * gpu/encode.md tells what it costs.
 *
 * Compiling it takes long, so each type has a file of its own (encode_bf16.cu and so on): they are
 * compiled side by side.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_ENCODE_KERNEL_CUH
#define ZIPCCL_GPU_ENCODE_KERNEL_CUH

#include "gpu/encode_message.cuh"

/* Blocks that an SM holds: what the registers of 512 threads allow. */
#define ENC_BLOCKS_PER_SM 2

/* What all threads of a block share: first [nmessages + 1] is each message's first item. */
struct enc_block {
    struct enc_shared sh;
    struct enc_message msg; /* the item's */
    uint32_t first[ZIPCCL_GPU_MAX_MESSAGES + 1];
};

/* Fill first; returns the items of all messages, more than max_items if they are too many. */
template <int SPLIT>
static __device__ uint32_t enc_count_items(struct enc_thread *t, const struct enc_params *p,
                                           uint32_t *first)
{
    uint32_t thread = 32 * t->warp + t->lane, before = 0;
    bool many = false;
    for (uint32_t i = 0; i < p->batch.nmessages; i += ENC_THREADS) {
        uint32_t nitems = 0, total;
        if (i + thread < p->batch.nmessages)
            nitems = enc_message_at<SPLIT>(p, i + thread).nitems;
        /* What is too much must not wrap around. */
        many |= nitems > p->max_items;
        nitems = nitems > p->max_items ? p->max_items : nitems;
        uint32_t place = enc_scan(t, i / ENC_THREADS % 2, nitems, &total);
        many |= before + total < before || total < place || before + place > p->max_items;
        if (i + thread < p->batch.nmessages)
            first[i + thread] = before + place;
        before += total;
    }
    if (thread == 0)
        first[p->batch.nmessages] = before;
    return __syncthreads_or(many) ? 0xffffffffu : before;
}

/* Take the next item of round 'round'.  Every thread calls it; false, for all, if there is none. */
template <int SPLIT, bool FLOATS>
static __device__ __forceinline__ bool enc_next(struct enc_thread *t, const struct enc_params *p,
                                                struct enc_block *block, uint32_t nitems, int round)
{
    struct enc_shared *sh = t->sh;
    const uint32_t *first = block->first;
    __syncthreads();
    if (t->warp == 0 && t->lane == 0) {
        uint32_t item = atomicAdd(&p->control->ticket[round], 1u), m = sh->message;
        /* Tickets only grow. */
        while (m + 1 < p->batch.nmessages && item >= first[m + 1])
            m++;
        struct enc_message msg = enc_message_at<SPLIT>(p, m);
        uint32_t i = item - first[m];
        const uint8_t *src =
            msg.elements + (uint64_t)i * ZIPCCL_SUPERBLOCK * (FLOATS && p->floats ? 4 : p->size);
        sh->item = item;
        sh->message = m;
        sh->index = i;
        sh->slot = p->slots + (uint64_t)item * p->slot_nbytes;
        sh->rest = p->rests + (uint64_t)blockIdx.x * p->rest_nbytes;
        sh->ngroups = sh->nbitmap = 0;
        sh->src = (struct enc_source){src, (uint32_t)zipccl_superblock_n(msg.n, i),
                                      FLOATS && p->floats, (uintptr_t)src % 16 == 0};
        if (SPLIT == ENC_ANY)
            sh->fields = p->fields;
        block->msg = msg;
    }
    __syncthreads();
    return sh->item < nitems;
}

/*
 * Find where the share of the block's item lies, from the sizes of those before it; to sh->before.
 * Every thread calls it, ends with a barrier.
 */
static __device__ __forceinline__ void
enc_find_place(struct enc_thread *t, const struct enc_params *p, const struct enc_sizes *z)
{
    struct enc_shared *sh = t->sh;
    if (t->lane == 0)
        sh->base[t->warp] = (uint8_t)z->base;
    if (t->warp == 0) {
        uint64_t own = zipccl_align64(z->share) / 64 << ENC_SHARE_AT | z->variable;
        uint64_t before = enc_look_back(p->words + (sh->item - sh->index), sh->index, own, t->lane);
        if (t->lane == 0)
            sh->before = before;
    }
    __syncthreads();
}

/* Where that is; NULL if it does not fit. */
static __device__ __forceinline__ uint8_t *
enc_share_at(const struct enc_thread *t, const struct enc_message *msg, const struct enc_sizes *z)
{
    uint64_t at = msg->fixed + enc_share_bytes(t->sh->before);
    return at + zipccl_align64(z->share) <= msg->limit ? msg->wire + at : NULL;
}

/* First round: code the block's item and put share and entry where they belong. */
template <int SPLIT, bool FLOATS>
static __device__ __forceinline__ void
enc_code_item(struct enc_thread *t, const struct enc_params *p, const struct enc_message *msg)
{
    constexpr uint32_t size = enc_fields[SPLIT].size;
    struct enc_shared *sh = t->sh;
    struct enc_coded<SPLIT> c;
    enc_code<SPLIT, FLOATS>(t, &c);
    enc_find_place(t, p, &c.z);
    if (t->warp == 0) {
        bool constant = c.z.program == ZIPCCL_PROGRAM_CONSTANT;
        if (constant && t->lane < size)
            sh->base[t->lane] = (uint8_t)(enc_element<SPLIT, FLOATS>(&sh->src, 0) >> 8 * t->lane);
        __syncwarp();
        enc_entry(t, &c.z,
                  msg->wire + ZIPCCL_MESSAGE_HEADER_BYTES + sh->index * ZIPCCL_ENTRY_BYTES);
    }
    uint8_t *share = enc_share_at(t, msg, &c.z);
    if (c.z.program == ZIPCCL_PROGRAM_RAW)
        /* Without a bitmap the second round finds the elements where they are. */
        enc_place_raw<SPLIT, FLOATS>(t, &c, share, FLOATS || sh->ngroups);
    else if (share && c.z.program != ZIPCCL_PROGRAM_CONSTANT)
        enc_place_tiers<SPLIT, FLOATS>(t, &c, share);
    __syncthreads();
    if (t->warp == 0 && t->lane == 0)
        simt_add_acq_rel(&p->control->ndone[sh->message], 1u);
}

/* The floats of an item, rounded, to their place 'out' in the body of a RAW message. */
template <int SPLIT>
static __device__ __forceinline__ void enc_store_rounded(struct enc_thread *t, uint8_t *out)
{
    const struct enc_source *src = &t->sh->src;
    ENC_ROLLED
    for (uint32_t h = 0; h < ENC_QUARTERS; h++) {
        uint32_t first = enc_first(t, h), words[ENC_WORDS(SPLIT)];
        enc_load<SPLIT, true>(src, first, words);
        SIMT_UNROLL
        for (uint32_t k = 0; k < ENC_WORDS(SPLIT); k++)
            if (first + 2 * k + 2 <= src->m)
                *(uint32_t *)(out + 2 * first + 4 * k) = words[k];
            else if (first + 2 * k < src->m)
                *(uint16_t *)(out + 2 * first + 4 * k) = (uint16_t)words[k];
    }
}

/* Bytes to copy. */
struct enc_move {
    uint8_t *to;
    const uint8_t *from;
    uint64_t nbytes;
};

/* The variable bytes of the block's item, to their place in the coded message. */
template <bool FLOATS>
static __device__ __forceinline__ struct enc_move enc_move_variable(const struct enc_thread *t,
                                                                    const struct enc_params *p,
                                                                    const struct enc_message *msg)
{
    uint32_t i = t->sh->index;
    const uint64_t *words = p->words + (t->sh->item - i);
    uint64_t before = enc_variable_bytes(i ? words[i - 1] : 0);
    struct enc_move move = {msg->wire + msg->fixed + enc_share_bytes(words[msg->nitems - 1]) +
                                before,
                            t->sh->slot, enc_variable_bytes(words[i]) - before};
    /* Those of a raw superblock without a bitmap are still where they were. */
    if (!FLOATS &&
        msg->wire[ZIPCCL_MESSAGE_HEADER_BYTES + i * ZIPCCL_ENTRY_BYTES] == ZIPCCL_PROGRAM_RAW)
        move.from = t->sh->src.p + (uint64_t)t->sh->src.m * p->size - move.nbytes;
    return move;
}

/* The elements of the block's item, to their place in a RAW message. */
template <int SPLIT>
static __device__ __forceinline__ struct enc_move
enc_move_raw(const struct enc_thread *t, const struct enc_params *p, const struct enc_message *msg)
{
    uint64_t chunk = SPLIT == ENC_RAW ? ENC_RAW_BYTES : ZIPCCL_SUPERBLOCK * p->size;
    uint64_t from = t->sh->index * chunk, end = msg->bound - ZIPCCL_MESSAGE_HEADER_BYTES;
    end = end - from < chunk ? end - from : chunk;
    return (struct enc_move){msg->wire + ZIPCCL_MESSAGE_HEADER_BYTES + from, msg->elements + from,
                             end};
}

/* Second round: the block's item, of a message all of whose items are coded. */
template <int SPLIT, bool FLOATS>
static __device__ __forceinline__ void
enc_finish_item(struct enc_thread *t, const struct enc_params *p, const struct enc_message *msg)
{
    uint32_t thread = 32 * t->warp + t->lane, flags, i = t->sh->index;
    if (msg->coded && thread == 0)
        while (simt_ld_acquire(&p->control->ndone[t->sh->message]) < msg->nitems)
            simt_backoff();
    __syncthreads();
    uint64_t word = msg->coded ? p->words[t->sh->item - i + msg->nitems - 1] : 0;
    uint64_t used = enc_outcome(msg, word, &flags);
    struct enc_move move = {NULL, NULL, 0};
    if (flags == 0) {
        uint64_t end = ZIPCCL_MESSAGE_HEADER_BYTES + (uint64_t)msg->nitems * ZIPCCL_ENTRY_BYTES;
        move = enc_move_variable<FLOATS>(t, p, msg);
        if (i == 0 && thread < msg->fixed - end)
            msg->wire[end + thread] = 0;
    } else if (flags & ZIPCCL_MESSAGE_RAW) {
        move = enc_move_raw<SPLIT>(t, p, msg);
        if constexpr (FLOATS)
            if (p->floats) {
                enc_store_rounded<SPLIT>(t, move.to);
                move.nbytes = 0;
            }
    }
    enc_copy(move.to, move.from, move.nbytes, thread);
    enc_zero(msg->wire, used, msg->capacity, i, msg->nitems, thread);
}

/* Headers and results of all messages, once everything else is written; clears the workspace. */
template <int SPLIT>
static __device__ void enc_end(struct enc_thread *t, const struct enc_params *p,
                               const uint32_t *first, uint32_t nitems)
{
    uint32_t thread = 32 * t->warp + t->lane, noverflows = 0;
    bool many = nitems > p->max_items;
    for (int write = 0; write < 2; write++) {
        for (uint32_t i = thread; i < p->batch.nmessages; i += ENC_THREADS) {
            struct enc_message msg = enc_message_at<SPLIT>(p, i);
            struct zipccl_gpu_result result = {0, 0, ZIPCCL_ERR_ARG};
            if (!many && msg.valid) {
                uint64_t word = msg.coded ? p->words[first[i] + msg.nitems - 1] : 0;
                result.nbytes = enc_outcome(&msg, word, &result.flags);
                result.error = result.flags & ZIPCCL_MESSAGE_OVERFLOW ? ZIPCCL_ERR_OVERFLOW : 0;
            }
            uint32_t overflows = result.error == ZIPCCL_ERR_OVERFLOW;
            if (!write) {
                noverflows += overflows;
                continue;
            }
            if (result.error != ZIPCCL_ERR_ARG) {
                uint8_t header[ZIPCCL_MESSAGE_HEADER_BYTES];
                if (p->flag_any && noverflows > overflows)
                    result.flags |= ZIPCCL_MESSAGE_ANY_OVERFLOW;
                zipccl_header_write(header, p->dtype, result.flags, msg.n,
                                    result.nbytes - ZIPCCL_MESSAGE_HEADER_BYTES);
                SIMT_UNROLL
                for (uint32_t k = 0; k < ZIPCCL_MESSAGE_HEADER_BYTES; k++)
                    msg.wire[k] = header[k];
            }
            p->results[i] = result;
        }
        enc_scan(t, (uint32_t)write, noverflows, &noverflows);
    }
    for (uint32_t i = thread; SPLIT != ENC_RAW && !many && i < nitems; i += ENC_THREADS)
        p->words[i] = 0;
    for (uint32_t i = thread; i < p->batch.nmessages; i += ENC_THREADS)
        p->control->ndone[i] = 0;
    if (thread < 3)
        (&p->control->ticket[0])[thread] = 0;
}

template <int SPLIT, bool FLOATS>
__global__ void __launch_bounds__(ENC_THREADS, ENC_BLOCKS_PER_SM)
    zipccl_encode_kernel(const struct enc_params p)
{
    SIMT_SHARED(struct enc_block, block, 1);
    struct enc_thread t = {&block->sh, threadIdx.x % 32, threadIdx.x / 32};
    const uint32_t *first = block->first;
    uint32_t nitems = enc_count_items<SPLIT>(&t, &p, block->first);
    bool few = nitems <= p.max_items;
    for (int round = SPLIT == ENC_RAW; round < 2 && few; round++) {
        if (threadIdx.x == 0)
            t.sh->message = 0;
        while (enc_next<SPLIT, FLOATS>(&t, &p, block, nitems, round)) {
            const struct enc_message *msg = &block->msg;
            if constexpr (SPLIT != ENC_RAW)
                if (round == 0 && msg->coded)
                    enc_code_item<SPLIT, FLOATS>(&t, &p, msg);
            if (round == 1 && msg->valid)
                enc_finish_item<SPLIT, FLOATS>(&t, &p, msg);
        }
    }
    __syncthreads();
    if (threadIdx.x == 0)
        t.sh->found = simt_add_acq_rel(&p.control->nfinished, 1u) == gridDim.x - 1;
    __syncthreads();
    if (t.sh->found)
        enc_end<SPLIT>(&t, &p, first, nitems);
}

template <int SPLIT, bool FLOATS>
cudaError_t enc_launch(const struct enc_params *params, uint32_t nblocks, cudaStream_t stream)
{
    struct enc_params p = *params;
    SIMT_LAUNCH((zipccl_encode_kernel<SPLIT, FLOATS>), dim3(nblocks), dim3(ENC_THREADS), 0, stream,
                p);
    return cudaGetLastError();
}

#define ENC_LAUNCH(SPLIT, FLOATS)                                                                  \
    cudaError_t enc_launch<SPLIT, FLOATS>(const struct enc_params *, uint32_t, cudaStream_t)
/* The kernel for one type is compiled in this file. */
#define ENC_HERE(SPLIT, FLOATS)                                                                    \
    template ENC_LAUNCH(SPLIT, FLOATS);                                                            \
    SIMT_KERNEL(zipccl_encode_kernel<SPLIT, FLOATS>)
/* In another one. */
#define ENC_ELSEWHERE(SPLIT, FLOATS) extern template ENC_LAUNCH(SPLIT, FLOATS)

#endif
