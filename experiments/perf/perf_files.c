/*
 * perf_files.c - perf's rows as JSON, schema "zipccl.perf", and as CSV
 *
 * Both have the same columns.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/perf/perf_rows.h"

#include "experiments/program/csv.h"
#include "experiments/program/json_notes.h"
#include "experiments/program/json_put.h"

#include <math.h>
#include <string.h>

enum { MAX_CELLS = 48 };

/* One value of a row: a text, a truth, or a number, which may be missing. */
struct cell {
    enum { CELL_TEXT, CELL_BOOL, CELL_NUMBER } kind;
    const char *key, *text; /* text NULL: null */
    double number;          /* NaN: missing */
};

struct cells {
    size_t n;
    struct cell cell[MAX_CELLS];
};

static void add_text(struct cells *cells, const char *key, const char *text)
{
    cells->cell[cells->n++] = (struct cell){CELL_TEXT, key, text, 0};
}

static void add_number(struct cells *cells, const char *key, double number)
{
    cells->cell[cells->n++] = (struct cell){CELL_NUMBER, key, NULL, number};
}

static void add_call(struct cells *cells, const struct zipccl_perf_row *row)
{
    const struct zipccl_perf_call *call = &row->call;
    bool reduces = zipccl_is_reduction(call->op);

    add_text(cells, "op", zipccl_op_name(call->op));
    add_text(cells, "dtype", zipccl_dtype_name(call->dtype));
    add_text(cells, "redop", reduces ? zipccl_redop_name(call->redop) : NULL);
    add_number(cells, "root", call->op == ZIPCCL_BROADCAST ? call->root : (double)NAN);
    add_number(cells, "count", (double)call->count);
    add_number(cells, "size_bytes", (double)call->size);
    add_number(cells, "nranks", row->nranks);
    add_number(cells, "nodes", row->nodes);
    add_text(cells, "mode", zipccl_perf_mode_names[row->mode]);
    add_text(cells, "strategy", row->strategy);
    add_number(cells, "nchunks", row->nchunks);
    add_text(cells, "effort", row->effort == ZIPCCL_EFFORT_RATIO ? "ratio" : "fast");
    add_text(cells, "capacity_class",
             row->capacity_class >= 0 ? zipccl_class_name(row->capacity_class) : NULL);
    cells->cell[cells->n++] = (struct cell){CELL_BOOL, "in_place", NULL, row->in_place};
}

static void add_times(struct cells *cells, const struct zipccl_perf_row *row)
{
    double busbw = zipccl_perf_busbw(&row->call, row->nranks, row->time_s);
    bool pairs = row->to_raw > 0;

    add_number(cells, "iters", row->iters);
    add_number(cells, "time_s", row->time_s);
    add_number(cells, "time_min_s", row->time_min_s);
    add_number(cells, "time_q1_s", row->time_q1_s);
    add_number(cells, "time_q3_s", row->time_q3_s);
    add_number(cells, "time_max_s", row->time_max_s);
    add_number(cells, "time_mean_s", row->time_mean_s);
    add_number(cells, "algbw_GBps", zipccl_perf_algbw(&row->call, row->time_s));
    add_number(cells, "busbw_GBps", busbw);
    add_number(cells, "wire_busbw_GBps", busbw / zipccl_perf_ratio(row));
    add_number(cells, "raw_bytes", row->raw_bytes);
    add_number(cells, "wire_bytes", row->wire_bytes);
    add_number(cells, "ratio", zipccl_perf_ratio(row));
    add_number(cells, "encode_s", row->encode_s >= 0 ? row->encode_s : (double)NAN);
    add_number(cells, "decode_s", row->decode_s >= 0 ? row->decode_s : (double)NAN);
    add_number(cells, "to_raw", pairs ? row->to_raw : (double)NAN);
    add_number(cells, "to_raw_low", pairs ? row->to_raw_low : (double)NAN);
    add_number(cells, "to_raw_high", pairs ? row->to_raw_high : (double)NAN);
    add_number(cells, "wrong", row->wrong >= 0 ? (double)row->wrong : (double)NAN);
}

static void cells_of(const struct zipccl_perf_result *result, const struct zipccl_perf_row *row,
                     struct cells *cells)
{
    cells->n = 0;
    add_call(cells, row);
    add_text(cells, "input", result->input);
    add_times(cells, row);
}

static void put_row(yajl_gen gen, const struct cells *cells, const struct zipccl_perf_row *row)
{
    yajl_gen_map_open(gen);
    for (size_t i = 0; i < cells->n; i++) {
        const struct cell *cell = &cells->cell[i];

        if (cell->kind == CELL_NUMBER) {
            zipccl_put_number(gen, cell->key, cell->number, true);
        } else if (cell->kind == CELL_TEXT && cell->text != NULL) {
            zipccl_put_string(gen, cell->key, cell->text);
        } else {
            zipccl_put_key(gen, cell->key);
            if (cell->kind == CELL_BOOL)
                yajl_gen_bool(gen, cell->number != 0);
            else
                yajl_gen_null(gen);
        }
    }
    if (row->times_s != NULL) {
        zipccl_put_key(gen, "times_s");
        yajl_gen_array_open(gen);
        for (uint32_t i = 0; i < row->iters; i++)
            yajl_gen_double(gen, row->times_s[i]);
        yajl_gen_array_close(gen);
    }
    yajl_gen_map_close(gen);
}

static void put_head(yajl_gen gen, const struct zipccl_perf_result *result)
{
    zipccl_put_schema(gen, ZIPCCL_PERF_SCHEMA_NAME, ZIPCCL_PERF_SCHEMA_VERSION);
    zipccl_put_string(gen, "kind", result->measured ? "measured" : "simulated");
    zipccl_put_string(gen, "on", result->on);
    zipccl_put_integer(gen, "nranks", result->nranks);
    zipccl_put_integer(gen, "nodes", result->nodes);
    zipccl_put_key(gen, "cluster");
    if (result->cluster[0] != '\0')
        zipccl_put_text(gen, result->cluster);
    else
        yajl_gen_null(gen);
    zipccl_put_notes(gen, "settings", result->settings, result->nsettings);
    zipccl_put_notes(gen, "assumptions", result->assumptions, result->nassumptions);
}

zipccl_status zipccl_perf_json(const struct zipccl_perf_result *result, FILE *out,
                               struct zipccl_error *error)
{
    yajl_gen gen;
    struct cells cells;

    ZIPCCL_TRY(zipccl_json_start("JSON", out, &gen, error));
    yajl_gen_map_open(gen);
    put_head(gen, result);
    zipccl_put_key(gen, "rows");
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < result->nrows; i++) {
        cells_of(result, &result->rows[i], &cells);
        put_row(gen, &cells, &result->rows[i]);
    }
    yajl_gen_array_close(gen);
    yajl_gen_map_close(gen);
    return zipccl_json_end(gen, "JSON", out, error);
}

static void print_cell(const struct cell *cell, FILE *out)
{
    if (cell->kind == CELL_BOOL)
        fputs(cell->number != 0 ? "true" : "false", out);
    else if (cell->kind == CELL_TEXT && cell->text != NULL)
        zipccl_csv_text(cell->text, out);
    else if (cell->kind == CELL_NUMBER && isfinite(cell->number))
        fprintf(out, "%.12g", cell->number);
}

zipccl_status zipccl_perf_csv(const struct zipccl_perf_result *result, FILE *out,
                              struct zipccl_error *error)
{
    struct cells cells;

    for (size_t r = 0; r < result->nrows; r++) {
        cells_of(result, &result->rows[r], &cells);
        for (size_t i = 0; i < cells.n && r == 0; i++)
            fprintf(out, "%s%s", i > 0 ? "," : "", cells.cell[i].key);
        if (r == 0)
            fputc('\n', out);
        for (size_t i = 0; i < cells.n; i++) {
            if (i > 0)
                fputc(',', out);
            print_cell(&cells.cell[i], out);
        }
        fputc('\n', out);
    }
    return zipccl_written(out, "CSV", error);
}

zipccl_status zipccl_perf_write(const struct zipccl_perf_result *result,
                                struct zipccl_output outputs[ZIPCCL_PERF_NUM_FILES],
                                struct zipccl_error *error)
{
    for (int i = 0; i < ZIPCCL_PERF_NUM_FILES; i++) {
        ZIPCCL_TRY(zipccl_output_open(&outputs[i], error));
        if (outputs[i].file != NULL)
            ZIPCCL_TRY(zipccl_output_told(&outputs[i],
                                          i == ZIPCCL_PERF_JSON
                                              ? zipccl_perf_json(result, outputs[i].file, error)
                                              : zipccl_perf_csv(result, outputs[i].file, error),
                                          error));
        ZIPCCL_TRY(zipccl_output_close(&outputs[i], error));
    }
    for (int i = 0; i < ZIPCCL_PERF_NUM_FILES; i++)
        ZIPCCL_TRY(zipccl_output_commit(&outputs[i], error));
    return ZIPCCL_OK;
}
