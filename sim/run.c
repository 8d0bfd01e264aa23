/*
 * run.c - runs a program and hands back its account
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/run.h"

#include "sim/account.h"

#include <stdlib.h>
#include <string.h>

static size_t result_bytes(const struct zipccl_run *run)
{
    const struct zipccl_program *program = run->base->program;

    return sizeof(struct zipccl_result_step) +
           (2 * (size_t)program->nrows + 3 * program->nops * run->kept.nranks) * sizeof(double);
}

static zipccl_status allocate(struct zipccl_run *run)
{
    run->step = calloc(1, result_bytes(run));
    if (run->step == NULL)
        return ZIPCCL_ERR_NOMEM;
    run->row_time = (double *)(void *)(run->step + 1);
    run->row_exposed = run->row_time + run->base->program->nrows;
    run->kept.times = run->row_exposed + run->base->program->nrows;
    return ZIPCCL_OK;
}

static void set_up(struct zipccl_run *run, const struct zipccl_run_base *base, int mode)
{
    memset(run, 0, sizeof(*run));
    run->base = base;
    run->mode = mode;
    zipccl_scenario_init(&run->scenario);
    run->scenario.flows = base->fidelity == ZIPCCL_FIDELITY_T1;
    run->scenario.plans = base->fidelity == ZIPCCL_FIDELITY_T2;
    run->scenario.native = base->native;
}

zipccl_status zipccl_run_init(struct zipccl_run *run, const struct zipccl_run_base *base, int mode)
{
    set_up(run, base, mode);
    return allocate(run);
}

zipccl_status zipccl_run_init_kept(struct zipccl_run *run, const struct zipccl_run_base *base,
                                   int mode)
{
    set_up(run, base, mode);
    run->kept.nranks = base->nkept;
    run->kept.ranks = base->kept;
    return allocate(run);
}

void zipccl_run_release(struct zipccl_run *run)
{
    free(run->step);
    run->step = NULL;
    run->row_time = run->row_exposed = run->kept.times = NULL;
}

static zipccl_status simulate(const struct zipccl_run *run, const struct zipccl_pricing *pricing,
                              struct zipccl_result_step *step, double *rows,
                              struct zipccl_error *error)
{
    const struct zipccl_program *program = run->base->program;
    struct zipccl_kept_times kept = run->kept;
    struct zipccl_times *times;
    zipccl_status status;

    kept.times = rows + 2 * (size_t)program->nrows;
    if (zipccl_times_create(program, &times) != ZIPCCL_OK)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    if (run->base->fidelity == ZIPCCL_FIDELITY_T1)
        status = zipccl_schedule_run(program, pricing, run->mode, times, error);
    else if (run->base->fidelity == ZIPCCL_FIDELITY_T2)
        status = zipccl_schedule_run_messages(program, pricing, run->mode, run->base->samples,
                                              times, error);
    else
        status = zipccl_step_t0_run(program, pricing, run->mode, times);
    if (status == ZIPCCL_OK)
        status = zipccl_account(program, pricing, run->mode, times, step, rows,
                                rows + program->nrows, error);
    if (status == ZIPCCL_OK && kept.nranks > 0)
        zipccl_timeline_keep(program, times, &kept);
    zipccl_times_destroy(times);
    return status;
}

/* In the child: the step, then the rows' times and exposures, then kept times. */
static zipccl_status run_work(void *context, void *result, struct zipccl_error *error)
{
    const struct zipccl_run *run = context;
    struct zipccl_result_step *step = result;
    double *rows = (double *)(void *)(step + 1);
    struct zipccl_pricing *own = NULL;
    zipccl_status status = ZIPCCL_OK;

    if (run->pricing == NULL)
        status = zipccl_pricing_create(run->base->program, run->base->cluster, &run->scenario,
                                       run->base->samples, &own, error);
    if (status == ZIPCCL_OK)
        status = simulate(run, run->pricing != NULL ? run->pricing : own, step, rows, error);
    zipccl_pricing_destroy(own);
    return status;
}

void zipccl_run_copy(struct zipccl_run *to, const struct zipccl_run *from)
{
    size_t a = result_bytes(to), b = result_bytes(from);

    memcpy(to->step, from->step, a < b ? a : b);
}

struct zipccl_child_task zipccl_run_task(struct zipccl_run *run)
{
    return (struct zipccl_child_task){run_work, run, run->step, result_bytes(run)};
}

zipccl_status zipccl_run_execute(struct zipccl_run *runs, uint32_t nruns, uint32_t nprocs,
                                 struct zipccl_error *error)
{
    struct zipccl_child_task tasks[4];

    for (uint32_t i = 0; i < nruns && i < 4; i++)
        tasks[i] = zipccl_run_task(&runs[i]);
    return zipccl_child_run(tasks, nruns < 4 ? nruns : 4, nprocs, NULL, NULL, error);
}

zipccl_status zipccl_run_here(struct zipccl_run *run, struct zipccl_error *error)
{
    return run_work(run, run->step, error);
}
