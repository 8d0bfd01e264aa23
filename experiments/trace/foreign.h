/*
 * foreign.h - files of other tools, given where a trace is expected
 *
 * It tells them from traces, looks into them, and says of what is neither what it is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_FOREIGN_H
#define ZIPCCL_EXPERIMENTS_FOREIGN_H

#include "experiments/trace/inspect.h"
#include "traces/import.h"
#include "traces/trace.h"

/* What is to be imported together, and what a folder holds besides. */
struct zipccl_foreign_files {
    char **names;
    size_t n;
    uint64_t nskipped; /* JSON of a folder that is of no known format, as a config.json is */
    char skipped[128]; /* the name of the first of them */
};

/*
 * Files of 'paths' [npaths], and of folders what an importer would read; the caller frees, also after
 * a failure.  ZIPCCL_ERR_INPUT for a folder without any; ZIPCCL_ERR_IO.
 */
zipccl_status zipccl_foreign_list(const char *const *paths, size_t npaths,
                                  struct zipccl_foreign_files *files, struct zipccl_error *error);
void zipccl_foreign_free(struct zipccl_foreign_files *files);

/* Note in the report of their import what was skipped, if anything was.  ZIPCCL_ERR_NOMEM. */
zipccl_status zipccl_foreign_note(const struct zipccl_foreign_files *files,
                                  struct zipccl_import_report *report, struct zipccl_error *error);

/*
 * Whether 'path' is a regular file that one of the importers knows, or a folder with one and
 * without a trace; what is no trace either is left to its reader.
 */
bool zipccl_foreign_is(const char *path);

/*
 * Whether 'paths' [npaths], more than one, are ranks of one step: files of one folder, of formats
 * that have a file a rank, and no archives.  Others are a job each.
 */
bool zipccl_foreign_joins(const char *const *paths, size_t npaths);

/*
 * Why 'path', which is not foreign, could not be read: 'why' of the reader of traces (empty: not
 * asked yet), or better, where an importer knows what the file is or nobody does.  Returns 'status',
 * or ZIPCCL_OK if 'why' is empty and there is nothing to say.
 */
zipccl_status zipccl_foreign_explain(const char *path, zipccl_status status,
                                     const struct zipccl_error *why, struct zipccl_error *error);

/*
 * Load the trace at 'path', for commands that import nothing: what is foreign is refused with the
 * command that makes a trace of it, else as zipccl_trace_load() and zipccl_foreign_explain().
 */
zipccl_status zipccl_foreign_load(const char *path, struct zipccl_trace **out,
                                  struct zipccl_error *error);

/*
 * Import 'paths', which are foreign, and inspect the trace that it gives, as zipccl_inspect() does;
 * what had to be assumed is printed before.  The errors of both.
 */
zipccl_status zipccl_foreign_inspect(const char *const *paths, size_t npaths, const char *json_path,
                                     zipccl_inspect_fn *print, zipccl_inspect_fn *json,
                                     struct zipccl_error *error);

#endif
