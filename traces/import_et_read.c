/*
 * import_et_read.c - the nodes of a PyTorch execution trace that tell of communication
 *
 * A call is a node "record_param_comms" with the inputs
 *
 *   TENSORS... SEQ GROUP RANK "allreduce" IN_SPLIT OUT_SPLIT [START STRIDE] [SIZE]
 *
 * where GROUP is a number (1.0.1, 1.0.2) or [name, description], and RANK is the root of a
 * broadcast, the other end of a send, else the caller's own number in the group.  From schema 1.1.0
 * on attributes say the same by name.  Nothing is cut in these lists.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_et.h"

#include "traces/items.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMS  "record_param_comms"
#define GROUPS "## process_group:init ##"

struct reading {
    struct kineto_file *file;
    struct zipccl_error *error;
    bool schema; /* seen */
};

/* What the inputs of a call say, by place. */
struct inputs {
    const struct zipccl_item *values, *types;
    int32_t name; /* place of the collective's name, -1: none */
};

static zipccl_status nomem(const struct reading *r)
{
    struct zipccl_place at = {r->file->path, 0, r->error};

    return zipccl_place_nomem(&at);
}

/* Where 'word' ends in 'head'; NULL: it is not there. */
static const char *after(const char *head, size_t nbytes, const char *word)
{
    size_t n = strlen(word);

    for (size_t i = 0; i + n <= nbytes; i++)
        if (memcmp(head + i, word, n) == 0)
            return head + i + n;
    return NULL;
}

/* A list of nodes: results of ours have a schema as well, and a number of nodes. */
bool et_detect(const char *head, size_t nbytes)
{
    const char *p = after(head, nbytes, "\"nodes\""), *end = head + nbytes;

    while (p != NULL && p < end && (isspace((unsigned char)*p) || *p == ':'))
        p++;
    return p != NULL && (p == end || *p == '[') && after(head, nbytes, "\"schema\"") != NULL &&
           memchr(head, '{', nbytes) != NULL;
}

static const struct zipccl_item *attribute(const struct zipccl_item *node, const char *name)
{
    const struct zipccl_item *attrs = zipccl_item_get(node, "attrs");

    for (const struct zipccl_item *a = attrs != NULL ? attrs->child : NULL; a != NULL;
         a = a->next) {
        const struct zipccl_item *key = zipccl_item_get(a, "name");

        if (key != NULL && strcmp(key->text, name) == 0)
            return zipccl_item_get(a, "value");
    }
    return NULL;
}

/* Elements of all tensors in a value: [id, storage, offset, elements, bytes, "cuda:0"]. */
static uint64_t elements_of(const struct zipccl_item *value)
{
    const struct zipccl_item *device = zipccl_item_at(value, 5);
    uint64_t sum = 0;
    int64_t n;

    if (value == NULL || value->type != ZIPCCL_ITEM_ARRAY)
        return 0;
    if (value->n == 6 && device->type == ZIPCCL_ITEM_STRING)
        return zipccl_item_integer(zipccl_item_at(value, 3), &n) && n > 0 ? (uint64_t)n : 0;
    for (const struct zipccl_item *c = value->child; c != NULL; c = c->next) {
        uint64_t more = elements_of(c);

        sum = sum > UINT64_MAX - more ? UINT64_MAX : sum + more;
    }
    return sum;
}

/* "float" of "GenericList[Tensor(float)]". */
static const char *type_of(struct reading *r, const struct zipccl_item *types)
{
    for (const struct zipccl_item *t = types != NULL ? types->child : NULL; t != NULL;
         t = t->next) {
        const char *at = strstr(t->text, "Tensor(");

        if (at != NULL)
            return zipccl_arena_string(&r->file->arena, at + 7, strcspn(at + 7, ")"));
    }
    return "";
}

/* "[3, 4]" of a list of numbers, which may be a text already. */
static const char *list_of(struct reading *r, const struct zipccl_item *list)
{
    size_t room = 3, n = 0;
    char *text;

    if (list == NULL)
        return "";
    if (list->type == ZIPCCL_ITEM_STRING)
        return zipccl_arena_string(&r->file->arena, list->text, strlen(list->text));
    for (const struct zipccl_item *c = list->child; c != NULL; c = c->next)
        room += strlen(c->text) + 2;
    text = zipccl_arena_alloc(&r->file->arena, 1, room);
    if (text == NULL)
        return NULL;
    for (const struct zipccl_item *c = list->child; c != NULL; c = c->next)
        n += (size_t)snprintf(text + n, room - n, "%s%s", n > 0 ? ", " : "[", c->text);
    snprintf(text + n, room - n, "%s", n > 0 ? "]" : "[]");
    return text;
}

static struct inputs inputs_of(const struct zipccl_item *node)
{
    const struct zipccl_item *in = zipccl_item_get(node, "inputs");
    struct inputs out = {in, zipccl_item_get(node, "input_types"), -1};
    int32_t i = 0;

    if (in != NULL && in->type == ZIPCCL_ITEM_OBJECT) {
        out.values = zipccl_item_get(in, "values");
        out.types = zipccl_item_get(in, "types");
    }
    for (const struct zipccl_item *v = out.values != NULL ? out.values->child : NULL; v != NULL;
         v = v->next, i++)
        if (v->type == ZIPCCL_ITEM_STRING)
            out.name = i; /* the last: a group may go by a text too */
    return out;
}

static bool place_integer(const struct inputs *in, int32_t place, int64_t *out)
{
    return place >= 0 && zipccl_item_integer(zipccl_item_at(in->values, (uint32_t)place), out);
}

static const char *copy(struct reading *r, const struct zipccl_item *item)
{
    return item == NULL ? "" : zipccl_arena_string(&r->file->arena, item->text, strlen(item->text));
}

/* The group as the inputs tell it: its name, and where its ranks lie. */
static void take_group(struct reading *r, const struct inputs *in, struct kineto_meta *m)
{
    const struct zipccl_item *group = zipccl_item_at(in->values, (uint32_t)(in->name - 2));
    uint32_t rest = in->values->n - (uint32_t)in->name - 1;
    int64_t size = 0;

    if (group != NULL && group->type == ZIPCCL_ITEM_ARRAY) {
        m->pg_name = copy(r, zipccl_item_at(group, 0));
        m->pg_desc = copy(r, zipccl_item_at(group, 1));
    } else if (group != NULL) {
        m->pg_name = copy(r, group);
    }
    if (rest >= 5) {
        place_integer(in, in->name + 3, &m->first);
        place_integer(in, in->name + 4, &m->stride);
    }
    if (rest >= 3)
        place_integer(in, in->name + (rest >= 5 ? 5 : 3), &size);
    m->size = size > 0 && size < UINT32_MAX ? (uint32_t)size : 0;
}

static zipccl_status elements(const struct reading *r, uint64_t line, int64_t n, uint64_t *out)
{
    struct zipccl_place at = {r->file->path, line, r->error};

    if (n < 0)
        return zipccl_place_fail(&at, "%" PRId64 " elements, expected 0 or more", n);
    *out = (uint64_t)n;
    return ZIPCCL_OK;
}

/* What attributes say by name stands above what inputs say by place. */
static zipccl_status take_attributes(struct reading *r, const struct zipccl_item *node,
                                     struct kineto_meta *m)
{
    const struct zipccl_item *name = attribute(node, "collective_name");
    int64_t n;

    if (name == NULL)
        return ZIPCCL_OK;
    m->name = copy(r, name);
    if (attribute(node, "dtype") != NULL)
        m->dtype = copy(r, attribute(node, "dtype"));
    if (zipccl_item_integer(attribute(node, "in_msg_nelems"), &n))
        ZIPCCL_TRY(elements(r, m->line, n, &m->in));
    if (zipccl_item_integer(attribute(node, "out_msg_nelems"), &n))
        ZIPCCL_TRY(elements(r, m->line, n, &m->out));
    if (attribute(node, "in_split_size") != NULL)
        m->in_split = list_of(r, attribute(node, "in_split_size"));
    if (attribute(node, "pg_name") != NULL)
        m->pg_name = copy(r, attribute(node, "pg_name"));
    if (attribute(node, "pg_desc") != NULL)
        m->pg_desc = copy(r, attribute(node, "pg_desc"));
    zipccl_item_integer(attribute(node, "global_rank_start"), &m->first);
    zipccl_item_integer(attribute(node, "global_rank_stride"), &m->stride);
    zipccl_item_integer(attribute(node, "src_rank"), &m->src);
    zipccl_item_integer(attribute(node, "dst_rank"), &m->dst);
    if (zipccl_item_integer(attribute(node, "pg_size"), &n) && n > 0 && n < UINT32_MAX)
        m->size = (uint32_t)n;
    return ZIPCCL_OK;
}

/* SEQ is a number, or [number, is it a send or receive]. */
static void take_sequence(const struct inputs *in, struct kineto_meta *m)
{
    const struct zipccl_item *seq = zipccl_item_at(in->values, (uint32_t)(in->name - 3));

    if (seq != NULL && seq->type == ZIPCCL_ITEM_ARRAY)
        seq = zipccl_item_at(seq, 0);
    zipccl_item_integer(seq, &m->seq);
}

/* World rank of a member, as far as the call tells. */
static int64_t world_rank(const struct kineto_meta *m, int64_t member)
{
    return member >= 0 && m->first >= 0 && m->stride > 0 && member < UINT32_MAX &&
                   m->first < UINT32_MAX && m->stride < UINT32_MAX
               ? m->first + m->stride * member
               : member;
}

static void take_rank(struct reading *r, const struct inputs *in, struct kineto_meta *m)
{
    int64_t rank = -1;

    place_integer(in, in->name - 1, &rank);
    if (rank < 0 || rank > UINT32_MAX)
        return;
    switch (m->coll) {
    case KINETO_SEND: m->dst = m->dst >= 0 ? m->dst : world_rank(m, rank); return;
    case KINETO_RECV: m->src = m->src >= 0 ? m->src : world_rank(m, rank); return;
    case KINETO_BROADCAST: m->root = rank; return;
    case KINETO_ALL_REDUCE:
    case KINETO_ALL_GATHER:
    case KINETO_REDUCE_SCATTER:
    case KINETO_ALL_TO_ALL:
    case KINETO_ALL_TO_ALLV: break;
    default: return;
    }
    if (r->file->rank < 0)
        r->file->rank = world_rank(m, rank);
}

static zipccl_status take_call(struct reading *r, const struct zipccl_item *node, uint64_t line)
{
    struct zipccl_place at = {r->file->path, line, r->error};
    struct inputs in = inputs_of(node);
    struct kineto_file *f = r->file;
    struct kineto_meta m = {.line = line,
                            .seq = -1,
                            .src = -1,
                            .dst = -1,
                            .first = -1,
                            .stride = -1,
                            .root = -1,
                            .pg_name = "",
                            .pg_desc = "",
                            .pg_ranks = "",
                            .source = KINETO_FROM_CPU,
                            .sized = true};

    if (in.values == NULL || in.name < 3)
        return zipccl_place_fail(&at, "a node " COMMS " without the name of a collective after "
                                      "number, group and rank, expected inputs of schema 1.0.1 to "
                                      "1.1.1");
    zipccl_item_integer(zipccl_item_get(node, "id"), &m.start_ns);
    m.name = copy(r, zipccl_item_at(in.values, (uint32_t)in.name));
    for (int32_t i = 0; i < in.name - 3; i++)
        m.in += elements_of(zipccl_item_at(in.values, (uint32_t)i));
    m.out = elements_of(zipccl_item_get(node, "outputs"));
    if (m.out == 0)
        m.out = elements_of(zipccl_item_get(zipccl_item_get(node, "outputs"), "values"));
    m.dtype = type_of(r, in.types);
    m.in_split = list_of(r, zipccl_item_at(in.values, (uint32_t)in.name + 1));
    take_group(r, &in, &m);
    take_sequence(&in, &m);
    ZIPCCL_TRY(take_attributes(r, node, &m));
    if (m.name == NULL || m.dtype == NULL || m.in_split == NULL || m.pg_name == NULL ||
        m.pg_desc == NULL || f->nmetas >= KINETO_NONE ||
        !kineto_grow(&f->metas, &f->meta_room, f->nmetas, sizeof *f->metas))
        return nomem(r);
    m.coll = (uint8_t)kineto_coll_of(m.name);
    take_rank(r, &in, &m);
    f->metas[f->nmetas++] = m;
    return ZIPCCL_OK;
}

/* One group of "[{"pg_name": "0", "ranks": [], "group_size": 2, ...}]"; no ranks: all there are. */
static zipccl_status take_pg(struct reading *r, const struct zipccl_json *from)
{
    const struct zipccl_json *name = zipccl_json_get(from, "pg_name");
    const struct zipccl_json *desc = zipccl_json_get(from, "pg_desc");
    const struct zipccl_json *size = zipccl_json_get(from, "group_size");
    const struct zipccl_json *ranks = zipccl_json_get(from, "ranks");
    struct kineto_file *f = r->file;
    struct kineto_pg pg = {"", "", 0, 0, NULL};
    uint32_t n = ranks != NULL && ranks->type == ZIPCCL_JSON_ARRAY ? ranks->n : 0;
    bool all = n == 0;

    if (size != NULL && size->type == ZIPCCL_JSON_INTEGER && size->value.integer > 0 &&
        size->value.integer <= (1 << 20))
        pg.size = (uint32_t)size->value.integer;
    if (all)
        n = pg.size;
    if (name != NULL && name->type == ZIPCCL_JSON_STRING)
        pg.name = zipccl_arena_string(&f->arena, name->value.string, strlen(name->value.string));
    if (desc != NULL && desc->type == ZIPCCL_JSON_STRING)
        pg.desc = zipccl_arena_string(&f->arena, desc->value.string, strlen(desc->value.string));
    pg.ranks = zipccl_arena_alloc(&f->arena, n, sizeof *pg.ranks);
    if (pg.name == NULL || pg.desc == NULL || pg.ranks == NULL ||
        !kineto_grow(&f->pgs, &f->pg_room, f->npgs, sizeof *f->pgs))
        return nomem(r);
    for (const struct zipccl_json *c = all ? NULL : ranks->child; c != NULL; c = c->next)
        pg.ranks[pg.nranks++] =
            c->type == ZIPCCL_JSON_INTEGER && c->value.integer >= 0 && c->value.integer < UINT32_MAX
                ? (uint32_t)c->value.integer
                : KINETO_NONE;
    for (; all && pg.nranks < n; pg.nranks++)
        pg.ranks[pg.nranks] = pg.nranks;
    if (all && (int64_t)n > f->world)
        f->world = n;
    f->pgs[f->npgs++] = pg;
    return ZIPCCL_OK;
}

/* A list that was cut is no JSON; groups then are told by the calls themselves. */
static zipccl_status take_groups(struct reading *r, const struct zipccl_item *node)
{
    const struct zipccl_item *text = zipccl_item_at(inputs_of(node).values, 0);
    struct zipccl_place at = {r->file->path, 0, NULL};
    struct zipccl_arena arena = {NULL};
    struct zipccl_json *tree;
    zipccl_status status = ZIPCCL_OK;
    char *object;
    size_t n;

    if (text == NULL || text->type != ZIPCCL_ITEM_STRING)
        return ZIPCCL_OK;
    n = strlen(text->text) + 16;
    object = zipccl_arena_alloc(&arena, 1, n);
    if (object == NULL)
        return nomem(r);
    n = (size_t)snprintf(object, n, "{\"groups\":%s}", text->text);
    if (zipccl_json_parse(&at, &arena, object, n, &tree) == ZIPCCL_OK &&
        tree->child->type == ZIPCCL_JSON_ARRAY)
        for (const struct zipccl_json *c = tree->child->child; c != NULL && status == ZIPCCL_OK;
             c = c->next)
            if (c->type == ZIPCCL_JSON_OBJECT)
                status = take_pg(r, c);
    zipccl_arena_free(&arena);
    return status;
}

static bool wants(void *context, const char *key, const char *text)
{
    (void)context;
    return strcmp(key, "name") != 0 || strcmp(text, COMMS) == 0 || strcmp(text, GROUPS) == 0;
}

static zipccl_status take(void *context, const struct zipccl_item *item, uint64_t line)
{
    struct reading *r = context;
    const struct zipccl_item *name = zipccl_item_get(item, "name");

    if (name != NULL && strcmp(name->text, COMMS) == 0)
        return take_call(r, item, line);
    if (name != NULL && strcmp(name->text, GROUPS) == 0)
        return take_groups(r, item);
    return ZIPCCL_OK;
}

static zipccl_status take_top(void *context, const char *key, const char *text)
{
    struct reading *r = context;
    struct zipccl_place at = {r->file->path, 0, r->error};
    char quoted[ZIPCCL_QUOTE_SIZE];

    if (strcmp(key, "schema") != 0)
        return ZIPCCL_OK;
    r->schema = true;
    if (strncmp(text, "1.0.", 4) == 0 || strncmp(text, "1.1.", 4) == 0)
        return ZIPCCL_OK;
    zipccl_place_fail(&at, "schema %s, expected 1.0.1 to 1.1.1", zipccl_quote(quoted, text));
    return ZIPCCL_ERR_UNSUPPORTED;
}

static int compare_metas(const void *a, const void *b)
{
    const struct kineto_meta *x = a, *y = b;

    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

zipccl_status et_read(const char *path, struct kineto_file *file, struct zipccl_error *error)
{
    struct reading r = {.file = file, .error = error};
    struct zipccl_items items = {.path = path,
                                 .array = "nodes",
                                 .what = "a PyTorch execution trace",
                                 .error = error,
                                 .context = &r,
                                 .take = take,
                                 .take_top = take_top,
                                 .wants = wants};
    zipccl_status status;

    memset(file, 0, sizeof *file);
    file->path = path;
    file->rank = file->world = -1;
    status = zipccl_items_read(&items);
    file->nevents = items.nitems;
    if (file->nmetas > 0)
        qsort(file->metas, file->nmetas, sizeof *file->metas, compare_metas);
    return status;
}

const char *et_find_split(struct et_beside *beside, const struct kineto_meta *meta)
{
    const char *end = strstr(meta->in_split, "...");
    size_t shown = end != NULL ? (size_t)(end - meta->in_split) : strlen(meta->in_split);

    for (size_t i = 0; i < beside->file.nmetas; i++) {
        struct kineto_meta *m = &beside->file.metas[i];

        if (m->used || m->coll != meta->coll || m->in != meta->in ||
            (m->out > 0 && meta->out > 0 && m->out != meta->out) ||
            strcmp(m->pg_name, meta->pg_name) != 0 || strstr(m->in_split, "...") != NULL)
            continue;
        /* What the profiler left of the list must be how that of the execution trace begins. */
        if (strncmp(m->in_split, meta->in_split, shown) != 0)
            continue;
        m->used = true;
        return m->in_split;
    }
    return NULL;
}
