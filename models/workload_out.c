/*
 * workload_out.c - writes the events of a made-up step, and adds up what they send
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/workload_out.h"

#include <stdlib.h>
#include <string.h>

static void set_sizes(struct workload_out *o)
{
    const struct zipccl_workload *w = o->w;

    o->per_stage = w->tp * w->cp * w->dp;
    o->size[IN_WORLD] = (uint32_t)zipccl_workload_nranks(w);
    o->size[IN_TP] = w->tp;
    o->size[IN_CP] = w->cp;
    o->size[IN_DP] = (uint32_t)workload_shards(w);
    o->size[IN_REPLICAS] = w->dp * w->cp / o->size[IN_DP];
    o->size[IN_EP] = w->ep;
    o->size[IN_EP_NODE] = w->node_dispatch ? w->ranks_per_node / w->etp : 1;
    o->size[IN_EP_RAIL] = w->ep / (w->node_dispatch ? o->size[IN_EP_NODE] : w->ep);
    o->size[IN_ETP] = w->etp;
    o->size[IN_ETP_EP] = w->etp > 1 ? w->etp * w->ep : 1;
    o->size[IN_EDP] = w->model.experts > 0 ? o->per_stage / (w->ep * w->etp) : 1;
    o->size[IN_PP] = w->pp;
    o->size[IN_EMBED] = w->pp > 1 && w->model.tied ? 2 : 1;
    o->tokens = w->seq * w->micro_batch / w->cp;
    o->shard_tokens = w->sp ? o->tokens / w->tp : o->tokens;
}

/* Rank = tp + t (cp + c (dp + d pp)), Megatron-LM's default order; expert groups are its blocks. */
static zipccl_status add_group(struct workload_out *o, enum workload_group which, const char *name,
                               uint32_t stride)
{
    uint32_t size = o->size[which], nranks = o->size[IN_WORLD], k = 0;
    uint32_t nparts = which == IN_EMBED ? o->per_stage : nranks / size;
    struct zipccl_trace_group *g = &o->groups[o->header.ngroups];

    if (size == 1 && which != IN_WORLD)
        return ZIPCCL_OK;
    *g = (struct zipccl_trace_group){name, nparts, size,
                                     malloc((size_t)nparts * size * sizeof(uint32_t))};
    o->group_index[which] = o->header.ngroups++;
    if (g->ranks == NULL)
        return zipccl_fail(o->error, ZIPCCL_ERR_NOMEM, "out of memory");
    for (uint32_t part = 0; part < nparts; part++)
        for (uint32_t i = 0; i < size; i++)
            g->ranks[k++] = part / stride * stride * size + part % stride + i * stride;
    if (which == IN_EMBED)
        for (uint32_t part = 0; part < nparts; part++)
            for (uint32_t i = 0; i < 2; i++)
                g->ranks[2 * part + i] = part + i * stride;
    for (uint32_t i = 1; i < size && o->w->ranks_per_node > 0; i++)
        o->crosses[which] |=
            g->ranks[i] / o->w->ranks_per_node != g->ranks[0] / o->w->ranks_per_node;
    return ZIPCCL_OK;
}

static zipccl_status add_groups(struct workload_out *o)
{
    static const char *const names[NUM_GROUPS] = {"world", "tp",      "cp",       "dp",  "replicas",
                                                  "ep",    "ep.node", "ep.rail",  "etp", "etp.ep",
                                                  "edp",   "pp",      "embedding"};
    const struct zipccl_workload *w = o->w;
    const uint32_t strides[NUM_GROUPS] = {[IN_WORLD] = 1,
                                          [IN_TP] = 1,
                                          [IN_CP] = w->tp,
                                          [IN_DP] = w->tp,
                                          [IN_REPLICAS] = w->tp * o->size[IN_DP],
                                          [IN_EP] = w->etp,
                                          [IN_EP_NODE] = w->etp,
                                          [IN_EP_RAIL] = w->ranks_per_node,
                                          [IN_ETP] = 1,
                                          [IN_ETP_EP] = 1,
                                          [IN_EDP] = w->ep * w->etp,
                                          [IN_PP] = o->per_stage,
                                          [IN_EMBED] = o->per_stage * (w->pp - 1)};

    for (int i = 0; i < NUM_GROUPS; i++)
        ZIPCCL_TRY(add_group(o, (enum workload_group)i, names[i], strides[i]));
    return ZIPCCL_OK;
}

static void add_stream(struct workload_out *o, int which, bool wanted, const char *name)
{
    if (!wanted)
        return;
    o->stream_index[which] = o->header.nstreams;
    o->streams[o->header.nstreams++] = (char *)name;
}

static void add_streams(struct workload_out *o)
{
    bool pp = o->w->pp > 1, wrap = o->w->vpp > 1;

    add_stream(o, ON_COMPUTE, true, "compute");
    add_stream(o, ON_TP, o->size[IN_TP] > 1, "nccl:tp");
    add_stream(o, ON_CP, o->size[IN_CP] > 1, "nccl:cp");
    add_stream(o, ON_EP, o->size[IN_EP] > 1, "nccl:ep");
    add_stream(o, ON_EP_RAIL, o->size[IN_EP_RAIL] > 1, "nccl:ep.rail");
    add_stream(o, ON_ETP, o->size[IN_ETP] > 1, "nccl:etp");
    add_stream(o, ON_DP, o->size[IN_DP] > 1, "nccl:dp");
    add_stream(o, ON_REPLICAS, o->size[IN_REPLICAS] > 1, "nccl:replicas");
    add_stream(o, ON_EDP, o->size[IN_EDP] > 1, "nccl:edp");
    add_stream(o, ON_PP_FORWARD, pp, "nccl:pp:forward:even");
    add_stream(o, ON_PP_FORWARD + 1, pp && o->w->pp > 2, "nccl:pp:forward:odd");
    add_stream(o, ON_PP_FORWARD + 2, wrap, "nccl:pp:forward:wrap");
    add_stream(o, ON_PP_ODD, pp && o->w->overlap_a2a, "nccl:pp:forward:even:2");
    add_stream(o, ON_PP_ODD + 1, pp && o->w->overlap_a2a && o->w->pp > 2, "nccl:pp:forward:odd:2");
    add_stream(o, ON_PP_BACKWARD, pp, "nccl:pp:backward:even");
    add_stream(o, ON_PP_BACKWARD + 1, pp && o->w->pp > 2, "nccl:pp:backward:odd");
    add_stream(o, ON_PP_BACKWARD + 2, wrap, "nccl:pp:backward:wrap");
    add_stream(o, ON_WORLD, true, "nccl:world");
}

/* Tables of the exchange of tokens, in elements; the combine is the dispatch the other way. */
static zipccl_status add_splits(struct workload_out *o)
{
    const struct zipccl_workload *w = o->w;
    size_t e = w->ep;
    uint64_t *row;

    if (w->imbalance <= 1 || e < 2)
        return ZIPCCL_OK;
    for (int i = 0; i < 2; i++) {
        o->splits[i] = (struct zipccl_trace_splits){i == 0 ? "dispatch" : "combine", w->ep,
                                                    calloc(e * e, sizeof *row)};
        o->header.nsplits++;
    }
    row = calloc(e, sizeof *row);
    if (row == NULL || o->splits[0].counts == NULL || o->splits[1].counts == NULL) {
        free(row);
        return zipccl_fail(o->error, ZIPCCL_ERR_NOMEM, "out of memory");
    }
    workload_token_split(w, o->shard_tokens * w->model.topk, row);
    for (size_t from = 0; from < e; from++)
        for (size_t to = 0; to < e; to++) {
            o->splits[0].counts[from * e + to] = row[to] * w->model.hidden;
            o->splits[1].counts[to * e + from] = row[to] * w->model.hidden;
        }
    free(row);
    return ZIPCCL_OK;
}

static const char *sharding_word(const struct zipccl_workload *w)
{
    static const char *const words[] = {"DDP", "ZeRO-1", "ZeRO-2", "FSDP",
                                        "FSDP without resharding"};

    if (w->shard > 0)
        return w->sharding == ZIPCCL_SHARD_FSDP ? "HSDP" : "HSDP without resharding";
    return w->kind != ZIPCCL_WORKLOAD_TRAIN ? "weight sync" : words[w->sharding];
}

static void describe(const struct zipccl_workload *w, char *name, size_t name_size, char *model,
                     size_t model_size)
{
    const char *what = w->kind == ZIPCCL_WORKLOAD_TRAIN ? "" : "-sync";
    char etp[24] = "";
    size_t n;

    if (w->etp > 1)
        snprintf(etp, sizeof etp, " x ETP %u", w->etp);
    n = (size_t)snprintf(name, name_size, "%s%s-tp%u-pp%u-dp%u", w->model.name, what, w->tp, w->pp,
                         w->dp);
    if (w->cp > 1)
        n += (size_t)snprintf(name + n, name_size - n, "-cp%u", w->cp);
    if (w->ep > 1)
        n += (size_t)snprintf(name + n, name_size - n, "-ep%u", w->ep);
    if (w->etp > 1)
        n += (size_t)snprintf(name + n, name_size - n, "-etp%u", w->etp);
    if (w->shard > 0)
        snprintf(name + n, name_size - n, "-shard%u", w->shard);
    snprintf(model, model_size,
             "%s, %s, TP %u%s, PP %u%s, DP %u, CP %u, EP %u%s%s, sequence %llu, micro-batch %llu, "
             "%llu micro-batch%s",
             w->model.description, sharding_word(w), w->tp, w->sp ? " with SP" : "", w->pp,
             w->vpp > 1 ? " interleaved" : "", w->dp, w->cp, w->ep, etp,
             w->node_dispatch ? " by nodes" : "", (unsigned long long)w->seq,
             (unsigned long long)w->micro_batch,
             (unsigned long long)zipccl_workload_micro_batches(w),
             zipccl_workload_micro_batches(w) == 1 ? "" : "es");
}

struct workload_out *workload_out_create(const struct zipccl_workload *w,
                                         struct zipccl_error *error)
{
    struct workload_out *o = calloc(1, sizeof *o);

    if (o == NULL)
        return NULL;
    o->w = w;
    o->error = error;
    o->times = 1;
    zipccl_workload_count(&w->model, &o->n);
    set_sizes(o);
    workload_part_flops(o);
    return o;
}

static void set_header(struct workload_out *o, const char *samples_name)
{
    const struct zipccl_workload *w = o->w;
    uint32_t nranks = o->size[IN_WORLD], per_node = w->ranks_per_node;

    o->header = (struct zipccl_trace_header){
        .version = 1,
        .provenance = "generated from a description of the model; nothing measured",
        .generator = "zipccl trace generate 1",
        .nranks = nranks,
        .ranks_per_node = per_node > 0 && nranks % per_node == 0 ? per_node : 0,
        .recorded_step_s = -1,
        .tokens_per_step = w->kind == ZIPCCL_WORKLOAD_TRAIN ? w->global_batch * w->seq / nranks : 0,
        .samples = samples_name,
        .streams = o->streams,
        .groups = o->groups,
        .splits = o->splits};
}

zipccl_status workload_out_open(struct workload_out *o, const char *path, const char *samples,
                                const char *samples_name)
{
    uint32_t nranks = o->size[IN_WORLD];
    char name[320], model[640];

    describe(o->w, name, sizeof name, model, sizeof model);
    set_header(o, samples != NULL ? samples_name : NULL);
    o->header.name = name;
    o->header.model = model;
    o->ranks = malloc(nranks * sizeof *o->ranks);
    o->members = malloc(nranks * sizeof *o->members);
    if (o->ranks == NULL || o->members == NULL)
        return zipccl_fail(o->error, ZIPCCL_ERR_NOMEM, "out of memory");
    for (uint32_t i = 0; i < nranks; i++)
        o->ranks[i] = i;
    add_streams(o);
    ZIPCCL_TRY(add_groups(o));
    ZIPCCL_TRY(add_splits(o));
    if (samples != NULL)
        ZIPCCL_TRY(workload_bind(o, samples));
    return zipccl_trace_writer_open(path, &o->header, &o->writer, o->error);
}

/* Of the stage that sends most; bytes over the network are the dear ones. */
static void sum_up(struct workload_out *o)
{
    struct zipccl_workload_summary *sum = &o->summary;

    for (uint32_t s = 0; s < o->w->pp; s++) {
        const struct workload_sums *own = &o->sums[s];

        if (own->net < sum->bytes_net ||
            (own->net == sum->bytes_net && own->node <= sum->bytes_node))
            continue;
        sum->bytes_net = own->net;
        sum->bytes_node = own->node;
    }
    for (int i = 0; i < NUM_USES; i++)
        sum->unbound += o->unbound[i];
}

zipccl_status workload_out_destroy(struct workload_out *o, zipccl_status status,
                                   struct zipccl_workload_summary *out)
{
    if (o->writer != NULL) {
        bool good = status == ZIPCCL_OK;
        zipccl_status finished = zipccl_trace_writer_finish(o->writer, good, o->error);

        status = good ? finished : status;
    }
    sum_up(o);
    if (status == ZIPCCL_OK && out != NULL)
        *out = o->summary;
    for (int i = 0; i < NUM_GROUPS; i++)
        free(o->groups[i].ranks);
    for (int i = 0; i < 2; i++)
        free(o->splits[i].counts);
    free(o->ranks);
    free(o->members);
    free(o);
    return status;
}

static void write(struct workload_out *o, struct zipccl_event *event)
{
    o->summary.lines++;
    if (o->status == ZIPCCL_OK)
        o->status = zipccl_trace_write(o->writer, event, o->error);
}

void workload_wait(struct workload_out *o, uint64_t id)
{
    if (id != 0 && o->ndeps < MAX_DEPS)
        o->deps[o->ndeps++] = id;
}

/* A time that was given, of which this event has its share of the part's work. */
static double measured(const struct workload_out *o, enum zipccl_workload_part part, bool backward,
                       double flops)
{
    double time = backward ? o->w->times.backward_s[part] : o->w->times.forward_s[part];
    double total = o->part_flops[part] * (backward ? 2 : 1);

    if (time < 0)
        return -1;
    return total > 0 ? time * (flops / total) : time;
}

static void set_work(const struct workload_out *o, enum zipccl_workload_part part, bool backward,
                     double flops, double bytes, struct zipccl_event *event)
{
    event->flops = flops;
    event->hbm_bytes = bytes;
    event->duration_s = measured(o, part, backward, flops);
    if (event->duration_s < 0 && o->w->peak_flops > 0 && flops > 0)
        event->duration_s = flops / (o->w->peak_flops * o->w->mfu);
    else if (o->w->peak_flops > 0)
        event->flops = -1; /* memory traffic alone, if anything */
    /* A replay would take flops before a duration. */
    if (event->duration_s >= 0) {
        event->flops = -1;
        event->hbm_bytes = -1;
    }
}

static uint64_t put_compute(struct workload_out *o, struct zipccl_event *event)
{
    event->kind = ZIPCCL_EVENT_COMPUTE;
    event->id = ++o->id;
    event->repeat = 1;
    write(o, event);
    o->summary.ncompute += o->times;
    return o->id;
}

static void set_stage_ranks(const struct workload_out *o, struct zipccl_event *event)
{
    if (o->w->pp == 1)
        return;
    event->nranks = o->per_stage;
    event->ranks = o->ranks + (size_t)o->stage * o->per_stage;
}

uint64_t workload_compute(struct workload_out *o, enum zipccl_workload_part part, bool backward,
                          const char *label, double flops, double bytes)
{
    struct zipccl_event event = {.label = label, .ndeps = (uint32_t)o->ndeps, .deps = o->deps};

    set_stage_ranks(o, &event);
    set_work(o, part, backward, flops, bytes, &event);
    o->last[o->stage] = put_compute(o, &event);
    o->ndeps = 0;
    return o->last[o->stage];
}

uint64_t workload_compute_member(struct workload_out *o, enum zipccl_workload_part part,
                                 bool backward, const char *label, double flops, double bytes,
                                 uint32_t member)
{
    struct zipccl_event event = {
        .label = label, .ndeps = (uint32_t)o->ndeps, .deps = o->deps, .ranks = o->members};

    for (uint32_t r = member; r < o->per_stage; r += o->w->ep)
        o->members[event.nranks++] = o->stage * o->per_stage + r;
    set_work(o, part, backward, flops, bytes, &event);
    return put_compute(o, &event);
}

uint64_t workload_marker(struct workload_out *o, enum workload_stream stream, const char *label)
{
    struct zipccl_event event = {.label = label,
                                 .stream = o->stream_index[stream],
                                 .duration_s = o->w->peak_flops > 0 ? 0 : -1,
                                 .flops = o->w->peak_flops > 0 ? -1 : 0,
                                 .hbm_bytes = -1};

    set_stage_ranks(o, &event);
    if (stream == ON_COMPUTE) {
        event.ndeps = (uint32_t)o->ndeps;
        event.deps = o->deps;
        o->ndeps = 0;
    }
    put_compute(o, &event);
    if (stream == ON_COMPUTE)
        o->last[o->stage] = o->id;
    return o->id;
}

/* Bytes that one member sends. */
static double wire_bytes(const struct workload_out *o, const struct workload_call *c)
{
    double n = o->size[c->group], bytes = (double)c->count * (double)zipccl_dtype_size(c->dtype);

    switch (c->op) {
    case ZIPCCL_ALL_REDUCE: return 2 * (n - 1) / n * bytes;
    case ZIPCCL_SENDRECV:
    case ZIPCCL_BROADCAST: return bytes;
    default: return (n - 1) * bytes;
    }
}

static void add_bytes(struct workload_out *o, const struct workload_call *c, uint64_t repeat)
{
    double bytes = wire_bytes(o, c) * (double)(o->times * repeat);

    for (uint32_t s = 0; s < o->w->pp; s++)
        if (c->all_stages || s == o->stage)
            *(o->crosses[c->group] ? &o->sums[s].net : &o->sums[s].node) += bytes;
    o->summary.ncollective += o->times * repeat;
}

static void set_ring(struct workload_out *o, const struct workload_call *call,
                     struct zipccl_event *event, struct zipccl_trace_pair *pairs)
{
    uint32_t n = o->size[call->group];

    event->pairs = pairs;
    event->npairs = 1;
    pairs[0] = call->pair;
    if (call->pair.src != call->pair.dst)
        return;
    event->npairs = n;
    for (uint32_t i = 0; i < n; i++)
        pairs[i] = (struct zipccl_trace_pair){i, (i + 1) % n};
}

uint64_t workload_call(struct workload_out *o, const struct workload_call *call)
{
    uint64_t after = call->after != 0 ? call->after : o->last[o->stage];
    uint64_t repeat = call->repeat > 0 ? call->repeat : 1;
    bool reduces = zipccl_is_reduction(call->op);
    const char *const *names = o->samples[call->use][o->place];
    struct zipccl_trace_pair *pairs = NULL;
    uint64_t deps[2] = {after, call->also};
    struct zipccl_event event = {.kind = ZIPCCL_EVENT_COLLECTIVE,
                                 .label = call->label,
                                 .stream = o->stream_index[call->stream],
                                 .repeat = repeat,
                                 .ndeps = (after != 0) + (call->also != 0),
                                 .deps = deps,
                                 .op = call->op,
                                 .group = o->group_index[call->group],
                                 .dtype = call->dtype,
                                 .count = call->count,
                                 .splits = call->splits - 1,
                                 .recorded_s = -1,
                                 .samples = (char **)names};

    if (o->size[call->group] < 2)
        return 0;
    while (names != NULL && event.nsamples < MAX_NAMES && names[event.nsamples] != NULL)
        event.nsamples++;
    if (call->free)
        event.ndeps = 0;
    if (call->all_stages && o->last[0] != 0) {
        event.ndeps = o->w->pp;
        event.deps = o->last;
    }
    if (o->header.samples != NULL)
        o->unbound[call->use] |= names == NULL && call->use != OF_NOTHING;
    /* A mean of gradients, as frameworks ask for; sums elsewhere. */
    if (reduces && call->use >= OF_GRAD && call->use <= OF_EXPERT_GRAD)
        event.redop = ZIPCCL_AVG;
    if (call->op == ZIPCCL_ALLTOALLV)
        for (size_t i = 0; i < (size_t)o->w->ep * o->w->ep; i++)
            if (o->splits[event.splits].counts[i] > event.count)
                event.count = o->splits[event.splits].counts[i];
    if (call->op == ZIPCCL_SENDRECV) {
        pairs = malloc(o->size[call->group] * sizeof *pairs);
        if (pairs == NULL) {
            o->status = zipccl_fail(o->error, ZIPCCL_ERR_NOMEM, "out of memory");
            return 0;
        }
        set_ring(o, call, &event, pairs);
    }
    if (!call->all_stages && call->group != IN_PP && call->group != IN_EMBED)
        set_stage_ranks(o, &event);
    event.id = ++o->id;
    write(o, &event);
    free(pairs);
    add_bytes(o, call, repeat);
    return o->id;
}

void workload_loop(struct workload_out *o, uint64_t repeat, const char *label)
{
    struct zipccl_event event = {.kind = ZIPCCL_EVENT_LOOP_BEGIN, .repeat = repeat, .label = label};

    if (repeat < 2)
        return;
    write(o, &event);
    o->times *= repeat;
}

void workload_end(struct workload_out *o, uint64_t repeat)
{
    struct zipccl_event event = {.kind = ZIPCCL_EVENT_LOOP_END};

    if (repeat < 2)
        return;
    write(o, &event);
    o->times /= repeat;
}
