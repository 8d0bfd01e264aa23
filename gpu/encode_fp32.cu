/*
 * encode_fp32.cu - messages written on a GPU: the kernel for fp32
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/encode_kernel.cuh"

ENC_HERE(ZIPCCL_SPLIT_FP32, false);
