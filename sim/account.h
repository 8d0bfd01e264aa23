/*
 * account.h - where the time of a step went, on the rank that ends last
 *
 * compute + codec_slow + exposed + wait = step, exactly.  Time in which the rank computes is
 * compute, as long as it takes alone, and codec_slow, what it took longer.  Time in which it does
 * not is followed back along what the next work waited for: it is exposed communication (of a row)
 * while that collective moves, and wait while the collective waits for a rank that came late.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_ACCOUNT_H
#define ZIPCCL_SIM_ACCOUNT_H

#include "sim/times.h"

/*
 * Account 'times'.
 *
 * pricing      for the codec's time; NULL: measured times, 'codec_s' stays 0
 * row_time     [nrows] sum over calls of a rank, of the rank with the largest sum
 * row_exposed  [nrows] on the rank that ends last
 * ZIPCCL_ERR_NOMEM; ZIPCCL_ERR_INTERNAL if the parts do not add up.
 */
zipccl_status zipccl_account(const struct zipccl_program *program,
                             const struct zipccl_pricing *pricing, int mode,
                             const struct zipccl_times *times, struct zipccl_result_step *step,
                             double *row_time, double *row_exposed, struct zipccl_error *error);

#endif
