/*
 * import_kineto_groups.c - which ranks a call is among, as far as a file tells
 *
 * A list of ranks comes first, then start and stride, then distributedInfo's groups by name, then
 * the size alone.  A regular group stands for a partition of the world, so that ranks without a
 * file have their places too.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_kineto.h"

#include "traces/trace_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A group as it is being found out. */
struct group {
    uint32_t size, nranks;
    uint32_t *ranks; /* [nranks], owned; NULL: regular */
    uint32_t first, stride;
    const char *desc;
};

static zipccl_status nomem(const struct kineto_import *k)
{
    struct zipccl_place at = {k->importer->paths[0], 0, k->importer->error};

    return zipccl_place_nomem(&at);
}

/* 'g' is the ranks of a list: regular if the steps are equal. */
static void find_stride(struct group *g)
{
    uint32_t stride = 1;

    if (g->size == 0)
        return;
    stride = g->size > 1 && g->ranks[1] > g->ranks[0] ? g->ranks[1] - g->ranks[0] : 1;

    for (uint32_t i = 0; i < g->size; i++)
        if (g->ranks[i] != g->ranks[0] + (uint64_t)i * stride)
            return;
    g->first = g->ranks[0];
    g->stride = stride;
    free(g->ranks);
    g->ranks = NULL;
}

static zipccl_status take_list(const struct kineto_import *k, const uint64_t *list, size_t n,
                               struct group *g)
{
    g->ranks = malloc((n + 1) * sizeof *g->ranks);
    if (g->ranks == NULL)
        return nomem(k);
    for (size_t i = 0; i < n; i++)
        g->ranks[i] = list[i] < KINETO_NONE ? (uint32_t)list[i] : KINETO_NONE;
    g->size = g->nranks = (uint32_t)n;
    find_stride(g);
    return ZIPCCL_OK;
}

/* From "Process Group Ranks"; g->size stays 0 if that is missing or cut. */
static zipccl_status from_ranks(const struct kineto_import *k, const struct kineto_meta *meta,
                                struct group *g)
{
    size_t most = strlen(meta->pg_ranks) / 2 + 1;
    uint64_t *list = malloc(most * sizeof *list);
    zipccl_status status = ZIPCCL_OK;
    bool cut;
    size_t n;

    if (list == NULL)
        return nomem(k);
    n = kineto_list(meta->pg_ranks, list, most, &cut);
    if (n > 0 && !cut && (meta->size == 0 || meta->size == n))
        status = take_list(k, list, n, g);
    free(list);
    return status;
}

static zipccl_status from_config(const struct kineto_import *k, const struct kineto_file *file,
                                 const struct kineto_meta *meta, struct group *g)
{
    for (size_t i = 0; i < file->npgs; i++) {
        const struct kineto_pg *pg = &file->pgs[i];
        zipccl_status status;
        uint64_t *list;

        if (pg->nranks == 0 || strcmp(pg->name, meta->pg_name) != 0 ||
            (meta->size > 0 && meta->size != pg->nranks))
            continue;
        list = malloc(pg->nranks * sizeof *list);
        if (list == NULL)
            return nomem(k);
        for (uint32_t r = 0; r < pg->nranks; r++)
            list[r] = pg->ranks[r];
        status = take_list(k, list, pg->nranks, g);
        free(list);
        return status;
    }
    return ZIPCCL_OK;
}

/* What is left when no ranks are told: the whole world, or neighbours. */
static zipccl_status from_size(const struct kineto_import *k, const struct kineto_file *file,
                               uint32_t rank, const struct kineto_meta *meta, struct group *g)
{
    struct zipccl_importer at = kineto_at(k, &file->path);

    g->size = meta->size > 0 && meta->size <= k->world ? meta->size : k->world;
    g->stride = 1;
    g->first = rank / g->size * g->size;
    if (meta->size == 0)
        return zipccl_import_count(&at, true, "group", meta->line, 1,
                                   "calls whose group the file does not tell: taken to be among "
                                   "all %" PRIu32 " ranks",
                                   k->world);
    return zipccl_import_count(&at, true, "members", meta->line, g->size != k->world,
                               "calls of groups whose members the file does not tell: taken to be "
                               "neighbours");
}

static zipccl_status find_ranks(const struct kineto_import *k, const struct kineto_file *file,
                                uint32_t rank, const struct kineto_meta *meta, struct group *g)
{
    ZIPCCL_TRY(from_ranks(k, meta, g));
    if (g->size == 0 && meta->size > 0 && meta->first >= 0 && meta->first < (int64_t)k->world &&
        meta->stride > 0 && meta->stride < (int64_t)k->world) {
        g->size = meta->size;
        g->first = (uint32_t)meta->first;
        g->stride = (uint32_t)meta->stride;
    }
    if (g->size == 0)
        ZIPCCL_TRY(from_config(k, file, meta, g));
    return g->size > 0 ? ZIPCCL_OK : from_size(k, file, rank, meta, g);
}

/* The ranks are in the world, none twice, and the file's own is one of them. */
static zipccl_status check_group(const struct kineto_import *k, const struct kineto_file *file,
                                 uint32_t rank, const struct kineto_meta *meta,
                                 const struct group *g)
{
    struct zipccl_place at = {file->path, meta->line, k->importer->error};
    bool own = false;

    if (g->size > k->world)
        return zipccl_place_fail(&at, "a group of %" PRIu32 " ranks, expected at most %" PRIu32,
                                 g->size, k->world);
    /* The last of a regular group is its largest. */
    for (uint32_t i = g->ranks != NULL ? 0 : g->size - 1; i < g->size; i++) {
        uint64_t r = g->ranks != NULL ? g->ranks[i] : g->first + (uint64_t)i * g->stride;

        if (r >= k->world)
            return zipccl_place_fail(&at, "rank %" PRIu64 " in a group, expected 0 to %" PRIu32, r,
                                     k->world - 1);
        own |= r == rank;
    }
    if (g->ranks == NULL)
        own = rank >= g->first && (rank - g->first) % g->stride == 0 &&
              (rank - g->first) / g->stride < g->size;
    if (!own)
        return zipccl_place_fail(
            &at, "a call in a group without rank %" PRIu32 ", expected the file's rank in it",
            rank);
    return ZIPCCL_OK;
}

static bool name_taken(const struct kineto_import *k, const char *name)
{
    for (size_t i = 0; i < k->nsets; i++)
        if (strcmp(k->sets[i].name, name) == 0)
            return true;
    return false;
}

static void name_set(const struct kineto_import *k, const struct group *g, struct kineto_set *set)
{
    char base[40];
    int n = 2;

    if (g->desc[0] != '\0' && strcmp(g->desc, "undefined") != 0 &&
        strcmp(g->desc, "default_pg") != 0 && zipccl_text_printable(g->desc) &&
        zipccl_utf8_valid(g->desc, strlen(g->desc)) && strlen(g->desc) < sizeof base)
        snprintf(base, sizeof base, "%s", g->desc);
    else if (g->size == k->world)
        snprintf(base, sizeof base, "world");
    else if (set->stride > 1)
        snprintf(base, sizeof base, "n%" PRIu32 "s%" PRIu32, g->size, set->stride);
    else
        snprintf(base, sizeof base, "n%" PRIu32, g->size);
    snprintf(set->name, sizeof set->name, "%s", base);
    while (name_taken(k, set->name))
        snprintf(set->name, sizeof set->name, "%s.%d", base, n++);
}

static zipccl_status new_set(struct kineto_import *k, const struct group *g, uint32_t stride,
                             struct kineto_set **out)
{
    struct kineto_set *sets = realloc(k->sets, (k->nsets + 1) * sizeof *sets), *set;

    if (sets == NULL)
        return nomem(k);
    k->sets = sets;
    set = &sets[k->nsets];
    memset(set, 0, sizeof *set);
    set->size = g->size;
    set->stride = stride;
    name_set(k, g, set);
    set->part_of = malloc(k->world * sizeof *set->part_of);
    if (set->part_of == NULL)
        return nomem(k);
    for (uint32_t r = 0; r < k->world; r++)
        set->part_of[r] = KINETO_NONE;
    k->nsets++;
    *out = set;
    return ZIPCCL_OK;
}

/* All of the world, cut as TRACE.md says of regular sets. */
static zipccl_status regular_set(struct kineto_import *k, const struct group *g, uint32_t *out)
{
    struct kineto_set *set;
    uint32_t i = 0;

    for (size_t s = 0; s < k->nsets; s++)
        if (k->sets[s].size == g->size && k->sets[s].stride == g->stride) {
            *out = (uint32_t)s;
            return ZIPCCL_OK;
        }
    ZIPCCL_TRY(new_set(k, g, g->stride, &set));
    set->nparts = k->world / g->size;
    set->ranks = malloc(k->world * sizeof *set->ranks);
    if (set->ranks == NULL)
        return nomem(k);
    for (uint32_t block = 0; block < k->world; block += g->size * g->stride)
        for (uint32_t first = 0; first < g->stride; first++)
            for (uint32_t m = 0; m < g->size; m++, i++) {
                set->ranks[i] = block + first + m * g->stride;
                set->part_of[set->ranks[i]] = i / g->size;
            }
    *out = (uint32_t)k->nsets - 1;
    return ZIPCCL_OK;
}

/* True if the part 'ranks' is in the set already, or fits beside what is there. */
static bool fits(const struct kineto_set *set, const struct group *g, const uint32_t *ranks,
                 uint32_t *part)
{
    *part = set->part_of[ranks[0]];
    if (set->stride != 0 || set->size != g->size)
        return false;
    if (*part != KINETO_NONE)
        return memcmp(set->ranks + (size_t)*part * set->size, ranks, set->size * sizeof *ranks) ==
               0;
    for (uint32_t i = 0; i < g->size; i++)
        if (set->part_of[ranks[i]] != KINETO_NONE)
            return false;
    return true;
}

static zipccl_status listed_set(struct kineto_import *k, const struct group *g,
                                const uint32_t *ranks, uint32_t *out)
{
    struct kineto_set *set = NULL;
    uint32_t part = KINETO_NONE, *more;

    for (size_t s = 0; s < k->nsets && set == NULL; s++)
        if (fits(&k->sets[s], g, ranks, &part))
            set = &k->sets[s];
    if (set == NULL) {
        ZIPCCL_TRY(new_set(k, g, 0, &set));
        part = KINETO_NONE;
    }
    *out = (uint32_t)(set - k->sets);
    if (part != KINETO_NONE)
        return ZIPCCL_OK;
    more = realloc(set->ranks, ((size_t)set->nparts + 1) * set->size * sizeof *more);
    if (more == NULL)
        return nomem(k);
    set->ranks = more;
    memcpy(more + (size_t)set->nparts * set->size, ranks, set->size * sizeof *ranks);
    for (uint32_t i = 0; i < set->size; i++)
        set->part_of[ranks[i]] = set->nparts;
    set->nparts++;
    return ZIPCCL_OK;
}

static zipccl_status find_set(struct kineto_import *k, struct group *g, uint32_t *out)
{
    uint64_t block = (uint64_t)g->size * g->stride;
    zipccl_status status;

    if (g->ranks == NULL && k->world % block == 0 && g->first % block < g->stride)
        return regular_set(k, g, out);
    if (g->ranks != NULL)
        return listed_set(k, g, g->ranks, out);
    g->ranks = malloc(g->size * sizeof *g->ranks);
    if (g->ranks == NULL)
        return nomem(k);
    for (uint32_t i = 0; i < g->size; i++)
        g->ranks[i] = g->first + i * g->stride;
    status = listed_set(k, g, g->ranks, out);
    return status;
}

/* No rank twice, which a set could not hold. */
static bool has_twice(struct kineto_import *k, const struct group *g, bool *failed)
{
    unsigned char *marks = g->ranks != NULL ? calloc(k->world, 1) : NULL;
    bool twice = false;

    *failed = g->ranks != NULL && marks == NULL;
    for (uint32_t i = 0; marks != NULL && i < g->size && !twice; i++)
        twice = marks[g->ranks[i]]++ > 0;
    free(marks);
    return twice;
}

zipccl_status kineto_find_group(struct kineto_import *k, const struct kineto_file *file,
                                uint32_t rank, const struct kineto_meta *meta, uint32_t *set,
                                uint32_t *part)
{
    struct zipccl_place at = {file->path, meta->line, k->importer->error};
    struct group g = {.desc = meta->pg_desc};
    zipccl_status status = find_ranks(k, file, rank, meta, &g);
    bool failed = false;

    if (status == ZIPCCL_OK)
        status = check_group(k, file, rank, meta, &g);
    if (status == ZIPCCL_OK && g.ranks != NULL && has_twice(k, &g, &failed))
        status = zipccl_place_fail(&at, "a rank twice in a group, expected each once");
    if (status == ZIPCCL_OK && failed)
        status = nomem(k);
    if (status == ZIPCCL_OK)
        status = find_set(k, &g, set);
    free(g.ranks);
    if (status != ZIPCCL_OK)
        return status;
    *part = k->sets[*set].part_of[rank];
    if (*part == KINETO_NONE)
        return zipccl_place_fail(&at, "groups that do not fit together, expected a partition");
    return ZIPCCL_OK;
}

void kineto_sets_free(struct kineto_import *k)
{
    for (size_t i = 0; i < k->nsets; i++) {
        free(k->sets[i].ranks);
        free(k->sets[i].part_of);
    }
    free(k->sets);
}
