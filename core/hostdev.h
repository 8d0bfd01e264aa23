/*
 * hostdev.h - words that make one text serve the host and the GPU
 *
 * A header is host/device clean if its functions are ZIPCCL_HOSTDEV and its tables ZIPCCL_TABLE: then
 * C, the CPU emulator of kernels and nvcc compile the same arithmetic.  It is no portability layer
 * for kernels; see gpu/portable.cuh.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_HOSTDEV_H
#define ZIPCCL_CORE_HOSTDEV_H

/*
 * ZIPCCL_HOSTDEV  before 'static inline' of a function that both sides call
 * ZIPCCL_TABLE    before a table of constants in a header; nvcc gives it to the device alone
 */
#if defined(__CUDACC__)
#define ZIPCCL_HOSTDEV __host__ __device__
#define ZIPCCL_TABLE   static __constant__ const
#else
#define ZIPCCL_HOSTDEV
#define ZIPCCL_TABLE static const
#endif

#endif
