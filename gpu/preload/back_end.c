/*
 * back_end.c - the one symbol of libzipccl-nccl.so
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/back_end.h"

__attribute__((visibility("default"))) const struct zipccl_shim_back_end zipccl_shim_back_end = {
    ZIPCCL_SHIM_BACK_END_VERSION,
#define ZIPCCL_ENTRY(name) .name = zipccl_gpu_##name,
    ZIPCCL_SHIM_BACK_END_FUNCTIONS(ZIPCCL_ENTRY)
#undef ZIPCCL_ENTRY
};
