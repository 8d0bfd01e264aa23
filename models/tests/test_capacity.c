/*
 * test_capacity.c - settled capacities: none overflows, little is wasted
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/capacity.h"
#include "models/exponent_size.h"
#include "models/tests/gauss.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { KIB_64 = 32768, MIB_1 = 524288, PHASES = 5, MODEL_PHASES = 40 };

/* Messages of an all-to-all of 64 ranks in 16 chunks. */
#define MESSAGES_OF_CALL (64.0 * 63 * 16)

/* Slack over the worst phase's mean, and overflows to expect. */
static void check_slack(size_t n, double most_slack)
{
    double worst_mean = 0, worst_tail = 0, mean_tail = 0;
    size_t capacity = zipccl_capacity_settled(ZIPCCL_BFLOAT16, n);
    for (int phase = 0; phase < MODEL_PHASES; phase++) {
        double p[ZIPCCL_NUM_EXPONENTS];
        struct zipccl_size_model model;
        struct zipccl_exponent_model gaussian =
            zipccl_exponent_gaussian(0.02 * exp2(phase / (double)MODEL_PHASES));
        cr_assert_eq(zipccl_exponent_pmf(&gaussian, p), ZIPCCL_OK);
        cr_assert_eq(zipccl_size_expect(p, n, &model), ZIPCCL_OK);
        double tail = zipccl_size_tail(&model, (double)capacity);
        worst_mean = fmax(worst_mean, model.mean);
        worst_tail = fmax(worst_tail, tail);
        mean_tail += tail / MODEL_PHASES;
    }
    double slack = (double)capacity / worst_mean - 1;
    printf("%8zu elements: capacity %zu (ratio %.4f), slack %.3f %% over the worst phase's mean, "
           "%.1e overflows expected per 64-rank 16-chunk all-to-all (worst phase %.1e)\n",
           n, capacity, 2 * (double)n / (double)capacity, 100 * slack, mean_tail * MESSAGES_OF_CALL,
           worst_tail * MESSAGES_OF_CALL);
    cr_expect_leq(slack, most_slack);
    cr_expect_lt(worst_tail * MESSAGES_OF_CALL, 1e-3);
}

Test(capacity, slack_is_little_and_overflows_are_rare)
{
    check_slack(1000, 0.10);
    check_slack(3000, 0.08);
    check_slack(20000, 0.04);
    check_slack(KIB_64, 0.02);
    check_slack(40000, 0.025);
    check_slack(100000, 0.02);
    check_slack(MIB_1, 0.005);
    check_slack(16 * MIB_1, 0.001);
}

/* Encode 'messages' over PHASES into the settled capacity. */
static void check_overflows(size_t n, int messages)
{
    struct gauss *gauss = gauss_create(n + 77);
    size_t capacity = zipccl_capacity_settled(ZIPCCL_BFLOAT16, n), most = 0;
    uint16_t *src = malloc(2 * n);
    uint8_t *wire = malloc(capacity);
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    enum zipccl_isa isa = zipccl_isa_best();
    int overflows = 0;
    cr_assert(gauss && src && wire && scratch);
    for (int i = 0; i < messages; i++) {
        size_t nbytes = 0;
        gauss_fill(gauss, 0.02 * exp2(i % PHASES / (double)PHASES), src, n);
        overflows += zipccl_encode(isa, ZIPCCL_BFLOAT16, src, n, wire, capacity, scratch,
                                   &nbytes) != ZIPCCL_OK;
        most = nbytes > most ? nbytes : most;
    }
    printf("%8zu elements: %d of %d messages overflow, the largest has %zu of %zu bytes\n", n,
           overflows, messages, most, capacity);
    cr_expect_eq(overflows, 0);
    gauss_destroy(gauss);
    free(src);
    free(wire);
    free(scratch);
}

/* A sanitized run draws one message in a hundred. */
#define SHARE (GAUSS_SANITIZED ? 100 : 1)

Test(capacity, holds_20000_messages_of_64_kib)
{
    check_overflows(KIB_64, 20000 / SHARE);
}

Test(capacity, holds_1000_messages_of_1_mib)
{
    check_overflows(MIB_1, 1000 / SHARE);
}

Test(capacity, holds_messages_of_odd_sizes)
{
    static const size_t n[] = {1, 63, 64, 100, 255, 257, 600, 1000, 1025, 2500, 5000, 16383, 16385};
    for (size_t i = 0; i < sizeof n / sizeof *n; i++)
        check_overflows(n[i], 20000 / SHARE);
    check_overflows(40000, 5000 / SHARE);
}

Test(capacity, grows_with_n_and_never_beyond_the_bound)
{
    size_t last = 0;
    for (size_t n = 0; n < 200000; n += 1 + n / 50) {
        size_t capacity = zipccl_capacity_settled(ZIPCCL_BFLOAT16, n);
        /* Longer partial superblocks may be sampled more, and so chosen better. */
        cr_expect_geq(capacity + 64 + capacity / 100, last, "%zu elements", n);
        cr_expect_leq(capacity, zipccl_bound(ZIPCCL_BFLOAT16, n));
        cr_expect_geq(capacity, (size_t)ZIPCCL_MESSAGE_HEADER_BYTES);
        last = capacity;
    }
    size_t most = (size_t)0xffffffffu;
    cr_expect_lt(zipccl_capacity_settled(ZIPCCL_BFLOAT16, most), most * 4 / 3 + most / 100);
}

/* Types whose exponents follow the same law add their planes, but for what ends on 64 bytes. */
Test(capacity, of_other_floats_adds_their_planes)
{
    for (size_t n = 1000; n < 3000000; n = n * 7 + 1) {
        double bf16 = (double)zipccl_capacity_settled(ZIPCCL_BFLOAT16, n), slack = 128 + n / 100.0;
        cr_expect_float_eq((double)zipccl_capacity_settled(ZIPCCL_FLOAT32, n),
                           bf16 + 2.0 * (double)n, slack, "%zu elements", n);
        cr_expect_float_eq((double)zipccl_capacity_settled(ZIPCCL_FLOAT16, n),
                           bf16 + 0.375 * (double)n, slack, "%zu elements", n);
    }
}

Test(capacity, of_types_that_are_not_coded_is_the_bound)
{
    cr_expect_eq(zipccl_capacity_settled(ZIPCCL_INT32, 1000), zipccl_bound(ZIPCCL_INT32, 1000));
    cr_expect_eq(zipccl_capacity_settled(ZIPCCL_NUM_DTYPES, 1000), 0);
    cr_expect_eq(zipccl_capacity_settled(ZIPCCL_BFLOAT16, SIZE_MAX), 0);
    cr_expect_eq(zipccl_capacity_settled(ZIPCCL_BFLOAT16, 0), ZIPCCL_MESSAGE_HEADER_BYTES);
}
