/*
 * state_files.h - what communicators of a run have learnt, in a folder: a file for each rank
 *
 * The options --state-load, --state-save and --state-freeze of real runs.  The files are those of
 * core/STATE.md.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_STATE_FILES_H
#define ZIPCCL_EXPERIMENTS_STATE_FILES_H

#include "core/zipccl.h"

/* As on the command line; all NULL and false: nothing is asked for. */
struct zipccl_state_files {
    const char *load, *save; /* folders; NULL: not wanted */
    bool freeze;             /* nothing is learnt in this run */
};

/*
 * Check, before anything runs, that the folders are there or, of 'save', can be made; nothing is made.
 * ZIPCCL_ERR_INPUT, ZIPCCL_ERR_IO with the path and the reason.
 */
zipccl_status zipccl_state_files_check(const struct zipccl_state_files *files,
                                       struct zipccl_error *error);

/* Settings that follow from the options. */
void zipccl_state_files_config(const struct zipccl_state_files *files,
                               struct zipccl_comm_config *config);

/*
 * Load into 'comm', before its first call, what rank 'rank' of the world had saved under 'name'.
 * Collective over the communicator.  Statuses are those of zipccl_comm_load_state_file(), which leaves
 * the reason with the communicator.  Nothing happens if it was not asked for.
 *
 * name  of the communicator, if there are several; "": none
 */
zipccl_status zipccl_state_files_load(const struct zipccl_state_files *files, const char *name,
                                      uint32_t rank, struct zipccl_comm *comm);

/* Save it, making the folder if it is not there; statuses are those of zipccl_comm_save_state_file(). */
zipccl_status zipccl_state_files_save(const struct zipccl_state_files *files, const char *name,
                                      uint32_t rank, struct zipccl_comm *comm,
                                      struct zipccl_error *error);

/*
 * What a run that failed with 'status' ends with: if files were not loaded, the input is wrong, also
 * where it is only together that they are.
 */
zipccl_status zipccl_state_files_status(zipccl_status status, bool not_loaded);

/*
 * True if a failure tells less than one with 'other': ranks hear of one another's failures, and who
 * failed first is to tell why.
 */
bool zipccl_tells_less(zipccl_status status, zipccl_status other);

#endif
