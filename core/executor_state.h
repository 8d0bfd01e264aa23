/*
 * executor_state.h - what the steps of one run share
 *
 * Private to executor.c (lanes), executor_codec.c and executor_wire.c (the steps of each lane).
 * What a step leaves for a later one is kept per slot; the plan's dependencies, which order the
 * users of a slot, order the users of these as well.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_EXECUTOR_STATE_H
#define ZIPCCL_CORE_EXECUTOR_STATE_H

#include "core/executor.h"

/* Of one staging slot; arrays by peer, a message to all is under the sender's own rank. */
struct zipccl_slot_state {
    size_t *size_out, *size_in; /* [nranks] message bytes */
    bool *over_out, *over_in;   /* [nranks] did not fit */
    size_t rx_stride;           /* bytes between the messages as they arrived */
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
    struct zipccl_run_stats wire, codec; /* one per lane, so that they share nothing */
};

/* Run one step; statuses as zipccl_execute(). */
zipccl_status zipccl_run_codec_step(struct zipccl_run_state *s, const struct zipccl_step *step);
zipccl_status zipccl_run_wire_step(struct zipccl_run_state *s, const struct zipccl_step *step);

/* Elements that this rank sends to, or receives from, 'peer' in the chunk of 'step'. */
static inline size_t zipccl_step_n_out(const struct zipccl_run_state *s,
                                       const struct zipccl_step *step, uint32_t peer)
{
    if (step->pattern != ZIPCCL_PATTERN_PAIRS)
        return step->n;
    return zipccl_chunk_n(s->run->send_counts[peer], s->plan->chunk_n, step->chunk);
}

static inline size_t zipccl_step_n_in(const struct zipccl_run_state *s,
                                      const struct zipccl_step *step, uint32_t peer)
{
    if (step->pattern != ZIPCCL_PATTERN_PAIRS)
        return step->n;
    return zipccl_chunk_n(s->run->recv_counts[peer], s->plan->chunk_n, step->chunk);
}

/* True if this rank sends to 'peer' in 'step'; self is never a peer. */
static inline bool zipccl_step_sends(const struct zipccl_run_state *s,
                                     const struct zipccl_step *step, uint32_t peer)
{
    if (peer == s->rank || (step->pattern == ZIPCCL_PATTERN_BROADCAST && s->rank != step->root))
        return false;
    return zipccl_step_n_out(s, step, peer) > 0;
}

static inline bool zipccl_step_receives(const struct zipccl_run_state *s,
                                        const struct zipccl_step *step, uint32_t peer)
{
    if (peer == s->rank || (step->pattern == ZIPCCL_PATTERN_BROADCAST && peer != step->root))
        return false;
    return zipccl_step_n_in(s, step, peer) > 0;
}

/* True if one message goes to all, instead of one to each. */
static inline bool zipccl_step_shares_message(const struct zipccl_step *step)
{
    return step->pattern == ZIPCCL_PATTERN_ALL_GATHER || step->pattern == ZIPCCL_PATTERN_BROADCAST;
}

/* Index of the message to 'peer' in the arrays of a slot. */
static inline uint32_t zipccl_message_index(const struct zipccl_run_state *s,
                                            const struct zipccl_step *step, uint32_t peer)
{
    return zipccl_step_shares_message(step) ? s->rank : peer;
}

/* True if 'n' elements travel as a message; false: raw, decided by n alone. */
static inline bool zipccl_step_codes(const struct zipccl_run_state *s,
                                     const struct zipccl_step *step, size_t n)
{
    return step->form != ZIPCCL_FORM_RAW && n >= s->plan->raw_below_n;
}

/* Wire size of a FIXED message of 'n' elements, and the room of an EXACT one. */
static inline size_t zipccl_step_capacity(const struct zipccl_run_state *s,
                                          const struct zipccl_step *step, size_t n)
{
    if (step->form == ZIPCCL_FORM_EXACT)
        return zipccl_bound((enum zipccl_dtype)s->plan->dtype, n);
    return step->pattern == ZIPCCL_PATTERN_PAIRS ? zipccl_plan_fixed_bytes(s->plan, n)
                                                 : step->capacity;
}

/* Address of peer p's block; 'from' reads, 'to' writes (never the user's send buffer). */
const char *zipccl_place_from(const struct zipccl_run_state *s, const struct zipccl_place *place,
                              uint32_t peer);
char *zipccl_place_to(const struct zipccl_run_state *s, const struct zipccl_place *place,
                      uint32_t peer);

#endif
