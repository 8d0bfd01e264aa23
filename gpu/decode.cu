/*
 * decode.cu - messages to elements, or on top of fp32 sums
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/decode_run.cuh"

/* Blocks an SM holds: what shared memory of 44 KiB a block and 64 registers a thread allow everywhere. */
#define BLOCKS_PER_SM 4u

/* The message of superblock 'item' of a launch. */
static __device__ uint32_t message_of(const struct decode_launch *p, uint32_t item)
{
    uint32_t low = 0, high = p->nmessages;
    if (!p->in.batch.d_slots)
        return item / p->superblocks;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (p->space.first[middle] <= item)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Copy 'nbytes' from where 16 bytes are aligned to elements of 'size' bytes. */
static __device__ void copy_elements(uint8_t *dst, const uint8_t *src, size_t nbytes, unsigned size)
{
    size_t n = nbytes / 16, at = 16 * n + threadIdx.x;
    bool whole = is_aligned16(dst);
    for (size_t i = threadIdx.x; i < n; i += DECODE_THREADS) {
        uint4 x = ((const uint4 *)src)[i];
        if (whole) {
            ((uint4 *)dst)[i] = x;
        } else {
            uint32_t words[4] = {x.x, x.y, x.z, x.w};
            if (size == 1)
                store_unit<1>(dst + 16 * i, words, 16);
            else if (size == 2)
                store_unit<2>(dst + 16 * i, words, 8);
            else
                store_unit<4>(dst + 16 * i, words, 4);
        }
    }
    if (at < nbytes)
        dst[at] = src[at];
}

/* Where elements go. */
enum sink { TO_ELEMENTS, TO_SUMS, TO_NEW_SUMS };

static __device__ void store_coded(unsigned split, const struct decode_shared *sh,
                                   const struct decode_view *v, uint8_t *dst)
{
    switch (split) {
    case ZIPCCL_SPLIT_BF16: store_superblock<ZIPCCL_SPLIT_BF16>(sh, v, dst); break;
    case ZIPCCL_SPLIT_FP16: store_superblock<ZIPCCL_SPLIT_FP16>(sh, v, dst); break;
    case ZIPCCL_SPLIT_FP32: store_superblock<ZIPCCL_SPLIT_FP32>(sh, v, dst); break;
    case ZIPCCL_SPLIT_E4M3: store_superblock<ZIPCCL_SPLIT_E4M3>(sh, v, dst); break;
    default: store_superblock<ZIPCCL_SPLIT_E5M2>(sh, v, dst); break;
    }
}

/* All types and sinks: what they have in common is most of the kernel. */
__global__ void __launch_bounds__(DECODE_THREADS)
    decode_kernel(struct decode_launch p, enum sink sink)
{
    SIMT_SHARED(struct decode_shared, sh, 1);
    unsigned split = p.in.fields.split;
    begin_shared(sh);
    for (uint32_t item = blockIdx.x, end = decode_first(&p, p.nmessages); item < end;
         item += gridDim.x) {
        uint32_t i = message_of(&p, item), s = item - decode_first(&p, i);
        struct decode_slot slot = slot_at(&p.in, i);
        struct decode_state state = p.space.states[i];
        size_t first = (size_t)s * ZIPCCL_SUPERBLOCK, m = zipccl_superblock_n(slot.n, s);
        float *acc = (float *)slot.elements + first;
        uint8_t *dst = slot.elements + first * p.in.size;
        if (state.kind == DECODE_RAW) {
            const uint8_t *src = slot.wire + ZIPCCL_MESSAGE_HEADER_BYTES + first * p.in.size;
            if (sink == TO_ELEMENTS)
                copy_elements(dst, src, m * p.in.size, p.in.size);
            else
                add_raw(split, src, (unsigned)m, acc, sink == TO_NEW_SUMS);
        }
        if (state.kind != DECODE_CODED)
            continue;
        struct decode_view v;
        __syncthreads();
        if (!ready_superblock(sh, &p, &state, i, &slot, s, &v))
            continue;
        if (sink == TO_ELEMENTS)
            store_coded(split, sh, &v, dst);
        else
            add_coded(split, sh, &v, acc, sink == TO_NEW_SUMS);
    }
}

/* Superblocks of a batch at most. */
static uint64_t most_superblocks(uint64_t total_n, uint32_t nmessages)
{
    return total_n / ZIPCCL_SUPERBLOCK + nmessages;
}

static bool adds(enum zipccl_dtype dtype)
{
    return dtype == ZIPCCL_BFLOAT16 || dtype == ZIPCCL_FLOAT16 || dtype == ZIPCCL_FLOAT32;
}

/* What the device is told, but for the workspace; false if an argument breaks a rule. */
static bool read_args(const struct zipccl_gpu_decode_args *args, size_t size,
                      struct decode_launch *p, uint64_t *most)
{
    const struct zipccl_gpu_batch *batch = &args->batch;
    const struct zipccl_fields *fields = zipccl_fields_of(args->dtype);
    uint64_t n = batch->first.n;
    if (batch->nmessages == 0) {
        p->nmessages = 0;
        return true;
    }
    if (size == 0 || args->nsms == 0 || batch->nmessages > ZIPCCL_GPU_MAX_MESSAGES ||
        !args->d_results)
        return false;
    memset(p, 0, sizeof *p);
    p->in.batch = *batch;
    p->in.own = -1;
    p->in.dtype = (uint32_t)args->dtype;
    p->in.size = (uint32_t)size;
    p->in.d_results = args->d_results;
    if (fields)
        p->in.fields = *fields;
    p->nmessages = batch->nmessages;
    if (batch->d_slots) {
        *most = most_superblocks(batch->total_n, batch->nmessages);
        return batch->total_n <= SIZE_MAX / 8 / size;
    }
    if (n > SIZE_MAX / 8 / size || n / ZIPCCL_SUPERBLOCK > INT32_MAX / ZIPCCL_GPU_MAX_MESSAGES ||
        !batch->first.wire || (uintptr_t)batch->first.wire % ZIPCCL_GPU_WIRE_ALIGN != 0 ||
        batch->wire_stride % ZIPCCL_GPU_WIRE_ALIGN != 0)
        return false;
    p->superblocks = decode_superblocks(n);
    *most = (uint64_t)p->superblocks * batch->nmessages;
    return true;
}

static cudaError_t decode(const struct zipccl_gpu_decode_args *args, enum sink sink,
                          cudaStream_t stream)
{
    struct decode_launch p;
    uint64_t most;
    if (!read_args(args, zipccl_dtype_size(args->dtype), &p, &most))
        return cudaErrorInvalidValue;
    if (p.nmessages == 0)
        return cudaSuccess;
    cudaError_t error =
        zipccl_gpu_index(&p, most, args->d_workspace, args->workspace_nbytes, args->nsms, stream);
    if (error != cudaSuccess || most == 0)
        return error;
    uint64_t grid = (uint64_t)BLOCKS_PER_SM * args->nsms;
    grid = most < grid ? most : grid;
    SIMT_LAUNCH(decode_kernel, dim3((unsigned)grid), dim3(DECODE_THREADS), 0, stream, p, sink);
    return cudaGetLastError();
}

cudaError_t zipccl_gpu_decode(const struct zipccl_gpu_decode_args *args, cudaStream_t stream)
{
    return decode(args, TO_ELEMENTS, stream);
}

cudaError_t zipccl_gpu_decode_add(const struct zipccl_gpu_decode_args *args, bool first,
                                  cudaStream_t stream)
{
    if (!adds(args->dtype))
        return cudaErrorInvalidValue;
    return decode(args, first ? TO_NEW_SUMS : TO_SUMS, stream);
}

size_t zipccl_gpu_decode_workspace(enum zipccl_dtype dtype, uint64_t total_n, uint32_t nmessages,
                                   uint32_t nsms)
{
    (void)nsms;
    if (zipccl_dtype_size(dtype) == 0)
        return 0;
    return zipccl_gpu_index_workspace(most_superblocks(total_n, nmessages), nmessages);
}
