/*
 * host_hash.h - tells hosts apart as NCCL does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_HOST_HASH_H
#define ZIPCCL_GPU_HOST_HASH_H

#include <stddef.h>
#include <stdint.h>

#define ZIPCCL_GPU_HASH_START UINT64_C(0xcbf29ce484222325)

/* FNV-1a over 'n' bytes more. */
uint64_t zipccl_gpu_hash(uint64_t hash, const void *bytes, size_t n);

/*
 * Of this host: of NCCL_HOSTID if that is set, else of the host's name and its boot, so that
 * containers of one name on two hosts are two.
 */
uint64_t zipccl_gpu_host_hash(void);

#endif
