/*
 * pool.h - device memory that this library needs for a moment, kept for the next one who does
 *
 * To free device memory is to wait for all that the device does, which a job that trains would notice: so what
 * was exchanged when a communicator was made, and what verify mode has compared, goes back to a list of its
 * device.  That holds ZIPCCL_MEMORY and 32 MiB at most and is emptied when the last communicator there goes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_PRELOAD_POOL_H
#define ZIPCCL_GPU_PRELOAD_POOL_H

#include "gpu/preload/cuda.h"

#include <stddef.h>

/* Memory of the current device, which is 'device'; NULL if there is none. */
void *zipccl_shim_pool_take(const struct zipccl_cuda *cuda, int device, size_t nbytes);

/* Nothing on the device uses it any more; NULL is allowed. */
void zipccl_shim_pool_give(void *memory);

/* The device may use it as long as the process lives; NULL is allowed. */
void zipccl_shim_pool_lose(void *memory);

/* Free what is idle on the current device, which is 'device'; waits for the device. */
void zipccl_shim_pool_empty(const struct zipccl_cuda *cuda, int device);

#endif
