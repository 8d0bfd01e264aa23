/*
 * exponent_probe.h - asks the encoder what it would choose for a sample that deviates
 *
 * zipccl_choose() sees its data only through a row.  The row here makes up what a sample would
 * say: a location that deviates by a given amount, and costs as the probabilities have them.  So
 * thresholds, shifts and searches are the codec's own, but for where a search starts, which has
 * to be known to give its probability.  Used by exponent_choice.c alone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_MODELS_EXPONENT_PROBE_H
#define ZIPCCL_MODELS_EXPONENT_PROBE_H

#include "core/codec/superblock.h"
#include "models/exponent.h"

#include <stddef.h>

/* Exponents further from a sample's mean than this are pulled in (core/codec/row.h). */
#define ZIPCCL_PULL 6

/* Probabilities of one sampled exponent after pulling, from 'lowest' on, and its moments. */
struct zipccl_pulled {
    int lowest;
    double p[2 * ZIPCCL_PULL + 1];
    double mean, variance; /* of the exponent field, given that it is valid */
};

/* How much is sampled in one round of looks. */
struct zipccl_sampled {
    size_t n, nvalid, nvalid_first; /* nvalid_first: of sub-block 0 */
};

/* Chances below this are none. */
#define ZIPCCL_RARE 1e-11

struct zipccl_answer {
    double search;                         /* probability that the sample starts a search */
    struct zipccl_entry quiet;             /* what is chosen without one */
    struct zipccl_entry searched;          /* what one finds, if it is not too rare */
    struct zipccl_sampled sampled, looked; /* before and in a search */
};

struct zipccl_probe;

/*
 * Create a probe for superblocks of 'm' elements with exponents of probability
 * p [ZIPCCL_NUM_EXPONENTS]; NULL without memory.
 */
struct zipccl_probe *zipccl_probe_create(const double *p, size_t m);
void zipccl_probe_destroy(struct zipccl_probe *probe);
const struct zipccl_pulled *zipccl_probe_pulled(const struct zipccl_probe *probe);

/*
 * Ask for the choice if the common location deviates by 'common', and that of sub-block 0 by
 * 'own' more, both in 1/256 octave.  Searches less likely than 'rare' are not asked for: 'search'
 * is then 0.
 */
void zipccl_probe_ask(struct zipccl_probe *probe, double common, double own, double rare,
                      struct zipccl_answer *out);

#endif
