/*
 * test_rescale.c - traces of other numbers of ranks
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/rescale.h"
#include "traces/tests/scratch.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(rescale, .fini = scratch_remove);

static struct zipccl_error error;
static struct zipccl_rescale_report report;

/* 2 x tp 2, dp every second rank. */
#define HEADER                                                                                     \
    "{\"format\":\"zipccl-trace\",\"version\":1,\"name\":\"t\",\"provenance\":\"generated\","      \
    "\"generator\":\"test\",\"nranks\":4,\"ranks_per_node\":4,\"recorded_step_s\":1,\"streams\":[" \
    "\"compute\",\"a\"],\"groups\":[{\"name\":\"tp\",\"size\":2},{\"name\":\"dp\",\"size\":2,"     \
    "\"stride\":2}]}\n"
#define CALL(id, op, group, count, more)                                                           \
    "{\"id\":" id ",\"kind\":\"collective\",\"op\":\"" op "\",\"group\":\"" group "\",\"dtype\":"  \
    "\"bf16\",\"count\":" count ",\"stream\":\"a\",\"recorded_s\":1e-3" more "}\n"

/* A group of three of four ranks. */
#define ODD                                                                                        \
    "{\"format\":\"zipccl-trace\",\"version\":1,\"name\":\"t\",\"provenance\":\"generated\","      \
    "\"generator\":\"test\",\"nranks\":4,\"streams\":[\"compute\"],\"groups\":[{\"name\":\"odd\"," \
    "\"ranks\":[[0,1,2]]}]}\n"

static const char text[] = HEADER
    "{\"id\":1,\"kind\":\"compute\",\"duration_by_rank_s\":[1,2,3,4]}\n" CALL("2", "all_gather",
                                                                              "dp", "101", "")
        CALL("3", "all_reduce", "dp", "64", ",\"redop\":\"sum\"") CALL(
            "4", "all_gather", "tp", "100", ",\"ranks\":[0,1]") "{\"kind\":\"end\",\"events\":4}\n";

static struct zipccl_trace *load(const char *name, const char *bytes)
{
    char path[SCRATCH_PATH];
    struct zipccl_trace *trace;

    if (bytes != NULL)
        scratch_write(path, name, bytes, strlen(bytes));
    cr_assert_eq(zipccl_trace_load(scratch_path(path, name), &trace, &error), ZIPCCL_OK, "%s",
                 error.text);
    return trace;
}

static struct zipccl_trace *rescale_by(const struct zipccl_trace *t,
                                       struct zipccl_rescale_options options)
{
    char out[SCRATCH_PATH];

    cr_assert_eq(zipccl_trace_rescale(t, &options, scratch_path(out, "o.jsonl"), &report, &error),
                 ZIPCCL_OK, "%s", error.text);
    return load("o.jsonl", NULL);
}

static struct zipccl_trace *rescale(const struct zipccl_trace *t, uint32_t nranks)
{
    return rescale_by(t, (struct zipccl_rescale_options){.nranks = nranks});
}

Test(rescale, data_parallel_groups_grow_and_others_are_copied)
{
    struct zipccl_trace *t = load("t.jsonl", text), *o = rescale(t, 8);
    const struct zipccl_trace_group *tp = &o->header.groups[0], *dp = &o->header.groups[1];

    cr_expect(o->header.nranks == 8 && o->header.recorded_step_s < 0);
    cr_expect(tp->size == 2 && tp->nparts == 4 && tp->ranks[4] == 4 && tp->ranks[5] == 5);
    cr_expect(dp->size == 4 && dp->nparts == 2 && dp->ranks[1] == 2 && dp->ranks[2] == 4);
    cr_expect_eq(o->events[0].duration_by_rank_s[5], 2);
    cr_expect_eq(o->events[1].count, 51, "half the shard, rounded up");
    cr_expect(o->events[1].recorded_s < 0);
    cr_expect_eq(o->events[2].count, 64);
    cr_expect(o->events[3].count == 100 && o->events[3].recorded_s > 0);
    cr_expect(o->events[3].nranks == 4 && o->events[3].ranks[2] == 4);
    cr_expect(report.nshards == 1 && report.nrounded == 1 && report.ntimes == 2);
    zipccl_trace_destroy(t);
    zipccl_trace_destroy(o);
}

Test(rescale, back_to_fewer_ranks_gives_what_was)
{
    struct zipccl_trace *t = load("t.jsonl", text), *o = rescale(t, 8), *back;

    zipccl_trace_destroy(t);
    back = rescale(o, 4);
    cr_expect_eq(back->header.nranks, 4);
    cr_expect(back->header.groups[1].size == 2 && back->header.groups[1].ranks[1] == 2);
    cr_expect_eq(back->header.groups[0].nparts, 2);
    cr_expect_eq(back->events[1].count, 102, "what was rounded stays");
    cr_expect_eq(back->events[3].nranks, 2);
    zipccl_trace_destroy(o);
    o = rescale(back, 2);
    cr_expect(o->header.groups[1].size == 1 && o->header.ranks_per_node == 0);
    zipccl_trace_destroy(o);
    zipccl_trace_destroy(back);
}

static void refused(const struct zipccl_trace *t, uint32_t nranks, const char *scaled,
                    const char *found)
{
    struct zipccl_rescale_options options = {
        .nranks = nranks, .scaled = &scaled, .nscaled = scaled != NULL};
    char out[SCRATCH_PATH];

    cr_expect_eq(zipccl_trace_rescale(t, &options, scratch_path(out, "x.jsonl"), &report, &error),
                 ZIPCCL_ERR_INPUT);
    cr_expect_not_null(strstr(error.text, found), "%s", error.text);
}

Test(rescale, what_cannot_be_is_refused)
{
    struct zipccl_trace *t = load("t.jsonl", text);

    refused(t, 6, NULL, "4 ranks to 6, expected a multiple or a divisor");
    refused(t, 0, NULL, "4 ranks to 0");
    refused(t, 8, "ep", "group ep: no such group, expected one of: tp of 2, dp of 2");
    refused(t, 1, NULL, "group tp: it stays and would be cut");
    zipccl_trace_destroy(t);
    t = load("t.jsonl", ODD "{\"kind\":\"end\",\"events\":0}\n");
    refused(t, 2, "odd", "group odd: it does not shrink evenly");
    zipccl_trace_destroy(t);
    t = load("t.jsonl", HEADER CALL("1", "sendrecv", "dp", "4",
                                    ",\"pairs\":[[0,1]]") "{\"kind\":\"end\",\"events\":1}\n");
    refused(t, 8, NULL, "group dp: a call in pairs");
    zipccl_trace_destroy(t);
    t = load("t.jsonl", HEADER "{\"id\":1,\"kind\":\"compute\",\"ranks\":[3],\"duration_s\":1}\n"
                               "{\"kind\":\"end\",\"events\":1}\n");
    refused(t, 2, NULL, "event 1 is of ranks that are not in the new world");
    zipccl_trace_destroy(t);
}

static void map_refused(const struct zipccl_trace *t, uint32_t nranks, const char *one,
                        const char *other, const char *found)
{
    const char *map[] = {one, other};
    struct zipccl_rescale_options options = {
        .nranks = nranks, .map = map, .nmap = other != NULL ? 2 : 1};
    char out[SCRATCH_PATH];

    cr_expect_eq(zipccl_trace_rescale(t, &options, scratch_path(out, "x.jsonl"), &report, &error),
                 ZIPCCL_ERR_INPUT, "%s", one);
    cr_expect_not_null(strstr(error.text, found), "%s", error.text);
}

Test(rescale, a_map_says_which_groups_grow_and_how_far)
{
    static const char *const dp[] = {"dp=6"}, *const tp[] = {"tp=4"}, *const down[] = {"tp=1"};
    struct zipccl_trace *t = load("t.jsonl", text);
    struct zipccl_trace *o = rescale_by(t, (struct zipccl_rescale_options){.map = dp, .nmap = 1});

    cr_expect(o->header.nranks == 12 && report.to == 12);
    cr_expect(o->header.groups[0].size == 2 && o->header.groups[1].size == 6);
    cr_expect_eq(o->events[1].count, 34, "a third of 101, rounded up");
    cr_expect_eq(o->events[3].count, 100);
    zipccl_trace_destroy(o);
    /* Ranks 0,1 | 2,3 become 0 to 3 | 4 to 7; dp, which nobody named, has other copies. */
    o = rescale_by(t, (struct zipccl_rescale_options){.map = tp, .nmap = 1});
    cr_expect(o->header.nranks == 8 && o->header.groups[0].size == 4);
    cr_expect(o->header.groups[0].ranks[3] == 3 && o->header.groups[0].ranks[4] == 4);
    cr_expect(o->header.groups[1].size == 2 && o->header.groups[1].nparts == 4);
    cr_expect(o->header.groups[1].ranks[0] == 0 && o->header.groups[1].ranks[1] == 4);
    cr_expect_eq(o->events[0].duration_by_rank_s[4], 3, "a copy of rank 2");
    cr_expect_eq(o->events[1].count, 101);
    cr_expect_eq(o->events[3].count, 50);
    zipccl_trace_destroy(o);
    o = rescale_by(t, (struct zipccl_rescale_options){.map = down, .nmap = 1});
    cr_expect(o->header.nranks == 2 && o->header.groups[0].size == 1);
    cr_expect_eq(o->events[0].duration_by_rank_s[1], 3);
    cr_expect_eq(o->events[3].count, 200);
    zipccl_trace_destroy(o);
    map_refused(t, 0, "dp=5", NULL, "expected a multiple or a divisor");
    map_refused(t, 0, "dp=4", "tp=8", "makes 16 ranks, expected 8");
    map_refused(t, 4, "dp=4", NULL, "makes 8 ranks, expected 4");
    map_refused(t, 0, "dp=4", "dp=8", "named twice");
    map_refused(t, 0, "dp=2", NULL, "changes no group");
    map_refused(t, 0, "ep=2", NULL, "group ep: no such group");
    map_refused(t, 0, "dp", NULL, "expected NAME=SIZE");
    map_refused(t, 0, "dp=x", NULL, "expected NAME=SIZE");
    map_refused(t, 0, "dp=0", NULL, "expected NAME=SIZE");
    zipccl_trace_destroy(t);
}

Test(rescale, no_such_group_names_as_many_as_fit)
{
    char header[8192];
    size_t n = (size_t)snprintf(
        header, sizeof header,
        "{\"format\":\"zipccl-trace\",\"version\":1,\"name\":\"t\",\"provenance\":\"generated\","
        "\"generator\":\"test\",\"nranks\":2,\"streams\":[\"compute\"],\"groups\":[");
    struct zipccl_trace *t;

    for (int i = 0; i < 40; i++)
        n += (size_t)snprintf(header + n, sizeof header - n,
                              "%s{\"name\":\"pipe%d\",\"ranks\":[[0,1]]}", i > 0 ? "," : "", i);
    snprintf(header + n, sizeof header - n, "]}\n{\"kind\":\"end\",\"events\":0}\n");
    t = load("t.jsonl", header);
    refused(t, 4, "dp", "expected one of: pipe0 of 2, pipe1 of 2, pipe2 of 2");
    cr_expect_not_null(strstr(error.text, "pipe11 of 2 and 28 more"), "%s", error.text);
    zipccl_trace_destroy(t);
}

/* Member 0 sends 5 to itself and 3 to the other, member 1 sends 1 and 4. */
Test(rescale, tables_of_uneven_calls_are_spread_and_lose_nothing)
{
    static const uint64_t wide[] = {3, 2, 2, 1, 1, 2, 0, 2, 3, 2, 2, 1, 1, 2, 0, 2};
    struct zipccl_trace *t = load(
        "t.jsonl",
        "{\"format\":\"zipccl-trace\",\"version\":1,\"name\":\"t\",\"provenance\":\"generated\","
        "\"generator\":\"test\",\"nranks\":2,\"streams\":[\"compute\"],\"groups\":[{\"name\":"
        "\"world\",\"size\":2}],\"splits\":[{\"name\":\"s\",\"counts\":[[5,3],[1,4]]}]}\n"
        "{\"id\":1,\"kind\":\"collective\",\"op\":\"alltoallv\",\"group\":\"world\",\"dtype\":"
        "\"bf16\",\"count\":5,\"splits\":\"s\",\"stream\":\"compute\"}\n"
        "{\"kind\":\"end\",\"events\":1}\n");
    struct zipccl_trace *o = rescale(t, 4), *back = rescale(o, 2);
    const struct zipccl_trace_splits *s = &o->header.splits[0];

    cr_assert_eq(s->size, 4);
    for (int i = 0; i < 16; i++)
        cr_expect_eq(s->counts[i], wide[i], "%d: %lu", i, (unsigned long)s->counts[i]);
    cr_expect(o->events[0].count == 3 && report.ntables == 1);
    cr_assert_eq(back->header.splits[0].size, 2);
    cr_expect_arr_eq(back->header.splits[0].counts, t->header.splits[0].counts,
                     4 * sizeof(uint64_t));
    zipccl_trace_destroy(back);
    zipccl_trace_destroy(o);
    zipccl_trace_destroy(t);
}

/* Stages 0,1 | 2,3 become 0 to 3 | 4 to 7: what member 2 of the world sent, member 4 sends. */
#define STAGES(kind, more)                                                                         \
    "{\"format\":\"zipccl-trace\",\"version\":1,\"name\":\"t\",\"provenance\":\"generated\","      \
    "\"generator\":\"test\",\"nranks\":4,\"streams\":[\"compute\"],\"groups\":[{\"name\":\"dp\","  \
    "\"ranks\":[[0,1],[2,3]]},{\"name\":\"world\",\"size\":4}]" more "}\n"                         \
    "{\"id\":1,\"kind\":\"collective\",\"op\":" kind                                               \
    ",\"dtype\":\"bf16\",\"stream\":\"compute\"}\n"                                                \
    "{\"kind\":\"end\",\"events\":1}\n"

Test(rescale, a_broadcast_keeps_its_root)
{
    struct zipccl_trace *t =
        load("t.jsonl", STAGES("\"broadcast\",\"group\":\"world\",\"count\":8,\"root\":2", ""));
    struct zipccl_trace *o = rescale(t, 8), *back = rescale(o, 4);

    cr_expect_eq(o->header.groups[1].ranks[4], 4);
    cr_expect_eq(o->events[0].root, 4);
    cr_expect_eq(back->events[0].root, 2);
    zipccl_trace_destroy(back);
    zipccl_trace_destroy(o);
    zipccl_trace_destroy(t);
    t = load("t.jsonl", STAGES("\"broadcast\",\"group\":\"world\",\"count\":8,\"root\":1", ""));
    refused(t, 2, NULL, "group world: the root of a broadcast is not in the new world");
    zipccl_trace_destroy(t);
}

/* Of 8 ranks 4 are left, 0 to 3: of the group 0, 1, 6, 7 the first two, but they are no copies of the others. */
Test(rescale, tables_of_groups_without_whole_copies_are_refused)
{
    struct zipccl_trace *t = load(
        "t.jsonl",
        "{\"format\":\"zipccl-trace\",\"version\":1,\"name\":\"t\",\"provenance\":\"generated\","
        "\"generator\":\"test\",\"nranks\":8,\"streams\":[\"compute\"],\"groups\":[{\"name\":"
        "\"dp\",\"ranks\":[[0,1,6,7],[2,3,4,5]]}],\"splits\":[{\"name\":\"s\",\"counts\":"
        "[[1,2,3,4],[1,2,3,4],[1,2,3,4],[1,2,3,4]]}]}\n"
        "{\"id\":1,\"kind\":\"collective\",\"op\":\"alltoallv\",\"group\":\"dp\",\"dtype\":"
        "\"bf16\",\"count\":4,\"splits\":\"s\",\"stream\":\"compute\"}\n"
        "{\"kind\":\"end\",\"events\":1}\n");

    refused(t, 4, NULL,
            "splits s: what rank 6 receives would go to rank 2, which is not in its group");
    zipccl_trace_destroy(t);
}

Test(rescale, tables_that_no_trace_may_have_are_refused)
{
    struct zipccl_trace *t =
        load("t.jsonl", STAGES("\"alltoallv\",\"group\":\"dp\",\"count\":5,\"splits\":\"s\"",
                               ",\"splits\":[{\"name\":\"s\",\"counts\":[[5,3],[1,4]]}]"));

    refused(t, 4 << 13, NULL, "splits s: 16384 x 16384 entries");
    zipccl_trace_destroy(t);
}

Test(rescale, names_tell_which_groups_grow)
{
    static const struct {
        const char *name;
        uint32_t size;
        bool grows;
    } cases[] = {{"dp", 2, true},       {"fsdp", 8, true},  {"dp_ep", 2, true},  {"tp", 8, false},
                 {"pp.even", 2, false}, {"ep", 8, false},   {"world", 8, true},  {"n8", 8, true},
                 {"n4", 4, false},      {"EP_DP", 2, true}, {"adapt", 2, false}, {"dp0", 2, true}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct zipccl_trace_group g = {cases[i].name, 8 / cases[i].size, cases[i].size, NULL};
        struct zipccl_trace_header h = {.nranks = 8, .ngroups = 1, .groups = &g};

        cr_expect_eq(zipccl_rescale_grows(&h, 0), cases[i].grows, "%s", cases[i].name);
    }
}

Test(rescale, copies_of_shards_grow_and_shards_stay)
{
    static const char *const names[][4] = {{"dp", "replicas", "world", "edp"},
                                           {"dp_shard", "dp_replicate", "world", "n8"}};

    for (size_t i = 0; i < 2; i++) {
        struct zipccl_trace_group g[4] = {{names[i][0], 2, 4, NULL},
                                          {names[i][1], 4, 2, NULL},
                                          {names[i][2], 1, 8, NULL},
                                          {names[i][3], 1, 8, NULL}};
        struct zipccl_trace_header h = {.nranks = 8, .ngroups = 4, .groups = g};

        for (uint32_t k = 0; k < 4; k++)
            cr_expect_eq(zipccl_rescale_grows(&h, k), k > 0, "%s", names[i][k]);
    }
}
