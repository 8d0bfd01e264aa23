/*
 * back_end.h - the functions of the library that compresses, as the preloaded one sees them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_PRELOAD_BACK_END_H
#define ZIPCCL_GPU_PRELOAD_BACK_END_H

#include "gpu/zipccl_gpu.h"

/* Rises with every change of this struct or of zipccl_gpu.h: both libraries are of one build. */
#define ZIPCCL_SHIM_BACK_END_VERSION 1u

#define ZIPCCL_SHIM_BACK_END_FUNCTIONS(X)                                                          \
    X(options_init)                                                                                \
    X(create)                                                                                      \
    X(destroy)                                                                                     \
    X(abort)                                                                                       \
    X(disable)                                                                                     \
    X(all_gather)                                                                                  \
    X(reduce_scatter)                                                                              \
    X(all_reduce)                                                                                  \
    X(broadcast)                                                                                   \
    X(alltoall)                                                                                    \
    X(group)                                                                                       \
    X(async_error)                                                                                 \
    X(error)                                                                                       \
    X(get_stats)                                                                                   \
    X(reason_name)                                                                                 \
    X(topology)                                                                                    \
    X(last_plan)

struct zipccl_shim_back_end {
    uint32_t version;
#define ZIPCCL_MEMBER(name) __typeof__(&zipccl_gpu_##name) name;
    ZIPCCL_SHIM_BACK_END_FUNCTIONS(ZIPCCL_MEMBER)
#undef ZIPCCL_MEMBER
};

/* What libzipccl-nccl.so exports. */
extern const struct zipccl_shim_back_end zipccl_shim_back_end;

#endif
