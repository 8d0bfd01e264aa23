/*
 * perf_sim.c - collectives of perf on a simulated cluster
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/perf/perf_sim.h"

#include "experiments/perf/perf_report.h"
#include "sim/flow.h"
#include "sim/samples.h"
#include "sim/t2.h"
#include "traces/safetensors.h"

#include <stdlib.h>
#include <string.h>

/* Staging that a call may use, as the communicator's default. */
#define MAX_STAGING_BYTES ((size_t)256 << 20)

struct sim {
    const struct zipccl_perf_options *options;
    const struct zipccl_cluster *cluster;
    struct zipccl_cost_params params;
    struct zipccl_topology *topology;
    uint32_t *gpus; /* [nranks] rank r on GPU r */
    struct zipccl_samples *samples;
    uint32_t set;     /* of the type at hand */
    uint32_t nsummed; /* ranks whose elements a message is the sum of */
    enum zipccl_dtype dtype;
    size_t *splits; /* [nranks * nranks] of uneven ops */
    struct zipccl_perf_result *result;
    FILE *table;
};

static size_t mean_bytes(void *context, enum zipccl_effort effort, size_t n)
{
    struct sim *s = context;
    size_t mean, longest;

    zipccl_samples_bytes(s->samples, s->set, effort, n, s->nsummed, &mean, &longest);
    return mean;
}

static size_t fast_bytes(void *context, uint32_t src, uint32_t dst, size_t n)
{
    (void)src;
    (void)dst;
    return mean_bytes(context, ZIPCCL_EFFORT_FAST, n);
}

static size_t ratio_bytes(void *context, uint32_t src, uint32_t dst, size_t n)
{
    (void)src;
    (void)dst;
    return mean_bytes(context, ZIPCCL_EFFORT_RATIO, n);
}

static int overflows(void *context, uint32_t src, uint32_t dst, size_t n, size_t capacity)
{
    struct sim *s = context;
    size_t mean, longest;

    (void)src;
    (void)dst;
    zipccl_samples_bytes(s->samples, s->set, ZIPCCL_EFFORT_FAST, n, s->nsummed, &mean, &longest);
    return longest > capacity;
}

static void sums_of(void *context, uint32_t nranks)
{
    ((struct sim *)context)->nsummed = nranks;
}

static struct zipccl_wire_sizes sizes_of(struct sim *s, const struct zipccl_perf_call *call)
{
    bool uneven = zipccl_is_uneven(call->op);

    return (struct zipccl_wire_sizes){.bytes = fast_bytes,
                                      .ratio_bytes = ratio_bytes,
                                      .context = s,
                                      .splits = uneven ? s->splits : NULL,
                                      .overflows = overflows,
                                      .by_n = true,
                                      .sums_of = sums_of};
}

static void sim_bytes(void *context, enum zipccl_effort effort, size_t n, uint32_t nsummed,
                      size_t *mean, size_t *longest)
{
    struct sim *s = context;

    zipccl_samples_bytes(s->samples, s->set, effort, n, nsummed, mean, longest);
}

/* What each pair moves: as zipccl-perf has it. */
static size_t fill_splits(struct sim *s, const struct zipccl_perf_call *call)
{
    uint32_t n = s->topology->nranks;
    size_t most = call->count;

    for (uint32_t src = 0; src < n; src++)
        for (uint32_t dst = 0; dst < n; dst++) {
            size_t *at = &s->splits[(size_t)src * n + dst];

            *at = 0;
            if (call->op == ZIPCCL_ALLTOALLV)
                *at = zipccl_perf_split_n(call->count, n, src, dst);
            else if (call->op == ZIPCCL_SENDRECV && dst == (src + 1) % n)
                *at = call->count;
            most = *at > most ? *at : most;
        }
    return most;
}

static struct zipccl_call call_of(struct sim *s, const struct zipccl_perf_call *call)
{
    return (struct zipccl_call){.op = call->op,
                                .dtype = call->dtype,
                                .redop = call->redop,
                                .root = call->root,
                                .count = fill_splits(s, call),
                                .has_native = true,
                                .effort = s->options->effort};
}

static uint32_t first_class(const struct sim *s)
{
    return s->options->capacity_class == ZIPCCL_CLASS_LEARN ? ZIPCCL_CLASS_SETTLED
                                                            : s->options->capacity_class;
}

/* A named strategy: in the class asked for, or the narrowest that its messages fit. */
static zipccl_status build_pinned(struct sim *s, const struct zipccl_call *call,
                                  const struct zipccl_wire_sizes *sizes, const char *name,
                                  struct zipccl_plan **out)
{
    const struct zipccl_strategy *strategy = zipccl_strategy_find(name);
    uint32_t nchunks = s->options->nchunks > 0 ? s->options->nchunks : 1;

    if (strategy == NULL || !strategy->serves(call))
        return ZIPCCL_ERR_UNSUPPORTED;
    for (uint32_t class = first_class(s);; class --) {
        ZIPCCL_TRY(strategy->build(call, s->topology, s->params.channels, nchunks, class,
                                   MAX_STAGING_BYTES, out));
        if (s->options->capacity_class != ZIPCCL_CLASS_LEARN || class == ZIPCCL_CLASS_WIDE ||
            !zipccl_lower_overflows(*out, s->topology, sizes))
            return ZIPCCL_OK;
        zipccl_plan_destroy(*out);
    }
}

/* Whether 'strategy' was pinned and belongs to 'mode'. */
static bool pinned_to(const char *strategy, enum zipccl_perf_mode mode)
{
    if (strategy == NULL || strcmp(strategy, "native") == 0)
        return false;
    return zipccl_strategy_find(strategy)->compressed ? mode == ZIPCCL_PERF_COMPRESSED
                                                      : mode == ZIPCCL_PERF_RAW;
}

static zipccl_status find_plan(struct sim *s, const struct zipccl_perf_call *call,
                               enum zipccl_perf_mode mode, const struct zipccl_wire_sizes *sizes,
                               struct zipccl_plan **out)
{
    static const enum zipccl_mode modes[ZIPCCL_NUM_PERF_MODES] = {
        [ZIPCCL_PERF_RAW] = ZIPCCL_MODE_RAW,
        [ZIPCCL_PERF_NATIVE] = ZIPCCL_MODE_RAW,
        [ZIPCCL_PERF_COMPRESSED] = ZIPCCL_MODE_COMPRESSED,
        [ZIPCCL_PERF_ADAPTIVE] = ZIPCCL_MODE_ADAPTIVE};
    struct zipccl_placement placement = {s->topology, NULL};
    struct zipccl_call c = call_of(s, call);

    if (mode == ZIPCCL_PERF_NATIVE)
        return build_pinned(s, &c, sizes, "native", out);
    if (pinned_to(s->options->strategy, mode))
        return build_pinned(s, &c, sizes, s->options->strategy, out);
    return zipccl_choose(&c, &placement, &s->params, sizes, modes[mode], first_class(s),
                         MAX_STAGING_BYTES, out, NULL);
}

static zipccl_status price_flow(struct sim *s, const struct zipccl_plan *plan,
                                const struct zipccl_wire_sizes *sizes,
                                const struct zipccl_cost *cost, double *seconds,
                                struct zipccl_error *error)
{
    struct zipccl_placement placement = {s->topology, NULL};
    struct zipccl_flow *flow = NULL;
    zipccl_status status = zipccl_flow_create(plan, &placement, &s->params, sizes, cost, &flow);

    if (status == ZIPCCL_OK)
        status = zipccl_flow_price(flow, s->gpus, s->cluster, seconds, error);
    zipccl_flow_destroy(flow);
    return status;
}

static zipccl_status price_messages(struct sim *s, const struct zipccl_plan *plan,
                                    const struct zipccl_wire_sizes *sizes, double *seconds,
                                    struct zipccl_error *error)
{
    struct zipccl_sim_sizes by_pointer = {.bytes = sim_bytes, .context = s};
    struct zipccl_t2_call call = {.plan = plan,
                                  .topology = s->topology,
                                  .payload = {.sizes = &by_pointer, .splits = sizes->splits}};
    struct zipccl_t2_result result = {.bytes = NULL};

    ZIPCCL_TRY(zipccl_t2_price(s->cluster, &call, 1, &result, error));
    *seconds = result.seconds;
    return result.status;
}

/* Codec seconds of the rank that has most to do. */
static void price_codec(const struct sim *s, const struct zipccl_plan *plan,
                        const struct zipccl_wire_sizes *sizes, struct zipccl_perf_row *row)
{
    double size = (double)zipccl_dtype_size((enum zipccl_dtype)plan->dtype), most = 0;
    double rates[2] = {zipccl_cost_encode_Bps(&s->params, plan),
                       zipccl_cost_decode_Bps(&s->params, plan)};

    row->encode_s = row->decode_s = 0;
    for (uint32_t r = 0; r < plan->nranks && plan->compressed; r++) {
        double seconds[2] = {0, 0};

        for (uint32_t i = 0; i < plan->nsteps; i++) {
            const struct zipccl_step *step = &plan->steps[i];
            bool decode = step->kind == ZIPCCL_STEP_DECODE || step->kind == ZIPCCL_STEP_REDUCE;
            double n;

            if (step->kind != ZIPCCL_STEP_ENCODE && !decode)
                continue;
            n = zipccl_cost_local_n(plan, step, s->topology, sizes->splits, r);
            if (n > 0)
                seconds[decode] += n * size / rates[decode] + s->params.codec_launch_s +
                                   zipccl_cost_summed_s(plan, step, s->topology, &s->params, r);
        }
        if (seconds[0] + seconds[1] > most) {
            most = seconds[0] + seconds[1];
            row->encode_s = seconds[0];
            row->decode_s = seconds[1];
        }
    }
}

static zipccl_status price(struct sim *s, const struct zipccl_plan *plan,
                           const struct zipccl_wire_sizes *sizes, struct zipccl_perf_row *row,
                           struct zipccl_error *error)
{
    struct zipccl_placement placement = {s->topology, NULL};
    struct zipccl_cost cost;
    double seconds, raw, coded;

    ZIPCCL_TRY(zipccl_cost_coded_bytes(plan, s->topology, sizes, &raw, &coded));
    ZIPCCL_TRY(zipccl_cost_plan(plan, &placement, &s->params, sizes, &cost));
    seconds = cost.total_s;
    if (s->options->tier == 1)
        ZIPCCL_TRY(price_flow(s, plan, sizes, &cost, &seconds, error));
    if (s->options->tier == 2)
        ZIPCCL_TRY(price_messages(s, plan, sizes, &seconds, error));
    zipccl_perf_row_times(row, &seconds, 1);
    memcpy(row->strategy, plan->strategy, sizeof row->strategy);
    row->nchunks = plan->nchunks;
    row->effort = (enum zipccl_effort)plan->effort;
    row->capacity_class = zipccl_plan_is_fixed(plan) ? (int)plan->capacity_class : ZIPCCL_NO_CLASS;
    row->coded_raw = raw / plan->nranks;
    row->coded_wire = coded / plan->nranks;
    row->wire_bytes = (double)cost.wire_bytes;
    row->raw_bytes = row->wire_bytes + (raw - coded) / plan->nranks; /* as executors count */
    price_codec(s, plan, sizes, row);
    return ZIPCCL_OK;
}

static zipccl_status price_mode(struct sim *s, const struct zipccl_perf_call *call,
                                enum zipccl_perf_mode mode, double *raw_s,
                                struct zipccl_error *error)
{
    struct zipccl_perf_row row = {.call = *call,
                                  .nranks = s->topology->nranks,
                                  .nodes = s->topology->nnodes,
                                  .mode = mode,
                                  .wrong = -1};
    struct zipccl_wire_sizes sizes = sizes_of(s, call);
    struct zipccl_plan *plan = NULL;
    zipccl_status status;

    s->nsummed = 1;
    status = find_plan(s, call, mode, &sizes, &plan);
    if (status == ZIPCCL_ERR_UNSUPPORTED)
        return zipccl_fail(error, status, "nothing serves %s of %s in mode %s%s%s%s",
                           zipccl_op_name(call->op), zipccl_dtype_name(call->dtype),
                           zipccl_perf_mode_names[mode], s->options->strategy ? " with '" : "",
                           s->options->strategy ? s->options->strategy : "",
                           s->options->strategy ? "'" : "");
    if (status == ZIPCCL_OK)
        status = price(s, plan, &sizes, &row, error);
    zipccl_plan_destroy(plan);
    ZIPCCL_TRY(status);
    if (mode == ZIPCCL_PERF_RAW)
        *raw_s = row.time_s;
    else if (*raw_s > 0 && row.time_s > 0)
        row.to_raw = row.to_raw_low = row.to_raw_high = *raw_s / row.time_s;
    if (zipccl_perf_add(s->result, &row) != ZIPCCL_OK)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "result: out of memory");
    if (s->table == NULL)
        return ZIPCCL_OK;
    /* What is refused prints no head. */
    if (s->result->nrows == 1)
        zipccl_perf_print_head(s->options, s->result, s->table);
    zipccl_perf_print_row(s->options, &row, NULL, s->table);
    return ZIPCCL_OK;
}

/* All sizes and modes of one type, operator and root. */
static zipccl_status price_sizes(struct sim *s, enum zipccl_redop redop, uint32_t root,
                                 struct zipccl_error *error)
{
    const struct zipccl_perf_options *o = s->options;

    for (uint64_t nbytes = o->min_bytes; nbytes != 0; nbytes = zipccl_perf_next_size(o, nbytes)) {
        struct zipccl_perf_call call;
        double raw_s = 0;

        zipccl_perf_call_init(&call, o->op, s->dtype, redop, root, nbytes, s->topology->nranks);
        for (int m = 0; m < ZIPCCL_NUM_PERF_MODES; m++)
            if (o->modes[m]) {
                zipccl_status status =
                    price_mode(s, &call, (enum zipccl_perf_mode)m, &raw_s, error);

                if (status != ZIPCCL_OK)
                    return error->text[0] != '\0' ? status
                                                  : zipccl_fail(error, status, "%s of %zu %s: %s",
                                                                zipccl_op_name(o->op), call.count,
                                                                zipccl_dtype_name(s->dtype),
                                                                zipccl_status_string(status));
            }
    }
    return zipccl_samples_check(s->samples, error);
}

/* The tensors of the file that are of the type at hand, as names of a set. */
static zipccl_status bind_file(struct sim *s, struct zipccl_error *error)
{
    const struct zipccl_perf_options *o = s->options;
    const struct zipccl_safetensors *file;
    zipccl_status status = ZIPCCL_ERR_NOMEM;
    uint32_t n = 0;
    char **names;

    ZIPCCL_TRY(zipccl_safetensors_open(o->input_path, &file, error));
    names = calloc(file->ntensors + 1, sizeof *names);
    for (size_t i = 0; names != NULL && i < file->ntensors; i++) {
        const struct zipccl_tensor *t = &file->tensors[i];
        bool named = o->tensor[0] == '\0' || strcmp(o->tensor, t->name) == 0;

        if (named && t->known && t->dtype == s->dtype && t->n > 0)
            names[n++] = t->name;
    }
    if (names != NULL && n == 0)
        status =
            zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: no tensor%s%s of type %s", o->input_path,
                        o->tensor[0] != '\0' ? " " : "", o->tensor, zipccl_dtype_name(s->dtype));
    else if (names != NULL)
        status = zipccl_samples_bind(s->samples, s->dtype, names, n, &s->set, error);
    free(names);
    zipccl_safetensors_close(file);
    return status;
}

static zipccl_status price_type(struct sim *s, struct zipccl_error *error)
{
    const struct zipccl_perf_options *o = s->options;
    bool reduces = zipccl_is_reduction(o->op);
    uint32_t nroots = o->op == ZIPCCL_BROADCAST && o->all_roots ? s->topology->nranks : 1;

    if (o->data == ZIPCCL_DATA_FILE)
        ZIPCCL_TRY(bind_file(s, error));
    else
        ZIPCCL_TRY(zipccl_samples_bind(s->samples, s->dtype, NULL, 0, &s->set, error));
    for (size_t k = 0; k < (reduces ? o->nredops : 1); k++)
        for (uint32_t r = 0; r < nroots; r++)
            ZIPCCL_TRY(price_sizes(s, o->redops[k], nroots > 1 ? r : o->root, error));
    return ZIPCCL_OK;
}

static zipccl_status prepare(struct sim *s, struct zipccl_error *error)
{
    const struct zipccl_perf_options *o = s->options;
    uint64_t n = (uint64_t)s->cluster->nodes * s->cluster->gpus_per_node;

    zipccl_cluster_cost_params(s->cluster, &s->params);
    if (n < 2)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "the cluster has one rank, which has nobody to "
                           "talk to: --set nodes or gpus_per_node");
    if (n > 4096)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%llu ranks; expected at most 4096: a smaller --set nodes",
                           (unsigned long long)n);
    if (o->op == ZIPCCL_BROADCAST && !o->all_roots && o->root >= n)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "-r %u is not one of %u ranks", o->root,
                           (unsigned)n);
    ZIPCCL_TRY(
        zipccl_topology_create_even(s->cluster->nodes, s->cluster->gpus_per_node, &s->topology));
    s->gpus = malloc(n * sizeof *s->gpus);
    s->splits = calloc(n * n, sizeof *s->splits);
    if (s->gpus == NULL || s->splits == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    for (uint32_t r = 0; r < n; r++)
        s->gpus[r] = r;
    s->result->nranks = s->topology->nranks;
    s->result->nodes = s->topology->nnodes;
    return zipccl_samples_open(o->data == ZIPCCL_DATA_FILE ? o->input_path : NULL, o->ratio,
                               &s->samples, error);
}

zipccl_status zipccl_perf_sim_run(const struct zipccl_perf_options *options,
                                  const struct zipccl_cluster *cluster,
                                  struct zipccl_perf_result *result, FILE *table,
                                  struct zipccl_error *error)
{
    struct sim s = {.options = options, .cluster = cluster, .result = result, .table = table};
    zipccl_status status = prepare(&s, error);

    for (size_t d = 0; d < options->ndtypes && status == ZIPCCL_OK; d++) {
        s.dtype = options->dtypes[d];
        status = price_type(&s, error);
    }
    zipccl_samples_close(s.samples);
    zipccl_topology_destroy(s.topology);
    free(s.gpus);
    free(s.splits);
    return status;
}
