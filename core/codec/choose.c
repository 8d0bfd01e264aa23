/*
 * choose.c - tier program and bases of a superblock, from 64 exponents of each sub-block
 *
 * The mean exponent of a Gaussian lies 1.416 octaves below log2(sigma), wherever sigma is:
 * it places base and program without a histogram.  Where the sample says that the data is no
 * Gaussian, the other programs and bases are tried on the sample.  Integer arithmetic only, so
 * every row chooses the same.  Locations are mean exponents in 1/256 octave.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/superblock.h"

#include <string.h>

/* Three standard deviations of a mean of 64 exponents of a Gaussian (1.60 octaves / 8). */
#define DEVIATION 200

/*
 * base = (location + shift) >> 8.  The shifts minimise the exact code length of a Gaussian over
 * its phase.  For a Gaussian, base and program are one choice: x = location + SHIFT_GAUSSIAN has
 * the base in its high bits, and its phase, x mod 256, names the program.
 */
#define SHIFT_GAUSSIAN 492
static const int shifts[ZIPCCL_NUM_PROGRAMS] = {
    [ZIPCCL_PROGRAM_21223] = 529, [ZIPCCL_PROGRAM_21123_UP] = 557,
    [ZIPCCL_PROGRAM_22123] = 486, [ZIPCCL_PROGRAM_21123_DOWN] = 413,
    [ZIPCCL_PROGRAM_2223] = 472,  [ZIPCCL_PROGRAM_323] = 673,
    [ZIPCCL_PROGRAM_1222] = 299,
};
/* Where one program becomes shorter than the one before it. */
static const struct {
    int below;
    uint8_t program;
} crossings[] = {{84, ZIPCCL_PROGRAM_21123_UP},
                 {134, ZIPCCL_PROGRAM_21223},
                 {206, ZIPCCL_PROGRAM_22123},
                 {256, ZIPCCL_PROGRAM_21123_DOWN}};

/*
 * What a Gaussian costs, in 1/256 bit an exponent, for 16 phases x mod 256 / 16.  1024 samples
 * show it within 9.  Beyond NEAR the other programs are tried on what was sampled, beyond FAR the
 * search goes deeper; far beyond raw the data has no scale and a search would be in vain.
 */
static const uint16_t gaussian[16] = {672, 668, 665, 663, 662, 662, 662, 663,
                                      664, 665, 666, 668, 671, 672, 672, 673};
#define NEAR          12
#define FAR           20
#define SPREAD        5200
#define HOPELESS_BITS 4
/* Bits that another base must gain on a sub-block's sample, against chance. */
#define CHANCE_BITS 8
/* Superblocks of so few sub-blocks are looked at closely at once. */
#define FEW_SUBBLOCKS 4u
/* Octaves that a search goes to either side. */
#define REACH 6

/* All that choosing looks at. */
struct choice {
    const struct zipccl_coder *coder;
    const uint8_t *src;
    size_t m, nsub, nlooks;
    struct zipccl_sample *sample; /* [nlooks][nsub] */
    uint32_t nsampled, nzero;
    uint32_t spread; /* sum of the squares of what sub-blocks are away from the common location */
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
    /* The usual count needs no division. */
    return (int)(nvalid == ZIPCCL_SAMPLES ? 4 * sum : (256 * sum + nvalid / 2) / nvalid);
}

/* Mean location of the sub-blocks within 'deviation' of 'centre'; 'centre' if there is none. */
static int mean_near(const struct choice *c, int centre, int deviation)
{
    uint32_t sum = 0, nvalid = 0;
    for (size_t i = 0; i < c->nsub; i++) {
        int away = c->location[i] - centre;
        if (away > deviation || away < -deviation)
            continue;
        for (size_t look = 0; look < c->nlooks; look++) {
            sum += c->sample[look * c->nsub + i].sum;
            nvalid += c->sample[look * c->nsub + i].nvalid;
        }
    }
    return nvalid ? location_of(sum, nvalid) : centre;
}

/* Take further looks at every sub-block, up to 'nlooks'. */
static void look(struct choice *c, size_t nlooks)
{
    const struct zipccl_fields *fields = c->coder->fields;
    for (; c->nlooks < nlooks; c->nlooks++)
        for (size_t i = 0; i < c->nsub; i++) {
            size_t first = i * ZIPCCL_SUBBLOCK, left = c->m - first;
            struct zipccl_sample *s = &c->sample[c->nlooks * c->nsub + i];
            c->coder->row->sample(fields, c->src + fields->size * first, i,
                                  left < ZIPCCL_SUBBLOCK ? left : ZIPCCL_SUBBLOCK, c->nlooks, s);
            c->nsampled += s->nsampled;
            c->nzero += s->nzero;
        }
}

/* Find the location of every sub-block; returns the common one. */
static int locate(struct choice *c)
{
    bool valid[ZIPCCL_SUBBLOCKS];
    for (size_t i = 0; i < c->nsub; i++) {
        uint32_t sum = 0, nvalid = 0;
        for (size_t k = 0; k < c->nlooks; k++) {
            sum += c->sample[k * c->nsub + i].sum;
            nvalid += c->sample[k * c->nsub + i].nvalid;
        }
        valid[i] = nvalid != 0;
        c->location[i] = valid[i] ? location_of(sum, nvalid) : 0;
    }
    /* The second mean leaves out the sub-blocks that have a scale of their own. */
    int deviation = c->nlooks == 1 ? DEVIATION : DEVIATION / 2;
    int centre = mean_near(c, mean_near(c, 0, 256 * 256), deviation + deviation / 2);
    c->spread = 0;
    for (size_t i = 0; i < c->nsub; i++) {
        int away = c->location[i] - centre;
        if (away <= deviation && away >= -deviation)
            c->spread += (uint32_t)(away * away);
        c->own[i] = valid[i] && (away > deviation || away < -deviation);
        if (!c->own[i])
            c->location[i] = centre;
    }
    return centre;
}

/* Fill bits [ZIPCCL_NUM_D] with the code length of each d, as a row's cost() takes it. */
static void code_lengths(uint8_t program, uint8_t bits[ZIPCCL_NUM_D])
{
    const struct zipccl_tier_program *p = &zipccl_programs[program];
    uint8_t length = 0, all = 8;
    for (int t = 0; t < p->ntiers; t++)
        all = (uint8_t)(all + p->tier[t].width);
    memset(bits, all, ZIPCCL_NUM_D);
    for (int t = 0; t < p->ntiers; t++) {
        length = (uint8_t)(length + p->tier[t].width);
        for (int k = 0; k < (1 << p->tier[t].width) - 1; k++)
            bits[p->tier[t].d[k] - ZIPCCL_LEAST_D] = length;
    }
}

/* Estimated bits of the superblock with 'base' [nsub]. */
static uint32_t cost_of_all(const struct choice *c, const uint8_t *base,
                            const uint8_t bits[ZIPCCL_NUM_D])
{
    uint32_t sum = 0;
    for (size_t k = 0; k < c->nlooks; k++)
        sum += c->coder->row->cost(&c->sample[k * c->nsub], c->nsub, base, bits);
    return sum;
}

/* Estimated bits of sub-block 'i' with 'base'. */
static uint32_t cost_with(const struct choice *c, size_t i, uint8_t base,
                          const uint8_t bits[ZIPCCL_NUM_D])
{
    uint32_t sum = 0;
    for (size_t k = 0; k < c->nlooks; k++)
        sum += c->coder->row->cost(&c->sample[k * c->nsub + i], 1, &base, bits);
    return sum;
}

/* Move '*base' of sub-block 'i' up or down while its sample gains by it; returns its bits. */
static uint32_t improve(const struct choice *c, size_t i, uint8_t *base,
                        const uint8_t bits[ZIPCCL_NUM_D])
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

/* Fill bases with those of 'program', all 'octaves' higher. */
static void bases_of(const struct choice *c, uint8_t program, int octaves, uint8_t *bases)
{
    for (size_t i = 0; i < c->nsub; i++)
        bases[i] = base_of(c->location[i], shifts[program] + 256 * octaves);
}

/*
 * The data is no Gaussian: try every program, those that are not for Gaussians with all bases an
 * octave lower and higher too, and then the bases one by one.
 */
static void search(struct choice *c, bool deep, struct zipccl_entry *entry)
{
    uint8_t bits[ZIPCCL_NUM_D], bases[ZIPCCL_SUBBLOCKS];
    uint32_t least = UINT32_MAX, sum = 0;
    if (deep) {
        look(c, ZIPCCL_LOOKS);
        locate(c);
    }
    for (uint8_t program = 1; program < ZIPCCL_NUM_PROGRAMS; program++) {
        int reach = deep && program > ZIPCCL_PROGRAM_21123_DOWN ? 1 : 0;
        code_lengths(program, bits);
        for (int octaves = -reach; octaves <= reach; octaves++) {
            bases_of(c, program, octaves, bases);
            uint32_t now = cost_of_all(c, bases, bits);
            if (now >= least)
                continue;
            least = now;
            entry->program = program;
            memcpy(entry->base, bases, c->nsub);
        }
    }
    if (!deep)
        return;
    code_lengths(entry->program, bits);
    for (size_t i = 0; i < c->nsub; i++)
        sum += improve(c, i, &entry->base[i], bits);
    if (sum >= c->coder->fields->exponent_bits * c->nsampled)
        entry->program = ZIPCCL_PROGRAM_RAW;
}

bool zipccl_superblock_choose(const struct zipccl_coder *coder, const uint8_t *src, size_t m,
                              bool look_for_zeros, struct zipccl_entry *entry)
{
    struct choice c = {.coder = coder,
                       .src = src,
                       .m = m,
                       .nsub = (m + ZIPCCL_SUBBLOCK - 1) / ZIPCCL_SUBBLOCK,
                       .sample = coder->scratch->sample};
    /* One look at each of a few sub-blocks would be too few exponents. */
    look(&c, c.nsub <= FEW_SUBBLOCKS ? ZIPCCL_LOOKS : 1);
    int x = locate(&c) + SHIFT_GAUSSIAN, k = 0;
    while ((x & 255) >= crossings[k].below)
        k++;
    if (look_for_zeros && 16 * c.nzero >= c.nsampled)
        return true;
    entry->program = crossings[k].program;
    memset(entry->base, 0, sizeof entry->base);
    for (size_t i = 0; i < c.nsub; i++)
        entry->base[i] = base_of(c.location[i], c.own[i] ? shifts[entry->program] : SHIFT_GAUSSIAN);

    uint8_t bits[ZIPCCL_NUM_D];
    code_lengths(entry->program, bits);
    uint32_t cost = cost_of_all(&c, entry->base, bits);
    if (cost >= (uint32_t)(coder->fields->exponent_bits + HOPELESS_BITS) * c.nsampled) {
        entry->program = ZIPCCL_PROGRAM_RAW;
        return false;
    }
    int off = (int)(256 * cost / c.nsampled) - gaussian[(x & 255) / 16];
    bool far = off > FAR || off < -FAR || c.spread > SPREAD * c.nsub;
    if (far || off > NEAR || off < -NEAR)
        search(&c, far, entry);
    return false;
}
