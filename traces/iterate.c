/*
 * iterate.c - what a trace runs, in program order, with repeats and loops written out
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/iterate.h"

#include "traces/trace_internal.h"

#include <inttypes.h>

struct loop {
    size_t begin;       /* index of the LOOP_BEGIN */
    uint64_t left;      /* iterations to come, while walking */
    uint64_t instances; /* before the loop, while counting */
};

/* Count instances; each partial sum stays under the limit, so products cannot overflow. */
static zipccl_status count_instances(const struct zipccl_trace *trace, uint64_t *out,
                                     struct zipccl_error *error)
{
    struct loop stack[ZIPCCL_TRACE_MAX_LOOPS];
    uint64_t n = 0;
    size_t depth = 0;

    for (size_t i = 0; i < trace->nevents; i++) {
        const struct zipccl_event *e = &trace->events[i];
        uint64_t times = e->repeat, once = 1, before = n;

        if (e->kind == ZIPCCL_EVENT_LOOP_BEGIN) {
            if (depth == ZIPCCL_TRACE_MAX_LOOPS)
                return zipccl_fail(error, ZIPCCL_ERR_ARG, "loops nested more than %d deep",
                                   ZIPCCL_TRACE_MAX_LOOPS);
            stack[depth++] = (struct loop){.begin = i, .instances = n};
            continue;
        }
        if (e->kind == ZIPCCL_EVENT_LOOP_END) {
            if (depth == 0)
                return zipccl_fail(error, ZIPCCL_ERR_ARG, "event %zu ends no loop", i);
            before = stack[--depth].instances;
            once = n - before;
            times = trace->events[stack[depth].begin].repeat;
            /* Walking an empty loop would take its iterations and do nothing. */
            if (once == 0)
                return zipccl_fail(error, ZIPCCL_ERR_ARG, "event %zu ends an empty loop", i);
        }
        if (times > (ZIPCCL_TRACE_MAX_INSTANCES - before) / once)
            return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                               "more than %" PRIu64 " events after loops and repeats are "
                               "written out (at event %zu), expected fewer",
                               ZIPCCL_TRACE_MAX_INSTANCES, i + 1);
        n = before + once * times;
    }
    if (depth > 0)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "the loop of event %zu has no end",
                           stack[depth - 1].begin);
    *out = n;
    return ZIPCCL_OK;
}

static zipccl_status walk(const struct zipccl_trace *trace, zipccl_trace_visit visit, void *context)
{
    struct loop stack[ZIPCCL_TRACE_MAX_LOOPS];
    uint64_t number = 0;
    size_t depth = 0, i = 0;

    while (i < trace->nevents) {
        const struct zipccl_event *e = &trace->events[i];

        switch (e->kind) {
        case ZIPCCL_EVENT_LOOP_BEGIN:
            stack[depth++] = (struct loop){.begin = i, .left = e->repeat - 1};
            break;
        case ZIPCCL_EVENT_LOOP_END:
            if (stack[depth - 1].left > 0) {
                stack[depth - 1].left--;
                i = stack[depth - 1].begin;
            } else {
                depth--;
            }
            break;
        case ZIPCCL_EVENT_COMPUTE:
        case ZIPCCL_EVENT_COLLECTIVE:
        case ZIPCCL_EVENT_COMMUNICATION:
            for (uint64_t k = 0; k < e->repeat; k++)
                ZIPCCL_TRY(visit(context, e, number++));
            break;
        }
        i++;
    }
    return ZIPCCL_OK;
}

zipccl_status zipccl_trace_expand(const struct zipccl_trace *trace, zipccl_trace_visit visit,
                                  void *context, uint64_t *ninstances, struct zipccl_error *error)
{
    uint64_t n;

    if (trace == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "zipccl_trace_expand: NULL trace");
    ZIPCCL_TRY(count_instances(trace, &n, error));
    if (visit != NULL)
        ZIPCCL_TRY(walk(trace, visit, context));
    if (ninstances != NULL)
        *ninstances = n;
    return ZIPCCL_OK;
}
