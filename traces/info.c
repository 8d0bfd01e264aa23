/*
 * info.c - adds up what a trace holds
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/info.h"

#include "traces/safetensors.h"
#include "traces/trace_internal.h"

#include <stdlib.h>
#include <string.h>

/* While reading: how often the current line runs, and the room of the growing arrays. */
struct state {
    struct zipccl_trace_info *info;
    const struct zipccl_trace_header *header;
    uint64_t times[ZIPCCL_TRACE_MAX_LOOPS + 1];
    unsigned depth;
    size_t row_capacity, sample_capacity;
    bool overflow, nomem;
};

uint64_t zipccl_trace_event_nbytes(const struct zipccl_trace_header *header,
                                   const struct zipccl_event *event)
{
    const struct zipccl_trace_group *g = &header->groups[event->group];
    uint64_t element = zipccl_dtype_size(event->dtype), sum = 0, rest = 0;
    const struct zipccl_trace_splits *s;

    switch (event->op) {
    case ZIPCCL_ALL_GATHER:
    case ZIPCCL_REDUCE_SCATTER:
    case ZIPCCL_ALLTOALL: return event->count * g->size * element;
    case ZIPCCL_ALLTOALLV:
        s = &header->splits[event->splits];
        /* Divided one by one, as the sum of all could pass 2^64. */
        for (size_t i = 0; i < (size_t)s->size * s->size; i++) {
            sum += s->counts[i] / s->size;
            rest += s->counts[i] % s->size;
        }
        return (sum + rest / s->size) * element;
    default: return event->count * element;
    }
}

static uint64_t multiply(struct state *st, uint64_t a, uint64_t b)
{
    if (b != 0 && a > UINT64_MAX / b) {
        st->overflow = true;
        return 0;
    }
    return a * b;
}

static void add(struct state *st, uint64_t *sum, uint64_t value)
{
    if (value > UINT64_MAX - *sum)
        st->overflow = true;
    else
        *sum += value;
}

/* Make room for one more at 'index' of an array; NULL if memory is out. */
static void *insert(void *array, size_t *n, size_t *capacity, size_t index, size_t size)
{
    unsigned char *bytes = array;

    if (*n == *capacity) {
        size_t room = *capacity > 0 ? *capacity * 2 : 16;

        bytes = realloc(bytes, room * size);
        if (bytes == NULL)
            return NULL;
        *capacity = room;
    }
    memmove(bytes + (index + 1) * size, bytes + index * size, (*n - index) * size);
    memset(bytes + index * size, 0, size);
    (*n)++;
    return bytes;
}

static int compare_row(const struct zipccl_trace_info_row *row, const struct zipccl_event *e)
{
    if (row->op != e->op)
        return row->op < e->op ? -1 : 1;
    if (row->group != e->group)
        return row->group < e->group ? -1 : 1;
    if (row->dtype != e->dtype)
        return row->dtype < e->dtype ? -1 : 1;
    return row->count < e->count ? -1 : row->count > e->count;
}

static struct zipccl_trace_info_row *find_row(struct state *st, const struct zipccl_event *e)
{
    struct zipccl_trace_info *info = st->info;
    size_t low = 0, high = info->nrows;
    struct zipccl_trace_info_row *rows;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_row(&info->rows[middle], e);

        if (order == 0)
            return &info->rows[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    rows = insert(info->rows, &info->nrows, &st->row_capacity, low, sizeof *rows);
    if (rows == NULL)
        return NULL;
    info->rows = rows;
    rows += low;
    rows->op = e->op;
    rows->group = e->group;
    rows->dtype = e->dtype;
    rows->count = e->count;
    return rows;
}

static bool add_sample(struct state *st, const char *name)
{
    struct zipccl_trace_info *info = st->info;
    size_t low = 0, high = info->nsamples;
    struct zipccl_trace_info_sample *samples;
    char *copy;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(info->samples[middle].name, name);

        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    copy = malloc(strlen(name) + 1);
    if (copy == NULL)
        return false;
    samples = insert(info->samples, &info->nsamples, &st->sample_capacity, low, sizeof *samples);
    if (samples == NULL) {
        free(copy);
        return false;
    }
    strcpy(copy, name);
    info->samples = samples;
    samples[low].name = copy;
    return true;
}

static void add_compute(struct state *st, const struct zipccl_event *e, uint64_t times)
{
    struct zipccl_trace_info *info = st->info;
    double longest = e->duration_s;

    if (e->duration_by_rank_s != NULL)
        for (uint32_t i = 0; i < (e->nranks > 0 ? e->nranks : st->header->nranks); i++)
            if (e->duration_by_rank_s[i] > longest)
                longest = e->duration_by_rank_s[i];
    if (e->kind == ZIPCCL_EVENT_COMMUNICATION) {
        add(st, &info->ncommunication, times);
        info->communication_s += longest * (double)times;
        return;
    }
    add(st, &info->ncompute, times);
    if (e->flops >= 0) {
        info->flops += e->flops * (double)times;
        add(st, &info->nwith_flops, times);
    }
    if (e->hbm_bytes >= 0)
        info->hbm_bytes += e->hbm_bytes * (double)times;
    if (longest >= 0) {
        info->duration_s += longest * (double)times;
        add(st, &info->nwith_duration, times);
    }
}

static void add_collective(struct state *st, const struct zipccl_event *e, uint64_t times)
{
    struct zipccl_trace_info_row *row = find_row(st, e);
    uint64_t nbytes = multiply(st, zipccl_trace_event_nbytes(st->header, e), times);

    if (row == NULL) {
        st->nomem = true;
        return;
    }
    add(st, &st->info->ncollective, times);
    add(st, &st->info->nbytes, nbytes);
    add(st, &row->calls, times);
    add(st, &row->nbytes, nbytes);
    if (e->recorded_s >= 0) {
        add(st, &row->ncalls_recorded, times);
        row->recorded_s += e->recorded_s * (double)times;
        st->info->recorded_s += e->recorded_s * (double)times;
    }
    if (e->nsamples > 0)
        add(st, &row->ncalls_with_samples, times);
    for (uint32_t i = 0; i < e->nsamples; i++)
        st->nomem = !add_sample(st, e->samples[i]) || st->nomem;
}

static void add_event(struct state *st, const struct zipccl_event *e)
{
    st->info->nevents++;
    switch (e->kind) {
    case ZIPCCL_EVENT_LOOP_BEGIN:
        st->times[st->depth + 1] = multiply(st, st->times[st->depth], e->repeat);
        st->depth++;
        break;
    case ZIPCCL_EVENT_LOOP_END: st->depth--; break;
    case ZIPCCL_EVENT_COMPUTE:
    case ZIPCCL_EVENT_COMMUNICATION:
        add_compute(st, e, multiply(st, st->times[st->depth], e->repeat));
        break;
    case ZIPCCL_EVENT_COLLECTIVE:
        add_collective(st, e, multiply(st, st->times[st->depth], e->repeat));
        break;
    }
}

static zipccl_status look_up_samples(const struct zipccl_trace_reader *reader,
                                     struct zipccl_trace_info *info, struct zipccl_error *error)
{
    const char *path = zipccl_trace_samples_path(reader);
    const struct zipccl_safetensors *file;
    zipccl_status status;

    if (path == NULL)
        return ZIPCCL_OK;
    status = zipccl_safetensors_open(path, &file, error);
    if (status == ZIPCCL_ERR_IO && error != NULL) {
        struct zipccl_error reason = *error;

        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%.400s (the samples file of the trace)",
                           reason.text);
    }
    ZIPCCL_TRY(status);
    info->ntensors = file->ntensors;
    info->tensor_nbytes = file->data_nbytes;
    for (size_t i = 0; i < info->nsamples; i++) {
        struct zipccl_trace_info_sample *s = &info->samples[i];
        const struct zipccl_tensor *t;
        size_t position = 0;

        while ((t = zipccl_safetensors_match(file, s->name, &position)) != NULL) {
            s->ntensors++;
            s->nbytes += t->nbytes;
        }
        info->nmissing += s->ntensors == 0;
    }
    zipccl_safetensors_close(file);
    return ZIPCCL_OK;
}

static zipccl_status read_all(struct zipccl_trace_reader *reader, struct state *st,
                              struct zipccl_error *error)
{
    struct zipccl_place at = {zipccl_trace_path(reader), 0, error};
    const struct zipccl_event *event;

    for (;;) {
        ZIPCCL_TRY(zipccl_trace_next(reader, &event, error));
        if (event == NULL)
            break;
        add_event(st, event);
        if (st->nomem)
            return zipccl_place_nomem(&at);
        at.line = zipccl_trace_line(reader);
        if (st->overflow)
            return zipccl_place_fail(&at, "sums over 2^64 after loops and repeats, expected fewer");
    }
    if (st->info->ncompute + st->info->ncollective + st->info->ncommunication == 0)
        return zipccl_place_fail(&at, "a trace without events, expected one or more");
    return look_up_samples(reader, st->info, error);
}

zipccl_status zipccl_trace_info_read(struct zipccl_trace_reader *reader,
                                     struct zipccl_trace_info *info, struct zipccl_error *error)
{
    struct state st = {.info = info, .header = zipccl_trace_header(reader), .times = {1}};
    zipccl_status status;

    memset(info, 0, sizeof *info);
    status = read_all(reader, &st, error);
    if (status != ZIPCCL_OK)
        zipccl_trace_info_free(info);
    return status;
}

void zipccl_trace_info_free(struct zipccl_trace_info *info)
{
    for (size_t i = 0; i < info->nsamples; i++)
        free(info->samples[i].name);
    free(info->samples);
    free(info->rows);
    memset(info, 0, sizeof *info);
}
