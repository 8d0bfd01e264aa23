/*
 * coll_buffers.c - what each rank sends, and what it must have received
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/coll_world.h"

#include <stdlib.h>
#include <string.h>

/* Elements of canary before and after a buffer and between the blocks of uneven ops; odd, so that
 * user buffers are aligned to an element only. */
#define GAP    33
#define CANARY 0xa5

enum { SEND_COUNTS, SEND_DISPLS, RECV_COUNTS, RECV_DISPLS };

static uint16_t *canaries(size_t n)
{
    uint16_t *p = malloc(n * sizeof *p);

    if (p == NULL)
        abort();
    memset(p, CANARY, n * sizeof *p);
    return p;
}

/* Elements between the guards of the send and the receive buffer. */
static void sizes_of(struct buffers *b, const struct coll_case *c, uint32_t nranks, uint32_t rank,
                     size_t *send_n, size_t *recv_n)
{
    bool per_peer = c->op == ZIPCCL_ALLTOALL;

    *send_n = per_peer ? c->count * nranks : c->count;
    *recv_n = c->op == ZIPCCL_BROADCAST ? c->count : c->count * nranks;
    if (!zipccl_is_uneven(c->op))
        return;
    *send_n = *recv_n = 0;
    for (uint32_t p = 0; p < nranks; p++) {
        b->displs[SEND_COUNTS][p] = case_split(c, nranks, rank, p);
        b->displs[SEND_DISPLS][p] = *send_n;
        *send_n += b->displs[SEND_COUNTS][p] + GAP;
        b->displs[RECV_COUNTS][p] = case_split(c, nranks, p, rank);
        b->displs[RECV_DISPLS][p] = *recv_n;
        *recv_n += b->displs[RECV_COUNTS][p] + GAP;
    }
}

static void fill_send(struct buffers *b, const struct coll_case *c, uint32_t nranks, uint32_t rank)
{
    if (c->op == ZIPCCL_ALL_GATHER || c->op == ZIPCCL_BROADCAST)
        case_block(c, rank, TO_ALL, 0, c->count, b->send);
    for (uint32_t p = 0; p < nranks; p++)
        if (zipccl_is_uneven(c->op))
            case_block(c, rank, p, 0, b->displs[SEND_COUNTS][p],
                       b->send + b->displs[SEND_DISPLS][p]);
        else if (c->op == ZIPCCL_ALLTOALL)
            case_block(c, rank, p, 0, c->count, b->send + p * c->count);
}

static void fill_want(struct buffers *b, const struct coll_case *c, uint32_t nranks, uint32_t rank)
{
    uint16_t *want = b->recv_want + GAP;

    if (c->op == ZIPCCL_BROADCAST)
        case_block(c, c->root, TO_ALL, 0, c->count, want);
    for (uint32_t p = 0; p < nranks; p++)
        if (zipccl_is_uneven(c->op))
            case_block(c, p, rank, 0, b->displs[RECV_COUNTS][p], want + b->displs[RECV_DISPLS][p]);
        else if (c->op == ZIPCCL_ALL_GATHER)
            case_block(c, p, TO_ALL, 0, c->count, want + p * c->count);
        else if (c->op == ZIPCCL_ALLTOALL)
            case_block(c, p, rank, 0, c->count, want + p * c->count);
}

void buffers_open(struct buffers *b, const struct coll_case *c, uint32_t nranks, uint32_t rank)
{
    size_t send_n, recv_n;

    memset(b, 0, sizeof *b);
    sizes_of(b, c, nranks, rank, &send_n, &recv_n);
    b->send_n = send_n + 2 * GAP;
    b->recv_n = recv_n + 2 * GAP;
    b->send_all = canaries(b->send_n);
    b->recv_all = canaries(b->recv_n);
    b->recv_want = canaries(b->recv_n);
    b->send = b->send_all + GAP;
    b->recv = b->recv_all + GAP;
    if (c->in_place)
        b->send = b->recv + (c->op == ZIPCCL_ALL_GATHER ? rank * c->count : 0);
    fill_send(b, c, nranks, rank);
    b->send_want = canaries(b->send_n);
    memcpy(b->send_want, b->send_all, b->send_n * sizeof *b->send_all);
    fill_want(b, c, nranks, rank);
}

bool buffers_right(const struct buffers *b, const struct coll_case *c)
{
    (void)c;
    return memcmp(b->recv_all, b->recv_want, b->recv_n * sizeof *b->recv_all) == 0 &&
           memcmp(b->send_all, b->send_want, b->send_n * sizeof *b->send_all) == 0;
}

void buffers_close(struct buffers *b)
{
    free(b->send_all);
    free(b->recv_all);
    free(b->send_want);
    free(b->recv_want);
}
