/*
 * simai_sums.c - what one rank does in an imported step, by column and call of a SimAI file
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/tests/simai_sums.h"

#include "traces/info.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const phases[] = {"fwd", "ig", "wg"};

static bool runs_on(const struct zipccl_event *e, uint32_t rank)
{
    for (uint32_t i = 0; i < e->nranks; i++)
        if (e->ranks[i] == rank)
            return true;
    return e->nranks == 0;
}

/* The column that a label ends with; 3 for events that the importer added. */
static unsigned phase_of(const struct zipccl_event *e)
{
    const char *space = strrchr(e->label, ' ');

    if (space == NULL)
        return 3;
    for (unsigned i = 0; i < 3; i++)
        if (strcmp(space + 1, phases[i]) == 0)
            return i;
    cr_assert_fail("label \"%s\"", e->label);
    return 3;
}

static void add_call(struct simai_sums *out, const struct zipccl_trace *trace,
                     const struct zipccl_event *e, uint64_t times)
{
    static const char *const ops[] = {"ALLGATHER", "REDUCESCATTER", "ALLREDUCE", "ALLTOALL",
                                      "ALLTOALLV", "SENDRECV",      "BROADCAST"};
    const char *group = trace->header.groups[e->group].name;
    struct simai_sum s = {.count = times,
                          .nbytes = times * zipccl_trace_event_nbytes(&trace->header, e)};
    size_t i = 0;

    if (e->op == ZIPCCL_SENDRECV) {
        out->nsends += times;
        out->send_nbytes += s.nbytes;
        return;
    }
    snprintf(s.phase, sizeof s.phase, "%s", phases[phase_of(e)]);
    snprintf(s.type, sizeof s.type, "%s%s", ops[e->op],
             strcmp(group, "ep") == 0      ? "_EP"
             : strcmp(group, "dp_ep") == 0 ? "_DP_EP"
                                           : "");
    while (i < out->n &&
           (strcmp(out->sum[i].phase, s.phase) != 0 || strcmp(out->sum[i].type, s.type) != 0))
        i++;
    if (i == out->n) {
        cr_assert_lt(i, 64);
        out->sum[out->n++] = s;
        return;
    }
    out->sum[i].count += s.count;
    out->sum[i].nbytes += s.nbytes;
}

void simai_sums_of(const struct zipccl_trace *trace, uint32_t rank, struct simai_sums *out)
{
    uint64_t times = 1;

    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < trace->nevents; i++) {
        const struct zipccl_event *e = &trace->events[i];

        if (e->kind == ZIPCCL_EVENT_LOOP_BEGIN) {
            cr_assert_eq(times, 1, "loops do not nest");
            times = e->repeat;
        } else if (e->kind == ZIPCCL_EVENT_LOOP_END) {
            times = 1;
        } else if (runs_on(e, rank)) {
            cr_assert_eq(e->repeat, 1);
            if (e->kind == ZIPCCL_EVENT_COLLECTIVE)
                add_call(out, trace, e, times);
            else if (phase_of(e) < 3)
                out->ns[phase_of(e)] += times * (uint64_t)llround(e->duration_s * 1e9);
        }
    }
}

struct simai_sum simai_sums_find(const struct simai_sums *sums, const char *phase, const char *type)
{
    for (size_t i = 0; i < sums->n; i++)
        if (strcmp(sums->sum[i].phase, phase) == 0 && strcmp(sums->sum[i].type, type) == 0)
            return sums->sum[i];
    return (struct simai_sum){.count = 0};
}
