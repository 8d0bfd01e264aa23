/*
 * compact.h - the example kernel: keep the values that are not zero, in order
 *
 * Small, and with everything that the codec's kernels do: ballots, scans of warp and block, static
 * and dynamic shared memory, a ticket, decoupled look-back.  Built by nvcc and for the emulator.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_TESTS_EMU_COMPACT_H
#define ZIPCCL_GPU_TESTS_EMU_COMPACT_H

#include <stdint.h>

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of workspace for 'n' values. */
size_t emu_compact_workspace(uint64_t n);

/*
 * Write the values of 'in' that are not 0 to 'out', in order, and their number to 'count'.
 *
 * in, out    [n] on the device, distinct
 * count      1 word on the device
 * workspace  [emu_compact_workspace(n)] on the device
 */
cudaError_t emu_compact(const uint32_t *in, uint64_t n, uint32_t *out, uint64_t *count,
                        void *workspace, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
