/*
 * rescale.h - a trace of n ranks taken to m, by copies of the model along its data-parallel groups
 *
 * Each rank keeps its work and its batch (weak scaling).  Groups of data parallelism grow or
 * shrink; all others (tensor, pipeline, expert, context) keep their size, and there are more or
 * fewer of them.  What a call moves follows: shards of a tensor that all members have a part of
 * become smaller or larger, sums do not.  It does not model another division of the model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_RESCALE_H
#define ZIPCCL_TRACES_RESCALE_H

#include "traces/trace.h"

struct zipccl_rescale_options {
    uint32_t nranks;           /* a multiple of the trace's, or a divisor; 0: as 'map' says */
    const char *const *scaled; /* [nscaled] names of sets that grow; NULL: see below */
    size_t nscaled;
    const char *const
        *map; /* [nmap] "NAME=SIZE": the set has groups of SIZE; the old one: it stays */
    size_t nmap;
    const char *samples; /* as the header shall have it; NULL: none */
};

struct zipccl_rescale_report {
    uint32_t from, to;
    uint64_t nshards;  /* calls (lines) whose count was changed */
    uint64_t nrounded; /* of those, counts that did not divide */
    uint64_t ntimes;   /* recorded times that were dropped, as they were of other groups */
    uint64_t ntables;  /* tables of uneven calls that were spread over other members */
};

/*
 * True if a set grows when nobody says which: its name has "dp", "fsdp", "zero", "ddp", "edp" or
 * "data" in it, or is "world"; or it has all ranks and is not called after another parallelism.
 * Where a set is called "replicas" or "replicate" (copies of a group of shards, HSDP), that one
 * grows, and those with "dp", "fsdp", "zero", "ddp" or "data", the shards, stay.
 */
bool zipccl_rescale_grows(const struct zipccl_trace_header *header, uint32_t group);

/*
 * Which sets grow or shrink, and to how many ranks the trace goes.  Sets that neither 'scaled' nor
 * 'map' name go by the rule above; where a map changes a set of another parallelism, of those only
 * sets whose groups contain all that change, such as the world's.
 *
 * grows  [header.ngroups]
 *
 * ZIPCCL_ERR_INPUT as zipccl_trace_rescale().
 */
zipccl_status zipccl_rescale_choose(const struct zipccl_trace *trace,
                                    const struct zipccl_rescale_options *options, bool *grows,
                                    uint32_t *nranks, struct zipccl_error *error);

/*
 * Write 'trace' for the ranks that were asked for to 'out_path'.  ZIPCCL_ERR_INPUT if the ranks do
 * not divide, a name is none of a set's, sizes of 'map' do not agree with each other or with
 * 'nranks', a pairwise call is in a set that grows, or a set or event that stays would be cut.
 */
zipccl_status zipccl_trace_rescale(const struct zipccl_trace *trace,
                                   const struct zipccl_rescale_options *options,
                                   const char *out_path, struct zipccl_rescale_report *report,
                                   struct zipccl_error *error);

#endif
