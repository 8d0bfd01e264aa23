/*
 * import_simai_step.c - writes a SimAI workload as the events of one training step
 *
 * In SimAI's order: all layers forward, then backward in reverse; a layer's backward pass is input
 * gradient, then weight gradient.  Calls of the forward pass and of input gradients block, those
 * of weight gradients run beside what follows, in a stream of their own.  Micro-batches are a
 * loop.  With pipeline stages each has its own copy of the loop's body, so that a stage waits for
 * its neighbour and for nobody else; the bubble follows from that.
 *
 * Nothing in a loop can depend on the iteration before but by the order of a stream: so a body
 * starts in the compute stream and ends there, with an empty compute event where need be.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_simai.h"

#include <stdio.h>

static const char *const phase_names[SIMAI_PHASES] = {"fwd", "ig", "wg"};

/* Where the writing stands: the events of one stage, or of all ranks, in one body. */
struct step {
    const struct simai_workload *w;
    struct simai_output *out;
    uint64_t id;            /* of the event written last */
    uint64_t repeat;        /* of the loop around */
    uint32_t first, nranks; /* ranks that run it; 'nranks' 0: all */
    uint64_t last;          /* what the next event waits for; 0: nothing */
    bool blocked;           /* 'last' is in another stream than compute */
    bool fresh;             /* no compute event in this body yet */
};

static zipccl_status put(struct step *s, struct zipccl_event *event)
{
    const struct zipccl_importer *importer = s->w->importer;

    event->id = ++s->id;
    event->repeat = 1;
    event->splits = -1;
    event->recorded_s = event->flops = event->hbm_bytes = -1;
    event->nranks = s->nranks;
    event->ranks = s->nranks > 0 ? (uint32_t *)s->out->ranks + s->first : NULL;
    return zipccl_trace_write(s->out->writer, event, importer->error);
}

static zipccl_status put_compute(struct step *s, const char *label, double seconds)
{
    struct zipccl_event event = {.kind = ZIPCCL_EVENT_COMPUTE,
                                 .label = label,
                                 .duration_s = seconds,
                                 .ndeps = s->blocked,
                                 .deps = &s->last};

    ZIPCCL_TRY(put(s, &event));
    s->last = s->id;
    s->blocked = s->fresh = false;
    return ZIPCCL_OK;
}

/* The end of a body: what blocks must be over. */
static zipccl_status join(struct step *s)
{
    return s->blocked ? put_compute(s, "wait", 0) : ZIPCCL_OK;
}

static void begin_body(struct step *s, uint32_t first, uint32_t nranks)
{
    s->first = first;
    s->nranks = nranks;
    s->last = 0;
    s->blocked = false;
    s->fresh = true;
}

static zipccl_status put_collective(struct step *s, const char *label, enum simai_set set,
                                    const struct simai_collective *c, int phase, bool blocks)
{
    struct simai_output *out = s->out;
    char **sample = &out->sample[phase][c->op];
    struct zipccl_trace_pair pair = {phase != SIMAI_FWD, phase == SIMAI_FWD};
    struct zipccl_event event = {.kind = ZIPCCL_EVENT_COLLECTIVE,
                                 .label = label,
                                 .stream = out->stream[set],
                                 .op = c->op,
                                 .dtype = c->dtype,
                                 .redop = ZIPCCL_SUM,
                                 .group = out->group[set],
                                 .count = c->count,
                                 .duration_s = -1};

    if (s->fresh)
        ZIPCCL_TRY(put_compute(s, "start", 0));
    event.ndeps = 1;
    event.deps = &s->last;
    if (c->op == ZIPCCL_SENDRECV) {
        event.npairs = 1;
        event.pairs = &pair;
    }
    if (*sample != NULL && out->sample_dtype[phase][c->op] == c->dtype) {
        event.nsamples = 1;
        event.samples = sample;
    }
    ZIPCCL_TRY(put(s, &event));
    if (s->first == 0)
        out->ncalls += s->repeat;
    if (blocks) {
        s->last = s->id;
        s->blocked = true;
    }
    return ZIPCCL_OK;
}

static zipccl_status put_part(struct step *s, const struct simai_row *row, int phase,
                              const char *suffix, bool blocks)
{
    const struct simai_part *part = &row->part[phase];
    struct simai_collective c[2];
    unsigned n = simai_collectives(s->w, row, phase, c);
    char label[256];

    snprintf(label, sizeof label, "%s %s%s", row->name, phase_names[phase], suffix);
    if (part->ns > 0)
        ZIPCCL_TRY(put_compute(s, label, part->ns * 1e-9));
    for (unsigned i = 0; i < n; i++)
        ZIPCCL_TRY(put_collective(s, label, (enum simai_set)part->set, &c[i], phase, blocks));
    return ZIPCCL_OK;
}

static zipccl_status put_forward(struct step *s, size_t first, size_t n)
{
    for (size_t i = first; i < first + n; i++)
        ZIPCCL_TRY(put_part(s, &s->w->rows[i], SIMAI_FWD, "", true));
    return ZIPCCL_OK;
}

static zipccl_status put_backward(struct step *s, size_t first, size_t n)
{
    for (size_t i = first + n; i-- > first;) {
        const struct simai_row *row = &s->w->rows[i];

        for (size_t k = i - row->recompute; k < i; k++)
            ZIPCCL_TRY(put_part(s, &s->w->rows[k], SIMAI_FWD, " again", true));
        ZIPCCL_TRY(put_part(s, row, SIMAI_IG, "", true));
        ZIPCCL_TRY(put_part(s, row, SIMAI_WG, "", false));
    }
    return ZIPCCL_OK;
}

/* Rows of all ranks, outside of the loops. */
static zipccl_status put_all(struct step *s, bool backward, size_t first, size_t n)
{
    return backward ? put_backward(s, first, n) : put_forward(s, first, n);
}

/* Send from the stage that 's' is at to the next one, 'boundary' being the lower of both. */
static zipccl_status put_send(struct step *s, uint32_t boundary, bool backward)
{
    struct simai_collective c = simai_pipeline_send(s->w);
    uint32_t stage = (uint32_t)(s->w->all_gpus / s->w->pp), own = s->first;

    /* The head of an empty body runs on the sender alone. */
    if (s->fresh)
        ZIPCCL_TRY(put_compute(s, "start", 0));
    s->first = boundary * stage;
    s->nranks = 2 * stage;
    ZIPCCL_TRY(put_collective(s, backward ? "pipeline ig" : "pipeline fwd",
                              boundary % 2 == 0 ? SIMAI_PP_EVEN : SIMAI_PP_ODD, &c,
                              backward ? SIMAI_IG : SIMAI_FWD, true));
    s->first = own;
    s->nranks = stage;
    return ZIPCCL_OK;
}

/* A micro-batch, its rows from 'first' on, on every stage, in the order in which it travels. */
static zipccl_status put_stages(struct step *s, bool backward, size_t first)
{
    const struct simai_workload *w = s->w;
    uint32_t pp = (uint32_t)w->pp, stage = (uint32_t)(w->all_gpus / w->pp);
    uint64_t received = 0;

    for (uint32_t k = 0; k < pp; k++) {
        uint32_t at = backward ? pp - 1 - k : k;

        begin_body(s, at * stage, stage);
        s->last = received;
        s->blocked = k > 0;
        ZIPCCL_TRY(put_all(s, backward, first, w->block_rows));
        if (k + 1 < pp) {
            ZIPCCL_TRY(put_send(s, backward ? at - 1 : at, backward));
            received = s->id;
        }
        ZIPCCL_TRY(join(s));
    }
    return ZIPCCL_OK;
}

static zipccl_status put_loop_line(struct step *s, enum zipccl_event_kind kind)
{
    struct zipccl_event event = {.kind = kind, .repeat = s->repeat, .splits = -1};

    if (kind == ZIPCCL_EVENT_LOOP_BEGIN)
        event.label = "micro-batch";
    return zipccl_trace_write(s->out->writer, &event, s->w->importer->error);
}

static zipccl_status put_run(struct step *s, bool backward, const struct simai_run *run)
{
    const struct simai_workload *w = s->w;
    uint64_t before = s->id;

    s->repeat = run->repeat;
    if (s->repeat > 1)
        ZIPCCL_TRY(put_loop_line(s, ZIPCCL_EVENT_LOOP_BEGIN));
    if (simai_has_pipeline(w)) {
        ZIPCCL_TRY(put_stages(s, backward, run->first));
    } else {
        begin_body(s, 0, 0);
        ZIPCCL_TRY(put_all(s, backward, run->first, w->block_rows));
        ZIPCCL_TRY(join(s));
    }
    begin_body(s, 0, 0);
    if (s->id == before) /* a loop may not be empty */
        ZIPCCL_TRY(put_compute(s, "wait", 0));
    if (s->repeat > 1)
        ZIPCCL_TRY(put_loop_line(s, ZIPCCL_EVENT_LOOP_END));
    s->repeat = 1;
    begin_body(s, 0, 0);
    return ZIPCCL_OK;
}

static zipccl_status put_micro_batches(struct step *s, bool backward)
{
    const struct simai_workload *w = s->w;

    if (w->nruns > 0)
        ZIPCCL_TRY(join(s));
    for (size_t i = 0; i < w->nruns; i++)
        ZIPCCL_TRY(put_run(s, backward, &w->runs[backward ? w->nruns - 1 - i : i]));
    return ZIPCCL_OK;
}

static zipccl_status put_micro_benchmark(struct step *s)
{
    for (size_t i = 0; i < s->w->nrows; i++)
        ZIPCCL_TRY(put_part(s, &s->w->rows[i], SIMAI_WG, "", true));
    return ZIPCCL_OK;
}

zipccl_status simai_write_step(const struct simai_workload *w, struct simai_output *out)
{
    struct step s = {.w = w, .out = out, .repeat = 1};
    size_t tail = w->block_end;

    begin_body(&s, 0, 0);
    if (w->mode == SIMAI_MODE_MICRO)
        return put_micro_benchmark(&s);
    ZIPCCL_TRY(put_all(&s, false, 0, w->block));
    ZIPCCL_TRY(put_micro_batches(&s, false));
    ZIPCCL_TRY(put_all(&s, false, tail, w->nrows - tail));
    if (w->mode == SIMAI_MODE_INFERENCE)
        return ZIPCCL_OK;
    ZIPCCL_TRY(put_all(&s, true, tail, w->nrows - tail));
    ZIPCCL_TRY(put_micro_batches(&s, true));
    return put_all(&s, true, 0, w->block);
}
