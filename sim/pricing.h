/*
 * pricing.h - every distinct call of a program, chosen and priced at T0 for one cluster
 *
 * A communicator's price depends on where its ranks lie, so a call is priced once per placement
 * (ranks of a part by node and slot).  Adaptive takes the cheaper of the best uncompressed and the
 * best compressed plan, whatever raw is, which is what zipccl_choose() does in that mode.
 *
 * Fixed messages are priced in the capacity class that a communicator settles in after many steps: the
 * narrowest that the samples of all calls fit which share a class (core/classes.h), since one that
 * overflows now and then widens it for all.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_PRICING_H
#define ZIPCCL_SIM_PRICING_H

#include "core/strategy.h"
#include "sim/flow.h"
#include "sim/program.h"
#include "sim/result.h"

/* One call under one mode. */
struct zipccl_price {
    struct zipccl_flow *flow;     /* owned; NULL for a call that moves nothing */
    struct zipccl_plan *plan;     /* owned; NULL unless asked for, or for such a call */
    double total_s, codec_s;      /* closed form, beside the other groups of its set (sharing.h) */
    double raw_bytes, wire_bytes; /* per rank, mean; wire: raw at the ratio of what is coded */
    double sent_bytes;            /* all payload, levels inside a node included */
    bool compressed;
    int capacity_class;     /* of FIXED messages; ZIPCCL_NO_CLASS: it has none */
    double capacity_ratio;  /* raw / capacity of a full one; 0: it has none */
    bool overflows_settled; /* some sample of a full message is longer than the settled capacity */
    char name[48];
};

/* One call on one placement. */
struct zipccl_priced_call {
    struct zipccl_price raw, compressed;
    struct zipccl_price plain; /* the best uncompressed plan, where raw is the library's own */
    bool has_plain;
    struct zipccl_topology *topology; /* owned; of the plans, NULL if there are none */
};

/* Runs of a step: the modes of the result, and adaptive with some rows changed (adapt.h). */
enum { ZIPCCL_RUN_REFINED = ZIPCCL_NUM_STEPS, ZIPCCL_NUM_RUNS };

struct zipccl_pricing {
    struct zipccl_cluster cluster;
    bool raw_only;           /* as in the scenario */
    unsigned char *row_mode; /* [nrows] ZIPCCL_STEP_... that ZIPCCL_RUN_REFINED takes */
    uint32_t nclasses;
    uint32_t ncalls;
    struct zipccl_priced_call *calls; /* [ncalls] */
    uint32_t **call_of;               /* [nclasses][nparts] index into 'calls' */
};

/* What differs from the cluster and the samples as they are. */
struct zipccl_scenario {
    double nic_factor;   /* times nic.rate */
    double ratio_delta;  /* added to every ratio, at least 1 in the end */
    double codec_factor; /* times encode and decode rate */
    bool flows;          /* make flows; T0 alone needs none */
    bool plans;          /* keep plans; T2 runs them */
    bool raw_only;       /* the other modes are not asked for */
    bool native;         /* raw is the library's own algorithm, not the best uncompressed plan */
};

void zipccl_scenario_init(struct zipccl_scenario *scenario);

/*
 * Price all calls of 'program'.
 *
 * samples  sizes measured on the way are remembered in it
 * ZIPCCL_ERR_INPUT if no strategy serves a call, naming it; as zipccl_samples_check().
 */
zipccl_status zipccl_pricing_create(const struct zipccl_program *program,
                                    const struct zipccl_cluster *cluster,
                                    const struct zipccl_scenario *scenario,
                                    struct zipccl_samples *samples, struct zipccl_pricing **out,
                                    struct zipccl_error *error);
void zipccl_pricing_destroy(struct zipccl_pricing *pricing);

/* The price of a part of an event in 'mode': ZIPCCL_STEP_... or ZIPCCL_RUN_REFINED. */
const struct zipccl_price *zipccl_pricing_get(const struct zipccl_pricing *pricing,
                                              const struct zipccl_program_event *event,
                                              uint32_t part, int mode);

/* The call that this is a price of. */
const struct zipccl_priced_call *zipccl_pricing_call(const struct zipccl_pricing *pricing,
                                                     const struct zipccl_program_event *event,
                                                     uint32_t part);

/* Whether adaptive does the same as 'mode' for every call, so that one replay serves both. */
bool zipccl_pricing_adaptive_is(const struct zipccl_pricing *pricing, int mode);

#endif
