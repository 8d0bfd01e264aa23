/*
 * timeline_build.h - makes timelines out of a run's times; private to the replay
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_TIMELINE_BUILD_H
#define ZIPCCL_SIM_TIMELINE_BUILD_H

#include "sim/timeline.h"
#include "sim/times.h"

/* Times of the ranks that a timeline shows; enter, start and end, end < 0 where an op did not run. */
struct zipccl_kept_times {
    uint32_t nranks;
    const uint32_t *ranks; /* [nranks] */
    double *times;         /* [nops * nranks * 3] */
};

/*
 * Choose the ranks of a timeline: all if there are at most 'most', else the first rank of each
 * node, or of every k-th node if those are too many.  The caller frees '*ranks'.
 */
zipccl_status zipccl_timeline_choose(uint32_t nranks, uint32_t gpus_per_node, uint32_t most,
                                     uint32_t **ranks, uint32_t *nchosen);

/* Copy the times of kept->ranks out of 'times', which are of 'program'. */
void zipccl_timeline_keep(const struct zipccl_program *program, const struct zipccl_times *times,
                          struct zipccl_kept_times *kept);

/* Make the timeline of 'mode'; ZIPCCL_ERR_NOMEM. */
zipccl_status zipccl_timeline_create(const struct zipccl_program *program,
                                     const struct zipccl_pricing *pricing, int mode,
                                     const struct zipccl_kept_times *kept,
                                     struct zipccl_timeline **out);

#endif
