/*
 * plan_check.h - what the parts of the validator share
 *
 * Private to core.  plan_validate.c checks each step by itself; plan_trace.c follows the bytes of
 * all ranks through all steps, as ranges that a step reads or writes; plan_hazard.c checks these
 * ranges, rank by rank.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_PLAN_CHECK_H
#define ZIPCCL_CORE_PLAN_CHECK_H

#include "core/group.h"
#include "core/plan.h"

struct zipccl_check {
    const struct zipccl_plan *plan;
    const struct zipccl_topology *topology;
    size_t size; /* of an element */
    bool in_place;
    const size_t *splits;                    /* [nranks * nranks], uneven ops */
    const size_t *send_displs, *recv_displs; /* [nranks * nranks] packed, uneven ops */
    /* [nsteps] steps of each lane below this number have ended before the step starts. */
    uint32_t (*before)[2];
    struct zipccl_error *error;
};

/* Whether step 'a' has ended when step 'b' starts, in every run. */
static inline bool zipccl_check_ordered(const struct zipccl_check *c, uint32_t a, uint32_t b)
{
    return a < c->before[b][c->plan->steps[a].lane];
}

/* Fail with "step N (kind) breaks rule 'rule': ..."; returns ZIPCCL_ERR_ARG. */
zipccl_status zipccl_check_fail(const struct zipccl_check *c, uint32_t step, const char *rule,
                                const char *format, ...) __attribute__((format(printf, 4, 5)));

/* How far a value has been reduced. */
enum zipccl_level {
    ZIPCCL_LEVEL_DATA, /* what rank 'who' sends */
    ZIPCCL_LEVEL_NODE, /* the sum over node 'who' */
    ZIPCCL_LEVEL_ALL   /* the sum over all ranks */
};

#define ZIPCCL_NOBODY UINT32_MAX

/* What a range holds: bytes [lo, lo + nbytes) of the send buffers, coded or as they are. */
struct zipccl_content {
    uint32_t who; /* see enum zipccl_level; NOBODY: unknown, and reported elsewhere */
    uint16_t chunk;
    uint8_t level;
    uint8_t part; /* enum zipccl_part: of a message in parts this one; 0: not in parts */
    bool coded;
    size_t lo, nbytes;
};

/* A step with a raw resend may run either way; both are followed at once. */
enum zipccl_when { ZIPCCL_ALWAYS, ZIPCCL_NO_OVERFLOW, ZIPCCL_OVERFLOWED };

/* A range that a step reads or writes on one rank. */
struct zipccl_access {
    uint32_t step;
    uint32_t source, prev; /* read: the write that it sees; write: the one before in this buffer */
    uint16_t resolve;      /* whose outcome 'when' is about */
    uint8_t buf, when;
    bool write;
    bool noop; /* in place: source and destination are the same bytes */
    bool user; /* read of the send buffer, which in place lies in the receive buffer */
    bool bad;  /* read: finds something else than it needs */
    size_t lo, hi;
    struct zipccl_content content;
};

struct zipccl_accesses {
    struct zipccl_access *list;
    uint32_t n, room;
    uint32_t *newest; /* [bufs * slots] last write, by buffer and slot */
};

/* Byte at which rank's send (or receive) buffer starts in what an in-place call has of both. */
size_t zipccl_check_origin(const struct zipccl_check *c, uint32_t rank, enum zipccl_buf buf);

/* Elements of the whole block from 'src' to 'dst', 0 if there is none, and where it begins. */
size_t zipccl_check_block_n(const struct zipccl_check *c, uint32_t src, uint32_t dst);
size_t zipccl_check_block_in_send(const struct zipccl_check *c, uint32_t src, uint32_t dst);

/* Follow the bytes of all ranks; every step has passed the checks of its own. */
zipccl_status zipccl_check_world(const struct zipccl_check *c);

/* Check the ranges of 'rank' against each other and against what it must receive. */
zipccl_status zipccl_check_accesses(const struct zipccl_check *c, uint32_t rank,
                                    struct zipccl_accesses *accesses);

#endif
