/*
 * import_kineto_read.h - the event that is being read from a profiler file
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_IMPORT_KINETO_READ_H
#define ZIPCCL_TRACES_IMPORT_KINETO_READ_H

#include "traces/import_kineto.h"

/* Keys that mean something; those of arguments after those of events. */
enum kineto_key {
    KINETO_KEY_NONE,
    KINETO_KEY_PH,
    KINETO_KEY_CAT,
    KINETO_KEY_NAME,
    KINETO_KEY_TS,
    KINETO_KEY_DUR,
    KINETO_KEY_PID,
    KINETO_KEY_TID,
    KINETO_KEY_ARGS,
    KINETO_KEY_CORRELATION,
    KINETO_KEY_STREAM,
    KINETO_KEY_WAIT_ON,
    KINETO_KEY_COLL,
    KINETO_KEY_DTYPE,
    KINETO_KEY_IN,
    KINETO_KEY_OUT,
    KINETO_KEY_SIZE,
    KINETO_KEY_IN_SPLIT,
    KINETO_KEY_PG_NAME,
    KINETO_KEY_PG_DESC,
    KINETO_KEY_PG_RANKS,
    KINETO_KEY_FIRST,
    KINETO_KEY_STRIDE,
    KINETO_KEY_SEQ,
    KINETO_KEY_SRC,
    KINETO_KEY_DST,
    KINETO_KEY_DIMS,
    KINETO_KEY_TYPES,
    KINETO_NUM_KEYS
};

/* Texts are kept as they come; numbers beside them. */
struct kineto_value {
    bool given, number;
    size_t nbytes, room;
    char *text;
};

struct kineto_event {
    uint64_t line;
    struct kineto_value values[KINETO_NUM_KEYS];
    uint64_t dims; /* elements of the first tensor of "Input Dims" */
    bool has_dims, first_dims_done;
    char type[32]; /* the first of "Input type" */
};

/* Take one event into 'file'; 'intern' keeps texts once. */
struct kineto_texts;
zipccl_status kineto_take_event(struct kineto_file *file, struct kineto_texts *texts,
                                const struct kineto_event *event, struct zipccl_error *error);

/* Texts that stand in an arena once. */
struct kineto_texts {
    struct zipccl_arena *arena;
    size_t n, room;
    const char **slots;
};

const char *kineto_intern(struct kineto_texts *texts, const char *text);
void kineto_texts_free(struct kineto_texts *texts);

/* "1234.567" microseconds to nanoseconds; false if it is no number of sensible size. */
bool kineto_nanoseconds(const char *text, int64_t *out);

#endif
