/*
 * test_codec_stat.c - codec stat on captured tensors, and on files that are none
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/codec/codec_stat.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_tree.h>

/* Tensors of one kind: "allgather.param", "sparse", ... */
struct class
{
    char name[64];
    int count;
    double raw, wire, predicted, worst; /* worst: largest relative difference of a tensor */
};

enum { MOST_CLASSES = 64 };

/* The first two words of the name; one for what the project calls sparse. */
static struct class *class_of(struct class *classes, size_t *n, const char *name)
{
    size_t length = strcspn(name, ".");
    if (strncmp(name, "sparse", 6) != 0 && name[length] == '.')
        length += 1 + strcspn(name + length + 1, ".");
    for (size_t i = 0; i < *n; i++)
        if (strlen(classes[i].name) == length && strncmp(classes[i].name, name, length) == 0)
            return &classes[i];
    cr_assert_lt(*n, (size_t)MOST_CLASSES);
    struct class *added = &classes[(*n)++];
    snprintf(added->name, sizeof added->name, "%.*s", (int)length, name);
    return added;
}

static yajl_val member(yajl_val value, const char *key, yajl_type type)
{
    const char *path[] = {key, NULL};
    return yajl_tree_get(value, path, type);
}

static double number_at(yajl_val value, const char *key)
{
    yajl_val found = member(value, key, yajl_t_number);
    cr_assert(found, "%s", key);
    return YAJL_GET_DOUBLE(found);
}

static yajl_val parse(FILE *file, char **text)
{
    char reason[256];
    long size = ftell(file);
    *text = calloc(1, (size_t)size + 1);
    rewind(file);
    cr_assert(*text && fread(*text, 1, (size_t)size, file) == (size_t)size);
    yajl_val root = yajl_tree_parse(*text, reason, sizeof reason);
    cr_assert(root, "%s", reason);
    return root;
}

/* One tensor: no scale mixed by rows, hardly any zeros, and enough elements for a law. */
static bool plain(yajl_val tensor)
{
    yajl_val fit = member(tensor, "fit", yajl_t_object);
    return fit && number_at(tensor, "zero_share") < 0.01 && number_at(tensor, "n") >= 16384 &&
           number_at(fit, "lost_bits_per_exponent") < 0.005;
}

static void check_file(const char *path, struct class *classes, size_t *nclasses)
{
    struct zipccl_error error = {""};
    FILE *file = tmpfile();
    char *text;
    cr_assert_eq(zipccl_codec_stat_json(path, file, &error), ZIPCCL_OK, "%s", error.text);
    yajl_val root = parse(file, &text), tensors = member(root, "tensors", yajl_t_array);
    cr_assert(tensors);
    for (size_t i = 0; i < YAJL_GET_ARRAY(tensors)->len; i++) {
        yajl_val tensor = YAJL_GET_ARRAY(tensors)->values[i];
        const char *name = YAJL_GET_STRING(member(tensor, "name", yajl_t_string));
        if (!member(tensor, "covered", yajl_t_true)) {
            cr_expect_eq(number_at(tensor, "ratio"), 1);
            continue;
        }
        double bound = number_at(tensor, "bound_ratio"),
               huffman = number_at(tensor, "huffman_ratio");
        cr_expect(huffman <= bound && huffman > 0.85 * bound, "%s", name);
        cr_expect(member(tensor, "modes", yajl_t_object) &&
                      member(tensor, "worst_block", yajl_t_object),
                  "%s", name);
        if (!member(tensor, "predicted_ratio", yajl_t_number))
            continue; /* not bf16 */
        struct class *class = class_of(classes, nclasses, name);
        double raw = number_at(tensor, "raw_bytes");
        double predicted = number_at(tensor, "predicted_ratio");
        double measured = number_at(tensor, "ratio");
        double off = predicted / measured - 1;
        class->count++;
        class->raw += raw;
        class->wire += raw / measured;
        class->predicted += raw / predicted;
        class->worst = fmax(class->worst, fabs(off));
        /* A law without place can promise less, where scales change from row to row; not more. */
        cr_expect_lt(off, 0.02, "%s: %.4f predicted, %.4f measured", name, predicted, measured);
        if (plain(tensor))
            cr_expect_gt(off, -0.05, "%s: %.4f predicted, %.4f measured", name, predicted,
                         measured);
        cr_expect_geq(measured, 0.999);
    }
    yajl_tree_free(root);
    free(text);
    fclose(file);
}

Test(codec_stat, predictions_are_near_what_captured_tensors_become)
{
    static const char *const names[] = {"dense", "moe"};
    struct class classes[MOST_CLASSES];
    size_t nclasses = 0;
    memset(classes, 0, sizeof classes);
    for (int i = 0; i < 2; i++) {
        char path[128];
        FILE *there = NULL;
        static const char *const parents[] = {"..", "../.."};
        for (int k = 0; k < 2 && !there; k++) {
            snprintf(path, sizeof path, "%s/shared/data/tensors/%s.safetensors", parents[k],
                     names[i]);
            there = fopen(path, "rb");
        }
        if (!there) {
            printf("skipped: no captured tensors beside the tree\n");
            cr_skip_test("no captured tensors");
        }
        fclose(there);
        check_file(path, classes, &nclasses);
    }
    printf("%-26s %7s %9s %9s %9s %13s\n", "class", "tensors", "predicted", "measured",
           "difference", "worst tensor");
    double raw = 0, wire = 0, predicted = 0;
    for (size_t i = 0; i < nclasses; i++) {
        const struct class *c = &classes[i];
        printf("%-26s %7d %9.4f %9.4f %8.2f %% %11.2f %%\n", c->name, c->count,
               c->raw / c->predicted, c->raw / c->wire, 100 * (c->wire / c->predicted - 1),
               100 * c->worst);
        raw += c->raw;
        wire += c->wire;
        predicted += c->predicted;
    }
    printf("%-26s %7s %9.4f %9.4f\n", "all", "", raw / predicted, raw / wire);
    cr_expect(fabs(wire / predicted - 1) < 0.06);
}

/* What the table says of a file of 'header' and 'n' bytes of data. */
static void print_small(const char *header, const void *data, size_t n, char *text, size_t size)
{
    char path[] = "/tmp/zipccl_stat_XXXXXX";
    int fd = mkstemp(path);
    FILE *small = fd >= 0 ? fdopen(fd, "wb") : NULL, *file = tmpfile();
    cr_assert(small && file);
    uint8_t length[8] = {(uint8_t)strlen(header), (uint8_t)(strlen(header) >> 8)};
    fwrite(length, 1, sizeof length, small);
    fwrite(header, 1, strlen(header), small);
    fwrite(data, 1, n, small);
    fclose(small);

    struct zipccl_error error = {""};
    cr_expect_eq(zipccl_codec_stat_print(path, file, &error), ZIPCCL_OK, "%s", error.text);
    remove(path);
    rewind(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
}

Test(codec_stat, table_of_a_small_file)
{
    static const uint16_t data[4] = {0x3f80, 0x3f81, 0, 0xbf80};
    char text[4096];
    print_small("{\"a\":{\"dtype\":\"BF16\",\"shape\":[2,2],\"data_offsets\":[0,8]}}", data,
                sizeof data, text, sizeof text);
    cr_expect(strstr(text, "\na ") && strstr(text, "\ntotal "), "%s", text);
}

Test(codec_stat, unknown_types_holes_and_trailing_bytes_are_no_error)
{
    static const uint16_t data[12] = {0x3f80, 0x3f81, 0, 0xbf80};
    char text[4096];
    print_small("{\"a\":{\"dtype\":\"BF16\",\"shape\":[2,2],\"data_offsets\":[0,8]},"
                "\"b\":{\"dtype\":\"F4\",\"shape\":[6],\"data_offsets\":[9,12]},"
                "\"c\":{\"dtype\":\"CO\\u001bMPLEX_OF_MANY\",\"shape\":[1],"
                "\"data_offsets\":[12,20]}}",
                data, sizeof data, text, sizeof text);
    const char *b = strstr(text, "\nb "), *c = strstr(text, "\nc ");
    cr_assert(b && c, "%s", text);
    cr_expect(strstr(b, "F4") && strstr(b, "F4") < c && strstr(b, "not covered") < c, "%s", text);
    cr_expect(strstr(c, " CO?MPLEX_OF_MAN ") && strstr(c, "not covered"), "%s", text);
}

Test(codec_stat, a_file_that_cannot_be_read_is_an_error_and_prints_nothing)
{
    struct zipccl_error error = {""};
    FILE *file = tmpfile();
    cr_expect_neq(zipccl_codec_stat_print("no/such/file.safetensors", file, &error), ZIPCCL_OK);
    cr_expect(strstr(error.text, "no/such/file"), "%s", error.text);
    cr_expect_neq(zipccl_codec_stat_json("CMakeLists.txt", file, &error), ZIPCCL_OK);
    cr_expect(strstr(error.text, "CMakeLists.txt"), "%s", error.text);
    cr_expect_eq(ftell(file), 0L);
    fclose(file);
}
