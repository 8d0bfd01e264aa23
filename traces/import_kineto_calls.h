/*
 * import_kineto_calls.h - the calls of one rank while they are made
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_IMPORT_KINETO_CALLS_H
#define ZIPCCL_TRACES_IMPORT_KINETO_CALLS_H

#include "traces/import_kineto.h"

#define KINETO_MAX_STREAMS 255 /* of communication; the first stream is that of compute */

/* One of the rank's communicators: calls of one are in order on all members. */
struct kineto_lane {
    uint32_t set, number;
    const char *pg_name;
};

struct kineto_maker {
    struct kineto_import *k;
    struct kineto_file *file;
    struct kineto_rank *rank;
    struct zipccl_importer at;
    uint32_t *kernels; /* communication in host order */
    size_t nkernels;
    struct kineto_lane *lanes;
    size_t nlanes, lane_room;
    int64_t *last_launch;      /* [nthreads] of communication before this one */
    struct kineto_meta **told; /* [nkernels] calls of the execution trace; NULL: no use */
    bool timeless;             /* the file has no times: what has no sizes is left out */
};

/* True if a meta tells of data that moves. */
bool kineto_is_data(const struct kineto_meta *meta);

/* Write what 'meta' moves to 'call', of which only stream and times are set. */
zipccl_status kineto_set_payload(struct kineto_maker *m, const struct kineto_meta *meta,
                                 const char *kernel, struct kineto_call *call);

#endif
