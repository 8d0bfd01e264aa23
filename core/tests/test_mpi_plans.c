/*
 * test_mpi_plans.c - plans over MPI: every bit, the reference's bits, the lowering's bytes
 *
 * Run by mpirun with 8 processes.  For worlds of 1 to 8 of them: every strategy and every op, with
 * inputs that compress, that are full of special values and that overflow, in place and not; fewer
 * combinations than test_collectives and test_reduce_plans, which see the same plans on threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/coll_run.h"
#include "core/tests/mpi_world.h"
#include "core/tests/reduce_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct totals {
    unsigned moves, reductions, resends;
};

/* The first failure ends the job: the ranks would disagree on what comes next. */
static void fail(void)
{
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static bool is_native(const struct zipccl_strategy *s)
{
    return strncmp(s->name, "native", 6) == 0;
}

static void run_move(const struct world *w, const struct coll_case *c, struct totals *totals)
{
    struct coll_job job = {.world = w, .c = c, .transports = w->t};
    uint64_t bytes[MAX_RANKS * MAX_RANKS];
    bool ok;

    mpi_world_reset_bytes(w);
    ok = coll_run(&job);
    if (ok && !is_native(c->strategy)) { /* MPI's own way of forwarding is not ours to say */
        mpi_world_bytes(w, bytes);
        ok = coll_bytes_right(&job, bytes);
    }
    totals->moves++;
    for (uint32_t r = 0; r < w->nranks; r++)
        totals->resends += job.stats[r].raw_resends;
    if (!ok) {
        case_print(c, w);
        fail();
    }
}

/* 'k' takes turns with what is not crossed with everything. */
static void run_moves(const struct world *w, struct totals *totals)
{
    static const enum zipccl_op ops[] = {ZIPCCL_ALL_GATHER, ZIPCCL_ALLTOALL, ZIPCCL_ALLTOALLV,
                                         ZIPCCL_SENDRECV, ZIPCCL_BROADCAST};
    static const size_t counts[] = {1, 1001, 33, 5003, 0, 31};
    static const uint32_t nchunks[] = {1, 5, 2};
    unsigned k = w->nranks;

    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++)
        for (size_t s = 0; zipccl_strategies[s] != NULL; s++)
            for (unsigned kind = 0; kind < NUM_KINDS; kind++, k++) {
                bool placeable = ops[o] == ZIPCCL_ALL_GATHER || ops[o] == ZIPCCL_BROADCAST;
                struct coll_case c = {.op = ops[o],
                                      .strategy = zipccl_strategies[s],
                                      .kind = (enum kind)kind,
                                      .count = counts[(k + kind / 2) % (SANITIZED ? 3 : 6)],
                                      .nchunks = nchunks[k % 3],
                                      .channels = 1 + k % 2 * 2,
                                      .root = ops[o] == ZIPCCL_BROADCAST ? k % w->nranks : 0,
                                      .split = (enum split)(k / 2 % NUM_SPLITS),
                                      .in_place = placeable && k % 2};

                if (ops[o] == ZIPCCL_SENDRECV && (c.split == SPLIT_RANDOM || c.split == SPLIT_NONE))
                    c.split = SPLIT_SHIFT;
                if (!c.strategy->chunked)
                    c.nchunks = 1;
                if (strstr(c.strategy->name, "split") != NULL) { /* small messages have no parts */
                    if (SANITIZED && k % 3 != 0)
                        continue;
                    c.count = c.nchunks * 20011u;
                }
                if (coll_can_build(w, &c))
                    run_move(w, &c, totals);
            }
}

static void run_reduction(const struct world *w, const struct reduce_case *c, struct totals *totals)
{
    struct reduce_inputs inputs;
    struct reduce_job job = {
        .world = w, .c = c, .inputs = &inputs, .transports = w->t, .execs = w->exec};
    uint64_t bytes[MAX_RANKS * MAX_RANKS];
    bool ok;

    reduce_inputs_open(&inputs, c, w->nranks);
    if (reduce_open(&job)) {
        mpi_world_reset_bytes(w);
        ok = reduce_run(&job);
        mpi_world_bytes(w, bytes);
        ok = ok && reduce_bytes_right(&job, bytes);
        totals->reductions++;
        for (uint32_t r = 0; r < w->nranks; r++)
            totals->resends += job.stats[r].raw_resends;
        if (!ok) {
            reduce_print(&job);
            fail();
        }
        reduce_close(&job);
    }
    reduce_inputs_close(&inputs);
}

static void run_reductions(const struct world *w, struct totals *totals)
{
    static const enum zipccl_dtype dtypes[] = {ZIPCCL_BFLOAT16, ZIPCCL_FLOAT16, ZIPCCL_FLOAT32};
    static const size_t counts[] = {1001, 1, 33, 4007, 32};
    static const uint32_t nchunks[] = {1, 2, 5, 7};
    unsigned k = w->nranks;

    for (unsigned op = 0; op < 2; op++)
        for (size_t s = 0; zipccl_strategies[s] != NULL; s++)
            for (unsigned kind = 0; kind <= KIND_CANCEL; kind++, k++) {
                struct reduce_case c = {.op = op ? ZIPCCL_ALL_REDUCE : ZIPCCL_REDUCE_SCATTER,
                                        .dtype = dtypes[k % 3],
                                        .redop = k / 3 % 2 ? ZIPCCL_AVG : ZIPCCL_SUM,
                                        .strategy = zipccl_strategies[s],
                                        .count = counts[(k + kind) % (SANITIZED ? 3 : 5)],
                                        .nchunks = nchunks[k % 4],
                                        .capacity_class = k * 5 % ZIPCCL_NUM_CLASSES,
                                        .kind = (enum kind)kind,
                                        .in_place = k / 2 % 2};

                if (!is_native(c.strategy))
                    run_reduction(w, &c, totals);
            }
}

/* A world's node numbers; the pieces are small in every other, so that messages have several. */
static void run_world(uint32_t nranks, const uint32_t *node_ids, bool small_pieces,
                      struct totals *totals)
{
    struct zipccl_transport_mpi_config config;
    struct world w;

    if (mpi_rank() < nranks) {
        zipccl_transport_mpi_config_init(&config);
        if (small_pieces)
            config.piece_bytes = 1002;
        mpi_world_open(&w, nranks, node_ids, &config);
        run_moves(&w, totals);
        run_reductions(&w, totals);
        mpi_world_close(&w);
    }
    mpi_meet();
}

int main(int argc, char **argv)
{
    static const uint32_t odd_nodes[] = ODD_NODES, mixed_nodes[] = MIXED_NODES;
    static const uint32_t per_node[][2] = {{1, 1}, {2, 1}, {3, 1}, {4, 2}, {7, 7}, {8, 4}, {8, 1}};
    struct totals totals = {0, 0, 0};

    mpi_start(&argc, &argv);
    if (mpi_size() < 8) {
        fprintf(stderr, "%u processes, expected 8: mpirun -n 8\n", mpi_size());
        return 1;
    }
    run_world(sizeof odd_nodes / sizeof *odd_nodes, odd_nodes, false, &totals);
    run_world(sizeof mixed_nodes / sizeof *mixed_nodes, mixed_nodes, true, &totals);
    for (size_t i = 0; i < sizeof per_node / sizeof *per_node; i++) {
        uint32_t node_ids[MAX_RANKS];

        if (SANITIZED && i % 2 == 0 && i > 0)
            continue;
        for (uint32_t r = 0; r < per_node[i][0]; r++)
            node_ids[r] = r / per_node[i][1];
        run_world(per_node[i][0], node_ids, i % 2 == 0, &totals);
    }
    if (mpi_rank() == 0)
        printf("%u plans that move, %u that reduce, %u raw resends\n", totals.moves,
               totals.reductions, totals.resends);
    MPI_Finalize();
    return totals.resends > 0 ? 0 : 1;
}
