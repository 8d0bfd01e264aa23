/*
 * rescale_sets.c - which sets of a trace grow, and which rank of the new one is a copy of which
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/rescale_sets.h"

#include "traces/trace_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

zipccl_status rescale_wrong(const struct rescaling *r, const char *what, const char *name)
{
    return zipccl_fail(r->error, ZIPCCL_ERR_INPUT, "%.250s: group %.60s: %s", r->trace->path, name,
                       what);
}

zipccl_status rescale_nomem(const struct rescaling *r)
{
    return zipccl_fail(r->error, ZIPCCL_ERR_NOMEM, "%s: out of memory", r->trace->path);
}

/* 'word' as a part of the name: "nccl.dp", "dp_ep", "DP"; not the middle of another word. */
static bool has_word(const char *name, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = name; *p != '\0'; p++) {
        size_t i = 0;

        while (i < n && p[i] != '\0' && (p[i] | 0x20) == word[i])
            i++;
        if (i == n && (p == name || strchr("._-: ", p[-1]) != NULL) &&
            (p[n] == '\0' || strchr("._-: ", p[n]) != NULL || (p[n] >= '0' && p[n] <= '9')))
            return true;
    }
    return false;
}

/* Called after copies of a group of shards, as with HSDP: "replicas", "dp_replicate". */
static bool has_copies(const char *name)
{
    return has_word(name, "replicas") || has_word(name, "replicate");
}

/* One of several groups that share the parameters, each of which has copies elsewhere. */
static bool is_shard_group(const struct zipccl_trace_header *header, const char *name)
{
    static const char *const words[] = {"dp", "ddp", "fsdp", "zero", "data"};
    bool copies = false, shards = false;

    for (uint32_t g = 0; g < header->ngroups; g++)
        copies |= has_copies(header->groups[g].name);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        shards |= has_word(name, words[i]);
    return copies && shards;
}

bool zipccl_rescale_grows(const struct zipccl_trace_header *header, uint32_t group)
{
    static const char *const data[] = {"dp", "ddp", "fsdp", "edp", "zero", "data", "world"};
    static const char *const other[] = {"tp", "pp", "ep", "cp", "sp", "etp", "expert", "tensor"};
    const struct zipccl_trace_group *g = &header->groups[group];

    if (has_copies(g->name))
        return true;
    if (is_shard_group(header, g->name))
        return false;
    for (size_t i = 0; i < sizeof data / sizeof data[0]; i++)
        if (has_word(g->name, data[i]))
            return true;
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
        if (has_word(g->name, other[i]))
            return false;
    return g->size == header->nranks;
}

struct choice {
    const struct zipccl_trace *trace;
    struct zipccl_error *error;
    uint32_t nranks; /* 0: not known yet */
    bool *grows;
    bool others; /* sets of other than data parallelism change by the map */
};

/* Split "NAME=SIZE"; a size of 0 if it is none. */
static uint32_t parse_map(const char *text, size_t *name_length)
{
    const char *equals = strrchr(text, '=');
    unsigned long size;
    char *end;

    *name_length = 0;
    if (equals == NULL || equals[1] < '0' || equals[1] > '9')
        return 0;
    size = strtoul(equals + 1, &end, 10);
    *name_length = (size_t)(equals - text);
    return *end == '\0' && size <= ZIPCCL_TRACE_MAX_RANKS ? (uint32_t)size : 0;
}

/* Ranks of a world in which the set 'g' has groups of 'size'; 0 if that does not divide. */
static uint32_t world_of(const struct zipccl_trace_header *h, const struct zipccl_trace_group *g,
                         uint32_t size)
{
    uint64_t n;

    if (size % g->size == 0)
        n = (uint64_t)h->nranks * (size / g->size);
    else
        n = g->size % size == 0 && h->nranks % (g->size / size) == 0 ? h->nranks / (g->size / size)
                                                                     : 0;
    return n <= ZIPCCL_TRACE_MAX_RANKS ? (uint32_t)n : 0;
}

static zipccl_status map_set(struct choice *c, uint32_t index, uint32_t size, const char *text)
{
    const struct zipccl_trace_header *h = &c->trace->header;
    const struct zipccl_trace_group *g = &h->groups[index];
    uint32_t world = world_of(h, g, size);

    c->grows[index] = size != g->size;
    if (size == g->size)
        return ZIPCCL_OK;
    if (world == 0)
        return zipccl_fail(c->error, ZIPCCL_ERR_INPUT,
                           "%.200s: map '%.60s': groups of %" PRIu32
                           ", expected a multiple or a divisor of that",
                           c->trace->path, text, g->size);
    if (c->nranks != 0 && c->nranks != world)
        return zipccl_fail(c->error, ZIPCCL_ERR_INPUT,
                           "%.200s: map '%.60s' makes %" PRIu32 " ranks, expected %" PRIu32
                           " as the number of ranks or another map says",
                           c->trace->path, text, world, c->nranks);
    c->nranks = world;
    c->others |= !zipccl_rescale_grows(h, index);
    return ZIPCCL_OK;
}

/* Name the groups that there are and their sizes, as many as 'out' holds. */
static void list_groups(const struct zipccl_trace_header *h, char *out, size_t size)
{
    size_t n = 0;

    out[0] = '\0';
    for (uint32_t g = 0; g < h->ngroups; g++) {
        char one[96], more[32];
        int length = snprintf(one, sizeof one, "%s%.60s of %" PRIu32, g > 0 ? ", " : "",
                              h->groups[g].name, h->groups[g].size);
        int end = snprintf(more, sizeof more, " and %" PRIu32 " more", h->ngroups - g);

        if (n + (size_t)length + (g + 1 < h->ngroups ? (size_t)end : 0) >= size) {
            snprintf(out + n, size - n, "%s", more);
            return;
        }
        n += (size_t)snprintf(out + n, size - n, "%s", one);
    }
}

static zipccl_status unknown(const struct choice *c, const char *name, size_t n)
{
    char groups[160];

    list_groups(&c->trace->header, groups, sizeof groups);
    return zipccl_fail(c->error, ZIPCCL_ERR_INPUT,
                       "%.200s: group %.*s: no such group, expected one of: %s", c->trace->path,
                       (int)(n < 60 ? n : 60), name, groups[0] != '\0' ? groups : "(it has none)");
}

/* Sets that 'map' names; 'named' [ngroups] says which. */
static zipccl_status read_map(struct choice *c, const struct zipccl_rescale_options *o, bool *named)
{
    const struct zipccl_trace_header *h = &c->trace->header;

    for (size_t i = 0; i < o->nmap; i++) {
        size_t n;
        uint32_t size = parse_map(o->map[i], &n);
        bool found = false;

        if (size == 0)
            return zipccl_fail(c->error, ZIPCCL_ERR_INPUT,
                               "map '%.100s': expected NAME=SIZE, a group of the trace and its new "
                               "number of members",
                               o->map[i]);
        for (uint32_t g = 0; g < h->ngroups; g++) {
            if (strlen(h->groups[g].name) != n || strncmp(h->groups[g].name, o->map[i], n) != 0)
                continue;
            if (named[g])
                return zipccl_fail(c->error, ZIPCCL_ERR_INPUT, "map '%.100s': named twice",
                                   o->map[i]);
            found = named[g] = true;
            ZIPCCL_TRY(map_set(c, g, size, o->map[i]));
        }
        if (!found)
            return unknown(c, o->map[i], n);
    }
    return ZIPCCL_OK;
}

/* True if each group of 'inner' is within one group of 'outer'; 'part' [nranks] is scratch. */
static bool contains(const struct zipccl_trace_group *outer, const struct zipccl_trace_group *inner,
                     uint32_t *part, uint32_t nranks)
{
    memset(part, 0, nranks * sizeof *part);
    for (uint32_t i = 0; i < outer->nparts * outer->size; i++)
        part[outer->ranks[i]] = 1 + i / outer->size;
    for (uint32_t i = 0; i < inner->nparts * inner->size; i++) {
        uint32_t first = part[inner->ranks[i / inner->size * inner->size]];

        if (first == 0 || part[inner->ranks[i]] != first)
            return false;
    }
    return true;
}

/* Sets that nobody named. */
static zipccl_status fill_in(struct choice *c, const struct zipccl_rescale_options *o,
                             const bool *named)
{
    const struct zipccl_trace_header *h = &c->trace->header;
    uint32_t *part = malloc(h->nranks * sizeof *part);

    if (part == NULL)
        return zipccl_fail(c->error, ZIPCCL_ERR_NOMEM, "%s: out of memory", c->trace->path);
    for (uint32_t g = 0; g < h->ngroups; g++) {
        bool all = true;

        if (named[g] || o->nscaled > 0)
            continue;
        if (!c->others) {
            c->grows[g] = zipccl_rescale_grows(h, g);
            continue;
        }
        for (uint32_t k = 0; k < h->ngroups && all; k++)
            if (named[k] && c->grows[k])
                all = contains(&h->groups[g], &h->groups[k], part, h->nranks);
        c->grows[g] = all;
    }
    free(part);
    return ZIPCCL_OK;
}

static zipccl_status choose(struct choice *c, const struct zipccl_rescale_options *o, bool *named)
{
    const struct zipccl_trace_header *h = &c->trace->header;

    ZIPCCL_TRY(read_map(c, o, named));
    for (size_t i = 0; i < o->nscaled; i++) {
        bool found = false;

        for (uint32_t g = 0; g < h->ngroups; g++)
            if (strcmp(h->groups[g].name, o->scaled[i]) == 0)
                found = c->grows[g] = true;
        if (!found)
            return unknown(c, o->scaled[i], strlen(o->scaled[i]));
    }
    if (c->nranks == 0 && o->nmap > 0)
        return zipccl_fail(c->error, ZIPCCL_ERR_INPUT,
                           "%.300s: the map changes no group, expected one of another size, or a "
                           "number of ranks",
                           c->trace->path);
    return fill_in(c, o, named);
}

zipccl_status zipccl_rescale_choose(const struct zipccl_trace *trace,
                                    const struct zipccl_rescale_options *options, bool *grows,
                                    uint32_t *nranks, struct zipccl_error *error)
{
    struct choice c = {.trace = trace, .error = error, .nranks = options->nranks, .grows = grows};
    uint32_t n = trace->header.nranks;
    bool *named = calloc((size_t)trace->header.ngroups + 1, sizeof *named);
    zipccl_status status;

    if (named == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", trace->path);
    memset(grows, 0, trace->header.ngroups * sizeof *grows);
    status = choose(&c, options, named);
    free(named);
    ZIPCCL_TRY(status);
    if (c.nranks == 0 || c.nranks > ZIPCCL_TRACE_MAX_RANKS ||
        (c.nranks >= n ? c.nranks % n : n % c.nranks) != 0)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%.300s: %" PRIu32 " ranks to %" PRIu32
                           ", expected a multiple or a divisor, at most %" PRIu32,
                           trace->path, n, c.nranks, ZIPCCL_TRACE_MAX_RANKS);
    *nranks = c.nranks;
    return ZIPCCL_OK;
}

/* The smallest aligned blocks that hold the groups of every set that grows but is not the world. */
static uint32_t find_block(const struct rescaling *r)
{
    const struct zipccl_trace_header *h = &r->trace->header;
    uint32_t block = 1;
    bool any = false;

    for (uint32_t g = 0; g < h->ngroups; g++) {
        const struct zipccl_trace_group *s = &h->groups[g];

        if (!r->grows[g] || s->size == r->from)
            continue;
        any = true;
        for (uint32_t i = 0; i < s->nparts * s->size; i++)
            while (s->ranks[i] / block != s->ranks[i / s->size * s->size] / block)
                do
                    block++;
                while (r->from % block != 0);
    }
    return any ? block : r->from;
}

uint32_t rescale_rank(const struct rescaling *r, uint32_t old, uint32_t copy)
{
    uint32_t left = r->block / r->factor;

    if (r->up)
        return old / r->block * r->block * r->factor + copy * r->block + old % r->block;
    return old % r->block < left ? old / r->block * left + old % r->block : UINT32_MAX;
}

void rescale_number(struct rescaling *r)
{
    uint32_t left;

    r->up = r->to >= r->from;
    r->factor = r->up ? r->to / r->from : r->from / r->to;
    r->block = find_block(r);
    /* A larger block that divides is as good; the whole world does. */
    while (!r->up && r->block % r->factor != 0)
        do
            r->block++;
        while (r->from % r->block != 0);
    left = r->block / r->factor;
    for (uint32_t i = 0; i < r->to; i++) {
        uint32_t wide = r->block * r->factor;

        r->origin[i] =
            r->up ? i / wide * r->block + i % wide % r->block : i / left * r->block + i % left;
    }
}

uint32_t rescale_members(const struct rescaling *r, const uint32_t *from, uint32_t n, uint32_t *to)
{
    uint32_t k = 0, end;

    for (uint32_t i = 0; i < n; i = end) {
        for (end = i; end < n && from[end] / r->block == from[i] / r->block;)
            end++;
        for (uint32_t copy = 0; copy < (r->up ? r->factor : 1); copy++)
            for (uint32_t j = i; j < end; j++) {
                uint32_t rank = rescale_rank(r, from[j], copy);

                if (rank != UINT32_MAX)
                    to[k++] = rank;
            }
    }
    return k;
}

uint32_t rescale_member(const struct rescaling *r, const uint32_t *from, uint32_t member)
{
    uint32_t at = 0, first = member;

    if (rescale_rank(r, from[member], 0) == UINT32_MAX)
        return UINT32_MAX;
    if (!r->up) {
        for (uint32_t i = 0; i < member; i++)
            at += rescale_rank(r, from[i], 0) != UINT32_MAX;
        return at;
    }
    while (first > 0 && from[first - 1] / r->block == from[member] / r->block)
        first--;
    return first * r->factor + member - first;
}

static int by_first(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static zipccl_status grow_set(struct rescaling *r, const struct zipccl_trace_group *from,
                              struct zipccl_trace_group *to, uint32_t *k)
{
    uint32_t size = from->size, want = r->up ? size * r->factor : size / r->factor;

    for (uint32_t p = 0; p < from->nparts; p++) {
        uint32_t got = rescale_members(r, from->ranks + (size_t)p * size, size, to->ranks + *k);

        if (got != 0 && (got != want || (!r->up && size % r->factor != 0)))
            return rescale_wrong(r,
                                 "it does not shrink evenly, expected its ranks in steps of the "
                                 "new world",
                                 from->name);
        *k += got;
    }
    to->size = want;
    return ZIPCCL_OK;
}

static zipccl_status copy_set(struct rescaling *r, const struct zipccl_trace_group *from,
                              struct zipccl_trace_group *to, uint32_t *k)
{
    for (uint32_t p = 0; p < from->nparts; p++)
        for (uint32_t copy = 0; copy < (r->up ? r->factor : 1); copy++) {
            uint32_t got = 0;

            for (uint32_t i = 0; i < from->size; i++) {
                uint32_t rank = rescale_rank(r, from->ranks[(size_t)p * from->size + i], copy);

                if (rank != UINT32_MAX)
                    to->ranks[*k + got++] = rank;
            }
            if (got != 0 && got != from->size)
                return rescale_wrong(
                    r, "it stays and would be cut, expected whole groups in the new world",
                    from->name);
            *k += got;
        }
    return ZIPCCL_OK;
}

static zipccl_status make_set(struct rescaling *r, uint32_t index, struct zipccl_trace_group *to)
{
    const struct zipccl_trace_group *from = &r->trace->header.groups[index];
    size_t n = (size_t)from->nparts * from->size;
    uint32_t k = 0;

    *to = *from;
    to->ranks = zipccl_arena_alloc(&r->arena, n * (r->up ? r->factor : 1), sizeof *to->ranks);
    if (to->ranks == NULL)
        return rescale_nomem(r);
    ZIPCCL_TRY(r->grows[index] ? grow_set(r, from, to, &k) : copy_set(r, from, to, &k));
    if (k == 0)
        return rescale_wrong(r, "none of its ranks are in the new world", from->name);
    to->nparts = k / to->size;
    qsort(to->ranks, to->nparts, to->size * sizeof *to->ranks, by_first);
    return ZIPCCL_OK;
}

zipccl_status rescale_groups(struct rescaling *r)
{
    const struct zipccl_trace_header *h = &r->trace->header;

    r->header.groups = zipccl_arena_alloc(&r->arena, h->ngroups, sizeof *h->groups);
    if (r->header.groups == NULL)
        return rescale_nomem(r);
    for (uint32_t g = 0; g < h->ngroups; g++)
        ZIPCCL_TRY(make_set(r, g, &r->header.groups[g]));
    return ZIPCCL_OK;
}
