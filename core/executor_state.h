/*
 * executor_state.h - what the steps of one run share
 *
 * Private to executor.c (lanes), executor_codec.c, executor_reduce.c and executor_wire.c (the steps).
 * What a step leaves for a later one is kept per slot; the plan's dependencies, which order the
 * users of a slot, order the users of these as well.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_EXECUTOR_STATE_H
#define ZIPCCL_CORE_EXECUTOR_STATE_H

#include "core/capacity.h"
#include "core/executor.h"
#include "core/group.h"

/* Of one staging slot; arrays by message: member * nblocks + block, where a message to all is under
 * its sender.  No step has more than nranks of them. */
struct zipccl_slot_state {
    size_t *size_out, *size_in;       /* [nranks] message bytes; of one in parts its tail's */
    bool *over_out, *over_in;         /* [nranks] did not fit */
    bool *void_out, *void_in;         /* [nranks] EXACT, in parts: what left early is void */
    struct zipccl_encoder *encoders;  /* [nranks] of messages whose early part has been coded */
    size_t rx_stride;                 /* bytes between the members' messages as they arrived */
    struct zipccl_slice *slices;      /* [nranks] what the last ENCODE coded, */
    uint32_t *encoded;                /* [nranks] their places in the arrays, */
    size_t nslices;                   /* how many, */
    const struct zipccl_step *encode; /* and that step */
};

struct zipccl_run_state {
    const struct zipccl_run *run;
    const struct zipccl_plan *plan;
    struct zipccl_transport *transport;
    struct zipccl_exec *exec;
    uint32_t rank, nranks;
    size_t element; /* bytes */
    struct zipccl_slot_state slots[UINT8_MAX + 1];
    bool *armed;                         /* [nsteps] RESOLVE saw an overflow */
    uint16_t *raw_exchange;              /* [nsteps] of a RESOLVE: its raw EXCHANGE, or NONE */
    uint8_t *words;                      /* [2 * nranks * 4] sizes as they travel: out, then in */
    struct zipccl_term *terms;           /* [nranks] what a REDUCE adds up */
    struct zipccl_run_stats wire, codec; /* one per lane, so that they share nothing */
};

/*
 * Around a run, for whoever walks the steps (zipccl_execute(), exec->ops->run).
 *
 * init  start 's' for 'run': refuse what no executor runs, before any byte moves, and allocate what
 *       steps leave for each other; zipccl_run_state_free() in any case
 * stats what the run did
 */
zipccl_status zipccl_run_state_init(struct zipccl_run_state *s, const struct zipccl_run *run,
                                    struct zipccl_transport *transport, struct zipccl_exec *exec);
void zipccl_run_state_free(struct zipccl_run_state *s);
void zipccl_run_state_stats(const struct zipccl_run_state *s, struct zipccl_run_stats *stats);

/* Keep what became of the messages of the last ENCODE into 'slot', whose slices are filled in. */
zipccl_status zipccl_run_keep(struct zipccl_run_state *s, struct zipccl_slot_state *slot);

/* Run one step; statuses as zipccl_execute(). */
zipccl_status zipccl_run_codec_step(struct zipccl_run_state *s, const struct zipccl_step *step);
zipccl_status zipccl_run_wire_step(struct zipccl_run_state *s, const struct zipccl_step *step);

/* Elements of block 'b' that this rank sends to, or receives from, member 'p'. */
static inline size_t zipccl_step_n_out(const struct zipccl_run_state *s,
                                       const struct zipccl_step *step, const struct zipccl_group *g,
                                       uint32_t p, uint32_t b)
{
    if (step->pattern != ZIPCCL_PATTERN_PAIRS)
        return zipccl_group_n(s->plan, step, g, g->self, p, b);
    return zipccl_chunk_n(s->run->send_counts[p], s->plan->chunk_n, step->chunk);
}

static inline size_t zipccl_step_n_in(const struct zipccl_run_state *s,
                                      const struct zipccl_step *step, const struct zipccl_group *g,
                                      uint32_t p, uint32_t b)
{
    if (step->pattern != ZIPCCL_PATTERN_PAIRS)
        return zipccl_group_n(s->plan, step, g, p, g->self, b);
    return zipccl_chunk_n(s->run->recv_counts[p], s->plan->chunk_n, step->chunk);
}

/* True if this rank sends block 'b' to member 'p' in 'step'; self is never a peer. */
static inline bool zipccl_step_sends(const struct zipccl_run_state *s,
                                     const struct zipccl_step *step, const struct zipccl_group *g,
                                     uint32_t p, uint32_t b)
{
    if (p == g->self || (step->pattern == ZIPCCL_PATTERN_BROADCAST && g->self != g->root))
        return false;
    return zipccl_step_n_out(s, step, g, p, b) > 0;
}

static inline bool zipccl_step_receives(const struct zipccl_run_state *s,
                                        const struct zipccl_step *step,
                                        const struct zipccl_group *g, uint32_t p, uint32_t b)
{
    if (p == g->self || (step->pattern == ZIPCCL_PATTERN_BROADCAST && p != g->root))
        return false;
    return zipccl_step_n_in(s, step, g, p, b) > 0;
}

/* Index in the arrays of a slot of the message to member 'p', and of the one from it. */
static inline uint32_t zipccl_index_out(const struct zipccl_step *step,
                                        const struct zipccl_group *g, uint32_t p, uint32_t b)
{
    return (zipccl_step_shares_message(step) ? g->self : p) * g->nblocks + b;
}

static inline uint32_t zipccl_index_in(const struct zipccl_group *g, uint32_t p, uint32_t b)
{
    return p * g->nblocks + b;
}

static inline struct zipccl_group zipccl_step_group(const struct zipccl_run_state *s,
                                                    const struct zipccl_step *step)
{
    return zipccl_group_of(s->transport->topology, step, s->rank);
}

/* Capacity class of the messages that this rank sends to, or receives from, member 'p'. */
static inline int zipccl_step_class_out(const struct zipccl_run_state *s,
                                        const struct zipccl_step *step, uint32_t p)
{
    bool own = step->pattern == ZIPCCL_PATTERN_PAIRS && s->run->send_class != NULL;

    return own ? s->run->send_class[p] : (int)s->plan->capacity_class;
}

static inline int zipccl_step_class_in(const struct zipccl_run_state *s,
                                       const struct zipccl_step *step, uint32_t p)
{
    bool own = step->pattern == ZIPCCL_PATTERN_PAIRS && s->run->recv_class != NULL;

    return own ? s->run->recv_class[p] : (int)s->plan->capacity_class;
}

/* True if 'n' elements travel as a message; false: raw, decided by n and the class alone. */
static inline bool zipccl_step_codes(const struct zipccl_run_state *s,
                                     const struct zipccl_step *step, size_t n, int cls)
{
    return step->form != ZIPCCL_FORM_RAW && n >= s->plan->raw_below_n && cls != ZIPCCL_NO_CLASS;
}

/* How a message of 'n' elements is cut; not at all in plans that are not split. */
static inline struct zipccl_split_cut zipccl_step_split(const struct zipccl_run_state *s,
                                                        const struct zipccl_step *step, size_t n,
                                                        int cls)
{
    if (step->part == 0 || !zipccl_step_codes(s, step, n, cls))
        return (struct zipccl_split_cut){0, 0, 0};
    return zipccl_split_of((enum zipccl_dtype)s->plan->dtype, n);
}

/* Wire size of a FIXED message of 'n' elements, and the room of an EXACT one. */
static inline size_t zipccl_step_capacity(const struct zipccl_run_state *s,
                                          const struct zipccl_step *step, size_t n, int cls)
{
    enum zipccl_dtype dtype = (enum zipccl_dtype)s->plan->dtype;

    if (step->form == ZIPCCL_FORM_EXACT)
        return zipccl_bound(dtype, n);
    if (n == step->n && cls == (int)s->plan->capacity_class)
        return step->capacity;
    return zipccl_capacity(dtype, n, (uint32_t)cls);
}

/*
 * The narrowest class that a message would have fitted, from what both ends know of it: its size,
 * or that it overflowed 'cls'.
 */
static inline int zipccl_step_fit(const struct zipccl_run_state *s, size_t n, int cls,
                                  size_t nbytes, bool overflowed)
{
    if (overflowed)
        return zipccl_class_roomier((enum zipccl_dtype)s->plan->dtype, n, cls);
    return zipccl_class_fit((enum zipccl_dtype)s->plan->dtype, n, nbytes);
}

/* Address of block 'b' of member 'p'; 'from' reads, 'to' writes (never the user's send buffer). */
const char *zipccl_place_from(const struct zipccl_run_state *s, const struct zipccl_place *place,
                              const struct zipccl_group *g, uint32_t p, uint32_t b);
char *zipccl_place_to(const struct zipccl_run_state *s, const struct zipccl_place *place,
                      const struct zipccl_group *g, uint32_t p, uint32_t b);

/* Where the messages in 'src' have come to lie. */
static inline struct zipccl_place zipccl_place_arrived(const struct zipccl_run_state *s,
                                                       struct zipccl_place src)
{
    src.peer_stride = s->slots[src.slot].rx_stride;
    return src;
}

/*
 * Where the raw elements of a message are if it was sent again, else NULL; 'step' is a DECODE or
 * REDUCE.
 */
const char *zipccl_step_resent(const struct zipccl_run_state *s, const struct zipccl_step *step,
                               const struct zipccl_group *g, uint32_t p, uint32_t b);

/* Where the message of member 'p', block 'b' (of 'n' elements) lies, and its bytes. */
const char *zipccl_step_message(const struct zipccl_run_state *s, const struct zipccl_step *step,
                                const struct zipccl_group *g, uint32_t p, uint32_t b, size_t n,
                                size_t *nbytes);

/* Decode it into 'dst'. */
zipccl_status zipccl_step_decode(struct zipccl_run_state *s, const struct zipccl_step *step,
                                 const struct zipccl_group *g, uint32_t p, uint32_t b, size_t n,
                                 void *dst);

/* Count what was coded, and remember which class a message of 'n' elements to member 'p' would
 * have fitted. */
void zipccl_keep_fit(struct zipccl_run_state *s, const struct zipccl_step *step, uint32_t p,
                     size_t n, size_t nbytes, bool overflowed);

/* ENCODE of the part that leaves early (executor_split.c), and of the rest of the message for member
 * 'p'; 'split' is its cut. */
zipccl_status zipccl_run_encode_early(struct zipccl_run_state *s, const struct zipccl_step *step);
zipccl_status zipccl_encode_rest(struct zipccl_run_state *s, const struct zipccl_step *step,
                                 const struct zipccl_group *g, uint32_t p, uint32_t b,
                                 const struct zipccl_split_cut *split);

/* True if this rank encodes a block for member 'p', a message to all once, under its own number. */
static inline bool zipccl_step_encodes(const struct zipccl_run_state *s,
                                       const struct zipccl_step *step, const struct zipccl_group *g,
                                       uint32_t p, uint32_t b)
{
    bool sends = step->pattern != ZIPCCL_PATTERN_BROADCAST || g->self == g->root;

    if (zipccl_step_shares_message(step))
        return p == g->self && sends && zipccl_step_n_out(s, step, g, p, b) > 0;
    return zipccl_step_sends(s, step, g, p, b);
}

/* REDUCE; called by zipccl_run_codec_step(). */
zipccl_status zipccl_run_reduce(struct zipccl_run_state *s, const struct zipccl_step *step);

#endif
