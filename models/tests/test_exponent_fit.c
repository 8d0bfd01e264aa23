/*
 * test_exponent_fit.c - fits find the laws that made the data
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/exponent_fit.h"
#include "models/tests/gauss.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct gauss *gauss;
static uint16_t *src;
static size_t n;

static void setup(void)
{
    n = GAUSS_SANITIZED ? 1u << 16 : 1u << 19;
    gauss = gauss_create(4);
    src = malloc(2 * n);
    cr_assert(gauss && src);
}

static void teardown(void)
{
    gauss_destroy(gauss);
    free(src);
}

TestSuite(exponent_fit, .init = setup, .fini = teardown);

static struct zipccl_exponent_fit best_fit(size_t count)
{
    struct zipccl_exponent_counts counts;
    struct zipccl_exponent_fit fit;
    zipccl_exponent_count(src, count, &counts);
    cr_assert_eq(zipccl_exponent_fit_best(&counts, &fit), ZIPCCL_OK);
    return fit;
}

Test(exponent_fit, finds_sigma_at_any_scale)
{
    static const double sigmas[] = {1e-30, 3.3e-4, 0.02, 0.77, 1.9, 1e30};
    for (size_t i = 0; i < sizeof sigmas / sizeof *sigmas; i++) {
        struct zipccl_exponent_counts counts;
        struct zipccl_exponent_fit fit;
        gauss_fill(gauss, sigmas[i], src, n);
        zipccl_exponent_count(src, n, &counts);
        double quick = zipccl_exponent_sigma(zipccl_exponent_mean(&counts), 0);
        cr_expect_float_eq(quick / sigmas[i], 1, 0.02, "log-moment: %g", quick);
        cr_assert_eq(zipccl_exponent_fit(&counts, ZIPCCL_FAMILY_GAUSSIAN, &fit), ZIPCCL_OK);
        cr_expect_float_eq(fit.model.sigma / sigmas[i], 1, 0.01, "fit: %g", fit.model.sigma);
        cr_expect_gt(fit.p_value, 1e-4);
        cr_expect_lt(fit.distance, 2.5 / sqrt((double)n));
        cr_expect_lt(fit.lost_bits, 1e-3);
        cr_expect_gt(fit.dof, 5);
    }
}

Test(exponent_fit, finds_student_t)
{
    for (int nu = 2; nu <= 5; nu++) {
        gauss_fill_student(gauss, 3e-3, nu, src, n);
        struct zipccl_exponent_fit fit = best_fit(n);
        printf("t with nu %d: %s, nu %.3f, sigma %.3g, KS %.4f, p %.3g\n", nu,
               zipccl_family_name(fit.model.family), fit.model.nu, fit.model.sigma, fit.distance,
               fit.p_value);
        cr_expect_eq(fit.model.family, ZIPCCL_FAMILY_STUDENT_T);
        cr_expect_float_eq(fit.model.nu / nu, 1, GAUSS_SANITIZED ? 0.2 : 0.06);
        cr_expect_float_eq(fit.model.sigma / 3e-3, 1, 0.03);
        cr_expect_gt(fit.p_value, 1e-4);
    }
}

Test(exponent_fit, finds_two_scales)
{
    for (size_t i = 0; i < n; i++)
        src[i] = gauss_bf16((float)(gauss_next(gauss) * (gauss_bits(gauss) % 10 < 3 ? 0.5 : 0.01)));
    struct zipccl_exponent_fit fit = best_fit(n);
    cr_assert_eq(fit.model.family, ZIPCCL_FAMILY_MIXTURE);
    bool swapped = fit.model.sigma > fit.model.sigma2;
    double small = swapped ? fit.model.sigma2 : fit.model.sigma;
    double large = swapped ? fit.model.sigma : fit.model.sigma2;
    double share = swapped ? 1 - fit.model.share2 : fit.model.share2;
    cr_expect_float_eq(small / 0.01, 1, 0.03, "%g", small);
    cr_expect_float_eq(large / 0.5, 1, 0.03, "%g", large);
    cr_expect_float_eq(share, 0.3, 0.01, "%g", share);
    cr_expect_gt(fit.p_value, 1e-4);
}

Test(exponent_fit, zeros_are_a_share_of_their_own)
{
    gauss_fill(gauss, 0.02, src, n);
    for (size_t i = 0; i < n; i += 4)
        src[i] = 0x8000;
    struct zipccl_exponent_fit fit = best_fit(n);
    cr_expect_float_eq(fit.model.zero, 0.25, 1e-3);
    cr_expect_float_eq(fit.model.sigma / 0.02, 1, 0.05);
    cr_expect_lt(fit.distance, 0.005);
}

Test(exponent_fit, a_wrong_law_is_told_by_its_quality)
{
    struct zipccl_exponent_counts counts;
    struct zipccl_exponent_fit fit;
    gauss_fill_student(gauss, 1, 2, src, n);
    zipccl_exponent_count(src, n, &counts);
    cr_assert_eq(zipccl_exponent_fit(&counts, ZIPCCL_FAMILY_GAUSSIAN, &fit), ZIPCCL_OK);
    cr_expect_lt(fit.p_value, 1e-6);
    cr_expect_gt(fit.distance, 0.02);
    cr_expect_gt(fit.lost_bits, 0.01);
}

Test(exponent_fit, survives_strays_and_refuses_nothing_at_all)
{
    struct zipccl_exponent_counts counts;
    struct zipccl_exponent_fit fit;
    memset(src, 0, 2 * n);
    zipccl_exponent_count(src, n, &counts);
    cr_expect_eq(zipccl_exponent_fit_best(&counts, &fit), ZIPCCL_ERR_UNSUPPORTED);
    zipccl_exponent_count(src, 0, &counts);
    cr_expect_eq(zipccl_exponent_fit_best(&counts, &fit), ZIPCCL_ERR_UNSUPPORTED);
    cr_expect_eq(zipccl_exponent_fit(&counts, ZIPCCL_NUM_FAMILIES, &fit), ZIPCCL_ERR_ARG);
    /* One value, a constant, NaN and infinity among others. */
    src[0] = 0x3f80;
    zipccl_exponent_count(src, 1, &counts);
    cr_expect_eq(zipccl_exponent_fit_best(&counts, &fit), ZIPCCL_OK);
    for (size_t i = 0; i < 5000; i++)
        src[i] = 0x3f80;
    zipccl_exponent_count(src, 5000, &counts);
    cr_expect_eq(zipccl_exponent_fit_best(&counts, &fit), ZIPCCL_OK);
    cr_expect(isfinite(fit.model.sigma) && fit.model.sigma > 0);
    gauss_fill(gauss, 0.02, src, n);
    for (size_t i = 0; i < 40; i++)
        src[i * 100] = i % 2 ? 0x7f80 : 0xffc1;
    fit = best_fit(n);
    cr_expect_lt(fit.distance, 0.01);
}
