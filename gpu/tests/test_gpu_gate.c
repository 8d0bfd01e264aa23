/*
 * test_gpu_gate.c - streams that wait for a raw resend: the host does not, and every bit is right
 *
 * Eager calls are also those of test_gpu_plans with "gate"; here is what a gate adds: calls that return at
 * once, graphs, several communicators, calls that cross, what is learnt later.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/test_gpu_gate.h"

#include "core/tests/codec_data.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct zipccl_gpu_comm *gate_comm(struct gpu_rank *r, ncclComm_t nccl,
                                  const struct zipccl_gpu_options *options)
{
    struct zipccl_gpu_comm *gpu = NULL;
    struct zipccl_error error = {""};

    if (!EXPECT(r, zipccl_gpu_create(nccl, options, &gpu, &error) == ZIPCCL_OK))
        fprintf(stderr, "%s\n", error.text);
    else
        EXPECT(r, zipccl_gpu_has_gate(gpu));
    return gpu;
}

/* The stream stands still until 'go_on'. */
struct held {
    atomic_bool go_on;
};

static void hold(void *arg)
{
    while (!atomic_load(&((struct held *)arg)->go_on))
        sched_yield();
}

/* Calls return while the stream stands still, with overflows and without, and wait for nothing. */
static void returns_at_once(struct gpu_rank *r, void *context)
{
    static const struct gpu_case cases[] = {
        {.op = ZIPCCL_ALL_GATHER, .dtype = ZIPCCL_BFLOAT16, .count = 30000},
        {.op = ZIPCCL_ALL_GATHER, .dtype = ZIPCCL_BFLOAT16, .count = 30000, .spoiled = 2},
        {.op = ZIPCCL_REDUCE_SCATTER, .dtype = ZIPCCL_FLOAT32, .count = 9000, .spoiled = 1},
        {.op = ZIPCCL_ALLTOALLV, .dtype = ZIPCCL_FLOAT16, .count = 20000, .spoiled = 5}};
    struct zipccl_gpu_options options;
    struct zipccl_gpu_comm *gpu;
    struct zipccl_comm *host;

    gpu_test_options(r, &options);
    options.strategy = context; /* NULL: none that exchanges sizes is chosen */
    options.nchunks = context != NULL ? 3 : 0;
    options.gate = ZIPCCL_GATE_ALL;
    gpu = gate_comm(r, r->nccl, &options);
    options.strategy = context != NULL ? context : "raw direct";
    host = gpu_host_comm(r, &options);
    for (unsigned i = 0; r->ok && i < sizeof cases / sizeof *cases; i++) {
        struct held held = {false};
        struct emu_stats before, after;
        struct gpu_buffers b;
        uint64_t nwaits = 0;

        if (context == NULL && cases[i].op == ZIPCCL_REDUCE_SCATTER)
            continue; /* whose bits follow from the plan */
        gpu_buffers_open(r, &cases[i], &b);
        gpu_case_host(r, &cases[i], &b, host);
        for (unsigned k = 0; k < 2; k++) { /* the first one makes the plan, with all ranks */
            EXPECT(r, cudaStreamSynchronize(r->stream) == cudaSuccess);
            gpu_barrier(r);
            emu_get_stats(&before);
            gpu_barrier(r);
            nwaits = gpu->transport->nwaits;
            if (k == 1)
                EXPECT(r, cudaLaunchHostFunc(r->stream, hold, &held) == cudaSuccess);
            for (unsigned call = 0; call < (k == 0 ? 1 : 2 * ZIPCCL_CUDA_ARENAS); call++)
                if (!EXPECT(r, gpu_case_call(r, &cases[i], &b, gpu) == ZIPCCL_OK))
                    fprintf(stderr, "%s\n", zipccl_gpu_error(gpu));
        }
        EXPECT(r, cudaStreamQuery(r->stream) == cudaErrorNotReady);
        emu_get_stats(&after);
        EXPECT(r, after.syncs == before.syncs && gpu->transport->nwaits == nwaits);
        gpu_barrier(r);
        atomic_store(&held.go_on, true);
        EXPECT(r, gpu_case_right(r, &cases[i], &b));
        gpu_barrier(r);
        if (i == 0)
            EXPECT(r, zipccl_gpu_gate_resends(gpu) == 0);
        else if (context != NULL && strcmp(context, "fixed direct") == 0) /* all see all */
            EXPECT(r, zipccl_gpu_gate_resends(gpu) > 0);
        gpu_buffers_close(r, &b);
    }
    EXPECT(r, zipccl_gpu_async_error(gpu, NULL) == ZIPCCL_OK);
    zipccl_comm_destroy(host);
    zipccl_gpu_destroy(gpu);
}

/* What a graph holds, and how its ranks lie. */
struct graph_of {
    uint32_t nranks, per_node;
    const char *strategy;
    struct gpu_case c;
};

/* Two calls in a graph, the second of the same buffers, and one beside it; replayed with data that fit and that do
 * not. */
static void replayed(struct gpu_rank *r, void *context)
{
    static const uint32_t spoiled[] = {0, 2, 0, 5, 1};
    const struct graph_of *g = context;
    struct zipccl_gpu_options options;
    struct zipccl_gpu_op_stats stats;
    struct zipccl_gpu_comm *gpu;
    struct gpu_case c = g->c;
    struct zipccl_comm *host;
    struct gpu_buffers b;
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaStream_t captured = r->stream, other = NULL;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t replay = NULL;
    struct zipccl_cuda_codec codec = {0};
    uint64_t ticket = 0;

    gpu_test_options(r, &options);
    options.strategy = g->strategy;
    options.nchunks = 3;
    options.gate = ZIPCCL_GATE_CAPTURE;
    gpu = gate_comm(r, r->nccl, &options);
    host = gpu_host_comm(r, &options);
    gpu->exec->time_codec = true;
    EXPECT(r, zipccl_cuda_time_next(&gpu->exec->base, &ticket) == ZIPCCL_OK);
    gpu_buffers_open(r, &c, &b);
    EXPECT(r, cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking) == cudaSuccess);
    gpu_case_host(r, &c, &b, host);
    gpu_barrier(r); /* others' copies and allocations would end a capture of the global mode */
    EXPECT(r, cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal) == cudaSuccess);
    for (unsigned call = 0; call < 3; call++) {
        r->stream = call == 1 ? other : captured; /* one runs at once */
        if (!EXPECT(r, gpu_case_call(r, &c, &b, gpu) == ZIPCCL_OK))
            fprintf(stderr, "%s\n", zipccl_gpu_error(gpu));
        if (call == 1) {
            cudaThreadExchangeStreamCaptureMode(&mode);
            EXPECT(r, cudaStreamSynchronize(other) == cudaSuccess);
            cudaThreadExchangeStreamCaptureMode(&mode);
        }
    }
    EXPECT(r, cudaStreamEndCapture(captured, &graph) == cudaSuccess);
    gpu_barrier(r);
    EXPECT(r, gpu_case_right(r, &c, &b));
    EXPECT(r, cudaStreamDestroy(other) == cudaSuccess);
    if (r->ok)
        EXPECT(r, cudaGraphInstantiate(&replay, graph, 0) == cudaSuccess);
    for (unsigned i = 0; r->ok && i < sizeof spoiled / sizeof *spoiled; i++) {
        uint64_t resends = zipccl_gpu_gate_resends(gpu);

        c.spoiled = spoiled[i];
        c.seed = i;
        gpu_case_host(r, &c, &b, host);
        EXPECT(r, cudaGraphLaunch(replay, r->stream) == cudaSuccess);
        if (!EXPECT(r, gpu_case_right(r, &c, &b)))
            fprintf(stderr, "%s, replay %u\n", zipccl_op_name(c.op), i);
        if (spoiled[i] == 0)
            EXPECT(r, zipccl_gpu_gate_resends(gpu) == resends);
        gpu_barrier(r);
        if (i == 2) { /* between replays; the host waits */
            EXPECT(r, gpu_case_call(r, &c, &b, gpu) == ZIPCCL_OK);
            EXPECT(r, gpu_case_right(r, &c, &b));
        }
    }
    /* What was in no graph has been timed. */
    EXPECT(r, zipccl_exec_cuda_codec(gpu->exec, &codec) == ZIPCCL_OK);
    EXPECT(r, codec.decode_s > 0 || c.op == ZIPCCL_BROADCAST || c.op == ZIPCCL_ALLTOALLV);
    EXPECT(r,
           zipccl_cuda_time_of(&gpu->exec->base, ticket) == 0 && zipccl_gpu_error(gpu)[0] == '\0');
    zipccl_gpu_get_stats(gpu, c.op, &stats);
    EXPECT(r, stats.reasons[ZIPCCL_GPU_COMPRESSED] == 4 ||
                  (c.op == ZIPCCL_ALLTOALLV && stats.reasons[ZIPCCL_GPU_COMPRESSED] > 0));
    EXPECT(r, stats.reasons[ZIPCCL_GPU_CAPTURED] == 0);
    EXPECT(r, zipccl_gpu_async_error(gpu, NULL) == ZIPCCL_OK);
    if (r->ok) {
        EXPECT(r, cudaGraphExecDestroy(replay) == cudaSuccess);
        EXPECT(r, cudaGraphDestroy(graph) == cudaSuccess);
    }
    gpu_buffers_close(r, &b);
    zipccl_comm_destroy(host);
    zipccl_gpu_destroy(gpu);
}

static bool graphs(void)
{
    static const struct graph_of of[] = {
        {2, 2, "fixed ring", {.op = ZIPCCL_ALL_GATHER, .count = 20001}},
        {4, 2, "fixed two-level", {.op = ZIPCCL_ALL_REDUCE, .count = 30001}},
        {3, 3, "fixed direct", {.op = ZIPCCL_ALLTOALLV, .count = 20001}},
        {4, 2, "fixed direct", {.op = ZIPCCL_BROADCAST, .root = 1, .count = 20001}},
        {8, 4, "fixed two-level", {.op = ZIPCCL_ALL_GATHER, .count = 9001}},
    };
    bool ok = true;

    for (unsigned i = 0; i < (RACE_CHECKED ? 2 : sizeof of / sizeof *of); i++) {
        struct graph_of g = of[i];

        g.c.dtype = ZIPCCL_BFLOAT16;
        if (!gpu_world_run(g.nranks, g.per_node, replayed, &g)) {
            fprintf(stderr, "graph %u\n", i);
            ok = false;
        }
    }
    return ok;
}

/* A plan that exchanges sizes cannot be in a graph: plain NCCL, and the user is told. */
static void exact_is_plain(struct gpu_rank *r, void *context)
{
    static const struct gpu_case c = {
        .op = ZIPCCL_ALL_GATHER, .dtype = ZIPCCL_BFLOAT16, .count = 20000};
    struct zipccl_gpu_options options;
    struct zipccl_gpu_op_stats stats;
    struct zipccl_gpu_comm *gpu;
    struct zipccl_comm *host;
    struct gpu_buffers b;
    cudaGraph_t graph;
    cudaGraphExec_t replay;

    (void)context;
    gpu_test_options(r, &options);
    options.strategy = "exact direct";
    options.gate = ZIPCCL_GATE_CAPTURE;
    options.notice = gpu_count_captured;
    options.notice_context = r;
    gpu = gate_comm(r, r->nccl, &options);
    host = gpu_host_comm(r, &options);
    gpu_buffers_open(r, &c, &b);
    gpu_barrier(r);
    EXPECT(r, cudaStreamBeginCapture(r->stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
    EXPECT(r, gpu_case_call(r, &c, &b, gpu) == ZIPCCL_OK);
    EXPECT(r, gpu_case_call(r, &c, &b, gpu) == ZIPCCL_OK);
    EXPECT(r, cudaStreamEndCapture(r->stream, &graph) == cudaSuccess);
    EXPECT(r, cudaGraphInstantiate(&replay, graph, 0) == cudaSuccess);
    gpu_case_host(r, &c, &b, host);
    EXPECT(r, cudaGraphLaunch(replay, r->stream) == cudaSuccess);
    EXPECT(r, gpu_case_right(r, &c, &b));
    zipccl_gpu_get_stats(gpu, c.op, &stats);
    EXPECT(r, stats.reasons[ZIPCCL_GPU_CAPTURED] == 2 && r->notices == 1);
    EXPECT(r, stats.raw_bytes == stats.wire_bytes && stats.raw_bytes > 0);
    EXPECT(r, cudaGraphExecDestroy(replay) == cudaSuccess);
    EXPECT(r, cudaGraphDestroy(graph) == cudaSuccess);
    gpu_buffers_close(r, &b);
    zipccl_comm_destroy(host);
    zipccl_gpu_destroy(gpu);
}

/* Two communicators in two streams, calls without a wait between them, on every rank in its own order. */
static void several(struct gpu_rank *r, void *context)
{
    static const struct gpu_case cases[2] = {
        {.op = ZIPCCL_ALL_GATHER, .dtype = ZIPCCL_BFLOAT16, .count = 30000, .spoiled = 1},
        {.op = ZIPCCL_ALLTOALL, .dtype = ZIPCCL_FLOAT16, .count = 9000, .spoiled = 6}};
    struct zipccl_gpu_options options;
    struct zipccl_gpu_comm *gpu[2];
    cudaStream_t streams[2] = {r->stream, NULL};
    struct gpu_buffers b[2];
    struct zipccl_comm *host;
    ncclComm_t other;

    (void)context;
    gpu_test_options(r, &options);
    options.strategy = "fixed direct";
    options.nchunks = 2;
    options.gate = ZIPCCL_GATE_ALL;
    EXPECT(r, cudaStreamCreateWithFlags(&streams[1], cudaStreamNonBlocking) == cudaSuccess);
    EXPECT(r, ncclCommSplit(r->nccl, 0, (int)r->rank, &other, NULL) == ncclSuccess);
    host = gpu_host_comm(r, &options);
    gpu[0] = gate_comm(r, r->nccl, &options);
    gpu[1] = gate_comm(r, other, &options);
    for (unsigned k = 0; k < 2; k++) {
        gpu_buffers_open(r, &cases[k], &b[k]);
        gpu_case_host(r, &cases[k], &b[k], host);
        EXPECT(r, gpu_case_call(r, &cases[k], &b[k], gpu[k]) == ZIPCCL_OK); /* makes the plan */
    }
    for (unsigned i = 0; r->ok && i < 12; i++) {
        unsigned k = (i + r->rank) % 2; /* odd ranks begin with the other one */

        r->stream = streams[k];
        EXPECT(r, gpu_case_call(r, &cases[k], &b[k], gpu[k]) == ZIPCCL_OK);
    }
    for (unsigned k = 0; k < 2; k++) {
        r->stream = streams[k];
        EXPECT(r, gpu_case_right(r, &cases[k], &b[k]));
        EXPECT(r, zipccl_gpu_async_error(gpu[k], NULL) == ZIPCCL_OK);
        EXPECT(r, zipccl_gpu_gate_resends(gpu[k]) >= 6);
        gpu_buffers_close(r, &b[k]);
        zipccl_gpu_destroy(gpu[k]);
    }
    r->stream = streams[0];
    zipccl_comm_destroy(host);
    EXPECT(r, ncclCommDestroy(other) == ncclSuccess);
    EXPECT(r, cudaStreamDestroy(streams[1]) == cudaSuccess);
}

enum { CROSS_N = 150000 };

static void cross_data(uint16_t *out, uint32_t rank, bool spoiled)
{
    for (size_t i = 0; i < CROSS_N; i++)
        out[i] = (uint16_t)(spoiled ? i * 40503u + rank : 0x3c00 + (i * 2654435761u >> 20) % 61);
}

/*
 * Two ranks that send to and receive from each other, on a communicator and a stream for each direction,
 * and not in a group.  'context': bit 0: the receive first; bit 1: nothing fits.  Where NCCL connects late, a first
 * message each way, in one order, comes before: it would hold the host, with and without zipccl.
 */
static void crossing(struct gpu_rank *r, void *context)
{
    unsigned how = *(const unsigned *)context;
    uint16_t *mine = malloc(CROSS_N * 2), *came = malloc(CROSS_N * 2);
    struct zipccl_gpu_options options;
    struct zipccl_gpu_comm *gpu[2];
    cudaStream_t streams[2] = {r->stream, NULL};
    struct zipccl_gpu_p2p ops[2]; /* by source */
    struct emu_options emu;
    ncclComm_t other;

    emu_get_options(&emu);

    gpu_test_options(r, &options);
    options.strategy = "fixed direct";
    options.gate = ZIPCCL_GATE_ALL;
    EXPECT(r, cudaStreamCreateWithFlags(&streams[1], cudaStreamNonBlocking) == cudaSuccess);
    EXPECT(r, ncclCommSplit(r->nccl, 0, (int)r->rank, &other, NULL) == ncclSuccess);
    gpu[0] = gate_comm(r, r->nccl, &options);
    gpu[1] = gate_comm(r, other, &options);
    cross_data(mine, r->rank, how & 2);
    for (uint32_t src = 0; src < 2; src++)
        ops[src] =
            (struct zipccl_gpu_p2p){src == r->rank, 1 - r->rank, gpu_upload(r, mine, CROSS_N * 2),
                                    CROSS_N, ZIPCCL_BFLOAT16};
    for (unsigned k = 0; k < 2 && emu.lazy; k++)
        EXPECT(r, zipccl_gpu_group(&ops[k], 1, gpu[k], streams[k]) == ZIPCCL_OK);
    for (unsigned turn = 0; turn < 5; turn++)
        for (unsigned k = 0; k < 2; k++) {
            uint32_t src = (k ^ (how & 1)) == 0 ? r->rank : 1 - r->rank;

            EXPECT(r, zipccl_gpu_group(&ops[src], 1, gpu[src], streams[src]) == ZIPCCL_OK);
        }
    EXPECT(r, cudaStreamSynchronize(streams[r->rank]) == cudaSuccess);
    r->stream = streams[1 - r->rank];
    gpu_download(r, came, ops[1 - r->rank].buf, CROSS_N * 2);
    r->stream = streams[0];
    cross_data(mine, 1 - r->rank, how & 2);
    EXPECT(r, memcmp(mine, came, CROSS_N * 2) == 0);
    for (unsigned k = 0; k < 2; k++) {
        EXPECT(r, (zipccl_gpu_gate_resends(gpu[k]) > 0) == ((how & 2) != 0));
        EXPECT(r, zipccl_gpu_async_error(gpu[k], NULL) == ZIPCCL_OK);
        zipccl_gpu_destroy(gpu[k]);
        EXPECT(r, cudaFree(ops[k].buf) == cudaSuccess);
    }
    EXPECT(r, ncclCommDestroy(other) == ncclSuccess);
    EXPECT(r, cudaStreamDestroy(streams[1]) == cudaSuccess);
    free(mine);
    free(came);
}

/* A communicator in the place of one that is gone, over the same exec, is told of no calls of that one. */
static void another_owner(struct gpu_rank *r, void *context)
{
    static const struct gpu_case c = {
        .op = ZIPCCL_ALLTOALLV, .dtype = ZIPCCL_BFLOAT16, .count = 6000, .spoiled = 7};
    struct zipccl_comm_stats stats = {0};
    struct zipccl_comm_config config;
    struct zipccl_gpu_options options;
    struct zipccl_gpu_comm *gpu;
    struct zipccl_comm *host;
    struct gpu_buffers b;

    (void)context;
    gpu_test_options(r, &options);
    options.strategy = "fixed direct";
    options.gate = ZIPCCL_GATE_ALL;
    gpu = gate_comm(r, r->nccl, &options);
    host = gpu_host_comm(r, &options);
    gpu_buffers_open(r, &c, &b);
    gpu_case_host(r, &c, &b, host);
    EXPECT(r, gpu_case_call(r, &c, &b, gpu) == ZIPCCL_OK); /* memory is there from here on */
    EXPECT(r, gpu_case_right(r, &c, &b));
    zipccl_comm_config_init(&config);
    config.strategy = "fixed direct";
    config.mode = ZIPCCL_MODE_COMPRESSED;
    for (unsigned i = 0; i < 2; i++) {
        struct held held = {false};
        struct zipccl_comm *comm = NULL;

        EXPECT(r, zipccl_comm_create(&gpu->transport->base, &gpu->exec->base, &config, &comm,
                                     NULL) == ZIPCCL_OK);
        EXPECT(r, cudaLaunchHostFunc(r->stream, hold, &held) == cudaSuccess);
        for (unsigned call = 0; call < 3; call++) {
            EXPECT(r, zipccl_exec_cuda_enter(gpu->exec, r->stream) == ZIPCCL_OK);
            EXPECT(r, zipccl_alltoallv(b.d_send, b.counts[0], b.counts[1], b.d_recv, b.counts[2],
                                       b.counts[3], c.dtype, comm, r->stream) == ZIPCCL_OK);
        }
        zipccl_comm_get_stats(comm, &stats);
        EXPECT(r, stats.overflows == 0); /* of its own none has ended */
        atomic_store(&held.go_on, true);
        EXPECT(r, gpu_case_right(r, &c, &b));
        zipccl_comm_destroy(comm);
    }
    gpu_buffers_close(r, &b);
    zipccl_comm_destroy(host);
    zipccl_gpu_destroy(gpu);
}

static bool crossings(struct emu_options options)
{
    bool ok = true;

    for (unsigned i = 0; i < 5; i++) {
        unsigned how = i < 4 ? i : 3;

        options.lazy = i == 4 ? 1 : options.lazy;
        emu_set_options(&options);
        if (!gpu_world_run(2, 2, crossing, &how)) {
            fprintf(stderr, "crossing %u\n", i);
            ok = false;
        }
    }
    return ok;
}

int main(void)
{
    char direct[] = "fixed direct", two_level[] = "fixed two-level";
    struct emu_options options;
    bool ok;

    emu_get_options(&options);
    options.word_ms = options.peer_ms = 30000; /* a hang is told, and fails the test */
    options.delay_us = 100;
    emu_set_options(&options);
    ok = gpu_world_run(3, 3, returns_at_once, direct);
    ok = gpu_world_run(4, 2, returns_at_once, two_level) && ok;
    ok = gpu_world_run(4, 2, returns_at_once, NULL) && ok;
    ok = graphs() && ok;
    ok = gpu_world_run(3, 3, exact_is_plain, NULL) && ok;
    ok = gpu_world_run(4, 2, several, NULL) && ok;
    ok = crossings(options) && ok;
    options.delay_us = 0;
    emu_set_options(&options);
    ok = (RACE_CHECKED || gate_learning()) && ok;
    ok = gpu_world_run(2, 2, another_owner, NULL) && ok;
    ok = gate_faults() && ok;
    if (emu_error()[0] != '\0') {
        fprintf(stderr, "%s\n", emu_error());
        ok = false;
    }
    return ok ? 0 : 1;
}
