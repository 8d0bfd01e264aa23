/*
 * nccl_api.h - a function of NCCL under both of its names
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_TESTS_EMU_NCCL_API_H
#define ZIPCCL_GPU_TESTS_EMU_NCCL_API_H

#define NCCL_API(type, name, args) __attribute__((visibility("default"))) type nccl##name args
#define NCCL_ALIAS(type, name, args)                                                               \
    __attribute__((visibility("default"), alias("nccl" #name))) type pnccl##name args;

#endif
