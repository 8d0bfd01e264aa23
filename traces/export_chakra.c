/*
 * export_chakra.c - a trace as Chakra execution traces: what a rank does as nodes of a graph
 *
 * A node depends on what its event depends on, and on the one before it in its stream, as readers
 * of such files know no streams.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/export_chakra.h"
#include "traces/export_chakra_write.h"
#include "traces/import_chakra.h"
#include "traces/iterate.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The nodes of an event on a rank: ids from 'first' on. */
struct span {
    uint64_t first, n;
};

struct exporting {
    const struct zipccl_trace *trace;
    struct zipccl_export_report *report;
    struct zipccl_error *error;
    struct kineto_keyed *ids; /* [nevents] by id */
    struct span *last;        /* [nevents] */
    struct span *before;      /* [nstreams] */
    uint32_t **part;          /* [ngroups][nranks] place in the set's ranks, KINETO_NONE */
    uint64_t *first_pg;       /* [ngroups] */
    uint64_t *deps;
    size_t ndeps, dep_room;
    uint32_t rank;
    uint64_t next_id;
    struct chakra_writer *writer;
};

static zipccl_status nomem(const struct exporting *e)
{
    return zipccl_fail(e->error, ZIPCCL_ERR_NOMEM, "%s: out of memory", e->trace->path);
}

static uint32_t find_event(const struct exporting *e, uint64_t id)
{
    size_t low = 0, high = e->trace->nevents;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if ((uint64_t)e->ids[middle].major < id)
            low = middle + 1;
        else
            high = middle;
    }
    return e->ids[low].index;
}

static bool listed(const struct zipccl_event *event, uint32_t rank)
{
    size_t low = 0, high = event->nranks;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (event->ranks[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < event->nranks && event->ranks[low] == rank;
}

static bool runs(const struct exporting *e, const struct zipccl_event *event)
{
    if (event->nranks > 0 && !listed(event, e->rank))
        return false;
    return event->kind != ZIPCCL_EVENT_COLLECTIVE || e->part[event->group][e->rank] != KINETO_NONE;
}

static bool add_deps(struct exporting *e, struct span span)
{
    for (uint64_t id = span.first; id < span.first + span.n; id++) {
        bool known = false;

        for (size_t i = 0; i < e->ndeps; i++)
            known |= e->deps[i] == id;
        if (known)
            continue;
        if (!kineto_grow(&e->deps, &e->dep_room, e->ndeps, sizeof *e->deps))
            return false;
        e->deps[e->ndeps++] = id;
    }
    return true;
}

static zipccl_status collect_deps(struct exporting *e, const struct zipccl_event *event)
{
    e->ndeps = 0;
    for (uint32_t d = 0; d < event->ndeps; d++)
        if (!add_deps(e, e->last[find_event(e, event->deps[d])]))
            return nomem(e);
    return add_deps(e, e->before[event->stream]) ? ZIPCCL_OK : nomem(e);
}

/* Nanoseconds on this rank; -1: not known. */
static int64_t length_of(const struct exporting *e, const struct zipccl_event *event)
{
    double s = event->duration_s;

    if (event->kind == ZIPCCL_EVENT_COLLECTIVE)
        s = event->recorded_s;
    else if (event->duration_by_rank_s != NULL) {
        uint32_t i = e->rank;

        for (i = event->nranks > 0 ? 0 : i; event->nranks > 0 && event->ranks[i] != e->rank;)
            i++;
        s = event->duration_by_rank_s[i];
    }
    return s < 0 ? -1 : (int64_t)llround(1e9 * s);
}

static struct chakra_out node_of(struct exporting *e, const struct zipccl_event *event)
{
    struct chakra_out out = {.id = e->next_id++,
                             .name = event->label != NULL ? event->label : "compute",
                             .type = CHAKRA_COMP,
                             .ns = length_of(e, event),
                             .deps = e->deps,
                             .ndeps = e->ndeps,
                             .stream = event->stream,
                             .comm = -1,
                             .nbytes = -1,
                             .src = -1,
                             .dst = -1,
                             .root = -1,
                             .flops = -1,
                             .hbm_bytes = -1};

    e->report->nnodes++;
    return out;
}

static zipccl_status put_timed(struct exporting *e, const struct zipccl_event *event)
{
    struct chakra_out out = node_of(e, event);

    out.communication = event->kind == ZIPCCL_EVENT_COMMUNICATION;
    out.flops = event->flops;
    out.hbm_bytes = event->hbm_bytes;
    return chakra_write_node(e->writer, &out);
}

/*
 * Bytes that the rank puts in, as ASTRA-sim 2 takes "comm_size" (its ring passes that on whole in a
 * gather, in n parts in a scatter) and as PyTorch's converter writes it.
 */
static uint64_t input_size(const struct exporting *e, const struct zipccl_event *event)
{
    const struct zipccl_trace_header *h = &e->trace->header;
    uint32_t n = h->groups[event->group].size;
    uint64_t size = zipccl_dtype_size(event->dtype), sum = 0;

    switch (event->op) {
    case ZIPCCL_REDUCE_SCATTER:
    case ZIPCCL_ALLTOALL: return event->count * n * size;
    case ZIPCCL_ALLTOALLV:
        for (uint32_t i = 0; i < n; i++)
            sum += h->splits[event->splits]
                       .counts[(size_t)(e->part[event->group][e->rank] % n) * n + i];
        return sum * size;
    default: return event->count * size;
    }
}

/* As NCCL names its kernels, so that the operator is told. */
static void name_call(const struct zipccl_event *event, char *out, size_t size)
{
    static const char *const ops[ZIPCCL_NUM_OPS] = {
        [ZIPCCL_ALL_GATHER] = "AllGather", [ZIPCCL_REDUCE_SCATTER] = "ReduceScatter",
        [ZIPCCL_ALL_REDUCE] = "AllReduce", [ZIPCCL_ALLTOALL] = "AllToAll",
        [ZIPCCL_ALLTOALLV] = "AllToAll",   [ZIPCCL_SENDRECV] = "SendRecv",
        [ZIPCCL_BROADCAST] = "Broadcast"};
    static const char *const redops[ZIPCCL_NUM_REDOPS] = {[ZIPCCL_SUM] = "_Sum",
                                                          [ZIPCCL_PROD] = "_Prod",
                                                          [ZIPCCL_MAX] = "_Max",
                                                          [ZIPCCL_MIN] = "_Min",
                                                          [ZIPCCL_AVG] = "_SumPostDiv"};
    bool reduces = zipccl_is_reduction(event->op);

    snprintf(out, size, "ncclDevKernel_%s%s_%s", ops[event->op],
             reduces ? redops[event->redop] : "", zipccl_dtype_name(event->dtype));
}

/* What PyTorch's execution traces call a tensor of the type. */
static const char *tensor_name(enum zipccl_dtype dtype)
{
    static const char *const names[ZIPCCL_NUM_DTYPES] = {
        [ZIPCCL_BFLOAT16] = "Tensor(c10::BFloat16)",
        [ZIPCCL_FLOAT16] = "Tensor(c10::Half)",
        [ZIPCCL_FLOAT32] = "Tensor(float)",
        [ZIPCCL_FLOAT64] = "Tensor(double)",
        [ZIPCCL_FLOAT8_E4M3] = "Tensor(c10::Float8_e4m3fn)",
        [ZIPCCL_FLOAT8_E5M2] = "Tensor(c10::Float8_e5m2)",
        [ZIPCCL_INT8] = "Tensor(signed char)",
        [ZIPCCL_UINT8] = "Tensor(unsigned char)",
        [ZIPCCL_INT32] = "Tensor(int)",
        [ZIPCCL_UINT32] = "Tensor(unsigned int)",
        [ZIPCCL_INT64] = "Tensor(long int)",
        [ZIPCCL_UINT64] = "Tensor(unsigned long int)"};

    return names[dtype];
}

static zipccl_status put_collective(struct exporting *e, const struct zipccl_event *event,
                                    const char *pg)
{
    static const enum chakra_comm comms[ZIPCCL_NUM_OPS] = {
        [ZIPCCL_ALL_GATHER] = CHAKRA_ALL_GATHER, [ZIPCCL_REDUCE_SCATTER] = CHAKRA_REDUCE_SCATTER,
        [ZIPCCL_ALL_REDUCE] = CHAKRA_ALL_REDUCE, [ZIPCCL_ALLTOALL] = CHAKRA_ALL_TO_ALL,
        [ZIPCCL_ALLTOALLV] = CHAKRA_ALL_TO_ALL,  [ZIPCCL_BROADCAST] = CHAKRA_BROADCAST};
    struct chakra_out out = node_of(e, event);
    char name[80];

    name_call(event, name, sizeof name);
    out.name = name;
    out.type = CHAKRA_COLL;
    out.comm = comms[event->op];
    out.nbytes = (int64_t)input_size(e, event);
    out.pg = pg;
    out.dtype = zipccl_dtype_name(event->dtype);
    out.elements = out.nbytes / (int64_t)zipccl_dtype_size(event->dtype);
    out.tensor = tensor_name(event->dtype);
    out.root = event->op == ZIPCCL_BROADCAST ? (int64_t)event->root : -1;
    return chakra_write_node(e->writer, &out);
}

/* The rank's own ends of a call's pairs. */
static zipccl_status put_pairs(struct exporting *e, const struct zipccl_event *event,
                               const char *pg, uint64_t number)
{
    const struct zipccl_trace_group *g = &e->trace->header.groups[event->group];
    uint32_t at = e->part[event->group][e->rank], own = at % g->size;
    const uint32_t *ranks = g->ranks + (at - own);

    for (uint32_t i = 0; i < event->npairs; i++) {
        const struct zipccl_trace_pair *p = &event->pairs[i];

        for (int receives = 0; receives < 2; receives++) {
            struct chakra_out out;

            if ((receives ? p->dst : p->src) != own)
                continue;
            out = node_of(e, event);
            out.name = "ncclDevKernel_SendRecv";
            out.type = receives ? CHAKRA_RECV : CHAKRA_SEND;
            out.nbytes = (int64_t)(event->count * zipccl_dtype_size(event->dtype));
            out.src = ranks[p->src];
            out.dst = ranks[p->dst];
            out.tag = (int32_t)(number & INT32_MAX);
            out.pg = pg;
            out.dtype = zipccl_dtype_name(event->dtype);
            out.elements = (int64_t)event->count;
            out.tensor = tensor_name(event->dtype);
            ZIPCCL_TRY(chakra_write_node(e->writer, &out));
        }
    }
    return ZIPCCL_OK;
}

static zipccl_status put_call(struct exporting *e, const struct zipccl_event *event,
                              uint64_t number)
{
    uint32_t size = e->trace->header.groups[event->group].size;
    char pg[24];

    snprintf(pg, sizeof pg, "%" PRIu64,
             e->first_pg[event->group] + e->part[event->group][e->rank] / size);
    return event->op == ZIPCCL_SENDRECV ? put_pairs(e, event, pg, number)
                                        : put_collective(e, event, pg);
}

static zipccl_status visit(void *context, const struct zipccl_event *event, uint64_t number)
{
    struct exporting *e = context;
    uint64_t first = e->next_id;
    struct span *last = &e->last[event - e->trace->events], nodes;

    if (!runs(e, event)) {
        *last = (struct span){0, 0};
        return ZIPCCL_OK;
    }
    ZIPCCL_TRY(collect_deps(e, event));
    ZIPCCL_TRY(event->kind == ZIPCCL_EVENT_COLLECTIVE ? put_call(e, event, number)
                                                      : put_timed(e, event));
    nodes = (struct span){first, e->next_id - first};
    /* A rank with no end of a pair goes on from what came before. */
    *last = nodes.n > 0 ? nodes : e->before[event->stream];
    e->before[event->stream] = *last;
    return ZIPCCL_OK;
}

static zipccl_status write_rank(struct exporting *e, const char *prefix)
{
    size_t nstreams = e->trace->header.nstreams;
    zipccl_status status;

    e->next_id = 1;
    memset(e->last, 0, (e->trace->nevents + 1) * sizeof *e->last);
    memset(e->before, 0, (nstreams + 1) * sizeof *e->before);
    ZIPCCL_TRY(
        chakra_writer_open(prefix, e->rank, e->trace->header.generator, &e->writer, e->error));
    status = zipccl_trace_expand(e->trace, visit, e, NULL, e->error);
    e->report->nfiles += status == ZIPCCL_OK;
    return chakra_writer_close(e->writer, status);
}

/* Where each rank stands in each set, and numbers for the groups. */
static zipccl_status index_groups(struct exporting *e)
{
    const struct zipccl_trace_header *h = &e->trace->header;
    uint64_t next = 1;

    e->part = calloc(h->ngroups + 1, sizeof *e->part);
    e->first_pg = calloc(h->ngroups + 1, sizeof *e->first_pg);
    if (e->part == NULL || e->first_pg == NULL)
        return nomem(e);
    for (uint32_t g = 0; g < h->ngroups; g++) {
        e->part[g] = malloc(((size_t)h->nranks + 1) * sizeof **e->part);
        if (e->part[g] == NULL)
            return nomem(e);
        memset(e->part[g], 0xff, h->nranks * sizeof **e->part);
        for (uint32_t i = 0; i < h->groups[g].nparts * h->groups[g].size; i++)
            e->part[g][h->groups[g].ranks[i]] = i;
        e->first_pg[g] = next;
        next += h->groups[g].nparts;
    }
    return ZIPCCL_OK;
}

static zipccl_status prepare(struct exporting *e)
{
    uint64_t ninstances;
    size_t n = 0;

    ZIPCCL_TRY(zipccl_trace_expand(e->trace, NULL, NULL, &ninstances, e->error));
    if (ninstances > ZIPCCL_EXPORT_MAX_NODES / e->trace->header.nranks)
        return zipccl_fail(e->error, ZIPCCL_ERR_INPUT,
                           "%s: %" PRIu64 " events on each of %" PRIu32
                           " ranks, expected at most %" PRIu64 " nodes in all files",
                           e->trace->path, ninstances, e->trace->header.nranks,
                           ZIPCCL_EXPORT_MAX_NODES);
    e->ids = malloc((e->trace->nevents + 1) * sizeof *e->ids);
    e->last = malloc((e->trace->nevents + 1) * sizeof *e->last);
    e->before = malloc(((size_t)e->trace->header.nstreams + 1) * sizeof *e->before);
    if (e->ids == NULL || e->last == NULL || e->before == NULL)
        return nomem(e);
    for (size_t i = 0; i < e->trace->nevents; i++) {
        const struct zipccl_event *event = &e->trace->events[i];

        if (!zipccl_event_runs(event))
            continue;
        e->report->nuneven +=
            event->kind == ZIPCCL_EVENT_COLLECTIVE && event->op == ZIPCCL_ALLTOALLV;
        e->report->nsamples += event->nsamples > 0;
        e->ids[n++] = (struct kineto_keyed){(int64_t)event->id, 0, (uint32_t)i};
    }
    if (n > 0)
        qsort(e->ids, n, sizeof *e->ids, kineto_compare_keyed);
    /* The search looks at all places; the rest must be larger. */
    for (; n < e->trace->nevents; n++)
        e->ids[n] = (struct kineto_keyed){INT64_MAX, 0, 0};
    return index_groups(e);
}

zipccl_status zipccl_export_chakra(const struct zipccl_trace *trace, const char *prefix,
                                   struct zipccl_export_report *report, struct zipccl_error *error)
{
    struct zipccl_export_report own;
    struct exporting e = {.trace = trace, .report = report != NULL ? report : &own, .error = error};
    zipccl_status status;

    if (trace == NULL || prefix == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "zipccl_export_chakra: NULL argument");
    memset(e.report, 0, sizeof *e.report);
    status = prepare(&e);
    if (status == ZIPCCL_OK)
        status = chakra_check_targets(prefix, trace->header.nranks, error);
    for (; status == ZIPCCL_OK && e.rank < trace->header.nranks; e.rank++)
        status = write_rank(&e, prefix);
    if (status == ZIPCCL_OK)
        status = chakra_write_groups(prefix, &trace->header, error);
    /* Folders may have come meanwhile. */
    if (status == ZIPCCL_OK)
        status = chakra_check_targets(prefix, trace->header.nranks, error);
    status = chakra_rename_all(prefix, trace->header.nranks, status, error);
    for (uint32_t g = 0; e.part != NULL && g < trace->header.ngroups; g++)
        free(e.part[g]);
    free(e.part);
    free(e.first_pg);
    free(e.ids);
    free(e.last);
    free(e.before);
    free(e.deps);
    return status;
}
