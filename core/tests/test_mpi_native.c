/*
 * test_mpi_native.c - MPI's own collectives behind the transport: every op, type and operator
 *
 * Run by mpirun with 5 processes.  MPI's order of operands is its own, so inputs are small whole
 * numbers, whose sums and products every type holds exactly in any order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/reduce.h"
#include "core/tests/mpi_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct native_case {
    enum zipccl_op op;
    enum zipccl_dtype dtype;
    enum zipccl_redop redop;
    size_t count;
    uint32_t root;
    bool in_place;
};

static void *allocate(size_t nbytes)
{
    void *p = malloc(nbytes + 1);

    if (p == NULL)
        abort();
    return p;
}

/* 1 to 3, in any type: products over 5 ranks stay below 2^8 (bf16's significand). */
static unsigned value_at(uint32_t rank, size_t i)
{
    return 1 + (unsigned)((rank * 7 + i * 5 + i / 3) % 3);
}

static void put(enum zipccl_dtype dtype, void *buf, size_t i, unsigned value)
{
    size_t size = zipccl_dtype_size(dtype);
    char *p = (char *)buf + i * size;
    uint64_t whole = size == 1 ? 60 * value : value; /* sums of bytes wrap around */
    float f = (float)value;
    double d = value;
    uint16_t half;

    switch (dtype) {
    case ZIPCCL_FLOAT64: memcpy(p, &d, 8); break;
    case ZIPCCL_FLOAT32: memcpy(p, &f, 4); break;
    case ZIPCCL_BFLOAT16:
        half = zipccl_bf16_from_float(f);
        memcpy(p, &half, 2);
        break;
    case ZIPCCL_FLOAT16:
        half = zipccl_fp16_from_float(f);
        memcpy(p, &half, 2);
        break;
    default: memcpy(p, &whole, size); break; /* little-endian; fp8 is only moved */
    }
}

static void fill(enum zipccl_dtype dtype, void *buf, size_t n, uint32_t rank)
{
    for (size_t i = 0; i < n; i++)
        put(dtype, buf, i, value_at(rank, i));
}

/* Elements of the send and receive buffers. */
static void sizes_of(const struct native_case *c, size_t nranks, size_t *send_n, size_t *recv_n)
{
    bool all_send =
        c->op == ZIPCCL_REDUCE_SCATTER || c->op == ZIPCCL_ALLTOALL || zipccl_is_uneven(c->op);
    bool all_recv = c->op == ZIPCCL_ALL_GATHER || (all_send && c->op != ZIPCCL_REDUCE_SCATTER);

    *send_n = all_send ? c->count * nranks : c->count;
    *recv_n = all_recv ? c->count * nranks : c->count;
}

/* Elements that 'src' sends to 'dst' of the uneven ops. */
static size_t split_of(const struct native_case *c, uint32_t nranks, uint32_t src, uint32_t dst)
{
    if (c->op == ZIPCCL_SENDRECV)
        return dst == (src + 1) % nranks ? c->count : 0;
    return src == 1 ? 0 : (src * 3 + dst * 5) % (c->count + 1); /* rank 1 sends nothing */
}

static void want_reduced(const struct native_case *c, uint32_t nranks, uint32_t rank, void *want)
{
    size_t size = zipccl_dtype_size(c->dtype), send_n, recv_n;
    size_t first = c->op == ZIPCCL_REDUCE_SCATTER ? rank * c->count : 0;
    const void *sources[MAX_RANKS];
    void *all[MAX_RANKS];

    sizes_of(c, nranks, &send_n, &recv_n);
    for (uint32_t p = 0; p < nranks; p++) {
        all[p] = allocate(send_n * size);
        fill(c->dtype, all[p], send_n, p);
        sources[p] = (char *)all[p] + first * size;
    }
    if (zipccl_reduce(c->dtype, c->redop, sources, nranks, recv_n, want) != ZIPCCL_OK)
        abort();
    for (uint32_t p = 0; p < nranks; p++)
        free(all[p]);
}

static void want_moved(const struct native_case *c, uint32_t nranks, uint32_t rank, char *want,
                       const size_t *displs)
{
    size_t size = zipccl_dtype_size(c->dtype), send_n, recv_n;
    char *sent;

    sizes_of(c, nranks, &send_n, &recv_n);
    sent = allocate(send_n * size);
    for (uint32_t p = 0; p < nranks; p++) {
        size_t block = c->count * size, at = rank * block;

        fill(c->dtype, sent, send_n, p);
        switch (c->op) {
        case ZIPCCL_ALL_GATHER: memcpy(want + p * block, sent, block); break;
        case ZIPCCL_ALLTOALL: memcpy(want + p * block, sent + at, block); break;
        case ZIPCCL_BROADCAST:
            if (p == c->root)
                memcpy(want, sent, block);
            break;
        default:
            memcpy(want + displs[p] * size, sent + displs[rank] * size,
                   split_of(c, nranks, p, rank) * size);
            break;
        }
    }
    free(sent);
}

static bool run_case(const struct world *w, const struct native_case *c)
{
    uint32_t rank = mpi_rank(), n = w->nranks;
    size_t size = zipccl_dtype_size(c->dtype), send_n, recv_n, counts[2][MAX_RANKS];
    size_t displs[MAX_RANKS], offset;
    char *send, *recv, *want, *out;
    struct zipccl_native_call call = {.op = c->op, .dtype = c->dtype, .redop = c->redop};
    bool ok;

    sizes_of(c, n, &send_n, &recv_n);
    send = allocate(send_n * size);
    recv = allocate(recv_n * size);
    want = allocate(recv_n * size);
    fill(c->dtype, send, send_n, rank);
    memset(recv, 0x5a, recv_n * size);
    memset(want, 0x5a, recv_n * size);
    for (uint32_t p = 0; p < n; p++) {
        displs[p] = p * c->count;
        counts[0][p] = split_of(c, n, rank, p);
        counts[1][p] = split_of(c, n, p, rank);
    }
    call.root = c->root;
    call.count = c->count;
    call.send_counts = counts[0];
    call.recv_counts = counts[1];
    call.send_displs = call.recv_displs = displs;
    if (zipccl_is_reduction(c->op))
        want_reduced(c, n, rank, want);
    else
        want_moved(c, n, rank, want, displs);
    out = recv;
    call.send = send;
    if (c->in_place && c->op == ZIPCCL_REDUCE_SCATTER) {
        out = send + rank * c->count * size;
    } else if (c->in_place) {
        offset = c->op == ZIPCCL_ALL_GATHER ? rank * c->count * size : 0;
        memcpy(recv + offset, send, c->count * size);
        call.send = recv + offset;
    }
    call.recv = out;
    ok = w->t[rank]->ops->native(w->t[rank], &call) == ZIPCCL_OK &&
         memcmp(out, want, recv_n * size) == 0;
    for (size_t i = 0; ok && !c->in_place && i < send_n; i++) { /* it stays as it was */
        uint64_t x = 0;

        put(c->dtype, &x, 0, value_at(rank, i));
        ok = memcmp(send + i * size, &x, size) == 0;
    }
    free(send);
    free(recv);
    free(want);
    return ok;
}

/* All ops, types and operators; 'k' takes turns with counts, roots and places. */
static unsigned run_all(const struct world *w)
{
    static const size_t counts[] = {1, 700, 33, 0, 256};
    struct zipccl_transport *t = w->t[mpi_rank()];
    unsigned k = 0;

    for (unsigned op = 0; op < ZIPCCL_NUM_OPS; op++)
        for (unsigned d = 0; d < ZIPCCL_NUM_DTYPES; d++)
            for (unsigned redop = 0; redop < ZIPCCL_NUM_REDOPS; redop++)
                for (unsigned v = 0; v < 2; v++, k++) {
                    struct native_case c = {.op = (enum zipccl_op)op,
                                            .dtype = (enum zipccl_dtype)d,
                                            .redop = (enum zipccl_redop)redop,
                                            .count = counts[k % 5],
                                            .root = op == ZIPCCL_BROADCAST ? k % w->nranks : 0};
                    bool fp8 = d >= ZIPCCL_FLOAT8_E4M3;

                    c.in_place = v == 1 && op != ZIPCCL_ALLTOALL && !zipccl_is_uneven(op);
                    if (!zipccl_is_reduction(c.op) && redop > 0)
                        continue;
                    if (t->ops->has_native(t, c.op, c.dtype, c.redop) ==
                        (zipccl_is_reduction(c.op) && fp8))
                        return 0;
                    if ((zipccl_is_reduction(c.op) && fp8) || run_case(w, &c))
                        continue;
                    fprintf(stderr, "rank %u of %u: %s %s %s of %zu, root %u%s: wrong; %s\n",
                            mpi_rank(), w->nranks, zipccl_op_name(c.op), zipccl_dtype_name(c.dtype),
                            zipccl_redop_name(c.redop), c.count, c.root,
                            c.in_place ? ", in place" : "", t->ops->error_text(t));
                    MPI_Abort(MPI_COMM_WORLD, 1);
                }
    return k;
}

int main(int argc, char **argv)
{
    static const uint32_t node_ids[5] = {0, 0, 1, 1, 1};
    unsigned ncases = 1;

    mpi_start(&argc, &argv);
    if (mpi_size() < 5) {
        fprintf(stderr, "%u processes, expected 5: mpirun -n 5\n", mpi_size());
        return 1;
    }
    for (uint32_t nranks = 1; nranks <= 5; nranks += 2)
        for (unsigned small = 0; small < 2; small++) {
            struct zipccl_transport_mpi_config config;
            struct world w;

            if (mpi_rank() < nranks) {
                zipccl_transport_mpi_config_init(&config);
                if (small) /* blocks of several pieces, reductions in several cuts */
                    config.piece_bytes = config.native_bytes = 1000;
                mpi_world_open(&w, nranks, node_ids, &config);
                if (ncases > 0)
                    ncases = run_all(&w);
                mpi_world_close(&w);
            }
            mpi_meet();
        }
    if (mpi_rank() == 0)
        printf("%u natives in each of 6 worlds\n", ncases);
    MPI_Finalize();
    return ncases > 0 ? 0 : 1;
}
