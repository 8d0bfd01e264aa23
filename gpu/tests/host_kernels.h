/*
 * host_kernels.h - launchers as host functions in a stream, for tests
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_TESTS_HOST_KERNELS_H
#define ZIPCCL_GPU_TESTS_HOST_KERNELS_H

#include "gpu/kernels.h"

/* Run fn(copy of args), which frees it, in the stream; in every replay if that is captured. */
cudaError_t host_launch(cudaStream_t stream, cudaHostFn_t fn, const void *args, size_t nbytes);

#endif
