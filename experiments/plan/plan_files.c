/*
 * plan_files.c - 'zipccl plan' as JSON, schema "zipccl.plan", and as CSV
 *
 * docs/plan.md describes keys and columns.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/plan/plan_report.h"

#include "experiments/program/csv.h"
#include "experiments/program/json_put.h"

#include <math.h>
#include <string.h>

static void put_null_or(yajl_gen gen, const char *key, const char *text)
{
    if (text != NULL) {
        zipccl_put_string(gen, key, text);
        return;
    }
    zipccl_put_key(gen, key);
    yajl_gen_null(gen);
}

static void put_bool(yajl_gen gen, const char *key, bool value)
{
    zipccl_put_key(gen, key);
    yajl_gen_bool(gen, value);
}

static const char *class_or_null(const struct zipccl_plan_row *row)
{
    return row->capacity_class != ZIPCCL_NO_CLASS ? zipccl_class_name(row->capacity_class) : NULL;
}

static void put_row(yajl_gen gen, const struct zipccl_plan_row *row)
{
    struct zipccl_plan_parts parts = zipccl_plan_parts_of(row);

    yajl_gen_map_open(gen);
    zipccl_put_string(gen, "strategy", row->strategy);
    zipccl_put_integer(gen, "nchunks", row->nchunks);
    put_null_or(gen, "effort", row->compressed ? zipccl_plan_effort_name(row->effort) : NULL);
    put_null_or(gen, "capacity_class", class_or_null(row));
    put_bool(gen, "compressed", row->compressed);
    zipccl_put_number(gen, "time_s", row->cost.total_s, true);
    zipccl_put_number(gen, "wire_s", row->cost.wire_s, true);
    zipccl_put_number(gen, "alpha_s", row->cost.alpha_s, true);
    zipccl_put_number(gen, "codec_s", row->cost.codec_s, true);
    zipccl_put_number(gen, "reduce_s", row->cost.reduce_s, true);
    zipccl_put_number(gen, "fence_s", row->cost.fence_s, true);
    zipccl_put_number(gen, "not_hidden_s", parts.codec_s, true);
    zipccl_put_integer(gen, "wire_bytes", row->cost.wire_bytes);
    zipccl_put_integer(gen, "raw_bytes", row->cost.raw_bytes);
    yajl_gen_map_close(gen);
}

static void put_settings(yajl_gen gen, const struct zipccl_cluster_file *file)
{
    size_t n;
    const struct zipccl_cluster_setting *settings = zipccl_cluster_settings(file, &n);

    zipccl_put_key(gen, "settings");
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < n; i++) {
        yajl_gen_map_open(gen);
        zipccl_put_string(gen, "name", settings[i].key);
        if (isnan(settings[i].value))
            zipccl_put_string(gen, "value", settings[i].text);
        else
            zipccl_put_number(gen, "value", settings[i].value, true);
        zipccl_put_string(gen, "unit", settings[i].unit);
        zipccl_put_string(gen, "source", settings[i].source);
        yajl_gen_map_close(gen);
    }
    yajl_gen_array_close(gen);
}

/* Pairs have one strategy for all sizes. */
static void put_flips(yajl_gen gen, const struct zipccl_plan_answer *a, enum zipccl_op op)
{
    bool pairs = zipccl_is_uneven(op);

    put_null_or(gen, "pairs_strategy", pairs ? a->flips[0].family : NULL);
    zipccl_put_key(gen, "flips");
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < a->nflips && !pairs; i++) {
        yajl_gen_map_open(gen);
        zipccl_put_integer(gen, "from_count", a->flips[i].count);
        zipccl_put_integer(gen, "from_size_bytes", a->flips[i].size_bytes);
        zipccl_put_string(gen, "strategy", a->flips[i].family);
        put_null_or(gen, "effort",
                    a->flips[i].compressed ? zipccl_plan_effort_name(a->flips[i].effort) : NULL);
        put_bool(gen, "compressed", a->flips[i].compressed);
        yajl_gen_map_close(gen);
    }
    yajl_gen_array_close(gen);
}

static void put_question(yajl_gen gen, const struct zipccl_plan_report *r)
{
    const struct zipccl_plan_query *q = r->query;
    enum zipccl_op op = q->call.op;
    bool reduces = zipccl_is_reduction(op);

    zipccl_put_string(gen, "kind", "predicted");
    zipccl_put_string(gen, "tier", "T0");
    zipccl_put_string(gen, "op", zipccl_op_name(op));
    zipccl_put_string(gen, "dtype", zipccl_dtype_name(q->call.dtype));
    put_null_or(gen, "redop", reduces ? zipccl_redop_name(q->call.redop) : NULL);
    zipccl_put_number(gen, "root", q->call.root, op == ZIPCCL_BROADCAST);
    zipccl_put_integer(gen, "count", q->call.count);
    zipccl_put_integer(gen, "size_bytes", r->answer->size_bytes);
    zipccl_put_integer(gen, "nranks", r->answer->nranks);
    zipccl_put_integer(gen, "nodes", r->answer->nnodes);
    zipccl_put_integer(gen, "ranks_per_node", r->answer->ranks_per_node);
    zipccl_put_string(gen, "cluster", r->cluster->name);
    zipccl_put_string(gen, "mode", zipccl_plan_mode_names[q->mode]);
    zipccl_put_number(gen, "ratio", q->ratio, q->ratio > 0);
    zipccl_put_number(gen, "max_ratio", q->max_ratio, q->max_ratio > 0);
    put_null_or(gen, "input", q->input);
    zipccl_put_integer(gen, "max_staging_bytes", q->max_staging_bytes);
}

/* Times by kind, null where none was taken. */
static void put_times(yajl_gen gen, const char *key, const struct zipccl_trials *t, bool seen)
{
    zipccl_put_key(gen, key);
    yajl_gen_map_open(gen);
    for (int k = 0; k < ZIPCCL_NUM_KINDS; k++) {
        uint64_t ns = seen ? t->kinds[k].ns : t->kinds[k].predicted_ns;

        zipccl_put_number(gen, zipccl_kind_name(k), 1e-9 * (double)ns, ns > 0);
    }
    yajl_gen_map_close(gen);
}

/* Of a file that --state names; of calls with equal counts. */
static void put_learnt(yajl_gen gen, const struct zipccl_plan_learnt *l)
{
    zipccl_put_key(gen, "learnt");
    if (l == NULL || l->call == NULL) {
        yajl_gen_null(gen);
        return;
    }
    yajl_gen_map_open(gen);
    zipccl_put_string(gen, "file", l->path);
    zipccl_put_integer(gen, "rank", l->state.rank);
    zipccl_put_integer(gen, "calls", l->call->state.calls);
    put_null_or(gen, "kind", l->call->trials.on ? zipccl_kind_name(l->call->trials.now) : NULL);
    zipccl_put_integer(gen, "trials", l->call->trials.ntrials);
    zipccl_put_integer(gen, "changes", l->call->trials.changes);
    put_times(gen, "measured_s", &l->call->trials, true);
    put_times(gen, "predicted_s", &l->call->trials, false);
    zipccl_put_string(gen, "capacity_class", zipccl_class_name(l->call->state.now));
    zipccl_put_number(gen, "ratio", l->call->coded_ppm > 0 ? 1e6 / l->call->coded_ppm : 0,
                      l->call->coded_ppm > 0);
    yajl_gen_map_close(gen);
}

zipccl_status zipccl_plan_json(const struct zipccl_plan_report *report, FILE *out,
                               struct zipccl_error *error)
{
    const struct zipccl_plan_answer *a = report->answer;
    yajl_gen gen;

    ZIPCCL_TRY(zipccl_json_start("JSON", out, &gen, error));
    yajl_gen_map_open(gen);
    zipccl_put_schema(gen, ZIPCCL_PLAN_SCHEMA_NAME, ZIPCCL_PLAN_SCHEMA_VERSION);
    put_question(gen, report);
    zipccl_put_key(gen, "candidates");
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < a->nrows; i++)
        put_row(gen, &a->rows[i]);
    yajl_gen_array_close(gen);
    zipccl_put_integer(gen, "chosen", a->chosen);
    zipccl_put_number(gen, "best_raw", (double)a->best_raw, a->best_raw < a->nrows);
    zipccl_put_number(gen, "gain", zipccl_plan_gain(a), zipccl_plan_gain(a) > 0);
    put_flips(gen, a, report->query->call.op);
    put_learnt(gen, report->learnt);
    put_settings(gen, report->file);
    yajl_gen_map_close(gen);
    return zipccl_json_end(gen, "JSON", out, error);
}

zipccl_status zipccl_plan_csv(const struct zipccl_plan_report *report, FILE *out,
                              struct zipccl_error *error)
{
    const struct zipccl_plan_answer *a = report->answer;
    const struct zipccl_plan_query *q = report->query;

    fputs("op,dtype,count,size_bytes,nranks,nodes,cluster,strategy,nchunks,effort,capacity_class,"
          "compressed,chosen,best_raw,time_s,wire_s,alpha_s,codec_s,fence_s,"
          "not_hidden_s,wire_bytes,raw_bytes,reduce_s\n",
          out);
    for (size_t i = 0; i < a->nrows; i++) {
        const struct zipccl_plan_row *row = &a->rows[i];

        fprintf(out, "%s,%s,%zu,%zu,%u,%u,", zipccl_op_name(q->call.op),
                zipccl_dtype_name(q->call.dtype), q->call.count, a->size_bytes, a->nranks,
                a->nnodes);
        zipccl_csv_text(report->cluster->name, out);
        fprintf(out, ",%s,%u,%s,%s,%d,%d,%d,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%llu,%llu,%.9g\n",
                row->strategy, row->nchunks,
                row->compressed ? zipccl_plan_effort_name(row->effort) : "",
                class_or_null(row) != NULL ? class_or_null(row) : "", row->compressed,
                i == a->chosen, i == a->best_raw, row->cost.total_s, row->cost.wire_s,
                row->cost.alpha_s, row->cost.codec_s, row->cost.fence_s,
                zipccl_plan_parts_of(row).codec_s, (unsigned long long)row->cost.wire_bytes,
                (unsigned long long)row->cost.raw_bytes, row->cost.reduce_s);
    }
    return zipccl_written(out, "CSV", error);
}
