/*
 * verify_p2p.c - compare compressed sends and receives with plain NCCL
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/counts.h"
#include "gpu/preload/cuda.h"
#include "gpu/preload/fault.h"
#include "gpu/preload/log.h"
#include "gpu/preload/pool.h"
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
    struct message *lost; /* of a group that failed: the device may still write to their memory */
    uint64_t *sent, *received; /* [nranks] messages so far, equal at both ends */
};

bool zipccl_shim_messages_wanted(void)
{
    const struct zipccl_shim_settings *settings = &zipccl_shim.settings;

    if (settings->verify_every == 0 || !settings->compress[ZIPCCL_SHIM_SENDRECV])
        return false;
    if (zipccl_nccl_get()->ncclCommSplit != NULL)
        return true;
    zipccl_log_warn_once("messages", "sends and receives are not checked: this NCCL cannot split a "
                                     "communicator");
    return false;
}

bool zipccl_shim_messages_prepare(struct zipccl_shim_comm *comm)
{
    const struct zipccl_cuda *cuda = zipccl_cuda_get();
    struct zipccl_shim_messages *m = calloc(1, sizeof *m);

    comm->messages = m;
    if (m == NULL)
        return false;
    m->sent = calloc((size_t)comm->nranks * 2, sizeof *m->sent);
    m->received = m->sent != NULL ? m->sent + comm->nranks : NULL;
    return m->sent != NULL &&
           cuda->cudaStreamCreateWithFlags(&m->stream, cudaStreamNonBlocking) == cudaSuccess;
}

bool zipccl_shim_messages_create(struct zipccl_shim_comm *comm)
{
    struct zipccl_shim_messages *m = comm->messages;

    return zipccl_nccl_get()->ncclCommSplit(comm->handle, 0, comm->rank, &m->comm, NULL) ==
           ncclSuccess;
}

static void release(const struct zipccl_cuda *cuda, struct message *message)
{
    zipccl_shim_pool_give(message->d_copy);
    zipccl_shim_pool_give(message->d_plain);
    if (message->done != NULL)
        (void)cuda->cudaEventDestroy(message->done);
    free(message);
}

/* Forget messages whose device memory may still be written to, and stays. */
static void free_list(struct message *list)
{
    while (list != NULL) {
        struct message *next = list->next;

        zipccl_shim_pool_lose(list->d_copy);
        zipccl_shim_pool_lose(list->d_plain);
        free(list);
        list = next;
    }
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
        at = zipccl_shim_first_difference(plain, ours, op->count, size);
        equal = at == op->count;
        zipccl_shim_count_check(comm, ZIPCCL_SHIM_SENDRECV,
                                equal ? ZIPCCL_SHIM_EQUAL : ZIPCCL_SHIM_DIFFERENT);
        if (!equal)
            zipccl_shim_report_difference(comm, &(struct zipccl_shim_difference){
                                                    "plain NCCL", "sendrecv", op->count, at,
                                                    (int)op->peer,
                                                    (const unsigned char *)plain + at * size,
                                                    (const unsigned char *)ours + at * size, size});
    } else {
        zipccl_shim_count_check(comm, ZIPCCL_SHIM_SENDRECV, ZIPCCL_SHIM_UNCHECKED);
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
        if (state == cudaSuccess) {
            release(cuda, message);
        } else {
            message->next = m->lost;
            m->lost = message;
        }
    }
}

void zipccl_shim_messages_destroy(struct zipccl_shim_comm *comm, bool abort_it)
{
    const struct zipccl_nccl *nccl = zipccl_nccl_get();
    const struct zipccl_cuda *cuda = zipccl_cuda_get();
    struct zipccl_shim_messages *m = comm->messages;

    if (m == NULL)
        return;
    if (abort_it) {
        zipccl_shim_messages_abort(comm);
    } else {
        settle(cuda, comm, true);
        if (m->comm != NULL)
            (void)nccl->ncclCommDestroy(m->comm);
        if (m->stream != NULL)
            (void)cuda->cudaStreamDestroy(m->stream);
    }
    comm->messages = NULL;
    free_list(m->first);
    free_list(m->lost);
    free(m->sent);
    free(m);
}

void zipccl_shim_messages_abort(struct zipccl_shim_comm *comm)
{
    ncclComm_t handle = comm->messages != NULL
                            ? __atomic_exchange_n(&comm->messages->comm, NULL, __ATOMIC_ACQ_REL)
                            : NULL;

    if (handle != NULL)
        (void)zipccl_nccl_get()->ncclCommAbort(handle);
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
static struct message *keep(const struct zipccl_cuda *cuda, int device,
                            const struct zipccl_gpu_p2p *op, cudaStream_t stream)
{
    size_t nbytes = op->count * zipccl_dtype_size(op->dtype);
    struct message *message = calloc(1, sizeof *message);

    if (message == NULL)
        return NULL;
    message->op = *op;
    message->d_copy = zipccl_shim_pool_take(cuda, device, nbytes);
    message->d_plain = op->send ? NULL : zipccl_shim_pool_take(cuda, device, nbytes);
    if (message->d_copy != NULL && (op->send || message->d_plain != NULL) &&
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
    ncclResult_t result = ncclSuccess;

    if (m == NULL || cuda->cudaStreamIsCapturing(stream, &capture) != cudaSuccess ||
        capture != cudaStreamCaptureStatusNone)
        return ncclSuccess;
    settle(cuda, comm, false);
    for (size_t i = 0; i < nops && result == ncclSuccess; i++) {
        if (!chosen(comm, &ops[i]))
            continue;
        *end = keep(cuda, comm->device, &ops[i], stream);
        if (*end != NULL)
            end = &(*end)->next;
        else
            result = zipccl_shim_fault(comm, ncclUnhandledCudaError,
                                       "ZIPCCL_VERIFY: no device memory for copies of a message");
    }
    if (list == NULL)
        return result;
    if (result == ncclSuccess)
        result = send_plain(cuda, m, list, stream);
    *end = result == ncclSuccess ? m->first : m->lost;
    *(result == ncclSuccess ? &m->first : &m->lost) = list;
    return result;
}
