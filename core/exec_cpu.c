/*
 * exec_cpu.c - computes with the CPU kernels; lanes are threads
 *
 * A lane's thread is kept for the next run: starting one costs more than a small collective.
 * With several threads the codec's calls go to a pool of its own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec_mt.h"
#include "core/exec.h"
#include "core/reduce.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64

/* A lane's stack: the executor's frames; the codec works in its scratch. */
#define LANE_STACK_BYTES ((size_t)512 << 10)

/* One scratch per lane, so that both may run the codec at once. */
#define NUM_SCRATCH 2

/* Fewer elements are coded before the pool's threads are awake. */
#define POOL_LEAST_N 131072u

struct exec_cpu {
    struct zipccl_exec base;
    enum zipccl_isa isa;
    pthread_mutex_t lock;
    pthread_cond_t returned;
    void *scratch[NUM_SCRATCH];
    bool taken[NUM_SCRATCH];
    struct zipccl_lane_task *idle; /* lanes that have been joined, their threads parked */
    struct zipccl_pool *pool;      /* NULL: one thread */
};

/* A lane: a thread that runs one task after another and is parked in between. */
struct zipccl_lane_task {
    struct zipccl_lane_task *next; /* in the exec's list of idle ones */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void (*fn)(void *); /* NULL: nothing to do, or done */
    void *arg;
    bool stop;
};

struct zipccl_event {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t value;
};

static void *cpu_alloc(struct zipccl_exec *e, size_t nbytes)
{
    void *p = NULL;

    (void)e;
    return posix_memalign(&p, ALIGNMENT, nbytes > 0 ? nbytes : ALIGNMENT) == 0 ? p : NULL;
}

static void cpu_free(struct zipccl_exec *e, void *p)
{
    (void)e;
    free(p);
}

static unsigned take_scratch(struct exec_cpu *cpu)
{
    unsigned i = 0;

    pthread_mutex_lock(&cpu->lock);
    for (;;) {
        for (i = 0; i < NUM_SCRATCH && cpu->taken[i]; i++)
            ;
        if (i < NUM_SCRATCH)
            break;
        pthread_cond_wait(&cpu->returned, &cpu->lock);
    }
    cpu->taken[i] = true;
    pthread_mutex_unlock(&cpu->lock);
    return i;
}

static void return_scratch(struct exec_cpu *cpu, unsigned i)
{
    pthread_mutex_lock(&cpu->lock);
    cpu->taken[i] = false;
    pthread_cond_signal(&cpu->returned);
    pthread_mutex_unlock(&cpu->lock);
}

static zipccl_status cpu_encode(struct zipccl_exec *e, enum zipccl_dtype dtype, const void *src,
                                size_t n, void *dst, size_t capacity, size_t *nbytes)
{
    struct exec_cpu *cpu = (struct exec_cpu *)e;
    unsigned i;
    zipccl_status status;

    if (cpu->pool != NULL && n >= POOL_LEAST_N)
        return zipccl_encode_mt(cpu->pool, cpu->isa, e->effort, dtype, src, n, dst, capacity,
                                nbytes);
    i = take_scratch(cpu);
    status = zipccl_encode_effort(cpu->isa, e->effort, dtype, src, n, dst, capacity,
                                  cpu->scratch[i], nbytes);

    return_scratch(cpu, i);
    return status;
}

static zipccl_status cpu_decode(struct zipccl_exec *e, enum zipccl_dtype dtype, const void *wire,
                                size_t nbytes, void *dst, size_t n)
{
    struct exec_cpu *cpu = (struct exec_cpu *)e;
    unsigned i;
    zipccl_status status;

    if (cpu->pool != NULL && n >= POOL_LEAST_N)
        return zipccl_decode_mt(cpu->pool, cpu->isa, dtype, wire, nbytes, dst, n);
    i = take_scratch(cpu);
    status = zipccl_decode(cpu->isa, dtype, wire, nbytes, dst, n, cpu->scratch[i]);
    return_scratch(cpu, i);
    return status;
}

static zipccl_status cpu_encode_many(struct zipccl_exec *e, enum zipccl_dtype dtype,
                                     struct zipccl_slice *slices, size_t nslices)
{
    struct exec_cpu *cpu = (struct exec_cpu *)e;
    unsigned i;
    size_t n = 0;
    zipccl_status status;

    for (size_t k = 0; k < nslices; k++)
        n += slices[k].n;
    if (cpu->pool != NULL && n >= POOL_LEAST_N)
        return zipccl_encode_many_mt(cpu->pool, cpu->isa, e->effort, dtype, slices, nslices);
    i = take_scratch(cpu);
    status = zipccl_encode_many(cpu->isa, e->effort, dtype, slices, nslices, cpu->scratch[i]);
    return_scratch(cpu, i);
    return status;
}

static zipccl_status cpu_decode_sum(struct zipccl_exec *e, enum zipccl_dtype dtype,
                                    struct zipccl_term *terms, size_t nterms, size_t n,
                                    uint32_t divisor, void *dst)
{
    struct exec_cpu *cpu = (struct exec_cpu *)e;
    unsigned i;
    zipccl_status status;

    if (cpu->pool != NULL && n >= POOL_LEAST_N)
        return zipccl_decode_sum_mt(cpu->pool, cpu->isa, dtype, terms, nterms, n, divisor, dst);
    i = take_scratch(cpu);
    status = zipccl_decode_sum(cpu->isa, dtype, terms, nterms, n, divisor, dst, cpu->scratch[i]);
    return_scratch(cpu, i);
    return status;
}

/* Parts are coded by the lane that asks, whatever the pool. */
static zipccl_status cpu_encode_early(struct zipccl_exec *e, enum zipccl_dtype dtype,
                                      const void *src, size_t n, void *dst, size_t capacity,
                                      struct zipccl_encoder *encoder)
{
    struct exec_cpu *cpu = (struct exec_cpu *)e;
    unsigned i = take_scratch(cpu);
    zipccl_status status =
        zipccl_split_begin(encoder, cpu->isa, dtype, src, n, dst, capacity, cpu->scratch[i]);

    return_scratch(cpu, i);
    return status;
}

static zipccl_status cpu_encode_rest(struct zipccl_exec *e, struct zipccl_encoder *encoder,
                                     size_t *nbytes)
{
    struct exec_cpu *cpu = (struct exec_cpu *)e;
    unsigned i = take_scratch(cpu);
    zipccl_status status = zipccl_split_end(encoder, cpu->scratch[i], nbytes);

    return_scratch(cpu, i);
    return status;
}

static void cpu_copy(struct zipccl_exec *e, void *dst, const void *src, size_t nbytes)
{
    (void)e;
    if (nbytes > 0)
        memcpy(dst, src, nbytes);
}

static void cpu_zero(struct zipccl_exec *e, void *dst, size_t nbytes)
{
    (void)e;
    if (nbytes > 0)
        memset(dst, 0, nbytes);
}

static void cpu_reduce_add(struct zipccl_exec *e, enum zipccl_dtype dtype, float *acc,
                           const void *x, size_t n, bool first)
{
    (void)e;
    zipccl_accumulate(dtype, acc, x, n, first);
}

static void cpu_reduce_round(struct zipccl_exec *e, enum zipccl_dtype dtype, const float *acc,
                             size_t n, uint32_t divisor, void *dst)
{
    (void)e;
    zipccl_round_sums(dtype, acc, n, divisor, dst);
}

static void *lane_main(void *p)
{
    struct zipccl_lane_task *task = p;

    pthread_mutex_lock(&task->lock);
    for (;;) {
        while (task->fn == NULL && !task->stop)
            pthread_cond_wait(&task->changed, &task->lock);
        if (task->stop)
            break;
        pthread_mutex_unlock(&task->lock);
        task->fn(task->arg);
        pthread_mutex_lock(&task->lock);
        task->fn = NULL;
        pthread_cond_broadcast(&task->changed);
    }
    pthread_mutex_unlock(&task->lock);
    return NULL;
}

static void free_task(struct zipccl_lane_task *task)
{
    pthread_cond_destroy(&task->changed);
    pthread_mutex_destroy(&task->lock);
    free(task);
}

static struct zipccl_lane_task *start_lane(void)
{
    struct zipccl_lane_task *task = calloc(1, sizeof *task);
    pthread_attr_t attributes;
    bool refused;

    if (task == NULL || pthread_attr_init(&attributes) != 0) {
        free(task);
        return NULL;
    }
    pthread_mutex_init(&task->lock, NULL);
    pthread_cond_init(&task->changed, NULL);
    refused = pthread_attr_setstacksize(&attributes, LANE_STACK_BYTES) != 0 ||
              pthread_create(&task->thread, &attributes, lane_main, task) != 0;
    pthread_attr_destroy(&attributes);
    if (refused) {
        free_task(task);
        return NULL;
    }
    return task;
}

static zipccl_status cpu_spawn(struct zipccl_exec *e, void (*fn)(void *), void *arg,
                               struct zipccl_lane_task **out)
{
    struct exec_cpu *cpu = (struct exec_cpu *)e;
    struct zipccl_lane_task *task;

    pthread_mutex_lock(&cpu->lock);
    task = cpu->idle;
    if (task != NULL)
        cpu->idle = task->next;
    pthread_mutex_unlock(&cpu->lock);
    if (task == NULL)
        task = start_lane();
    if (task == NULL)
        return ZIPCCL_ERR_NOMEM;
    pthread_mutex_lock(&task->lock);
    task->fn = fn;
    task->arg = arg;
    pthread_cond_broadcast(&task->changed);
    pthread_mutex_unlock(&task->lock);
    *out = task;
    return ZIPCCL_OK;
}

static void cpu_join(struct zipccl_exec *e, struct zipccl_lane_task *task)
{
    struct exec_cpu *cpu = (struct exec_cpu *)e;

    pthread_mutex_lock(&task->lock);
    while (task->fn != NULL)
        pthread_cond_wait(&task->changed, &task->lock);
    pthread_mutex_unlock(&task->lock);
    pthread_mutex_lock(&cpu->lock);
    task->next = cpu->idle;
    cpu->idle = task;
    pthread_mutex_unlock(&cpu->lock);
}

static void stop_lane(struct zipccl_lane_task *task)
{
    pthread_mutex_lock(&task->lock);
    task->stop = true;
    pthread_cond_broadcast(&task->changed);
    pthread_mutex_unlock(&task->lock);
    pthread_join(task->thread, NULL);
    free_task(task);
}

static zipccl_status cpu_event_create(struct zipccl_exec *e, struct zipccl_event **out)
{
    struct zipccl_event *event = calloc(1, sizeof *event);

    (void)e;
    if (event == NULL)
        return ZIPCCL_ERR_NOMEM;
    pthread_mutex_init(&event->lock, NULL);
    pthread_cond_init(&event->changed, NULL);
    *out = event;
    return ZIPCCL_OK;
}

static void cpu_event_signal(struct zipccl_exec *e, struct zipccl_event *event, uint64_t value)
{
    (void)e;
    pthread_mutex_lock(&event->lock);
    if (value > event->value)
        event->value = value;
    pthread_cond_broadcast(&event->changed);
    pthread_mutex_unlock(&event->lock);
}

static void cpu_event_wait(struct zipccl_exec *e, struct zipccl_event *event, uint64_t value)
{
    (void)e;
    pthread_mutex_lock(&event->lock);
    while (event->value < value)
        pthread_cond_wait(&event->changed, &event->lock);
    pthread_mutex_unlock(&event->lock);
}

static void cpu_event_destroy(struct zipccl_exec *e, struct zipccl_event *event)
{
    (void)e;
    if (event == NULL)
        return;
    pthread_cond_destroy(&event->changed);
    pthread_mutex_destroy(&event->lock);
    free(event);
}

static void cpu_destroy(struct zipccl_exec *e)
{
    struct exec_cpu *cpu = (struct exec_cpu *)e;

    if (cpu == NULL)
        return;
    while (cpu->idle != NULL) {
        struct zipccl_lane_task *next = cpu->idle->next;

        stop_lane(cpu->idle);
        cpu->idle = next;
    }
    for (unsigned i = 0; i < NUM_SCRATCH; i++)
        free(cpu->scratch[i]);
    zipccl_pool_destroy(cpu->pool);
    pthread_cond_destroy(&cpu->returned);
    pthread_mutex_destroy(&cpu->lock);
    free(cpu);
}

static const struct zipccl_exec_ops cpu_ops = {
    .name = "cpu",
    .encode = cpu_encode,
    .decode = cpu_decode,
    .copy = cpu_copy,
    .spawn = cpu_spawn,
    .join = cpu_join,
    .event_create = cpu_event_create,
    .event_signal = cpu_event_signal,
    .event_wait = cpu_event_wait,
    .event_destroy = cpu_event_destroy,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .destroy = cpu_destroy,
    .zero = cpu_zero,
    .reduce_add = cpu_reduce_add,
    .reduce_round = cpu_reduce_round,
    .encode_many = cpu_encode_many,
    .decode_sum = cpu_decode_sum,
    .encode_early = cpu_encode_early,
    .encode_rest = cpu_encode_rest,
};

/* Memory and threads of an exec that is otherwise ready. */
static zipccl_status prepare(struct exec_cpu *cpu, uint32_t nthreads)
{
    for (unsigned i = 0; i < NUM_SCRATCH; i++) {
        cpu->scratch[i] = cpu_alloc(&cpu->base, zipccl_codec_scratch_bytes());
        if (cpu->scratch[i] == NULL)
            return ZIPCCL_ERR_NOMEM;
    }
    return nthreads > 1 ? zipccl_pool_create(nthreads, &cpu->pool) : ZIPCCL_OK;
}

zipccl_status zipccl_exec_cpu_create_mt(enum zipccl_isa isa, uint32_t nthreads,
                                        struct zipccl_exec **out)
{
    struct exec_cpu *cpu;
    zipccl_status status;

    if (out == NULL || !zipccl_isa_usable(isa) || nthreads == 0 || nthreads > ZIPCCL_MAX_THREADS)
        return ZIPCCL_ERR_ARG;
    cpu = calloc(1, sizeof *cpu);
    if (cpu == NULL)
        return ZIPCCL_ERR_NOMEM;
    cpu->base.ops = &cpu_ops;
    cpu->isa = isa;
    pthread_mutex_init(&cpu->lock, NULL);
    pthread_cond_init(&cpu->returned, NULL);
    status = prepare(cpu, nthreads);
    if (status != ZIPCCL_OK) {
        cpu_destroy(&cpu->base);
        return status;
    }
    *out = &cpu->base;
    return ZIPCCL_OK;
}

zipccl_status zipccl_exec_cpu_create(enum zipccl_isa isa, struct zipccl_exec **out)
{
    return zipccl_exec_cpu_create_mt(isa, 1, out);
}
