/*
 * test_report.c - the table, JSON, CSV and page of a result made by hand
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/report_html.h"
#include "experiments/report/report.h"
#include "experiments/tests/example_result.h"

#include <criterion/criterion.h>
#include <yajl/yajl_tree.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum format { TABLE, SUMMARY, JSON, CSV };

/* Put lines that were folded, and go on two columns to the right, together again. */
static void unfold(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; from++) {
        if (strncmp(from, "\n  ", 3) == 0 && from[3] != ' ')
            from += 2;
        *to++ = *from;
    }
    *to = '\0';
}

/* The result in one of its forms, the table with long lines; the caller frees it. */
static char *render(const struct zipccl_replay_result *result, enum format format)
{
    struct zipccl_error error = {""};
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);

    cr_assert_not_null(out);
    if (format == JSON)
        cr_assert_eq(zipccl_report_json(result, out, &error), ZIPCCL_OK, "%s", error.text);
    else if (format == CSV)
        cr_assert_eq(zipccl_report_csv(result, out, &error), ZIPCCL_OK, "%s", error.text);
    else
        zipccl_report_table(result, format == SUMMARY, out);
    fclose(out);
    if (format == TABLE || format == SUMMARY)
        unfold(text);
    return text;
}

static void expect(const char *text, const char *part)
{
    cr_assert_not_null(strstr(text, part), "'%s' is not in:\n%s", part, text);
}

static void expect_not(const char *text, const char *part)
{
    cr_assert_null(strstr(text, part), "'%s' is in:\n%s", part, text);
}

/* Every line from the column names to the total has its bars in the same places. */
static void check_bars(const char *table)
{
    const char *line = strstr(table, " op ");
    size_t bars[2] = {0};
    int nlines = 0;

    cr_assert_not_null(line);
    while (strncmp(line, " step", 5) != 0 && line[0] != '\n') {
        const char *first = strchr(line, '|'), *end = strchr(line, '\n');
        const char *second = strchr(first + 1, '|');

        cr_assert(first != NULL && second != NULL && second < end);
        if (nlines++ == 0) {
            bars[0] = (size_t)(first - line);
            bars[1] = (size_t)(second - line);
        }
        cr_assert_eq((size_t)(first - line), bars[0], "bars move in:\n%s", table);
        cr_assert_eq((size_t)(second - line), bars[1], "bars move in:\n%s", table);
        line = end + 1;
    }
    cr_assert_eq(nlines, ZIPCCL_EXAMPLE_ROWS + 2);
}

Test(report_table, says_that_it_is_simulated_and_how)
{
    struct zipccl_replay_result result;

    zipccl_example_result(&result);
    char *text = render(&result, TABLE);
    expect(text, "SIMULATED: tier T1 (flows), SimGrid 3.32.0 ptask_L07, seed 1. "
                 "No number below was measured on a GPU.\n");
    free(text);
}

Test(report_table, holds_rows_step_and_reasons)
{
    struct zipccl_replay_result result;

    zipccl_example_result(&result);
    char *text = render(&result, TABLE);
    check_bars(text);
    expect(text, " 8590.0  5844.0  1.47 | 2487.0 1741.0   1741.0    1.43 | 2487.0   1741.0\n");
    expect(text, "=> 1.19x end to end, 1.42x communication");
    expect(text, "54.6 % of the raw step");
    expect(text, "Why: 98 % of the gain is the all-to-all; exposed communication is limited by "
                 "the NIC.");
    expect(text, "How sure: nic.rate +-10 %: 1.18-1.20x | ratio -0.05: 1.17x |");
    expect(text, "largest effect: ratio -0.05");
    expect(text, "gain < 2 % above about 1800 Gb/s per NIC. Raw would need about 280 Gb/s per NIC "
                 "to match.");
    expect(text, "plan (native: alltoall, all_reduce; two_level: reduce_scatter, all_gather).");
    expect(text, "MB = 1e6 bytes. Lossless: every sample round-tripped bit for bit.");
    expect(text, "Sent raw: 1.6e-05 MB (0.0 %) of types without a codec: int32; 2950.0 MB (20.4 %) "
                 "of ops without a compressed plan: reduce_scatter.");
    expect(text, "Fixed messages, by class (raw / capacity): settled (1.50): alltoall; "
                 "wide (1.25): all_gather; wider than settled where samples overflow it.");
    free(text);
}

Test(report_table, keeps_its_columns_with_long_names_and_large_numbers)
{
    struct zipccl_replay_result result;
    struct zipccl_result_row rows[ZIPCCL_EXAMPLE_ROWS];

    zipccl_example_result(&result);
    memcpy(rows, result.rows, sizeof rows);
    result.rows = rows;
    memset(rows[0].group, 'a', sizeof rows[0].group - 1);
    strcpy(rows[1].group, "tensor_parallel_group_3");
    rows[0].raw_bytes = 1e19;
    rows[1].time_raw_s = 123456789;
    rows[2].raw_bytes = 1e300;
    rows[3].calls = UINT64_MAX;
    char *text = render(&result, TABLE);
    check_bars(text);
    expect(text, "tensor~group_3");
    free(text);
}

Test(report_table, leaves_out_what_was_not_run)
{
    struct zipccl_replay_result result;

    zipccl_example_result(&result);
    result.steps[ZIPCCL_STEP_COMPRESSED].present = false;
    result.steps[ZIPCCL_STEP_ADAPTIVE].present = false;
    result.comm_speedup = result.end_to_end_speedup = 0;
    result.nsensitivities = 0;
    result.break_even_nic_Bps = result.raw_match_nic_Bps = 0;
    char *text = render(&result, TABLE);
    check_bars(text);
    expect(text, "2487.0      -        -       - |");
    expect_not(text, "Why");
    expect_not(text, "How sure");
    expect_not(text, "Break-even");
    expect_not(text, "nan");
    free(text);
}

Test(report_table, compares_with_a_recorded_step)
{
    struct zipccl_replay_result result;

    zipccl_example_result(&result);
    result.step_time_recorded_s = 4.5;
    char *text = render(&result, TABLE);
    expect(text, "Recorded step 4500.0 ms, simulated raw 4635.0 ms (+3.0 %).");
    free(text);
}

Test(report_table, says_what_a_search_did_not_find)
{
    struct zipccl_replay_result result;

    zipccl_example_result(&result);
    result.break_even_nic_Bps = 0;
    strcpy(result.break_even_note, "the gain stays above 2 % with any NIC up to 800 GB/s");
    strcpy(result.raw_match_note, "raw is as fast already");
    char *text = render(&result, TABLE);
    expect(text, "Break-even: The gain stays above 2 % with any NIC up to 800 GB/s. Raw is as fast "
                 "already.\n");
    free(text);
}

Test(report_table, measured_differences_within_the_spread_are_no_gain)
{
    struct zipccl_replay_result result;
    struct zipccl_result_step *raw = &result.steps[ZIPCCL_STEP_RAW];
    struct zipccl_result_step *adaptive = &result.steps[ZIPCCL_STEP_ADAPTIVE];

    zipccl_example_result(&result);
    result.measured = true;
    raw->nmeasured = adaptive->nmeasured = 1;
    char *text = render(&result, TABLE);
    expect(text, "Spread of steps: not known from one step of each mode");
    expect(text, "Why: not told by one step");
    expect_not(text, "of the gain");
    free(text);
    raw->nmeasured = adaptive->nmeasured = 5;
    raw->low_s = 0.010, raw->high_s = 0.012;
    adaptive->low_s = 0.008, adaptive->high_s = 0.011;
    text = render(&result, TABLE);
    expect(text, "Spread of steps (quartiles, ms): raw 10-12, adaptive 8-11.");
    expect(text, "Why: raw and adaptive differ by less than");
    free(text);
    adaptive->high_s = 0.009;
    text = render(&result, TABLE);
    expect(text, "of the gain is the");
    free(text);
}

Test(report_table, a_gain_that_no_collective_explains_is_not_called_little)
{
    struct zipccl_replay_result result;
    struct zipccl_result_row rows[ZIPCCL_EXAMPLE_ROWS];

    zipccl_example_result(&result);
    memcpy(rows, result.rows, sizeof rows);
    result.rows = rows;
    for (size_t i = 0; i < result.nrows; i++)
        rows[i].exposed_raw_s = rows[i].exposed_adaptive_s;
    result.steps[ZIPCCL_STEP_ADAPTIVE].step_s = 0.75 * result.steps[ZIPCCL_STEP_RAW].step_s;
    result.end_to_end_speedup = 1 / 0.75;
    char *text = render(&result, TABLE);
    expect(text, "Why: the step is 25 % shorter, but no collective's exposed time tells where");
    expect_not(text, "little to gain");
    free(text);
}

Test(report_table, tells_when_there_is_no_gain)
{
    struct zipccl_replay_result result;

    zipccl_example_result(&result);
    result.end_to_end_speedup = 1.001;
    strcpy(result.adaptive_note, "pinned to raw");
    char *text = render(&result, TABLE);
    expect(text, "Why: there is little to gain");
    expect(text, "Adaptive: pinned to raw.");
    free(text);
}

/* The table of a result whose sensitivities are the tester's to change. */
static char *render_changed(struct zipccl_replay_result *result,
                            struct zipccl_result_sensitivity *sensitivities)
{
    result->sensitivities = sensitivities;
    return render(result, SUMMARY);
}

Test(report_reasons, says_where_there_is_no_compute)
{
    struct zipccl_replay_result result;
    char *text;

    zipccl_example_result(&result);
    text = render(&result, TABLE);
    expect_not(text, "No compute");
    free(text);
    result.steps[ZIPCCL_STEP_RAW].compute_s = 0;
    text = render(&result, TABLE);
    expect(text, "No compute: the trace is communication alone");
    free(text);
}

Test(report_reasons, are_in_lines_of_a_hundred_columns)
{
    struct zipccl_replay_result result;
    size_t n = 0, longest = 0;
    char *text = NULL;
    FILE *out = open_memstream(&text, &n);

    cr_assert_not_null(out);
    zipccl_example_result(&result);
    zipccl_report_reasons(&result, out);
    fclose(out);
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1)
        longest = strcspn(line, "\n") > longest ? strcspn(line, "\n") : longest;
    cr_assert(longest > 80 && longest <= 100, "%zu columns in:\n%s", longest, text);
    cr_assert_not_null(strstr(text, "\n  "), "nothing goes on in:\n%s", text);
    free(text);
}

Test(report_reasons, how_sure_follows_the_sensitivities)
{
    struct zipccl_replay_result result;
    struct zipccl_result_sensitivity s[4];

    zipccl_example_result(&result);
    cr_assert_eq(result.nsensitivities, 4);
    memcpy(s, result.sensitivities, sizeof s);
    s[0].end_to_end_speedup = 1.3145;
    s[1].end_to_end_speedup = 1.1111;
    s[2].end_to_end_speedup = 1.1655;
    s[3].end_to_end_speedup = 1.1922;
    char *text = render_changed(&result, s);
    expect(text, " How sure: nic.rate +-10 %: 1.11-1.31x | ratio -0.05: 1.17x | codec rate x "
                 "0.5: 1.19x | largest effect: nic.rate -10 %\n");
    free(text);
    s[3].end_to_end_speedup = 0.9;
    text = render_changed(&result, s);
    expect(text, "| codec rate x 0.5: 0.90x | largest effect: codec rate x 0.5\n");
    free(text);
    for (int i = 0; i < 4; i++)
        s[i].end_to_end_speedup = result.end_to_end_speedup + 0.004;
    text = render_changed(&result, s);
    expect_not(text, "largest effect");
    free(text);
    result.nsensitivities = 0;
    text = render_changed(&result, s);
    expect_not(text, "How sure");
    free(text);
}

Test(report_reasons, break_even_follows_the_rates_found)
{
    static const struct {
        double gain_Bps, match_Bps;
        const char *text;
    } cases[] = {
        {2.73e11, 3.4125e10, "above about 2200 Gb/s per NIC. Raw would need about 270 Gb/s per"},
        {1.75e8, 1.5e6, "above about 1.4 Gb/s per NIC. Raw would need about 0.012 Gb/s per NIC to"},
        {0, 1.245e10, "Break-even: Raw would need about 100 Gb/s per NIC to match.\n"},
        {1e10, 0, "Break-even: gain < 2 % above about 80 Gb/s per NIC.\n"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct zipccl_replay_result result;

        zipccl_example_result(&result);
        result.break_even_nic_Bps = cases[i].gain_Bps;
        result.raw_match_nic_Bps = cases[i].match_Bps;
        char *text = render(&result, SUMMARY);
        expect(text, cases[i].text);
        free(text);
    }
}

Test(report_reasons, calls_raw_faster_only_where_it_is)
{
    struct zipccl_replay_result result;
    struct zipccl_result_row rows[ZIPCCL_EXAMPLE_ROWS];
    struct zipccl_result_step *adaptive = &result.steps[ZIPCCL_STEP_ADAPTIVE];

    zipccl_example_result(&result);
    memcpy(rows, result.rows, sizeof rows);
    result.rows = rows;
    strcpy(rows[0].strategy, rows[0].strategy_raw);
    result.end_to_end_speedup = 1;
    adaptive->step_s = result.steps[ZIPCCL_STEP_RAW].step_s;
    result.steps[ZIPCCL_STEP_COMPRESSED].step_s = 2 * adaptive->step_s;
    char *text = render(&result, SUMMARY);
    expect(text, "little to gain: raw is the faster choice here (always compressing: 0.50x)");
    free(text);
    adaptive->step_s *= 1 - 3e-6;
    text = render(&result, SUMMARY);
    expect(text, "little to gain: compressing where it pays saves 0.0003 % of the raw step");
    expect_not(text, "faster choice");
    free(text);
    result.exposed_comm_share = 0.0004;
    text = render(&result, SUMMARY);
    expect(text, "only 0.04 % of the raw step is exposed communication");
    free(text);
}

Test(report_reasons, name_the_op_and_its_share_of_the_gain)
{
    struct zipccl_replay_result result;
    struct zipccl_result_row rows[ZIPCCL_EXAMPLE_ROWS];

    zipccl_example_result(&result);
    memcpy(rows, result.rows, sizeof rows);
    result.rows = rows;
    for (size_t i = 0; i < ZIPCCL_EXAMPLE_ROWS; i++)
        rows[i].exposed_raw_s = rows[i].exposed_adaptive_s = 0;
    rows[0].exposed_raw_s = 0.25;
    rows[2].exposed_raw_s = 0.75;
    char *text = render(&result, SUMMARY);
    expect(text, " Why: 75 % of the gain is the all-gather;");
    free(text);
}

Test(report_table, tells_what_the_tensors_are)
{
    struct zipccl_replay_result result;
    struct zipccl_result_note note = {ZIPCCL_NOTE_SAMPLES, "a small model, 300 steps", "", "x"};

    zipccl_example_result(&result);
    result.assumptions = &note;
    result.nassumptions = 1;
    char *text = render(&result, TABLE);
    expect(text, "\n         tensors of a small model, 300 steps\n");
    free(text);
}

Test(report_table, has_a_short_form)
{
    struct zipccl_replay_result result;

    zipccl_example_result(&result);
    char *text = render(&result, SUMMARY);
    expect(text, "SIMULATED");
    expect(text, "step (simulated) raw 4635.0 ms, always compressed 3883.0 ms, adaptive 3883.0 ms "
                 "=> 1.19x end to end");
    expect(text, "Break-even");
    expect_not(text, "per rank and step");
    free(text);
}

static yajl_val parse(const char *text)
{
    char reason[256];
    yajl_val root = yajl_tree_parse(text, reason, sizeof reason);

    cr_assert_not_null(root, "%s", reason);
    return root;
}

static yajl_val member(yajl_val root, const char *object, const char *key)
{
    const char *path[] = {object, key, NULL};

    return yajl_tree_get(root, path, yajl_t_any);
}

Test(report_json, keeps_numbers_exactly_and_writes_missing_ones_as_null)
{
    struct zipccl_replay_result result;

    zipccl_example_result(&result);
    result.steps[ZIPCCL_STEP_COMPRESSED].present = false;
    result.steps[ZIPCCL_STEP_ADAPTIVE].step_s = 0.1 + 0.2;
    result.comm_speedup = NAN;
    result.steps[ZIPCCL_STEP_ADAPTIVE].wait_s = INFINITY;
    char *text = render(&result, JSON);
    yajl_val root = parse(text);
    cr_assert(YAJL_GET_DOUBLE(member(root, "totals", "step_time_adaptive_s")) == 0.1 + 0.2);
    cr_assert(YAJL_IS_NULL(member(root, "totals", "step_time_recorded_s")));
    expect(text, "\"why\": \"98 % of the gain is the all-to-all;");
    cr_assert(YAJL_IS_NULL(member(root, "totals", "step_time_compressed_s")));
    cr_assert(YAJL_IS_NULL(member(root, "totals", "comm_speedup")));
    cr_assert(YAJL_IS_NULL(member(root, "totals", "wait_s")));
    cr_assert(YAJL_IS_NULL(member(root, "steps", "compressed")));
    yajl_tree_free(root);
    free(text);
}

Test(report_json, is_utf8_whatever_the_names_hold)
{
    struct zipccl_replay_result result;

    zipccl_example_result(&result);
    strcpy(result.trace_name, "a\xff\xc3(\xed\xa0\x80\"\\\n\xc3\xa9");
    char *text = render(&result, JSON);
    yajl_val root = parse(text);
    cr_assert_str_eq(YAJL_GET_STRING(member(root, "trace", "name")), "a\?\?(\?\?\?\"\\\n\xc3\xa9");
    yajl_tree_free(root);
    free(text);
}

static size_t count_fields(const char *line)
{
    size_t n = 1;
    bool quoted = false;

    for (; *line != '\n' || quoted; line++) {
        quoted = quoted != (*line == '"');
        n += *line == ',' && !quoted;
    }
    return n;
}

Test(report_csv, has_the_same_columns_in_every_line)
{
    struct zipccl_replay_result result;
    struct zipccl_result_row rows[ZIPCCL_EXAMPLE_ROWS];
    size_t nlines = 0;

    zipccl_example_result(&result);
    memcpy(rows, result.rows, sizeof rows);
    result.rows = rows;
    strcpy(rows[0].group, "a,\"b\"\nc");
    char *text = render(&result, CSV);
    expect(text, "\"a,\"\"b\"\"\nc\"");
    for (const char *line = text; *line != '\0'; nlines++) {
        bool quoted = false;

        cr_assert_eq(count_fields(line), 25);
        while (*line != '\n' || quoted) {
            quoted = quoted != (*line == '"');
            line++;
        }
        line++;
    }
    cr_assert_eq(nlines, ZIPCCL_EXAMPLE_ROWS + 1);
    free(text);
}

Test(report_html, is_one_page_with_the_picture)
{
    struct zipccl_replay_result result;
    struct zipccl_error error = {""};
    char *page = NULL;
    size_t n = 0;

    zipccl_example_result(&result);
    char *json = render(&result, JSON);
    FILE *out = open_memstream(&page, &n);
    cr_assert_eq(zipccl_report_html(json, strlen(json), out, &error), ZIPCCL_OK, "%s", error.text);
    fclose(out);
    expect(page, "<strong>Simulated</strong>");
    expect(page, "class=\"c-alltoall\"");
    expect(page, "&lt;250 to 600 GB/s&gt; &amp; scaled");
    expect(page, "</html>");
    expect_not(page, "http");
    expect_not(page, "nan");
    if (getenv("ZIPCCL_TEST_PAGE") != NULL) {
        FILE *file = fopen(getenv("ZIPCCL_TEST_PAGE"), "w");

        cr_assert_not_null(file);
        fputs(page, file);
        fclose(file);
    }
    free(json);
    free(page);
}
