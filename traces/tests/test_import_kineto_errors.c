/*
 * test_import_kineto_errors.c - profiler files that are refused, and why
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/tests/kineto_use.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

TestSuite(kineto_errors, .fini = scratch_remove);

static void refused(int n, const struct zipccl_import_options *options, const char *found,
                    const char *expected)
{
    struct zipccl_trace *t = kineto_import_with(n, options);

    cr_expect_null(t);
    zipccl_trace_destroy(t);
    cr_expect_not_null(strstr(kineto_error.text, found), "%s", kineto_error.text);
    cr_expect_not_null(strstr(kineto_error.text, expected), "%s", kineto_error.text);
}

Test(kineto_errors, strict_refuses_a_guess)
{
    struct zipccl_import_options options;

    zipccl_import_options_init(&options);
    options.strict = true;
    kineto_write_step("r0.json", 0, 0, 100, 0);
    kineto_write_step("r1.json", 1, 0, 100, 0);
    refused(2, &options, "r0.json: waits of compute", "expected none (strict)");
}

Test(kineto_errors, files_that_do_not_fit_together_are_refused)
{
    struct kineto_text k;
    char path[SCRATCH_PATH];

    kineto_write_step("r0.json", 0, 0, 100, 0);
    kineto_write_step("r1.json", 0, 0, 100, 0);
    refused(2, NULL, "r1.json: rank 0", "expected another");
    kineto_begin(&k, 1, 2);
    kineto_kernel(&k, REDUCE, KINETO_NCCL_STREAM, 1, 10, 20,
                  kineto_call("allreduce", "BFloat16", 64, 64, 2, "[0, 1]", "\"Seq\": 0"));
    kineto_save(path, "r1.json", &k);
    refused(2, NULL, "all_reduce of 64 bf16", "expected all_gather of 1000 bf16");
    kineto_begin(&k, 1, 2);
    kineto_kernel(&k, REDUCE, KINETO_NCCL_STREAM, 1, 10, 20, "");
    kineto_event(&k,
                 "\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"%s\", \"pid\": 1, \"ts\": 9, "
                 "\"dur\": 1",
                 REDUCE);
    kineto_save(path, "r1.json", &k);
    refused(2, NULL, "a second GPU", "one rank");
    kineto_begin(&k, 1, 4);
    kineto_kernel(&k, REDUCE, KINETO_NCCL_STREAM, 1, 10, 20, "");
    kineto_save(path, "r1.json", &k);
    refused(2, NULL, "a world of 4 ranks", "expected 2");
    kineto_begin(&k, 1, 2);
    kineto_kernel(&k, REDUCE, KINETO_NCCL_STREAM, 1, 10, 20,
                  kineto_call("allreduce", "BFloat16", 64, 64, 2, "[0, 3]", ""));
    kineto_save(path, "r0.json", &k);
    refused(1, NULL, "rank 3 in a group", "expected 0 to 1");
}

Test(kineto_errors, files_without_what_is_needed_say_how_to_record_it)
{
    struct kineto_text k;
    char path[SCRATCH_PATH];

    kineto_begin(&k, 0, 2);
    kineto_save(path, "r0.json", &k);
    refused(1, NULL, "none of them a kernel", "ProfilerActivity.CUDA");
    kineto_begin(&k, 0, 2);
    kineto_kernel(&k, "gemm", KINETO_COMPUTE_STREAM, 1, 10, 20, "");
    kineto_save(path, "r0.json", &k);
    refused(1, NULL, "none of them communication", "expected NCCL");
    kineto_begin(&k, 0, 2);
    kineto_kernel(&k, REDUCE, KINETO_NCCL_STREAM, 1, 10, 20, "");
    kineto_save(path, "r0.json", &k);
    refused(1, NULL, "none with op, type and size", "record_shapes=True");
    scratch_write(path, "r0.json", "{\"nodes\":[]}", 12);
    refused(1, NULL, "no \"traceEvents\"", "PyTorch profiler");
}

#define NO_TIME                                                                                    \
    "\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"" REDUCE "\", \"ts\": 3, \"dur\": %s"

Test(kineto_errors, collectives_without_a_time_are_counted)
{
    static const char *const times[] = {"\"x\"", "-5", "NaN"};
    struct zipccl_import_options strict;
    struct zipccl_trace *t;
    struct kineto_text k;
    char path[SCRATCH_PATH];

    zipccl_import_options_init(&strict);
    strict.strict = true;
    kineto_begin(&k, 0, 2);
    for (int i = 0; i < 3; i++)
        kineto_event(&k, NO_TIME, times[i]);
    kineto_kernel(&k, REDUCE, KINETO_NCCL_STREAM, 10, 20, 5,
                  kineto_call("allreduce", "BFloat16", 64, 64, 2, "[0, 1]", ""));
    kineto_save(path, "r0.json", &k);
    t = kineto_import(1);
    cr_expect_eq(kineto_counted("dropped collectives"), 3);
    cr_expect_eq(kineto_report.ncollectives, 1);
    zipccl_trace_destroy(t);
    refused(1, &strict, "their collectives are missing", "expected none (strict)");
    kineto_begin(&k, 0, 2);
    for (int i = 0; i < 3; i++)
        kineto_event(&k, NO_TIME, times[i]);
    kineto_save(path, "r0.json", &k);
    refused(1, NULL, "none with a time (3 dropped)", "\"dur\"");
}

Test(kineto_errors, times_too_far_apart_are_refused_by_file)
{
    static const double starts_us[] = {0, -20};
    struct kineto_text k;
    char path[SCRATCH_PATH];

    for (size_t i = 0; i < sizeof starts_us / sizeof starts_us[0]; i++) {
        kineto_begin(&k, 0, 2);
        kineto_kernel(&k, "gemm", KINETO_COMPUTE_STREAM, starts_us[i], starts_us[i], 20, "");
        kineto_kernel(&k, REDUCE, KINETO_NCCL_STREAM, 1.7e15, 1.7e15, 20,
                      kineto_call("allreduce", "BFloat16", 64, 64, 2, "[0, 1]", ""));
        kineto_save(path, "r0.json", &k);
        refused(1, NULL,
                i == 0 ? "r0.json: GPU activities from \"ts\" 0 to"
                       : "r0.json: GPU activities from \"ts\" -20 to",
                "expected at most 1000000 s");
    }
}

Test(kineto_errors, bytes_after_a_gzip_stream_are_refused)
{
    static const char *const rests[] = {"garbage", "{}", "\x1f\x8b\x08garbage"};
    char path[SCRATCH_PATH], out[SCRATCH_PATH], *text;
    const char *paths[] = {path};
    size_t n;

    kineto_write_step("x.json", 0, 3, 100, 0);
    text = scratch_read(scratch_path(path, "x.json"), &n);
    for (size_t i = 0; i < sizeof rests / sizeof rests[0]; i++) {
        gzFile zipped = gzopen(scratch_path(path, "x.json.gz"), "wb");
        FILE *file;

        cr_assert_eq(gzwrite(zipped, text, (unsigned)n), (int)n);
        gzclose(zipped);
        file = fopen(path, "ab");
        cr_assert_not_null(file);
        fputs(rests[i], file);
        fclose(file);
        cr_expect_eq(zipccl_import("kineto", paths, 1, scratch_path(out, "o.jsonl"), NULL, NULL,
                                   &kineto_error),
                     ZIPCCL_ERR_INPUT, "%zu", i);
        cr_expect_not_null(strstr(kineto_error.text, "x.json.gz: "), "%s", kineto_error.text);
        cr_expect_not_null(
            strstr(kineto_error.text, i < 2 ? "bytes after the gzip stream" : "gzip stream"), "%s",
            kineto_error.text);
    }
    free(text);
}

Test(kineto_errors, a_cut_file_is_refused_by_line_and_leaves_nothing)
{
    char path[SCRATCH_PATH], out[SCRATCH_PATH], *text;
    const char *paths[] = {path};
    size_t n;

    kineto_write_step("x.json", 0, 3, 100, 0);
    text = scratch_read(scratch_path(path, "x.json"), &n);
    for (size_t cut = 0; cut < n - 2; cut += 7) {
        scratch_write(path, "x.json", text, cut);
        kineto_error.text[0] = '\0';
        cr_expect_eq(zipccl_import("kineto", paths, 1, scratch_path(out, "o.jsonl"), NULL, NULL,
                                   &kineto_error),
                     ZIPCCL_ERR_INPUT, "%zu bytes", cut);
        cr_expect_not_null(strstr(kineto_error.text, "x.json:"), "%zu bytes: %s", cut,
                           kineto_error.text);
        cr_expect(strstr(kineto_error.text, "cut") != NULL ||
                      strstr(kineto_error.text, "expected") != NULL,
                  "%s", kineto_error.text);
        cr_expect_eq(scratch_count(), 1);
    }
    free(text);
}
