/*
 * stage.c - communicators and calls of a program at message level
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/stage.h"

#include <stdlib.h>
#include <string.h>

/* What a rank's exec asks for the sizes of: the set of its current call. */
struct rank_sizes {
    struct zipccl_samples *samples;
    uint32_t set;
};

/* A communicator in use on one stream. */
struct stage_comm {
    struct zipccl_t2_comm comm;
    struct zipccl_topology *topology; /* owned */
    struct rank_sizes *contexts;      /* [nranks] */
    struct zipccl_sim_sizes *sizes;   /* [nranks] */
};

struct zipccl_stage {
    const struct zipccl_program *program;
    const struct zipccl_pricing *pricing;
    int mode;
    struct zipccl_samples *samples;
    struct zipccl_t2_world *world;
    struct stage_comm ***comms; /* [ngroups][nparts * nstreams] */
    char *nowhere;              /* addresses for every user buffer, hardly touched */
    size_t nowhere_bytes;       /* of a send or receive buffer */
};

static void message_bytes(void *context, enum zipccl_effort effort, size_t n, uint32_t nsummed,
                          size_t *mean, size_t *longest)
{
    const struct rank_sizes *r = context;

    zipccl_samples_bytes(r->samples, r->set, effort, n, nsummed, mean, longest);
}

/* Messages of one run of 'plan', at most. */
static double plan_messages(const struct zipccl_plan *plan)
{
    double n = plan->nranks, messages = 0;

    for (uint32_t i = 0; i < plan->nsteps; i++) {
        const struct zipccl_step *s = &plan->steps[i];
        bool wire = s->kind == ZIPCCL_STEP_EXCHANGE || s->kind == ZIPCCL_STEP_NATIVE ||
                    s->kind == ZIPCCL_STEP_SIZES;

        if (wire && s->raw_of == ZIPCCL_STEP_NONE)
            messages += n * (n - 1) * (s->lowering == ZIPCCL_LOWER_RING ? s->channels : 1) *
                        (plan->op == ZIPCCL_ALL_REDUCE ? 2 : 1);
    }
    return messages;
}

static size_t buffer_bytes(const struct zipccl_plan *plan)
{
    return plan->count * plan->nranks * zipccl_dtype_size((enum zipccl_dtype)plan->dtype);
}

/* Count messages, and find the largest buffer. */
static zipccl_status survey(struct zipccl_stage *stage, struct zipccl_error *error)
{
    const struct zipccl_program *p = stage->program;
    double messages = 0;

    for (size_t op = 0; op < p->nops; op++) {
        const struct zipccl_program_event *e = &p->events[p->ops[op].event];

        for (uint32_t part = 0; e->group != NULL && part < e->nparts; part++) {
            const struct zipccl_price *price =
                zipccl_pricing_get(stage->pricing, e, part, stage->mode);
            size_t nbytes = price->plan != NULL ? buffer_bytes(price->plan) : 0;

            messages += price->plan != NULL ? plan_messages(price->plan) : 0;
            stage->nowhere_bytes = nbytes > stage->nowhere_bytes ? nbytes : stage->nowhere_bytes;
        }
    }
    if (messages > ZIPCCL_STAGE_MAX_MESSAGES)
        return zipccl_fail(
            error, ZIPCCL_ERR_UNSUPPORTED,
            "a replay at T2 would take %.0f million messages, more than %.0f: replay "
            "at T1, or fewer ranks or steps",
            messages / 1e6, ZIPCCL_STAGE_MAX_MESSAGES / 1e6);
    stage->nowhere = malloc(2 * stage->nowhere_bytes + 1);
    return stage->nowhere != NULL ? ZIPCCL_OK
                                  : zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
}

static zipccl_status make_tables(struct zipccl_stage *stage, struct zipccl_error *error)
{
    const struct zipccl_trace_header *h = &stage->program->trace->header;

    stage->comms = calloc((size_t)h->ngroups + 1, sizeof(*stage->comms));
    for (uint32_t g = 0; stage->comms != NULL && g < h->ngroups; g++) {
        stage->comms[g] = calloc((size_t)h->groups[g].nparts * stage->program->nstreams + 1,
                                 sizeof(**stage->comms));
        if (stage->comms[g] == NULL)
            return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    }
    return stage->comms != NULL ? ZIPCCL_OK : zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
}

zipccl_status zipccl_stage_open(const struct zipccl_program *program,
                                const struct zipccl_pricing *pricing, int mode,
                                struct zipccl_samples *samples, struct zipccl_stage **out,
                                struct zipccl_error *error)
{
    struct zipccl_stage *stage = calloc(1, sizeof(*stage));
    zipccl_status status;

    if (stage == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    stage->program = program;
    stage->pricing = pricing;
    stage->mode = mode;
    stage->samples = samples;
    status = survey(stage, error);
    if (status == ZIPCCL_OK)
        status = make_tables(stage, error);
    if (status == ZIPCCL_OK)
        status = zipccl_t2_open(&pricing->cluster, &stage->world, error);
    if (status != ZIPCCL_OK) {
        zipccl_stage_close(stage);
        return status;
    }
    *out = stage;
    return ZIPCCL_OK;
}

static void free_comm(struct stage_comm *c)
{
    if (c == NULL)
        return;
    zipccl_t2_comm_destroy(&c->comm);
    zipccl_topology_destroy(c->topology);
    free(c->contexts);
    free(c->sizes);
    free(c);
}

void zipccl_stage_close(struct zipccl_stage *stage)
{
    const struct zipccl_trace_header *h;

    if (stage == NULL)
        return;
    h = &stage->program->trace->header;
    for (uint32_t g = 0; stage->comms != NULL && g < h->ngroups; g++) {
        size_t n = (size_t)h->groups[g].nparts * stage->program->nstreams;

        for (size_t i = 0; stage->comms[g] != NULL && i < n; i++)
            free_comm(stage->comms[g][i]);
        free(stage->comms[g]);
    }
    free(stage->comms);
    free(stage->nowhere);
    zipccl_t2_close(stage->world);
    free(stage);
}

const struct zipccl_platform *zipccl_stage_platform(const struct zipccl_stage *stage)
{
    return zipccl_t2_platform(stage->world);
}

static zipccl_status create_comm(struct zipccl_stage *stage, const struct zipccl_topology *topology,
                                 const uint32_t *gpus, struct stage_comm **out)
{
    uint32_t n = topology->nranks;
    struct stage_comm *c = calloc(1, sizeof(*c));
    zipccl_status status = ZIPCCL_ERR_NOMEM;

    if (c != NULL) {
        c->contexts = calloc(n, sizeof(*c->contexts));
        c->sizes = calloc(n, sizeof(*c->sizes));
        status = zipccl_topology_create(n, topology->node_of, &c->topology);
    }
    if (c == NULL || c->contexts == NULL || c->sizes == NULL)
        status = ZIPCCL_ERR_NOMEM;
    for (uint32_t r = 0; r < n && status == ZIPCCL_OK; r++) {
        c->contexts[r].samples = stage->samples;
        c->sizes[r] = (struct zipccl_sim_sizes){message_bytes, &c->contexts[r], stage->nowhere,
                                                2 * stage->nowhere_bytes + 1};
    }
    if (status == ZIPCCL_OK)
        status = zipccl_t2_comm_create(stage->world, c->topology, gpus, c->sizes, n, &c->comm);
    if (status != ZIPCCL_OK) {
        free_comm(c);
        return status;
    }
    *out = c;
    return ZIPCCL_OK;
}

/* Counts and displacements of an uneven call for one member; the caller frees. */
static size_t *uneven_counts(const size_t *splits, size_t n, size_t member)
{
    size_t *c = malloc(4 * n * sizeof(*c)), sent = 0, received = 0;

    for (size_t p = 0; c != NULL && p < n; p++) {
        c[p] = splits[member * n + p];
        c[n + p] = sent;
        c[2 * n + p] = splits[p * n + member];
        c[3 * n + p] = received;
        sent += c[p];
        received += c[2 * n + p];
    }
    return c;
}

static uint32_t member_of(const struct zipccl_program_event *event, uint32_t part, uint32_t rank)
{
    const uint32_t *members = zipccl_program_members(event, part);
    uint32_t i = 0;

    while (members[i] != rank)
        i++;
    return i;
}

zipccl_status zipccl_stage_run(struct zipccl_stage *stage, const struct zipccl_program_event *event,
                               uint32_t part, uint32_t rank)
{
    const struct zipccl_price *price = zipccl_pricing_get(stage->pricing, event, part, stage->mode);
    const struct zipccl_program_class *class = &stage->program->classes[event->class];
    struct zipccl_t2_buffers buffers = {.send = stage->nowhere,
                                        .recv = stage->nowhere + stage->nowhere_bytes};
    struct stage_comm **comm;
    size_t n = event->group->size, *counts = NULL;
    uint32_t member = member_of(event, part, rank);
    zipccl_status status;

    if (price->plan == NULL)
        return ZIPCCL_OK;
    comm =
        &stage->comms[event->event->group][part * stage->program->nstreams + event->event->stream];
    if (*comm == NULL)
        ZIPCCL_TRY(create_comm(stage, zipccl_pricing_call(stage->pricing, event, part)->topology,
                               zipccl_program_members(event, part), comm));
    (*comm)->contexts[member].set = class->set;
    if (class->splits != NULL) {
        counts = uneven_counts(class->splits, n, member);
        if (counts == NULL)
            return ZIPCCL_ERR_NOMEM;
        buffers.send_counts = counts;
        buffers.send_displs = counts + n;
        buffers.recv_counts = counts + 2 * n;
        buffers.recv_displs = counts + 3 * n;
    }
    status = zipccl_t2_execute(&(*comm)->comm, member, price->plan, &buffers, NULL);
    free(counts);
    return status;
}
