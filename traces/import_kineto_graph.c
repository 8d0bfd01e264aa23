/*
 * import_kineto_graph.c - the events of all ranks as a graph, and an order that fits all of them
 *
 * Ranks that do the same are a class.  A call that classes make together is one node; compute and
 * communication of unknown content are nodes of a class.  Edges are the order within streams and
 * the dependencies.  Parts of a set whose members are of the same classes share nodes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_kineto.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct building {
    struct kineto_import *k;
    struct kineto_graph *g;
    uint32_t *heads; /* hash of call nodes */
    size_t nheads;
    uint64_t alone; /* pairs of ranks without a file */
    struct class_families {
        bool known;
        uint32_t n;
        size_t room;
        uint32_t *of;
    } * families; /* [nranks * nsets] */
};

static zipccl_status nomem(const struct kineto_import *k)
{
    struct zipccl_place at = {k->importer->paths[0], 0, k->importer->error};

    return zipccl_place_nomem(&at);
}

static bool same_family(const struct kineto_import *k, const struct kineto_set *s, uint32_t a,
                        uint32_t b)
{
    const uint32_t *x = s->ranks + (size_t)a * s->size, *y = s->ranks + (size_t)b * s->size;

    for (uint32_t i = 0; i < s->size; i++)
        if (kineto_class(k, x[i]) != kineto_class(k, y[i]))
            return false;
    return true;
}

static uint32_t count_classes(const struct kineto_import *k, const struct kineto_set *s,
                              uint32_t part, unsigned char *marks)
{
    const uint32_t *ranks = s->ranks + (size_t)part * s->size;
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->size; i++) {
        uint32_t class = kineto_class(k, ranks[i]);

        n += !marks[class];
        marks[class] = 1;
    }
    for (uint32_t i = 0; i < s->size; i++)
        marks[kineto_class(k, ranks[i])] = 0;
    return n;
}

static zipccl_status find_families(struct building *b, uint32_t set, unsigned char *marks)
{
    struct kineto_graph *g = b->g;
    const struct kineto_set *s = &b->k->sets[set];
    size_t first = g->nfamilies;

    g->family_of[set] = malloc((s->nparts + 1) * sizeof **g->family_of);
    if (g->family_of[set] == NULL)
        return nomem(b->k);
    for (uint32_t part = 0; part < s->nparts; part++) {
        size_t f = first;

        while (f < g->nfamilies && !same_family(b->k, s, g->families[f].example, part))
            f++;
        if (f == g->nfamilies) {
            if (!kineto_grow(&g->families, &g->family_room, f, sizeof *g->families))
                return nomem(b->k);
            g->families[g->nfamilies++] =
                (struct kineto_family){set, 0, count_classes(b->k, s, part, marks), part};
        }
        g->families[f].nparts++;
        g->family_of[set][part] = (uint32_t)f;
    }
    return ZIPCCL_OK;
}

static bool add_edge(struct kineto_graph *g, uint32_t from, uint32_t to, bool soft)
{
    if (from == to)
        return true;
    if (!kineto_grow(&g->edges, &g->edge_room, g->nedges, sizeof *g->edges))
        return false;
    g->edges[g->nedges++] = (struct kineto_edge){from, to, soft};
    return true;
}

static uint32_t add_node(struct kineto_graph *g, const struct kineto_node *node)
{
    if (g->nnodes >= KINETO_NONE - 1 ||
        !kineto_grow(&g->nodes, &g->node_room, g->nnodes, sizeof *g->nodes))
        return KINETO_NONE;
    g->nodes[g->nnodes] = *node;
    return (uint32_t)g->nnodes++;
}

static size_t hash_node(const struct building *b, const struct kineto_node *n)
{
    uint64_t h = n->set;
    const uint32_t words[] = {n->family, n->part, n->lane, n->ordinal, n->src, n->dst};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        h = (h ^ words[i]) * 0x9e3779b97f4a7c15u;
    return (size_t)(h >> 20) & (b->nheads - 1);
}

static bool same_node(const struct kineto_node *a, const struct kineto_node *b)
{
    return a->set == b->set && a->family == b->family && a->part == b->part && a->lane == b->lane &&
           a->ordinal == b->ordinal && a->src == b->src && a->dst == b->dst;
}

static bool same_payload(const struct kineto_call *a, const struct kineto_call *b)
{
    bool uneven = (a->op == ZIPCCL_ALLTOALL || a->op == ZIPCCL_ALLTOALLV) &&
                  (b->op == ZIPCCL_ALLTOALL || b->op == ZIPCCL_ALLTOALLV);

    return a->dtype == b->dtype && (uneven || (a->op == b->op && a->count == b->count));
}

/* Find or make the node of a call and link the class to it. */
static zipccl_status link_call(struct building *b, const struct kineto_node *want)
{
    struct kineto_graph *g = b->g;
    size_t head = hash_node(b, want);
    uint32_t at = b->heads[head];

    while (at != KINETO_NONE && !same_node(&g->nodes[at], want))
        at = g->nodes[at].next;
    if (at == KINETO_NONE) {
        struct kineto_node node = *want;

        node.next = b->heads[head];
        at = add_node(g, &node);
        if (at == KINETO_NONE)
            return nomem(b->k);
        b->heads[head] = at;
    }
    /* A class that would do something else there does not take part. */
    if (same_payload(&b->k->ranks[g->nodes[at].class].calls[g->nodes[at].index],
                     &b->k->ranks[want->class].calls[want->index]))
        g->nodes[at].nlinked++;
    if (!kineto_grow(&g->links, &g->link_room, g->nlinks, sizeof *g->links))
        return nomem(b->k);
    g->links[g->nlinks++] = at;
    return ZIPCCL_OK;
}

bool kineto_is_split(const struct kineto_import *k, const struct kineto_call *c, uint32_t part)
{
    const struct kineto_set *s = &k->sets[c->set];

    for (uint32_t i = 0; i < s->size && c->op == ZIPCCL_ALLTOALLV; i++) {
        const struct kineto_rank *r = kineto_recorded(k, s->ranks[(size_t)part * s->size + i]);
        const struct kineto_call *other =
            r != NULL ? kineto_call_at(r, c->set, c->lane, c->ordinal) : NULL;

        if (other == NULL || other->in_split == NULL)
            return false;
    }
    return c->op == ZIPCCL_ALLTOALLV;
}

/* Families of the set that the class is in; the list is kept. */
static zipccl_status families_of(struct building *b, uint32_t class, uint32_t set,
                                 const struct class_families **out)
{
    struct kineto_import *k = b->k;
    struct class_families *list = &b->families[(size_t) class * k->nsets + set];

    *out = list;
    if (list->known)
        return ZIPCCL_OK;
    list->known = true;
    for (uint32_t rank = 0; rank < k->world; rank++) {
        uint32_t part = k->sets[set].part_of[rank], family, i = 0;

        if (part == KINETO_NONE || kineto_class(k, rank) != class)
            continue;
        family = b->g->family_of[set][part];
        while (i < list->n && list->of[i] != family)
            i++;
        if (i < list->n)
            continue;
        if (!kineto_grow(&list->of, &list->room, list->n, sizeof *list->of))
            return nomem(k);
        list->of[list->n++] = family;
    }
    return ZIPCCL_OK;
}

static bool is_linked(const struct building *b, size_t begin, const struct kineto_node *want)
{
    for (size_t l = begin; l < b->g->nlinks; l++)
        if (same_node(&b->g->nodes[b->g->links[l]], want))
            return true;
    return false;
}

/* Nodes of one part: pairs, and calls with a table of who gets how much. */
static zipccl_status link_parts(struct building *b, struct kineto_node *want, size_t begin)
{
    struct kineto_import *k = b->k;
    const struct kineto_call *c = &k->ranks[want->class].calls[want->index];

    for (size_t i = 0; i < k->nranks; i++) {
        uint32_t rank = k->ranks[i].rank, part = k->sets[c->set].part_of[rank];

        if (k->ranks[i].class != want->class || part == KINETO_NONE ||
            (!c->pair && !kineto_is_split(k, c, part)))
            continue;
        want->part = part;
        want->family = b->g->family_of[c->set][part];
        if (!is_linked(b, begin, want))
            ZIPCCL_TRY(link_call(b, want));
    }
    return ZIPCCL_OK;
}

static uint32_t count_split(const struct building *b, const struct kineto_call *c, uint32_t family)
{
    const struct kineto_set *s = &b->k->sets[c->set];
    uint32_t n = 0;

    for (uint32_t part = 0; c->op == ZIPCCL_ALLTOALLV && part < s->nparts; part++)
        n += b->g->family_of[c->set][part] == family && kineto_is_split(b->k, c, part);
    return n;
}

/* The nodes of one call of a class: one a family, or one a part where parts differ. */
static zipccl_status link_class(struct building *b, uint32_t class, uint32_t i)
{
    struct kineto_import *k = b->k;
    const struct kineto_rank *r = &k->ranks[class];
    const struct kineto_call *c = &r->calls[i];
    const struct class_families *list;
    struct kineto_node want = {.time_ns = c->start_ns - r->first_ns,
                               .kind = KINETO_NODE_CALL,
                               .class = class,
                               .index = i,
                               .set = c->set,
                               .lane = c->lane,
                               .ordinal = c->ordinal,
                               .src = c->src,
                               .dst = c->dst};
    size_t begin = b->g->nlinks;

    if (c->pair || c->op == ZIPCCL_ALLTOALLV)
        ZIPCCL_TRY(link_parts(b, &want, begin));
    if (c->pair) {
        for (uint32_t rank = 0; rank < k->world; rank++)
            b->alone += kineto_class(k, rank) == class && kineto_recorded(k, rank) == NULL;
        return ZIPCCL_OK;
    }
    want.part = KINETO_NONE;
    ZIPCCL_TRY(families_of(b, class, c->set, &list));
    for (uint32_t f = 0; f < list->n; f++) {
        want.family = list->of[f];
        if (count_split(b, c, want.family) < b->g->families[want.family].nparts)
            ZIPCCL_TRY(link_call(b, &want));
    }
    return ZIPCCL_OK;
}

static zipccl_status link_opaque(struct building *b, uint32_t class, uint32_t i)
{
    const struct kineto_rank *r = &b->k->ranks[class];
    struct kineto_node node = {.time_ns = r->calls[i].start_ns - r->first_ns,
                               .kind = KINETO_NODE_OPAQUE,
                               .class = class,
                               .index = i};
    uint32_t at = add_node(b->g, &node);

    if (at == KINETO_NONE ||
        !kineto_grow(&b->g->links, &b->g->link_room, b->g->nlinks, sizeof *b->g->links))
        return nomem(b->k);
    b->g->links[b->g->nlinks++] = at;
    return ZIPCCL_OK;
}

static zipccl_status add_nodes(struct building *b, uint32_t class)
{
    const struct kineto_rank *r = &b->k->ranks[class];
    uint32_t *first = calloc(r->ncalls + 1, sizeof *first);

    b->g->first_link[class] = first;
    b->g->segment_of[class] = calloc(r->nsegments + 1, sizeof **b->g->segment_of);
    if (first == NULL || b->g->segment_of[class] == NULL)
        return nomem(b->k);
    for (uint32_t i = 0; i < r->ncalls; i++) {
        first[i] = (uint32_t)b->g->nlinks;
        if (r->calls[i].opaque)
            ZIPCCL_TRY(link_opaque(b, class, i));
        else if (!r->calls[i].dropped)
            ZIPCCL_TRY(link_class(b, class, i));
    }
    first[r->ncalls] = (uint32_t)b->g->nlinks;
    for (uint32_t s = 0; s < r->nsegments; s++) {
        struct kineto_node node = {.kind = KINETO_NODE_SEGMENT, .class = class, .index = s};

        for (uint32_t d = 0; d < r->segments[s].ndeps; d++) {
            int64_t end = r->calls[r->segments[s].deps[d]].end_ns - r->first_ns;

            node.time_ns = end > node.time_ns ? end : node.time_ns;
        }
        b->g->segment_of[class][s] = add_node(b->g, &node);
        if (b->g->segment_of[class][s] == KINETO_NONE)
            return nomem(b->k);
    }
    return ZIPCCL_OK;
}

/* All nodes of calls [from, to) wait for those of [before, from). */
static zipccl_status order_calls(struct building *b, uint32_t class, uint32_t earlier,
                                 uint32_t later)
{
    const uint32_t *first = b->g->first_link[class];
    const struct kineto_call *calls = b->k->ranks[class].calls;
    bool soft = calls[earlier].pair && calls[later].pair;

    for (uint32_t x = first[earlier]; x < first[earlier + 1]; x++)
        for (uint32_t y = first[later]; y < first[later + 1]; y++)
            if (!add_edge(b->g, b->g->links[x], b->g->links[y], soft))
                return nomem(b->k);
    return ZIPCCL_OK;
}

/* In a stream each call waits for those of the kernel before it; calls of one kernel are free. */
static zipccl_status order_streams(struct building *b, uint32_t class)
{
    const struct kineto_rank *r = &b->k->ranks[class];
    /* Per stream: first call of the kernel that runs, and of the one before. */
    uint32_t(*last)[3] = malloc((b->k->nstreams + 1) * sizeof *last);
    uint32_t *chain = malloc((r->ncalls + 1) * sizeof *chain);
    zipccl_status status = last != NULL && chain != NULL ? ZIPCCL_OK : nomem(b->k);

    /* last: newest call, and newest call of the kernel before; chain links calls of a stream. */
    for (uint32_t s = 0; last != NULL && s <= b->k->nstreams; s++)
        last[s][0] = last[s][1] = KINETO_NONE;
    for (uint32_t i = 0; i < r->ncalls && status == ZIPCCL_OK; i++) {
        uint32_t *l = last[r->calls[i].stream];

        if (l[0] != KINETO_NONE && r->calls[l[0]].kernel != r->calls[i].kernel)
            l[1] = l[0];
        chain[i] = l[0];
        l[0] = i;
        for (uint32_t e = l[1];
             e != KINETO_NONE && r->calls[e].kernel == r->calls[l[1]].kernel && status == ZIPCCL_OK;
             e = chain[e])
            status = order_calls(b, class, e, i);
    }
    free(last);
    free(chain);
    return status;
}

/* Calls that wait for calls. */
static zipccl_status add_after(struct building *b, uint32_t class)
{
    const struct kineto_rank *r = &b->k->ranks[class];
    const uint32_t *first = b->g->first_link[class], *links = b->g->links;

    for (uint32_t i = 0; i < r->ncalls; i++)
        for (uint32_t a = 0; a < r->after[i].n; a++)
            for (uint32_t x = first[r->after[i].calls[a]]; x < first[r->after[i].calls[a] + 1]; x++)
                for (uint32_t y = first[i]; y < first[i + 1]; y++)
                    if (!add_edge(b->g, links[x], links[y], false))
                        return nomem(b->k);
    return ZIPCCL_OK;
}

static zipccl_status add_edges(struct building *b, uint32_t class)
{
    const struct kineto_rank *r = &b->k->ranks[class];
    const uint32_t *first = b->g->first_link[class], *segment = b->g->segment_of[class];

    ZIPCCL_TRY(order_streams(b, class));
    for (uint32_t s = 0; s < r->nsegments; s++) {
        if (s > 0 && !add_edge(b->g, segment[s - 1], segment[s], false))
            return nomem(b->k);
        for (uint32_t d = 0; d < r->segments[s].ndeps; d++) {
            uint32_t call = r->segments[s].deps[d];

            for (uint32_t l = first[call]; l < first[call + 1]; l++)
                if (!add_edge(b->g, b->g->links[l], segment[s], false))
                    return nomem(b->k);
        }
    }
    for (uint32_t i = 0; i < r->ncalls; i++)
        for (uint32_t l = first[i]; r->waits_for[i] != KINETO_NONE && l < first[i + 1]; l++)
            if (!add_edge(b->g, segment[r->waits_for[i]], b->g->links[l], false))
                return nomem(b->k);
    return r->after != NULL ? add_after(b, class) : ZIPCCL_OK;
}

/* A heap of nodes that nothing holds back, the earliest on top. */
static bool earlier(const struct kineto_graph *g, uint32_t a, uint32_t b)
{
    const struct kineto_node *x = &g->nodes[a], *y = &g->nodes[b];

    return x->time_ns != y->time_ns ? x->time_ns < y->time_ns : a < b;
}

static void push(const struct kineto_graph *g, uint32_t *heap, size_t n, uint32_t node)
{
    while (n > 0 && earlier(g, node, heap[(n - 1) / 2])) {
        heap[n] = heap[(n - 1) / 2];
        n = (n - 1) / 2;
    }
    heap[n] = node;
}

static uint32_t pop(const struct kineto_graph *g, uint32_t *heap, size_t n)
{
    uint32_t top = heap[0], last = heap[n - 1];
    size_t at = 0;

    n--;
    while (2 * at + 1 < n) {
        size_t child = 2 * at + 1;

        child += child + 1 < n && earlier(g, heap[child + 1], heap[child]);
        if (!earlier(g, heap[child], last))
            break;
        heap[at] = heap[child];
        at = child;
    }
    if (n > 0)
        heap[at] = last;
    return top;
}

static int compare_edges(const void *a, const void *b)
{
    const struct kineto_edge *x = a, *y = b;

    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

/* Order the nodes; returns how many could be. */
static size_t try_order(struct kineto_graph *g, bool soft, uint32_t *heap, size_t *first)
{
    size_t nheap = 0, n = 0;

    memset(first, 0, (g->nnodes + 2) * sizeof *first);
    for (size_t i = 0; i < g->nnodes; i++)
        g->nodes[i].nin = 0;
    for (size_t e = 0; e < g->nedges; e++) {
        g->nodes[g->edges[e].to].nin += soft || !g->edges[e].soft;
        first[g->edges[e].from + 1]++;
    }
    for (size_t i = 0; i < g->nnodes; i++) {
        first[i + 1] += first[i];
        if (g->nodes[i].nin == 0)
            push(g, heap, nheap++, (uint32_t)i);
    }
    while (nheap > 0) {
        uint32_t node = pop(g, heap, nheap--);

        g->order[n++] = node;
        for (size_t e = first[node]; e < first[node + 1]; e++)
            if ((soft || !g->edges[e].soft) && --g->nodes[g->edges[e].to].nin == 0)
                push(g, heap, nheap++, g->edges[e].to);
    }
    return n;
}

static zipccl_status sort_nodes(struct kineto_import *k, struct kineto_graph *g)
{
    uint32_t *heap = malloc((g->nnodes + 1) * sizeof *heap);
    size_t *first = malloc((g->nnodes + 2) * sizeof *first), n, all;
    struct zipccl_place at = {k->importer->paths[0], 0, k->importer->error};

    g->order = malloc((g->nnodes + 1) * sizeof *g->order);
    if (heap == NULL || first == NULL || g->order == NULL) {
        free(heap);
        free(first);
        return nomem(k);
    }
    if (g->nedges > 0)
        qsort(g->edges, g->nedges, sizeof *g->edges, compare_edges);
    all = n = try_order(g, true, heap, first);
    if (n < g->nnodes)
        n = try_order(g, false, heap, first);
    free(heap);
    free(first);
    if (n < g->nnodes)
        return zipccl_place_fail(&at,
                                 "%zu calls and kernels of different ranks wait for each other in "
                                 "a circle, expected files of the same step",
                                 g->nnodes - n);
    return zipccl_import_count(
        k->importer, true, "order of pairs", 0, all < n,
        "sends went ahead of receives that a trace would have them wait "
        "for: sends and receives of a stream go in the order of their times");
}

static zipccl_status build(struct building *b)
{
    struct kineto_import *k = b->k;
    unsigned char *marks = calloc(k->nranks + 1, 1);
    zipccl_status status = marks != NULL ? ZIPCCL_OK : nomem(k);

    for (uint32_t set = 0; set < k->nsets && status == ZIPCCL_OK; set++)
        status = find_families(b, set, marks);
    free(marks);
    ZIPCCL_TRY(status);
    for (uint32_t r = 0; r < k->nranks; r++)
        if (k->ranks[r].class == r)
            ZIPCCL_TRY(add_nodes(b, r));
    for (uint32_t r = 0; r < k->nranks; r++)
        if (k->ranks[r].class == r)
            ZIPCCL_TRY(add_edges(b, r));
    ZIPCCL_TRY(sort_nodes(k, b->g));
    return zipccl_import_count(k->importer, true, "pairs without file", 0, b->alone,
                               "sends and receives of ranks without a file, whose other end is "
                               "not known, are left out");
}

zipccl_status kineto_graph_make(struct kineto_import *k, struct kineto_graph *g)
{
    struct building b = {.k = k, .g = g, .nheads = 1 << 16};
    zipccl_status status = ZIPCCL_ERR_NOMEM;

    memset(g, 0, sizeof *g);
    g->family_of = calloc(k->nsets + 1, sizeof *g->family_of);
    g->first_link = calloc(k->nranks + 1, sizeof *g->first_link);
    g->segment_of = calloc(k->nranks + 1, sizeof *g->segment_of);
    b.heads = malloc(b.nheads * sizeof *b.heads);
    b.families = calloc(k->nranks * k->nsets + 1, sizeof *b.families);
    if (b.heads != NULL && b.families != NULL && g->family_of != NULL && g->first_link != NULL &&
        g->segment_of != NULL) {
        memset(b.heads, 0xff, b.nheads * sizeof *b.heads);
        status = build(&b);
    } else {
        nomem(k);
    }
    for (size_t i = 0; b.families != NULL && i < k->nranks * k->nsets; i++)
        free(b.families[i].of);
    free(b.families);
    free(b.heads);
    return status;
}

void kineto_graph_free(const struct kineto_import *k, struct kineto_graph *g)
{
    for (size_t i = 0; i < k->nsets && g->family_of != NULL; i++)
        free(g->family_of[i]);
    for (size_t i = 0; i < k->nranks; i++) {
        if (g->first_link != NULL)
            free(g->first_link[i]);
        if (g->segment_of != NULL)
            free(g->segment_of[i]);
    }
    free(g->family_of);
    free(g->first_link);
    free(g->segment_of);
    free(g->nodes);
    free(g->edges);
    free(g->families);
    free(g->links);
    free(g->order);
    memset(g, 0, sizeof *g);
}
