/*
 * lower.c - wire steps as flows between ranks
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/lower.h"

#include "core/codec.h"
#include "core/group.h"
#include "core/split.h"

#include <stdlib.h>
#include <string.h>

/* One lowering in progress. */
struct lowering {
    const struct zipccl_plan *plan;
    const struct zipccl_step *step;
    const struct zipccl_topology *topology;
    const struct zipccl_wire_sizes *sizes;
    zipccl_flow_fn *flow;
    void *context;
    uint64_t total; /* bytes emitted so far */
};

static const struct zipccl_wire_sizes no_sizes;

static void emit(struct lowering *l, uint32_t src, uint32_t dst, uint64_t nbytes)
{
    if (src == dst || nbytes == 0)
        return;
    l->total += nbytes;
    l->flow(l->context, src, dst, nbytes);
}

/* Elements of block 'b' of the message from member 'from' to member 'to'. */
static size_t message_n(const struct lowering *l, const struct zipccl_group *g, uint32_t from,
                        uint32_t to, uint32_t b)
{
    if (l->step->pattern != ZIPCCL_PATTERN_PAIRS)
        return zipccl_group_n(l->plan, l->step, g, from, to, b);
    return zipccl_chunk_n(l->sizes->splits[(size_t)from * l->plan->nranks + to], l->plan->chunk_n,
                          l->step->chunk);
}

/* Whether the message has a header: small pair chunks of compressed plans have none. */
static bool is_coded(const struct lowering *l, size_t n)
{
    return n > 0 && (l->step->pattern != ZIPCCL_PATTERN_PAIRS || n >= l->plan->raw_below_n);
}

/* The two ends of a message as 'sizes' is asked for them: whose data, and for whom. */
static void name_ends(const struct lowering *l, const struct zipccl_group *g, uint32_t from,
                      uint32_t to, uint32_t b, uint32_t *src, uint32_t *dst)
{
    *src = zipccl_group_block_rank(g, from, b);
    *dst = zipccl_step_shares_message(l->step) ? UINT32_MAX : zipccl_group_rank(g, to);
}

/* Whether the step's FIXED messages, or those that it sends again, go in parts. */
static bool has_parts(const struct lowering *l)
{
    uint16_t resolve = l->step->raw_of;

    return (resolve == ZIPCCL_STEP_NONE ? l->step : &l->plan->steps[resolve])->part != 0;
}

/* A message that does not fit its capacity, or whose parts do not stand. */
static bool n_overflows(const struct lowering *l, uint32_t src, uint32_t dst, size_t n)
{
    enum zipccl_dtype dtype = (enum zipccl_dtype)l->plan->dtype;
    struct zipccl_split_cut split = {0, 0, 0};

    if (l->step->form != ZIPCCL_FORM_EXACT && l->sizes->overflows != NULL &&
        l->sizes->overflows(l->sizes->context, src, dst, n, zipccl_plan_fixed_bytes(l->plan, n)))
        return true;
    if (has_parts(l) && l->sizes->bytes != NULL)
        split = zipccl_split_of(dtype, n);
    return split.early > 0 &&
           !zipccl_split_stands(&split, dtype, n, l->sizes->bytes(l->sizes->context, src, dst, n));
}

static bool overflows(const struct lowering *l, const struct zipccl_group *g, uint32_t from,
                      uint32_t to, uint32_t b)
{
    size_t n = message_n(l, g, from, to, b);
    uint32_t src, dst;

    if (!is_coded(l, n) || (l->sizes->overflows == NULL && !has_parts(l)))
        return false;
    name_ends(l, g, from, to, b, &src, &dst);
    return n_overflows(l, src, dst, n);
}

/* Bytes of a whole coded message of 'n' elements. */
static size_t coded_bytes(const struct lowering *l, const struct zipccl_group *g, uint32_t from,
                          uint32_t to, uint32_t b, size_t n)
{
    uint32_t src, dst;

    if (l->step->form == ZIPCCL_FORM_FIXED)
        return zipccl_plan_fixed_bytes(l->plan, n);
    if (l->sizes->bytes == NULL)
        return zipccl_bound((enum zipccl_dtype)l->plan->dtype, n);
    name_ends(l, g, from, to, b, &src, &dst);
    if (l->plan->effort == ZIPCCL_EFFORT_RATIO && l->sizes->ratio_bytes != NULL)
        return l->sizes->ratio_bytes(l->sizes->context, src, dst, n);
    return l->sizes->bytes(l->sizes->context, src, dst, n);
}

/* What the step sends of a message of 'n' elements that is 'whole' bytes long. */
static size_t part_bytes(const struct lowering *l, size_t n, size_t whole)
{
    enum zipccl_dtype dtype = (enum zipccl_dtype)l->plan->dtype;
    struct zipccl_split_cut split = zipccl_split_of(dtype, n);
    size_t tail = whole - split.head - split.early;

    if (l->step->form == ZIPCCL_FORM_EXACT && !zipccl_split_stands(&split, dtype, n, whole))
        tail = whole; /* what left early is void */
    return ((l->step->part & ZIPCCL_PART_HEAD) != 0 ? split.head : 0) +
           ((l->step->part & ZIPCCL_PART_EARLY) != 0 ? split.early : 0) +
           ((l->step->part & ZIPCCL_PART_TAIL) != 0 ? tail : 0);
}

static uint64_t message_bytes(const struct lowering *l, const struct zipccl_group *g, uint32_t from,
                              uint32_t to, uint32_t b)
{
    size_t n = message_n(l, g, from, to, b),
           size = zipccl_dtype_size((enum zipccl_dtype)l->plan->dtype);

    if (l->step->kind == ZIPCCL_STEP_SIZES)
        return is_coded(l, n) ? sizeof(uint32_t) : 0;
    if (l->step->form == ZIPCCL_FORM_RAW)
        return (uint64_t)n * size;
    if (!is_coded(l, n))
        return l->step->part == 0 || (l->step->part & ZIPCCL_PART_TAIL) != 0 ? (uint64_t)n * size
                                                                             : 0;
    if (l->step->part == 0)
        return coded_bytes(l, g, from, to, b, n);
    return part_bytes(l, n, coded_bytes(l, g, from, to, b, n));
}

/* Ranks whose elements a REDUCE step adds up. */
static uint32_t fan_in(const struct lowering *l, const struct zipccl_step *step)
{
    switch (step->group) {
    case ZIPCCL_GROUP_NODE: return zipccl_topology_node_size(l->topology, 0);
    case ZIPCCL_GROUP_RAIL: return l->topology->nnodes;
    default: return l->plan->nranks;
    }
}

/* Take up step 'index', and tell the sizes what was added up before it. */
static void enter(struct lowering *l, uint32_t index)
{
    uint32_t nranks = 1;

    l->step = &l->plan->steps[index];
    if (l->sizes == NULL || l->sizes->sums_of == NULL)
        return;
    for (uint32_t i = 0; i < index; i++)
        if (l->plan->steps[i].kind == ZIPCCL_STEP_REDUCE &&
            l->plan->steps[i].chunk == l->step->chunk)
            nranks *= fan_in(l, &l->plan->steps[i]);
    l->sizes->sums_of(l->sizes->context, nranks);
}

/* The longest message of an all-gather: EXACT ones are all as long. */
static uint64_t longest_bytes(const struct lowering *l, const struct zipccl_group *g)
{
    uint64_t longest = 0;

    for (uint32_t from = 0; from < g->size; from++)
        for (uint32_t b = 0; b < g->nblocks; b++) {
            uint64_t nbytes = message_bytes(l, g, from, 0, b);

            longest = nbytes > longest ? nbytes : longest;
        }
    return longest;
}

/* An all-gather or a broadcast is repeated as a whole; other messages each for itself. */
static bool group_resends(const struct lowering *l, const struct zipccl_group *g)
{
    if (l->step->pattern == ZIPCCL_PATTERN_BROADCAST)
        return overflows(l, g, g->root, 0, 0);
    for (uint32_t from = 0; from < g->size; from++)
        for (uint32_t b = 0; b < g->nblocks; b++)
            if (overflows(l, g, from, 0, b))
                return true;
    return false;
}

/* Messages of one part of the group's kind. */
static void lower_part(struct lowering *l, const struct zipccl_group *g)
{
    bool resend = l->step->raw_of != ZIPCCL_STEP_NONE;
    bool shared = zipccl_step_shares_message(l->step);
    bool exact =
        shared && l->step->kind == ZIPCCL_STEP_EXCHANGE && l->step->form == ZIPCCL_FORM_EXACT;
    uint64_t longest = 0;

    if (l->step->pattern == ZIPCCL_PATTERN_BROADCAST && g->root == ZIPCCL_GROUP_NO_ROOT)
        return;
    if (resend && shared && !group_resends(l, g))
        return;
    if (exact)
        longest = l->step->pattern == ZIPCCL_PATTERN_BROADCAST ? message_bytes(l, g, g->root, 0, 0)
                                                               : longest_bytes(l, g);
    for (uint32_t from = 0; from < g->size; from++)
        for (uint32_t to = 0; to < g->size; to++) {
            uint64_t nbytes = 0;

            if (from == to || (l->step->pattern == ZIPCCL_PATTERN_BROADCAST && from != g->root))
                continue;
            for (uint32_t b = 0; b < g->nblocks; b++)
                if (!resend || shared || overflows(l, g, from, to, b)) {
                    bool sent = message_n(l, g, from, to, b) > 0;

                    nbytes += exact && sent ? longest : message_bytes(l, g, from, to, b);
                }
            emit(l, zipccl_group_rank(g, from), zipccl_group_rank(g, to), nbytes);
        }
}

/* Every part of the group's kind, seen by its first member. */
static void lower_direct(struct lowering *l)
{
    for (uint32_t rank = 0; rank < l->plan->nranks; rank++) {
        struct zipccl_group g = zipccl_group_of(l->topology, l->step, rank);

        if (g.self == 0)
            lower_part(l, &g);
    }
}

/* What the rings of one step carry. */
struct ring_load {
    uint64_t unit_bytes;
    size_t block_n;    /* units of a block; with extra_blocks: of the later ones */
    uint32_t nblocks;  /* broadcast: 1 */
    uint32_t longer;   /* the first blocks have one unit more: all_reduce */
    bool gather, back; /* the edges of an all-gather, of a reduce-scatter */
    bool broadcast;
};

static uint64_t block_part(const struct ring_load *load, uint32_t channels, uint32_t channel,
                           uint32_t block)
{
    return zipccl_ring_part(load->block_n + (block < load->longer ? 1 : 0), channels, channel);
}

/* Bytes on the edge src -> dst of one ring. */
static uint64_t edge_bytes(const struct lowering *l, const struct ring_load *load, uint32_t channel,
                           uint32_t src, uint32_t dst)
{
    uint32_t channels = l->step->channels;
    uint64_t all = 0, units = 0;

    if (load->broadcast)
        return dst == l->step->root
                   ? 0
                   : load->unit_bytes * zipccl_ring_part(load->block_n, channels, channel);
    all = load->longer * block_part(load, channels, channel, 0) +
          (load->nblocks - load->longer) * block_part(load, channels, channel, load->nblocks);
    if (load->gather)
        units += all - block_part(load, channels, channel, dst);
    if (load->back)
        units += all - block_part(load, channels, channel, src);
    return units * load->unit_bytes;
}

static zipccl_status lower_rings(struct lowering *l, const struct ring_load *load)
{
    uint32_t channels = l->step->channels;
    uint32_t *next = malloc(channels * sizeof *next);

    if (next == NULL)
        return ZIPCCL_ERR_NOMEM;
    for (uint32_t src = 0; src < l->plan->nranks; src++) {
        for (uint32_t c = 0; c < channels; c++)
            next[c] = zipccl_ring_next(l->topology, c, src);
        /* Rings that share an edge make one flow; it is emitted at the first of them. */
        for (uint32_t c = 0; c < channels; c++) {
            uint64_t nbytes = 0;
            bool first = true;

            for (uint32_t k = 0; k < channels; k++)
                if (next[k] == next[c]) {
                    first = first && k >= c;
                    nbytes += edge_bytes(l, load, k, src, next[k]);
                }
            if (first)
                emit(l, src, next[c], nbytes);
        }
    }
    free(next);
    return ZIPCCL_OK;
}

/* EXCHANGE: blocks of bytes. */
static struct ring_load exchange_load(const struct lowering *l)
{
    struct zipccl_group g = zipccl_group_of(l->topology, l->step, 0);
    bool broadcast = l->step->pattern == ZIPCCL_PATTERN_BROADCAST;

    return (struct ring_load){.unit_bytes = 1,
                              .block_n = broadcast ? message_bytes(l, &g, g.root, 0, 0)
                                                   : longest_bytes(l, &g),
                              .nblocks = broadcast ? 1 : l->plan->nranks,
                              .gather = !broadcast,
                              .broadcast = broadcast};
}

/* NATIVE: blocks of elements. */
static struct ring_load native_load(const struct lowering *l)
{
    uint32_t nranks = l->plan->nranks, op = l->plan->op;
    bool whole = op == ZIPCCL_ALL_REDUCE;

    return (struct ring_load){.unit_bytes = zipccl_dtype_size((enum zipccl_dtype)l->plan->dtype),
                              .block_n = whole ? l->plan->count / nranks : l->plan->count,
                              .nblocks = nranks,
                              .longer = whole ? (uint32_t)(l->plan->count % nranks) : 0,
                              .gather = op == ZIPCCL_ALL_GATHER || op == ZIPCCL_ALL_REDUCE,
                              .back = zipccl_is_reduction(op),
                              .broadcast = op == ZIPCCL_BROADCAST};
}

/* True if this is the resend of a ring that need not happen. */
static bool resend_is_idle(const struct lowering *l)
{
    struct zipccl_group g = zipccl_group_of(l->topology, l->step, 0);

    return l->step->raw_of != ZIPCCL_STEP_NONE && !group_resends(l, &g);
}

static zipccl_status check(const struct lowering *l)
{
    const struct zipccl_step *s = l->step;
    size_t nranks = l->plan->nranks;

    if (s->kind != ZIPCCL_STEP_EXCHANGE && s->kind != ZIPCCL_STEP_SIZES &&
        s->kind != ZIPCCL_STEP_NATIVE)
        return ZIPCCL_ERR_ARG;
    if (l->topology->nranks != nranks || s->channels == 0 || s->root >= nranks)
        return ZIPCCL_ERR_ARG;
    if (!zipccl_step_fits(s, l->topology) ||
        (s->group != ZIPCCL_GROUP_WORLD &&
         (s->lowering == ZIPCCL_LOWER_RING || s->pattern == ZIPCCL_PATTERN_PAIRS)))
        return ZIPCCL_ERR_UNSUPPORTED;
    if (s->lowering == ZIPCCL_LOWER_RING && s->kind == ZIPCCL_STEP_EXCHANGE &&
        s->pattern != ZIPCCL_PATTERN_ALL_GATHER && s->pattern != ZIPCCL_PATTERN_BROADCAST)
        return ZIPCCL_ERR_ARG;
    if (s->pattern != ZIPCCL_PATTERN_PAIRS)
        return ZIPCCL_OK;
    if (l->sizes->splits == NULL)
        return ZIPCCL_ERR_ARG;
    for (size_t i = 0; i < nranks * nranks; i++)
        if (l->sizes->splits[i] > l->plan->count)
            return ZIPCCL_ERR_ARG;
    return ZIPCCL_OK;
}

zipccl_status zipccl_lower(const struct zipccl_plan *plan, uint32_t step,
                           const struct zipccl_topology *topology,
                           const struct zipccl_wire_sizes *sizes, zipccl_flow_fn *flow,
                           void *context, uint32_t *nrounds)
{
    struct lowering l = {.plan = plan,
                         .topology = topology,
                         .sizes = sizes != NULL ? sizes : &no_sizes,
                         .flow = flow,
                         .context = context};
    struct ring_load load;
    uint32_t rounds = 1;

    if (step >= plan->nsteps || flow == NULL || nrounds == NULL)
        return ZIPCCL_ERR_ARG;
    enter(&l, step);
    ZIPCCL_TRY(check(&l));
    if (l.step->lowering != ZIPCCL_LOWER_RING) {
        lower_direct(&l);
    } else if (!resend_is_idle(&l)) {
        load = l.step->kind == ZIPCCL_STEP_NATIVE ? native_load(&l) : exchange_load(&l);
        ZIPCCL_TRY(lower_rings(&l, &load));
        rounds = plan->nranks - 1;
        if (load.gather && load.back)
            rounds *= 2;
    }
    *nrounds = l.total > 0 ? rounds : 0;
    return ZIPCCL_OK;
}

/* Steps that zipccl_lower_by_rank() serves: sizes that depend on more than n need every pair. */
static bool is_by_rank(const struct lowering *l)
{
    const struct zipccl_step *s = l->step;
    /* Shards of one length, so that within a node or a rail all messages are alike. */
    bool alike = l->plan->shard_n == 0 ||
                 zipccl_plan_owner_n(l->plan, s->chunk, l->plan->nranks - 1) == s->n;

    return check(l) == ZIPCCL_OK && s->lowering != ZIPCCL_LOWER_RING &&
           (s->group == ZIPCCL_GROUP_WORLD ? s->nblocks == 1 : alike) &&
           (s->pattern == ZIPCCL_PATTERN_ALL_TO_ALL || s->pattern == ZIPCCL_PATTERN_ALL_GATHER) &&
           (l->sizes->by_n || (l->sizes->overflows == NULL && l->sizes->bytes == NULL));
}

/* Bytes from member 'from' to member 'to' of a group whose blocks are alike. */
static uint64_t alike_bytes(const struct lowering *l, const struct zipccl_group *g, uint32_t from,
                            uint32_t to)
{
    uint32_t b = g->skipped == 0 ? 1 : 0, nblocks = g->nblocks - (g->skipped < g->nblocks);
    bool resend = l->step->raw_of != ZIPCCL_STEP_NONE && !zipccl_step_shares_message(l->step);

    if (nblocks == 0 || (resend && !overflows(l, g, from, to, b)))
        return 0;
    return nblocks * message_bytes(l, g, from, to, b);
}

bool zipccl_lower_by_rank(const struct zipccl_plan *plan, uint32_t step,
                          const struct zipccl_topology *topology,
                          const struct zipccl_wire_sizes *sizes, uint64_t *nbytes, bool *by_source)
{
    struct lowering l = {
        .plan = plan, .topology = topology, .sizes = sizes != NULL ? sizes : &no_sizes};
    struct zipccl_group g;
    uint64_t longest = 0;
    bool world;

    if (step >= plan->nsteps)
        return false;
    enter(&l, step);
    if (!is_by_rank(&l))
        return false;
    world = l.step->group == ZIPCCL_GROUP_WORLD;
    *by_source = l.step->pattern == ZIPCCL_PATTERN_ALL_GATHER;
    g = zipccl_group_of(topology, l.step, 0);
    memset(nbytes, 0, plan->nranks * sizeof *nbytes);
    if (g.size < 2 || (l.step->raw_of != ZIPCCL_STEP_NONE && *by_source && !group_resends(&l, &g)))
        return true;
    for (uint32_t r = 0; r < plan->nranks; r++) {
        uint32_t me = world ? r : 0, other = (me + 1) % g.size;

        nbytes[r] = *by_source ? alike_bytes(&l, &g, me, other) : alike_bytes(&l, &g, other, me);
        longest = nbytes[r] > longest ? nbytes[r] : longest;
    }
    if (*by_source && l.step->kind == ZIPCCL_STEP_EXCHANGE && l.step->form == ZIPCCL_FORM_EXACT)
        for (uint32_t r = 0; r < plan->nranks; r++)
            if (nbytes[r] > 0)
                nbytes[r] = longest;
    return true;
}

/* Sizes by n alone: one look for each number of elements that a message of the step may have. */
static bool some_n_overflows(const struct lowering *l)
{
    uint32_t nowners = l->plan->shard_n > 0 ? l->plan->nranks : 1;

    for (uint32_t owner = 0; owner < nowners; owner++) {
        size_t n =
            l->plan->shard_n > 0 ? zipccl_plan_owner_n(l->plan, l->step->chunk, owner) : l->step->n;

        if (n > 0 && n_overflows(l, 0, UINT32_MAX, n))
            return true;
    }
    return false;
}

/* Some message that member 'from' of the group sends. */
static bool member_overflows(const struct lowering *l, const struct zipccl_group *g, uint32_t from)
{
    for (uint32_t b = 0; b < g->nblocks; b++)
        for (uint32_t to = 0; to < g->size; to++) {
            if (to == from)
                continue;
            if (overflows(l, g, from, to, b))
                return true;
            if (zipccl_step_shares_message(l->step))
                break; /* it is the same for all */
        }
    return false;
}

static bool step_overflows(const struct lowering *l)
{
    if (l->sizes->by_n && l->step->pattern != ZIPCCL_PATTERN_PAIRS)
        return some_n_overflows(l);
    for (uint32_t rank = 0; rank < l->plan->nranks; rank++) {
        struct zipccl_group g = zipccl_group_of(l->topology, l->step, rank);

        if (l->step->pattern == ZIPCCL_PATTERN_BROADCAST && g.self != g.root)
            continue;
        if (member_overflows(l, &g, g.self))
            return true;
    }
    return false;
}

bool zipccl_lower_overflows(const struct zipccl_plan *plan, const struct zipccl_topology *topology,
                            const struct zipccl_wire_sizes *sizes)
{
    struct lowering l = {.plan = plan, .topology = topology, .sizes = sizes};

    for (uint32_t i = 0; sizes != NULL && i < plan->nsteps; i++) {
        bool fixed = plan->steps[i].form == ZIPCCL_FORM_FIXED && sizes->overflows != NULL;

        if (plan->steps[i].kind != ZIPCCL_STEP_EXCHANGE || !(fixed || plan->steps[i].part != 0))
            continue;
        enter(&l, i);
        if (step_overflows(&l))
            return true;
    }
    return false;
}
