/*
 * trace_gen.h - headers and events as JSON
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_TRACE_GEN_H
#define ZIPCCL_TRACES_TRACE_GEN_H

#include "traces/trace.h"

#include <yajl/yajl_gen.h>

/* Append one object to 'gen'; what is given has been checked, so nothing can fail but memory,
 * which yajl does not report. */
void zipccl_trace_gen_header(yajl_gen gen, const struct zipccl_trace_header *header);
void zipccl_trace_gen_event(yajl_gen gen, const struct zipccl_trace_header *header,
                            const struct zipccl_event *event);
void zipccl_trace_gen_end(yajl_gen gen, uint64_t nevents);

/* Pieces that other writers of JSON use too. */
void zipccl_gen_key(yajl_gen gen, const char *key);
void zipccl_gen_string(yajl_gen gen, const char *key, const char *value);
void zipccl_gen_uint(yajl_gen gen, const char *key, uint64_t value);
/* The shortest of 15 to 17 digits that reads back as the same number. */
void zipccl_gen_real(yajl_gen gen, const char *key, double value);

#endif
