/*
 * coll_run.h - one plan that moves data, on all ranks, compared bit by bit
 *
 * Test code, for the tests of plans that do not reduce; on threads and on MPI's processes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_TESTS_COLL_RUN_H
#define ZIPCCL_CORE_TESTS_COLL_RUN_H

#include "core/tests/coll_world.h"

/* One run: the caller fills the first part. */
struct coll_job {
    const struct world *world;
    struct zipccl_transport *const *transports; /* [nranks] */
    const struct coll_case *c;
    struct zipccl_run_stats stats[MAX_RANKS]; /* filled by coll_run() */
};

/* True if the strategy serves the case and has a plan for it. */
bool coll_can_build(const struct world *w, const struct coll_case *c);

/* Run the case; true if on every rank all buffers, and what is around them, are as they must be. */
bool coll_run(struct coll_job *job);

/* True if 'bytes' [nranks * nranks] are those of the lowering, which encodes the messages again. */
bool coll_bytes_right(const struct coll_job *job, const uint64_t *bytes);

#endif
