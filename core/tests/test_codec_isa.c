/*
 * test_codec_isa.c - CPU features are switched off one after another, and the row that is left fits
 *
 * What a row uses is what the compiler says its file was built with; what the choice should fall
 * back to is spelled out here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/isa.h"
#include "core/tests/codec_data.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { N = 3 * 16384 + 77, MOST_BYTES = 4 * N };

#define BIT(name) (1u << ZIPCCL_FEATURE_##name)

/* What the rows are written for: without any one of these the row cannot run. */
static const uint32_t avx2_wants = BIT(AVX) | BIT(AVX2) | BIT(BMI) | BIT(BMI2) | BIT(POPCNT);
static const uint32_t avx512_wants = BIT(AVX512F) | BIT(AVX512BW) | BIT(AVX512VL) | BIT(AVX512DQ) |
                                     BIT(AVX512VBMI) | BIT(AVX512VBMI2) | BIT(GFNI) | BIT(AVX) |
                                     BIT(AVX2) | BIT(BMI) | BIT(BMI2) | BIT(POPCNT);

static bool built(enum zipccl_isa isa)
{
    uint32_t needs;
    return zipccl_isa_needs(isa, &needs);
}

static uint32_t needs_of(enum zipccl_isa isa)
{
    uint32_t needs = ~0u;
    cr_assert(zipccl_isa_needs(isa, &needs));
    return needs;
}

/* What should run on 'features', if clang's FMA goes with AVX-512 as everywhere. */
static enum zipccl_isa expected(uint32_t features)
{
    uint32_t fma = built(ZIPCCL_ISA_AVX512) ? needs_of(ZIPCCL_ISA_AVX512) & BIT(FMA) : 0;
    if (built(ZIPCCL_ISA_AVX512) && (~features & (avx512_wants | fma)) == 0)
        return ZIPCCL_ISA_AVX512;
    if (built(ZIPCCL_ISA_AVX2) && (~features & avx2_wants) == 0)
        return ZIPCCL_ISA_AVX2;
    return ZIPCCL_ISA_SCALAR;
}

static void check_choice(uint32_t features)
{
    enum zipccl_isa isa = zipccl_isa_choose(features);
    cr_expect_eq(needs_of(isa) & ~features, 0u, "%s uses what %#x has not", zipccl_isa_name(isa),
                 features);
    cr_expect_eq(isa, expected(features), "%s on %#x", zipccl_isa_name(isa), features);
}

Test(codec_isa, rows_are_built_with_what_they_are_written_for)
{
    cr_expect_eq(needs_of(ZIPCCL_ISA_SCALAR), 0u);
    if (!built(ZIPCCL_ISA_AVX2))
        cr_skip_test("no x86-64 rows in this build");
    cr_expect_eq(needs_of(ZIPCCL_ISA_AVX2) & avx2_wants, avx2_wants);
    cr_expect_eq(needs_of(ZIPCCL_ISA_AVX512) & avx512_wants, avx512_wants);
    /* A row that were built with more would be lost on machines that could run it. */
    cr_expect_eq(needs_of(ZIPCCL_ISA_AVX2) & ~avx2_wants, 0u);
    cr_expect_eq(needs_of(ZIPCCL_ISA_AVX512) & ~(avx512_wants | BIT(FMA)), 0u);
}

Test(codec_isa, without_any_one_feature_the_choice_falls_back)
{
    check_choice(ZIPCCL_ALL_FEATURES);
    check_choice(0);
    for (int f = 0; f < ZIPCCL_NUM_FEATURES; f++)
        check_choice(ZIPCCL_ALL_FEATURES & ~(1u << f));
    if (!built(ZIPCCL_ISA_AVX2))
        return;
    static const struct {
        uint32_t off;
        enum zipccl_isa isa;
    } falls[] = {{BIT(AVX512F), ZIPCCL_ISA_AVX2},
                 {BIT(AVX512BW), ZIPCCL_ISA_AVX2},
                 {BIT(AVX512VL), ZIPCCL_ISA_AVX2},
                 {BIT(AVX512DQ), ZIPCCL_ISA_AVX2},
                 {BIT(AVX512VBMI), ZIPCCL_ISA_AVX2},
                 {BIT(AVX512VBMI2), ZIPCCL_ISA_AVX2},
                 {BIT(GFNI), ZIPCCL_ISA_AVX2},
                 {BIT(BMI2), ZIPCCL_ISA_SCALAR},
                 {BIT(BMI), ZIPCCL_ISA_SCALAR},
                 {BIT(POPCNT), ZIPCCL_ISA_SCALAR},
                 {BIT(AVX2), ZIPCCL_ISA_SCALAR},
                 {BIT(AVX), ZIPCCL_ISA_SCALAR},
                 {BIT(AVX512F) | BIT(BMI2), ZIPCCL_ISA_SCALAR}};
    for (size_t i = 0; i < sizeof falls / sizeof falls[0]; i++)
        cr_expect_eq(zipccl_isa_choose(ZIPCCL_ALL_FEATURES & ~falls[i].off), falls[i].isa, "%#x",
                     falls[i].off);
    cr_expect_eq(zipccl_isa_choose(ZIPCCL_ALL_FEATURES), ZIPCCL_ISA_AVX512);
}

Test(codec_isa, every_set_of_features_gets_a_row_that_fits)
{
    for (uint32_t features = 0; features <= ZIPCCL_ALL_FEATURES; features++)
        check_choice(features);
}

/* Encode with 'isa' and compare with the scalar row, in bytes and in what is decoded. */
static void compare(enum zipccl_isa isa, enum zipccl_dtype dtype, const void *src)
{
    size_t capacity = zipccl_bound(dtype, N), nexpected = 0, nbytes = 0;
    uint8_t *expected_wire = malloc(capacity), *wire = malloc(capacity), *back = malloc(MOST_BYTES);
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    cr_assert(expected_wire && wire && back && scratch);
    cr_assert_eq(zipccl_encode(ZIPCCL_ISA_SCALAR, dtype, src, N, expected_wire, capacity, scratch,
                               &nexpected),
                 ZIPCCL_OK);
    cr_assert_eq(zipccl_encode(isa, dtype, src, N, wire, capacity, scratch, &nbytes), ZIPCCL_OK);
    cr_assert(nbytes == nexpected && memcmp(wire, expected_wire, nbytes) == 0, "%s",
              zipccl_isa_name(isa));
    cr_assert_eq(zipccl_decode(isa, dtype, wire, nbytes, back, N, scratch), ZIPCCL_OK);
    cr_assert(memcmp(back, src, N * zipccl_dtype_size(dtype)) == 0);
    free(expected_wire);
    free(wire);
    free(back);
    free(scratch);
}

Test(codec_isa, features_off_one_after_another_leave_the_scalar_rows_bytes)
{
    uint32_t here = zipccl_features_here(), features = here;
    void *src = malloc(MOST_BYTES);
    struct data_random random = {51};
    enum zipccl_isa last = zipccl_isa_choose(here);
    cr_assert(src);
    cr_expect_eq(last, zipccl_isa_best());
    /* From the last feature of the list, GFNI, down to POPCNT, each off for good. */
    for (int f = ZIPCCL_NUM_FEATURES; f >= 0; f--) {
        if (f < ZIPCCL_NUM_FEATURES)
            features &= ~(1u << f);
        enum zipccl_isa isa = zipccl_isa_choose(features);
        cr_expect_leq(isa, last, "%s off", zipccl_feature_name((enum zipccl_feature)f));
        cr_expect_eq(needs_of(isa) & ~features, 0u);
        last = isa;
        for (int t = 0; t < DATA_NUM_TYPES; t++)
            for (int kind = 0; kind < DATA_NUM_KINDS; kind++) {
                data_fill_type(data_types[t], (enum data_kind)kind, &random, f / 16.0, src, N);
                compare(isa, data_types[t], src);
            }
    }
    cr_expect_eq(last, ZIPCCL_ISA_SCALAR);
    free(src);
}

Test(codec_isa, rows_that_this_machine_cannot_run_are_refused)
{
    uint8_t wire[64];
    uint16_t src[1] = {0x3f80};
    size_t nbytes;
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    for (int isa = 0; isa <= ZIPCCL_NUM_ISAS; isa++) {
        uint32_t needs;
        bool fits = zipccl_isa_needs((enum zipccl_isa)isa, &needs) &&
                    (needs & ~zipccl_features_here()) == 0;
        cr_expect_eq(zipccl_isa_usable((enum zipccl_isa)isa), fits);
        cr_expect_eq(zipccl_encode((enum zipccl_isa)isa, ZIPCCL_BFLOAT16, src, 1, wire, sizeof wire,
                                   scratch, &nbytes),
                     fits ? ZIPCCL_OK : ZIPCCL_ERR_ARG);
    }
    free(scratch);
}
