/*
 * transport_mem.h - ranks as threads of one process, with byte counters
 *
 * Every rank's handle is created at once and shares one hub.  Native collectives are real:
 * all_gather, reduce_scatter, all_reduce and broadcast forward messages around the rings of
 * zipccl_ring_next(), so that the counters show what the lowering says; reductions add in rank
 * order in fp32 with one rounding (reduce.h).
 *
 * A call that waits longer than the limit fails with ZIPCCL_ERR_TIMEOUT; the text names who did not
 * come and what is missing, and the hub is aborted.
 *
 * Two sides of a pair that name different counts both get ZIPCCL_ERR_MISMATCH; the hub is then
 * aborted, so that no third rank waits for ever.  Reductions of equal size that differ in type or
 * operator are ZIPCCL_ERR_MISMATCH on every rank.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_TRANSPORT_MEM_H
#define ZIPCCL_CORE_TRANSPORT_MEM_H

#include "core/transport.h"

/*
 * Create handles for all ranks of 'topology'.
 *
 * topology  borrowed; outlives the handles
 * out       [topology->nranks]; each is destroyed by its owner, the hub with the last
 */
zipccl_status zipccl_transport_mem_create(const struct zipccl_topology *topology,
                                          struct zipccl_transport **out);

/* The limit of every rank's calls in seconds, from now on; 0: none.  It starts as this. */
#define ZIPCCL_MEM_LIMIT_S 60.0
void zipccl_transport_mem_set_limit(struct zipccl_transport *any, double limit_s);

/* Payload bytes that 'src' has sent to 'dst' so far, over all calls; 0 for src == dst. */
uint64_t zipccl_transport_mem_bytes(const struct zipccl_transport *any, uint32_t src, uint32_t dst);
void zipccl_transport_mem_reset_bytes(struct zipccl_transport *any);

#endif
