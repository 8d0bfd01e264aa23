/*
 * iterate.h - what a trace runs, in program order, with repeats and loops written out
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_ITERATE_H
#define ZIPCCL_TRACES_ITERATE_H

#include "traces/trace.h"

/* More instances than this are refused: a mistake in a repeat, or more than memory holds. */
#define ZIPCCL_TRACE_MAX_INSTANCES ((uint64_t)10000000)

/*
 * Called for each instance of a compute or collective event; 'number' counts from 0 over the whole
 * trace.  Any status but ZIPCCL_OK ends the walk.
 */
typedef zipccl_status (*zipccl_trace_visit)(void *context, const struct zipccl_event *event,
                                            uint64_t number);

/*
 * Walk through 'trace' in program order.
 *
 * visit       NULL to count only
 * ninstances  how many there are, or NULL
 *
 * Cost: one call an instance.  ZIPCCL_ERR_INPUT, before the first call, if there are more than
 * ZIPCCL_TRACE_MAX_INSTANCES; ZIPCCL_ERR_ARG if loops are not balanced; else what 'visit' returned.
 * The caller puts the file's name before the text, as before all that is wrong with a trace.
 */
zipccl_status zipccl_trace_expand(const struct zipccl_trace *trace, zipccl_trace_visit visit,
                                  void *context, uint64_t *ninstances, struct zipccl_error *error);

#endif
