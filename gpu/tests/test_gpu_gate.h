/*
 * test_gpu_gate.h - between the parts of test_gpu_gate
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_TESTS_TEST_GPU_GATE_H
#define ZIPCCL_GPU_TESTS_TEST_GPU_GATE_H

#include "gpu/gate.h"
#include "gpu/tests/emu/emu.h"
#include "gpu/tests/gpu_calls_run.h"

/* A communicator over 'nccl' with a gate, which it must get. */
struct zipccl_gpu_comm *gate_comm(struct gpu_rank *r, ncclComm_t nccl,
                                  const struct zipccl_gpu_options *options);

/* test_gpu_gate_faults.c: failures, aborts, limits, what is missing. */
bool gate_faults(void);

/* test_gpu_gate_learn.c: capacity classes of calls that are told late what they taught. */
bool gate_learning(void);

#endif
