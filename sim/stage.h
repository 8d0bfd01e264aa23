/*
 * stage.h - where a program's collectives are played as messages (T2)
 *
 * A communicator for each (group, part, stream), made when its first rank comes.  Payload goes by
 * pointer: sizes come from the samples, headers and counts are real, elements are not there.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_STAGE_H
#define ZIPCCL_SIM_STAGE_H

#include "sim/pricing.h"
#include "sim/t2.h"

/* Messages of one mode of one replay; more would take hours (docs/simulation.md has rates). */
#define ZIPCCL_STAGE_MAX_MESSAGES 1e8

struct zipccl_stage;

/*
 * Load the pricing's cluster for messages.  Once per process.
 * ZIPCCL_ERR_UNSUPPORTED if the program would take more than ZIPCCL_STAGE_MAX_MESSAGES.
 */
zipccl_status zipccl_stage_open(const struct zipccl_program *program,
                                const struct zipccl_pricing *pricing, int mode,
                                struct zipccl_samples *samples, struct zipccl_stage **out,
                                struct zipccl_error *error);
void zipccl_stage_close(struct zipccl_stage *stage);

const struct zipccl_platform *zipccl_stage_platform(const struct zipccl_stage *stage);

/* Run world rank 'rank's share of 'event' on 'part' of its group; in an actor on its GPU. */
zipccl_status zipccl_stage_run(struct zipccl_stage *stage, const struct zipccl_program_event *event,
                               uint32_t part, uint32_t rank);

#endif
