/*
 * compare_html.c - a comparison as one self-contained page
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/compare.h"

#include "analysis/document.h"
#include "analysis/page_style.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* What the picture needs beyond the style of all pages. */
static const char picture_style[] =
    "svg .band { fill: var(--compute); } svg .same { stroke: var(--soft); }\n"
    "svg .mark { stroke: var(--page); } figure > svg { max-width: 46rem; }\n";

static void put_text_cell(const char *text, FILE *out)
{
    fputs("<td class=\"l\">", out);
    zipccl_put_escaped(text, out);
    fputs("</td>", out);
}

static void put_cell(double value, int decimals, FILE *out)
{
    fputs("<td>", out);
    zipccl_put_fixed(value, decimals, out);
    fputs("</td>", out);
}

static void put_head(const struct zipccl_compare *c, FILE *out)
{
    const char *title = c->predicts ? "Predicted and measured" : "Before and after";

    fprintf(out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            "<title>%s</title>\n<style>\n%s%s</style>\n</head>\n<body>\n<h1>%s</h1>\n<dl>\n",
            title, zipccl_page_style, picture_style, title);
    for (size_t i = 0; i <= c->nseconds; i++) {
        const struct zipccl_rows *file = i == 0 ? c->first : c->seconds[i - 1];

        fprintf(out, "<dt>%s</dt><dd>",
                i == 0 ? (c->predicts ? "Predicted" : "Before")
                       : (c->predicts ? "Measured" : "After"));
        zipccl_put_escaped(file->path, out);
        fprintf(out, " (%s on ", file->measured ? "measured" : "simulated");
        zipccl_put_escaped(file->on[0] != '\0' ? file->on : "?", out);
        if (file->cluster[0] != '\0') {
            fputs(", cluster ", out);
            zipccl_put_escaped(file->cluster, out);
        }
        fputs(")</dd>\n", out);
    }
    fputs("</dl>\n", out);
}

static void put_sum(const char *name, const struct zipccl_compare_sum *sum, const char *class,
                    FILE *out)
{
    if (sum->n == 0)
        return;
    fprintf(out, "<tr%s><td class=\"l\">%s</td><td>%zu</td>", class, name, sum->n);
    put_cell(100 * sum->median, 1, out);
    put_cell(100 * sum->worst, 1, out);
    fprintf(out, "<td>%+.1f</td></tr>\n", 100 * sum->bias);
}

static void put_sums(const struct zipccl_compare *c, FILE *out)
{
    fprintf(out,
            "<h2>%s</h2>\n<table><thead><tr><th class=\"l\">rows of</th><th>rows</th><th>median "
            "%%</th><th>worst %%</th><th>median with sign %%</th></tr></thead><tbody>\n",
            c->predicts ? "How far the prediction is off" : "What changed");
    for (int op = 0; op < ZIPCCL_NUM_OPS; op++)
        put_sum(zipccl_op_name((enum zipccl_op)op), &c->by_op[op], "", out);
    for (int mode = 0; mode < 4; mode++)
        put_sum(zipccl_compare_modes[mode], &c->by_mode[mode], "", out);
    put_sum("all", &c->all, " class=\"total\"", out);
    fputs("</tbody></table>\n", out);
}

static void put_call(const struct zipccl_row *row, FILE *out)
{
    put_text_cell(zipccl_op_name(row->op), out);
    put_text_cell(zipccl_dtype_name(row->dtype), out);
    put_cell((double)row->count, 0, out);
    put_cell(zipccl_compare_bytes(row), 0, out);
    put_cell(row->nranks, 0, out);
    put_cell(row->nodes > 0 ? row->nodes : (double)NAN, 0, out);
    put_text_cell(row->group, out);
    put_text_cell(row->mode, out);
    put_text_cell(row->strategy, out);
}

static const char call_head[] =
    "<tr><th class=\"l\">op</th><th class=\"l\">type</th><th>count</th><th>bytes</th>"
    "<th>ranks</th><th>nodes</th><th class=\"l\">group</th><th class=\"l\">mode</th>"
    "<th class=\"l\">strategy</th>";

static void put_rows(const struct zipccl_compare *c, FILE *out)
{
    fprintf(out,
            "<h2>Rows</h2>\n<div class=\"scroll\"><table class=\"rows\"><thead>%s<th>%s, "
            "us</th><th>%s, us</th><th>%s %%</th></tr></thead><tbody>\n",
            call_head, c->predicts ? "predicted" : "before", c->predicts ? "measured" : "after",
            c->predicts ? "off" : "change");
    for (size_t i = 0; i < c->npairs; i++) {
        fputs("<tr>", out);
        put_call(c->pairs[i].second, out);
        put_cell(1e6 * c->pairs[i].first->time_s, 1, out);
        put_cell(1e6 * c->pairs[i].second->time_s, 1, out);
        fprintf(out, "<td>%+.1f</td></tr>\n", 100 * c->pairs[i].error);
    }
    fputs("</tbody></table></div>\n", out);
}

static void put_singles(const struct zipccl_compare *c, FILE *out)
{
    if (c->nsingles == 0)
        return;
    fprintf(out,
            "<h2>Rows without a partner</h2>\n<div class=\"scroll\"><table class=\"rows\"><thead>%s"
            "<th class=\"l\">only in</th><th class=\"l\">the nearest differs in</th></tr></thead>"
            "<tbody>\n",
            call_head);
    for (size_t i = 0; i < c->nsingles; i++) {
        fputs("<tr>", out);
        put_call(c->singles[i].row, out);
        put_text_cell(c->singles[i].file->path, out);
        put_text_cell(c->singles[i].why, out);
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
}

zipccl_status zipccl_compare_html(const struct zipccl_compare *c, FILE *out,
                                  struct zipccl_error *error)
{
    put_head(c, out);
    put_sums(c, out);
    if (c->npairs > 0) {
        fputs("<h2>Picture</h2>\n<figure>\n", out);
        zipccl_compare_svg(c, false, out);
        fputs("</figure>\n", out);
    }
    put_rows(c, out);
    put_singles(c, out);
    fputs("<footer>Made by zipccl.</footer>\n</body>\n</html>\n", out);
    if (ferror(out))
        return zipccl_fail(error, ZIPCCL_ERR_IO, "page: %s", strerror(errno));
    return ZIPCCL_OK;
}
