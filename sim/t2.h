/*
 * t2.h - T2: collectives run by the real executor over simulated messages
 *
 * A world is the platform of one child process with what all its ranks share; calls run in it as
 * actors.  Times are those of the messages and kernels that the executor posts; neither the lowering
 * nor the cost model is asked.  It prints nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_T2_H
#define ZIPCCL_SIM_T2_H

#include "core/executor.h"
#include "models/cluster.h"
#include "sim/exec_sim.h"

/* Buffers of one rank, as in struct zipccl_run. */
struct zipccl_t2_buffers {
    const void *send;
    void *recv;
    const size_t *send_counts, *send_displs, *recv_counts, *recv_displs; /* uneven ops */
    void *owner;                                                         /* the payload's own */
};

/*
 * What a call moves: either real buffers, or, with 'sizes', nothing but sizes (then 'open' may be
 * NULL, and uneven ops take their counts from 'splits').
 */
struct zipccl_t2_payload {
    /* Make the buffers of 'rank'. */
    zipccl_status (*open)(void *context, uint32_t rank, struct zipccl_t2_buffers *out);
    /* Whether they are right after the call, if it succeeded; frees them. */
    bool (*close)(void *context, uint32_t rank, struct zipccl_t2_buffers *buffers);
    void *context;
    const struct zipccl_sim_sizes *sizes;
    const size_t *splits; /* [nranks * nranks] elements from source (row) to destination */
};

struct zipccl_t2_call {
    const struct zipccl_plan *plan;
    const struct zipccl_topology *topology;
    const uint32_t *gpus;  /* [nranks] GPU of each rank; NULL: rank r on GPU r */
    const double *enter_s; /* [nranks] when each rank enters, from the start on; NULL: at once */
    struct zipccl_t2_payload payload;
};

struct zipccl_t2_result {
    double seconds;       /* from when the last rank entered until the last one was done */
    double end_s;         /* when the last one was done, from the start of all calls on */
    uint64_t nmessages;   /* simulated */
    zipccl_status status; /* of the first rank that failed, other than by another's abort */
    bool right;           /* every rank got the right data; by pointer: true */
    struct zipccl_run_stats stats; /* sums over ranks */
    uint64_t *bytes; /* [nranks * nranks] from source (row) to destination; NULL: not wanted */
};

struct zipccl_t2_world;

/*
 * Load 'cluster' for messages.  Once per process.  ZIPCCL_ERR_IO, ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_t2_open(const struct zipccl_cluster *cluster, struct zipccl_t2_world **out,
                             struct zipccl_error *error);
void zipccl_t2_close(struct zipccl_t2_world *world);

const struct zipccl_platform *zipccl_t2_platform(const struct zipccl_t2_world *world);

/* Run fn(context) as an actor, and what it starts, to the end.
 * ZIPCCL_ERR_INTERNAL if actors were left waiting for one another. */
zipccl_status zipccl_t2_main(struct zipccl_t2_world *world, zipccl_status (*fn)(void *context),
                             void *context, struct zipccl_error *error);

/*
 * Start 'ncalls' calls together, each on a communicator of its own, and wait for all; in an actor.
 *
 * Times are simulated and start over for each use.  Failures of ranks are in the results.
 * ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_t2_run(struct zipccl_t2_world *world, const struct zipccl_t2_call *calls,
                            uint32_t ncalls, struct zipccl_t2_result *results);

/* A communicator in a world, for those who run their own actors. */
struct zipccl_t2_comm {
    uint32_t nranks;
    const struct zipccl_topology *topology; /* borrowed */
    struct zipccl_transport **transports;   /* [nranks] */
    struct zipccl_exec **execs;             /* [nranks] */
    struct zipccl_t2_staging *staging;      /* [nranks] kept from call to call */
};

/*
 * sizes   borrowed; NULL: real payload
 * nsizes  1: the same for all ranks; nranks: one each, so that ranks may be in different calls
 */
zipccl_status zipccl_t2_comm_create(struct zipccl_t2_world *world,
                                    const struct zipccl_topology *topology, const uint32_t *gpus,
                                    const struct zipccl_sim_sizes *sizes, uint32_t nsizes,
                                    struct zipccl_t2_comm *out);
void zipccl_t2_comm_destroy(struct zipccl_t2_comm *comm);

/* Run 'plan' on 'rank' of 'comm', which runs nothing else. */
zipccl_status zipccl_t2_execute(struct zipccl_t2_comm *comm, uint32_t rank,
                                const struct zipccl_plan *plan,
                                const struct zipccl_t2_buffers *buffers,
                                struct zipccl_run_stats *stats);

/*
 * zipccl_t2_run() in a child process of its own.  With bursts the calls run twice, one time after the
 * other, and the second counts: what the NICs have saved up is then that of calls that follow one another.
 *
 * results  their 'bytes', where wanted, are [nranks * nranks] of the caller
 * ZIPCCL_ERR_INTERNAL if the simulation did not come to its end, and as above.
 */
zipccl_status zipccl_t2_price(const struct zipccl_cluster *cluster,
                              const struct zipccl_t2_call *calls, uint32_t ncalls,
                              struct zipccl_t2_result *results, struct zipccl_error *error);

#endif
