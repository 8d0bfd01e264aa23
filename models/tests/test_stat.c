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
    cr_expect_float_eq(zipccl_stat_predicted(weights) / zipccl_stat_ratio(weights), 1, 0.003);
    cr_expect_eq(gradients->fit.model.family, ZIPCCL_FAMILY_STUDENT_T);
    cr_expect_float_eq(gradients->fit.model.nu / 3, 1, 0.15);
    cr_expect_float_eq(zipccl_stat_predicted(gradients) / zipccl_stat_ratio(gradients), 1, 0.01);
    cr_expect_gt(gradients->entropy, weights->entropy);
    cr_expect_not(stats.tensor[2].fitted);
    cr_expect_eq(stats.tensor[2].entropy, 0);
    cr_expect_eq(stats.tensor[2].zero, 1);
    cr_expect_eq(zipccl_stat_ratio(&stats.tensor[3]), 1);
    /* fp32 whose words hold bf16 pairs is covered, but has no law. */
    cr_expect(stats.tensor[4].covered);
    cr_expect_not(stats.tensor[4].predicted);
    cr_expect_not(stats.tensor[5].covered);
    cr_expect_eq(zipccl_stat_ratio(&stats.tensor[5]), 1);
    cr_expect_eq(zipccl_stat_predicted(&stats.tensor[5]), 1);
    struct zipccl_tensor_stat total = zipccl_stats_total(&stats);
    cr_expect_eq(total.raw_bytes, (uint64_t)(9 * N));
    /* 9 N bytes of which 4 N are zeros, 4 N shrink by about a third and N do not. */
    cr_expect_float_eq(zipccl_stat_ratio(&total), 9 / (4 / 1.48 + 1), 0.05);
}

static uint64_t sum_of_modes(const struct zipccl_tensor_stat *stat)
{
    uint64_t sum = 0;
    for (int k = 0; k < ZIPCCL_NUM_MODES; k++)
        sum += stat->modes[k];
    return sum;
}

Test(stat, says_which_modes_blocks_took_and_what_others_could_reach)
{
    const struct zipccl_tensor_stat *weights = &stats.tensor[0], *zeros = &stats.tensor[2];
    cr_expect_eq(sum_of_modes(weights), (uint64_t)3); /* 40000 elements in blocks of 16384 */
    cr_expect_eq(weights->modes[ZIPCCL_PROGRAM_RAW], (uint64_t)0);
    cr_expect_eq(zeros->modes[ZIPCCL_PROGRAM_CONSTANT], (uint64_t)3);
    cr_expect_eq(sum_of_modes(&stats.tensor[3]), (uint64_t)0);
    cr_expect_float_eq(zipccl_stat_bound(weights), 16 / (8 + weights->entropy), 1e-9);
    /* Huffman is within a percent of the entropy for a Gaussian, and never above the bound. */
    cr_expect(zipccl_stat_huffman(weights) < zipccl_stat_bound(weights) &&
              zipccl_stat_huffman(weights) > 0.99 * zipccl_stat_bound(weights));
    cr_expect_lt(zipccl_stat_ratio(weights), zipccl_stat_bound(weights));
    cr_expect_str_eq(weights->worst.tensor, "weights");
    cr_expect(weights->worst.ratio > 1.4 && weights->worst.ratio < 1.51);
    cr_expect_null(stats.tensor[3].worst.tensor);
    struct zipccl_tensor_stat total = zipccl_stats_total(&stats);
    cr_expect_eq(sum_of_modes(&total), (uint64_t)(3 * 3 + 2));
    cr_expect_leq(total.worst.ratio, weights->worst.ratio);
    cr_expect_not(total.predicted);
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

Test(stat, table_shows_no_character_that_a_terminal_obeys)
{
    static const struct {
        const char *name, *shown;
    } cases[] = {{"esc\x1b[2J", "\nesc?[2J "},
                 {"two\nlines", "\ntwo?lines "},
                 {"c1\xc2\x9b"
                  "end",
                  "\nc1?end "},
                 {"back\xe2\x80\xae"
                  "drow",
                  "\nback?drow "},
                 {"isolate\xe2\x81\xa6"
                  "d",
                  "\nisolate?d "},
                 {"bom\xef\xbb\xbf", "\nbom? "},
                 {"gr\xc3\xb6\xc3\x9f"
                  "e \xe2\x82\xac",
                  "\ngr\xc3\xb6\xc3\x9f"
                  "e \xe2\x82\xac "}};
    uint16_t raw[2] = {0x3f80, 0x0001};
    FILE *file = tmpfile();
    struct zipccl_error error;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        add(cases[i].name, "BF16", true, ZIPCCL_BFLOAT16, raw, 1, 2);
    cr_assert_eq(zipccl_stats_print(&stats, file, &error), ZIPCCL_OK);
    char *text = contents(file);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        cr_expect(strstr(text, cases[i].shown), "%zu: %s", i, cases[i].shown);
    cr_expect_null(strchr(text, 0x1b));
    cr_expect(strstr(text, "worst block: esc?[2J, "), "%s", text);
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
        cr_expect_float_eq(number_at(tensor, "ratio"), zipccl_stat_ratio(&stats.tensor[i]), 1e-12);
        if (stats.tensor[i].predicted)
            cr_expect_float_eq(number_at(tensor, "predicted_ratio"),
                               zipccl_stat_predicted(&stats.tensor[i]), 1e-12);
        cr_expect_float_eq(number_at(tensor, "huffman_ratio"),
                           zipccl_stat_huffman(&stats.tensor[i]), 1e-12);
        cr_expect_float_eq(number_at(tensor, "bound_ratio"), zipccl_stat_bound(&stats.tensor[i]),
                           1e-12);
        const char *modes[] = {"modes", NULL};
        yajl_val map = yajl_tree_get(tensor, modes, yajl_t_object);
        double sum = 0;
        cr_assert(map);
        for (size_t k = 0; k < YAJL_GET_OBJECT(map)->len; k++)
            sum += YAJL_GET_DOUBLE(YAJL_GET_OBJECT(map)->values[k]);
        cr_expect_eq(sum, (double)sum_of_modes(&stats.tensor[i]));
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
