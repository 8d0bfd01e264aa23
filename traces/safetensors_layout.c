/*
 * safetensors_layout.c - which bytes of a .safetensors file hold elements of which type
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/safetensors_layout.h"

#include "traces/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool find_dtype(const char *name, enum zipccl_dtype *out)
{
    static const struct {
        const char *name;
        enum zipccl_dtype dtype;
    } covered[] = {{"BF16", ZIPCCL_BFLOAT16},
                   {"F16", ZIPCCL_FLOAT16},
                   {"F32", ZIPCCL_FLOAT32},
                   {"F8_E4M3", ZIPCCL_FLOAT8_E4M3},
                   {"F8_E5M2", ZIPCCL_FLOAT8_E5M2}};
    for (size_t i = 0; i < sizeof covered / sizeof covered[0]; i++)
        if (strcmp(name, covered[i].name) == 0) {
            *out = covered[i].dtype;
            return true;
        }
    return false;
}

/* Read one tensor; '*covered' tells whether the codec covers its type. */
static zipccl_status read_tensor(const struct zipccl_place *at, const struct zipccl_json *node,
                                 struct zipccl_element_range *range, bool *covered)
{
    char quoted[ZIPCCL_QUOTE_SIZE];

    zipccl_quote(quoted, node->key);
    if (node->type != ZIPCCL_JSON_OBJECT)
        return zipccl_place_fail(at, "tensor %s is no object, expected dtype and data_offsets",
                                 quoted);
    const struct zipccl_json *dtype = zipccl_json_get(node, "dtype");
    const struct zipccl_json *offsets = zipccl_json_get(node, "data_offsets");
    if (dtype == NULL || dtype->type != ZIPCCL_JSON_STRING)
        return zipccl_place_fail(at, "tensor %s has no dtype, expected a string", quoted);
    if (offsets == NULL || offsets->type != ZIPCCL_JSON_ARRAY || offsets->n != 2)
        return zipccl_place_fail(at, "tensor %s has no data_offsets, expected two", quoted);
    ZIPCCL_TRY(zipccl_json_uint(at, offsets->child, "data_offsets", 0, ZIPCCL_JSON_MAX_INTEGER,
                                &range->begin));
    ZIPCCL_TRY(zipccl_json_uint(at, offsets->child->next, "data_offsets", 0,
                                ZIPCCL_JSON_MAX_INTEGER, &range->end));
    if (range->begin > range->end)
        return zipccl_place_fail(at,
                                 "tensor %s from byte %" PRIu64 " to %" PRIu64
                                 ", expected it to end after its start",
                                 quoted, range->begin, range->end);
    *covered = find_dtype(dtype->value.string, &range->dtype);
    return ZIPCCL_OK;
}

static int compare(const void *a, const void *b)
{
    const struct zipccl_element_range *x = a, *y = b;

    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return (int)x->dtype - (int)y->dtype;
}

/* Sort, cut what overlaps, drop what is empty, join neighbours of one type. */
static size_t tidy(struct zipccl_element_range *ranges, size_t n)
{
    uint64_t next = 0;
    size_t kept = 0;

    if (n > 0)
        qsort(ranges, n, sizeof *ranges, compare);
    for (size_t i = 0; i < n; i++) {
        struct zipccl_element_range r = ranges[i];

        r.begin = r.begin < next ? next : r.begin;
        if (r.begin >= r.end)
            continue;
        next = r.end;
        if (kept > 0 && ranges[kept - 1].end == r.begin && ranges[kept - 1].dtype == r.dtype)
            ranges[kept - 1].end = r.end;
        else
            ranges[kept++] = r;
    }
    return kept;
}

static zipccl_status read_tensors(const struct zipccl_place *at, const struct zipccl_json *json,
                                  struct zipccl_element_range *ranges, size_t *nranges,
                                  uint64_t *end)
{
    size_t n = 0;

    for (const struct zipccl_json *node = json->child; node != NULL; node = node->next) {
        bool covered = false;

        if (strcmp(node->key, "__metadata__") == 0)
            continue;
        ZIPCCL_TRY(read_tensor(at, node, &ranges[n], &covered));
        *end = ranges[n].end > *end ? ranges[n].end : *end;
        n += covered;
    }
    *nranges = tidy(ranges, n);
    return ZIPCCL_OK;
}

zipccl_status zipccl_safetensors_layout(const char *path, const char *json, size_t nbytes,
                                        struct zipccl_element_range **ranges, size_t *nranges,
                                        uint64_t *end, struct zipccl_error *error)
{
    struct zipccl_error own;
    struct zipccl_place at = {path, 0, error != NULL ? error : &own};
    struct zipccl_element_range *found = NULL;
    struct zipccl_arena arena = {0};
    struct zipccl_json *root = NULL;
    uint64_t last = 0;
    size_t n = 0;

    if (nbytes < 2 || json[0] != '{')
        return zipccl_place_fail(&at, "a header that does not start with '{', expected JSON");
    zipccl_status status = zipccl_json_parse(&at, &arena, json, nbytes, &root);
    if (status == ZIPCCL_OK) {
        found = calloc((size_t)root->n + 1, sizeof *found);
        status =
            found != NULL ? read_tensors(&at, root, found, &n, &last) : zipccl_place_nomem(&at);
    }
    zipccl_arena_free(&arena);
    if (status != ZIPCCL_OK) {
        free(found);
        return status;
    }
    *ranges = found;
    *nranges = n;
    *end = last;
    return ZIPCCL_OK;
}
