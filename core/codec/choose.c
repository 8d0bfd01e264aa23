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
#include "core/codec/locate.h"
#include "core/codec/superblock.h"

#include <string.h>

/* All that choosing looks at. */
struct choice {
    const struct zipccl_coder *coder;
    const uint8_t *src;
    size_t m, nsub, nlooks;
    struct zipccl_sample *sample; /* [nlooks][nsub] */
    struct zipccl_moments moments;
    uint32_t nsampled, nzero;
    int centre; /* the common location */
};

/* Count the exponents of all looks. */
static void count(const struct choice *c)
{
    uint16_t(*counts)[256] = c->coder->scratch->counts;
    memset(counts, 0, c->nsub * sizeof counts[0]);
    for (size_t k = 0; k < c->nlooks; k++) {
        const struct zipccl_sample *s = &c->sample[k * c->nsub];
        size_t i = 0;
        /* Four at a time: the same exponent as often as not comes twice running. */
        for (; i + 4 <= c->nsub; i += 4)
            for (size_t j = 0; j < ZIPCCL_SAMPLES; j++) {
                counts[i][s[i].e[j]]++;
                counts[i + 1][s[i + 1].e[j]]++;
                counts[i + 2][s[i + 2].e[j]]++;
                counts[i + 3][s[i + 3].e[j]]++;
            }
        for (; i < c->nsub; i++)
            for (size_t j = 0; j < ZIPCCL_SAMPLES; j++)
                counts[i][s[i].e[j]]++;
        /* Exponents that were not taken are 0. */
        for (i = 0; i < c->nsub; i++)
            counts[i][0] = (uint16_t)(counts[i][0] - (ZIPCCL_SAMPLES - s[i].nsampled));
    }
}

/* Take further looks at every sub-block, up to 'nlooks'. */
static void look(struct choice *c, size_t nlooks)
{
    const struct zipccl_fields *fields = c->coder->fields;
    const struct zipccl_row *row = c->coder->row;
    for (; c->nlooks < nlooks; c->nlooks++) {
        struct zipccl_sample *s = &c->sample[c->nlooks * c->nsub];
        if (row->sample_all && c->m == ZIPCCL_SUPERBLOCK) {
            c->nzero += row->sample_all(fields, c->src, c->nlooks, s, &c->moments);
            c->nsampled += ZIPCCL_SUBBLOCKS * ZIPCCL_SAMPLES;
            continue;
        }
        for (size_t i = 0; i < c->nsub; i++) {
            size_t first = i * ZIPCCL_SUBBLOCK, left = c->m - first;
            row->sample(fields, c->src + fields->size * first, i,
                        left < ZIPCCL_SUBBLOCK ? left : ZIPCCL_SUBBLOCK, c->nlooks, &s[i]);
            c->nsampled += s[i].nsampled;
            c->nzero += s[i].nzero;
            c->moments.sum[i] += s[i].sum;
            c->moments.nvalid[i] += zipccl_sample_located(fields, &s[i]);
        }
    }
    c->moments.nlooks = (uint32_t)c->nlooks;
    if (!row->cost)
        count(c);
}

/* Find the locations; returns the common one. */
static int find(struct choice *c)
{
    const struct zipccl_row *row = c->coder->row;
    c->centre = row->locate ? row->locate(&c->moments) : locate(&c->moments);
    return c->centre;
}

/* Estimated bits of sub-block 'i' from the counts. */
static uint32_t cost_of_counts(const struct choice *c, size_t i, uint8_t base,
                               const uint8_t bits[ZIPCCL_NUM_D])
{
    const uint16_t *counts = c->coder->scratch->counts[i];
    int other = bits[ZIPCCL_NUM_D - 1], saved = 0;
    int16_t gains[ZIPCCL_NUM_D], taken[ZIPCCL_NUM_D];
    uint32_t n = 0;
    for (size_t k = 0; k < c->nlooks; k++)
        n += c->sample[k * c->nsub + i].nsampled;
    /* By exponents, which grow as d falls; the first of them is any other d's, without a gain. */
    int first = base - ZIPCCL_LEAST_D - (ZIPCCL_NUM_D - 1);
    for (int k = 0; k < ZIPCCL_NUM_D; k++)
        gains[k] = (int16_t)(other - bits[ZIPCCL_NUM_D - 1 - k]);
    if (first >= 0 && first + ZIPCCL_NUM_D <= 256)
        memcpy(taken, counts + first, sizeof taken);
    else
        for (int k = 0; k < ZIPCCL_NUM_D; k++)
            taken[k] = (int16_t)counts[(uint8_t)(first + k)];
    for (int k = 0; k < ZIPCCL_NUM_D; k++)
        saved += taken[k] * gains[k];
    return n * (uint32_t)other - (uint32_t)saved;
}

/* Estimated bits of the superblock with 'base' [nsub], and of each sub-block unless 'each' is NULL. */
static uint32_t cost_of(const struct choice *c, const uint8_t *base,
                        const uint8_t bits[ZIPCCL_NUM_D], uint32_t *each)
{
    const struct zipccl_row *row = c->coder->row;
    uint32_t sum = 0;
    if (row->cost_all && c->m == ZIPCCL_SUPERBLOCK)
        return row->cost_all(c->sample, &c->moments, base, bits, each);
    for (size_t i = 0; i < c->nsub && !row->cost; i++) {
        uint32_t bits_of_i = cost_of_counts(c, i, base[i], bits);
        sum += bits_of_i;
        if (each)
            each[i] = bits_of_i;
    }
    if (!row->cost)
        return sum;
    for (size_t k = 0; k < c->nlooks && !each; k++)
        sum += row->cost(&c->sample[k * c->nsub], c->nsub, base, bits);
    for (size_t i = 0; i < c->nsub && each; i++) {
        each[i] = 0;
        for (size_t k = 0; k < c->nlooks; k++)
            each[i] += row->cost(&c->sample[k * c->nsub + i], 1, &base[i], bits);
        sum += each[i];
    }
    return sum;
}

/*
 * Move bases up, or those that do not go down, while their sub-block's sample gains by it; each
 * stops where a step gains nothing.  Returns the bits of all.
 */
static uint32_t improve(const struct choice *c, uint8_t *base, const uint8_t bits[ZIPCCL_NUM_D])
{
    uint8_t from[ZIPCCL_SUBBLOCKS], next[ZIPCCL_SUBBLOCKS];
    uint32_t least[ZIPCCL_SUBBLOCKS], now[ZIPCCL_SUBBLOCKS], sum = 0;
    memcpy(from, base, c->nsub);
    cost_of(c, base, bits, least);
    for (int step = 1; step >= -1; step -= 2) {
        bool going[ZIPCCL_SUBBLOCKS], any = true;
        for (size_t i = 0; i < c->nsub; i++)
            going[i] = base[i] == from[i];
        for (int octave = 1; octave <= ZIPCCL_REACH && any; octave++) {
            for (size_t i = 0; i < c->nsub; i++)
                next[i] = (uint8_t)(from[i] + step * octave);
            cost_of(c, next, bits, now);
            any = false;
            for (size_t i = 0; i < c->nsub; i++) {
                going[i] = going[i] && now[i] + ZIPCCL_CHANCE_BITS < least[i];
                base[i] = going[i] ? next[i] : base[i];
                least[i] = going[i] ? now[i] : least[i];
                any |= going[i];
            }
        }
    }
    for (size_t i = 0; i < c->nsub; i++)
        sum += least[i];
    return sum;
}

/* Fill bases with those of 'program', all 'octaves' higher. */
static void bases_of(const struct choice *c, uint8_t program, int octaves, uint8_t *bases)
{
    for (size_t i = 0; i < c->nsub; i++)
        bases[i] = zipccl_base_of(c->moments.location[i], zipccl_shifts[program] + 256 * octaves);
}

/*
 * The data is no Gaussian: try every program, those that are not for Gaussians with all bases an
 * octave lower and higher too, and then the bases one by one.
 */
static void search(struct choice *c, bool deep, struct zipccl_entry *entry)
{
    uint8_t bases[ZIPCCL_SUBBLOCKS];
    uint32_t least = UINT32_MAX;
    if (deep) {
        look(c, ZIPCCL_LOOKS);
        find(c);
    }
    for (uint8_t program = 1; program < ZIPCCL_NUM_PROGRAMS; program++) {
        int reach = zipccl_search_reach(deep, program);
        for (int octaves = -reach; octaves <= reach; octaves++) {
            bases_of(c, program, octaves, bases);
            uint32_t now = cost_of(c, bases, zipccl_code_lengths[program], NULL);
            if (now >= least)
                continue;
            least = now;
            entry->program = program;
            memcpy(entry->base, bases, c->nsub);
        }
    }
    if (!deep)
        return;
    uint32_t sum = improve(c, entry->base, zipccl_code_lengths[entry->program]);
    if (sum >= c->coder->fields->exponent_bits * c->nsampled)
        entry->program = ZIPCCL_PROGRAM_RAW;
}

/* Lowest top and the tables of program ANS if the data has 'shape'. */
static void laws_of(const struct choice *c, int shape, uint16_t *law, uint8_t *tables)
{
    int top = zipccl_ans_law_at(zipccl_ans_law_of(shape, 0))->top;
    int lowest = zipccl_ans_lowest(c->centre, top);
    *law = (uint16_t)(shape << 8 | lowest);
    for (size_t i = 0; i < c->nsub; i++)
        tables[i] = zipccl_ans_table_at(c->moments.location[i], top, lowest);
}

/* Fill bits [ZIPCCL_NUM_D] with the lengths of 'law' in 1/8 bit, as a row's cost() takes it. */
static void ans_lengths(const struct zipccl_ans_law *law, uint8_t bits[ZIPCCL_NUM_D])
{
    int before = 0;
    memset(bits, law->escape_cost, ZIPCCL_NUM_D);
    for (int t = 0; t < ZIPCCL_ANS_TIERS; t++)
        before += 8 * zipccl_ans_tiers[t].width;
    for (int k = 0; k < ZIPCCL_NUM_D; k++)
        bits[k] = (uint8_t)(bits[k] + before + 64);
    for (int t = ZIPCCL_ANS_TIERS - 1; t >= 0; t--) {
        const struct zipccl_tier *tier = &zipccl_ans_tiers[t];
        for (int k = 0; k < (1 << tier->width) - 1; k++) {
            int d = tier->d[k] < 0 ? tier->d[k] : tier->d[k] + law->octaves;
            if (d - ZIPCCL_LEAST_D < ZIPCCL_NUM_D - 1)
                bits[d - ZIPCCL_LEAST_D] = (uint8_t)(law->escape_cost + before);
        }
        before -= 8 * tier->width;
    }
    memcpy(bits - ZIPCCL_LEAST_D, law->cost, law->octaves);
}

/* Estimated length of all sampled exponents by the tables of 'shape', in 1/8 bit. */
static uint32_t ans_cost(const struct choice *c, int shape, uint16_t law, const uint8_t *tables)
{
    const struct zipccl_row *row = c->coder->row;
    uint8_t tops[ZIPCCL_SUBBLOCKS], phases = 0;
    uint32_t sum = 0;
    for (size_t i = 0; i < c->nsub; i++) {
        tops[i] = (uint8_t)((law & 255) + (tables[i] >> 3));
        phases |= (uint8_t)(1 << (tables[i] & 7));
    }
    /* Most sub-blocks have the same table.  These lengths fill a byte: a look at a time. */
    for (int phase = 0; phase < ZIPCCL_ANS_PHASES; phase++) {
        uint8_t bits[ZIPCCL_NUM_D];
        uint32_t each[ZIPCCL_SUBBLOCKS];
        if (!(phases >> phase & 1))
            continue;
        ans_lengths(zipccl_ans_law_at(zipccl_ans_law_of(shape, phase)), bits);
        bool full = row->cost_all && c->m == ZIPCCL_SUPERBLOCK;
        struct zipccl_moments one = c->moments;
        one.nlooks = 1;
        for (size_t k = 0; k < (row->cost ? c->nlooks : 1); k++) {
            const struct zipccl_sample *s = &c->sample[k * c->nsub];
            if (full)
                row->cost_all(s, &one, tops, bits, each);
            for (size_t i = 0; i < c->nsub; i++)
                if ((tables[i] & 7) == phase)
                    sum += full        ? each[i]
                           : row->cost ? row->cost(&s[i], 1, &tops[i], bits)
                                       : cost_of_counts(c, i, tops[i], bits);
        }
    }
    return sum;
}

/* How max ratio would code what has been looked at; 'is_gaussian' if it is that. */
static void choose_ans(struct choice *c, bool is_gaussian, uint32_t tier_bits)
{
    struct zipccl_ans_choice *out = &c->coder->scratch->choice;
    uint32_t least = UINT32_MAX;
    if (!is_gaussian && c->nlooks < ZIPCCL_LOOKS) {
        look(c, ZIPCCL_LOOKS);
        find(c);
    }
    out->possible = true;
    out->gaussian = is_gaussian;
    out->tier_bits = tier_bits;
    for (int shape = 0; shape < (is_gaussian ? 1 : ZIPCCL_ANS_SHAPES); shape++) {
        uint16_t law;
        uint8_t tables[ZIPCCL_SUBBLOCKS] = {0};
        laws_of(c, shape, &law, tables);
        uint32_t now = is_gaussian ? 0 : ans_cost(c, shape, law, tables);
        /* Against chance. */
        now += shape > 0 ? c->nsampled / ZIPCCL_SHAPE_CHANCE : 0;
        if (now >= least)
            continue;
        least = now;
        out->law = law;
        memcpy(out->base, tables, sizeof tables);
    }
}

bool zipccl_superblock_choose(const struct zipccl_coder *coder, const uint8_t *src, size_t m,
                              bool look_for_zeros, struct zipccl_entry *entry)
{
    struct choice c = {.coder = coder,
                       .src = src,
                       .m = m,
                       .nsub = (m + ZIPCCL_SUBBLOCK - 1) / ZIPCCL_SUBBLOCK,
                       .sample = coder->scratch->sample};
    c.moments.nsub = (uint32_t)c.nsub;
    coder->scratch->choice.possible = false;
    /* One look at each of a few sub-blocks would be too few exponents. */
    look(&c, c.nsub <= ZIPCCL_FEW_SUBBLOCKS ? ZIPCCL_LOOKS : 1);
    int x = find(&c) + ZIPCCL_SHIFT_GAUSSIAN;
    if (look_for_zeros && ZIPCCL_ZEROS_IN * c.nzero >= c.nsampled)
        return true;
    entry->program = zipccl_gaussian_program(x);
    memset(entry->base, 0, sizeof entry->base);
    for (size_t i = 0; i < c.nsub; i++)
        entry->base[i] =
            zipccl_base_of(c.moments.location[i], c.moments.own[i] ? zipccl_shifts[entry->program]
                                                                   : ZIPCCL_SHIFT_GAUSSIAN);

    uint32_t cost = cost_of(&c, entry->base, zipccl_code_lengths[entry->program], NULL);
    enum zipccl_verdict verdict =
        zipccl_verdict_of(cost, c.nsampled, coder->fields->exponent_bits,
                          zipccl_gaussian_bits[(x & 255) / 16], c.moments.spread, (uint32_t)c.nsub);
    if (verdict == ZIPCCL_IS_HOPELESS) {
        entry->program = ZIPCCL_PROGRAM_RAW;
        return false;
    }
    if (verdict != ZIPCCL_IS_GAUSSIAN)
        search(&c, verdict == ZIPCCL_IS_FAR, entry);
    if (coder->max_ratio)
        choose_ans(&c, verdict == ZIPCCL_IS_GAUSSIAN, 256 * cost / c.nsampled);
    return false;
}
