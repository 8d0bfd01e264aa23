/*
 * plan_hazard.c - the ranges that the steps of a plan touch on one rank, against each other
 *
 * Ranges that overlap, one of them a write, must be ordered; a read must have found what it needs;
 * the writes to the receive buffer must be what belongs there, each byte once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/plan_check.h"

#include <stdlib.h>

static bool reduces(const struct zipccl_plan *plan)
{
    return zipccl_is_reduction(plan->op);
}

size_t zipccl_check_origin(const struct zipccl_check *c, uint32_t rank, enum zipccl_buf buf)
{
    size_t block = c->plan->count * c->size * rank;

    if (c->plan->op == ZIPCCL_ALL_GATHER)
        return buf == ZIPCCL_BUF_SEND ? block : 0;
    return c->plan->op == ZIPCCL_REDUCE_SCATTER && buf == ZIPCCL_BUF_RECV ? block : 0;
}

size_t zipccl_check_block_in_send(const struct zipccl_check *c, uint32_t src, uint32_t dst)
{
    if (c->send_displs != NULL)
        return c->send_displs[(size_t)src * c->plan->nranks + dst];
    return c->plan->op == ZIPCCL_ALLTOALL ? dst * c->plan->count : 0;
}

static size_t block_in_recv(const struct zipccl_check *c, uint32_t src, uint32_t dst)
{
    if (c->recv_displs != NULL)
        return c->recv_displs[(size_t)dst * c->plan->nranks + src];
    return c->plan->op == ZIPCCL_BROADCAST ? 0 : src * c->plan->count;
}

size_t zipccl_check_block_n(const struct zipccl_check *c, uint32_t src, uint32_t dst)
{
    if (c->splits != NULL && c->send_displs != NULL)
        return c->splits[(size_t)src * c->plan->nranks + dst];
    return c->plan->op == ZIPCCL_BROADCAST && src != c->plan->root ? 0 : c->plan->count;
}

static int by_place(const void *a, const void *b)
{
    const struct zipccl_access *x = a, *y = b;

    if (x->buf != y->buf)
        return x->buf < y->buf ? -1 : 1;
    if (x->lo != y->lo)
        return x->lo < y->lo ? -1 : 1;
    return x->step < y->step ? -1 : x->step > y->step;
}

/* A read of the send buffer and a write of the receive buffer, which share these bytes. */
static zipccl_status check_in_place(const struct zipccl_check *c, uint32_t rank,
                                    const struct zipccl_access *read,
                                    const struct zipccl_access *write)
{
    /* A REDUCE reads each element of its own block before it writes the sum there. */
    bool own = read->step == write->step && read->lo == write->lo &&
               c->plan->steps[read->step].kind == ZIPCCL_STEP_REDUCE;

    if (own || zipccl_check_ordered(c, read->step, write->step))
        return ZIPCCL_OK;
    return zipccl_check_fail(c, write->step, "in place",
                             "rank %u: overwrites bytes that step %u may still send", rank,
                             read->step);
}

/* One of a pair of overlapping ranges is a write: is that safe? */
static zipccl_status check_pair(const struct zipccl_check *c, uint32_t rank,
                                const struct zipccl_access *a, const struct zipccl_access *b)
{
    const struct zipccl_access *early = a->step <= b->step ? a : b, *late = early == a ? b : a;

    if (!a->write && !b->write)
        return ZIPCCL_OK;
    /* Either the messages count or their resend, never both. */
    if (a->when != b->when && a->when != ZIPCCL_ALWAYS && b->when != ZIPCCL_ALWAYS &&
        a->resolve == b->resolve)
        return ZIPCCL_OK;
    if (a->buf == ZIPCCL_BUF_RECV && a->write && b->write)
        return zipccl_check_fail(
            c, late->step, "output", "rank %u: byte %zu is written by step %u too", rank,
            (a->lo > b->lo ? a->lo : b->lo) -
                (c->in_place ? zipccl_check_origin(c, rank, ZIPCCL_BUF_RECV) : 0),
            early->step);
    if (a->noop || b->noop)
        return ZIPCCL_OK;
    if (a->user || b->user)
        return check_in_place(c, rank, a->user ? a : b, a->user ? b : a);
    if (!zipccl_check_ordered(c, early->step, late->step))
        return zipccl_check_fail(c, late->step, "order",
                                 "rank %u: no dependency on step %u, which uses the same bytes",
                                 rank, early->step);
    return ZIPCCL_OK;
}

static size_t send_bytes(const struct zipccl_check *c, uint32_t rank)
{
    size_t n = c->plan->count;

    if (c->send_displs != NULL) {
        size_t last = (size_t)rank * c->plan->nranks + c->plan->nranks - 1;

        return (c->send_displs[last] + c->splits[last]) * c->size;
    }
    if (c->plan->op == ZIPCCL_ALLTOALL || c->plan->op == ZIPCCL_REDUCE_SCATTER)
        n *= c->plan->nranks;
    return n * c->size;
}

static zipccl_status check_read(const struct zipccl_check *c, uint32_t rank,
                                const struct zipccl_access *a, uint32_t writer)
{
    size_t origin = c->in_place ? zipccl_check_origin(c, rank, ZIPCCL_BUF_SEND) : 0;

    if (a->user && a->hi - origin > send_bytes(c, rank))
        return zipccl_check_fail(c, a->step, "content",
                                 "rank %u: reads bytes %zu to %zu of a send buffer of %zu", rank,
                                 a->lo - origin, a->hi - origin, send_bytes(c, rank));
    if (!a->bad)
        return ZIPCCL_OK;
    if (writer == UINT32_MAX)
        return zipccl_check_fail(c, a->step, "content", "rank %u: reads what no step has written",
                                 rank);
    return zipccl_check_fail(c, a->step, "content",
                             "rank %u: finds another message, left by step %u", rank, writer);
}

/* A write to the receive buffer must be a piece of what belongs there. */
static zipccl_status check_output(const struct zipccl_check *c, uint32_t rank,
                                  const struct zipccl_access *a)
{
    const struct zipccl_content *x = &a->content;
    bool sums = reduces(c->plan) && c->plan->nranks > 1;
    uint32_t from = x->who;
    size_t origin = c->in_place ? zipccl_check_origin(c, rank, ZIPCCL_BUF_RECV) : 0;
    size_t lo = a->lo - origin, hi = a->hi - origin, first = 0, source, nbytes;

    if (from == ZIPCCL_NOBODY)
        return ZIPCCL_OK;
    if (x->level != (sums ? ZIPCCL_LEVEL_ALL : ZIPCCL_LEVEL_DATA))
        return zipccl_check_fail(c, a->step, "output",
                                 "rank %u: bytes %zu to %zu are not the sum over all ranks", rank,
                                 lo, hi);
    if (sums) {
        source = c->plan->op == ZIPCCL_REDUCE_SCATTER ? c->plan->count * c->size * rank : 0;
        nbytes = c->plan->count * c->size;
    } else {
        first = block_in_recv(c, from, rank) * c->size;
        nbytes = zipccl_check_block_n(c, from, rank) * c->size;
        source = zipccl_check_block_in_send(c, from, rank) * c->size;
    }
    if (lo < first || hi > first + nbytes || x->lo != source + (lo - first))
        return zipccl_check_fail(c, a->step, "output",
                                 "rank %u: bytes %zu to %zu do not belong to rank %u's byte %zu",
                                 rank, lo, hi, from, x->lo);
    return ZIPCCL_OK;
}

/* Reads, while 'source' still counts the list as it was recorded. */
static zipccl_status check_reads(const struct zipccl_check *c, uint32_t rank,
                                 const struct zipccl_accesses *accesses)
{
    for (uint32_t i = 0; i < accesses->n; i++) {
        const struct zipccl_access *a = &accesses->list[i];

        if (!a->write)
            ZIPCCL_TRY(check_read(
                c, rank, a, a->source == UINT32_MAX ? UINT32_MAX : accesses->list[a->source].step));
    }
    return ZIPCCL_OK;
}

/* Pairs come first: what a read finds means little if it may find anything. */
static zipccl_status check_pairs(const struct zipccl_check *c, uint32_t rank,
                                 const struct zipccl_accesses *accesses)
{
    struct zipccl_access *list = malloc((accesses->n + 1) * sizeof *list);
    zipccl_status status = ZIPCCL_OK;

    if (list == NULL)
        return zipccl_fail(c->error, ZIPCCL_ERR_NOMEM, "out of memory");
    for (uint32_t i = 0; i < accesses->n; i++)
        list[i] = accesses->list[i];
    qsort(list, accesses->n, sizeof *list, by_place);
    for (uint32_t i = 0; i < accesses->n && status == ZIPCCL_OK; i++)
        for (uint32_t k = i + 1; k < accesses->n && status == ZIPCCL_OK &&
                                 list[k].buf == list[i].buf && list[k].lo < list[i].hi;
             k++)
            status = check_pair(c, rank, &list[i], &list[k]);
    free(list);
    return status;
}

zipccl_status zipccl_check_accesses(const struct zipccl_check *c, uint32_t rank,
                                    struct zipccl_accesses *accesses)
{
    size_t wanted = 0, written = 0;

    ZIPCCL_TRY(check_pairs(c, rank, accesses));
    ZIPCCL_TRY(check_reads(c, rank, accesses));
    for (uint32_t i = 0; i < accesses->n; i++) {
        const struct zipccl_access *a = &accesses->list[i];

        if (!a->write || a->buf != ZIPCCL_BUF_RECV)
            continue;
        ZIPCCL_TRY(check_output(c, rank, a));
        written += a->hi - a->lo;
    }
    if (reduces(c->plan))
        wanted = c->plan->count * c->size;
    for (uint32_t p = 0; !reduces(c->plan) && p < c->plan->nranks; p++)
        wanted += zipccl_check_block_n(c, p, rank) * c->size;
    if (written != wanted)
        return zipccl_fail(c->error, ZIPCCL_ERR_ARG, "rule 'output': rank %u gets %zu bytes of %zu",
                           rank, written, wanted);
    return ZIPCCL_OK;
}
