/*
 * executor.c - runs the two lanes of a plan and keeps them in order
 *
 * Each lane counts its progress in an event: the number of its last finished step plus one.  A
 * dependency on the other lane waits for that count.  A lane that fails aborts the transport and
 * raises its count to the top, so that neither its partner nor a peer waits for ever.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/executor_state.h"

#include <stdatomic.h>
#include <stdlib.h>

#define NUM_LANES 2

struct lanes {
    struct zipccl_run_state state;
    struct zipccl_event *progress[NUM_LANES];
    atomic_int status[NUM_LANES]; /* zipccl_status */
};

/* Start of a block in elements (user buffers) or bytes (staging). */
static size_t offset_of(const struct zipccl_run_state *s, const struct zipccl_place *place,
                        const struct zipccl_group *g, uint32_t p, uint32_t b)
{
    size_t offset = zipccl_place_offset(place, g, p, b);

    if (place->uneven)
        offset += place->buf == ZIPCCL_BUF_SEND ? s->run->send_displs[p] : s->run->recv_displs[p];
    return offset;
}

char *zipccl_place_to(const struct zipccl_run_state *s, const struct zipccl_place *place,
                      const struct zipccl_group *g, uint32_t p, uint32_t b)
{
    size_t offset = offset_of(s, place, g, p, b);

    switch (place->buf) {
    case ZIPCCL_BUF_RECV: return (char *)s->run->recv + offset * s->element;
    case ZIPCCL_BUF_TX: return (char *)s->run->tx + offset;
    case ZIPCCL_BUF_TMP: return (char *)s->run->tmp + offset;
    default: return (char *)s->run->rx + offset;
    }
}

const char *zipccl_place_from(const struct zipccl_run_state *s, const struct zipccl_place *place,
                              const struct zipccl_group *g, uint32_t p, uint32_t b)
{
    if (place->buf == ZIPCCL_BUF_SEND)
        return (const char *)s->run->send + offset_of(s, place, g, p, b) * s->element;
    return zipccl_place_to(s, place, g, p, b);
}

static void raise_failure(struct lanes *lanes, unsigned lane, zipccl_status status)
{
    struct zipccl_run_state *s = &lanes->state;

    atomic_store(&lanes->status[lane], (int)status);
    s->transport->ops->abort(s->transport);
    s->exec->ops->event_signal(s->exec, lanes->progress[lane], UINT64_MAX);
}

/* One step of the codec lane, as one piece of work for the exec. */
static zipccl_status run_codec_step(struct zipccl_run_state *s, const struct zipccl_step *step)
{
    const struct zipccl_exec_ops *ops = s->exec->ops;
    zipccl_status status;

    if (ops->step_begin != NULL)
        ops->step_begin(s->exec);
    status = zipccl_run_codec_step(s, step);
    if (ops->step_end != NULL)
        ops->step_end(s->exec);
    return status;
}

static void run_lane(struct lanes *lanes, unsigned lane)
{
    struct zipccl_run_state *s = &lanes->state;
    unsigned other = 1 - lane;

    for (uint32_t i = 0; i < s->plan->nsteps; i++) {
        const struct zipccl_step *step = &s->plan->steps[i];
        zipccl_status status;

        if (step->lane != lane)
            continue;
        for (uint32_t d = 0; d < step->ndeps; d++)
            if (s->plan->steps[step->deps[d]].lane == other)
                s->exec->ops->event_wait(s->exec, lanes->progress[other], step->deps[d] + 1u);
        if (atomic_load(&lanes->status[other]) != ZIPCCL_OK)
            status = ZIPCCL_ERR_ABORTED;
        else
            status =
                lane == ZIPCCL_LANE_CODEC ? run_codec_step(s, step) : zipccl_run_wire_step(s, step);
        if (status != ZIPCCL_OK) {
            raise_failure(lanes, lane, status);
            return;
        }
        s->exec->ops->event_signal(s->exec, lanes->progress[lane], i + 1u);
    }
}

static void wire_lane(void *lanes)
{
    run_lane(lanes, ZIPCCL_LANE_WIRE);
}

/* Run both lanes; a lane that has no step costs nothing. */
static zipccl_status run_lanes(struct lanes *lanes)
{
    struct zipccl_run_state *s = &lanes->state;
    bool used[NUM_LANES] = {false, false};
    struct zipccl_lane_task *task;
    zipccl_status wire, codec;

    for (uint32_t i = 0; i < s->plan->nsteps; i++)
        used[s->plan->steps[i].lane] = true;
    if (used[ZIPCCL_LANE_WIRE] && used[ZIPCCL_LANE_CODEC]) {
        ZIPCCL_TRY(s->exec->ops->spawn(s->exec, wire_lane, lanes, &task));
        run_lane(lanes, ZIPCCL_LANE_CODEC);
        s->exec->ops->join(s->exec, task);
    } else {
        run_lane(lanes, used[ZIPCCL_LANE_WIRE] ? ZIPCCL_LANE_WIRE : ZIPCCL_LANE_CODEC);
    }
    wire = (zipccl_status)atomic_load(&lanes->status[ZIPCCL_LANE_WIRE]);
    codec = (zipccl_status)atomic_load(&lanes->status[ZIPCCL_LANE_CODEC]);
    /* The lane that failed first says why; the other one only saw the abort. */
    return codec != ZIPCCL_OK && codec != ZIPCCL_ERR_ABORTED ? codec
           : wire != ZIPCCL_OK                               ? wire
                                                             : codec;
}

/* False for groups that the ranks do not have, and for sums that the exec cannot compute. */
static bool can_run(const struct zipccl_run_state *s, const struct zipccl_step *step)
{
    const struct zipccl_exec_ops *ops = s->exec->ops;
    bool reduces =
        ops->decode_sum != NULL || (ops->reduce_add != NULL && ops->reduce_round != NULL);

    if (!zipccl_step_fits(step, s->transport->topology) ||
        (step->group != ZIPCCL_GROUP_WORLD && step->lowering == ZIPCCL_LOWER_RING))
        return false;
    return step->kind != ZIPCCL_STEP_REDUCE || (reduces && step->first && step->round);
}

/* Refuse what no executor runs, before any byte moves. */
static zipccl_status check(const struct zipccl_run_state *s)
{
    const struct zipccl_plan *plan = s->plan;
    bool uneven = zipccl_is_uneven(plan->op);

    if (plan->nranks != s->nranks || s->element == 0)
        return ZIPCCL_ERR_ARG;
    if (uneven && (s->run->send_counts == NULL || s->run->send_displs == NULL ||
                   s->run->recv_counts == NULL || s->run->recv_displs == NULL))
        return ZIPCCL_ERR_ARG;
    if (plan->nslots > UINT8_MAX)
        return ZIPCCL_ERR_ARG;
    if ((plan->tx_bytes > 0 && s->run->tx == NULL) || (plan->rx_bytes > 0 && s->run->rx == NULL) ||
        (plan->tmp_bytes > 0 && s->run->tmp == NULL) ||
        (plan->acc_bytes > 0 && s->run->acc == NULL && s->exec->ops->decode_sum == NULL))
        return ZIPCCL_ERR_ARG;
    for (uint32_t p = 0; uneven && p < s->nranks; p++)
        if (s->run->send_counts[p] > plan->count || s->run->recv_counts[p] > plan->count)
            return ZIPCCL_ERR_ARG;
    for (uint32_t i = 0; i < plan->nsteps; i++)
        if (plan->steps[i].lane >= NUM_LANES)
            return ZIPCCL_ERR_ARG;
        else if (!can_run(s, &plan->steps[i]))
            return ZIPCCL_ERR_UNSUPPORTED;
    return ZIPCCL_OK;
}

static bool is_split(const struct zipccl_plan *plan)
{
    for (uint32_t i = 0; i < plan->nsteps; i++)
        if (plan->steps[i].part != 0)
            return true;
    return false;
}

/* Allocate what steps leave for each other in one slot. */
static zipccl_status slot_init(struct zipccl_slot_state *slot, size_t n, bool split)
{
    slot->size_out = calloc(2 * n, sizeof *slot->size_out);
    slot->over_out = calloc(4 * n, sizeof *slot->over_out);
    slot->slices = calloc(n, sizeof *slot->slices);
    slot->encoded = calloc(n, sizeof *slot->encoded);
    slot->encoders = split ? calloc(n, sizeof *slot->encoders) : NULL;
    if (slot->size_out == NULL || slot->over_out == NULL || slot->slices == NULL ||
        slot->encoded == NULL || (slot->encoders == NULL && split))
        return ZIPCCL_ERR_NOMEM;
    slot->size_in = slot->size_out + n;
    slot->over_in = slot->over_out + n;
    slot->void_out = slot->over_out + 2 * n;
    slot->void_in = slot->over_out + 3 * n;
    return ZIPCCL_OK;
}

static zipccl_status allocate(struct zipccl_run_state *s)
{
    size_t n = s->nranks, nsteps = s->plan->nsteps;
    bool split = is_split(s->plan);

    s->armed = calloc(nsteps + 1, sizeof *s->armed);
    s->raw_exchange = malloc((nsteps + 1) * sizeof *s->raw_exchange);
    s->words = calloc(2 * n, 4);
    s->terms = calloc(n, sizeof *s->terms);
    if (s->armed == NULL || s->raw_exchange == NULL || s->words == NULL || s->terms == NULL)
        return ZIPCCL_ERR_NOMEM;
    for (size_t i = 0; i < s->plan->nslots; i++)
        ZIPCCL_TRY(slot_init(&s->slots[i], n, split));
    for (size_t i = 0; i < nsteps; i++)
        s->raw_exchange[i] = ZIPCCL_STEP_NONE;
    for (size_t i = 0; i < nsteps; i++) {
        const struct zipccl_step *step = &s->plan->steps[i];

        if (step->kind == ZIPCCL_STEP_EXCHANGE && step->raw_of < nsteps)
            s->raw_exchange[step->raw_of] = (uint16_t)i;
    }
    return ZIPCCL_OK;
}

zipccl_status zipccl_run_state_init(struct zipccl_run_state *s, const struct zipccl_run *run,
                                    struct zipccl_transport *transport, struct zipccl_exec *exec)
{
    s->run = run;
    s->plan = run->plan;
    s->transport = transport;
    s->exec = exec;
    exec->effort = (enum zipccl_effort)run->plan->effort;
    s->rank = transport->rank;
    s->nranks = transport->nranks;
    s->element = zipccl_dtype_size((enum zipccl_dtype)run->plan->dtype);
    s->codec.fit = ZIPCCL_NUM_CLASSES;
    ZIPCCL_TRY(check(s));
    return allocate(s);
}

void zipccl_run_state_free(struct zipccl_run_state *s)
{
    for (size_t i = 0; i < sizeof s->slots / sizeof *s->slots; i++) {
        free(s->slots[i].size_out);
        free(s->slots[i].over_out);
        free(s->slots[i].slices);
        free(s->slots[i].encoded);
        free(s->slots[i].encoders);
    }
    free(s->armed);
    free(s->raw_exchange);
    free(s->words);
    free(s->terms);
}

void zipccl_run_state_stats(const struct zipccl_run_state *s, struct zipccl_run_stats *stats)
{
    stats->told = ZIPCCL_TOLD;
    stats->raw_bytes = s->wire.raw_bytes;
    stats->wire_bytes = s->wire.wire_bytes;
    stats->overflows = s->codec.overflows;
    stats->raw_resends = s->wire.raw_resends;
    stats->fit = s->codec.fit;
    stats->coded_raw_bytes = s->codec.coded_raw_bytes;
    stats->coded_bytes = s->codec.coded_bytes;
}

static zipccl_status run_with_events(struct lanes *lanes)
{
    struct zipccl_run_state *s = &lanes->state;
    zipccl_status status = ZIPCCL_OK;

    for (unsigned lane = 0; lane < NUM_LANES && status == ZIPCCL_OK; lane++)
        status = s->exec->ops->event_create(s->exec, &lanes->progress[lane]);
    if (status == ZIPCCL_OK)
        status = run_lanes(lanes);
    for (unsigned lane = 0; lane < NUM_LANES; lane++)
        if (lanes->progress[lane] != NULL)
            s->exec->ops->event_destroy(s->exec, lanes->progress[lane]);
    return status;
}

zipccl_status zipccl_execute(const struct zipccl_run *run, struct zipccl_transport *transport,
                             struct zipccl_exec *exec, struct zipccl_run_stats *stats)
{
    struct lanes *lanes = calloc(1, sizeof *lanes);
    zipccl_status status = ZIPCCL_ERR_NOMEM;

    if (lanes != NULL) {
        status = zipccl_run_state_init(&lanes->state, run, transport, exec);
        if (status == ZIPCCL_OK)
            status = run_with_events(lanes);
        if (status == ZIPCCL_OK && stats != NULL)
            zipccl_run_state_stats(&lanes->state, stats);
        zipccl_run_state_free(&lanes->state);
        free(lanes);
    }
    if (status != ZIPCCL_OK)
        transport->ops->abort(transport);
    return status;
}
