/*
 * gate.c - makes and ends a gate: streams, words, the communicator of resends
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/gate.h"

#include "core/comm_state.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of each rank in the warm-up. */
#define WARM_NBYTES 256u

#define TRY_NCCL(call) ZIPCCL_TRY(zipccl_transport_nccl_check(t, (call), #call))
#define TRY_CUDA(call) ZIPCCL_TRY(zipccl_transport_nccl_cuda(t, (call), #call))

/* The driver's function; NULL.  Nothing links libcuda. */
static zipccl_gate_word driver(const char *name)
{
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    void *function = NULL;
    zipccl_gate_word out;

#if CUDART_VERSION >= 12050
    if (cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found) !=
        cudaSuccess)
        return NULL;
#else
    if (cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found) != cudaSuccess)
        return NULL;
#endif
    if (found != cudaDriverEntryPointSuccess)
        return NULL;
    memcpy(&out, &function, sizeof out);
    return out;
}

static CUdeviceptr word_of(const struct zipccl_gate *gate)
{
    return (CUdeviceptr)(uintptr_t)(gate->d_words + ZIPCCL_GATE_WORD);
}

/* What this rank can do alone; false where something is missing. */
static bool make(struct zipccl_gate *gate)
{
    size_t warm = WARM_NBYTES * ((size_t)gate->nranks + 1);
    size_t nbytes = sizeof *gate->request + 2 * (size_t)gate->nranks * sizeof(uint32_t);
    void *request = NULL;

    gate->wait_value = driver("cuStreamWaitValue32");
    gate->write_value = driver("cuStreamWriteValue32");
    if (gate->wait_value == NULL || gate->write_value == NULL || gate->api->CommSplit == NULL)
        return false;
    if (cudaGetDevice(&gate->device) != cudaSuccess ||
        cudaStreamCreateWithFlags(&gate->side, cudaStreamNonBlocking) != cudaSuccess ||
        cudaStreamCreateWithFlags(&gate->release, cudaStreamNonBlocking) != cudaSuccess ||
        cudaStreamCreateWithFlags(&gate->apart, cudaStreamNonBlocking) != cudaSuccess ||
        cudaStreamCreateWithFlags(&gate->wire, cudaStreamNonBlocking) != cudaSuccess ||
        cudaEventCreateWithFlags(&gate->sent, cudaEventDisableTiming) != cudaSuccess ||
        cudaEventCreateWithFlags(&gate->captured_done, cudaEventDisableTiming) != cudaSuccess ||
        cudaMalloc((void **)&gate->d_words, WARM_NBYTES + warm) != cudaSuccess ||
        cudaHostAlloc(&request, nbytes, cudaHostAllocMapped) != cudaSuccess)
        return false;
    gate->request = request;
    memset(request, 0, nbytes);
    /* Also the first use of what a stream must not wait for later. */
    return cudaMemsetAsync(gate->d_words, 0, WARM_NBYTES + warm, gate->side) == cudaSuccess &&
           gate->write_value(gate->side, word_of(gate), 1, 0) == CUDA_SUCCESS &&
           gate->wait_value(gate->side, word_of(gate), 1, CU_STREAM_WAIT_VALUE_GEQ) ==
               CUDA_SUCCESS &&
           gate->write_value(gate->side, word_of(gate), 0, 0) == CUDA_SUCCESS;
}

/* Send to and receive from all, in every pattern. */
static zipccl_status warm_posts(struct zipccl_gate *gate, struct zipccl_transport_nccl *t,
                                char *mine, char *all)
{
    for (uint32_t p = 0; p < gate->nranks; p++) {
        if (p == t->base.rank)
            continue;
        TRY_NCCL(gate->api->Send(mine, WARM_NBYTES, ncclUint8, (int)p, gate->comm, gate->side));
        TRY_NCCL(gate->api->Recv(all + p * (size_t)WARM_NBYTES, WARM_NBYTES, ncclUint8, (int)p,
                                 gate->comm, gate->side));
    }
    return ZIPCCL_OK;
}

static zipccl_status warm_up(struct zipccl_gate *gate, struct zipccl_transport_nccl *t)
{
    char *mine = (char *)gate->d_words + WARM_NBYTES, *all = mine + WARM_NBYTES;
    zipccl_status status;

    TRY_NCCL(gate->api->AllGather(mine, all, WARM_NBYTES, ncclUint8, gate->comm, gate->side));
    TRY_NCCL(gate->api->Broadcast(mine, mine, WARM_NBYTES, ncclUint8, 0, gate->comm, gate->side));
    TRY_NCCL(gate->api->GroupStart());
    status = warm_posts(gate, t, mine, all);
    TRY_NCCL(gate->api->GroupEnd());
    ZIPCCL_TRY(status);
    TRY_CUDA(cudaEventRecord(gate->sent, gate->side));
    return zipccl_transport_nccl_wait(t, gate->sent);
}

/* With all ranks. */
static zipccl_status connect(struct zipccl_gate *gate, struct zipccl_transport_nccl *t)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;

    TRY_NCCL(gate->api->CommSplit(t->comm, 0, (int)t->base.rank, &gate->comm, &config));
    atomic_store(&gate->comm_gone, false);
    return warm_up(gate, t);
}

static zipccl_status ask_all(struct zipccl_exec_cuda *e, bool mine, bool *all_able)
{
    struct zipccl_transport_nccl *t = e->transport;
    uint64_t word = mine, *all = calloc(t->base.nranks, sizeof *all);
    cudaStream_t stream = t->stream;
    zipccl_status status;

    if (all == NULL)
        return ZIPCCL_ERR_NOMEM;
    t->stream = e->wire;
    status = zipccl_comm_gather_words(&t->base, &word, 1, all);
    t->stream = stream;
    *all_able = status == ZIPCCL_OK;
    for (uint32_t r = 0; r < t->base.nranks; r++)
        *all_able = *all_able && all[r] != 0;
    free(all);
    return status;
}

zipccl_status zipccl_gate_open(struct zipccl_exec_cuda *e, enum zipccl_gate_mode mode, bool *able)
{
    struct zipccl_gate *gate = calloc(1, sizeof *gate);
    zipccl_status status;

    if (gate == NULL)
        return ZIPCCL_ERR_NOMEM;
    pthread_mutex_init(&gate->mutex, NULL);
    gate->mode = mode;
    gate->exec = e;
    gate->api = e->api;
    gate->nranks = e->transport->base.nranks;
    gate->limit_s = e->transport->limit_s;
    gate->step_of = ZIPCCL_STEP_NONE;
    atomic_store(&gate->comm_gone, true);
    /* The thread before the others are asked, who would not hear of it if there were none. */
    status = ask_all(e, make(gate) && zipccl_gate_helper_join(gate) == ZIPCCL_OK, able);
    if (status == ZIPCCL_OK && *able)
        status = connect(gate, e->transport);
    if (status != ZIPCCL_OK || !*able) {
        cudaGetLastError(); /* what is missing is no failure of the caller's */
        zipccl_gate_close(gate, false);
        return status;
    }
    e->gate = gate;
    e->base.no_sizes = true;
    return ZIPCCL_OK;
}

static void calls_free(struct zipccl_gate *gate, struct zipccl_gate_call *call, bool under_way)
{
    while (call != NULL) {
        struct zipccl_gate_call *next = call->next;
        struct zipccl_cuda_region *regions[] = {&call->arena.tables, &call->arena.results,
                                                &call->arena.outcomes};

        zipccl_gate_sites_free(gate, call);
        for (unsigned i = 0; i < 3 && !under_way; i++) {
            cudaFree(regions[i]->d);
            cudaFreeHost(regions[i]->h);
        }
        if (call->arena.done != NULL)
            cudaEventDestroy(call->arena.done);
        free(call->coded);
        free(call->pairs.send_counts);
        free(call);
        call = next;
    }
}

void zipccl_gate_close(struct zipccl_gate *gate, bool under_way)
{
    cudaStream_t streams[4];

    if (gate == NULL)
        return;
    zipccl_gate_helper_leave(gate);
    calls_free(gate, gate->oldest, under_way);
    calls_free(gate, gate->ended, under_way);
    calls_free(gate, gate->spare, under_way);
    calls_free(gate, gate->graphs, under_way);
    if (!atomic_exchange(&gate->comm_gone, true))
        gate->api->CommDestroy(gate->comm);
    if (!under_way) {
        cudaFree(gate->d_words);
        cudaFreeHost(gate->request);
    }
    streams[0] = gate->side;
    streams[1] = gate->release;
    streams[2] = gate->apart;
    streams[3] = gate->wire;
    for (unsigned i = 0; i < 4; i++)
        if (streams[i] != NULL)
            cudaStreamDestroy(streams[i]);
    if (gate->sent != NULL)
        cudaEventDestroy(gate->sent);
    if (gate->captured_done != NULL)
        cudaEventDestroy(gate->captured_done);
    pthread_mutex_destroy(&gate->mutex);
    free(gate->sites);
    free(gate);
}

zipccl_status zipccl_gate_failed(struct zipccl_gate *gate)
{
    struct zipccl_transport_nccl *t = gate->exec->transport;
    zipccl_status status = (zipccl_status)atomic_load(&gate->status);

    if (status != ZIPCCL_OK) {
        pthread_mutex_lock(&gate->mutex);
        if (t->error.text[0] == '\0')
            t->error = gate->error;
        pthread_mutex_unlock(&gate->mutex);
        return status;
    }
    return __atomic_load_n(&gate->request->broken, __ATOMIC_ACQUIRE) != 0 ? ZIPCCL_ERR_CORRUPT
                                                                          : ZIPCCL_OK;
}

bool zipccl_gate_capturing(cudaStream_t stream, unsigned long long *id)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaError_t result;

#if CUDART_VERSION >= 13000
    result = cudaStreamGetCaptureInfo(stream, &status, id, NULL, NULL, NULL, NULL);
#else
    result = cudaStreamGetCaptureInfo(stream, &status, id, NULL, NULL, NULL);
#endif
    return result == cudaSuccess && status == cudaStreamCaptureStatusActive;
}

zipccl_status zipccl_gate_apart(struct zipccl_exec_cuda *e)
{
    ZIPCCL_CUDA_TRY(e, cudaEventRecord(e->transport->event, e->gate->apart));
    return zipccl_transport_nccl_wait(e->transport, e->transport->event);
}
