/*
 * test_codec_choice.c - the constants of choose.c follow from the exponents of a Gaussian
 *
 * The probability that a normal value has exponent E is erf(2^(E+1) / s) - erf(2^E / s) with
 * s = sigma sqrt(2), which gives the exact mean code length of each program and base at each
 * phase of log2 sigma, and so where one becomes shorter than another.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/superblock.h"

#include "core/tests/codec_data.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PHASES = 256, LEAST_E = -40, NUM_E = 46, MIDDLE = 100 };

/* P(E = LEAST_E + k) at sigma = 2^(phase / PHASES). */
static void probabilities(int phase, double p[NUM_E])
{
    double scale = sqrt(0.5) / exp2(phase / (double)PHASES);
    for (int k = 0; k < NUM_E; k++)
        p[k] = erf(exp2(LEAST_E + k + 1) * scale) - erf(exp2(LEAST_E + k) * scale);
}

/* Mean bits of an exponent by 'id' with 'base', which like exponents is without bias. */
static double mean_bits(const double p[NUM_E], int id, int base)
{
    const struct zipccl_tier_program *program = &zipccl_programs[id];
    double bits = 0, left = 1;
    bool taken[NUM_E] = {false};
    for (int t = 0; t < program->ntiers; t++) {
        bits += left * program->tier[t].width;
        for (int k = 0; k < (1 << program->tier[t].width) - 1; k++) {
            int at = base - program->tier[t].d[k] - LEAST_E;
            if (at < 0 || at >= NUM_E || taken[at])
                continue;
            taken[at] = true;
            left -= p[at];
        }
    }
    return bits + 8 * left;
}

static double best_base(const double p[NUM_E], int id, int *base)
{
    double least = 1e9;
    for (int b = -3; b <= 5; b++)
        if (mean_bits(p, id, b) < least) {
            least = mean_bits(p, id, b);
            *base = b;
        }
    return least;
}

static double mean_exponent(const double p[NUM_E])
{
    double mean = 0;
    for (int k = 0; k < NUM_E; k++)
        mean += p[k] * (LEAST_E + k);
    return mean;
}

Test(codec_choice, shifts_are_where_a_base_becomes_shorter)
{
    /* As in choose.c: base = floor((256 mean exponent + shift) / 256). */
    static const int shifts[ZIPCCL_NUM_PROGRAMS] = {0, 529, 557, 486, 413, 472, 673, 299};
    for (int id = 1; id < ZIPCCL_NUM_PROGRAMS; id++) {
        int last = -100, found = 0;
        for (int phase = 0; phase <= PHASES; phase++) {
            double p[NUM_E];
            int base = 0;
            probabilities(phase, p);
            best_base(p, id, &base);
            if (phase > 0 && base != last) {
                double shift = 256 * (base - mean_exponent(p));
                printf("program %d: base grows at phase %3d, shift %.1f\n", id, phase, shift);
                cr_expect_leq(fabs(shift - shifts[id]), 1.5, "program %d", id);
                found++;
            }
            last = base;
        }
        cr_expect_eq(found, 1);
    }
}

Test(codec_choice, crossings_are_where_a_program_becomes_shorter)
{
    /* As in choose.c: x = 256 mean exponent + 492; from x mod 256 on, this program. */
    static const struct {
        int from, id;
    } crossings[] = {{0, 2}, {84, 1}, {134, 3}, {206, 4}};
    static const double gaussian[16] = {672, 668, 665, 663, 662, 662, 662, 663,
                                        664, 665, 666, 668, 671, 672, 672, 673};
    double sum[16] = {0};
    int last = 0, count[16] = {0}, found = 0;
    for (int phase = 0; phase <= PHASES; phase++) {
        double p[NUM_E], least = 1e9;
        int best = 0, base = 0;
        probabilities(phase, p);
        for (int id = 1; id <= 4; id++) {
            double bits = best_base(p, id, &base);
            best = bits < least ? id : best;
            least = fmin(least, bits);
        }
        int x = (int)lround(256 * mean_exponent(p) + 492) & 255;
        if (last && best != last) {
            printf("program %d from x = %d on\n", best, x);
            bool right = false;
            for (int k = 0; k < 4; k++)
                right |= crossings[k].id == best &&
                         (abs(x - crossings[k].from) <= 2 || abs(x - 256 - crossings[k].from) <= 2);
            cr_expect(right, "program %d at %d", best, x);
            found++;
        }
        last = best;
        sum[x / 16] += 256 * least;
        count[x / 16]++;
    }
    cr_expect_eq(found, 4);
    for (int k = 0; k < 16; k++)
        cr_expect_leq(fabs(sum[k] / count[k] - gaussian[k]), 1, "phases %d: %.1f", k,
                      sum[k] / count[k]);
}

Test(codec_choice, of_the_encoder_costs_a_gaussian_little)
{
    uint16_t *src = malloc(2 * ZIPCCL_SUPERBLOCK);
    struct zipccl_coder coder = {.row = &zipccl_row_scalar,
                                 .fields = zipccl_fields_of(ZIPCCL_BFLOAT16),
                                 .scratch = aligned_alloc(64, zipccl_codec_scratch_bytes())};
    struct data_random random = {71};
    double lost = 0;
    for (int phase = 0; phase < PHASES; phase++) {
        struct zipccl_entry entry;
        double p[NUM_E], least = 1e9;
        int base = 0;
        data_gauss(&random, src, ZIPCCL_SUPERBLOCK, exp2(phase / (double)PHASES + MIDDLE - 127));
        cr_assert(!zipccl_superblock_choose(&coder, (const uint8_t *)src, ZIPCCL_SUPERBLOCK, true,
                                            &entry));
        probabilities(phase, p);
        for (int id = 1; id < ZIPCCL_NUM_PROGRAMS; id++)
            least = fmin(least, best_base(p, id, &base));
        for (size_t i = 0; i < ZIPCCL_SUBBLOCKS; i++)
            lost += mean_bits(p, entry.program, entry.base[i] - MIDDLE) - least;
    }
    lost /= PHASES * ZIPCCL_SUBBLOCKS;
    printf("%.4f bits an exponent more than the best choice\n", lost);
    cr_expect_lt(lost, 0.012);
    free(coder.scratch);
    free(src);
}
