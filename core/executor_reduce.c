/*
 * executor_reduce.c - REDUCE: contributions added in member order, the sum rounded
 *
 * Raw contributions are all there, so they are added a piece at a time, while the piece of the
 * accumulator is in the cache.  A message is decoded as a whole, next to the accumulator, and added
 * before the next one is decoded; one that was sent again raw is added from where it lies, in its
 * turn, so that an overflow changes neither order nor rounding.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/executor_state.h"

/* Elements of a piece: 32 KiB of accumulators. */
#define PIECE_N 8192u

/* The accumulators end on a cache line, then comes the room for a decoded block. */
#define ALIGN_N 16u

static void add(struct zipccl_run_state *s, float *acc, const char *x, size_t n, bool first)
{
    s->exec->ops->reduce_add(s->exec, (enum zipccl_dtype)s->plan->dtype, acc, x, n, first);
}

static void finish(struct zipccl_run_state *s, const struct zipccl_step *step, const float *acc,
                   size_t n, char *dst)
{
    uint32_t divisor = step->redop == ZIPCCL_AVG ? s->nranks : 1;

    s->exec->ops->reduce_round(s->exec, (enum zipccl_dtype)s->plan->dtype, acc, n, divisor, dst);
}

/* Where the raw contribution of member 'p' lies. */
static const char *contribution(const struct zipccl_run_state *s, const struct zipccl_step *step,
                                const struct zipccl_group *g, uint32_t p, uint32_t b)
{
    return zipccl_place_from(s, p == g->self ? &step->self : &step->src, g, p, b);
}

static void reduce_raw(struct zipccl_run_state *s, const struct zipccl_step *step,
                       const struct zipccl_group *g, uint32_t b, size_t n)
{
    float *acc = s->run->acc;
    char *dst = zipccl_place_to(s, &step->dst, g, g->self, b);

    for (size_t first = 0; first < n; first += PIECE_N) {
        size_t len = n - first < PIECE_N ? n - first : PIECE_N, at = first * s->element;

        for (uint32_t p = 0; p < g->size; p++)
            add(s, acc, contribution(s, step, g, p, b) + at, len, p == 0);
        finish(s, step, acc, len, dst + at);
    }
}

static zipccl_status reduce_coded(struct zipccl_run_state *s, const struct zipccl_step *step,
                                  const struct zipccl_group *g, uint32_t b, size_t n)
{
    float *acc = s->run->acc;
    char *decoded = (char *)(acc + (s->plan->chunk_n + ALIGN_N - 1) / ALIGN_N * ALIGN_N);

    for (uint32_t p = 0; p < g->size; p++) {
        const char *x =
            p == g->self ? contribution(s, step, g, p, b) : zipccl_step_resent(s, step, g, p, b);

        if (x == NULL) {
            ZIPCCL_TRY(zipccl_step_decode(s, step, g, p, b, n, decoded));
            x = decoded;
        }
        add(s, acc, x, n, p == 0);
    }
    finish(s, step, acc, n, zipccl_place_to(s, &step->dst, g, g->self, b));
    return ZIPCCL_OK;
}

zipccl_status zipccl_run_reduce(struct zipccl_run_state *s, const struct zipccl_step *step)
{
    struct zipccl_group g = zipccl_step_group(s, step);

    for (uint32_t b = 0; b < g.nblocks; b++) {
        size_t n = zipccl_step_n_in(s, step, &g, g.self, b);

        if (n == 0)
            continue;
        if (step->form == ZIPCCL_FORM_RAW)
            reduce_raw(s, step, &g, b, n);
        else
            ZIPCCL_TRY(reduce_coded(s, step, &g, b, n));
    }
    return ZIPCCL_OK;
}
