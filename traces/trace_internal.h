/*
 * trace_internal.h - what the trace reader, writer and loader share
 *
 * The rules of TRACE.md that do not depend on JSON are checked here on the structs, so that the
 * writer refuses exactly what the reader does.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_TRACE_INTERNAL_H
#define ZIPCCL_TRACES_TRACE_INTERNAL_H

#include "traces/arena.h"
#include "traces/json.h"
#include "traces/trace.h"

#define ZIPCCL_TRACE_FORMAT  "zipccl-trace"
#define ZIPCCL_TRACE_VERSION 1

/* Bounds of TRACE.md, section "Limits". */
#define ZIPCCL_TRACE_MAX_RANKS   ((uint32_t)1 << 20)
#define ZIPCCL_TRACE_MAX_STREAMS 256
#define ZIPCCL_TRACE_MAX_MEMBERS ((uint64_t)1 << 24) /* ranks of all groups, entries of splits */
#define ZIPCCL_TRACE_MAX_GROUPS  4096
#define ZIPCCL_TRACE_MAX_SPLITS  16384
#define ZIPCCL_TRACE_MAX_LOOPS   16
#define ZIPCCL_TRACE_MAX_SECONDS 1e6 /* eleven days: no step takes as long */
#define ZIPCCL_TRACE_MAX_FLOPS   1e21

/* Kinds of lines: the event kinds, then the end record. */
#define ZIPCCL_TRACE_LINE_END 5

/* What must be remembered of earlier lines to check the next. */
struct zipccl_trace_checker {
    const struct zipccl_trace_header *header;
    uint64_t *ids; /* [capacity] open addressing; slot holds id + 1, 0 is free */
    size_t nids, capacity;
    uint64_t nevents; /* lines, loops included */
    unsigned depth;
    uint64_t loop_line[ZIPCCL_TRACE_MAX_LOOPS], loop_events[ZIPCCL_TRACE_MAX_LOOPS];
    uint8_t *marks; /* [header nranks] scratch, zero between calls */
};

/* Check a header; 'at' names the place in errors. */
zipccl_status zipccl_trace_check_header(const struct zipccl_place *at,
                                        const struct zipccl_trace_header *header);

/* 'header' is borrowed. */
zipccl_status zipccl_trace_checker_init(struct zipccl_trace_checker *checker,
                                        const struct zipccl_trace_header *header,
                                        const struct zipccl_place *at);
void zipccl_trace_checker_free(struct zipccl_trace_checker *checker);

/* Check the next event and remember it. */
zipccl_status zipccl_trace_check_event(struct zipccl_trace_checker *checker,
                                       const struct zipccl_place *at,
                                       const struct zipccl_event *event);

/* Check that a number is within [0, 'most']; below 0 it was not given.  'unit' is for the error. */
zipccl_status zipccl_trace_check_amount(const struct zipccl_place *at, const char *name,
                                        double value, double most, const char *unit);

/* Check that a trace may end here. */
zipccl_status zipccl_trace_check_end(const struct zipccl_trace_checker *checker,
                                     const struct zipccl_place *at);

/* Check what only collectives have (trace_check_coll.c); 'checker' gives header and scratch. */
zipccl_status zipccl_trace_check_collective(struct zipccl_trace_checker *checker,
                                            const struct zipccl_place *at,
                                            const struct zipccl_event *event);

/* Turn the parsed first line into a header in 'arena'; checks it. */
zipccl_status zipccl_trace_parse_header(const struct zipccl_place *at,
                                        const struct zipccl_json *line, struct zipccl_arena *arena,
                                        struct zipccl_trace_header *out);

/*
 * Turn a parsed line into an event in 'arena', types and keys checked.  '*kind' is an event kind
 * or ZIPCCL_TRACE_LINE_END, then '*nevents' is the count of the end record.
 */
zipccl_status zipccl_trace_parse_line(const struct zipccl_place *at, const struct zipccl_json *line,
                                      const struct zipccl_trace_header *header,
                                      struct zipccl_arena *arena, struct zipccl_event *event,
                                      unsigned *kind, uint64_t *nevents);

/* The collective's keys (trace_parse_coll.c), sorted as ZIPCCL_KEY_* below. */
zipccl_status zipccl_trace_parse_collective(const struct zipccl_place *at,
                                            const struct zipccl_json **values,
                                            const struct zipccl_trace_header *header,
                                            struct zipccl_arena *arena, struct zipccl_event *event);

enum {
    ZIPCCL_KEY_KIND,
    ZIPCCL_KEY_ID,
    ZIPCCL_KEY_STREAM,
    ZIPCCL_KEY_REPEAT,
    ZIPCCL_KEY_LABEL,
    ZIPCCL_KEY_DEPS,
    ZIPCCL_KEY_RANKS,
    ZIPCCL_KEY_DURATION,
    ZIPCCL_KEY_DURATIONS,
    ZIPCCL_KEY_FLOPS,
    ZIPCCL_KEY_HBM,
    ZIPCCL_KEY_OP,
    ZIPCCL_KEY_GROUP,
    ZIPCCL_KEY_DTYPE,
    ZIPCCL_KEY_COUNT,
    ZIPCCL_KEY_REDOP,
    ZIPCCL_KEY_ROOT,
    ZIPCCL_KEY_SPLITS,
    ZIPCCL_KEY_PAIRS,
    ZIPCCL_KEY_RECORDED,
    ZIPCCL_KEY_SAMPLES,
    ZIPCCL_KEY_EVENTS,
    ZIPCCL_NUM_KEYS
};

/* Read the next event into 'arena'; '*end' tells that there is none. */
zipccl_status zipccl_trace_read_into(struct zipccl_trace_reader *reader, struct zipccl_arena *arena,
                                     struct zipccl_event *event, bool *end,
                                     struct zipccl_error *error);

/* Hand the header's memory and the samples path (malloc) over to the caller. */
void zipccl_trace_reader_give(struct zipccl_trace_reader *reader, struct zipccl_arena *arena,
                              struct zipccl_trace_header *header, char **path, char **samples_path);

#endif
