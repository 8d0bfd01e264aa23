/*
 * trace_parse_event.c - a line of a trace: JSON tree to struct zipccl_event
 *
 * Types and keys only; the rules between fields and lines are trace_check.c's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/trace_internal.h"

#include <inttypes.h>
#include <string.h>

#define COMPUTE    (1u << ZIPCCL_EVENT_COMPUTE)
#define COLLECTIVE (1u << ZIPCCL_EVENT_COLLECTIVE)
#define BEGIN      (1u << ZIPCCL_EVENT_LOOP_BEGIN)
#define END_LOOP   (1u << ZIPCCL_EVENT_LOOP_END)
#define END        (1u << ZIPCCL_TRACE_LINE_END)
#define OTHER      (1u << ZIPCCL_EVENT_COMMUNICATION)
#define RUNS       (COMPUTE | COLLECTIVE | OTHER)

static const struct zipccl_json_key event_keys[ZIPCCL_NUM_KEYS] = {
    [ZIPCCL_KEY_KIND] = {"kind", RUNS | BEGIN | END_LOOP | END, RUNS | BEGIN | END_LOOP | END},
    [ZIPCCL_KEY_ID] = {"id", RUNS, RUNS},
    [ZIPCCL_KEY_STREAM] = {"stream", RUNS, COLLECTIVE | OTHER},
    [ZIPCCL_KEY_REPEAT] = {"repeat", RUNS | BEGIN, BEGIN},
    [ZIPCCL_KEY_LABEL] = {"label", RUNS | BEGIN, 0},
    [ZIPCCL_KEY_DEPS] = {"deps", RUNS, 0},
    [ZIPCCL_KEY_RANKS] = {"ranks", RUNS, 0},
    [ZIPCCL_KEY_DURATION] = {"duration_s", COMPUTE | OTHER, 0},
    [ZIPCCL_KEY_DURATIONS] = {"duration_by_rank_s", COMPUTE | OTHER, 0},
    [ZIPCCL_KEY_FLOPS] = {"flops", COMPUTE, 0},
    [ZIPCCL_KEY_HBM] = {"hbm_bytes", COMPUTE, 0},
    [ZIPCCL_KEY_OP] = {"op", COLLECTIVE, COLLECTIVE},
    [ZIPCCL_KEY_GROUP] = {"group", COLLECTIVE, COLLECTIVE},
    [ZIPCCL_KEY_DTYPE] = {"dtype", COLLECTIVE, COLLECTIVE},
    [ZIPCCL_KEY_COUNT] = {"count", COLLECTIVE, COLLECTIVE},
    [ZIPCCL_KEY_REDOP] = {"redop", COLLECTIVE, 0},
    [ZIPCCL_KEY_ROOT] = {"root", COLLECTIVE, 0},
    [ZIPCCL_KEY_SPLITS] = {"splits", COLLECTIVE, 0},
    [ZIPCCL_KEY_PAIRS] = {"pairs", COLLECTIVE, 0},
    [ZIPCCL_KEY_RECORDED] = {"recorded_s", COLLECTIVE, 0},
    [ZIPCCL_KEY_SAMPLES] = {"samples", COLLECTIVE, 0},
    [ZIPCCL_KEY_EVENTS] = {"events", END, END},
};

static const struct {
    const char *name, *what;
} kinds[] = {
    [ZIPCCL_EVENT_COMPUTE] = {"compute", "a compute event"},
    [ZIPCCL_EVENT_COLLECTIVE] = {"collective", "a collective"},
    [ZIPCCL_EVENT_LOOP_BEGIN] = {"loop_begin", "a loop_begin"},
    [ZIPCCL_EVENT_LOOP_END] = {"loop_end", "a loop_end"},
    [ZIPCCL_EVENT_COMMUNICATION] = {"communication", "a communication event"},
    [ZIPCCL_TRACE_LINE_END] = {"end", "the end record"},
};

static zipccl_status find_kind(const struct zipccl_place *at, const struct zipccl_json *line,
                               unsigned *kind)
{
    const struct zipccl_json *node = zipccl_json_get(line, "kind");
    char found[ZIPCCL_QUOTE_SIZE];

    if (node != NULL && node->type == ZIPCCL_JSON_STRING)
        for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
            if (strcmp(node->value.string, kinds[i].name) == 0) {
                *kind = i;
                return ZIPCCL_OK;
            }
    return zipccl_place_fail(
        at,
        "%s as \"kind\", expected compute, collective, communication, loop_begin, "
        "loop_end or end",
        node != NULL ? zipccl_json_describe(found, node) : "nothing");
}

static zipccl_status parse_stream(const struct zipccl_place *at, const struct zipccl_json *node,
                                  const struct zipccl_trace_header *header, uint32_t *out)
{
    char quoted[ZIPCCL_QUOTE_SIZE];
    const char *name;

    ZIPCCL_TRY(zipccl_json_string(at, node, "stream", &name));
    for (uint32_t i = 0; i < header->nstreams; i++)
        if (strcmp(header->streams[i], name) == 0) {
            *out = i;
            return ZIPCCL_OK;
        }
    return zipccl_place_fail(at, "stream %s, expected one of the header's streams",
                             zipccl_quote(quoted, name));
}

static zipccl_status parse_deps(const struct zipccl_place *at, const struct zipccl_json *node,
                                struct zipccl_arena *arena, struct zipccl_event *e)
{
    uint32_t i = 0;

    ZIPCCL_TRY(zipccl_json_array(at, node, "deps", 0));
    e->deps = zipccl_arena_alloc(arena, node->n, sizeof *e->deps);
    if (e->deps == NULL)
        return zipccl_place_nomem(at);
    e->ndeps = node->n;
    for (const struct zipccl_json *dep = node->child; dep != NULL; dep = dep->next)
        ZIPCCL_TRY(zipccl_json_uint(at, dep, "deps", 0, ZIPCCL_JSON_MAX_INTEGER, &e->deps[i++]));
    return ZIPCCL_OK;
}

/* An item of "ranks": a rank, or [first, last] or [first, last, stride]. */
static zipccl_status parse_range(const struct zipccl_place *at, const struct zipccl_json *item,
                                 uint32_t nranks, uint64_t range[3])
{
    const struct zipccl_json *node = item->child;
    char found[ZIPCCL_QUOTE_SIZE];

    range[2] = 1;
    if (item->type != ZIPCCL_JSON_ARRAY) {
        ZIPCCL_TRY(zipccl_json_uint(at, item, "ranks", 0, nranks - 1, &range[0]));
        range[1] = range[0];
        return ZIPCCL_OK;
    }
    if (item->n != 2 && item->n != 3)
        return zipccl_place_fail(at,
                                 "%s in \"ranks\", expected [first, last] or [first, last, stride]",
                                 zipccl_json_describe(found, item));
    for (uint32_t i = 0; i < item->n; i++, node = node->next)
        ZIPCCL_TRY(zipccl_json_uint(at, node, "ranks", i == 2, nranks - 1, &range[i]));
    if (range[1] < range[0] || (range[1] - range[0]) % range[2] != 0)
        return zipccl_place_fail(at,
                                 "range [%" PRIu64 ", %" PRIu64 ", %" PRIu64
                                 "] in \"ranks\", expected the stride to lead from first to last",
                                 range[0], range[1], range[2]);
    return ZIPCCL_OK;
}

static zipccl_status parse_ranks(const struct zipccl_place *at, const struct zipccl_json *node,
                                 uint32_t nranks, struct zipccl_arena *arena,
                                 struct zipccl_event *e)
{
    uint64_t range[3], n = 0;
    const struct zipccl_json *item;

    ZIPCCL_TRY(zipccl_json_array(at, node, "ranks", 1));
    for (item = node->child; item != NULL; item = item->next) {
        ZIPCCL_TRY(parse_range(at, item, nranks, range));
        n += (range[1] - range[0]) / range[2] + 1;
        if (n > nranks)
            return zipccl_place_fail(at,
                                     "more ranks than %" PRIu32 " in \"ranks\", expected each "
                                     "once",
                                     nranks);
    }
    e->ranks = zipccl_arena_alloc(arena, (size_t)n, sizeof *e->ranks);
    if (e->ranks == NULL)
        return zipccl_place_nomem(at);
    for (item = node->child; item != NULL; item = item->next) {
        ZIPCCL_TRY(parse_range(at, item, nranks, range));
        for (uint64_t rank = range[0]; rank <= range[1]; rank += range[2])
            e->ranks[e->nranks++] = (uint32_t)rank;
    }
    return ZIPCCL_OK;
}

static zipccl_status parse_durations(const struct zipccl_place *at, const struct zipccl_json *node,
                                     uint32_t nranks, struct zipccl_arena *arena,
                                     struct zipccl_event *e)
{
    uint32_t n = e->nranks > 0 ? e->nranks : nranks, i = 0;

    ZIPCCL_TRY(zipccl_json_array(at, node, "duration_by_rank_s", 1));
    if (node->n != n)
        return zipccl_place_fail(
            at, "%" PRIu32 " entries of \"duration_by_rank_s\", expected %" PRIu32 ", one a rank",
            node->n, n);
    e->duration_by_rank_s = zipccl_arena_alloc(arena, n, sizeof *e->duration_by_rank_s);
    if (e->duration_by_rank_s == NULL)
        return zipccl_place_nomem(at);
    for (const struct zipccl_json *item = node->child; item != NULL; item = item->next)
        ZIPCCL_TRY(zipccl_json_real(at, item, "duration_by_rank_s", &e->duration_by_rank_s[i++]));
    return ZIPCCL_OK;
}

static zipccl_status parse_compute(const struct zipccl_place *at, const struct zipccl_json **values,
                                   const struct zipccl_trace_header *header,
                                   struct zipccl_arena *arena, struct zipccl_event *e)
{
    if (values[ZIPCCL_KEY_DURATION] != NULL)
        ZIPCCL_TRY(zipccl_json_real(at, values[ZIPCCL_KEY_DURATION], "duration_s", &e->duration_s));
    if (values[ZIPCCL_KEY_FLOPS] != NULL)
        ZIPCCL_TRY(zipccl_json_real(at, values[ZIPCCL_KEY_FLOPS], "flops", &e->flops));
    if (values[ZIPCCL_KEY_HBM] != NULL)
        ZIPCCL_TRY(zipccl_json_real(at, values[ZIPCCL_KEY_HBM], "hbm_bytes", &e->hbm_bytes));
    if (values[ZIPCCL_KEY_DURATIONS] != NULL)
        ZIPCCL_TRY(parse_durations(at, values[ZIPCCL_KEY_DURATIONS], header->nranks, arena, e));
    return ZIPCCL_OK;
}

static zipccl_status parse_common(const struct zipccl_place *at, const struct zipccl_json **values,
                                  const struct zipccl_trace_header *header,
                                  struct zipccl_arena *arena, struct zipccl_event *e)
{
    const char *label;

    if (values[ZIPCCL_KEY_ID] != NULL)
        ZIPCCL_TRY(
            zipccl_json_uint(at, values[ZIPCCL_KEY_ID], "id", 0, ZIPCCL_JSON_MAX_INTEGER, &e->id));
    if (values[ZIPCCL_KEY_STREAM] != NULL)
        ZIPCCL_TRY(parse_stream(at, values[ZIPCCL_KEY_STREAM], header, &e->stream));
    if (values[ZIPCCL_KEY_REPEAT] != NULL)
        ZIPCCL_TRY(zipccl_json_uint(at, values[ZIPCCL_KEY_REPEAT], "repeat", 1,
                                    ZIPCCL_JSON_MAX_INTEGER, &e->repeat));
    if (values[ZIPCCL_KEY_LABEL] != NULL) {
        ZIPCCL_TRY(zipccl_json_string(at, values[ZIPCCL_KEY_LABEL], "label", &label));
        e->label = zipccl_arena_string(arena, label, strlen(label));
        if (e->label == NULL)
            return zipccl_place_nomem(at);
    }
    if (values[ZIPCCL_KEY_DEPS] != NULL)
        ZIPCCL_TRY(parse_deps(at, values[ZIPCCL_KEY_DEPS], arena, e));
    if (values[ZIPCCL_KEY_RANKS] != NULL)
        ZIPCCL_TRY(parse_ranks(at, values[ZIPCCL_KEY_RANKS], header->nranks, arena, e));
    return ZIPCCL_OK;
}

zipccl_status zipccl_trace_parse_line(const struct zipccl_place *at, const struct zipccl_json *line,
                                      const struct zipccl_trace_header *header,
                                      struct zipccl_arena *arena, struct zipccl_event *event,
                                      unsigned *kind, uint64_t *nevents)
{
    const struct zipccl_json *values[ZIPCCL_NUM_KEYS];

    ZIPCCL_TRY(find_kind(at, line, kind));
    ZIPCCL_TRY(
        zipccl_json_keys(at, line, kinds[*kind].what, *kind, event_keys, ZIPCCL_NUM_KEYS, values));
    if (*kind == ZIPCCL_TRACE_LINE_END)
        return zipccl_json_uint(at, values[ZIPCCL_KEY_EVENTS], "events", 0, ZIPCCL_JSON_MAX_INTEGER,
                                nevents);
    memset(event, 0, sizeof *event);
    event->kind = (enum zipccl_event_kind) * kind;
    event->repeat = 1;
    event->duration_s = event->flops = event->hbm_bytes = event->recorded_s = -1;
    event->splits = -1;
    ZIPCCL_TRY(parse_common(at, values, header, arena, event));
    if (event->kind == ZIPCCL_EVENT_COMPUTE || event->kind == ZIPCCL_EVENT_COMMUNICATION)
        return parse_compute(at, values, header, arena, event);
    if (event->kind == ZIPCCL_EVENT_COLLECTIVE)
        return zipccl_trace_parse_collective(at, values, header, arena, event);
    return ZIPCCL_OK;
}
