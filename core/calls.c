/*
 * calls.c - the collective calls: check arguments, find the plan, run it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/comm_state.h"

#include "core/executor.h"

#include <string.h>

/* Arrays of an uneven call. */
struct splits {
    const size_t *send_counts, *send_displs, *recv_counts, *recv_displs;
};

/* A stretch of a user's buffer, in bytes. */
struct span {
    uintptr_t start, end;
};

static struct span span_of(const void *buf, size_t nbytes)
{
    return (struct span){(uintptr_t)buf, (uintptr_t)buf + nbytes};
}

static bool overlap(struct span a, struct span b)
{
    return a.start < a.end && b.start < b.end && a.start < b.end && b.start < a.end;
}

static zipccl_status fail(struct zipccl_comm *comm, zipccl_status status, const char *text)
{
    return zipccl_fail(&comm->error, status, "%s", text);
}

/* What every call checks first. */
static zipccl_status begin(struct zipccl_comm *comm, enum zipccl_dtype dtype, size_t count,
                           const void *stream)
{
    size_t size = zipccl_dtype_size(dtype);

    if (comm == NULL)
        return ZIPCCL_ERR_ARG;
    comm->error.text[0] = '\0';
    if (size == 0)
        return zipccl_fail(&comm->error, ZIPCCL_ERR_ARG, "type number %d is none", (int)dtype);
    if (count > SIZE_MAX / 2 / size / comm->transport->nranks)
        return zipccl_fail(&comm->error, ZIPCCL_ERR_ARG, "%zu elements on %u ranks exceed size_t",
                           count, comm->transport->nranks);
    if (stream != NULL && comm->exec->ops->run == NULL)
        return fail(comm, ZIPCCL_ERR_ARG, "a stream is given, but this exec has none");
    comm->stream = stream;
    return ZIPCCL_OK;
}

/* Buffers of 'send_n' and 'recv_n' elements that may only overlap as 'in_place' says. */
static zipccl_status check_buffers(struct zipccl_comm *comm, size_t size, const void *send,
                                   size_t send_n, const void *recv, size_t recv_n, bool in_place)
{
    if ((send_n > 0 && send == NULL) || (recv_n > 0 && recv == NULL))
        return fail(comm, ZIPCCL_ERR_ARG, "a buffer is NULL");
    if (!in_place && overlap(span_of(send, send_n * size), span_of(recv, recv_n * size)))
        return fail(comm, ZIPCCL_ERR_ARG, "the buffers overlap in a way that NCCL does not allow");
    return ZIPCCL_OK;
}

void zipccl_comm_offers(const struct zipccl_comm *comm, struct zipccl_call *call)
{
    const struct zipccl_transport *t = comm->transport;

    call->has_native = t->ops->native != NULL && t->ops->has_native != NULL &&
                       t->ops->has_native(t, call->op, call->dtype, call->redop);
    call->whole = comm->exec->ops->run != NULL;
    call->no_sizes = comm->exec->no_sizes;
}

/* Staging grows and is kept. */
static zipccl_status grow(struct zipccl_comm *comm, struct zipccl_staging *staging, size_t want)
{
    if (want <= staging->nbytes)
        return ZIPCCL_OK;
    if (staging->p != NULL)
        comm->exec->ops->free(comm->exec, staging->p);
    staging->nbytes = 0;
    staging->p = comm->exec->ops->alloc(comm->exec, want);
    if (staging->p == NULL) {
        comm->transport->ops->abort(comm->transport);
        return ZIPCCL_ERR_NOMEM;
    }
    staging->nbytes = want;
    return ZIPCCL_OK;
}

static uint32_t call_of_period(const struct zipccl_even_class *cls)
{
    return (uint32_t)(cls->state.calls % ZIPCCL_CLASS_PERIOD);
}

/* Let a device time the call; comm_classes.c asks for the time when ranks exchange what they saw.  If this one
 * cannot, the other ranks' times count, who make the call. */
static void take_ticket(struct zipccl_exec *exec, struct zipccl_even_class *cls)
{
    uint64_t ticket;

    if (cls->ntickets == ZIPCCL_TRIAL_CALLS || exec->ops->time_next(exec, &ticket) != ZIPCCL_OK)
        return;
    cls->tickets[cls->ntickets].call = call_of_period(cls);
    cls->tickets[cls->ntickets++].ticket = ticket;
}

/* Run it, timed if it is one of a trial. */
static zipccl_status execute(struct zipccl_comm *comm, struct zipccl_even_class *cls,
                             const struct zipccl_run *run, struct zipccl_run_stats *stats)
{
    struct zipccl_exec *exec = comm->exec;
    uint64_t start, end;

    if (exec->ops->run != NULL) {
        if (cls != NULL && cls->timed)
            take_ticket(exec, cls);
        return exec->ops->run(exec, run, comm->transport, (void *)(uintptr_t)comm->stream, stats);
    }
    if (cls == NULL || !cls->timed)
        return zipccl_execute(run, comm->transport, exec, stats);
    start = exec->ops->clock_ns(exec);
    ZIPCCL_TRY(zipccl_execute(run, comm->transport, exec, stats));
    end = exec->ops->clock_ns(exec);
    zipccl_trials_note(&cls->trials, call_of_period(cls), end > start ? end - start : 0);
    return ZIPCCL_OK;
}

static zipccl_status give_staging(struct zipccl_comm *comm, struct zipccl_run *run)
{
    if (comm->exec->ops->run != NULL) /* it has its own */
        return ZIPCCL_OK;
    ZIPCCL_TRY(grow(comm, &comm->tx, run->plan->tx_bytes));
    ZIPCCL_TRY(grow(comm, &comm->rx, run->plan->rx_bytes));
    ZIPCCL_TRY(grow(comm, &comm->tmp, run->plan->tmp_bytes));
    ZIPCCL_TRY(grow(comm, &comm->acc, run->plan->acc_bytes));
    run->tx = comm->tx.p;
    run->rx = comm->rx.p;
    run->tmp = comm->tmp.p;
    run->acc = comm->acc.p;
    return ZIPCCL_OK;
}

static zipccl_status run_plan(struct zipccl_comm *comm, const struct zipccl_call *call,
                              const void *send, void *recv, const struct splits *splits)
{
    struct zipccl_run run = {.send = send, .recv = recv, .owner = comm};
    struct zipccl_run_stats stats = {0};
    struct zipccl_even_class *cls = NULL;

    zipccl_comm_settle(comm);
    if (splits == NULL)
        ZIPCCL_TRY(zipccl_comm_class_before(comm, call, &cls));
    ZIPCCL_TRY(zipccl_comm_plan(comm, call, cls, &run.plan));
    ZIPCCL_TRY(give_staging(comm, &run));
    if (splits != NULL) {
        run.send_counts = splits->send_counts;
        run.send_displs = splits->send_displs;
        run.recv_counts = splits->recv_counts;
        run.recv_displs = splits->recv_displs;
        zipccl_comm_pairs_before(comm, call, &run);
    }
    comm->last = run.plan;
    ZIPCCL_TRY(execute(comm, cls, &run, &stats));
    if (splits != NULL)
        zipccl_comm_pairs_after(comm, call, &run, &stats);
    else
        zipccl_comm_class_after(comm, cls, run.plan, &stats);
    comm->stats.raw_bytes += stats.raw_bytes;
    comm->stats.wire_bytes += stats.wire_bytes;
    comm->stats.overflows += stats.overflows;
    comm->stats.raw_resends += stats.raw_resends;
    return ZIPCCL_OK;
}

static zipccl_status run_call(struct zipccl_comm *comm, struct zipccl_call call, const void *send,
                              void *recv, const struct splits *splits)
{
    zipccl_status status;
    const char *text;

    zipccl_comm_offers(comm, &call);
    status = run_plan(comm, &call, send, recv, splits);
    if (status == ZIPCCL_OK) {
        comm->stats.calls++;
        return status;
    }
    if (comm->error.text[0] != '\0')
        return status;
    text = zipccl_transport_text(comm->transport);
    return zipccl_fail(&comm->error, status, "%s %s of %zu on rank %u: %s%s%s",
                       zipccl_op_name(call.op), zipccl_dtype_name(call.dtype), call.count,
                       comm->transport->rank, zipccl_status_string(status),
                       text[0] != '\0' ? "; " : "", text);
}

zipccl_status zipccl_all_gather(const void *send, void *recv, size_t count, enum zipccl_dtype dtype,
                                struct zipccl_comm *comm, void *stream)
{
    struct zipccl_call call = {.op = ZIPCCL_ALL_GATHER, .dtype = dtype, .count = count};
    size_t size = zipccl_dtype_size(dtype);

    ZIPCCL_TRY(begin(comm, dtype, count, stream));
    ZIPCCL_TRY(
        check_buffers(comm, size, send, count, recv, count * comm->transport->nranks,
                      recv != NULL && send == (char *)recv + comm->transport->rank * count * size));
    return run_call(comm, call, send, recv, NULL);
}

static zipccl_status check_redop(struct zipccl_comm *comm, enum zipccl_redop redop)
{
    if ((unsigned)redop >= ZIPCCL_NUM_REDOPS)
        return zipccl_fail(&comm->error, ZIPCCL_ERR_ARG, "operator number %d is none", (int)redop);
    return ZIPCCL_OK;
}

zipccl_status zipccl_reduce_scatter(const void *send, void *recv, size_t recv_count,
                                    enum zipccl_dtype dtype, enum zipccl_redop redop,
                                    struct zipccl_comm *comm, void *stream)
{
    struct zipccl_call call = {
        .op = ZIPCCL_REDUCE_SCATTER, .dtype = dtype, .redop = redop, .count = recv_count};
    size_t size = zipccl_dtype_size(dtype);

    ZIPCCL_TRY(begin(comm, dtype, recv_count, stream));
    ZIPCCL_TRY(check_redop(comm, redop));
    ZIPCCL_TRY(check_buffers(
        comm, size, send, recv_count * comm->transport->nranks, recv, recv_count,
        send != NULL && recv == (const char *)send + comm->transport->rank * recv_count * size));
    return run_call(comm, call, send, recv, NULL);
}

zipccl_status zipccl_all_reduce(const void *send, void *recv, size_t count, enum zipccl_dtype dtype,
                                enum zipccl_redop redop, struct zipccl_comm *comm, void *stream)
{
    struct zipccl_call call = {
        .op = ZIPCCL_ALL_REDUCE, .dtype = dtype, .redop = redop, .count = count};

    ZIPCCL_TRY(begin(comm, dtype, count, stream));
    ZIPCCL_TRY(check_redop(comm, redop));
    ZIPCCL_TRY(
        check_buffers(comm, zipccl_dtype_size(dtype), send, count, recv, count, send == recv));
    return run_call(comm, call, send, recv, NULL);
}

zipccl_status zipccl_broadcast(const void *send, void *recv, size_t count, enum zipccl_dtype dtype,
                               uint32_t root, struct zipccl_comm *comm, void *stream)
{
    struct zipccl_call call = {
        .op = ZIPCCL_BROADCAST, .dtype = dtype, .root = root, .count = count};

    ZIPCCL_TRY(begin(comm, dtype, count, stream));
    if (root >= comm->transport->nranks)
        return zipccl_fail(&comm->error, ZIPCCL_ERR_ARG, "root %u is not one of %u ranks", root,
                           comm->transport->nranks);
    /* Only the root's send buffer is read. */
    ZIPCCL_TRY(check_buffers(comm, zipccl_dtype_size(dtype), send,
                             comm->transport->rank == root ? count : 0, recv, count, send == recv));
    return run_call(comm, call, send, recv, NULL);
}

zipccl_status zipccl_alltoall(const void *send, void *recv, size_t count, enum zipccl_dtype dtype,
                              struct zipccl_comm *comm, void *stream)
{
    struct zipccl_call call = {.op = ZIPCCL_ALLTOALL, .dtype = dtype, .count = count};

    ZIPCCL_TRY(begin(comm, dtype, count, stream));
    ZIPCCL_TRY(check_buffers(comm, zipccl_dtype_size(dtype), send, count * comm->transport->nranks,
                             recv, count * comm->transport->nranks, false));
    return run_call(comm, call, send, recv, NULL);
}

/* The bytes between the first and the last element of all blocks; fails if they exceed size_t. */
static zipccl_status blocks_span(struct zipccl_comm *comm, size_t size, const void *buf,
                                 const size_t *counts, const size_t *displs, size_t *largest,
                                 struct span *span)
{
    size_t first = SIZE_MAX, end = 0;

    for (uint32_t p = 0; p < comm->transport->nranks; p++) {
        if (counts[p] == 0)
            continue;
        if (counts[p] > SIZE_MAX / 2 / size || displs[p] > SIZE_MAX / 2 / size - counts[p])
            return zipccl_fail(&comm->error, ZIPCCL_ERR_ARG,
                               "%zu elements at %zu for rank %u exceed size_t", counts[p],
                               displs[p], p);
        first = displs[p] < first ? displs[p] : first;
        end = displs[p] + counts[p] > end ? displs[p] + counts[p] : end;
        *largest = counts[p] > *largest ? counts[p] : *largest;
    }
    if (end > 0 && buf == NULL)
        return fail(comm, ZIPCCL_ERR_ARG, "a buffer is NULL");
    *span = end == 0 ? (struct span){0, 0}
                     : (struct span){(uintptr_t)buf + first * size, (uintptr_t)buf + end * size};
    return ZIPCCL_OK;
}

static zipccl_status run_uneven(struct zipccl_comm *comm, struct zipccl_call call, const void *send,
                                void *recv, const struct splits *splits)
{
    size_t size = zipccl_dtype_size(call.dtype);
    uint32_t rank = comm->transport->rank;
    struct span from, to;

    ZIPCCL_TRY(blocks_span(comm, size, send, splits->send_counts, splits->send_displs, &call.count,
                           &from));
    ZIPCCL_TRY(
        blocks_span(comm, size, recv, splits->recv_counts, splits->recv_displs, &call.count, &to));
    ZIPCCL_TRY(begin(comm, call.dtype, call.count, comm->stream));
    if (overlap(from, to))
        return fail(comm, ZIPCCL_ERR_ARG, "the send and receive blocks lie across each other");
    if (splits->send_counts[rank] != splits->recv_counts[rank])
        return zipccl_fail(&comm->error, ZIPCCL_ERR_ARG,
                           "rank %u sends %zu elements to itself and receives %zu", rank,
                           splits->send_counts[rank], splits->recv_counts[rank]);
    if (call.count == 0) {
        comm->stats.calls++;
        return ZIPCCL_OK;
    }
    return run_call(comm, call, send, recv, splits);
}

zipccl_status zipccl_alltoallv(const void *send, const size_t *send_counts,
                               const size_t *send_displs, void *recv, const size_t *recv_counts,
                               const size_t *recv_displs, enum zipccl_dtype dtype,
                               struct zipccl_comm *comm, void *stream)
{
    struct zipccl_call call = {.op = ZIPCCL_ALLTOALLV, .dtype = dtype};
    struct splits splits = {send_counts, send_displs, recv_counts, recv_displs};

    ZIPCCL_TRY(begin(comm, dtype, 0, stream));
    if (send_counts == NULL || send_displs == NULL || recv_counts == NULL || recv_displs == NULL)
        return fail(comm, ZIPCCL_ERR_ARG, "counts or displacements are NULL");
    return run_uneven(comm, call, send, recv, &splits);
}

zipccl_status zipccl_comm_run_pairs(struct zipccl_comm *comm, const void *send,
                                    const size_t *send_counts, const size_t *send_displs,
                                    void *recv, const size_t *recv_counts,
                                    const size_t *recv_displs, enum zipccl_dtype dtype,
                                    void *stream)
{
    struct zipccl_call call = {.op = ZIPCCL_ALLTOALLV, .dtype = dtype};
    struct splits splits = {send_counts, send_displs, recv_counts, recv_displs};
    size_t size = zipccl_dtype_size(dtype);
    struct span span;

    ZIPCCL_TRY(begin(comm, dtype, 0, stream));
    ZIPCCL_TRY(blocks_span(comm, size, send, send_counts, send_displs, &call.count, &span));
    ZIPCCL_TRY(blocks_span(comm, size, recv, recv_counts, recv_displs, &call.count, &span));
    ZIPCCL_TRY(begin(comm, dtype, call.count, stream));
    return call.count == 0 ? ZIPCCL_OK : run_call(comm, call, send, recv, &splits);
}

static bool peer_is_wrong(const struct zipccl_comm *comm, int peer, size_t count)
{
    return peer < -1 || (peer >= 0 && (uint32_t)peer >= comm->transport->nranks) ||
           (peer == -1 && count > 0);
}

zipccl_status zipccl_sendrecv(const void *send, size_t send_count, int dst, void *recv,
                              size_t recv_count, int src, enum zipccl_dtype dtype,
                              struct zipccl_comm *comm, void *stream)
{
    struct zipccl_call call = {.op = ZIPCCL_SENDRECV, .dtype = dtype};
    size_t nranks;
    struct splits splits;

    ZIPCCL_TRY(begin(comm, dtype, 0, stream));
    if (peer_is_wrong(comm, dst, send_count) || peer_is_wrong(comm, src, recv_count))
        return zipccl_fail(&comm->error, ZIPCCL_ERR_ARG,
                           "send %zu to %d, receive %zu from %d: no such peer among %u ranks",
                           send_count, dst, recv_count, src, comm->transport->nranks);
    nranks = comm->transport->nranks;
    splits = (struct splits){comm->pairs, comm->pairs + nranks, comm->pairs + 2 * nranks,
                             comm->pairs + 3 * nranks};
    memset(comm->pairs, 0, 4 * nranks * sizeof *comm->pairs);
    if (dst >= 0)
        comm->pairs[dst] = send_count;
    if (src >= 0)
        comm->pairs[2 * nranks + (size_t)src] = recv_count;
    return run_uneven(comm, call, send, recv, &splits);
}
