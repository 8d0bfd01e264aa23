/*
 * host_gate.c - the launchers of gpu/gate_kernels.h on the host: a stand-in for tests of the host code
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/gate_kernels.h"
#include "gpu/tests/host_kernels.h"

#include <stdlib.h>
#include <string.h>

static bool overflowed(const struct zipccl_gpu_result *r)
{
    return r->error == ZIPCCL_ERR_OVERFLOW;
}

static void run_decide(void *arg)
{
    struct zipccl_gate_decide_args *a = arg;
    bool asks = false;

    for (uint32_t i = 0; i < a->nin + a->nout; i++) {
        const struct zipccl_gpu_result *r = i < a->nin ? a->d_in + i : a->d_out + (i - a->nin);

        if (overflowed(r))
            asks = true;
        else if (r->error != ZIPCCL_OK)
            __atomic_store_n(a->broken, 1, __ATOMIC_RELEASE);
    }
    asks = asks && !__atomic_load_n(&a->words[ZIPCCL_GATE_CLOSED], __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; asks && i < a->nin + a->nout; i++)
        a->flags[i] = overflowed(i < a->nin ? a->d_in + i : a->d_out + (i - a->nin));
    *a->d_any = (struct zipccl_gpu_result){.error = asks ? ZIPCCL_ERR_OVERFLOW : ZIPCCL_OK};
    if (asks)
        __atomic_store_n(a->bell, a->site, __ATOMIC_RELEASE);
    else
        __atomic_store_n(&a->words[ZIPCCL_GATE_WORD], 1, __ATOMIC_RELEASE);
    free(a);
}

cudaError_t zipccl_gate_decide(const struct zipccl_gate_decide_args *args, cudaStream_t stream)
{
    if (args->site == 0)
        return cudaErrorInvalidValue;
    return host_launch(stream, run_decide, args, sizeof *args);
}

struct use_args {
    const struct zipccl_gate_copy *copies;
    struct zipccl_gpu_term *terms; /* NULL: of decoders */
    uint32_t n;
};

static void run_use(void *arg)
{
    struct use_args *a = arg;

    for (uint32_t i = 0; i < a->n; i++) {
        const struct zipccl_gate_copy *c = &a->copies[i];

        if (c->seen == NULL || !overflowed(c->seen))
            continue;
        if (a->terms != NULL) {
            a->terms[i] = (struct zipccl_gpu_term){c->raw, 0};
        } else {
            memcpy(c->elements, c->raw, c->nbytes);
            c->result->error = ZIPCCL_OK;
        }
    }
    free(a);
}

cudaError_t zipccl_gate_copies(const struct zipccl_gate_copy *d_copies, uint32_t n, uint32_t nsms,
                               cudaStream_t stream)
{
    struct use_args args = {d_copies, NULL, n};

    return nsms == 0 ? cudaErrorInvalidValue : host_launch(stream, run_use, &args, sizeof args);
}

cudaError_t zipccl_gate_terms(const struct zipccl_gate_copy *d_copies,
                              struct zipccl_gpu_term *d_terms, uint32_t n, cudaStream_t stream)
{
    struct use_args args = {d_copies, d_terms, n};

    return host_launch(stream, run_use, &args, sizeof args);
}

struct outcome_args {
    const struct zipccl_gpu_result *results;
    uint32_t n, *broken;
};

static void run_outcomes(void *arg)
{
    struct outcome_args *a = arg;

    for (uint32_t i = 0; i < a->n; i++)
        if (a->results[i].error != ZIPCCL_OK)
            __atomic_store_n(a->broken, 1, __ATOMIC_RELEASE);
    free(a);
}

cudaError_t zipccl_gate_outcomes(const struct zipccl_gpu_result *d_results, uint32_t n,
                                 uint32_t *broken, cudaStream_t stream)
{
    struct outcome_args args = {d_results, n, broken};

    return host_launch(stream, run_outcomes, &args, sizeof args);
}
