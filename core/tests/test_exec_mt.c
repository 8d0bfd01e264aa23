/*
 * test_exec_mt.c - ranks with other numbers of threads understand each other
 *
 * Reductions on ranks whose execs have one, two and three threads; bits, overflows and the bytes
 * sent are those of the reference, which knows no threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec_mt.h"
#include "core/tests/reduce_run.h"
#include "core/zipccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Elements of a block: enough for a pool to be used. */
#define COUNT 131101u

static const char *const strategies[] = {"raw direct", "fixed direct", "exact direct",
                                         "fixed two-level", "exact two-level"};

static unsigned nruns;

static bool run_case(const struct world *w, struct zipccl_exec *const *execs,
                     const struct reduce_case *c)
{
    struct reduce_inputs inputs;
    struct reduce_job job = {
        .world = w, .c = c, .inputs = &inputs, .transports = w->t, .execs = execs};
    uint64_t bytes[MAX_RANKS * MAX_RANKS];
    bool right;

    reduce_inputs_open(&inputs, c, w->nranks);
    if (!reduce_open(&job))
        abort();
    zipccl_transport_mem_reset_bytes(w->t[0]);
    right = reduce_run(&job);
    for (uint32_t i = 0; i < w->nranks * w->nranks; i++)
        bytes[i] = zipccl_transport_mem_bytes(w->t[0], i / w->nranks, i % w->nranks);
    right = right && reduce_bytes_right(&job, bytes);
    if (!right)
        reduce_print(&job);
    nruns++;
    reduce_close(&job);
    reduce_inputs_close(&inputs);
    return right;
}

static bool test_creation(void)
{
    struct zipccl_exec *exec = NULL;
    enum zipccl_isa best = zipccl_isa_best();

    return zipccl_exec_cpu_create_mt(best, 0, &exec) == ZIPCCL_ERR_ARG &&
           zipccl_exec_cpu_create_mt(best, ZIPCCL_MAX_THREADS + 1, &exec) == ZIPCCL_ERR_ARG &&
           zipccl_exec_cpu_create_mt(ZIPCCL_NUM_ISAS, 2, &exec) == ZIPCCL_ERR_ARG && exec == NULL;
}

int main(void)
{
    static const enum kind kinds[] = {KIND_GAUSS, KIND_MIXED, KIND_SPECIAL};
    static const enum zipccl_dtype types[] = {ZIPCCL_BFLOAT16, ZIPCCL_FLOAT32};
    struct zipccl_exec *execs[4];
    bool ok = test_creation();
    struct world w;

    world_open_even(&w, 2, 2);
    for (uint32_t r = 0; r < w.nranks; r++)
        if (zipccl_exec_cpu_create_mt(zipccl_isa_best(), 1 + r % 3, &execs[r]) != ZIPCCL_OK)
            abort();
    for (size_t s = 0; s < sizeof strategies / sizeof *strategies; s++)
        for (unsigned k = 0; k < (SANITIZED ? 2 : 3); k++)
            for (unsigned d = 0; d < (SANITIZED ? 1 : 2); d++) {
                struct reduce_case c = {.op = k == 1 ? ZIPCCL_ALL_REDUCE : ZIPCCL_REDUCE_SCATTER,
                                        .dtype = types[d],
                                        .redop = k == 2 ? ZIPCCL_AVG : ZIPCCL_SUM,
                                        .strategy = zipccl_strategy_find(strategies[s]),
                                        .count = k == 1 ? 4 * COUNT : COUNT,
                                        .nchunks = 1,
                                        .kind = kinds[k],
                                        .in_place = k == 1};

                ok = run_case(&w, execs, &c) && ok;
            }
    for (uint32_t r = 0; r < w.nranks; r++)
        execs[r]->ops->destroy(execs[r]);
    world_close(&w);
    printf("%u runs, %s\n", nruns, ok ? "all right" : "some wrong");
    return ok && nruns > 0 ? 0 : 1;
}
