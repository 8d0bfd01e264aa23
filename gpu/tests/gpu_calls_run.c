/*
 * gpu_calls_run.c - one call on the GPU and the same on the CPU
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/gpu_calls_run.h"

#include "core/tests/codec_data.h"

#include <stdlib.h>
#include <string.h>

/* Elements from rank 'src' to rank 'dst' of an uneven call. */
static size_t split_of(const struct gpu_case *c, uint32_t src, uint32_t dst)
{
    static const unsigned eighths[] = {8, 3, 0, 5, 1, 7};

    return c->count * eighths[(src * 5 + dst * 3) % 6] / 8;
}

static size_t fill_splits(struct gpu_rank *r, const struct gpu_case *c, struct gpu_buffers *b,
                          unsigned which)
{
    size_t at = 0;

    for (uint32_t p = 0; p < r->world->nranks; p++) {
        size_t n = which == 0 ? split_of(c, r->rank, p) : split_of(c, p, r->rank);

        b->counts[which][p] = n;
        b->counts[which + 1][p] = at;
        at += n + 1; /* a gap, which nobody writes */
    }
    return at;
}

void gpu_buffers_open(struct gpu_rank *r, const struct gpu_case *c, struct gpu_buffers *b)
{
    size_t size = zipccl_dtype_size(c->dtype), n = r->world->nranks;
    size_t send_n = c->count, recv_n = c->count;

    memset(b, 0, sizeof *b);
    if (c->op == ZIPCCL_ALL_GATHER || c->op == ZIPCCL_ALLTOALL)
        recv_n *= n;
    if (c->op == ZIPCCL_REDUCE_SCATTER || c->op == ZIPCCL_ALLTOALL)
        send_n *= n;
    if (c->op == ZIPCCL_ALLTOALLV) {
        send_n = fill_splits(r, c, b, 0);
        recv_n = fill_splits(r, c, b, 2);
    }
    b->send_nbytes = send_n * size;
    b->recv_nbytes = recv_n * size;
    b->send = malloc(b->send_nbytes);
    b->recv = malloc(b->recv_nbytes);
    b->want = malloc(b->recv_nbytes);
    b->d_send = gpu_upload(r, b->send, b->send_nbytes);
    b->d_recv = gpu_upload(r, b->recv, b->recv_nbytes);
}

void gpu_buffers_close(struct gpu_rank *r, struct gpu_buffers *b)
{
    EXPECT(r, cudaFree(b->d_send) == cudaSuccess);
    EXPECT(r, cudaFree(b->d_recv) == cudaSuccess);
    free(b->send);
    free(b->recv);
    free(b->want);
}

/* Where a call sends from and receives to, given its buffers; in place they are one. */
static void ends_of(const struct gpu_rank *r, const struct gpu_case *c, char *send, char *recv,
                    char **from, char **to)
{
    size_t own = r->rank * c->count * zipccl_dtype_size(c->dtype);

    *from = send;
    *to = recv;
    if (!c->in_place)
        return;
    if (c->op == ZIPCCL_REDUCE_SCATTER)
        *to = send + own;
    else
        *from = c->op == ZIPCCL_ALL_GATHER ? recv + own : recv;
}

static zipccl_status host_call(const struct gpu_case *c, const struct gpu_buffers *b,
                               const void *from, void *to, struct zipccl_comm *comm)
{
    switch (c->op) {
    case ZIPCCL_ALL_GATHER: return zipccl_all_gather(from, to, c->count, c->dtype, comm, NULL);
    case ZIPCCL_REDUCE_SCATTER:
        return zipccl_reduce_scatter(from, to, c->count, c->dtype, c->redop, comm, NULL);
    case ZIPCCL_ALL_REDUCE:
        return zipccl_all_reduce(from, to, c->count, c->dtype, c->redop, comm, NULL);
    case ZIPCCL_BROADCAST:
        return zipccl_broadcast(from, to, c->count, c->dtype, c->root, comm, NULL);
    case ZIPCCL_ALLTOALL: return zipccl_alltoall(from, to, c->count, c->dtype, comm, NULL);
    default:
        return zipccl_alltoallv(from, b->counts[0], b->counts[1], to, b->counts[2], b->counts[3],
                                c->dtype, comm, NULL);
    }
}

void gpu_case_host(struct gpu_rank *r, const struct gpu_case *c, struct gpu_buffers *b,
                   struct zipccl_comm *host)
{
    struct data_random random = {r->rank * 977u + c->count + c->seed * 7919u};
    bool spoiled = c->spoiled >> r->rank & 1;
    size_t size = zipccl_dtype_size(c->dtype);
    char *send = malloc(b->send_nbytes), *from, *to;

    data_fill_type(c->dtype, spoiled && c->spoiled_n == 0 ? DATA_BITS : DATA_GAUSS, &random, 0.3,
                   b->send, b->send_nbytes / size);
    if (spoiled && c->spoiled_n > 0)
        data_fill_type(c->dtype, DATA_BITS, &random, 0.3, b->send, c->spoiled_n);
    memset(b->recv, 0x55, b->recv_nbytes);
    if (c->in_place && c->op != ZIPCCL_REDUCE_SCATTER) {
        size_t at = c->op == ZIPCCL_ALL_GATHER ? r->rank * c->count * size : 0;

        memcpy(b->recv + at, b->send, b->send_nbytes);
    }
    EXPECT(r, cudaMemcpyAsync(b->d_send, b->send, b->send_nbytes, cudaMemcpyHostToDevice,
                              r->stream) == cudaSuccess);
    EXPECT(r, cudaMemcpyAsync(b->d_recv, b->recv, b->recv_nbytes, cudaMemcpyHostToDevice,
                              r->stream) == cudaSuccess);
    EXPECT(r, cudaStreamSynchronize(r->stream) == cudaSuccess);
    memcpy(send, b->send, b->send_nbytes);
    memcpy(b->want, b->recv, b->recv_nbytes);
    ends_of(r, c, send, b->want, &from, &to);
    EXPECT(r, host_call(c, b, from, to, host) == ZIPCCL_OK);
    if (c->in_place && c->op == ZIPCCL_REDUCE_SCATTER)
        memcpy(b->want, to, b->recv_nbytes);
    free(send);
}

zipccl_status gpu_case_call(struct gpu_rank *r, const struct gpu_case *c, struct gpu_buffers *b,
                            struct zipccl_gpu_comm *comm)
{
    char *from, *to;

    ends_of(r, c, b->d_send, b->d_recv, &from, &to);
    switch (c->op) {
    case ZIPCCL_ALL_GATHER:
        return zipccl_gpu_all_gather(from, to, c->count, c->dtype, comm, r->stream);
    case ZIPCCL_REDUCE_SCATTER:
        return zipccl_gpu_reduce_scatter(from, to, c->count, c->dtype, c->redop, comm, r->stream);
    case ZIPCCL_ALL_REDUCE:
        return zipccl_gpu_all_reduce(from, to, c->count, c->dtype, c->redop, comm, r->stream);
    case ZIPCCL_BROADCAST:
        return zipccl_gpu_broadcast(from, to, c->count, c->dtype, c->root, comm, r->stream);
    case ZIPCCL_ALLTOALL: return zipccl_gpu_alltoall(from, to, c->count, c->dtype, comm, r->stream);
    default:
        return zipccl_gpu_alltoallv(from, b->counts[0], b->counts[1], to, b->counts[2],
                                    b->counts[3], c->dtype, comm, r->stream);
    }
}

bool gpu_case_right(struct gpu_rank *r, const struct gpu_case *c, struct gpu_buffers *b)
{
    char *from, *to;

    ends_of(r, c, b->d_send, b->d_recv, &from, &to);
    gpu_download(r, b->recv, c->op == ZIPCCL_REDUCE_SCATTER ? to : b->d_recv, b->recv_nbytes);
    return memcmp(b->recv, b->want, b->recv_nbytes) == 0;
}

void gpu_count_captured(void *context, const char *text)
{
    struct gpu_rank *r = context;

    EXPECT(r, strstr(text, "captured") != NULL);
    r->notices++;
}
