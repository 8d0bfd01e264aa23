/*
 * exec_cuda_late.c - plans that decode first and look at headers on the host when all is enqueued
 *
 * In a plan that only moves data nothing is made of what has been decoded, so a message may be decoded
 * before anyone on the host knows that it is one: a decoder refuses what overflowed, and the elements
 * that follow raw are copied over whatever it left.  So the wire never waits for the host between chunks,
 * which looks once, after the last.  Resends then come in the order of chunks, behind all exchanges, on
 * every rank.
 *
 * Their places: a raw resend is sent from the caller's buffer, which nothing has changed, and arrives in the
 * slot of its chunk, which by then nobody needs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/exec_cuda_walk.h"

#include "gpu/gate.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* True if 'step' is one of a plan that moves messages from SEND to RECV and makes nothing else of them. */
static bool only_moves(const struct zipccl_step *step)
{
    switch (step->kind) {
    case ZIPCCL_STEP_ENCODE:
        return step->form == ZIPCCL_FORM_FIXED && step->part == 0 &&
               step->src.buf == ZIPCCL_BUF_SEND && step->dst.buf == ZIPCCL_BUF_TX;
    case ZIPCCL_STEP_EXCHANGE:
        return step->dst.buf == ZIPCCL_BUF_RX &&
               (step->raw_of != ZIPCCL_STEP_NONE
                    ? step->src.buf == ZIPCCL_BUF_SEND
                    : step->form == ZIPCCL_FORM_FIXED && step->src.buf == ZIPCCL_BUF_TX);
    case ZIPCCL_STEP_RESOLVE: return step->src.buf == ZIPCCL_BUF_RX;
    case ZIPCCL_STEP_DECODE:
        return step->src.buf == ZIPCCL_BUF_RX && step->dst.buf == ZIPCCL_BUF_RECV &&
               step->raw_of != ZIPCCL_STEP_NONE;
    case ZIPCCL_STEP_COPY: return step->src.buf == ZIPCCL_BUF_SEND;
    default: return false;
    }
}

/* Note the steps of each chunk; false if a chunk has not one of each. */
static bool find_steps(const struct zipccl_plan *plan, struct zipccl_cuda_late *lates)
{
    for (uint32_t k = 0; k < plan->nchunks; k++)
        lates[k].encode = lates[k].resolve = lates[k].raw = lates[k].decode = ZIPCCL_STEP_NONE;
    for (uint32_t i = 0; i < plan->nsteps; i++) {
        const struct zipccl_step *step = &plan->steps[i];
        struct zipccl_cuda_late *late = &lates[step->chunk];
        uint16_t *place = step->kind == ZIPCCL_STEP_ENCODE    ? &late->encode
                          : step->kind == ZIPCCL_STEP_RESOLVE ? &late->resolve
                          : step->kind == ZIPCCL_STEP_DECODE  ? &late->decode
                          : step->kind == ZIPCCL_STEP_EXCHANGE && step->raw_of != ZIPCCL_STEP_NONE
                              ? &late->raw
                              : NULL;

        if (place == NULL)
            continue;
        if (*place != ZIPCCL_STEP_NONE)
            return false;
        *place = (uint16_t)i;
    }
    for (uint32_t k = 0; k < plan->nchunks; k++)
        if (lates[k].encode == ZIPCCL_STEP_NONE || lates[k].resolve == ZIPCCL_STEP_NONE ||
            lates[k].raw == ZIPCCL_STEP_NONE || lates[k].decode == ZIPCCL_STEP_NONE ||
            plan->steps[lates[k].raw].raw_of != lates[k].resolve ||
            plan->steps[lates[k].decode].raw_of != lates[k].resolve)
            return false;
    return true;
}

/* Most messages of 'step', an ENCODE. */
static size_t messages_of(const struct zipccl_cuda_walk *w, const struct zipccl_step *step)
{
    uint32_t peers = zipccl_step_shares_message(step) ? 1 : zipccl_step_group(&w->state, step).size;

    return (size_t)peers * step->nblocks;
}

static bool chunks_room(struct zipccl_cuda_late_room *room, size_t nchunks)
{
    if (nchunks <= room->nchunks)
        return true;
    free(room->chunks);
    room->chunks = malloc(nchunks * sizeof *room->chunks);
    room->nchunks = room->chunks != NULL ? nchunks : 0;
    return room->chunks != NULL;
}

static bool slices_room(struct zipccl_cuda_late_room *room, size_t nslices)
{
    if (nslices <= room->nslices)
        return true;
    free(room->slices);
    free(room->encoded);
    room->slices = malloc(nslices * sizeof *room->slices);
    room->encoded = malloc(nslices * sizeof *room->encoded);
    room->nslices = room->slices != NULL && room->encoded != NULL ? nslices : 0;
    return room->nslices > 0;
}

/* Give each chunk its part of the room for messages. */
static zipccl_status place_slices(struct zipccl_cuda_walk *w)
{
    const struct zipccl_plan *plan = w->run.plan;
    struct zipccl_cuda_late_room *room = &w->e->late;
    size_t n = 0;

    for (uint32_t k = 0; k < plan->nchunks; k++)
        n += messages_of(w, &plan->steps[w->lates[k].encode]);
    if (!slices_room(room, n))
        return ZIPCCL_ERR_NOMEM;
    n = 0;
    for (uint32_t k = 0; k < plan->nchunks; k++) {
        w->lates[k].slices = room->slices + n;
        w->lates[k].encoded = room->encoded + n;
        n += messages_of(w, &plan->steps[w->lates[k].encode]);
    }
    return ZIPCCL_OK;
}

zipccl_status zipccl_cuda_late_init(struct zipccl_cuda_walk *w)
{
    const struct zipccl_plan *plan = w->run.plan;
    struct zipccl_cuda_late_room *room = &w->e->late;

    w->e->arena->late = false;
    if (plan->nchunks == 0 || zipccl_gate_is_on(w->e))
        return ZIPCCL_OK;
    for (uint32_t i = 0; i < plan->nsteps; i++)
        if (!only_moves(&plan->steps[i]) || plan->steps[i].chunk >= plan->nchunks)
            return ZIPCCL_OK;
    if (!chunks_room(room, plan->nchunks))
        return ZIPCCL_ERR_NOMEM;
    memset(room->chunks, 0, plan->nchunks * sizeof *room->chunks);
    if (!find_steps(plan, room->chunks))
        return ZIPCCL_OK;
    w->lates = room->chunks;
    w->e->arena->late = true;
    return place_slices(w);
}

void zipccl_cuda_late_destroy(struct zipccl_exec_cuda *e)
{
    free(e->late.chunks);
    free(e->late.slices);
    free(e->late.encoded);
}

void zipccl_cuda_late_encoded(struct zipccl_cuda_walk *w, const struct zipccl_step *step)
{
    const struct zipccl_slot_state *slot = &w->state.slots[step->dst.slot];
    struct zipccl_cuda_late *late = &w->lates[step->chunk];
    size_t n = slot->nslices;

    assert(n <= messages_of(w, step));
    late->coded = w->e->coded[step->dst.slot];
    late->nslices = n;
    if (n == 0)
        return;
    w->last_coded = w->e->coded_event[step->dst.slot];
    memcpy(late->slices, slot->slices, n * sizeof *late->slices);
    memcpy(late->encoded, slot->encoded, n * sizeof *late->encoded);
}

zipccl_status zipccl_cuda_late_look(struct zipccl_cuda_walk *w, const struct zipccl_step *step)
{
    struct zipccl_exec_cuda *e = w->e;
    struct zipccl_cuda_late *late = &w->lates[step->chunk];
    const struct zipccl_step *resolve = &w->run.plan->steps[late->resolve];

    late->rx_stride = w->state.slots[resolve->src.slot].rx_stride;
    ZIPCCL_TRY(zipccl_cuda_list_received(w, resolve));
    if (e->nlist == 0)
        return ZIPCCL_OK;
    ZIPCCL_TRY(zipccl_cuda_look(e, (enum zipccl_dtype)w->run.plan->dtype));
    late->seen = e->seen;
    w->last_coded = NULL; /* what is in front of the look, is there when it is */
    w->looked = true;
    ZIPCCL_CUDA_TRY(e, cudaEventRecord(e->looked, e->now));
    return ZIPCCL_OK;
}

/* What 'from' holds happens before what 'to' gets. */
static zipccl_status follow(struct zipccl_cuda_walk *w, cudaStream_t from, cudaStream_t to)
{
    struct zipccl_exec_cuda *e = w->e;

    if (from == to)
        return ZIPCCL_OK;
    ZIPCCL_CUDA_TRY(e, cudaEventRecord(e->transport->event, from));
    ZIPCCL_CUDA_TRY(e, cudaStreamWaitEvent(to, e->transport->event, 0));
    return ZIPCCL_OK;
}

/* Copy what was sent again to its place; other messages of the chunk are decoded. */
static void place_resent(struct zipccl_cuda_walk *w, const struct zipccl_step *step)
{
    struct zipccl_run_state *s = &w->state;
    struct zipccl_group g = zipccl_step_group(s, step);

    for (uint32_t p = 0; p < g.size; p++)
        for (uint32_t b = 0; b < g.nblocks; b++) {
            const char *raw = zipccl_step_receives(s, step, &g, p, b)
                                  ? zipccl_step_resent(s, step, &g, p, b)
                                  : NULL;

            if (raw != NULL)
                s->exec->ops->copy(s->exec, zipccl_place_to(s, &step->dst, &g, p, b), raw,
                                   zipccl_step_n_in(s, step, &g, p, b) * s->element);
        }
}

static zipccl_status send_again(struct zipccl_cuda_walk *w, const struct zipccl_cuda_late *late)
{
    struct zipccl_exec_cuda *e = w->e;
    const struct zipccl_step *steps = w->run.plan->steps;
    cudaStream_t codec = w->stream[ZIPCCL_LANE_CODEC], wire = w->stream[ZIPCCL_LANE_WIRE];

    ZIPCCL_TRY(follow(w, codec, wire));
    e->now = e->transport->stream = wire;
    ZIPCCL_TRY(zipccl_run_wire_step(&w->state, &steps[late->raw]));
    ZIPCCL_TRY(follow(w, wire, codec));
    e->now = e->transport->stream = codec;
    place_resent(w, &steps[late->decode]);
    return e->failed;
}

/* Bring back what the chunk's steps left in its slot, and look. */
static zipccl_status finish_chunk(struct zipccl_cuda_walk *w, const struct zipccl_cuda_late *late)
{
    const struct zipccl_step *resolve = &w->run.plan->steps[late->resolve];
    const struct zipccl_step *encode = &w->run.plan->steps[late->encode];
    uint8_t number = encode->dst.slot;
    struct zipccl_slot_state *slot = &w->state.slots[number];

    /* What an earlier chunk left there, and the encoder of this one had cleared before. */
    memset(slot->over_out, 0, w->state.nranks * sizeof *slot->over_out);
    if (late->nslices > 0) {
        memcpy(slot->slices, late->slices, late->nslices * sizeof *late->slices);
        memcpy(slot->encoded, late->encoded, late->nslices * sizeof *late->encoded);
    }
    slot->nslices = late->nslices;
    slot->encode = encode;
    w->state.slots[resolve->src.slot].rx_stride = late->rx_stride;
    ZIPCCL_TRY(zipccl_cuda_settle(w, number, late->coded));
    ZIPCCL_TRY(zipccl_cuda_list_received(w, resolve));
    w->e->seen = late->seen;
    ZIPCCL_TRY(zipccl_run_wire_step(&w->state, resolve));
    return w->state.armed[late->resolve] ? send_again(w, late) : ZIPCCL_OK;
}

/* Who receives nothing knows from its own encoder what overflowed, and waits for no peer; so does who receives less
 * than it sends, of the last chunks. */
zipccl_status zipccl_cuda_late_finish(struct zipccl_cuda_walk *w)
{
    struct zipccl_transport_nccl *t = w->e->transport;

    if (w->last_coded != NULL) /* behind the last look */
        ZIPCCL_TRY(zipccl_transport_nccl_wait(t, w->last_coded));
    else if (w->looked)
        ZIPCCL_TRY(zipccl_transport_nccl_wait(t, w->e->looked));
    for (uint32_t k = 0; k < w->run.plan->nchunks; k++)
        ZIPCCL_TRY(finish_chunk(w, &w->lates[k]));
    return ZIPCCL_OK;
}
