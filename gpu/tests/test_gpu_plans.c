/*
 * test_gpu_plans.c - every strategy on the GPU back end gives what core gives on the CPU
 *
 * For each op and strategy: the same bits in every byte of the receive buffer, the same plan, the same bytes
 * handed over, overflows and resends; and what NCCL's double counts on the wire is what the plan's
 * lowering says.  With the argument "gate" streams wait at a gate instead of the host.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/lower.h"
#include "gpu/tests/emu/emu.h"
#include "gpu/tests/gpu_calls_run.h"

#include <stdio.h>
#include <string.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static enum zipccl_gate_mode gate; /* of all communicators */

struct setting {
    const char *strategy;
    uint32_t nchunks;
    enum zipccl_effort effort;
    struct gpu_case c;
    uint64_t wire[MAX_RANKS]; /* bytes that each rank handed over in the second call */
    uint64_t sent;            /* the double's counter before it */
};

static void expect_same_stats(struct gpu_rank *r, const struct setting *s,
                              struct zipccl_gpu_comm *gpu, struct zipccl_comm *host)
{
    struct zipccl_comm_stats a, b;

    zipccl_comm_settle(zipccl_gpu_core(gpu));
    zipccl_comm_get_stats(zipccl_gpu_core(gpu), &a);
    zipccl_comm_get_stats(host, &b);
    EXPECT(r, a.raw_bytes == b.raw_bytes);
    EXPECT(r, a.overflows == b.overflows);
    EXPECT(r, a.raw_resends == b.raw_resends);
    if (strcmp(s->strategy, "exact ring") == 0) /* messages are rounded up to what kernels want */
        EXPECT(r, a.wire_bytes >= b.wire_bytes && a.wire_bytes < b.wire_bytes + 16 * 64 * 8);
    else
        EXPECT(r, a.wire_bytes == b.wire_bytes);
    if (zipccl_comm_last_plan(host) != NULL && s->c.op != ZIPCCL_ALLTOALLV)
        EXPECT(r, zipccl_plan_digest(zipccl_gpu_last_plan(gpu)) ==
                      zipccl_plan_digest(zipccl_comm_last_plan(host)));
    if (s->effort == ZIPCCL_EFFORT_RATIO && EXPECT(r, zipccl_gpu_last_plan(gpu) != NULL))
        EXPECT(r, zipccl_gpu_last_plan(gpu)->effort == ZIPCCL_EFFORT_RATIO);
}

static void add_flow(void *context, uint32_t src, uint32_t dst, uint64_t nbytes)
{
    (void)src;
    (void)dst;
    *(uint64_t *)context += nbytes;
}

/* Bytes of all exchanges of 'plan' by its lowering; what does not depend on the data. */
static uint64_t lowered(const struct zipccl_plan *plan, const struct zipccl_topology *topology)
{
    uint64_t total = 0;
    uint32_t nrounds;

    for (uint32_t i = 0; i < plan->nsteps; i++)
        if (plan->steps[i].kind == ZIPCCL_STEP_EXCHANGE &&
            plan->steps[i].raw_of == ZIPCCL_STEP_NONE)
            zipccl_lower(plan, i, topology, NULL, add_flow, &total, &nrounds);
    return total;
}

/* The double's counter grew by what the ranks say that they handed over. */
static void expect_wire(struct gpu_rank *r, struct setting *s, const struct zipccl_plan *plan)
{
    struct emu_stats stats;
    uint64_t total = 0;
    bool native = plan == NULL;

    for (uint32_t i = 0; plan != NULL && i < plan->nsteps; i++)
        native = native || plan->steps[i].kind == ZIPCCL_STEP_NATIVE;
    if (r->rank != 0 || native)
        return;
    emu_get_stats(&stats);
    for (uint32_t p = 0; p < r->world->nranks; p++)
        total += s->wire[p];
    EXPECT(r, stats.nccl_sent - s->sent == total);
    if (s->c.spoiled == 0 && s->c.op != ZIPCCL_ALLTOALLV && strstr(s->strategy, "exact") == NULL)
        EXPECT(r, lowered(plan, r->world->topology) == total);
}

static uint64_t wire_so_far(struct zipccl_gpu_comm *gpu)
{
    struct zipccl_comm_stats stats;

    zipccl_comm_settle(zipccl_gpu_core(gpu));
    zipccl_comm_get_stats(zipccl_gpu_core(gpu), &stats);
    return stats.wire_bytes;
}

static void run_twice(struct gpu_rank *r, struct setting *s, struct zipccl_gpu_comm *gpu,
                      struct zipccl_comm *host, struct gpu_buffers *b)
{
    for (unsigned call = 0; call < 2 && r->ok; call++) {
        uint64_t before = wire_so_far(gpu);
        struct emu_stats stats;

        gpu_case_host(r, &s->c, b, host);
        gpu_barrier(r);
        if (r->rank == 0) {
            emu_get_stats(&stats);
            s->sent = stats.nccl_sent;
        }
        gpu_barrier(r);
        if (!EXPECT(r, gpu_case_call(r, &s->c, b, gpu) == ZIPCCL_OK))
            fprintf(stderr, "%s\n", zipccl_gpu_error(gpu));
        EXPECT(r, gpu_case_right(r, &s->c, b));
        s->wire[r->rank] = wire_so_far(gpu) - before;
        gpu_barrier(r);
        if (call == 1) /* in the first one ranks compared their plans */
            expect_wire(r, s, zipccl_gpu_last_plan(gpu));
        gpu_barrier(r);
    }
    expect_same_stats(r, s, gpu, host);
    if (strcmp(s->strategy, "fixed two-level") == 0 && s->c.op == ZIPCCL_ALL_GATHER &&
        r->world->topology->nnodes == 2 && r->world->nranks == 4)
        EXPECT(r, gpu->transport->parts[0] != NULL && gpu->transport->parts[1] != NULL);
}

static void run_setting(struct gpu_rank *r, void *context)
{
    struct setting *s = context;
    struct zipccl_gpu_options options;
    struct zipccl_gpu_comm *gpu = NULL;
    struct zipccl_error error = {""};
    struct zipccl_comm *host;
    struct gpu_buffers b;

    gpu_test_options(r, &options);
    options.strategy = s->strategy;
    options.nchunks = s->nchunks;
    options.gate = gate;
    options.effort = s->effort;
    if (s->effort == ZIPCCL_EFFORT_RATIO)
        options.params.ratio_encode_Bps = options.params.ratio_decode_Bps = 50e9;
    if (!EXPECT(r, zipccl_gpu_create(r->nccl, &options, &gpu, &error) == ZIPCCL_OK)) {
        fprintf(stderr, "%s\n", error.text);
        return;
    }
    host = gpu_host_comm(r, &options);
    gpu_buffers_open(r, &s->c, &b);
    run_twice(r, s, gpu, host, &b);
    EXPECT(r, zipccl_gpu_async_error(gpu, &error) == ZIPCCL_OK);
    gpu_buffers_close(r, &b);
    zipccl_comm_destroy(host);
    zipccl_gpu_destroy(gpu);
}

static bool run(uint32_t nranks, uint32_t per_node, struct setting s)
{
    bool ok = gpu_world_run(nranks, per_node, run_setting, &s);

    if (!ok)
        fprintf(stderr, "%s of %zu %s, %s x%u, %u ranks, %u a node, spoiled %x%s\n",
                zipccl_op_name(s.c.op), s.c.count, zipccl_dtype_name(s.c.dtype), s.strategy,
                s.nchunks, nranks, per_node, s.c.spoiled, s.c.in_place ? ", in place" : "");
    return ok;
}

static const char *const strategies[] = {
    "native",     "raw direct",      "raw ring",     "raw two-level", "fixed direct",
    "fixed ring", "fixed two-level", "exact direct", "exact ring",    "exact two-level",
};
static const enum zipccl_op ops[] = {ZIPCCL_ALL_GATHER, ZIPCCL_REDUCE_SCATTER, ZIPCCL_ALL_REDUCE,
                                     ZIPCCL_ALLTOALL,   ZIPCCL_ALLTOALLV,      ZIPCCL_BROADCAST};

/* Every op with every strategy, with overflows and without. */
static bool all_strategies(uint32_t nranks, uint32_t per_node, unsigned every)
{
    bool ok = true;

    for (unsigned i = 0; i < sizeof strategies / sizeof *strategies; i += every)
        for (unsigned k = 0; k < sizeof ops / sizeof *ops; k++)
            for (unsigned spoiled = 0; spoiled < 2; spoiled++) {
                bool reduces = zipccl_is_reduction(ops[k]);
                struct setting s = {.strategy = strategies[i],
                                    .nchunks = 1 + 2 * spoiled,
                                    .c = {.op = ops[k],
                                          .dtype = ZIPCCL_BFLOAT16,
                                          .count = 40001,
                                          .root = 1,
                                          .in_place = (i + k + spoiled) % 2 == 1 &&
                                                      ops[k] != ZIPCCL_ALLTOALL &&
                                                      ops[k] != ZIPCCL_ALLTOALLV,
                                          .spoiled = spoiled ? 2 : 0}};

                if (gate != ZIPCCL_GATE_OFF && strncmp(strategies[i], "fixed", 5) != 0)
                    continue;          /* nothing to send again */
                if (i > 0 || !reduces) /* NCCL's sums have NCCL's bits */
                    ok = run(nranks, per_node, s) && ok;
            }
    return ok;
}

/* Other types and counts, with what the chooser takes. */
static bool types_and_counts(void)
{
    static const enum zipccl_dtype types[] = {ZIPCCL_FLOAT16, ZIPCCL_FLOAT32, ZIPCCL_FLOAT8_E4M3,
                                              ZIPCCL_FLOAT8_E5M2};
    static const size_t counts[] = {1, 513, 16384, 100003};
    bool ok = true;

    for (unsigned t = 0; t < sizeof types / sizeof *types; t++)
        for (unsigned k = 0; k < sizeof ops / sizeof *ops; k++) {
            struct setting s = {.strategy = k % 2 ? "fixed two-level" : "fixed direct",
                                .nchunks = 2,
                                .c = {.op = ops[k],
                                      .dtype = types[t],
                                      .redop = k % 2 ? ZIPCCL_SUM : ZIPCCL_AVG,
                                      .count = counts[(t + k) % 4]}};

            if (types[t] >= ZIPCCL_FLOAT8_E4M3 && zipccl_is_reduction(ops[k]))
                continue;
            ok = run(4, 2, s) && ok;
        }
    return ok;
}

/* The strategies of exact sizes in max ratio. */
static bool max_ratio(void)
{
    static const char *const exact[] = {"exact direct", "exact ring", "exact two-level"};
    bool ok = true;

    for (unsigned i = 0; i < 3; i++)
        for (unsigned k = 0; k < sizeof ops / sizeof *ops; k++) {
            struct setting s = {.strategy = exact[i],
                                .nchunks = 1 + k % 2,
                                .effort = ZIPCCL_EFFORT_RATIO,
                                .c = {.op = ops[k], .dtype = ZIPCCL_BFLOAT16, .count = 40001}};

            ok = run(4, 2, s) && ok;
        }
    return ok;
}

/* What emulated kernels have the time for: fixed and exact messages, an overflow, each reduction. */
static bool few(unsigned every)
{
    static const struct setting settings[] = {
        {.strategy = "fixed ring", .nchunks = 2, .c = {.op = ZIPCCL_ALL_GATHER, .spoiled = 2}},
        {.strategy = "fixed direct", .nchunks = 1, .c = {.op = ZIPCCL_ALLTOALL}},
        {.strategy = "fixed direct", .nchunks = 1, .c = {.op = ZIPCCL_ALLTOALLV, .spoiled = 1}},
        {.strategy = "exact ring", .nchunks = 1, .c = {.op = ZIPCCL_BROADCAST}},
        {.strategy = "exact direct",
         .nchunks = 1,
         .effort = ZIPCCL_EFFORT_RATIO,
         .c = {.op = ZIPCCL_ALL_GATHER}},
        {.strategy = "fixed direct", .nchunks = 2, .c = {.op = ZIPCCL_REDUCE_SCATTER}},
        {.strategy = "fixed two-level",
         .nchunks = 1,
         .c = {.op = ZIPCCL_ALL_REDUCE, .redop = ZIPCCL_AVG, .spoiled = 4}},
    };
    bool ok = true;

    for (unsigned i = 0; i < sizeof settings / sizeof *settings; i += every) {
        struct setting s = settings[i];

        s.c.dtype = i % 2 ? ZIPCCL_FLOAT16 : ZIPCCL_BFLOAT16;
        s.c.count = every > 1 ? 3001 : 20001;
        ok = run(every > 1 ? 2 : 4, every > 1 ? 1 : 2, s) && ok;
    }
    return ok;
}

int main(int argc, char **argv)
{
    struct setting large = {
        .strategy = "fixed ring",
        .nchunks = 8,
        .c = {.op = ZIPCCL_ALL_GATHER, .dtype = ZIPCCL_BFLOAT16, .count = 400000, .spoiled = 0x81}};
    bool ok;

    if (argc > 1 && strcmp(argv[argc - 1], "gate") == 0)
        gate = ZIPCCL_GATE_ALL;
    if (argc > 1 &&
        strcmp(argv[1], "few") == 0) /* starting a CUDA thread takes ThreadSanitizer long */
        return few(RACE_CHECKED ? 6 : 1) ? 0 : 1;
    if (RACE_CHECKED)
        return few(1) ? 0 : 1;
    ok = all_strategies(4, 2, 1);
    if (gate != ZIPCCL_GATE_OFF) /* the rest is the same without it */
        return ok && run(8, 4, large) ? 0 : 1;
    ok = (SANITIZED || all_strategies(3, 3, 2)) && ok;
    ok = types_and_counts() && ok;
    ok = max_ratio() && ok;
    ok = run(8, 4, large) && ok;
    ok = run(2, 1, large) && ok;
    return ok ? 0 : 1;
}
