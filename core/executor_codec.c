/*
 * executor_codec.c - the steps of the codec lane that keep values: encode, decode, copy
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/executor_state.h"

void zipccl_keep_fit(struct zipccl_run_state *s, const struct zipccl_step *step, uint32_t p,
                     size_t n, size_t nbytes, bool overflowed)
{
    int fit = zipccl_step_fit(s, n, zipccl_step_class_out(s, step, p), nbytes, overflowed);

    if (!overflowed) {
        s->codec.coded_raw_bytes += n * s->element;
        s->codec.coded_bytes += nbytes;
    }
    if (fit < s->codec.fit)
        s->codec.fit = fit;
    if (step->pattern == ZIPCCL_PATTERN_PAIRS && s->run->send_fit != NULL &&
        fit < s->run->send_fit[p])
        s->run->send_fit[p] = (int8_t)fit;
}

/* Add the block for member 'p' to the messages to be encoded, or copy it if it is too short, or code
 * what is left of it. */
static zipccl_status add_one(struct zipccl_run_state *s, const struct zipccl_step *step,
                             const struct zipccl_group *g, uint32_t p, uint32_t b)
{
    struct zipccl_slot_state *slot = &s->slots[step->dst.slot];
    const char *src = zipccl_place_from(s, &step->src, g, p, b);
    char *dst = zipccl_place_to(s, &step->dst, g, p, b);
    size_t n = zipccl_step_n_out(s, step, g, p, b);
    uint32_t index = zipccl_index_out(step, g, p, b);
    int cls = zipccl_step_class_out(s, step, p);
    struct zipccl_split_cut split = zipccl_step_split(s, step, n, cls);

    if (split.early > 0)
        return zipccl_encode_rest(s, step, g, p, b, &split);
    slot->over_out[index] = false;
    if (!zipccl_step_codes(s, step, n, cls)) {
        s->exec->ops->copy(s->exec, dst, src, n * s->element);
        return ZIPCCL_OK;
    }
    slot->encoded[slot->nslices] = index;
    slot->slices[slot->nslices++] = (struct zipccl_slice){
        .src = src, .n = n, .dst = dst, .capacity = zipccl_step_capacity(s, step, n, cls)};
    return ZIPCCL_OK;
}

static zipccl_status encode_slices(struct zipccl_run_state *s, struct zipccl_slot_state *slot)
{
    const struct zipccl_exec_ops *ops = s->exec->ops;
    enum zipccl_dtype dtype = (enum zipccl_dtype)s->plan->dtype;

    if (ops->encode_many != NULL)
        return ops->encode_many(s->exec, dtype, slot->slices, slot->nslices);
    for (size_t i = 0; i < slot->nslices; i++) {
        struct zipccl_slice *slice = &slot->slices[i];

        slice->status = ops->encode(s->exec, dtype, slice->src, slice->n, slice->dst,
                                    slice->capacity, &slice->nbytes);
        if (slice->status != ZIPCCL_OK && slice->status != ZIPCCL_ERR_OVERFLOW)
            return slice->status;
    }
    return ZIPCCL_OK;
}

/* Keep what became of a message for member 'p'. */
static zipccl_status keep(struct zipccl_run_state *s, const struct zipccl_step *step,
                          const struct zipccl_slice *slice, uint32_t index, uint32_t p)
{
    struct zipccl_slot_state *slot = &s->slots[step->dst.slot];

    if (slice->status == ZIPCCL_ERR_OVERFLOW) {
        if (step->form != ZIPCCL_FORM_FIXED)
            return ZIPCCL_ERR_INTERNAL;
        slot->over_out[index] = true;
        s->codec.overflows++;
    }
    slot->size_out[index] = slice->nbytes;
    slot->void_out[index] = false;
    zipccl_keep_fit(s, step, p, slice->n, slice->nbytes, slot->over_out[index]);
    /* What a fixed message does not fill is sent as well: zeros, never stale memory. */
    if (step->form == ZIPCCL_FORM_FIXED && s->exec->ops->run == NULL)
        s->exec->ops->zero(s->exec, (char *)slice->dst + slice->nbytes,
                           slice->capacity - slice->nbytes);
    return ZIPCCL_OK;
}

zipccl_status zipccl_run_keep(struct zipccl_run_state *s, struct zipccl_slot_state *slot)
{
    size_t nslices = slot->nslices;

    slot->nslices = 0;
    for (size_t i = 0; i < nslices; i++)
        ZIPCCL_TRY(keep(s, slot->encode, &slot->slices[i], slot->encoded[i],
                        slot->encoded[i] / slot->encode->nblocks));
    return ZIPCCL_OK;
}

static zipccl_status encode(struct zipccl_run_state *s, const struct zipccl_step *step)
{
    struct zipccl_group g = zipccl_step_group(s, step);
    struct zipccl_slot_state *slot = &s->slots[step->dst.slot];
    zipccl_status status;

    slot->nslices = 0;
    slot->encode = step;
    for (uint32_t p = 0; p < g.size; p++)
        for (uint32_t b = 0; b < g.nblocks; b++)
            if (zipccl_step_encodes(s, step, &g, p, b))
                ZIPCCL_TRY(add_one(s, step, &g, p, b));
    status = encode_slices(s, slot);
    if (status != ZIPCCL_OK && status != ZIPCCL_ERR_OVERFLOW)
        return status;
    /* A device has only started; its run() keeps them when it knows. */
    return s->exec->ops->run == NULL ? zipccl_run_keep(s, slot) : ZIPCCL_OK;
}

const char *zipccl_step_resent(const struct zipccl_run_state *s, const struct zipccl_step *step,
                               const struct zipccl_group *g, uint32_t p, uint32_t b)
{
    uint16_t raw;

    if (step->raw_of == ZIPCCL_STEP_NONE || !s->armed[step->raw_of])
        return NULL;
    if (!zipccl_step_shares_message(step) &&
        !s->slots[step->src.slot].over_in[zipccl_index_in(g, p, b)])
        return NULL;
    raw = s->raw_exchange[step->raw_of];
    return zipccl_place_from(s, &s->plan->steps[raw].dst, g, p, b);
}

const char *zipccl_step_message(const struct zipccl_run_state *s, const struct zipccl_step *step,
                                const struct zipccl_group *g, uint32_t p, uint32_t b, size_t n,
                                size_t *nbytes)
{
    const struct zipccl_slot_state *slot = &s->slots[step->src.slot];
    struct zipccl_place src = zipccl_place_arrived(s, step->src);
    const char *at = zipccl_place_from(s, &src, g, p, b);
    int cls = zipccl_step_class_in(s, step, p);
    struct zipccl_split_cut split = zipccl_step_split(s, step, n, cls);
    uint32_t index = zipccl_index_in(g, p, b);

    if (step->form != ZIPCCL_FORM_EXACT) {
        *nbytes = zipccl_step_capacity(s, step, n, cls);
        return at;
    }
    *nbytes = slot->size_in[index];
    if (split.early == 0)
        return at;
    if (slot->void_in[index]) /* it came whole, in the place of its tail */
        return at + split.head + split.early;
    *nbytes += split.head + split.early;
    return at;
}

zipccl_status zipccl_step_decode(struct zipccl_run_state *s, const struct zipccl_step *step,
                                 const struct zipccl_group *g, uint32_t p, uint32_t b, size_t n,
                                 void *dst)
{
    size_t nbytes;
    const char *message = zipccl_step_message(s, step, g, p, b, n, &nbytes);
    zipccl_status status =
        s->exec->ops->decode(s->exec, (enum zipccl_dtype)s->plan->dtype, message, nbytes, dst, n);

    /* A header that overflowed was resolved; one that turns up here was not sent so. */
    return status == ZIPCCL_ERR_OVERFLOW ? ZIPCCL_ERR_CORRUPT : status;
}

static zipccl_status decode_one(struct zipccl_run_state *s, const struct zipccl_step *step,
                                const struct zipccl_group *g, uint32_t p, uint32_t b)
{
    struct zipccl_place src = zipccl_place_arrived(s, step->src);
    size_t n = zipccl_step_n_in(s, step, g, p, b);
    char *dst = zipccl_place_to(s, &step->dst, g, p, b);
    const char *raw = zipccl_step_resent(s, step, g, p, b);

    if (raw == NULL && !zipccl_step_codes(s, step, n, zipccl_step_class_in(s, step, p)))
        raw = zipccl_place_from(s, &src, g, p, b);
    if (raw == NULL)
        return zipccl_step_decode(s, step, g, p, b, n, dst);
    s->exec->ops->copy(s->exec, dst, raw, n * s->element);
    return ZIPCCL_OK;
}

static zipccl_status decode(struct zipccl_run_state *s, const struct zipccl_step *step)
{
    struct zipccl_group g = zipccl_step_group(s, step);

    for (uint32_t p = 0; p < g.size; p++)
        for (uint32_t b = 0; b < g.nblocks; b++)
            if (zipccl_step_receives(s, step, &g, p, b))
                ZIPCCL_TRY(decode_one(s, step, &g, p, b));
    return ZIPCCL_OK;
}

static void copy_own(struct zipccl_run_state *s, const struct zipccl_step *step)
{
    struct zipccl_group g = zipccl_step_group(s, step);

    if (step->pattern == ZIPCCL_PATTERN_BROADCAST && g.self != g.root)
        return;
    for (uint32_t b = 0; b < g.nblocks; b++) {
        const char *src = zipccl_place_from(s, &step->src, &g, g.self, b);
        char *dst = zipccl_place_to(s, &step->dst, &g, g.self, b);
        size_t n = step->pattern == ZIPCCL_PATTERN_PAIRS
                       ? s->run->send_counts[s->rank]
                       : zipccl_step_n_out(s, step, &g, g.self, b);

        if (n > 0 && src != dst)
            s->exec->ops->copy(s->exec, dst, src, n * s->element);
    }
}

zipccl_status zipccl_run_codec_step(struct zipccl_run_state *s, const struct zipccl_step *step)
{
    switch (step->kind) {
    case ZIPCCL_STEP_ENCODE:
        return step->part == ZIPCCL_PART_EARLY ? zipccl_run_encode_early(s, step) : encode(s, step);
    case ZIPCCL_STEP_DECODE: return decode(s, step);
    case ZIPCCL_STEP_REDUCE: return zipccl_run_reduce(s, step);
    case ZIPCCL_STEP_COPY: copy_own(s, step); return ZIPCCL_OK;
    default: return ZIPCCL_ERR_ARG;
    }
}
