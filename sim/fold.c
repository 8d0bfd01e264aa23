/*
 * fold.c - ranks that do the same at the same time, found by colour refinement
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/fold.h"

#include <stdlib.h>
#include <string.h>

/* Which ranks run an event, and how: equal for most events of a trace. */
struct feature {
    const struct zipccl_event *event; /* an example */
    uint32_t next;                    /* of the same hash, or none */
    unsigned char *runs;              /* [nranks] */
};

struct folding {
    const struct zipccl_trace *trace;
    const struct zipccl_cluster *cluster;
    struct zipccl_fold *fold;
    uint32_t nfeatures;
    struct feature *features;
    uint64_t *colour, *next; /* [nranks] */
    uint64_t **part_colour;  /* [ngroups][nparts] */
    uint64_t **part_place;   /* [ngroups][nparts] how the part lies on nodes and slots */
    uint64_t *sorted;        /* [nranks] */
};

/* The finaliser of splitmix64. */
static uint64_t mix(uint64_t hash, uint64_t value)
{
    uint64_t x = (hash ^ value) * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static bool same_ranks(const struct zipccl_event *a, const struct zipccl_event *b)
{
    return a->nranks == b->nranks &&
           (a->nranks == 0 || a->ranks == b->ranks ||
            memcmp(a->ranks, b->ranks, a->nranks * sizeof(*a->ranks)) == 0);
}

static bool same_durations(const struct zipccl_event *a, const struct zipccl_event *b, uint32_t n)
{
    if (a->duration_by_rank_s == NULL || b->duration_by_rank_s == NULL)
        return a->duration_by_rank_s == b->duration_by_rank_s;
    return memcmp(a->duration_by_rank_s, b->duration_by_rank_s, n * sizeof(double)) == 0;
}

static bool same_feature(const struct zipccl_event *a, const struct zipccl_event *b,
                         uint32_t nranks)
{
    if (a->kind != b->kind || !same_ranks(a, b))
        return false;
    if (a->kind != ZIPCCL_EVENT_COLLECTIVE)
        return same_durations(a, b, a->nranks > 0 ? a->nranks : nranks);
    if (a->group != b->group || (a->op == ZIPCCL_SENDRECV) != (b->op == ZIPCCL_SENDRECV))
        return false;
    return a->op != ZIPCCL_SENDRECV ||
           (a->npairs == b->npairs &&
            memcmp(a->pairs, b->pairs, a->npairs * sizeof(*a->pairs)) == 0);
}

/* In a sendrecv only the ends of its pairs take part. */
static void keep_ends(const struct folding *f, const struct zipccl_event *e, unsigned char *runs)
{
    const struct zipccl_trace_group *group = &f->trace->header.groups[e->group];
    unsigned char *ends = calloc(group->size, 1);

    for (uint32_t i = 0; ends != NULL && i < e->npairs; i++)
        ends[e->pairs[i].src] = ends[e->pairs[i].dst] = 1;
    for (size_t i = 0; ends != NULL && i < (size_t)group->nparts * group->size; i++)
        runs[group->ranks[i]] &= ends[i % group->size];
    free(ends);
}

static zipccl_status fill_feature(const struct folding *f, struct feature *feature)
{
    const struct zipccl_event *e = feature->event;
    uint32_t nranks = f->fold->nranks;

    feature->runs = calloc(nranks, 1);
    if (feature->runs == NULL)
        return ZIPCCL_ERR_NOMEM;
    for (uint32_t i = 0; i < e->nranks; i++)
        feature->runs[e->ranks[i]] = 1;
    if (e->nranks == 0)
        memset(feature->runs, 1, nranks);
    if (e->kind != ZIPCCL_EVENT_COLLECTIVE)
        return ZIPCCL_OK;
    for (uint32_t r = 0; r < nranks; r++)
        feature->runs[r] &= f->fold->groups[e->group].part_of[r] != ZIPCCL_FOLD_NONE;
    if (e->op == ZIPCCL_SENDRECV)
        keep_ends(f, e, feature->runs);
    return ZIPCCL_OK;
}

static uint32_t hash_event(const struct zipccl_event *e)
{
    uint64_t h = mix(e->kind, e->kind == ZIPCCL_EVENT_COLLECTIVE ? e->group : 0);

    h = mix(mix(h, e->nranks), e->nranks > 0 ? e->ranks[0] : 0);
    return (uint32_t)(mix(h, e->nranks > 0 ? e->ranks[e->nranks - 1] : 0) & 1023);
}

static zipccl_status find_features(struct folding *f)
{
    uint32_t heads[1024], room = 0;

    memset(heads, 0xff, sizeof(heads));
    for (size_t i = 0; i < f->trace->nevents; i++) {
        const struct zipccl_event *e = &f->trace->events[i];
        uint32_t *head, k;

        if (!zipccl_event_runs(e))
            continue;
        head = &heads[hash_event(e)];
        for (k = *head; k != UINT32_MAX; k = f->features[k].next)
            if (same_feature(f->features[k].event, e, f->fold->nranks))
                break;
        if (k != UINT32_MAX)
            continue;
        if (f->nfeatures == room) {
            struct feature *more = realloc(f->features, (2 * (size_t)room + 64) * sizeof(*more));

            if (more == NULL)
                return ZIPCCL_ERR_NOMEM;
            f->features = more;
            room = 2 * room + 64;
        }
        f->features[f->nfeatures] = (struct feature){e, *head, NULL};
        *head = f->nfeatures++;
        ZIPCCL_TRY(fill_feature(f, &f->features[*head]));
    }
    return ZIPCCL_OK;
}

/* Node and slot of each member, nodes numbered as they come, as the prices see them. */
static uint64_t place_of(const struct folding *f, const uint32_t *ranks, uint32_t n,
                         uint32_t *number)
{
    uint32_t gpus = f->cluster->gpus_per_node, nodes = 0;
    uint64_t h = n;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t node = ranks[i] / gpus;

        if (number[node] == 0)
            number[node] = ++nodes;
        h = mix(mix(h, number[node]), ranks[i] % gpus);
    }
    for (uint32_t i = 0; i < n; i++)
        number[ranks[i] / gpus] = 0;
    return h;
}

static zipccl_status place_groups(struct folding *f)
{
    uint32_t *number = calloc(f->fold->nranks / f->cluster->gpus_per_node + 1, sizeof(*number));

    for (uint32_t g = 0; number != NULL && g < f->fold->ngroups; g++) {
        const struct zipccl_trace_group *group = &f->trace->header.groups[g];
        struct zipccl_fold_group *out = &f->fold->groups[g];

        out->part_of = malloc(f->fold->nranks * sizeof(*out->part_of));
        f->part_place[g] = malloc(group->nparts * sizeof(uint64_t));
        f->part_colour[g] = malloc(group->nparts * sizeof(uint64_t));
        if (out->part_of == NULL || f->part_place[g] == NULL || f->part_colour[g] == NULL) {
            free(number);
            return ZIPCCL_ERR_NOMEM;
        }
        for (uint32_t r = 0; r < f->fold->nranks; r++)
            out->part_of[r] = ZIPCCL_FOLD_NONE;
        for (size_t i = 0; i < (size_t)group->nparts * group->size; i++)
            out->part_of[group->ranks[i]] = (uint32_t)(i / group->size);
        for (uint32_t part = 0; part < group->nparts; part++)
            f->part_place[g][part] =
                place_of(f, group->ranks + (size_t)part * group->size, group->size, number);
    }
    free(number);
    return number != NULL ? ZIPCCL_OK : ZIPCCL_ERR_NOMEM;
}

static void colour_parts(struct folding *f)
{
    for (uint32_t g = 0; g < f->fold->ngroups; g++) {
        const struct zipccl_trace_group *group = &f->trace->header.groups[g];

        for (uint32_t part = 0; part < group->nparts; part++) {
            const uint32_t *ranks = group->ranks + (size_t)part * group->size;
            uint64_t h = f->part_place[g][part];

            for (uint32_t i = 0; i < group->size; i++)
                h = mix(h, f->colour[ranks[i]]);
            f->part_colour[g][part] = h;
        }
    }
}

static void add_feature(struct folding *f, const struct feature *feature)
{
    const struct zipccl_event *e = feature->event;
    uint32_t next = 0;

    for (uint32_t r = 0; r < f->fold->nranks; r++) {
        uint64_t value = 1;

        if (!feature->runs[r]) {
            f->next[r] = mix(f->next[r], 0);
            continue;
        }
        if (e->kind == ZIPCCL_EVENT_COLLECTIVE)
            value = f->part_colour[e->group][f->fold->groups[e->group].part_of[r]];
        else if (e->duration_by_rank_s != NULL)
            memcpy(&value, &e->duration_by_rank_s[next++], sizeof(value));
        f->next[r] = mix(mix(f->next[r], 1), value);
    }
}

static int compare_colours(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static uint32_t count_colours(struct folding *f)
{
    uint32_t n = 0;

    memcpy(f->sorted, f->colour, f->fold->nranks * sizeof(*f->sorted));
    qsort(f->sorted, f->fold->nranks, sizeof(*f->sorted), compare_colours);
    for (uint32_t r = 0; r < f->fold->nranks; r++)
        n += r == 0 || f->sorted[r] != f->sorted[r - 1];
    return n;
}

/* Until no colour splits: colours only ever split, so an equal number means the same partition. */
static void refine(struct folding *f)
{
    uint32_t n = 1, before;

    do {
        before = n;
        colour_parts(f);
        memcpy(f->next, f->colour, f->fold->nranks * sizeof(*f->next));
        for (uint32_t i = 0; i < f->nfeatures; i++)
            add_feature(f, &f->features[i]);
        memcpy(f->colour, f->next, f->fold->nranks * sizeof(*f->colour));
        n = count_colours(f);
    } while (n > before);
    colour_parts(f);
    f->fold->nclasses = n;
}

static int find_colour(const struct folding *f, uint64_t colour)
{
    const uint64_t *found =
        bsearch(&colour, f->sorted, f->fold->nclasses, sizeof(*f->sorted), compare_colours);

    return (int)(found - f->sorted);
}

/* Number the colours by the first rank that has them. */
static zipccl_status number_classes(struct folding *f)
{
    struct zipccl_fold *fold = f->fold;
    uint32_t *number = calloc(fold->nclasses, sizeof(*number)), n = 0;

    fold->class_of = malloc(fold->nranks * sizeof(*fold->class_of));
    fold->first = calloc(fold->nclasses, sizeof(*fold->first));
    fold->size = calloc(fold->nclasses, sizeof(*fold->size));
    if (number == NULL || fold->class_of == NULL || fold->first == NULL || fold->size == NULL) {
        free(number);
        return ZIPCCL_ERR_NOMEM;
    }
    for (uint32_t r = 0; r < fold->nranks; r++)
        if (r == 0 || f->sorted[r] != f->sorted[r - 1])
            f->sorted[n++] = f->sorted[r];
    n = 0;
    for (uint32_t r = 0; r < fold->nranks; r++) {
        int i = find_colour(f, f->colour[r]);

        if (number[i] == 0) {
            fold->first[n] = r;
            number[i] = ++n;
        }
        fold->class_of[r] = number[i] - 1;
        fold->size[fold->class_of[r]]++;
    }
    free(number);
    return ZIPCCL_OK;
}

struct kind {
    uint64_t colour;
    uint32_t part;
};

static int compare_kinds(const void *a, const void *b)
{
    const struct kind *x = a, *y = b;

    if (x->colour != y->colour)
        return x->colour < y->colour ? -1 : 1;
    return x->part < y->part ? -1 : x->part > y->part;
}

/* One part of each colour, the first; 'kinds' is sorted by colour, then part. */
static zipccl_status keep_parts(const struct folding *f, uint32_t g, struct kind *kinds)
{
    const struct zipccl_trace_group *group = &f->trace->header.groups[g];
    struct zipccl_fold_group *out = &f->fold->groups[g];
    uint32_t n = 0;

    for (uint32_t i = 0; i < group->nparts; i++)
        n += i == 0 || kinds[i].colour != kinds[i - 1].colour;
    out->kind_of = malloc(group->nparts * sizeof(*out->kind_of));
    out->placed = out->folded = (struct zipccl_trace_group){group->name, n, group->size, NULL};
    out->placed.ranks = malloc((size_t)n * group->size * sizeof(uint32_t));
    out->folded.ranks = malloc((size_t)n * group->size * sizeof(uint32_t));
    if (out->kind_of == NULL || out->placed.ranks == NULL || out->folded.ranks == NULL)
        return ZIPCCL_ERR_NOMEM;
    n = 0;
    for (uint32_t i = 0; i < group->nparts; i++) {
        const uint32_t *ranks = group->ranks + (size_t)kinds[i].part * group->size;

        if (i == 0 || kinds[i].colour != kinds[i - 1].colour) {
            for (uint32_t k = 0; k < group->size; k++) {
                out->placed.ranks[(size_t)n * group->size + k] = ranks[k];
                out->folded.ranks[(size_t)n * group->size + k] = f->fold->class_of[ranks[k]];
            }
            n++;
        }
        out->kind_of[kinds[i].part] = n - 1;
    }
    return ZIPCCL_OK;
}

static zipccl_status fold_groups(const struct folding *f)
{
    for (uint32_t g = 0; g < f->fold->ngroups; g++) {
        uint32_t nparts = f->trace->header.groups[g].nparts;
        struct kind *kinds = malloc(nparts * sizeof(*kinds));
        zipccl_status status = kinds != NULL ? ZIPCCL_OK : ZIPCCL_ERR_NOMEM;

        for (uint32_t part = 0; kinds != NULL && part < nparts; part++)
            kinds[part] = (struct kind){f->part_colour[g][part], part};
        if (status == ZIPCCL_OK) {
            qsort(kinds, nparts, sizeof(*kinds), compare_kinds);
            status = keep_parts(f, g, kinds);
        }
        free(kinds);
        ZIPCCL_TRY(status);
    }
    return ZIPCCL_OK;
}

static zipccl_status fold_ranks(struct folding *f)
{
    struct zipccl_fold *fold = f->fold;

    fold->groups = calloc((size_t)fold->ngroups + 1, sizeof(*fold->groups));
    f->colour = calloc(fold->nranks, sizeof(*f->colour));
    f->next = calloc(fold->nranks, sizeof(*f->next));
    f->sorted = calloc(fold->nranks, sizeof(*f->sorted));
    f->part_place = calloc((size_t)fold->ngroups + 1, sizeof(*f->part_place));
    f->part_colour = calloc((size_t)fold->ngroups + 1, sizeof(*f->part_colour));
    if (fold->groups == NULL || f->colour == NULL || f->next == NULL || f->sorted == NULL ||
        f->part_place == NULL || f->part_colour == NULL)
        return ZIPCCL_ERR_NOMEM;
    ZIPCCL_TRY(place_groups(f));
    ZIPCCL_TRY(find_features(f));
    refine(f);
    ZIPCCL_TRY(number_classes(f));
    return fold_groups(f);
}

zipccl_status zipccl_fold_create(const struct zipccl_trace *trace,
                                 const struct zipccl_cluster *cluster, struct zipccl_fold **out)
{
    struct folding f = {.trace = trace, .cluster = cluster};
    zipccl_status status = ZIPCCL_ERR_NOMEM;

    f.fold = calloc(1, sizeof(*f.fold));
    if (f.fold != NULL) {
        f.fold->nranks = trace->header.nranks;
        f.fold->ngroups = trace->header.ngroups;
        status = fold_ranks(&f);
    }
    for (uint32_t i = 0; i < f.nfeatures; i++)
        free(f.features[i].runs);
    for (uint32_t g = 0; f.part_place != NULL && g < trace->header.ngroups; g++)
        free(f.part_place[g]);
    for (uint32_t g = 0; f.part_colour != NULL && g < trace->header.ngroups; g++)
        free(f.part_colour[g]);
    free(f.features);
    free(f.colour);
    free(f.next);
    free(f.sorted);
    free(f.part_place);
    free(f.part_colour);
    if (status != ZIPCCL_OK) {
        zipccl_fold_destroy(f.fold);
        return status;
    }
    *out = f.fold;
    return ZIPCCL_OK;
}

void zipccl_fold_destroy(struct zipccl_fold *fold)
{
    if (fold == NULL)
        return;
    for (uint32_t g = 0; fold->groups != NULL && g < fold->ngroups; g++) {
        free(fold->groups[g].part_of);
        free(fold->groups[g].kind_of);
        free(fold->groups[g].placed.ranks);
        free(fold->groups[g].folded.ranks);
    }
    free(fold->groups);
    free(fold->class_of);
    free(fold->first);
    free(fold->size);
    free(fold);
}
