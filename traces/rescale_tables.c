/*
 * rescale_tables.c - tables of uneven all-to-alls over more or fewer members
 *
 * As with even ones the whole tensor stays: what a member sent to one goes in equal parts to the
 * copies of that one (rounded so that nothing is lost), or to the one that is left of several.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/rescale_sets.h"

#include "traces/trace_internal.h"

#include <inttypes.h>

/* Which set's calls use each table that has to be spread. */
static zipccl_status find_users(struct rescaling *r)
{
    const struct zipccl_trace *t = r->trace;

    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < t->nevents; i++) {
            const struct zipccl_event *e = &t->events[i];
            int32_t *user;

            if (e->kind != ZIPCCL_EVENT_COLLECTIVE || e->op != ZIPCCL_ALLTOALLV)
                continue;
            user = &r->table_of[e->splits];
            if (pass == 0 && r->grows[e->group] && *user < 0)
                *user = (int32_t)e->group;
            if (pass == 1 && *user >= 0 && *user != (int32_t)e->group)
                return rescale_wrong(r,
                                     "its table is used by another group too, expected one that is "
                                     "not, as the group grows or shrinks",
                                     t->header.groups[*user].name);
        }
    return ZIPCCL_OK;
}

/* The first group of the set that is in the new world, its new members in r->ranks. */
static const uint32_t *first_group(struct rescaling *r, uint32_t set, uint32_t *n)
{
    const struct zipccl_trace_group *g = &r->trace->header.groups[set];

    for (uint32_t p = 0; p < g->nparts; p++) {
        *n = rescale_members(r, g->ranks + (size_t)p * g->size, g->size, r->ranks);
        if (*n > 0)
            return g->ranks + (size_t)p * g->size;
    }
    return NULL;
}

/* The rank of the new world to which the work of an old one goes. */
static uint32_t left_of(const struct rescaling *r, uint32_t old)
{
    uint32_t left = r->block / r->factor;

    return old / r->block * left + old % r->block % left;
}

static void spread(const struct rescaling *r, const struct zipccl_trace_splits *from, uint32_t n,
                   struct zipccl_trace_splits *to)
{
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = 0; b < n; b++) {
            uint32_t i = r->place[r->origin[r->ranks[a]]] - 1;
            uint32_t j = r->place[r->origin[r->ranks[b]]] - 1;
            uint64_t copy = r->ranks[b] % (r->block * r->factor) / r->block;
            uint64_t x = from->counts[(size_t)i * from->size + j];
            uint64_t each = x / r->factor, more = x % r->factor;

            to->counts[(size_t)a * n + b] = each + (copy < more);
        }
}

static zipccl_status fold(const struct rescaling *r, const struct zipccl_trace_splits *from,
                          const uint32_t *old, uint32_t n, struct zipccl_trace_splits *to)
{
    for (uint32_t j = 0; j < from->size; j++) {
        uint32_t left = left_of(r, old[j]), at = 0;

        while (at < n && r->ranks[at] != left)
            at++;
        if (at == n)
            return zipccl_fail(r->error, ZIPCCL_ERR_INPUT,
                               "%.200s: splits %.60s: what rank %" PRIu32
                               " receives would go to rank %" PRIu32
                               ", which is not in its group, expected groups of whole copies",
                               r->trace->path, from->name, old[j], r->origin[left]);
        for (uint32_t a = 0; a < n; a++) {
            uint32_t i = r->place[r->origin[r->ranks[a]]] - 1;

            to->counts[(size_t)a * n + at] += from->counts[(size_t)i * from->size + j];
        }
    }
    return ZIPCCL_OK;
}

static zipccl_status make_table(struct rescaling *r, uint32_t index)
{
    const struct zipccl_trace_splits *from = &r->trace->header.splits[index];
    struct zipccl_trace_splits *to = &r->header.splits[index];
    uint32_t n = 0;
    const uint32_t *old = first_group(r, (uint32_t)r->table_of[index], &n);
    zipccl_status status = ZIPCCL_OK;

    if (old == NULL)
        return rescale_wrong(r, "none of its ranks are in the new world", from->name);
    /* As the reader says; here, before memory is taken for them. */
    r->nentries += (uint64_t)n * n;
    if (r->nentries > ZIPCCL_TRACE_MAX_MEMBERS)
        return zipccl_fail(r->error, ZIPCCL_ERR_INPUT,
                           "%.200s: splits %.60s: %" PRIu32 " x %" PRIu32
                           " entries, with those before it more than %" PRIu64 ", expected fewer",
                           r->trace->path, from->name, n, n, ZIPCCL_TRACE_MAX_MEMBERS);
    to->size = n;
    to->counts = zipccl_arena_alloc(&r->arena, (size_t)n * n, sizeof *to->counts);
    if (to->counts == NULL)
        return rescale_nomem(r);
    for (uint32_t i = 0; i < from->size; i++)
        r->place[old[i]] = 1 + i;
    if (r->up)
        spread(r, from, n, to);
    else
        status = fold(r, from, old, n, to);
    for (uint32_t i = 0; i < from->size; i++)
        r->place[old[i]] = 0;
    r->report->ntables++;
    return status;
}

zipccl_status rescale_tables(struct rescaling *r)
{
    const struct zipccl_trace_header *h = &r->trace->header;

    r->table_of = zipccl_arena_alloc(&r->arena, (size_t)h->nsplits + 1, sizeof *r->table_of);
    r->header.splits = zipccl_arena_alloc(&r->arena, h->nsplits, sizeof *h->splits);
    if (r->table_of == NULL || r->header.splits == NULL)
        return rescale_nomem(r);
    for (uint32_t i = 0; i < h->nsplits; i++) {
        r->table_of[i] = -1;
        r->header.splits[i] = h->splits[i];
    }
    ZIPCCL_TRY(find_users(r));
    for (uint32_t i = 0; i < h->nsplits; i++)
        if (r->table_of[i] >= 0)
            ZIPCCL_TRY(make_table(r, i));
    return ZIPCCL_OK;
}
