/*
 * plan_file.h - one plan with all of its steps as a file: made in one place, run in another
 *
 * JSON, schema "zipccl.plan_steps" version 1 (docs/plan.md).  What a reader gets is well formed and
 * no more: whether it is a plan for certain ranks, zipccl_plan_validate() says, and a plan that it
 * has not passed must not be run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_PLAN_FILE_H
#define ZIPCCL_EXPERIMENTS_PLAN_FILE_H

#include "core/plan.h"

#include <stdio.h>

#define ZIPCCL_PLAN_FILE_SCHEMA "zipccl.plan_steps"
enum { ZIPCCL_PLAN_FILE_VERSION = 1 };

/* Write 'plan', made for ranks on 'nodes' nodes.  ZIPCCL_ERR_IO, ZIPCCL_ERR_NOMEM. */
zipccl_status zipccl_plan_file_write(const struct zipccl_plan *plan, uint32_t nodes, FILE *out,
                                     struct zipccl_error *error);

/*
 * Read a plan; the caller destroys '*out'.  Every key must be there once and no other, every number
 * within its range (sizes at most 2^40, so that no sum of them wraps), places in staging aligned as
 * kernels need it, and the digest, if there is one, that of the plan.
 *
 * text   [nbytes], no NUL needed; 'name' is what errors call it
 * nodes  out, of the ranks that it was made for
 * ZIPCCL_ERR_INPUT with the place, what was found and what expected; ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_plan_file_parse(const char *name, const char *text, size_t nbytes,
                                     struct zipccl_plan **out, uint32_t *nodes,
                                     struct zipccl_error *error);

/* The same of a file of at most 64 MiB; also ZIPCCL_ERR_IO. */
zipccl_status zipccl_plan_file_read(const char *path, struct zipccl_plan **out, uint32_t *nodes,
                                    struct zipccl_error *error);

#endif
