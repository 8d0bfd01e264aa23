/*
 * plan_query.c - ask the chooser for its candidates, and for the sizes at which it changes its mind
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/plan/plan_query.h"

#include "experiments/bench/bench_input.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Elements of a piece that is encoded for its ratio: a 512 KiB message of bf16. */
#define PIECE_N ((size_t)256 << 10)

/* Flips are looked for between sizes that lie so many to an octave, and then to one percent. */
#define SIZES_PER_OCTAVE 4u

size_t zipccl_plan_size_bytes(enum zipccl_op op, enum zipccl_dtype dtype, size_t count,
                              uint32_t nranks)
{
    bool blocks = op == ZIPCCL_ALL_GATHER || op == ZIPCCL_REDUCE_SCATTER || op == ZIPCCL_ALLTOALL;
    size_t size = zipccl_dtype_size(dtype) * (blocks ? nranks : 1);

    return count > SIZE_MAX / size ? SIZE_MAX : count * size;
}

/* What becomes of the pieces of a type's elements. */
struct pieces {
    uint64_t raw, coded;
    double worst;
};

static zipccl_status encode_pieces(enum zipccl_dtype dtype, const uint8_t *elements, uint64_t n,
                                   enum zipccl_effort effort, struct pieces *out)
{
    size_t size = zipccl_dtype_size(dtype), bound = zipccl_bound(dtype, PIECE_N);
    uint8_t *wire = malloc(bound);
    void *scratch = aligned_alloc(64, (zipccl_codec_scratch_bytes() + 63) / 64 * 64);
    zipccl_status status = wire != NULL && scratch != NULL ? ZIPCCL_OK : ZIPCCL_ERR_NOMEM;

    *out = (struct pieces){0, 0, 0};
    for (uint64_t first = 0; first < n && status == ZIPCCL_OK; first += PIECE_N) {
        size_t m = n - first < PIECE_N ? (size_t)(n - first) : PIECE_N, nbytes = 0;
        double ratio;

        status = zipccl_encode_effort(zipccl_isa_best(), effort, dtype, elements + first * size, m,
                                      wire, bound, scratch, &nbytes);
        if (status != ZIPCCL_OK)
            break;
        out->raw += m * size;
        out->coded += nbytes;
        ratio = (double)(m * size) / (double)nbytes;
        /* A short rest says little of long messages. */
        if (out->worst == 0 || (ratio < out->worst && m == PIECE_N))
            out->worst = ratio;
    }
    free(wire);
    free(scratch);
    return status;
}

zipccl_status zipccl_plan_measure_ratio(struct zipccl_plan_query *query, struct zipccl_error *error)
{
    enum zipccl_dtype dtype = query->call.dtype;
    struct pieces fast, slow;
    void *elements = NULL;
    zipccl_status status;
    uint64_t n = 0;

    ZIPCCL_TRY(zipccl_bench_load(query->input, dtype, &elements, &n, error));
    if (n == 0)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: no tensor of type %s", query->input,
                           zipccl_dtype_name(dtype));
    status = encode_pieces(dtype, elements, n, ZIPCCL_EFFORT_FAST, &fast);
    if (status == ZIPCCL_OK)
        status = encode_pieces(dtype, elements, n, ZIPCCL_EFFORT_RATIO, &slow);
    free(elements);
    if (status != ZIPCCL_OK)
        return zipccl_fail(error, status, "%s: %s", query->input, zipccl_status_string(status));
    query->ratio = (double)fast.raw / (double)fast.coded;
    query->max_ratio = (double)slow.raw / (double)slow.coded;
    query->worst = fast.worst;
    return ZIPCCL_OK;
}

/* Sizes of messages from the ratios of a query. */
static size_t bytes_at(const struct zipccl_plan_query *query, size_t n, double ratio, size_t saved)
{
    enum zipccl_dtype dtype = query->call.dtype;
    size_t bytes = (size_t)((double)(n * zipccl_dtype_size(dtype)) / ratio);
    size_t bound = zipccl_bound(dtype, n);

    bytes = bytes > saved + ZIPCCL_MESSAGE_HEADER_BYTES ? bytes - saved
                                                        : (size_t)ZIPCCL_MESSAGE_HEADER_BYTES;
    return bytes < bound ? bytes : bound;
}

static size_t fast_bytes(void *context, uint32_t src, uint32_t dst, size_t n)
{
    const struct zipccl_plan_query *query = context;

    (void)src;
    (void)dst;
    return bytes_at(query, n, query->ratio, 0);
}

static size_t ratio_bytes(void *context, uint32_t src, uint32_t dst, size_t n)
{
    const struct zipccl_plan_query *query = context;

    (void)src;
    (void)dst;
    if (query->max_ratio > 0)
        return bytes_at(query, n, query->max_ratio, 0);
    return bytes_at(query, n, query->ratio, n / ZIPCCL_RATIO_SAVES_ONE_OF);
}

static int overflows(void *context, uint32_t src, uint32_t dst, size_t n, size_t capacity)
{
    const struct zipccl_plan_query *query = context;

    (void)src;
    (void)dst;
    return bytes_at(query, n, query->worst, 0) > capacity;
}

/* Everything that candidates follow from but the count. */
struct setting {
    struct zipccl_plan_query query;
    struct zipccl_topology *topology;
    struct zipccl_placement placement;
    struct zipccl_cost_params params;
    struct zipccl_wire_sizes sizes;
    bool gaussian;
};

static zipccl_status prepare(const struct zipccl_plan_query *query,
                             const struct zipccl_cluster *cluster, struct setting *s,
                             struct zipccl_plan_answer *out, struct zipccl_error *error)
{
    uint32_t per_node = query->ranks_per_node, nranks = query->nranks, *nodes;
    zipccl_status status;

    if (nranks == 0)
        nranks = cluster->nodes * (per_node > 0 ? per_node : cluster->gpus_per_node);
    if (per_node == 0)
        per_node = cluster->gpus_per_node < nranks ? cluster->gpus_per_node : nranks;
    out->nranks = nranks;
    out->ranks_per_node = per_node;
    out->nnodes = nranks / per_node + (nranks % per_node != 0);
    if (per_node > cluster->gpus_per_node || out->nnodes > cluster->nodes)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%" PRIu32 " ranks, %" PRIu32 " a node, do not fit %s: %u nodes of %u; "
                           "--set nodes=N makes it larger",
                           nranks, per_node, cluster->name, cluster->nodes, cluster->gpus_per_node);
    if (query->call.op == ZIPCCL_BROADCAST && query->call.root >= nranks)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "root %" PRIu32 " is none of %" PRIu32 " ranks",
                           query->call.root, nranks);
    *s = (struct setting){.query = *query, .gaussian = query->ratio == 0};
    s->query.call.has_native = true;
    zipccl_cluster_cost_params(cluster, &s->params);
    nodes = malloc(nranks * sizeof *nodes);
    if (nodes == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    for (uint32_t r = 0; r < nranks; r++)
        nodes[r] = r / per_node;
    status = zipccl_topology_create(nranks, nodes, &s->topology);
    free(nodes);
    if (status != ZIPCCL_OK)
        return zipccl_fail(error, status, "%" PRIu32 " ranks: %s", nranks,
                           zipccl_status_string(status));
    s->placement.topology = s->topology;
    s->sizes = (struct zipccl_wire_sizes){.bytes = fast_bytes,
                                          .ratio_bytes = ratio_bytes,
                                          .context = &s->query,
                                          .overflows = overflows,
                                          .by_n = true};
    return ZIPCCL_OK;
}

/* Candidates as they come. */
struct collection {
    struct zipccl_plan_answer *answer;
    size_t room;
    bool lost; /* no memory for one */
};

static void collect(void *context, struct zipccl_candidate *candidate)
{
    struct collection *c = context;
    struct zipccl_plan_answer *answer = c->answer;
    const struct zipccl_plan *plan = candidate->plan;
    struct zipccl_plan_row *row;

    if (answer->nrows == c->room) {
        size_t room = c->room == 0 ? 64 : 2 * c->room;
        struct zipccl_plan_row *more = realloc(answer->rows, room * sizeof *more);

        if (more == NULL) {
            c->lost = true;
            return;
        }
        answer->rows = more;
        c->room = room;
    }
    row = &answer->rows[answer->nrows];
    *row = (struct zipccl_plan_row){
        .family = candidate->strategy->name,
        .nchunks = plan->nchunks,
        .effort = (enum zipccl_effort)plan->effort,
        .capacity_class = zipccl_plan_is_fixed(plan) ? (int)plan->capacity_class : ZIPCCL_NO_CLASS,
        .compressed = plan->compressed,
        .cost = candidate->cost,
        .order = answer->nrows};
    memcpy(row->strategy, plan->strategy, sizeof row->strategy);
    answer->nrows++;
}

static int by_time(const void *a, const void *b)
{
    const struct zipccl_plan_row *x = a, *y = b;

    if (x->cost.total_s != y->cost.total_s)
        return x->cost.total_s < y->cost.total_s ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static zipccl_status fail(const struct zipccl_plan_query *query, zipccl_status status,
                          struct zipccl_error *error)
{
    return zipccl_fail(error, status == ZIPCCL_ERR_UNSUPPORTED ? ZIPCCL_ERR_INPUT : status,
                       "no plan for %s of %zu %s: %s", zipccl_op_name(query->call.op),
                       query->call.count, zipccl_dtype_name(query->call.dtype),
                       zipccl_status_string(status));
}

static zipccl_status choose(const struct setting *s, size_t count, struct zipccl_plan **plan)
{
    struct zipccl_call call = s->query.call;

    call.count = count;
    return zipccl_choose(&call, &s->placement, &s->params, s->gaussian ? NULL : &s->sizes,
                         s->query.mode, ZIPCCL_CLASS_SETTLED, s->query.max_staging_bytes, plan,
                         NULL);
}

static zipccl_status find_candidates(const struct setting *s, struct zipccl_plan_answer *out,
                                     struct zipccl_error *error)
{
    struct collection c = {.answer = out};
    zipccl_status status = zipccl_candidates(
        &s->query.call, &s->placement, &s->params, s->gaussian ? NULL : &s->sizes, s->query.mode,
        ZIPCCL_CLASS_SETTLED, s->query.max_staging_bytes, collect, &c);

    /* Speedups are over raw. */
    if (status == ZIPCCL_OK && s->query.mode == ZIPCCL_MODE_COMPRESSED && out->nrows > 0 &&
        out->rows[0].compressed)
        status = zipccl_candidates(&s->query.call, &s->placement, &s->params, NULL, ZIPCCL_MODE_RAW,
                                   ZIPCCL_CLASS_SETTLED, s->query.max_staging_bytes, collect, &c);
    if (status == ZIPCCL_OK && c.lost)
        status = ZIPCCL_ERR_NOMEM;
    if (status == ZIPCCL_OK)
        status = choose(s, s->query.call.count, &out->plan);
    if (status != ZIPCCL_OK)
        return fail(&s->query, status, error);
    qsort(out->rows, out->nrows, sizeof *out->rows, by_time);
    out->best_raw = 0;
    while (out->best_raw < out->nrows && out->rows[out->best_raw].compressed)
        out->best_raw++;
    out->chosen = 0;
    while (out->chosen + 1 < out->nrows &&
           (strcmp(out->rows[out->chosen].strategy, out->plan->strategy) != 0 ||
            out->rows[out->chosen].nchunks != out->plan->nchunks ||
            out->rows[out->chosen].effort != (enum zipccl_effort)out->plan->effort))
        out->chosen++;
    return ZIPCCL_OK;
}

/* Name a plan's strategy and effort, and find out what it is at 'count'. */
static zipccl_status flip_at(const struct setting *s, const struct zipccl_plan_answer *answer,
                             size_t count, struct zipccl_plan_flip *out)
{
    const struct zipccl_call *call = &s->query.call;
    struct zipccl_plan *plan;

    ZIPCCL_TRY(choose(s, count, &plan));
    *out = (struct zipccl_plan_flip){
        .count = count,
        .size_bytes = zipccl_plan_size_bytes(call->op, call->dtype, count, answer->nranks),
        .effort = (enum zipccl_effort)plan->effort,
        .compressed = plan->compressed};
    for (unsigned i = 0; zipccl_strategies[i] != NULL; i++) {
        size_t len = strlen(zipccl_strategies[i]->name);

        if (strncmp(plan->strategy, zipccl_strategies[i]->name, len) == 0 &&
            (plan->strategy[len] == '\0' || strncmp(plan->strategy + len, " x", 2) == 0))
            out->family = zipccl_strategies[i]->name;
    }
    zipccl_plan_destroy(plan);
    return out->family != NULL ? ZIPCCL_OK : ZIPCCL_ERR_INTERNAL;
}

static bool same(const struct zipccl_plan_flip *a, const struct zipccl_plan_flip *b)
{
    return a->family == b->family && a->effort == b->effort;
}

static zipccl_status add_flip(struct zipccl_plan_answer *out, const struct zipccl_plan_flip *flip)
{
    struct zipccl_plan_flip *more = realloc(out->flips, (out->nflips + 1) * sizeof *more);

    if (more == NULL)
        return ZIPCCL_ERR_NOMEM;
    out->flips = more;
    out->flips[out->nflips++] = *flip;
    return ZIPCCL_OK;
}

/* Add what is chosen between two sizes of which the first has been added, in order. */
static zipccl_status between(const struct setting *s, const struct zipccl_plan_flip *low,
                             const struct zipccl_plan_flip *high, struct zipccl_plan_answer *out)
{
    struct zipccl_plan_flip middle;

    if (same(low, high))
        return ZIPCCL_OK;
    if (high->count - low->count <= 1 + low->count / 100)
        return add_flip(out, high);
    ZIPCCL_TRY(flip_at(s, out, low->count + (high->count - low->count) / 2, &middle));
    ZIPCCL_TRY(between(s, low, &middle, out));
    return between(s, &middle, high, out);
}

static zipccl_status find_flips(const struct setting *s, struct zipccl_plan_answer *out)
{
    size_t one = zipccl_plan_size_bytes(s->query.call.op, s->query.call.dtype, 1, out->nranks);
    size_t first = ZIPCCL_PLAN_LEAST_BYTES / one, last = ZIPCCL_PLAN_MOST_BYTES / one, count;
    struct zipccl_plan_flip low, high;

    if (zipccl_is_uneven(s->query.call.op)) {
        ZIPCCL_TRY(flip_at(s, out, ZIPCCL_PAIR_WINDOW_N, &low));
        return add_flip(out, &low);
    }
    first = first > 0 ? first : 1;
    last = last > first ? last : first;
    ZIPCCL_TRY(flip_at(s, out, first, &low));
    ZIPCCL_TRY(add_flip(out, &low));
    for (count = first; count < last; low = high) {
        size_t octave = count;

        while ((octave & (octave - 1)) != 0) /* the power of two below */
            octave &= octave - 1;
        count += octave / SIZES_PER_OCTAVE > 0 ? octave / SIZES_PER_OCTAVE : 1;
        count = count < last ? count : last;
        ZIPCCL_TRY(flip_at(s, out, count, &high));
        ZIPCCL_TRY(between(s, &low, &high, out));
    }
    return ZIPCCL_OK;
}

zipccl_status zipccl_plan_ask(const struct zipccl_plan_query *query,
                              const struct zipccl_cluster *cluster, struct zipccl_plan_answer *out,
                              struct zipccl_error *error)
{
    struct setting s = {.topology = NULL};
    zipccl_status status;

    *out = (struct zipccl_plan_answer){0};
    status = prepare(query, cluster, &s, out, error);
    if (status == ZIPCCL_OK) {
        out->size_bytes = zipccl_plan_size_bytes(query->call.op, query->call.dtype,
                                                 query->call.count, out->nranks);
        status = find_candidates(&s, out, error);
    }
    if (status == ZIPCCL_OK) {
        status = find_flips(&s, out);
        if (status != ZIPCCL_OK)
            fail(query, status, error);
    }
    zipccl_topology_destroy(s.topology);
    return status;
}

void zipccl_plan_answer_release(struct zipccl_plan_answer *answer)
{
    free(answer->rows);
    free(answer->flips);
    zipccl_plan_destroy(answer->plan);
    *answer = (struct zipccl_plan_answer){0};
}
