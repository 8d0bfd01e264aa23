/*
 * test_trace_use.c - expansion of loops and the summary of a trace
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/info.h"
#include "traces/iterate.h"
#include "traces/tests/scratch.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(use, .fini = scratch_remove);

#define HEADER                                                                                     \
    "{\"format\":\"zipccl-trace\",\"version\":1,\"name\":\"t\",\"provenance\":\"generated\","      \
    "\"generator\":\"g\",\"nranks\":4,\"streams\":[\"c\"],\"groups\":[{\"name\":\"w\",\"size\":4}" \
    "],"                                                                                           \
    "\"splits\":[{\"name\":\"s\",\"counts\":[[1,2,3,4],[0,0,0,0],[8,0,0,0],[0,0,0,4]]}]"
#define C(id, rest) "{\"id\":" #id ",\"kind\":\"compute\",\"duration_s\":1" rest "}\n"
#define L(n)        "{\"kind\":\"loop_begin\",\"repeat\":" #n "}\n"
#define E           "{\"kind\":\"loop_end\"}\n"
#define END(n)      "{\"kind\":\"end\",\"events\":" #n "}\n"

static struct zipccl_trace *load(const char *text)
{
    char path[SCRATCH_PATH];
    struct zipccl_trace *trace;
    struct zipccl_error error = {""};

    scratch_write(path, "t.jsonl", text, strlen(text));
    cr_assert_eq(zipccl_trace_load(path, &trace, &error), ZIPCCL_OK, "%s", error.text);
    return trace;
}

struct order {
    char text[64];
    uint64_t next;
    uint64_t stop_at;
};

static zipccl_status note(void *context, const struct zipccl_event *event, uint64_t number)
{
    struct order *order = context;

    cr_expect_eq(number, order->next);
    if (order->next == order->stop_at)
        return ZIPCCL_ERR_ABORTED;
    order->text[order->next++] = (char)('a' + event->id);
    return ZIPCCL_OK;
}

Test(use, nested_loops_and_repeats_expand_in_program_order)
{
    struct zipccl_trace *trace = load(HEADER "}\n" C(0, "") L(2) C(1, "") L(3) C(2, ",\"repeat\":2")
                                          E C(3, "") E L(1) C(4, "") E END(11));
    struct order order = {.stop_at = UINT64_MAX}, cut = {.stop_at = 3};
    uint64_t n = 0;

    cr_assert_eq(zipccl_trace_expand(trace, note, &order, &n, NULL), ZIPCCL_OK);
    cr_expect_str_eq(order.text, "abccccccdbccccccde");
    cr_expect_eq(n, strlen(order.text));
    n = 0;
    cr_assert_eq(zipccl_trace_expand(trace, NULL, NULL, &n, NULL), ZIPCCL_OK);
    cr_expect_eq(n, strlen(order.text));
    cr_expect_eq(zipccl_trace_expand(trace, note, &cut, NULL, NULL), ZIPCCL_ERR_ABORTED);
    cr_expect_str_eq(cut.text, "abc");
    zipccl_trace_destroy(trace);
}

Test(use, expansion_without_bounds_is_refused)
{
    static const char *const texts[] = {
        HEADER "}\n" C(0, ",\"repeat\":10000001") END(1),
        HEADER "}\n" L(9007199254740992) C(0, ",\"repeat\":2") E END(3),
        HEADER "}\n" L(9007199254740992) L(9007199254740992) C(0, "") E E END(5),
        HEADER "}\n" C(1, "") L(10000000) C(0, "") E END(4),
    };

    for (int i = 0; i < 4; i++) {
        struct zipccl_trace *trace = load(texts[i]);
        struct order order = {.stop_at = 0};
        struct zipccl_error error = {""};
        uint64_t n = 7;

        cr_expect_eq(zipccl_trace_expand(trace, note, &order, &n, &error), ZIPCCL_ERR_INPUT);
        cr_expect(strstr(error.text, "more than 10000000 events after loops") != NULL, "%s",
                  error.text);
        cr_expect_eq(n, 7);
        zipccl_trace_destroy(trace);
    }
}

Test(use, hand_made_loops_must_balance)
{
    struct zipccl_event begin = {.kind = ZIPCCL_EVENT_LOOP_BEGIN, .repeat = 2};
    struct zipccl_event end = {.kind = ZIPCCL_EVENT_LOOP_END};
    struct zipccl_event both[2];
    struct zipccl_trace trace = {.path = (char *)"t", .nevents = 1, .events = &begin};
    struct zipccl_error error;

    cr_expect_eq(zipccl_trace_expand(&trace, NULL, NULL, NULL, &error), ZIPCCL_ERR_ARG);
    trace.events = &end;
    cr_expect_eq(zipccl_trace_expand(&trace, NULL, NULL, NULL, &error), ZIPCCL_ERR_ARG);
    both[0] = begin;
    both[1] = end;
    trace.events = both;
    trace.nevents = 2;
    cr_expect_eq(zipccl_trace_expand(&trace, NULL, NULL, NULL, &error), ZIPCCL_ERR_ARG);
    cr_expect(strstr(error.text, "ends an empty loop"), "%s", error.text);
    cr_expect_eq(zipccl_trace_expand(NULL, NULL, NULL, NULL, &error), ZIPCCL_ERR_ARG);
}

#define V                                                                                          \
    "{\"id\":1,\"kind\":\"collective\",\"stream\":\"c\",\"op\":\"alltoallv\",\"group\":\"w\","     \
    "\"dtype\":\"bf16\",\"count\":8,\"splits\":\"s\",\"recorded_s\":0.5,\"repeat\":3}\n"
#define R                                                                                          \
    "{\"id\":2,\"kind\":\"collective\",\"stream\":\"c\",\"op\":\"all_reduce\",\"group\":\"w\","    \
    "\"dtype\":\"fp32\",\"count\":8,\"redop\":\"sum\"}\n"

Test(use, the_summary_writes_loops_out)
{
    struct zipccl_trace_reader *reader;
    struct zipccl_trace_info info;
    struct zipccl_error error = {""};
    char path[SCRATCH_PATH];
    static const char text[] = HEADER "}\n" L(5) V R C(3, "") E END(5);

    scratch_write(path, "t.jsonl", text, strlen(text));
    cr_assert_eq(zipccl_trace_open(path, &reader, &error), ZIPCCL_OK, "%s", error.text);
    cr_assert_eq(zipccl_trace_info_read(reader, &info, &error), ZIPCCL_OK, "%s", error.text);
    cr_assert_eq(info.nrows, 2);
    cr_expect(info.rows[0].op == ZIPCCL_ALL_REDUCE && info.rows[0].calls == 5);
    cr_expect_eq(info.rows[0].nbytes, 5 * 8 * 4);
    cr_expect(info.rows[1].op == ZIPCCL_ALLTOALLV && info.rows[1].calls == 15);
    /* 22 elements of 4 members: 5.5, rounded down, of 2 bytes */
    cr_expect_eq(info.rows[1].nbytes, 15 * 5 * 2);
    cr_expect(info.rows[1].ncalls_recorded == 15 && info.rows[1].recorded_s == 7.5);
    cr_expect(info.ncompute == 5 && info.duration_s == 5 && info.ncollective == 20);
    zipccl_trace_info_free(&info);
    zipccl_trace_close(reader);
}

static char *print(const char *path, bool json, zipccl_status *status, struct zipccl_error *error)
{
    char out[SCRATCH_PATH], *text;
    FILE *file = fopen(scratch_path(out, "out"), "w");
    size_t n;

    cr_assert_not_null(file);
    *status = json ? zipccl_trace_info_json(path, file, error)
                   : zipccl_trace_info_print(path, file, error);
    fclose(file);
    text = scratch_read(out, &n);
    cr_assert_not_null(text);
    return text;
}

Test(use, the_summary_is_printed)
{
    static const char *const parts[] = {"trace     moe64: ", "ranks     64, 8 a node; 4096 tokens",
                                        "19 names bound, 19 found, 0 missing",
                                        "alltoall        ep       bf16            524288       64",
                                        "total                                                132"};
    struct zipccl_error error = {""};
    zipccl_status status;
    char *text = print("traces/samples/moe64", false, &status, &error);

    cr_assert_eq(status, ZIPCCL_OK, "%s", error.text);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        cr_expect(strstr(text, parts[i]) != NULL, "no \"%s\" in\n%s", parts[i], text);
    free(text);
    text = print("traces/samples/moe64", true, &status, &error);
    cr_assert_eq(status, ZIPCCL_OK, "%s", error.text);
    cr_expect_eq(strstr(text, "{\n  \"schema\": \"zipccl-trace-info\",\n  \"schema_version\": 1,"),
                 text, "%s", text);
    cr_expect(strstr(text, "\"collective_bytes\": 8045744136") != NULL);
    free(text);
}

Test(use, a_summary_that_cannot_be_is_an_error)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {HEADER "}\n" END(0), "t.jsonl: a trace without events, expected one or more"},
        {HEADER ",\"samples\":\"none.safetensors\"}\n" R END(1),
         "none.safetensors: No such file or directory (the samples file of the trace)"},
        {HEADER "}\n" L(9007199254740992) L(9007199254740992) R E E END(5),
         "t.jsonl:3: sums over 2^64"},
        {HEADER "}\n" R, "the file is cut"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct zipccl_error error = {""};
        char path[SCRATCH_PATH], *text;
        zipccl_status status;

        scratch_write(path, "t.jsonl", cases[i].text, strlen(cases[i].text));
        text = print(path, i % 2, &status, &error);
        cr_expect_eq(status, ZIPCCL_ERR_INPUT);
        cr_expect(strstr(error.text, cases[i].expected) != NULL, "case %zu: %s", i, error.text);
        cr_expect_str_eq(text, "", "nothing is written");
        free(text);
    }
}

Test(use, missing_tensors_are_listed)
{
    static const char text[] = HEADER
        ",\"samples\":\"t.safetensors\"}\n"
        "{\"id\":1,\"kind\":\"collective\",\"stream\":\"c\",\"op\":\"all_gather\",\"group\":\"w\","
        "\"dtype\":\"bf16\",\"count\":8,\"samples\":[\"here\",\"gone\"]}\n"
        "{\"id\":2,\"kind\":\"collective\",\"stream\":\"c\",\"op\":\"all_gather\",\"group\":\"w\","
        "\"dtype\":\"bf16\",\"count\":8,\"samples\":[\"class:lost\"]}\n" END(2);
    static const char tensors[] = "\x38\0\0\0\0\0\0\0{\"here\":{\"dtype\":\"U8\",\"shape\":[2],"
                                  "\"data_offsets\":[0,2]}}      ab";
    struct zipccl_error error = {""};
    char path[SCRATCH_PATH], *out;
    zipccl_status status;

    scratch_write(path, "t.safetensors", tensors, 8 + 0x38 + 2);
    scratch_write(path, "t.jsonl", text, strlen(text));
    out = print(path, false, &status, &error);
    cr_assert_eq(status, ZIPCCL_OK, "%s", error.text);
    cr_expect(strstr(out, "3 names bound, 1 found, 2 missing\n          missing: class:lost\n"
                          "          missing: gone\n") != NULL,
              "%s", out);
    free(out);
}
