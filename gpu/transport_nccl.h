/*
 * transport_nccl.h - moves bytes with NCCL: enqueues into a stream, returns at once
 *
 * The transport of exec_cuda.  Buffers are device memory and what a call posts is enqueued into
 * 'stream', which whoever uses it sets before; but gather(), and groups between host_begin and host_end,
 * move host memory and wait for it.  Exchanges of parts of the world go to their world ranks; all-gathers
 * of whole nodes and rails have communicators of their own, made when the first plan needs them.
 *
 * It borrows the ncclComm.  abort() is local, as the waits of this rank are; the ncclComm itself is
 * its owner's to abort.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_TRANSPORT_NCCL_H
#define ZIPCCL_GPU_TRANSPORT_NCCL_H

#include "core/transport.h"
#include "gpu/gate_mode.h"
#include "gpu/nccl_api.h"

#include <stdatomic.h>

/* A send or receive of host memory, until its group ends. */
struct zipccl_nccl_post {
    uint32_t peer;
    bool send;
    void *buf; /* only read if 'send' */
    size_t nbytes;
};

struct zipccl_transport_nccl {
    struct zipccl_transport base;
    const struct zipccl_nccl_api *api;
    ncclComm_t comm;
    ncclComm_t parts[2];            /* of the caller's node and rail; NULL: not made yet */
    cudaStream_t stream;            /* that calls enqueue into */
    cudaEvent_t event;              /* for waits of its own */
    bool host;                      /* groups move host memory */
    struct zipccl_nccl_post *posts; /* [room_posts] of such a group */
    size_t nposts, room_posts;
    char *bounce, *d_bounce; /* [bounce_bytes] pinned, and on the device */
    size_t bounce_bytes;
    char *old_bounces[64], *old_d_bounces[64]; /* [nold] outgrown, each half as large as the next */
    unsigned nold;
    size_t old_bytes; /* of them, on the device */
    atomic_bool aborted;
    uint64_t nwaits; /* of the host for events, so far */
    double limit_s;  /* longest that a wait on the host may take; 0, as at first: for ever */
    enum zipccl_gate_mode gate; /* that execs over it are to have; for who makes both */
    struct zipccl_error error;  /* of the first failure */
};

/*
 * nccl      borrowed; of the current device
 * topology  borrowed; may be set later, before anything but gather() is called
 * ZIPCCL_ERR_NOMEM, ZIPCCL_ERR_IO with the text in 'error'.  Local: talks to no other rank.
 */
zipccl_status zipccl_transport_nccl_create(ncclComm_t nccl, const struct zipccl_nccl_api *api,
                                           const struct zipccl_topology *topology,
                                           struct zipccl_transport_nccl **out,
                                           struct zipccl_error *error);

/* Groups from here on move host memory, and group_end() waits; until host_end. */
void zipccl_transport_nccl_host_begin(struct zipccl_transport_nccl *t);
void zipccl_transport_nccl_host_end(struct zipccl_transport_nccl *t);

/*
 * Make the communicator of this rank's node (0) or rail (1) if there is none.  Collective.
 * ZIPCCL_ERR_UNSUPPORTED if the library cannot split.
 */
zipccl_status zipccl_transport_nccl_part(struct zipccl_transport_nccl *t, unsigned part);

/* All-gather of 'nbytes' of each member of a part. */
zipccl_status zipccl_transport_nccl_part_gather(struct zipccl_transport_nccl *t, unsigned part,
                                                const void *send, void *recv, size_t nbytes);

/*
 * Wait on the host until 'event' has happened.  ZIPCCL_ERR_ABORTED if someone aborts meanwhile,
 * ZIPCCL_ERR_IO if NCCL or CUDA report a failure or the limit is over.
 */
zipccl_status zipccl_transport_nccl_wait(struct zipccl_transport_nccl *t, cudaEvent_t event);

/* ZIPCCL_OK, or the failure of NCCL's that has been noticed; does not wait. */
zipccl_status zipccl_transport_nccl_async_error(struct zipccl_transport_nccl *t);

/* Keep the text of a failure of 'what'; ZIPCCL_OK if there was none. */
zipccl_status zipccl_transport_nccl_check(struct zipccl_transport_nccl *t, ncclResult_t result,
                                          const char *what);
zipccl_status zipccl_transport_nccl_cuda(struct zipccl_transport_nccl *t, cudaError_t result,
                                         const char *what);

/* The collective as the library has it, on 't->stream' (transport_nccl_native.c). */
zipccl_status zipccl_transport_nccl_native(struct zipccl_transport *t,
                                           const struct zipccl_native_call *call);

#endif
