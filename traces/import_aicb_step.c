/*
 * import_aicb_step.c - writes AICB's rows as the events of a step, in program order
 *
 * Everything waits for what stands before it, as the program that AICB runs does; only calls that
 * are marked "overlap" run beside what follows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_aicb.h"

#include "traces/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct step {
    struct aicb_file *f;
    struct zipccl_trace_header header;
    struct zipccl_trace_writer *writer;
    uint32_t group[AICB_GROUPS]; /* of the header; its stream is one more */
    const char *bound[ZIPCCL_NUM_OPS][ZIPCCL_NUM_DTYPES];
    struct zipccl_trace_pair *pairs[2]; /* to the next stage, to the one before */
    uint64_t id, last, ncalls;
};

static zipccl_status nomem(const struct step *s)
{
    struct zipccl_place at = {s->f->importer->paths[0], 0, s->f->importer->error};

    return zipccl_place_nomem(&at);
}

static zipccl_status make_group(struct step *s, unsigned group)
{
    static const char *const names[AICB_GROUPS] = {"tp", "dp", "ep", "ep_dp", "pp", "world"};
    uint32_t size = s->f->sizes[group], stride = (uint32_t)aicb_stride(s->f, group), k = 0;
    uint32_t world = (uint32_t)s->f->world;
    struct zipccl_trace_group *g = &s->header.groups[s->header.ngroups];
    char *stream = zipccl_arena_alloc(&s->f->arena, 1, 16);

    *g = (struct zipccl_trace_group){names[group], world / size, size, NULL};
    g->ranks = zipccl_arena_alloc(&s->f->arena, world, sizeof *g->ranks);
    if (g->ranks == NULL || stream == NULL)
        return nomem(s);
    for (uint32_t block = 0; block < world; block += size * stride)
        for (uint32_t first = 0; first < stride; first++)
            for (uint32_t i = 0; i < size; i++)
                g->ranks[k++] = block + first + i * stride;
    snprintf(stream, 16, "nccl:%s", names[group]);
    s->group[group] = s->header.ngroups++;
    s->header.streams[s->header.nstreams++] = stream;
    return ZIPCCL_OK;
}

static zipccl_status make_groups(struct step *s)
{
    bool used[AICB_GROUPS + 1] = {false};

    for (size_t i = 0; i < s->f->nrows; i++)
        used[s->f->rows[i].group] |= !s->f->rows[i].init;
    s->header.groups = zipccl_arena_alloc(&s->f->arena, AICB_GROUPS, sizeof *s->header.groups);
    s->header.streams = zipccl_arena_alloc(&s->f->arena, AICB_GROUPS + 1, sizeof(char *));
    if (s->header.groups == NULL || s->header.streams == NULL)
        return nomem(s);
    s->header.streams[s->header.nstreams++] = (char *)"compute";
    for (unsigned g = 0; g < AICB_GROUPS; g++)
        if (used[g])
            ZIPCCL_TRY(make_group(s, g));
    return ZIPCCL_OK;
}

static zipccl_status make_pairs(struct step *s)
{
    uint32_t n = s->f->sizes[AICB_PP];

    for (int back = 0; back < 2; back++) {
        s->pairs[back] = zipccl_arena_alloc(&s->f->arena, n, sizeof **s->pairs);
        if (s->pairs[back] == NULL)
            return nomem(s);
        for (uint32_t i = 0; i + 1 < n; i++)
            s->pairs[back][i] = (struct zipccl_trace_pair){i + (back == 1), i + (back == 0)};
    }
    return ZIPCCL_OK;
}

static zipccl_status make_header(struct step *s)
{
    const struct zipccl_import_options *o = s->f->importer->options;
    char *model = zipccl_arena_alloc(&s->f->arena, 1, 160);

    if (model == NULL)
        return nomem(s);
    snprintf(model, 160, "AICB, %zu rows, TP %" PRIu32 ", EP %" PRIu32 ", %" PRIu64 " ranks",
             s->f->nrows, s->f->sizes[AICB_TP], s->f->sizes[AICB_EP], s->f->world);
    s->header = (struct zipccl_trace_header){
        .version = 1,
        .name = zipccl_import_trace_name(s->f->importer, &s->f->arena, "aicb"),
        .model = model,
        .provenance = "imported from a list of calls of AICB; sizes as in the file, types assumed",
        .generator = "traces/import_aicb 1",
        .nranks = (uint32_t)s->f->world,
        .ranks_per_node = o->ranks_per_node,
        .recorded_step_s = -1,
        .samples = o->samples};
    ZIPCCL_TRY(make_groups(s));
    return make_pairs(s);
}

static const char *label_of(const struct aicb_row *row)
{
    return row->stage[0] != '\0' && zipccl_text_printable(row->stage) &&
                   zipccl_utf8_valid(row->stage, strlen(row->stage))
               ? row->stage
               : NULL;
}

static zipccl_status put(struct step *s, struct zipccl_event *event, const struct aicb_row *row)
{
    event->id = ++s->id;
    event->label = label_of(row);
    event->repeat = row->repeat;
    event->ndeps = s->last > 0;
    event->deps = &s->last;
    ZIPCCL_TRY(zipccl_trace_write(s->writer, event, s->f->importer->error));
    if (event->kind == ZIPCCL_EVENT_COMPUTE || !row->overlap)
        s->last = s->id;
    return ZIPCCL_OK;
}

static zipccl_status put_compute(struct step *s, const struct aicb_row *row)
{
    struct zipccl_event event = {.kind = ZIPCCL_EVENT_COMPUTE,
                                 .duration_s = row->seconds,
                                 .flops = row->seconds < 0 ? row->flops : -1,
                                 .hbm_bytes = -1,
                                 .recorded_s = -1,
                                 .splits = -1};

    if (row->seconds < 0 && row->flops < 0)
        return ZIPCCL_OK;
    return put(s, &event, row);
}

static zipccl_status put_call(struct step *s, const struct aicb_row *row)
{
    uint32_t size = s->f->sizes[row->group];
    struct aicb_call call;
    struct zipccl_event event = {.kind = ZIPCCL_EVENT_COLLECTIVE,
                                 .redop = ZIPCCL_SUM,
                                 .duration_s = -1,
                                 .flops = -1,
                                 .hbm_bytes = -1,
                                 .recorded_s = row->seconds,
                                 .splits = -1};
    char *sample;

    if (!aicb_call_of(s->f, row, &call) || (call.op == ZIPCCL_SENDRECV && size < 2))
        return ZIPCCL_OK;
    event.op = call.op;
    event.dtype = call.dtype;
    event.count = call.count;
    event.group = s->group[row->group];
    event.stream = event.group + 1;
    if (call.op == ZIPCCL_BROADCAST)
        event.root = row->root < size ? row->root : 0;
    if (call.op == ZIPCCL_SENDRECV) {
        event.npairs = size - 1;
        event.pairs = s->pairs[row->backward];
    }
    sample = (char *)s->bound[call.op][call.dtype];
    if (sample != NULL) {
        event.nsamples = 1;
        event.samples = &sample;
    }
    s->ncalls += row->repeat;
    return put(s, &event, row);
}

static zipccl_status put_rows(struct step *s)
{
    struct zipccl_place at = {s->f->importer->paths[0], 0, s->f->importer->error};

    for (size_t i = 0; i < s->f->nrows; i++) {
        const struct aicb_row *row = &s->f->rows[i];

        if (row->init || row->type == AICB_EPOCH_END)
            continue;
        ZIPCCL_TRY(row->type == AICB_COMPUTATION ? put_compute(s, row) : put_call(s, row));
    }
    if (s->ncalls > 0)
        return ZIPCCL_OK;
    return zipccl_place_fail(&at, "no row after the initialization calls a collective, expected "
                                  "one or more");
}

zipccl_status aicb_write(struct aicb_file *f, uint64_t *ncalls)
{
    struct zipccl_error *error = f->importer->error;
    struct step s = {.f = f};
    zipccl_status status;

    ZIPCCL_TRY(make_header(&s));
    ZIPCCL_TRY(zipccl_import_bind_samples(f->importer, s.bound));
    ZIPCCL_TRY(zipccl_trace_writer_open(f->importer->out_path, &s.header, &s.writer, error));
    status = put_rows(&s);
    *ncalls = s.ncalls;
    if (status == ZIPCCL_OK)
        return zipccl_trace_writer_finish(s.writer, true, error);
    zipccl_trace_writer_finish(s.writer, false, NULL);
    return status;
}
