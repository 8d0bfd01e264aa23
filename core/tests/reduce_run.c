/*
 * reduce_run.c - inputs, guarded buffers and expected bytes of reductions
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/reduce_run.h"

#include "core/lower.h"
#include "core/reduce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Elements of canary around a buffer; odd, so that buffers are aligned to an element only. */
#define GAP    33
#define CANARY 0xa5

static void *allocate(size_t nbytes)
{
    void *p = malloc(nbytes + 1);

    if (p == NULL)
        abort();
    return p;
}

/* From a bf16 pattern of the same kind: more bits for fp32, other special patterns for fp16. */
static uint32_t convert(enum zipccl_dtype dtype, enum kind kind, uint16_t x, size_t i)
{
    uint32_t low = (uint32_t)(i * 2654435761u) >> 16;

    if (dtype == ZIPCCL_FLOAT32)
        return (uint32_t)x << 16 | ((x & 0x7fff) == 0x7f80 && i % 2 == 0 ? 0 : low);
    if ((x & 0x7fff) == 0x7f80)
        return (x & 0x8000u) | 0x7c00;
    return kind == KIND_RANDOM ? x : zipccl_fp16_from_float(zipccl_bf16_to_float(x));
}

/*
 * Half of the values are large and of one magnitude, so that they cancel in pairs and what was added
 * in between is lost.  Sums of bf16 values that are near each other are exact in fp32, in any order.
 */
static void make_cancel(enum zipccl_dtype dtype, uint32_t rank, size_t n, uint16_t *block)
{
    struct coll_case source = {.kind = KIND_GAUSS};
    uint16_t *large = allocate(n * sizeof *large), octaves = dtype == ZIPCCL_FLOAT16 ? 19 : 30;

    case_block(&source, MAX_RANKS, TO_ALL, 0, n, large);
    for (size_t i = 0; i < n; i++) {
        uint32_t h = ((uint32_t)i * 2654435761u) ^ ((rank + 1) * 2246822519u);

        h ^= h >> 15;
        h *= 2246822519u;
        if (h >> 31)
            block[i] = (uint16_t)(((large[i] & 0x7fffu) + (octaves << 7)) | (h >> 15 & 0x8000u));
    }
    free(large);
}

void reduce_inputs_open(struct reduce_inputs *in, const struct reduce_case *c, uint32_t nranks)
{
    struct coll_case source = {.kind = c->kind == KIND_CANCEL ? KIND_GAUSS : c->kind};
    size_t size = zipccl_dtype_size(c->dtype);

    in->nranks = nranks;
    in->n = c->op == ZIPCCL_REDUCE_SCATTER ? c->count * nranks : c->count;
    for (uint32_t r = 0; r < nranks; r++) {
        uint16_t *block = allocate(in->n * sizeof *block);

        in->of[r] = allocate(in->n * size);
        case_block(&source, r, TO_ALL, 0, in->n, block);
        if (c->kind == KIND_CANCEL)
            make_cancel(c->dtype, r, in->n, block);
        for (size_t i = 0; i < in->n; i++) {
            uint32_t wide =
                c->dtype == ZIPCCL_BFLOAT16 ? block[i] : convert(c->dtype, c->kind, block[i], i);
            uint16_t half = (uint16_t)wide;

            if (size == 4)
                memcpy((uint32_t *)in->of[r] + i, &wide, sizeof wide);
            else
                memcpy((uint16_t *)in->of[r] + i, &half, sizeof half);
        }
        free(block);
    }
}

void reduce_inputs_close(struct reduce_inputs *in)
{
    for (uint32_t r = 0; r < in->nranks; r++)
        free(in->of[r]);
}

struct zipccl_call reduce_call(const struct reduce_case *c)
{
    return (struct zipccl_call){
        .op = c->op, .dtype = c->dtype, .redop = c->redop, .count = c->count};
}

static struct zipccl_plan *build(const struct reduce_job *job)
{
    const struct reduce_case *c = job->c;
    struct zipccl_call call = reduce_call(c);
    struct zipccl_plan *plan;

    if (!c->strategy->serves(&call) ||
        c->strategy->build(&call, job->world->topology, 1, c->nchunks, c->capacity_class, 0,
                           &plan) != ZIPCCL_OK)
        return NULL;
    return plan;
}

bool reduce_open(struct reduce_job *job)
{
    job->plan = build(job);
    if (job->plan == NULL)
        return false;
    ref_init(&job->ref, job->plan, job->world->topology,
             (const void *const *)(void *)job->inputs->of);
    job->expected = allocate(job->inputs->n * zipccl_dtype_size(job->c->dtype));
    ref_result(&job->ref, 0, job->inputs->n, job->expected);
    return true;
}

void reduce_close(struct reduce_job *job)
{
    free(job->expected);
    zipccl_plan_destroy(job->plan);
}

static unsigned char *guarded(size_t nbytes, size_t gap)
{
    unsigned char *p = allocate(nbytes + 2 * gap);

    memset(p, CANARY, nbytes + 2 * gap);
    return p;
}

static bool is_guarded(const unsigned char *p, size_t nbytes, size_t gap)
{
    for (size_t i = 0; i < gap; i++)
        if (p[i] != CANARY || p[gap + nbytes + i] != CANARY)
            return false;
    return true;
}

static void *staging(struct zipccl_exec *exec, size_t nbytes)
{
    void *p = exec->ops->alloc(exec, nbytes);

    if (p == NULL)
        abort();
    memset(p, 0x5a, nbytes); /* stale memory must not matter */
    return p;
}

static zipccl_status execute(struct reduce_job *job, uint32_t rank, const void *send, void *recv)
{
    struct zipccl_exec *exec = job->execs[rank];
    struct zipccl_plan *plan = build(job); /* every rank builds its own */
    struct zipccl_run run = {.plan = plan, .send = send, .recv = recv};
    zipccl_status status;

    if (plan == NULL)
        abort();
    run.tx = staging(exec, plan->tx_bytes);
    run.rx = staging(exec, plan->rx_bytes);
    run.tmp = staging(exec, plan->tmp_bytes);
    run.acc = staging(exec, plan->acc_bytes);
    status = zipccl_execute(&run, job->transports[rank], exec, &job->stats[rank]);
    exec->ops->free(exec, run.tx);
    exec->ops->free(exec, run.rx);
    exec->ops->free(exec, run.tmp);
    exec->ops->free(exec, run.acc);
    zipccl_plan_destroy(plan);
    return status;
}

static bool run_rank(void *context, uint32_t rank)
{
    struct reduce_job *job = context;
    const struct reduce_case *c = job->c;
    size_t size = zipccl_dtype_size(c->dtype), gap = GAP * size;
    size_t send_bytes = job->inputs->n * size, recv_bytes = c->count * size;
    size_t own = c->op == ZIPCCL_REDUCE_SCATTER ? rank * recv_bytes : 0;
    unsigned char *send = guarded(send_bytes, gap), *recv = guarded(recv_bytes, gap);
    unsigned char *want = allocate(send_bytes), *out = c->in_place ? send + gap + own : recv + gap;

    memcpy(send + gap, job->inputs->of[rank], send_bytes);
    memcpy(want, job->inputs->of[rank], send_bytes);
    job->status[rank] = execute(job, rank, send + gap, out);
    if (c->in_place)
        memcpy(want + own, (char *)job->expected + own, recv_bytes);
    job->right[rank] = memcmp(out, (char *)job->expected + own, recv_bytes) == 0 &&
                       memcmp(send + gap, want, send_bytes) == 0 &&
                       is_guarded(send, send_bytes, gap) && is_guarded(recv, recv_bytes, gap);
    if (job->leave)
        job->transports[rank]->ops->abort(job->transports[rank]);
    free(send);
    free(recv);
    free(want);
    return job->status[rank] == ZIPCCL_OK && job->right[rank];
}

bool reduce_run(struct reduce_job *job)
{
    bool ok = world_run(job->world, run_rank, job);

    world_share(job->world, job->stats, sizeof *job->stats);
    world_share(job->world, job->status, sizeof *job->status);
    world_share(job->world, job->right, sizeof *job->right);
    return ok;
}

void reduce_print(const struct reduce_job *job)
{
    const struct reduce_case *c = job->c;

    fprintf(stderr, "%s %s %s, %u ranks on %u nodes, \"%s\", %u chunks, count %zu, input %d%s\n",
            zipccl_op_name(c->op), zipccl_dtype_name(c->dtype), zipccl_redop_name(c->redop),
            job->world->nranks, job->world->topology->nnodes, c->strategy->name, c->nchunks,
            c->count, (int)c->kind, c->in_place ? ", in place" : "");
    for (uint32_t r = 0; r < job->world->nranks; r++)
        if (job->status[r] != ZIPCCL_OK || !job->right[r])
            fprintf(stderr, "  rank %u: %s, buffers %s\n", r, zipccl_status_string(job->status[r]),
                    job->right[r] ? "right" : "wrong");
}

/* What the lowering is asked about: the messages of one step. */
struct expected {
    const struct reduce_job *job;
    const struct zipccl_step *step;
    uint64_t bytes[MAX_RANKS * MAX_RANKS];
    void *block, *message, *scratch;
};

/* The elements of the message: inputs, a node's sums, or the result. */
static void fetch(struct expected *e, uint32_t src, uint32_t dst, size_t n)
{
    const struct reduce_job *job = e->job;
    const struct zipccl_plan *plan = job->plan;
    size_t size = zipccl_dtype_size(job->c->dtype);
    uint32_t owner = e->step->pattern == ZIPCCL_PATTERN_ALL_GATHER ? src : dst;
    size_t block = plan->shard_n > 0 ? plan->shard_n : plan->count;
    size_t first = owner * block + e->step->chunk * plan->chunk_n;

    if (e->step->pattern == ZIPCCL_PATTERN_ALL_GATHER)
        memcpy(e->block, (const char *)job->expected + first * size, n * size);
    else if (e->step->group == ZIPCCL_GROUP_RAIL)
        ref_node_sum(&job->ref, job->world->topology->node_of[src], first, n, e->block);
    else
        memcpy(e->block, (const char *)job->inputs->of[src] + first * size, n * size);
}

static zipccl_status encode(struct expected *e, uint32_t src, uint32_t dst, size_t n,
                            size_t capacity, size_t *nbytes)
{
    fetch(e, src, dst, n);
    return zipccl_encode(ZIPCCL_ISA_SCALAR, e->job->c->dtype, e->block, n, e->message, capacity,
                         e->scratch, nbytes);
}

static size_t message_bytes(void *context, uint32_t src, uint32_t dst, size_t n)
{
    struct expected *e = context;
    size_t nbytes = 0;

    if (encode(e, src, dst, n, zipccl_bound(e->job->c->dtype, n), &nbytes) != ZIPCCL_OK)
        abort();
    return nbytes;
}

static int message_overflows(void *context, uint32_t src, uint32_t dst, size_t n, size_t capacity)
{
    size_t nbytes;

    return encode(context, src, dst, n, capacity, &nbytes) == ZIPCCL_ERR_OVERFLOW;
}

static void add_flow(void *context, uint32_t src, uint32_t dst, uint64_t nbytes)
{
    struct expected *e = context;

    e->bytes[src * e->job->world->nranks + dst] += nbytes;
}

static void expect_flows(struct expected *e)
{
    struct zipccl_wire_sizes sizes = {
        .bytes = message_bytes, .context = e, .overflows = message_overflows};
    const struct zipccl_plan *plan = e->job->plan;
    uint32_t nrounds;

    for (uint32_t i = 0; i < plan->nsteps; i++) {
        e->step = &plan->steps[i];
        if (e->step->kind != ZIPCCL_STEP_EXCHANGE && e->step->kind != ZIPCCL_STEP_SIZES)
            continue;
        if (zipccl_lower(plan, i, e->job->world->topology, &sizes, add_flow, e, &nrounds) !=
            ZIPCCL_OK)
            abort();
    }
}

bool reduce_bytes_right(const struct reduce_job *job, const uint64_t *bytes)
{
    enum zipccl_dtype dtype = job->c->dtype;
    size_t n = job->plan->chunk_n;
    struct expected e = {.job = job,
                         .block = allocate(n * zipccl_dtype_size(dtype)),
                         .message = allocate(zipccl_bound(dtype, n)),
                         .scratch =
                             aligned_alloc(64, (zipccl_codec_scratch_bytes() + 63) / 64 * 64)};
    uint32_t nranks = job->world->nranks;
    uint64_t said = 0, sent = 0;
    bool right = true;

    if (e.scratch == NULL)
        abort();
    expect_flows(&e);
    for (uint32_t i = 0; i < nranks * nranks; i++) {
        sent += bytes[i];
        if (bytes[i] == e.bytes[i])
            continue;
        fprintf(stderr, "%u -> %u: %llu bytes, the lowering says %llu\n", i / nranks, i % nranks,
                (unsigned long long)bytes[i], (unsigned long long)e.bytes[i]);
        right = false;
    }
    for (uint32_t r = 0; r < nranks; r++)
        said += job->stats[r].wire_bytes;
    if (said != sent)
        fprintf(stderr, "statistics say %llu bytes, %llu were sent\n", (unsigned long long)said,
                (unsigned long long)sent);
    free(e.block);
    free(e.message);
    free(e.scratch);
    return right && said == sent;
}
