/*
 * test_import_errors.c - what cannot be imported is refused by file and line, and leaves nothing
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import.h"
#include "traces/tests/scratch.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(import_errors, .fini = scratch_remove);

#define H    "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 1 all_gpus: 8"
#define ROW  "a -1 1 ALLREDUCE 64 1 NONE 0 1 NONE 0 100\n"
#define ROW2 "a -1 1 ALLREDUCE 64 1 NONE 0 1 NONE 0"

static const struct {
    const char *text, *place, *found, *expected;
} broken[] = {
    {"", ":1: ", "an empty file", "expected a mode"},
    {"\n", ":1: ", "an empty line", "expected a mode"},
    {"TRANSFORMER\n1\n" ROW, ":1: ", "\"TRANSFORMER\"", "expected a mode"},
    {H "\n", ":2: ", "the end of the file", "the number of layers"},
    {H "\nmany\n" ROW, ":2: ", "\"many\"", "expected a number"},
    {H "\n0\n", ":2: ", "\"0\"", "from 1 up"},
    {H "\n1 2\n" ROW, ":2: ", "\"1\"", "alone"},
    {H "\n-1\n" ROW, ":2: ", "\"-1\"", "expected a number"},
    {H "\n3\n" ROW ROW, ":5: ", "after 2 layers", "expected 3"},
    {H "\n2\n" ROW "a -1 1 ALLRED", ":4: ", "4 columns", "expected 12"},
    {H "\n2\n" ROW ROW2 "\n", ":4: ", "11 columns", "expected 12"},
    {H "\n1\na -1 x ALLREDUCE 64 1 NONE 0 1 NONE 0 1\n", ":3: ", "forward compute time is \"x\"",
     "expected a number"},
    {H "\n1\na -1 1 ALLREDUCE 0x40 1 NONE 0 1 NONE 0 1\n", ":3: ", "forward size is \"0x40\"",
     "expected a number"},
    {H "\n1\na -1 1 ALLREDUCE 64 1 NONE 0 nan NONE 0 1\n", ":3: ", "\"nan\"", "expected a number"},
    {H "\n1\na -1 1 ALLREDUCE -64 1 NONE 0 1 NONE 0 1\n", ":3: ", "\"-64\"", "expected a number"},
    {H "\n1\na -1 1 ALLREDUCE 1e300 1 NONE 0 1 NONE 0 1\n", ":3: ", "\"1e300\"", "to 2^53"},
    {H "\n1\na -1 1 ALLREDUCE 64 2e15 NONE 0 1 NONE 0 1\n",
     ":3: ", "input gradient compute time is 2e+15 ns", "at most 1000000 s"},
    {H "\n1\na b 1 ALLREDUCE 64 1 NONE 0 1 NONE 0 1\n", ":3: ", "the dependency is \"b\"",
     "expected a number"},
    {H "\n1\na -1 1 GATHER 64 1 NONE 0 1 NONE 0 1\n", ":3: ", "forward call \"GATHER\"",
     "expected NONE, ALLREDUCE"},
    {H "\n1\na -1 1 NONE 0 1 ALLREDUCE_TP 64 1 NONE 0 1\n",
     ":3: ", "input gradient call \"ALLREDUCE_TP\"", "_DP_EP"},
    {H "\n1\na -1 1 NONE 0 1 NONE 0 1 NONE_EP 0 1\n", ":3: ", "weight gradient call", "NONE"},
    {H "\n1\n\x01 -1 1 ALLREDUCE 64 1 NONE 0 1 NONE 0 1\n", ":3: ", "layer name", "UTF-8"},
    {H "\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 100\n", ": ", "no layer calls", "one or more"},
    {H " ga:\n1\n" ROW, ":1: ", "ends after ga", "expected a number"},
    {H " ga: 0\n1\n" ROW, ":1: ", "ga is no whole number", "from 1 up"},
    {H " ga: x\n1\n" ROW, ":1: ", "ga is \"x\"", "expected a number"},
    {H " pp: 1\n1\n" ROW, ":1: ", "pp twice", "once"},
    {H " checkpoints: 9 1\n1\n" ROW, ":1: ", "checkpoints says 9", "as many"},
    {H " checkpoint_initiates: 1 5\n1\n" ROW, ":1: ", "layer 5", "0 to 0"},
    {H " checkpoint_initiates: 1 0\n1\n" ROW, ":1: ", "no checkpoint at or before layer 0", "one"},
    {H " checkpoints: 1 0 checkpoint_initiates: 2 3 2\n4\n" ROW ROW ROW ROW,
     ":1: ", "repeat 5 layers of 4", "at most once"},
    {"HYBRID_TRANSFORMER tp: 1 pp: 2048 all_gpus: 2048\n1\n" ROW, ":1: ", "2048 stages",
     "at most 1024"},
    {"HYBRID_TRANSFORMER tp: 3 all_gpus: 8\n1\n" ROW, ":1: ", "8 ranks", "multiple of TP 3"},
    {"HYBRID_TRANSFORMER tp: 2 ep: 3 all_gpus: 8\n1\n"
     "a -1 1 ALLREDUCE_EP 64 1 NONE 0 1 NONE 0 100\n",
     ":1: ", "EP 3", "divisor of the 4"},
    {"HYBRID_TRANSFORMER tp: 4294967296 pp: 4294967296\n1\n" ROW, ":1: ", "TP 4294967296",
     "at most 1048576"},
    {"HYBRID_TRANSFORMER tp: 2 all_gpus: 2097152\n1\n" ROW, ":1: ", "2097152 ranks", "at most"},
    {"HYBRID_DLRM DLRM_LAST_BOTTOM_LAYER: 3\n1\n" ROW, ":1: ", "mode HYBRID_DLRM", "expected"},
};

Test(import_errors, name_the_line_and_leave_nothing_behind)
{
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        char path[SCRATCH_PATH], out[SCRATCH_PATH];
        const char *paths[] = {
            scratch_write(path, "w.txt", broken[i].text, strlen(broken[i].text))};
        struct zipccl_import_report report;
        struct zipccl_error error = {""};
        zipccl_status status =
            zipccl_import("simai", paths, 1, scratch_path(out, "o.jsonl"), NULL, &report, &error);

        cr_expect(status == ZIPCCL_ERR_INPUT || status == ZIPCCL_ERR_UNSUPPORTED, "%zu: %s", i,
                  zipccl_status_string(status));
        cr_expect_not_null(strstr(error.text, "w.txt"), "%zu: %s", i, error.text);
        cr_expect_not_null(strstr(error.text, broken[i].place), "%zu: %s", i, error.text);
        cr_expect_not_null(strstr(error.text, broken[i].found), "%zu: %s", i, error.text);
        cr_expect_not_null(strstr(error.text, broken[i].expected), "%zu: %s", i, error.text);
        cr_expect_eq(scratch_count(), 1, "%zu: only the input", i);
        zipccl_import_report_free(&report);
    }
}

Test(import_errors, every_cut_of_a_file_is_refused)
{
    const char *text = H "\n2\n" ROW ROW2 " 7";
    char path[SCRATCH_PATH], out[SCRATCH_PATH];

    for (size_t n = 0; n + 1 < strlen(text); n++) {
        const char *paths[] = {scratch_write(path, "w.txt", text, n)};
        struct zipccl_error error = {""};

        cr_expect_eq(
            zipccl_import("simai", paths, 1, scratch_path(out, "o.jsonl"), NULL, NULL, &error),
            ZIPCCL_ERR_INPUT, "%zu bytes: %s", n, error.text);
        cr_expect_eq(scratch_count(), 1);
    }
}

Test(import_errors, unknown_formats_name_those_that_are_known)
{
    static const char *const texts[] = {"", "{\"nodes\":[]}", "\x1f\x8b\x08garbage"};
    char path[SCRATCH_PATH], format[ZIPCCL_IMPORT_NAME_SIZE] = "-", out[SCRATCH_PATH];
    const char *paths[] = {path};
    struct zipccl_error error = {""};

    for (size_t i = 0; i < 3; i++) {
        scratch_write(path, "w.txt", texts[i], strlen(texts[i]));
        cr_expect_eq(zipccl_import_detect(path, format, sizeof format, &error), ZIPCCL_ERR_INPUT);
        cr_expect_not_null(strstr(error.text, "simai"), "%s", error.text);
        cr_expect_str_eq(format, "-");
    }
    cr_expect_eq(zipccl_import_detect(scratch_path(out, "none"), format, sizeof format, &error),
                 ZIPCCL_ERR_IO);
    cr_expect_eq(zipccl_import("kineto2", paths, 1, out, NULL, NULL, &error), ZIPCCL_ERR_INPUT);
    cr_expect_not_null(strstr(error.text, "\"kineto2\""), "%s", error.text);
}

Test(import_errors, json_of_another_kind_is_of_no_known_format)
{
    static const char *const texts[] = {"{\n    \"a\": 1,\n    \"b\": [2, 3]\n}\n",
                                        "[\n  {\"a long enough text to be one of protobuf\": 1}]",
                                        "{\"a\": 1}", "[]"};
    char path[SCRATCH_PATH], out[SCRATCH_PATH];
    const char *paths[] = {path};
    struct zipccl_error error = {""};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        scratch_write(path, "x.json", texts[i], strlen(texts[i]));
        cr_expect_eq(
            zipccl_import(NULL, paths, 1, scratch_path(out, "o.jsonl"), NULL, NULL, &error),
            ZIPCCL_ERR_INPUT);
        cr_expect_not_null(strstr(error.text, "no known format, expected one of"), "%zu: %s", i,
                           error.text);
        cr_expect_not_null(strstr(error.text, "chakra"), "%s", error.text);
    }
}

Test(import_errors, a_folder_that_is_not_there_is_an_io_error)
{
    char path[SCRATCH_PATH], out[SCRATCH_PATH];
    const char *paths[] = {scratch_write(path, "w.txt", H "\n1\n" ROW, strlen(H "\n1\n" ROW)),
                           path};
    struct zipccl_error error = {""};

    cr_expect_eq(zipccl_import(NULL, paths, 1, scratch_path(out, "no/o.jsonl"), NULL, NULL, &error),
                 ZIPCCL_ERR_IO);
    cr_expect_eq(zipccl_import(NULL, paths, 2, scratch_path(out, "o.jsonl"), NULL, NULL, &error),
                 ZIPCCL_ERR_INPUT);
    cr_expect_not_null(strstr(error.text, "2 files"), "%s", error.text);
    cr_expect_eq(scratch_count(), 1);
}
