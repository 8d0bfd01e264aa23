/*
 * device_nccl.c - the steps of a compressed all-gather over a communicator of one rank
 *
 * Strategies have no plan for one rank, so the steps are made here: encode into a fixed message,
 * ncclAllGather() of it, look at the headers, decode, and after an overflow the raw bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/device/device_check.h"

#include "core/codec.h"
#include "core/tests/codec_data.h"

#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NCCL_TRY(call)                                                                             \
    do {                                                                                           \
        ncclResult_t nccl_rc_ = (call);                                                            \
        if (nccl_rc_ != ncclSuccess)                                                               \
            return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s", #call,                              \
                               ncclGetErrorString(nccl_rc_));                                      \
    } while (0)

struct gather {
    ncclComm_t comm;
    struct device_buffers b;
    struct zipccl_gpu_seen *d_seen;
    void *d_received;
    uint16_t *elements, *got;
    size_t n;
    uint32_t nsms;
};

/* Gather with messages of 'capacity'; '*overflow' if it was too little. */
static zipccl_status gather(struct gather *g, size_t capacity, bool *overflow, bool *right,
                            struct zipccl_error *error)
{
    struct zipccl_gpu_batch batch = {
        .nmessages = 1, .first = {g->b.d_elements, g->b.d_wire, g->n, capacity}, .total_n = g->n};
    struct zipccl_gpu_encode_args encode = {.dtype = ZIPCCL_BFLOAT16,
                                            .nsms = g->nsms,
                                            .batch = batch,
                                            .d_workspace = g->b.d_workspace,
                                            .workspace_nbytes = g->b.workspace_nbytes,
                                            .d_results = g->b.d_results};
    struct zipccl_gpu_decode_args decode = {.dtype = ZIPCCL_BFLOAT16,
                                            .nsms = g->nsms,
                                            .batch = batch,
                                            .d_workspace = g->b.d_workspace,
                                            .workspace_nbytes = g->b.workspace_nbytes,
                                            .d_results = g->b.d_results};
    struct zipccl_gpu_seen seen;

    decode.batch.first.elements = g->b.d_out;
    decode.batch.first.wire = g->d_received;
    DEVICE_TRY(cudaMemset(g->b.d_out, 0xa5, g->n * sizeof *g->got));
    DEVICE_TRY(zipccl_gpu_encode(&encode, NULL));
    NCCL_TRY(ncclAllGather(g->b.d_wire, g->d_received, capacity, ncclInt8, g->comm, NULL));
    DEVICE_TRY(zipccl_gpu_resolve(ZIPCCL_BFLOAT16, &decode.batch, NULL, g->d_seen, NULL));
    DEVICE_TRY(cudaMemcpy(&seen, g->d_seen, sizeof seen, cudaMemcpyDeviceToHost));
    if (seen.error != ZIPCCL_OK)
        return zipccl_fail(error, ZIPCCL_ERR_CORRUPT, "a gathered header is none");
    *overflow = seen.noverflows > 0;
    if (*overflow)
        NCCL_TRY(ncclAllGather(g->b.d_elements, g->b.d_out, g->n, ncclBfloat16, g->comm, NULL));
    else
        DEVICE_TRY(zipccl_gpu_decode(&decode, NULL));
    DEVICE_TRY(cudaMemcpy(g->got, g->b.d_out, g->n * sizeof *g->got, cudaMemcpyDeviceToHost));
    *right = memcmp(g->got, g->elements, g->n * sizeof *g->got) == 0;
    return ZIPCCL_OK;
}

static zipccl_status run(struct gather *g, struct device_nccl *out, struct zipccl_error *error)
{
    struct data_random random = {7};
    bool overflow = false;
    ncclUniqueId id;

    ZIPCCL_TRY(device_buffers_open(&g->b, ZIPCCL_BFLOAT16, g->n, g->nsms, error));
    g->elements = malloc(g->n * sizeof *g->elements);
    g->got = malloc(g->n * sizeof *g->got);
    if (g->elements == NULL || g->got == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    data_gauss(&random, g->elements, g->n, 0.02);
    DEVICE_TRY(cudaMalloc((void **)&g->d_seen, sizeof *g->d_seen));
    DEVICE_TRY(cudaMalloc(&g->d_received, g->b.capacity));
    DEVICE_TRY(cudaMemcpy(g->b.d_elements, g->elements, g->n * sizeof *g->elements,
                          cudaMemcpyHostToDevice));
    DEVICE_TRY(zipccl_gpu_workspace_clear(g->b.d_workspace, g->b.workspace_nbytes, NULL));
    NCCL_TRY(ncclGetVersion(&out->version));
    NCCL_TRY(ncclGetUniqueId(&id));
    NCCL_TRY(ncclCommInitRank(&g->comm, 1, id, 0));
    ZIPCCL_TRY(gather(g, g->b.capacity, &overflow, &out->fits_right, error));
    out->fits_right = out->fits_right && !overflow;
    /* Half of the raw bytes hold no Gaussian. */
    ZIPCCL_TRY(gather(g, g->n / 16 * 16, &out->overflow_seen, &out->overflow_right, error));
    return zipccl_gate_check(g->comm, zipccl_nccl_linked(), g->n * sizeof *g->elements, &out->gate,
                             error);
}

zipccl_status device_nccl(uint32_t nsms, size_t n, struct device_nccl *out,
                          struct zipccl_error *error)
{
    struct gather g = {.n = n, .nsms = nsms};
    zipccl_status status;

    memset(out, 0, sizeof *out);
    status = run(&g, out, error);
    if (g.comm != NULL)
        (void)ncclCommDestroy(g.comm);
    free(g.elements);
    free(g.got);
    if (g.d_seen != NULL)
        (void)cudaFree(g.d_seen);
    if (g.d_received != NULL)
        (void)cudaFree(g.d_received);
    device_buffers_close(&g.b);
    return status;
}
