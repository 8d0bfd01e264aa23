/*
 * test_stat.c - statistics of tensors in memory, as a table and as JSON
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/stat.h"
#include "models/tests/gauss.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_tree.h>

enum { N = 40000 };

static struct zipccl_stats stats;

static void add(const char *name, const char *dtype_name, bool known, enum zipccl_dtype dtype,
                const void *data, uint64_t n, uint64_t nbytes)
{
    struct zipccl_error error;
    cr_assert_eq(zipccl_stats_add(&stats, name, dtype_name, known, dtype, data, n, nbytes, &error),
                 ZIPCCL_OK, "%s", error.text);
}

static void setup(void)
{
    struct gauss *gauss = gauss_create(9);
    uint8_t *bytes = malloc(2 * N + 1);
    uint16_t *src = malloc(2 * N);
    cr_assert(gauss && bytes && src);
    gauss_fill(gauss, 0.02, src, N);
    /* Tensors in a file start anywhere. */
    memcpy(bytes + 1, src, 2 * N);
    add("weights", "BF16", true, ZIPCCL_BFLOAT16, bytes + 1, N, 2 * N);
    gauss_fill_student(gauss, 1e-5, 3, src, N);
    add("gradients", "BF16", true, ZIPCCL_BFLOAT16, src, N, 2 * N);
    memset(src, 0, 2 * N);
    add("zeros", "BF16", true, ZIPCCL_BFLOAT16, src, N, 2 * N);
    add("nothing", "BF16", true, ZIPCCL_BFLOAT16, src, 0, 0);
    add("master", "F32", true, ZIPCCL_FLOAT32, src, N / 2, 2 * N);
    add("mask", "BOOL", false, ZIPCCL_INT8, src, N, N);
    gauss_destroy(gauss);
    free(bytes);
    free(src);
}

static void teardown(void)
{
    zipccl_stats_destroy(&stats);
}

TestSuite(stat, .init = setup, .fini = teardown);

Test(stat, says_what_tensors_are)
{
    cr_assert_eq(stats.ntensors, (size_t)6);
    const struct zipccl_tensor_stat *weights = &stats.tensor[0], *gradients = &stats.tensor[1];
    cr_expect_float_eq(weights->sigma / 0.02, 1, 0.03);
    cr_expect_float_eq(weights->entropy, 2.545, 0.02);
    cr_expect_float_eq(zipccl_stat_predicted(weights) / zipccl_stat_measured(weights), 1, 0.003);
    cr_expect_eq(gradients->fit.model.family, ZIPCCL_FAMILY_STUDENT_T);
    cr_expect_float_eq(gradients->fit.model.nu / 3, 1, 0.15);
    cr_expect_float_eq(zipccl_stat_predicted(gradients) / zipccl_stat_measured(gradients), 1, 0.01);
    cr_expect_gt(gradients->entropy, weights->entropy);
    cr_expect_not(stats.tensor[2].fitted);
    cr_expect_eq(stats.tensor[2].entropy, 0);
    cr_expect_eq(stats.tensor[2].zero, 1);
    cr_expect_eq(zipccl_stat_measured(&stats.tensor[3]), 1);
    for (int i = 4; i < 6; i++) {
        cr_expect_not(stats.tensor[i].covered);
        cr_expect_eq(zipccl_stat_measured(&stats.tensor[i]), 1);
        cr_expect_eq(zipccl_stat_predicted(&stats.tensor[i]), 1);
    }
    struct zipccl_tensor_stat total = zipccl_stats_total(&stats);
    cr_expect_eq(total.raw_bytes, (uint64_t)(9 * N));
    cr_expect(zipccl_stat_measured(&total) > 1 && zipccl_stat_measured(&total) < 1.6);
}

/* All that 'file' holds; freed by the caller. */
static char *contents(FILE *file)
{
    long size = ftell(file);
    char *text = calloc(1, (size_t)size + 1);
    cr_assert(text);
    rewind(file);
    cr_assert_eq(fread(text, 1, (size_t)size, file), (size_t)size);
    return text;
}

Test(stat, table_has_a_line_for_each_tensor)
{
    FILE *file = tmpfile();
    struct zipccl_error error;
    cr_assert_eq(zipccl_stats_print(&stats, file, &error), ZIPCCL_OK);
    char *text = contents(file);
    cr_expect(strstr(text, "\nweights "));
    cr_expect(strstr(text, "student-t"));
    cr_expect(strstr(text, "not covered"));
    cr_expect(strstr(text, "\ntotal "));
    cr_expect_null(strstr(text, "nan"));
    free(text);
    fclose(file);
}

static double number_at(yajl_val value, const char *key)
{
    const char *path[] = {key, NULL};
    yajl_val found = yajl_tree_get(value, path, yajl_t_number);
    cr_assert(found, "%s", key);
    return YAJL_GET_DOUBLE(found);
}

Test(stat, json_has_the_same_numbers)
{
    FILE *file = tmpfile();
    struct zipccl_error error;
    cr_assert_eq(zipccl_stats_json(&stats, "a \"file\"", file, &error), ZIPCCL_OK);
    char *text = contents(file), reason[256];
    yajl_val root = yajl_tree_parse(text, reason, sizeof reason);
    cr_assert(root, "%s", reason);
    const char *tensors[] = {"tensors", NULL}, *total[] = {"total", NULL};
    yajl_val array = yajl_tree_get(root, tensors, yajl_t_array);
    cr_assert(array && YAJL_GET_ARRAY(array)->len == stats.ntensors);
    for (size_t i = 0; i < stats.ntensors; i++) {
        yajl_val tensor = YAJL_GET_ARRAY(array)->values[i];
        cr_expect_eq(number_at(tensor, "n"), (double)stats.tensor[i].n);
        cr_expect_float_eq(number_at(tensor, "ratio_measured"),
                           zipccl_stat_measured(&stats.tensor[i]), 1e-12);
        cr_expect_float_eq(number_at(tensor, "ratio_predicted"),
                           zipccl_stat_predicted(&stats.tensor[i]), 1e-12);
        if (stats.tensor[i].covered)
            cr_expect_float_eq(number_at(tensor, "ratio_bound"),
                               zipccl_exponent_bound(stats.tensor[i].entropy), 1e-12);
    }
    cr_expect_eq(number_at(yajl_tree_get(root, total, yajl_t_object), "raw_bytes"), 9.0 * N);
    yajl_tree_free(root);
    free(text);
    fclose(file);
}

Test(stat, writing_where_one_may_not_is_an_error)
{
    FILE *full = fopen("/dev/full", "w");
    if (!full)
        cr_skip_test("no /dev/full");
    struct zipccl_error error = {""};
    cr_expect_eq(zipccl_stats_print(&stats, full, &error), ZIPCCL_ERR_IO);
    cr_expect_eq(zipccl_stats_json(&stats, "x", full, &error), ZIPCCL_ERR_IO);
    cr_expect(strlen(error.text) > 0);
    fclose(full);
}
