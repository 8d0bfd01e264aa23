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
 * Above 2.75 there is a search; from 12 on the data has no scale and a search would be in vain.
 */
#define GAUSSIAN_BITS_X4 11
#define HOPELESS_BITS    12
/* Bits that another base must gain on a sub-block's sample, against chance. */
#define CHANCE_BITS 8
/* Superblocks of so few sub-blocks are looked at closely at once. */
#define FEW_SUBBLOCKS 4u
/* Octaves that a search goes to either side. */
#define REACH 6

/* All that choosing looks at. */
struct choice {
    const struct zipccl_row *row;
    const uint8_t *src;
    size_t m, nsub, nlooks;
    struct zipccl_sample *sample; /* [nsub][nlooks] */
    uint32_t nsampled;
    int location[ZIPCCL_SUBBLOCKS]; /* the common one unless 'own' */
    bool own[ZIPCCL_SUBBLOCKS];     /* the sub-block's scale is not the superblock's */
};

static uint8_t base_of(int location, int shift)
{
    int base = (location + shift) >> 8;
    return (uint8_t)(base < 0 ? 0 : base > 255 ? 255 : base);
}

static int location_of(uint32_t sum, uint32_t nvalid)
{
    return (int)((256 * sum + nvalid / 2) / nvalid);
}

/* Mean location of the sub-blocks within 'deviation' of 'centre'; 'centre' if there is none. */
static int mean_near(const struct choice *c, int centre, int deviation)
{
    uint32_t sum = 0, nvalid = 0;
    for (size_t i = 0; i < c->nsub; i++) {
        int away = c->location[i] - centre;
        if (away > deviation || away < -deviation)
            continue;
        for (size_t k = i * c->nlooks; k < (i + 1) * c->nlooks; k++) {
            sum += c->sample[k].sum;
            nvalid += c->sample[k].nvalid;
        }
    }
    return nvalid ? location_of(sum, nvalid) : centre;
}

/* Take 'nlooks' looks at every sub-block and find its location; returns the common one. */
static int locate(struct choice *c, size_t nlooks)
{
    bool valid[ZIPCCL_SUBBLOCKS];
    c->nlooks = nlooks;
    c->nsampled = 0;
    for (size_t i = 0; i < c->nsub; i++) {
        size_t first = i * ZIPCCL_SUBBLOCK, left = c->m - first;
        uint32_t sum = 0, nvalid = 0;
        for (size_t look = 0; look < nlooks; look++) {
            struct zipccl_sample *s = &c->sample[i * nlooks + look];
            c->row->sample(c->src + 2 * first, i, left < ZIPCCL_SUBBLOCK ? left : ZIPCCL_SUBBLOCK,
                           look, s);
            c->nsampled += s->nsampled;
            sum += s->sum;
            nvalid += s->nvalid;
        }
        valid[i] = nvalid != 0;
        c->location[i] = valid[i] ? location_of(sum, nvalid) : 0;
    }
    /* The second mean leaves out the sub-blocks that have a scale of their own. */
    int deviation = nlooks == 1 ? DEVIATION : DEVIATION / 2;
    int centre = mean_near(c, mean_near(c, 0, 256 * 256), deviation + deviation / 2);
    for (size_t i = 0; i < c->nsub; i++) {
        int away = c->location[i] - centre;
        c->own[i] = valid[i] && (away > deviation || away < -deviation);
        if (!c->own[i])
            c->location[i] = centre;
    }
    return centre;
}

/* Fill bits [16] with the code length of each d, as a row's cost() takes it. */
static void code_lengths(uint8_t program, uint8_t bits[16])
{
    const struct zipccl_tier_program *p = &zipccl_programs[program];
    uint8_t length = 0, all = 8;
    for (int t = 0; t < p->ntiers; t++)
        all = (uint8_t)(all + p->tier[t].width);
    memset(bits, all, 16);
    for (int t = 0; t < p->ntiers; t++) {
        length = (uint8_t)(length + p->tier[t].width);
        for (int k = 0; k < (1 << p->tier[t].width) - 1; k++)
            bits[p->tier[t].d[k] - ZIPCCL_LEAST_D] = length;
    }
}

/* Estimated bits of the superblock with 'base' [nsub]. */
static uint32_t cost_of_all(const struct choice *c, const uint8_t *base, const uint8_t bits[16])
{
    uint8_t bases[ZIPCCL_SUBBLOCKS * ZIPCCL_LOOKS];
    for (size_t i = 0; i < c->nsub; i++)
        memset(&bases[i * c->nlooks], base[i], c->nlooks);
    return c->row->cost(c->sample, c->nsub * c->nlooks, bases, bits);
}

/* Estimated bits of sub-block 'i' with 'base'. */
static uint32_t cost_with(const struct choice *c, size_t i, uint8_t base, const uint8_t bits[16])
{
    uint8_t bases[ZIPCCL_LOOKS];
    memset(bases, base, sizeof bases);
    return c->row->cost(&c->sample[i * c->nlooks], c->nlooks, bases, bits);
}

/* Move '*base' of sub-block 'i' up or down while its sample gains by it; returns its bits. */
static uint32_t improve(const struct choice *c, size_t i, uint8_t *base, const uint8_t bits[16])
{
    uint8_t from = *base;
    uint32_t least = cost_with(c, i, from, bits);
    for (int step = 1; step >= -1 && *base == from; step -= 2) {
        for (int octave = 1; octave <= REACH; octave++) {
            uint8_t next = (uint8_t)(from + step * octave);
            uint32_t now = cost_with(c, i, next, bits);
            if (now + CHANCE_BITS >= least)
                break;
            least = now;
            *base = next;
        }
    }
    return least;
}

/* The data is no Gaussian: look closer, and try every program with the best base of each sub-block. */
static void search(struct choice *c, struct zipccl_entry *entry)
{
    locate(c, ZIPCCL_LOOKS);
    /* Raw exponents take 8 bits. */
    uint32_t least = 8 * c->nsampled;
    entry->program = ZIPCCL_PROGRAM_RAW;
    for (uint8_t program = ZIPCCL_PROGRAM_2222; program < ZIPCCL_NUM_PROGRAMS; program++) {
        uint8_t bits[16], bases[ZIPCCL_SUBBLOCKS] = {0};
        uint32_t sum = 0;
        code_lengths(program, bits);
        for (size_t i = 0; i < c->nsub; i++) {
            bases[i] = base_of(c->location[i], shifts[program]);
            sum += improve(c, i, &bases[i], bits);
        }
        if (sum >= least)
            continue;
        least = sum;
        entry->program = program;
        memcpy(entry->base, bases, sizeof bases);
    }
}

void zipccl_choose(const struct zipccl_row *row, const uint8_t *src, size_t m,
                   struct zipccl_scratch *scratch, struct zipccl_entry *entry)
{
    struct choice c = {.row = row,
                       .src = src,
                       .m = m,
                       .nsub = (m + ZIPCCL_SUBBLOCK - 1) / ZIPCCL_SUBBLOCK,
                       .sample = scratch->sample};
    /* One look at each of a few sub-blocks would be too few exponents. */
    int centre = locate(&c, c.nsub <= FEW_SUBBLOCKS ? ZIPCCL_LOOKS : 1);
    bool up = ((centre + SHIFT_BOTH_ORDERS) & 255) < TURN;
    entry->program = up ? ZIPCCL_PROGRAM_21222_UP : ZIPCCL_PROGRAM_21222_DOWN;
    for (size_t i = 0; i < c.nsub; i++)
        entry->base[i] =
            base_of(c.location[i], c.own[i] ? shifts[entry->program] : SHIFT_BOTH_ORDERS);

    uint8_t bits[16];
    code_lengths(entry->program, bits);
    uint32_t cost = cost_of_all(&c, entry->base, bits);
    if (cost >= HOPELESS_BITS * c.nsampled)
        entry->program = ZIPCCL_PROGRAM_RAW;
    else if (4 * cost > GAUSSIAN_BITS_X4 * c.nsampled)
        search(&c, entry);
}
