/*
 * trace_check_coll.c - the rules a collective event must keep, reader and writer alike
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/trace_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A buffer of a call on one rank may not pass 2^53 bytes, so that sums of sizes do not overflow. */
static zipccl_status check_size(const struct zipccl_place *at, const struct zipccl_event *e,
                                const struct zipccl_trace_group *g)
{
    bool all = e->op == ZIPCCL_ALL_GATHER || e->op == ZIPCCL_REDUCE_SCATTER ||
               e->op == ZIPCCL_ALLTOALL || e->op == ZIPCCL_ALLTOALLV;
    uint64_t factor = (all ? g->size : 1) * (uint64_t)zipccl_dtype_size(e->dtype);

    if (e->count > ZIPCCL_JSON_MAX_INTEGER / factor)
        return zipccl_place_fail(at,
                                 "\"count\" is %" PRIu64 ", expected at most 2^53 bytes in "
                                 "the buffer, %" PRIu64 " elements",
                                 e->count, ZIPCCL_JSON_MAX_INTEGER / factor);
    return ZIPCCL_OK;
}

/* 'ranks' must be a union of whole parts of the group. */
static zipccl_status check_parts(struct zipccl_trace_checker *c, const struct zipccl_place *at,
                                 const struct zipccl_event *e, const struct zipccl_trace_group *g)
{
    char quoted[ZIPCCL_QUOTE_SIZE];
    zipccl_status status = ZIPCCL_OK;
    uint32_t covered = 0;

    for (uint32_t i = 0; i < e->nranks; i++)
        c->marks[e->ranks[i]] = 1;
    for (uint32_t part = 0; part < g->nparts && status == ZIPCCL_OK; part++) {
        const uint32_t *ranks = g->ranks + (size_t)part * g->size;
        uint32_t n = 0;

        for (uint32_t i = 0; i < g->size; i++)
            n += c->marks[ranks[i]];
        covered += n;
        if (n != 0 && n != g->size)
            status =
                zipccl_place_fail(at,
                                  "\"ranks\" has %" PRIu32 " of %" PRIu32
                                  " members of part %" PRIu32 " of group %s, expected all or none",
                                  n, g->size, part, zipccl_quote(quoted, g->name));
    }
    if (status == ZIPCCL_OK && covered != e->nranks)
        status = zipccl_place_fail(at, "%" PRIu32 " of \"ranks\" not in group %s, expected none",
                                   e->nranks - covered, zipccl_quote(quoted, g->name));
    for (uint32_t i = 0; i < e->nranks; i++)
        c->marks[e->ranks[i]] = 0;
    return status;
}

static zipccl_status check_splits(const struct zipccl_trace_checker *c,
                                  const struct zipccl_place *at, const struct zipccl_event *e,
                                  const struct zipccl_trace_group *g)
{
    const struct zipccl_trace_splits *s;
    char quoted[ZIPCCL_QUOTE_SIZE];
    uint64_t largest = 0;

    if (e->op != ZIPCCL_ALLTOALLV)
        return e->splits < 0 ? ZIPCCL_OK
                             : zipccl_place_fail(at, "\"splits\" with op %s, expected none",
                                                 zipccl_op_name(e->op));
    if (e->splits < 0 || (uint32_t)e->splits >= c->header->nsplits)
        return zipccl_place_fail(at, "no \"splits\" of the header with op alltoallv, expected one");
    s = &c->header->splits[e->splits];
    if (s->size != g->size)
        return zipccl_place_fail(
            at, "splits %s of %" PRIu32 " members, expected %" PRIu32 " as in the group",
            zipccl_quote(quoted, s->name), s->size, g->size);
    for (size_t i = 0; i < (size_t)s->size * s->size; i++)
        largest = s->counts[i] > largest ? s->counts[i] : largest;
    if (e->count != largest)
        return zipccl_place_fail(
            at, "\"count\" is %" PRIu64 ", expected %" PRIu64 ", the largest entry of splits %s",
            e->count, largest, zipccl_quote(quoted, s->name));
    return ZIPCCL_OK;
}

static int compare_pairs(const void *a, const void *b)
{
    const struct zipccl_trace_pair *x = a, *y = b;

    if (x->src != y->src)
        return x->src < y->src ? -1 : 1;
    return x->dst < y->dst ? -1 : x->dst > y->dst;
}

static zipccl_status check_pair_range(const struct zipccl_place *at, const struct zipccl_event *e,
                                      uint32_t size)
{
    if (e->op != ZIPCCL_SENDRECV)
        return e->npairs == 0 ? ZIPCCL_OK
                              : zipccl_place_fail(at, "\"pairs\" with op %s, expected none",
                                                  zipccl_op_name(e->op));
    if (e->npairs == 0)
        return zipccl_place_fail(at, "no \"pairs\" with op sendrecv, expected one or more");
    for (uint32_t i = 0; i < e->npairs; i++)
        if (e->pairs[i].src >= size || e->pairs[i].dst >= size ||
            e->pairs[i].src == e->pairs[i].dst)
            return zipccl_place_fail(at,
                                     "pair [%" PRIu32 ", %" PRIu32
                                     "], expected two different members from 0 to %" PRIu32,
                                     e->pairs[i].src, e->pairs[i].dst, size - 1);
    return ZIPCCL_OK;
}

static zipccl_status check_pairs(const struct zipccl_place *at, const struct zipccl_event *e,
                                 uint32_t size)
{
    zipccl_status status = ZIPCCL_OK;
    struct zipccl_trace_pair *sorted;

    ZIPCCL_TRY(check_pair_range(at, e, size));
    if (e->npairs < 2)
        return ZIPCCL_OK;
    sorted = malloc(e->npairs * sizeof *sorted);
    if (sorted == NULL)
        return zipccl_place_nomem(at);
    memcpy(sorted, e->pairs, e->npairs * sizeof *sorted);
    qsort(sorted, e->npairs, sizeof *sorted, compare_pairs);
    for (uint32_t i = 1; i < e->npairs && status == ZIPCCL_OK; i++)
        if (compare_pairs(&sorted[i - 1], &sorted[i]) == 0)
            status = zipccl_place_fail(at, "pair [%" PRIu32 ", %" PRIu32 "] twice, expected once",
                                       sorted[i].src, sorted[i].dst);
    free(sorted);
    return status;
}

static zipccl_status check_samples(const struct zipccl_trace_checker *c,
                                   const struct zipccl_place *at, const struct zipccl_event *e)
{
    if (e->nsamples > 0 && c->header->samples == NULL)
        return zipccl_place_fail(at,
                                 "\"samples\" in an event, expected a samples file in the header");
    for (uint32_t i = 0; i < e->nsamples; i++) {
        const char *s = e->samples[i];
        bool class = s != NULL && strncmp(s, "class:", 6) == 0;

        if (s == NULL || s[0] == '\0' || (class && s[6] == '\0'))
            return zipccl_place_fail(at, "an empty name in \"samples\", expected a tensor's");
        if (!zipccl_text_printable(s))
            return zipccl_place_fail(at, "\"samples\" with control characters, expected none");
        if (class && e->nsamples > 1)
            return zipccl_place_fail(at, "a class among %" PRIu32 " samples, expected it alone",
                                     e->nsamples);
    }
    return ZIPCCL_OK;
}

zipccl_status zipccl_trace_check_collective(struct zipccl_trace_checker *c,
                                            const struct zipccl_place *at,
                                            const struct zipccl_event *e)
{
    const struct zipccl_trace_group *g;
    bool reduces = zipccl_is_reduction(e->op);

    if ((unsigned)e->op >= ZIPCCL_NUM_OPS || (unsigned)e->dtype >= ZIPCCL_NUM_DTYPES ||
        (unsigned)e->redop >= ZIPCCL_NUM_REDOPS)
        return zipccl_place_fail(at, "op %u, dtype %u, redop %u, expected valid numbers",
                                 (unsigned)e->op, (unsigned)e->dtype, (unsigned)e->redop);
    if (!reduces && e->redop != ZIPCCL_SUM)
        return zipccl_place_fail(at, "\"redop\" with op %s, expected none", zipccl_op_name(e->op));
    if (e->group >= c->header->ngroups)
        return zipccl_place_fail(at, "group %" PRIu32 ", expected one of %" PRIu32, e->group,
                                 c->header->ngroups);
    g = &c->header->groups[e->group];
    if (e->op == ZIPCCL_BROADCAST ? e->root >= g->size : e->root != 0)
        return zipccl_place_fail(at, "\"root\" is %" PRIu32 " with op %s, expected 0 to %" PRIu32,
                                 e->root, zipccl_op_name(e->op),
                                 e->op == ZIPCCL_BROADCAST ? g->size - 1 : 0);
    ZIPCCL_TRY(
        zipccl_trace_check_amount(at, "recorded_s", e->recorded_s, ZIPCCL_TRACE_MAX_SECONDS, " s"));
    ZIPCCL_TRY(check_size(at, e, g));
    ZIPCCL_TRY(check_splits(c, at, e, g));
    ZIPCCL_TRY(check_pairs(at, e, g->size));
    if (e->nranks > 0)
        ZIPCCL_TRY(check_parts(c, at, e, g));
    return check_samples(c, at, e);
}
