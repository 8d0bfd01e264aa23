/*
 * comm_plans.c - which plan serves a call, the same on every rank
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/comm_state.h"

#include "core/strategies/reductions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_uneven(const struct zipccl_call *call)
{
    return zipccl_is_uneven(call->op);
}

static zipccl_status build(const struct zipccl_comm *comm, const struct zipccl_strategy *strategy,
                           const struct zipccl_call *call, uint32_t nchunks, int cls,
                           struct zipccl_plan **out)
{
    return strategy->build(call, comm->transport->topology, comm->config.params.channels,
                           nchunks > 0 ? nchunks : 1, (uint32_t)cls, comm->config.max_staging_bytes,
                           out);
}

/* Class of the plans of uneven ops: wider than any that a pair may have. */
static int uneven_class(const struct zipccl_comm *comm)
{
    return comm->config.capacity_class == ZIPCCL_CLASS_LEARN ? ZIPCCL_CLASS_WIDE
                                                             : (int)comm->config.capacity_class;
}

/* Class at which calls are priced of which nothing is known: where most data get to. */
static int hoped_class(const struct zipccl_comm *comm)
{
    return comm->config.capacity_class == ZIPCCL_CLASS_LEARN ? ZIPCCL_CLASS_SETTLED
                                                             : (int)comm->config.capacity_class;
}

/* The strategy that built 'plan': rings add their number to its name. */
static const struct zipccl_strategy *strategy_of(const struct zipccl_plan *plan)
{
    for (unsigned i = 0; zipccl_strategies[i] != NULL; i++) {
        const char *name = zipccl_strategies[i]->name;
        size_t len = strlen(name);

        if (strncmp(plan->strategy, name, len) == 0 &&
            (plan->strategy[len] == '\0' || strncmp(plan->strategy + len, " x", 2) == 0))
            return zipccl_strategies[i];
    }
    return NULL;
}

/* The pinned strategy if it serves the call, else the cheapest of the mode; in messages of 'class'. */
static zipccl_status pick(const struct zipccl_comm *comm, const struct zipccl_call *any_effort,
                          int cls, const struct zipccl_wire_sizes *sizes, struct zipccl_plan **out)
{
    struct zipccl_call effort = *any_effort, *call = &effort;
    zipccl_status status;

    call->effort = comm->config.effort;
    if (comm->pinned != NULL && comm->pinned->serves(call)) {
        status = build(comm, comm->pinned, call, comm->config.nchunks, cls, out);
        if (status != ZIPCCL_ERR_UNSUPPORTED)
            return status;
    }
    return zipccl_choose(call, &comm->placement, &comm->config.params, sizes, comm->config.mode,
                         (uint32_t)cls, comm->config.max_staging_bytes, out, NULL);
}

/* The plan of 'fixed' without compression: in a reduction the same path, for the same bits. */
static zipccl_status uncompressed(const struct zipccl_comm *comm, const struct zipccl_call *call,
                                  const struct zipccl_strategy *fixed, uint32_t nchunks,
                                  struct zipccl_plan **out)
{
    char name[sizeof((struct zipccl_plan *)NULL)->strategy];
    const struct zipccl_strategy *raw = NULL;

    if (zipccl_is_reduction(call->op)) {
        snprintf(name, sizeof name, "raw%s", fixed->name + strlen("fixed"));
        raw = zipccl_strategy_find(name);
        return raw == NULL ? ZIPCCL_ERR_INTERNAL
                           : build(comm, raw, call, nchunks, ZIPCCL_CLASS_WIDE, out);
    }
    return zipccl_choose(call, &comm->placement, &comm->config.params, NULL, ZIPCCL_MODE_RAW,
                         ZIPCCL_CLASS_WIDE, comm->config.max_staging_bytes, out, NULL);
}

/* True if a compressed plan in messages of 'class' is worth its price. */
static zipccl_status pays(const struct zipccl_comm *comm, const struct zipccl_call *call, int cls,
                          const struct zipccl_wire_sizes *sizes, bool *out)
{
    struct zipccl_plan *plan;

    ZIPCCL_TRY(pick(comm, call, cls, sizes, &plan));
    *out = plan->compressed;
    zipccl_plan_destroy(plan);
    return ZIPCCL_OK;
}

/*
 * The plan of an even call: priced at the class that nothing bars, where its messages are going, and
 * built at the class they have now.  The strategy of a reduction gives its bits, so that is chosen at
 * the class that is hoped for at first and stays; only whether it compresses is asked again.
 */
static zipccl_status choose_cheapest(const struct zipccl_comm *comm, const struct zipccl_call *call,
                                     const struct zipccl_learnt_key *key, struct zipccl_plan **out)
{
    int now = key->cls, ceiling = key->ceiling;
    bool reduces = zipccl_is_reduction(call->op), worth = now != ZIPCCL_NO_CLASS;
    int hoped = hoped_class(comm), first = reduces || !worth ? hoped : ceiling;
    struct zipccl_seen_sizes seen;
    struct zipccl_wire_sizes used;
    const struct zipccl_wire_sizes *sizes = zipccl_comm_seen_sizes(&seen, call, key, &used);
    const struct zipccl_strategy *strategy;
    struct zipccl_call same = *call;
    struct zipccl_plan *plan;
    zipccl_status status = ZIPCCL_OK;
    uint32_t nchunks;

    ZIPCCL_TRY(pick(comm, call, first, reduces ? NULL : sizes, &plan));
    strategy = strategy_of(plan);
    nchunks = plan->nchunks;
    same.effort = (enum zipccl_effort)plan->effort;
    if (strategy == NULL || !zipccl_plan_is_fixed(plan)) {
        *out = plan;
        return ZIPCCL_OK;
    }
    if (reduces && worth && ceiling < hoped)
        status = pays(comm, call, ceiling, sizes, &worth);
    if (status == ZIPCCL_OK && worth && now == first) {
        *out = plan;
        return ZIPCCL_OK;
    }
    zipccl_plan_destroy(plan);
    ZIPCCL_TRY(status);
    return worth ? build(comm, strategy, &same, nchunks, now, out)
                 : uncompressed(comm, call, strategy, nchunks, out);
}

/* The plan of an even call of which trials have shown what kind it is to be. */
static zipccl_status choose_kind(const struct zipccl_comm *comm, const struct zipccl_call *call,
                                 const struct zipccl_learnt_key *key, struct zipccl_plan **out)
{
    struct zipccl_call same = *call;
    struct zipccl_candidate best;
    uint32_t nchunks;

    ZIPCCL_TRY(zipccl_comm_best_of_kind(comm, call, key, &best));
    if (!zipccl_plan_is_fixed(best.plan) || key->cls == key->ceiling) {
        *out = best.plan;
        return ZIPCCL_OK;
    }
    same.effort = (enum zipccl_effort)best.plan->effort;
    nchunks = best.plan->nchunks;
    zipccl_plan_destroy(best.plan);
    return build(comm, best.strategy, &same, nchunks, key->cls, out);
}

static zipccl_status choose(const struct zipccl_comm *comm, const struct zipccl_call *call,
                            const struct zipccl_learnt_key *key, struct zipccl_plan **out)
{
    zipccl_status status = ZIPCCL_ERR_UNSUPPORTED;

    if (key->kind != ZIPCCL_NO_KIND)
        status = choose_kind(comm, call, key, out);
    return status == ZIPCCL_ERR_UNSUPPORTED ? choose_cheapest(comm, call, key, out) : status;
}

/* Find the largest chunk_n of which a full window fits the staging. */
static zipccl_status settle_chunk_n(const struct zipccl_comm *comm, const struct zipccl_call *call,
                                    struct zipccl_pair_rule *rule)
{
    size_t chunk_n = ZIPCCL_PAIR_CHUNK_N;

    while (chunk_n > 0) {
        struct zipccl_call window = *call;
        struct zipccl_plan *plan;
        size_t got;

        window.count = ZIPCCL_PAIR_WINDOW * chunk_n;
        window.effort = rule->effort;
        ZIPCCL_TRY(
            build(comm, rule->strategy, &window, ZIPCCL_PAIR_WINDOW, uneven_class(comm), &plan));
        got = plan->chunk_n;
        zipccl_plan_destroy(plan);
        if (got == chunk_n || !rule->strategy->chunked) {
            rule->chunk_n = chunk_n;
            return ZIPCCL_OK;
        }
        chunk_n = got < chunk_n ? got : 0; /* more than asked for: the builder found no cut */
    }
    return ZIPCCL_ERR_NOMEM;
}

struct zipccl_pair_rule *zipccl_comm_pair_rule(struct zipccl_comm *comm, enum zipccl_op op,
                                               enum zipccl_dtype dtype)
{
    return &comm->pair_rules[op == ZIPCCL_SENDRECV][dtype];
}

/* The classes of all pairs, if their messages are to be fixed. */
static zipccl_status start_pairs(const struct zipccl_comm *comm, const struct zipccl_plan *window,
                                 struct zipccl_pair_rule *rule)
{
    enum zipccl_dtype dtype = (enum zipccl_dtype)window->dtype;
    uint32_t nranks = comm->transport->nranks;

    if (comm->config.capacity_class != ZIPCCL_CLASS_LEARN || !zipccl_plan_is_fixed(window))
        return ZIPCCL_OK;
    rule->classes = calloc(nranks, sizeof *rule->classes);
    if (rule->classes == NULL)
        return ZIPCCL_ERR_NOMEM;
    for (uint32_t p = 0; p < nranks; p++) {
        zipccl_class_init(&rule->classes[p].send, zipccl_class_narrowest(dtype, rule->chunk_n));
        zipccl_class_init(&rule->classes[p].recv, zipccl_class_narrowest(dtype, rule->chunk_n));
    }
    return ZIPCCL_OK;
}

/* How pairs of this (op, dtype) travel: from the configuration alone, so that no rank asks one. */
zipccl_status zipccl_comm_settle_pairs(struct zipccl_comm *comm, const struct zipccl_call *call,
                                       const struct zipccl_pair_rule **out)
{
    struct zipccl_pair_rule *rule = zipccl_comm_pair_rule(comm, call->op, call->dtype);
    struct zipccl_call window = *call;
    struct zipccl_plan *plan;
    zipccl_status status;

    if (!rule->known) {
        window.count = ZIPCCL_PAIR_WINDOW_N;
        ZIPCCL_TRY(pick(comm, &window, hoped_class(comm), NULL, &plan));
        rule->strategy = strategy_of(plan);
        rule->effort = (enum zipccl_effort)plan->effort;
        status = rule->strategy == NULL ? ZIPCCL_ERR_INTERNAL : settle_chunk_n(comm, call, rule);
        if (status == ZIPCCL_OK)
            status = start_pairs(comm, plan, rule);
        zipccl_plan_destroy(plan);
        ZIPCCL_TRY(status);
        rule->known = true;
    }
    *out = rule;
    return ZIPCCL_OK;
}

/* Round up to a power of two, so that few plans serve many counts; 'limit' at most. */
static size_t round_up(size_t count, size_t limit)
{
    size_t n = 1;

    while (n < count)
        n *= 2;
    return n < limit ? n : limit;
}

static bool same_key(const struct zipccl_learnt_key *a, const struct zipccl_learnt_key *b)
{
    return a->cls == b->cls && a->ceiling == b->ceiling && a->kind == b->kind &&
           a->coded_ppm == b->coded_ppm && a->effort == b->effort;
}

static uint64_t hash_of(const struct zipccl_call *call, const struct zipccl_learnt_key *key)
{
    uint64_t hash = zipccl_cache_hash(0, call->count);

    hash = zipccl_cache_hash(hash, (uint64_t)call->op << 48 | (uint64_t)call->dtype << 40 |
                                       (uint64_t)call->redop << 32 | call->root);
    hash =
        zipccl_cache_hash(hash, (uint64_t)(key->cls + 1) << 16 | (uint64_t)(key->ceiling + 1) << 8 |
                                    (uint64_t)(key->kind + 1));
    return zipccl_cache_hash(hash, (uint64_t)key->effort << 32 | key->coded_ppm);
}

static bool is_for(const struct zipccl_cached_plan *c, const struct zipccl_call *call,
                   const struct zipccl_learnt_key *key)
{
    return same_key(&c->key, key) && c->call.op == call->op && c->call.dtype == call->dtype &&
           c->call.redop == call->redop && c->call.root == call->root &&
           c->call.count == call->count;
}

static struct zipccl_plan *find(struct zipccl_cache *cache, uint64_t hash,
                                const struct zipccl_call *call, const struct zipccl_learnt_key *key)
{
    for (struct zipccl_cache_node *node = zipccl_cache_first(cache, hash); node != NULL;
         node = zipccl_cache_next(node)) {
        const struct zipccl_cached_plan *c = (struct zipccl_cached_plan *)node;

        if (is_for(c, call, key)) {
            zipccl_cache_use(cache, node);
            return c->plan;
        }
    }
    return NULL;
}

/* The plan that was used last, if it serves the call: mostly the same call comes again. */
static struct zipccl_plan *find_last(const struct zipccl_cache *cache,
                                     const struct zipccl_call *call,
                                     const struct zipccl_learnt_key *key)
{
    const struct zipccl_cached_plan *last = (struct zipccl_cached_plan *)cache->newest;

    return last != NULL && is_for(last, call, key) ? last->plan : NULL;
}

static void evict(struct zipccl_comm *comm, struct zipccl_cache *cache)
{
    struct zipccl_cached_plan *oldest = (struct zipccl_cached_plan *)cache->oldest;

    if (comm->last == oldest->plan)
        comm->last = NULL;
    zipccl_cache_remove(cache, &oldest->node);
    zipccl_plan_destroy(oldest->plan);
    free(oldest);
}

void zipccl_comm_plans_destroy(struct zipccl_comm *comm)
{
    while (comm->even_plans.n > 0)
        evict(comm, &comm->even_plans);
    while (comm->pair_plans.n > 0)
        evict(comm, &comm->pair_plans);
}

/* What rank 'odd' does otherwise, seen from this rank, which may be with it or be it. */
static zipccl_status tell_odd(struct zipccl_comm *comm, const struct zipccl_call *call,
                              const uint64_t *digests, uint32_t odd)
{
    uint32_t self = comm->transport->rank, nranks = comm->transport->nranks, like_odd = 0;
    bool with_odd = digests[self] == digests[odd];
    const char *whose = "most others call";

    for (uint32_t r = 0; r < nranks; r++)
        like_odd += digests[r] == digests[odd];
    if (2 * like_odd >= nranks)
        whose = "other ranks call"; /* no more than these */
    if (with_odd)
        return zipccl_fail(&comm->error, ZIPCCL_ERR_MISMATCH,
                           "rank %u calls %s of %zu %s elements; %s another collective, or with "
                           "other arguments",
                           self, zipccl_op_name(call->op), call->count,
                           zipccl_dtype_name(call->dtype), whose);
    return zipccl_fail(&comm->error, ZIPCCL_ERR_MISMATCH,
                       "rank %u calls another collective, or with other arguments, than "
                       "%s of %zu %s elements on rank %u",
                       odd, zipccl_op_name(call->op), call->count, zipccl_dtype_name(call->dtype),
                       self);
}

/* Compare digests of plan and call over all ranks. */
static zipccl_status compare(struct zipccl_comm *comm, const struct zipccl_call *call,
                             const struct zipccl_plan *plan)
{
    uint32_t nranks = comm->transport->nranks, odd;
    uint64_t *all = malloc(nranks * sizeof *all), digest = zipccl_plan_digest(plan);
    zipccl_status status = ZIPCCL_ERR_NOMEM;

    digest = zipccl_comm_hash_u64(digest, (uint64_t)call->op);
    digest = zipccl_comm_hash_u64(digest, (uint64_t)call->redop);
    digest = zipccl_comm_hash_u64(digest, call->root);
    if (all == NULL)
        comm->transport->ops->abort(comm->transport);
    else
        status = zipccl_comm_gather_words(comm->transport, &digest, 1, all);
    if (status == ZIPCCL_OK) {
        odd = zipccl_comm_odd_rank(all, nranks, 1, 0);
        if (odd < nranks)
            status = tell_odd(comm, call, all, odd);
    }
    free(all);
    return status;
}

static zipccl_status make(struct zipccl_comm *comm, const struct zipccl_call *any,
                          const struct zipccl_learnt_key *key, const struct zipccl_pair_rule *rule,
                          struct zipccl_plan **out)
{
    zipccl_status status;

    if (rule == NULL) {
        status = choose(comm, any, key, out);
    } else {
        size_t nchunks = any->count / rule->chunk_n + (any->count % rule->chunk_n != 0);
        struct zipccl_call call = *any;

        call.effort = rule->effort;
        status = nchunks > UINT32_MAX
                     ? ZIPCCL_ERR_UNSUPPORTED
                     : build(comm, rule->strategy, &call, (uint32_t)nchunks, key->cls, out);
        if (status == ZIPCCL_OK && rule->strategy->chunked && nchunks > 1 &&
            (*out)->chunk_n != rule->chunk_n) {
            /* More chunks than a plan can have: cut anew, the two ends would not agree. */
            zipccl_plan_destroy(*out);
            status = ZIPCCL_ERR_UNSUPPORTED;
        }
    }
    /* A pair too long for the chunks that a plan may have, which other ranks need not know. */
    if (rule != NULL && status == ZIPCCL_ERR_UNSUPPORTED)
        status =
            zipccl_fail(&comm->error, ZIPCCL_ERR_NOMEM,
                        "a pair moves %zu elements: more than a plan has in chunks of %zu, the "
                        "most that max_staging_bytes allows",
                        any->count, rule->chunk_n);
    /* Memory may be short on this rank alone. */
    if (status == ZIPCCL_ERR_NOMEM)
        comm->transport->ops->abort(comm->transport);
    return status;
}

static void note_price(struct zipccl_even_class *cls, const struct zipccl_plan *plan)
{
    if (cls != NULL)
        cls->priced_out =
            !cls->trials.on && cls->state.now != ZIPCCL_NO_CLASS && !zipccl_plan_is_fixed(plan);
}

static bool serves(const struct zipccl_plan *plan, const struct zipccl_call *call)
{
    if (plan->op != call->op || plan->dtype != call->dtype)
        return false;
    if (is_uneven(call))
        return call->count <= plan->count;
    return call->count == plan->count &&
           (!zipccl_is_reduction(call->op) || plan->redop == call->redop) &&
           (call->op != ZIPCCL_BROADCAST || plan->root == call->root);
}

/* The plan of the configuration, for the calls that it is for. */
static zipccl_status given(struct zipccl_comm *comm, const struct zipccl_call *call,
                           const struct zipccl_plan **out)
{
    const struct zipccl_plan *plan = comm->config.plan;
    const char *lacks = NULL;

    if (!serves(plan, call) && is_uneven(call)) /* perhaps on this rank alone */
        comm->transport->ops->abort(comm->transport);
    if (!serves(plan, call))
        return zipccl_fail(&comm->error, ZIPCCL_ERR_UNSUPPORTED,
                           "%s of %zu %s elements: the plan given is for %s of %zu %s elements, or "
                           "for another operator or root",
                           zipccl_op_name(call->op), call->count, zipccl_dtype_name(call->dtype),
                           zipccl_op_name((enum zipccl_op)plan->op), plan->count,
                           zipccl_dtype_name((enum zipccl_dtype)plan->dtype));
    for (uint32_t i = 0; i < plan->nsteps; i++) {
        if (plan->steps[i].kind == ZIPCCL_STEP_NATIVE && !call->has_native)
            lacks = "the transport has no such native collective";
        if (plan->steps[i].part != 0 && call->whole)
            lacks = "GPUs code messages in one go, and it has messages in parts";
    }
    if (lacks != NULL)
        return zipccl_fail(&comm->error, ZIPCCL_ERR_UNSUPPORTED, "the plan given, \"%s\": %s",
                           plan->strategy, lacks);
    *out = plan;
    return ZIPCCL_OK;
}

zipccl_status zipccl_comm_plan(struct zipccl_comm *comm, const struct zipccl_call *call,
                               struct zipccl_even_class *even, const struct zipccl_plan **out)
{
    struct zipccl_learnt_key learnt = {
        .cls = uneven_class(comm), .ceiling = uneven_class(comm), .kind = ZIPCCL_NO_KIND};
    struct zipccl_cache *cache = is_uneven(call) ? &comm->pair_plans : &comm->even_plans;
    const struct zipccl_pair_rule *rule = NULL;
    struct zipccl_cached_plan *entry;
    uint64_t hash = 0;
    struct zipccl_call key = *call;
    struct zipccl_plan *plan;
    zipccl_status status;

    if (comm->config.plan != NULL)
        return given(comm, call, out);
    if (is_uneven(call)) {
        status = zipccl_comm_settle_pairs(comm, call, &rule);
        if (status == ZIPCCL_ERR_NOMEM) /* perhaps on this rank alone */
            comm->transport->ops->abort(comm->transport);
        ZIPCCL_TRY(status);
        if (call->count <= rule->chunk_n)
            key.count = round_up(call->count, rule->chunk_n);
        else if (call->count % rule->chunk_n != 0)
            key.count += rule->chunk_n - call->count % rule->chunk_n;
    }
    if (even != NULL)
        learnt = zipccl_comm_learnt_key(comm, even);
    plan = find_last(cache, &key, &learnt);
    if (plan == NULL) {
        hash = hash_of(&key, &learnt);
        plan = find(cache, hash, &key, &learnt);
    }
    if (plan != NULL) {
        note_price(even, plan);
        *out = plan;
        return ZIPCCL_OK;
    }
    ZIPCCL_TRY(make(comm, &key, &learnt, rule, &plan));
    status = rule == NULL ? compare(comm, &key, plan) : ZIPCCL_OK;
    entry = status == ZIPCCL_OK ? malloc(sizeof *entry) : NULL;
    if (entry == NULL) {
        zipccl_plan_destroy(plan);
        if (status == ZIPCCL_OK)
            comm->transport->ops->abort(comm->transport);
        return status == ZIPCCL_OK ? ZIPCCL_ERR_NOMEM : status;
    }
    *entry = (struct zipccl_cached_plan){.call = key, .key = learnt, .plan = plan};
    while (cache->n >= comm->most_plans)
        evict(comm, cache);
    zipccl_cache_add(cache, &entry->node, hash);
    note_price(even, plan);
    *out = plan;
    return ZIPCCL_OK;
}
