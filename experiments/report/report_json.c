/*
 * report_json.c - a replay as JSON, schema "zipccl.replay"
 *
 * docs/replay.md describes the keys.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/report/report.h"

#include "experiments/program/json_notes.h"
#include "experiments/program/json_put.h"

#include <yajl/yajl_gen.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const zipccl_step_names[ZIPCCL_NUM_STEPS] = {
    [ZIPCCL_STEP_RAW] = "raw",
    [ZIPCCL_STEP_COMPRESSED] = "compressed",
    [ZIPCCL_STEP_ADAPTIVE] = "adaptive",
};

static void put_row(yajl_gen gen, const struct zipccl_replay_result *result,
                    const struct zipccl_result_row *row)
{
    bool raw = result->steps[ZIPCCL_STEP_RAW].present;
    bool compressed = result->steps[ZIPCCL_STEP_COMPRESSED].present;
    bool adaptive = result->steps[ZIPCCL_STEP_ADAPTIVE].present;

    yajl_gen_map_open(gen);
    zipccl_put_string(gen, "op", zipccl_op_name(row->op));
    zipccl_put_string(gen, "group", row->group);
    zipccl_put_string(gen, "dtype", zipccl_dtype_name(row->dtype));
    zipccl_put_integer(gen, "count", row->count);
    zipccl_put_integer(gen, "nranks", row->nranks);
    zipccl_put_string(gen, "stream", row->stream);
    zipccl_put_integer(gen, "calls", row->calls);
    zipccl_put_number(gen, "raw_bytes", row->raw_bytes, true);
    zipccl_put_number(gen, "wire_bytes", row->wire_bytes, true);
    zipccl_put_number(gen, "sent_bytes", row->sent_bytes, true);
    zipccl_put_number(gen, "ratio", row->ratio, row->ratio > 0);
    zipccl_put_string(gen, "ratio_source", row->ratio_source != NULL ? row->ratio_source : "none");
    zipccl_put_string(gen, "strategy_raw", row->strategy_raw);
    zipccl_put_string(gen, "strategy_compressed", row->strategy_compressed);
    zipccl_put_string(gen, "strategy", row->strategy);
    zipccl_put_string(gen, "capacity_class",
                      row->capacity_class != NULL ? row->capacity_class : "none");
    zipccl_put_number(gen, "capacity_ratio", row->capacity_ratio, row->capacity_ratio > 0);
    zipccl_put_key(gen, "overflows_settled");
    yajl_gen_bool(gen, row->overflows_settled);
    zipccl_put_number(gen, "time_recorded_s", row->time_recorded_s, row->time_recorded_s >= 0);
    zipccl_put_number(gen, "time_raw_s", row->time_raw_s, raw);
    zipccl_put_number(gen, "time_compressed_s", row->time_compressed_s, compressed);
    zipccl_put_number(gen, "time_adaptive_s", row->time_adaptive_s, adaptive);
    zipccl_put_number(gen, "exposed_raw_s", row->exposed_raw_s, raw);
    zipccl_put_number(gen, "exposed_compressed_s", row->exposed_compressed_s, compressed);
    zipccl_put_number(gen, "exposed_adaptive_s", row->exposed_adaptive_s, adaptive);
    yajl_gen_map_close(gen);
}

static void put_rows(yajl_gen gen, const struct zipccl_replay_result *result)
{
    zipccl_put_key(gen, "rows");
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < result->nrows; i++)
        put_row(gen, result, &result->rows[i]);
    yajl_gen_array_close(gen);
}

/* Bytes and collective times summed over the rows. */
static void put_sums(yajl_gen gen, const struct zipccl_replay_result *result)
{
    double raw = 0, wire = 0;
    unsigned long long calls = 0;

    for (size_t i = 0; i < result->nrows; i++) {
        raw += result->rows[i].raw_bytes;
        wire += result->rows[i].wire_bytes;
        calls += result->rows[i].calls;
    }
    zipccl_put_integer(gen, "calls", calls);
    zipccl_put_number(gen, "raw_bytes", raw, true);
    zipccl_put_number(gen, "wire_bytes", wire, true);
    zipccl_put_number(gen, "raw_dtype_bytes", result->raw_dtype_bytes, true);
}

static void put_totals(yajl_gen gen, const struct zipccl_replay_result *result)
{
    const struct zipccl_result_step *raw = &result->steps[ZIPCCL_STEP_RAW];
    const struct zipccl_result_step *compressed = &result->steps[ZIPCCL_STEP_COMPRESSED];
    const struct zipccl_result_step *adaptive = &result->steps[ZIPCCL_STEP_ADAPTIVE];
    const struct zipccl_result_step *codec = adaptive->present ? adaptive : compressed;
    const struct zipccl_result_step *any = codec->present ? codec : raw;

    zipccl_put_key(gen, "totals");
    yajl_gen_map_open(gen);
    zipccl_put_number(gen, "step_time_recorded_s", result->step_time_recorded_s,
                      result->step_time_recorded_s >= 0);
    zipccl_put_number(gen, "step_time_raw_s", raw->step_s, raw->present);
    zipccl_put_number(gen, "step_time_compressed_s", compressed->step_s, compressed->present);
    zipccl_put_number(gen, "step_time_adaptive_s", adaptive->step_s, adaptive->present);
    zipccl_put_number(gen, "compute_s", any->compute_s, any->present);
    zipccl_put_number(gen, "codec_s", codec->codec_s, codec->present);
    zipccl_put_integer(gen, "codec_sms", result->codec_sms);
    zipccl_put_number(gen, "wait_s", any->wait_s, any->present);
    zipccl_put_number(gen, "comm_speedup", result->comm_speedup, result->comm_speedup > 0);
    zipccl_put_number(gen, "end_to_end_speedup", result->end_to_end_speedup,
                      result->end_to_end_speedup > 0);
    zipccl_put_number(gen, "exposed_comm_share", result->exposed_comm_share, raw->present);
    put_sums(gen, result);
    yajl_gen_map_close(gen);
}

/* How far measured steps lie apart, of which step_s is the median. */
static void put_spread(yajl_gen gen, const struct zipccl_result_step *step)
{
    zipccl_put_integer(gen, "measured_steps", step->nmeasured);
    zipccl_put_number(gen, "step_min_s", step->least_s, true);
    zipccl_put_number(gen, "step_q1_s", step->low_s, true);
    zipccl_put_number(gen, "step_q3_s", step->high_s, true);
    zipccl_put_number(gen, "step_max_s", step->most_s, true);
}

/* The parts of each mode's step; they add up to step_s, comm_s and codec_s overlap them. */
static void put_steps(yajl_gen gen, const struct zipccl_replay_result *result)
{
    zipccl_put_key(gen, "steps");
    yajl_gen_map_open(gen);
    for (int m = 0; m < ZIPCCL_NUM_STEPS; m++) {
        const struct zipccl_result_step *step = &result->steps[m];

        zipccl_put_key(gen, zipccl_step_names[m]);
        if (!step->present) {
            yajl_gen_null(gen);
            continue;
        }
        yajl_gen_map_open(gen);
        zipccl_put_number(gen, "step_s", step->step_s, true);
        zipccl_put_number(gen, "compute_s", step->compute_s, true);
        zipccl_put_number(gen, "codec_slow_s", step->codec_slow_s, true);
        zipccl_put_number(gen, "exposed_s", step->exposed_s, true);
        zipccl_put_number(gen, "wait_s", step->wait_s, true);
        zipccl_put_number(gen, "comm_s", step->comm_s, true);
        zipccl_put_number(gen, "codec_s", step->codec_s, true);
        if (step->nmeasured > 0)
            put_spread(gen, step);
        yajl_gen_map_close(gen);
    }
    yajl_gen_map_close(gen);
}

static void put_sensitivities(yajl_gen gen, const struct zipccl_replay_result *result)
{
    zipccl_put_key(gen, "sensitivities");
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < result->nsensitivities; i++) {
        const struct zipccl_result_sensitivity *s = &result->sensitivities[i];

        yajl_gen_map_open(gen);
        zipccl_put_string(gen, "name", s->name);
        zipccl_put_number(gen, "step_time_raw_s", s->step_raw_s, s->step_raw_s > 0);
        zipccl_put_number(gen, "step_time_adaptive_s", s->step_adaptive_s, s->step_adaptive_s > 0);
        zipccl_put_number(gen, "comm_speedup", s->comm_speedup, s->comm_speedup > 0);
        zipccl_put_number(gen, "end_to_end_speedup", s->end_to_end_speedup,
                          s->end_to_end_speedup > 0);
        yajl_gen_map_close(gen);
    }
    yajl_gen_array_close(gen);
    zipccl_put_key(gen, "break_even");
    yajl_gen_map_open(gen);
    zipccl_put_number(gen, "gain_under_2_percent_nic_Bps", result->break_even_nic_Bps,
                      result->break_even_nic_Bps > 0);
    zipccl_put_string(gen, "gain_under_2_percent_note", result->break_even_note);
    zipccl_put_number(gen, "raw_match_nic_Bps", result->raw_match_nic_Bps,
                      result->raw_match_nic_Bps > 0);
    zipccl_put_string(gen, "raw_match_note", result->raw_match_note);
    yajl_gen_map_close(gen);
}

static void put_trace(yajl_gen gen, const struct zipccl_replay_result *result)
{
    static const char *const sources[5] = {"captured", "class", "model", "given", "none"};

    zipccl_put_key(gen, "trace");
    yajl_gen_map_open(gen);
    zipccl_put_string(gen, "name", result->trace_name);
    zipccl_put_string(gen, "model", result->trace_model);
    zipccl_put_string(gen, "provenance", result->trace_provenance);
    zipccl_put_integer(gen, "nranks", result->nranks);
    zipccl_put_key(gen, "ratio_source_share");
    yajl_gen_map_open(gen);
    for (int i = 0; i < 5; i++)
        zipccl_put_number(gen, sources[i], result->source_share[i], true);
    yajl_gen_map_close(gen);
    zipccl_put_string(gen, "raw_dtypes", result->raw_dtypes);
    yajl_gen_map_close(gen);
}

static void put_interval(yajl_gen gen, const struct zipccl_result_interval *interval)
{
    zipccl_put_key(gen, "ratio_interval");
    if (!(interval->low_ratio > 0)) {
        yajl_gen_null(gen);
        return;
    }
    yajl_gen_map_open(gen);
    zipccl_put_string(gen, "low_class", interval->low_class);
    zipccl_put_number(gen, "low_ratio", interval->low_ratio, true);
    zipccl_put_number(gen, "low_end_to_end_speedup", interval->low_speedup, true);
    zipccl_put_string(gen, "high_class", interval->high_class);
    zipccl_put_number(gen, "high_ratio", interval->high_ratio, true);
    zipccl_put_number(gen, "high_end_to_end_speedup", interval->high_speedup, true);
    yajl_gen_map_close(gen);
}

static void put_import(yajl_gen gen, const struct zipccl_result_import *import)
{
    zipccl_put_key(gen, "import");
    if (import == NULL) {
        yajl_gen_null(gen);
        return;
    }
    yajl_gen_map_open(gen);
    zipccl_put_string(gen, "format", import->format);
    zipccl_put_integer(gen, "layers", import->nlayers);
    zipccl_put_integer(gen, "collectives", import->ncollectives);
    zipccl_put_integer(gen, "guesses", import->nguesses);
    zipccl_put_key(gen, "items");
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < import->nitems; i++) {
        const struct zipccl_result_import_item *item = &import->items[i];

        yajl_gen_map_open(gen);
        zipccl_put_string(gen, "what", item->what);
        zipccl_put_key(gen, "guess");
        yajl_gen_bool(gen, item->guess);
        zipccl_put_integer(gen, "count", item->count);
        zipccl_put_integer(gen, "line", item->line);
        zipccl_put_string(gen, "text", item->text);
        yajl_gen_map_close(gen);
    }
    yajl_gen_array_close(gen);
    put_interval(gen, &import->interval);
    yajl_gen_map_close(gen);
}

static void put_cluster(yajl_gen gen, const struct zipccl_replay_result *result)
{
    zipccl_put_key(gen, "cluster");
    yajl_gen_map_open(gen);
    zipccl_put_string(gen, "name", result->cluster_name);
    zipccl_put_string(gen, "summary", result->cluster_line);
    zipccl_put_string(gen, "codec", result->codec_line);
    zipccl_put_integer(gen, "nodes", result->nodes);
    zipccl_put_integer(gen, "gpus_per_node", result->gpus_per_node);
    yajl_gen_map_close(gen);
}

static void put_warnings(yajl_gen gen, const struct zipccl_replay_result *result)
{
    zipccl_put_key(gen, "warnings");
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < result->nwarnings; i++)
        zipccl_put_text(gen, result->warnings[i]);
    yajl_gen_array_close(gen);
}

/* The sentence of the terminal, so that a page says the same. */
static void put_why(yajl_gen gen, const struct zipccl_replay_result *result)
{
    char *text = NULL;
    size_t n = 0;
    FILE *memory = open_memstream(&text, &n);

    if (memory != NULL) {
        zipccl_report_why(result, memory);
        fclose(memory);
    }
    zipccl_put_string(gen, "why", text != NULL ? text : "");
    free(text);
}

static void put_result(yajl_gen gen, const struct zipccl_replay_result *result)
{
    yajl_gen_map_open(gen);
    zipccl_put_schema(gen, ZIPCCL_REPLAY_SCHEMA_NAME, ZIPCCL_REPLAY_SCHEMA_VERSION);
    zipccl_put_string(gen, "kind", result->measured ? "measured" : "simulated");
    zipccl_put_string(gen, "fidelity", result->fidelity);
    zipccl_put_string(gen, "baseline", result->native ? "native" : "best");
    put_trace(gen, result);
    put_import(gen, result->import);
    put_cluster(gen, result);
    zipccl_put_notes(gen, "settings", result->settings, result->nsettings);
    zipccl_put_notes(gen, "assumptions", result->assumptions, result->nassumptions);
    put_rows(gen, result);
    put_totals(gen, result);
    put_steps(gen, result);
    put_why(gen, result);
    zipccl_put_string(gen, "adaptive_note", result->adaptive_note);
    put_sensitivities(gen, result);
    put_warnings(gen, result);
    yajl_gen_map_close(gen);
}

static void print(void *file, const char *text, size_t n)
{
    fwrite(text, 1, n, file);
}

zipccl_status zipccl_report_json(const struct zipccl_replay_result *result, FILE *out,
                                 struct zipccl_error *error)
{
    yajl_gen gen = yajl_gen_alloc(NULL);

    if (gen == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "JSON: out of memory");
    yajl_gen_config(gen, yajl_gen_beautify, 1);
    yajl_gen_config(gen, yajl_gen_indent_string, "  ");
    yajl_gen_config(gen, yajl_gen_print_callback, print, (void *)out);
    put_result(gen, result);
    yajl_gen_free(gen);
    if (ferror(out))
        return zipccl_fail(error, ZIPCCL_ERR_IO, "JSON: %s", strerror(errno));
    return ZIPCCL_OK;
}
