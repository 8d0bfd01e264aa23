/*
 * gate_check.c - the gate by itself, with a communicator of one rank that sends to itself
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/gate_check.h"

#include "gpu/gate.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TURNS 9u

struct bench {
    struct zipccl_transport_nccl *transport;
    struct zipccl_exec_cuda *exec;
    struct zipccl_topology *topology;
    struct zipccl_gate_site *site;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    char *d_from, *d_to, *d_out, *from, *out; /* [nbytes]; the last two on the host */
    size_t nbytes;
    struct zipccl_gpu_result *d_results; /* what a header says, and d_any */
};

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

/* A site whose message is this rank's own. */
static zipccl_status make_site(struct bench *b)
{
    struct zipccl_gate *gate = b->exec->gate;
    struct zipccl_gate_call *call = calloc(1, sizeof *call);
    struct zipccl_gate_site *site = calloc(1, sizeof *site);

    gate->call = call;
    if (call == NULL || site == NULL) {
        free(site);
        return ZIPCCL_ERR_NOMEM;
    }
    call->sites = b->site = site;
    site->posts = calloc(2, sizeof *site->posts);
    if (site->posts == NULL)
        return ZIPCCL_ERR_NOMEM;
    site->posts[0] = (struct zipccl_gate_post){.send = true, .buf = b->d_from, .nbytes = b->nbytes};
    site->posts[1] = (struct zipccl_gate_post){.buf = b->d_to, .nbytes = b->nbytes};
    site->nposts = 2;
    site->nin = 1;
    site->d_in = b->d_results;
    site->d_any = b->d_results + 1;
    return zipccl_gate_site_add(gate, site);
}

static zipccl_status make(struct bench *b, ncclComm_t nccl, const struct zipccl_nccl_api *api,
                          bool *able, struct zipccl_error *error)
{
    struct zipccl_exec_cuda_options options = {.nsms = 1, .most_staging = 1 << 16};
    uint32_t node = 0;

    ZIPCCL_TRY(zipccl_topology_create(1, &node, &b->topology));
    ZIPCCL_TRY(zipccl_transport_nccl_create(nccl, api, b->topology, &b->transport, error));
    ZIPCCL_TRY(zipccl_exec_cuda_create(b->transport, &options, &b->exec));
    ZIPCCL_TRY(zipccl_gate_open(b->exec, ZIPCCL_GATE_ALL, able));
    if (!*able)
        return ZIPCCL_OK;
    b->from = malloc(b->nbytes);
    b->out = malloc(b->nbytes);
    if (b->from == NULL || b->out == NULL)
        return ZIPCCL_ERR_NOMEM;
    ZIPCCL_CUDA_TRY(b->exec, cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking));
    ZIPCCL_CUDA_TRY(b->exec, cudaMalloc((void **)&b->d_from, 3 * b->nbytes));
    ZIPCCL_CUDA_TRY(b->exec, cudaMalloc((void **)&b->d_results, 2 * sizeof *b->d_results));
    b->d_to = b->d_from + b->nbytes;
    b->d_out = b->d_to + b->nbytes;
    return make_site(b);
}

static void destroy(struct bench *b)
{
    if (b->replay != NULL)
        cudaGraphExecDestroy(b->replay);
    if (b->graph != NULL)
        cudaGraphDestroy(b->graph);
    if (b->exec != NULL && b->exec->gate != NULL && b->exec->gate->call != NULL) {
        zipccl_gate_sites_free(b->exec->gate, b->exec->gate->call);
        free(b->exec->gate->call);
        b->exec->gate->call = NULL;
    }
    if (b->exec != NULL)
        zipccl_exec_cuda_destroy(b->exec);
    if (b->transport != NULL)
        b->transport->base.ops->destroy(&b->transport->base);
    zipccl_topology_destroy(b->topology);
    cudaFree(b->d_from);
    cudaFree(b->d_results);
    if (b->stream != NULL)
        cudaStreamDestroy(b->stream);
    free(b->from);
    free(b->out);
}

/* New data, old bytes where they are to come, and a header that says overflow or not. */
static zipccl_status prepare(struct bench *b, unsigned turn, bool overflow)
{
    struct zipccl_gpu_result header = {.nbytes = 64,
                                       .error = overflow ? ZIPCCL_ERR_OVERFLOW : ZIPCCL_OK};

    for (size_t i = 0; i < b->nbytes; i++)
        b->from[i] = (char)((i * 131 + turn) >> (i % 3));
    ZIPCCL_CUDA_TRY(
        b->exec, cudaMemcpyAsync(b->d_from, b->from, b->nbytes, cudaMemcpyHostToDevice, b->stream));
    ZIPCCL_CUDA_TRY(b->exec, cudaMemsetAsync(b->d_to, 0x5a, 2 * b->nbytes, b->stream));
    ZIPCCL_CUDA_TRY(b->exec, cudaMemcpyAsync(b->d_results, &header, sizeof header,
                                             cudaMemcpyHostToDevice, b->stream));
    ZIPCCL_CUDA_TRY(b->exec, cudaStreamSynchronize(b->stream));
    return ZIPCCL_OK;
}

/* The gate, and what follows it: a copy of what has arrived by then. */
static zipccl_status enqueue(struct bench *b)
{
    b->exec->now = b->stream;
    ZIPCCL_TRY(zipccl_gate_pass(b->exec, b->site->resolve));
    ZIPCCL_CUDA_TRY(b->exec, cudaMemcpyAsync(b->d_out, b->d_to, b->nbytes, cudaMemcpyDeviceToDevice,
                                             b->stream));
    return ZIPCCL_OK;
}

/* True in '*right' if there was one resend where there should be, and its bytes came before the copy. */
static zipccl_status compare(struct bench *b, bool overflow, uint64_t resends, bool *right)
{
    bool all = true;

    ZIPCCL_CUDA_TRY(
        b->exec, cudaMemcpyAsync(b->out, b->d_out, b->nbytes, cudaMemcpyDeviceToHost, b->stream));
    ZIPCCL_CUDA_TRY(b->exec, cudaStreamSynchronize(b->stream));
    for (size_t i = 0; i < b->nbytes; i++)
        all = all && b->out[i] == (overflow ? b->from[i] : 0x5a);
    *right = *right && all && atomic_load(&b->exec->gate->resends) - resends == overflow &&
             zipccl_gate_failed(b->exec->gate) == ZIPCCL_OK;
    return ZIPCCL_OK;
}

static zipccl_status wait_end(struct bench *b)
{
    ZIPCCL_CUDA_TRY(b->exec, cudaEventRecord(b->transport->event, b->stream));
    return zipccl_transport_nccl_wait(b->transport, b->transport->event);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static zipccl_status eager(struct bench *b, bool overflow, bool *right, double *median_us)
{
    double us[TURNS];

    *right = true;
    for (unsigned turn = 0; turn < TURNS; turn++) {
        uint64_t resends = atomic_load(&b->exec->gate->resends);

        ZIPCCL_TRY(prepare(b, turn, overflow));
        us[turn] = now_us();
        ZIPCCL_TRY(enqueue(b));
        ZIPCCL_TRY(wait_end(b));
        us[turn] = now_us() - us[turn];
        ZIPCCL_TRY(compare(b, overflow, resends, right));
    }
    qsort(us, TURNS, sizeof *us, by_size);
    *median_us = us[TURNS / 2];
    return ZIPCCL_OK;
}

static zipccl_status replays(struct bench *b, bool *right)
{
    *right = true;
    ZIPCCL_CUDA_TRY(b->exec, cudaStreamBeginCapture(b->stream, cudaStreamCaptureModeThreadLocal));
    ZIPCCL_TRY(enqueue(b));
    ZIPCCL_CUDA_TRY(b->exec, cudaStreamEndCapture(b->stream, &b->graph));
    ZIPCCL_CUDA_TRY(b->exec, cudaGraphInstantiate(&b->replay, b->graph, 0));
    for (unsigned turn = 0; turn < TURNS; turn++) {
        uint64_t resends = atomic_load(&b->exec->gate->resends);
        bool overflow = turn % 3 == 1;

        ZIPCCL_TRY(prepare(b, turn, overflow));
        ZIPCCL_CUDA_TRY(b->exec, cudaGraphLaunch(b->replay, b->stream));
        ZIPCCL_TRY(wait_end(b));
        ZIPCCL_TRY(compare(b, overflow, resends, right));
    }
    return ZIPCCL_OK;
}

/* A wait that nobody answers, but an abort: the helper is not asked. */
static zipccl_status aborts(struct bench *b, bool *right)
{
    struct zipccl_gate *gate = b->exec->gate;
    const struct timespec pause = {0, 5000000};
    CUdeviceptr word = (CUdeviceptr)(uintptr_t)(gate->d_words + ZIPCCL_GATE_WORD);

    if (gate->wait_value(b->stream, word, 1, CU_STREAM_WAIT_VALUE_GEQ) != CUDA_SUCCESS)
        return ZIPCCL_ERR_IO;
    nanosleep(&pause, NULL);
    *right = cudaStreamQuery(b->stream) == cudaErrorNotReady;
    zipccl_gate_abort(gate);
    ZIPCCL_TRY(wait_end(b));
    return ZIPCCL_OK;
}

static zipccl_status check(struct bench *b, struct zipccl_gate_check *out)
{
    ZIPCCL_TRY(eager(b, false, &out->passes, &out->pass_us));
    ZIPCCL_TRY(eager(b, true, &out->resends, &out->resend_us));
    ZIPCCL_TRY(replays(b, &out->replays));
    return aborts(b, &out->aborts);
}

zipccl_status zipccl_gate_check(ncclComm_t nccl, const struct zipccl_nccl_api *api, size_t nbytes,
                                struct zipccl_gate_check *out, struct zipccl_error *error)
{
    struct bench b = {.nbytes = nbytes};
    zipccl_status status;

    memset(out, 0, sizeof *out);
    status = make(&b, nccl, api, &out->able, error);
    /* A stream that waits for ever is what it looks for. */
    if (status == ZIPCCL_OK && out->able) {
        b.transport->limit_s = 10;
        status = check(&b, out);
    }
    if (status != ZIPCCL_OK)
        zipccl_fail(error, status, "check of the gate: %s",
                    b.transport != NULL && b.transport->error.text[0] != '\0'
                        ? b.transport->error.text
                        : zipccl_status_string(status));
    destroy(&b);
    return status;
}
