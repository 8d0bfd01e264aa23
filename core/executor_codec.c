/*
 * executor_codec.c - the steps of the codec lane: encode, decode, copy
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/executor_state.h"

/* Encode the block of 'peer' into its message, or copy it if it is too short to be coded. */
static zipccl_status encode_one(struct zipccl_run_state *s, const struct zipccl_step *step,
                                uint32_t peer)
{
    struct zipccl_slot_state *slot = &s->slots[step->dst.slot];
    const char *src = zipccl_place_from(s, &step->src, peer);
    char *dst = zipccl_place_to(s, &step->dst, peer);
    size_t n = zipccl_step_n_out(s, step, peer), nbytes = 0, capacity;
    uint32_t index = zipccl_message_index(s, step, peer);
    zipccl_status status;

    slot->over_out[index] = false;
    if (!zipccl_step_codes(s, step, n)) {
        s->exec->ops->copy(s->exec, dst, src, n * s->element);
        return ZIPCCL_OK;
    }
    capacity = zipccl_step_capacity(s, step, n);
    status = s->exec->ops->encode(s->exec, (enum zipccl_dtype)s->plan->dtype, src, n, dst, capacity,
                                  &nbytes);
    if (status == ZIPCCL_ERR_OVERFLOW && step->form == ZIPCCL_FORM_FIXED) {
        slot->over_out[index] = true;
        s->codec.overflows++;
    } else if (status != ZIPCCL_OK) {
        return status == ZIPCCL_ERR_OVERFLOW ? ZIPCCL_ERR_INTERNAL : status;
    }
    slot->size_out[index] = nbytes;
    /* What a fixed message does not fill is sent as well: zeros, never stale memory. */
    if (step->form == ZIPCCL_FORM_FIXED)
        s->exec->ops->zero(s->exec, dst + nbytes, capacity - nbytes);
    return ZIPCCL_OK;
}

/* In an all-to-all every receiver must learn that some message of this sender overflowed. */
static void tell_all(struct zipccl_run_state *s, const struct zipccl_step *step)
{
    const struct zipccl_slot_state *slot = &s->slots[step->dst.slot];
    bool any = false;

    for (uint32_t p = 0; p < s->nranks; p++)
        any = any || (p != s->rank && slot->over_out[p]);
    for (uint32_t p = 0; any && p < s->nranks; p++)
        if (p != s->rank)
            zipccl_message_set_flags(zipccl_place_to(s, &step->dst, p),
                                     ZIPCCL_MESSAGE_ANY_OVERFLOW);
}

static zipccl_status encode(struct zipccl_run_state *s, const struct zipccl_step *step)
{
    if (zipccl_step_shares_message(step)) {
        bool sends = step->pattern == ZIPCCL_PATTERN_ALL_GATHER || s->rank == step->root;

        return sends && step->n > 0 ? encode_one(s, step, s->rank) : ZIPCCL_OK;
    }
    for (uint32_t p = 0; p < s->nranks; p++)
        if (zipccl_step_sends(s, step, p))
            ZIPCCL_TRY(encode_one(s, step, p));
    if (step->pattern == ZIPCCL_PATTERN_ALL_TO_ALL && step->form == ZIPCCL_FORM_FIXED)
        tell_all(s, step);
    return ZIPCCL_OK;
}

/* Where the raw elements of 'peer' are if they were sent again, else NULL. */
static const char *resent(const struct zipccl_run_state *s, const struct zipccl_step *step,
                          uint32_t peer)
{
    uint16_t raw;

    if (step->raw_of == ZIPCCL_STEP_NONE || !s->armed[step->raw_of])
        return NULL;
    if (step->pattern == ZIPCCL_PATTERN_PAIRS && !s->slots[step->src.slot].over_in[peer])
        return NULL;
    raw = s->raw_exchange[step->raw_of];
    return zipccl_place_from(s, &s->plan->steps[raw].dst, peer);
}

static zipccl_status decode(struct zipccl_run_state *s, const struct zipccl_step *step)
{
    const struct zipccl_slot_state *slot = &s->slots[step->src.slot];

    for (uint32_t p = 0; p < s->nranks; p++) {
        struct zipccl_place src = step->src;
        size_t n = zipccl_step_n_in(s, step, p), nbytes;
        const char *raw;
        char *dst;

        if (!zipccl_step_receives(s, step, p))
            continue;
        src.peer_stride = slot->rx_stride;
        dst = zipccl_place_to(s, &step->dst, p);
        raw = resent(s, step, p);
        if (raw == NULL && !zipccl_step_codes(s, step, n))
            raw = zipccl_place_from(s, &src, p);
        if (raw != NULL) {
            s->exec->ops->copy(s->exec, dst, raw, n * s->element);
            continue;
        }
        nbytes =
            step->form == ZIPCCL_FORM_EXACT ? slot->size_in[p] : zipccl_step_capacity(s, step, n);
        zipccl_status status = s->exec->ops->decode(s->exec, (enum zipccl_dtype)s->plan->dtype,
                                                    zipccl_place_from(s, &src, p), nbytes, dst, n);

        /* A header that overflowed was resolved; one that turns up here was not sent so. */
        if (status != ZIPCCL_OK)
            return status == ZIPCCL_ERR_OVERFLOW ? ZIPCCL_ERR_CORRUPT : status;
    }
    return ZIPCCL_OK;
}

static void copy_own(struct zipccl_run_state *s, const struct zipccl_step *step)
{
    const char *src = zipccl_place_from(s, &step->src, s->rank);
    char *dst = zipccl_place_to(s, &step->dst, s->rank);
    size_t n = step->pattern == ZIPCCL_PATTERN_PAIRS ? s->run->send_counts[s->rank] : step->n;

    if (step->pattern == ZIPCCL_PATTERN_BROADCAST && s->rank != step->root)
        return;
    if (n > 0 && src != dst)
        s->exec->ops->copy(s->exec, dst, src, n * s->element);
}

zipccl_status zipccl_run_codec_step(struct zipccl_run_state *s, const struct zipccl_step *step)
{
    switch (step->kind) {
    case ZIPCCL_STEP_ENCODE: return encode(s, step);
    case ZIPCCL_STEP_DECODE: return decode(s, step);
    case ZIPCCL_STEP_COPY: copy_own(s, step); return ZIPCCL_OK;
    default: return ZIPCCL_ERR_ARG;
    }
}
