/*
 * gate_calls.c - calls at a gate: their memory, their end, and what is counted then
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/gate.h"

#include "core/comm_state.h"
#include "core/plan_builder.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(ZIPCCL_GATE_AHEAD <= (ZIPCCL_LATE_PERIODS - 1) * ZIPCCL_CLASS_PERIOD,
               "pairs learn from calls that are further back than any that may not have ended");

/* A graph is in order with what its launch is in order with; within it calls wait for each other. */
static zipccl_status enter(struct zipccl_exec_cuda *e, cudaStream_t stream, unsigned long long id)
{
    if (e->gate->capture_id == id)
        ZIPCCL_CUDA_TRY(e, cudaStreamWaitEvent(stream, e->gate->captured_done, 0));
    /* What the ranks have to tell each other, they tell each other now. */
    e->transport->stream = e->gate->apart;
    e->now = stream;
    return ZIPCCL_OK;
}

bool zipccl_gate_enter(struct zipccl_exec_cuda *e, cudaStream_t stream)
{
    unsigned long long id;

    if (!zipccl_gate_capturing(stream, &id))
        return false;
    e->gate->entered = enter(e, stream, id);
    return true;
}

void zipccl_gate_begin(struct zipccl_exec_cuda *e, cudaStream_t stream)
{
    struct zipccl_gate *gate = e->gate;
    unsigned long long id;

    if (gate == NULL)
        return;
    gate->captured = zipccl_gate_capturing(stream, &id);
    gate->on = gate->captured || gate->mode == ZIPCCL_GATE_ALL;
    gate->step_of = ZIPCCL_STEP_NONE;
    gate->plain = false;
    if (gate->captured)
        e->timer = NULL; /* events of a graph tell no time */
}

bool zipccl_gate_native(struct zipccl_gate *gate, const struct zipccl_plan *plan)
{
    struct zipccl_plan *native = &gate->native;

    for (uint32_t i = 0; i < plan->nsteps && gate->captured; i++)
        gate->plain = gate->plain || plan->steps[i].kind == ZIPCCL_STEP_SIZES;
    if (!gate->plain)
        return false;
    *native = *plan;
    for (uint32_t i = 0; i < plan->nsteps; i++)
        if (plan->steps[i].kind == ZIPCCL_STEP_REDUCE && plan->steps[i].redop == ZIPCCL_AVG)
            native->redop = ZIPCCL_AVG;
    gate->native_step = zipccl_step_make(ZIPCCL_STEP_NATIVE, ZIPCCL_LANE_WIRE, 0, plan->count);
    native->steps = &gate->native_step;
    native->nsteps = native->nchunks = 1;
    native->nslots = 0;
    native->tx_bytes = native->rx_bytes = native->tmp_bytes = native->acc_bytes = 0;
    return true;
}

static void count_coded(struct zipccl_gate *gate, struct zipccl_gate_call *call,
                        const struct zipccl_gate_coded *coded)
{
    struct zipccl_run_stats *stats = &call->ended.stats;
    const struct zipccl_gpu_result *r = coded->h;
    struct zipccl_slice slice = {.n = coded->n,
                                 .capacity = coded->capacity,
                                 .nbytes = (size_t)r->nbytes,
                                 .status = (zipccl_status)r->error};
    size_t n = coded->n;
    int fit;

    zipccl_cuda_count_coded(gate->exec, call->ended.dtype, &slice);
    if (r->error == ZIPCCL_ERR_OVERFLOW) {
        stats->overflows++;
        fit = zipccl_class_roomier(call->ended.dtype, n, call->cls);
    } else {
        stats->coded_raw_bytes += n * call->element;
        stats->coded_bytes += r->nbytes;
        fit = zipccl_class_fit(call->ended.dtype, n, (size_t)r->nbytes);
    }
    stats->fit = fit < stats->fit ? fit : stats->fit;
}

static bool is_flagged(const struct zipccl_gate_site *site, uint32_t flag)
{
    if (flag == ZIPCCL_GATE_ALWAYS)
        return true;
    return (flag < site->nin ? site->h_in[flag] : site->h_out[flag - site->nin]).error ==
           ZIPCCL_ERR_OVERFLOW;
}

/* As core finds it when a call is not late, see executor_codec.c and executor_wire.c. */
static void note_fit(int8_t *fits, const int8_t *classes, uint32_t p, enum zipccl_dtype dtype,
                     size_t n, const struct zipccl_gpu_result *r)
{
    int fit = r->error == ZIPCCL_ERR_OVERFLOW ? zipccl_class_roomier(dtype, n, classes[p])
                                              : zipccl_class_fit(dtype, n, (size_t)r->nbytes);

    if (fit < fits[p])
        fits[p] = (int8_t)fit;
}

/* Both ends of each message of pairs. */
static void count_pairs(struct zipccl_gate_call *call)
{
    struct zipccl_ended_pairs *pairs = &call->pairs;

    for (size_t i = 0; i < call->ncoded; i++)
        note_fit(pairs->send_fit, pairs->send_class, call->coded[i].to, call->ended.dtype,
                 call->coded[i].n, call->coded[i].h);
    for (const struct zipccl_gate_site *site = call->sites; site != NULL; site = site->next)
        for (uint32_t k = 0; k < site->nin; k++)
            note_fit(pairs->recv_fit, pairs->recv_class, site->from[k], call->ended.dtype,
                     (size_t)site->n[k], &site->h_in[k]);
}

/* Count what was sent again, if it was. */
static void count_site(const struct zipccl_gate *gate, struct zipccl_gate_call *call,
                       const struct zipccl_gate_site *site)
{
    struct zipccl_run_stats *stats = &call->ended.stats;
    bool any = false;

    for (uint32_t k = 0; k < site->nin + site->nout; k++)
        any = any || is_flagged(site, k);
    if (!any)
        return;
    stats->raw_resends++;
    if (site->ring_nbytes > 0 &&
        (!site->broadcast || site->root == gate->exec->transport->base.rank))
        stats->wire_bytes += (gate->nranks - 1) * site->ring_nbytes;
    for (size_t i = 0; i < site->nposts; i++)
        if (site->posts[i].send && is_flagged(site, site->posts[i].flag))
            stats->wire_bytes += site->posts[i].nbytes;
}

/* The oldest call has ended. */
static void settle(struct zipccl_gate *gate)
{
    struct zipccl_gate_call *call = gate->oldest, **at = &gate->ended;
    struct zipccl_run_stats *late;

    gate->oldest = call->next;
    gate->ncalls--;
    zipccl_cuda_arena_look(gate->exec, &call->arena);
    call->ended.stats.fit = ZIPCCL_NUM_CLASSES;
    for (size_t i = 0; i < call->ncoded; i++)
        count_coded(gate, call, &call->coded[i]);
    for (const struct zipccl_gate_site *site = call->sites; site != NULL; site = site->next)
        count_site(gate, call, site);
    if (call->ended.pairs != NULL)
        count_pairs(call);
    late = &gate->late[call->op];
    late->overflows += call->ended.stats.overflows;
    late->raw_resends += call->ended.stats.raw_resends;
    late->wire_bytes += call->ended.stats.wire_bytes;
    zipccl_gate_sites_free(gate, call);
    call->ncoded = 0;
    while (*at != NULL) /* few: the owner asks before each call */
        at = &(*at)->next;
    call->next = NULL;
    *at = call;
}

void zipccl_gate_look_back(struct zipccl_gate *gate)
{
    while (gate->oldest != NULL && cudaEventQuery(gate->oldest->arena.done) == cudaSuccess)
        settle(gate);
}

zipccl_status zipccl_gate_wait(struct zipccl_exec_cuda *e)
{
    if (e->gate->oldest != NULL)
        ZIPCCL_TRY(zipccl_transport_nccl_wait(e->transport, e->gate->youngest->arena.done));
    zipccl_gate_look_back(e->gate);
    return ZIPCCL_OK;
}

bool zipccl_gate_ended(struct zipccl_gate *gate, const void *owner, struct zipccl_ended_call *out)
{
    struct zipccl_gate_call **at = &gate->ended, *call;

    zipccl_gate_look_back(gate);
    while (*at != NULL && (*at)->owner != owner)
        at = &(*at)->next;
    call = *at;
    if (call == NULL)
        return false;
    *out = call->ended;
    *at = call->next;
    call->next = gate->spare;
    gate->spare = call;
    return true;
}

/* A call with memory that nobody uses. */
static zipccl_status take_call(struct zipccl_exec_cuda *e, struct zipccl_gate_call **out)
{
    struct zipccl_gate *gate = e->gate;
    struct zipccl_gate_call *call = gate->spare;

    if (call != NULL && !gate->captured) {
        gate->spare = call->next;
    } else {
        call = calloc(1, sizeof *call);
        if (call == NULL)
            return ZIPCCL_ERR_NOMEM;
    }
    call->next = NULL;
    *out = call;
    return ZIPCCL_OK;
}

/* Remember what the pairs' two ends learn from. */
static zipccl_status keep_pairs(struct zipccl_gate_call *call, const struct zipccl_run_state *s)
{
    const struct zipccl_run *run = s->run;
    size_t n = s->nranks, nbytes = n * (2 * sizeof(size_t) + 4);
    struct zipccl_ended_pairs *to = &call->pairs;

    call->ended.pairs = NULL;
    if (run->send_class == NULL || run->recv_class == NULL)
        return ZIPCCL_OK;
    if (to->send_counts == NULL) {
        to->send_counts = malloc(nbytes);
        if (to->send_counts == NULL)
            return ZIPCCL_ERR_NOMEM;
        to->recv_counts = to->send_counts + n;
        to->send_class = (int8_t *)(to->recv_counts + n);
        to->recv_class = to->send_class + n;
        to->send_fit = to->recv_class + n;
        to->recv_fit = to->send_fit + n;
    }
    memcpy(to->send_counts, run->send_counts, n * sizeof *to->send_counts);
    memcpy(to->recv_counts, run->recv_counts, n * sizeof *to->recv_counts);
    memcpy(to->send_class, run->send_class, n);
    memcpy(to->recv_class, run->recv_class, n);
    memset(to->send_fit, ZIPCCL_NUM_CLASSES, 2 * n);
    call->ended.pairs = to;
    return ZIPCCL_OK;
}

zipccl_status zipccl_gate_arena(struct zipccl_exec_cuda *e, const struct zipccl_run_state *s)
{
    struct zipccl_gate *gate = e->gate;
    struct zipccl_gate_call *call;

    zipccl_gate_look_back(gate);
    if (!gate->captured && gate->ncalls >= ZIPCCL_GATE_AHEAD) {
        ZIPCCL_TRY(zipccl_transport_nccl_wait(e->transport, gate->oldest->arena.done));
        settle(gate);
    }
    ZIPCCL_TRY(take_call(e, &call));
    call->element = s->element;
    call->owner = s->run->owner;
    call->op = gate->op;
    call->cls = (int)s->plan->capacity_class;
    call->ended = (struct zipccl_ended_call){.op = (enum zipccl_op)s->plan->op,
                                             .dtype = (enum zipccl_dtype)s->plan->dtype,
                                             .count = s->plan->count,
                                             .even = !zipccl_is_uneven(s->plan->op),
                                             .fixed = zipccl_plan_is_fixed(s->plan)};
    gate->call = call;
    ZIPCCL_TRY(keep_pairs(call, s));
    e->arena = &call->arena;
    if (call->arena.done == NULL)
        ZIPCCL_CUDA_TRY(e, cudaEventCreateWithFlags(&call->arena.done, cudaEventDisableTiming));
    return ZIPCCL_OK;
}

/* Put the call where its memory stays until the gate goes. */
static void keep_for_ever(struct zipccl_gate *gate)
{
    gate->call->next = gate->graphs;
    gate->graphs = gate->call;
    gate->call = NULL;
}

zipccl_status zipccl_gate_end(struct zipccl_exec_cuda *e, cudaStream_t stream)
{
    struct zipccl_gate *gate = e->gate;
    struct zipccl_cuda_region *outcomes = &e->arena->outcomes;
    size_t nresults = outcomes->used / sizeof(struct zipccl_gpu_result);

    if (gate->captured) {
        ZIPCCL_CUDA_TRY(e, zipccl_gate_outcomes((const void *)outcomes->d, (uint32_t)nresults,
                                                &gate->request->broken, stream));
        keep_for_ever(gate);
        return ZIPCCL_OK;
    }
    if (outcomes->used > 0)
        ZIPCCL_CUDA_TRY(e, cudaMemcpyAsync(outcomes->h, outcomes->d, outcomes->used,
                                           cudaMemcpyDeviceToHost, stream));
    ZIPCCL_CUDA_TRY(e, cudaEventRecord(e->arena->done, stream));
    e->arena->busy = true;
    if (gate->oldest == NULL)
        gate->oldest = gate->call;
    else
        gate->youngest->next = gate->call;
    gate->youngest = gate->call;
    gate->call = NULL;
    gate->ncalls++;
    return ZIPCCL_OK;
}

bool zipccl_gate_mark(struct zipccl_exec_cuda *e, cudaStream_t stream)
{
    struct zipccl_gate *gate = e->gate;

    if (gate == NULL)
        return false;
    if (gate->call != NULL) /* it failed on the way */
        keep_for_ever(gate);
    if (!gate->captured)
        return false;
    if (zipccl_gate_capturing(stream, &gate->capture_id))
        cudaEventRecord(gate->captured_done, stream);
    return true;
}

static size_t calls_bytes(const struct zipccl_gate_call *call)
{
    size_t nbytes = 0;

    for (; call != NULL; call = call->next)
        nbytes +=
            call->arena.tables.nbytes + call->arena.results.nbytes + call->arena.outcomes.nbytes;
    return nbytes;
}

size_t zipccl_gate_bytes(const struct zipccl_gate *gate)
{
    return calls_bytes(gate->oldest) + calls_bytes(gate->ended) + calls_bytes(gate->spare) +
           calls_bytes(gate->graphs);
}
