/*
 * comm_classes.c - when a communicator learns, and what its calls teach it about capacity classes
 *
 * Calls of equal counts: each rank remembers what its own messages of a period would have fitted, and
 * nothing is decided from that.  Before the first call of the next period the ranks exchange it, in
 * the order of calls that is the same on all of them, and all decide from the same words.  So
 * it holds for every plan, also where a rank sees the headers of a few others only, as in two-level
 * ones.  Six words of each rank every ZIPCCL_CLASS_PERIOD calls is what it costs; four of them are for
 * what comm_learn.c makes of them.  A compressed plan that is in use first has them exchanged after the
 * first four calls as well (trials.h).
 *
 * Pairs of uneven calls: only the two ends are sure to make a call, so no others can be asked.  But
 * both ends know the size of each message between them, and that it overflowed.  Where they know it only
 * when a call has ended on a device, they decide from messages that are so old that both must know them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/comm_state.h"

#include "core/strategies/reductions.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Of the words that ranks exchange. */
enum { WORD_STATE, WORD_SEEN, WORD_RAW, WORD_CODED, WORD_NS, WORD_TRIED_NS, NUM_WORDS };

static bool learns(const struct zipccl_comm *comm, const struct zipccl_call *call)
{
    bool sums = call->redop == ZIPCCL_SUM || call->redop == ZIPCCL_AVG;

    return comm->config.capacity_class == ZIPCCL_CLASS_LEARN &&
           comm->config.mode != ZIPCCL_MODE_RAW && comm->transport->nranks > 1 &&
           zipccl_dtype_compressible(call->dtype) && (sums || !zipccl_is_reduction(call->op));
}

static uint64_t hash_of(enum zipccl_op op, enum zipccl_dtype dtype, size_t count)
{
    return zipccl_cache_hash(zipccl_cache_hash(0, count), (uint64_t)op << 8 | (uint64_t)dtype);
}

static bool is_of(const struct zipccl_even_class *c, enum zipccl_op op, enum zipccl_dtype dtype,
                  size_t count)
{
    return c->op == op && c->dtype == dtype && c->count == count;
}

struct zipccl_even_class *zipccl_comm_class_find(const struct zipccl_comm *comm, enum zipccl_op op,
                                                 enum zipccl_dtype dtype, size_t count)
{
    struct zipccl_even_class *last = (struct zipccl_even_class *)comm->classes.newest;

    /* Mostly the same call again: no line of the chains is read. */
    if (last != NULL && is_of(last, op, dtype, count))
        return last;
    for (struct zipccl_cache_node *node =
             zipccl_cache_first(&comm->classes, hash_of(op, dtype, count));
         node != NULL; node = zipccl_cache_next(node)) {
        struct zipccl_even_class *c = (struct zipccl_even_class *)node;

        if (is_of(c, op, dtype, count))
            return c;
    }
    return NULL;
}

static void evict(struct zipccl_cache *cache)
{
    struct zipccl_cache_node *oldest = cache->oldest;

    zipccl_cache_remove(cache, oldest);
    free((struct zipccl_even_class *)oldest);
}

void zipccl_comm_class_add(struct zipccl_comm *comm, struct zipccl_even_class *cls)
{
    while (comm->classes.n >= comm->most_kinds)
        evict(&comm->classes);
    zipccl_cache_add(&comm->classes, &cls->node, hash_of(cls->op, cls->dtype, cls->count));
}

static zipccl_status add(struct zipccl_comm *comm, const struct zipccl_call *call,
                         struct zipccl_even_class **out)
{
    struct zipccl_even_class *c = calloc(1, sizeof *c);
    zipccl_status status = ZIPCCL_ERR_NOMEM;

    if (c != NULL) {
        zipccl_class_init(&c->state, zipccl_class_narrowest(call->dtype, call->count));
        status = zipccl_comm_learn_start(comm, call, c);
    }
    if (status != ZIPCCL_OK) {
        free(c);
        if (status == ZIPCCL_ERR_NOMEM)
            comm->transport->ops->abort(comm->transport); /* perhaps on this rank alone */
        return status;
    }
    c->op = call->op;
    c->dtype = call->dtype;
    c->count = call->count;
    zipccl_comm_class_add(comm, c);
    *out = c;
    return ZIPCCL_OK;
}

static uint64_t pack(struct zipccl_class_seen seen)
{
    return (uint64_t)seen.troubled << 8 | (uint64_t)(seen.fit - ZIPCCL_NO_CLASS);
}

static struct zipccl_class_seen unpack(uint64_t word)
{
    int fit = (int)(word & 0xff) + ZIPCCL_NO_CLASS;

    return (struct zipccl_class_seen){(uint32_t)(word >> 8), fit};
}

/* What all ranks saw. */
struct all_seen {
    struct zipccl_class_seen sizes;
    struct zipccl_trial_seen times;
    uint64_t raw, coded;
};

static zipccl_status differs(struct zipccl_comm *comm, const struct zipccl_even_class *cls,
                             uint32_t odd)
{
    comm->transport->ops->abort(comm->transport);
    return zipccl_fail(&comm->error, ZIPCCL_ERR_MISMATCH,
                       "rank %u calls another collective than %s of %zu %s elements, or "
                       "has learnt something else of it, than rank %u",
                       odd, zipccl_op_name(cls->op), cls->count, zipccl_dtype_name(cls->dtype),
                       comm->transport->rank);
}

/* What a device has timed meanwhile. */
static void collect_times(struct zipccl_comm *comm, struct zipccl_even_class *cls)
{
    for (unsigned i = 0; i < cls->ntickets; i++) {
        uint64_t ns = comm->exec->ops->time_of(comm->exec, cls->tickets[i].ticket);

        if (ns > 0)
            zipccl_trials_note(&cls->trials, cls->tickets[i].call, ns);
    }
    cls->ntickets = 0;
}

/* Exchange what was seen since the last decision. */
static zipccl_status exchange(struct zipccl_comm *comm, struct zipccl_even_class *cls,
                              struct all_seen *out)
{
    uint32_t nranks = comm->transport->nranks, odd;
    uint64_t mine[NUM_WORDS], *all = malloc(nranks * sizeof mine);
    struct all_seen seen = {.sizes = cls->state.seen};
    zipccl_status status = ZIPCCL_ERR_NOMEM;

    collect_times(comm, cls);
    seen.times = cls->trials.seen;

    mine[WORD_STATE] = zipccl_comm_learn_digest(cls);
    mine[WORD_SEEN] = pack(seen.sizes);
    mine[WORD_RAW] = cls->raw_seen;
    mine[WORD_CODED] = cls->coded_seen;
    mine[WORD_NS] = seen.times.ns[0];
    mine[WORD_TRIED_NS] = seen.times.ns[1];
    if (all == NULL)
        comm->transport->ops->abort(comm->transport);
    else
        status = zipccl_comm_gather_words(comm->transport, mine, NUM_WORDS, all);
    if (status == ZIPCCL_OK) {
        odd = zipccl_comm_odd_rank(all, nranks, NUM_WORDS, WORD_STATE);
        if (odd < nranks)
            status = differs(comm, cls, odd);
    }
    for (uint32_t r = 0; status == ZIPCCL_OK && r < nranks; r++) {
        const uint64_t *words = all + (size_t)r * NUM_WORDS;

        seen.sizes = zipccl_class_merge(seen.sizes, unpack(words[WORD_SEEN]));
        seen.times = zipccl_trials_merge(
            seen.times, (struct zipccl_trial_seen){{words[WORD_NS], words[WORD_TRIED_NS]}});
        seen.raw += words[WORD_RAW];
        seen.coded += words[WORD_CODED];
    }
    free(all);
    *out = seen;
    return status;
}

/* End a period. */
static zipccl_status review(struct zipccl_comm *comm, struct zipccl_even_class *cls)
{
    struct all_seen seen;

    ZIPCCL_TRY(exchange(comm, cls, &seen));
    zipccl_class_decide(&cls->state, seen.sizes);
    zipccl_comm_learn_decide(comm, cls, seen.times, seen.raw, seen.coded);
    return ZIPCCL_OK;
}

/* End the opening of trials. */
static zipccl_status review_opening(struct zipccl_comm *comm, struct zipccl_even_class *cls)
{
    struct all_seen seen;

    ZIPCCL_TRY(exchange(comm, cls, &seen));
    zipccl_trials_open(&cls->trials, seen.times);
    zipccl_class_open(&cls->state, seen.sizes);
    return ZIPCCL_OK;
}

/* End a period of which no rank saw anything; what a rank heard late, of calls before it, is its own. */
static void decide_alone(const struct zipccl_comm *comm, struct zipccl_even_class *cls)
{
    cls->ntickets = 0;
    zipccl_class_decide(&cls->state, (struct zipccl_class_seen){0, ZIPCCL_NUM_CLASSES});
    zipccl_comm_learn_decide(comm, cls, (struct zipccl_trial_seen){{0, 0}}, 0, 0);
}

static uint32_t call_of_period(const struct zipccl_even_class *cls)
{
    return (uint32_t)(cls->state.calls % ZIPCCL_CLASS_PERIOD);
}

zipccl_status zipccl_comm_class_before(struct zipccl_comm *comm, const struct zipccl_call *call,
                                       struct zipccl_even_class **out)
{
    struct zipccl_even_class *cls = NULL;

    bool learning = comm->config.learning != ZIPCCL_LEARN_NOTHING;

    if (learns(comm, call) && call->count > 0) {
        cls = zipccl_comm_class_find(comm, call->op, call->dtype, call->count);
        if (cls != NULL)
            zipccl_cache_use(&comm->classes, &cls->node);
        if (cls == NULL && learning)
            ZIPCCL_TRY(add(comm, call, &cls));
        if (learning && zipccl_class_due(&cls->state)) {
            /* Plans are the same everywhere: if none had messages, no rank saw any. */
            if (cls->coded || (comm->times && cls->trials.challenger != ZIPCCL_NO_KIND))
                ZIPCCL_TRY(review(comm, cls));
            else
                decide_alone(comm, cls);
            cls->coded = false;
        }
        if (learning && comm->times && zipccl_trials_opened(&cls->trials, call_of_period(cls)))
            ZIPCCL_TRY(review_opening(comm, cls));
        if (cls != NULL)
            cls->timed =
                learning && comm->times && zipccl_trials_timed(&cls->trials, call_of_period(cls));
    }
    *out = cls;
    return ZIPCCL_OK;
}

void zipccl_comm_class_after(const struct zipccl_comm *comm, struct zipccl_even_class *cls,
                             const struct zipccl_plan *plan, const struct zipccl_run_stats *stats)
{
    bool fixed;

    if (cls == NULL || comm->config.learning == ZIPCCL_LEARN_NOTHING)
        return;
    fixed = zipccl_plan_is_fixed(plan);
    zipccl_class_note(&cls->state, fixed ? stats->fit : ZIPCCL_NUM_CLASSES,
                      fixed && stats->overflows > 0, fixed);
    if (!plan->compressed)
        return;
    cls->coded = true;
    cls->raw_seen += stats->coded_raw_bytes;
    cls->coded_seen += stats->coded_bytes;
    cls->effort_seen = (enum zipccl_effort)plan->effort;
}

/* An even call that was counted when it was made. */
static void learn_late(const struct zipccl_comm *comm, const struct zipccl_ended_call *call)
{
    struct zipccl_even_class *cls =
        zipccl_comm_class_find(comm, call->op, call->dtype, call->count);
    const struct zipccl_run_stats *stats = &call->stats;

    if (cls == NULL || comm->config.learning == ZIPCCL_LEARN_NOTHING)
        return;
    /* An overflow of a class that has been widened since is no news. */
    if (call->fixed && (stats->overflows == 0 || stats->fit < cls->state.now))
        zipccl_class_note_late(&cls->state, stats->fit, stats->overflows > 0);
    cls->raw_seen += stats->coded_raw_bytes;
    cls->coded_seen += stats->coded_bytes;
}

static bool is_coded(const struct zipccl_pair_rule *rule, size_t count)
{
    return count >= ZIPCCL_RAW_BELOW_N && rule->chunk_n >= ZIPCCL_RAW_BELOW_N;
}

static void note_ended(struct zipccl_pair_late *late, int cls, int fit)
{
    uint32_t call = (uint32_t)(late->ended % ZIPCCL_CLASS_PERIOD);
    uint64_t period = late->ended / ZIPCCL_CLASS_PERIOD % ZIPCCL_LATE_PERIODS;
    struct zipccl_class_seen seen = {fit < cls ? (uint32_t)1 << call : 0, fit};

    late->periods[period].seen = zipccl_class_merge(late->periods[period].seen, seen);
    late->periods[period].cls = cls;
    late->ended++;
}

/* The same of an uneven one. */
static void learn_pairs_late(struct zipccl_comm *comm, const struct zipccl_ended_call *call)
{
    struct zipccl_pair_rule *rule = zipccl_comm_pair_rule(comm, call->op, call->dtype);
    const struct zipccl_ended_pairs *pairs = call->pairs;

    for (uint32_t p = 0; rule->classes != NULL && p < comm->transport->nranks; p++) {
        if (p == comm->transport->rank)
            continue;
        if (is_coded(rule, pairs->send_counts[p]))
            note_ended(&rule->classes[p].send_late, pairs->send_class[p], pairs->send_fit[p]);
        if (is_coded(rule, pairs->recv_counts[p]))
            note_ended(&rule->classes[p].recv_late, pairs->recv_class[p], pairs->recv_fit[p]);
    }
}

void zipccl_comm_settle(struct zipccl_comm *comm)
{
    struct zipccl_ended_call call;

    while (comm->exec->ops->ended != NULL && comm->exec->ops->ended(comm->exec, comm, &call)) {
        if (call.even)
            learn_late(comm, &call);
        else if (call.pairs != NULL)
            learn_pairs_late(comm, &call);
        comm->late.wire_bytes += call.stats.wire_bytes;
        comm->late.overflows += call.stats.overflows;
        comm->late.raw_resends += call.stats.raw_resends;
    }
}

/* Calls that were told of at once, of before a state was loaded, are none of those that end. */
static void begin_late(const struct zipccl_class_state *state, struct zipccl_pair_late *late)
{
    if (late->begun)
        return;
    late->begun = true;
    late->ended = state->calls;
    for (unsigned k = 0; k < ZIPCCL_LATE_PERIODS; k++)
        late->periods[k].seen.fit = ZIPCCL_NUM_CLASSES;
}

void zipccl_comm_pairs_before(struct zipccl_comm *comm, const struct zipccl_call *call,
                              struct zipccl_run *run)
{
    const struct zipccl_pair_rule *rule = zipccl_comm_pair_rule(comm, call->op, call->dtype);
    uint32_t nranks = comm->transport->nranks;
    int8_t *of = comm->pair_classes;

    if (rule->classes == NULL)
        return;
    for (uint32_t p = 0; p < nranks; p++) {
        of[p] = (int8_t)rule->classes[p].send.now;
        of[nranks + p] = (int8_t)rule->classes[p].recv.now;
        of[2 * nranks + p] = of[3 * nranks + p] = ZIPCCL_NUM_CLASSES;
        begin_late(&rule->classes[p].send, &rule->classes[p].send_late);
        begin_late(&rule->classes[p].recv, &rule->classes[p].recv_late);
    }
    run->send_class = of;
    run->recv_class = of + nranks;
    run->send_fit = of + 2 * nranks;
    run->recv_fit = of + 3 * nranks;
}

/* Decide from the oldest of the periods that are kept. */
static void decide_late(struct zipccl_class_state *state, struct zipccl_pair_late *late)
{
    uint64_t begins = state->calls / ZIPCCL_CLASS_PERIOD;
    struct zipccl_class_seen *kept = &late->periods[begins % ZIPCCL_LATE_PERIODS].seen;
    struct zipccl_class_seen seen = *kept, nothing = {0, ZIPCCL_NUM_CLASSES};

    assert(late->ended + (ZIPCCL_LATE_PERIODS - 1) * ZIPCCL_CLASS_PERIOD >= state->calls);
    /* An overflow of a class that has been widened since is no news. */
    if (late->periods[begins % ZIPCCL_LATE_PERIODS].cls > state->now)
        seen = nothing;
    *kept = nothing;
    zipccl_class_decide(state, seen);
}

/* A pair's calls count if its messages are long enough to be coded, which both ends know.  'late': how it went is
 * not known yet; NULL: it is 'fit'. */
static void count_pair(struct zipccl_class_state *state, struct zipccl_pair_late *late,
                       const struct zipccl_pair_rule *rule, size_t count, int fit)
{
    if (!is_coded(rule, count))
        return;
    /* What did not overflow would have fitted the class that it had, at least. */
    zipccl_class_note(state, fit, fit < state->now, state->now != ZIPCCL_NO_CLASS);
    if (zipccl_class_due(state) && late != NULL)
        decide_late(state, late);
    else if (zipccl_class_due(state))
        zipccl_class_decide(state, state->seen);
}

void zipccl_comm_pairs_after(struct zipccl_comm *comm, const struct zipccl_call *call,
                             const struct zipccl_run *run, const struct zipccl_run_stats *stats)
{
    struct zipccl_pair_rule *rule = zipccl_comm_pair_rule(comm, call->op, call->dtype);
    bool late = stats->told == ZIPCCL_TOLD_LATE;

    if (comm->config.learning == ZIPCCL_LEARN_NOTHING || stats->told == ZIPCCL_TOLD_NEVER)
        return;
    if (late)
        zipccl_comm_settle(comm); /* of what must have ended by now */
    for (uint32_t p = 0; rule->classes != NULL && p < comm->transport->nranks; p++) {
        struct zipccl_pair_classes *pair = &rule->classes[p];

        if (p == comm->transport->rank)
            continue;
        count_pair(&pair->send, late ? &pair->send_late : NULL, rule, run->send_counts[p],
                   run->send_fit[p]);
        count_pair(&pair->recv, late ? &pair->recv_late : NULL, rule, run->recv_counts[p],
                   run->recv_fit[p]);
    }
}

static void describe(const struct zipccl_class_state *state, struct zipccl_comm_class *out)
{
    out->now = state->now;
    out->reason = state->reason;
    out->calls = state->calls;
    memcpy(out->class_calls, state->class_calls, sizeof out->class_calls);
    out->uncompressed_calls = state->uncompressed_calls;
    out->overflow_calls = state->overflow_calls;
}

/* Pair 'index' of those that have made a call, in (op, dtype); else how many there are. */
static bool find_pair(const struct zipccl_comm *comm, enum zipccl_op op, enum zipccl_dtype dtype,
                      size_t *index, struct zipccl_comm_class *out)
{
    const struct zipccl_pair_rule *rule = &comm->pair_rules[op == ZIPCCL_SENDRECV][dtype];

    for (uint32_t i = 0; rule->classes != NULL && i < 2 * comm->transport->nranks; i++) {
        bool incoming = i % 2 == 1;
        const struct zipccl_class_state *state =
            incoming ? &rule->classes[i / 2].recv : &rule->classes[i / 2].send;

        if (state->calls == 0 || (*index)-- > 0)
            continue;
        *out = (struct zipccl_comm_class){
            .op = op, .dtype = dtype, .peer = (int)(i / 2), .incoming = incoming};
        describe(state, out);
        return true;
    }
    return false;
}

bool zipccl_comm_get_class(const struct zipccl_comm *comm, size_t index,
                           struct zipccl_comm_class *out)
{
    for (const struct zipccl_cache_node *node = comm->classes.newest; node != NULL;
         node = node->older) {
        const struct zipccl_even_class *c = (const struct zipccl_even_class *)node;

        if (index-- > 0)
            continue;
        *out = (struct zipccl_comm_class){.op = c->op,
                                          .dtype = c->dtype,
                                          .count = c->count,
                                          .peer = -1,
                                          .priced_out = c->priced_out};
        describe(&c->state, out);
        return true;
    }
    for (int dtype = 0; dtype < ZIPCCL_NUM_DTYPES; dtype++)
        if (find_pair(comm, ZIPCCL_ALLTOALLV, (enum zipccl_dtype)dtype, &index, out) ||
            find_pair(comm, ZIPCCL_SENDRECV, (enum zipccl_dtype)dtype, &index, out))
            return true;
    return false;
}

void zipccl_comm_classes_destroy(struct zipccl_comm *comm)
{
    while (comm->classes.n > 0)
        evict(&comm->classes);
    for (int k = 0; k < 2; k++)
        for (int dtype = 0; dtype < ZIPCCL_NUM_DTYPES; dtype++)
            free(comm->pair_rules[k][dtype].classes);
}
