/*
 * replay_interval.c - what the speedup would be if all payload were like one class of samples
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/replay/replay_interval.h"

#include "sim/samples.h"
#include "traces/info.h"
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

/* Bytes of the trace's calls in 'dtype'. */
static double moved(const struct zipccl_trace *trace, enum zipccl_dtype dtype)
{
    double nbytes = 0;

    for (size_t i = 0; i < trace->nevents; i++) {
        const struct zipccl_event *e = &trace->events[i];

        if (e->kind == ZIPCCL_EVENT_COLLECTIVE && e->dtype == dtype)
            nbytes += (double)zipccl_trace_event_nbytes(&trace->header, e);
    }
    return nbytes;
}

/* The least and the most compressible class of one type. */
struct classes {
    char low[64], high[64]; /* "class:PREFIX", empty: none */
    double low_ratio, high_ratio;
};

static zipccl_status find_classes(const struct zipccl_safetensors *file, enum zipccl_dtype dtype,
                                  struct zipccl_samples *samples, struct classes *out,
                                  struct zipccl_error *error)
{
    for (size_t i = 0; i < file->ntensors; i++) {
        const struct zipccl_tensor *t = &file->tensors[i];
        char class[64], *names[] = {class};
        size_t mean, longest;
        uint32_t set;
        double ratio;

        if (!t->known || t->dtype != dtype || !class_of(t->name, class, sizeof class) ||
            !zipccl_import_class_fits(file, class, dtype))
            continue;
        ZIPCCL_TRY(zipccl_samples_bind(samples, dtype, names, 1, &set, error));
        zipccl_samples_bytes(samples, set, ZIPCCL_EFFORT_FAST, MEASURED_N, 1, &mean, &longest);
        ratio = (double)(MEASURED_N * zipccl_dtype_size(dtype)) / (double)mean;
        if (out->low[0] == '\0' || ratio < out->low_ratio) {
            out->low_ratio = ratio;
            snprintf(out->low, sizeof out->low, "%s", class);
        }
        if (out->high[0] == '\0' || ratio > out->high_ratio) {
            out->high_ratio = ratio;
            snprintf(out->high, sizeof out->high, "%s", class);
        }
    }
    return zipccl_samples_check(samples, error);
}

/* Classes of each type that is moved; those of the type with most bytes are told. */
static zipccl_status find_all(const struct zipccl_trace *trace,
                              const struct zipccl_safetensors *file, struct zipccl_samples *samples,
                              struct classes all[ZIPCCL_NUM_DTYPES],
                              struct zipccl_result_interval *out, struct zipccl_error *error)
{
    double most = 0;

    for (int d = 0; d < ZIPCCL_NUM_DTYPES; d++) {
        double nbytes = moved(trace, (enum zipccl_dtype)d);

        if (!(nbytes > 0) || !zipccl_dtype_compressible((enum zipccl_dtype)d))
            continue;
        ZIPCCL_TRY(find_classes(file, (enum zipccl_dtype)d, samples, &all[d], error));
        if (all[d].low[0] == '\0' || nbytes <= most)
            continue;
        most = nbytes;
        out->low_ratio = all[d].low_ratio;
        out->high_ratio = all[d].high_ratio;
        strcpy(out->low_class, all[d].low + strlen("class:"));
        strcpy(out->high_class, all[d].high + strlen("class:"));
    }
    return ZIPCCL_OK;
}

/* The speedup where every call is bound to 'names', by its type; bound as before when it returns. */
static zipccl_status speedup_with(const struct zipccl_replay_input *input,
                                  const struct zipccl_cluster_file *cluster,
                                  const struct zipccl_replay_options *options,
                                  char *names[ZIPCCL_NUM_DTYPES], double *out,
                                  struct zipccl_error *error)
{
    struct zipccl_replay_options replay = *options;
    struct zipccl_trace *trace = input->trace;
    struct zipccl_replay_result *result;
    zipccl_status status;

    for (size_t i = 0; i < trace->nevents; i++)
        if (trace->events[i].nsamples > 0)
            trace->events[i].samples = &names[trace->events[i].dtype];
    replay.raw = replay.adaptive = true;
    replay.compressed = replay.sensitivities = replay.timeline = false;
    /* Every message again, twice, for two numbers of a range: the closed form will do. */
    if (replay.fidelity == ZIPCCL_FIDELITY_T2)
        replay.fidelity = ZIPCCL_FIDELITY_T0;
    status = zipccl_replay(trace, cluster, &replay, &result, error);
    for (size_t i = 0; i < trace->nevents; i++)
        if (trace->events[i].nsamples > 0)
            trace->events[i].samples =
                (char **)&input->classes[trace->events[i].op][trace->events[i].dtype];
    if (status != ZIPCCL_OK)
        return status;
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
    struct classes all[ZIPCCL_NUM_DTYPES] = {{"", "", 0, 0}};
    char *low[ZIPCCL_NUM_DTYPES], *high[ZIPCCL_NUM_DTYPES];
    struct zipccl_result_interval *interval;
    const struct zipccl_safetensors *file;
    struct zipccl_samples *samples;
    zipccl_status status;

    if (!input->bundled || options->ratio > 0 || !options->raw || !options->adaptive)
        return ZIPCCL_OK;
    interval = &result->import->interval;
    ZIPCCL_TRY(zipccl_safetensors_open(input->trace->samples_path, &file, error));
    status = zipccl_samples_open(input->trace->samples_path, 0, &samples, error);
    if (status == ZIPCCL_OK) {
        status = find_all(input->trace, file, samples, all, interval, error);
        zipccl_samples_close(samples);
    }
    zipccl_safetensors_close(file);
    if (status != ZIPCCL_OK || !(interval->low_ratio > 0))
        return status;
    for (int d = 0; d < ZIPCCL_NUM_DTYPES; d++) {
        low[d] = all[d].low;
        high[d] = all[d].high;
    }
    ZIPCCL_TRY(speedup_with(input, cluster, options, low, &interval->low_speedup, error));
    return speedup_with(input, cluster, options, high, &interval->high_speedup, error);
}
