/*
 * replay_interval.c - what the speedup would be if all payload were like one class of samples
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/replay/replay_interval.h"

#include "sim/samples.h"
#include "traces/safetensors.h"

#include <stdio.h>
#include <string.h>

/* Elements that a ratio is measured on; samples.c encodes no longer messages. */
#define MEASURED_N ((size_t)1 << 20)

/* The first two words of a tensor's name: "alltoall.dispatch" of "alltoall.dispatch.layer2". */
static bool class_of(const char *name, char *out, size_t size)
{
    const char *dot = strchr(name, '.');
    size_t n = dot != NULL ? (size_t)(dot - name) + 1 + strcspn(dot + 1, ".") : 0;

    return n > 0 && snprintf(out, size, "class:%.*s", (int)n, name) < (int)size;
}

static bool moves(const struct zipccl_trace *trace, enum zipccl_dtype dtype)
{
    for (size_t i = 0; i < trace->nevents; i++)
        if (trace->events[i].kind == ZIPCCL_EVENT_COLLECTIVE && trace->events[i].dtype == dtype)
            return true;
    return false;
}

static bool reduces(const struct zipccl_trace *trace, enum zipccl_dtype dtype)
{
    for (size_t i = 0; i < trace->nevents; i++) {
        const struct zipccl_event *e = &trace->events[i];

        if (e->kind == ZIPCCL_EVENT_COLLECTIVE && e->dtype == dtype &&
            (e->op == ZIPCCL_ALL_REDUCE || e->op == ZIPCCL_REDUCE_SCATTER))
            return true;
    }
    return false;
}

/* Let the interval hold the ratio of 'set' as it is, or as sums over 'nsummed' ranks. */
static void widen(struct zipccl_samples *samples, uint32_t set, enum zipccl_dtype dtype,
                  uint32_t nsummed, const char *class, struct zipccl_result_interval *out)
{
    const char *sums = nsummed > 1 ? ", summed" : "";
    size_t mean, longest;
    double ratio;

    zipccl_samples_bytes(samples, set, ZIPCCL_EFFORT_FAST, MEASURED_N, nsummed, &mean, &longest);
    ratio = (double)(MEASURED_N * zipccl_dtype_size(dtype)) / (double)mean;
    if (!(out->low_ratio > 0) || ratio < out->low_ratio) {
        out->low_ratio = ratio;
        snprintf(out->low_class, sizeof out->low_class, "%.48s%s", class, sums);
    }
    if (ratio > out->high_ratio) {
        out->high_ratio = ratio;
        snprintf(out->high_class, sizeof out->high_class, "%.48s%s", class, sums);
    }
}

/* A class of gradients, which a plan sends on as sums once it has added some up. */
static bool is_reduced(const char *class)
{
    return strncmp(class, "allreduce.", 10) == 0 || strncmp(class, "reducescatter.", 14) == 0;
}

/*
 * Lowest and highest ratio over the classes, those that are reduced also as sums over the 'per_node'
 * ranks of a node and over all; none if no class has a type of the trace.
 */
static zipccl_status find_ratios(const struct zipccl_trace *trace, uint32_t per_node,
                                 const struct zipccl_safetensors *file,
                                 struct zipccl_samples *samples, struct zipccl_result_interval *out,
                                 struct zipccl_error *error)
{
    for (size_t i = 0; i < file->ntensors; i++) {
        const struct zipccl_tensor *t = &file->tensors[i];
        char bound[64], *names[] = {bound};
        const char *class = bound + strlen("class:");
        uint32_t set;

        if (!t->known || !zipccl_dtype_compressible(t->dtype) || !moves(trace, t->dtype) ||
            !class_of(t->name, bound, sizeof bound) ||
            !zipccl_import_class_fits(file, bound, t->dtype))
            continue;
        ZIPCCL_TRY(zipccl_samples_bind(samples, t->dtype, names, 1, &set, error));
        widen(samples, set, t->dtype, 1, class, out);
        if (!is_reduced(class) || !reduces(trace, t->dtype))
            continue;
        widen(samples, set, t->dtype, per_node, class, out);
        widen(samples, set, t->dtype, trace->header.nranks, class, out);
    }
    return zipccl_samples_check(samples, error);
}

static zipccl_status speedup_at(const struct zipccl_trace *trace,
                                const struct zipccl_cluster_file *cluster,
                                const struct zipccl_replay_options *options, double ratio,
                                double *out, struct zipccl_error *error)
{
    struct zipccl_replay_options replay = *options;
    struct zipccl_replay_result *result;

    replay.ratio = ratio > 1 ? ratio : 1;
    replay.raw = replay.adaptive = true;
    replay.compressed = replay.sensitivities = replay.timeline = false;
    /* Every message again, twice, for two numbers of a range: the closed form will do. */
    if (replay.fidelity == ZIPCCL_FIDELITY_T2)
        replay.fidelity = ZIPCCL_FIDELITY_T0;
    ZIPCCL_TRY(zipccl_replay(trace, cluster, &replay, &result, error));
    *out = result->end_to_end_speedup;
    zipccl_replay_result_destroy(result);
    return ZIPCCL_OK;
}

zipccl_status zipccl_replay_interval(const struct zipccl_replay_input *input,
                                     const struct zipccl_cluster_file *cluster,
                                     const struct zipccl_replay_options *options,
                                     struct zipccl_replay_result *result,
                                     struct zipccl_error *error)
{
    struct zipccl_result_interval *interval;
    const struct zipccl_safetensors *file;
    struct zipccl_samples *samples;
    struct zipccl_cluster values;
    zipccl_status status;

    if (!input->bundled || options->ratio > 0 || !options->raw || !options->adaptive)
        return ZIPCCL_OK;
    interval = &result->import->interval;
    ZIPCCL_TRY(zipccl_cluster_get(cluster, &values, error));
    ZIPCCL_TRY(zipccl_safetensors_open(input->trace->samples_path, &file, error));
    status = zipccl_samples_open(input->trace->samples_path, 0, &samples, error);
    if (status == ZIPCCL_OK) {
        status = find_ratios(input->trace, values.gpus_per_node, file, samples, interval, error);
        zipccl_samples_close(samples);
    }
    zipccl_safetensors_close(file);
    if (status != ZIPCCL_OK || !(interval->low_ratio > 0))
        return status;
    ZIPCCL_TRY(speedup_at(input->trace, cluster, options, interval->low_ratio,
                          &interval->low_speedup, error));
    return speedup_at(input->trace, cluster, options, interval->high_ratio, &interval->high_speedup,
                      error);
}
