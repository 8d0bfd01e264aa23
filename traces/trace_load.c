/*
 * trace_load.c - a whole trace in memory
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/trace_internal.h"

#include <stdlib.h>

/* What zipccl_trace_load() returns is the first member; everything else hangs on it. */
struct owner {
    struct zipccl_trace trace;
    struct zipccl_arena header_arena, event_arena;
};

static zipccl_status load_events(struct zipccl_trace_reader *reader, struct owner *owner,
                                 struct zipccl_error *error)
{
    size_t capacity = 0;

    for (;;) {
        struct zipccl_event event;
        bool end;

        ZIPCCL_TRY(zipccl_trace_read_into(reader, &owner->event_arena, &event, &end, error));
        if (end)
            return ZIPCCL_OK;
        if (owner->trace.nevents == capacity) {
            struct zipccl_event *events;

            capacity = capacity > 0 ? capacity * 2 : 64;
            events = realloc(owner->trace.events, capacity * sizeof *events);
            if (events == NULL)
                return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory for %zu events",
                                   capacity);
            owner->trace.events = events;
        }
        owner->trace.events[owner->trace.nevents++] = event;
    }
}

zipccl_status zipccl_trace_load(const char *path, struct zipccl_trace **out,
                                struct zipccl_error *error)
{
    struct zipccl_trace_reader *reader;
    struct owner *owner;
    zipccl_status status;

    ZIPCCL_TRY(zipccl_trace_open(path, &reader, error));
    owner = calloc(1, sizeof *owner);
    status = owner != NULL ? load_events(reader, owner, error)
                           : zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
    if (status == ZIPCCL_OK) {
        zipccl_trace_reader_give(reader, &owner->header_arena, &owner->trace.header,
                                 &owner->trace.path, &owner->trace.samples_path);
        *out = &owner->trace;
    } else if (owner != NULL) {
        zipccl_trace_destroy(&owner->trace);
    }
    zipccl_trace_close(reader);
    return status;
}

void zipccl_trace_destroy(struct zipccl_trace *trace)
{
    struct owner *owner = (struct owner *)trace;

    if (owner == NULL)
        return;
    zipccl_arena_free(&owner->header_arena);
    zipccl_arena_free(&owner->event_arena);
    free(trace->events);
    free(trace->path);
    free(trace->samples_path);
    free(owner);
}
