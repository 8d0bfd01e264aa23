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

/* Both ends count the messages of a pair alike, so they choose the same ones. */
static bool chosen(struct zipccl_shim_comm *comm, const struct zipccl_gpu_p2p *op)
{
    const struct zipccl_shim_settings *settings = &zipccl_shim.settings;
    size_t nbytes = op->count * zipccl_dtype_size(op->dtype);
    uint64_t number;

    if (op->peer == (uint32_t)comm->rank || nbytes < settings->min_bytes ||
        nbytes > settings->memory_bytes || !zipccl_dtype_compressible(op->dtype))
        return false;
    number = op->send ? ++comm->sent[op->peer] : ++comm->received[op->peer];
    return number % settings->verify_every == 0;
}

static bool same(const struct zipccl_cuda *cuda, struct zipccl_shim_comm *comm,
                 const struct zipccl_gpu_p2p *op, const void *d_plain, cudaStream_t stream)
{
    size_t size = zipccl_dtype_size(op->dtype), nbytes = op->count * size, at;
    char *plain = malloc(nbytes), *ours = malloc(nbytes);
    bool ok = false;

    if (plain != NULL && ours != NULL &&
        cuda->cudaMemcpyAsync(plain, d_plain, nbytes, cudaMemcpyDeviceToHost, stream) ==
            cudaSuccess &&
        cuda->cudaMemcpyAsync(ours, op->buf, nbytes, cudaMemcpyDeviceToHost, stream) ==
            cudaSuccess &&
        cuda->cudaStreamSynchronize(stream) == cudaSuccess) {
        at = zipccl_shim_first_difference(plain, ours, op->count, size);
        ok = at == op->count;
        if (!ok)
            zipccl_shim_report_difference(comm, &(struct zipccl_shim_difference){
                                                    "plain NCCL", "sendrecv", op->count, at,
                                                    (int)op->peer,
                                                    (const unsigned char *)plain + at * size,
                                                    (const unsigned char *)ours + at * size, size});
    }
    free(plain);
    free(ours);
    return ok;
}

/* Send the chosen messages again, plain, into memory of our own. */
static ncclResult_t send_plain(const struct zipccl_cuda *cuda, struct zipccl_shim_comm *comm,
                               const struct zipccl_gpu_p2p **list, void **d_plain, size_t n,
                               cudaStream_t stream)
{
    const struct zipccl_nccl *nccl = zipccl_nccl_get();
    ncclResult_t result = ncclSuccess, ended;

    for (size_t i = 0; i < n; i++)
        if (!list[i]->send &&
            cuda->cudaMalloc(&d_plain[i], list[i]->count * zipccl_dtype_size(list[i]->dtype)) !=
                cudaSuccess)
            return ncclUnhandledCudaError;
    result = nccl->ncclGroupStart();
    for (size_t i = 0; i < n && result == ncclSuccess; i++) {
        const struct zipccl_gpu_p2p *op = list[i];
        ncclDataType_t dtype = (ncclDataType_t)op->dtype;

        result =
            op->send
                ? nccl->ncclSend(op->buf, op->count, dtype, (int)op->peer, comm->handle, stream)
                : nccl->ncclRecv(d_plain[i], op->count, dtype, (int)op->peer, comm->handle, stream);
    }
    ended = nccl->ncclGroupEnd();
    return result == ncclSuccess ? ended : result;
}

ncclResult_t zipccl_shim_check_p2p(struct zipccl_shim_comm *comm, const struct zipccl_gpu_p2p *ops,
                                   size_t nops, cudaStream_t stream)
{
    const struct zipccl_cuda *cuda = zipccl_cuda_get();
    const struct zipccl_gpu_p2p **list;
    ncclResult_t result = ncclSuccess;
    enum cudaStreamCaptureStatus capture;
    void **d_plain;
    size_t n = 0;

    if (zipccl_shim.settings.verify_every == 0 || comm->sent == NULL ||
        cuda->cudaStreamIsCapturing(stream, &capture) != cudaSuccess ||
        capture != cudaStreamCaptureStatusNone)
        return ncclSuccess;
    list = malloc((nops + 1) * sizeof *list);
    d_plain = calloc(nops + 1, sizeof *d_plain);
    for (size_t i = 0; list != NULL && d_plain != NULL && i < nops; i++)
        if (chosen(comm, &ops[i]))
            list[n++] = &ops[i];
    if (n > 0)
        result = send_plain(cuda, comm, list, d_plain, n, stream);
    for (size_t i = 0; i < n && result == ncclSuccess; i++) {
        comm->counts.verified[ZIPCCL_SHIM_SENDRECV] += !list[i]->send;
        if (!list[i]->send && !same(cuda, comm, list[i], d_plain[i], stream))
            abort();
    }
    for (size_t i = 0; i < n; i++)
        if (d_plain[i] != NULL)
            (void)cuda->cudaFree(d_plain[i]);
    free(list);
    free(d_plain);
    return result;
}
