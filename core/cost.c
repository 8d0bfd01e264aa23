/*
 * cost.c - port loads, and the longest path over a plan's two lanes
 *
 * Not charged: the arithmetic of native reductions, the reading of headers (RESOLVE), contention
 * between the codec and anything else on the GPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/cost.h"

#include "core/group.h"
#include "core/split.h"

#include <stdlib.h>
#include <string.h>

/* Steps of a plan that cost the same: full chunks, and the last one, of each kind. */
#define MEMO_SIZE 16u

struct memo {
    uint32_t step; /* the first of them */
    double seconds, wire_s, alpha_s;
    double nic_s, other_s; /* of wire_s: the NICs', and the largest of the rest */
    uint32_t rounds;
    uint64_t nbytes;
};

/* What the NICs have saved up, in seconds of their rate. */
struct bucket {
    double full_s, left_s;
    double end_s; /* when they rested last */
};

struct pricing {
    const struct zipccl_plan *plan;
    const struct zipccl_topology *topology;
    const struct zipccl_cost_params *params;
    const struct zipccl_wire_sizes *sizes;
    uint32_t nnics;      /* in all */
    uint32_t *nic_of;    /* [nranks] */
    uint64_t *loads;     /* [nloads] bytes per port, in this order: */
    uint64_t *gpu[2];    /* [nranks] NVLink, out and in */
    uint64_t *nic[2];    /* [nnics] */
    uint64_t *fabric[2]; /* [nnodes] */
    size_t nloads;
    uint64_t *by_rank; /* [nranks] bytes of a message, after the loads */
    bool crosses;      /* some flow of this step leaves its node */
    uint64_t nbytes;   /* of all flows of this step */
    double *codec_of;  /* [nranks] seconds of the codec so far */
    double *added_of;  /* [nranks] of additions, after them */
    bool broadcasts;   /* a broadcast: ranks do different things */
    uint32_t nroles;   /* ranks whose lanes are followed: all of a broadcast, else one for all */
    double *end;       /* [nsteps * nroles] */
    double *start;     /* [nroles] when each could start the step */
    double *lane_end;  /* [2 * nroles] */
    struct memo memos[MEMO_SIZE];
    uint32_t nmemos;
    struct bucket bucket;
};

static bool params_valid(const struct zipccl_cost_params *p, const struct zipccl_plan *plan)
{
    const double rates[] = {p->nvlink_Bps,
                            p->nic_Bps,
                            p->encode_Bps,
                            p->decode_Bps,
                            p->copy_Bps,
                            zipccl_cost_encode_Bps(p, plan),
                            zipccl_cost_decode_Bps(p, plan)};
    const double others[] = {p->nvlink_alpha_s, p->nic_alpha_s, p->fabric_Bps,
                             p->codec_launch_s, p->fence_s,     p->reduce_Bps,
                             p->nic_burst_bytes};

    /* Written so that NaN fails. */
    for (unsigned i = 0; i < sizeof rates / sizeof *rates; i++)
        if (!(rates[i] > 0))
            return false;
    for (unsigned i = 0; i < sizeof others / sizeof *others; i++)
        if (!(others[i] >= 0))
            return false;
    return p->gpus_per_node > 0 && p->nics_per_node > 0;
}

/* Number the NICs of all ranks; false if a slot is not on the machine. */
static bool place_ranks(struct pricing *p, const struct zipccl_placement *placement)
{
    const struct zipccl_topology *t = p->topology;
    const uint32_t *slot_of = placement->slot_of != NULL ? placement->slot_of : t->local_of;

    for (uint32_t r = 0; r < t->nranks; r++) {
        if (slot_of[r] >= p->params->gpus_per_node)
            return false;
        p->nic_of[r] =
            t->node_of[r] * p->params->nics_per_node +
            (uint32_t)((uint64_t)slot_of[r] * p->params->nics_per_node / p->params->gpus_per_node);
    }
    return true;
}

static void release(struct pricing *p)
{
    free(p->nic_of);
    free(p->loads);
    free(p->codec_of);
    free(p->end);
}

static zipccl_status prepare(struct pricing *p)
{
    size_t nranks = p->topology->nranks, nnodes = p->topology->nnodes;

    if (p->params->nics_per_node > UINT32_MAX / nnodes)
        return ZIPCCL_ERR_ARG;
    p->nnics = (uint32_t)(nnodes * p->params->nics_per_node);
    p->nloads = 2 * (nranks + p->nnics + nnodes);
    p->nic_of = calloc(nranks, sizeof *p->nic_of);
    p->loads = calloc(p->nloads + nranks, sizeof *p->loads);
    p->codec_of = calloc(2 * nranks, sizeof *p->codec_of);
    p->broadcasts = p->plan->op == ZIPCCL_BROADCAST;
    p->nroles = p->broadcasts ? p->plan->nranks : 1;
    p->end = calloc(((size_t)p->plan->nsteps + 3) * p->nroles, sizeof *p->end);
    if (p->nic_of == NULL || p->loads == NULL || p->codec_of == NULL || p->end == NULL)
        return ZIPCCL_ERR_NOMEM;
    p->added_of = p->codec_of + nranks;
    p->start = p->end + (size_t)p->plan->nsteps * p->nroles;
    p->lane_end = p->start + p->nroles;
    p->by_rank = p->loads + p->nloads;
    for (unsigned in = 0; in < 2; in++) {
        p->gpu[in] = p->loads + in * nranks;
        p->nic[in] = p->loads + 2 * nranks + in * p->nnics;
        p->fabric[in] = p->loads + 2 * (nranks + p->nnics) + in * nnodes;
    }
    return ZIPCCL_OK;
}

static void add_flow(void *context, uint32_t src, uint32_t dst, uint64_t nbytes)
{
    struct pricing *p = context;
    uint32_t from = p->topology->node_of[src], to = p->topology->node_of[dst];

    p->nbytes += nbytes;
    if (from == to) {
        p->gpu[0][src] += nbytes;
        p->gpu[1][dst] += nbytes;
        return;
    }
    p->crosses = true;
    p->nic[0][p->nic_of[src]] += nbytes;
    p->nic[1][p->nic_of[dst]] += nbytes;
    p->fabric[0][from] += nbytes;
    p->fabric[1][to] += nbytes;
}

/*
 * Loads of a step in which all exchange with all, from bytes by rank: what a rank sends to its node
 * is the node's sum less its own, what it sends beyond the rest; within a node or a rail all
 * messages are alike.  False: ask pair by pair.
 */
static bool add_all_to_all(struct pricing *p, uint32_t step, uint32_t *rounds)
{
    const struct zipccl_topology *t = p->topology;
    uint64_t *one = p->by_rank, total = 0;
    uint8_t group = p->plan->steps[step].group;
    bool by_source;

    if (!zipccl_lower_by_rank(p->plan, step, t, p->sizes, one, &by_source))
        return false;
    for (uint32_t r = 0; r < t->nranks; r++)
        total += one[r];
    for (uint32_t node = 0; node < t->nnodes; node++) {
        uint64_t size = zipccl_topology_node_size(t, node), sum = 0;

        for (uint32_t i = t->node_start[node]; i < t->node_start[node + 1]; i++)
            sum += one[t->members[i]];
        for (uint32_t i = t->node_start[node]; i < t->node_start[node + 1]; i++) {
            uint32_t r = t->members[i];
            /* 'fan' is one message to or from each peer, 'rest' the peers' own messages. */
            uint64_t near_fan = (size - 1) * one[r], far_fan = (t->nranks - size) * one[r];
            uint64_t near_rest = sum - one[r], far_rest = total - sum;

            if (group == ZIPCCL_GROUP_NODE)
                far_fan = far_rest = 0;
            if (group == ZIPCCL_GROUP_RAIL) {
                near_fan = near_rest = 0;
                far_fan = far_rest = (t->nnodes - 1) * one[r];
            }

            p->gpu[!by_source][r] += near_fan;
            p->gpu[by_source][r] += near_rest;
            p->nic[!by_source][p->nic_of[r]] += far_fan;
            p->nic[by_source][p->nic_of[r]] += far_rest;
            p->fabric[!by_source][node] += far_fan;
            p->fabric[by_source][node] += far_rest;
            p->nbytes += near_fan + far_fan;
            p->crosses = p->crosses || far_fan > 0;
        }
    }
    *rounds = p->nbytes > 0 ? 1 : 0;
    return true;
}

static double slowest(const uint64_t *loads, size_t nports, double rate)
{
    uint64_t most = 0;

    for (size_t i = 0; i < nports; i++)
        most = loads[i] > most ? loads[i] : most;
    return (double)most / rate;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double alpha_between(const struct pricing *p, uint32_t a, uint32_t b)
{
    return p->topology->node_of[a] != p->topology->node_of[b] ? p->params->nic_alpha_s
                                                              : p->params->nvlink_alpha_s;
}

static bool streams(const struct pricing *p, const struct zipccl_step *s)
{
    return p->broadcasts && s->lowering == ZIPCCL_LOWER_RING && s->kind != ZIPCCL_STEP_SIZES;
}

/*
 * A stream of 'wire_s' through the rings: each rank sends on alpha after it was reached and the next
 * one is there, and is done when all its rings are.  Returns the alphas of the longest ring.
 *
 * end  [nranks], when each is done; NULL: not wanted
 */
static double place_stream(const struct pricing *p, const struct zipccl_step *s, double wire_s,
                           double *end)
{
    double longest = 0;

    for (uint32_t c = 0; c < s->channels; c++) {
        uint32_t rank = s->root;
        double head = end != NULL ? p->start[rank] : 0, alphas = 0;

        for (uint32_t hop = 1; hop < p->topology->nranks; hop++) {
            uint32_t next = zipccl_ring_next(p->topology, c, rank);

            alphas += alpha_between(p, rank, next);
            if (end != NULL) {
                head = larger(p->start[next], head + alpha_between(p, rank, next));
                end[rank] = larger(end[rank], head + wire_s);
                end[next] = larger(end[next], head + wire_s);
            }
            rank = next;
        }
        longest = larger(longest, alphas);
    }
    return longest;
}

static zipccl_status price_wire(struct pricing *p, uint32_t step, struct memo *memo)
{
    const struct zipccl_step *sent = &p->plan->steps[step];
    size_t nranks = p->topology->nranks, nnodes = p->topology->nnodes;
    uint32_t rounds = 0;

    memset(p->loads, 0, p->nloads * sizeof *p->loads);
    p->crosses = false;
    p->nbytes = 0;
    if (!add_all_to_all(p, step, &rounds))
        ZIPCCL_TRY(zipccl_lower(p->plan, step, p->topology, p->sizes, add_flow, p, &rounds));
    memo->other_s = slowest(p->gpu[0], 2 * nranks, p->params->nvlink_Bps);
    if (p->params->fabric_Bps > 0)
        memo->other_s =
            larger(memo->other_s, slowest(p->fabric[0], 2 * nnodes, p->params->fabric_Bps));
    memo->nic_s = slowest(p->nic[0], 2 * (size_t)p->nnics, p->params->nic_Bps);
    memo->wire_s = larger(memo->nic_s, memo->other_s);
    memo->rounds = rounds;
    memo->alpha_s = rounds * (p->crosses ? p->params->nic_alpha_s : p->params->nvlink_alpha_s);
    if (streams(p, sent) && rounds > 0)
        memo->alpha_s = place_stream(p, sent, 0, NULL);
    memo->nbytes = p->nbytes;
    memo->seconds = memo->wire_s + memo->alpha_s;
    return ZIPCCL_OK;
}

/* Small pair chunks, which are copied, are charged at the codec's rate too. */
static double price_local(struct pricing *p, const struct zipccl_step *s)
{
    double size = (double)zipccl_dtype_size((enum zipccl_dtype)p->plan->dtype), most = 0;
    double rate = s->kind == ZIPCCL_STEP_ENCODE ? zipccl_cost_encode_Bps(p->params, p->plan)
                  : s->kind == ZIPCCL_STEP_COPY ? p->params->copy_Bps
                                                : zipccl_cost_decode_Bps(p->params, p->plan);
    const size_t *splits = p->sizes != NULL ? p->sizes->splits : NULL;

    for (uint32_t rank = 0; rank < p->plan->nranks; rank++) {
        double seconds = zipccl_cost_local_n(p->plan, s, p->topology, splits, rank) * size / rate;

        double added = zipccl_cost_summed_s(p->plan, s, p->topology, p->params, rank);

        if (s->kind != ZIPCCL_STEP_COPY)
            p->codec_of[rank] += seconds;
        p->added_of[rank] += added;
        if (seconds > 0 && s->kind != ZIPCCL_STEP_COPY)
            seconds += p->params->codec_launch_s;
        most = larger(most, seconds + added);
    }
    return most;
}

/* The parts that a step's messages go in, or those that a resend repeats. */
static uint8_t parts_of(const struct pricing *p, const struct zipccl_step *s)
{
    return s->raw_of == ZIPCCL_STEP_NONE ? s->part : p->plan->steps[s->raw_of].part;
}

/* Chunks of equal size cost the same, so that a plan of many chunks is lowered only a few times. */
static bool alike(const struct pricing *p, const struct zipccl_step *a, const struct zipccl_step *b)
{
    return zipccl_group_is_full_chunk(p->plan, a) && zipccl_group_is_full_chunk(p->plan, b) &&
           a->group == b->group && a->nblocks == b->nblocks && a->remote == b->remote &&
           a->kind == b->kind && a->form == b->form && parts_of(p, a) == parts_of(p, b) &&
           a->n == b->n && a->pattern == b->pattern && a->lowering == b->lowering &&
           a->channels == b->channels && a->root == b->root &&
           (a->raw_of == ZIPCCL_STEP_NONE) == (b->raw_of == ZIPCCL_STEP_NONE) &&
           a->pattern != ZIPCCL_PATTERN_PAIRS;
}

static zipccl_status recall_wire(struct pricing *p, uint32_t step, struct memo *memo)
{
    for (uint32_t i = 0; i < p->nmemos; i++)
        if (alike(p, &p->plan->steps[p->memos[i].step], &p->plan->steps[step])) {
            *memo = p->memos[i];
            return ZIPCCL_OK;
        }
    ZIPCCL_TRY(price_wire(p, step, memo));
    memo->step = step;
    if (p->nmemos < MEMO_SIZE)
        p->memos[p->nmemos++] = *memo;
    return ZIPCCL_OK;
}

/* An exchange that starts at 'start_s': what the NICs have saved while they rested goes at once. */
static void spend_burst(struct pricing *p, double start_s, struct memo *m, struct zipccl_cost *cost)
{
    struct bucket *b = &p->bucket;
    double alpha_s, used;

    if (!(b->full_s > 0) || !(m->nic_s > 0))
        return;
    alpha_s = m->alpha_s / m->rounds;
    b->left_s += start_s + alpha_s - b->end_s;
    b->left_s = (b->left_s < b->full_s ? b->left_s : b->full_s) + (m->rounds - 1) * alpha_s;
    used = b->left_s < m->nic_s ? b->left_s : m->nic_s;
    b->left_s = b->left_s - used < b->full_s ? b->left_s - used : b->full_s;
    cost->burst_s += used;
    m->wire_s = larger(m->nic_s - used, m->other_s);
    m->seconds = m->wire_s + m->alpha_s;
    b->end_s = start_s + m->seconds;
}

static zipccl_status price_step(struct pricing *p, uint32_t step, struct zipccl_cost *cost,
                                uint64_t *nbytes, struct memo *out)
{
    const struct zipccl_step *s = &p->plan->steps[step];
    double *seconds = &out->seconds;
    struct memo memo;

    *out = (struct memo){.step = step};
    switch (s->kind) {
    case ZIPCCL_STEP_ENCODE:
    case ZIPCCL_STEP_DECODE:
    case ZIPCCL_STEP_REDUCE:
    case ZIPCCL_STEP_COPY: *seconds = price_local(p, s); return ZIPCCL_OK;
    case ZIPCCL_STEP_RESOLVE: return ZIPCCL_OK;
    default: break;
    }
    ZIPCCL_TRY(recall_wire(p, step, &memo));
    spend_burst(p, p->start[0], &memo, cost);
    *out = memo;
    cost->wire_s += memo.wire_s;
    cost->alpha_s += memo.alpha_s;
    *nbytes += memo.nbytes;
    if (s->kind == ZIPCCL_STEP_SIZES && memo.nbytes > 0) {
        *seconds += p->params->fence_s;
        cost->fence_s += p->params->fence_s;
    }
    return ZIPCCL_OK;
}

/* Payload bytes of the uncompressed call, over all ranks. */
static double raw_total(const struct pricing *p)
{
    double nranks = p->plan->nranks, count = (double)p->plan->count, n = 0;

    switch (p->plan->op) {
    case ZIPCCL_ALL_REDUCE: n = 2 * (nranks - 1) * count; break;
    case ZIPCCL_BROADCAST: n = (nranks - 1) * count; break;
    case ZIPCCL_ALLTOALLV:
    case ZIPCCL_SENDRECV:
        for (size_t i = 0; p->sizes != NULL && p->sizes->splits != NULL &&
                           i < (size_t)p->plan->nranks * p->plan->nranks;
             i++)
            if (i % (p->plan->nranks + 1u) != 0)
                n += (double)p->sizes->splits[i];
        break;
    default: n = nranks * (nranks - 1) * count;
    }
    return n * (double)zipccl_dtype_size((enum zipccl_dtype)p->plan->dtype);
}

/* A direct step of a broadcast: the sender waits for all of its group, the others for the sender. */
static void place_direct(const struct pricing *p, const struct zipccl_step *s, double seconds,
                         double *end)
{
    for (uint32_t r = 0; r < p->nroles; r++) {
        struct zipccl_group g = zipccl_group_of(p->topology, s, r);

        if (g.root == ZIPCCL_GROUP_NO_ROOT || g.size < 2) {
            end[r] += s->kind == ZIPCCL_STEP_SIZES ? p->params->fence_s : 0;
            continue;
        }
        for (uint32_t m = 0; m < g.size; m++)
            if (g.self == g.root || m == g.root)
                end[r] = larger(end[r], p->start[zipccl_group_rank(&g, m)]);
        end[r] += seconds;
    }
}

/* When a step ends for each role, from when each could start it. */
static void place_step(const struct pricing *p, const struct zipccl_step *s,
                       const struct memo *price, double *end)
{
    bool wire = s->kind == ZIPCCL_STEP_EXCHANGE || s->kind == ZIPCCL_STEP_SIZES ||
                s->kind == ZIPCCL_STEP_NATIVE;

    for (uint32_t r = 0; r < p->nroles; r++) {
        bool works =
            !p->broadcasts || (!wire && zipccl_cost_local_n(p->plan, s, p->topology, NULL, r) > 0);

        end[r] = p->start[r] + (works ? price->seconds : 0);
    }
    if (!p->broadcasts || !wire || price->seconds <= 0)
        return;
    if (streams(p, s))
        place_stream(p, s, price->wire_s, end);
    else
        place_direct(p, s, price->seconds, end);
}

/* All steps, one after the other as their lanes and dependencies let them. */
static zipccl_status price_steps(struct pricing *p, struct zipccl_cost *cost, uint64_t *nbytes)
{
    for (uint32_t i = 0; i < p->plan->nsteps; i++) {
        const struct zipccl_step *s = &p->plan->steps[i];
        double *end = p->end + (size_t)i * p->nroles;
        double *lane_end = p->lane_end + (size_t)(s->lane & 1) * p->nroles;
        struct memo price;

        for (uint32_t r = 0; r < p->nroles; r++) {
            p->start[r] = lane_end[r];
            for (uint32_t d = 0; d < s->ndeps; d++)
                if (s->deps[d] < i)
                    p->start[r] = larger(p->start[r], p->end[(size_t)s->deps[d] * p->nroles + r]);
        }
        ZIPCCL_TRY(price_step(p, i, cost, nbytes, &price));
        place_step(p, s, &price, end);
        for (uint32_t r = 0; r < p->nroles; r++) {
            lane_end[r] = end[r];
            cost->total_s = larger(cost->total_s, end[r]);
        }
    }
    return ZIPCCL_OK;
}

/* Calls like this one follow one another: the NICs rest from the last exchange of one to the first of
 * the next, so a first pass finds what they have saved by then. */
static zipccl_status save_burst(struct pricing *p)
{
    struct zipccl_cost cost = {0};
    uint64_t nbytes = 0;

    if (!(p->params->nic_burst_bytes > 0) || p->broadcasts)
        return ZIPCCL_OK;
    p->bucket.full_s = p->params->nic_burst_bytes / p->params->nic_Bps;
    ZIPCCL_TRY(price_steps(p, &cost, &nbytes));
    p->bucket.end_s -= cost.total_s;
    memset(p->end, 0, ((size_t)p->plan->nsteps + 3) * p->nroles * sizeof *p->end);
    memset(p->codec_of, 0, 2 * (size_t)p->topology->nranks * sizeof *p->codec_of);
    return ZIPCCL_OK;
}

static zipccl_status price_plan(struct pricing *p, struct zipccl_cost *cost)
{
    uint64_t nbytes = 0;

    ZIPCCL_TRY(save_burst(p));
    ZIPCCL_TRY(price_steps(p, cost, &nbytes));
    for (uint32_t r = 0; r < p->plan->nranks; r++) {
        cost->codec_s = larger(cost->codec_s, p->codec_of[r]);
        cost->reduce_s = larger(cost->reduce_s, p->added_of[r]);
    }
    cost->wire_bytes = (nbytes + p->plan->nranks / 2) / p->plan->nranks;
    cost->raw_bytes = (uint64_t)(raw_total(p) / p->plan->nranks + 0.5);
    return ZIPCCL_OK;
}

zipccl_status zipccl_cost_plan(const struct zipccl_plan *plan,
                               const struct zipccl_placement *placement,
                               const struct zipccl_cost_params *params,
                               const struct zipccl_wire_sizes *sizes, struct zipccl_cost *out)
{
    struct zipccl_cost_params shared = *params;
    struct pricing p = {
        .plan = plan, .topology = placement->topology, .params = &shared, .sizes = sizes};
    double sharing = zipccl_cost_sharing(params->shared_cores, plan->nranks);
    struct zipccl_cost cost = {0};
    zipccl_status status;

    shared.nvlink_alpha_s *= sharing;
    shared.nic_alpha_s *= sharing;

    if (!params_valid(params, plan) || p.topology->nranks != plan->nranks)
        return ZIPCCL_ERR_ARG;
    status = prepare(&p);
    for (uint32_t i = 0; i < plan->nsteps && status == ZIPCCL_OK; i++)
        if (!zipccl_step_fits(&plan->steps[i], p.topology))
            status = ZIPCCL_ERR_UNSUPPORTED;
    if (status == ZIPCCL_OK && !place_ranks(&p, placement))
        status = ZIPCCL_ERR_ARG;
    if (status == ZIPCCL_OK)
        status = price_plan(&p, &cost);
    release(&p);
    if (status == ZIPCCL_OK)
        *out = cost;
    return status;
}
