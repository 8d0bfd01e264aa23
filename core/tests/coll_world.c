/*
 * coll_world.c - ranks as threads, and the inputs of the cases
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/coll_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Inputs are windows of two tables, so that making and checking them is a copy. */
#define TABLE_N 65536u

static uint32_t hash3(uint32_t a, uint32_t b, uint32_t c)
{
    uint64_t x = a * UINT64_C(0x9e3779b97f4a7c15) ^ b * UINT64_C(0xc2b2ae3d27d4eb4f) ^
                 c * UINT64_C(0x165667b19e3779f9);

    x ^= x >> 29;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 32;
    return (uint32_t)x;
}

/* Sum of uniforms: near enough to a Gaussian for the codec. */
static uint16_t gauss_at(uint32_t i)
{
    float x = 0;
    uint32_t bits;

    for (uint32_t k = 0; k < 12; k++)
        x += (float)(hash3(i, k, 1) >> 8) * 0x1p-24f;
    x = (x - 6) * 0.02f;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static uint16_t element_at(enum kind kind, uint32_t i)
{
    static const uint16_t specials[] = {0x0000, 0x8000, 0x0001, 0x807f, 0x0080, 0x7f80,
                                        0xff80, 0x7fc0, 0xffc0, 0x7f81, 0xff81, 0x7fff,
                                        0xffff, 0x7f7f, 0xff7f, 0x7fa5};
    uint32_t h = hash3(i, 7, 7);

    if (kind == KIND_RANDOM)
        return (uint16_t)h;
    if (kind == KIND_SPECIAL && h % 13 == 0) /* a listed one, or any NaN or subnormal */
        return h & 0x10000 ? specials[(h >> 8) % 16]
                           : (uint16_t)((h >> 4 & 0x807f) | (h & 0x20000 ? 0x7f80 : 0));
    return gauss_at(i);
}

/* Filled once before the first thread starts, read only from then on. */
static uint16_t tables[3][2 * TABLE_N];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void fill_tables(void)
{
    for (unsigned k = 0; k < 3; k++)
        for (uint32_t i = 0; i < 2 * TABLE_N; i++)
            tables[k][i] = element_at((enum kind)k, i % TABLE_N);
}

void case_block(const struct coll_case *c, uint32_t src, uint32_t dst, size_t first, size_t n,
                uint16_t *out)
{
    uint32_t seed = hash3(src, dst, 3);
    enum kind kind = c->kind;

    pthread_once(&tables_once, fill_tables);
    if (kind == KIND_MIXED)
        kind = seed & 1 ? KIND_RANDOM : KIND_GAUSS;
    while (n > 0) {
        size_t at = (seed + first) % TABLE_N, len = n < TABLE_N ? n : TABLE_N;

        memcpy(out, &tables[kind][at], len * sizeof *out);
        out += len;
        first += len;
        n -= len;
    }
}

size_t case_split(const struct coll_case *c, uint32_t nranks, uint32_t src, uint32_t dst)
{
    uint32_t h = hash3(src, dst, (uint32_t)c->count);

    switch (c->split) {
    case SPLIT_SHIFT: return dst == (src + 1) % nranks ? c->count : 0;
    case SPLIT_PAIRS: return dst == (src ^ 1u) ? c->count : 0;
    case SPLIT_ONE_WAY: return dst == src + 1 && src % 2 == 0 ? c->count : 0;
    case SPLIT_RANDOM: break;
    default: return 0;
    }
    switch (h % 4) {
    case 0: return 0;
    case 1: return c->count < 40 ? c->count : h / 4 % 40;
    case 2: return c->count;
    default: return h / 4 % (c->count + 1);
    }
}

struct zipccl_call case_call(const struct coll_case *c)
{
    return (struct zipccl_call){.op = c->op,
                                .dtype = ZIPCCL_BFLOAT16,
                                .root = c->root,
                                .count = c->count,
                                .has_native = true};
}

uint32_t case_class(const struct coll_case *c)
{
    return (uint32_t)(c->count + c->nchunks + (unsigned)c->kind + (unsigned)c->op) * 5 %
           ZIPCCL_NUM_CLASSES;
}

void case_print(const struct coll_case *c, const struct world *w)
{
    fprintf(stderr,
            "%s, %u ranks on %u nodes, strategy \"%s\", %u chunks, %u channels, class %u, count "
            "%zu, root %u, input %d, split %d%s\n",
            zipccl_op_name(c->op), w->nranks, w->topology->nnodes, c->strategy->name, c->nchunks,
            c->channels, case_class(c), c->count, c->root, (int)c->kind, (int)c->split,
            c->in_place ? ", in place" : "");
}

struct rank_thread {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    rank_fn *fn; /* NULL: nothing to do, or done */
    void *context;
    uint32_t rank;
    bool ok, stop;
};

static void *rank_main(void *p)
{
    struct rank_thread *self = p;

    pthread_mutex_lock(&self->lock);
    for (;;) {
        while (self->fn == NULL && !self->stop)
            pthread_cond_wait(&self->changed, &self->lock);
        if (self->stop)
            break;
        pthread_mutex_unlock(&self->lock);
        self->ok = self->fn(self->context, self->rank);
        pthread_mutex_lock(&self->lock);
        self->fn = NULL;
        pthread_cond_broadcast(&self->changed);
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

static void start(struct rank_thread *thread, uint32_t rank)
{
    memset(thread, 0, sizeof *thread);
    thread->rank = rank;
    pthread_mutex_init(&thread->lock, NULL);
    pthread_cond_init(&thread->changed, NULL);
    if (pthread_create(&thread->thread, NULL, rank_main, thread) != 0)
        abort();
}

static void stop(struct rank_thread *thread)
{
    pthread_mutex_lock(&thread->lock);
    thread->stop = true;
    pthread_cond_broadcast(&thread->changed);
    pthread_mutex_unlock(&thread->lock);
    pthread_join(thread->thread, NULL);
    pthread_cond_destroy(&thread->changed);
    pthread_mutex_destroy(&thread->lock);
}

bool world_run(const struct world *w, rank_fn *fn, void *context)
{
    bool ok = true;

    if (w->kind != NULL)
        return w->kind->run(w, fn, context);
    for (uint32_t r = 0; r < w->nranks; r++) {
        struct rank_thread *thread = &w->threads[r];

        pthread_mutex_lock(&thread->lock);
        thread->context = context;
        thread->fn = fn;
        pthread_cond_broadcast(&thread->changed);
        pthread_mutex_unlock(&thread->lock);
    }
    for (uint32_t r = 0; r < w->nranks; r++) {
        struct rank_thread *thread = &w->threads[r];

        pthread_mutex_lock(&thread->lock);
        while (thread->fn != NULL)
            pthread_cond_wait(&thread->changed, &thread->lock);
        ok = ok && thread->ok;
        pthread_mutex_unlock(&thread->lock);
    }
    return ok;
}

void world_share(const struct world *w, void *array, size_t element)
{
    if (w->kind != NULL)
        w->kind->share(w, array, element);
}

void world_open(struct world *w, uint32_t nranks, const uint32_t *node_ids)
{
    if (nranks > MAX_RANKS)
        abort();
    memset(w, 0, sizeof *w);
    memcpy(w->node_ids, node_ids, nranks * sizeof *node_ids);
    w->nranks = nranks;
    w->threads = calloc(nranks, sizeof *w->threads);
    if (w->threads == NULL || zipccl_topology_create(nranks, node_ids, &w->topology) != ZIPCCL_OK ||
        zipccl_transport_mem_create(w->topology, w->t) != ZIPCCL_OK)
        abort();
    for (uint32_t r = 0; r < nranks; r++) {
        if (zipccl_exec_cpu_create(zipccl_isa_best(), &w->exec[r]) != ZIPCCL_OK)
            abort();
        start(&w->threads[r], r);
    }
}

void world_open_even(struct world *w, uint32_t nnodes, uint32_t ranks_per_node)
{
    uint32_t node_ids[MAX_RANKS];

    for (uint32_t r = 0; r < nnodes * ranks_per_node && r < MAX_RANKS; r++)
        node_ids[r] = r / ranks_per_node;
    world_open(w, nnodes * ranks_per_node, node_ids);
}

void world_reopen(struct world *w)
{
    struct world old = *w;

    world_close(&old);
    world_open(w, old.nranks, old.node_ids);
}

void world_close(struct world *w)
{
    for (uint32_t r = 0; r < w->nranks; r++) {
        stop(&w->threads[r]);
        w->exec[r]->ops->destroy(w->exec[r]);
        w->t[r]->ops->destroy(w->t[r]);
    }
    free(w->threads);
    zipccl_topology_destroy(w->topology);
}
