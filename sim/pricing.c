/*
 * pricing.c - places the communicators of a program, chooses and prices their calls
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/pricing.h"

#include "sim/sharing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Staging that a call may use, as the communicator's default. */
#define MAX_STAGING_BYTES ((size_t)256 << 20)

/* Sizes of one call's messages, for the chooser. */
struct sizing {
    struct zipccl_samples *samples;
    uint32_t set;
    size_t element;
    double ratio_delta;
    uint32_t nsummed; /* ranks whose elements were added up */
};

static size_t shift_ratio(const struct sizing *s, size_t n, size_t nbytes)
{
    double raw = (double)(n * s->element), ratio;

    if (s->ratio_delta == 0 || nbytes == 0)
        return nbytes;
    ratio = raw / (double)nbytes + s->ratio_delta;
    return ratio > 1 ? (size_t)(raw / ratio) : (size_t)raw;
}

static size_t mean_bytes(const struct sizing *s, enum zipccl_effort effort, size_t n)
{
    size_t mean, longest;

    zipccl_samples_bytes(s->samples, s->set, effort, n, s->nsummed, &mean, &longest);
    return shift_ratio(s, n, mean);
}

static size_t message_bytes(void *context, uint32_t src, uint32_t dst, size_t n)
{
    (void)src;
    (void)dst;
    return mean_bytes(context, ZIPCCL_EFFORT_FAST, n);
}

static size_t message_ratio_bytes(void *context, uint32_t src, uint32_t dst, size_t n)
{
    (void)src;
    (void)dst;
    return mean_bytes(context, ZIPCCL_EFFORT_RATIO, n);
}

static int message_overflows(void *context, uint32_t src, uint32_t dst, size_t n, size_t capacity)
{
    const struct sizing *s = context;
    size_t mean, longest;

    (void)src;
    (void)dst;
    zipccl_samples_bytes(s->samples, s->set, ZIPCCL_EFFORT_FAST, n, s->nsummed, &mean, &longest);
    return shift_ratio(s, n, longest) > capacity;
}

static void sums_of(void *context, uint32_t nranks)
{
    ((struct sizing *)context)->nsummed = nranks;
}

void zipccl_scenario_init(struct zipccl_scenario *scenario)
{
    *scenario = (struct zipccl_scenario){.nic_factor = 1, .codec_factor = 1, .flows = true};
}

/* Everything needed to price one class on one placement. */
struct job {
    const struct zipccl_program_class *class;
    struct zipccl_placement placement;
    const struct zipccl_cost_params
        *params;                            /* as the group has them beside the others of its set */
    const struct zipccl_cost_params *alone; /* for flows, which see the others by themselves */
    struct sizing sizing;
    bool flows, plans, raw_only, native;
    int capacity_class; /* the narrowest that fixed messages may have */
};

/* The call's raw bytes at the ratio of what is coded; exact where the plan codes all of them. */
static double wire_bytes(const struct zipccl_cost *cost, uint32_t nranks, double raw, double coded)
{
    double all = (double)cost->raw_bytes * nranks;

    if (!(raw > 0))
        return (double)cost->raw_bytes;
    return raw == all ? coded / nranks : (double)cost->raw_bytes * coded / raw;
}

/* Note the class of the plan's FIXED messages and the ratio that a full one is sure of. */
static void note_class(const struct zipccl_plan *plan, struct sizing *sizing,
                       struct zipccl_price *out)
{
    enum zipccl_dtype dtype = (enum zipccl_dtype)plan->dtype;
    size_t size = zipccl_dtype_size(dtype);

    out->capacity_class = ZIPCCL_NO_CLASS;
    if (plan->compressed)
        out->overflows_settled =
            message_overflows(sizing, 0, UINT32_MAX, plan->chunk_n,
                              zipccl_capacity(dtype, plan->chunk_n, ZIPCCL_CLASS_SETTLED));
    if (!zipccl_plan_is_fixed(plan))
        return;
    out->capacity_class = (int)plan->capacity_class;
    out->capacity_ratio =
        (double)(plan->chunk_n * size) / (double)zipccl_plan_fixed_bytes(plan, plan->chunk_n);
}

/* The cheapest native plan so far. */
struct native {
    struct zipccl_plan *plan;
    struct zipccl_cost cost;
};

static void keep_native(void *context, struct zipccl_candidate *candidate)
{
    struct native *kept = context;

    if (strcmp(candidate->strategy->name, "native") != 0 ||
        (kept->plan != NULL && kept->cost.total_s <= candidate->cost.total_s))
        return;
    zipccl_plan_destroy(kept->plan);
    kept->plan = candidate->plan;
    kept->cost = candidate->cost;
    candidate->plan = NULL;
}

static zipccl_status choose(const struct job *job, const struct zipccl_call *call,
                            const struct zipccl_wire_sizes *sizes, enum zipccl_mode mode,
                            bool native_only, struct zipccl_plan **out, struct zipccl_cost *cost)
{
    struct native native = {.plan = NULL};

    if (!native_only)
        return zipccl_choose(call, &job->placement, job->params, sizes, mode,
                             (uint32_t)job->capacity_class, MAX_STAGING_BYTES, out, cost);
    zipccl_status status =
        zipccl_candidates(call, &job->placement, job->params, sizes, mode,
                          (uint32_t)job->capacity_class, MAX_STAGING_BYTES, keep_native, &native);
    if (status == ZIPCCL_OK && native.plan == NULL)
        status = ZIPCCL_ERR_UNSUPPORTED;
    if (status != ZIPCCL_OK) {
        zipccl_plan_destroy(native.plan);
        return status;
    }
    *out = native.plan;
    *cost = native.cost;
    return ZIPCCL_OK;
}

static zipccl_status price_mode(const struct job *job, enum zipccl_mode mode, bool native_only,
                                struct zipccl_price *out)
{
    const struct zipccl_event *e = job->class->event;
    struct zipccl_call call = {.op = e->op,
                               .dtype = e->dtype,
                               .redop = e->redop,
                               .root = e->root,
                               .count = e->count,
                               .has_native = true};
    struct sizing sizing = job->sizing;
    struct zipccl_wire_sizes sizes = {.bytes = message_bytes,
                                      .ratio_bytes = message_ratio_bytes,
                                      .context = &sizing,
                                      .splits = job->class->splits,
                                      .overflows = message_overflows,
                                      .by_n = true,
                                      .sums_of = sums_of};
    struct zipccl_plan *plan = NULL;
    struct zipccl_cost cost;
    double raw, coded;
    zipccl_status status;

    ZIPCCL_TRY(choose(job, &call, &sizes, mode, native_only, &plan, &cost));
    note_class(plan, &sizing, out);
    out->total_s = cost.total_s;
    out->codec_s = cost.codec_s + cost.reduce_s;
    out->raw_bytes = (double)cost.raw_bytes;
    out->sent_bytes = (double)cost.wire_bytes;
    status = zipccl_cost_coded_bytes(plan, job->placement.topology, &sizes, &raw, &coded);
    out->wire_bytes = wire_bytes(&cost, plan->nranks, raw, coded);
    out->compressed = plan->compressed;
    snprintf(out->name, sizeof(out->name), "%.36s%s", plan->strategy,
             plan->compressed && plan->effort == ZIPCCL_EFFORT_RATIO ? " max-ratio" : "");
    if (job->flows && status == ZIPCCL_OK)
        status = zipccl_cost_plan(plan, &job->placement, job->alone, &sizes, &cost);
    if (job->flows && status == ZIPCCL_OK)
        status = zipccl_flow_create(plan, &job->placement, job->alone, &sizes, &cost, &out->flow);
    if (job->plans && status == ZIPCCL_OK)
        out->plan = plan;
    else
        zipccl_plan_destroy(plan);
    return status;
}

/* Node and slot of each rank of a part, nodes numbered as they come: equal keys, equal prices. */
static void place_part(const struct zipccl_cluster *c, const uint32_t *ranks, uint32_t n,
                       uint32_t *nodes, uint32_t *slots)
{
    for (uint32_t i = 0; i < n; i++) {
        nodes[i] = ranks[i] / c->gpus_per_node;
        slots[i] = ranks[i] % c->gpus_per_node;
    }
}

static bool same_place(const struct zipccl_topology *a, const uint32_t *a_slots,
                       const struct zipccl_topology *b, const uint32_t *b_slots)
{
    return memcmp(a->node_of, b->node_of, a->nranks * sizeof(*a->node_of)) == 0 &&
           memcmp(a_slots, b_slots, a->nranks * sizeof(*a_slots)) == 0;
}

/* The distinct placements of a group's parts. */
struct places {
    uint32_t n;
    struct zipccl_topology **topologies;
    uint32_t **slots;
    uint32_t *place_of; /* [nparts] */
};

static void release_places(struct places *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        zipccl_topology_destroy(p->topologies[i]);
        free(p->slots[i]);
    }
    free(p->topologies);
    free(p->slots);
    free(p->place_of);
}

static zipccl_status add_place(struct places *p, const struct zipccl_cluster *c,
                               const struct zipccl_trace_group *group, uint32_t part,
                               uint32_t *nodes)
{
    const uint32_t *ranks = group->ranks + (size_t)part * group->size;
    uint32_t *slots = malloc(group->size * sizeof(*slots)), k = 0;
    struct zipccl_topology *topology = NULL;
    zipccl_status status = slots != NULL ? ZIPCCL_OK : ZIPCCL_ERR_NOMEM;

    if (status == ZIPCCL_OK) {
        place_part(c, ranks, group->size, nodes, slots);
        status = zipccl_topology_create(group->size, nodes, &topology);
    }
    if (status != ZIPCCL_OK) {
        free(slots);
        return status;
    }
    while (k < p->n && !same_place(p->topologies[k], p->slots[k], topology, slots))
        k++;
    p->place_of[part] = k;
    if (k < p->n) {
        zipccl_topology_destroy(topology);
        free(slots);
        return ZIPCCL_OK;
    }
    p->topologies[k] = topology;
    p->slots[k] = slots;
    p->n++;
    return ZIPCCL_OK;
}

static zipccl_status find_places(struct places *p, const struct zipccl_cluster *c,
                                 const struct zipccl_trace_group *group)
{
    uint32_t *nodes = malloc(group->size * sizeof(*nodes));
    zipccl_status status = ZIPCCL_OK;

    p->topologies = calloc(group->nparts, sizeof(*p->topologies));
    p->slots = calloc(group->nparts, sizeof(*p->slots));
    p->place_of = calloc(group->nparts, sizeof(*p->place_of));
    if (nodes == NULL || p->topologies == NULL || p->slots == NULL || p->place_of == NULL)
        status = ZIPCCL_ERR_NOMEM;
    for (uint32_t part = 0; part < group->nparts && status == ZIPCCL_OK; part++)
        status = add_place(p, c, group, part, nodes);
    free(nodes);
    return status;
}

static zipccl_status price_class(struct zipccl_pricing *pricing, uint32_t index,
                                 struct places *places, struct job *job)
{
    uint32_t nparts = job->class->group->nparts, first = pricing->ncalls;
    struct zipccl_priced_call *calls =
        realloc(pricing->calls, (first + places->n) * sizeof(*calls));

    if (calls == NULL)
        return ZIPCCL_ERR_NOMEM;
    pricing->calls = calls;
    pricing->call_of[index] = malloc(nparts * sizeof(uint32_t));
    if (pricing->call_of[index] == NULL)
        return ZIPCCL_ERR_NOMEM;
    for (uint32_t part = 0; part < nparts; part++)
        pricing->call_of[index][part] = first + places->place_of[part];
    for (uint32_t k = 0; k < places->n; k++) {
        struct zipccl_priced_call *call = &calls[pricing->ncalls++];

        memset(call, 0, sizeof(*call));
        call->has_plain = job->native && !job->raw_only;
        call->raw.capacity_class = call->compressed.capacity_class = ZIPCCL_NO_CLASS;
        snprintf(call->raw.name, sizeof(call->raw.name), "none");
        snprintf(call->compressed.name, sizeof(call->compressed.name), "none");
        call->plain = call->raw;
        /* Alone in its group, or empty: nothing moves. */
        if (job->class->group->size < 2 || job->class->event->count == 0)
            continue;
        job->placement = (struct zipccl_placement){places->topologies[k], places->slots[k]};
        ZIPCCL_TRY(price_mode(job, ZIPCCL_MODE_RAW, job->native, &call->raw));
        if (call->has_plain)
            ZIPCCL_TRY(price_mode(job, ZIPCCL_MODE_RAW, false, &call->plain));
        if (!job->raw_only)
            ZIPCCL_TRY(price_mode(job, ZIPCCL_MODE_COMPRESSED, false, &call->compressed));
        if (job->plans) {
            call->topology = places->topologies[k];
            places->topologies[k] = NULL;
        }
    }
    return ZIPCCL_OK;
}

static void release_price(struct zipccl_price *price)
{
    zipccl_flow_destroy(price->flow);
    zipccl_plan_destroy(price->plan);
    price->flow = NULL;
    price->plan = NULL;
}

/* The narrowest class that the compressed plans of a class of calls have in common. */
static int common_class(const struct zipccl_pricing *pricing, uint32_t index, uint32_t nparts)
{
    int common = ZIPCCL_CLASS_SETTLED;

    for (uint32_t part = 0; part < nparts; part++) {
        int c = pricing->calls[pricing->call_of[index][part]].compressed.capacity_class;

        if (c != ZIPCCL_NO_CLASS && c < common)
            common = c;
    }
    return common;
}

/* True if a communicator has one capacity class for both; pairs have it whatever the count. */
static bool share_class(const struct zipccl_program_class *a, const struct zipccl_program_class *b)
{
    bool pairs = zipccl_is_uneven(a->event->op);

    return a->group == b->group && a->event->op == b->event->op &&
           a->event->dtype == b->event->dtype && (pairs || a->event->count == b->event->count);
}

/* Price the compressed plans of a class of calls again, none in a narrower class than the job's. */
static zipccl_status price_again(struct zipccl_pricing *pricing, uint32_t index,
                                 struct places *places, struct job *job)
{
    for (uint32_t part = 0; part < job->class->group->nparts; part++) {
        struct zipccl_price *price = &pricing->calls[pricing->call_of[index][part]].compressed;
        uint32_t k = places->place_of[part];

        if (price->capacity_class <= job->capacity_class)
            continue;
        release_price(price);
        job->placement = (struct zipccl_placement){places->topologies[k], places->slots[k]};
        ZIPCCL_TRY(price_mode(job, ZIPCCL_MODE_COMPRESSED, false, price));
    }
    return ZIPCCL_OK;
}

/* The class in which the calls settle that share one with class 'index'; 'common' [nclasses]. */
static int settled_class(const struct zipccl_program *program, const int *common, uint32_t index)
{
    int settled = ZIPCCL_CLASS_SETTLED;

    for (uint32_t i = 0; i < program->nclasses; i++)
        if (common[i] < settled && share_class(&program->classes[i], &program->classes[index]))
            settled = common[i];
    return settled;
}

/*
 * A group has the part of its NICs and of the fabric that the other groups of its set leave it; a folded
 * program has them no more, its trace has.
 */
static zipccl_status share_nics(const struct zipccl_program *program,
                                const struct zipccl_program_class *class,
                                const struct zipccl_cluster *cluster,
                                struct zipccl_cost_params *params)
{
    struct zipccl_sharing sharing;

    ZIPCCL_TRY(
        zipccl_nic_sharing(cluster, &program->trace->header.groups[class->event->group], &sharing));
    params->nic_Bps /= sharing.nic;
    params->nic_burst_bytes /= sharing.nic;
    params->fabric_Bps /= sharing.fabric;
    return ZIPCCL_OK;
}

/* One round over all classes: price them, or, with 'common', those whose messages share a wider one. */
static zipccl_status price_round(const struct zipccl_program *program,
                                 const struct zipccl_cost_params *params,
                                 const struct zipccl_scenario *scenario,
                                 struct zipccl_samples *samples, const int *common,
                                 struct zipccl_pricing *pricing, struct zipccl_error *error)
{
    for (uint32_t i = 0; i < program->nclasses; i++) {
        const struct zipccl_program_class *class = &program->classes[i];
        const struct zipccl_event *e = class->event;
        struct places places = {.n = 0};
        struct zipccl_cost_params shared = *params;
        struct job job = {
            .class = class,
            .params = &shared,
            .alone = params,
            .sizing = {samples, class->set, zipccl_dtype_size(e->dtype), scenario->ratio_delta, 1},
            .flows = scenario->flows,
            .plans = scenario->plans,
            .raw_only = scenario->raw_only,
            .native = scenario->native,
            .capacity_class =
                common != NULL ? settled_class(program, common, i) : ZIPCCL_CLASS_SETTLED};
        zipccl_status status;

        if (common != NULL && job.capacity_class == ZIPCCL_CLASS_SETTLED)
            continue;
        status = find_places(&places, &pricing->cluster, class->group);
        if (status == ZIPCCL_OK)
            status = share_nics(program, class, &pricing->cluster, &shared);
        if (status == ZIPCCL_OK)
            status = common != NULL ? price_again(pricing, i, &places, &job)
                                    : price_class(pricing, i, &places, &job);
        release_places(&places);
        if (status != ZIPCCL_OK)
            return zipccl_fail(error, status, "event %" PRIu64 ", %s of %" PRIu64 " %s: %s", e->id,
                               zipccl_op_name(e->op), e->count, zipccl_dtype_name(e->dtype),
                               zipccl_status_string(status));
    }
    return ZIPCCL_OK;
}

static zipccl_status price_all(const struct zipccl_program *program,
                               const struct zipccl_scenario *scenario,
                               struct zipccl_samples *samples, struct zipccl_pricing *pricing,
                               struct zipccl_error *error)
{
    int *common = malloc(((size_t)program->nclasses + 1) * sizeof(*common));
    struct zipccl_cost_params params;
    zipccl_status status;

    if (common == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    zipccl_cluster_cost_params(&pricing->cluster, &params);
    status = price_round(program, &params, scenario, samples, NULL, pricing, error);
    for (uint32_t i = 0; i < program->nclasses && status == ZIPCCL_OK; i++)
        common[i] = common_class(pricing, i, program->classes[i].group->nparts);
    if (status == ZIPCCL_OK && !scenario->raw_only)
        status = price_round(program, &params, scenario, samples, common, pricing, error);
    free(common);
    return status == ZIPCCL_OK ? zipccl_samples_check(samples, error) : status;
}

zipccl_status zipccl_pricing_create(const struct zipccl_program *program,
                                    const struct zipccl_cluster *cluster,
                                    const struct zipccl_scenario *scenario,
                                    struct zipccl_samples *samples, struct zipccl_pricing **out,
                                    struct zipccl_error *error)
{
    struct zipccl_pricing *pricing = calloc(1, sizeof(*pricing));
    zipccl_status status;

    if (pricing == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    pricing->cluster = *cluster;
    pricing->cluster.nic_Bps *= scenario->nic_factor;
    pricing->cluster.encode_Bps *= scenario->codec_factor;
    pricing->cluster.decode_Bps *= scenario->codec_factor;
    pricing->cluster.ratio_encode_Bps *= scenario->codec_factor;
    pricing->cluster.ratio_decode_Bps *= scenario->codec_factor;
    pricing->raw_only = scenario->raw_only;
    pricing->nclasses = program->nclasses;
    pricing->call_of = calloc((size_t)program->nclasses + 1, sizeof(*pricing->call_of));
    pricing->row_mode = malloc((size_t)program->nrows + 1);
    if (pricing->call_of != NULL && pricing->row_mode != NULL) {
        memset(pricing->row_mode, ZIPCCL_STEP_ADAPTIVE, program->nrows);
        status = price_all(program, scenario, samples, pricing, error);
    } else {
        status = zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    }
    if (status != ZIPCCL_OK) {
        zipccl_pricing_destroy(pricing);
        return status;
    }
    *out = pricing;
    return ZIPCCL_OK;
}

void zipccl_pricing_destroy(struct zipccl_pricing *pricing)
{
    if (pricing == NULL)
        return;
    for (uint32_t i = 0; i < pricing->ncalls; i++) {
        release_price(&pricing->calls[i].raw);
        release_price(&pricing->calls[i].plain);
        release_price(&pricing->calls[i].compressed);
        zipccl_topology_destroy(pricing->calls[i].topology);
    }
    for (uint32_t i = 0; pricing->call_of != NULL && i < pricing->nclasses; i++)
        free(pricing->call_of[i]);
    free(pricing->call_of);
    free(pricing->row_mode);
    free(pricing->calls);
    free(pricing);
}

/* What adaptive sends uncompressed: whatever raw is, the best plan; of equal ones raw's. */
static const struct zipccl_price *uncompressed(const struct zipccl_priced_call *call)
{
    return call->has_plain && call->plain.total_s < call->raw.total_s ? &call->plain : &call->raw;
}

/* Equal prices stay uncompressed. */
static bool takes_compressed(const struct zipccl_priced_call *call)
{
    return call->compressed.total_s < uncompressed(call)->total_s;
}

const struct zipccl_priced_call *zipccl_pricing_call(const struct zipccl_pricing *pricing,
                                                     const struct zipccl_program_event *event,
                                                     uint32_t part)
{
    return &pricing->calls[pricing->call_of[event->class][part]];
}

const struct zipccl_price *zipccl_pricing_get(const struct zipccl_pricing *pricing,
                                              const struct zipccl_program_event *event,
                                              uint32_t part, int mode)
{
    const struct zipccl_priced_call *call = zipccl_pricing_call(pricing, event, part);

    if (mode == ZIPCCL_RUN_REFINED) {
        mode = pricing->row_mode[event->row];
        if (mode == ZIPCCL_STEP_RAW)
            return uncompressed(call);
    }
    if (mode == ZIPCCL_STEP_RAW)
        return &call->raw;
    if (mode == ZIPCCL_STEP_COMPRESSED)
        return &call->compressed;
    return takes_compressed(call) ? &call->compressed : uncompressed(call);
}

bool zipccl_pricing_adaptive_is(const struct zipccl_pricing *pricing, int mode)
{
    for (uint32_t i = 0; i < pricing->ncalls; i++) {
        const struct zipccl_priced_call *call = &pricing->calls[i];
        bool compressed = takes_compressed(call);

        if (mode == ZIPCCL_STEP_RAW && (compressed || uncompressed(call) != &call->raw))
            return false;
        if (mode == ZIPCCL_STEP_COMPRESSED && !compressed && call->compressed.compressed)
            return false;
    }
    return true;
}
