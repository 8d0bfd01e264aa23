/*
 * exec_sim.c - kernels as executions on simulated hosts, lanes as actors
 *
 * Nothing here yields in the middle of a codec call, so one scratch serves every rank.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/exec_sim.h"

#include "core/reduce.h"

#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/exec.h>
#include <simgrid/host.h>
#include <simgrid/semaphore.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64

/* Work of the step that is being put together. */
struct step_work {
    double codec_s;    /* at the codec's own rate */
    double added_s;    /* additions of a reduction */
    double hbm_bytes;  /* read and written by both */
    double copy_bytes; /* copied */
};

/* Without elements it has to be remembered where sums lie, and over how many ranks. */
struct sum_range {
    const char *first, *end;
    uint32_t nranks;
};

enum { NUM_SUMS = 16 };

struct exec_sim {
    struct zipccl_exec base;
    sg_host_t gpu, sm, hbm;
    double encode_Bps[ZIPCCL_NUM_EFFORTS], decode_Bps[ZIPCCL_NUM_EFFORTS];
    double reduce_Bps; /* 0: additions take no time */
    double launch_s, fence_s, sm_share;
    enum zipccl_isa isa;
    void *scratch;
    const struct zipccl_sim_sizes *sizes; /* NULL: real payload */
    bool in_step;
    struct step_work work;
    struct sum_range sums[NUM_SUMS];
    unsigned next_sum;
    uint32_t nadded, most_summed; /* of the sum under way: its terms, and ranks in one of them */
};

struct zipccl_lane_task {
    void (*fn)(void *);
    void *arg;
    sg_sem_t done;
};

struct zipccl_event {
    uint64_t value;
    uint64_t wanted; /* lowest value that a waiter wants; UINT64_MAX: none */
    uint32_t nwaiting;
    sg_sem_t wake;
};

static struct exec_sim *sim_of(struct zipccl_exec *e)
{
    return (struct exec_sim *)e;
}

/* Start 'amount' of work on 'host', which alone takes 'alone_s'; NULL if there is none. */
static sg_exec_t start_share(sg_host_t host, double amount, double alone_s)
{
    sg_exec_t exec;
    double bound;

    if (amount <= 0)
        return NULL;
    bound = alone_s > 0 ? amount / alone_s : sg_host_get_speed(host);
    exec = sg_actor_exec_init(amount);
    sg_exec_set_host(exec, host);
    if (bound < sg_host_get_speed(host)) /* SimGrid clips higher ones in silence */
        sg_exec_set_bound(exec, bound);
    sg_exec_start(exec);
    return exec;
}

static void wait_shares(sg_exec_t *shares, int n)
{
    for (int i = 0; i < n; i++)
        if (shares[i] != NULL)
            sg_exec_wait(shares[i]);
}

void zipccl_exec_sim_kernel(const struct zipccl_platform *platform, uint32_t gpu, double sm_s,
                            double hbm_bytes, double alone_s)
{
    sg_exec_t shares[2];

    shares[0] = start_share(platform->sm[gpu], sm_s * ZIPCCL_PLATFORM_SPEED, alone_s);
    shares[1] = start_share(platform->hbm[gpu], hbm_bytes, alone_s);
    wait_shares(shares, 2);
}

/* Let the time of the collected work pass. */
static void charge(struct exec_sim *s)
{
    struct step_work work = s->work;
    double alone_s = work.codec_s + work.added_s;
    sg_exec_t shares[3];

    s->work = (struct step_work){0, 0, 0, 0};
    if (alone_s > 0) {
        if (work.codec_s > 0 && s->launch_s > 0)
            sg_actor_sleep_for(s->launch_s);
        shares[0] = start_share(s->gpu, alone_s * ZIPCCL_PLATFORM_SPEED, alone_s);
        shares[1] = start_share(s->sm, alone_s * s->sm_share * ZIPCCL_PLATFORM_SPEED, alone_s);
        shares[2] = start_share(s->hbm, work.hbm_bytes, alone_s);
        wait_shares(shares, 3);
    }
    if (work.copy_bytes > 0) { /* reads and writes */
        shares[0] = start_share(s->hbm, 2 * work.copy_bytes, 0);
        wait_shares(shares, 1);
    }
}

static void add_codec(struct exec_sim *s, double raw_bytes, double wire_bytes, double Bps)
{
    s->work.codec_s += raw_bytes / Bps;
    s->work.hbm_bytes += raw_bytes + wire_bytes;
    if (!s->in_step)
        charge(s);
}

static void sim_step_begin(struct zipccl_exec *e)
{
    sim_of(e)->in_step = true;
}

static void sim_step_end(struct zipccl_exec *e)
{
    struct exec_sim *s = sim_of(e);

    s->in_step = false;
    charge(s);
}

static void sim_fence(struct zipccl_exec *e)
{
    if (sim_of(e)->fence_s > 0)
        sg_actor_sleep_for(sim_of(e)->fence_s);
}

static bool overlaps(const struct sum_range *range, const void *p, size_t nbytes)
{
    return range->nranks > 0 && (const char *)p < range->end &&
           (const char *)p + nbytes > range->first;
}

/* Ranks that are added up in what lies at 'p'. */
static uint32_t nsummed_at(const struct exec_sim *s, const void *p, size_t nbytes)
{
    for (unsigned i = 0; i < NUM_SUMS; i++)
        if (overlaps(&s->sums[i], p, nbytes))
            return s->sums[i].nranks;
    return 1;
}

/* Something else is written there. */
static void forget_sums(struct exec_sim *s, const void *p, size_t nbytes)
{
    for (unsigned i = 0; i < NUM_SUMS; i++)
        if (overlaps(&s->sums[i], p, nbytes))
            s->sums[i].nranks = 0;
}

static void keep_sum(struct exec_sim *s, const void *p, size_t nbytes)
{
    forget_sums(s, p, nbytes);
    s->sums[s->next_sum++ % NUM_SUMS] =
        (struct sum_range){p, (const char *)p + nbytes, s->nadded * s->most_summed};
}

void zipccl_exec_sim_start_call(struct zipccl_exec *exec)
{
    memset(sim_of(exec)->sums, 0, sizeof(sim_of(exec)->sums));
}

/* A header in place of a message, of the size that the samples say. */
static zipccl_status encode_by_pointer(const struct exec_sim *s, enum zipccl_dtype dtype,
                                       const void *src, size_t n, void *dst, size_t capacity,
                                       size_t *nbytes)
{
    size_t mean = 0, longest = 0, bound = zipccl_bound(dtype, n);

    if (bound == 0 || capacity < ZIPCCL_MESSAGE_HEADER_BYTES)
        return ZIPCCL_ERR_ARG;
    s->sizes->bytes(s->sizes->context, s->base.effort, n,
                    nsummed_at(s, src, n * zipccl_dtype_size(dtype)), &mean, &longest);
    if (longest > capacity && capacity < bound) {
        zipccl_message_write_header(dst, dtype, ZIPCCL_MESSAGE_OVERFLOW, n, 0);
        *nbytes = ZIPCCL_MESSAGE_HEADER_BYTES;
        return ZIPCCL_ERR_OVERFLOW;
    }
    mean = mean < ZIPCCL_MESSAGE_HEADER_BYTES ? ZIPCCL_MESSAGE_HEADER_BYTES : mean;
    *nbytes = mean < bound ? mean : bound;
    zipccl_message_write_header(dst, dtype, 0, n, *nbytes);
    return ZIPCCL_OK;
}

static zipccl_status sim_encode(struct zipccl_exec *e, enum zipccl_dtype dtype, const void *src,
                                size_t n, void *dst, size_t capacity, size_t *nbytes)
{
    struct exec_sim *s = sim_of(e);
    zipccl_status status;

    if (s->sizes != NULL)
        status = encode_by_pointer(s, dtype, src, n, dst, capacity, nbytes);
    else
        status = zipccl_encode_effort(s->isa, e->effort, dtype, src, n, dst, capacity, s->scratch,
                                      nbytes);
    if (status == ZIPCCL_OK || status == ZIPCCL_ERR_OVERFLOW)
        add_codec(s, (double)(n * zipccl_dtype_size(dtype)), (double)*nbytes,
                  s->encode_Bps[e->effort]);
    return status;
}

/* One launch for all if it is within a step. */
static zipccl_status sim_encode_many(struct zipccl_exec *e, enum zipccl_dtype dtype,
                                     struct zipccl_slice *slices, size_t nslices)
{
    for (size_t i = 0; i < nslices; i++) {
        struct zipccl_slice *slice = &slices[i];

        slice->status =
            sim_encode(e, dtype, slice->src, slice->n, slice->dst, slice->capacity, &slice->nbytes);
        if (slice->status != ZIPCCL_OK && slice->status != ZIPCCL_ERR_OVERFLOW)
            return slice->status;
    }
    return zipccl_slices_flag(slices, nslices);
}

/* By pointer nothing is coded: the encoder only keeps what the rest needs. */
static zipccl_status sim_encode_early(struct zipccl_exec *e, enum zipccl_dtype dtype,
                                      const void *src, size_t n, void *dst, size_t capacity,
                                      struct zipccl_encoder *encoder)
{
    struct exec_sim *s = sim_of(e);
    struct zipccl_split_cut split = zipccl_split_of(dtype, n);

    if (s->sizes != NULL)
        *encoder = (struct zipccl_encoder){.dtype = dtype,
                                           .elements = src,
                                           .n = n,
                                           .dst = dst,
                                           .capacity = capacity,
                                           .final_end = split.head + split.early};
    else
        ZIPCCL_TRY(zipccl_split_begin(encoder, s->isa, dtype, src, n, dst, capacity, s->scratch));
    add_codec(s, (double)(split.early_n * zipccl_dtype_size(dtype)), (double)split.early,
              s->encode_Bps[e->effort]);
    return ZIPCCL_OK;
}

static zipccl_status sim_encode_rest(struct zipccl_exec *e, struct zipccl_encoder *encoder,
                                     size_t *nbytes)
{
    struct exec_sim *s = sim_of(e);
    size_t n = encoder->n, size = zipccl_dtype_size(encoder->dtype);
    struct zipccl_split_cut split = zipccl_split_of(encoder->dtype, n);
    zipccl_status status;

    if (s->sizes == NULL)
        status = zipccl_split_end(encoder, s->scratch, nbytes);
    else
        status = encode_by_pointer(s, encoder->dtype, encoder->elements, n, encoder->dst,
                                   encoder->capacity, nbytes);
    if (s->sizes != NULL && status == ZIPCCL_OK &&
        !zipccl_split_stands(&split, encoder->dtype, n, *nbytes))
        status = ZIPCCL_ERR_OVERFLOW;
    if (status == ZIPCCL_OK || status == ZIPCCL_ERR_OVERFLOW)
        add_codec(s, (double)((n - split.early_n) * size),
                  status == ZIPCCL_OK ? (double)(*nbytes - split.early) : 0,
                  s->encode_Bps[e->effort]);
    return status;
}

static zipccl_status sim_decode(struct zipccl_exec *e, enum zipccl_dtype dtype, const void *wire,
                                size_t nbytes, void *dst, size_t n)
{
    struct exec_sim *s = sim_of(e);
    zipccl_status status = ZIPCCL_OK;

    if (s->sizes == NULL)
        status = zipccl_decode(s->isa, dtype, wire, nbytes, dst, n, s->scratch);
    else
        forget_sums(s, dst, n * zipccl_dtype_size(dtype));
    if (status == ZIPCCL_OK)
        add_codec(s, (double)(n * zipccl_dtype_size(dtype)), (double)nbytes,
                  s->decode_Bps[e->effort]);
    return status;
}

static void sim_copy(struct zipccl_exec *e, void *dst, const void *src, size_t nbytes)
{
    struct exec_sim *s = sim_of(e);

    if (s->sizes == NULL && nbytes > 0)
        memcpy(dst, src, nbytes);
    else
        forget_sums(s, dst, nbytes);
    s->work.copy_bytes += (double)nbytes;
    if (!s->in_step)
        charge(s);
}

/* Part of the kernel that wrote what comes before: memory traffic, no time of its own. */
static void sim_zero(struct zipccl_exec *e, void *dst, size_t nbytes)
{
    struct exec_sim *s = sim_of(e);

    if (s->sizes == NULL && nbytes > 0)
        memset(dst, 0, nbytes);
    if (s->in_step)
        s->work.hbm_bytes += (double)nbytes;
}

static void sim_reduce_add(struct zipccl_exec *e, enum zipccl_dtype dtype, float *acc,
                           const void *x, size_t n, bool first)
{
    struct exec_sim *s = sim_of(e);
    uint32_t nranks;

    if (s->sizes == NULL) {
        zipccl_accumulate(dtype, acc, x, n, first);
        return;
    }
    nranks = nsummed_at(s, x, n * zipccl_dtype_size(dtype));
    s->nadded = first ? 1 : s->nadded + 1;
    s->most_summed = first || nranks > s->most_summed ? nranks : s->most_summed;
}

/* Without a rate additions take no time, as in cost.h: what they wait for is the decoding. */
static void add_sum(struct exec_sim *s, double nbytes)
{
    if (!(s->reduce_Bps > 0))
        return;
    s->work.added_s += nbytes / s->reduce_Bps;
    s->work.hbm_bytes += 2 * nbytes; /* at least: read and written */
    if (!s->in_step)
        charge(s);
}

static void sim_reduce_round(struct zipccl_exec *e, enum zipccl_dtype dtype, const float *acc,
                             size_t n, uint32_t divisor, void *dst)
{
    if (sim_of(e)->sizes == NULL)
        zipccl_round_sums(dtype, acc, n, divisor, dst);
    else
        keep_sum(sim_of(e), dst, n * zipccl_dtype_size(dtype));
    add_sum(sim_of(e), (double)(n * zipccl_dtype_size(dtype)));
}

static void lane_actor(int argc, char **argv)
{
    struct zipccl_lane_task *task = sg_actor_self_get_data();

    (void)argc;
    (void)argv;
    task->fn(task->arg);
    sg_sem_release(task->done);
}

static zipccl_status sim_spawn(struct zipccl_exec *e, void (*fn)(void *), void *arg,
                               struct zipccl_lane_task **out)
{
    struct zipccl_lane_task *task = calloc(1, sizeof(*task));
    sg_actor_t actor;

    if (task == NULL)
        return ZIPCCL_ERR_NOMEM;
    *task = (struct zipccl_lane_task){fn, arg, sg_sem_init(0)};
    actor = sg_actor_init("lane", sim_of(e)->gpu);
    sg_actor_set_data(actor, task);
    sg_actor_start_(actor, lane_actor, 0, NULL);
    *out = task;
    return ZIPCCL_OK;
}

static void sim_join(struct zipccl_exec *e, struct zipccl_lane_task *task)
{
    (void)e;
    sg_sem_acquire(task->done);
    sg_sem_destroy(task->done);
    free(task);
}

static zipccl_status sim_event_create(struct zipccl_exec *e, struct zipccl_event **out)
{
    struct zipccl_event *event = calloc(1, sizeof(*event));

    (void)e;
    if (event == NULL)
        return ZIPCCL_ERR_NOMEM;
    event->wanted = UINT64_MAX;
    event->wake = sg_sem_init(0);
    *out = event;
    return ZIPCCL_OK;
}

static void sim_event_signal(struct zipccl_exec *e, struct zipccl_event *event, uint64_t value)
{
    (void)e;
    if (value > event->value)
        event->value = value;
    if (event->value < event->wanted)
        return;
    event->wanted = UINT64_MAX; /* who wants more says so again */
    for (uint32_t n = event->nwaiting; n > 0; n--) {
        event->nwaiting--;
        sg_sem_release(event->wake);
    }
}

static void sim_event_wait(struct zipccl_exec *e, struct zipccl_event *event, uint64_t value)
{
    (void)e;
    while (event->value < value) {
        event->wanted = value < event->wanted ? value : event->wanted;
        event->nwaiting++;
        sg_sem_acquire(event->wake);
    }
}

static void sim_event_destroy(struct zipccl_exec *e, struct zipccl_event *event)
{
    (void)e;
    if (event == NULL)
        return;
    sg_sem_destroy(event->wake);
    free(event);
}

/* By pointer only headers are ever written, so large blocks stay without memory behind them. */
static void *sim_alloc(struct zipccl_exec *e, size_t nbytes)
{
    void *p = NULL;

    (void)e;
    return posix_memalign(&p, ALIGNMENT, nbytes > 0 ? nbytes : ALIGNMENT) == 0 ? p : NULL;
}

static void sim_free(struct zipccl_exec *e, void *p)
{
    (void)e;
    free(p);
}

static uint64_t sim_clock_ns(struct zipccl_exec *e)
{
    (void)e;
    return (uint64_t)(simgrid_get_clock() * 1e9);
}

static void sim_destroy(struct zipccl_exec *e)
{
    free(e);
}

static const struct zipccl_exec_ops sim_ops = {
    .name = "sim",
    .encode = sim_encode,
    .decode = sim_decode,
    .copy = sim_copy,
    .spawn = sim_spawn,
    .join = sim_join,
    .event_create = sim_event_create,
    .event_signal = sim_event_signal,
    .event_wait = sim_event_wait,
    .event_destroy = sim_event_destroy,
    .alloc = sim_alloc,
    .free = sim_free,
    .destroy = sim_destroy,
    .clock_ns = sim_clock_ns,
    .zero = sim_zero,
    .reduce_add = sim_reduce_add,
    .reduce_round = sim_reduce_round,
    .step_begin = sim_step_begin,
    .step_end = sim_step_end,
    .fence = sim_fence,
    .encode_many = sim_encode_many,
    .encode_early = sim_encode_early,
    .encode_rest = sim_encode_rest,
};

zipccl_status zipccl_exec_sim_create(const struct zipccl_platform *platform,
                                     const struct zipccl_cluster *cluster, uint32_t gpu,
                                     void *scratch, const struct zipccl_sim_sizes *sizes,
                                     struct zipccl_exec **out)
{
    struct exec_sim *s = calloc(1, sizeof(*s));

    if (s == NULL)
        return ZIPCCL_ERR_NOMEM;
    s->base.ops = &sim_ops;
    s->gpu = platform->gpu[gpu];
    s->sm = platform->sm[gpu];
    s->hbm = platform->hbm[gpu];
    s->encode_Bps[ZIPCCL_EFFORT_FAST] = cluster->encode_Bps;
    s->decode_Bps[ZIPCCL_EFFORT_FAST] = cluster->decode_Bps;
    s->encode_Bps[ZIPCCL_EFFORT_RATIO] = cluster->ratio_encode_Bps;
    s->decode_Bps[ZIPCCL_EFFORT_RATIO] = cluster->ratio_decode_Bps;
    s->reduce_Bps = cluster->reduce_Bps;
    s->launch_s = cluster->codec_launch_s;
    s->fence_s = cluster->fence_s;
    s->sm_share = (double)cluster->codec_sms / cluster->gpu_sms;
    s->isa = zipccl_isa_best();
    s->scratch = scratch;
    s->sizes = sizes;
    *out = &s->base;
    return ZIPCCL_OK;
}
