/*
 * perf_rank.h - one rank of a perf run: its buffers, communicators and calls
 *
 * Private to perf_run.c (what is run), perf_rank.c (one call) and perf_measure.c (its rows).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_PERF_RANK_H
#define ZIPCCL_EXPERIMENTS_PERF_RANK_H

#include "experiments/perf/perf_data.h"
#include "experiments/perf/perf_rows.h"
#include "experiments/perf/timed_exec.h"
#include "experiments/ranks/world.h"

#include <pthread.h>

/* What all ranks of a process share. */
struct perf_job {
    const struct zipccl_perf_options *options;
    const struct zipccl_cost_params *params;
    struct zipccl_world *world;
    struct zipccl_transport *
        *members;           /* [nlocal] of the communicators; whole world without a split */
    uint32_t nranks, nodes; /* of a communicator */
    struct zipccl_perf_pool pools[ZIPCCL_NUM_DTYPES];
    struct zipccl_perf_result *result;
    FILE *table;
    bool begun;  /* the table's head is printed */
    bool served; /* some call was */
    pthread_mutex_t lock;
    struct zipccl_error error; /* of the first rank that failed by itself */
    zipccl_status status;
    bool plan_in_place; /* the plan given serves calls in place as well */
    bool not_loaded;    /* a rank has refused what --state-load brings */
};

struct perf_rank {
    struct perf_job *job;
    struct zipccl_transport *whole, *transport; /* of all ranks; of the communicators */
    struct zipccl_exec *exec;
    struct zipccl_timed_exec timed;
    struct zipccl_comm *comms[ZIPCCL_NUM_PERF_MODES]; /* NULL: mode not run */
    unsigned char *send_memory, *recv_memory;
    unsigned char *send, *recv;               /* where buffers begin */
    const struct zipccl_world_device *device; /* NULL: they are host memory; else: */
    unsigned char *shadow;                    /* host memory as large as the larger one */
    void *stream;
    size_t *splits; /* [4 * nranks] counts and places of an alltoallv */
};

/* Note why this rank failed, if no other has; returns 'status'. */
zipccl_status perf_fail(struct perf_job *job, zipccl_status status, const char *text);

/* The same for 'what' the ranks of the whole world did together, with the transport's own text. */
zipccl_status perf_fail_world(struct perf_rank *rank, zipccl_status status, const char *what);

/* Where rank 0 prints lines to, after the table's head; NULL: nowhere. */
FILE *perf_table(struct perf_job *job);

/* The strategy that 'mode' is pinned to; NULL: none. */
const struct zipccl_strategy *perf_pinned(const struct zipccl_perf_options *options,
                                          enum zipccl_perf_mode mode);

/* Make exec, communicators and buffers of 'send_bytes' and 'recv_bytes'. */
zipccl_status perf_rank_open(struct perf_rank *rank, struct perf_job *job,
                             struct zipccl_transport *whole, size_t send_bytes, size_t recv_bytes);
void perf_rank_close(struct perf_rank *rank);

/* Save what mode adaptive has learnt, if that is asked for. */
zipccl_status perf_rank_save_state(struct perf_rank *rank);

/* Make the communicator's calls to be served by 'call' ready: counts of an alltoallv. */
void perf_rank_prepare(struct perf_rank *rank, const struct zipccl_perf_call *call);

/* Fill what the rank sends with the elements of call number 'salt', and for a check poison the rest.
 * A failure is noted. */
zipccl_status perf_rank_fill(struct perf_rank *rank, const struct zipccl_perf_call *call,
                             bool in_place, uint32_t salt, bool poison);

/* One call; on failure the reason is noted unless it is ZIPCCL_ERR_UNSUPPORTED. */
zipccl_status perf_rank_call(struct perf_rank *rank, const struct zipccl_perf_call *call,
                             enum zipccl_perf_mode mode, bool in_place);

/* Wait for the calls so far, where they are only enqueued. */
zipccl_status perf_rank_wait(struct perf_rank *rank);

/* The result of a call, in host memory until the next one of these functions is called; NULL if it
 * cannot be had, which is noted. */
const void *perf_rank_result(struct perf_rank *rank, const struct zipccl_perf_call *call,
                             bool in_place);

/* True if the transport has a native collective for 'call'. */
bool perf_rank_has_native(const struct perf_rank *rank, const struct zipccl_perf_call *call);

/*
 * Measure and check 'call' in all modes; with rank 0 the rows come to the result and the table.
 * '*served' if at least one mode was.
 */
zipccl_status perf_measure(struct perf_rank *rank, const struct zipccl_perf_call *call,
                           bool *served);

#endif
