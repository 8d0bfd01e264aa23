/*
 * rescale_sets.h - which rank of a rescaled trace is a copy of which, and its sets
 *
 * Ranks keep the order of their axes: with blocks of 'block' ranks, the smallest aligned ones that
 * hold every group that grows (but for groups of all ranks), copies of a block stand behind it, so
 * that data parallelism inside pipeline stages stays inside them.  Private to traces/rescale*.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_RESCALE_SETS_H
#define ZIPCCL_TRACES_RESCALE_SETS_H

#include "traces/arena.h"
#include "traces/rescale.h"

struct rescaling {
    const struct zipccl_trace *trace;
    const struct zipccl_rescale_options *options;
    struct zipccl_rescale_report *report;
    struct zipccl_error *error;
    struct zipccl_arena arena;
    struct zipccl_trace_header header;
    uint32_t from, to, factor, block;
    bool up;
    bool *grows;       /* [ngroups] */
    uint32_t *origin;  /* [to] the old rank that each is or is a copy of */
    uint32_t *place;   /* [from] scratch: 1 + index in a list of ranks */
    uint32_t *ranks;   /* [to] of an event */
    double *seconds;   /* [to] of an event */
    uint64_t nentries; /* of tables that were spread */
    int32_t *table_of; /* [nsplits] the set whose calls use a table that is spread; -1: none */
};

zipccl_status rescale_wrong(const struct rescaling *r, const char *what, const char *name);
zipccl_status rescale_nomem(const struct rescaling *r);

/* Set block, factor and origin; 'from', 'to' and 'grows' are known. */
void rescale_number(struct rescaling *r);

/* The rank that 'old' has become; UINT32_MAX if it is gone. */
uint32_t rescale_rank(const struct rescaling *r, uint32_t old, uint32_t copy);

/* Sets of the new header, then tables (rescale_tables.c). */
zipccl_status rescale_groups(struct rescaling *r);
zipccl_status rescale_tables(struct rescaling *r);

/* Members of the group [n] 'from' of a set that grows, in their new order; how many. */
uint32_t rescale_members(const struct rescaling *r, const uint32_t *from, uint32_t n, uint32_t *to);

/* Where member 'member' of the group 'from', or its first copy, is in that order; UINT32_MAX: gone. */
uint32_t rescale_member(const struct rescaling *r, const uint32_t *from, uint32_t member);

#endif
