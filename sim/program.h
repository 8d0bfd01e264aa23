/*
 * program.h - a trace ready to be run: ops in program order, who takes part, what depends on what
 *
 * Repeats and loops are written out into ops.  Events that move the same (op, group, type, count,
 * splits, samples) share a call class, so that they are priced once; events of one (op, group,
 * dtype, count, nranks, stream) share a row of the result.  It knows no time of a collective.
 *
 * A folded program runs classes of ranks that do the same (fold.h) in place of ranks: wherever a
 * rank is an index, it is then a class, and groups hold one part of each kind.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_PROGRAM_H
#define ZIPCCL_SIM_PROGRAM_H

#include "models/cluster.h"
#include "sim/fold.h"
#include "sim/samples.h"
#include "traces/trace.h"

#define ZIPCCL_NO_PART UINT32_MAX

/* What is common to all ops of one event. */
struct zipccl_program_event {
    const struct zipccl_trace_group *group; /* NULL: compute */
    const struct zipccl_event *event;
    uint32_t *part_of;   /* [nranks] part of the group a rank runs it in, or ZIPCCL_NO_PART */
    uint32_t *nmembers;  /* [nparts] ranks that take part in each; compute: [1] */
    uint32_t nparts;     /* compute: 1 */
    bool communication;  /* of fixed time: it has no group, and 'compute_s' is no compute */
    uint32_t class, row; /* collectives */
    uint64_t calls;      /* ops of this event */
    double *
        compute_s; /* [nranks] alone: the longer of its SM and its memory time; NULL unless compute */
    double *sm_s;      /* [nranks] all SMs for so long */
    double *hbm_bytes; /* [nranks] memory traffic */
};

struct zipccl_program_op {
    uint32_t event; /* index into 'events' */
    uint32_t ndeps, first_dep;
};

/* One distinct call. */
struct zipccl_program_class {
    const struct zipccl_event *event;       /* an example */
    const struct zipccl_trace_group *group; /* with world ranks, to be placed and priced */
    uint32_t set;                           /* of samples */
    size_t *splits;                         /* [size * size] uneven ops, else NULL */
};

struct zipccl_program_row {
    const struct zipccl_event *event; /* an example */
    uint32_t rank;                    /* the one that makes most calls, the first of several */
    uint64_t calls;                   /* of that rank */
    double recorded_s;                /* its sum over calls; < 0 if one is not recorded */
};

struct zipccl_program {
    const struct zipccl_trace *trace;
    struct zipccl_fold *fold; /* NULL: not folded */
    uint32_t nranks, nstreams;
    size_t nevents;
    struct zipccl_program_event *events; /* [nevents] as in the trace; loop marks are empty */
    size_t nops, room;
    struct zipccl_program_op *ops; /* [nops] */
    size_t ndeps, deps_room;
    uint32_t *deps; /* ops, each before the op that waits for it */
    uint32_t nclasses, nrows;
    struct zipccl_program_class *classes;
    struct zipccl_program_row *rows;
    unsigned char *runs;   /* [world] ranks of the event that is being added */
    uint32_t *last_op;     /* [nevents] while building */
    uint64_t *order;       /* [nevents] events by id, while building */
    bool scaled, recorded; /* compute time from flops; from recorded durations */
};

/*
 * Build the program of 'trace' for 'cluster'; 'trace' must outlive it.
 *
 * ZIPCCL_ERR_INPUT with the event and the reason: no collectives or none that moves data, another
 * world than the cluster has, unknown or later dependencies, compute without a duration, samples that do not fit.
 * ZIPCCL_ERR_UNSUPPORTED if ops times ranks are too many to keep.
 */
zipccl_status zipccl_program_create(const struct zipccl_trace *trace,
                                    const struct zipccl_cluster *cluster,
                                    struct zipccl_samples *samples, struct zipccl_program **out,
                                    struct zipccl_error *error);

/* The same for T0, with ranks that do the same folded into one. */
zipccl_status zipccl_program_create_folded(const struct zipccl_trace *trace,
                                           const struct zipccl_cluster *cluster,
                                           struct zipccl_samples *samples,
                                           struct zipccl_program **out, struct zipccl_error *error);
void zipccl_program_destroy(struct zipccl_program *program);

/* How many ranks of the world 'rank' stands for. */
static inline uint32_t zipccl_program_weight(const struct zipccl_program *program, uint32_t rank)
{
    return program->fold != NULL ? program->fold->size[rank] : 1;
}

/* Ranks of part 'part', in the group's order; a folded part may hold one several times. */
static inline const uint32_t *zipccl_program_members(const struct zipccl_program_event *event,
                                                     uint32_t part)
{
    return event->group->ranks + (size_t)part * event->group->size;
}

#endif
