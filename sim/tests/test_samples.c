/*
 * test_samples.c - message sizes from samples
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/samples.h"

#include "core/codec.h"
#include "traces/safetensors.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TENSORS "traces/samples/tensors/dense.safetensors"

static struct zipccl_samples *open_samples(const char *path, double ratio)
{
    struct zipccl_samples *s = NULL;
    struct zipccl_error error = {""};

    cr_assert_eq(zipccl_samples_open(path, ratio, &s, &error), ZIPCCL_OK, "%s", error.text);
    return s;
}

/* The first bf16 tensor of the file. */
static const struct zipccl_tensor *some_tensor(const struct zipccl_safetensors *file)
{
    for (size_t i = 0; i < file->ntensors; i++)
        if (file->tensors[i].known && file->tensors[i].dtype == ZIPCCL_BFLOAT16)
            return &file->tensors[i];
    return NULL;
}

Test(samples, a_whole_tensor_has_the_size_the_codec_gives_it)
{
    struct zipccl_samples *s = open_samples(TENSORS, 0);
    const struct zipccl_safetensors *file = NULL;
    const struct zipccl_tensor *t;
    size_t bound, nbytes, mean, longest;
    void *wire, *scratch;
    uint32_t set;

    cr_assert_eq(zipccl_safetensors_open(TENSORS, &file, NULL), ZIPCCL_OK);
    t = some_tensor(file);
    cr_assert(t != NULL && t->n <= 1 << 20);
    bound = zipccl_bound(ZIPCCL_BFLOAT16, t->n);
    wire = malloc(bound);
    scratch = aligned_alloc(64, (zipccl_codec_scratch_bytes() + 63) / 64 * 64);
    cr_assert_eq(zipccl_encode(ZIPCCL_ISA_SCALAR, ZIPCCL_BFLOAT16, t->data, t->n, wire, bound,
                               scratch, &nbytes),
                 ZIPCCL_OK);
    cr_assert_eq(zipccl_samples_bind(s, ZIPCCL_BFLOAT16, (char *[]){t->name}, 1, &set, NULL),
                 ZIPCCL_OK);
    cr_assert_eq(zipccl_samples_source(s, set), ZIPCCL_RATIO_CAPTURED);
    zipccl_samples_bytes(s, set, ZIPCCL_EFFORT_FAST, t->n, 1, &mean, &longest);
    cr_assert(mean == nbytes && longest == nbytes, "%zu %zu %zu", mean, longest, nbytes);
    /* Ten million elements: in proportion. */
    zipccl_samples_bytes(s, set, ZIPCCL_EFFORT_FAST, 10000000, 1, &mean, &longest);
    cr_assert(mean > 10000000 && mean < 16000000, "%zu", mean);
    zipccl_samples_bytes(s, set, ZIPCCL_EFFORT_FAST, 0, 1, &mean, &longest);
    cr_assert(mean <= ZIPCCL_MESSAGE_HEADER_BYTES + 64);
    cr_assert_eq(zipccl_samples_check(s, NULL), ZIPCCL_OK);
    free(wire);
    free(scratch);
    zipccl_safetensors_close(file);
    zipccl_samples_close(s);
}

Test(samples, equal_sets_are_one)
{
    struct zipccl_samples *s = open_samples(NULL, 0);
    uint32_t a, b, c;

    cr_assert_eq(zipccl_samples_bind(s, ZIPCCL_INT64, NULL, 0, &a, NULL), ZIPCCL_OK);
    cr_assert_eq(zipccl_samples_bind(s, ZIPCCL_INT64, NULL, 0, &b, NULL), ZIPCCL_OK);
    cr_assert_eq(zipccl_samples_bind(s, ZIPCCL_INT32, NULL, 0, &c, NULL), ZIPCCL_OK);
    cr_assert(a == b && a != c);
    zipccl_samples_close(s);
}

Test(samples, without_a_sample_gaussian_data_stand_in)
{
    struct zipccl_samples *s = open_samples(NULL, 0);
    size_t mean, longest;
    uint32_t set;

    cr_assert_eq(zipccl_samples_bind(s, ZIPCCL_BFLOAT16, NULL, 0, &set, NULL), ZIPCCL_OK);
    cr_assert_eq(zipccl_samples_source(s, set), ZIPCCL_RATIO_MODEL);
    zipccl_samples_bytes(s, set, ZIPCCL_EFFORT_FAST, 1 << 20, 1, &mean, &longest);
    cr_assert(fabs(2097152.0 / (double)mean - 1.504) < 0.008, "%.4f", 2097152.0 / (double)mean);
    zipccl_samples_close(s);
}

/* Sums over ranks: a Gaussian stays one, zeros meet what is none. */
Test(samples, sums_over_ranks_are_summed_before_they_are_coded)
{
    struct zipccl_samples *s = open_samples("traces/samples/tensors/moe.safetensors", 0);
    const struct zipccl_safetensors *file = NULL;
    size_t own, ratio, of_8, of_64, more, longest, position = 0;
    uint32_t gauss, set;

    cr_assert_eq(zipccl_samples_bind(s, ZIPCCL_BFLOAT16, NULL, 0, &gauss, NULL), ZIPCCL_OK);
    zipccl_samples_bytes(s, gauss, ZIPCCL_EFFORT_FAST, 1 << 18, 1, &own, &longest);
    zipccl_samples_bytes(s, gauss, ZIPCCL_EFFORT_FAST, 1 << 18, 8, &of_8, &longest);
    /* Max ratio is a size of its own: about 1 % less. */
    zipccl_samples_bytes(s, gauss, ZIPCCL_EFFORT_RATIO, 1 << 18, 1, &ratio, &longest);
    cr_assert(ratio < own - own / 200 && ratio > own - own / 50, "%zu, fast %zu", ratio, own);
    cr_expect(fabs((double)of_8 / (double)own - 1) < 0.01, "%zu, %zu", own, of_8);
    cr_assert_eq(zipccl_safetensors_open("traces/samples/tensors/moe.safetensors", &file, NULL),
                 ZIPCCL_OK);
    const struct zipccl_tensor *t =
        zipccl_safetensors_match(file, "class:reducescatter.grad.embed", &position);
    cr_assert(t != NULL);
    cr_assert_eq(zipccl_samples_bind(s, ZIPCCL_BFLOAT16, (char *[]){t->name}, 1, &set, NULL),
                 ZIPCCL_OK);
    zipccl_samples_bytes(s, set, ZIPCCL_EFFORT_FAST, t->n, 1, &own, &longest);
    zipccl_samples_bytes(s, set, ZIPCCL_EFFORT_FAST, t->n, 8, &of_8, &longest);
    zipccl_samples_bytes(s, set, ZIPCCL_EFFORT_FAST, t->n, 64, &of_64, &longest);
    zipccl_samples_bytes(s, set, ZIPCCL_EFFORT_FAST, t->n, 1000, &more, &longest);
    printf("%s: ratio %.2f, summed over 8 ranks %.2f, 64 ranks %.2f\n", t->name,
           2.0 * (double)t->n / (double)own, 2.0 * (double)t->n / (double)of_8,
           2.0 * (double)t->n / (double)of_64);
    cr_expect_gt(of_8, own + own / 2);
    cr_expect_gt(of_64, own + own / 2);
    cr_expect_eq(more, of_64);
    cr_assert_eq(zipccl_samples_check(s, NULL), ZIPCCL_OK);
    zipccl_safetensors_close(file);
    zipccl_samples_close(s);
}

Test(samples, a_given_ratio_and_an_uncovered_type)
{
    struct zipccl_samples *s = open_samples(TENSORS, 1.25);
    size_t mean, longest;
    uint32_t set;

    cr_assert_eq(zipccl_samples_bind(s, ZIPCCL_BFLOAT16, NULL, 0, &set, NULL), ZIPCCL_OK);
    cr_assert_eq(zipccl_samples_source(s, set), ZIPCCL_RATIO_GIVEN);
    zipccl_samples_bytes(s, set, ZIPCCL_EFFORT_FAST, 1000, 1, &mean, &longest);
    cr_assert(mean == 1600 && longest == 1600);
    cr_assert_eq(zipccl_samples_bind(s, ZIPCCL_INT64, NULL, 0, &set, NULL), ZIPCCL_OK);
    cr_assert_eq(zipccl_samples_source(s, set), ZIPCCL_RATIO_NONE);
    zipccl_samples_bytes(s, set, ZIPCCL_EFFORT_FAST, 1000, 1, &mean, &longest);
    cr_assert(mean == 8000 && longest == 8000);
    zipccl_samples_close(s);
}

Test(samples, a_class_is_all_that_starts_alike)
{
    struct zipccl_samples *s = open_samples(TENSORS, 0);
    const struct zipccl_safetensors *file = NULL;
    const struct zipccl_tensor *t;
    char name[256];
    uint32_t set;

    cr_assert_eq(zipccl_safetensors_open(TENSORS, &file, NULL), ZIPCCL_OK);
    t = some_tensor(file);
    /* A prefix ends where a dot stands (traces/TRACE.md), so part of a word names no class. */
    snprintf(name, sizeof(name), "class:%.*s", (int)strcspn(t->name, ".") - 1, t->name);
    cr_assert_eq(zipccl_samples_bind(s, ZIPCCL_BFLOAT16, (char *[]){name}, 1, &set, NULL),
                 ZIPCCL_ERR_INPUT);
    snprintf(name, sizeof(name), "class:%.*s", (int)strcspn(t->name, "."), t->name);
    cr_assert_eq(zipccl_samples_bind(s, ZIPCCL_BFLOAT16, (char *[]){name}, 1, &set, NULL),
                 ZIPCCL_OK);
    cr_assert_eq(zipccl_samples_source(s, set), ZIPCCL_RATIO_CLASS);
    zipccl_safetensors_close(file);
    zipccl_samples_close(s);
}

Test(samples, what_does_not_fit_is_named)
{
    struct zipccl_samples *s = open_samples(TENSORS, 0);
    char missing[] = "no.such.tensor", class[] = "class:no.such";
    struct zipccl_error error = {""};
    uint32_t set;

    cr_assert_eq(zipccl_samples_bind(s, ZIPCCL_BFLOAT16, (char *[]){missing}, 1, &set, &error),
                 ZIPCCL_ERR_INPUT);
    cr_assert(strstr(error.text, missing) != NULL, "%s", error.text);
    cr_assert_eq(zipccl_samples_bind(s, ZIPCCL_BFLOAT16, (char *[]){class}, 1, &set, &error),
                 ZIPCCL_ERR_INPUT);
    cr_assert(strstr(error.text, "no.such") != NULL, "%s", error.text);
    zipccl_samples_close(s);
}
