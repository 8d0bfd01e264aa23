/*
 * trace_parse_header.c - first line of a trace: JSON tree to struct zipccl_trace_header
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/trace_internal.h"

#include <inttypes.h>
#include <string.h>

enum {
    H_FORMAT,
    H_VERSION,
    H_NAME,
    H_MODEL,
    H_PROVENANCE,
    H_GENERATOR,
    H_NRANKS,
    H_PER_NODE,
    H_STEP,
    H_TOKENS,
    H_SAMPLES,
    H_STREAMS,
    H_GROUPS,
    H_SPLITS,
    H_COUNT
};

static const struct zipccl_json_key header_keys[H_COUNT] = {
    [H_FORMAT] = {"format", 1, 1},
    [H_VERSION] = {"version", 1, 1},
    [H_NAME] = {"name", 1, 1},
    [H_MODEL] = {"model", 1, 0},
    [H_PROVENANCE] = {"provenance", 1, 1},
    [H_GENERATOR] = {"generator", 1, 1},
    [H_NRANKS] = {"nranks", 1, 1},
    [H_PER_NODE] = {"ranks_per_node", 1, 0},
    [H_STEP] = {"recorded_step_s", 1, 0},
    [H_TOKENS] = {"tokens_per_step", 1, 0},
    [H_SAMPLES] = {"samples", 1, 0},
    [H_STREAMS] = {"streams", 1, 1},
    [H_GROUPS] = {"groups", 1, 0},
    [H_SPLITS] = {"splits", 1, 0},
};

enum { G_NAME, G_SIZE, G_STRIDE, G_RANKS, G_COUNT };

/* Kind 0: regular, by size and stride; kind 1: listed. */
static const struct zipccl_json_key group_keys[G_COUNT] = {
    [G_NAME] = {"name", 3, 3},
    [G_SIZE] = {"size", 1, 1},
    [G_STRIDE] = {"stride", 1, 0},
    [G_RANKS] = {"ranks", 2, 2},
};

enum { S_NAME, S_COUNTS, S_COUNT };

static const struct zipccl_json_key splits_keys[S_COUNT] = {
    [S_NAME] = {"name", 1, 1},
    [S_COUNTS] = {"counts", 1, 1},
};

static zipccl_status get_string(const struct zipccl_place *at, const struct zipccl_json *node,
                                const char *name, struct zipccl_arena *arena, const char **out)
{
    const char *s;

    if (node == NULL)
        return ZIPCCL_OK;
    ZIPCCL_TRY(zipccl_json_string(at, node, name, &s));
    *out = zipccl_arena_string(arena, s, strlen(s));
    return *out != NULL ? ZIPCCL_OK : zipccl_place_nomem(at);
}

/* Part i of a regular set: blocks of size * stride ranks, in each 'stride' groups. */
static zipccl_status regular_group(const struct zipccl_place *at, const struct zipccl_json **values,
                                   uint32_t nranks, struct zipccl_arena *arena,
                                   struct zipccl_trace_group *g)
{
    uint64_t size, stride = 1;
    size_t k = 0;

    ZIPCCL_TRY(zipccl_json_uint(at, values[G_SIZE], "size", 1, nranks, &size));
    if (values[G_STRIDE] != NULL)
        ZIPCCL_TRY(zipccl_json_uint(at, values[G_STRIDE], "stride", 1, nranks, &stride));
    if (nranks % (size * stride) != 0)
        return zipccl_place_fail(at,
                                 "a group of size %" PRIu64 " and stride %" PRIu64
                                 ", expected size * stride to divide %" PRIu32,
                                 size, stride, nranks);
    g->size = (uint32_t)size;
    g->nparts = nranks / g->size;
    g->ranks = zipccl_arena_alloc(arena, nranks, sizeof *g->ranks);
    if (g->ranks == NULL)
        return zipccl_place_nomem(at);
    for (uint32_t block = 0; block < nranks; block += (uint32_t)(size * stride))
        for (uint32_t first = 0; first < stride; first++)
            for (uint32_t i = 0; i < size; i++)
                g->ranks[k++] = block + first + i * (uint32_t)stride;
    return ZIPCCL_OK;
}

static zipccl_status listed_group(const struct zipccl_place *at, const struct zipccl_json *parts,
                                  uint32_t nranks, struct zipccl_arena *arena,
                                  struct zipccl_trace_group *g)
{
    size_t k = 0;

    ZIPCCL_TRY(zipccl_json_array(at, parts, "ranks", 1));
    ZIPCCL_TRY(zipccl_json_array(at, parts->child, "ranks", 1));
    g->nparts = parts->n;
    g->size = parts->child->n;
    g->ranks = zipccl_arena_alloc(arena, (size_t)g->nparts * g->size, sizeof *g->ranks);
    if (g->ranks == NULL)
        return zipccl_place_nomem(at);
    for (const struct zipccl_json *part = parts->child; part != NULL; part = part->next) {
        ZIPCCL_TRY(zipccl_json_array(at, part, "ranks", 1));
        if (part->n != g->size)
            return zipccl_place_fail(
                at, "parts of %" PRIu32 " and %" PRIu32 " ranks in a group, expected equal ones",
                g->size, part->n);
        for (const struct zipccl_json *node = part->child; node != NULL; node = node->next) {
            uint64_t rank;

            ZIPCCL_TRY(zipccl_json_uint(at, node, "ranks", 0, nranks - 1, &rank));
            g->ranks[k++] = (uint32_t)rank;
        }
    }
    return ZIPCCL_OK;
}

static zipccl_status parse_group(const struct zipccl_place *at, const struct zipccl_json *node,
                                 uint32_t nranks, struct zipccl_arena *arena,
                                 struct zipccl_trace_group *g)
{
    const struct zipccl_json *values[G_COUNT];
    char found[ZIPCCL_QUOTE_SIZE];
    unsigned kind;

    if (node->type != ZIPCCL_JSON_OBJECT)
        return zipccl_place_fail(at, "%s in \"groups\", expected an object",
                                 zipccl_json_describe(found, node));
    kind = zipccl_json_get(node, "ranks") != NULL;
    ZIPCCL_TRY(zipccl_json_keys(at, node, "a group", kind, group_keys, G_COUNT, values));
    ZIPCCL_TRY(get_string(at, values[G_NAME], "name", arena, &g->name));
    return kind ? listed_group(at, values[G_RANKS], nranks, arena, g)
                : regular_group(at, values, nranks, arena, g);
}

static zipccl_status parse_splits(const struct zipccl_place *at, const struct zipccl_json *node,
                                  struct zipccl_arena *arena, struct zipccl_trace_splits *s)
{
    const struct zipccl_json *values[S_COUNT], *row;
    char found[ZIPCCL_QUOTE_SIZE];
    size_t k = 0;

    if (node->type != ZIPCCL_JSON_OBJECT)
        return zipccl_place_fail(at, "%s in \"splits\", expected an object",
                                 zipccl_json_describe(found, node));
    ZIPCCL_TRY(zipccl_json_keys(at, node, "splits", 0, splits_keys, S_COUNT, values));
    ZIPCCL_TRY(get_string(at, values[S_NAME], "name", arena, &s->name));
    ZIPCCL_TRY(zipccl_json_array(at, values[S_COUNTS], "counts", 1));
    s->size = values[S_COUNTS]->n;
    for (row = values[S_COUNTS]->child; row != NULL; row = row->next) {
        ZIPCCL_TRY(zipccl_json_array(at, row, "counts", 0));
        if (row->n != s->size)
            return zipccl_place_fail(at,
                                     "a row of %" PRIu32 " entries in splits of %" PRIu32
                                     " members, expected a square",
                                     row->n, s->size);
    }
    s->counts = zipccl_arena_alloc(arena, (size_t)s->size * s->size, sizeof *s->counts);
    if (s->counts == NULL)
        return zipccl_place_nomem(at);
    for (row = values[S_COUNTS]->child; row != NULL; row = row->next)
        for (const struct zipccl_json *entry = row->child; entry != NULL; entry = entry->next)
            ZIPCCL_TRY(
                zipccl_json_uint(at, entry, "counts", 0, ZIPCCL_JSON_MAX_INTEGER, &s->counts[k++]));
    return ZIPCCL_OK;
}

static zipccl_status parse_streams(const struct zipccl_place *at, const struct zipccl_json *node,
                                   struct zipccl_arena *arena, struct zipccl_trace_header *h)
{
    uint32_t i = 0;

    ZIPCCL_TRY(zipccl_json_array(at, node, "streams", 1));
    h->streams = zipccl_arena_alloc(arena, node->n, sizeof *h->streams);
    if (h->streams == NULL)
        return zipccl_place_nomem(at);
    h->nstreams = node->n;
    for (const struct zipccl_json *name = node->child; name != NULL; name = name->next) {
        const char *stream;

        ZIPCCL_TRY(get_string(at, name, "streams", arena, &stream));
        h->streams[i++] = (char *)stream;
    }
    return ZIPCCL_OK;
}

static zipccl_status parse_sets(const struct zipccl_place *at, const struct zipccl_json **values,
                                struct zipccl_arena *arena, struct zipccl_trace_header *h)
{
    const struct zipccl_json *node;
    uint32_t i = 0;

    if (values[H_GROUPS] != NULL) {
        ZIPCCL_TRY(zipccl_json_array(at, values[H_GROUPS], "groups", 0));
        h->ngroups = values[H_GROUPS]->n;
        if ((uint64_t)h->ngroups * h->nranks > ZIPCCL_TRACE_MAX_MEMBERS)
            return zipccl_place_fail(at,
                                     "%" PRIu32 " groups of %" PRIu32
                                     " ranks, expected at most %" PRIu64 " ranks in all",
                                     h->ngroups, h->nranks, ZIPCCL_TRACE_MAX_MEMBERS);
        h->groups = zipccl_arena_alloc(arena, h->ngroups, sizeof *h->groups);
        if (h->groups == NULL)
            return zipccl_place_nomem(at);
        for (node = values[H_GROUPS]->child; node != NULL; node = node->next)
            ZIPCCL_TRY(parse_group(at, node, h->nranks, arena, &h->groups[i++]));
    }
    if (values[H_SPLITS] != NULL) {
        i = 0;
        ZIPCCL_TRY(zipccl_json_array(at, values[H_SPLITS], "splits", 0));
        h->nsplits = values[H_SPLITS]->n;
        h->splits = zipccl_arena_alloc(arena, h->nsplits, sizeof *h->splits);
        if (h->splits == NULL)
            return zipccl_place_nomem(at);
        for (node = values[H_SPLITS]->child; node != NULL; node = node->next)
            ZIPCCL_TRY(parse_splits(at, node, arena, &h->splits[i++]));
    }
    return ZIPCCL_OK;
}

static zipccl_status parse_numbers(const struct zipccl_place *at, const struct zipccl_json **values,
                                   struct zipccl_trace_header *h)
{
    uint64_t n;

    ZIPCCL_TRY(zipccl_json_uint(at, values[H_NRANKS], "nranks", 1, ZIPCCL_TRACE_MAX_RANKS, &n));
    h->nranks = (uint32_t)n;
    if (values[H_PER_NODE] != NULL) {
        ZIPCCL_TRY(zipccl_json_uint(at, values[H_PER_NODE], "ranks_per_node", 1, h->nranks, &n));
        h->ranks_per_node = (uint32_t)n;
    }
    h->recorded_step_s = -1;
    if (values[H_STEP] != NULL)
        ZIPCCL_TRY(zipccl_json_real(at, values[H_STEP], "recorded_step_s", &h->recorded_step_s));
    if (values[H_TOKENS] != NULL)
        ZIPCCL_TRY(zipccl_json_uint(at, values[H_TOKENS], "tokens_per_step", 1,
                                    ZIPCCL_JSON_MAX_INTEGER, &h->tokens_per_step));
    return ZIPCCL_OK;
}

static zipccl_status check_format(const struct zipccl_place *at, const struct zipccl_json *line,
                                  uint32_t *version)
{
    const struct zipccl_json *format = zipccl_json_get(line, "format");
    const struct zipccl_json *number = zipccl_json_get(line, "version");
    char found[ZIPCCL_QUOTE_SIZE];
    uint64_t n;

    if (format == NULL || format->type != ZIPCCL_JSON_STRING ||
        strcmp(format->value.string, ZIPCCL_TRACE_FORMAT) != 0)
        return zipccl_place_fail(
            at, "%s as \"format\" of the first line, expected \"" ZIPCCL_TRACE_FORMAT "\"",
            format != NULL ? zipccl_json_describe(found, format) : "nothing");
    if (number == NULL)
        return zipccl_place_fail(at, "no key \"version\" in the header, expected one");
    ZIPCCL_TRY(zipccl_json_uint(at, number, "version", 1, UINT32_MAX, &n));
    *version = (uint32_t)n;
    if (n == ZIPCCL_TRACE_VERSION)
        return ZIPCCL_OK;
    /* Another version may have other keys, so nothing else is looked at. */
    zipccl_place_fail(at, "version %" PRIu64 " of the trace format, expected %d", n,
                      ZIPCCL_TRACE_VERSION);
    return ZIPCCL_ERR_UNSUPPORTED;
}

zipccl_status zipccl_trace_parse_header(const struct zipccl_place *at,
                                        const struct zipccl_json *line, struct zipccl_arena *arena,
                                        struct zipccl_trace_header *out)
{
    const struct zipccl_json *values[H_COUNT];
    struct zipccl_trace_header h = {0};

    ZIPCCL_TRY(check_format(at, line, &h.version));
    ZIPCCL_TRY(zipccl_json_keys(at, line, "the header", 0, header_keys, H_COUNT, values));
    ZIPCCL_TRY(get_string(at, values[H_NAME], "name", arena, &h.name));
    ZIPCCL_TRY(get_string(at, values[H_MODEL], "model", arena, &h.model));
    ZIPCCL_TRY(get_string(at, values[H_PROVENANCE], "provenance", arena, &h.provenance));
    ZIPCCL_TRY(get_string(at, values[H_GENERATOR], "generator", arena, &h.generator));
    ZIPCCL_TRY(get_string(at, values[H_SAMPLES], "samples", arena, &h.samples));
    if (h.model == NULL)
        h.model = h.name;
    ZIPCCL_TRY(parse_numbers(at, values, &h));
    ZIPCCL_TRY(parse_streams(at, values[H_STREAMS], arena, &h));
    ZIPCCL_TRY(parse_sets(at, values, arena, &h));
    ZIPCCL_TRY(zipccl_trace_check_header(at, &h));
    *out = h;
    return ZIPCCL_OK;
}
