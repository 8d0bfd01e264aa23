/*
 * corrupt_back_end.c - a back end that damages what it moves, for tests of verify mode
 *
 * Everything is the real one's but that an element of the result of rank 1 is another one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/back_end.h"

/* After the call, in its stream: element 12345 becomes element 0, and differs since it is made to. */
static void damage(void *recv, struct zipccl_gpu_comm *comm, cudaStream_t stream)
{
    static const uint16_t other = 0x7b7b;

    if (zipccl_gpu_topology(comm)->nranks > 1)
        (void)cudaMemcpyAsync((uint16_t *)recv + 12345, &other, sizeof other,
                              cudaMemcpyHostToDevice, stream);
}

static zipccl_status bad_all_gather(const void *send, void *recv, size_t count,
                                    enum zipccl_dtype dtype, struct zipccl_gpu_comm *comm,
                                    cudaStream_t stream)
{
    ZIPCCL_TRY(zipccl_gpu_all_gather(send, recv, count, dtype, comm, stream));
    damage(recv, comm, stream);
    return ZIPCCL_OK;
}

static zipccl_status bad_all_reduce(const void *send, void *recv, size_t count,
                                    enum zipccl_dtype dtype, enum zipccl_redop redop,
                                    struct zipccl_gpu_comm *comm, cudaStream_t stream)
{
    ZIPCCL_TRY(zipccl_gpu_all_reduce(send, recv, count, dtype, redop, comm, stream));
    damage(recv, comm, stream);
    return ZIPCCL_OK;
}

static zipccl_status bad_group(const struct zipccl_gpu_p2p *ops, size_t nops,
                               struct zipccl_gpu_comm *comm, cudaStream_t stream)
{
    ZIPCCL_TRY(zipccl_gpu_group(ops, nops, comm, stream));
    for (size_t i = 0; i < nops; i++)
        if (!ops[i].send && ops[i].count > 12345)
            damage(ops[i].buf, comm, stream);
    return ZIPCCL_OK;
}

__attribute__((visibility("default"))) const struct zipccl_shim_back_end zipccl_shim_back_end = {
    .version = ZIPCCL_SHIM_BACK_END_VERSION,
    .options_init = zipccl_gpu_options_init,
    .create = zipccl_gpu_create,
    .destroy = zipccl_gpu_destroy,
    .abort = zipccl_gpu_abort,
    .disable = zipccl_gpu_disable,
    .all_gather = bad_all_gather,
    .reduce_scatter = zipccl_gpu_reduce_scatter,
    .all_reduce = bad_all_reduce,
    .broadcast = zipccl_gpu_broadcast,
    .alltoall = zipccl_gpu_alltoall,
    .group = bad_group,
    .async_error = zipccl_gpu_async_error,
    .error = zipccl_gpu_error,
    .get_stats = zipccl_gpu_get_stats,
    .reason_name = zipccl_gpu_reason_name,
    .topology = zipccl_gpu_topology,
    .last_plan = zipccl_gpu_last_plan,
};
