/*
 * faulty_back_end.c - a back end that fails on one rank or hangs, for tests of what the others see
 *
 * FAULTY_CREATE=1   creation fails here, after the ranks have exchanged their settings
 * APP_RELEASE=PATH  all_gather stays inside until the file is there
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "gpu/preload/back_end.h"

#include <stdlib.h>
#include <unistd.h>

static zipccl_status faulty_create(ncclComm_t nccl, const struct zipccl_gpu_options *options,
                                   struct zipccl_gpu_comm **out, struct zipccl_error *error)
{
    ZIPCCL_TRY(zipccl_gpu_create(nccl, options, out, error));
    if (getenv("FAULTY_CREATE") == NULL)
        return ZIPCCL_OK;
    zipccl_gpu_destroy(*out);
    *out = NULL;
    return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "no memory, as the test wants it");
}

static zipccl_status faulty_all_gather(const void *send, void *recv, size_t count,
                                       enum zipccl_dtype dtype, struct zipccl_gpu_comm *comm,
                                       cudaStream_t stream)
{
    const char *path = getenv("APP_RELEASE");

    for (int tries = 0; path != NULL && tries < 3000 && access(path, F_OK) != 0; tries++)
        (void)usleep(10000);
    return path != NULL ? ZIPCCL_ERR_ABORTED
                        : zipccl_gpu_all_gather(send, recv, count, dtype, comm, stream);
}

__attribute__((visibility("default"))) const struct zipccl_shim_back_end zipccl_shim_back_end = {
    .version = ZIPCCL_SHIM_BACK_END_VERSION,
    .options_init = zipccl_gpu_options_init,
    .create = faulty_create,
    .destroy = zipccl_gpu_destroy,
    .abort = zipccl_gpu_abort,
    .disable = zipccl_gpu_disable,
    .all_gather = faulty_all_gather,
    .reduce_scatter = zipccl_gpu_reduce_scatter,
    .all_reduce = zipccl_gpu_all_reduce,
    .broadcast = zipccl_gpu_broadcast,
    .alltoall = zipccl_gpu_alltoall,
    .group = zipccl_gpu_group,
    .async_error = zipccl_gpu_async_error,
    .error = zipccl_gpu_error,
    .get_stats = zipccl_gpu_get_stats,
    .reason_name = zipccl_gpu_reason_name,
    .topology = zipccl_gpu_topology,
    .last_plan = zipccl_gpu_last_plan,
};
