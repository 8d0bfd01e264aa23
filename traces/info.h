/*
 * info.h - what a trace holds: calls and bytes, compute, samples
 *
 * It adds up what the file says; it predicts no time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_INFO_H
#define ZIPCCL_TRACES_INFO_H

#include "traces/trace.h"

#include <stdio.h>

/* All calls with one op, group, dtype and count. */
struct zipccl_trace_info_row {
    enum zipccl_op op;
    uint32_t group; /* index into the header's groups */
    enum zipccl_dtype dtype;
    uint64_t count;
    uint64_t calls;  /* repeats and loops written out */
    uint64_t nbytes; /* of all calls, each as zipccl_trace_event_nbytes() */
    uint64_t ncalls_with_samples;
    uint64_t ncalls_recorded;
    double recorded_s; /* of the calls that have a recorded time */
};

/* A sample that events name. */
struct zipccl_trace_info_sample {
    char *name;
    size_t ntensors; /* found in the samples file; 0: missing */
    uint64_t nbytes;
};

struct zipccl_trace_info {
    uint64_t nevents;                                /* lines */
    uint64_t ncompute, ncollective;                  /* instances: repeats and loops written out */
    double flops, hbm_bytes, duration_s, recorded_s; /* sums over instances, not over ranks */
    uint64_t nwith_flops, nwith_duration;            /* compute instances */
    uint64_t ncommunication; /* instances of communication of which only the time is known */
    double communication_s;  /* their sum, each with the longest of its ranks */
    uint64_t nbytes;         /* of all calls */
    size_t nrows;
    struct zipccl_trace_info_row *rows; /* [nrows] by op, group, dtype, count */
    size_t nsamples, nmissing;
    struct zipccl_trace_info_sample *samples; /* [nsamples] by name */
    size_t ntensors;                          /* in the samples file */
    uint64_t tensor_nbytes;
};

/*
 * Bytes of the buffer of one call on one rank, as nccl-tests counts "size": all_gather,
 * reduce_scatter and alltoall the whole of all members, all_reduce, broadcast and sendrecv
 * 'count' elements, alltoallv the mean of what a member sends.
 */
uint64_t zipccl_trace_event_nbytes(const struct zipccl_trace_header *header,
                                   const struct zipccl_event *event);

/*
 * Read all that 'reader' has left and add it up; the samples file, if the trace has one, is opened.
 *
 * ZIPCCL_ERR_INPUT for a trace without events, a missing or wrong samples file, or sums over 2^64;
 * else the reader's errors.  Names of tensors that the samples file lacks are counted, not refused.
 */
zipccl_status zipccl_trace_info_read(struct zipccl_trace_reader *reader,
                                     struct zipccl_trace_info *info, struct zipccl_error *error);
void zipccl_trace_info_free(struct zipccl_trace_info *info);

/* Write the summary of the trace at 'path' to 'out', for people; nothing is written on failure. */
zipccl_status zipccl_trace_info_print(const char *path, FILE *out, struct zipccl_error *error);

/* The same as one JSON object, schema "zipccl-trace-info" version 1, units in the key names. */
zipccl_status zipccl_trace_info_json(const char *path, FILE *out, struct zipccl_error *error);

#endif
