/*
 * import_et.h - PyTorch's execution trace, as it is read
 *
 * What ExecutionTraceObserver writes: every operator that the host called, without times.  Of that
 * the calls of communication are kept, as the metadata that a profiler file would have of them, so
 * that what import_kineto.h has for those does the rest.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_IMPORT_ET_H
#define ZIPCCL_TRACES_IMPORT_ET_H

#include "traces/import_kineto.h"

/* True if a file that starts with 'head' is one. */
bool et_detect(const char *head, size_t nbytes);

/*
 * Read 'path' into the metas, groups, rank and world of 'file'; metas stand in the order of the
 * host's calls, 'start_ns' is the number of the node.  kineto_file_free() also after a failure.
 */
zipccl_status et_read(const char *path, struct kineto_file *file, struct zipccl_error *error);

/* The rank of a file among 'nfiles': as its calls tell it, else as its name does; -1: neither. */
int64_t et_rank(const struct kineto_file *file, size_t nfiles);

/* An execution trace that was given beside a profiler file of the same rank. */
struct et_beside {
    struct kineto_file file; /* a call that was found is marked 'used' */
    bool used;               /* there is a profiler file of its rank */
};

/*
 * The whole list of what the all-to-all 'meta' of a profiler file sends to whom, of which that has
 * only the beginning; NULL if the execution trace has no such call after those found before.
 */
const char *et_find_split(struct et_beside *beside, const struct kineto_meta *meta);

#endif
