/*
 * test_safetensors.c - tensor files: good ones, wrong ones, and files cut anywhere
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/safetensors.h"
#include "traces/tests/scratch.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(safetensors, .fini = scratch_remove);

/* Header length, header, then 'ndata' bytes 0, 1, 2, ... */
static size_t build(unsigned char *out, const char *header, size_t ndata)
{
    size_t n = strlen(header);

    for (int i = 0; i < 8; i++)
        out[i] = (unsigned char)((uint64_t)n >> 8 * i);
    memcpy(out + 8, header, n);
    for (size_t i = 0; i < ndata; i++)
        out[8 + n + i] = (unsigned char)i;
    return 8 + n + ndata;
}

static const char good[] =
    "{\"__metadata__\":{\"k\":\"v\",\"origin\":\"a test\"},"
    "\"a.y\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[8,24]},"
    "\"a.x\":{\"dtype\":\"BF16\",\"shape\":[4],\"data_offsets\":[0,8]},"
    "\"a\":{\"dtype\":\"I16\",\"shape\":[],\"data_offsets\":[24,26]},"
    "\"empty\":{\"dtype\":\"F8_E4M3\",\"shape\":[3,0],\"data_offsets\":[26,26]}}  ";

static zipccl_status open_bytes(const void *bytes, size_t n, const struct zipccl_safetensors **out,
                                struct zipccl_error *error)
{
    char path[SCRATCH_PATH];

    return zipccl_safetensors_open(scratch_write(path, "t.safetensors", bytes, n), out, error);
}

Test(safetensors, a_good_file_is_read)
{
    unsigned char bytes[1024];
    const struct zipccl_safetensors *file;
    const struct zipccl_tensor *t;
    struct zipccl_error error = {""};
    size_t position = 0;

    cr_assert_eq(open_bytes(bytes, build(bytes, good, 26), &file, &error), ZIPCCL_OK, "%s",
                 error.text);
    cr_assert_eq(file->ntensors, 4);
    cr_expect_eq(file->data_nbytes, 26);
    cr_expect_str_eq(file->origin, "a test");
    cr_expect_str_eq(file->tensors[0].name, "a.x", "in file order");
    t = zipccl_safetensors_find(file, "a.y");
    cr_assert_not_null(t);
    cr_expect(t->known && t->dtype == ZIPCCL_FLOAT32 && t->ndim == 2 && t->shape[1] == 2);
    cr_expect(t->n == 4 && t->nbytes == 16 && t->offset == 8 + strlen(good) + 8);
    cr_expect_eq(((const unsigned char *)t->data)[0], 8);
    t = zipccl_safetensors_find(file, "a");
    cr_expect(t != NULL && !t->known && t->n == 1 && strcmp(t->dtype_name, "I16") == 0);
    t = zipccl_safetensors_find(file, "empty");
    cr_expect(t != NULL && t->n == 0 && t->nbytes == 0);
    cr_expect_null(zipccl_safetensors_find(file, "b"));
    cr_expect_str_eq(zipccl_safetensors_match(file, "class:a", &position)->name, "a.x");
    cr_expect_str_eq(zipccl_safetensors_match(file, "class:a", &position)->name, "a.y");
    cr_expect_null(zipccl_safetensors_match(file, "class:a", &position), "not \"a\" itself");
    position = 0;
    cr_expect_str_eq(zipccl_safetensors_match(file, "a", &position)->name, "a");
    cr_expect_null(zipccl_safetensors_match(file, "a", &position));
    zipccl_safetensors_close(file);
    zipccl_safetensors_close(NULL);
}

Test(safetensors, an_origin_that_a_terminal_would_obey_is_left_out)
{
    static const char *const texts[] = {"{}", "{\"__metadata__\":{}}",
                                        "{\"__metadata__\":{\"origin\":\"\"}}",
                                        "{\"__metadata__\":{\"origin\":\"a\\nb\"}}",
                                        "{\"__metadata__\":{\"origin\":\"\\u001b[1m\"}}"};
    const struct zipccl_safetensors *file;
    unsigned char bytes[1024];

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct zipccl_error error = {""};

        cr_assert_eq(open_bytes(bytes, build(bytes, texts[i], 0), &file, &error), ZIPCCL_OK, "%s",
                     error.text);
        cr_expect_null(file->origin, "%s", texts[i]);
        zipccl_safetensors_close(file);
    }
}

Test(safetensors, a_file_cut_anywhere_is_an_error)
{
    unsigned char bytes[1024];
    const struct zipccl_safetensors *file = NULL;
    struct zipccl_error error;
    size_t n = build(bytes, good, 26);

    for (size_t cut = 0; cut < n; cut++) {
        cr_expect_eq(open_bytes(bytes, cut, &file, &error), ZIPCCL_ERR_INPUT, "cut at %zu", cut);
        cr_expect_null(file);
        cr_expect(strstr(error.text, "t.safetensors: ") != NULL, "cut at %zu: %s", cut, error.text);
    }
    bytes[n] = 0;
    cr_expect_eq(open_bytes(bytes, n + 1, &file, &error), ZIPCCL_ERR_INPUT);
    cr_expect(strstr(error.text, "1 bytes after the last tensor, expected none"), "%s", error.text);
}

Test(safetensors, a_header_cut_anywhere_is_an_error)
{
    unsigned char bytes[1024];
    char header[sizeof good];
    const struct zipccl_safetensors *file;
    struct zipccl_error error;

    strcpy(header, good);
    /* The last two bytes are blanks, which a header may do without. */
    for (size_t cut = strlen(good) - 3; cut > 0; cut--) {
        header[cut] = '\0';
        cr_expect_eq(open_bytes(bytes, build(bytes, header, 26), &file, &error), ZIPCCL_ERR_INPUT,
                     "cut at %zu", cut);
    }
}

#define ONE(body) "{\"t\":{" body "}}"

static const struct {
    const char *header;
    size_t ndata;
    const char *expected;
} wrong_headers[] = {
    {"[]", 0, "a header that does not start with '{'"},
    {" {}", 0, "a header that does not start with '{'"},
    {"{]", 0, "parse error"},
    {"{} x", 0, "trailing garbage"},
    {"{\"t\":1}", 0, "tensor \"t\" is no object"},
    {"{\"__metadata__\":[]}", 0, "__metadata__ that is no object"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "a value in __metadata__ that is no string"},
    {ONE("\"dtype\":\"BF16\",\"shape\":[2]"), 4, "no key \"data_offsets\" in tensor \"t\""},
    {ONE("\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4],\"x\":1"), 4,
     "unknown key \"x\" in tensor \"t\""},
    {ONE("\"dtype\":\"BF17\",\"shape\":[2],\"data_offsets\":[0,4]"), 4,
     "dtype \"BF17\" of tensor \"t\", expected BF16"},
    {ONE("\"dtype\":7,\"shape\":[2],\"data_offsets\":[0,4]"), 4, "dtype 7 of tensor \"t\""},
    {ONE("\"dtype\":\"BF16\",\"shape\":[-2],\"data_offsets\":[0,4]"), 4,
     "\"shape\" is -2, expected an integer"},
    {ONE("\"dtype\":\"BF16\",\"shape\":[2.0],\"data_offsets\":[0,4]"), 4,
     "\"shape\" is 2.0, expected an integer"},
    {ONE("\"dtype\":\"BF16\",\"shape\":2,\"data_offsets\":[0,4]"), 4,
     "\"shape\" is 2, expected an array"},
    {ONE("\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[0,4]"), 4,
     "4 bytes for tensor \"t\", expected 3 elements of 2 bytes"},
    {ONE("\"dtype\":\"BF16\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]"), 0,
     "shape of tensor \"t\" with more than 2^53 elements"},
    {ONE("\"dtype\":\"F64\",\"shape\":[9007199254740992],\"data_offsets\":[0,0]"), 0,
     "0 bytes for tensor \"t\""},
    {ONE("\"dtype\":\"BF16\",\"shape\":[9223372036854775808],\"data_offsets\":[0,0]"), 0,
     "\"shape\" is 9223372036854775808"},
    {ONE("\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,6]"), 4,
     "tensor \"t\" at bytes 0 to 6, expected a range within the 4 bytes"},
    {ONE("\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[4,0]"), 4,
     "tensor \"t\" at bytes 4 to 0"},
    {ONE("\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0]"), 4,
     "\"data_offsets\" is an array of 1"},
    {ONE("\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4,4]"), 4,
     "3 data_offsets of tensor \"t\", expected 2"},
    {ONE("\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[1,5]"), 5,
     "a hole of 1 bytes before tensor \"t\""},
    {ONE("\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]"), 5,
     "1 bytes after the last tensor"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"U8\","
     "\"shape\":[3],\"data_offsets\":[3,6]}}",
     6, "tensor \"b\" overlaps 1 bytes of the one before"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},\"b\":{\"dtype\":\"U8\","
     "\"shape\":[3],\"data_offsets\":[3,6]}}",
     6, "a hole of 1 bytes before tensor \"b\""},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},\"a\":{\"dtype\":\"U8\","
     "\"shape\":[2],\"data_offsets\":[2,4]}}",
     4, "tensor \"a\" twice"},
    {"{\"a\\u0000b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", 2,
     "a key that holds U+0000"},
    {"{\"\xff\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", 2,
     "bytes that are not UTF-8"},
};

Test(safetensors, wrong_headers_are_named)
{
    for (size_t i = 0; i < sizeof wrong_headers / sizeof wrong_headers[0]; i++) {
        unsigned char bytes[1024];
        const struct zipccl_safetensors *file;
        struct zipccl_error error = {""};

        cr_expect_eq(open_bytes(bytes,
                                build(bytes, wrong_headers[i].header, wrong_headers[i].ndata),
                                &file, &error),
                     ZIPCCL_ERR_INPUT, "case %zu", i);
        cr_expect(strstr(error.text, wrong_headers[i].expected) != NULL,
                  "case %zu:\n got %s\nwant %s", i, error.text, wrong_headers[i].expected);
    }
}

Test(safetensors, huge_header_lengths_are_errors)
{
    static const uint64_t lengths[] = {
        0, 1, 27, (uint64_t)1 << 31, (uint64_t)1 << 63, UINT64_MAX, UINT64_MAX - 7};
    const struct zipccl_safetensors *file;
    struct zipccl_error error;
    unsigned char bytes[64];

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        size_t n = build(bytes, "{}                        ", 0);

        for (int k = 0; k < 8; k++)
            bytes[k] = (unsigned char)(lengths[i] >> 8 * k);
        cr_expect_eq(open_bytes(bytes, n, &file, &error), ZIPCCL_ERR_INPUT, "length %zu", i);
    }
    cr_assert_eq(open_bytes(bytes, build(bytes, "{}", 0), &file, &error), ZIPCCL_OK);
    cr_expect_eq(file->ntensors, 0);
    zipccl_safetensors_close(file);
    cr_expect_eq(zipccl_safetensors_open("no/such/file", &file, &error), ZIPCCL_ERR_IO);
    cr_expect_eq(zipccl_safetensors_open("traces", &file, &error), ZIPCCL_ERR_INPUT);
}

/* Nobody writes to it: opening it the usual way would wait for ever. */
Test(safetensors, a_pipe_is_not_waited_for, .timeout = 20)
{
    const struct zipccl_safetensors *file;
    struct zipccl_error error;
    char path[SCRATCH_PATH];

    cr_assert_eq(mkfifo(scratch_path(path, "pipe.safetensors"), 0600), 0);
    cr_expect_eq(zipccl_safetensors_open(path, &file, &error), ZIPCCL_ERR_INPUT);
    cr_expect(strstr(error.text, "no regular file") != NULL, "%s", error.text);
}

/* The bundled tensors have the bytes of the captured ones, where those are at hand. */
Test(safetensors, bundled_tensors_are_captured_ones)
{
    static const char *const names[] = {"dense", "moe"};

    for (int i = 0; i < 2; i++) {
        const struct zipccl_safetensors *ours, *all;
        struct zipccl_error error = {""};
        char path[SCRATCH_PATH];

        snprintf(path, sizeof path, "traces/samples/tensors/%s.safetensors", names[i]);
        cr_assert_eq(zipccl_safetensors_open(path, &ours, &error), ZIPCCL_OK, "%s", error.text);
        snprintf(path, sizeof path, "../shared/data/tensors/%s.safetensors", names[i]);
        if (access(path, R_OK) != 0) {
            zipccl_safetensors_close(ours);
            cr_skip_test("the full set of captured tensors is not here");
        }
        cr_assert_eq(zipccl_safetensors_open(path, &all, &error), ZIPCCL_OK, "%s", error.text);
        for (size_t k = 0; k < ours->ntensors; k++) {
            const struct zipccl_tensor *t = &ours->tensors[k];
            const struct zipccl_tensor *from = zipccl_safetensors_find(all, t->name);

            cr_assert_not_null(from, "%s", t->name);
            cr_expect(t->dtype == from->dtype && t->nbytes == from->nbytes &&
                          memcmp(t->data, from->data, t->nbytes) == 0,
                      "%s", t->name);
        }
        zipccl_safetensors_close(ours);
        zipccl_safetensors_close(all);
    }
}
