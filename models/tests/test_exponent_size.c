/*
 * test_exponent_size.c - predicted sizes against the real codec's
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/exponent_size.h"
#include "models/tests/gauss.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PHASES = 8, KIB_64 = 32768, MIB_1 = 524288 };

struct sizes {
    struct gauss *gauss;
    uint16_t *src;
    uint8_t *wire;
    void *scratch;
    enum zipccl_isa isa;
};

static struct sizes sizes_create(size_t most, uint64_t seed)
{
    struct sizes s = {.gauss = gauss_create(seed),
                      .src = malloc(2 * most),
                      .wire = malloc(zipccl_bound(ZIPCCL_BFLOAT16, most)),
                      .scratch = aligned_alloc(64, zipccl_codec_scratch_bytes()),
                      .isa = zipccl_isa_best()};
    cr_assert(s.gauss && s.src && s.wire && s.scratch);
    return s;
}

static void sizes_destroy(struct sizes *s)
{
    gauss_destroy(s->gauss);
    free(s->src);
    free(s->wire);
    free(s->scratch);
}

static double size_of_one(struct sizes *s, size_t n)
{
    size_t nbytes = 0;
    cr_assert_eq(zipccl_encode(s->isa, ZIPCCL_BFLOAT16, s->src, n, s->wire,
                               zipccl_bound(ZIPCCL_BFLOAT16, n), s->scratch, &nbytes),
                 ZIPCCL_OK);
    return (double)nbytes;
}

static void model_at(double sigma, size_t n, struct zipccl_size_model *model)
{
    double p[ZIPCCL_NUM_EXPONENTS];
    struct zipccl_exponent_model gaussian = zipccl_exponent_gaussian(sigma);
    cr_assert_eq(zipccl_exponent_pmf(&gaussian, p), ZIPCCL_OK);
    cr_assert_eq(zipccl_size_expect(p, n, model), ZIPCCL_OK);
}

/* Means per phase within 'tolerance'; standard deviations within a third. */
static void check_means(size_t n, int messages, double tolerance)
{
    struct sizes s = sizes_create(n, n);
    double worst = 0;
    for (int phase = 0; phase < PHASES; phase++) {
        double sigma = 0.02 * exp2(phase / (double)PHASES), sum = 0, square = 0;
        struct zipccl_size_model model;
        model_at(sigma, n, &model);
        for (int i = 0; i < messages; i++) {
            gauss_fill(s.gauss, sigma, s.src, n);
            double away = size_of_one(&s, n) - model.mean;
            sum += away;
            square += away * away;
        }
        double error = sum / messages / model.mean, sd = sqrt(square / messages);
        worst = fmax(worst, fabs(error));
        cr_expect(fabs(error) <= tolerance, "%zu elements, phase %d: %.4f %% off", n, phase,
                  100 * error);
        if (messages >= 100)
            cr_expect(fabs(sd / model.sd - 1) < 1 / 3.0,
                      "%zu elements, phase %d: sd %.1f, not %.1f", n, phase, sd, model.sd);
    }
    printf("%8zu elements, %d messages at each of %d phases: predicted mean at most %.4f %% off\n",
           n, messages, PHASES, 100 * worst);
    sizes_destroy(&s);
}

Test(exponent_size, mean_is_predicted_at_64_kib)
{
    check_means(KIB_64, GAUSS_SANITIZED ? 20 : 400, 0.003);
}

Test(exponent_size, mean_is_predicted_at_1_mib)
{
    check_means(MIB_1, GAUSS_SANITIZED ? 2 : 40, 0.0015);
}

Test(exponent_size, mean_is_predicted_at_8_mib)
{
    check_means(8 * MIB_1, GAUSS_SANITIZED ? 1 : 4, 0.0015);
}

Test(exponent_size, mean_is_predicted_for_odd_sizes)
{
    int messages = GAUSS_SANITIZED ? 20 : 1000;
    check_means(300, messages, 0.003);
    check_means(1000, messages, 0.003);
    check_means(3001, messages, 0.003);
    check_means(20000, messages / 2, 0.003);
}

Test(exponent_size, tail_is_the_share_of_larger_messages)
{
    static const double tails[] = {0.5, 0.1, 0.01};
    static const size_t n[] = {1000, 3000, KIB_64};
    int messages = GAUSS_SANITIZED ? 100 : 4000;
    struct sizes s = sizes_create(KIB_64, 3);
    for (size_t k = 0; k < sizeof n / sizeof *n; k++) {
        struct zipccl_size_model model;
        double limit[3];
        int above[3] = {0, 0, 0};
        model_at(0.02, n[k], &model);
        for (int t = 0; t < 3; t++) {
            limit[t] = zipccl_size_quantile(&model, tails[t]);
            cr_expect_float_eq(zipccl_size_tail(&model, limit[t]) / tails[t], 1, 0.01);
        }
        for (int i = 0; i < messages; i++) {
            gauss_fill(s.gauss, 0.02, s.src, n[k]);
            double nbytes = size_of_one(&s, n[k]);
            for (int t = 0; t < 3; t++)
                above[t] += nbytes > limit[t];
        }
        /* Sizes are whole bytes, and the padding of planes spreads them a little. */
        for (int t = 0; t < 3; t++) {
            double share = above[t] / (double)messages, sd = sqrt(tails[t] / messages);
            printf("%5zu elements: quantile of %.2f is exceeded by %.4f\n", n[k], tails[t], share);
            cr_expect(fabs(share - tails[t]) < 0.15 * tails[t] + 5 * sd + (n[k] < 4096 ? 0.03 : 0));
        }
    }
    sizes_destroy(&s);
}

Test(exponent_size, what_does_not_shrink_is_raw)
{
    double uniform[ZIPCCL_NUM_EXPONENTS];
    struct zipccl_size_model model;
    for (int e = 0; e < ZIPCCL_NUM_EXPONENTS; e++)
        uniform[e] = 1.0 / ZIPCCL_NUM_EXPONENTS;
    cr_assert_eq(zipccl_size_expect(uniform, 100000, &model), ZIPCCL_OK);
    cr_expect_eq(model.mean, (double)zipccl_bound(ZIPCCL_BFLOAT16, 100000));
    cr_expect_eq(zipccl_size_tail(&model, model.mean), 0);
    model_at(0.02, KIB_64, &model);
    cr_expect(isnan(zipccl_size_quantile(&model, 0)));
    cr_assert_eq(zipccl_size_expect(uniform, 0, &model), ZIPCCL_OK);
    cr_expect_eq(model.mean, ZIPCCL_MESSAGE_HEADER_BYTES);
}
