/*
 * test_gpu_overlap.c - what runs beside what, and what is timed: not by a clock, but by what is enqueued
 *
 * One rank holds its call back until the other has enqueued what it can: the exchanges of later chunks, whose
 * encoders have run, although nothing of the first chunk has arrived.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/codec_data.h"
#include "gpu/tests/emu/emu.h"
#include "gpu/tests/gpu_calls_run.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Of rank 0, while 'counting'. */
static atomic_bool counting;
static atomic_uint nposted; /* all-gathers and sends */

static void count_post(ncclComm_t comm)
{
    int rank = -1;

    if (atomic_load(&counting) && ncclCommUserRank(comm, &rank) == ncclSuccess && rank == 0)
        atomic_fetch_add(&nposted, 1);
}

static ncclResult_t counted_gather(const void *send, void *recv, size_t count, ncclDataType_t type,
                                   ncclComm_t comm, cudaStream_t stream)
{
    ncclResult_t result = ncclAllGather(send, recv, count, type, comm, stream);

    count_post(comm);
    return result;
}

static ncclResult_t counted_send(const void *send, size_t count, ncclDataType_t type, int peer,
                                 ncclComm_t comm, cudaStream_t stream)
{
    ncclResult_t result = ncclSend(send, count, type, peer, comm, stream);

    count_post(comm);
    return result;
}

struct overlap {
    const char *strategy;
    enum zipccl_op op;
    uint32_t nchunks, nwaits; /* of the host in the call */
    uint32_t spoiled;
    size_t spoiled_n;
    struct zipccl_exec_cuda *first; /* of rank 0 */
};

/* Poll until 'holds' for rank 0; false if it never does. */
static bool wait_until(bool (*holds)(const struct overlap *), const struct overlap *o)
{
    const struct timespec pause = {0, 1000000};

    for (unsigned i = 0; i < 20000; i++) {
        if (holds(o))
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

static bool all_posted(const struct overlap *o)
{
    return atomic_load(&nposted) >= o->nchunks;
}

/* The encoders of all slots, if each has one chunk: else a later one waits for what has not arrived. */
static bool have_encoded(const struct overlap *o)
{
    for (uint32_t slot = 0; slot < o->nchunks && o->nchunks <= ZIPCCL_MAX_SLOTS; slot++)
        if (cudaEventQuery(o->first->coded_event[slot]) != cudaSuccess)
            return false;
    return true;
}

static struct zipccl_gpu_comm *open_counted(struct gpu_rank *r, const struct overlap *o,
                                            struct zipccl_nccl_api *api, struct zipccl_comm **host)
{
    struct zipccl_gpu_options options;
    struct zipccl_gpu_comm *gpu = NULL;
    struct zipccl_error error = {""};

    gpu_test_options(r, &options);
    *api = *options.nccl;
    api->AllGather = counted_gather;
    api->Send = counted_send;
    options.nccl = api;
    options.strategy = o->strategy;
    options.nchunks = o->nchunks;
    if (!EXPECT(r, zipccl_gpu_create(r->nccl, &options, &gpu, &error) == ZIPCCL_OK))
        fprintf(stderr, "%s\n", error.text);
    *host = gpu_host_comm(r, &options);
    return gpu;
}

static void run_ahead(struct gpu_rank *r, void *context)
{
    struct overlap *o = context;
    struct gpu_case c = {.op = o->op,
                         .dtype = ZIPCCL_BFLOAT16,
                         .count = 40000,
                         .spoiled = o->spoiled,
                         .spoiled_n = o->spoiled_n};
    struct zipccl_nccl_api api;
    struct zipccl_comm *host;
    struct zipccl_gpu_comm *gpu = open_counted(r, o, &api, &host);
    struct gpu_buffers b;

    gpu_buffers_open(r, &c, &b);
    for (unsigned call = 0; r->ok && call < 2; call++) { /* the first one compares plans */
        uint64_t nwaits = gpu->transport->nwaits;

        gpu_case_host(r, &c, &b, host);
        if (r->rank == 0) {
            o->first = gpu->exec;
            atomic_store(&nposted, 0);
            atomic_store(&counting, call == 1); /* until the next world's first call */
        }
        gpu_barrier(r);
        if (call == 1 && r->rank == 1) {
            EXPECT(r, wait_until(all_posted, o));
            EXPECT(r, wait_until(have_encoded, o));
        }
        if (!EXPECT(r, gpu_case_call(r, &c, &b, gpu) == ZIPCCL_OK))
            fprintf(stderr, "%s\n", zipccl_gpu_error(gpu));
        EXPECT(r, call == 0 || gpu->transport->nwaits - nwaits == o->nwaits);
        EXPECT(r, gpu_case_right(r, &c, &b));
        gpu_barrier(r);
        EXPECT(r, r->ok && zipccl_gpu_last_plan(gpu)->nchunks == o->nchunks);
    }
    gpu_buffers_close(r, &b);
    zipccl_comm_destroy(host);
    zipccl_gpu_destroy(gpu);
}

/* Kernels are timed as they run, and messages are counted with their room. */
static void codec_times(struct gpu_rank *r, void *context)
{
    static const struct gpu_case c = {
        .op = ZIPCCL_ALL_GATHER, .dtype = ZIPCCL_BFLOAT16, .count = 40000, .spoiled = 2};
    struct overlap o = {.strategy = "fixed ring", .nchunks = 2};
    struct zipccl_cuda_codec codec = {0};
    struct zipccl_nccl_api api;
    struct zipccl_comm *host;
    struct zipccl_gpu_comm *gpu = open_counted(r, &o, &api, &host);
    struct gpu_buffers b;

    (void)context;
    gpu->exec->time_codec = true;
    gpu_buffers_open(r, &c, &b);
    for (unsigned call = 0; r->ok && call < 3; call++) {
        double raw = 2.0 * (double)c.count, before = codec.coded_raw, wire = codec.coded_wire;
        double sent;

        gpu_case_host(r, &c, &b, host);
        EXPECT(r, gpu_case_call(r, &c, &b, gpu) == ZIPCCL_OK);
        EXPECT(r, gpu_case_right(r, &c, &b));
        EXPECT(r, zipccl_exec_cuda_codec(gpu->exec, &codec) == ZIPCCL_OK);
        EXPECT(r, codec.encode_s > 0 && codec.decode_s > 0);
        EXPECT(r, codec.coded_raw - before == raw);
        sent = codec.coded_wire - wire;
        EXPECT(r, r->rank == 1 ? sent > raw : sent < raw / 1.2);
    }
    gpu_buffers_close(r, &b);
    zipccl_comm_destroy(host);
    zipccl_gpu_destroy(gpu);
}

/* Of a pair one end sends many chunks and receives one: the last of its encoders come behind all that it looks at. */
static void send_more(struct gpu_rank *r, void *context)
{
    static const size_t counts[2] = {64000, 4000}; /* that rank 0 and rank 1 send */
    struct data_random random = {17};
    size_t nbytes = 2 * (counts[0] + counts[1]);
    char *sent = malloc(nbytes), *came = malloc(nbytes), *d_sent, *d_came;
    size_t at[2] = {0, 2 * counts[0]};
    uint32_t self = r->rank, peer = 1 - self;
    struct zipccl_gpu_options options;
    struct zipccl_gpu_comm *gpu = NULL;

    (void)context;
    data_fill_type(ZIPCCL_BFLOAT16, DATA_BITS, &random, 0.3, sent, nbytes / 2);
    d_sent = gpu_upload(r, sent, nbytes);
    d_came = gpu_upload(r, sent, nbytes);
    EXPECT(r, cudaMemsetAsync(d_came, 0, nbytes, r->stream) == cudaSuccess);
    gpu_test_options(r, &options);
    options.strategy = "fixed direct";
    options.max_staging_bytes = 1 << 16;
    EXPECT(r, zipccl_gpu_create(r->nccl, &options, &gpu, NULL) == ZIPCCL_OK);
    for (unsigned call = 0; r->ok && call < 2; call++) {
        const struct zipccl_gpu_p2p ops[2] = {
            {true, peer, d_sent + at[self], counts[self], ZIPCCL_BFLOAT16},
            {false, peer, d_came + at[peer], counts[peer], ZIPCCL_BFLOAT16}};

        if (!EXPECT(r, zipccl_gpu_group(ops, 2, gpu, r->stream) == ZIPCCL_OK))
            fprintf(stderr, "%s\n", zipccl_gpu_error(gpu));
        EXPECT(r, r->ok && zipccl_gpu_last_plan(gpu)->nchunks > 2 * ZIPCCL_MAX_SLOTS);
        gpu_download(r, came, d_came, nbytes);
        EXPECT(r, memcmp(came + at[peer], sent + at[peer], 2 * counts[peer]) == 0);
    }
    zipccl_gpu_destroy(gpu);
    EXPECT(r, cudaFree(d_sent) == cudaSuccess && cudaFree(d_came) == cudaSuccess);
    free(sent);
    free(came);
}

struct learnt {
    struct zipccl_comm_learnt of[MAX_RANKS];
};

/* Times that events tell decide which kind of plan is in use, the same on all ranks. */
static void learn_times(struct gpu_rank *r, void *context)
{
    static const struct gpu_case c = {
        .op = ZIPCCL_ALL_GATHER, .dtype = ZIPCCL_BFLOAT16, .count = 20000};
    /* The opening, or two periods. */
    unsigned ncalls = RACE_CHECKED ? ZIPCCL_TRIAL_OPENING_CALLS + 1 : 2 * ZIPCCL_CLASS_PERIOD + 1;
    struct learnt *learnt = context;
    struct zipccl_comm_learnt *mine = &learnt->of[r->rank];
    struct zipccl_gpu_options options;
    struct zipccl_gpu_comm *gpu = NULL;
    struct zipccl_comm *host;
    struct gpu_buffers b;

    gpu_test_options(r, &options);
    options.mode = ZIPCCL_MODE_ADAPTIVE;
    options.params.nic_Bps = 1e8; /* so that bytes count, and compression is worth a trial */
    options.params.nics_per_node = 1;
    EXPECT(r, zipccl_gpu_create(r->nccl, &options, &gpu, NULL) == ZIPCCL_OK);
    host = gpu_host_comm(r, &options);
    gpu_buffers_open(r, &c, &b);
    gpu_barrier(r);
    if (r->rank == 0) /* some rank cannot time the first call */
        emu_fail("cudaEventCreate", 1, cudaErrorMemoryAllocation);
    gpu_barrier(r);
    for (unsigned i = 0; r->ok && i < ncalls; i++) {
        gpu_case_host(r, &c, &b, host);
        EXPECT(r, gpu_case_call(r, &c, &b, gpu) == ZIPCCL_OK);
        EXPECT(r, gpu_case_right(r, &c, &b));
    }
    EXPECT(r, zipccl_comm_get_learnt(zipccl_gpu_core(gpu), 0, mine));
    EXPECT(r, mine->times && mine->seen_s[ZIPCCL_PLAN_COMPRESSED] > 0);
    EXPECT(r, mine->seen_s[ZIPCCL_PLAN_NATIVE] > 0 || mine->seen_s[ZIPCCL_PLAN_RAW] > 0);
    gpu_barrier(r);
    for (uint32_t p = 0; p < r->world->nranks; p++) {
        EXPECT(r, learnt->of[p].kind == mine->kind);
        EXPECT(r, learnt->of[p].ntrials == mine->ntrials);
        for (int k = 0; k < ZIPCCL_NUM_KINDS; k++)
            EXPECT(r, learnt->of[p].seen_s[k] == mine->seen_s[k]);
    }
    gpu_buffers_close(r, &b);
    zipccl_comm_destroy(host);
    zipccl_gpu_destroy(gpu);
}

int main(void)
{
    /* A plan that only moves data waits once, however many chunks it has; one with sums, once a chunk. */
    static const struct overlap cases[] = {
        {"fixed ring", ZIPCCL_ALL_GATHER, 4, 1, 0, 0, NULL},
        {"fixed ring", ZIPCCL_ALL_GATHER, 8, 1, 0, 0, NULL},
        {"fixed ring", ZIPCCL_ALL_GATHER, 8, 1, 2, 0, NULL},
        {"fixed direct", ZIPCCL_ALLTOALL, 3, 1, 1, 0, NULL},
        {"fixed direct", ZIPCCL_REDUCE_SCATTER, 4, 4, 0, 0, NULL},
        {"fixed direct", ZIPCCL_REDUCE_SCATTER, 4, 4, 2, 0, NULL},
        /* The first chunk overflows, the next one in its slot does not. */
        {"fixed ring", ZIPCCL_ALL_GATHER, 8, 1, 2, 5000, NULL},
        {"fixed direct", ZIPCCL_ALLTOALL, 8, 1, 1, 45000, NULL},
    };
    static struct learnt learnt;
    bool ok = true;

    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct overlap o = cases[i];

        if (!gpu_world_run(2, 2, run_ahead, &o)) {
            fprintf(stderr, "%s of %u chunks, %s, spoiled %x\n", zipccl_op_name(o.op), o.nchunks,
                    o.strategy, o.spoiled);
            ok = false;
        }
    }
    ok = gpu_world_run(2, 2, codec_times, NULL) && ok;
    ok = gpu_world_run(2, 2, send_more, NULL) && ok;
    ok = gpu_world_run(4, 2, learn_times, &learnt) && ok;
    emu_reset();
    return ok ? 0 : 1;
}
