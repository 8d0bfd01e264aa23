/*
 * transport_mem.h - ranks as threads of one process, with byte counters
 *
 * Every rank's handle is created at once and shares one hub.  Native collectives are real:
 * all_gather, reduce_scatter, all_reduce and broadcast forward messages around the rings of
 * zipccl_ring_next(), so that the counters show what the lowering says; reductions add in rank
 * order in fp32 with one rounding (DESIGN: bits of a native reduction on mem).
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

/* Payload bytes that 'src' has sent to 'dst' so far, over all calls. */
uint64_t zipccl_transport_mem_bytes(const struct zipccl_transport *any, uint32_t src, uint32_t dst);
void zipccl_transport_mem_reset_bytes(struct zipccl_transport *any);

#endif
