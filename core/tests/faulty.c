/*
 * faulty.c - a transport that breaks one message
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/faulty.h"

#include <stdlib.h>
#include <string.h>

static struct faulty *faulty_of(struct zipccl_transport *t)
{
    return (struct faulty *)t;
}

static zipccl_status group_begin(struct zipccl_transport *t)
{
    struct zipccl_transport *inner = faulty_of(t)->inner;

    return inner->ops->group_begin(inner);
}

static zipccl_status group_end(struct zipccl_transport *t)
{
    struct zipccl_transport *inner = faulty_of(t)->inner;

    return inner->ops->group_end(inner);
}

/* True if this is the message to break. */
static bool strikes(struct faulty *f, size_t nbytes)
{
    bool hit = f->nsent++ == f->message && f->fault != FAULT_NONE && nbytes > 0;

    f->hit = f->hit || hit;
    return hit;
}

static void flip(struct faulty *f, uint8_t *bytes, size_t nbytes)
{
    bytes[f->byte % nbytes] ^= 0x10;
}

static zipccl_status send(struct zipccl_transport *t, uint32_t peer, const void *buf, size_t nbytes)
{
    struct faulty *f = faulty_of(t);
    struct zipccl_transport *inner = f->inner;

    if (peer == t->rank || !strikes(f, nbytes))
        return inner->ops->send(inner, peer, buf, nbytes);
    if (f->fault == FAULT_DROP)
        return ZIPCCL_OK;
    if (f->fault == FAULT_SHORTEN)
        return inner->ops->send(inner, peer, buf, nbytes - 1);
    f->copy = malloc(nbytes);
    if (f->copy == NULL)
        abort();
    memcpy(f->copy, buf, nbytes);
    flip(f, f->copy, nbytes);
    return inner->ops->send(inner, peer, f->copy, nbytes);
}

static zipccl_status recv(struct zipccl_transport *t, uint32_t peer, void *buf, size_t nbytes)
{
    struct zipccl_transport *inner = faulty_of(t)->inner;

    return inner->ops->recv(inner, peer, buf, nbytes);
}

/* The block that rank 0 or, on rank 0, rank 1 sent arrives changed on this rank. */
static zipccl_status all_gather(struct zipccl_transport *t, const void *src, void *dst,
                                size_t nbytes, uint32_t channels)
{
    struct faulty *f = faulty_of(t);
    zipccl_status status = f->inner->ops->all_gather(f->inner, src, dst, nbytes, channels);

    if (status == ZIPCCL_OK && strikes(f, nbytes) && f->fault == FAULT_FLIP)
        flip(f, (uint8_t *)dst + (t->rank == 0 ? nbytes : 0), nbytes);
    return status;
}

static zipccl_status broadcast(struct zipccl_transport *t, void *buf, size_t nbytes, uint32_t root,
                               uint32_t channels)
{
    struct faulty *f = faulty_of(t);
    zipccl_status status = f->inner->ops->broadcast(f->inner, buf, nbytes, root, channels);

    if (status == ZIPCCL_OK && t->rank != root && strikes(f, nbytes) && f->fault == FAULT_FLIP)
        flip(f, buf, nbytes);
    return status;
}

static zipccl_status native(struct zipccl_transport *t, const struct zipccl_native_call *call)
{
    struct zipccl_transport *inner = faulty_of(t)->inner;

    return inner->ops->native(inner, call);
}

static bool has_native(const struct zipccl_transport *t, enum zipccl_op op, enum zipccl_dtype dtype,
                       enum zipccl_redop redop)
{
    const struct zipccl_transport *inner = ((const struct faulty *)t)->inner;

    return inner->ops->has_native(inner, op, dtype, redop);
}

static void abort_all(struct zipccl_transport *t)
{
    struct zipccl_transport *inner = faulty_of(t)->inner;

    inner->ops->abort(inner);
}

static const char *error_text(const struct zipccl_transport *t)
{
    const struct zipccl_transport *inner = ((const struct faulty *)t)->inner;

    return inner->ops->error_text(inner);
}

static const struct zipccl_transport_ops faulty_ops = {
    .name = "faulty",
    .group_begin = group_begin,
    .send = send,
    .recv = recv,
    .group_end = group_end,
    .all_gather = all_gather,
    .broadcast = broadcast,
    .native = native,
    .has_native = has_native,
    .abort = abort_all,
    .error_text = error_text,
};

void faulty_init(struct faulty *f, struct zipccl_transport *inner, enum fault fault,
                 uint32_t message, size_t byte)
{
    *f = (struct faulty){
        .base = {&faulty_ops, inner->rank, inner->nranks, inner->topology},
        .inner = inner,
        .fault = fault,
        .message = message,
        .byte = byte,
    };
}

void faulty_close(struct faulty *f)
{
    free(f->copy);
    f->copy = NULL;
}
