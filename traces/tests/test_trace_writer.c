/*
 * test_trace_writer.c - what is written is read back, and nothing wrong is written
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/tests/scratch.h"
#include "traces/trace.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(writer, .fini = scratch_remove);

static uint32_t tp_ranks[] = {0, 1, 2, 3, 4, 5, 6, 7};
static uint32_t dp_ranks[] = {0, 4, 1, 5, 2, 6, 3, 7};
static uint32_t odd_ranks[] = {7, 0, 3, 2};
static struct zipccl_trace_group groups[] = {{"tp", 2, 4, tp_ranks},
                                             {"dp", 4, 2, dp_ranks},
                                             {"odd", 2, 2, odd_ranks},
                                             {"w", 1, 8, tp_ranks}};
static uint64_t counts[] = {0, 9007199254740992u / 64, 3, 4};
static struct zipccl_trace_splits splits[] = {{"skew", 2, counts}};
static char *streams[] = {(char *)"compute", (char *)"nccl:\xc3\xa4"};

static struct zipccl_trace_header full_header(void)
{
    return (struct zipccl_trace_header){.version = 1,
                                        .name = "all \"fields\" \\",
                                        .model = "a model",
                                        .provenance = "captured on a test",
                                        .generator = "test_trace_writer 1",
                                        .nranks = 8,
                                        .ranks_per_node = 4,
                                        .recorded_step_s = 0.1,
                                        .tokens_per_step = 4096,
                                        .samples = "../t/x.safetensors",
                                        .nstreams = 2,
                                        .streams = streams,
                                        .ngroups = 4,
                                        .groups = groups,
                                        .nsplits = 1,
                                        .splits = splits};
}

static uint64_t deps[] = {9007199254740992u, 0};
static uint32_t some_ranks[] = {0, 2, 4, 5, 6, 7};
static uint32_t part_ranks[] = {0, 1, 2, 3};
static double by_rank[] = {0, 0.1, 1e-300, 3, 4, 5.5};
static struct zipccl_trace_pair pairs[] = {{0, 1}, {3, 2}};
static char *samples[] = {(char *)"a.b", (char *)"c"};
static char *class_sample[] = {(char *)"class:a"};

#define NONE .duration_s = -1, .flops = -1, .hbm_bytes = -1, .recorded_s = -1, .splits = -1

static const struct zipccl_event events[] = {
    {.kind = ZIPCCL_EVENT_COMPUTE,
     .id = 9007199254740992u,
     .repeat = 3,
     .label = "first",
     .duration_s = 1.0 / 3,
     .flops = 1e15,
     .hbm_bytes = 0,
     .recorded_s = -1,
     .splits = -1},
    {.kind = ZIPCCL_EVENT_LOOP_BEGIN, .repeat = 5, .label = "outer", NONE},
    {.kind = ZIPCCL_EVENT_COMPUTE,
     .id = 0,
     .stream = 1,
     .repeat = 1,
     .ndeps = 1,
     .deps = deps,
     .nranks = 6,
     .ranks = some_ranks,
     .duration_s = -1,
     .flops = -1,
     .hbm_bytes = -1,
     .duration_by_rank_s = by_rank,
     .recorded_s = -1,
     .splits = -1},
    {.kind = ZIPCCL_EVENT_LOOP_BEGIN, .repeat = 1, NONE},
    {.kind = ZIPCCL_EVENT_COLLECTIVE,
     .id = 5,
     .stream = 1,
     .repeat = 1,
     .ndeps = 2,
     .deps = deps,
     .nranks = 4,
     .ranks = part_ranks,
     .op = ZIPCCL_REDUCE_SCATTER,
     .dtype = ZIPCCL_FLOAT32,
     .redop = ZIPCCL_AVG,
     .group = 0,
     .count = 1000,
     .duration_s = -1,
     .flops = -1,
     .hbm_bytes = -1,
     .recorded_s = 0.25,
     .splits = -1,
     .nsamples = 2,
     .samples = samples},
    {.kind = ZIPCCL_EVENT_LOOP_END, .repeat = 1, NONE},
    {.kind = ZIPCCL_EVENT_LOOP_END, .repeat = 1, NONE},
    {.kind = ZIPCCL_EVENT_COLLECTIVE,
     .id = 4,
     .stream = 1,
     .repeat = 2,
     .op = ZIPCCL_ALLTOALLV,
     .dtype = ZIPCCL_BFLOAT16,
     .group = 1,
     .count = 9007199254740992u / 64,
     .duration_s = -1,
     .flops = -1,
     .hbm_bytes = -1,
     .recorded_s = -1,
     .splits = 0,
     .nsamples = 1,
     .samples = class_sample},
    {.kind = ZIPCCL_EVENT_COLLECTIVE,
     .id = 6,
     .repeat = 1,
     .op = ZIPCCL_SENDRECV,
     .group = 0,
     .dtype = ZIPCCL_FLOAT8_E5M2,
     .count = 7,
     .npairs = 2,
     .pairs = pairs,
     NONE},
    {.kind = ZIPCCL_EVENT_COLLECTIVE,
     .id = 7,
     .repeat = 1,
     .op = ZIPCCL_BROADCAST,
     .group = 2,
     .dtype = ZIPCCL_UINT8,
     .count = 0,
     .root = 1,
     NONE},
    {.kind = ZIPCCL_EVENT_COLLECTIVE,
     .id = 8,
     .repeat = 1,
     .op = ZIPCCL_ALL_REDUCE,
     .group = 3,
     .dtype = ZIPCCL_FLOAT64,
     .count = 1,
     .redop = ZIPCCL_MAX,
     NONE},
    {.kind = ZIPCCL_EVENT_COLLECTIVE,
     .id = 9,
     .repeat = 1,
     .op = ZIPCCL_ALL_GATHER,
     .group = 3,
     .dtype = ZIPCCL_INT64,
     .count = 64,
     NONE},
    {.kind = ZIPCCL_EVENT_COLLECTIVE,
     .id = 10,
     .repeat = 1,
     .op = ZIPCCL_ALLTOALL,
     .group = 3,
     .dtype = ZIPCCL_FLOAT16,
     .count = 64,
     NONE},
};

#define NEVENTS (sizeof events / sizeof events[0])

static void expect_text(const char *a, const char *b)
{
    cr_expect((a == NULL) == (b == NULL) && (a == NULL || strcmp(a, b) == 0), "%s and %s",
              a != NULL ? a : "NULL", b != NULL ? b : "NULL");
}

static void expect_same_header(const struct zipccl_trace_header *a,
                               const struct zipccl_trace_header *b)
{
    expect_text(a->name, b->name);
    expect_text(a->model, b->model);
    expect_text(a->provenance, b->provenance);
    expect_text(a->generator, b->generator);
    expect_text(a->samples, b->samples);
    cr_expect(a->version == b->version && a->nranks == b->nranks);
    cr_expect(a->ranks_per_node == b->ranks_per_node && a->tokens_per_step == b->tokens_per_step);
    cr_expect_eq(a->recorded_step_s, b->recorded_step_s);
    cr_assert_eq(a->nstreams, b->nstreams);
    cr_assert_eq(a->ngroups, b->ngroups);
    cr_assert_eq(a->nsplits, b->nsplits);
    for (uint32_t i = 0; i < a->nstreams; i++)
        expect_text(a->streams[i], b->streams[i]);
    for (uint32_t i = 0; i < a->ngroups; i++) {
        const struct zipccl_trace_group *g = &a->groups[i], *h = &b->groups[i];

        expect_text(g->name, h->name);
        cr_assert(g->nparts == h->nparts && g->size == h->size);
        cr_expect_arr_eq(g->ranks, h->ranks, g->nparts * g->size * sizeof *g->ranks);
    }
    for (uint32_t i = 0; i < a->nsplits; i++) {
        expect_text(a->splits[i].name, b->splits[i].name);
        cr_assert_eq(a->splits[i].size, b->splits[i].size);
        cr_expect_arr_eq(a->splits[i].counts, b->splits[i].counts,
                         a->splits[i].size * a->splits[i].size * sizeof(uint64_t));
    }
}

static void expect_same_event(const struct zipccl_event *a, const struct zipccl_event *b, size_t i)
{
    cr_assert(a->kind == b->kind && a->id == b->id && a->stream == b->stream, "event %zu", i);
    cr_assert(a->repeat == b->repeat && a->ndeps == b->ndeps && a->nranks == b->nranks, "event %zu",
              i);
    expect_text(a->label, b->label);
    for (uint32_t k = 0; k < a->ndeps; k++)
        cr_expect_eq(a->deps[k], b->deps[k]);
    for (uint32_t k = 0; k < a->nranks; k++)
        cr_expect_eq(a->ranks[k], b->ranks[k]);
    cr_expect(a->duration_s == b->duration_s && a->flops == b->flops &&
                  a->hbm_bytes == b->hbm_bytes && a->recorded_s == b->recorded_s,
              "event %zu", i);
    cr_assert_eq(a->duration_by_rank_s == NULL, b->duration_by_rank_s == NULL);
    for (uint32_t k = 0; a->duration_by_rank_s != NULL && k < a->nranks; k++)
        cr_expect_eq(a->duration_by_rank_s[k], b->duration_by_rank_s[k]);
    cr_expect(a->op == b->op && a->dtype == b->dtype && a->redop == b->redop, "event %zu", i);
    cr_expect(a->group == b->group && a->count == b->count && a->root == b->root, "event %zu", i);
    cr_assert(a->splits == b->splits && a->npairs == b->npairs && a->nsamples == b->nsamples);
    for (uint32_t k = 0; k < a->npairs; k++)
        cr_expect(a->pairs[k].src == b->pairs[k].src && a->pairs[k].dst == b->pairs[k].dst);
    for (uint32_t k = 0; k < a->nsamples; k++)
        expect_text(a->samples[k], b->samples[k]);
}

static void write_all(const char *path)
{
    struct zipccl_trace_header header = full_header();
    struct zipccl_trace_writer *writer;
    struct zipccl_error error = {""};

    cr_assert_eq(zipccl_trace_writer_open(path, &header, &writer, &error), ZIPCCL_OK, "%s",
                 error.text);
    for (size_t i = 0; i < NEVENTS; i++)
        cr_assert_eq(zipccl_trace_write(writer, &events[i], &error), ZIPCCL_OK, "%s", error.text);
    cr_expect_neq(access(path, F_OK), 0, "the name appears only at the end");
    cr_assert_eq(zipccl_trace_writer_finish(writer, true, &error), ZIPCCL_OK, "%s", error.text);
}

static void expect_round_trip(const char *name)
{
    struct zipccl_trace_header header = full_header();
    struct zipccl_error error = {""};
    struct zipccl_trace *trace;
    char path[SCRATCH_PATH], expected[SCRATCH_PATH + 32];

    write_all(scratch_path(path, name));
    cr_expect_eq(scratch_count(), 1, "no temporary file is left");
    cr_assert_eq(zipccl_trace_load(path, &trace, &error), ZIPCCL_OK, "%s", error.text);
    expect_same_header(&trace->header, &header);
    cr_assert_eq(trace->nevents, NEVENTS);
    for (size_t i = 0; i < NEVENTS; i++)
        expect_same_event(&trace->events[i], &events[i], i);
    snprintf(expected, sizeof expected, "%s/../t/x.safetensors", scratch_folder());
    expect_text(trace->samples_path, expected);
    expect_text(trace->path, path);
    zipccl_trace_destroy(trace);
}

Test(writer, every_field_comes_back)
{
    expect_round_trip("t.jsonl");
}

Test(writer, every_field_comes_back_through_gzip)
{
    expect_round_trip("t.jsonl.gz");
}

Test(writer, equal_events_give_equal_bytes)
{
    static const char *const names[] = {"a.jsonl", "b.jsonl", "a.jsonl.gz", "b.jsonl.gz"};
    char path[SCRATCH_PATH], *bytes[4];
    size_t n[4];

    for (int i = 0; i < 4; i++) {
        write_all(scratch_path(path, names[i]));
        bytes[i] = scratch_read(path, &n[i]);
    }
    cr_expect(n[0] == n[1] && memcmp(bytes[0], bytes[1], n[0]) == 0);
    cr_expect(n[2] == n[3] && memcmp(bytes[2], bytes[3], n[2]) == 0);
    /* gzip: no name (flags 0) and no time */
    cr_expect_arr_eq(bytes[2], "\x1f\x8b\x08\0\0\0\0\0", 8);
    /* short forms are used */
    cr_expect(strstr(bytes[0], "{\"name\":\"dp\",\"size\":2,\"stride\":4}") != NULL);
    cr_expect(strstr(bytes[0], "\"ranks\":[[0,4,2],[5,7]]") != NULL, "%s", bytes[0]);
    for (int i = 0; i < 4; i++)
        free(bytes[i]);
}

Test(writer, streaming_reads_what_loading_does)
{
    char path[SCRATCH_PATH];
    struct zipccl_trace_reader *reader;
    const struct zipccl_event *event;
    struct zipccl_error error = {""};

    write_all(scratch_path(path, "t.jsonl"));
    cr_assert_eq(zipccl_trace_open(path, &reader, &error), ZIPCCL_OK);
    cr_expect_eq(zipccl_trace_line(reader), 1);
    for (size_t i = 0; i < NEVENTS; i++) {
        cr_assert_eq(zipccl_trace_next(reader, &event, &error), ZIPCCL_OK, "%s", error.text);
        cr_assert_not_null(event);
        cr_expect_eq(zipccl_trace_line(reader), i + 2);
        expect_same_event(event, &events[i], i);
    }
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(zipccl_trace_next(reader, &event, &error), ZIPCCL_OK);
        cr_expect_null(event);
    }
    zipccl_trace_close(reader);
    zipccl_trace_close(NULL);
    zipccl_trace_destroy(NULL);
}

Test(writer, abandoning_leaves_nothing)
{
    struct zipccl_trace_header header = full_header();
    struct zipccl_trace_writer *writer;
    struct zipccl_error error = {""};
    char path[SCRATCH_PATH];

    scratch_path(path, "t.jsonl");
    cr_assert_eq(zipccl_trace_writer_open(path, &header, &writer, &error), ZIPCCL_OK);
    cr_assert_eq(zipccl_trace_write(writer, &events[0], &error), ZIPCCL_OK);
    cr_expect_eq(zipccl_trace_writer_finish(writer, false, &error), ZIPCCL_OK);
    cr_expect_eq(scratch_count(), 0);
    cr_expect_eq(zipccl_trace_writer_open("no/such/folder/t.jsonl", &header, &writer, &error),
                 ZIPCCL_ERR_IO);
    cr_expect_str_eq(error.text, "no/such/folder/t.jsonl: No such file or directory");
}

Test(writer, refuses_what_a_reader_would)
{
    struct zipccl_trace_header header = full_header();
    struct zipccl_trace_writer *writer;
    struct zipccl_error error = {""};
    char path[SCRATCH_PATH];
    struct zipccl_event bad[8];
    static const char *const texts[8] = {"stream 2, expected 0 to 1",
                                         "\"repeat\" is 0 in a compute, expected 1 to 2^53",
                                         "\"flops\" is nan",
                                         "\"flops\" is inf, expected",
                                         "a compute event without work",
                                         "\"label\" with control characters",
                                         "event kind 9, expected 0 to 4",
                                         "a string that is not UTF-8"};

    for (int i = 0; i < 8; i++)
        bad[i] = events[0];
    bad[0].stream = 2;
    bad[1].repeat = 0;
    bad[2].flops = (double)NAN;
    bad[3].flops = (double)INFINITY;
    bad[4].flops = bad[4].duration_s = bad[4].hbm_bytes = -1;
    bad[5].label = "two\nlines";
    bad[6].kind = (enum zipccl_event_kind)9;
    bad[7].label = "\xff";
    scratch_path(path, "t.jsonl");
    for (int i = 0; i < 8; i++) {
        cr_assert_eq(zipccl_trace_writer_open(path, &header, &writer, &error), ZIPCCL_OK);
        cr_expect_eq(zipccl_trace_write(writer, &bad[i], &error), ZIPCCL_ERR_INPUT, "case %d", i);
        cr_expect(strstr(error.text, texts[i]) != NULL && strstr(error.text, "t.jsonl:2: "),
                  "case %d: %s", i, error.text);
        cr_expect_eq(zipccl_trace_write(writer, &events[0], &error), ZIPCCL_ERR_ARG);
        cr_expect_neq(zipccl_trace_writer_finish(writer, true, &error), ZIPCCL_OK);
        cr_expect_eq(scratch_count(), 0);
    }
}

Test(writer, refuses_wrong_headers_and_open_loops)
{
    struct zipccl_trace_header header = full_header();
    struct zipccl_trace_writer *writer;
    struct zipccl_error error = {""};
    char path[SCRATCH_PATH];

    scratch_path(path, "t.jsonl");
    cr_assert_eq(zipccl_trace_writer_open(path, &header, &writer, &error), ZIPCCL_OK);
    cr_assert_eq(zipccl_trace_write(writer, &events[1], &error), ZIPCCL_OK);
    cr_expect_eq(zipccl_trace_writer_finish(writer, true, &error), ZIPCCL_ERR_INPUT);
    cr_expect(strstr(error.text, "expected a loop_end for the loop of line 2"), "%s", error.text);
    header.nranks = 7;
    cr_expect_eq(zipccl_trace_writer_open(path, &header, &writer, &error), ZIPCCL_ERR_INPUT);
    header = full_header();
    header.name = NULL;
    cr_expect_eq(zipccl_trace_writer_open(path, &header, &writer, &error), ZIPCCL_ERR_INPUT);
    header = full_header();
    header.nstreams = 0;
    cr_expect_eq(zipccl_trace_writer_open(path, &header, &writer, &error), ZIPCCL_ERR_INPUT);
    cr_expect_eq(scratch_count(), 0);
}
