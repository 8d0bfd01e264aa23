/*
 * exec_cuda_run.c - one thread enqueues both lanes of a plan, each into its stream
 *
 * The codec lane goes as far as what is enqueued of the wire lane lets it, then the wire lane makes
 * one step, and so on.  A dependency on the other lane is a wait for the event that its step has
 * left there; each lane has a ring of events, and one that has been used again is a later one of
 * the same stream, so that waiting for it is right as well.
 *
 * SIZES and RESOLVE read on the host what the device has found, which is the only waiting here.  Plans that
 * only move data do that once, at the end (exec_cuda_late.c).  In others, sums, exchanges of the next
 * chunks are enqueued before the host waits for the headers of one, as far as there are slots: what comes
 * before what depends on the plan alone, so it is the same on all ranks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/exec_cuda_walk.h"

#include "gpu/gate.h"

#include <stdlib.h>

/* Events of a lane: more than there are steps between one and its last user, in chunked plans of
 * ZIPCCL_MAX_SLOTS slots. */
#define RING 32u

#define NUM_LANES ZIPCCL_NUM_LANES

void zipccl_cuda_events_destroy(struct zipccl_exec_cuda *e)
{
    for (unsigned lane = 0; lane < NUM_LANES; lane++) {
        for (unsigned i = 0; e->events[lane] != NULL && i < RING; i++)
            if (e->events[lane][i] != NULL)
                cudaEventDestroy(e->events[lane][i]);
        free(e->events[lane]);
    }
}

static zipccl_status events_create(struct zipccl_exec_cuda *e)
{
    for (unsigned lane = 0; lane < NUM_LANES; lane++) {
        if (e->events[lane] != NULL)
            continue;
        e->events[lane] = calloc(RING, sizeof *e->events[lane]);
        if (e->events[lane] == NULL)
            return ZIPCCL_ERR_NOMEM;
        for (unsigned i = 0; i < RING; i++)
            ZIPCCL_CUDA_TRY(e,
                            cudaEventCreateWithFlags(&e->events[lane][i], cudaEventDisableTiming));
    }
    return ZIPCCL_OK;
}

zipccl_status zipccl_cuda_settle(struct zipccl_cuda_walk *w, uint8_t number,
                                 const struct zipccl_gpu_result *coded)
{
    struct zipccl_slot_state *slot = &w->state.slots[number];

    for (size_t i = 0; i < slot->nslices; i++) {
        slot->slices[i].nbytes = coded[i].nbytes;
        slot->slices[i].status = (zipccl_status)coded[i].error;
        zipccl_cuda_count_coded(w->e, (enum zipccl_dtype)w->run.plan->dtype, &slot->slices[i]);
        if (coded[i].error != ZIPCCL_OK && coded[i].error != ZIPCCL_ERR_OVERFLOW)
            return ZIPCCL_ERR_INTERNAL;
    }
    return zipccl_run_keep(&w->state, slot);
}

static zipccl_status wait_coded(struct zipccl_cuda_walk *w, uint8_t number)
{
    if (w->state.slots[number].nslices == 0)
        return ZIPCCL_OK;
    return zipccl_transport_nccl_wait(w->e->transport, w->e->coded_event[number]);
}

static zipccl_status run_encode(struct zipccl_cuda_walk *w, const struct zipccl_step *step)
{
    struct zipccl_exec_cuda *e = w->e;
    cudaEvent_t *event = &e->coded_event[step->dst.slot];

    ZIPCCL_TRY(zipccl_run_codec_step(&w->state, step));
    e->coded[step->dst.slot] = e->seen;
    if (*event == NULL)
        ZIPCCL_CUDA_TRY(e, cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    ZIPCCL_CUDA_TRY(e, cudaEventRecord(*event, e->now));
    if (zipccl_gate_is_on(e))
        return zipccl_gate_coded(e, &w->state, step);
    if (w->lates != NULL)
        zipccl_cuda_late_encoded(w, step);
    return ZIPCCL_OK;
}

/* DECODE: what its messages became, at a gate, only the device knows. */
static zipccl_status run_decode(struct zipccl_cuda_walk *w)
{
    size_t outcomes = w->e->arena->outcomes.used;

    ZIPCCL_TRY(zipccl_cuda_decode(w->e, (enum zipccl_dtype)w->run.plan->dtype));
    return zipccl_gate_is_on(w->e) ? zipccl_gate_decoded(w->e, outcomes) : ZIPCCL_OK;
}

static zipccl_status run_codec(struct zipccl_cuda_walk *w, const struct zipccl_step *step)
{
    if (step->kind == ZIPCCL_STEP_ENCODE)
        return run_encode(w, step);
    if (step->kind == ZIPCCL_STEP_DECODE && w->lates != NULL)
        ZIPCCL_TRY(zipccl_cuda_late_look(w, step));
    zipccl_cuda_list_start(w->e);
    if (w->e->gate != NULL)
        w->e->gate->step_of = step->raw_of;
    ZIPCCL_TRY(zipccl_run_codec_step(&w->state, step));
    if (step->kind == ZIPCCL_STEP_DECODE)
        ZIPCCL_TRY(run_decode(w));
    return w->e->failed;
}

/* Sizes are exchanged by the host, which has to know them. */
static zipccl_status run_sizes(struct zipccl_cuda_walk *w, const struct zipccl_step *step)
{
    zipccl_status status;

    ZIPCCL_TRY(wait_coded(w, step->src.slot));
    ZIPCCL_TRY(zipccl_cuda_settle(w, step->src.slot, w->e->coded[step->src.slot]));
    zipccl_transport_nccl_host_begin(w->e->transport);
    status = zipccl_run_wire_step(&w->state, step);
    zipccl_transport_nccl_host_end(w->e->transport);
    return status;
}

zipccl_status zipccl_cuda_list_received(struct zipccl_cuda_walk *w, const struct zipccl_step *step)
{
    struct zipccl_run_state *s = &w->state;
    struct zipccl_group g = zipccl_step_group(s, step);
    struct zipccl_place src = zipccl_place_arrived(s, step->src);

    zipccl_cuda_list_start(w->e);
    for (uint32_t p = 0; p < g.size; p++)
        for (uint32_t b = 0; b < g.nblocks; b++) {
            size_t n = zipccl_step_n_in(s, step, &g, p, b);
            int cls = zipccl_step_class_in(s, step, p);

            if (!zipccl_step_receives(s, step, &g, p, b) || !zipccl_step_codes(s, step, n, cls))
                continue;
            ZIPCCL_TRY(zipccl_cuda_list_add(
                w->e, (struct zipccl_gpu_slot){
                          .wire = (void *)(uintptr_t)zipccl_place_from(s, &src, &g, p, b),
                          .n = n,
                          .capacity = zipccl_step_capacity(s, step, n, cls)}));
        }
    return ZIPCCL_OK;
}

static bool same_place(const struct zipccl_place *a, const struct zipccl_place *b)
{
    return a->buf == b->buf && a->slot == b->slot && a->by_rank == b->by_rank &&
           a->base == b->base && a->peer_stride == b->peer_stride &&
           a->self_stride == b->self_stride && a->block_stride == b->block_stride;
}

/*
 * The communicator of its own for all-gathers of messages into staging, or of blocks in place, in a
 * node (0) or rail (1); -1: none.  The same on all ranks.
 */
static int part_of(const struct zipccl_cuda_walk *w, const struct zipccl_step *step)
{
    const struct zipccl_topology *t = w->e->transport->base.topology;
    bool node = step->group == ZIPCCL_GROUP_NODE;
    bool messages = step->form == ZIPCCL_FORM_FIXED && step->nblocks == 1 &&
                    step->dst.buf == ZIPCCL_BUF_RX && step->dst.self_stride == 0;
    bool in_place =
        step->form == ZIPCCL_FORM_RAW && step->dst.by_rank && same_place(&step->src, &step->dst);

    if (step->kind != ZIPCCL_STEP_EXCHANGE || step->group == ZIPCCL_GROUP_WORLD ||
        step->pattern != ZIPCCL_PATTERN_ALL_GATHER || step->raw_of != ZIPCCL_STEP_NONE ||
        step->remote || (!messages && !in_place) || w->e->api->CommSplit == NULL)
        return -1;
    return (node ? zipccl_topology_node_size(t, 0) : t->nnodes) > 1 ? (node ? 0 : 1) : -1;
}

/* True if blocks are all as long as 'step' says, and those in place lie end to end; the same on all
 * members of the group. */
static bool is_even(const struct zipccl_cuda_walk *w, const struct zipccl_step *step,
                    const struct zipccl_group *g)
{
    const struct zipccl_run_state *s = &w->state;

    for (uint32_t b = 0; b < g->nblocks; b++) {
        const char *first = zipccl_place_from(s, &step->dst, g, 0, b);

        for (uint32_t p = 0; p < g->size; p++)
            if (zipccl_step_n_in(s, step, g, p, b) != step->n ||
                (step->form == ZIPCCL_FORM_RAW &&
                 zipccl_place_from(s, &step->dst, g, p, b) != first + p * step->n * s->element))
                return false;
    }
    return true;
}

static zipccl_status gather_blocks(struct zipccl_cuda_walk *w, const struct zipccl_step *step,
                                   const struct zipccl_group *g, unsigned part, size_t nbytes)
{
    struct zipccl_run_state *s = &w->state;

    for (uint32_t b = 0; b < g->nblocks; b++) {
        ZIPCCL_TRY(zipccl_transport_nccl_part_gather(
            w->e->transport, part, zipccl_place_from(s, &step->src, g, g->self, b),
            zipccl_place_to(s, &step->dst, g, 0, b), nbytes));
        s->wire.wire_bytes += (g->size - 1) * nbytes;
        s->wire.raw_bytes += (g->size - 1) * step->n * s->element;
    }
    return ZIPCCL_OK;
}

/* One all-gather a block, all in one group. */
static zipccl_status run_part(struct zipccl_cuda_walk *w, const struct zipccl_step *step,
                              const struct zipccl_group *g, unsigned part)
{
    const struct zipccl_transport_ops *ops = w->e->transport->base.ops;
    bool raw = step->form == ZIPCCL_FORM_RAW;
    size_t nbytes = raw ? step->n * w->state.element : step->capacity;
    zipccl_status status, ended;

    if (!raw) /* messages then lie end to end */
        w->state.slots[step->dst.slot].rx_stride = nbytes;
    ZIPCCL_TRY(ops->group_begin(&w->e->transport->base));
    status = gather_blocks(w, step, g, part, nbytes);
    ended = ops->group_end(&w->e->transport->base);
    return status != ZIPCCL_OK ? status : ended;
}

static zipccl_status run_wire(struct zipccl_cuda_walk *w, const struct zipccl_step *step)
{
    struct zipccl_group g = zipccl_step_group(&w->state, step);
    int part = part_of(w, step);

    if (step->kind == ZIPCCL_STEP_SIZES)
        return run_sizes(w, step);
    if (step->raw_of != ZIPCCL_STEP_NONE && zipccl_gate_is_on(w->e))
        return zipccl_gate_pass(w->e, step->raw_of);
    if (part >= 0 && is_even(w, step, &g))
        return run_part(w, step, &g, (unsigned)part);
    ZIPCCL_TRY(zipccl_run_wire_step(&w->state, step));
    return w->e->failed;
}

/* Let steps of the lane's stream that come now wait for those that 'step' depends on in the other. */
static zipccl_status wait_for_deps(struct zipccl_cuda_walk *w, const struct zipccl_step *step)
{
    const struct zipccl_plan *plan = w->run.plan;
    struct zipccl_exec_cuda *e = w->e;
    unsigned other = 1u - step->lane;

    e->now = e->transport->stream = w->stream[step->lane];
    for (uint32_t d = 0; zipccl_cuda_two_streams(w) && d < step->ndeps; d++)
        if (plan->steps[step->deps[d]].lane == other)
            ZIPCCL_CUDA_TRY(
                e, cudaStreamWaitEvent(e->now, e->events[other][w->event_of[step->deps[d]]], 0));
    return ZIPCCL_OK;
}

/* Let the other lane's steps wait for step 'i', of which all that they need is enqueued. */
static zipccl_status leave_event(struct zipccl_cuda_walk *w, uint32_t i)
{
    struct zipccl_exec_cuda *e = w->e;
    unsigned lane = w->run.plan->steps[i].lane;

    if (!zipccl_cuda_two_streams(w))
        return ZIPCCL_OK;
    w->event_of[i] = (uint16_t)(w->nevents[lane]++ % RING);
    ZIPCCL_CUDA_TRY(e, cudaEventRecord(e->events[lane][w->event_of[i]], e->now));
    return ZIPCCL_OK;
}

static bool are_enqueued(const struct zipccl_cuda_walk *w, const struct zipccl_step *step)
{
    for (uint32_t d = 0; d < step->ndeps; d++)
        if (!w->enqueued[step->deps[d]])
            return false;
    return true;
}

/* True for a step that may be enqueued before one of its lane that waits for the host: it takes from what
 * encoders left, or from the caller, and brings to a slot that decoders have freed. */
static bool may_go_ahead(const struct zipccl_step *step)
{
    return step->kind == ZIPCCL_STEP_EXCHANGE && step->form == ZIPCCL_FORM_FIXED &&
           step->raw_of == ZIPCCL_STEP_NONE && step->src.buf == ZIPCCL_BUF_TX &&
           step->dst.buf == ZIPCCL_BUF_RX;
}

/* Enqueue exchanges behind the RESOLVE 'i', up to the first that has to wait for it. */
static zipccl_status go_ahead(struct zipccl_cuda_walk *w, uint32_t i)
{
    const struct zipccl_plan *plan = w->run.plan;

    for (uint32_t j = i + 1; zipccl_cuda_two_streams(w) && j < plan->nsteps; j++) {
        const struct zipccl_step *step = &plan->steps[j];
        bool answers = step->kind == ZIPCCL_STEP_RESOLVE || step->raw_of != ZIPCCL_STEP_NONE;

        if (step->lane != ZIPCCL_LANE_WIRE || answers || w->enqueued[j])
            continue;
        if (!may_go_ahead(step) || !are_enqueued(w, step))
            return ZIPCCL_OK;
        ZIPCCL_TRY(wait_for_deps(w, step));
        ZIPCCL_TRY(run_wire(w, step));
        ZIPCCL_TRY(leave_event(w, j));
        w->enqueued[j] = true;
    }
    return ZIPCCL_OK;
}

/* Who receives nothing knows from its own encoder what overflowed, and waits for no peer. */
static zipccl_status run_resolve(struct zipccl_cuda_walk *w, uint32_t i)
{
    struct zipccl_exec_cuda *e = w->e;
    const struct zipccl_step *step = &w->run.plan->steps[i];

    if (w->lates != NULL)
        return leave_event(w, i);
    ZIPCCL_TRY(zipccl_cuda_list_received(w, step));
    if (e->nlist > 0) {
        ZIPCCL_TRY(zipccl_cuda_look(e, (enum zipccl_dtype)w->run.plan->dtype));
        ZIPCCL_CUDA_TRY(e, cudaEventRecord(e->looked, e->now));
    }
    if (zipccl_gate_is_on(e))
        ZIPCCL_TRY(zipccl_gate_look(e, &w->state, step));
    ZIPCCL_TRY(leave_event(w, i));
    if (zipccl_gate_is_on(e))
        return ZIPCCL_OK;
    ZIPCCL_TRY(go_ahead(w, i));
    /* What came after the exchange came after the encoder. */
    ZIPCCL_TRY(e->nlist > 0 ? zipccl_transport_nccl_wait(e->transport, e->looked)
                            : wait_coded(w, step->src.slot));
    ZIPCCL_TRY(zipccl_cuda_settle(w, step->src.slot, e->coded[step->src.slot]));
    return zipccl_run_wire_step(&w->state, step);
}

/* A resend that is not needed is done when its RESOLVE is: what went ahead of it is not to be waited for. */
static bool is_idle(const struct zipccl_cuda_walk *w, const struct zipccl_step *step)
{
    return step->kind == ZIPCCL_STEP_EXCHANGE && step->raw_of != ZIPCCL_STEP_NONE &&
           !w->state.armed[step->raw_of] && !zipccl_gate_is_on(w->e);
}

/* Enqueue step 'i'. */
static zipccl_status run_step(struct zipccl_cuda_walk *w, uint32_t i)
{
    const struct zipccl_step *step = &w->run.plan->steps[i];

    if (is_idle(w, step)) {
        w->event_of[i] = w->event_of[step->raw_of];
        return ZIPCCL_OK;
    }
    ZIPCCL_TRY(wait_for_deps(w, step));
    if (step->kind == ZIPCCL_STEP_RESOLVE)
        return run_resolve(w, i);
    ZIPCCL_TRY(step->lane == ZIPCCL_LANE_CODEC ? run_codec(w, step) : run_wire(w, step));
    return leave_event(w, i);
}

/* Bring the lane to its next step; false if there is none, or one of its deps is not enqueued. */
static bool is_ready(struct zipccl_cuda_walk *w, unsigned lane)
{
    const struct zipccl_plan *plan = w->run.plan;

    while (w->next[lane] < plan->nsteps &&
           (plan->steps[w->next[lane]].lane != lane || w->enqueued[w->next[lane]]))
        w->next[lane]++;
    return w->next[lane] < plan->nsteps && are_enqueued(w, &plan->steps[w->next[lane]]);
}

static zipccl_status run_next(struct zipccl_cuda_walk *w, unsigned lane)
{
    uint32_t i = w->next[lane];

    ZIPCCL_TRY(run_step(w, i));
    w->enqueued[i] = true;
    return ZIPCCL_OK;
}

static zipccl_status walk_steps(struct zipccl_cuda_walk *w)
{
    for (;;) {
        bool ran = false;

        while (is_ready(w, ZIPCCL_LANE_CODEC)) {
            ZIPCCL_TRY(run_next(w, ZIPCCL_LANE_CODEC));
            ran = true;
        }
        if (is_ready(w, ZIPCCL_LANE_WIRE)) {
            ZIPCCL_TRY(run_next(w, ZIPCCL_LANE_WIRE));
            ran = true;
        }
        if (!ran)
            break;
    }
    if (w->next[0] < w->run.plan->nsteps || w->next[1] < w->run.plan->nsteps)
        return ZIPCCL_ERR_INTERNAL;
    return w->lates != NULL ? zipccl_cuda_late_finish(w) : ZIPCCL_OK;
}

/* Make the wire stream start behind what the caller's holds. */
static zipccl_status begin(struct zipccl_cuda_walk *w)
{
    struct zipccl_exec_cuda *e = w->e;

    if (!zipccl_cuda_two_streams(w))
        return ZIPCCL_OK;
    ZIPCCL_CUDA_TRY(e, cudaEventRecord(e->transport->event, w->stream[ZIPCCL_LANE_CODEC]));
    ZIPCCL_CUDA_TRY(e, cudaStreamWaitEvent(w->stream[ZIPCCL_LANE_WIRE], e->transport->event, 0));
    return ZIPCCL_OK;
}

/* Let what comes next in the caller's stream see the result, and the host what decoders found. */
static zipccl_status end(struct zipccl_cuda_walk *w)
{
    struct zipccl_exec_cuda *e = w->e;
    struct zipccl_cuda_region *outcomes = &e->arena->outcomes;
    cudaStream_t stream = w->stream[ZIPCCL_LANE_CODEC];

    if (zipccl_cuda_two_streams(w)) {
        ZIPCCL_CUDA_TRY(e, cudaEventRecord(e->transport->event, w->stream[ZIPCCL_LANE_WIRE]));
        ZIPCCL_CUDA_TRY(e, cudaStreamWaitEvent(stream, e->transport->event, 0));
    }
    if (zipccl_gate_is_on(e))
        return zipccl_gate_end(e, stream);
    if (outcomes->used > 0)
        ZIPCCL_CUDA_TRY(e, cudaMemcpyAsync(outcomes->h, outcomes->d, outcomes->used,
                                           cudaMemcpyDeviceToHost, stream));
    ZIPCCL_CUDA_TRY(e, cudaEventRecord(e->arena->done, stream));
    e->arena->busy = true;
    return ZIPCCL_OK;
}

/* Whatever happened, later calls and the end of the exec wait for what was enqueued. */
static void mark_end(struct zipccl_cuda_walk *w)
{
    struct zipccl_exec_cuda *e = w->e;
    cudaStream_t stream = w->stream[ZIPCCL_LANE_CODEC];

    if (zipccl_cuda_two_streams(w) && w->failed &&
        cudaEventRecord(e->transport->event, w->stream[ZIPCCL_LANE_WIRE]) == cudaSuccess)
        cudaStreamWaitEvent(stream, e->transport->event, 0);
    e->now = e->transport->stream = stream;
    if (zipccl_gate_mark(e, stream))
        return;
    zipccl_cuda_timer_end(e, stream, w->failed);
    e->used = cudaEventRecord(e->done, stream) == cudaSuccess || e->used;
}

/* Node and rail communicators, which all ranks make when the first plan needs them. */
static zipccl_status make_parts(struct zipccl_cuda_walk *w)
{
    for (uint32_t i = 0; i < w->run.plan->nsteps; i++) {
        int part = part_of(w, &w->run.plan->steps[i]);

        if (part >= 0)
            ZIPCCL_TRY(zipccl_transport_nccl_part(w->e->transport, (unsigned)part));
    }
    return ZIPCCL_OK;
}

static void place_staging(struct zipccl_cuda_walk *w)
{
    char *base = w->e->staging.d;

    w->run.tx = base;
    w->run.rx = base + zipccl_cuda_staging_up(w->run.plan->tx_bytes);
    w->run.tmp = (char *)w->run.rx + zipccl_cuda_staging_up(w->run.plan->rx_bytes);
}

static zipccl_status provide(struct zipccl_cuda_walk *w, cudaStream_t stream)
{
    struct zipccl_exec_cuda *e = w->e;

    if (!zipccl_gate_is_on(e) || !e->gate->captured)
        return zipccl_cuda_provide(e, &w->state, stream);
    ZIPCCL_TRY(zipccl_cuda_provide(e, &w->state, e->gate->apart));
    return zipccl_gate_apart(e);
}

static zipccl_status run_walk(struct zipccl_cuda_walk *w, struct zipccl_transport *transport,
                              void *stream)
{
    struct zipccl_exec_cuda *e = w->e;
    const struct zipccl_plan *plan;

    zipccl_gate_begin(e, stream);
    if (zipccl_gate_is_on(e) && zipccl_gate_native(e->gate, w->run.plan))
        w->run.plan = &e->gate->native;
    plan = w->run.plan;
    w->stream[ZIPCCL_LANE_CODEC] = stream;
    w->stream[ZIPCCL_LANE_WIRE] = plan->nchunks > 1 ? zipccl_gate_wire(e) : stream;
    w->run.tx = w->run.rx = w->run.tmp = w; /* there will be staging */
    ZIPCCL_TRY(zipccl_run_state_init(&w->state, &w->run, transport, &e->base));
    ZIPCCL_TRY(provide(w, stream));
    place_staging(w);
    ZIPCCL_TRY(events_create(e));
    ZIPCCL_TRY(make_parts(w));
    w->event_of = calloc(plan->nsteps + 1, sizeof *w->event_of);
    w->enqueued = calloc(plan->nsteps + 1, sizeof *w->enqueued);
    if (w->event_of == NULL || w->enqueued == NULL)
        return ZIPCCL_ERR_NOMEM;
    ZIPCCL_TRY(zipccl_cuda_late_init(w));
    ZIPCCL_TRY(zipccl_cuda_timer_start(e, stream));
    ZIPCCL_TRY(begin(w));
    ZIPCCL_TRY(walk_steps(w));
    return end(w);
}

zipccl_status zipccl_cuda_run(struct zipccl_exec *exec, const struct zipccl_run *run,
                              struct zipccl_transport *transport, void *stream,
                              struct zipccl_run_stats *stats)
{
    struct zipccl_cuda_walk *w = calloc(1, sizeof *w);
    zipccl_status status = ZIPCCL_ERR_NOMEM;

    if (w != NULL) {
        w->e = zipccl_cuda_of(exec);
        w->run = *run;
        status = zipccl_exec_cuda_failed(w->e);
        if (status == ZIPCCL_OK) {
            status = run_walk(w, transport, stream);
            w->failed = status != ZIPCCL_OK;
            mark_end(w);
        }
        if (status == ZIPCCL_OK && stats != NULL) {
            zipccl_run_state_stats(&w->state, stats);
            stats->told = zipccl_gate_told(w->e);
        }
        zipccl_run_state_free(&w->state);
        free(w->event_of);
        free(w->enqueued);
        free(w);
    }
    if (status != ZIPCCL_OK)
        transport->ops->abort(transport);
    return status;
}
