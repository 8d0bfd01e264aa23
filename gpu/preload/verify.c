/*
 * verify.c - compare compressed collectives with what they should have done
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/verify.h"

#include "core/reference.h"
#include "gpu/preload/counts.h"
#include "gpu/preload/cuda.h"
#include "gpu/preload/engine.h"
#include "gpu/preload/fault.h"
#include "gpu/preload/log.h"
#include "gpu/preload/pool.h"
#include "gpu/preload/shim.h"
#include "gpu/preload/verify_sums.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of a window over all ranks: host and device have two each. */
enum { WINDOW = 16 << 20 };

size_t zipccl_shim_first_difference(const void *a, const void *b, size_t n, size_t size)
{
    const unsigned char *x = a, *y = b;
    size_t i = 0;

    if (memcmp(a, b, n * size) == 0)
        return n;
    while (memcmp(x + i * size, y + i * size, size) == 0)
        i++;
    return i;
}

static void put_hex(char *out, const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", bytes[size - 1 - i]);
}

void zipccl_shim_report_difference(struct zipccl_shim_comm *comm,
                                   const struct zipccl_shim_difference *d)
{
    char expected[17], found[17], peer[32] = "", text[ZIPCCL_SHIM_ERROR];

    put_hex(expected, d->expected, d->size);
    put_hex(found, d->found, d->size);
    if (d->peer >= 0)
        (void)snprintf(peer, sizeof peer, " of rank %d", d->peer);
    (void)snprintf(text, sizeof text,
                   "VERIFY: communicator %s of %d ranks, %s, count %zu, rank %d: element %zu%s is "
                   "0x%s, expected 0x%s by %s",
                   comm->name[0] != '\0' ? comm->name : "without a name", comm->nranks, d->op,
                   d->count, comm->rank, d->index, peer, found, expected, d->what);
    zipccl_log_warn("%s", text);
    (void)zipccl_shim_fault(comm, ncclSuccess, "%s", text);
}

/* One call's check: buffers for a window, in device and host memory. */
struct window {
    const struct zipccl_cuda *cuda;
    struct zipccl_shim_comm *comm;
    const struct zipccl_shim_call *call;
    size_t size, n, room; /* bytes an element, elements a rank in the window, and at most */
    char *d_plain, *plain, *ours;
    cudaStream_t stream;
};

static bool fetch(const struct window *w, char *host, const void *device, size_t nbytes)
{
    return w->cuda->cudaMemcpyAsync(host, device, nbytes, cudaMemcpyDeviceToHost, w->stream) ==
           cudaSuccess;
}

static bool settle_stream(const struct zipccl_cuda *cuda, const struct zipccl_shim_comm *comm,
                          cudaStream_t stream)
{
    return zipccl_cuda_wait(cuda, stream, &comm->leaving) == cudaSuccess;
}

static bool settle(const struct window *w)
{
    return settle_stream(w->cuda, w->comm, w->stream);
}

static bool open_window(struct window *w, const struct zipccl_cuda *cuda,
                        struct zipccl_shim_comm *comm, const struct zipccl_shim_call *call)
{
    size_t ranks = (size_t)comm->nranks, whole;

    memset(w, 0, sizeof *w);
    w->cuda = cuda;
    w->comm = comm;
    w->call = call;
    w->stream = call->stream;
    w->size = zipccl_dtype_size((enum zipccl_dtype)call->dtype);
    w->room = WINDOW / w->size / ranks;
    if (w->room == 0)
        w->room = 1;
    if (w->room > call->count)
        w->room = call->count;
    whole = w->room * w->size * ranks;
    w->plain = malloc(whole);
    w->ours = malloc(whole);
    w->d_plain = zipccl_shim_pool_take(cuda, comm->device, whole);
    return w->plain != NULL && w->ours != NULL && w->d_plain != NULL;
}

/* 'quiet': nothing that was begun is under way any more; else the device keeps what it may write to. */
static void close_window(struct window *w, bool quiet)
{
    if (quiet) {
        free(w->plain);
        free(w->ours);
        zipccl_shim_pool_give(w->d_plain);
    } else {
        zipccl_shim_pool_lose(w->d_plain);
    }
}

/* Plain NCCL for elements [first, first + n) of every block, into d_plain [nranks][n]. */
static ncclResult_t move_plain(const struct window *w, size_t first)
{
    const struct zipccl_nccl *nccl = zipccl_nccl_get();
    const struct zipccl_shim_call *c = w->call;
    const char *send = (const char *)c->send + first * w->size;
    size_t block = c->count * w->size, nbytes = w->n * w->size;
    ncclResult_t result, ended;

    switch (c->function) {
    case ZIPCCL_SHIM_FN_ALL_GATHER:
        return nccl->ncclAllGather(send, w->d_plain, w->n, c->dtype, c->comm, w->stream);
    case ZIPCCL_SHIM_FN_BROADCAST:
    case ZIPCCL_SHIM_FN_BCAST:
        return nccl->ncclBroadcast(send, w->d_plain, w->n, c->dtype, c->root, c->comm, w->stream);
    default: break;
    }
    result = nccl->ncclGroupStart();
    for (int p = 0; p < w->comm->nranks && result == ncclSuccess; p++) {
        result = nccl->ncclSend(send + (size_t)p * block, w->n, c->dtype, p, c->comm, w->stream);
        if (result == ncclSuccess)
            result = nccl->ncclRecv(w->d_plain + (size_t)p * nbytes, w->n, c->dtype, p, c->comm,
                                    w->stream);
    }
    ended = nccl->ncclGroupEnd();
    return result == ncclSuccess ? ended : result;
}

/* Compare elements [first, first + n) of every block; true if they are equal. */
static ncclResult_t compare_moved(const struct window *w, size_t first, bool *equal)
{
    const struct zipccl_shim_call *c = w->call;
    bool blocks =
        c->function == ZIPCCL_SHIM_FN_ALL_GATHER || c->function == ZIPCCL_SHIM_FN_ALLTOALL;
    int nblocks = blocks ? w->comm->nranks : 1;
    size_t nbytes = w->n * w->size;
    ncclResult_t result = move_plain(w, first);
    bool ok = true;

    if (result != ncclSuccess)
        return result;
    for (int p = 0; p < nblocks && ok; p++)
        ok = fetch(w, w->ours + (size_t)p * nbytes,
                   (const char *)c->recv + ((size_t)p * c->count + first) * w->size, nbytes);
    if (!ok || !fetch(w, w->plain, w->d_plain, (size_t)nblocks * nbytes) || !settle(w))
        return ncclUnhandledCudaError;
    for (int p = 0; p < nblocks && *equal; p++) {
        const char *plain = w->plain + (size_t)p * nbytes, *ours = w->ours + (size_t)p * nbytes;
        size_t at = zipccl_shim_first_difference(plain, ours, w->n, w->size);

        if (at == w->n)
            continue;
        *equal = false;
        zipccl_shim_report_difference(
            w->comm,
            &(struct zipccl_shim_difference){
                "plain NCCL", zipccl_shim_op_name(zipccl_shim_op_of(c->function)), c->count,
                first + at, blocks ? p : c->root, (const unsigned char *)plain + at * w->size,
                (const unsigned char *)ours + at * w->size, w->size});
    }
    return ncclSuccess;
}

/* The contributions to elements [first, first + n) of this rank's result, into d_plain [nranks][n]. */
static ncclResult_t gather_raw(const struct window *w, const char *d_input, size_t first)
{
    const struct zipccl_nccl *nccl = zipccl_nccl_get();
    struct zipccl_shim_call as_moved = *w->call;
    struct window moved = *w;

    if (w->call->function == ZIPCCL_SHIM_FN_ALL_REDUCE)
        return nccl->ncclAllGather(d_input + first * w->size, w->d_plain, w->n, w->call->dtype,
                                   w->call->comm, w->stream);
    as_moved.function = ZIPCCL_SHIM_FN_ALLTOALL;
    as_moved.send = d_input;
    moved.call = &as_moved;
    return move_plain(&moved, first);
}

/* Plain NCCL's result for the same elements, at the start of d_plain. */
static ncclResult_t reduce_plain(const struct window *w, const char *d_input, size_t first)
{
    const struct zipccl_nccl *nccl = zipccl_nccl_get();
    const struct zipccl_shim_call *c = w->call;
    ncclResult_t result = ncclSuccess, ended;

    if (c->function == ZIPCCL_SHIM_FN_ALL_REDUCE)
        return nccl->ncclAllReduce(d_input + first * w->size, w->d_plain, w->n, c->dtype, c->redop,
                                   c->comm, w->stream);
    /* The blocks of a window do not lie end to end, so each rank's part is a reduction of its own. */
    result = nccl->ncclGroupStart();
    for (int p = 0; p < w->comm->nranks && result == ncclSuccess; p++)
        result = nccl->ncclReduce(d_input + ((size_t)p * c->count + first) * w->size, w->d_plain,
                                  w->n, c->dtype, c->redop, p, c->comm, w->stream);
    ended = nccl->ncclGroupEnd();
    return result == ncclSuccess ? ended : result;
}

static ncclResult_t compare_sums(const struct window *w, const struct zipccl_reference *reference,
                                 const char *d_input, size_t first, bool *equal)
{
    const struct zipccl_shim_call *c = w->call;
    size_t nbytes = w->n * w->size, ranks = (size_t)w->comm->nranks;
    char *theirs = w->ours + nbytes; /* 'ours' has room for all ranks, and there are two at least */
    ncclResult_t result = gather_raw(w, d_input, first);
    struct zipccl_shim_sums sums = {reference, w->plain,           w->ours, theirs, w->n,
                                    ranks,     c->redop == ncclAvg};

    if (result != ncclSuccess)
        return result;
    if (!fetch(w, w->plain, w->d_plain, ranks * nbytes) ||
        !fetch(w, w->ours, (const char *)c->recv + first * w->size, nbytes) || !settle(w))
        return ncclUnhandledCudaError;
    result = reduce_plain(w, d_input, first);
    if (result != ncclSuccess)
        return result;
    if (!fetch(w, theirs, w->d_plain, nbytes) || !settle(w))
        return ncclUnhandledCudaError;
    *equal =
        zipccl_shim_check_sums(w->comm, &sums, zipccl_shim_op_of(c->function), c->count, first);
    return ncclSuccess;
}

static bool reduces(const struct zipccl_shim_call *call)
{
    return call->function == ZIPCCL_SHIM_FN_ALL_REDUCE ||
           call->function == ZIPCCL_SHIM_FN_REDUCE_SCATTER;
}

ncclResult_t zipccl_shim_check_begin(struct zipccl_shim_check *check, struct zipccl_shim_comm *comm,
                                     const struct zipccl_shim_call *call)
{
    const struct zipccl_cuda *cuda = zipccl_cuda_get();
    size_t nbytes = call->count * zipccl_dtype_size((enum zipccl_dtype)call->dtype);

    if (!reduces(call))
        return ncclSuccess;
    if (call->function == ZIPCCL_SHIM_FN_REDUCE_SCATTER)
        nbytes *= (size_t)comm->nranks;
    check->skip = nbytes > zipccl_shim.settings.memory_bytes;
    if (check->skip)
        return ncclSuccess;
    check->d_input = zipccl_shim_pool_take(cuda, comm->device, nbytes);
    if (check->d_input == NULL ||
        cuda->cudaMemcpyAsync(check->d_input, call->send, nbytes, cudaMemcpyDeviceToDevice,
                              call->stream) != cudaSuccess)
        return zipccl_shim_fault(comm, ncclUnhandledCudaError,
                                 "ZIPCCL_VERIFY: no device memory for a copy of %zu bytes", nbytes);
    return ncclSuccess;
}

/* Tell all ranks of the communicator whether all have found what they expected. */
static ncclResult_t share(const struct window *w, bool *equal)
{
    const struct zipccl_nccl *nccl = zipccl_nccl_get();
    int32_t differs = !*equal;
    ncclResult_t result;

    if (w->cuda->cudaMemcpyAsync(w->d_plain, &differs, sizeof differs, cudaMemcpyHostToDevice,
                                 w->stream) != cudaSuccess ||
        !settle(w))
        return ncclUnhandledCudaError;
    result = nccl->ncclAllReduce(w->d_plain, w->d_plain, 1, ncclInt32, ncclMax, w->call->comm,
                                 w->stream);
    if (result != ncclSuccess)
        return result;
    if (!fetch(w, (char *)&differs, w->d_plain, sizeof differs) || !settle(w))
        return ncclUnhandledCudaError;
    *equal = differs == 0;
    return ncclSuccess;
}

static void act(struct zipccl_shim_comm *comm, bool own)
{
    if (!zipccl_shim.settings.verify_disables) {
        if (own)
            abort();
        /* The rank that found it ends; the others would otherwise hang. */
        zipccl_log_warn("VERIFY: another rank of this communicator found a mismatch");
        abort();
    }
    zipccl_shim_comm_stop(comm, ZIPCCL_SHIM_DISABLED);
    if (own || comm->rank == 0)
        zipccl_log_warn("VERIFY: compression is disabled on communicator %s of %d ranks",
                        comm->name[0] != '\0' ? comm->name : "without a name", comm->nranks);
}

/* All windows of a call. */
static ncclResult_t check_windows(struct window *w, const struct zipccl_reference *reference,
                                  const char *d_input, bool *equal)
{
    ncclResult_t result = ncclSuccess;

    /* Every rank goes through all windows, also after a mismatch: they are collective. */
    for (size_t first = 0; first < w->call->count && result == ncclSuccess; first += w->n) {
        bool window_equal = true;

        w->n = w->call->count - first < w->room ? w->call->count - first : w->room;
        result = d_input != NULL ? compare_sums(w, reference, d_input, first, &window_equal)
                                 : compare_moved(w, first, &window_equal);
        *equal = *equal && window_equal;
    }
    return result;
}

ncclResult_t zipccl_shim_check_end(struct zipccl_shim_check *check, struct zipccl_shim_comm *comm,
                                   const struct zipccl_shim_call *call, ncclResult_t result)
{
    const struct zipccl_shim_back_end *back = zipccl_shim_engine_table();
    const struct zipccl_cuda *cuda = zipccl_cuda_get();
    const struct zipccl_plan *plan = back->last_plan(comm->engine);
    enum zipccl_shim_op op = zipccl_shim_op_of(call->function);
    struct zipccl_reference reference;
    struct window w = {0};
    bool equal = true, own;

    /* What the back end passed to NCCL, or a native plan of it, has NCCL's own bits. */
    if (result == ncclSuccess && !check->skip && plan != NULL &&
        (!reduces(call) ||
         zipccl_reference_init(&reference, plan, back->topology(comm->engine)) == ZIPCCL_OK)) {
        result = open_window(&w, cuda, comm, call)
                     ? check_windows(&w, &reference, check->d_input, &equal)
                     : ncclUnhandledCudaError;
        own = !equal;
        if (result == ncclSuccess)
            result = share(&w, &equal);
        close_window(&w, result == ncclSuccess);
        zipccl_shim_count_check(comm, op,
                                result != ncclSuccess ? ZIPCCL_SHIM_UNCHECKED
                                : own                 ? ZIPCCL_SHIM_DIFFERENT
                                                      : ZIPCCL_SHIM_EQUAL);
        if (result == ncclSuccess && !equal)
            act(comm, own);
    } else {
        zipccl_shim_count_check(comm, op, ZIPCCL_SHIM_UNCHECKED);
    }
    if (result == ncclSuccess &&
        (check->d_input == NULL || settle_stream(cuda, comm, call->stream)))
        zipccl_shim_pool_give(check->d_input);
    else
        zipccl_shim_pool_lose(check->d_input);
    return result;
}
