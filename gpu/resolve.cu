/*
 * resolve.cu - what received headers say, in one word for whoever decides on a resend
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/decode_wire.cuh"

#include "gpu/block.cuh"

/* One block: a launch has at most four messages a thread. */
__global__ void __launch_bounds__(TEAM_THREADS)
    resolve_kernel(struct decode_input in, uint32_t nmessages, struct zipccl_gpu_seen *out)
{
    SIMT_SHARED(struct team_meeting, meeting, 1);
    SIMT_SHARED(struct zipccl_gpu_seen, seen, 1);
    struct zipccl_gpu_seen mine = {0, ZIPCCL_OK, 0, 0, 0, 0};
    for (uint32_t i = threadIdx.x; i < nmessages; i += TEAM_THREADS) {
        struct decode_slot slot = slot_at(&in, i);
        struct zipccl_gpu_result result;
        header_read(&slot, in.dtype, in.size, in.fields.size != 0, &result);
        bool overflow = result.error == ZIPCCL_ERR_OVERFLOW;
        if (in.d_results)
            in.d_results[i] = result;
        mine.flags |= result.flags;
        if (result.error != ZIPCCL_OK && !overflow)
            mine.error = ZIPCCL_ERR_CORRUPT;
        mine.noverflows += overflow;
        mine.nraw += (result.flags & ZIPCCL_MESSAGE_RAW) != 0;
        mine.nbytes += result.nbytes;
        mine.most = max(mine.most, result.nbytes);
    }
    if (threadIdx.x == 0)
        seen[0] = mine;
    team_begin(meeting);
    if (threadIdx.x != 0) {
        atomicOr(&seen->flags, mine.flags);
        atomicOr(&seen->error, mine.error);
        atomicMax((unsigned long long *)&seen->most, (unsigned long long)mine.most);
    }
    uint64_t counts, nbytes;
    (void)team_scan(meeting, (uint64_t)mine.noverflows << 32 | mine.nraw, &counts);
    (void)team_scan(meeting, mine.nbytes, &nbytes);
    if (threadIdx.x == 0) {
        seen->noverflows = (uint32_t)(counts >> 32);
        seen->nraw = (uint32_t)counts;
        seen->nbytes = nbytes;
        *out = seen[0];
    }
}

cudaError_t zipccl_gpu_resolve(enum zipccl_dtype dtype, const struct zipccl_gpu_batch *batch,
                               struct zipccl_gpu_result *d_results, struct zipccl_gpu_seen *d_seen,
                               cudaStream_t stream)
{
    const struct zipccl_fields *fields = zipccl_fields_of(dtype);
    struct decode_input in;
    size_t size = zipccl_dtype_size(dtype);
    uint32_t nmessages = batch->nmessages;
    if (size == 0 || nmessages > ZIPCCL_GPU_MAX_MESSAGES || !d_seen)
        return cudaErrorInvalidValue;
    if (nmessages == 0)
        return cudaSuccess;
    memset(&in, 0, sizeof in);
    in.batch = *batch;
    in.own = -1;
    in.dtype = (uint32_t)dtype;
    in.size = (uint32_t)size;
    in.d_results = d_results;
    if (fields)
        in.fields = *fields;
    SIMT_LAUNCH(resolve_kernel, dim3(1), dim3(TEAM_THREADS), 0, stream, in, nmessages, d_seen);
    return cudaGetLastError();
}

SIMT_KERNEL(resolve_kernel);
