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
    uint32_t nranks;           /* a multiple of the trace's, or a divisor */
    const char *const *scaled; /* [nscaled] names of sets that grow; NULL: see below */
    size_t nscaled;
    const char *samples; /* as the header shall have it; NULL: none */
};

struct zipccl_rescale_report {
    uint32_t from, to;
    uint64_t nshards;  /* calls (lines) whose count was changed */
    uint64_t nrounded; /* of those, counts that did not divide */
    uint64_t ntimes;   /* recorded times that were dropped, as they were of other groups */
};

/*
 * True if a set grows when nobody says which: its name has "dp", "fsdp", "zero", "ddp", "edp" or
 * "data" in it, or is "world"; or it has all ranks and is not called after another parallelism.
 * Where a set is called "replicas" or "replicate" (copies of a group of shards, HSDP), that one
 * grows, and those with "dp", "fsdp", "zero", "ddp" or "data", the shards, stay.
 */
bool zipccl_rescale_grows(const struct zipccl_trace_header *header, uint32_t group);

/*
 * Write 'trace' for options->nranks ranks to 'out_path'.  ZIPCCL_ERR_INPUT if the ranks do not
 * divide, a name is none of a set's, an uneven or pairwise call is in a set that grows, or a set or
 * event that stays would be cut.
 */
zipccl_status zipccl_trace_rescale(const struct zipccl_trace *trace,
                                   const struct zipccl_rescale_options *options,
                                   const char *out_path, struct zipccl_rescale_report *report,
                                   struct zipccl_error *error);

#endif
