/*
 * test_codec_ratio.c - how far Gaussian bf16 shrinks, every byte counted
 *
 * Floors are below what was measured when the programs were chosen, by less than a better or
 * worse choice would change.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec.h"

#include "core/tests/codec_data.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NPHASES = 32, MOST = 524288 };

static double ratio_of(const uint16_t *src, size_t n, uint8_t *wire, void *scratch)
{
    size_t nbytes = 0;
    cr_assert_eq(zipccl_encode(zipccl_isa_best(), ZIPCCL_BFLOAT16, src, n, wire,
                               zipccl_bound(ZIPCCL_BFLOAT16, n), scratch, &nbytes),
                 ZIPCCL_OK);
    return 2.0 * (double)n / (double)nbytes;
}

/* Ratios over the phases of log2(sigma), each the mean of 'repeats' messages. */
static void check_phases(size_t n, int repeats, double least_mean, double least_worst)
{
    uint16_t *src = malloc(2 * n);
    uint8_t *wire = malloc(zipccl_bound(ZIPCCL_BFLOAT16, n));
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    struct data_random random = {21};
    double mean = 0, worst = 2, worst_message = 2;
    for (int phase = 0; phase < NPHASES; phase++) {
        double ratio = 0;
        for (int i = 0; i < repeats; i++) {
            data_gauss(&random, src, n, exp2(-6 + phase / (double)NPHASES));
            double one = ratio_of(src, n, wire, scratch);
            ratio += one / repeats;
            worst_message = fmin(worst_message, one);
        }
        mean += ratio / NPHASES;
        worst = fmin(worst, ratio);
    }
    printf("%zu KiB messages: mean %.4f, worst phase %.4f, worst message %.4f\n", 2 * n / 1024,
           mean, worst, worst_message);
    cr_expect_geq(mean, least_mean);
    cr_expect_geq(worst, least_worst);
    free(src);
    free(wire);
    free(scratch);
}

Test(codec_ratio, holds_over_the_phases_at_1_mib)
{
    check_phases(MOST, 2, 1.502, 1.496);
}

Test(codec_ratio, holds_over_the_phases_at_64_kib)
{
    check_phases(32768, 24, 1.500, 1.493);
}

Test(codec_ratio, holds_at_any_scale)
{
    uint16_t *src = malloc(2 * MOST);
    uint8_t *wire = malloc(zipccl_bound(ZIPCCL_BFLOAT16, MOST));
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    struct data_random random = {22};
    double mean = 0, worst = 2;
    int count = 0;
    for (double exponent = -30; exponent <= 30; exponent += 1.25, count++) {
        data_gauss(&random, src, MOST, pow(10, exponent));
        double ratio = ratio_of(src, MOST, wire, scratch);
        mean += ratio;
        worst = fmin(worst, ratio);
    }
    mean /= count;
    printf("sigma 1e-30 to 1e30: mean %.4f, worst %.4f\n", mean, worst);
    cr_expect_geq(mean, 1.502);
    cr_expect_geq(worst, 1.496);
    free(src);
    free(wire);
    free(scratch);
}
