/*
 * executor_split.c - messages in parts: what leaves early is coded first, then the rest
 *
 * While the rest is coded the wire lane sends what lies in the early part, so nothing here writes
 * there any more, whatever becomes of the message.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/executor_state.h"

/* Room of the message as 'encode' sees it. */
static size_t room_of(const struct zipccl_run_state *s, const struct zipccl_step *step, size_t n,
                      uint32_t p)
{
    return zipccl_step_capacity(s, step, n, zipccl_step_class_out(s, step, p));
}

/* An exec without parts: all at once; size_out and void_out keep the outcome for the rest. */
static zipccl_status encode_whole(struct zipccl_run_state *s, const struct zipccl_step *step,
                                  const char *src, size_t n, char *dst, size_t room, uint32_t index)
{
    struct zipccl_slot_state *slot = &s->slots[step->dst.slot];
    zipccl_status status = s->exec->ops->encode(s->exec, (enum zipccl_dtype)s->plan->dtype, src, n,
                                                dst, room, &slot->size_out[index]);

    slot->void_out[index] = status != ZIPCCL_OK;
    return status == ZIPCCL_ERR_OVERFLOW ? ZIPCCL_OK : status;
}

static zipccl_status encode_early(struct zipccl_run_state *s, const struct zipccl_step *step,
                                  const struct zipccl_group *g, uint32_t p, uint32_t b)
{
    const struct zipccl_exec_ops *ops = s->exec->ops;
    size_t n = zipccl_step_n_out(s, step, g, p, b), end;
    struct zipccl_split_cut split =
        zipccl_step_split(s, step, n, zipccl_step_class_out(s, step, p));
    const char *src = zipccl_place_from(s, &step->src, g, p, b);
    char *dst = zipccl_place_to(s, &step->dst, g, p, b);
    uint32_t index = zipccl_index_out(step, g, p, b);
    struct zipccl_slot_state *slot = &s->slots[step->dst.slot];
    struct zipccl_encoder *encoder = &slot->encoders[index];

    if (split.early == 0)
        return ZIPCCL_OK;
    if (ops->encode_early == NULL || ops->encode_rest == NULL) {
        ZIPCCL_TRY(encode_whole(s, step, src, n, dst, room_of(s, step, n, p), index));
        end = slot->size_out[index];
    } else {
        ZIPCCL_TRY(ops->encode_early(s->exec, (enum zipccl_dtype)s->plan->dtype, src, n, dst,
                                     room_of(s, step, n, p), encoder));
        end = encoder->final_end;
    }
    /* What was not coded is sent as well: zeros, never stale memory. */
    end = end > split.head ? end : split.head;
    if (end < split.head + split.early)
        ops->zero(s->exec, dst + end, split.head + split.early - end);
    return ZIPCCL_OK;
}

zipccl_status zipccl_run_encode_early(struct zipccl_run_state *s, const struct zipccl_step *step)
{
    struct zipccl_group g = zipccl_step_group(s, step);

    for (uint32_t p = 0; p < g.size; p++)
        for (uint32_t b = 0; b < g.nblocks; b++)
            if (zipccl_step_encodes(s, step, &g, p, b))
                ZIPCCL_TRY(encode_early(s, step, &g, p, b));
    return ZIPCCL_OK;
}

/* The parts do not stand: FIXED says overflow, EXACT puts the whole message where the tail begins. */
static zipccl_status give_up(struct zipccl_run_state *s, const struct zipccl_step *step,
                             const char *src, size_t n, char *dst, size_t room, uint32_t index,
                             const struct zipccl_split_cut *split)
{
    const struct zipccl_exec_ops *ops = s->exec->ops;
    struct zipccl_slot_state *slot = &s->slots[step->dst.slot];
    enum zipccl_dtype dtype = (enum zipccl_dtype)s->plan->dtype;
    size_t front = split->head + split->early;

    ops->zero(s->exec, dst, split->head);
    if (step->form == ZIPCCL_FORM_EXACT) {
        slot->void_out[index] = true;
        return ops->encode(s->exec, dtype, src, n, dst + front, zipccl_bound(dtype, n),
                           &slot->size_out[index]);
    }
    ops->zero(s->exec, dst + front, room - front);
    zipccl_message_write_header(dst, dtype, ZIPCCL_MESSAGE_OVERFLOW, n, 0);
    slot->over_out[index] = true;
    s->codec.overflows++;
    return ZIPCCL_OK;
}

zipccl_status zipccl_encode_rest(struct zipccl_run_state *s, const struct zipccl_step *step,
                                 const struct zipccl_group *g, uint32_t p, uint32_t b,
                                 const struct zipccl_split_cut *split)
{
    const struct zipccl_exec_ops *ops = s->exec->ops;
    const char *src = zipccl_place_from(s, &step->src, g, p, b);
    char *dst = zipccl_place_to(s, &step->dst, g, p, b);
    uint32_t index = zipccl_index_out(step, g, p, b);
    struct zipccl_slot_state *slot = &s->slots[step->dst.slot];
    size_t n = zipccl_step_n_out(s, step, g, p, b), room = room_of(s, step, n, p);
    size_t front = split->head + split->early, nbytes = slot->size_out[index];
    zipccl_status status = slot->void_out[index] ? ZIPCCL_ERR_OVERFLOW : ZIPCCL_OK;

    if (ops->encode_early != NULL && ops->encode_rest != NULL)
        status = ops->encode_rest(s->exec, &slot->encoders[index], &nbytes);
    if (status == ZIPCCL_OK && nbytes < front)
        status = ZIPCCL_ERR_OVERFLOW;
    if (status != ZIPCCL_OK && status != ZIPCCL_ERR_OVERFLOW)
        return status;
    slot->over_out[index] = slot->void_out[index] = false;
    if (status == ZIPCCL_ERR_OVERFLOW) {
        ZIPCCL_TRY(give_up(s, step, src, n, dst, room, index, split));
        nbytes = slot->size_out[index];
    } else {
        slot->size_out[index] = nbytes - front;
        if (step->form == ZIPCCL_FORM_FIXED)
            ops->zero(s->exec, dst + nbytes, room - nbytes);
    }
    zipccl_keep_fit(s, step, index / g->nblocks, n, nbytes, slot->over_out[index]);
    return ZIPCCL_OK;
}
