/*
 * state.h - what a communicator has learnt, as text that another run can load
 *
 * Reader and writer of the format in core/STATE.md; they know no communicator.  What is read is written
 * again with the same bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_STATE_H
#define ZIPCCL_CORE_STATE_H

#include "core/classes.h"
#include "core/codec.h"
#include "core/trials.h"

#define ZIPCCL_STATE_VERSION 3u

/* No number in the text is larger; what has grown past it is written as this. */
#define ZIPCCL_STATE_MOST (((uint64_t)1 << 53) - 1)

/* A file with more lines of a kind is refused. */
#define ZIPCCL_STATE_MOST_EVEN  2048u
#define ZIPCCL_STATE_MOST_PAIRS 65536u

struct zipccl_state_even {
    enum zipccl_op op;
    enum zipccl_dtype dtype;
    size_t count;
    struct zipccl_class_state state; /* 'narrowest', 'seen' and statistics are not in the text */
    struct zipccl_trials trials;     /* without 'seen' */
    uint32_t coded_ppm;
    enum zipccl_effort effort;
};

struct zipccl_state_pair {
    enum zipccl_op op;
    enum zipccl_dtype dtype;
    uint32_t peer;
    bool incoming;
    struct zipccl_class_state state;
};

struct zipccl_state {
    uint32_t rank, nranks;
    uint32_t agreement;                 /* version of what ranks must do alike */
    uint64_t options, params, topology; /* digests of the settings */
    size_t neven, npairs;
    struct zipccl_state_even *even;  /* [neven] least recently used first */
    struct zipccl_state_pair *pairs; /* [npairs] by op, type, peer, direction */
};

/*
 * Read 'text' [nbytes].  'out' is to be released whatever the status.
 *
 * ZIPCCL_ERR_INPUT with the line, what was found and what was expected; ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_state_read(const char *text, size_t nbytes, struct zipccl_state *out,
                                struct zipccl_error *error);

/* Write into '*text' [*nbytes], which the caller frees.  ZIPCCL_ERR_NOMEM. */
zipccl_status zipccl_state_write(const struct zipccl_state *state, char **text, size_t *nbytes);

/* Free what 'state' owns. */
void zipccl_state_release(struct zipccl_state *state);

#endif
