/*
 * bench_rows.c - codec bench as JSON, schema "zipccl.codec-bench", and as CSV
 *
 * Both have the same columns.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/bench/bench_report.h"

#include "experiments/program/csv.h"
#include "experiments/program/json_put.h"

#include <inttypes.h>
#include <string.h>
#include <yajl/yajl_gen.h>

enum { MAX_CELLS = 40 };

/* One value of a row: a text, or a number, which may be missing. */
struct cell {
    const char *key;
    const char *text; /* NULL: a number */
    double number;    /* below 0: missing */
};

struct cells {
    size_t n;
    struct cell cell[MAX_CELLS];
};

static void add_text(struct cells *cells, const char *key, const char *text)
{
    cells->cell[cells->n++] = (struct cell){key, text, 0};
}

static void add_number(struct cells *cells, const char *key, double number)
{
    cells->cell[cells->n++] = (struct cell){key, NULL, number};
}

static void add_spread(struct cells *cells, const char *const keys[3],
                       const struct zipccl_spread *spread)
{
    add_number(cells, keys[0], spread->median);
    add_number(cells, keys[1], spread->q1);
    add_number(cells, keys[2], spread->q3);
}

static void cells_of(const struct zipccl_bench_run *run, const struct zipccl_bench_row *row,
                     struct cells *cells)
{
    static const char *const encode[] = {"encode_GBps", "encode_q1_GBps", "encode_q3_GBps"};
    static const char *const decode[] = {"decode_GBps", "decode_q1_GBps", "decode_q3_GBps"};
    static const char *const copy[] = {"memcpy_GBps", "memcpy_q1_GBps", "memcpy_q3_GBps"};
    double ratio = (double)row->raw_bytes / (double)row->wire_bytes, best = row->best_copy_GBps;
    cells->n = 0;
    add_text(cells, "codec", row->codec.name);
    add_text(cells, "isa", row->codec.isa);
    add_text(cells, "dtype", zipccl_dtype_name(row->dtype));
    add_text(cells, "input", run->input);
    add_text(cells, "cache", row->cold ? "cold" : "hot");
    add_number(cells, "n", (double)row->n);
    add_number(cells, "raw_bytes", (double)row->raw_bytes);
    add_number(cells, "wire_bytes", (double)row->wire_bytes);
    add_number(cells, "ratio", ratio);
    add_number(cells, "bound_ratio", row->bound_ratio);
    add_number(cells, "bound_percent", 100 * ratio / row->bound_ratio);
    add_spread(cells, encode, &row->encode_GBps);
    add_spread(cells, decode, &row->decode_GBps);
    add_spread(cells, copy, &row->memcpy_GBps);
    add_number(cells, "encode_per_memcpy", row->encode_x.median);
    add_number(cells, "decode_per_memcpy", row->decode_x.median);
    add_text(cells, "best_copy", row->best_copy ? row->best_copy : "");
    add_number(cells, "best_copy_GBps", best > 0 ? best : -1);
    add_number(cells, "encode_per_best_copy", best > 0 ? row->encode_GBps.median / best : -1);
    add_number(cells, "decode_per_best_copy", best > 0 ? row->decode_GBps.median / best : -1);
    add_number(cells, "threads", row->codec.threads);
    add_number(cells, "repeats", run->options->repeats);
    add_number(cells, "wrong_elements", (double)row->wrong);
}

static void put_machine(yajl_gen gen, const struct zipccl_bench_run *run)
{
    const struct zipccl_machine *m = &run->machine;
    zipccl_put_key(gen, "machine");
    yajl_gen_map_open(gen);
    zipccl_put_string(gen, "cpu", m->cpu);
    zipccl_put_integer(gen, "cores", (unsigned long long)(m->cores > 0 ? m->cores : 0));
    zipccl_put_integer(gen, "memory_bytes", m->memory_bytes);
    zipccl_put_number(gen, "load_before", m->load, m->load >= 0);
    zipccl_put_number(gen, "load_after", run->load_after, run->load_after >= 0);
    zipccl_put_string(gen, "compiler", m->compiler);
    yajl_gen_map_close(gen);
}

static void put_codecs(yajl_gen gen, const struct zipccl_bench_run *run)
{
    size_t n;
    const struct zipccl_bench_codec *peers = zipccl_bench_peers(&n);
    zipccl_put_key(gen, "codecs");
    yajl_gen_map_open(gen);
    zipccl_put_string(gen, "zipccl", zipccl_bench_ours(ZIPCCL_ISA_SCALAR, 1).what);
    for (size_t i = 0; i < n && run->options->peers; i++)
        zipccl_put_string(gen, peers[i].name, peers[i].what);
    yajl_gen_map_close(gen);
    zipccl_put_string(gen, "not_in_this_build", zipccl_bench_missing());
}

static void put_row(yajl_gen gen, const struct cells *cells)
{
    yajl_gen_map_open(gen);
    for (size_t i = 0; i < cells->n; i++) {
        const struct cell *cell = &cells->cell[i];
        if (cell->text)
            zipccl_put_string(gen, cell->key, cell->text);
        else
            zipccl_put_number(gen, cell->key, cell->number, cell->number >= 0);
    }
    yajl_gen_map_close(gen);
}

zipccl_status zipccl_bench_json(const struct zipccl_bench_run *run, FILE *out,
                                struct zipccl_error *error)
{
    yajl_gen gen;
    struct cells cells;

    if (run->lost)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "JSON: out of memory");
    ZIPCCL_TRY(zipccl_json_start("JSON", out, &gen, error));
    yajl_gen_map_open(gen);
    zipccl_put_string(gen, "schema", "zipccl.codec-bench");
    zipccl_put_integer(gen, "version", 1);
    zipccl_put_string(gen, "date", run->date);
    zipccl_put_string(gen, "command", run->command);
    put_machine(gen, run);
    zipccl_put_string(gen, "clock",
                      run->options->threads > 1 ? "wall" : "processor time of the thread");
    zipccl_put_integer(gen, "threads", run->options->threads);
    put_codecs(gen, run);
    zipccl_put_key(gen, "rows");
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < run->nrows; i++) {
        cells_of(run, &run->rows[i], &cells);
        put_row(gen, &cells);
    }
    yajl_gen_array_close(gen);
    yajl_gen_map_close(gen);
    return zipccl_json_end(gen, "JSON", out, error);
}

zipccl_status zipccl_bench_csv(const struct zipccl_bench_run *run, FILE *out,
                               struct zipccl_error *error)
{
    struct cells cells;
    if (run->lost)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "CSV: out of memory");
    for (size_t r = 0; r < run->nrows; r++) {
        cells_of(run, &run->rows[r], &cells);
        for (size_t i = 0; i < cells.n && r == 0; i++)
            fprintf(out, "%s%s", i ? "," : "", cells.cell[i].key);
        if (r == 0)
            fputc('\n', out);
        for (size_t i = 0; i < cells.n; i++) {
            if (i > 0)
                fputc(',', out);
            if (cells.cell[i].text)
                zipccl_csv_text(cells.cell[i].text, out);
            else if (cells.cell[i].number >= 0)
                fprintf(out, "%.12g", cells.cell[i].number);
        }
        fputc('\n', out);
    }
    return zipccl_written(out, "CSV", error);
}
