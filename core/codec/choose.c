/*
 * choose.c - tier program and bases of a superblock, from 64 exponents of each sub-block
 *
 * The mean exponent of a Gaussian lies 1.416 octaves below log2(sigma), wherever sigma is:
 * it places base and order without a histogram.  Where the sample says that the data is no
 * Gaussian, the other programs and bases are tried on the sample.  Integer arithmetic only, so
 * every row chooses the same.  Locations are mean exponents in 1/256 octave.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/superblock.h"

#include <string.h>

/* Three standard deviations of a mean of 64 exponents of a Gaussian (1.60 octaves / 8). */
#define DEVIATION 154

/*
 * base = (location + shift) >> 8.  The shifts minimise the exact code length of a Gaussian over
 * its phase.  For 2-1-2-2-2 base and order are one choice: the order turns at TURN.
 */
#define SHIFT_BOTH_ORDERS 483
#define TURN              180
static const int shifts[ZIPCCL_NUM_PROGRAMS] = {
    [ZIPCCL_PROGRAM_2222] = 477,
    [ZIPCCL_PROGRAM_21222_UP] = 525,
    [ZIPCCL_PROGRAM_21222_DOWN] = 409,
};

/*
 * A Gaussian costs 2.59 to 2.66 bits an exponent, of which 1024 samples show within 0.04.
 * Estimates above 2.75 start a search; what it finds must gain 1/32 bit, more than chance gives.
 */
#define GAUSSIAN_BITS_X4 11
#define MARGIN_DIVISOR   32
/* Estimates from here on are of bits without a scale, where no base would help. */
#define HOPELESS_BITS 12
/* Octaves that a search walks to either side. */
#define WALK 6

/* All that choosing looks at. */
struct choice {
    const struct zipccl_row *row;
    const struct zipccl_sample *sample;
    size_t nsub;
    uint32_t nsampled;
    int location[ZIPCCL_SUBBLOCKS]; /* the common one unless 'own' */
    bool own[ZIPCCL_SUBBLOCKS];     /* the sub-block's scale is not the superblock's */
};

/* The best found so far. */
struct found {
    uint32_t bits;
    uint8_t program;
    uint8_t base[ZIPCCL_SUBBLOCKS];
};

static uint8_t base_of(int location, int shift)
{
    int base = (location + shift) >> 8;
    return (uint8_t)(base < 0 ? 0 : base > 255 ? 255 : base);
}

/* Mean location of the sub-blocks within 'deviation' of 'centre'; 'centre' if there is none. */
static int mean_near(const struct choice *c, int centre, int deviation)
{
    uint32_t sum = 0, nvalid = 0;
    for (size_t i = 0; i < c->nsub; i++) {
        int away = c->location[i] - centre;
        if (away > deviation || away < -deviation)
            continue;
        sum += c->sample[i].sum;
        nvalid += c->sample[i].nvalid;
    }
    return nvalid ? (int)((256 * sum + nvalid / 2) / nvalid) : centre;
}

/* Sample every sub-block and find its location; returns the one most of them share. */
static int locate(struct choice *c, const uint8_t *src, size_t m, struct zipccl_sample *sample)
{
    c->nsampled = 0;
    for (size_t i = 0; i < c->nsub; i++) {
        size_t first = i * ZIPCCL_SUBBLOCK, left = m - first;
        struct zipccl_sample *s = &sample[i];
        c->row->sample(src + 2 * first, i, left < ZIPCCL_SUBBLOCK ? left : ZIPCCL_SUBBLOCK, s);
        c->nsampled += s->nsampled;
        c->location[i] = s->nvalid ? (int)((256 * s->sum + s->nvalid / 2) / s->nvalid) : 0;
    }
    /* The second mean leaves out the sub-blocks that have a scale of their own. */
    int centre = mean_near(c, mean_near(c, 0, 256 * 256), DEVIATION + DEVIATION / 2);
    for (size_t i = 0; i < c->nsub; i++) {
        int away = c->location[i] - centre;
        c->own[i] = sample[i].nvalid != 0 && (away > DEVIATION || away < -DEVIATION);
        if (!c->own[i])
            c->location[i] = centre;
    }
    return centre;
}

/* Estimated bits of the sampled exponents. */
static uint32_t estimate(const struct choice *c, uint8_t program, const uint8_t *bases)
{
    const struct zipccl_tier_program *p = &zipccl_programs[program];
    uint32_t escapes[ZIPCCL_MAX_TIERS], bits = c->nsampled * p->tier[0].width;
    c->row->escapes(c->sample, c->nsub, bases, p, escapes);
    for (int t = 1; t < p->ntiers; t++)
        bits += escapes[t - 1] * p->tier[t].width;
    return bits + 8 * escapes[p->ntiers - 1];
}

/* Walk the bases of 'program' from 'octave' on while that lowers the estimate. */
static void walk(const struct choice *c, uint8_t program, int octave, int step, struct found *best)
{
    uint32_t last = UINT32_MAX;
    for (; octave >= -WALK && octave <= WALK; octave += step) {
        uint8_t bases[ZIPCCL_SUBBLOCKS] = {0};
        for (size_t i = 0; i < c->nsub; i++)
            bases[i] = base_of(c->location[i], shifts[program] + 256 * octave);
        uint32_t bits = estimate(c, program, bases);
        if (bits < best->bits) {
            best->bits = bits;
            best->program = program;
            memcpy(best->base, bases, sizeof bases);
        }
        if (bits > last)
            return;
        last = bits;
    }
}

void zipccl_choose(const struct zipccl_row *row, const uint8_t *src, size_t m,
                   struct zipccl_scratch *scratch, struct zipccl_entry *entry)
{
    struct choice c = {
        .row = row, .sample = scratch->sample, .nsub = (m + ZIPCCL_SUBBLOCK - 1) / ZIPCCL_SUBBLOCK};
    int centre = locate(&c, src, m, scratch->sample);

    bool up = ((centre + SHIFT_BOTH_ORDERS) & 255) < TURN;
    entry->program = up ? ZIPCCL_PROGRAM_21222_UP : ZIPCCL_PROGRAM_21222_DOWN;
    for (size_t i = 0; i < c.nsub; i++)
        entry->base[i] =
            base_of(c.location[i], c.own[i] ? shifts[entry->program] : SHIFT_BOTH_ORDERS);

    uint32_t bits = estimate(&c, entry->program, entry->base);
    if (4 * bits <= GAUSSIAN_BITS_X4 * c.nsampled)
        return;
    uint32_t margin = c.nsampled / MARGIN_DIVISOR;
    struct found best = {.bits = bits - margin, .program = entry->program};
    memcpy(best.base, entry->base, sizeof best.base);
    bool hopeless = bits >= HOPELESS_BITS * c.nsampled;
    for (uint8_t program = ZIPCCL_PROGRAM_2222; program < ZIPCCL_NUM_PROGRAMS && !hopeless;
         program++) {
        walk(&c, program, 0, 1, &best);
        walk(&c, program, -1, -1, &best);
    }
    /* Coding would not pay: leave the exponents as they are. */
    bool raw = hopeless || best.bits >= 8 * c.nsampled;
    entry->program = raw ? ZIPCCL_PROGRAM_RAW : best.program;
    memcpy(entry->base, best.base, sizeof best.base);
}
