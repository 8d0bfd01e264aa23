/*
 * program_calls.h - call classes and rows of a program; private to program.c
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_PROGRAM_CALLS_H
#define ZIPCCL_SIM_PROGRAM_CALLS_H

#include "sim/program.h"

/* Give the collective 'event' its class and its row. */
zipccl_status zipccl_program_add_call(struct zipccl_program *program,
                                      const struct zipccl_event *event,
                                      struct zipccl_samples *samples,
                                      struct zipccl_program_event *out, struct zipccl_error *error);

/* When all ops are there: what one rank calls in each row, in one pass.  ZIPCCL_ERR_NOMEM. */
zipccl_status zipccl_program_count_calls(struct zipccl_program *program);

/* Whether any collective has something to move and somebody to move it to. */
bool zipccl_program_moves_data(const struct zipccl_program *program);

#endif
