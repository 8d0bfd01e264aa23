/*
 * times.h - when every op of a program ran on every rank, under one mode
 *
 * Filled by schedule.c (T1, T2) or step_t0.c (T0), read by the account.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_TIMES_H
#define ZIPCCL_SIM_TIMES_H

#include "sim/pricing.h"

/* Index op * nranks + rank; a rank that takes no part has end 0 and 'ran' 0. */
struct zipccl_times {
    uint32_t nranks;
    size_t nops;
    double *enter; /* the rank got there: its stream and dependencies were done */
    double *start; /* collective: the last rank entered; compute: as enter */
    double *end;
    unsigned char *ran;
    double step_s; /* end of the last op */
};

zipccl_status zipccl_times_create(const struct zipccl_program *program, struct zipccl_times **out);
void zipccl_times_destroy(struct zipccl_times *times);

/*
 * Run 'program' in SimGrid (T1): every (rank, stream) an in-order queue.  Once per process.
 * mode  ZIPCCL_STEP_RAW, _COMPRESSED or _ADAPTIVE
 */
zipccl_status zipccl_schedule_run(const struct zipccl_program *program,
                                  const struct zipccl_pricing *pricing, int mode,
                                  struct zipccl_times *times, struct zipccl_error *error);

/*
 * The same at message level (T2): every rank runs its part of every collective.  Payload goes by
 * pointer, sizes are those of 'samples', as in the pricing, which must have kept its plans.
 * ZIPCCL_ERR_UNSUPPORTED if it would take more messages than is sensible.
 */
zipccl_status zipccl_schedule_run_messages(const struct zipccl_program *program,
                                           const struct zipccl_pricing *pricing, int mode,
                                           struct zipccl_samples *samples,
                                           struct zipccl_times *times, struct zipccl_error *error);

/*
 * The same schedule with T0 durations, in plain C: collectives do not slow one another.  The codec
 * takes its SM share from the compute that runs beside it; what it takes from compute that was
 * placed before is added to the rank's next compute.  ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_step_t0_run(const struct zipccl_program *program,
                                 const struct zipccl_pricing *pricing, int mode,
                                 struct zipccl_times *times);

#endif
