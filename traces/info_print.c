/*
 * info_print.c - the summary of a trace as text and as JSON
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/info.h"

#include "traces/safetensors.h"
#include "traces/trace_gen.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define MISSING_SHOWN 10

static void print_header(const struct zipccl_trace_header *h, FILE *out)
{
    fprintf(out, "trace     %s: %s\n", h->name, h->model);
    fprintf(out, "          %s (%s)\n", h->provenance, h->generator);
    fprintf(out, "ranks     %" PRIu32, h->nranks);
    if (h->ranks_per_node > 0)
        fprintf(out, ", %" PRIu32 " a node", h->ranks_per_node);
    if (h->tokens_per_step > 0)
        fprintf(out, "; %" PRIu64 " tokens a rank and step", h->tokens_per_step);
    fprintf(out, "\nstreams   ");
    for (uint32_t i = 0; i < h->nstreams; i++)
        fprintf(out, "%s%s", i > 0 ? ", " : "", h->streams[i]);
    fprintf(out, "\ngroups    ");
    for (uint32_t i = 0; i < h->ngroups; i++)
        fprintf(out, "%s%s %" PRIu32 " x %" PRIu32, i > 0 ? ", " : "", h->groups[i].name,
                h->groups[i].nparts, h->groups[i].size);
    fprintf(out, "%s\n", h->ngroups == 0 ? "none" : "");
}

static void print_samples(const struct zipccl_trace_info *info, const char *path, FILE *out)
{
    size_t shown = 0;

    if (path == NULL) {
        fprintf(out, "samples   none (docs/capture.md tells how to record some)\n");
        return;
    }
    fprintf(out, "samples   %s: %zu tensors, %.1f MB\n", path, info->ntensors,
            (double)info->tensor_nbytes / 1e6);
    fprintf(out, "          %zu names bound, %zu found, %zu missing\n", info->nsamples,
            info->nsamples - info->nmissing, info->nmissing);
    for (size_t i = 0; i < info->nsamples && shown < MISSING_SHOWN; i++)
        if (info->samples[i].ntensors == 0 && ++shown > 0)
            fprintf(out, "          missing: %s\n", info->samples[i].name);
    if (info->nmissing > shown)
        fprintf(out, "          and %zu more\n", info->nmissing - shown);
}

static void print_rows(const struct zipccl_trace_info *info, const struct zipccl_trace_header *h,
                       FILE *out)
{
    fprintf(out, "\n%-15s %-8s %-9s %12s %8s %12s %12s %9s\n", "op", "group", "dtype", "count",
            "calls", "MB/call", "MB", "sampled");
    for (size_t i = 0; i < info->nrows; i++) {
        const struct zipccl_trace_info_row *r = &info->rows[i];

        fprintf(out, "%-15s %-8s %-9s %12" PRIu64 " %8" PRIu64 " %12.6g %12.6g %9" PRIu64 "\n",
                zipccl_op_name(r->op), h->groups[r->group].name, zipccl_dtype_name(r->dtype),
                r->count, r->calls, (double)r->nbytes / 1e6 / (double)r->calls,
                (double)r->nbytes / 1e6, r->ncalls_with_samples);
    }
    fprintf(out, "%-15s %-8s %-9s %12s %8" PRIu64 " %12s %12.6g\n", "total", "", "", "",
            info->ncollective, "", (double)info->nbytes / 1e6);
    fprintf(out,
            "\ncount: NCCL's argument, elements.  MB: 1e6 bytes of a rank's buffer, as nccl-tests "
            "counts size.\n");
}

static void print_compute(const struct zipccl_trace_info *info, FILE *out)
{
    fprintf(out, "compute   ");
    if (info->nwith_flops > 0)
        fprintf(out,
                "%" PRIu64 " events with flops: %.6g TFLOP and %.6g GB of memory traffic a rank%s",
                info->nwith_flops, info->flops / 1e12, info->hbm_bytes / 1e9,
                info->nwith_duration > 0 ? "; " : "");
    if (info->nwith_duration > 0)
        fprintf(out, "%" PRIu64 " events with durations: %.6g s", info->nwith_duration,
                info->duration_s);
    if (info->nwith_flops == 0 && info->nwith_duration == 0)
        fprintf(out, "none: communication alone");
    fputc('\n', out);
}

static void print_info(const struct zipccl_trace_info *info,
                       const struct zipccl_trace_reader *reader, FILE *out)
{
    const struct zipccl_trace_header *h = zipccl_trace_header(reader);

    print_header(h, out);
    fprintf(out,
            "events    %" PRIu64 " lines: %" PRIu64 " compute and %" PRIu64
            " collective after loops and repeats\n",
            info->nevents, info->ncompute, info->ncollective);
    print_compute(info, out);
    if (info->ncommunication > 0)
        fprintf(out,
                "other     %" PRIu64 " communication events of which only the time is known "
                "(%.6g s)\n",
                info->ncommunication, info->communication_s);
    if (h->recorded_step_s >= 0)
        fprintf(out, "recorded  step %.6g s, collectives %.6g s\n", h->recorded_step_s,
                info->recorded_s);
    else if (info->recorded_s > 0)
        fprintf(out, "recorded  no step time, collectives %.6g s\n", info->recorded_s);
    else
        fprintf(out, "recorded  no times to compare a replay with\n");
    print_samples(info, zipccl_trace_samples_path(reader), out);
    print_rows(info, h, out);
}

static zipccl_status finish_output(FILE *out, struct zipccl_error *error)
{
    if (ferror(out) || fflush(out) != 0)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "writing the summary: %s", strerror(errno));
    return ZIPCCL_OK;
}

static void gen_rows(yajl_gen gen, const struct zipccl_trace_info *info,
                     const struct zipccl_trace_header *h)
{
    zipccl_gen_key(gen, "collectives");
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < info->nrows; i++) {
        const struct zipccl_trace_info_row *r = &info->rows[i];

        yajl_gen_map_open(gen);
        zipccl_gen_string(gen, "op", zipccl_op_name(r->op));
        zipccl_gen_string(gen, "group", h->groups[r->group].name);
        zipccl_gen_uint(gen, "group_size", h->groups[r->group].size);
        zipccl_gen_string(gen, "dtype", zipccl_dtype_name(r->dtype));
        zipccl_gen_uint(gen, "count", r->count);
        zipccl_gen_uint(gen, "calls", r->calls);
        zipccl_gen_uint(gen, "bytes", r->nbytes);
        zipccl_gen_uint(gen, "calls_with_samples", r->ncalls_with_samples);
        if (r->ncalls_recorded > 0) {
            zipccl_gen_uint(gen, "calls_recorded", r->ncalls_recorded);
            zipccl_gen_real(gen, "recorded_s", r->recorded_s);
        }
        yajl_gen_map_close(gen);
    }
    yajl_gen_array_close(gen);
}

static void gen_samples(yajl_gen gen, const struct zipccl_trace_info *info)
{
    zipccl_gen_key(gen, "samples");
    yajl_gen_map_open(gen);
    zipccl_gen_uint(gen, "tensors", info->ntensors);
    zipccl_gen_uint(gen, "bytes", info->tensor_nbytes);
    zipccl_gen_uint(gen, "bound", info->nsamples);
    zipccl_gen_uint(gen, "found", info->nsamples - info->nmissing);
    zipccl_gen_key(gen, "missing");
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < info->nsamples; i++)
        if (info->samples[i].ntensors == 0)
            zipccl_gen_key(gen, info->samples[i].name);
    yajl_gen_array_close(gen);
    yajl_gen_map_close(gen);
}

static void gen_groups(yajl_gen gen, const struct zipccl_trace_header *h)
{
    zipccl_gen_key(gen, "groups");
    yajl_gen_array_open(gen);
    for (uint32_t i = 0; i < h->ngroups; i++) {
        yajl_gen_map_open(gen);
        zipccl_gen_string(gen, "name", h->groups[i].name);
        zipccl_gen_uint(gen, "parts", h->groups[i].nparts);
        zipccl_gen_uint(gen, "size", h->groups[i].size);
        yajl_gen_map_close(gen);
    }
    yajl_gen_array_close(gen);
}

static void gen_info(yajl_gen gen, const struct zipccl_trace_info *info,
                     const struct zipccl_trace_header *h, bool samples)
{
    yajl_gen_map_open(gen);
    zipccl_gen_string(gen, "schema", "zipccl-trace-info");
    zipccl_gen_uint(gen, "schema_version", 1);
    zipccl_gen_string(gen, "name", h->name);
    zipccl_gen_string(gen, "model", h->model);
    zipccl_gen_string(gen, "provenance", h->provenance);
    zipccl_gen_string(gen, "generator", h->generator);
    zipccl_gen_uint(gen, "ranks", h->nranks);
    zipccl_gen_uint(gen, "ranks_per_node", h->ranks_per_node);
    zipccl_gen_uint(gen, "tokens_per_step", h->tokens_per_step);
    if (h->recorded_step_s >= 0)
        zipccl_gen_real(gen, "recorded_step_s", h->recorded_step_s);
    zipccl_gen_uint(gen, "lines", info->nevents);
    zipccl_gen_uint(gen, "compute_events", info->ncompute);
    zipccl_gen_real(gen, "compute_flops", info->flops);
    zipccl_gen_real(gen, "compute_hbm_bytes", info->hbm_bytes);
    zipccl_gen_real(gen, "compute_duration_s", info->duration_s);
    zipccl_gen_uint(gen, "communication_events", info->ncommunication);
    zipccl_gen_real(gen, "communication_duration_s", info->communication_s);
    zipccl_gen_uint(gen, "collective_events", info->ncollective);
    zipccl_gen_uint(gen, "collective_bytes", info->nbytes);
    gen_groups(gen, h);
    gen_rows(gen, info, h);
    if (samples)
        gen_samples(gen, info);
    yajl_gen_map_close(gen);
}

static zipccl_status write_json(const struct zipccl_trace_info *info,
                                const struct zipccl_trace_reader *reader, FILE *out,
                                struct zipccl_error *error)
{
    yajl_gen gen = yajl_gen_alloc(NULL);
    const unsigned char *text;
    size_t nbytes;

    if (gen == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    yajl_gen_config(gen, yajl_gen_beautify, 1);
    yajl_gen_config(gen, yajl_gen_indent_string, "  ");
    gen_info(gen, info, zipccl_trace_header(reader), zipccl_trace_samples_path(reader) != NULL);
    yajl_gen_get_buf(gen, &text, &nbytes);
    fwrite(text, 1, nbytes, out);
    yajl_gen_free(gen);
    return finish_output(out, error);
}

static zipccl_status summarize(const char *path, FILE *out, bool json, struct zipccl_error *error)
{
    struct zipccl_trace_reader *reader;
    struct zipccl_trace_info info;
    zipccl_status status;

    if (path == NULL || out == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "zipccl_trace_info: NULL argument");
    ZIPCCL_TRY(zipccl_trace_open(path, &reader, error));
    status = zipccl_trace_info_read(reader, &info, error);
    if (status == ZIPCCL_OK) {
        if (json) {
            status = write_json(&info, reader, out, error);
        } else {
            print_info(&info, reader, out);
            status = finish_output(out, error);
        }
        zipccl_trace_info_free(&info);
    }
    zipccl_trace_close(reader);
    return status;
}

zipccl_status zipccl_trace_info_print(const char *path, FILE *out, struct zipccl_error *error)
{
    return summarize(path, out, false, error);
}

zipccl_status zipccl_trace_info_json(const char *path, FILE *out, struct zipccl_error *error)
{
    return summarize(path, out, true, error);
}
