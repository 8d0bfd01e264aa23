/*
 * transport_mpi.h - ranks as processes of an MPI job, across hosts
 *
 * Point-to-point is MPI's own, polled by the calling thread (the wire lane), so that it makes progress
 * whatever the other lane computes.  all_gather and broadcast forward messages around the rings of
 * zipccl_ring_next(): what travels between two ranks is what the lowering says and what the memory
 * transport counts.
 *
 * Native collectives are MPI's nonblocking ones, with MPI's algorithms and MPI's own bits: unlike the
 * memory transport's they do not follow rank order.  bf16 and fp16, which MPI does not have, are
 * reduced by operators of ours that convert, compute in fp32 and round at each step; so are 8-bit
 * integers, whose sums saturate in Open MPI's vector code and must wrap around; avg is MPI's sum, then
 * divided.  alltoallv and sendrecv are groups of sends and receives, since ranks with nothing to
 * exchange do not call them.
 *
 * Failures cross processes.  A rank that fails or is aborted tells all others, and every call that
 * waits listens: it ends with ZIPCCL_ERR_ABORTED.  A call that waits longer than the limit ends with
 * ZIPCCL_ERR_TIMEOUT and a text that names peers and missing bytes.  Counts that differ between the
 * two sides of a message are ZIPCCL_ERR_MISMATCH on the receiver, and on the sender in the call in
 * which it hears of it; natives whose counts differ are not found out unless MPI does.
 * The library never calls MPI_Abort.  After a failure MPI may still hold buffers of the failed call,
 * and MPI_Finalize may wait for ever for a peer: the program should end with MPI_Abort.
 *
 * Texts name ranks of MPI_COMM_WORLD.  MPI must have been initialised with MPI_THREAD_SERIALIZED, or
 * with MPI_THREAD_MULTIPLE where threads use several handles at once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_TRANSPORT_MPI_H
#define ZIPCCL_CORE_TRANSPORT_MPI_H

#include "core/transport.h"

#include <mpi.h>

struct zipccl_transport_mpi_config {
    double limit_s;      /* longest that a call may wait; 0: for ever */
    double spin_s;       /* polls without progress before the thread sleeps in between */
    size_t piece_bytes;  /* longest MPI message of a send, below 2 GiB; equal on all ranks */
    size_t native_bytes; /* longest block that MPI's own collectives get as it is; the same */
};

/*
 * Pieces that Open MPI can send at once over TCP, where btl_tcp_eager_limit is ZIPCCL_MPI_EAGER_BYTES.
 * A longer message first asks the receiver, whose answer queues behind what that one sends: with
 * chunks of 420 KB, 4 ranks and 200 Mb/s, links then were idle a fifth of the time
 * (experiments/testbed).
 */
#define ZIPCCL_MPI_EAGER_BYTES (256 << 10)
#define ZIPCCL_MPI_PIECE_BYTES (ZIPCCL_MPI_EAGER_BYTES - 1024) /* less room for headers */

/* Fill in the defaults: 60 s, 20 us, ZIPCCL_MPI_PIECE_BYTES, 1 GiB. */
void zipccl_transport_mpi_config_init(struct zipccl_transport_mpi_config *config);

/*
 * Create this process's handle.  Collective over 'comm', which is duplicated and not kept.
 *
 * topology  of comm's ranks; borrowed, outlives the handle
 * config    NULL: defaults
 *
 * Destroy before MPI_Finalize; not collective.
 * ZIPCCL_ERR_ARG; ZIPCCL_ERR_UNSUPPORTED if MPI's threads do not suffice; ZIPCCL_ERR_NOMEM and
 * ZIPCCL_ERR_IO leave the other ranks waiting: the program should end with MPI_Abort.
 */
zipccl_status zipccl_transport_mpi_create(MPI_Comm comm, const struct zipccl_topology *topology,
                                          const struct zipccl_transport_mpi_config *config,
                                          struct zipccl_transport **out,
                                          struct zipccl_error *error);

/*
 * The same for some ranks of 'parent', in the order given.  Collective over those ranks alone.
 *
 * ranks  [n] of 'parent', the caller among them
 * tag    tells creations apart that run at the same time in threads of one process
 */
zipccl_status zipccl_transport_mpi_create_group(MPI_Comm parent, const uint32_t *ranks, uint32_t n,
                                                int tag, const struct zipccl_topology *topology,
                                                const struct zipccl_transport_mpi_config *config,
                                                struct zipccl_transport **out,
                                                struct zipccl_error *error);

/* Payload bytes that this rank has sent to 'dst' so far; natives of MPI's own are not counted. */
uint64_t zipccl_transport_mpi_bytes(const struct zipccl_transport *t, uint32_t dst);
void zipccl_transport_mpi_reset_bytes(struct zipccl_transport *t);

#endif
