/*
 * test_exponent.c - exponent probabilities, entropy, log-moment and ideal ratios
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/exponent_fit.h"
#include "models/exponent_size.h"
#include "models/tests/gauss.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const struct zipccl_exponent_model models[] = {
    {.family = ZIPCCL_FAMILY_GAUSSIAN, .sigma = 0.02},
    {.family = ZIPCCL_FAMILY_GAUSSIAN, .sigma = 1e-30, .zero = 0.25},
    {.family = ZIPCCL_FAMILY_GAUSSIAN, .sigma = 1e-38},
    {.family = ZIPCCL_FAMILY_GAUSSIAN, .sigma = 1e38},
    {.family = ZIPCCL_FAMILY_GAUSSIAN, .sigma = 1, .zero = 1},
    {.family = ZIPCCL_FAMILY_MIXTURE, .sigma = 1, .sigma2 = 30, .share2 = 0.1, .zero = 0.01},
    {.family = ZIPCCL_FAMILY_STUDENT_T, .sigma = 3e-4, .nu = 2.5},
    {.family = ZIPCCL_FAMILY_STUDENT_T, .sigma = 3e-4, .nu = 400},
};

Test(exponent, probabilities_sum_to_one)
{
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        double p[ZIPCCL_NUM_EXPONENTS], sum = 0;
        cr_assert_eq(zipccl_exponent_pmf(&models[i], p), ZIPCCL_OK);
        for (int e = 0; e < ZIPCCL_NUM_EXPONENTS; e++) {
            cr_expect(p[e] >= 0 && p[e] <= 1);
            sum += p[e];
        }
        cr_expect_float_eq(sum, 1, 1e-12, "model %zu: %.15f", i, sum);
    }
}

Test(exponent, refuses_parameters_out_of_range)
{
    static const struct zipccl_exponent_model wrong[] = {
        {.family = ZIPCCL_FAMILY_GAUSSIAN, .sigma = 0},
        {.family = ZIPCCL_FAMILY_GAUSSIAN, .sigma = 1, .zero = 1.5},
        {.family = ZIPCCL_FAMILY_MIXTURE, .sigma = 1, .sigma2 = -1, .share2 = 0.5},
        {.family = ZIPCCL_FAMILY_MIXTURE, .sigma = 1, .sigma2 = 1, .share2 = 2},
        {.family = ZIPCCL_FAMILY_STUDENT_T, .sigma = 1, .nu = 0},
        {.family = ZIPCCL_NUM_FAMILIES, .sigma = 1},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        double p[ZIPCCL_NUM_EXPONENTS];
        cr_expect_eq(zipccl_exponent_pmf(&wrong[i], p), ZIPCCL_ERR_ARG, "%zu", i);
    }
}

static void check_frequencies(const struct zipccl_exponent_model *model, const uint16_t *src,
                              size_t n)
{
    double p[ZIPCCL_NUM_EXPONENTS];
    struct zipccl_exponent_counts counts;
    cr_assert_eq(zipccl_exponent_pmf(model, p), ZIPCCL_OK);
    zipccl_exponent_count(src, n, &counts);
    for (int e = 0; e < ZIPCCL_NUM_EXPONENTS; e++) {
        double expected = (double)n * p[e], sd = sqrt(expected * (1 - p[e]));
        cr_expect(fabs((double)counts.count[e] - expected) <= 5 * sd + 3,
                  "exponent %d: %.0f expected, %.0f seen", e, expected, (double)counts.count[e]);
    }
}

Test(exponent, probabilities_are_what_is_sampled)
{
    size_t n = GAUSS_SANITIZED ? 1u << 18 : 1u << 22;
    uint16_t *src = malloc(2 * n);
    struct gauss *gauss = gauss_create(1);
    /* The last two have subnormals and infinities. */
    static const double sigmas[] = {0.02, 1, 1.37, 3e-20, 2e-38, 2e38};
    for (size_t i = 0; i < sizeof sigmas / sizeof *sigmas; i++) {
        struct zipccl_exponent_model model = zipccl_exponent_gaussian(sigmas[i]);
        if (sigmas[i] < 1e-37 || sigmas[i] > 1e38)
            for (size_t k = 0; k < n; k++)
                src[k] = gauss_bf16((float)(gauss_next(gauss) * sigmas[i]));
        else
            gauss_fill(gauss, sigmas[i], src, n);
        check_frequencies(&model, src, n);
    }
    struct zipccl_exponent_model t = {.family = ZIPCCL_FAMILY_STUDENT_T, .sigma = 0.7, .nu = 3};
    gauss_fill_student(gauss, 0.7, 3, src, n / 8);
    check_frequencies(&t, src, n / 8);
    gauss_destroy(gauss);
    free(src);
}

Test(exponent, entropy_is_2_545_bits_at_any_scale)
{
    double mean = 0;
    for (int phase = 0; phase < 64; phase++) {
        double p[ZIPCCL_NUM_EXPONENTS];
        struct zipccl_exponent_model model =
            zipccl_exponent_gaussian(exp2(-40 + phase * 65 / 64.0));
        cr_assert_eq(zipccl_exponent_pmf(&model, p), ZIPCCL_OK);
        double h = zipccl_exponent_entropy(p);
        cr_expect_float_eq(h, 2.545, 0.004, "phase %d: %.4f bits", phase, h);
        cr_expect_float_eq(zipccl_exponent_bound(h), 1.517, 0.001);
        mean += h / 64;
    }
    printf("entropy over the phases: %.4f bits, bound %.4f\n", mean, zipccl_exponent_bound(mean));
    cr_expect_float_eq(mean, 2.545, 0.001);
}

Test(exponent, log_moment_is_the_mean_exponent)
{
    for (size_t i = 0; i < 2; i++) {
        double nu = i ? 3 : 0;
        for (int phase = 0; phase < 16; phase++) {
            double sigma = exp2(-9 + phase / 16.0), p[ZIPCCL_NUM_EXPONENTS], mean = 0;
            struct zipccl_exponent_model model = {.family = nu > 0 ? ZIPCCL_FAMILY_STUDENT_T
                                                                   : ZIPCCL_FAMILY_GAUSSIAN,
                                                  .sigma = sigma,
                                                  .nu = nu};
            cr_assert_eq(zipccl_exponent_pmf(&model, p), ZIPCCL_OK);
            for (int e = 0; e < ZIPCCL_NUM_EXPONENTS; e++)
                mean += e * p[e];
            /* What is left is the phase: the floor takes half an octave only on average. */
            cr_expect_float_eq(zipccl_exponent_sigma(mean, nu) / sigma, 1, 5e-4, "nu %g", nu);
        }
    }
    /* -(gamma + ln 2) / (2 ln 2) - 1/2 - log2(1 - 2^-9) */
    double gamma = 0.57721566490153286, ln2 = log(2);
    cr_expect_float_eq(zipccl_exponent_mean_offset(0),
                       -(gamma + ln2) / (2 * ln2) - 0.5 - log2(1 - 1 / 512.0), 1e-12);
}

/* Ideal ratio of the best base of some programs at one phase, before headers. */
static double ideal(double log2_sigma, enum zipccl_program_id first, enum zipccl_program_id last)
{
    double p[ZIPCCL_NUM_EXPONENTS], least = 16;
    struct zipccl_exponent_model model = zipccl_exponent_gaussian(exp2(log2_sigma));
    cr_assert_eq(zipccl_exponent_pmf(&model, p), ZIPCCL_OK);
    for (enum zipccl_program_id program = first; program <= last; program++) {
        for (int base = 120; base < 132; base++) {
            struct zipccl_program_cost cost;
            cr_assert_eq(zipccl_program_cost(p, program, (uint8_t)base, &cost), ZIPCCL_OK);
            least = fmin(least, cost.total);
        }
    }
    return 16 / (8 + least);
}

static void check_ideal(enum zipccl_program_id first, enum zipccl_program_id last, double average,
                        double worst)
{
    double mean = 0, least = 2;
    for (int phase = 0; phase < 128; phase++) {
        double ratio = ideal(phase / 128.0, first, last);
        mean += ratio / 128;
        least = fmin(least, ratio);
    }
    printf("programs %d to %d: average %.4f, worst phase %.4f\n", first, last, mean, least);
    cr_expect_float_eq(mean, average, 0.0005);
    cr_expect_float_eq(least, worst, 0.0005);
}

Test(exponent, ideal_ratios_are_those_of_the_programs)
{
    check_ideal(ZIPCCL_PROGRAM_21223, ZIPCCL_PROGRAM_21123_DOWN, 1.5089, 1.5048);
    check_ideal(ZIPCCL_PROGRAM_2223, ZIPCCL_PROGRAM_2223, 1.5012, 1.4913);
    check_ideal(ZIPCCL_PROGRAM_323, ZIPCCL_PROGRAM_323, 1.4458, 1.4439);
}

Test(exponent, costs_of_tiers_add_up)
{
    double p[ZIPCCL_NUM_EXPONENTS];
    struct zipccl_exponent_model model = models[6];
    cr_assert_eq(zipccl_exponent_pmf(&model, p), ZIPCCL_OK);
    for (int program = 1; program < ZIPCCL_NUM_PROGRAMS; program++) {
        for (int base = 100; base < 125; base++) {
            struct zipccl_program_cost cost;
            double bits = 0, by_tier = 0;
            zipccl_program_cost(p, (enum zipccl_program_id)program, (uint8_t)base, &cost);
            for (int e = 0; e < ZIPCCL_NUM_EXPONENTS; e++)
                bits += p[e] * zipccl_program_bits((enum zipccl_program_id)program, (uint8_t)base,
                                                   (uint8_t)e);
            for (int t = 0; t <= zipccl_programs[program].ntiers; t++)
                by_tier += cost.bits[t];
            cr_expect_float_eq(cost.total, bits, 1e-9);
            cr_expect_float_eq(cost.total, by_tier, 1e-9);
        }
    }
    struct zipccl_program_cost raw;
    cr_expect_eq(zipccl_program_cost(p, ZIPCCL_PROGRAM_RAW, 0, &raw), ZIPCCL_OK);
    cr_expect_float_eq(raw.total, 8, 1e-12);
    cr_expect_eq(zipccl_program_cost(p, ZIPCCL_NUM_PROGRAMS, 0, &raw), ZIPCCL_ERR_ARG);
}
