/*
 * exec_sim.h - the CPU's codec for the bytes, modelled seconds for the time
 *
 * Lanes are actors and events are semaphores of SimGrid; all of them share one thread.  The work of
 * one step is one launch and one kernel, which takes the GPU's codec engine, its share of the SMs
 * and its memory traffic, each a host that other kernels of the GPU share; it ends when the last of
 * the three is done.  Alone it lasts as long as its codec rate says.
 *
 * By pointer: above the payload that one process can hold, no element is touched.  Messages then
 * have headers alone, and sizes as 'sizes' says, and of their staging no more than the headers is touched.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_EXEC_SIM_H
#define ZIPCCL_SIM_EXEC_SIM_H

#include "core/exec.h"
#include "sim/platform.h"

/* Sizes of messages whose elements are not there. */
struct zipccl_sim_sizes {
    /* Expected and longest bytes of a message of 'n' elements, each a sum over 'nsummed' ranks: the
     * first travels, the second decides whether a FIXED message overflows. */
    void (*bytes)(void *context, enum zipccl_effort effort, size_t n, uint32_t nsummed,
                  size_t *mean, size_t *longest);
    void *context;
    /* Addresses that stand for all user buffers: nothing is read there. */
    const char *nowhere;
    size_t nowhere_bytes;
};

/*
 * Create the exec of one rank's lanes on GPU 'gpu'.  Only simulated actors may use it.
 *
 * scratch  [zipccl_codec_scratch_bytes()], aligned to 64, borrowed; one may serve all ranks
 * sizes    borrowed; NULL: real payload
 * ZIPCCL_ERR_NOMEM.  The caller destroys '*out'.
 */
zipccl_status zipccl_exec_sim_create(const struct zipccl_platform *platform,
                                     const struct zipccl_cluster *cluster, uint32_t gpu,
                                     void *scratch, const struct zipccl_sim_sizes *sizes,
                                     struct zipccl_exec **out);

/* Run a kernel of so many SM seconds and so much memory traffic on 'gpu' to its end. */
void zipccl_exec_sim_kernel(const struct zipccl_platform *platform, uint32_t gpu, double sm_s,
                            double hbm_bytes, double alone_s);

/* Tell the exec that another call begins: what lay in the buffers is no sum any more. */
void zipccl_exec_sim_start_call(struct zipccl_exec *exec);

#endif
