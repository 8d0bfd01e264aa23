/*
 * import_kineto_match.c - which call of one rank is which of another
 *
 * By the sequence numbers of the process group where all have them, else by the order in it.
 * Clocks of ranks are never compared.  A rank without a file does what another one does.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_kineto.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct matching {
    struct kineto_import *k;
    struct kineto_member *members; /* [k->nranks] */
    size_t nmembers;
    uint64_t by_order, unmatched;
    uint64_t first_line;
};

static zipccl_status nomem(const struct kineto_import *k)
{
    struct zipccl_place at = {k->importer->paths[0], 0, k->importer->error};

    return zipccl_place_nomem(&at);
}

struct kineto_rank *kineto_recorded(const struct kineto_import *k, uint32_t rank)
{
    struct kineto_rank *r = &k->ranks[k->donor[rank]];

    return r->rank == rank ? r : NULL;
}

static bool belongs(const struct kineto_call *c, uint32_t set, uint32_t lane)
{
    return !c->opaque && !c->pair && c->set == set && c->lane == lane;
}

static zipccl_status collect(struct matching *m, uint32_t set, uint32_t part, uint32_t lane)
{
    const struct kineto_set *s = &m->k->sets[set];

    m->nmembers = 0;
    for (uint32_t i = 0; i < s->size; i++) {
        struct kineto_rank *r = kineto_recorded(m->k, s->ranks[(size_t)part * s->size + i]);
        struct kineto_member *member = &m->members[m->nmembers];

        if (r == NULL)
            continue;
        *member = (struct kineto_member){r, malloc((r->ncalls + 1) * sizeof *member->calls), 0};
        m->nmembers++;
        if (member->calls == NULL)
            return nomem(m->k);
        for (size_t c = 0; c < r->ncalls; c++)
            if (belongs(&r->calls[c], set, lane))
                member->calls[member->n++] = (uint32_t)c;
    }
    return ZIPCCL_OK;
}

static void release(struct matching *m)
{
    for (size_t i = 0; i < m->nmembers; i++)
        free(m->members[i].calls);
    m->nmembers = 0;
}

static struct kineto_call *call_of(const struct kineto_member *m, size_t i)
{
    return &m->rank->calls[m->calls[i]];
}

static bool has_sequence(const struct kineto_member *m)
{
    for (size_t i = 0; i < m->n; i++)
        if (call_of(m, i)->seq < 0 || (i > 0 && call_of(m, i)->seq <= call_of(m, i - 1)->seq))
            return false;
    return true;
}

static void drop(struct matching *m, struct kineto_member *member, size_t i)
{
    struct kineto_call *c = call_of(member, i);

    c->dropped = true;
    m->first_line = m->unmatched++ == 0 ? c->line : m->first_line;
}

/* Keep the calls whose numbers all members have. */
static void keep_common(struct matching *m)
{
    size_t *at = calloc(m->nmembers, sizeof *at);

    for (size_t i = 0; at != NULL && i < m->members[0].n; i++) {
        int64_t seq = call_of(&m->members[0], i)->seq;
        bool all = true;

        for (size_t k = 1; k < m->nmembers; k++) {
            struct kineto_member *o = &m->members[k];

            while (at[k] < o->n && call_of(o, at[k])->seq < seq)
                drop(m, o, at[k]++);
            all = all && at[k] < o->n && call_of(o, at[k])->seq == seq;
        }
        if (!all)
            drop(m, &m->members[0], i);
        for (size_t k = 1; k < m->nmembers; k++) {
            struct kineto_member *o = &m->members[k];

            if (at[k] >= o->n || call_of(o, at[k])->seq != seq)
                continue;
            if (!all)
                drop(m, o, at[k]);
            at[k]++;
        }
    }
    for (size_t k = 1; at != NULL && k < m->nmembers; k++)
        while (at[k] < m->members[k].n)
            drop(m, &m->members[k], at[k]++);
    free(at);
}

/* True if the n-th calls of all members are alike, as far as all have some. */
static bool agree_by_order(const struct matching *m, size_t *least)
{
    *least = m->members[0].n;
    for (size_t k = 1; k < m->nmembers; k++)
        *least = m->members[k].n < *least ? m->members[k].n : *least;
    for (size_t k = 1; k < m->nmembers; k++)
        for (size_t i = 0; i < *least; i++)
            if (!kineto_calls_agree(call_of(&m->members[0], i), call_of(&m->members[k], i)))
                return false;
    return true;
}

/*
 * Without numbers the n-th calls are one.  Where that does not fit, files may begin at different
 * calls or lack some: then the longest sequence that all have in common is kept.
 */
static zipccl_status keep_first(struct matching *m)
{
    unsigned char *kept;
    bool aligned = false;
    size_t least;

    if (!agree_by_order(m, &least)) {
        ZIPCCL_TRY(kineto_align(m->k, m->members, m->nmembers, &kept, &aligned));
        for (size_t k = 0, at = 0; aligned && k < m->nmembers; k++)
            for (size_t i = 0; i < m->members[k].n; i++, at++) {
                if (!kept[at])
                    drop(m, &m->members[k], i);
                m->by_order += k == 0 && kept[at];
            }
        free(kept);
        if (aligned)
            return ZIPCCL_OK;
    }
    for (size_t k = 0; k < m->nmembers; k++)
        for (size_t i = least; i < m->members[k].n; i++)
            drop(m, &m->members[k], i);
    m->by_order += least;
    return ZIPCCL_OK;
}

/* What members do together must be the same. */
static zipccl_status check_common(const struct matching *m, uint32_t set)
{
    for (size_t k = 1; k < m->nmembers; k++) {
        const struct kineto_member *a = &m->members[0], *b = &m->members[k];
        size_t i = 0, j = 0;

        for (; i < a->n && j < b->n; i++, j++) {
            const struct kineto_call *x, *y;
            struct zipccl_place at = {b->rank->path, 0, m->k->importer->error};

            while (i < a->n && call_of(a, i)->dropped)
                i++;
            while (j < b->n && call_of(b, j)->dropped)
                j++;
            if (i >= a->n || j >= b->n)
                break;
            x = call_of(a, i);
            y = call_of(b, j);
            at.line = y->line;
            if (!kineto_calls_agree(x, y))
                return zipccl_place_fail(
                    &at,
                    "%s of %" PRIu64 " %s in group %s, expected %s of %" PRIu64
                    " %s as rank %" PRIu32 " has it: files of different steps?",
                    zipccl_op_name((enum zipccl_op)y->op), y->count,
                    zipccl_dtype_name((enum zipccl_dtype)y->dtype), m->k->sets[set].name,
                    zipccl_op_name((enum zipccl_op)x->op), x->count,
                    zipccl_dtype_name((enum zipccl_dtype)x->dtype), a->rank->rank);
        }
    }
    return ZIPCCL_OK;
}

static zipccl_status match_lane(struct matching *m, uint32_t set, uint32_t part, uint32_t lane)
{
    zipccl_status status = collect(m, set, part, lane);
    bool sequence = true;

    for (size_t k = 0; k < m->nmembers && status == ZIPCCL_OK; k++)
        sequence = sequence && has_sequence(&m->members[k]);
    if (status == ZIPCCL_OK && m->nmembers > 1) {
        if (sequence)
            keep_common(m);
        else
            status = keep_first(m);
        if (status == ZIPCCL_OK)
            status = check_common(m, set);
    }
    release(m);
    return status;
}

/* True if 'rank' is the first recorded member of its part. */
static bool is_first(const struct kineto_import *k, const struct kineto_set *s, uint32_t part,
                     uint32_t rank)
{
    const uint32_t *ranks = s->ranks + (size_t)part * s->size;

    for (uint32_t i = 0; i < s->size; i++)
        if (kineto_recorded(k, ranks[i]) != NULL)
            return ranks[i] == rank;
    return false;
}

static zipccl_status match_sets(struct matching *m)
{
    for (size_t r = 0; r < m->k->nranks; r++)
        for (uint32_t set = 0; set < m->k->nsets; set++) {
            const struct kineto_rank *rank = &m->k->ranks[r];
            uint32_t part = m->k->sets[set].part_of[rank->rank], lanes = 0;

            if (part == KINETO_NONE || !is_first(m->k, &m->k->sets[set], part, rank->rank))
                continue;
            for (size_t o = 0; o < m->k->nranks; o++)
                for (size_t c = 0; c < m->k->ranks[o].ncalls; c++)
                    if (belongs(&m->k->ranks[o].calls[c], set, m->k->ranks[o].calls[c].lane) &&
                        m->k->ranks[o].calls[c].lane >= lanes)
                        lanes = m->k->ranks[o].calls[c].lane + 1;
            for (uint32_t lane = 0; lane < lanes; lane++)
                ZIPCCL_TRY(match_lane(m, set, part, lane));
        }
    return ZIPCCL_OK;
}

static bool same_pair(const struct kineto_call *a, const struct kineto_call *b)
{
    return a->pair && !a->opaque && a->set == b->set && a->part == b->part && a->lane == b->lane &&
           a->src == b->src && a->dst == b->dst;
}

/* Pairs whose other end was recorded and has fewer of them. */
static void match_pairs(struct matching *m)
{
    for (size_t r = 0; r < m->k->nranks; r++) {
        struct kineto_rank *own = &m->k->ranks[r];

        for (size_t i = 0; i < own->ncalls; i++) {
            struct kineto_call *c = &own->calls[i];
            const struct kineto_set *s = &m->k->sets[c->set];
            const uint32_t *ranks;
            struct kineto_rank *peer;
            size_t before = 0, there = 0;

            if (!c->pair || c->opaque)
                continue;
            ranks = s->ranks + (size_t)c->part * s->size;
            peer =
                kineto_recorded(m->k, ranks[c->src] == own->rank ? ranks[c->dst] : ranks[c->src]);
            for (size_t o = 0; o < i; o++)
                before += same_pair(&own->calls[o], c);
            for (size_t o = 0; peer != NULL && o < peer->ncalls; o++)
                there += same_pair(&peer->calls[o], c);
            if (peer != NULL && before >= there) {
                c->dropped = true;
                m->first_line = m->unmatched++ == 0 ? c->line : m->first_line;
            }
            m->by_order +=
                peer != NULL && before < there && c->src < s->size && ranks[c->src] == own->rank;
        }
    }
}

static bool is_numbered(const struct kineto_call *c)
{
    return !c->dropped && !c->opaque && !c->pair;
}

/* Number the calls of each communicator that are kept, and list them by that. */
static zipccl_status number_rank(struct kineto_import *k, struct kineto_rank *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->ncalls; i++)
        r->nlanes = r->calls[i].lane >= r->nlanes ? r->calls[i].lane + 1 : r->nlanes;
    n = k->nsets * (size_t)r->nlanes;
    r->first_of = zipccl_arena_alloc(&r->arena, n + 2, sizeof *r->first_of);
    r->by_ordinal = zipccl_arena_alloc(&r->arena, r->ncalls, sizeof *r->by_ordinal);
    if (r->first_of == NULL || r->by_ordinal == NULL)
        return nomem(k);
    for (size_t i = 0; i < r->ncalls; i++) {
        struct kineto_call *c = &r->calls[i];

        if (is_numbered(c))
            c->ordinal = r->first_of[c->set * (size_t)r->nlanes + c->lane + 1]++;
    }
    for (size_t i = 0; i < n; i++)
        r->first_of[i + 1] += r->first_of[i];
    for (size_t i = 0; i < r->ncalls; i++) {
        const struct kineto_call *c = &r->calls[i];

        if (!is_numbered(c))
            continue;
        r->by_ordinal[r->first_of[c->set * (size_t)r->nlanes + c->lane] + c->ordinal] = (uint32_t)i;
    }
    return ZIPCCL_OK;
}

const struct kineto_call *kineto_call_at(const struct kineto_rank *r, uint32_t set, uint32_t lane,
                                         uint32_t ordinal)
{
    size_t at = set * (size_t)r->nlanes + lane;

    if (lane >= r->nlanes || r->first_of[at] + (uint64_t)ordinal >= r->first_of[at + 1])
        return NULL;
    return &r->calls[r->by_ordinal[r->first_of[at] + ordinal]];
}

static zipccl_status number_calls(struct kineto_import *k)
{
    for (size_t r = 0; r < k->nranks; r++) {
        struct kineto_rank *rank = &k->ranks[r];

        ZIPCCL_TRY(number_rank(k, rank));
        for (size_t i = 0; i < rank->ncalls; i++)
            for (size_t o = 0; rank->calls[i].pair && o < i; o++)
                rank->calls[i].ordinal +=
                    !rank->calls[o].dropped && same_pair(&rank->calls[o], &rank->calls[i]);
    }
    return ZIPCCL_OK;
}

/* Ranks of a class that lost other calls than its first are a class of their own. */
static void split_classes(struct kineto_import *k)
{
    for (uint32_t r = 0; r < k->nranks; r++) {
        struct kineto_rank *own = &k->ranks[r];
        const struct kineto_rank *class = &k->ranks[own->class];
        bool same = true;

        if (class == own)
            continue;
        for (size_t i = 0; i < own->ncalls; i++)
            same = same && own->calls[i].dropped == class->calls[i].dropped;
        if (same)
            continue;
        own->class = r;
        if (own->segments != NULL)
            continue;
        own->segments = class->segments;
        own->nsegments = class->nsegments;
        own->shares_segments = true;
    }
}

static zipccl_status choose_donors(struct kineto_import *k)
{
    bool first_ones = true;
    uint32_t last = 0;

    k->donor = zipccl_arena_alloc(&k->arena, k->world, sizeof *k->donor);
    if (k->donor == NULL)
        return nomem(k);
    for (uint32_t r = 0; r < k->world; r++)
        k->donor[r] = KINETO_NONE;
    for (uint32_t i = 0; i < k->nranks; i++) {
        k->donor[k->ranks[i].rank] = i;
        first_ones = first_ones && k->ranks[i].rank < k->nranks;
        last = k->ranks[i].rank < k->ranks[last].rank ? i : last;
    }
    for (uint32_t r = 0; r < k->world; r++) {
        if (k->donor[r] != KINETO_NONE)
            last = k->donor[r];
        else
            k->donor[r] = first_ones ? k->donor[r % k->nranks] : last;
    }
    return zipccl_import_count(k->importer, true, "ranks without file", 0, k->world - k->nranks,
                               first_ones ? "ranks that have no file: rank r does what rank r "
                                            "modulo the number of files does"
                                          : "ranks that have no file do what the last rank before "
                                            "them does that has one");
}

zipccl_status kineto_match(struct kineto_import *k)
{
    struct matching m = {.k = k, .members = calloc(k->nranks, sizeof *m.members)};
    zipccl_status status = m.members != NULL ? choose_donors(k) : nomem(k);

    if (status == ZIPCCL_OK)
        status = match_sets(&m);
    if (status == ZIPCCL_OK)
        match_pairs(&m);
    if (status == ZIPCCL_OK)
        status = number_calls(k);
    if (status == ZIPCCL_OK)
        split_classes(k);
    free(m.members);
    if (status == ZIPCCL_OK)
        status = zipccl_import_count(k->importer, true, "matched by order", 0, m.by_order,
                                     "calls without sequence numbers: those of several ranks that "
                                     "are the n-th of a group are taken to be one");
    if (status == ZIPCCL_OK)
        status =
            zipccl_import_count(k->importer, true, "unmatched calls", m.first_line, m.unmatched,
                                "calls that another rank of the group did not record are "
                                "left out");
    return status;
}
