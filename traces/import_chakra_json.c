/*
 * import_chakra_json.c - Chakra's graph as JSON, its files of groups, and what attributes mean
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_chakra.h"

#include "traces/items.h"
#include "traces/lines.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file of groups is small: so many ranks are named in it at most. */
#define MAX_GROUPS_BYTES ((size_t)64 << 20)

static const char *skip_space(const char *p, const char *end)
{
    if (end - p >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
        p += 3;
    while (p < end && isspace((unsigned char)*p))
        p++;
    return p;
}

bool chakra_is_json(const char *head, size_t nbytes)
{
    static const char word[] = "\"workload_graph\"";
    const char *p = skip_space(head, head + nbytes);

    if (p == head + nbytes || *p != '{')
        return false;
    for (size_t i = 0; i + sizeof word - 1 <= nbytes; i++)
        if (memcmp(head + i, word, sizeof word - 1) == 0)
            return true;
    return false;
}

/* { "1": [ */
bool chakra_is_groups(const char *head, size_t nbytes)
{
    const char *end = head + nbytes, *p = skip_space(head, end), *first;

    if (p == end || *p != '{')
        return false;
    p = skip_space(p + 1, end);
    if (p == end || *p != '"')
        return false;
    for (first = ++p; p < end && isdigit((unsigned char)*p);)
        p++;
    if (p == first || p == end || *p != '"')
        return false;
    p = skip_space(p + 1, end);
    if (p == end || *p != ':')
        return false;
    p = skip_space(p + 1, end);
    return p < end && *p == '[';
}

struct chakra_node *chakra_add_node(struct chakra_file *f)
{
    struct chakra_node *node;

    if (f->nnodes >= KINETO_NONE || !kineto_grow(&f->nodes, &f->room, f->nnodes, sizeof *f->nodes))
        return NULL;
    node = &f->nodes[f->nnodes++];
    *node = (struct chakra_node){.flops = -1,
                                 .hbm_bytes = -1,
                                 .nbytes = -1,
                                 .comm = -1,
                                 .src = -1,
                                 .dst = -1,
                                 .root = -1,
                                 .dtype = "",
                                 .kernel = "",
                                 .pg = ""};
    return node;
}

bool chakra_take_number(struct chakra_node *node, const char *name, int64_t value)
{
    const struct {
        const char *name;
        int64_t *to;
    } integers[] = {{"comm_type", &node->comm},
                    {"comm_size", &node->nbytes},
                    {"comm_src", &node->src},
                    {"comm_dst", &node->dst},
                    {"root", &node->root}};

    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++)
        if (strcmp(name, integers[i].name) == 0) {
            *integers[i].to = value;
            return true;
        }
    if (strcmp(name, "is_cpu_op") == 0) {
        node->cpu = value != 0;
    } else if (strcmp(name, "num_ops") == 0) {
        node->flops = value > 0 ? (double)value : -1;
    } else if (strcmp(name, "tensor_size") == 0) {
        node->hbm_bytes = value > 0 ? (double)value : -1;
    } else if (strcmp(name, "duration_ns") == 0) {
        node->duration_us = value > 0 ? 1e-3 * (double)value : 0;
        node->timed = true;
    } else if (strcmp(name, "communication") == 0) {
        /* Of which the time is all that is known. */
        node->type = value != 0 ? (uint8_t)CHAKRA_COLL : node->type;
    } else {
        return false;
    }
    return true;
}

bool chakra_take_text(struct chakra_file *f, struct chakra_node *node, const char *name,
                      const char *text)
{
    const char **to = strcmp(name, "pg_name") == 0 ? &node->pg
                      : strcmp(name, "dtype") == 0 ? &node->dtype
                      : strcmp(name, "name") == 0  ? &node->kernel
                                                   : NULL;

    if (to == NULL)
        return true;
    *to = zipccl_arena_string(&f->arena, text, strlen(text));
    return *to != NULL;
}

bool chakra_take_types(struct chakra_file *f, struct chakra_node *node, const char *types)
{
    const char *at = strstr(types, "Tensor(");

    if (at == NULL)
        return true;
    node->inputs = true;
    if (node->dtype[0] == '\0')
        node->dtype = zipccl_arena_string(&f->arena, at + 7, strcspn(at + 7, ")"));
    return node->dtype != NULL;
}

static const struct zipccl_item *either(const struct zipccl_item *item, const char *a,
                                        const char *b)
{
    const struct zipccl_item *found = zipccl_item_get(item, a);

    return found != NULL ? found : zipccl_item_get(item, b);
}

static bool take_deps(struct chakra_file *f, struct chakra_node *node,
                      const struct zipccl_item *ctrl, const struct zipccl_item *data)
{
    const struct zipccl_item *lists[2] = {ctrl, data};
    uint32_t n = (ctrl != NULL ? ctrl->n : 0) + (data != NULL ? data->n : 0);
    int64_t id;

    node->deps = zipccl_arena_alloc(&f->arena, n, sizeof *node->deps);
    for (int l = 0; node->deps != NULL && l < 2; l++)
        for (const struct zipccl_item *c = lists[l] != NULL ? lists[l]->child : NULL; c != NULL;
             c = c->next)
            if (zipccl_item_integer(c, &id) && id >= 0)
                node->deps[node->ndeps++] = (uint64_t)id;
    return node->deps != NULL;
}

static zipccl_status take(void *context, const struct zipccl_item *item, uint64_t line)
{
    struct chakra_file *f = context;
    struct zipccl_place at = {f->path, line, f->importer->error};
    struct chakra_node *node = chakra_add_node(f);
    const struct zipccl_item *name = either(item, "Name", "name");
    int64_t id, type, value;

    if (!zipccl_item_integer(either(item, "Id", "id"), &id) || id < 0 ||
        !zipccl_item_integer(either(item, "NodeType", "type"), &type))
        return zipccl_place_fail(&at, "a node without \"Id\" and \"NodeType\", expected numbers");
    if (node == NULL || !take_deps(f, node, either(item, "ctrlDeps", "ctrl_deps"),
                                   either(item, "data_deps", "dataDeps")))
        return zipccl_place_nomem(&at);
    node->id = (uint64_t)id;
    node->place = line;
    node->type = (uint8_t)(type >= 0 && type < CHAKRA_TYPES ? type : CHAKRA_INVALID);
    if (zipccl_item_integer(zipccl_item_get(item, "runtime"), &value) && value >= 0) {
        node->duration_us = (double)value;
        node->timed = true;
    }
    if (node->type == CHAKRA_COLL && name != NULL && !chakra_take_text(f, node, "name", name->text))
        return zipccl_place_nomem(&at);
    for (const struct zipccl_item *c = item->child; c != NULL; c = c->next) {
        if (zipccl_item_integer(c, &value))
            chakra_take_number(node, c->key, value);
        else if (c->type == ZIPCCL_ITEM_OTHER)
            chakra_take_number(node, c->key, strcmp(c->text, "true") == 0);
        else if (c->type == ZIPCCL_ITEM_STRING && strcmp(c->key, "name") != 0 &&
                 !chakra_take_text(f, node, c->key, c->text))
            return zipccl_place_nomem(&at);
    }
    return ZIPCCL_OK;
}

static zipccl_status take_top(void *context, const char *key, const char *text)
{
    struct chakra_file *f = context;
    long ngpus = strcmp(key, "ngpus") == 0 ? strtol(text, NULL, 10) : 0;

    if (ngpus > 0)
        f->world = ngpus;
    return ZIPCCL_OK;
}

zipccl_status chakra_read_json(struct chakra_file *f)
{
    struct zipccl_items items = {.path = f->path,
                                 .array = "workload_graph",
                                 .what = "a Chakra graph",
                                 .error = f->importer->error,
                                 .context = f,
                                 .take = take,
                                 .take_top = take_top};

    return zipccl_items_read(&items);
}

void chakra_file_free(struct chakra_file *f)
{
    free(f->nodes);
    zipccl_arena_free(&f->arena);
}

static zipccl_status take_group(struct chakra_groups *g, const struct zipccl_place *at,
                                const struct zipccl_json *from)
{
    size_t room = (size_t)from->n * 12 + 3, n = 0;
    uint64_t last = 0;
    char *text = zipccl_arena_alloc(&g->arena, 1, room);
    char *name = zipccl_arena_string(&g->arena, from->key, strlen(from->key));

    if (from->type != ZIPCCL_JSON_ARRAY || from->n == 0)
        return zipccl_place_fail(at, "group \"%.40s\" is no list of ranks, expected one",
                                 from->key);
    if (text == NULL || name == NULL || !kineto_grow(&g->groups, &g->room, g->n, sizeof *g->groups))
        return zipccl_place_nomem(at);
    for (const struct zipccl_json *c = from->child; c != NULL; c = c->next) {
        uint64_t rank;

        ZIPCCL_TRY(zipccl_json_uint(at, c, "a rank", 0, UINT32_MAX, &rank));
        n += (size_t)snprintf(text + n, room - n, "%s%" PRIu64, n > 0 ? ", " : "[", rank);
        last = rank > last ? rank : last;
    }
    strcpy(text + n, "]");
    g->groups[g->n++] = (struct chakra_group){name, text, last};
    return ZIPCCL_OK;
}

/* All of the file, its lines joined. */
static zipccl_status read_text(const char *path, char **out, size_t *nbytes,
                               struct zipccl_error *error)
{
    struct zipccl_place at = {path, 0, error};
    struct zipccl_lines *lines;
    size_t room = 0, n;
    const char *line;
    zipccl_status status;

    *out = NULL;
    *nbytes = 0;
    ZIPCCL_TRY(zipccl_lines_open(path, &lines, error));
    while ((status = zipccl_lines_next(lines, &line, &n, error)) == ZIPCCL_OK && line != NULL) {
        while (status == ZIPCCL_OK && *nbytes + n + 2 > room) {
            char *more = realloc(*out, 2 * room + n + 2);

            if (more == NULL)
                status = zipccl_place_nomem(&at);
            else
                *out = more;
            room = 2 * room + n + 2;
        }
        if (status != ZIPCCL_OK || *nbytes + n > MAX_GROUPS_BYTES)
            break;
        memcpy(*out + *nbytes, line, n);
        *nbytes += n;
        (*out)[(*nbytes)++] = ' ';
    }
    if (status == ZIPCCL_OK && line != NULL)
        status = zipccl_place_fail(&at, "more than 64 MiB, expected a file of groups");
    zipccl_lines_close(lines);
    return status;
}

zipccl_status chakra_read_groups(struct chakra_groups *g, const char *path,
                                 struct zipccl_error *error)
{
    struct zipccl_place at = {path, 0, error};
    struct zipccl_arena arena = {NULL};
    struct zipccl_json *tree = NULL;
    char *text;
    size_t n;
    zipccl_status status = read_text(path, &text, &n, error);

    if (status == ZIPCCL_OK)
        status = zipccl_json_parse(&at, &arena, text != NULL ? text : "", n, &tree);
    for (const struct zipccl_json *c = tree != NULL ? tree->child : NULL;
         c != NULL && status == ZIPCCL_OK; c = c->next)
        status = take_group(g, &at, c);
    free(text);
    zipccl_arena_free(&arena);
    return status;
}

void chakra_groups_free(struct chakra_groups *g)
{
    free(g->groups);
    zipccl_arena_free(&g->arena);
}
