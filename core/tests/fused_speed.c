/*
 * fused_speed.c - what fused and threaded coding save, next to separate steps in the same run
 *
 * A program to look at, not a test: nothing depends on what it prints.  Variants take turns, so that
 * what else the machine does hits all alike; each figure is a median with the quartiles.
 * Usage: fused_speed [rounds, default 15]
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec_mt.h"
#include "core/reduce.h"
#include "core/tests/codec_data.h"
#include "core/tests/coll_world.h"
#include "core/zipccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_ROUNDS   200
#define NUM_VARIANTS  3
#define SCRATCH_BYTES ((zipccl_codec_scratch_bytes() + 63) / 64 * 64)

static int nrounds = 15;

static double now_s(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_quartiles(const char *name, const char *unit, double *x, int n, double scale)
{
    qsort(x, (size_t)n, sizeof *x, by_value);
    printf("  %-34s %8.3f %s  (%.3f to %.3f)\n", name, scale * x[n / 2], unit, scale * x[n / 4],
           scale * x[3 * n / 4]);
}

static void *allocate(size_t nbytes)
{
    void *p = aligned_alloc(64, (nbytes + 64) / 64 * 64);
    if (!p)
        exit(1);
    memset(p, 0, nbytes);
    return p;
}

/*
 * Reductions.  An exec that reduces in another way than the CPU's does: 'separate' without fused
 * entries; 'add' adds each message to sums in memory with zipccl_decode_add().
 */
struct variant {
    struct zipccl_exec base;
    struct zipccl_exec_ops ops;
    struct zipccl_exec *inner;
    void *scratch;
    float *acc;
};

static zipccl_status add_in_memory(struct zipccl_exec *e, enum zipccl_dtype dtype,
                                   struct zipccl_term *terms, size_t nterms, size_t n,
                                   uint32_t divisor, void *dst)
{
    struct variant *v = (struct variant *)e;
    for (size_t i = 0; i < n; i++)
        v->acc[i] = -0.0f;
    for (size_t t = 0; t < nterms; t++)
        if (terms[t].is_message)
            ZIPCCL_TRY(zipccl_decode_add(zipccl_isa_best(), dtype, terms[t].bytes, terms[t].nbytes,
                                         v->acc, n, v->scratch));
        else
            zipccl_accumulate(dtype, v->acc, terms[t].bytes, n, false);
    zipccl_round_sums(dtype, v->acc, n, divisor, dst);
    return ZIPCCL_OK;
}

static struct zipccl_exec *inner_of(struct zipccl_exec *e)
{
    return ((struct variant *)e)->inner;
}

static zipccl_status pass_encode(struct zipccl_exec *e, enum zipccl_dtype dtype, const void *src,
                                 size_t n, void *dst, size_t capacity, size_t *nbytes)
{
    return inner_of(e)->ops->encode(inner_of(e), dtype, src, n, dst, capacity, nbytes);
}

static zipccl_status pass_decode(struct zipccl_exec *e, enum zipccl_dtype dtype, const void *wire,
                                 size_t nbytes, void *dst, size_t n)
{
    return inner_of(e)->ops->decode(inner_of(e), dtype, wire, nbytes, dst, n);
}

static zipccl_status pass_many(struct zipccl_exec *e, enum zipccl_dtype dtype,
                               struct zipccl_slice *slices, size_t nslices)
{
    return inner_of(e)->ops->encode_many(inner_of(e), dtype, slices, nslices);
}

static zipccl_status pass_sum(struct zipccl_exec *e, enum zipccl_dtype dtype,
                              struct zipccl_term *terms, size_t nterms, size_t n, uint32_t divisor,
                              void *dst)
{
    return inner_of(e)->ops->decode_sum(inner_of(e), dtype, terms, nterms, n, divisor, dst);
}

static zipccl_status pass_spawn(struct zipccl_exec *e, void (*fn)(void *), void *arg,
                                struct zipccl_lane_task **task)
{
    return inner_of(e)->ops->spawn(inner_of(e), fn, arg, task);
}

static void pass_join(struct zipccl_exec *e, struct zipccl_lane_task *task)
{
    inner_of(e)->ops->join(inner_of(e), task);
}

static const char *const variant_names[NUM_VARIANTS] = {"separate steps",
                                                        "decode_add, sums in memory", "decode_sum"};

struct rank_run {
    struct zipccl_comm *comm[NUM_VARIANTS];
    struct variant exec[NUM_VARIANTS];
    void *send, *recv;
};

struct reduction {
    struct world w;
    struct rank_run ranks[MAX_RANKS];
    enum zipccl_dtype dtype;
    size_t count;
    const char *strategy;
    int variant;
};

static bool open_rank(void *context, uint32_t rank)
{
    struct reduction *r = context;
    struct rank_run *run = &r->ranks[rank];
    struct data_random random = {rank};
    size_t size = zipccl_dtype_size(r->dtype), n = r->count * r->w.nranks;
    run->send = allocate(size * n);
    run->recv = allocate(size * r->count);
    data_fill_type(r->dtype, DATA_GAUSS, &random, 0.5, run->send, n);
    for (int v = 0; v < NUM_VARIANTS; v++) {
        struct variant *exec = &run->exec[v];
        struct zipccl_comm_config config;
        exec->inner = r->w.exec[rank];
        exec->ops = *exec->inner->ops;
        exec->ops.encode = pass_encode;
        exec->ops.decode = pass_decode;
        exec->ops.spawn = pass_spawn;
        exec->ops.join = pass_join;
        exec->ops.encode_many = v == 0 ? NULL : pass_many;
        exec->ops.decode_sum = v == 0 ? NULL : v == 1 ? add_in_memory : pass_sum;
        exec->base.ops = &exec->ops;
        exec->scratch = allocate(SCRATCH_BYTES);
        exec->acc = allocate(4 * r->count);
        zipccl_comm_config_init(&config);
        config.strategy = r->strategy;
        config.max_staging_bytes = (size_t)4 << 30;
        if (zipccl_comm_create(r->w.t[rank], &exec->base, &config, &run->comm[v], NULL) !=
            ZIPCCL_OK)
            return false;
    }
    return true;
}

static bool run_rank(void *context, uint32_t rank)
{
    struct reduction *r = context;
    struct rank_run *run = &r->ranks[rank];
    return zipccl_reduce_scatter(run->send, run->recv, r->count, r->dtype, ZIPCCL_SUM,
                                 run->comm[r->variant], NULL) == ZIPCCL_OK;
}

static void close_rank(struct reduction *r, uint32_t rank)
{
    for (int v = 0; v < NUM_VARIANTS; v++) {
        zipccl_comm_destroy(r->ranks[rank].comm[v]);
        free(r->ranks[rank].exec[v].scratch);
        free(r->ranks[rank].exec[v].acc);
    }
    free(r->ranks[rank].send);
    free(r->ranks[rank].recv);
}

static void measure_reduction(enum zipccl_dtype dtype, uint32_t nranks, size_t count,
                              const char *strategy)
{
    static double wall[NUM_VARIANTS][MOST_ROUNDS], cpu[NUM_VARIANTS][MOST_ROUNDS];
    static double ratio[2][MOST_ROUNDS];
    static struct reduction r;
    r = (struct reduction){.dtype = dtype, .count = count, .strategy = strategy};
    world_open_even(&r.w, 1, nranks);
    if (!world_run(&r.w, open_rank, &r))
        exit(1);
    for (int i = -1; i < nrounds; i++) /* the first one makes plans and touches staging */
        for (r.variant = 0; r.variant < NUM_VARIANTS; r.variant++) {
            double start = now_s(CLOCK_MONOTONIC), used = now_s(CLOCK_PROCESS_CPUTIME_ID);
            if (!world_run(&r.w, run_rank, &r))
                exit(1);
            if (i < 0)
                continue;
            wall[r.variant][i] = now_s(CLOCK_MONOTONIC) - start;
            cpu[r.variant][i] = now_s(CLOCK_PROCESS_CPUTIME_ID) - used;
        }
    printf("reduce_scatter, %u ranks as threads, %zu %s a rank, %s\n", nranks, count,
           zipccl_dtype_name(dtype), strategy);
    for (int i = 0; i < nrounds; i++) {
        ratio[0][i] = wall[0][i] / wall[2][i];
        ratio[1][i] = cpu[0][i] / cpu[2][i];
    }
    for (int v = 0; v < NUM_VARIANTS; v++)
        print_quartiles(variant_names[v], "ms of CPU", cpu[v], nrounds, 1e3);
    print_quartiles("separate / decode_sum, CPU", "x", ratio[1], nrounds, 1);
    print_quartiles("separate / decode_sum, wall", "x", ratio[0], nrounds, 1);
    for (uint32_t rank = 0; rank < nranks; rank++)
        close_rank(&r, rank);
    world_close(&r.w);
}

/* Seconds of one call on each number of threads: of the clock, and of all threads together. */
struct times {
    double wall[2][MOST_ROUNDS], cpu[2][MOST_ROUNDS];
};

static void keep_times(struct times *t, int k, int i, double start, double used)
{
    if (i < 0) /* the first round touches the memory */
        return;
    t->wall[k][i] = now_s(CLOCK_MONOTONIC) - start;
    t->cpu[k][i] = now_s(CLOCK_PROCESS_CPUTIME_ID) - used;
}

static void print_times(const char *what, struct times *t, size_t nbytes)
{
    char name[64];
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < nrounds; i++)
            t->wall[k][i] = 1e-9 * (double)nbytes / t->wall[k][i];
        snprintf(name, sizeof name, "%s, %d thread%s", what, k + 1, k ? "s" : "");
        print_quartiles(name, "GB/s", t->wall[k], nrounds, 1);
        printf("  %-34s %8.3f GB/s\n", "  best", t->wall[k][nrounds - 1]);
    }
    for (int i = 0; i < nrounds; i++)
        t->cpu[0][i] = t->cpu[1][i] / t->cpu[0][i];
    print_quartiles("  CPU of 2 threads / of 1", "x", t->cpu[0], nrounds, 1);
}

static void measure_threads(size_t nbytes)
{
    static struct times encode, decode;
    struct zipccl_pool *pool[2];
    struct data_random random = {3};
    size_t n = nbytes / 2, capacity = zipccl_bound(ZIPCCL_BFLOAT16, n), wire_bytes = 0;
    uint16_t *src = allocate(nbytes), *out = allocate(nbytes);
    uint8_t *wire = allocate(capacity);
    enum zipccl_isa isa = zipccl_isa_best();
    data_fill(DATA_GAUSS, &random, 0.5, src, n);
    for (uint32_t k = 0; k < 2; k++)
        if (zipccl_pool_create(k + 1, &pool[k]) != ZIPCCL_OK)
            exit(1);
    for (int i = -1; i < nrounds; i++)
        for (int k = 0; k < 2; k++) {
            double start = now_s(CLOCK_MONOTONIC), used = now_s(CLOCK_PROCESS_CPUTIME_ID);
            if (zipccl_encode_mt(pool[k], isa, ZIPCCL_BFLOAT16, src, n, wire, capacity,
                                 &wire_bytes) != ZIPCCL_OK)
                exit(1);
            keep_times(&encode, k, i, start, used);
            start = now_s(CLOCK_MONOTONIC), used = now_s(CLOCK_PROCESS_CPUTIME_ID);
            if (zipccl_decode_mt(pool[k], isa, ZIPCCL_BFLOAT16, wire, wire_bytes, out, n) !=
                ZIPCCL_OK)
                exit(1);
            keep_times(&decode, k, i, start, used);
        }
    printf("one message of %zu bf16\n", n);
    print_times("encode", &encode, nbytes);
    print_times("decode", &decode, nbytes);
    for (int k = 0; k < 2; k++)
        zipccl_pool_destroy(pool[k]);
    free(src);
    free(out);
    free(wire);
}

static void measure_rows(size_t n, size_t row, size_t stride)
{
    static double direct[MOST_ROUNDS], copied[MOST_ROUNDS];
    struct data_random random = {4};
    size_t capacity = zipccl_bound(ZIPCCL_BFLOAT16, n), nbytes = 0;
    uint16_t *elements = allocate(2 * n), *rows = allocate(2 * (n / row + 1) * stride);
    uint8_t *wire = allocate(capacity), *scratch = allocate(SCRATCH_BYTES);
    enum zipccl_isa isa = zipccl_isa_best();
    data_fill(DATA_GAUSS, &random, 0.5, elements, n);
    zipccl_encode(isa, ZIPCCL_BFLOAT16, elements, n, wire, capacity, scratch, &nbytes);
    for (int i = -1; i < nrounds; i++) {
        double start = now_s(CLOCK_THREAD_CPUTIME_ID), middle;
        zipccl_decode_strided(isa, ZIPCCL_BFLOAT16, wire, nbytes, rows, n, row, stride, scratch);
        middle = now_s(CLOCK_THREAD_CPUTIME_ID);
        zipccl_decode(isa, ZIPCCL_BFLOAT16, wire, nbytes, elements, n, scratch);
        for (size_t k = 0; k * row < n; k++)
            memcpy(rows + k * stride, elements + k * row,
                   2 * (n - k * row < row ? n - k * row : row));
        if (i < 0)
            continue;
        direct[i] = 2e-9 * (double)n / (middle - start);
        copied[i] = 2e-9 * (double)n / (now_s(CLOCK_THREAD_CPUTIME_ID) - middle);
    }
    printf("decode %zu bf16 to rows of %zu at %zu\n", n, row, stride);
    print_quartiles("decode_strided", "GB/s", direct, nrounds, 1);
    print_quartiles("decode, then copy", "GB/s", copied, nrounds, 1);
    free(elements);
    free(rows);
    free(wire);
    free(scratch);
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : nrounds;
    nrounds = rounds < 1 ? 1 : rounds > MOST_ROUNDS ? MOST_ROUNDS : (int)rounds;
    printf("row %s; medians and quartiles of %d rounds\n", zipccl_isa_name(zipccl_isa_best()),
           nrounds);
    measure_reduction(ZIPCCL_BFLOAT16, 2, 8u << 20, "exact direct");
    measure_reduction(ZIPCCL_BFLOAT16, 4, 4u << 20, "exact direct");
    measure_reduction(ZIPCCL_BFLOAT16, 4, 4u << 20, "raw direct");
    measure_reduction(ZIPCCL_FLOAT32, 4, 2u << 20, "exact direct");
    measure_threads(1u << 20);
    measure_threads(64u << 20);
    measure_rows(16u << 20, 1024, 4096);
    measure_rows(16u << 20, 64u << 10, 128u << 10);
    return 0;
}
