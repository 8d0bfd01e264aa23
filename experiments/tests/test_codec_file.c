/*
 * test_codec_file.c - files come back bit for bit, and damage is told with its place
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/wire.h"
#include "experiments/codec/codec_file.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bytes {
    uint8_t *p;
    size_t n;
};

typedef zipccl_status code_fn(const struct zipccl_file_job *job, enum zipccl_dtype dtype,
                              struct zipccl_file_stats *stats, struct zipccl_error *error);

static zipccl_status decode_fn(const struct zipccl_file_job *job, enum zipccl_dtype dtype,
                               struct zipccl_file_stats *stats, struct zipccl_error *error)
{
    (void)dtype;
    return zipccl_file_decode(job, stats, error);
}

/* Run one way through memory; 'known' tells the size beforehand. */
static zipccl_status run(code_fn *code, struct bytes in, enum zipccl_dtype dtype, bool known,
                         struct bytes *out, struct zipccl_file_stats *stats,
                         struct zipccl_error *error)
{
    char *text = NULL;
    size_t n = 0;
    struct zipccl_file_job job = {.in_name = "input.bin", .out_name = "output.bin"};
    job.in = tmpfile();
    job.out = open_memstream(&text, &n);
    cr_assert(job.in && job.out);
    cr_assert(in.n == 0 || fwrite(in.p, 1, in.n, job.in) == in.n);
    rewind(job.in);
    job.in_bytes = known ? in.n : 0;
    /* Two ways at once: bytes depend on neither. */
    job.nthreads = known ? 3 : 0;
    zipccl_status status = code(&job, dtype, stats, error);
    fclose(job.in);
    fclose(job.out);
    out->p = (uint8_t *)text;
    out->n = n;
    return status;
}

/* Encode, decode, compare; returns the coded file. */
static struct bytes survives(struct bytes file, enum zipccl_dtype dtype, const char *what)
{
    struct zipccl_error error = {""};
    struct zipccl_file_stats coded_stats, stats;
    struct bytes coded, back, again;
    cr_assert_eq(run(zipccl_file_encode, file, dtype, true, &coded, &coded_stats, &error),
                 ZIPCCL_OK, "%s: %s", what, error.text);
    cr_assert_eq(run(zipccl_file_encode, file, dtype, false, &again, &stats, &error), ZIPCCL_OK);
    cr_assert(again.n == coded.n && memcmp(again.p, coded.p, coded.n) == 0, "%s", what);
    cr_assert_eq(run(decode_fn, coded, dtype, false, &back, &stats, &error), ZIPCCL_OK, "%s: %s",
                 what, error.text);
    cr_assert(back.n == file.n && (file.n == 0 || memcmp(back.p, file.p, file.n) == 0), "%s", what);
    cr_assert(stats.raw_bytes == file.n && stats.file_bytes == coded.n, "%s", what);
    cr_assert(memcmp(&stats, &coded_stats, sizeof stats) == 0, "%s", what);
    free(again.p);
    free(back.p);
    return coded;
}

/* A .safetensors file of 'header' and [ndata] bytes that look like bf16 or fp32 at any offset. */
static struct bytes make(const char *header, size_t ndata)
{
    struct bytes file = {calloc(1, 8 + strlen(header) + ndata + 1), 8 + strlen(header) + ndata};
    uint8_t *data = file.p + 8 + strlen(header);
    uint64_t x = 1;
    zipccl_put_u64(file.p, strlen(header));
    memcpy(file.p + 8, header, strlen(header));
    for (size_t i = 0; i < ndata; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        data[i] = i % 2 ? (uint8_t)(0x3c + (x >> 60) % 3) : (uint8_t)(x >> 40);
    }
    return file;
}

#define T(name, type, begin, end)                                                                  \
    "\"" name "\":{\"dtype\":\"" type "\",\"shape\":[1],\"data_offsets\":[" #begin "," #end "]}"

Test(codec_file, any_layout_comes_back)
{
    static const struct {
        const char *what, *header;
        size_t ndata;
    } cases[] = {
        {"one tensor", "{" T("a", "BF16", 0, 20000) "}", 20000},
        {"unordered", "{" T("b", "F32", 20000, 60000) "," T("a", "BF16", 0, 20000) "}", 60000},
        {"gaps", "{" T("a", "BF16", 100, 20000) "," T("b", "F16", 20001, 40001) "}", 40001},
        {"overlaps", "{" T("a", "BF16", 0, 20000) "," T("b", "F32", 10001, 40001) "}", 40001},
        {"bytes after the last", "{" T("a", "BF16", 0, 20000) "}", 20777},
        {"empty tensors", "{" T("a", "BF16", 0, 0) "," T("b", "F32", 0, 400) "}", 400},
        {"unknown types",
         "{" T("a", "F4_E9M9", 0, 1000) "," T("b", "BF16", 1000, 9000) "," T("c", "I64", 9000,
                                                                             9008) "}",
         9008},
        {"a size that is no whole element", "{" T("a", "F32", 0, 20003) "}", 20003},
        {"no tensors", "{}", 0},
        {"metadata alone", "{\"__metadata__\":{\"k\":\"v\"}}  ", 0},
        {"more than a segment", "{" T("a", "BF16", 0, 9000000) "}", 9000000},
        {"fp8", "{" T("a", "F8_E4M3", 0, 5001) "," T("b", "F8_E5M2", 5001, 9000) "}", 9000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bytes file = make(cases[i].header, cases[i].ndata);
        struct bytes coded = survives(file, ZIPCCL_FILE_SAFETENSORS, cases[i].what);
        if (i == 0 || i == 10)
            cr_expect_lt(coded.n, file.n * 4 / 5, "%s", cases[i].what);
        cr_expect_leq(coded.n, file.n + 400, "%s", cases[i].what);
        free(file.p);
        free(coded.p);
    }
}

Test(codec_file, any_bytes_come_back_as_any_type)
{
    static const size_t sizes[] = {0, 1, 3, 7, 1000, 70001, 4194304, 4194305, 8388611};
    struct bytes file = make("{}", 8388611);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int dtype = 0; dtype < ZIPCCL_NUM_DTYPES; dtype++) {
            struct bytes part = {file.p + 9, sizes[i]};
            if (sizes[i] > 100000 && dtype != ZIPCCL_FLOAT32 && dtype != ZIPCCL_BFLOAT16)
                continue;
            free(survives(part, (enum zipccl_dtype)dtype,
                          zipccl_dtype_name((enum zipccl_dtype)dtype))
                     .p);
        }
    free(file.p);
}

Test(codec_file, headers_that_do_not_fit_are_told)
{
    static const struct {
        const char *header, *text;
        size_t ndata;
    } cases[] = {
        {"{" T("a", "BF16", 0, 20000) "}", "places tensors up to byte", 19999},
        {"{\"a\":1}", "is no object", 10},
        {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", "no dtype", 10},
        {"{\"a\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[0]}}", "no data_offsets", 10},
        {"{\"a\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[4,0]}}", "end after", 10},
        {"{\"a\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[-4,0]}}", "data_offsets", 10},
        {"[1]", "does not start with '{'", 10},
        {"{\"a\":", "input.bin", 10},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int known = 0; known < 2; known++) {
            struct zipccl_error error = {""};
            struct zipccl_file_stats stats;
            struct bytes file = make(cases[i].header, cases[i].ndata), coded;
            cr_expect_eq(run(zipccl_file_encode, file, ZIPCCL_FILE_SAFETENSORS, known, &coded,
                             &stats, &error),
                         ZIPCCL_ERR_INPUT, "%s", cases[i].header);
            cr_expect(strstr(error.text, "input.bin") && strstr(error.text, cases[i].text) &&
                          strstr(error.text, "--dtype"),
                      "%s", error.text);
            free(file.p);
            free(coded.p);
        }
}

/* Decode what is in 'coded'; it must fail, and say something. */
static zipccl_status refused(struct bytes coded, struct zipccl_error *error)
{
    struct zipccl_file_stats stats;
    struct bytes out;
    zipccl_status status = run(decode_fn, coded, ZIPCCL_UINT8, false, &out, &stats, error);
    cr_expect(status == ZIPCCL_ERR_CORRUPT || status == ZIPCCL_ERR_UNSUPPORTED, "%d", (int)status);
    cr_expect(strncmp(error->text, "input.bin: byte ", 16) == 0, "%s", error->text);
    free(out.p);
    return status;
}

Test(codec_file, every_damage_is_found)
{
    struct bytes file = make("{" T("a", "BF16", 0, 800) "," T("b", "I8", 800, 900) "}", 900);
    struct bytes coded = survives(file, ZIPCCL_FILE_SAFETENSORS, "small");
    struct zipccl_error error;
    for (size_t at = 0; at < coded.n; at++) {
        coded.p[at] ^= (uint8_t)(1 << at % 8);
        cr_expect_eq(refused(coded, &error), at == 8 ? ZIPCCL_ERR_UNSUPPORTED : ZIPCCL_ERR_CORRUPT,
                     "byte %zu", at);
        coded.p[at] ^= (uint8_t)(1 << at % 8);
        struct bytes cut = {coded.p, at};
        refused(cut, &error);
    }
    struct bytes longer = {malloc(coded.n + 1), coded.n + 1};
    memcpy(longer.p, coded.p, coded.n);
    longer.p[coded.n] = 0;
    refused(longer, &error);
    cr_expect(strstr(error.text, "after the trailer"), "%s", error.text);
    free(longer.p);
    free(coded.p);
    free(file.p);
}

Test(codec_file, damage_is_located)
{
    struct bytes file = make("{" T("a", "BF16", 0, 9000000) "}", 9000000);
    struct bytes coded = survives(file, ZIPCCL_FILE_SAFETENSORS, "large");
    struct zipccl_error error;
    /* The header is segment 0, the second segment of the tensor is 2. */
    coded.p[coded.n / 2] ^= 4;
    refused(coded, &error);
    char expected[80];
    size_t first = file.n - 9000000 + ZIPCCL_FILE_SEGMENT;
    snprintf(expected, sizeof expected, "bytes %zu to %zu of the original", first,
             first + ZIPCCL_FILE_SEGMENT);
    cr_expect(strstr(error.text, "segment 2 ") && strstr(error.text, expected), "%s", error.text);
    free(coded.p);
    free(file.p);
}

Test(codec_file, missing_segments_are_found)
{
    struct bytes file = make("{" T("a", "BF16", 0, 9000000) "}", 9000000);
    struct bytes coded = survives(file, ZIPCCL_FILE_SAFETENSORS, "large");
    struct zipccl_error error;
    /* Take out segment 1, whose length its message tells. */
    size_t at = 16, nbytes = 0;
    for (int k = 0; k < 2; k++) {
        at += nbytes;
        nbytes = 32 + (size_t)zipccl_get_u64(coded.p + at + 16) + ZIPCCL_FILE_SUM_BYTES;
    }
    memmove(coded.p + at, coded.p + at + nbytes, coded.n - at - nbytes);
    struct bytes shorter = {coded.p, coded.n - nbytes};
    refused(shorter, &error);
    cr_expect(strstr(error.text, "some are missing"), "%s", error.text);
    free(coded.p);
    free(file.p);
}
