/*
 * real_replay_call.c - one collective of a real replay: its buffers, the call, its check
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/replay/real_replay_state.h"

#include "experiments/perf/perf_check.h"

#include <inttypes.h>
#include <string.h>

uint32_t replay_member(const struct zipccl_trace_group *group, uint32_t part, uint32_t rank)
{
    const uint32_t *ranks = group->ranks + (size_t)part * group->size;
    uint32_t member = 0;

    while (member < group->size && ranks[member] != rank)
        member++;
    return member;
}

void replay_sizes(const struct zipccl_program_class *class, uint32_t member, size_t *send_n,
                  size_t *recv_n)
{
    size_t count = (size_t) class->event->count, size = class->group->size;

    *send_n = *recv_n = count;
    switch (class->event->op) {
    case ZIPCCL_ALL_GATHER: *recv_n = count * size; break;
    case ZIPCCL_REDUCE_SCATTER: *send_n = count * size; break;
    case ZIPCCL_ALLTOALL: *send_n = *recv_n = count * size; break;
    case ZIPCCL_ALLTOALLV:
    case ZIPCCL_SENDRECV:
        *send_n = *recv_n = 0;
        for (size_t p = 0; p < size; p++) {
            *send_n += class->splits[member * size + p];
            *recv_n += class->splits[p * size + member];
        }
        break;
    default: break;
    }
}

/* splitmix64 of where an element's bytes lie, for types of which no trace has tensors. */
static uint64_t bits_at(uint32_t rank, size_t word)
{
    uint64_t z = ((uint64_t)rank << 40) + word + UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void replay_elements(const struct replay_job *job, uint32_t set, enum zipccl_dtype dtype,
                     uint32_t rank, size_t first, size_t n, void *out)
{
    size_t size = zipccl_dtype_size(dtype);
    unsigned char *to = out;

    if (zipccl_samples_copy(job->samples, set, rank, job->trace->header.nranks, first, n, out))
        return;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = bits_at(rank, first + i);
        double fraction = (double)(bits >> 12) * 0x1p-52;

        if (dtype == ZIPCCL_FLOAT64)
            memcpy(to + i * size, &fraction, size);
        else
            memcpy(to + i * size, &bits, size);
    }
}

/* What a call of the step is, on one rank. */
struct call {
    const struct zipccl_program_event *event;
    const struct zipccl_program_class *class;
    uint32_t part, member;
    size_t send_n, recv_n;
    const unsigned char *send;
    unsigned char *recv;
};

/* Counts and places of an uneven call of 'member', for alltoallv. */
static void lay_splits(const struct call *c, size_t *s)
{
    size_t size = c->class->group->size, send_at = 0, recv_at = 0;

    for (size_t p = 0; p < size; p++) {
        s[p] = c->class->splits[c->member * size + p];
        s[size + p] = send_at;
        s[2 * size + p] = c->class->splits[p * size + c->member];
        s[3 * size + p] = recv_at;
        send_at += s[p];
        recv_at += s[2 * size + p];
    }
}

/* A member has one peer a side at most: the replay has seen to it. */
static zipccl_status send_recv(const struct call *c, struct zipccl_comm *comm, void *stream)
{
    int dst = -1, src = -1;

    for (uint32_t i = 0; i < c->event->event->npairs; i++) {
        const struct zipccl_trace_pair *pair = &c->event->event->pairs[i];

        if (pair->src == c->member)
            dst = (int)pair->dst;
        if (pair->dst == c->member)
            src = (int)pair->src;
    }
    return zipccl_sendrecv(c->send, c->send_n, dst, c->recv, c->recv_n, src, c->event->event->dtype,
                           comm, stream);
}

/* stream  NULL on a CPU */
static zipccl_status serve(const struct call *c, size_t *splits, struct zipccl_comm *comm,
                           void *stream)
{
    const struct zipccl_event *e = c->event->event;
    size_t count = (size_t)e->count, n = c->class->group->size;

    switch (e->op) {
    case ZIPCCL_ALL_GATHER:
        return zipccl_all_gather(c->send, c->recv, count, e->dtype, comm, stream);
    case ZIPCCL_REDUCE_SCATTER:
        return zipccl_reduce_scatter(c->send, c->recv, count, e->dtype, e->redop, comm, stream);
    case ZIPCCL_ALL_REDUCE:
        return zipccl_all_reduce(c->send, c->recv, count, e->dtype, e->redop, comm, stream);
    case ZIPCCL_ALLTOALL: return zipccl_alltoall(c->send, c->recv, count, e->dtype, comm, stream);
    case ZIPCCL_ALLTOALLV:
        lay_splits(c, splits);
        return zipccl_alltoallv(c->send, splits, splits + n, c->recv, splits + 2 * n,
                                splits + 3 * n, e->dtype, comm, stream);
    case ZIPCCL_SENDRECV: return send_recv(c, comm, stream);
    case ZIPCCL_BROADCAST:
        return zipccl_broadcast(c->send, c->recv, count, e->dtype, e->root, comm, stream);
    default: return ZIPCCL_ERR_ARG;
    }
}

/* Bytes that a rank of the group sends as NCCL counts them, mean over its ranks. */
static double nccl_bytes(const struct call *c)
{
    size_t size = c->class->group->size;
    double n = (double)size, count = (double)c->event->event->count, sum = 0;
    double element = (double)zipccl_dtype_size(c->event->event->dtype);

    switch (c->event->event->op) {
    case ZIPCCL_ALL_REDUCE: return 2 * count * (n - 1) / n * element;
    case ZIPCCL_BROADCAST: return count * (n - 1) / n * element;
    case ZIPCCL_ALLTOALLV:
    case ZIPCCL_SENDRECV:
        for (size_t i = 0; i < size * size; i++)
            sum += i % (size + 1) != 0 ? (double)c->class->splits[i] : 0;
        return sum / n * element;
    default: return count * (n - 1) * element;
    }
}

/* Raw over room of a full fixed message; 0 if the plan has none. */
static double capacity_ratio(const struct zipccl_plan *plan)
{
    for (uint32_t i = 0; i < plan->nsteps; i++) {
        const struct zipccl_step *s = &plan->steps[i];

        if (s->kind == ZIPCCL_STEP_ENCODE && s->form == ZIPCCL_FORM_FIXED && s->capacity > 0)
            return (double)s->n * (double)zipccl_dtype_size((enum zipccl_dtype)plan->dtype) /
                   (double)s->capacity;
    }
    return 0;
}

static void note_plan(const struct zipccl_plan *plan, struct replay_row *row)
{
    if (plan == NULL) {
        snprintf(row->strategy, sizeof row->strategy, "none");
        return;
    }
    snprintf(row->strategy, sizeof row->strategy, "%.36s%s", plan->strategy,
             plan->compressed && plan->effort == ZIPCCL_EFFORT_RATIO ? " max-ratio" : "");
    row->capacity_class =
        zipccl_plan_is_fixed(plan) ? (int32_t)plan->capacity_class : ZIPCCL_NO_CLASS;
    row->capacity_ratio = capacity_ratio(plan);
}

/* Count the call, of which 'before' and 'coded' are what was counted before it. */
static void count(const struct call *c, const struct zipccl_comm *comm,
                  const struct zipccl_comm_stats *before, const struct zipccl_timed_exec *coded,
                  const struct zipccl_timed_exec *now, struct replay_row *row)
{
    struct zipccl_comm_stats after;

    zipccl_comm_get_stats(comm, &after);
    row->calls++;
    row->raw_bytes += nccl_bytes(c);
    row->sent_bytes += (double)(after.wire_bytes - before->wire_bytes);
    row->coded_raw += now->coded_raw - coded->coded_raw;
    row->coded_wire += now->coded_wire - coded->coded_wire;
    row->codec_s += now->encode_s - coded->encode_s + now->decode_s - coded->decode_s;
    note_plan(zipccl_comm_last_plan(comm), row);
}

/* What the members sent, for the check. */
struct sent {
    const struct replay_job *job;
    const struct call *call;
};

static void copy_sent(const void *context, uint32_t member, size_t first, size_t n, void *out)
{
    const struct sent *sent = context;
    const struct zipccl_program_class *class = sent->call->class;
    const struct zipccl_trace_group *group = class->group;

    replay_elements(sent->job, class->set, class->event->dtype,
                    group->ranks[(size_t)sent->call->part * group->size + member], first, n, out);
}

static zipccl_status check(const struct replay_rank *rank, const struct call *c,
                           const struct zipccl_comm *comm, const struct zipccl_topology *topology,
                           uint64_t *wrong)
{
    const struct zipccl_event *e = c->event->event;
    struct zipccl_perf_call call = {.op = e->op,
                                    .dtype = e->dtype,
                                    .redop = e->redop,
                                    .root = e->root,
                                    .count = (size_t)e->count,
                                    .send_n = c->send_n,
                                    .recv_n = c->recv_n};
    struct sent sent = {rank->job, c};
    struct zipccl_perf_check what = {.call = &call,
                                     .sent = copy_sent,
                                     .context = &sent,
                                     .plan = zipccl_comm_last_plan(comm),
                                     .topology = topology,
                                     .splits = c->class->splits,
                                     .rank = c->member,
                                     .rank_order = rank->job->world->kind == ZIPCCL_WORLD_THREADS};

    if (e->count == 0 || what.plan == NULL)
        return ZIPCCL_OK;
    return zipccl_perf_check(&what, c->recv, wrong);
}

zipccl_status replay_call(struct replay_stream *stream, uint32_t op)
{
    struct replay_rank *rank = stream->rank;
    const struct zipccl_program *p = rank->job->program;
    const struct zipccl_program_event *e = &p->events[p->ops[op].event];
    uint32_t key = rank->job->key_of[p->ops[op].event];
    struct zipccl_comm *comm = rank->comms[key][rank->mode];
    struct zipccl_timed_exec *timed = &rank->timed[key], before = *timed;
    struct call c = {.event = e, .class = &p->classes[e->class], .part = e->part_of[rank->index]};
    struct zipccl_comm_stats stats;
    struct zipccl_transport *transport = rank->job->keys[key].mine[rank->local];
    const struct zipccl_world_device *device = rank->device;
    uint64_t wrong = 0;
    zipccl_status status = ZIPCCL_OK;
    size_t nbytes;

    c.member = replay_member(c.class->group, c.part, rank->index);
    c.send = rank->send[c.class->set];
    c.recv = stream->recv;
    replay_sizes(c.class, c.member, &c.send_n, &c.recv_n);
    nbytes = c.recv_n * zipccl_dtype_size(e->event->dtype);
    if (rank->check)
        memset(device != NULL ? stream->shadow : c.recv, 0xa5, nbytes);
    if (rank->check && device != NULL)
        status = device->copy(transport, c.recv, stream->shadow, nbytes, true);
    zipccl_comm_get_stats(comm, &stats);
    if (status == ZIPCCL_OK)
        status = serve(&c, stream->splits, comm, device != NULL ? device->stream(transport) : NULL);
    if (status == ZIPCCL_OK && device != NULL)
        status = device->wait(transport);
    if (status == ZIPCCL_OK && device != NULL)
        status = device->codec(rank->execs[key], timed);
    if (status == ZIPCCL_OK && device != NULL && rank->check) {
        status = device->copy(transport, stream->shadow, c.recv, nbytes, false);
        c.recv = stream->shadow;
    }
    if (status != ZIPCCL_OK)
        return replay_fail(rank->job, status, "event %" PRIu64 " (%s): %s", e->event->id,
                           zipccl_op_name(e->event->op), zipccl_comm_error(comm));
    if (!rank->check) {
        count(&c, comm, &stats, &before, timed, &rank->rows[e->row]);
        return ZIPCCL_OK;
    }
    status = check(rank, &c, comm, transport->topology, &wrong);
    pthread_mutex_lock(&rank->lock);
    rank->wrong += wrong;
    pthread_mutex_unlock(&rank->lock);
    return status == ZIPCCL_OK ? status
                               : replay_fail(rank->job, status,
                                             "event %" PRIu64 " (%s): cannot "
                                             "be checked",
                                             e->event->id, zipccl_op_name(e->event->op));
}
