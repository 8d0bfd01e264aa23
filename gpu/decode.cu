/*
 * decode.cu - messages to elements, or on top of fp32 sums
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/decode_run.cuh"

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
    size_t n = nbytes / 16, at = 16 * n + team_thread();
    bool whole = is_aligned16(dst);
    KEEP_LOOP
    for (size_t i = team_thread(); i < n; i += TEAM_THREADS) {
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

static __device__ void store_coded(unsigned split, struct decode_shared *sh,
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

/* Superblock s of message i, which is stored raw. */
static __device__ void take_raw(const struct decode_launch *p, uint32_t i, uint32_t s,
                                enum sink sink)
{
    struct decode_slot slot = slot_at(&p->in, i);
    size_t first = (size_t)s * ZIPCCL_SUPERBLOCK, m = zipccl_superblock_n(slot.n, s);
    const uint8_t *src = slot.wire + ZIPCCL_MESSAGE_HEADER_BYTES + first * p->in.size;
    if (sink == TO_ELEMENTS)
        copy_elements(slot.elements + first * p->in.size, src, m * p->in.size, p->in.size);
    else
        add_raw(p->in.fields.split, src, (unsigned)m, (float *)slot.elements + first,
                sink == TO_NEW_SUMS);
}

/*
 * All types and sinks: what they have in common is most of the kernel.  One block an SM, of as many teams
 * as shared memory allows; each takes superblocks of its own.
 */
__global__ void __launch_bounds__(DECODE_TEAMS *TEAM_THREADS, 1)
    decode_kernel(struct decode_launch p, enum sink sink)
{
    SIMT_DYN_SHARED(struct decode_shared, teams);
    struct decode_shared *sh = teams + team_number();
    unsigned split = p.in.fields.split, size = sink == TO_ELEMENTS ? p.in.size : 4;
    uint32_t end = decode_first(&p, p.nmessages), step = gridDim.x * (blockDim.x / TEAM_THREADS);
    begin_shared(sh);
    for (uint32_t item = blockIdx.x + gridDim.x * team_number(); item < end; item += step) {
        uint32_t i = message_of(&p, item), s = item - decode_first(&p, i);
        uint32_t kind = p.space.states[i].kind;
        if (kind == DECODE_RAW)
            take_raw(&p, i, s, sink);
        if (kind != DECODE_CODED)
            continue;
        struct decode_view v;
        team_sync(&sh->meeting);
        /* Not kept in registers meanwhile. */
        if (team_thread() == 0)
            sh->elements = slot_at(&p.in, i).elements + (size_t)s * ZIPCCL_SUPERBLOCK * size;
        if (!ready_superblock(sh, &p, i, s, &v))
            continue;
        if (sink == TO_ELEMENTS)
            store_coded(split, sh, &v, sh->elements);
        else
            add_coded(split, sh, &v, (float *)sh->elements, sink == TO_NEW_SUMS);
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
    uint64_t most = 0;
    if (!read_args(args, zipccl_dtype_size(args->dtype), &p, &most))
        return cudaErrorInvalidValue;
    if (p.nmessages == 0)
        return cudaSuccess;
    cudaError_t error =
        zipccl_gpu_index(&p, most, args->d_workspace, args->workspace_nbytes, args->nsms, stream);
    if (error != cudaSuccess || most == 0)
        return error;
    unsigned nteams;
    error = teams_of(decode_kernel, sizeof(struct decode_shared), DECODE_TEAMS, &nteams);
    if (error != cudaSuccess)
        return error;
    dim3 grid((unsigned)(most < args->nsms ? most : args->nsms)), block(nteams * TEAM_THREADS);
    SIMT_LAUNCH(decode_kernel, grid, block, nteams * sizeof(struct decode_shared), stream, p, sink);
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

SIMT_KERNEL(decode_kernel);
