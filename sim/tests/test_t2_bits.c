/*
 * test_t2_bits.c - every plan moves every bit over simulated messages, and the bytes that 'mem' moves
 *
 * A plain program.  Each world is one child process: its cases run one after the other on the
 * simulated clock, beside the same case over threads, and bytes per (source, destination) are
 * compared.  Inputs, canaries and expected results are those of core's tests of collectives; what
 * our own plans reduce is compared with the reference evaluator, and their bytes with the lowering.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/reduce.h"
#include "core/tests/reduce_run.h"
#include "sim/child.h"
#include "sim/t2.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GPUS_PER_NODE 9

/* What a world has to say, from its child. */
struct totals {
    unsigned cases, failures, resends;
    uint64_t nmessages;
};

struct bits {
    const uint32_t *node_ids;
    uint32_t nranks, gpus[MAX_RANKS];
    struct world threads;
    struct zipccl_t2_world *world;
    struct totals totals;
};

static struct zipccl_cluster cluster(void)
{
    struct zipccl_cluster c = {.name = "test",
                               .nodes = 9,
                               .gpus_per_node = GPUS_PER_NODE,
                               .gpu_sms = 100,
                               .gpu_hbm_Bps = 3000e9,
                               .gpu_flops = 4e14,
                               .nvlink_Bps = 400e9,
                               .nvlink_alpha_s = 2e-6,
                               .nics_per_node = 3,
                               .nic_Bps = 50e9,
                               .nic_alpha_s = 5e-6,
                               .fabric_oversubscription = 1,
                               .channels = 1,
                               .encode_Bps = 400e9,
                               .decode_Bps = 400e9,
                               .codec_sms = 25,
                               .codec_launch_s = 5e-6,
                               .fence_s = 10e-6};
    return c;
}

/* One case, over threads and over messages. */
struct job {
    struct bits *bits;
    const struct coll_case *c;
    const struct zipccl_plan *plan;
};

static zipccl_status open_case(void *context, uint32_t rank, struct zipccl_t2_buffers *out)
{
    struct job *job = context;
    struct buffers *b = malloc(sizeof(*b));

    if (b == NULL)
        return ZIPCCL_ERR_NOMEM;
    buffers_open(b, job->c, job->bits->nranks, rank);
    *out = (struct zipccl_t2_buffers){
        b->send, b->recv, b->displs[0], b->displs[1], b->displs[2], b->displs[3], b};
    return ZIPCCL_OK;
}

static bool close_case(void *context, uint32_t rank, struct zipccl_t2_buffers *buffers)
{
    struct job *job = context;
    struct buffers *b = buffers->owner;
    bool right = buffers_right(b, job->c);

    (void)rank;
    buffers_close(b);
    free(b);
    return right;
}

static bool run_thread(void *context, uint32_t rank)
{
    struct job *job = context;
    struct zipccl_exec *exec = job->bits->threads.exec[rank];
    struct zipccl_t2_buffers b;
    zipccl_status status;
    struct zipccl_run run;
    bool right;

    if (open_case(job, rank, &b) != ZIPCCL_OK)
        abort();
    run = (struct zipccl_run){.plan = job->plan,
                              .send = b.send,
                              .recv = b.recv,
                              .send_counts = b.send_counts,
                              .send_displs = b.send_displs,
                              .recv_counts = b.recv_counts,
                              .recv_displs = b.recv_displs,
                              .tx = exec->ops->alloc(exec, job->plan->tx_bytes),
                              .rx = exec->ops->alloc(exec, job->plan->rx_bytes),
                              .tmp = exec->ops->alloc(exec, job->plan->tmp_bytes)};
    status = zipccl_execute(&run, job->bits->threads.t[rank], exec, NULL);
    right = close_case(job, rank, &b);
    exec->ops->free(exec, run.tx);
    exec->ops->free(exec, run.rx);
    exec->ops->free(exec, run.tmp);
    return status == ZIPCCL_OK && right;
}

static bool same_bytes(const struct bits *b, const struct zipccl_t2_result *result)
{
    for (uint32_t i = 0; i < b->nranks * b->nranks; i++)
        if (result->bytes[i] !=
            zipccl_transport_mem_bytes(b->threads.t[0], i / b->nranks, i % b->nranks)) {
            fprintf(stderr, "%u -> %u: other bytes than over threads\n", i / b->nranks,
                    i % b->nranks);
            return false;
        }
    return true;
}

static void run_case(struct bits *b, const struct coll_case *c)
{
    struct zipccl_call call = case_call(c);
    struct job job = {b, c, NULL};
    struct zipccl_plan *plan;
    uint64_t bytes[MAX_RANKS * MAX_RANKS];
    struct zipccl_t2_result result = {.bytes = bytes};
    struct zipccl_t2_call t2 = {
        .topology = b->threads.topology,
        .gpus = b->gpus,
        .payload = {.open = open_case, .close = close_case, .context = &job}};
    bool ok;

    if (!c->strategy->serves(&call) ||
        c->strategy->build(&call, b->threads.topology, c->channels, c->nchunks, case_class(c), 0,
                           &plan) != ZIPCCL_OK)
        return;
    job.plan = t2.plan = plan;
    zipccl_transport_mem_reset_bytes(b->threads.t[0]);
    ok = world_run(&b->threads, run_thread, &job);
    ok = zipccl_t2_run(b->world, &t2, 1, &result) == ZIPCCL_OK && ok;
    ok = ok && result.status == ZIPCCL_OK && result.right && same_bytes(b, &result);
    b->totals.cases++;
    b->totals.resends += result.stats.raw_resends;
    b->totals.nmessages += result.nmessages;
    if (!ok) {
        b->totals.failures++;
        fprintf(stderr, "%s: ", zipccl_status_string(result.status));
        case_print(c, &b->threads);
    }
    zipccl_plan_destroy(plan);
}

static void run_inputs(struct bits *b, struct coll_case c)
{
    bool uneven = zipccl_is_uneven(c.op);
    bool placeable = c.op == ZIPCCL_ALL_GATHER || c.op == ZIPCCL_BROADCAST;

    for (unsigned k = c.count == 0 ? KIND_MIXED : KIND_SPECIAL; k < NUM_KINDS; k++) {
        c.kind = (enum kind)k;
        c.root = c.op == ZIPCCL_BROADCAST ? (uint32_t)(c.count + k) % b->nranks : 0;
        c.split = c.op == ZIPCCL_ALLTOALLV ? SPLIT_RANDOM : SPLIT_SHIFT;
        c.in_place = placeable && k == KIND_MIXED;
        run_case(b, &c);
        if (uneven && k == KIND_MIXED) {
            c.split = c.op == ZIPCCL_ALLTOALLV ? SPLIT_NONE : SPLIT_ONE_WAY;
            run_case(b, &c);
        }
    }
}

static void run_plans(struct bits *b)
{
    static const enum zipccl_op ops[] = {ZIPCCL_ALL_GATHER, ZIPCCL_ALLTOALL, ZIPCCL_ALLTOALLV,
                                         ZIPCCL_SENDRECV, ZIPCCL_BROADCAST};
    static const size_t counts[] = {0, 1, 31, 32, 33, 1001, 40009};

    for (size_t o = 0; o < sizeof(ops) / sizeof(*ops); o++)
        for (size_t s = 0; zipccl_strategies[s] != NULL; s++)
            for (uint32_t k = 1; k <= (zipccl_strategies[s]->chunked ? 5u : 1u); k += 4)
                for (size_t n = 0; n < (SANITIZED ? 6 : 7); n++) {
                    struct coll_case c = {.op = ops[o],
                                          .strategy = zipccl_strategies[s],
                                          .count = counts[n],
                                          .nchunks = k,
                                          .channels = n % 3 + 1};

                    if (k == 1 || counts[n] >= 33)
                        run_inputs(b, c);
                }
}

/* A reduction, with what each rank sends and must get. */
struct reduction {
    struct bits *bits;
    struct zipccl_call call;
    size_t send_n, recv_n, size;
    bool in_place;
    unsigned char *inputs, *result; /* [nranks][send_n], [send_n] */
};

static zipccl_status open_reduction(void *context, uint32_t rank, struct zipccl_t2_buffers *out)
{
    struct reduction *r = context;
    char *p = malloc((r->send_n + r->recv_n) * r->size + 1);

    if (p == NULL)
        return ZIPCCL_ERR_NOMEM;
    memcpy(p, r->inputs + rank * r->send_n * r->size, r->send_n * r->size);
    out->send = p;
    out->recv = p + r->send_n * r->size;
    if (r->in_place)
        out->recv = p + (r->call.op == ZIPCCL_REDUCE_SCATTER ? rank * r->recv_n * r->size : 0);
    out->owner = p;
    return ZIPCCL_OK;
}

static bool close_reduction(void *context, uint32_t rank, struct zipccl_t2_buffers *buffers)
{
    struct reduction *r = context;
    size_t first = r->call.op == ZIPCCL_REDUCE_SCATTER ? rank * r->recv_n : 0;
    bool right = memcmp(buffers->recv, r->result + first * r->size, r->recv_n * r->size) == 0;

    free(buffers->owner);
    return right;
}

static void run_reduction(struct bits *b, struct zipccl_call call, bool in_place)
{
    struct reduction r = {.bits = b, .call = call, .in_place = in_place};
    struct zipccl_t2_result result = {.bytes = NULL};
    struct zipccl_t2_call t2 = {
        .topology = b->threads.topology,
        .gpus = b->gpus,
        .payload = {.open = open_reduction, .close = close_reduction, .context = &r}};
    const void *sources[MAX_RANKS];
    struct zipccl_plan *plan;
    uint32_t x = 12345;

    r.size = zipccl_dtype_size(call.dtype);
    r.recv_n = call.count;
    r.send_n = call.count * (call.op == ZIPCCL_REDUCE_SCATTER ? b->nranks : 1);
    r.inputs = malloc(b->nranks * r.send_n * r.size + 1);
    r.result = malloc(r.send_n * r.size + 1);
    if (r.inputs == NULL || r.result == NULL ||
        zipccl_strategy_find("native")->build(&call, b->threads.topology, 2, 1, 0, 0, &plan) !=
            ZIPCCL_OK)
        abort();
    /* Any bits: infinities, NaNs and subnormals among them. */
    for (size_t i = 0; i < b->nranks * r.send_n * r.size; i++) {
        x = x * 1664525u + 1013904223u;
        r.inputs[i] = (unsigned char)(x >> 24);
    }
    for (uint32_t i = 0; i < b->nranks; i++)
        sources[i] = r.inputs + i * r.send_n * r.size;
    if (zipccl_reduce(call.dtype, call.redop, sources, b->nranks, r.send_n, r.result) != ZIPCCL_OK)
        abort();
    t2.plan = plan;
    b->totals.cases++;
    if (zipccl_t2_run(b->world, &t2, 1, &result) != ZIPCCL_OK || result.status != ZIPCCL_OK ||
        !result.right) {
        b->totals.failures++;
        fprintf(stderr, "%s of %zu %s on %u ranks: %s\n", zipccl_op_name(call.op), call.count,
                zipccl_dtype_name(call.dtype), b->nranks, zipccl_status_string(result.status));
    }
    zipccl_plan_destroy(plan);
    free(r.inputs);
    free(r.result);
}

static void run_reductions(struct bits *b)
{
    static const enum zipccl_dtype dtypes[] = {ZIPCCL_BFLOAT16, ZIPCCL_FLOAT16, ZIPCCL_FLOAT32};
    static const size_t counts[] = {0, 1, 31, 32, 33, 1001};

    for (unsigned i = 0; i < 2 * 3 * 2 * 6 * 2; i++) {
        struct zipccl_call call = {
            .op = i & 1 ? ZIPCCL_ALL_REDUCE : ZIPCCL_REDUCE_SCATTER,
            .redop = i & 2 ? ZIPCCL_AVG : ZIPCCL_SUM,
            .dtype = dtypes[i / 8 % 3],
            .count = counts[i / 24],
            .has_native = true,
        };

        run_reduction(b, call, i & 4);
    }
}

/* A reduction by a plan of our own. */
struct own_job {
    struct reduce_job job;
    size_t size, send_n;
};

static zipccl_status open_own(void *context, uint32_t rank, struct zipccl_t2_buffers *out)
{
    struct own_job *o = context;
    const struct reduce_case *c = o->job.c;
    size_t send_bytes = o->send_n * o->size;
    char *p = malloc(send_bytes + c->count * o->size + 1);

    if (p == NULL)
        return ZIPCCL_ERR_NOMEM;
    memcpy(p, o->job.inputs->of[rank], send_bytes);
    out->send = out->owner = p;
    out->recv = p + send_bytes;
    if (c->in_place)
        out->recv = p + (c->op == ZIPCCL_REDUCE_SCATTER ? rank * c->count * o->size : 0);
    return ZIPCCL_OK;
}

static bool close_own(void *context, uint32_t rank, struct zipccl_t2_buffers *buffers)
{
    struct own_job *o = context;
    size_t nbytes = o->job.c->count * o->size;
    size_t first = o->job.c->op == ZIPCCL_REDUCE_SCATTER ? rank * nbytes : 0;
    bool right = memcmp(buffers->recv, (char *)o->job.expected + first, nbytes) == 0;

    free(buffers->owner);
    return right;
}

static void run_own(struct bits *b, const struct reduce_case *c, const struct reduce_inputs *inputs)
{
    struct own_job o = {.job = {.world = &b->threads, .c = c, .inputs = inputs},
                        .size = zipccl_dtype_size(c->dtype),
                        .send_n = inputs->n};
    uint64_t bytes[MAX_RANKS * MAX_RANKS];
    struct zipccl_t2_result result = {.bytes = bytes};
    struct zipccl_t2_call t2 = {.topology = b->threads.topology,
                                .gpus = b->gpus,
                                .payload = {.open = open_own, .close = close_own, .context = &o}};
    bool ok;

    if (!reduce_open(&o.job))
        return;
    t2.plan = o.job.plan;
    ok = zipccl_t2_run(b->world, &t2, 1, &result) == ZIPCCL_OK && result.status == ZIPCCL_OK &&
         result.right;
    o.job.stats[0] = result.stats;
    ok = ok && reduce_bytes_right(&o.job, bytes);
    b->totals.cases++;
    b->totals.resends += result.stats.raw_resends;
    b->totals.nmessages += result.nmessages;
    if (!ok) {
        b->totals.failures++;
        fprintf(stderr, "%s: ", zipccl_status_string(result.status));
        reduce_print(&o.job);
    }
    reduce_close(&o.job);
}

static void run_own_reductions(struct bits *b)
{
    static const enum zipccl_dtype dtypes[] = {ZIPCCL_BFLOAT16, ZIPCCL_FLOAT16, ZIPCCL_FLOAT32};
    static const size_t counts[] = {0, 1, 31, 32, 33, 1001};
    static const uint32_t nchunks[] = {1, 2, 5, 7};
    struct reduce_inputs inputs;

    for (unsigned k = 0; k < 2 * 3 * 5 * 6; k += SANITIZED ? 5 : 1) {
        struct reduce_case c = {.op = k & 1 ? ZIPCCL_ALL_REDUCE : ZIPCCL_REDUCE_SCATTER,
                                .dtype = dtypes[k / 2 % 3],
                                .redop = (k / 6 + k / 30) & 1 ? ZIPCCL_AVG : ZIPCCL_SUM,
                                .count = counts[k / 30],
                                .kind = (enum kind)(k / 6 % 5),
                                .nchunks = nchunks[k / 7 % 4],
                                .capacity_class = k / 8 * 5 % ZIPCCL_NUM_CLASSES,
                                .in_place = k / 5 & 1};

        reduce_inputs_open(&inputs, &c, b->nranks);
        for (size_t s = 0; zipccl_strategies[s] != NULL; s++) {
            c.strategy = zipccl_strategies[s];
            if (strcmp(c.strategy->name, "native") != 0)
                run_own(b, &c, &inputs);
        }
        reduce_inputs_close(&inputs);
    }
}

static zipccl_status bits_main(void *context)
{
    struct bits *b = context;

    run_plans(b);
    run_reductions(b);
    run_own_reductions(b);
    return ZIPCCL_OK;
}

static zipccl_status bits_work(void *context, void *result, struct zipccl_error *error)
{
    struct bits *b = context;
    struct zipccl_cluster c = cluster();
    zipccl_status status;

    world_open(&b->threads, b->nranks, b->node_ids);
    for (uint32_t r = 0; r < b->nranks; r++)
        b->gpus[r] =
            b->threads.topology->node_of[r] * GPUS_PER_NODE + b->threads.topology->local_of[r];
    ZIPCCL_TRY(zipccl_t2_open(&c, &b->world, error));
    status = zipccl_t2_main(b->world, bits_main, b, error);
    zipccl_t2_close(b->world);
    world_close(&b->threads);
    memcpy(result, &b->totals, sizeof(b->totals));
    return status;
}

static void run_world(struct totals *sum, uint32_t nranks, const uint32_t *node_ids)
{
    struct bits b = {.node_ids = node_ids, .nranks = nranks};
    struct totals totals = {0, 0, 0, 0};
    struct zipccl_child_task task = {bits_work, &b, &totals, sizeof(totals)};
    struct zipccl_error error = {""};

    if (zipccl_child_run(&task, 1, 1, NULL, NULL, &error) != ZIPCCL_OK) {
        fprintf(stderr, "%s\n", error.text);
        totals.failures++;
    }
    sum->cases += totals.cases;
    sum->failures += totals.failures;
    sum->resends += totals.resends;
    sum->nmessages += totals.nmessages;
}

int main(void)
{
    static const uint32_t even[][2] = {{1, 1}, {1, 2}, {1, 3}, {1, 4}, {1, 5}, {1, 6},
                                       {1, 7}, {1, 8}, {1, 9}, {2, 2}, {2, 4}, {3, 3}};
    static const uint32_t odd[] = ODD_NODES, mixed[] = MIXED_NODES;
    struct totals sum = {0, 0, 0, 0};

    run_world(&sum, sizeof(odd) / sizeof(*odd), odd);
    run_world(&sum, sizeof(mixed) / sizeof(*mixed), mixed);
    for (size_t i = 0; i < sizeof(even) / sizeof(*even); i++) {
        uint32_t node_ids[MAX_RANKS];

        if (SANITIZED && (even[i][1] == 4 || even[i][1] >= 5))
            continue;
        for (uint32_t r = 0; r < even[i][0] * even[i][1]; r++)
            node_ids[r] = r / even[i][1];
        run_world(&sum, even[i][0] * even[i][1], node_ids);
    }
    printf("%u cases, %u failures, %u raw resends, %llu messages\n", sum.cases, sum.failures,
           sum.resends, (unsigned long long)sum.nmessages);
    return sum.failures == 0 && sum.resends > 0 ? 0 : 1;
}
