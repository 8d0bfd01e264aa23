/*
 * encode.cu - messages written on a GPU: the kernel and its launchers
 *
 * One persistent kernel in two rounds over the items (superblocks) of all messages, handed out by
 * tickets.  First each item is coded: its share and directory entry go to their places, found by a
 * look-back over the items before, its variable bytes to a slot, since where they lie follows from
 * all shares.  Then, once all items of a message are coded, its slots are copied to their places, or
 * its elements as they are, and what is left of the capacity is zeroed.  The last block to finish
 * writes headers and results, which may tell of other messages, and clears the workspace.
 * gpu/encode.md tells what it costs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
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
            msg.elements + (uint64_t)i * ZIPCCL_SUPERBLOCK * (FLOATS ? 4 : p->size);
        sh->item = item;
        sh->message = m;
        sh->index = i;
        sh->slot = p->slots + (uint64_t)item * p->slot_nbytes;
        sh->rest = p->rests + (uint64_t)blockIdx.x * p->rest_nbytes;
        sh->ngroups = sh->nbitmap = 0;
        sh->src = (struct enc_source){src, (uint32_t)zipccl_superblock_n(msg.n, i), FLOATS,
                                      (uintptr_t)src % 16 == 0};
        block->msg = msg;
    }
    __syncthreads();
    return sh->item < nitems;
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
    if (t->lane == 0)
        sh->base[t->warp] = (uint8_t)c.z.base;
    if (t->warp == 0) {
        uint64_t own = zipccl_align64(c.z.share) / 64 << ENC_SHARE_AT | c.z.variable;
        uint64_t before = enc_look_back(p->words + (sh->item - sh->index), sh->index, own, t->lane);
        if (t->lane == 0)
            sh->before = before;
    }
    __syncthreads();
    if (t->warp == 0) {
        bool constant = c.z.program == ZIPCCL_PROGRAM_CONSTANT;
        if (constant && t->lane < size)
            sh->base[t->lane] = (uint8_t)(enc_element<SPLIT, FLOATS>(&sh->src, 0) >> 8 * t->lane);
        __syncwarp();
        enc_entry<SPLIT>(t, &c,
                         msg->wire + ZIPCCL_MESSAGE_HEADER_BYTES + sh->index * ZIPCCL_ENTRY_BYTES);
    }
    uint64_t at = msg->fixed + enc_share_bytes(sh->before), end = at + zipccl_align64(c.z.share);
    uint8_t *share = end <= msg->limit ? msg->wire + at : NULL;
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
        if constexpr (FLOATS) {
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
            if (SPLIT != ENC_RAW && round == 0 && msg->coded)
                enc_code_item<SPLIT == ENC_RAW ? 0 : SPLIT, FLOATS>(&t, &p, msg);
            else if (round == 1 && msg->valid)
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

/* Type by number: how it is taken apart, ENC_RAW if it is not. */
static int enc_split(enum zipccl_dtype dtype)
{
    switch (dtype) {
    case ZIPCCL_BFLOAT16: return ZIPCCL_SPLIT_BF16;
    case ZIPCCL_FLOAT16: return ZIPCCL_SPLIT_FP16;
    case ZIPCCL_FLOAT32: return ZIPCCL_SPLIT_FP32;
    case ZIPCCL_FLOAT8_E4M3: return ZIPCCL_SPLIT_E4M3;
    case ZIPCCL_FLOAT8_E5M2: return ZIPCCL_SPLIT_E5M2;
    default: return ENC_RAW;
    }
}

static uint32_t enc_size(enum zipccl_dtype dtype)
{
    switch (dtype) {
    case ZIPCCL_INT8:
    case ZIPCCL_UINT8:
    case ZIPCCL_FLOAT8_E4M3:
    case ZIPCCL_FLOAT8_E5M2: return 1;
    case ZIPCCL_FLOAT16:
    case ZIPCCL_BFLOAT16: return 2;
    case ZIPCCL_INT32:
    case ZIPCCL_UINT32:
    case ZIPCCL_FLOAT32: return 4;
    case ZIPCCL_INT64:
    case ZIPCCL_UINT64:
    case ZIPCCL_FLOAT64: return 8;
    default: return 0;
    }
}

static size_t enc_align(size_t x)
{
    return (x + 255) & ~(size_t)255;
}

/* Where the parts of a workspace lie, and how long it is. */
struct enc_workspace {
    size_t words, slots, rests, nbytes, slot_nbytes, rest_nbytes;
};

static uint64_t enc_max_items(enum zipccl_dtype dtype, uint64_t total_n, uint32_t nmessages)
{
    uint64_t size = enc_size(dtype);
    uint64_t chunk = enc_split(dtype) == ENC_RAW ? ENC_RAW_BYTES / size : ZIPCCL_SUPERBLOCK;
    return total_n / chunk + nmessages;
}

static bool enc_workspace_of(enum zipccl_dtype dtype, uint64_t total_n, uint32_t nmessages,
                             uint32_t nsms, struct enc_workspace *out)
{
    int split = enc_split(dtype);
    if (enc_size(dtype) == 0 || total_n > UINT64_MAX / 64)
        return false;
    uint64_t items = enc_max_items(dtype, total_n, nmessages);
    uint64_t blocks = (uint64_t)nsms * ENC_BLOCKS_PER_SM;
    if (items >= 0x7fffffffu)
        return false;
    out->slot_nbytes = out->rest_nbytes = 0;
    if (split != ENC_RAW) {
        struct zipccl_fields fields = enc_fields[split];
        out->rest_nbytes = ZIPCCL_SUPERBLOCK * fields.size;
        /* A bitmap, and what tiers leave beside the shortest share there is before it is raw. */
        out->slot_nbytes = zipccl_align64(
            zipccl_bitmap_bytes(ZIPCCL_SUPERBLOCK, ZIPCCL_SUPERBLOCK / ZIPCCL_GROUP) +
            out->rest_nbytes - zipccl_share_of(&fields, ZIPCCL_SUPERBLOCK, 0, 1).end + 16);
    }
    out->words = enc_align(sizeof(struct enc_control));
    out->slots = enc_align(out->words + (split == ENC_RAW ? 0 : 8 * items));
    out->rests = enc_align(out->slots + items * out->slot_nbytes);
    out->nbytes = enc_align(out->rests + (blocks < items ? blocks : items) * out->rest_nbytes);
    return true;
}

extern "C" size_t zipccl_gpu_encode_workspace(enum zipccl_dtype dtype, uint64_t total_n,
                                              uint32_t nmessages, uint32_t nsms)
{
    struct enc_workspace at;
    return enc_workspace_of(dtype, total_n, nmessages, nsms, &at) ? at.nbytes : 0;
}

extern "C" cudaError_t zipccl_gpu_workspace_clear(void *d_workspace, size_t nbytes,
                                                  cudaStream_t stream)
{
    return cudaMemsetAsync(d_workspace, 0, nbytes, stream);
}

/* Arguments that can be, as far as the host sees; fills 'p' and the number of blocks. */
static bool enc_prepare(const struct zipccl_gpu_encode_args *args, struct enc_params *p,
                        uint32_t *nblocks)
{
    const struct zipccl_gpu_batch *batch = &args->batch;
    struct enc_workspace at;
    uint8_t *workspace = (uint8_t *)args->d_workspace;
    uint64_t total_n = batch->d_slots ? batch->total_n : batch->first.n;
    if (!batch->d_slots && batch->nmessages > 0) {
        if (total_n > UINT64_MAX / 64 / batch->nmessages)
            return false;
        total_n *= batch->nmessages;
        if ((uintptr_t)batch->first.wire % ZIPCCL_GPU_WIRE_ALIGN || !batch->first.wire ||
            (batch->nmessages > 1 && batch->wire_stride % ZIPCCL_GPU_WIRE_ALIGN) ||
            batch->first.capacity < ZIPCCL_MESSAGE_HEADER_BYTES ||
            (batch->first.n && !batch->first.elements))
            return false;
    }
    if (args->nsms == 0 || batch->nmessages > ZIPCCL_GPU_MAX_MESSAGES || !workspace ||
        (uintptr_t)workspace % 256 || !args->d_results ||
        !enc_workspace_of(args->dtype, total_n, batch->nmessages, args->nsms, &at) ||
        args->workspace_nbytes < at.nbytes)
        return false;
    uint64_t items = enc_max_items(args->dtype, total_n, batch->nmessages);
    uint64_t blocks = (uint64_t)args->nsms * ENC_BLOCKS_PER_SM;
    *nblocks = (uint32_t)(blocks < items ? blocks : items);
    p->batch = *batch;
    p->dtype = args->dtype;
    p->size = enc_size(args->dtype);
    p->max_items = (uint32_t)items;
    p->flag_any = args->flag_any;
    p->control = (struct enc_control *)workspace;
    p->words = (uint64_t *)(workspace + at.words);
    p->slots = workspace + at.slots;
    p->rests = workspace + at.rests;
    p->slot_nbytes = (uint32_t)at.slot_nbytes;
    p->rest_nbytes = (uint32_t)at.rest_nbytes;
    p->results = args->d_results;
    return true;
}

template <int SPLIT, bool FLOATS>
static cudaError_t enc_launch(const struct enc_params *params, uint32_t nblocks,
                              cudaStream_t stream)
{
    struct enc_params p = *params;
    SIMT_LAUNCH((zipccl_encode_kernel<SPLIT, FLOATS>), dim3(nblocks), dim3(ENC_THREADS), 0, stream,
                p);
    return cudaGetLastError();
}

/* ZIPCCL_EFFORT_FAST; core/codec.h is C. */
#define ENC_EFFORT_FAST  0
#define ENC_EFFORT_RATIO 1

static cudaError_t enc_check(const struct zipccl_gpu_encode_args *args, struct enc_params *p,
                             uint32_t *nblocks)
{
    if ((args->effort != ENC_EFFORT_FAST && args->effort != ENC_EFFORT_RATIO) ||
        enc_size(args->dtype) == 0)
        return cudaErrorInvalidValue;
    if (args->effort == ENC_EFFORT_RATIO && enc_split(args->dtype) != ENC_RAW)
        return cudaErrorNotSupported;
    return enc_prepare(args, p, nblocks) ? cudaSuccess : cudaErrorInvalidValue;
}

extern "C" cudaError_t zipccl_gpu_encode(const struct zipccl_gpu_encode_args *args,
                                         cudaStream_t stream)
{
    struct enc_params p;
    uint32_t nblocks;
    cudaError_t error = enc_check(args, &p, &nblocks);
    if (error != cudaSuccess || args->batch.nmessages == 0)
        return error;
    switch (enc_split(args->dtype)) {
    case ZIPCCL_SPLIT_BF16: return enc_launch<ZIPCCL_SPLIT_BF16, false>(&p, nblocks, stream);
    case ZIPCCL_SPLIT_FP16: return enc_launch<ZIPCCL_SPLIT_FP16, false>(&p, nblocks, stream);
    case ZIPCCL_SPLIT_FP32: return enc_launch<ZIPCCL_SPLIT_FP32, false>(&p, nblocks, stream);
    case ZIPCCL_SPLIT_E4M3: return enc_launch<ZIPCCL_SPLIT_E4M3, false>(&p, nblocks, stream);
    case ZIPCCL_SPLIT_E5M2: return enc_launch<ZIPCCL_SPLIT_E5M2, false>(&p, nblocks, stream);
    default: return enc_launch<ENC_RAW, false>(&p, nblocks, stream);
    }
}

extern "C" cudaError_t zipccl_gpu_encode_f32(const struct zipccl_gpu_encode_args *args,
                                             cudaStream_t stream)
{
    struct enc_params p;
    uint32_t nblocks;
    if (args->dtype == ZIPCCL_FLOAT32)
        return zipccl_gpu_encode(args, stream);
    if (args->dtype != ZIPCCL_BFLOAT16 && args->dtype != ZIPCCL_FLOAT16)
        return cudaErrorInvalidValue;
    cudaError_t error = enc_check(args, &p, &nblocks);
    if (error != cudaSuccess || args->batch.nmessages == 0)
        return error;
    return args->dtype == ZIPCCL_BFLOAT16
               ? enc_launch<ZIPCCL_SPLIT_BF16, true>(&p, nblocks, stream)
               : enc_launch<ZIPCCL_SPLIT_FP16, true>(&p, nblocks, stream);
}

SIMT_KERNEL(zipccl_encode_kernel<ZIPCCL_SPLIT_BF16, false>);
SIMT_KERNEL(zipccl_encode_kernel<ZIPCCL_SPLIT_BF16, true>);
SIMT_KERNEL(zipccl_encode_kernel<ZIPCCL_SPLIT_FP16, false>);
SIMT_KERNEL(zipccl_encode_kernel<ZIPCCL_SPLIT_FP16, true>);
SIMT_KERNEL(zipccl_encode_kernel<ZIPCCL_SPLIT_FP32, false>);
SIMT_KERNEL(zipccl_encode_kernel<ZIPCCL_SPLIT_E4M3, false>);
SIMT_KERNEL(zipccl_encode_kernel<ZIPCCL_SPLIT_E5M2, false>);
SIMT_KERNEL(zipccl_encode_kernel<ENC_RAW, false>);
