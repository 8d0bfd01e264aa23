/*
 * test_report_html.c - pages from result text: what is refused, escaped, left out
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/report_html.h"

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

/* The page of 'json', or NULL with the reason in 'error'; the caller frees it. */
static char *page_of(const char *json, struct zipccl_error *error)
{
    char *page = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&page, &n);

    cr_assert_not_null(out);
    zipccl_status status = zipccl_report_html(json, strlen(json), out, error);
    fclose(out);
    if (status == ZIPCCL_OK)
        return page;
    free(page);
    cr_assert_eq(status, ZIPCCL_ERR_INPUT);
    cr_assert_neq(error->text[0], '\0');
    return NULL;
}

Test(report_html, refuses_what_is_no_result)
{
    static const char *const texts[] = {
        "",
        "{",
        "nonsense",
        "[]",
        "{}",
        "{\"schema\": {\"name\": \"other\", \"version\": 1}}",
        "{\"schema\": {\"name\": \"zipccl.replay\", \"version\": 2}}",
        "{\"schema\": {\"name\": \"zipccl.replay\", \"version\": 1}",
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct zipccl_error error = {""};

        cr_assert_null(page_of(texts[i], &error), "accepted: %s", texts[i]);
    }
}

Test(report_html, makes_a_page_of_the_least_result)
{
    struct zipccl_error error = {""};
    char *page = page_of("{\"schema\": {\"name\": \"zipccl.replay\", \"version\": 1}, "
                         "\"kind\": \"simulated\"}",
                         &error);

    cr_assert_not_null(page, "%s", error.text);
    cr_assert_not_null(strstr(page, "</html>"));
    cr_assert_null(strstr(page, "nan"));
    free(page);
}

Test(report_html, escapes_all_text)
{
    struct zipccl_error error = {""};
    char *page = page_of("{\"schema\": {\"name\": \"zipccl.replay\", \"version\": 1}, "
                         "\"kind\": \"simulated\", \"trace\": {\"name\": \"<b>&\\\"'\"}, "
                         "\"warnings\": [\"<script>alert(1)</script>\"], \"settings\": "
                         "[{\"name\": \"<i>\", \"value\": \"<u>\", \"source\": \"<s>\"}], "
                         "\"rows\": [{\"op\": \"alltoall\", \"group\": \"<em>\"}]}",
                         &error);
    static const char *const tags[] = {"<b>&", "<script", "<i>", "<u>", "<s>", "<em>"};

    cr_assert_not_null(page, "%s", error.text);
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        cr_assert_null(strstr(page, tags[i]), "'%s' is not escaped", tags[i]);
    cr_assert_not_null(strstr(page, "&lt;b&gt;&amp;&quot;&#39;"));
    free(page);
}

Test(report_html, gives_rates_as_the_terminal_does)
{
    static const struct {
        const char *Bps, *text;
    } cases[] = {
        {"1.75e8", "about 1.4 Gb/s per NIC"},  {"2.73e11", "about 2200 Gb/s per NIC"},
        {"1.5e6", "about 0.012 Gb/s per NIC"}, {"3.4125e10", "about 270 Gb/s per NIC"},
        {"1.245e9", "about 10 Gb/s per NIC"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct zipccl_error error = {""};
        char json[512];

        snprintf(json, sizeof json,
                 "{\"schema\": {\"name\": \"zipccl.replay\", \"version\": 1}, \"sensitivities\": "
                 "[{\"name\": \"x\"}], \"break_even\": {\"gain_under_2_percent_nic_Bps\": %s}}",
                 cases[i].Bps);
        char *page = page_of(json, &error);
        cr_assert_not_null(page, "%s", error.text);
        cr_expect_not_null(strstr(page, cases[i].text), "%s gives no '%s'", cases[i].Bps,
                           cases[i].text);
        free(page);
    }
}

Test(report_html, says_why_and_shows_times_before_plans)
{
    struct zipccl_error error = {""};
    char *page = page_of("{\"schema\": {\"name\": \"zipccl.replay\", \"version\": 1}, "
                         "\"why\": \"a < b\", \"rows\": [{\"op\": \"alltoall\", \"strategy\": "
                         "\"exact direct\", \"exposed_adaptive_s\": 0.0421}]}",
                         &error);

    cr_assert_not_null(page, "%s", error.text);
    cr_expect_not_null(strstr(page, "<strong>Why:</strong> a &lt; b"));
    const char *times = strstr(page, "42.1"), *plans = strstr(page, "exact direct");
    cr_assert(times != NULL && plans != NULL);
    /* Names of plans are wide: in one table they pushed the times out of the window. */
    cr_expect_not_null(strstr(times, "</table>"));
    cr_expect_lt(strstr(times, "</table>"), plans);
    free(page);
}
