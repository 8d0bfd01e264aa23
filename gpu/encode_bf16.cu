/*
 * encode_bf16.cu - messages written on a GPU: the kernel for bf16, and for fp32 rounded to it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/encode_kernel.cuh"

ENC_HERE(ZIPCCL_SPLIT_BF16, false);
ENC_HERE(ZIPCCL_SPLIT_BF16, true);
