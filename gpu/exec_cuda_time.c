/*
 * exec_cuda_time.c - what calls and codec kernels take, by events in their streams
 *
 * Calls of trials: two events each, read when the communicator decides, which is calls later.  Kernels:
 * two events a launch, only in execs that were made for it (zipccl perf, zipccl replay).  Not what is captured
 * into a graph: what an event of a capture saw, nobody can ask.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/exec_cuda.h"

#include "gpu/gate.h"

#include <stdlib.h>

static bool is_captured(const struct zipccl_exec_cuda *e)
{
    return e->gate != NULL && e->gate->captured;
}

static zipccl_status event_create(struct zipccl_exec_cuda *e, cudaEvent_t *event)
{
    if (*event == NULL)
        ZIPCCL_CUDA_TRY(e, cudaEventCreateWithFlags(event, cudaEventDefault));
    return ZIPCCL_OK;
}

static zipccl_status elapsed(struct zipccl_exec_cuda *e, cudaEvent_t start, cudaEvent_t end,
                             double *seconds)
{
    float ms = 0;

    ZIPCCL_TRY(zipccl_transport_nccl_wait(e->transport, end));
    ZIPCCL_CUDA_TRY(e, cudaEventElapsedTime(&ms, start, end));
    *seconds = (double)ms * 1e-3;
    return ZIPCCL_OK;
}

zipccl_status zipccl_cuda_time_next(struct zipccl_exec *exec, uint64_t *ticket)
{
    struct zipccl_exec_cuda *e = zipccl_cuda_of(exec);
    struct zipccl_cuda_timer *timer = &e->timers[e->next_ticket % ZIPCCL_CUDA_TIMERS];

    ZIPCCL_TRY(event_create(e, &timer->start));
    ZIPCCL_TRY(event_create(e, &timer->end));
    timer->ticket = e->next_ticket;
    timer->ended = false;
    e->timer = timer;
    *ticket = e->next_ticket++;
    return ZIPCCL_OK;
}

uint64_t zipccl_cuda_time_of(struct zipccl_exec *exec, uint64_t ticket)
{
    struct zipccl_exec_cuda *e = zipccl_cuda_of(exec);
    const struct zipccl_cuda_timer *timer = &e->timers[ticket % ZIPCCL_CUDA_TIMERS];
    double seconds;

    if (timer->ticket != ticket || !timer->ended ||
        elapsed(e, timer->start, timer->end, &seconds) != ZIPCCL_OK)
        return 0;
    return seconds > 1e-9 ? (uint64_t)(seconds * 1e9) : 1;
}

zipccl_status zipccl_cuda_timer_start(struct zipccl_exec_cuda *e, cudaStream_t stream)
{
    if (is_captured(e))
        e->timer = NULL;
    if (e->timer != NULL)
        ZIPCCL_CUDA_TRY(e, cudaEventRecord(e->timer->start, stream));
    return ZIPCCL_OK;
}

void zipccl_cuda_timer_end(struct zipccl_exec_cuda *e, cudaStream_t stream, bool failed)
{
    if (e->timer != NULL && !failed)
        e->timer->ended = cudaEventRecord(e->timer->end, stream) == cudaSuccess;
    e->timer = NULL;
}

/* Add up the spans that have been recorded. */
static zipccl_status spans_read(struct zipccl_exec_cuda *e)
{
    for (size_t i = 0; i < e->nspans; i++) {
        const struct zipccl_cuda_span *span = &e->spans[i];
        double seconds;

        ZIPCCL_TRY(elapsed(e, span->start, span->end, &seconds));
        *(span->decodes ? &e->codec.decode_s : &e->codec.encode_s) += seconds;
    }
    e->nspans = 0;
    return ZIPCCL_OK;
}

zipccl_status zipccl_cuda_span_start(struct zipccl_exec_cuda *e, bool decodes)
{
    struct zipccl_cuda_span *span;

    if (!e->time_codec || is_captured(e))
        return ZIPCCL_OK;
    if (e->spans == NULL)
        e->spans = calloc(ZIPCCL_CUDA_SPANS, sizeof *e->spans);
    if (e->spans == NULL)
        return ZIPCCL_ERR_NOMEM;
    if (e->nspans == ZIPCCL_CUDA_SPANS)
        ZIPCCL_TRY(spans_read(e));
    span = &e->spans[e->nspans];
    ZIPCCL_TRY(event_create(e, &span->start));
    ZIPCCL_TRY(event_create(e, &span->end));
    span->decodes = decodes;
    ZIPCCL_CUDA_TRY(e, cudaEventRecord(span->start, e->now));
    return ZIPCCL_OK;
}

zipccl_status zipccl_cuda_span_end(struct zipccl_exec_cuda *e)
{
    if (e->time_codec && !is_captured(e))
        ZIPCCL_CUDA_TRY(e, cudaEventRecord(e->spans[e->nspans++].end, e->now));
    return ZIPCCL_OK;
}

void zipccl_cuda_count_coded(struct zipccl_exec_cuda *e, enum zipccl_dtype dtype,
                             const struct zipccl_slice *slice)
{
    double raw = (double)slice->n * (double)zipccl_dtype_size(dtype);
    bool exact = slice->capacity >= zipccl_bound(dtype, slice->n);

    e->codec.coded_raw += raw;
    e->codec.coded_wire += (double)(exact ? slice->nbytes : slice->capacity);
    if (slice->status == ZIPCCL_ERR_OVERFLOW)
        e->codec.coded_wire += raw;
}

zipccl_status zipccl_exec_cuda_codec(struct zipccl_exec_cuda *e, struct zipccl_cuda_codec *out)
{
    ZIPCCL_TRY(spans_read(e));
    if (e->gate != NULL)
        ZIPCCL_TRY(zipccl_gate_wait(e));
    *out = e->codec;
    return ZIPCCL_OK;
}

static void event_destroy(cudaEvent_t event)
{
    if (event != NULL)
        cudaEventDestroy(event);
}

void zipccl_cuda_times_destroy(struct zipccl_exec_cuda *e)
{
    for (unsigned i = 0; i < ZIPCCL_CUDA_TIMERS; i++) {
        event_destroy(e->timers[i].start);
        event_destroy(e->timers[i].end);
    }
    for (size_t i = 0; e->spans != NULL && i < ZIPCCL_CUDA_SPANS; i++) {
        event_destroy(e->spans[i].start);
        event_destroy(e->spans[i].end);
    }
    free(e->spans);
}
