/*
 * sweep_json.c - a sweep as JSON, schema "zipccl.sweep"
 *
 * docs/sweep.md describes the keys.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/sweep/sweep_print.h"

#include "experiments/program/json_notes.h"
#include "experiments/program/json_put.h"

#include <yajl/yajl_gen.h>

#include <errno.h>
#include <math.h>
#include <string.h>

static const char *const roles[] = {"model", "trace",   "parallel",    "option", "ranks",
                                    "nodes", "cluster", "cluster key", "ratio"};

/* A number of an axis, which a person has typed with some digits; null if it is none. */
static void put_plain(yajl_gen gen, double number)
{
    char digits[40];
    int n = snprintf(digits, sizeof digits, "%.15g", number);

    if (isfinite(number))
        yajl_gen_number(gen, digits, (size_t)n);
    else
        yajl_gen_null(gen);
}

static void put_axes(yajl_gen gen, const struct zipccl_sweep_spec *spec)
{
    zipccl_put_key(gen, "axes");
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < spec->naxes; i++) {
        const struct zipccl_sweep_axis *axis = &spec->axes[i];

        yajl_gen_map_open(gen);
        zipccl_put_string(gen, "name", axis->key);
        zipccl_put_string(gen, "kind", roles[axis->role]);
        zipccl_put_string(gen, "unit", axis->unit);
        zipccl_put_key(gen, "values");
        yajl_gen_array_open(gen);
        for (size_t k = 0; k < axis->n; k++)
            zipccl_put_text(gen, axis->values[k]);
        yajl_gen_array_close(gen);
        zipccl_put_key(gen, "numbers");
        yajl_gen_array_open(gen);
        for (size_t k = 0; k < axis->n; k++)
            put_plain(gen, axis->numbers[k]);
        yajl_gen_array_close(gen);
        yajl_gen_map_close(gen);
    }
    yajl_gen_array_close(gen);
}

/* Settings and assumptions of the first point of a cluster, without what the axes change. */
static void put_fixed_notes(yajl_gen gen, const struct zipccl_sweep *s, const char *key,
                            const struct zipccl_result_note *notes, size_t n)
{
    struct zipccl_result_note kept[64];
    size_t nkept = 0;

    for (size_t i = 0; i < n && nkept < 64; i++) {
        const struct zipccl_sweep_axis *axis = zipccl_sweep_spec_find(s->spec, notes[i].name);
        bool of_point = strcmp(notes[i].name, "nodes") == 0 ||
                        strcmp(notes[i].name, "ranks computed") == 0 ||
                        strcmp(notes[i].name, "ratio source") == 0;

        if (!of_point && (axis == NULL || axis->n == 1))
            kept[nkept++] = notes[i];
    }
    zipccl_put_notes(gen, key, kept, nkept);
}

static void put_clusters(yajl_gen gen, const struct zipccl_sweep *s)
{
    const struct zipccl_sweep_axis *axis = zipccl_sweep_spec_role(s->spec, ZIPCCL_SWEEP_CLUSTER);

    zipccl_put_key(gen, "clusters");
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < s->nclusters; i++) {
        const struct zipccl_sweep_notes *notes = &s->notes[i];

        if (!s->noted[i])
            continue;
        yajl_gen_map_open(gen);
        zipccl_put_string(gen, "name", axis->values[i]);
        zipccl_put_string(gen, "first_point", notes->cluster_line);
        zipccl_put_string(gen, "codec", notes->codec_line);
        zipccl_put_string(gen, "provenance_of_steps", notes->trace_provenance);
        put_fixed_notes(gen, s, "settings", notes->settings, notes->nsettings);
        put_fixed_notes(gen, s, "assumptions", notes->assumptions, notes->nassumptions);
        yajl_gen_map_close(gen);
    }
    yajl_gen_array_close(gen);
}

/* Files by name, without folders. */
static void put_tensors(yajl_gen gen, const struct zipccl_sweep *s)
{
    zipccl_put_key(gen, "tensors");
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < s->ntensors; i++) {
        const char *slash = strrchr(s->tensors[i].path, '/');

        yajl_gen_map_open(gen);
        zipccl_put_string(gen, "file", slash != NULL ? slash + 1 : s->tensors[i].path);
        zipccl_put_string(gen, "origin", s->tensors[i].origin);
        yajl_gen_map_close(gen);
    }
    yajl_gen_array_close(gen);
}

static void put_place(yajl_gen gen, const char *key, const struct zipccl_sweep_spec *spec,
                      const struct zipccl_sweep_point *p)
{
    zipccl_put_key(gen, key);
    yajl_gen_map_open(gen);
    for (size_t i = 0; i < spec->naxes; i++)
        zipccl_put_string(gen, spec->axes[i].key,
                          spec->axes[i].values[zipccl_sweep_spec_choice(spec, p->index, i)]);
    yajl_gen_map_close(gen);
}

static void put_step(yajl_gen gen, const char *mode, const struct zipccl_result_step *step)
{
    char key[64];

    snprintf(key, sizeof key, "step_time_%s_s", mode);
    zipccl_put_number(gen, key, step->step_s, step->present);
    snprintf(key, sizeof key, "exposed_%s_s", mode);
    zipccl_put_number(gen, key, step->exposed_s, step->present);
    snprintf(key, sizeof key, "comm_%s_s", mode);
    zipccl_put_number(gen, key, step->comm_s, step->present);
}

static void put_ratio(yajl_gen gen, const struct zipccl_sweep_outcome *o)
{
    zipccl_put_number(gen, "raw_bytes", o->raw_bytes, true);
    zipccl_put_number(gen, "wire_bytes", o->wire_bytes, true);
    zipccl_put_number(gen, "ratio", o->raw_bytes / o->wire_bytes, o->wire_bytes > 0);
    zipccl_put_key(gen, "ratio_source_share");
    yajl_gen_map_open(gen);
    for (int i = 0; i < ZIPCCL_NUM_RATIO_SOURCES; i++)
        zipccl_put_number(gen, zipccl_ratio_source_name((enum zipccl_ratio_source)i),
                          o->source_share[i], true);
    yajl_gen_map_close(gen);
}

static void put_outcome(yajl_gen gen, const struct zipccl_sweep_point *p)
{
    const struct zipccl_sweep_outcome *o = &p->outcome;
    double raw_tokens = zipccl_sweep_tokens(p, ZIPCCL_STEP_RAW);
    double tokens = zipccl_sweep_tokens(p, ZIPCCL_STEP_ADAPTIVE);

    put_step(gen, "raw", &o->steps[ZIPCCL_STEP_RAW]);
    put_step(gen, "compressed", &o->steps[ZIPCCL_STEP_COMPRESSED]);
    put_step(gen, "adaptive", &o->steps[ZIPCCL_STEP_ADAPTIVE]);
    zipccl_put_number(gen, "end_to_end_speedup", o->end_to_end_speedup, o->end_to_end_speedup > 0);
    zipccl_put_number(gen, "comm_speedup", o->comm_speedup, o->comm_speedup > 0);
    zipccl_put_number(gen, "exposed_comm_share", o->exposed_comm_share, true);
    put_ratio(gen, o);
    zipccl_put_number(gen, "tokens_per_s_per_gpu_raw", raw_tokens, true);
    zipccl_put_number(gen, "tokens_per_s_per_gpu_adaptive", tokens, true);
    zipccl_put_number(gen, "mfu_raw", zipccl_sweep_mfu(p, ZIPCCL_STEP_RAW), true);
    zipccl_put_number(gen, "mfu_adaptive", zipccl_sweep_mfu(p, ZIPCCL_STEP_ADAPTIVE), true);
    zipccl_put_string(gen, "limit", zipccl_sweep_limit_name(o->limit));
    zipccl_put_string(gen, "most_exposed_op",
                      o->limit_group[0] != '\0' ? zipccl_op_name(o->limit_op) : "");
    zipccl_put_string(gen, "most_exposed_group", o->limit_group);
    zipccl_put_number(gen, "most_exposed_share", o->limit_share, true);
    zipccl_put_string(gen, "adaptive_note", o->adaptive_note);
    zipccl_put_key(gen, "warnings");
    yajl_gen_array_open(gen);
    for (uint32_t i = 0; i < o->nwarnings; i++)
        zipccl_put_text(gen, o->warnings[i]);
    yajl_gen_array_close(gen);
}

static void put_points(yajl_gen gen, const struct zipccl_sweep *s)
{
    zipccl_put_key(gen, "points");
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < s->npoints; i++) {
        const struct zipccl_sweep_point *p = &s->points[i];

        if (p->skip != ZIPCCL_SWEEP_RUNS)
            continue;
        yajl_gen_map_open(gen);
        put_place(gen, "axes", s->spec, p);
        zipccl_put_integer(gen, "nranks", p->nranks);
        zipccl_put_integer(gen, "nodes", p->nodes);
        zipccl_put_integer(gen, "gpus_per_node", p->gpus_per_node);
        zipccl_put_number(gen, "memory_bytes", p->memory, p->memory > 0);
        zipccl_put_number(gen, "gpu_memory_bytes", p->gpu_memory, p->gpu_memory > 0);
        zipccl_put_key(gen, "fits_memory");
        if (p->memory > 0)
            yajl_gen_bool(gen, p->fits);
        else
            yajl_gen_null(gen);
        zipccl_put_number(gen, "tokens_per_step", p->tokens, p->tokens > 0);
        if (p->failed)
            zipccl_put_string(gen, "error", p->error);
        else
            put_outcome(gen, p);
        yajl_gen_map_close(gen);
    }
    yajl_gen_array_close(gen);
}

static void put_skipped(yajl_gen gen, const struct zipccl_sweep *s)
{
    zipccl_put_key(gen, "skipped");
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < s->npoints; i++) {
        const struct zipccl_sweep_point *p = &s->points[i];

        if (p->skip == ZIPCCL_SWEEP_RUNS)
            continue;
        yajl_gen_map_open(gen);
        put_place(gen, "axes", s->spec, p);
        zipccl_put_string(gen, "kind", zipccl_sweep_skip_name(p->skip));
        zipccl_put_string(gen, "reason", p->reason);
        yajl_gen_map_close(gen);
    }
    yajl_gen_array_close(gen);
}

static void put_point_or_null(yajl_gen gen, const char *key, const struct zipccl_sweep *s,
                              const struct zipccl_sweep_point *p)
{
    if (p != NULL) {
        put_place(gen, key, s->spec, p);
        return;
    }
    zipccl_put_key(gen, key);
    yajl_gen_null(gen);
}

static void put_crossings(yajl_gen gen, const struct zipccl_sweep *s,
                          const struct zipccl_sweep_summary *summary, size_t axis)
{
    zipccl_put_key(gen, "break_even");
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < summary->ncrossings; i++) {
        const struct zipccl_sweep_crossing *c = &summary->crossings[i];

        if (c->axis != axis)
            continue;
        yajl_gen_map_open(gen);
        zipccl_put_number(gen, "value", c->value, true);
        zipccl_put_string(gen, "pays", c->pays_below ? "below" : "above");
        put_place(gen, "between", s->spec, c->low);
        put_place(gen, "and", s->spec, c->high);
        yajl_gen_map_close(gen);
    }
    yajl_gen_array_close(gen);
}

static void put_summary(yajl_gen gen, const struct zipccl_sweep *s,
                        const struct zipccl_sweep_summary *summary)
{
    zipccl_put_key(gen, "summary");
    yajl_gen_map_open(gen);
    zipccl_put_number(gen, "pays_from_gain", ZIPCCL_SWEEP_PAYS, true);
    zipccl_put_integer(gen, "points_compared", summary->ncompared);
    zipccl_put_integer(gen, "points_that_pay", summary->npays);
    put_point_or_null(gen, "largest_gain", s, summary->best);
    put_point_or_null(gen, "most_tokens_per_gpu", s, summary->fastest);
    zipccl_put_key(gen, "along");
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < summary->nlines; i++) {
        const struct zipccl_sweep_lines *l = &summary->lines[i];

        yajl_gen_map_open(gen);
        zipccl_put_string(gen, "axis", s->spec->axes[l->axis].key);
        zipccl_put_string(gen, "unit", s->spec->axes[l->axis].unit);
        zipccl_put_integer(gen, "lines", l->nlines);
        zipccl_put_integer(gen, "pay_everywhere", l->always);
        zipccl_put_integer(gen, "pay_nowhere", l->never);
        put_crossings(gen, s, summary, l->axis);
        yajl_gen_map_close(gen);
    }
    yajl_gen_array_close(gen);
    yajl_gen_map_close(gen);
}

static void put_sweep(yajl_gen gen, const struct zipccl_sweep *s,
                      const struct zipccl_sweep_summary *summary)
{
    static const char *const tiers[] = {"t0", "t1", "t2"};

    yajl_gen_map_open(gen);
    zipccl_put_schema(gen, ZIPCCL_SWEEP_SCHEMA_NAME, ZIPCCL_SWEEP_SCHEMA_VERSION);
    zipccl_put_string(gen, "kind", "simulated");
    zipccl_put_string(gen, "fidelity", tiers[s->options.replay.fidelity]);
    zipccl_put_integer(gen, "combinations", s->npoints);
    zipccl_put_integer(gen, "run", s->nruns - s->nfailed);
    zipccl_put_integer(gen, "failed", s->nfailed);
    zipccl_put_integer(gen, "not_run", s->npoints - s->nruns);
    put_axes(gen, s->spec);
    put_clusters(gen, s);
    put_tensors(gen, s);
    put_points(gen, s);
    put_skipped(gen, s);
    put_summary(gen, s, summary);
    yajl_gen_map_close(gen);
}

static void print(void *file, const char *text, size_t n)
{
    fwrite(text, 1, n, file);
}

zipccl_status zipccl_sweep_json(const struct zipccl_sweep *s,
                                const struct zipccl_sweep_summary *summary, FILE *out,
                                struct zipccl_error *error)
{
    yajl_gen gen = yajl_gen_alloc(NULL);

    if (gen == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "JSON: out of memory");
    yajl_gen_config(gen, yajl_gen_beautify, 1);
    yajl_gen_config(gen, yajl_gen_indent_string, " ");
    yajl_gen_config(gen, yajl_gen_print_callback, print, (void *)out);
    put_sweep(gen, s, summary);
    yajl_gen_free(gen);
    if (ferror(out))
        return zipccl_fail(error, ZIPCCL_ERR_IO, "JSON: %s", strerror(errno));
    return ZIPCCL_OK;
}
