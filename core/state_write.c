/*
 * state_write.c - learnt state as text
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/state.h"

#include "core/state_words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* As the reader takes it. */
static uint64_t at_most(uint64_t x)
{
    return x < ZIPCCL_STATE_MOST ? x : ZIPCCL_STATE_MOST;
}

static uint32_t at_most32(uint32_t x)
{
    return x < UINT32_MAX / 2 ? x : UINT32_MAX / 2;
}

/* Calls at a decision: whole periods. */
static uint64_t whole_periods(uint64_t calls)
{
    uint64_t x = at_most(calls);

    return x == calls ? x : x / ZIPCCL_CLASS_PERIOD * ZIPCCL_CLASS_PERIOD;
}

/* True if class 'c' has been barred. */
static bool is_changed(const struct zipccl_class_state *state, int c)
{
    return state->barred_until[c] != 0 || state->bar[c] != zipccl_class_first_bar(c);
}

static void put_class(const struct zipccl_class_state *state, FILE *out)
{
    unsigned n = 0;

    for (int c = 0; c < ZIPCCL_NUM_CLASSES; c++)
        n += is_changed(state, c);
    fprintf(out, " calls %" PRIu64 " class %s %s barred %u", whole_periods(state->decided),
            zipccl_class_name(state->now), zipccl_state_reasons[state->reason], n);
    for (int c = 0; c < ZIPCCL_NUM_CLASSES; c++)
        if (is_changed(state, c))
            fprintf(out, " %s %" PRIu64 " %" PRIu32, zipccl_class_name(c),
                    at_most(state->barred_until[c]), state->bar[c]);
}

static void put_even(const struct zipccl_state_even *even, FILE *out)
{
    const struct zipccl_trials *t = &even->trials;

    fprintf(out, "even %s %s %zu", zipccl_op_name(even->op), zipccl_dtype_name(even->dtype),
            even->count);
    put_class(&even->state, out);
    fprintf(out,
            " ratio %" PRIu32 " %s trials %s %s %s %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64,
            even->coded_ppm, zipccl_state_efforts[even->effort], t->on ? "on" : "off",
            zipccl_kind_name(t->now), zipccl_kind_name(t->challenger), at_most32(t->changes),
            at_most(t->period), at_most(t->ntrials), at_most(t->spent));
    for (int k = 0; k < ZIPCCL_NUM_KINDS; k++)
        fprintf(out, " %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu32,
                zipccl_kind_name(k), at_most(t->kinds[k].predicted_ns), at_most(t->kinds[k].ns),
                at_most(t->kinds[k].next), at_most(t->kinds[k].pause), at_most32(t->kinds[k].wins));
    fputc('\n', out);
}

static void put_all(const struct zipccl_state *state, FILE *out)
{
    fprintf(out, "zipccl-state %u\n", ZIPCCL_STATE_VERSION);
    fprintf(out, "rank %" PRIu32 " of %" PRIu32 "\n", state->rank, state->nranks);
    fprintf(out,
            "settings %" PRIu32 " options %016" PRIx64 " rates %016" PRIx64 " topology %016" PRIx64
            "\n",
            state->agreement, state->options, state->params, state->topology);
    for (size_t i = 0; i < state->neven; i++)
        put_even(&state->even[i], out);
    for (size_t i = 0; i < state->npairs; i++) {
        const struct zipccl_state_pair *pair = &state->pairs[i];

        fprintf(out, "pair %s %s %" PRIu32 " %s", zipccl_op_name(pair->op),
                zipccl_dtype_name(pair->dtype), pair->peer, pair->incoming ? "in" : "out");
        put_class(&pair->state, out);
        fputc('\n', out);
    }
}

zipccl_status zipccl_state_write(const struct zipccl_state *state, char **text, size_t *nbytes)
{
    char *bytes = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&bytes, &n);

    if (out == NULL)
        return ZIPCCL_ERR_NOMEM;
    put_all(state, out);
    fflush(out);
    if (bytes != NULL)
        fprintf(out, "end %zu %016" PRIx64 "\n", state->neven + state->npairs,
                zipccl_state_digest(bytes, n));
    if (fclose(out) != 0 || bytes == NULL) {
        free(bytes);
        return ZIPCCL_ERR_NOMEM;
    }
    *text = bytes;
    *nbytes = n;
    return ZIPCCL_OK;
}

void zipccl_state_release(struct zipccl_state *state)
{
    free(state->even);
    free(state->pairs);
    state->even = NULL;
    state->pairs = NULL;
    state->neven = state->npairs = 0;
}
