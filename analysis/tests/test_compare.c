/*
 * test_compare.c - which rows are the same call, how far they differ, what has no partner
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/compare.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct zipccl_row row_of(enum zipccl_op op, uint64_t count, const char *mode,
                                const char *strategy, double time_s)
{
    struct zipccl_row row = {.op = op,
                             .dtype = ZIPCCL_BFLOAT16,
                             .nranks = 4,
                             .nodes = 2,
                             .count = count,
                             .calls = 1,
                             .nchunks = 1,
                             .size_bytes = 2.0 * (double)count,
                             .time_s = time_s};

    snprintf(row.mode, sizeof row.mode, "%s", mode);
    snprintf(row.strategy, sizeof row.strategy, "%s", strategy);
    return row;
}

static const struct zipccl_compare_options plain = {.any_strategy = false};

static void compare(const struct zipccl_rows *first, struct zipccl_rows *second,
                    const struct zipccl_compare_options *options, struct zipccl_compare *out)
{
    static struct zipccl_rows *seconds[1];
    struct zipccl_error error = {""};

    seconds[0] = second;
    cr_assert_eq(zipccl_compare_rows(first, seconds, 1, options, out, &error), ZIPCCL_OK, "%s",
                 error.text);
}

Test(compare, errors_are_predicted_over_measured)
{
    struct zipccl_row predicted[] = {row_of(ZIPCCL_ALL_GATHER, 8, "raw", "raw ring x1", 1.1),
                                     row_of(ZIPCCL_ALL_GATHER, 16, "raw", "raw ring x1", 1.8),
                                     row_of(ZIPCCL_ALLTOALL, 8, "raw", "raw direct", 3)};
    struct zipccl_row measured[] = {row_of(ZIPCCL_ALL_GATHER, 16, "raw", "raw ring x1", 2),
                                    row_of(ZIPCCL_ALL_GATHER, 8, "raw", "raw ring x1", 1),
                                    row_of(ZIPCCL_ALLTOALL, 8, "raw", "raw direct", 2)};
    struct zipccl_rows p = {.path = "p", .n = 3, .rows = predicted};
    struct zipccl_rows m = {.path = "m", .measured = true, .n = 3, .rows = measured};
    struct zipccl_compare c;

    compare(&p, &m, &plain, &c);
    cr_assert(c.predicts && c.npairs == 3 && c.nsingles == 0);
    cr_assert(c.pairs[0].first == &predicted[1] && c.pairs[0].second == &measured[0]);
    cr_assert_float_eq(c.pairs[0].error, -0.1, 1e-12);
    cr_assert_float_eq(c.pairs[1].error, 0.1, 1e-12);
    cr_assert_float_eq(c.all.median, 0.1, 1e-12);
    cr_assert_float_eq(c.all.worst, 0.5, 1e-12);
    cr_assert_float_eq(c.all.bias, 0.1, 1e-12);
    cr_assert(c.by_op[ZIPCCL_ALL_GATHER].n == 2 && c.by_op[ZIPCCL_BROADCAST].n == 0);
    cr_assert_float_eq(c.by_op[ZIPCCL_ALL_GATHER].worst, 0.1, 1e-12);
    cr_assert_float_eq(c.by_op[ZIPCCL_ALL_GATHER].bias, 0, 1e-12);
    zipccl_compare_release(&c);
    /* Two of a kind: the change from the first to the second. */
    p.measured = true;
    compare(&p, &m, &plain, &c);
    cr_assert(!c.predicts);
    cr_assert_float_eq(c.pairs[0].error, 2 / 1.8 - 1, 1e-12);
    zipccl_compare_release(&c);
}

/* Each row differs from the first's one row in one thing alone. */
Test(compare, what_differs_is_no_partner_and_is_named)
{
    struct zipccl_row a[] = {row_of(ZIPCCL_ALL_REDUCE, 8, "compressed", "exact direct", 1)};
    struct zipccl_rows first = {.path = "a", .measured = true, .n = 1, .rows = a};
    struct {
        struct zipccl_row row;
        const char *why;
    } cases[10];
    size_t n = 0;

#define DIFFERS(change, name)                                                                      \
    cases[n].row = a[0];                                                                           \
    cases[n].row.change;                                                                           \
    cases[n++].why = name
    DIFFERS(op = ZIPCCL_ALLTOALL, "op");
    DIFFERS(dtype = ZIPCCL_FLOAT16, "type");
    DIFFERS(redop = ZIPCCL_AVG, "reduction");
    DIFFERS(nranks = 8, "ranks");
    DIFFERS(nodes = 4, "nodes");
    DIFFERS(count = 9, "count");
    DIFFERS(mode[0] = 'x', "mode");
    DIFFERS(in_place = true, "in place");
    DIFFERS(strategy[0] = 'x', "strategy");
    DIFFERS(nchunks = 2, "chunks");
#undef DIFFERS
    for (size_t i = 0; i < n; i++) {
        struct zipccl_rows second = {.path = "b", .measured = true, .n = 1, .rows = &cases[i].row};
        struct zipccl_compare c;

        compare(&first, &second, &plain, &c);
        cr_assert(c.npairs == 0 && c.nsingles == 2, "%s", cases[i].why);
        cr_assert_str_eq(c.singles[0].why, cases[i].why);
        cr_assert(!c.singles[0].of_first && c.singles[1].of_first);
        zipccl_compare_release(&c);
    }
    /* Nodes that one does not know, and strategies where they do not matter, are no difference. */
    struct zipccl_row other = a[0];
    struct zipccl_rows second = {.path = "b", .measured = true, .n = 1, .rows = &other};
    struct zipccl_compare_options any = {.any_strategy = true};
    struct zipccl_compare c;

    other.nodes = 0;
    other.strategy[0] = 'x';
    other.nchunks = 4;
    compare(&first, &second, &any, &c);
    cr_assert_eq(c.npairs, 1);
    zipccl_compare_release(&c);
    any.least_bytes = 17;
    compare(&first, &second, &any, &c);
    cr_assert(c.npairs == 0 && c.nsingles == 0);
    zipccl_compare_release(&c);
}

Test(compare, a_simulated_row_stands_for_both_places)
{
    struct zipccl_row a[] = {row_of(ZIPCCL_ALL_GATHER, 8, "raw", "raw direct", 1)};
    struct zipccl_row b[] = {a[0], a[0]};
    struct zipccl_rows first = {.path = "a", .n = 1, .rows = a};
    struct zipccl_rows second = {.path = "b", .measured = true, .n = 2, .rows = b};
    struct zipccl_compare c;

    b[1].in_place = true;
    compare(&first, &second, &plain, &c);
    cr_assert(c.npairs == 2 && c.nsingles == 0);
    zipccl_compare_release(&c);
}

Test(compare, refuses_what_cannot_be_compared)
{
    struct zipccl_row a[] = {row_of(ZIPCCL_ALL_GATHER, 8, "raw", "raw direct", 1)};
    struct zipccl_rows measured = {.path = "m", .measured = true, .n = 1, .rows = a};
    struct zipccl_rows simulated = {.path = "s", .n = 1, .rows = a};
    struct zipccl_rows step = {.path = "t", .kind = ZIPCCL_ROWS_REPLAY, .n = 1, .rows = a};
    struct zipccl_rows *one[] = {&simulated}, *mixed[] = {&measured, &simulated},
                       *other[] = {&step};
    struct zipccl_error error = {""};
    struct zipccl_compare c;

    cr_assert_eq(zipccl_compare_rows(&measured, one, 1, &plain, &c, &error), ZIPCCL_ERR_INPUT);
    cr_assert(strstr(error.text, "expected the prediction first") != NULL, "%s", error.text);
    cr_assert_eq(zipccl_compare_rows(&simulated, mixed, 2, &plain, &c, &error), ZIPCCL_ERR_INPUT);
    cr_assert(strstr(error.text, "the same of all but the first") != NULL, "%s", error.text);
    cr_assert_eq(zipccl_compare_rows(&simulated, other, 1, &plain, &c, &error), ZIPCCL_ERR_INPUT);
    cr_assert(strstr(error.text, "expected two of one kind") != NULL, "%s", error.text);
}

/* Texts of files are escaped, and the picture holds a mark a pair. */
Test(compare, pages_are_safe_and_whole)
{
    struct zipccl_row a[] = {row_of(ZIPCCL_ALL_GATHER, 8, "raw", "<script>&", 1e-4),
                             row_of(ZIPCCL_ALLTOALL, 8, "compressed", "exact direct", 2)};
    struct zipccl_rows first = {.path = "<b>", .n = 2, .rows = a};
    struct zipccl_rows second = {.path = "m", .measured = true, .n = 2, .rows = a};
    struct zipccl_compare c;
    struct zipccl_error error = {""};
    char *text = NULL;
    size_t nbytes = 0, marks = 0;
    FILE *memory = open_memstream(&text, &nbytes);

    compare(&first, &second, &plain, &c);
    cr_assert_eq(zipccl_compare_html(&c, memory, &error), ZIPCCL_OK);
    fclose(memory);
    cr_assert(strstr(text, "<script>") == NULL && strstr(text, "<b>") == NULL);
    cr_assert(strstr(text, "&lt;script&gt;&amp;") != NULL && strstr(text, "</html>") != NULL);
    for (const char *at = text; (at = strstr(at, "<path class=\"mark c-")) != NULL; at++)
        marks++;
    cr_assert_eq(marks, 4, "two points and two ops of the legend, not %zu", marks);
    cr_assert(strstr(text, "within 10 %") != NULL && strstr(text, ">100 us<") != NULL);
    free(text);
    zipccl_compare_release(&c);
}
