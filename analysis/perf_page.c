/*
 * perf_page.c - rows of single collectives as a part of a page: table, and busbw over size
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/perf_page.h"

#include "analysis/document.h"
#include "analysis/page.h"

#include <math.h>
#include <string.h>

/* A page with more is none to look at; the table has all rows. */
enum { MAX_PICTURES = 24 };

double zipccl_row_busbw(const struct zipccl_row *row)
{
    double n = row->nranks, factor = n > 0 ? (n - 1) / n : 0;

    if (row->op == ZIPCCL_ALL_REDUCE)
        factor *= 2;
    else if (row->op == ZIPCCL_BROADCAST || row->op == ZIPCCL_SENDRECV)
        factor = 1;
    return factor * row->size_bytes / row->time_s * 1e-9;
}

bool zipccl_perf_alike(const struct zipccl_row *a, const struct zipccl_row *b)
{
    return a->op == b->op && a->dtype == b->dtype && a->redop == b->redop && a->root == b->root &&
           a->nranks == b->nranks && a->nodes == b->nodes && a->in_place == b->in_place &&
           strcmp(a->input, b->input) == 0;
}

void zipccl_perf_ops(const struct zipccl_rows *rows, char *out, size_t size)
{
    bool seen[ZIPCCL_NUM_OPS] = {false};
    size_t length = 0;

    out[0] = '\0';
    for (size_t i = 0; i < rows->n; i++) {
        enum zipccl_op op = rows->rows[i].op;

        if (seen[op] || length >= size)
            continue;
        seen[op] = true;
        length += (size_t)snprintf(out + length, size - length, "%s%s", length > 0 ? ", " : "",
                                   zipccl_op_name(op));
    }
}

static void put_head(const struct zipccl_rows *rows, FILE *out)
{
    char ops[160];

    zipccl_perf_ops(rows, ops, sizeof ops);
    if (rows->measured)
        fputs("<p class=\"banner\"><strong>Measured.</strong></p>\n<dl>\n", out);
    else
        fputs("<p class=\"banner\"><strong>Simulated.</strong> No number here was measured.</p>\n"
              "<dl>\n",
              out);
    zipccl_page_term("Collectives", ops, out);
    zipccl_page_term("On", rows->kind == ZIPCCL_ROWS_NCCL ? "nccl-tests" : rows->on, out);
    zipccl_page_term("Cluster", rows->cluster, out);
    fputs("</dl>\n", out);
}

/* A time of wrong elements is none. */
static void put_wrong(const struct zipccl_rows *rows, FILE *out)
{
    size_t n = 0;

    for (size_t i = 0; i < rows->n; i++)
        n += rows->rows[i].wrong > 0;
    if (n > 0)
        fprintf(out,
                "<p class=\"warning\"><strong>Warning:</strong> %zu row%s wrong elements; what was "
                "timed there is not the collective.</p>\n",
                n, n == 1 ? " has" : "s have");
}

static void put_pictures(const struct zipccl_rows *rows, int level, FILE *out)
{
    const struct zipccl_row *shown[MAX_PICTURES];
    size_t n = 0;

    zipccl_page_heading(level, "Bus bandwidth over size", out);
    fputs(
        "<p>busbw counts raw bytes, as nccl-tests does: compressed, it may exceed the link.</p>\n",
        out);
    for (size_t i = 0; i < rows->n && n < MAX_PICTURES; i++) {
        const struct zipccl_row *row = &rows->rows[i];
        size_t k = 0;

        while (k < n && !zipccl_perf_alike(row, shown[k]))
            k++;
        if (k < n)
            continue;
        shown[n++] = row;
        fprintf(out, "<figure>\n<figcaption>%s of %s on %u ranks", zipccl_op_name(row->op),
                zipccl_dtype_name(row->dtype), row->nranks);
        if (row->nodes > 0)
            fprintf(out, ", %u node%s", row->nodes, row->nodes == 1 ? "" : "s");
        fprintf(out, "%s%s", row->in_place ? ", in place" : "", row->input[0] != '\0' ? ": " : "");
        zipccl_put_escaped(row->input, out);
        fputs("</figcaption>\n", out);
        zipccl_perf_svg(rows, row, out);
        fputs("</figure>\n", out);
    }
    if (n == MAX_PICTURES)
        fprintf(out, "<p>The first %d; all rows are in the table.</p>\n", MAX_PICTURES);
}

static void put_row(const struct zipccl_row *row, FILE *out)
{
    double busbw = zipccl_row_busbw(row);

    fputs("<tr>", out);
    zipccl_page_text(zipccl_op_name(row->op), out);
    zipccl_page_text(zipccl_dtype_name(row->dtype), out);
    zipccl_page_number(row->size_bytes, 0, out);
    zipccl_page_number((double)row->count, 0, out);
    zipccl_page_number(row->nranks, 0, out);
    zipccl_page_number(row->nodes > 0 ? row->nodes : (double)NAN, 0, out);
    zipccl_page_text(row->in_place ? "in" : "", out);
    zipccl_page_text(row->mode, out);
    zipccl_page_number(1e6 * row->time_s, 1, out);
    zipccl_page_number(1e6 * row->q1_s, 1, out);
    zipccl_page_number(1e6 * row->q3_s, 1, out);
    zipccl_page_number(row->size_bytes / row->time_s * 1e-9, 3, out);
    zipccl_page_number(busbw, 3, out);
    zipccl_page_number(row->ratio, 3, out);
    zipccl_page_number(row->ratio > 0 ? busbw / row->ratio : (double)NAN, 3, out);
    zipccl_page_number(row->wrong, 0, out);
    zipccl_page_text(row->strategy, out);
    fputs("</tr>\n", out);
}

static void put_rows(const struct zipccl_rows *rows, int level, FILE *out)
{
    zipccl_page_heading(level, "Rows", out);
    fputs(
        "<p>Time: median of the repetitions, with quartiles where there are some. wirebw is busbw "
        "of the bytes on the wire.</p>\n<div class=\"scroll\"><table class=\"rows\"><thead><tr>"
        "<th class=\"l\">op</th><th class=\"l\">type</th><th>size<br>bytes</th><th>count</th>"
        "<th>ranks</th><th>nodes</th><th class=\"l\">place</th><th class=\"l\">mode</th>"
        "<th>time<br>us</th><th>q1<br>us</th><th>q3<br>us</th><th>algbw<br>GB/s</th>"
        "<th>busbw<br>GB/s</th><th>ratio</th><th>wirebw<br>GB/s</th><th>wrong</th>"
        "<th class=\"l\">strategy</th></tr></thead><tbody>\n",
        out);
    for (size_t i = 0; i < rows->n; i++)
        put_row(&rows->rows[i], out);
    fputs("</tbody></table></div>\n", out);
    if (rows->nskipped > 0)
        fprintf(out, "<p>Without a time, and left out: %zu row%s.</p>\n", rows->nskipped,
                rows->nskipped == 1 ? "" : "s");
}

void zipccl_perf_section(const struct zipccl_rows *rows, yajl_val result, int level, FILE *out)
{
    put_head(rows, out);
    put_wrong(rows, out);
    put_pictures(rows, level, out);
    put_rows(rows, level, out);
    if (result == NULL)
        return;
    zipccl_page_notes(result, "settings", level, "Settings", out);
    zipccl_page_notes(result, "assumptions", level, "Assumptions", out);
}
