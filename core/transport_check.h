/*
 * transport_check.h - a transport that stands before another one and catches misuse
 *
 * It enforces the rules of transport.h, which are NCCL's, counts bytes and finds leaks:
 *
 *     group     send and recv are posted inside a group, collectives outside; every begin has its end
 *     count     the two ends of a message, matched in posting order, name the same number of bytes
 *     order     all ranks call the same collectives, with the same arguments, in the same order
 *     lifetime  from post to group_end nobody writes a posted buffer, and no receive overlaps
 *               another buffer of the group; what is to be received is overwritten at once, so that
 *               whoever reads it too early reads rubbish
 *     leak      at the end every message has met its other end, every collective all its ranks, and
 *               every handle is destroyed
 *
 * A broken rule aborts the inner transport and is ZIPCCL_ERR_MISMATCH ('count', 'order') or
 * ZIPCCL_ERR_ARG for the rank that broke it.  Rules between ranks are checked among the handles that
 * were created together, so for all ranks if they are threads or actors, and for none if each is a
 * process of its own.  Nothing blocks here but the inner transport.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_TRANSPORT_CHECK_H
#define ZIPCCL_CORE_TRANSPORT_CHECK_H

#include "core/transport.h"

struct zipccl_check_hub;

/*
 * Create a handle before each of 'n' handles of one communicator.
 *
 * inner  [n] borrowed, all or some of the ranks; outlive the handles
 * out    [n] in the same order; each is destroyed by its owner, before the hub
 * ZIPCCL_ERR_ARG, ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_transport_check_create(struct zipccl_transport *const *inner, uint32_t n,
                                            struct zipccl_check_hub **hub,
                                            struct zipccl_transport **out);

/*
 * Payload bytes that 'src' has handed over for 'dst': point-to-point as posted, collectives as
 * zipccl_lower() says that they are forwarded.
 */
uint64_t zipccl_transport_check_bytes(struct zipccl_check_hub *hub, uint32_t src, uint32_t dst);
void zipccl_transport_check_reset_bytes(struct zipccl_check_hub *hub);

/* The first rule that was broken, in 'error'; ZIPCCL_OK if none was.  Any thread. */
zipccl_status zipccl_transport_check_error(struct zipccl_check_hub *hub,
                                           struct zipccl_error *error);

/*
 * Destroy the hub; ZIPCCL_ERR_INTERNAL with the text of the first broken rule or leak.  After an
 * abort unmatched messages are none.  Handles that are left become invalid.
 */
zipccl_status zipccl_transport_check_close(struct zipccl_check_hub *hub,
                                           struct zipccl_error *error);

#endif
