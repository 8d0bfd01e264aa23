/*
 * perf_rows.h - what perf found: rows, settings, and how they become JSON and CSV
 *
 * The same rows from real ranks ("measured") and from simulation ("simulated"), so that two files
 * compare row by row.  docs/perf.md describes the keys.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_PERF_ROWS_H
#define ZIPCCL_EXPERIMENTS_PERF_ROWS_H

#include "experiments/perf/perf_options.h"
#include "sim/result.h"
#include "experiments/program/output.h"

#include <stdio.h>

#define ZIPCCL_PERF_SCHEMA_NAME "zipccl.perf"
enum { ZIPCCL_PERF_SCHEMA_VERSION = 1 };

/* One call as nccl-tests derives it from a size. */
struct zipccl_perf_call {
    enum zipccl_op op;
    enum zipccl_dtype dtype;
    enum zipccl_redop redop;
    uint32_t root;
    size_t count;      /* NCCL argument; alltoallv: elements of the mean pair */
    size_t send_n;     /* elements of the send buffer, the largest rank's */
    size_t recv_n;     /* the same of the receive buffer */
    uint64_t size;     /* bytes, the table's first column */
    bool has_in_place; /* NCCL defines the op in place */
};

/* One (call, mode, in place or not). */
struct zipccl_perf_row {
    struct zipccl_perf_call call;
    uint32_t nranks, nodes;
    enum zipccl_perf_mode mode;
    bool in_place;
    char strategy[48];
    uint32_t nchunks;
    enum zipccl_effort effort;
    int capacity_class; /* of fixed messages, after the last call; ZIPCCL_NO_CLASS: none */
    uint32_t iters;
    double time_s, time_min_s, time_q1_s, time_q3_s, time_max_s; /* over iterations */
    double time_mean_s, time_p99_s, time_cv;                     /* cv: deviation / mean */
    double *times_s;                        /* [iters] of each, if they are kept; owned */
    double raw_bytes, wire_bytes;           /* sent by a rank in a call, mean over ranks */
    double coded_raw, coded_wire;           /* the same of what was coded: elements, messages */
    double encode_s, decode_s;              /* of the busiest rank in a call; < 0: not known */
    double to_raw, to_raw_low, to_raw_high; /* raw's time over this one's in the same iteration:
                                               median, and its 95 % interval; 0: no such rows */
    int64_t wrong;                          /* elements; < 0: not checked */
    char date[24];                          /* when it was done; "": not noted */
};

struct zipccl_perf_result {
    bool measured;
    const char *on;   /* "threads", "mpi", "sim" */
    char cluster[64]; /* "": none */
    const char *input;
    uint32_t nranks, nodes;
    size_t nrows, room;
    struct zipccl_perf_row *rows; /* owned */
    size_t nsettings, nassumptions;
    struct zipccl_result_note *settings, *assumptions; /* owned */
};

/* Derive the call of 'nbytes' on 'nranks' ranks, as nccl-tests does. */
void zipccl_perf_call_init(struct zipccl_perf_call *call, enum zipccl_op op,
                           enum zipccl_dtype dtype, enum zipccl_redop redop, uint32_t root,
                           uint64_t nbytes, uint32_t nranks);

/* The call of 'count' elements, NCCL's argument. */
void zipccl_perf_call_of(struct zipccl_perf_call *call, enum zipccl_op op, enum zipccl_dtype dtype,
                         enum zipccl_redop redop, uint32_t root, size_t count, uint32_t nranks);

/* Elements that 'src' sends to 'dst' in an alltoallv of mean pair 'count': 1/n to (2n-1)/n of it. */
size_t zipccl_perf_split_n(size_t count, uint32_t nranks, uint32_t src, uint32_t dst);

/* GB/s of a call that took 'time_s': size / time, and times nccl-tests' factor of the op. */
double zipccl_perf_algbw(const struct zipccl_perf_call *call, double time_s);
double zipccl_perf_busbw(const struct zipccl_perf_call *call, uint32_t nranks, double time_s);

/*
 * raw / wire of what was coded, headers, room and raw resends included; 1 if nothing was.  What a plan sends
 * raw, as within the nodes of two-level ones, is no part of it, as in replays (sim/result.h).
 */
double zipccl_perf_ratio(const struct zipccl_perf_row *row);

/*
 * Fill the times of 'row' from those of its iterations, which are sorted by it.
 *
 * times  [n], n at least 1
 */
void zipccl_perf_row_times(struct zipccl_perf_row *row, double *times, uint32_t n);

/*
 * Fill to_raw and its interval from the times of both in the same iterations.
 *
 * raw, own  [n] in the order of the iterations; scratch [n]
 */
void zipccl_perf_row_pairs(struct zipccl_perf_row *row, const double *raw, const double *own,
                           uint32_t n, double *scratch);

/* Add a row, which is copied and whose times then belong to the result.  ZIPCCL_ERR_NOMEM. */
zipccl_status zipccl_perf_add(struct zipccl_perf_result *result, const struct zipccl_perf_row *row);

/* Add a note to a list: value as printf.  ZIPCCL_ERR_NOMEM. */
zipccl_status zipccl_perf_note(struct zipccl_result_note **notes, size_t *n, const char *name,
                               const char *unit, const char *source, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

void zipccl_perf_release(struct zipccl_perf_result *result);

/* Elements that came out wrong, over all rows that were checked. */
uint64_t zipccl_perf_wrong(const struct zipccl_perf_result *result);

/* All of it as JSON, schema "zipccl.perf", or its rows as CSV.  ZIPCCL_ERR_IO, NOMEM. */
zipccl_status zipccl_perf_json(const struct zipccl_perf_result *result, FILE *out,
                               struct zipccl_error *error);
zipccl_status zipccl_perf_csv(const struct zipccl_perf_result *result, FILE *out,
                              struct zipccl_error *error);

/* The files of a run, checked by the caller before it ran; all appear, or none. */
enum { ZIPCCL_PERF_JSON, ZIPCCL_PERF_CSV, ZIPCCL_PERF_NUM_FILES };
zipccl_status zipccl_perf_write(const struct zipccl_perf_result *result,
                                struct zipccl_output outputs[ZIPCCL_PERF_NUM_FILES],
                                struct zipccl_error *error);

#endif
