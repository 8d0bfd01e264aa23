/*
 * replay_input.h - what a replay is given: a trace, or a file of another tool imported on the way
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_REPLAY_INPUT_H
#define ZIPCCL_EXPERIMENTS_REPLAY_INPUT_H

#include "sim/result.h"
#include "traces/import.h"

#include <stdio.h>

struct zipccl_replay_input {
    struct zipccl_trace *trace;
    bool imported;
    struct zipccl_import_report report; /* of an import */
    bool bundled;                       /* the payload is taken from bundled samples */
    char *classes[ZIPCCL_NUM_OPS][ZIPCCL_NUM_DTYPES]; /* of them, by call */
};

/*
 * Load 'paths', importing them if they are of another tool, or a folder of files of one; several are
 * ranks of one step (zipccl_foreign_joins() in trace/foreign.h).  What has no tensors then gets the bundled classes of samples, where its report is of a profiler.
 *
 * options  'nranks' is the world of a file to import that does not say it; a trace is taken to that
 *          many ranks (traces/rescale.h), along the groups that grow when nobody says which
 * map      [nmap] "GROUP=SIZE", of a trace or of what was imported (traces/rescale.h)
 * ngpus   of the cluster: the world where neither file nor 'options' says it
 * ZIPCCL_ERR_INPUT also if it is a trace and other options are given, which then mean nothing; else as
 * zipccl_trace_load() and zipccl_import_to_memory().
 */
zipccl_status zipccl_replay_input_load(const char *const *paths, size_t npaths,
                                       const struct zipccl_import_options *options,
                                       const char *const *map, size_t nmap, uint64_t ngpus,
                                       struct zipccl_replay_input *input,
                                       struct zipccl_error *error);
void zipccl_replay_input_release(struct zipccl_replay_input *input);

/*
 * Note in 'result' what the tensors are that ratios come from, if their file says so, and what an
 * import assumed.  ZIPCCL_ERR_NOMEM; ZIPCCL_ERR_IO if the file is gone.
 */
zipccl_status zipccl_replay_input_note(const struct zipccl_replay_input *input,
                                       struct zipccl_replay_result *result,
                                       struct zipccl_error *error);

#endif
