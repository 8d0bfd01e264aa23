/*
 * encode_fp8.cu - messages written on a GPU: the kernel for fp8, both kinds
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/encode_kernel.cuh"

ENC_HERE(ZIPCCL_SPLIT_E4M3, false);
ENC_HERE(ZIPCCL_SPLIT_E5M2, false);
