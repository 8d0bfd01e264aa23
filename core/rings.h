/*
 * rings.h - ring collectives over any transport's sends and receives
 *
 * All rings of a call advance in rounds, each one group; the rings are zipccl_ring_next()'s and the
 * cut over them is zipccl_ring_part()'s, so that what travels between two ranks is what lower.h
 * says.  For transports that have only point-to-point of their own: mem and the simulator.
 * Every rank of the transport calls alike; a rank that cannot go on aborts the transport.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_RINGS_H
#define ZIPCCL_CORE_RINGS_H

#include "core/transport.h"

/*
 * All-gather of 'nbytes' per rank, N - 1 rounds.
 *
 * recv  [nranks * nbytes]; 'send' may be the own block in it
 * unit  bytes that stay together when a block is cut over the rings
 */
zipccl_status zipccl_rings_all_gather(struct zipccl_transport *t, const void *send, void *recv,
                                      size_t nbytes, size_t unit, uint32_t channels);

/* Broadcast of 'nbytes' from 'root' in N - 1 rounds, whole: it does not pipeline. */
zipccl_status zipccl_rings_broadcast(struct zipccl_transport *t, void *buf, size_t nbytes,
                                     size_t unit, uint32_t root, uint32_t channels);

/*
 * Reduce elements [first, first + n) of every rank's send buffer into 'dst', as zipccl_reduce().
 * Returns when no rank reads this rank's send buffer any more.
 */
typedef zipccl_status zipccl_rings_values_fn(struct zipccl_transport *t,
                                             const struct zipccl_native_call *call, size_t first,
                                             size_t n, void *dst);

/* Any op as a library would serve it: rings, or pairs; 'values' serves the reductions. */
zipccl_status zipccl_rings_native(struct zipccl_transport *t, const struct zipccl_native_call *call,
                                  zipccl_rings_values_fn *values);

#endif
