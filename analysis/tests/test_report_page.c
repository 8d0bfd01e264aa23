/*
 * test_report_page.c - pages of result files: what each schema shows, what is refused, what a page never holds
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/report_html.h"
#include "analysis/report_page.h"

#include <criterion/criterion.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NOTES                                                                                      \
    "\"settings\": [{\"name\": \"seed\", \"value\": 1, \"unit\": \"\", \"source\": \"own\"}], "    \
    "\"assumptions\": [{\"name\": \"nic.rate\", \"value\": 24.2e9, \"unit\": \"B/s\", "            \
    "\"source\": \"a datasheet\"}]"

static const char replay[] =
    "{\"schema\": {\"name\": \"zipccl.replay\", \"version\": 1}, \"kind\": \"simulated\", "
    "\"fidelity\": \"t0\", \"trace\": {\"name\": \"tiny\", \"model\": \"a model\", "
    "\"provenance\": \"made up\", \"nranks\": 8}, \"cluster\": {\"name\": \"two\", \"summary\": "
    "\"2 x 4\", \"codec\": \"encode 250\"}, " NOTES ", \"rows\": [{\"op\": \"alltoall\", "
    "\"group\": \"ep\", \"dtype\": \"bf16\", \"count\": 64, \"nranks\": 8, \"stream\": \"comm\", "
    "\"calls\": 3, \"raw_bytes\": 3e6, \"wire_bytes\": 2e6, \"ratio\": 1.5, \"ratio_source\": "
    "\"captured\", \"strategy_raw\": \"native\", \"strategy_compressed\": \"exact direct\", "
    "\"strategy\": \"exact direct\", \"time_raw_s\": 0.0613, \"time_compressed_s\": 0.0417, "
    "\"time_adaptive_s\": 0.0417, \"exposed_raw_s\": 0.06, \"exposed_compressed_s\": 0.04, "
    "\"exposed_adaptive_s\": 0.04}], \"totals\": {\"step_time_recorded_s\": null, "
    "\"step_time_raw_s\": 0.16, \"step_time_compressed_s\": 0.14, \"step_time_adaptive_s\": 0.14, "
    "\"comm_speedup\": 1.47, \"end_to_end_speedup\": 1.1429, \"exposed_comm_share\": 0.375, "
    "\"raw_bytes\": 3e6, \"wire_bytes\": 2e6}, \"steps\": {\"raw\": {\"step_s\": 0.16, "
    "\"compute_s\": 0.1, \"codec_slow_s\": 0, \"exposed_s\": 0.06, \"wait_s\": 0}, \"compressed\": "
    "null, \"adaptive\": {\"step_s\": 0.14, \"compute_s\": 0.1, \"codec_slow_s\": 0, "
    "\"exposed_s\": "
    "0.04, \"wait_s\": 0}}, \"sensitivities\": [{\"name\": \"nic.rate -10 %\", "
    "\"end_to_end_speedup\": 1.16}], \"break_even\": {\"raw_match_nic_Bps\": 3e10, "
    "\"raw_match_note\": \"\"}, \"why\": \"the all-to-all\", \"warnings\": [\"look out\"]}";

static const char perf[] =
    "{\"schema\": {\"name\": \"zipccl.perf\", \"version\": 1}, \"kind\": \"measured\", \"on\": "
    "\"threads\", \"cluster\": null, " NOTES ", \"rows\": ["
    "{\"op\": \"all_reduce\", \"dtype\": \"bf16\", \"count\": 1048576, \"size_bytes\": 2097152, "
    "\"nranks\": 4, \"nodes\": 1, \"mode\": \"raw\", \"strategy\": \"raw direct\", \"time_s\": "
    "0.002, \"raw_bytes\": 3145728, \"wire_bytes\": 3145728, \"ratio\": 1, \"wrong\": 0}, "
    "{\"op\": \"all_reduce\", \"dtype\": \"bf16\", \"count\": 1048576, \"size_bytes\": 2097152, "
    "\"nranks\": 4, \"nodes\": 1, \"mode\": \"compressed\", \"strategy\": \"exact direct\", "
    "\"time_s\": 0.001, \"raw_bytes\": 3145728, \"wire_bytes\": 2097152, \"ratio\": 1.5, "
    "\"wrong\": "
    "0}]}";

static const char compare[] =
    "{\"schema\": {\"name\": \"zipccl.compare\", \"version\": 1}, \"kind\": \"before-after\", "
    "\"first\": {\"path\": \"a.json\", \"kind\": \"measured\"}, \"second\": [{\"path\": "
    "\"b.json\", "
    "\"rows\": 1}], \"by_op\": {\"alltoall\": {\"rows\": 1, \"median_error\": 0.017}}, \"rows\": "
    "[{\"op\": \"alltoall\", \"dtype\": \"bf16\", \"bytes\": 4096, \"first_time_s\": 1e-4, "
    "\"second_time_s\": 1.017e-4, \"error\": -0.017}], \"unmatched\": []}";

static const char bench[] =
    "{\"schema\": \"zipccl.codec-bench\", \"version\": 1, \"date\": \"2026-11-30T10:00:00Z\", "
    "\"machine\": {\"cpu\": \"a processor\", \"cores\": 2}, \"rows\": [{\"codec\": \"zipccl\", "
    "\"dtype\": \"bf16\", \"raw_bytes\": 65536, \"ratio\": 1.5031, \"encode_GBps\": 17.59}]}";

static const char plan[] =
    "{\"schema\": {\"name\": \"zipccl.plan\", \"version\": 1}, \"op\": \"all_gather\", \"dtype\": "
    "\"bf16\", \"count\": 1024, \"candidates\": [{\"strategy\": \"native x8\", \"time_s\": "
    "4.25e-5, "
    "\"effort\": null}], \"chosen\": 0}";

static const char device[] =
    "{\"schema\": {\"name\": \"zipccl.device_check\", \"version\": 1}, \"kind\": \"emulated, not "
    "run "
    "on a GPU\", \"emulated\": true, \"good\": true, \"conformance\": {\"cases\": 77}, \"rows\": "
    "[{\"work\": \"encode\", \"median_s\": 3e-3}]}";

static const char sweep[] =
    "{\"schema\": {\"name\": \"zipccl.sweep\", \"version\": 1}, \"kind\": \"simulated\", "
    "\"fidelity\": \"t0\", \"run\": 2, \"not_run\": 1, \"axes\": [{\"name\": \"nic.rate\", "
    "\"unit\": \"Gb/s\", \"values\": [\"100Gbps\", \"400Gbps\"], \"numbers\": [100, 400]}, "
    "{\"name\": \"gpus\", \"values\": [\"64\", \"20\"], \"numbers\": [64, 20]}, {\"name\": "
    "\"tp\", \"values\": [\"1\", \"2\"], \"numbers\": [1, 2]}], \"clusters\": [{\"name\": "
    "\"two\", \"codec\": \"encode 250\", " NOTES "}], \"tensors\": [{\"origin\": \"small ones\"}], "
    "\"points\": [{\"axes\": {\"nic.rate\": \"100Gbps\", \"gpus\": \"64\", \"tp\": \"1\"}, "
    "\"nranks\": 64, \"memory_bytes\": 4.25e10, \"step_time_raw_s\": 0.15, "
    "\"step_time_adaptive_s\": 0.12, \"end_to_end_speedup\": 1.25, \"limit\": \"NIC\", "
    "\"most_exposed_op\": \"all_gather\", \"most_exposed_group\": \"dp\"}, {\"axes\": "
    "{\"nic.rate\": \"400Gbps\", \"gpus\": \"64\", \"tp\": \"1\"}, \"error\": \"no sample\"}], "
    "\"skipped\": [{\"axes\": {\"gpus\": \"20\"}, \"kind\": \"world\", \"reason\": \"not full\"}], "
    "\"summary\": {\"points_that_pay\": 1, \"along\": [{\"axis\": \"nic.rate\", \"unit\": "
    "\"Gb/s\", \"lines\": 1, \"break_even\": [{\"value\": 290}]}]}}";

static const char *const wholes[] = {replay, perf, compare, bench, plan, device, sweep};

enum { NUM_WHOLES = sizeof wholes / sizeof *wholes };

/* The page of 'n' texts, or NULL with the reason; the caller frees it. */
static char *page_of(const char *const *texts, size_t n, const char *title,
                     struct zipccl_error *error)
{
    struct zipccl_report_file *files[8] = {NULL};
    static const char *const paths[8] = {"d/a.json", "d/b.json", "d/c.json", "d/d.json",
                                         "d/e.json", "d/f.json", "x/a.json", "d/h.json"};
    zipccl_status status = ZIPCCL_OK;
    char *page = NULL;
    size_t length = 0;

    for (size_t i = 0; i < n && status == ZIPCCL_OK; i++)
        status = zipccl_report_parse(paths[i], texts[i], strlen(texts[i]), &files[i], error);
    if (status == ZIPCCL_OK) {
        FILE *out = open_memstream(&page, &length);

        cr_assert_not_null(out);
        cr_assert_eq(zipccl_report_page(files, n, title, out, error), ZIPCCL_OK, "%s", error->text);
        fclose(out);
    } else {
        cr_assert_eq(status, ZIPCCL_ERR_INPUT, "%s", error->text);
    }
    for (size_t i = 0; i < n; i++)
        zipccl_report_destroy(files[i]);
    return page;
}

/* 'text' with the first 'from' replaced by 'to'; the caller frees it. */
static char *replaced(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    size_t size = strlen(text) + strlen(to) + 1;
    char *out = malloc(size);

    cr_assert_not_null(at, "'%s' is not in the text", from);
    cr_assert_not_null(out);
    snprintf(out, size, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return out;
}

/* The reason why 'whole' with 'from' replaced is refused holds 'expected'. */
static void refuses(const char *whole, const char *from, const char *to, const char *expected)
{
    struct zipccl_error error = {""};
    char *text = replaced(whole, from, to);
    const char *const texts[] = {text};
    char *page = page_of(texts, 1, NULL, &error);

    cr_expect_null(page, "accepted with '%s'", to);
    cr_expect_not_null(strstr(error.text, expected), "no '%s' in: %s", expected, error.text);
    cr_expect_eq(strncmp(error.text, "d/a.json: ", 10), 0, "no path first in: %s", error.text);
    free(page);
    free(text);
}

Test(report_page, of_one_replay_is_that_of_the_live_result)
{
    struct zipccl_error error = {""};
    char *page = page_of(wholes, 1, NULL, &error), *live = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&live, &length);

    cr_assert_not_null(page, "%s", error.text);
    cr_assert_eq(zipccl_report_html(replay, strlen(replay), out, &error), ZIPCCL_OK);
    fclose(out);
    cr_assert_str_eq(page, live);
    cr_expect_not_null(strstr(page, "<title>tiny on two</title>"));
    cr_expect_not_null(strstr(page, "<td>61.3</td><td>41.7</td><td>41.7</td><td>1.47</td>"));
    free(page);
    free(live);
}

Test(report_page, shows_what_each_schema_holds)
{
    static const char *const texts[][4] = {
        {"<td>61.3</td>", "a datasheet", "look out", "<svg"},
        {"<polyline class=\"line m-raw\"", "<polyline class=\"line m-compressed\"",
         "<td>1000.0</td>", "<td>3.146</td><td>1.500</td><td>2.097</td>"},
        {"<td class=\"l\">alltoall</td><td>1</td><td>1.7</td>", "a.json", "<td>-1.7</td>",
         "<td>101.7</td>"},
        {"a processor", "<td>1.5031</td>", "<td>17.59</td>", "2026-11-30T10:00:00Z"},
        {"native x8", "<td>42.5</td>", "all_gather", "predicted"},
        {"<td>3000.0</td>", "Emulated, not run on a GPU", "<dd>77</dd>", "encode"},
        {"<td>150.0</td><td>120.0</td><td>1.250</td>", "failed: no sample", "limit NIC</title>",
         "<title>Where compression pays</title>"}};

    for (int i = 0; i < NUM_WHOLES; i++) {
        struct zipccl_error error = {""};
        char *page = page_of(&wholes[i], 1, NULL, &error);

        cr_assert_not_null(page, "%s", error.text);
        for (int k = 0; k < 4; k++)
            cr_expect_not_null(strstr(page, texts[i][k]), "no '%s' in the page of text %d",
                               texts[i][k], i);
        free(page);
    }
}

Test(report_page, puts_several_side_by_side)
{
    struct zipccl_error error = {""};
    const char *const texts[8] = {replay, perf, compare, bench, plan, device, replay, sweep};
    char *page = page_of(texts, 8, NULL, &error);

    cr_assert_not_null(page, "%s", error.text);
    const char *table = strstr(page, "<h2>Replayed steps</h2>"),
               *others = strstr(page, "<h2>Other");
    const char *part = strstr(page, "id=\"r1\"");
    cr_assert(table != NULL && others != NULL && part != NULL && table < others && others < part);
    cr_expect_not_null(strstr(page, "<td>160.0</td><td>140.0</td><td>140.0</td><td>37.5</td>"
                                    "<td>1.47</td><td>1.14</td><td>1.14</td>"));
    /* Two files of one name are told apart by their folders, the others need none. */
    cr_expect_not_null(strstr(page, "<a href=\"#r1\">d/a.json</a>"));
    cr_expect_not_null(strstr(page, "<a href=\"#r7\">x/a.json</a>"));
    cr_expect_not_null(strstr(page, "<a href=\"#r2\">b.json</a>"));
    cr_expect_not_null(strstr(page, "<h3>Collectives</h3>"));
    cr_expect_not_null(
        strstr(page, "<a href=\"#r8\">h.json</a></td><td class=\"l\">zipccl.sweep<"));
    cr_expect_not_null(strstr(page, "<h4>tp 1</h4>"), "maps have no heading");
    /* Other parts may have been measured. */
    cr_expect_null(strstr(page, "No number on this page"));
    cr_expect_not_null(strstr(page, "No number of this part was measured on a GPU"));
    free(page);
}

Test(report_page, refuses_what_is_not_of_its_form)
{
    refuses(replay, "\"version\": 1", "\"version\": 2", "has version 2, expected 1");
    refuses(replay, "\"version\": 1", "\"version\": \"1\"", "version: found a text");
    refuses(replay, "zipccl.replay", "zipccl.reply", "found schema \"zipccl.reply\", expected");
    refuses(replay, "\"schema\"", "\"scheme\"", "JSON without a schema");
    refuses(replay, "\"steps\"", "\"stops\"", "steps: found nothing, expected an object");
    refuses(replay, "\"calls\": 3", "\"calls\": \"3\"",
            "rows[0].calls: found a text, expected a number");
    refuses(replay, "0.0613", "1e999", "rows[0].time_raw_s: found 1e999");
    refuses(replay, "0.0613", "-1", "rows[0].time_raw_s: found -1, expected a number from 0 up");
    refuses(replay, "0.0613", "NaN", "not JSON");
    refuses(replay, "\"alltoall\"", "\"alltonone\"", "rows[0].op: there is no such collective");
    refuses(replay, "\"bf16\"", "\"bf17\"", "rows[0].dtype");
    refuses(replay, "\"simulated\"", "\"guessed\"", "expected simulated or measured");
    refuses(replay, "[\"look out\"]", "[1]", "warnings[0]: found a number, expected a text");
    refuses(replay, "\"exposed_s\": 0.06", "\"exposed_s\": 0.6", "steps.raw: found parts of");
    refuses(replay, "\"value\": 24.2e9", "\"value\": {}", "assumptions[0].value: found an object");
    refuses(perf, "0.002", "0", "row 1: key \"time_s\": found 0");
    refuses(perf, "\"value\": 1", "\"value\": []", "settings[0].value: found a list");
    refuses(compare, "\"rows\": 1, \"median", "\"rows\": {}, \"median",
            "by_op.alltoall.rows: found an object, expected a number");
    refuses(compare, "\"alltoall\": {", "\"al\\u001bl\": [], \"x\": {",
            "by_op.al?l: found a list, expected an object");
    refuses(bench, "\"cores\": 2", "\"cores\": true", "machine.cores: found true or false");
    refuses(bench, "\"version\": 1", "\"version\": 3", "has version 3");
    refuses(plan, "\"candidates\"", "\"candidate\"", "candidates: found nothing, expected a list");
    refuses(device, "\"good\": true", "\"good\": 1",
            "good: found a number, expected true or false");
    refuses(replay, "\"t0\"", "\"t7\"", "fidelity: found another word, expected t0, t1 or t2");
    refuses(sweep, "\"version\": 1", "\"version\": 2", "has version 2, expected 1");
    refuses(sweep, "\"simulated\"", "\"measured\"", "expected simulated");
    refuses(sweep, "\"t0\"", "\"t2\"", "expected t0 or t1");
    refuses(sweep, "1.25", "\"1.25\"", "points[0].end_to_end_speedup: found a text");
    refuses(sweep, "\"100Gbps\", \"400Gbps\"]", "100]", "axes[0].values[0]: found a number");
    refuses(device, "{\"cases\": 77}", "77", "conformance: found a number, expected an object");
}

Test(report_page, refuses_nests_comments_and_zero_bytes)
{
    enum { DEEP = 300000 };
    static char deep[DEEP + 1];
    static const char zero[] = "{}\0{}", comment[] = "{/* \" */}";
    struct zipccl_report_file *file;
    struct zipccl_error error = {""};

    memset(deep, '[', DEEP);
    deep[0] = '{';
    cr_assert_eq(zipccl_report_parse("deep", deep, DEEP, &file, &error), ZIPCCL_ERR_INPUT);
    cr_expect_not_null(strstr(error.text, "deep: not JSON at byte 64: nested"), "%s", error.text);
    cr_assert_eq(zipccl_report_parse("zero", zero, sizeof zero - 1, &file, &error),
                 ZIPCCL_ERR_INPUT);
    cr_expect_not_null(strstr(error.text, "zero byte"), "%s", error.text);
    cr_assert_eq(zipccl_report_parse("c", comment, sizeof comment - 1, &file, &error),
                 ZIPCCL_ERR_INPUT);
    cr_expect_not_null(strstr(error.text, "comment"), "%s", error.text);
}

/* 'n' times 'what' in the place of 'from', read as a file. */
static void refuses_many(const char *whole, const char *from, const char *what, size_t n,
                         const char *expected)
{
    size_t length = 0;
    char *many = NULL;
    FILE *out = open_memstream(&many, &length);

    cr_assert_not_null(out);
    for (size_t i = 0; i < n; i++)
        fprintf(out, what, i);
    fputs(from, out);
    fclose(out);
    refuses(whole, from, many, expected);
    free(many);
}

Test(report_page, refuses_more_than_any_result_has)
{
    static const char nccl[] = "{\"nccl_version\": \"2.28\", \"args\": [\"all_gather_perf\"], "
                               "\"config\": {\"devices\": [{}]}, \"results\": []}";

    refuses_many(replay, "\"kind\"", "\"key%zu\": 0, ", 2000, "more keys than any result has");
    refuses_many(nccl, "{}", "{\"hostname\": \"%zu\"}, ", 1025, "more than 1024 hosts");
    refuses_many(sweep, "\"100Gbps\", ", "\"%zuGbps\", ", 1000, "values of an axis: found 1002");
    refuses_many(sweep, "{\"name\": \"gpus\"", "{\"name\": \"a%zu\", \"values\": [\"1\", \"2\"]}, ",
                 14, "combinations: found 32768, expected at most 20000");
}

Test(report_page, escapes_all_text_of_files)
{
    /* Every text of the result becomes a tag. */
    static const char evil[] = "<script>alert('x')</script>";

    for (int i = 0; i < NUM_WHOLES; i++)
        for (const char *p = strchr(wholes[i], '"'); p != NULL; p = strchr(p + 1, '"')) {
            size_t at = (size_t)(p - wholes[i]) + 1, size = strlen(wholes[i]) + sizeof evil;
            char *text = malloc(size);
            const char *texts[] = {text, replay};
            struct zipccl_error error = {""};

            cr_assert_not_null(text);
            snprintf(text, size, "%.*s%s%s", (int)at, wholes[i], evil, wholes[i] + at);
            for (size_t n = 1; n <= 2; n++) {
                char *page = page_of(texts, n, n == 1 ? NULL : evil, &error);

                cr_assert(page == NULL || strstr(page, "<script") == NULL,
                          "a tag of text %d, byte %zu, is in the page", i, at);
                free(page);
            }
            free(text);
        }
}

/* What every page must be, whatever the file. */
static void look_at(const char *page, int text, size_t at)
{
    size_t length = strlen(page);

    cr_assert(length > 8 && strcmp(page + length - 8, "</html>\n") == 0, "text %d, byte %zu", text,
              at);
    cr_assert_null(strstr(page, "nan"), "text %d, byte %zu: nan", text, at);
    cr_assert_null(strstr(page, "inf\""), "text %d, byte %zu: inf", text, at);
}

Test(report_page, refuses_every_cut)
{
    for (int i = 0; i < NUM_WHOLES; i++) {
        size_t length = strlen(wholes[i]);

        for (size_t n = 0; n < length; n += 1 + n % 3) {
            struct zipccl_report_file *file;
            struct zipccl_error error = {""};

            cr_assert_eq(zipccl_report_parse("cut", wholes[i], n, &file, &error), ZIPCCL_ERR_INPUT,
                         "text %d is accepted with %zu bytes", i, n);
        }
    }
}

Test(report_page, is_whole_or_none_of_changed_files)
{
    static const char bytes[] = "\"0-9}],xe";
    uint32_t random = 1;

    for (int i = 0; i < NUM_WHOLES; i++) {
        char *text = strdup(wholes[i]);
        const char *texts[] = {text};

        cr_assert_not_null(text);
        for (size_t at = 0; text[at] != '\0'; at++) {
            struct zipccl_error error = {""};
            char *page;

            random = random * 1664525u + 1013904223u;
            text[at] = bytes[(random >> 16) % (sizeof bytes - 1)];
            page = page_of(texts, 1, NULL, &error);
            if (page != NULL)
                look_at(page, i, at);
            free(page);
            text[at] = wholes[i][at];
        }
        free(text);
    }
}

Test(report_page, survives_any_value_in_place_of_a_number)
{
    static const char *const values[] = {"0",    "1e-320", "9e17", "-9e17", "1e999",
                                         "null", "\"x\"",  "[]",   "{}",    "true"};

    for (int i = 0; i < NUM_WHOLES; i++)
        for (const char *p = strstr(wholes[i], "\": "); p != NULL; p = strstr(p + 1, "\": ")) {
            size_t at = (size_t)(p - wholes[i]) + 3,
                   digits = strspn(wholes[i] + at, "0123456789.e-");

            if (digits == 0)
                continue;
            for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
                size_t size = strlen(wholes[i]) + 16;
                char *text = malloc(size), *page;
                const char *texts[] = {text};
                struct zipccl_error error = {""};

                cr_assert_not_null(text);
                snprintf(text, size, "%.*s%s%s", (int)at, wholes[i], values[v],
                         wholes[i] + at + digits);
                page = page_of(texts, 1, NULL, &error);
                if (page != NULL)
                    look_at(page, i, at);
                free(page);
                free(text);
            }
        }
}
