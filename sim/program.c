/*
 * program.c - writes a trace out into ops, and checks what running it needs
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/program.h"

#include "sim/program_calls.h"
#include "traces/iterate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Instances times ranks, each with a few doubles per mode. */
#define MAX_SLOTS ((uint64_t)1 << 26)

static zipccl_status nomem(struct zipccl_error *error)
{
    return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
}

/* The largest divisor of 'n' that is at most 'most'. */
static uint32_t divisor(uint32_t n, uint32_t most)
{
    uint32_t d = most < n ? most : n;

    while (d > 1 && n % d != 0)
        d--;
    return d > 0 ? d : 1;
}

/* What makes 'c' as large as a trace of 'n' ranks: as few and as full nodes as there can be. */
static void name_settings(uint32_t n, const struct zipccl_cluster *c, char *out, size_t size)
{
    uint32_t per_node = divisor(n, c->gpus_per_node), used;

    used = (uint32_t)snprintf(out, size, "--set nodes=%u", n / per_node);
    if (per_node != c->gpus_per_node)
        used += (uint32_t)snprintf(out + used, size - used, " --set gpus_per_node=%u", per_node);
    if (per_node % c->nics_per_node != 0)
        snprintf(out + used, size - used, " --set nic.per_node=%u",
                 divisor(per_node, c->nics_per_node));
}

/* How a group of all ranks grows or shrinks to 'nranks'; where there is none, the form of it. */
static const char *name_map(const struct zipccl_trace_header *h, uint64_t nranks, char *out,
                            size_t size)
{
    for (uint32_t i = 0; i < h->ngroups; i++)
        if (h->groups[i].size == h->nranks && nranks <= UINT32_MAX &&
            strlen(h->groups[i].name) < 20) {
            snprintf(out, size, "%s=%" PRIu64, h->groups[i].name, nranks);
            return out;
        }
    return "GROUP=SIZE";
}

static zipccl_status check_world(const struct zipccl_trace *trace, const struct zipccl_cluster *c,
                                 struct zipccl_error *error)
{
    uint64_t gpus = (uint64_t)c->nodes * c->gpus_per_node;
    char settings[128], map[64];

    if (trace->header.nranks == gpus)
        return ZIPCCL_OK;
    name_settings(trace->header.nranks, c, settings, sizeof settings);
    return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                       "trace %.100s has %u ranks, cluster %s has %u x %u GPUs; add %s to give it "
                       "%u, or --map %.40s to take the trace to %" PRIu64,
                       trace->header.name, trace->header.nranks, c->name, c->nodes,
                       c->gpus_per_node, settings, trace->header.nranks,
                       name_map(&trace->header, gpus, map, sizeof map), gpus);
}

/* Which ranks of the world run 'e', into p->runs. */
static void mark_ranks(struct zipccl_program *p, const struct zipccl_event *e)
{
    memset(p->runs, e->nranks == 0, p->trace->header.nranks);
    for (uint32_t i = 0; i < e->nranks; i++)
        p->runs[e->ranks[i]] = 1;
}

/* The index of 'rank' in the program; of a class, only its first rank has one. */
static uint32_t index_of(const struct zipccl_program *p, uint32_t rank)
{
    uint32_t class;

    if (p->fold == NULL)
        return rank;
    class = p->fold->class_of[rank];
    return p->fold->first[class] == rank ? class : UINT32_MAX;
}

/*
 * Work of a kernel on one rank.  With flops it is a roofline: SM time from the flops, traffic as
 * given; with traffic alone it has no SM time.  A recorded duration is SM time, and its traffic,
 * given or assumed, fits into it.
 */
static void set_work(const struct zipccl_event *e, const struct zipccl_cluster *c, double seconds,
                     struct zipccl_program_event *out, uint32_t rank)
{
    double sm = e->flops >= 0 ? e->flops / c->gpu_flops : seconds >= 0 ? seconds : 0;
    double most = sm * c->gpu_hbm_Bps;
    double traffic = e->hbm_bytes >= 0 ? e->hbm_bytes : c->compute_hbm_share * most;

    if (e->flops < 0 && seconds >= 0 && traffic > most)
        traffic = most;
    out->sm_s[rank] = sm;
    out->hbm_bytes[rank] = traffic;
    out->compute_s[rank] = traffic > most ? traffic / c->gpu_hbm_Bps : sm;
}

static zipccl_status add_compute(struct zipccl_program *p, const struct zipccl_event *e,
                                 const struct zipccl_cluster *cluster,
                                 struct zipccl_program_event *out, struct zipccl_error *error)
{
    uint32_t next = 0;
    bool recorded;

    out->compute_s = calloc(3 * (size_t)p->nranks, sizeof(double));
    if (out->compute_s == NULL)
        return nomem(error);
    out->sm_s = out->compute_s + p->nranks;
    out->hbm_bytes = out->sm_s + p->nranks;
    out->communication = e->kind == ZIPCCL_EVENT_COMMUNICATION;
    recorded = e->flops < 0 && (e->duration_s >= 0 || e->duration_by_rank_s != NULL);
    if (e->flops < 0 && e->hbm_bytes < 0 && !recorded)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "compute event %" PRIu64 " has no duration, flops or hbm_bytes", e->id);
    p->scaled |= !recorded && !out->communication;
    p->recorded |= recorded && !out->communication;
    for (uint32_t rank = 0; rank < p->trace->header.nranks; rank++) {
        uint32_t r = index_of(p, rank);
        double seconds = e->duration_s;

        if (!p->runs[rank])
            continue;
        if (e->duration_by_rank_s != NULL)
            seconds = e->duration_by_rank_s[next++];
        if (r == UINT32_MAX)
            continue;
        out->part_of[r] = 0;
        out->nmembers[0]++;
        if (out->communication)
            out->compute_s[r] = seconds;
        else
            set_work(e, cluster, seconds, out, r);
    }
    return ZIPCCL_OK;
}

/* In a sendrecv only the ends of its pairs take part. */
static bool member_takes_part(const struct zipccl_event *e, uint32_t member)
{
    if (e->op != ZIPCCL_SENDRECV)
        return true;
    for (uint32_t i = 0; i < e->npairs; i++)
        if (e->pairs[i].src == member || e->pairs[i].dst == member)
            return true;
    return false;
}

static void add_members(const struct zipccl_program *p, const struct zipccl_event *e,
                        struct zipccl_program_event *out)
{
    const struct zipccl_trace_group *world =
        p->fold != NULL ? &p->fold->groups[e->group].placed : out->group;

    for (uint32_t part = 0; part < world->nparts; part++)
        for (uint32_t i = 0; i < world->size; i++) {
            size_t at = (size_t)part * world->size + i;

            if (!p->runs[world->ranks[at]] || !member_takes_part(e, i))
                continue;
            out->part_of[out->group->ranks[at]] = part;
            out->nmembers[part]++;
        }
}

static zipccl_status add_event(struct zipccl_program *p, const struct zipccl_event *e,
                               const struct zipccl_cluster *cluster, struct zipccl_samples *samples,
                               struct zipccl_program_event *out, struct zipccl_error *error)
{
    out->event = e;
    if (!zipccl_event_runs(e))
        return ZIPCCL_OK;
    if (e->stream >= p->nstreams ||
        (e->kind == ZIPCCL_EVENT_COLLECTIVE && e->group >= p->trace->header.ngroups))
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "event %" PRIu64 ": unknown stream or group",
                           e->id);
    if (e->kind == ZIPCCL_EVENT_COLLECTIVE)
        out->group = p->fold != NULL ? &p->fold->groups[e->group].folded
                                     : &p->trace->header.groups[e->group];
    out->nparts = out->group != NULL ? out->group->nparts : 1;
    out->part_of = malloc(p->nranks * sizeof(*out->part_of));
    out->nmembers = calloc(out->nparts, sizeof(*out->nmembers));
    if (out->part_of == NULL || out->nmembers == NULL)
        return nomem(error);
    for (uint32_t r = 0; r < p->nranks; r++)
        out->part_of[r] = ZIPCCL_NO_PART;
    mark_ranks(p, e);
    if (out->group == NULL)
        return add_compute(p, e, cluster, out, error);
    add_members(p, e, out);
    return zipccl_program_add_call(p, e, samples, out, error);
}

static int compare_ids(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return x[0] < y[0] ? -1 : x[0] > y[0];
}

/* Ids of events, sorted, with their indices beside them. */
static zipccl_status index_ids(struct zipccl_program *p, struct zipccl_error *error)
{
    p->order = malloc((p->nevents + 1) * 2 * sizeof(*p->order));
    p->last_op = malloc((p->nevents + 1) * sizeof(*p->last_op));
    if (p->order == NULL || p->last_op == NULL)
        return nomem(error);
    for (size_t i = 0; i < p->nevents; i++) {
        const struct zipccl_event *e = &p->trace->events[i];
        bool runs = zipccl_event_runs(e);

        p->order[2 * i] = runs ? e->id : UINT64_MAX; /* loop marks have no id */
        p->order[2 * i + 1] = i;
        p->last_op[i] = UINT32_MAX;
    }
    qsort(p->order, p->nevents, 2 * sizeof(*p->order), compare_ids);
    return ZIPCCL_OK;
}

/* The op that 'id' means now: the last one written out, so inside a loop this iteration's. */
static uint32_t find_op(const struct zipccl_program *p, uint64_t id)
{
    const uint64_t key[2] = {id, 0};
    const uint64_t *found = bsearch(key, p->order, p->nevents, 2 * sizeof(*p->order), compare_ids);

    return found == NULL ? UINT32_MAX : p->last_op[found[1]];
}

static bool grow(void **array, size_t *room, size_t n, size_t size)
{
    size_t more = *room > 0 ? *room : 256;
    void *bigger;

    while (more < n)
        more *= 2;
    if (more == *room)
        return true;
    bigger = realloc(*array, more * size);
    if (bigger == NULL)
        return false;
    *array = bigger;
    *room = more;
    return true;
}

struct expansion {
    struct zipccl_program *program;
    struct zipccl_error *error;
};

static zipccl_status add_op(void *context, const struct zipccl_event *e, uint64_t number)
{
    struct expansion *x = context;
    struct zipccl_program *p = x->program;
    size_t index = (size_t)(e - p->trace->events);
    struct zipccl_program_op *op;

    (void)number;
    if (!grow((void **)&p->ops, &p->room, p->nops + 1, sizeof(*p->ops)) ||
        !grow((void **)&p->deps, &p->deps_room, p->ndeps + e->ndeps + 1, sizeof(*p->deps)))
        return nomem(x->error);
    op = &p->ops[p->nops];
    *op = (struct zipccl_program_op){(uint32_t)index, 0, (uint32_t)p->ndeps};
    for (uint32_t i = 0; i < e->ndeps; i++) {
        uint32_t dep = find_op(p, e->deps[i]);

        if (dep == UINT32_MAX)
            return zipccl_fail(x->error, ZIPCCL_ERR_INPUT,
                               "event %" PRIu64 " depends on %" PRIu64
                               ", which is unknown or comes later",
                               e->id, e->deps[i]);
        p->deps[p->ndeps++] = dep;
        op->ndeps++;
    }
    p->last_op[index] = (uint32_t)p->nops++;
    p->events[index].calls++;
    return ZIPCCL_OK;
}

static zipccl_status check_size(const struct zipccl_program *p, struct zipccl_error *error)
{
    uint64_t n = 0;

    ZIPCCL_TRY(zipccl_trace_expand(p->trace, NULL, NULL, &n, error));
    if (n <= MAX_SLOTS / p->nranks)
        return ZIPCCL_OK;
    return zipccl_fail(error, ZIPCCL_ERR_UNSUPPORTED,
                       "%" PRIu64 " events on %" PRIu32 " %s, at most %" PRIu64
                       " in all are replayed; %s",
                       n, p->nranks, p->fold != NULL ? "kinds of ranks" : "ranks", MAX_SLOTS,
                       p->fold != NULL ? "take fewer micro-batches or layers"
                                       : "--fidelity t0 replays ranks that do the same once");
}

static zipccl_status build(struct zipccl_program *p, const struct zipccl_cluster *cluster,
                           struct zipccl_samples *samples, struct zipccl_error *error)
{
    struct expansion x = {p, error};

    ZIPCCL_TRY(check_size(p, error));
    for (size_t i = 0; i < p->nevents; i++)
        ZIPCCL_TRY(add_event(p, &p->trace->events[i], cluster, samples, &p->events[i], error));
    if (p->nrows == 0)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "trace %.100s has no collectives: nothing to replay",
                           p->trace->header.name);
    if (!zipccl_program_moves_data(p))
        return zipccl_fail(
            error, ZIPCCL_ERR_INPUT,
            "nothing to replay: no collective of trace %.100s moves data from one rank "
            "to another",
            p->trace->header.name);
    ZIPCCL_TRY(index_ids(p, error));
    ZIPCCL_TRY(zipccl_trace_expand(p->trace, add_op, &x, NULL, error));
    return zipccl_program_count_calls(p) == ZIPCCL_OK ? ZIPCCL_OK : nomem(error);
}

static zipccl_status create(const struct zipccl_trace *trace, const struct zipccl_cluster *cluster,
                            struct zipccl_samples *samples, bool fold, struct zipccl_program **out,
                            struct zipccl_error *error)
{
    struct zipccl_program *p;
    zipccl_status status = ZIPCCL_OK;

    ZIPCCL_TRY(check_world(trace, cluster, error));
    p = calloc(1, sizeof(*p));
    if (p == NULL)
        return nomem(error);
    p->trace = trace;
    p->nranks = trace->header.nranks;
    p->nstreams = trace->header.nstreams;
    p->nevents = trace->nevents;
    p->events = calloc(p->nevents + 1, sizeof(*p->events));
    p->runs = malloc((size_t)p->nranks + 1);
    if (p->events == NULL || p->runs == NULL ||
        (fold && zipccl_fold_create(trace, cluster, &p->fold) != ZIPCCL_OK))
        status = nomem(error);
    if (p->fold != NULL)
        p->nranks = p->fold->nclasses;
    if (status == ZIPCCL_OK)
        status = build(p, cluster, samples, error);
    if (status != ZIPCCL_OK) {
        zipccl_program_destroy(p);
        return status;
    }
    *out = p;
    return ZIPCCL_OK;
}

zipccl_status zipccl_program_create(const struct zipccl_trace *trace,
                                    const struct zipccl_cluster *cluster,
                                    struct zipccl_samples *samples, struct zipccl_program **out,
                                    struct zipccl_error *error)
{
    return create(trace, cluster, samples, false, out, error);
}

zipccl_status zipccl_program_create_folded(const struct zipccl_trace *trace,
                                           const struct zipccl_cluster *cluster,
                                           struct zipccl_samples *samples,
                                           struct zipccl_program **out, struct zipccl_error *error)
{
    return create(trace, cluster, samples, true, out, error);
}

void zipccl_program_destroy(struct zipccl_program *program)
{
    if (program == NULL)
        return;
    for (size_t i = 0; program->events != NULL && i < program->nevents; i++) {
        free(program->events[i].part_of);
        free(program->events[i].nmembers);
        free(program->events[i].compute_s);
    }
    for (uint32_t i = 0; i < program->nclasses; i++)
        free(program->classes[i].splits);
    free(program->events);
    free(program->ops);
    free(program->deps);
    free(program->classes);
    free(program->rows);
    free(program->runs);
    zipccl_fold_destroy(program->fold);
    free(program->last_op);
    free(program->order);
    free(program);
}
