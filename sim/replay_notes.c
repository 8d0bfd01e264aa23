/*
 * replay_notes.c - what a result rests on: settings, assumptions, warnings, lines for people
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/replay_parts.h"

#include "core/codec.h"
#include "sim/platform.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NOTES    48
#define MAX_WARNINGS 16

/* A recorded step further from the simulated one than this earns a warning. */
#define RECORDED_TOLERANCE 0.10

static void set_note(struct zipccl_result_note *note, const char *name, const char *value,
                     const char *unit, const char *source)
{
    snprintf(note->name, sizeof(note->name), "%.63s", name);
    snprintf(note->value, sizeof(note->value), "%.127s", value);
    snprintf(note->unit, sizeof(note->unit), "%.31s", unit);
    snprintf(note->source, sizeof(note->source), "%.255s", source);
}

static void assume(struct zipccl_replay_result *r, const char *name, const char *value,
                   const char *unit, const char *source)
{
    if (r->nassumptions < MAX_NOTES)
        set_note(&r->assumptions[r->nassumptions++], name, value, unit, source);
}

static void warn(struct zipccl_replay_result *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void warn(struct zipccl_replay_result *r, const char *format, ...)
{
    va_list args;

    if (r->nwarnings == MAX_WARNINGS)
        return;
    va_start(args, format);
    vsnprintf(r->warnings[r->nwarnings++], sizeof(r->warnings[0]), format, args);
    va_end(args);
}

static void add_settings(const struct zipccl_replay_state *state, struct zipccl_replay_result *r)
{
    static const char *const what[] = {
        "port loads: groups of a set share NICs, no other contention",
        "flows: parallel tasks that share links and GPUs max-min",
        "messages: every rank runs its plans; payload by pointer, sizes from the samples"};
    const struct zipccl_cluster_setting *s;
    const struct zipccl_result_note *platform;
    size_t n, keys;
    char text[128];

    set_note(&r->settings[r->nsettings++], "fidelity", r->fidelity, "",
             what[state->options.fidelity]);
    platform = zipccl_platform_settings(state->options.fidelity == ZIPCCL_FIDELITY_T2
                                            ? ZIPCCL_PLATFORM_MESSAGES
                                            : ZIPCCL_PLATFORM_FLOWS,
                                        &n);
    for (size_t i = 0; i < n && state->options.fidelity != ZIPCCL_FIDELITY_T0; i++)
        r->settings[r->nsettings++] = platform[i];
    set_note(&r->settings[r->nsettings++], "codec row", zipccl_isa_name(zipccl_isa_best()), "",
             "instruction set that measured the sizes; all write the same bytes");
    if (state->options.ratio > 0) {
        snprintf(text, sizeof(text), "%.6g", state->options.ratio);
        set_note(&r->settings[r->nsettings++], "ratio", text, "", "--ratio");
    }
    if (state->program->fold != NULL && state->program->nranks < r->nranks) {
        snprintf(text, sizeof(text), "%u of %u", state->program->nranks, r->nranks);
        set_note(&r->settings[r->nsettings++], "ranks computed", text, "",
                 "ranks that do the same in groups that lie alike have equal times at T0");
    }
    set_note(&r->settings[r->nsettings++], "max-ratio mode",
             state->cluster.ratio_encode_Bps > 0 ? "where it is cheaper" : "not offered", "",
             state->cluster.ratio_encode_Bps > 0
                 ? "plans that have it end in max-ratio"
                 : "the cluster has no codec.ratio_encode_rate and codec.ratio_decode_rate");
    s = zipccl_cluster_settings(state->file, &keys);
    for (size_t i = 0; i < keys && r->nsettings < MAX_NOTES; i++)
        if (s[i].overridden)
            set_note(&r->settings[r->nsettings++], s[i].key, s[i].text, "", s[i].source);
}

static void add_cluster(const struct zipccl_replay_state *state, struct zipccl_replay_result *r)
{
    const struct zipccl_cluster_setting *s;
    char value[128];
    size_t n;

    s = zipccl_cluster_settings(state->file, &n);
    for (size_t i = 0; i < n; i++) {
        /* Text keys have no number. */
        if (isnan(s[i].value))
            snprintf(value, sizeof(value), "%.127s", s[i].text);
        else
            snprintf(value, sizeof(value), "%.10g", s[i].value);
        assume(r, s[i].key, value, s[i].unit, s[i].source);
    }
}

static void add_model(const struct zipccl_replay_state *state, struct zipccl_replay_result *r)
{
    char text[128] = "";

    for (int k = 0; k < ZIPCCL_NUM_RATIO_SOURCES; k++) {
        size_t n = strlen(text);

        if (r->source_share[k] > 0)
            snprintf(text + n, sizeof(text) - n, "%s%s %.1f %%", n ? ", " : "",
                     zipccl_ratio_source_name((enum zipccl_ratio_source)k),
                     100 * r->source_share[k]);
    }
    assume(r, "ratio source", text, "of bytes",
           "the real codec on the trace's tensors, every message decoded and compared; longer "
           "messages than a sample repeat it; none: the adaptive step sends them raw");
    assume(r, "compute time",
           !state->program->scaled     ? "as in the trace"
           : !state->program->recorded ? "flops / gpu.flops, or bytes / gpu.hbm_rate"
                                       : "flops where given, else as in the trace",
           "", state->trace->header.provenance);
    assume(r, "codec beside compute", "SMs and HBM shared max-min", "",
           "compute wants all SMs; the codec takes codec.sms of them while it runs");
    assume(r, "NCCL's own SMs and HBM traffic", "not modelled", "",
           "the same for raw and compressed plans");
    assume(r, "raw", r->native ? "NCCL's own algorithm" : "fastest uncompressed plan", "",
           "rings over nccl.channels channels or direct; no trees, NVLS or SHARP");
    assume(r, "ranks", "placed in order, node after node", "", "the trace's rank order");
}

static void add_warnings(const struct zipccl_replay_state *state, struct zipccl_replay_result *r)
{
    double raw = r->steps[ZIPCCL_STEP_RAW].step_s, recorded = r->step_time_recorded_s;
    uint32_t per_node = state->trace->header.ranks_per_node;
    double all = 0;

    for (size_t i = 0; i < r->nrows; i++)
        all += r->rows[i].raw_bytes;
    if (recorded > 0 && r->steps[ZIPCCL_STEP_RAW].present &&
        fabs(raw / recorded - 1) > RECORDED_TOLERANCE)
        warn(r,
             "the simulated raw step is %.1f ms, the recorded one %.1f ms (%+.0f %%): the speedup "
             "rests on a baseline that is off",
             1e3 * raw, 1e3 * recorded, 100 * (raw / recorded - 1));
    /* Counters and norms are always there; they matter once they are a share of the bytes. */
    if (r->raw_dtype_bytes > 0.01 * all)
        warn(r, "%.0f %% of the bytes went raw because the codec does not cover %s yet",
             100 * r->raw_dtype_bytes / all, r->raw_dtypes);
    if (per_node > 0 && per_node != state->cluster.gpus_per_node)
        warn(r, "the trace comes from nodes of %u ranks, the cluster has %u GPUs a node", per_node,
             state->cluster.gpus_per_node);
    if (r->source_share[ZIPCCL_RATIO_MODEL] > 0.01)
        warn(r,
             "%.1f %% of bytes have no sample: generated Gaussian data stood in for them; "
             "docs/capture.md tells how to record some",
             100 * r->source_share[ZIPCCL_RATIO_MODEL]);
}

static const char *source_of(const struct zipccl_replay_state *state, const char *key)
{
    const struct zipccl_cluster_setting *s;
    size_t n;

    s = zipccl_cluster_settings(state->file, &n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(s[i].key, key) == 0)
            return s[i].source;
    return "";
}

/* The codec's rates and what they rest on. */
static void add_codec_line(const struct zipccl_replay_state *state, struct zipccl_replay_result *r)
{
    const struct zipccl_cluster *c = &state->cluster;
    const char *encode = source_of(state, "codec.encode_rate");
    const char *decode = source_of(state, "codec.decode_rate");
    char source[192];

    if (strcmp(encode, decode) == 0)
        snprintf(source, sizeof(source), "%.180s", encode);
    else
        snprintf(source, sizeof(source), "encode: %.80s; decode: %.80s", encode, decode);
    snprintf(r->codec_line, sizeof(r->codec_line),
             "encode %.4g, decode %.4g GB/s/GPU on %u of %u SMs [%s]", c->encode_Bps / 1e9,
             c->decode_Bps / 1e9, c->codec_sms, c->gpu_sms, source);
}

static void add_lines(const struct zipccl_replay_state *state, struct zipccl_replay_result *r)
{
    const struct zipccl_cluster *c = &state->cluster;
    const struct zipccl_trace_header *h = &state->trace->header;
    char nics[32] = "";

    snprintf(r->trace_name, sizeof(r->trace_name), "%.127s", h->name);
    snprintf(r->trace_model, sizeof(r->trace_model), "%.255s", h->model ? h->model : h->name);
    snprintf(r->trace_provenance, sizeof(r->trace_provenance), "%.255s", h->provenance);
    snprintf(r->cluster_name, sizeof(r->cluster_name), "%s", c->name);
    if (c->nics_per_node == 1)
        snprintf(nics, sizeof(nics), "/node");
    else if (c->nics_per_node == c->gpus_per_node)
        snprintf(nics, sizeof(nics), "/GPU");
    else
        snprintf(nics, sizeof(nics), " x %u/node", c->nics_per_node);
    snprintf(r->cluster_line, sizeof(r->cluster_line),
             "%u x %u %s; NVLink %.4g GB/s/GPU, NIC %.4g GB/s%s, alpha %.3g us", c->nodes,
             c->gpus_per_node, c->gpu_name, c->nvlink_Bps / 1e9, c->nic_Bps / 1e9, nics,
             1e6 * c->nic_alpha_s);
    add_codec_line(state, r);
}

zipccl_status zipccl_replay_notes(const struct zipccl_replay_state *state,
                                  struct zipccl_replay_result *result)
{
    result->settings = calloc(MAX_NOTES, sizeof(*result->settings));
    result->assumptions = calloc(MAX_NOTES, sizeof(*result->assumptions));
    result->warnings = calloc(MAX_WARNINGS, sizeof(*result->warnings));
    if (result->settings == NULL || result->assumptions == NULL || result->warnings == NULL)
        return ZIPCCL_ERR_NOMEM;
    add_lines(state, result);
    add_settings(state, result);
    add_cluster(state, result);
    add_model(state, result);
    add_warnings(state, result);
    return ZIPCCL_OK;
}
