/*
 * gate_kernels.h - the gate on the device: decide whether a stream goes on, use what was sent again
 *
 * What received headers and the caller's own encoders say (kernels.h, zipccl_gpu_result) is looked at on
 * the device.  Launch rules are those of kernels.h: nothing allocates or waits, all can be captured.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_GATE_KERNELS_H
#define ZIPCCL_GPU_GATE_KERNELS_H

#include "gpu/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Device words of a gate. */
enum {
    ZIPCCL_GATE_WORD,   /* 1: the waiting stream goes on; it sets 0 again */
    ZIPCCL_GATE_CLOSED, /* 1: after an abort: nobody sends again, streams go on */
    ZIPCCL_GATE_NWORDS
};

/*
 * Pass the gate or ask for a resend.
 *
 * If no message overflowed, or the gate is closed, its word becomes 1.  Else 'flags' and then 'bell' are
 * written for the host, and the word is left to it.  Any other error in a result sets 'broken'.
 *
 * d_in    [nin] of headers that arrived
 * d_out   [nout] of the messages that this rank encoded
 * words   [ZIPCCL_GATE_NWORDS] on the device
 * flags   [nin + nout] pinned: 1 where a message overflowed
 * bell    pinned: gets 'site', which is not 0
 * broken  pinned: becomes 1
 * d_any   one: ZIPCCL_ERR_OVERFLOW if it asks for a resend, else ZIPCCL_OK
 */
struct zipccl_gate_decide_args {
    const struct zipccl_gpu_result *d_in, *d_out;
    uint32_t nin, nout, site;
    uint32_t *words, *flags, *bell, *broken;
    struct zipccl_gpu_result *d_any;
};
cudaError_t zipccl_gate_decide(const struct zipccl_gate_decide_args *args, cudaStream_t stream);

/* Where a message is replaced by the elements that were sent again: if 'seen', its own header's or d_any of
 * its exchange, says overflow. */
struct zipccl_gate_copy {
    const struct zipccl_gpu_result *seen; /* NULL: never */
    const void *raw;                      /* elements */
    void *elements;                       /* where they belong */
    uint64_t nbytes;
    struct zipccl_gpu_result *result; /* of their decoder: becomes that of a good message */
};

/* After a decoder: copy what was sent again; d_copies [n] on the device. */
cudaError_t zipccl_gate_copies(const struct zipccl_gate_copy *d_copies, uint32_t n, uint32_t nsms,
                               cudaStream_t stream);

/* Before a sum: make raw elements of terms whose message was sent again; d_copies [n] as above, of which
 * 'seen' and 'raw' are used. */
cudaError_t zipccl_gate_terms(const struct zipccl_gate_copy *d_copies,
                              struct zipccl_gpu_term *d_terms, uint32_t n, cudaStream_t stream);

/* After decoders of a captured call: set 'broken', pinned, if one of d_results [n] is an error. */
cudaError_t zipccl_gate_outcomes(const struct zipccl_gpu_result *d_results, uint32_t n,
                                 uint32_t *broken, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
