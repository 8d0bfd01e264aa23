/*
 * ans_laws.cuh - the laws of program ANS on the device
 *
 * The table that core/codec/ans.c has on the host.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_ANS_LAWS_CUH
#define ZIPCCL_GPU_ANS_LAWS_CUH

extern "C" {
#include "core/codec/ans.h"
}
#include "gpu/portable.cuh"

#if defined(__CUDACC__)
#define ZIPCCL_ANS_LAWS static __device__ const struct zipccl_ans_law ans_laws
#else
#define ZIPCCL_ANS_LAWS static const struct zipccl_ans_law ans_laws
#endif
#include "core/codec/ans_table.inc"

#endif
