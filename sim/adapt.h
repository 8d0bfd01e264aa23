/*
 * adapt.h - the adaptive step: which rows are compressed when the step is seen as a whole
 *
 * Call by call, adaptive takes the cheaper plan (pricing.h).  In a step that is not always best:
 * the codec of a collective that compute hides slows that compute, and collectives at once contend.
 * So the adaptive step is the shortest of four: call by call; refined, where rows whose compression
 * does not shorten the step at T0 go raw; always raw; always compressed.  The result, its
 * sensitivities and the searches all take theirs from here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_ADAPT_H
#define ZIPCCL_SIM_ADAPT_H

#include "sim/run.h"

/* The runs of one step; modes that others serve are copies of those. */
struct zipccl_adapted {
    struct zipccl_run runs[ZIPCCL_NUM_RUNS];
    uint32_t nreverted; /* rows that refinement sends raw */
    bool refined;       /* the refined step was run */
    int best;           /* ZIPCCL_STEP_... or ZIPCCL_RUN_REFINED: the adaptive step */
};

/* How the runs are done. */
struct zipccl_adapt_options {
    uint32_t nprocs;              /* children at once */
    bool keep;                    /* keep the times of base->kept */
    const struct zipccl_run *raw; /* the raw run if it is known; NULL: it is run */
    void (*finished)(void *context, uint32_t ndone); /* NULL if not wanted */
    void *context;
};

/*
 * Run a step and choose; the caller releases 'out', after a failure too.
 *
 * pricing  of the scenario; its refined choice is set
 * ZIPCCL_ERR_NOMEM; as zipccl_child_run()
 */
zipccl_status zipccl_adapt(const struct zipccl_run_base *base, struct zipccl_pricing *pricing,
                           const struct zipccl_adapt_options *options, struct zipccl_adapted *out,
                           struct zipccl_error *error);
void zipccl_adapted_release(struct zipccl_adapted *adapted);

/* What the adaptive step is if it is not call by call; "" if it is. */
void zipccl_adapted_describe(const struct zipccl_adapted *adapted, char *text, size_t capacity);

/* A step in four numbers; comm_s are sums over rows. */
struct zipccl_adapted_step {
    double raw_s, adaptive_s, raw_comm_s, adaptive_comm_s;
};

/*
 * Price 'scenario' and run its step at base->fidelity, one simulation after another.
 *
 * raw  as in the options
 * With scenario->raw_only the adaptive step is the raw one.
 */
zipccl_status zipccl_adapt_step(const struct zipccl_run_base *base,
                                const struct zipccl_scenario *scenario,
                                const struct zipccl_run *raw, struct zipccl_adapted_step *out,
                                struct zipccl_error *error);

#endif
