/*
 * gate_check.h - whether the gate works on this GPU, with a communicator of one rank
 *
 * What of it needs hardware: a stream that waits for a word holds back what follows, and nothing else; the
 * helper's resend runs meanwhile, on another stream and communicator; all of it in a graph as well; an
 * abort lets the stream go.  Headers are made up.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_GATE_CHECK_H
#define ZIPCCL_GPU_GATE_CHECK_H

#include "core/status.h"
#include "gpu/nccl_api.h"

#include <stdbool.h>

struct zipccl_gate_check {
    bool able;    /* driver and NCCL have what it takes; else nothing else was looked at */
    bool passes;  /* without an overflow nothing is sent, and the stream goes on */
    bool resends; /* with one the elements have arrived when the stream goes on */
    bool replays; /* both in a graph, by turns */
    bool aborts;  /* a stream that waits goes on after an abort */
    double pass_us, resend_us; /* median, on the host's clock, from the enqueueing to the end */
};

/*
 * nccl  of one rank, on the current device; as good as new afterwards
 * nbytes  that are sent again, at least 16
 * ZIPCCL_OK whatever was found; ZIPCCL_ERR_IO, ZIPCCL_ERR_NOMEM if it could not be looked at.
 */
zipccl_status zipccl_gate_check(ncclComm_t nccl, const struct zipccl_nccl_api *api, size_t nbytes,
                                struct zipccl_gate_check *out, struct zipccl_error *error);

#endif
