/*
 * compare_print.c - a comparison as table, JSON and CSV
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/compare/compare_command.h"

#include "experiments/program/csv.h"
#include "experiments/program/json_put.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Rows without a partner that the terminal shows; files have all. */
enum { MOST_SINGLES = 20 };

static void print_file(const char *role, const struct zipccl_rows *file, FILE *out)
{
    fprintf(out, "  %-10s %s (%s on %s%s%s, %zu rows)\n", role, file->path,
            file->measured ? "measured" : "SIMULATED", file->on[0] != '\0' ? file->on : "?",
            file->cluster[0] != '\0' ? ", cluster " : "", file->cluster, file->n);
}

/* "4x2": nodes and ranks of each; "8" where nodes are not known. */
static void world_text(const struct zipccl_row *row, char *out, size_t size)
{
    if (row->nodes > 0 && row->nranks % row->nodes == 0)
        snprintf(out, size, "%ux%u", row->nodes, row->nranks / row->nodes);
    else
        snprintf(out, size, "%u", row->nranks);
}

static void print_call(const struct zipccl_row *row, FILE *out)
{
    char world[32];

    world_text(row, world, sizeof world);
    fprintf(out, "  %-14s %-5s %12.0f %9s ", zipccl_op_name(row->op), zipccl_dtype_name(row->dtype),
            zipccl_compare_bytes(row), world);
    if (row->group[0] != '\0')
        fprintf(out, "%-10s ", row->group);
    fprintf(out, "%-10s %-22s%s", row->mode, row->strategy, row->in_place ? " in place" : "");
}

static void print_rows(const struct zipccl_compare *c, FILE *out)
{
    bool groups = c->first->kind == ZIPCCL_ROWS_REPLAY;

    fprintf(out, "\n%14s %14s %8s   %-14s %-5s %12s %9s %s%-10s %s\n",
            c->predicts ? "predicted us" : "before us", c->predicts ? "measured us" : "after us",
            c->predicts ? "off %" : "change %", "op", "type", "bytes", "ranks",
            groups ? "group      " : "", "mode", "strategy");
    for (size_t i = 0; i < c->npairs; i++) {
        const struct zipccl_compare_pair *p = &c->pairs[i];

        fprintf(out, "%14.1f %14.1f %+8.1f ", 1e6 * p->first->time_s, 1e6 * p->second->time_s,
                100 * p->error);
        print_call(p->second, out);
        fputc('\n', out);
    }
}

static void print_singles(const struct zipccl_compare *c, FILE *out)
{
    size_t nfirst = 0;

    for (size_t i = 0; i < c->nsingles; i++)
        nfirst += c->singles[i].of_first;
    if (c->nsingles == 0)
        return;
    fprintf(out, "\nRows without a partner: %zu only %s, %zu only %s\n", nfirst,
            c->predicts ? "predicted" : "before", c->nsingles - nfirst,
            c->predicts ? "measured" : "after");
    for (size_t i = 0; i < c->nsingles && i < MOST_SINGLES; i++) {
        const struct zipccl_compare_single *s = &c->singles[i];

        print_call(s->row, out);
        fprintf(out, ": only in %s; the nearest differs in %s\n", s->file->path, s->why);
    }
    if (c->nsingles > MOST_SINGLES)
        fprintf(out, "  and %zu more, which -J and --csv list\n", c->nsingles - MOST_SINGLES);
}

static void print_sum(const char *name, const struct zipccl_compare_sum *sum, FILE *out)
{
    if (sum->n > 0)
        fprintf(out, "  %-14s %6zu %10.1f %10.1f %+14.1f\n", name, sum->n, 100 * sum->median,
                100 * sum->worst, 100 * sum->bias);
}

void zipccl_compare_print(const struct zipccl_compare *c, bool summary, FILE *out)
{
    fprintf(out, "zipccl compare: %s\n",
            c->predicts ? "predicted and measured" : "before and after");
    print_file(c->predicts ? "predicted" : "before", c->first, out);
    for (size_t i = 0; i < c->nseconds; i++)
        print_file(c->predicts ? "measured" : "after", c->seconds[i], out);
    if (!summary && c->npairs > 0)
        print_rows(c, out);
    print_singles(c, out);
    if (c->npairs == 0)
        return;
    fprintf(out, "\n  %-14s %6s %10s %10s %14s\n", c->predicts ? "off, rows of" : "change, rows of",
            "rows", "median %", "worst %", "with sign %");
    for (int op = 0; op < ZIPCCL_NUM_OPS; op++)
        print_sum(zipccl_op_name((enum zipccl_op)op), &c->by_op[op], out);
    for (int mode = 0; mode < 4; mode++)
        print_sum(zipccl_compare_modes[mode], &c->by_mode[mode], out);
    print_sum("all", &c->all, out);
}

static void put_call(yajl_gen gen, const struct zipccl_row *row)
{
    zipccl_put_string(gen, "op", zipccl_op_name(row->op));
    zipccl_put_string(gen, "dtype", zipccl_dtype_name(row->dtype));
    zipccl_put_integer(gen, "count", row->count);
    zipccl_put_number(gen, "bytes", zipccl_compare_bytes(row), true);
    zipccl_put_integer(gen, "nranks", row->nranks);
    zipccl_put_number(gen, "nodes", row->nodes, row->nodes > 0);
    zipccl_put_string(gen, "group", row->group);
    zipccl_put_string(gen, "stream", row->stream);
    zipccl_put_integer(gen, "calls", row->calls);
    zipccl_put_string(gen, "mode", row->mode);
    zipccl_put_string(gen, "strategy", row->strategy);
    zipccl_put_integer(gen, "nchunks", row->nchunks);
    zipccl_put_key(gen, "in_place");
    yajl_gen_bool(gen, row->in_place);
}

static void put_file(yajl_gen gen, const struct zipccl_rows *file)
{
    yajl_gen_map_open(gen);
    zipccl_put_string(gen, "path", file->path);
    zipccl_put_string(gen, "kind", file->measured ? "measured" : "simulated");
    zipccl_put_string(gen, "on", file->on);
    zipccl_put_string(gen, "cluster", file->cluster);
    zipccl_put_integer(gen, "rows", file->n);
    yajl_gen_map_close(gen);
}

static void put_sum(yajl_gen gen, const char *name, const struct zipccl_compare_sum *sum)
{
    if (sum->n == 0)
        return;
    zipccl_put_key(gen, name);
    yajl_gen_map_open(gen);
    zipccl_put_integer(gen, "rows", sum->n);
    zipccl_put_number(gen, "median_error", sum->median, true);
    zipccl_put_number(gen, "worst_error", sum->worst, true);
    zipccl_put_number(gen, "median_signed_error", sum->bias, true);
    yajl_gen_map_close(gen);
}

static void put_sums(yajl_gen gen, const struct zipccl_compare *c)
{
    put_sum(gen, "all", &c->all);
    zipccl_put_key(gen, "by_op");
    yajl_gen_map_open(gen);
    for (int op = 0; op < ZIPCCL_NUM_OPS; op++)
        put_sum(gen, zipccl_op_name((enum zipccl_op)op), &c->by_op[op]);
    yajl_gen_map_close(gen);
    zipccl_put_key(gen, "by_mode");
    yajl_gen_map_open(gen);
    for (int mode = 0; mode < 4; mode++)
        put_sum(gen, zipccl_compare_modes[mode], &c->by_mode[mode]);
    yajl_gen_map_close(gen);
}

static void put_rows(yajl_gen gen, const struct zipccl_compare *c)
{
    zipccl_put_key(gen, "rows");
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < c->npairs; i++) {
        yajl_gen_map_open(gen);
        put_call(gen, c->pairs[i].second);
        zipccl_put_number(gen, "first_time_s", c->pairs[i].first->time_s, true);
        zipccl_put_number(gen, "second_time_s", c->pairs[i].second->time_s, true);
        zipccl_put_number(gen, "error", c->pairs[i].error, true);
        yajl_gen_map_close(gen);
    }
    yajl_gen_array_close(gen);
    zipccl_put_key(gen, "unmatched");
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < c->nsingles; i++) {
        yajl_gen_map_open(gen);
        put_call(gen, c->singles[i].row);
        zipccl_put_number(gen, "time_s", c->singles[i].row->time_s, true);
        zipccl_put_string(gen, "file", c->singles[i].file->path);
        zipccl_put_string(gen, "nearest_differs_in", c->singles[i].why);
        yajl_gen_map_close(gen);
    }
    yajl_gen_array_close(gen);
}

zipccl_status zipccl_compare_json(const struct zipccl_compare *c, FILE *out,
                                  struct zipccl_error *error)
{
    yajl_gen gen;

    ZIPCCL_TRY(zipccl_json_start("JSON", out, &gen, error));
    yajl_gen_map_open(gen);
    zipccl_put_schema(gen, "zipccl.compare", 1);
    zipccl_put_string(gen, "kind", c->predicts ? "predicted-measured" : "before-after");
    zipccl_put_key(gen, "first");
    put_file(gen, c->first);
    zipccl_put_key(gen, "second");
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < c->nseconds; i++)
        put_file(gen, c->seconds[i]);
    yajl_gen_array_close(gen);
    put_sums(gen, c);
    put_rows(gen, c);
    yajl_gen_map_close(gen);
    return zipccl_json_end(gen, "JSON", out, error);
}

static void csv_call(const struct zipccl_row *row, FILE *out)
{
    fprintf(out, "%s,%s,%" PRIu64 ",%.12g,%u,", zipccl_op_name(row->op),
            zipccl_dtype_name(row->dtype), row->count, zipccl_compare_bytes(row), row->nranks);
    if (row->nodes > 0)
        fprintf(out, "%u", row->nodes);
    fputc(',', out);
    zipccl_csv_text(row->group, out);
    fputc(',', out);
    zipccl_csv_text(row->stream, out);
    fprintf(out, ",%s,", row->mode);
    zipccl_csv_text(row->strategy, out);
    fprintf(out, ",%u,%d,", row->nchunks, row->in_place);
}

/* A row without a partner has one time alone. */
zipccl_status zipccl_compare_csv(const struct zipccl_compare *c, FILE *out,
                                 struct zipccl_error *error)
{
    fputs("op,dtype,count,bytes,nranks,nodes,group,stream,mode,strategy,nchunks,in_place,"
          "first_time_s,second_time_s,error,nearest_differs_in\n",
          out);
    for (size_t i = 0; i < c->npairs; i++) {
        csv_call(c->pairs[i].second, out);
        fprintf(out, "%.9g,%.9g,%.6g,\n", c->pairs[i].first->time_s, c->pairs[i].second->time_s,
                c->pairs[i].error);
    }
    for (size_t i = 0; i < c->nsingles; i++) {
        const struct zipccl_compare_single *s = &c->singles[i];

        csv_call(s->row, out);
        fprintf(out, s->of_first ? "%.9g,,," : ",%.9g,,", s->row->time_s);
        zipccl_csv_text(s->why, out);
        fputc('\n', out);
    }
    return zipccl_written(out, "CSV", error);
}
