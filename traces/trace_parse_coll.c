/*
 * trace_parse_coll.c - the keys of a collective event
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/trace_internal.h"

#include <inttypes.h>
#include <string.h>

static zipccl_status unknown_name(const struct zipccl_place *at, const char *key, const char *name,
                                  const char *expected)
{
    char quoted[ZIPCCL_QUOTE_SIZE];

    return zipccl_place_fail(at, "\"%s\" is %s, expected %s", key, zipccl_quote(quoted, name),
                             expected);
}

static zipccl_status parse_names(const struct zipccl_place *at, const struct zipccl_json **values,
                                 const struct zipccl_trace_header *header, struct zipccl_event *e)
{
    const char *name;

    ZIPCCL_TRY(zipccl_json_string(at, values[ZIPCCL_KEY_OP], "op", &name));
    if (!zipccl_op_parse(name, &e->op))
        return unknown_name(at, "op", name,
                            "all_gather, reduce_scatter, all_reduce, alltoall, alltoallv, "
                            "sendrecv or broadcast");
    ZIPCCL_TRY(zipccl_json_string(at, values[ZIPCCL_KEY_DTYPE], "dtype", &name));
    /* One spelling in files; options accept others too. */
    if (!zipccl_dtype_parse(name, &e->dtype) || strcmp(name, zipccl_dtype_name(e->dtype)) != 0)
        return unknown_name(at, "dtype", name,
                            "bf16, fp16, fp32, fp64, fp8_e4m3, fp8_e5m2, int8, uint8, int32, "
                            "uint32, int64 or uint64");
    ZIPCCL_TRY(zipccl_json_string(at, values[ZIPCCL_KEY_GROUP], "group", &name));
    while (e->group < header->ngroups && strcmp(header->groups[e->group].name, name) != 0)
        e->group++;
    if (e->group == header->ngroups)
        return unknown_name(at, "group", name, "one of the header's groups");
    return ZIPCCL_OK;
}

/* A key that one op (or two) needs and no other may have. */
static zipccl_status parse_belongs(const struct zipccl_place *at, const struct zipccl_json *node,
                                   const char *key, enum zipccl_op op, bool belongs)
{
    if (belongs == (node != NULL))
        return ZIPCCL_OK;
    return zipccl_place_fail(at, "%s \"%s\" with op %s, expected %s",
                             node != NULL ? "a key" : "no key", key, zipccl_op_name(op),
                             node != NULL ? "none" : "one");
}

static zipccl_status parse_redop(const struct zipccl_place *at, const struct zipccl_json *node,
                                 struct zipccl_event *e)
{
    const char *name;

    ZIPCCL_TRY(parse_belongs(at, node, "redop", e->op, zipccl_is_reduction(e->op)));
    if (node == NULL)
        return ZIPCCL_OK;
    ZIPCCL_TRY(zipccl_json_string(at, node, "redop", &name));
    if (!zipccl_redop_parse(name, &e->redop))
        return unknown_name(at, "redop", name, "sum, prod, max, min or avg");
    return ZIPCCL_OK;
}

static zipccl_status parse_splits(const struct zipccl_place *at, const struct zipccl_json *node,
                                  const struct zipccl_trace_header *header, struct zipccl_event *e)
{
    const char *name;

    ZIPCCL_TRY(parse_belongs(at, node, "splits", e->op, e->op == ZIPCCL_ALLTOALLV));
    if (node == NULL)
        return ZIPCCL_OK;
    ZIPCCL_TRY(zipccl_json_string(at, node, "splits", &name));
    for (uint32_t i = 0; i < header->nsplits; i++)
        if (strcmp(header->splits[i].name, name) == 0) {
            e->splits = (int32_t)i;
            return ZIPCCL_OK;
        }
    return unknown_name(at, "splits", name, "one of the header's splits");
}

static zipccl_status parse_pairs(const struct zipccl_place *at, const struct zipccl_json *node,
                                 uint32_t size, struct zipccl_arena *arena, struct zipccl_event *e)
{
    ZIPCCL_TRY(parse_belongs(at, node, "pairs", e->op, e->op == ZIPCCL_SENDRECV));
    if (node == NULL)
        return ZIPCCL_OK;
    ZIPCCL_TRY(zipccl_json_array(at, node, "pairs", 1));
    e->pairs = zipccl_arena_alloc(arena, node->n, sizeof *e->pairs);
    if (e->pairs == NULL)
        return zipccl_place_nomem(at);
    for (const struct zipccl_json *pair = node->child; pair != NULL; pair = pair->next) {
        uint64_t src, dst;
        char found[ZIPCCL_QUOTE_SIZE];

        if (pair->type != ZIPCCL_JSON_ARRAY || pair->n != 2)
            return zipccl_place_fail(at, "%s in \"pairs\", expected [src, dst]",
                                     zipccl_json_describe(found, pair));
        ZIPCCL_TRY(zipccl_json_uint(at, pair->child, "pairs", 0, size - 1, &src));
        ZIPCCL_TRY(zipccl_json_uint(at, pair->child->next, "pairs", 0, size - 1, &dst));
        e->pairs[e->npairs].src = (uint32_t)src;
        e->pairs[e->npairs++].dst = (uint32_t)dst;
    }
    return ZIPCCL_OK;
}

static zipccl_status parse_samples(const struct zipccl_place *at, const struct zipccl_json *node,
                                   struct zipccl_arena *arena, struct zipccl_event *e)
{
    ZIPCCL_TRY(zipccl_json_array(at, node, "samples", 1));
    e->samples = zipccl_arena_alloc(arena, node->n, sizeof *e->samples);
    if (e->samples == NULL)
        return zipccl_place_nomem(at);
    for (const struct zipccl_json *item = node->child; item != NULL; item = item->next) {
        const char *name;

        ZIPCCL_TRY(zipccl_json_string(at, item, "samples", &name));
        e->samples[e->nsamples] = zipccl_arena_string(arena, name, strlen(name));
        if (e->samples[e->nsamples++] == NULL)
            return zipccl_place_nomem(at);
    }
    return ZIPCCL_OK;
}

zipccl_status zipccl_trace_parse_collective(const struct zipccl_place *at,
                                            const struct zipccl_json **values,
                                            const struct zipccl_trace_header *header,
                                            struct zipccl_arena *arena, struct zipccl_event *e)
{
    uint32_t size;
    uint64_t root;

    ZIPCCL_TRY(parse_names(at, values, header, e));
    size = header->groups[e->group].size;
    ZIPCCL_TRY(zipccl_json_uint(at, values[ZIPCCL_KEY_COUNT], "count", 0, ZIPCCL_JSON_MAX_INTEGER,
                                &e->count));
    ZIPCCL_TRY(parse_redop(at, values[ZIPCCL_KEY_REDOP], e));
    ZIPCCL_TRY(
        parse_belongs(at, values[ZIPCCL_KEY_ROOT], "root", e->op, e->op == ZIPCCL_BROADCAST));
    if (values[ZIPCCL_KEY_ROOT] != NULL) {
        ZIPCCL_TRY(zipccl_json_uint(at, values[ZIPCCL_KEY_ROOT], "root", 0, size - 1, &root));
        e->root = (uint32_t)root;
    }
    ZIPCCL_TRY(parse_splits(at, values[ZIPCCL_KEY_SPLITS], header, e));
    ZIPCCL_TRY(parse_pairs(at, values[ZIPCCL_KEY_PAIRS], size, arena, e));
    if (values[ZIPCCL_KEY_RECORDED] != NULL)
        ZIPCCL_TRY(zipccl_json_real(at, values[ZIPCCL_KEY_RECORDED], "recorded_s", &e->recorded_s));
    if (values[ZIPCCL_KEY_SAMPLES] != NULL)
        ZIPCCL_TRY(parse_samples(at, values[ZIPCCL_KEY_SAMPLES], arena, e));
    return ZIPCCL_OK;
}
