/*
 * transport.h - moves bytes between the ranks of a communicator
 *
 * Point-to-point with NCCL's rules: inside a group, sends and receives match per pair in posting
 * order, both sides name the same count, and nothing moves before group_end.  Native collectives
 * are optional.  A transport computes nothing on values and knows no plan.
 *
 * One handle per rank; a handle is used by one thread at a time (the wire lane), except that
 * abort may be called from any thread while another call is blocked.
 * After any status but ZIPCCL_OK what a call was to receive is undefined.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_TRANSPORT_H
#define ZIPCCL_CORE_TRANSPORT_H

#include "core/dtype.h"
#include "core/status.h"
#include "core/topology.h"

#include <stddef.h>
#include <stdint.h>

/* Arguments of a native collective, NCCL meaning; buffers hold elements of 'dtype'. */
struct zipccl_native_call {
    enum zipccl_op op;
    enum zipccl_dtype dtype;
    enum zipccl_redop redop;
    uint32_t root;
    const void *send;
    void *recv;
    size_t count;
    const size_t *send_counts, *send_displs; /* [nranks] uneven ops, elements */
    const size_t *recv_counts, *recv_displs;
    uint32_t channels; /* rings to use; what a real library ignores */
};

struct zipccl_transport;

struct zipccl_transport_ops {
    const char *name;
    zipccl_status (*group_begin)(struct zipccl_transport *t);
    zipccl_status (*send)(struct zipccl_transport *t, uint32_t peer, const void *buf,
                          size_t nbytes);
    zipccl_status (*recv)(struct zipccl_transport *t, uint32_t peer, void *buf, size_t nbytes);
    /* Move everything posted since group_begin; returns when the caller's part is complete. */
    zipccl_status (*group_end)(struct zipccl_transport *t);
    /* All-gather of 'nbytes' per rank on 'channels' rings; NULL if only point-to-point exists. */
    zipccl_status (*all_gather)(struct zipccl_transport *t, const void *send, void *recv,
                                size_t nbytes, uint32_t channels);
    /* Broadcast 'nbytes' from 'root' along the ring; NULL if only point-to-point exists. */
    zipccl_status (*broadcast)(struct zipccl_transport *t, void *buf, size_t nbytes, uint32_t root,
                               uint32_t channels);
    /* The library's own collective; NULL if there is none. */
    zipccl_status (*native)(struct zipccl_transport *t, const struct zipccl_native_call *call);
    /* True if native() serves 'op' with 'dtype' and 'redop'; NULL means it serves none. */
    bool (*has_native)(const struct zipccl_transport *t, enum zipccl_op op, enum zipccl_dtype dtype,
                       enum zipccl_redop redop);
    /* Make every blocked and later call of every rank return ZIPCCL_ERR_ABORTED. */
    void (*abort)(struct zipccl_transport *t);
    void (*destroy)(struct zipccl_transport *t);
    /* Text of the first failure that this transport saw, naming ranks; "" if none; NULL if the
     * transport keeps no text.  Valid until destroy. */
    const char *(*error_text)(const struct zipccl_transport *t);
    /* Gather 'nbytes' of host memory of each rank into 'all' [nranks * nbytes], in rank order, and wait
     * for it: what communicators tell each other.  NULL: send() and recv() take host memory. */
    zipccl_status (*gather)(struct zipccl_transport *t, const void *mine, size_t nbytes, void *all);
};

/* First member of every transport's own struct. */
struct zipccl_transport {
    const struct zipccl_transport_ops *ops;
    uint32_t rank, nranks;
    const struct zipccl_topology *topology; /* borrowed, outlives the transport */
};

/* Text of the first failure that the transport saw; "" if none, or if it keeps none. */
static inline const char *zipccl_transport_text(const struct zipccl_transport *t)
{
    return t->ops->error_text != NULL ? t->ops->error_text(t) : "";
}

/* Say that 'what' failed with 'status' on this rank, and what the transport knows; returns 'status'. */
static inline zipccl_status zipccl_transport_fail(const struct zipccl_transport *t,
                                                  zipccl_status status, const char *what,
                                                  struct zipccl_error *error)
{
    const char *text = zipccl_transport_text(t);

    return zipccl_fail(error, status, "%s on rank %u: %s%s%s", what, t->rank,
                       zipccl_status_string(status), text[0] != '\0' ? "; " : "", text);
}

#endif
