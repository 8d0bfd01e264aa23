/*
 * simai_sums.h - what one rank does in an imported step, by column and call of a SimAI file
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_TESTS_SIMAI_SUMS_H
#define ZIPCCL_TRACES_TESTS_SIMAI_SUMS_H

#include "traces/trace.h"

/* All calls of one column with one name. */
struct simai_sum {
    char phase[4], type[40]; /* "fwd", "ALLTOALL_EP" */
    uint64_t count, nbytes;
};

struct simai_sums {
    size_t n;
    struct simai_sum sum[64];
    uint64_t ns[3]; /* compute: fwd, ig, wg */
    uint64_t nsends, send_nbytes;
};

/* Add up what 'rank' runs, loops written out; fails the test on a label or loop it cannot read. */
void simai_sums_of(const struct zipccl_trace *trace, uint32_t rank, struct simai_sums *out);

/* The sum of a column and call; all zero if there is none. */
struct simai_sum simai_sums_find(const struct simai_sums *sums, const char *phase,
                                 const char *type);

#endif
