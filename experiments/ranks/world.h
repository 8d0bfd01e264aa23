/*
 * world.h - the ranks of a real run: threads of this process, or processes of a launcher
 *
 * A world has one transport over all of its ranks and makes transports of groups of them.  It runs
 * no collective itself.  Which of its ranks live in this process is all that differs between the
 * kinds: nlocal ranks from 'first' on, all of them as threads, one of them under a launcher.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_WORLD_H
#define ZIPCCL_EXPERIMENTS_WORLD_H

#include "core/topology.h"
#include "core/transport.h"
#include "gpu/gate_mode.h"

enum zipccl_world_kind { ZIPCCL_WORLD_THREADS, ZIPCCL_WORLD_MPI, ZIPCCL_WORLD_NCCL };

struct zipccl_cost_params;
struct zipccl_exec;
struct zipccl_timed_exec;
struct zipccl_world;
struct zipccl_world_options;

typedef zipccl_status zipccl_world_open_fn(const struct zipccl_world_options *options,
                                           struct zipccl_world **out, struct zipccl_error *error);

struct zipccl_world_options {
    enum zipccl_world_kind kind;
    uint32_t nthreads;          /* THREADS: ranks, 1 at least; NCCL without a launcher the same */
    uint32_t ranks_per_node;    /* 0: THREADS all on one node, MPI as the hosts are; else pretended
                                nodes of so many ranks each, the last may have fewer */
    double timeout_s;           /* longest that one call of a transport may wait; 0: for ever */
    enum zipccl_gate_mode gate; /* NCCL: of the execs */
    zipccl_world_open_fn *open_mpi;  /* opens the MPI kind; NULL: this program has none */
    zipccl_world_open_fn *open_nccl; /* the same of NCCL */
};

/* What a rank runs; its failure aborts the world's transport, so that no other rank waits. */
typedef zipccl_status zipccl_world_fn(struct zipccl_transport *whole_world, void *arg);

/* The kinds' own parts; used through the functions below. */
struct zipccl_world_ops {
    const char *name; /* as in --on: "threads", "mpi" */
    zipccl_status (*run)(struct zipccl_world *world, zipccl_world_fn *fn, void *arg,
                         struct zipccl_error *error);
    zipccl_status (*group)(struct zipccl_world *world, const uint32_t *ranks, uint32_t n,
                           struct zipccl_transport **mine, struct zipccl_error *error);
    void (*close)(struct zipccl_world *world);
};

/* Where the ranks' buffers are on a device: they are the current thread's device's. */
struct zipccl_world_device {
    /* An exec for 'transport', one of the world's; its owner destroys it. */
    zipccl_status (*exec)(struct zipccl_transport *transport, struct zipccl_exec **out);
    /* Make the device of 'transport' the calling thread's; the world does so for what it runs. */
    zipccl_status (*use)(struct zipccl_transport *transport);
    void *(*stream)(struct zipccl_transport *transport); /* for calls */
    void *(*alloc)(size_t nbytes);
    void (*free)(void *p);
    /* Copy to the device or from it, behind what the stream holds; done when it returns. */
    zipccl_status (*copy)(struct zipccl_transport *transport, void *dst, const void *src,
                          size_t nbytes, bool to_device);
    /* Wait for what the stream holds. */
    zipccl_status (*wait)(struct zipccl_transport *transport);
    /* Bring what the codec of such an exec has done so far, and what its kernels took; waits for them. */
    zipccl_status (*codec)(struct zipccl_exec *exec, struct zipccl_timed_exec *timed);
    /* Rates for the chooser where no cluster gives any. */
    void (*params)(struct zipccl_cost_params *out);
};

/* First member of every kind's own struct. */
struct zipccl_world {
    const struct zipccl_world_ops *ops;
    enum zipccl_world_kind kind;
    uint32_t nranks, nlocal, first;           /* local ranks: first .. first + nlocal - 1 */
    uint32_t nhost;                           /* ranks of all processes on this host */
    const struct zipccl_topology *topology;   /* of all ranks, owned by the world */
    const struct zipccl_world_device *device; /* NULL: buffers are host memory */
};

/*
 * Open a world.  Under a launcher collective over its processes.
 *
 * ZIPCCL_ERR_UNSUPPORTED if this program has not that kind; ZIPCCL_ERR_ARG, NOMEM, IO.
 */
zipccl_status zipccl_world_open(const struct zipccl_world_options *options,
                                struct zipccl_world **out, struct zipccl_error *error);

/*
 * Run 'fn' once for each local rank, each in a thread of its own (the one rank of a process: in the
 * caller's), and return when all are done.  'arg' is the same for all; which rank it is
 * whole_world->rank tells.
 *
 * The first failure, by rank, is returned; 'error' says which rank and, where the transport knows,
 * why.  A later run fails too then, since the transport has been aborted.
 */
zipccl_status zipccl_world_run(struct zipccl_world *world, zipccl_world_fn *fn, void *arg,
                               struct zipccl_error *error);

/*
 * Make the transports of a group.  Collective over the world, outside of a run, the same groups in
 * the same order everywhere; also processes without a member call.
 *
 * ranks  [n] of the world, no two equal; the order is that of the group's ranks
 * mine   [nlocal] out, of local rank first + i: NULL if it is no member; owned by the world, valid
 *        until it is closed
 */
zipccl_status zipccl_world_group(struct zipccl_world *world, const uint32_t *ranks, uint32_t n,
                                 struct zipccl_transport **mine, struct zipccl_error *error);

void zipccl_world_close(struct zipccl_world *world);

/*
 * Exchange 'nbytes' of each rank of 'transport'; all arrive in 'all' [nranks * nbytes], in rank
 * order.  With the smallest of messages it is a barrier.  Aborts the transport when it fails.
 */
zipccl_status zipccl_world_gather(struct zipccl_transport *transport, const void *mine,
                                  size_t nbytes, void *all);

#endif
