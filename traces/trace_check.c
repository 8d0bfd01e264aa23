/*
 * trace_check.c - the rules a header and the order of events must keep, reader and writer alike
 *
 * What only collectives must keep stands in trace_check_coll.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/trace_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const event_kinds[] = {"compute", "collective", "loop_begin", "loop_end",
                                          "communication"};

static zipccl_status check_name(const struct zipccl_place *at, const char *what, const char *name)
{
    if (name == NULL || name[0] == '\0')
        return zipccl_place_fail(at, "\"%s\" is empty, expected a string", what);
    if (!zipccl_text_printable(name))
        return zipccl_place_fail(at, "\"%s\" with control characters, expected none", what);
    return ZIPCCL_OK;
}

zipccl_status zipccl_trace_check_amount(const struct zipccl_place *at, const char *name,
                                        double value, double most, const char *unit)
{
    if (value < 0 || (value >= 0 && value <= most))
        return ZIPCCL_OK;
    return zipccl_place_fail(at, "\"%s\" is %.9g, expected a number from 0 to %.16g%s", name, value,
                             most, unit);
}

static zipccl_status check_streams(const struct zipccl_place *at,
                                   const struct zipccl_trace_header *h)
{
    char quoted[ZIPCCL_QUOTE_SIZE];

    if (h->nstreams == 0 || h->nstreams > ZIPCCL_TRACE_MAX_STREAMS)
        return zipccl_place_fail(at, "%" PRIu32 " streams, expected 1 to %d", h->nstreams,
                                 ZIPCCL_TRACE_MAX_STREAMS);
    for (uint32_t i = 0; i < h->nstreams; i++) {
        ZIPCCL_TRY(check_name(at, "streams", h->streams[i]));
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(h->streams[i], h->streams[j]) == 0)
                return zipccl_place_fail(at, "stream %s twice, expected names to differ",
                                         zipccl_quote(quoted, h->streams[i]));
    }
    return ZIPCCL_OK;
}

static zipccl_status check_members(const struct zipccl_place *at,
                                   const struct zipccl_trace_header *h,
                                   const struct zipccl_trace_group *g, uint8_t *marks)
{
    char quoted[ZIPCCL_QUOTE_SIZE];

    memset(marks, 0, h->nranks);
    for (size_t i = 0; i < (size_t)g->nparts * g->size; i++) {
        if (g->ranks[i] >= h->nranks)
            return zipccl_place_fail(at, "rank %" PRIu32 " in group %s, expected 0 to %" PRIu32,
                                     g->ranks[i], zipccl_quote(quoted, g->name), h->nranks - 1);
        if (marks[g->ranks[i]]++)
            return zipccl_place_fail(at, "rank %" PRIu32 " twice in group %s, expected once",
                                     g->ranks[i], zipccl_quote(quoted, g->name));
    }
    return ZIPCCL_OK;
}

static zipccl_status check_groups(const struct zipccl_place *at,
                                  const struct zipccl_trace_header *h)
{
    char quoted[ZIPCCL_QUOTE_SIZE];
    zipccl_status status = ZIPCCL_OK;
    uint64_t total = 0;
    uint8_t *marks;

    if (h->ngroups > ZIPCCL_TRACE_MAX_GROUPS)
        return zipccl_place_fail(at, "%" PRIu32 " groups, expected at most %d", h->ngroups,
                                 ZIPCCL_TRACE_MAX_GROUPS);
    marks = malloc(h->nranks);
    if (marks == NULL)
        return zipccl_place_nomem(at);
    for (uint32_t i = 0; i < h->ngroups && status == ZIPCCL_OK; i++) {
        const struct zipccl_trace_group *g = &h->groups[i];

        status = check_name(at, "groups", g->name);
        if (status != ZIPCCL_OK)
            break;
        for (uint32_t j = 0; j < i && status == ZIPCCL_OK; j++)
            if (strcmp(g->name, h->groups[j].name) == 0)
                status = zipccl_place_fail(at, "group %s twice, expected names to differ",
                                           zipccl_quote(quoted, g->name));
        if (status != ZIPCCL_OK)
            break;
        total += (uint64_t)g->nparts * g->size;
        if (g->nparts == 0 || g->size == 0 || (uint64_t)g->nparts * g->size > h->nranks)
            status = zipccl_place_fail(
                at, "group %s of %" PRIu32 " x %" PRIu32 " ranks, expected 1 to %" PRIu32,
                zipccl_quote(quoted, g->name), g->nparts, g->size, h->nranks);
        else if (total > ZIPCCL_TRACE_MAX_MEMBERS)
            status = zipccl_place_fail(at, "more than %" PRIu64 " ranks in groups, expected fewer",
                                       ZIPCCL_TRACE_MAX_MEMBERS);
        else
            status = check_members(at, h, g, marks);
    }
    free(marks);
    return status;
}

static zipccl_status check_splits(const struct zipccl_place *at,
                                  const struct zipccl_trace_header *h)
{
    char quoted[ZIPCCL_QUOTE_SIZE];
    uint64_t entries = 0;

    if (h->nsplits > ZIPCCL_TRACE_MAX_SPLITS)
        return zipccl_place_fail(at, "%" PRIu32 " splits, expected at most %d", h->nsplits,
                                 ZIPCCL_TRACE_MAX_SPLITS);
    for (uint32_t i = 0; i < h->nsplits; i++) {
        const struct zipccl_trace_splits *s = &h->splits[i];

        ZIPCCL_TRY(check_name(at, "splits", s->name));
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(s->name, h->splits[j].name) == 0)
                return zipccl_place_fail(at, "splits %s twice, expected names to differ",
                                         zipccl_quote(quoted, s->name));
        if (s->size == 0 || s->size > h->nranks)
            return zipccl_place_fail(at, "splits %s of %" PRIu32 " members, expected 1 to %" PRIu32,
                                     zipccl_quote(quoted, s->name), s->size, h->nranks);
        entries += (uint64_t)s->size * s->size;
        if (entries > ZIPCCL_TRACE_MAX_MEMBERS)
            return zipccl_place_fail(at, "more than %" PRIu64 " entries in splits, expected fewer",
                                     ZIPCCL_TRACE_MAX_MEMBERS);
        for (size_t k = 0; k < (size_t)s->size * s->size; k++)
            if (s->counts[k] > ZIPCCL_JSON_MAX_INTEGER)
                return zipccl_place_fail(at, "an entry of splits %s over 2^53, expected fewer",
                                         zipccl_quote(quoted, s->name));
    }
    return ZIPCCL_OK;
}

zipccl_status zipccl_trace_check_header(const struct zipccl_place *at,
                                        const struct zipccl_trace_header *h)
{
    static const char *const origins[] = {"generated", "captured", "imported"};
    char quoted[ZIPCCL_QUOTE_SIZE];
    size_t i = 0;

    if (h->version != ZIPCCL_TRACE_VERSION) {
        zipccl_place_fail(at, "version %" PRIu32 " of the trace format, expected %d", h->version,
                          ZIPCCL_TRACE_VERSION);
        return ZIPCCL_ERR_UNSUPPORTED;
    }
    ZIPCCL_TRY(check_name(at, "name", h->name));
    ZIPCCL_TRY(check_name(at, "provenance", h->provenance));
    ZIPCCL_TRY(check_name(at, "generator", h->generator));
    while (i < 3 && strncmp(h->provenance, origins[i], strlen(origins[i])) != 0)
        i++;
    if (i == 3)
        return zipccl_place_fail(at,
                                 "\"provenance\" is %s, expected text that starts with "
                                 "generated, captured or imported",
                                 zipccl_quote(quoted, h->provenance));
    if (h->nranks == 0 || h->nranks > ZIPCCL_TRACE_MAX_RANKS)
        return zipccl_place_fail(at, "\"nranks\" is %" PRIu32 ", expected 1 to %" PRIu32, h->nranks,
                                 ZIPCCL_TRACE_MAX_RANKS);
    if (h->ranks_per_node > h->nranks ||
        (h->ranks_per_node > 0 && h->nranks % h->ranks_per_node != 0))
        return zipccl_place_fail(
            at, "\"ranks_per_node\" is %" PRIu32 ", expected a divisor of %" PRIu32,
            h->ranks_per_node, h->nranks);
    ZIPCCL_TRY(zipccl_trace_check_amount(at, "recorded_step_s", h->recorded_step_s,
                                         ZIPCCL_TRACE_MAX_SECONDS, " s"));
    if (h->tokens_per_step > ZIPCCL_JSON_MAX_INTEGER)
        return zipccl_place_fail(at, "\"tokens_per_step\" is over 2^53, expected fewer");
    if (h->samples != NULL)
        ZIPCCL_TRY(check_name(at, "samples", h->samples));
    if (h->model != NULL && h->model[0] != '\0')
        ZIPCCL_TRY(check_name(at, "model", h->model));
    ZIPCCL_TRY(check_streams(at, h));
    ZIPCCL_TRY(check_groups(at, h));
    return check_splits(at, h);
}

zipccl_status zipccl_trace_checker_init(struct zipccl_trace_checker *checker,
                                        const struct zipccl_trace_header *header,
                                        const struct zipccl_place *at)
{
    memset(checker, 0, sizeof *checker);
    checker->header = header;
    checker->capacity = 1024;
    checker->ids = calloc(checker->capacity, sizeof *checker->ids);
    checker->marks = calloc(header->nranks, 1);
    if (checker->ids == NULL || checker->marks == NULL) {
        zipccl_trace_checker_free(checker);
        return zipccl_place_nomem(at);
    }
    return ZIPCCL_OK;
}

void zipccl_trace_checker_free(struct zipccl_trace_checker *checker)
{
    free(checker->ids);
    free(checker->marks);
    memset(checker, 0, sizeof *checker);
}

/* Slot of 'id', or the free slot where it belongs (splitmix64 finalizer, linear probing). */
static size_t id_slot(const uint64_t *ids, size_t capacity, uint64_t id)
{
    uint64_t x = id + 0x9e3779b97f4a7c15u;
    size_t i;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    i = (size_t)(x ^ x >> 31) & (capacity - 1);
    while (ids[i] != 0 && ids[i] != id + 1)
        i = (i + 1) & (capacity - 1);
    return i;
}

static zipccl_status remember(struct zipccl_trace_checker *c, const struct zipccl_place *at,
                              uint64_t id)
{
    if (c->nids * 2 >= c->capacity) {
        uint64_t *ids = calloc(c->capacity * 2, sizeof *ids);

        if (ids == NULL)
            return zipccl_place_nomem(at);
        for (size_t i = 0; i < c->capacity; i++)
            if (c->ids[i] != 0)
                ids[id_slot(ids, c->capacity * 2, c->ids[i] - 1)] = c->ids[i];
        free(c->ids);
        c->ids = ids;
        c->capacity *= 2;
    }
    c->ids[id_slot(c->ids, c->capacity, id)] = id + 1;
    c->nids++;
    return ZIPCCL_OK;
}

static zipccl_status check_ids(struct zipccl_trace_checker *c, const struct zipccl_place *at,
                               const struct zipccl_event *e)
{
    if (e->id > ZIPCCL_JSON_MAX_INTEGER)
        return zipccl_place_fail(at, "\"id\" is over 2^53, expected fewer");
    if (c->ids[id_slot(c->ids, c->capacity, e->id)] != 0)
        return zipccl_place_fail(at, "id %" PRIu64 " was used before, expected a new one", e->id);
    for (uint32_t i = 0; i < e->ndeps; i++) {
        if (e->deps[i] > ZIPCCL_JSON_MAX_INTEGER ||
            c->ids[id_slot(c->ids, c->capacity, e->deps[i])] == 0)
            return zipccl_place_fail(
                at, "dependency on id %" PRIu64 ", expected the id of an earlier event",
                e->deps[i]);
    }
    return remember(c, at, e->id);
}

static zipccl_status check_ranks(const struct zipccl_trace_checker *c,
                                 const struct zipccl_place *at, const struct zipccl_event *e)
{
    for (uint32_t i = 0; i < e->nranks; i++) {
        if (e->ranks[i] >= c->header->nranks)
            return zipccl_place_fail(at, "rank %" PRIu32 ", expected 0 to %" PRIu32, e->ranks[i],
                                     c->header->nranks - 1);
        if (i > 0 && e->ranks[i] <= e->ranks[i - 1])
            return zipccl_place_fail(
                at, "rank %" PRIu32 " after %" PRIu32 ", expected ranks in rising order",
                e->ranks[i], e->ranks[i - 1]);
    }
    return ZIPCCL_OK;
}

static zipccl_status check_compute(const struct zipccl_trace_checker *c,
                                   const struct zipccl_place *at, const struct zipccl_event *e)
{
    uint32_t n = e->nranks > 0 ? e->nranks : c->header->nranks;

    ZIPCCL_TRY(
        zipccl_trace_check_amount(at, "duration_s", e->duration_s, ZIPCCL_TRACE_MAX_SECONDS, " s"));
    if (e->kind == ZIPCCL_EVENT_COMMUNICATION && e->duration_s < 0 && e->duration_by_rank_s == NULL)
        return zipccl_place_fail(at, "a communication event without time, expected duration_s or "
                                     "duration_by_rank_s");
    ZIPCCL_TRY(zipccl_trace_check_amount(at, "flops", e->flops, ZIPCCL_TRACE_MAX_FLOPS, ""));
    ZIPCCL_TRY(zipccl_trace_check_amount(at, "hbm_bytes", e->hbm_bytes,
                                         (double)ZIPCCL_JSON_MAX_INTEGER, " bytes"));
    if (e->duration_by_rank_s == NULL && e->duration_s < 0 && e->flops < 0 && e->hbm_bytes < 0)
        return zipccl_place_fail(at, "a compute event without work, expected duration_s, "
                                     "duration_by_rank_s, flops or hbm_bytes");
    if (e->duration_by_rank_s == NULL)
        return ZIPCCL_OK;
    if (e->duration_s >= 0)
        return zipccl_place_fail(at, "\"duration_s\" and \"duration_by_rank_s\", expected one");
    for (uint32_t i = 0; i < n; i++)
        if (!(e->duration_by_rank_s[i] >= 0 &&
              e->duration_by_rank_s[i] <= ZIPCCL_TRACE_MAX_SECONDS))
            return zipccl_place_fail(at,
                                     "entry %" PRIu32 " of \"duration_by_rank_s\" is %.9g, "
                                     "expected a number from 0 to %.16g s",
                                     i, e->duration_by_rank_s[i], ZIPCCL_TRACE_MAX_SECONDS);
    return ZIPCCL_OK;
}

static zipccl_status check_loop(struct zipccl_trace_checker *c, const struct zipccl_place *at,
                                const struct zipccl_event *e)
{
    if (e->kind == ZIPCCL_EVENT_LOOP_BEGIN) {
        if (c->depth == ZIPCCL_TRACE_MAX_LOOPS)
            return zipccl_place_fail(at, "loops nested more than %d deep, expected fewer",
                                     ZIPCCL_TRACE_MAX_LOOPS);
        c->loop_line[c->depth] = at->line;
        c->loop_events[c->depth++] = c->nevents;
        return ZIPCCL_OK;
    }
    if (c->depth == 0)
        return zipccl_place_fail(at, "loop_end, expected a loop_begin before it");
    c->depth--;
    /* Only the loop_begin itself was counted since. */
    if (c->nevents == c->loop_events[c->depth] + 1)
        return zipccl_place_fail(at, "an empty loop, expected events since line %" PRIu64,
                                 c->loop_line[c->depth]);
    return ZIPCCL_OK;
}

zipccl_status zipccl_trace_check_event(struct zipccl_trace_checker *c,
                                       const struct zipccl_place *at, const struct zipccl_event *e)
{
    if ((unsigned)e->kind > ZIPCCL_EVENT_COMMUNICATION)
        return zipccl_place_fail(at, "event kind %u, expected 0 to 4", (unsigned)e->kind);
    if (e->kind != ZIPCCL_EVENT_LOOP_END && (e->repeat == 0 || e->repeat > ZIPCCL_JSON_MAX_INTEGER))
        return zipccl_place_fail(at, "\"repeat\" is %" PRIu64 " in a %s, expected 1 to 2^53",
                                 e->repeat, event_kinds[e->kind]);
    if (e->kind != ZIPCCL_EVENT_LOOP_END && e->label != NULL && e->label[0] != '\0')
        ZIPCCL_TRY(check_name(at, "label", e->label));
    if (zipccl_event_runs(e)) {
        if (e->stream >= c->header->nstreams)
            return zipccl_place_fail(at, "stream %" PRIu32 ", expected 0 to %" PRIu32, e->stream,
                                     c->header->nstreams - 1);
        ZIPCCL_TRY(check_ranks(c, at, e));
        ZIPCCL_TRY(e->kind == ZIPCCL_EVENT_COLLECTIVE ? zipccl_trace_check_collective(c, at, e)
                                                      : check_compute(c, at, e));
        ZIPCCL_TRY(check_ids(c, at, e));
    } else {
        ZIPCCL_TRY(check_loop(c, at, e));
    }
    c->nevents++;
    return ZIPCCL_OK;
}

zipccl_status zipccl_trace_check_end(const struct zipccl_trace_checker *c,
                                     const struct zipccl_place *at)
{
    if (c->depth > 0)
        return zipccl_place_fail(at, "the end, expected a loop_end for the loop of line %" PRIu64,
                                 c->loop_line[c->depth - 1]);
    return ZIPCCL_OK;
}
