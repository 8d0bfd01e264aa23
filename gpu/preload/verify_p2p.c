/*
 * verify_p2p.c - compare compressed sends and receives with plain NCCL
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/cuda.h"
#include "gpu/preload/shim.h"
#include "gpu/preload/verify.h"

#include <stdlib.h>
#include <string.h>

/* A message under way a second time. */
struct message {
    struct zipccl_gpu_p2p op;
    void *d_copy;  /* what was sent, or what arrived */
    void *d_plain; /* of a receive: what plain NCCL brings */
    cudaEvent_t done;
    struct message *next;
};

struct zipccl_shim_messages {
    ncclComm_t comm;
    cudaStream_t stream;
    struct message *first;
    uint64_t *sent, *received; /* [nranks] messages so far, equal at both ends */
};

ncclResult_t zipccl_shim_messages_create(struct zipccl_shim_comm *comm)
{
    const struct zipccl_nccl *nccl = zipccl_nccl_get();
    const struct zipccl_cuda *cuda = zipccl_cuda_get();
    struct zipccl_shim_messages *m = calloc(1, sizeof *m);
    ncclResult_t result = ncclSystemError;
    int before;

    if (m != NULL)
        m->sent = calloc((size_t)comm->nranks * 2, sizeof *m->sent);
    if (m != NULL && m->sent != NULL && nccl->ncclCommSplit != NULL &&
        zipccl_cuda_enter(cuda, comm->device, &before)) {
        m->received = m->sent + comm->nranks;
        result = nccl->ncclCommSplit(comm->handle, 0, comm->rank, &m->comm, NULL);
        if (result == ncclSuccess &&
            cuda->cudaStreamCreateWithFlags(&m->stream, cudaStreamNonBlocking) != cudaSuccess)
            result = ncclUnhandledCudaError;
        zipccl_cuda_leave(cuda, before);
    }
    if (result == ncclSuccess) {
        comm->messages = m;
        return ncclSuccess;
    }
    if (m != NULL)
        free(m->sent);
    free(m);
    return result;
}

static void release(const struct zipccl_cuda *cuda, struct message *message)
{
    if (message->d_copy != NULL)
        (void)cuda->cudaFree(message->d_copy);
    if (message->d_plain != NULL)
        (void)cuda->cudaFree(message->d_plain);
    if (message->done != NULL)
        (void)cuda->cudaEventDestroy(message->done);
    free(message);
}

/* Both copies of a receive have arrived: are they one? */
static bool same(const struct zipccl_cuda *cuda, struct zipccl_shim_comm *comm,
                 const struct message *message)
{
    const struct zipccl_gpu_p2p *op = &message->op;
    cudaStream_t stream = comm->messages->stream;
    size_t size = zipccl_dtype_size(op->dtype), nbytes = op->count * size, at;
    char *plain = malloc(nbytes), *ours = malloc(nbytes);
    bool equal = true;

    if (plain != NULL && ours != NULL &&
        cuda->cudaMemcpyAsync(plain, message->d_plain, nbytes, cudaMemcpyDeviceToHost, stream) ==
            cudaSuccess &&
        cuda->cudaMemcpyAsync(ours, message->d_copy, nbytes, cudaMemcpyDeviceToHost, stream) ==
            cudaSuccess &&
        zipccl_cuda_wait(cuda, stream, &comm->leaving) == cudaSuccess) {
        comm->counts.verified[ZIPCCL_SHIM_SENDRECV]++;
        at = zipccl_shim_first_difference(plain, ours, op->count, size);
        equal = at == op->count;
        if (!equal)
            zipccl_shim_report_difference(comm, &(struct zipccl_shim_difference){
                                                    "plain NCCL", "sendrecv", op->count, at,
                                                    (int)op->peer,
                                                    (const unsigned char *)plain + at * size,
                                                    (const unsigned char *)ours + at * size, size});
    } else {
        comm->counts.unverified[ZIPCCL_SHIM_SENDRECV]++;
    }
    free(plain);
    free(ours);
    return equal;
}

/* Look at what has arrived; with 'wait' at all that is under way. */
static void settle(const struct zipccl_cuda *cuda, struct zipccl_shim_comm *comm, bool wait)
{
    struct zipccl_shim_messages *m = comm->messages;
    struct message **at = &m->first, *message;

    while ((message = *at) != NULL) {
        cudaError_t state =
            wait ? cuda->cudaEventSynchronize(message->done) : cuda->cudaEventQuery(message->done);

        if (state == cudaErrorNotReady) {
            at = &message->next;
            continue;
        }
        if (!message->op.send && state == cudaSuccess && !same(cuda, comm, message))
            abort();
        *at = message->next;
        release(cuda, message);
    }
}

void zipccl_shim_messages_destroy(struct zipccl_shim_comm *comm, bool abort_it)
{
    const struct zipccl_nccl *nccl = zipccl_nccl_get();
    const struct zipccl_cuda *cuda = zipccl_cuda_get();
    struct zipccl_shim_messages *m = comm->messages;
    int before;

    if (m == NULL || !zipccl_cuda_enter(cuda, comm->device, &before))
        return;
    /* After an abort the device may still write to what is under way, so that stays. */
    if (abort_it) {
        (void)nccl->ncclCommAbort(m->comm);
    } else {
        settle(cuda, comm, true);
        (void)nccl->ncclCommDestroy(m->comm);
        (void)cuda->cudaStreamDestroy(m->stream);
    }
    comm->messages = NULL;
    free(m->sent);
    free(m);
    zipccl_cuda_leave(cuda, before);
}

/* Both ends count the messages of a pair alike, so they choose the same ones. */
static bool chosen(struct zipccl_shim_comm *comm, const struct zipccl_gpu_p2p *op)
{
    const struct zipccl_shim_settings *settings = &zipccl_shim.settings;
    size_t nbytes = op->count * zipccl_dtype_size(op->dtype);
    struct zipccl_shim_messages *m = comm->messages;
    uint64_t number;

    if (op->peer == (uint32_t)comm->rank || nbytes < settings->min_bytes ||
        nbytes > settings->memory_bytes || !zipccl_dtype_compressible(op->dtype))
        return false;
    number = op->send ? ++m->sent[op->peer] : ++m->received[op->peer];
    return number % settings->verify_every == 0;
}

/* Keep a copy of 'op' as it is now in 'stream', and room for its plain twin. */
static struct message *keep(const struct zipccl_cuda *cuda, const struct zipccl_gpu_p2p *op,
                            cudaStream_t stream)
{
    size_t nbytes = op->count * zipccl_dtype_size(op->dtype);
    struct message *message = calloc(1, sizeof *message);

    if (message == NULL)
        return NULL;
    message->op = *op;
    if (cuda->cudaMalloc(&message->d_copy, nbytes) == cudaSuccess &&
        (op->send || cuda->cudaMalloc(&message->d_plain, nbytes) == cudaSuccess) &&
        cuda->cudaEventCreateWithFlags(&message->done, cudaEventDisableTiming) == cudaSuccess &&
        cuda->cudaMemcpyAsync(message->d_copy, op->buf, nbytes, cudaMemcpyDeviceToDevice, stream) ==
            cudaSuccess)
        return message;
    release(cuda, message);
    return NULL;
}

/* Send 'list' again, plain. */
static ncclResult_t send_plain(const struct zipccl_cuda *cuda, struct zipccl_shim_messages *m,
                               struct message *list, cudaStream_t stream)
{
    const struct zipccl_nccl *nccl = zipccl_nccl_get();
    ncclResult_t result = zipccl_cuda_join(cuda, stream, m->stream), ended;

    if (result == ncclSuccess)
        result = nccl->ncclGroupStart();
    if (result != ncclSuccess)
        return result;
    for (struct message *i = list; i != NULL && result == ncclSuccess; i = i->next) {
        const struct zipccl_gpu_p2p *op = &i->op;
        ncclDataType_t dtype = (ncclDataType_t)op->dtype;

        result =
            op->send
                ? nccl->ncclSend(i->d_copy, op->count, dtype, (int)op->peer, m->comm, m->stream)
                : nccl->ncclRecv(i->d_plain, op->count, dtype, (int)op->peer, m->comm, m->stream);
    }
    ended = nccl->ncclGroupEnd();
    result = result == ncclSuccess ? ended : result;
    for (struct message *i = list; i != NULL && result == ncclSuccess; i = i->next)
        if (cuda->cudaEventRecord(i->done, m->stream) != cudaSuccess)
            result = ncclUnhandledCudaError;
    return result;
}

ncclResult_t zipccl_shim_check_p2p(struct zipccl_shim_comm *comm, const struct zipccl_gpu_p2p *ops,
                                   size_t nops, cudaStream_t stream)
{
    const struct zipccl_cuda *cuda = zipccl_cuda_get();
    struct zipccl_shim_messages *m = comm->messages;
    enum cudaStreamCaptureStatus capture;
    struct message *list = NULL, **end = &list;
    ncclResult_t result;

    if (m == NULL || cuda->cudaStreamIsCapturing(stream, &capture) != cudaSuccess ||
        capture != cudaStreamCaptureStatusNone)
        return ncclSuccess;
    settle(cuda, comm, false);
    for (size_t i = 0; i < nops; i++) {
        if (!chosen(comm, &ops[i]))
            continue;
        *end = keep(cuda, &ops[i], stream);
        if (*end == NULL)
            return ncclUnhandledCudaError;
        end = &(*end)->next;
    }
    if (list == NULL)
        return ncclSuccess;
    result = send_plain(cuda, m, list, stream);
    *end = m->first;
    m->first = list;
    return result;
}
