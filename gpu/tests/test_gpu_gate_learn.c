/*
 * test_gpu_gate_learn.c - what calls at a gate teach: late, alike at both ends
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/test_gpu_gate.h"

#include "core/capacity.h"
#include "core/tests/codec_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Classes narrow although calls do not know what they taught; and overflows are counted. */
static void learns_later(struct gpu_rank *r, void *context)
{
    static const struct gpu_case c = {
        .op = ZIPCCL_ALL_GATHER, .dtype = ZIPCCL_BFLOAT16, .count = 20000};
    struct zipccl_gpu_options options;
    struct zipccl_gpu_op_stats stats;
    struct zipccl_comm_class cls = {0};
    struct zipccl_gpu_comm *gpu;
    struct gpu_case spoiled = c;
    struct gpu_buffers b;
    struct zipccl_comm *host;

    (void)context;
    gpu_test_options(r, &options);
    options.strategy = "fixed ring";
    options.gate = ZIPCCL_GATE_ALL;
    gpu = gate_comm(r, r->nccl, &options);
    host = gpu_host_comm(r, &options);
    gpu_buffers_open(r, &c, &b);
    gpu_case_host(r, &c, &b, host);
    for (unsigned i = 0; r->ok && i < 3 * ZIPCCL_CLASS_PERIOD + 1; i++)
        EXPECT(r, gpu_case_call(r, &c, &b, gpu) == ZIPCCL_OK);
    EXPECT(r, gpu_case_right(r, &c, &b));
    EXPECT(r, zipccl_comm_get_class(zipccl_gpu_core(gpu), 0, &cls) && cls.now > ZIPCCL_CLASS_WIDE);
    spoiled.spoiled = 1;
    gpu_case_host(r, &spoiled, &b, host);
    for (unsigned i = 0; r->ok && i < 3; i++)
        EXPECT(r, gpu_case_call(r, &spoiled, &b, gpu) == ZIPCCL_OK);
    EXPECT(r, gpu_case_right(r, &spoiled, &b));
    EXPECT(r, zipccl_gpu_async_error(gpu, NULL) == ZIPCCL_OK);
    zipccl_gpu_get_stats(gpu, ZIPCCL_ALL_GATHER, &stats);
    EXPECT(r, stats.raw_resends == 3 && stats.overflows == (r->rank == 0 ? 3 : 0));
    gpu_buffers_close(r, &b);
    zipccl_comm_destroy(host);
    zipccl_gpu_destroy(gpu);
}

enum { PAIR_RANKS = 3, PAIR_PERIODS = 14 };

/* By sender and receiver: elements of a message; and by period the class that the two ends have. */
struct pair_classes {
    size_t n[PAIR_RANKS][PAIR_RANKS];
    int out[PAIR_RANKS][PAIR_RANKS][PAIR_PERIODS], in[PAIR_RANKS][PAIR_RANKS][PAIR_PERIODS];
};

static void read_pair_classes(struct gpu_rank *r, struct zipccl_gpu_comm *gpu,
                              struct pair_classes *all, unsigned period)
{
    struct zipccl_comm_class cls;

    for (size_t i = 0; zipccl_comm_get_class(zipccl_gpu_core(gpu), i, &cls); i++)
        if (cls.peer >= 0 && cls.incoming)
            all->in[cls.peer][r->rank][period] = cls.now;
        else if (cls.peer >= 0)
            all->out[r->rank][cls.peer][period] = cls.now;
}

/*
 * Pairs learn at a gate: the two ends of each have one class in every call, however far their hosts are ahead.  In the
 * middle rank 1 sends what does not fit, and rank 2 at times.
 */
static void pairs_learn_later(struct gpu_rank *r, void *context)
{
    static const struct gpu_case fits = {
        .op = ZIPCCL_ALLTOALLV, .dtype = ZIPCCL_BFLOAT16, .count = 6000};
    struct pair_classes *all = context;
    struct zipccl_gpu_options options;
    struct zipccl_gpu_comm *gpu;
    struct gpu_case c = fits;
    struct gpu_buffers b;
    struct zipccl_comm *host;

    gpu_test_options(r, &options);
    options.strategy = "fixed direct";
    options.gate = ZIPCCL_GATE_ALL;
    gpu = gate_comm(r, r->nccl, &options);
    host = gpu_host_comm(r, &options);
    gpu_buffers_open(r, &c, &b);
    memcpy(all->n[r->rank], b.counts[0], sizeof all->n[r->rank]);
    for (unsigned period = 0; r->ok && period < PAIR_PERIODS; period++) {
        for (unsigned i = 0; r->ok && i < ZIPCCL_CLASS_PERIOD; i++) {
            c.spoiled = period != 6 ? 0 : i < 2 ? 6 : 2;
            /* Later the same data again: nobody waits for the device. */
            if (period < 8 && (i == 0 || (period == 6 && i == 2)))
                gpu_case_host(r, &c, &b, host);
            if (!EXPECT(r, gpu_case_call(r, &c, &b, gpu) == ZIPCCL_OK))
                fprintf(stderr, "%s\n", zipccl_gpu_error(gpu));
            if (r->rank == period % PAIR_RANKS && i % 8 == 7)
                EXPECT(r, cudaStreamSynchronize(r->stream) == cudaSuccess);
        }
        read_pair_classes(r, gpu, all, period);
        if (period < 8 || period + 1 == PAIR_PERIODS)
            EXPECT(r, gpu_case_right(r, &c, &b));
    }
    EXPECT(r, zipccl_gpu_async_error(gpu, NULL) == ZIPCCL_OK);
    EXPECT(r, zipccl_gpu_gate_resends(gpu) == ZIPCCL_CLASS_PERIOD);
    gpu_buffers_close(r, &b);
    zipccl_comm_destroy(host);
    zipccl_gpu_destroy(gpu);
}

static bool pairs_learn(void)
{
    static struct pair_classes all;
    bool ok = gpu_world_run(PAIR_RANKS, PAIR_RANKS, pairs_learn_later, &all);

    for (unsigned src = 0; src < PAIR_RANKS; src++)
        for (unsigned dst = 0; dst < PAIR_RANKS; dst++) {
            const int *now = all.out[src][dst];
            int roomier, least;

            if (src == dst)
                continue;
            ok = memcmp(now, all.in[src][dst], sizeof all.out[src][dst]) == 0 && ok;
            /* What began to fit is used three periods later, what ceased to three later as well. */
            ok = now[1] == ZIPCCL_CLASS_WIDE && now[5] > ZIPCCL_CLASS_WIDE && ok;
            ok = (src == 0 ? now[PAIR_PERIODS - 1] >= now[5] : now[9] < now[5]) && ok;
            /* Past neighbours with the same room, which short messages have, as without a gate. */
            roomier = zipccl_class_roomier(ZIPCCL_BFLOAT16, all.n[src][dst], now[5]);
            least = now[5] - ZIPCCL_CLASS_STRIDE;
            ok = (src != 2 || now[9] == (roomier > least ? roomier : least)) && ok;
            for (unsigned k = 0; !ok && k < PAIR_PERIODS; k++)
                fprintf(stderr, "%u to %u, period %u: class %d, at the other end %d\n", src, dst, k,
                        now[k], all.in[src][dst][k]);
        }
    return ok;
}

enum { SHORT_N = 1024, SHORT_BAD = 6 * ZIPCCL_CLASS_PERIOD + 3 };

/* Of one pair: the class before the message that does not fit, and after what it taught. */
struct short_pair {
    int before[2], after[2];
};

/* A short message does not fit: neighbours of its class that have the same room are passed over. */
static void short_overflows(struct gpu_rank *r, void *context)
{
    struct short_pair *pair = context;
    struct zipccl_gpu_options options;
    struct zipccl_gpu_comm *gpu;
    struct zipccl_comm_class cls;
    struct data_random random = {5};
    struct zipccl_gpu_p2p op[2];
    uint16_t data[SHORT_N];

    gpu_test_options(r, &options);
    options.strategy = "fixed direct";
    options.gate = ZIPCCL_GATE_ALL;
    gpu = gate_comm(r, r->nccl, &options);
    for (unsigned bad = 0; bad < 2; bad++) {
        data_fill_type(ZIPCCL_BFLOAT16, bad ? DATA_BITS : DATA_GAUSS, &random, 0.3, data, SHORT_N);
        op[bad] = (struct zipccl_gpu_p2p){
            r->rank == 0, 1 - r->rank, gpu_upload(r, data, sizeof data), SHORT_N, ZIPCCL_BFLOAT16};
    }
    for (unsigned i = 0; r->ok && i < 10 * ZIPCCL_CLASS_PERIOD; i++) {
        EXPECT(r, zipccl_gpu_group(&op[i == SHORT_BAD], 1, gpu, r->stream) == ZIPCCL_OK);
        if (i == SHORT_BAD && zipccl_comm_get_class(zipccl_gpu_core(gpu), 0, &cls))
            pair->before[r->rank] = cls.now;
    }
    if (EXPECT(r, zipccl_comm_get_class(zipccl_gpu_core(gpu), 0, &cls)))
        pair->after[r->rank] = cls.now;
    EXPECT(r, cudaStreamSynchronize(r->stream) == cudaSuccess);
    EXPECT(r, zipccl_gpu_gate_resends(gpu) == 1);
    for (unsigned bad = 0; bad < 2; bad++)
        EXPECT(r, cudaFree(op[bad].buf) == cudaSuccess);
    zipccl_gpu_destroy(gpu);
}

static bool short_pairs(void)
{
    struct short_pair pair = {{-1, -1}, {-2, -2}};
    bool ok = gpu_world_run(2, 2, short_overflows, &pair);
    int next = zipccl_class_roomier(ZIPCCL_BFLOAT16, SHORT_N, pair.before[0]);

    if (ok && pair.before[0] == pair.before[1] && next < pair.before[0] - 1 && next >= 0 &&
        pair.after[0] == next && pair.after[1] == next)
        return true;
    fprintf(stderr, "short pair: classes %d and %d, then %d and %d, not %d\n", pair.before[0],
            pair.before[1], pair.after[0], pair.after[1], next);
    return false;
}

bool gate_learning(void)
{
    bool ok = pairs_learn();

    ok = short_pairs() && ok;
    return gpu_world_run(3, 3, learns_later, NULL) && ok;
}
