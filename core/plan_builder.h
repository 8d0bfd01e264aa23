/*
 * plan_builder.h - how strategies put plans together
 *
 * Private to core.  A builder grows one plan; the first failure sticks and is returned by
 * zipccl_builder_finish(), so that strategies read without error handling at each step.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_PLAN_BUILDER_H
#define ZIPCCL_CORE_PLAN_BUILDER_H

#include "core/plan.h"
#include "core/strategy.h"

struct zipccl_builder {
    struct zipccl_plan *plan; /* owned until finish */
    uint32_t room;            /* steps allocated */
    zipccl_status status;     /* first failure */
};

/*
 * Start a plan for 'call'.
 *
 * name      of the strategy
 * channels  > 0: of a ring, added to the name; 0: not a ring
 */
void zipccl_builder_start(struct zipccl_builder *builder, const struct zipccl_call *call,
                          const struct zipccl_topology *topology, const char *name,
                          uint32_t channels);

/* Append a copy of 'step' (its deps are kept); the number of the step, 0 after a failure. */
uint16_t zipccl_builder_add(struct zipccl_builder *builder, const struct zipccl_step *step);

/* Hand the plan over, or destroy it and return the first failure. */
zipccl_status zipccl_builder_finish(struct zipccl_builder *builder, struct zipccl_plan **out);

/* A step with all references NONE. */
struct zipccl_step zipccl_step_make(enum zipccl_step_kind kind, enum zipccl_lane lane,
                                    uint32_t chunk, size_t n);

/* Add an earlier step to the deps of a step under construction; NONE adds nothing. */
void zipccl_step_dep(struct zipccl_step *step, uint16_t on);

#endif
