/*
 * report_json.c - a replay as JSON, schema "zipccl.replay"
 *
 * docs/replay.md describes the keys.  Names are UTF-8 whatever the inputs held; a number that is
 * missing or not finite is null, so that every JSON reader takes the file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/report.h"

#include <yajl/yajl_gen.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const mode_names[ZIPCCL_NUM_STEPS] = {
    [ZIPCCL_STEP_RAW] = "raw",
    [ZIPCCL_STEP_COMPRESSED] = "compressed",
    [ZIPCCL_STEP_ADAPTIVE] = "adaptive",
};

/* Length of the UTF-8 sequence at 's', 0 if it is none. */
static size_t utf8_length(const unsigned char *s)
{
    static const unsigned least[5] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;
    unsigned code = n < 2 ? s[0] : s[0] & (0x7fu >> n);

    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3f);
    }
    if (n == 0 || code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return 0;
    return n;
}

static void put_text(yajl_gen gen, const char *text)
{
    char clean[512];
    size_t n = 0;

    while (*text != '\0') {
        size_t length = utf8_length((const unsigned char *)text);

        if (n + (length > 0 ? length : 1) > sizeof clean)
            break;
        if (length == 0) {
            clean[n++] = '?';
            text++;
            continue;
        }
        memcpy(clean + n, text, length);
        n += length;
        text += length;
    }
    yajl_gen_string(gen, (const unsigned char *)clean, n);
}

static void put_key(yajl_gen gen, const char *key)
{
    yajl_gen_string(gen, (const unsigned char *)key, strlen(key));
}

static void put_string(yajl_gen gen, const char *key, const char *value)
{
    put_key(gen, key);
    put_text(gen, value);
}

static void put_integer(yajl_gen gen, const char *key, unsigned long long value)
{
    char digits[32];
    int n = snprintf(digits, sizeof digits, "%llu", value);

    put_key(gen, key);
    yajl_gen_number(gen, digits, (size_t)n);
}

/* The shortest digits that read back as 'value'; null if there is no such number. */
static void put_number(yajl_gen gen, const char *key, double value, bool present)
{
    char digits[40];
    int n = 0;

    put_key(gen, key);
    if (!present || !isfinite(value)) {
        yajl_gen_null(gen);
        return;
    }
    for (int precision = 12; precision <= 17; precision++) {
        n = snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    yajl_gen_number(gen, digits, (size_t)n);
}

/* Settings and assumptions hold their values as text; one that is a plain number is written so. */
static void put_value(yajl_gen gen, const char *key, const char *text)
{
    char *end;
    double value = strtod(text, &end);

    if (text[0] != '\0' && *end == '\0' && isfinite(value) &&
        strspn(text, "0123456789.eE+-") == strlen(text))
        put_number(gen, key, value, true);
    else
        put_string(gen, key, text);
}

static void put_notes(yajl_gen gen, const char *key, const struct zipccl_result_note *notes,
                      size_t n)
{
    put_key(gen, key);
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < n; i++) {
        yajl_gen_map_open(gen);
        put_string(gen, "name", notes[i].name);
        put_value(gen, "value", notes[i].value);
        put_string(gen, "unit", notes[i].unit);
        put_string(gen, "source", notes[i].source);
        yajl_gen_map_close(gen);
    }
    yajl_gen_array_close(gen);
}

static void put_row(yajl_gen gen, const struct zipccl_replay_result *result,
                    const struct zipccl_result_row *row)
{
    bool raw = result->steps[ZIPCCL_STEP_RAW].present;
    bool compressed = result->steps[ZIPCCL_STEP_COMPRESSED].present;
    bool adaptive = result->steps[ZIPCCL_STEP_ADAPTIVE].present;

    yajl_gen_map_open(gen);
    put_string(gen, "op", zipccl_op_name(row->op));
    put_string(gen, "group", row->group);
    put_string(gen, "dtype", zipccl_dtype_name(row->dtype));
    put_integer(gen, "count", row->count);
    put_integer(gen, "nranks", row->nranks);
    put_string(gen, "stream", row->stream);
    put_integer(gen, "calls", row->calls);
    put_number(gen, "raw_bytes", row->raw_bytes, true);
    put_number(gen, "wire_bytes", row->wire_bytes, true);
    put_number(gen, "ratio", row->ratio, row->ratio > 0);
    put_string(gen, "ratio_source", row->ratio_source != NULL ? row->ratio_source : "none");
    put_string(gen, "strategy_raw", row->strategy_raw);
    put_string(gen, "strategy_compressed", row->strategy_compressed);
    put_string(gen, "strategy", row->strategy);
    put_number(gen, "time_recorded_s", row->time_recorded_s, row->time_recorded_s >= 0);
    put_number(gen, "time_raw_s", row->time_raw_s, raw);
    put_number(gen, "time_compressed_s", row->time_compressed_s, compressed);
    put_number(gen, "time_adaptive_s", row->time_adaptive_s, adaptive);
    put_number(gen, "exposed_raw_s", row->exposed_raw_s, raw);
    put_number(gen, "exposed_compressed_s", row->exposed_compressed_s, compressed);
    put_number(gen, "exposed_adaptive_s", row->exposed_adaptive_s, adaptive);
    yajl_gen_map_close(gen);
}

static void put_rows(yajl_gen gen, const struct zipccl_replay_result *result)
{
    put_key(gen, "rows");
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
    put_integer(gen, "calls", calls);
    put_number(gen, "raw_bytes", raw, true);
    put_number(gen, "wire_bytes", wire, true);
    put_number(gen, "raw_dtype_bytes", result->raw_dtype_bytes, true);
}

static void put_totals(yajl_gen gen, const struct zipccl_replay_result *result)
{
    const struct zipccl_result_step *raw = &result->steps[ZIPCCL_STEP_RAW];
    const struct zipccl_result_step *compressed = &result->steps[ZIPCCL_STEP_COMPRESSED];
    const struct zipccl_result_step *adaptive = &result->steps[ZIPCCL_STEP_ADAPTIVE];
    const struct zipccl_result_step *codec = adaptive->present ? adaptive : compressed;
    const struct zipccl_result_step *any = codec->present ? codec : raw;

    put_key(gen, "totals");
    yajl_gen_map_open(gen);
    put_number(gen, "step_time_recorded_s", result->step_time_recorded_s,
               result->step_time_recorded_s >= 0);
    put_number(gen, "step_time_raw_s", raw->step_s, raw->present);
    put_number(gen, "step_time_compressed_s", compressed->step_s, compressed->present);
    put_number(gen, "step_time_adaptive_s", adaptive->step_s, adaptive->present);
    put_number(gen, "compute_s", any->compute_s, any->present);
    put_number(gen, "codec_s", codec->codec_s, codec->present);
    put_integer(gen, "codec_sms", result->codec_sms);
    put_number(gen, "wait_s", any->wait_s, any->present);
    put_number(gen, "comm_speedup", result->comm_speedup, result->comm_speedup > 0);
    put_number(gen, "end_to_end_speedup", result->end_to_end_speedup,
               result->end_to_end_speedup > 0);
    put_number(gen, "exposed_comm_share", result->exposed_comm_share, raw->present);
    put_sums(gen, result);
    yajl_gen_map_close(gen);
}

/* The parts of each mode's step; they add up to step_s, comm_s and codec_s overlap them. */
static void put_steps(yajl_gen gen, const struct zipccl_replay_result *result)
{
    put_key(gen, "steps");
    yajl_gen_map_open(gen);
    for (int m = 0; m < ZIPCCL_NUM_STEPS; m++) {
        const struct zipccl_result_step *step = &result->steps[m];

        put_key(gen, mode_names[m]);
        if (!step->present) {
            yajl_gen_null(gen);
            continue;
        }
        yajl_gen_map_open(gen);
        put_number(gen, "step_s", step->step_s, true);
        put_number(gen, "compute_s", step->compute_s, true);
        put_number(gen, "codec_slow_s", step->codec_slow_s, true);
        put_number(gen, "exposed_s", step->exposed_s, true);
        put_number(gen, "wait_s", step->wait_s, true);
        put_number(gen, "comm_s", step->comm_s, true);
        put_number(gen, "codec_s", step->codec_s, true);
        yajl_gen_map_close(gen);
    }
    yajl_gen_map_close(gen);
}

static void put_sensitivities(yajl_gen gen, const struct zipccl_replay_result *result)
{
    put_key(gen, "sensitivities");
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < result->nsensitivities; i++) {
        const struct zipccl_result_sensitivity *s = &result->sensitivities[i];

        yajl_gen_map_open(gen);
        put_string(gen, "name", s->name);
        put_number(gen, "step_time_raw_s", s->step_raw_s, s->step_raw_s > 0);
        put_number(gen, "step_time_adaptive_s", s->step_adaptive_s, s->step_adaptive_s > 0);
        put_number(gen, "comm_speedup", s->comm_speedup, s->comm_speedup > 0);
        put_number(gen, "end_to_end_speedup", s->end_to_end_speedup, s->end_to_end_speedup > 0);
        yajl_gen_map_close(gen);
    }
    yajl_gen_array_close(gen);
    put_key(gen, "break_even");
    yajl_gen_map_open(gen);
    put_number(gen, "gain_under_2_percent_nic_Bps", result->break_even_nic_Bps,
               result->break_even_nic_Bps > 0);
    put_string(gen, "gain_under_2_percent_note", result->break_even_note);
    put_number(gen, "raw_match_nic_Bps", result->raw_match_nic_Bps, result->raw_match_nic_Bps > 0);
    put_string(gen, "raw_match_note", result->raw_match_note);
    yajl_gen_map_close(gen);
}

static void put_trace(yajl_gen gen, const struct zipccl_replay_result *result)
{
    static const char *const sources[5] = {"captured", "class", "model", "given", "none"};

    put_key(gen, "trace");
    yajl_gen_map_open(gen);
    put_string(gen, "name", result->trace_name);
    put_string(gen, "model", result->trace_model);
    put_string(gen, "provenance", result->trace_provenance);
    put_integer(gen, "nranks", result->nranks);
    put_key(gen, "ratio_source_share");
    yajl_gen_map_open(gen);
    for (int i = 0; i < 5; i++)
        put_number(gen, sources[i], result->source_share[i], true);
    yajl_gen_map_close(gen);
    put_string(gen, "raw_dtypes", result->raw_dtypes);
    yajl_gen_map_close(gen);
}

static void put_import(yajl_gen gen, const struct zipccl_result_import *import)
{
    put_key(gen, "import");
    if (import == NULL) {
        yajl_gen_null(gen);
        return;
    }
    yajl_gen_map_open(gen);
    put_string(gen, "format", import->format);
    put_integer(gen, "layers", import->nlayers);
    put_integer(gen, "collectives", import->ncollectives);
    put_integer(gen, "guesses", import->nguesses);
    put_key(gen, "items");
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < import->nitems; i++) {
        const struct zipccl_result_import_item *item = &import->items[i];

        yajl_gen_map_open(gen);
        put_string(gen, "what", item->what);
        put_key(gen, "guess");
        yajl_gen_bool(gen, item->guess);
        put_integer(gen, "count", item->count);
        put_integer(gen, "line", item->line);
        put_string(gen, "text", item->text);
        yajl_gen_map_close(gen);
    }
    yajl_gen_array_close(gen);
    yajl_gen_map_close(gen);
}

static void put_cluster(yajl_gen gen, const struct zipccl_replay_result *result)
{
    put_key(gen, "cluster");
    yajl_gen_map_open(gen);
    put_string(gen, "name", result->cluster_name);
    put_string(gen, "summary", result->cluster_line);
    put_string(gen, "codec", result->codec_line);
    put_integer(gen, "nodes", result->nodes);
    put_integer(gen, "gpus_per_node", result->gpus_per_node);
    yajl_gen_map_close(gen);
}

static void put_warnings(yajl_gen gen, const struct zipccl_replay_result *result)
{
    put_key(gen, "warnings");
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < result->nwarnings; i++)
        put_text(gen, result->warnings[i]);
    yajl_gen_array_close(gen);
}

static void put_result(yajl_gen gen, const struct zipccl_replay_result *result)
{
    yajl_gen_map_open(gen);
    put_key(gen, "schema");
    yajl_gen_map_open(gen);
    put_string(gen, "name", ZIPCCL_REPLAY_SCHEMA_NAME);
    put_integer(gen, "version", ZIPCCL_REPLAY_SCHEMA_VERSION);
    yajl_gen_map_close(gen);
    put_string(gen, "kind", result->measured ? "measured" : "simulated");
    put_string(gen, "fidelity", result->fidelity);
    put_trace(gen, result);
    put_import(gen, result->import);
    put_cluster(gen, result);
    put_notes(gen, "settings", result->settings, result->nsettings);
    put_notes(gen, "assumptions", result->assumptions, result->nassumptions);
    put_rows(gen, result);
    put_totals(gen, result);
    put_steps(gen, result);
    put_string(gen, "adaptive_note", result->adaptive_note);
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
