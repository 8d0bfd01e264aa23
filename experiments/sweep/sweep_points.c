/*
 * sweep_points.c - which combinations of a sweep make sense, and what each of them is
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/sweep/sweep_points.h"

#include "experiments/trace/generate_set.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char *zipccl_sweep_skip_name(enum zipccl_sweep_skip skip)
{
    static const char *const names[] = {"", "parallelism", "world", "cluster", "memory", "rescale"};

    return names[skip];
}

static void skip(struct zipccl_sweep_point *point, enum zipccl_sweep_skip why, const char *format,
                 ...) __attribute__((format(printf, 3, 4)));

static void skip(struct zipccl_sweep_point *point, enum zipccl_sweep_skip why, const char *format,
                 ...)
{
    va_list args;

    point->skip = why;
    va_start(args, format);
    vsnprintf(point->reason, sizeof point->reason, format, args);
    va_end(args);
}

static size_t choice_of(const struct zipccl_sweep_spec *spec, size_t index,
                        const struct zipccl_sweep_axis *axis)
{
    return zipccl_sweep_spec_choice(spec, index, (size_t)(axis - spec->axes));
}

size_t zipccl_sweep_source_of(const struct zipccl_sweep_spec *spec, size_t index)
{
    const struct zipccl_sweep_axis *axis = zipccl_sweep_spec_role(spec, ZIPCCL_SWEEP_MODEL);

    if (axis == NULL)
        axis = zipccl_sweep_spec_role(spec, ZIPCCL_SWEEP_TRACE);
    return choice_of(spec, index, axis);
}

size_t zipccl_sweep_cluster_of(const struct zipccl_sweep_spec *spec, size_t index)
{
    return choice_of(spec, index, zipccl_sweep_spec_role(spec, ZIPCCL_SWEEP_CLUSTER));
}

zipccl_status zipccl_sweep_set_cluster(const struct zipccl_sweep_spec *spec, size_t index,
                                       uint32_t nodes, struct zipccl_cluster_file *file,
                                       struct zipccl_error *error)
{
    char text[400];

    for (size_t i = 0; i < spec->naxes; i++) {
        if (spec->axes[i].role != ZIPCCL_SWEEP_KEY)
            continue;
        snprintf(text, sizeof text, "%s=%s", spec->axes[i].key,
                 spec->axes[i].values[zipccl_sweep_spec_choice(spec, index, i)]);
        ZIPCCL_TRY(zipccl_cluster_set(file, text, error));
    }
    if (nodes == 0)
        return ZIPCCL_OK;
    snprintf(text, sizeof text, "nodes=%" PRIu32, nodes);
    return zipccl_cluster_set(file, text, error);
}

/* What number of an axis of counts combination 'index' has; 0: there is no such axis. */
static uint64_t count_of(const struct zipccl_sweep_spec *spec, size_t index,
                         enum zipccl_sweep_role role)
{
    const struct zipccl_sweep_axis *axis = zipccl_sweep_spec_role(spec, role);

    return axis != NULL ? (uint64_t)axis->numbers[choice_of(spec, index, axis)] : 0;
}

/* Ranks of a made-up step: given, or as the dp that is given makes them, or as the cluster has GPUs. */
static bool find_workload(const struct zipccl_sweep *s, struct zipccl_sweep_point *p,
                          const struct zipccl_cluster *cluster, uint64_t asked,
                          struct zipccl_workload *w)
{
    struct zipccl_error why = {""};
    bool dp_given;
    uint64_t all;

    zipccl_workload_init(w);
    w->model = s->models[zipccl_sweep_source_of(s->spec, p->index)];
    w->times = s->times;
    zipccl_sweep_spec_apply(s->spec, p->index, w, &dp_given);
    w->ranks_per_node = cluster->gpus_per_node;
    all = zipccl_workload_nranks(w);
    if (asked > 0 && dp_given && all != asked)
        skip(p, ZIPCCL_SWEEP_NO_SHAPE,
             "tp x pp x cp x dp = %" PRIu64 ", not the %" PRIu64 " GPUs of this point", all, asked);
    else if (asked == 0 && !dp_given)
        asked = (uint64_t)cluster->nodes * cluster->gpus_per_node;
    if (p->skip == ZIPCCL_SWEEP_RUNS &&
        zipccl_generate_fill(w, dp_given ? 0 : asked, &why) != ZIPCCL_OK)
        skip(p, ZIPCCL_SWEEP_NO_SHAPE, "%.250s", why.text);
    p->nranks = zipccl_workload_nranks(w);
    return p->skip == ZIPCCL_SWEEP_RUNS;
}

/* Memory and work of a made-up step. */
static void estimate(const struct zipccl_sweep *s, struct zipccl_sweep_point *p,
                     const struct zipccl_cluster *cluster, const struct zipccl_workload *w)
{
    struct zipccl_workload_estimate e;
    struct zipccl_error why = {""};

    if (zipccl_workload_check(w, &why) != ZIPCCL_OK) {
        skip(p, ZIPCCL_SWEEP_NO_SHAPE, "%.250s", why.text);
        return;
    }
    zipccl_workload_estimate(w, &e);
    p->memory = e.total;
    p->tokens = e.tokens;
    p->model_flops = e.model_flops;
    p->peak_flops = w->peak_flops > 0 ? w->peak_flops : zipccl_generate_peak(cluster->gpu_name);
    p->fits = e.total <= p->gpu_memory;
    if (!p->fits && !s->options.keep_unfit)
        skip(p, ZIPCCL_SWEEP_NO_MEMORY, "%.1f GB a GPU do not fit into %.1f GB", e.total / 1e9,
             p->gpu_memory / 1e9);
}

/* The cluster as combination and ranks make it: whole nodes. */
static void fit_world(const struct zipccl_sweep *s, struct zipccl_sweep_point *p,
                      struct zipccl_cluster *cluster)
{
    struct zipccl_cluster_file *file = s->clusters[zipccl_sweep_cluster_of(s->spec, p->index)];
    struct zipccl_error why = {""};

    if (p->nranks % cluster->gpus_per_node != 0) {
        skip(p, ZIPCCL_SWEEP_NO_WORLD, "%" PRIu64 " GPUs are no whole number of nodes of %" PRIu32,
             p->nranks, cluster->gpus_per_node);
        return;
    }
    p->nodes = (uint32_t)(p->nranks / cluster->gpus_per_node);
    if (zipccl_sweep_set_cluster(s->spec, p->index, p->nodes, file, &why) != ZIPCCL_OK ||
        zipccl_cluster_get(file, cluster, &why) != ZIPCCL_OK)
        skip(p, ZIPCCL_SWEEP_NO_CLUSTER, "%.250s", why.text);
}

static uint64_t hash_of(const char *text)
{
    uint64_t hash = 1469598103934665603u; /* FNV-1a */

    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    return hash;
}

/* What makes the step of a point distinct: all but the cluster's rates and the ratio. */
static char *step_key(const struct zipccl_sweep *s, const struct zipccl_sweep_point *p)
{
    char *text = NULL;
    size_t nbytes = 0;
    FILE *memory = open_memstream(&text, &nbytes);

    if (memory == NULL)
        return NULL;
    fprintf(memory, "%zu ranks %" PRIu64 " of %" PRIu32, zipccl_sweep_source_of(s->spec, p->index),
            p->nranks, p->gpus_per_node);
    for (size_t i = 0; i < s->spec->naxes; i++)
        if (s->spec->axes[i].role == ZIPCCL_SWEEP_PARALLEL ||
            s->spec->axes[i].role == ZIPCCL_SWEEP_OPTION)
            fprintf(memory, " %zu", zipccl_sweep_spec_choice(s->spec, p->index, i));
    if (fclose(memory) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* The step of a point that runs: one that is there, or a new one. */
static zipccl_status find_step(struct zipccl_sweep *s, struct zipccl_sweep_point *p,
                               const struct zipccl_workload *w, uint64_t asked)
{
    char *key = step_key(s, p);
    struct zipccl_sweep_step *step;
    uint64_t hash;

    if (key == NULL)
        return ZIPCCL_ERR_NOMEM;
    hash = hash_of(key);
    for (size_t i = s->nsteps; i-- > 0;)
        if (s->steps[i].hash == hash && strcmp(s->steps[i].key, key) == 0) {
            free(key);
            p->step = i;
            s->steps[i].npoints++;
            return ZIPCCL_OK;
        }
    p->step = s->nsteps;
    step = &s->steps[s->nsteps++]; /* room for one a point */
    step->key = key;
    step->hash = hash;
    step->source = zipccl_sweep_source_of(s->spec, p->index);
    step->workload = *w;
    step->ngpus = asked;
    step->npoints = 1;
    return ZIPCCL_OK;
}

static zipccl_status look_at(struct zipccl_sweep *s, size_t index, struct zipccl_error *error)
{
    struct zipccl_cluster_file *file = s->clusters[zipccl_sweep_cluster_of(s->spec, index)];
    struct zipccl_sweep_point *p = &s->points[index];
    struct zipccl_workload w = {.dp = 0};
    struct zipccl_cluster cluster;
    struct zipccl_error why = {""};
    uint64_t asked = count_of(s->spec, index, ZIPCCL_SWEEP_GPUS);

    p->index = index;
    p->fits = true;
    ZIPCCL_TRY(zipccl_sweep_set_cluster(
        s->spec, index, s->own_nodes[zipccl_sweep_cluster_of(s->spec, index)], file, error));
    if (zipccl_cluster_get(file, &cluster, &why) != ZIPCCL_OK) {
        skip(p, ZIPCCL_SWEEP_NO_CLUSTER, "%.250s", why.text);
        return ZIPCCL_OK;
    }
    p->gpus_per_node = cluster.gpus_per_node;
    p->gpu_memory = s->options.gpu_memory > 0 ? s->options.gpu_memory : cluster.gpu_memory_bytes;
    if (asked == 0)
        asked = count_of(s->spec, index, ZIPCCL_SWEEP_NODES) * cluster.gpus_per_node;
    if (s->nmodels > 0 && !find_workload(s, p, &cluster, asked, &w))
        return ZIPCCL_OK;
    if (s->nmodels == 0) {
        size_t source = zipccl_sweep_source_of(s->spec, index);

        p->nranks = asked > 0 ? asked : s->trace_ranks[source];
        p->tokens = (double)s->trace_tokens[source] * (double)p->nranks;
    }
    fit_world(s, p, &cluster);
    if (p->skip == ZIPCCL_SWEEP_RUNS && s->nmodels > 0)
        estimate(s, p, &cluster, &w);
    if (p->skip == ZIPCCL_SWEEP_RUNS && find_step(s, p, &w, asked) != ZIPCCL_OK)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    return ZIPCCL_OK;
}

/* No point at all: say why most are none. */
static zipccl_status refuse_all(const struct zipccl_sweep *s, struct zipccl_error *error)
{
    int most = 1;
    size_t first = 0;
    char which[120];

    for (int k = 2; k < ZIPCCL_SWEEP_NUM_SKIPS; k++)
        if (s->nskipped[k] > s->nskipped[most])
            most = k;
    while ((int)s->points[first].skip != most)
        first++;
    zipccl_sweep_spec_describe(s->spec, s->points[first].index, which, sizeof which);
    return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                       "sweep: none of %zu combinations can be run; %zu of them for their %s, such "
                       "as %s: %.200s",
                       s->npoints, s->nskipped[most],
                       zipccl_sweep_skip_name((enum zipccl_sweep_skip)most), which,
                       s->points[first].reason);
}

zipccl_status zipccl_sweep_look(struct zipccl_sweep *s, struct zipccl_error *error)
{
    s->npoints = zipccl_sweep_spec_count(s->spec);
    s->points = calloc(s->npoints, sizeof *s->points);
    s->steps = calloc(s->npoints, sizeof *s->steps);
    if (s->points == NULL || s->steps == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < s->npoints; i++) {
        struct zipccl_sweep_point *p = &s->points[i];

        ZIPCCL_TRY(look_at(s, i, error));
        s->nskipped[p->skip]++;
        s->nunfit += p->skip == ZIPCCL_SWEEP_RUNS && !p->fits;
    }
    s->nruns = s->nskipped[ZIPCCL_SWEEP_RUNS];
    s->nskipped[ZIPCCL_SWEEP_RUNS] = 0;
    return s->nruns > 0 ? ZIPCCL_OK : refuse_all(s, error);
}
