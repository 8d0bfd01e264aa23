/*
 * real_replay_state.h - what the parts of a real replay share
 *
 * Private to real_replay*.c: real_replay.c (what is run), real_replay_rank.c (memory and streams of a
 * rank), real_replay_call.c (one collective) and real_replay_result.c (what came of it).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_REAL_REPLAY_STATE_H
#define ZIPCCL_EXPERIMENTS_REAL_REPLAY_STATE_H

#include "experiments/replay/real_replay.h"
#include "experiments/perf/timed_exec.h"
#include "sim/program.h"

#include <pthread.h>

/* A set of groups as one stream uses it: its calls follow each other, so it has one communicator. */
struct replay_key {
    uint32_t group, stream;
    struct zipccl_transport **mine; /* [nlocal] */
};

/* What the calls of one row did on one rank in one mode, over the timed steps. */
struct replay_row {
    double calls, raw_bytes; /* as NCCL counts them */
    double sent_bytes;       /* all payload of the plans */
    double coded_raw, coded_wire, codec_s;
    char strategy[48];
    int32_t capacity_class;
    double capacity_ratio;
};

struct replay_job {
    const struct zipccl_trace *trace;
    const struct zipccl_real_replay_options *options;
    struct zipccl_world *world;
    struct zipccl_samples *samples;
    struct zipccl_program *program;
    uint32_t nkeys, nsets, largest_group;
    struct replay_key *keys;
    uint32_t *key_of; /* [nevents] of collectives */
    pthread_mutex_t lock;
    zipccl_status status; /* of the first rank that failed by itself */
    struct zipccl_error error;
    bool not_loaded; /* a rank has refused what --state-load brings */
    /* In the process with rank 0, by mode: */
    double *step_s[ZIPCCL_NUM_STEPS];          /* [steps] of the slowest rank */
    double *enter[ZIPCCL_NUM_STEPS];           /* [nranks][nops] of the step shown, s; */
    double *end[ZIPCCL_NUM_STEPS];             /* the same */
    struct replay_row *rows[ZIPCCL_NUM_STEPS]; /* [nranks][nrows] */
    uint64_t wrong;
};

struct replay_rank;

struct replay_stream {
    struct replay_rank *rank;
    pthread_t thread;
    bool started;
    uint32_t nops, *ops;   /* of this rank in this stream, in program order */
    unsigned char *recv;   /* the results of its calls, one after the other, */
    unsigned char *shadow; /* and room for one on the host, where that is on a device */
    size_t *splits;        /* [4 * largest_group] counts and places of an uneven call */
    uint64_t generation;   /* of the step that it ran last */
};

struct replay_rank {
    struct replay_job *job;
    struct zipccl_transport *whole;
    uint32_t index, local;                          /* of the world; of this process */
    struct zipccl_exec **execs;                     /* [nkeys] */
    struct zipccl_timed_exec *timed;                /* [nkeys] */
    struct zipccl_comm *(*comms)[ZIPCCL_NUM_STEPS]; /* [nkeys]; NULL: not a member, mode not run */
    unsigned char **send;                           /* [nsets] what it sends */
    const struct zipccl_world_device *device;       /* of these buffers; NULL: host memory */
    struct replay_stream *streams;                  /* [nstreams] */
    struct replay_row *rows;                        /* [nrows] of the mode that runs */
    /* The step that runs; under 'lock' from 'generation' on. */
    int mode;
    bool check, skip;
    double start_s, *enter, *end; /* [nops] */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t generation;
    uint32_t nrunning;
    unsigned char *done; /* [nops] */
    bool stop;
    zipccl_status status;
    uint64_t wrong;
};

/* Note why a rank failed, if no other has; returns 'status'. */
zipccl_status replay_fail(struct replay_job *job, zipccl_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for 'what' the ranks of the whole world did together, with the transport's own text. */
zipccl_status replay_fail_world(struct replay_rank *rank, zipccl_status status, const char *what);

/* Elements that a member sends and receives in a call of 'class'. */
void replay_sizes(const struct zipccl_program_class *class, uint32_t member, size_t *send_n,
                  size_t *recv_n);

/* Position of world rank 'rank' in 'part' of 'group'. */
uint32_t replay_member(const struct zipccl_trace_group *group, uint32_t part, uint32_t rank);

/* Elements [first, first + n) of what world rank 'rank' sends of a set; 'dtype' is that set's. */
void replay_elements(const struct replay_job *job, uint32_t set, enum zipccl_dtype dtype,
                     uint32_t rank, size_t first, size_t n, void *out);

/* Bytes of buffers that 'rank' needs, staging of its communicators included. */
double replay_rank_bytes(const struct replay_job *job, uint32_t rank);

/* Memory, communicators and threads of a rank. */
zipccl_status replay_rank_open(struct replay_rank *rank, struct replay_job *job,
                               struct zipccl_transport *whole);
void replay_rank_close(struct replay_rank *rank);

/* Run one step; the times are in 'enter' and 'end' [nops], seconds from the barrier before it. */
zipccl_status replay_step(struct replay_rank *rank, int mode, bool check, double *enter,
                          double *end);

/* Save what mode adaptive has learnt, if that is asked for. */
zipccl_status replay_save_state(struct replay_rank *rank);

/* One collective of the step, op number 'op', on the stream's thread. */
zipccl_status replay_call(struct replay_stream *stream, uint32_t op);

/* Make the result from what the job gathered; only in the process with rank 0. */
zipccl_status replay_result(const struct replay_job *job, struct zipccl_replay_result **out,
                            struct zipccl_error *error);

#endif
