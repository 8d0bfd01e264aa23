/*
 * flow.c - sums a plan's exchanges into link loads, and finds few edges that make them
 *
 * The edges of a parallel task advance together, so only the sum on each link counts.  A full
 * all-to-all among N ranks has N^2 edges and N link loads; where every node sends as much as the
 * next one receives, N edges put exactly the same loads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/flow.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NOBODY UINT32_MAX

/* Loads of one plan while a flow is made of them. */
struct loads {
    const struct zipccl_topology *topology;
    uint32_t nranks, nnics, nics_per_node;
    double *pair;               /* [nranks * nranks] inside a node, by rank */
    double *up, *down;          /* [nranks] NVLink */
    double *nic_pair;           /* [nnics * nnics] between nodes, by NIC */
    double *nic_up, *nic_down;  /* [nnics] */
    uint32_t *nic_of, *rank_of; /* [nranks], [nnics]: a rank that uses the NIC, or NOBODY */
};

static void release(struct loads *l)
{
    free(l->pair);
    free(l->nic_pair);
    free(l->up);
    free(l->nic_of);
}

static zipccl_status prepare(struct loads *l, const struct zipccl_placement *placement,
                             const struct zipccl_cost_params *params)
{
    const struct zipccl_topology *t = placement->topology;
    const uint32_t *slot_of = placement->slot_of != NULL ? placement->slot_of : t->local_of;
    size_t n = t->nranks;

    l->topology = t;
    l->nranks = t->nranks;
    l->nics_per_node = params->nics_per_node;
    l->nnics = t->nnodes * params->nics_per_node;
    l->pair = calloc(n * n, sizeof(double));
    l->nic_pair = calloc((size_t)l->nnics * l->nnics, sizeof(double));
    l->up = calloc(2 * n + 2 * (size_t)l->nnics, sizeof(double));
    l->nic_of = calloc(n + l->nnics, sizeof(uint32_t));
    if (l->pair == NULL || l->nic_pair == NULL || l->up == NULL || l->nic_of == NULL)
        return ZIPCCL_ERR_NOMEM;
    l->down = l->up + n;
    l->nic_up = l->down + n;
    l->nic_down = l->nic_up + l->nnics;
    l->rank_of = l->nic_of + n;
    for (uint32_t k = 0; k < l->nnics; k++)
        l->rank_of[k] = NOBODY;
    for (uint32_t r = l->nranks; r-- > 0;) {
        l->nic_of[r] = t->node_of[r] * l->nics_per_node +
                       (uint32_t)((uint64_t)slot_of[r] * l->nics_per_node / params->gpus_per_node);
        l->rank_of[l->nic_of[r]] = r;
    }
    return ZIPCCL_OK;
}

static void add_flow(void *context, uint32_t src, uint32_t dst, uint64_t nbytes)
{
    struct loads *l = context;

    if (l->topology->node_of[src] == l->topology->node_of[dst]) {
        l->pair[(size_t)src * l->nranks + dst] += (double)nbytes;
        l->up[src] += (double)nbytes;
        l->down[dst] += (double)nbytes;
        return;
    }
    src = l->nic_of[src];
    dst = l->nic_of[dst];
    l->nic_pair[(size_t)src * l->nnics + dst] += (double)nbytes;
    l->nic_up[src] += (double)nbytes;
    l->nic_down[dst] += (double)nbytes;
}

static double most(const double *x, size_t n)
{
    double best = 0;

    for (size_t i = 0; i < n; i++)
        best = x[i] > best ? x[i] : best;
    return best;
}

/* Bursts: 'nbytes' of the busiest NIC do not wait for its rate, nor as large a part of the others. */
static void send_ahead(struct loads *l, double nbytes)
{
    double busiest = most(l->nic_up, 2 * (size_t)l->nnics), left;

    if (!(nbytes > 0) || !(busiest > 0))
        return;
    left = nbytes < busiest ? 1 - nbytes / busiest : 0;
    for (size_t i = 0; i < 2 * (size_t)l->nnics; i++)
        l->nic_up[i] *= left;
    for (size_t i = 0; i < (size_t)l->nnics * l->nnics; i++)
        l->nic_pair[i] *= left;
}

/* Seconds of the busiest link. */
static double bottleneck(const struct loads *l, const struct zipccl_cost_params *params)
{
    double s = most(l->up, 2 * (size_t)l->nranks) / params->nvlink_Bps;
    double nic = most(l->nic_up, 2 * (size_t)l->nnics) / params->nic_Bps;

    s = nic > s ? nic : s;
    for (uint32_t node = 0; params->fabric_Bps > 0 && node < l->topology->nnodes; node++) {
        double up = 0, down = 0;

        for (uint32_t k = 0; k < l->nics_per_node; k++) {
            up += l->nic_up[node * l->nics_per_node + k];
            down += l->nic_down[node * l->nics_per_node + k];
        }
        up = (up > down ? up : down) / params->fabric_Bps;
        s = up > s ? up : s;
    }
    return s;
}

static void add_edge(struct zipccl_flow *flow, uint32_t src, uint32_t dst, double nbytes)
{
    if (nbytes > 0)
        flow->edges[flow->nedges++] = (struct zipccl_flow_edge){src, dst, nbytes};
}

/* Edges inside one node: each rank to the next if that gives the same loads, else all pairs. */
static void node_edges(const struct loads *l, uint32_t node, struct zipccl_flow *flow)
{
    const uint32_t *members = l->topology->members + l->topology->node_start[node];
    uint32_t n = zipccl_topology_node_size(l->topology, node);
    bool shift = n > 1;

    for (uint32_t i = 0; i < n && shift; i++)
        shift = l->up[members[i]] == l->down[members[(i + 1) % n]];
    for (uint32_t i = 0; i < n; i++) {
        if (shift) {
            add_edge(flow, members[i], members[(i + 1) % n], l->up[members[i]]);
            continue;
        }
        for (uint32_t j = 0; j < n; j++)
            add_edge(flow, members[i], members[j],
                     l->pair[(size_t)members[i] * l->nranks + members[j]]);
    }
}

/* Edges between nodes: NIC k of each node to NIC k of the next, or all pairs of NICs. */
static void nic_edges(const struct loads *l, struct zipccl_flow *flow)
{
    bool shift = l->topology->nnodes > 1;

    for (uint32_t i = 0; i < l->nnics && shift; i++)
        shift = l->nic_up[i] == l->nic_down[(i + l->nics_per_node) % l->nnics];
    for (uint32_t i = 0; i < l->nnics; i++) {
        if (shift) {
            add_edge(flow, l->rank_of[i], l->rank_of[(i + l->nics_per_node) % l->nnics],
                     l->nic_up[i]);
            continue;
        }
        for (uint32_t j = 0; j < l->nnics; j++)
            add_edge(flow, l->rank_of[i], l->rank_of[j], l->nic_pair[(size_t)i * l->nnics + j]);
    }
}

static zipccl_status make_edges(const struct loads *l, struct zipccl_flow *flow)
{
    size_t room = 0;

    for (size_t i = 0; i < (size_t)l->nranks * l->nranks; i++)
        room += l->pair[i] > 0;
    for (size_t i = 0; i < (size_t)l->nnics * l->nnics; i++)
        room += l->nic_pair[i] > 0;
    /* A shift needs no more edges than there are ports. */
    flow->edges = malloc((room + l->nranks + l->nnics) * sizeof(*flow->edges));
    if (flow->edges == NULL)
        return ZIPCCL_ERR_NOMEM;
    for (uint32_t node = 0; node < l->topology->nnodes; node++)
        node_edges(l, node, flow);
    nic_edges(l, flow);
    return ZIPCCL_OK;
}

/* Codec seconds and memory traffic of each rank. */
static zipccl_status add_codec(const struct zipccl_plan *plan,
                               const struct zipccl_placement *placement,
                               const struct zipccl_cost_params *params,
                               const struct zipccl_wire_sizes *sizes,
                               const struct zipccl_cost *cost, struct zipccl_flow *flow)
{
    double size = (double)zipccl_dtype_size((enum zipccl_dtype)plan->dtype);
    const size_t *splits = sizes != NULL ? sizes->splits : NULL;
    /* Each raw byte is read or written once, and its share of the wire once. */
    double traffic =
        1 + (cost->raw_bytes > 0 ? (double)cost->wire_bytes / (double)cost->raw_bytes : 1);

    if (!plan->compressed && !(cost->reduce_s > 0))
        return ZIPCCL_OK;
    flow->codec_s = calloc(plan->nranks, sizeof(double));
    flow->hbm_bytes = calloc(plan->nranks, sizeof(double));
    if (flow->codec_s == NULL || flow->hbm_bytes == NULL)
        return ZIPCCL_ERR_NOMEM;
    for (uint32_t i = 0; i < plan->nsteps; i++) {
        const struct zipccl_step *s = &plan->steps[i];
        bool encode = s->kind == ZIPCCL_STEP_ENCODE;

        if (!encode && s->kind != ZIPCCL_STEP_DECODE && s->kind != ZIPCCL_STEP_REDUCE)
            continue;
        for (uint32_t r = 0; r < plan->nranks; r++) {
            double nbytes = zipccl_cost_local_n(plan, s, placement->topology, splits, r) * size;
            double added_s = zipccl_cost_summed_s(plan, s, placement->topology, params, r);

            flow->hbm_bytes[r] +=
                nbytes * traffic + 2 * added_s * zipccl_cost_reduce_Bps(params, plan);
            flow->codec_s[r] += added_s + nbytes / (encode ? zipccl_cost_encode_Bps(params, plan)
                                                           : zipccl_cost_decode_Bps(params, plan));
        }
    }
    flow->codec_max_s = most(flow->codec_s, plan->nranks);
    return ZIPCCL_OK;
}

zipccl_status zipccl_flow_create(const struct zipccl_plan *plan,
                                 const struct zipccl_placement *placement,
                                 const struct zipccl_cost_params *params,
                                 const struct zipccl_wire_sizes *sizes,
                                 const struct zipccl_cost *cost, struct zipccl_flow **out)
{
    struct zipccl_flow *flow = calloc(1, sizeof(*flow));
    struct loads l = {.nranks = 0};
    zipccl_status status = flow != NULL ? prepare(&l, placement, params) : ZIPCCL_ERR_NOMEM;
    double longest;

    for (uint32_t i = 0; i < plan->nsteps && status == ZIPCCL_OK; i++) {
        uint32_t kind = plan->steps[i].kind, nrounds;

        if (kind == ZIPCCL_STEP_EXCHANGE || kind == ZIPCCL_STEP_SIZES || kind == ZIPCCL_STEP_NATIVE)
            status = zipccl_lower(plan, i, placement->topology, sizes, add_flow, &l, &nrounds);
    }
    if (status == ZIPCCL_OK) {
        send_ahead(&l, cost->burst_s * params->nic_Bps);
        flow->nranks = plan->nranks;
        flow->sm_share = params->codec_sm_share;
        flow->wire_s = bottleneck(&l, params);
        flow->total_s = cost->total_s;
        status = make_edges(&l, flow);
    }
    if (status == ZIPCCL_OK)
        status = add_codec(plan, placement, params, sizes, cost, flow);
    release(&l);
    if (status != ZIPCCL_OK) {
        zipccl_flow_destroy(flow);
        return status;
    }
    longest = flow->wire_s > flow->codec_max_s ? flow->wire_s : flow->codec_max_s;
    flow->extra_s = flow->total_s > longest ? flow->total_s - longest : 0;
    *out = flow;
    return ZIPCCL_OK;
}

void zipccl_flow_destroy(struct zipccl_flow *flow)
{
    if (flow == NULL)
        return;
    free(flow->edges);
    free(flow->codec_s);
    free(flow->hbm_bytes);
    free(flow);
}
