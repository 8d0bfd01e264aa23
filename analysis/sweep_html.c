/*
 * sweep_html.c - turns the result of a sweep into one self-contained page
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/sweep_html.h"

#include "analysis/document.h"
#include "analysis/page.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

const char zipccl_sweep_style[] =
    "svg .gain-cell { fill: var(--reduce_scatter); } svg .flat { fill: var(--tile); }\n"
    "svg .none { fill: none; stroke: var(--line); }\n"
    "h3, h4 { font-size: .95rem; margin: 1rem 0 .2rem; }\n";

static bool varies(yajl_val axis)
{
    return zipccl_document_length(axis, "values") > 1;
}

static void put_head(yajl_val sweep, int level, FILE *out)
{
    fprintf(
        out,
        "<p class=\"banner\"><strong>Simulated</strong> (tier %s). No number %s was measured on a "
        "GPU.</p>\n<dl>\n",
        strcmp(zipccl_document_text(sweep, "fidelity"), "t0") == 0
            ? "T0: closed form; groups of a set share NICs, no other contention"
            : "T1: flows",
        level == 2 ? "on this page" : "of this part");
    for (size_t i = 0; i < zipccl_document_length(sweep, "axes"); i++) {
        yajl_val axis = zipccl_document_item(sweep, "axes", i);

        fputs("<dt>", out);
        zipccl_put_escaped(zipccl_document_text(axis, "name"), out);
        fputs("</dt><dd>", out);
        for (size_t k = 0; k < zipccl_document_length(axis, "values"); k++) {
            yajl_val value = zipccl_document_item(axis, "values", k);

            fputs(k > 0 ? ", " : "", out);
            zipccl_put_escaped(YAJL_IS_STRING(value) ? YAJL_GET_STRING(value) : "", out);
        }
        fputs("</dd>\n", out);
    }
    for (size_t i = 0; i < zipccl_document_length(sweep, "clusters"); i++) {
        fputs("<dt>Codec</dt><dd>", out);
        zipccl_put_escaped(
            zipccl_document_text(zipccl_document_item(sweep, "clusters", i), "codec"), out);
        fputs("</dd>\n", out);
    }
    for (size_t i = 0; i < zipccl_document_length(sweep, "tensors"); i++) {
        fputs("<dt>Tensors</dt><dd>", out);
        zipccl_put_escaped(
            zipccl_document_text(zipccl_document_item(sweep, "tensors", i), "origin"), out);
        fputs("</dd>\n", out);
    }
    fputs("</dl>\n", out);
}

static void put_tile(const char *what, double value, int decimals, const char *unit, FILE *out)
{
    if (isfinite(value))
        fprintf(out, "<div class=\"tile\"><b>%.*f%s</b><span>%s</span></div>\n", decimals, value,
                unit, what);
}

static void put_tiles(yajl_val sweep, FILE *out)
{
    yajl_val summary = zipccl_document_get(sweep, "summary");
    double most = (double)NAN;

    for (size_t i = 0; i < zipccl_document_length(sweep, "points"); i++)
        most = fmax(most, zipccl_document_number(zipccl_document_item(sweep, "points", i),
                                                 "end_to_end_speedup"));
    fputs("<div class=\"tiles\">\n", out);
    put_tile("points run", zipccl_document_number(sweep, "run"), 0, "", out);
    put_tile("combinations not run", zipccl_document_number(sweep, "not_run"), 0, "", out);
    put_tile("points with a gain of 2 % or more",
             zipccl_document_number(summary, "points_that_pay"), 0, "", out);
    put_tile("largest speedup of the step", most, 2, "x", out);
    fputs("</div>\n", out);
}

static void put_break_evens(yajl_val sweep, int level, FILE *out)
{
    yajl_val summary = zipccl_document_get(sweep, "summary");
    size_t n = zipccl_document_length(summary, "along");

    if (n == 0)
        return;
    zipccl_page_heading(level, "Break-even", out);
    fputs("<p>Where the gain passes 2 %, all else equal, interpolated between "
          "points.</p>\n<table><thead><tr><th class=\"l\">along</th><th>lines</th><th>pay "
          "everywhere</th><th>pay nowhere</th><th>crossings</th><th>least</th><th>most</th><th "
          "class=\"l\">unit</th></tr></thead><tbody>\n",
          out);
    for (size_t i = 0; i < n; i++) {
        yajl_val along = zipccl_document_item(summary, "along", i);
        size_t ncrossings = zipccl_document_length(along, "break_even");
        double least = (double)NAN, most = (double)NAN;
        char text[64];

        for (size_t k = 0; k < ncrossings; k++) {
            double value =
                zipccl_document_number(zipccl_document_item(along, "break_even", k), "value");

            least = fmin(least, value);
            most = fmax(most, value);
        }
        fputs("<tr>", out);
        zipccl_page_text(zipccl_document_text(along, "axis"), out);
        zipccl_page_value(along, "lines", 1, 0, out);
        zipccl_page_value(along, "pay_everywhere", 1, 0, out);
        zipccl_page_value(along, "pay_nowhere", 1, 0, out);
        fprintf(out, "<td>%zu</td>", ncrossings);
        snprintf(text, sizeof text,
                 isnan(least) ? "<td></td><td></td>" : "<td>%.3g</td><td>%.3g</td>", least, most);
        fputs(text, out);
        zipccl_page_text(zipccl_document_text(along, "unit"), out);
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table>\n", out);
}

static void put_row(yajl_val sweep, yajl_val point, FILE *out)
{
    yajl_val axes = zipccl_document_get(point, "axes");
    const char *error = zipccl_document_text(point, "error");

    fputs("<tr>", out);
    for (size_t i = 0; i < zipccl_document_length(sweep, "axes"); i++) {
        yajl_val axis = zipccl_document_item(sweep, "axes", i);

        if (varies(axis))
            zipccl_page_text(zipccl_document_text(axes, zipccl_document_text(axis, "name")), out);
    }
    if (error[0] != '\0') {
        fputs("<td colspan=\"10\" class=\"l\">failed: ", out);
        zipccl_put_escaped(error, out);
        fputs("</td></tr>\n", out);
        return;
    }
    zipccl_page_value(point, "nranks", 1, 0, out);
    zipccl_page_value(point, "step_time_raw_s", 1e3, 1, out);
    zipccl_page_value(point, "step_time_adaptive_s", 1e3, 1, out);
    zipccl_page_value(point, "end_to_end_speedup", 1, 3, out);
    zipccl_page_value(point, "comm_speedup", 1, 2, out);
    zipccl_page_value(point, "exposed_comm_share", 100, 1, out);
    zipccl_page_value(point, "tokens_per_s_per_gpu_raw", 1, 0, out);
    zipccl_page_value(point, "tokens_per_s_per_gpu_adaptive", 1, 0, out);
    zipccl_page_value(point, "memory_bytes", 1e-9, 1, out);
    fputs("<td class=\"l\">", out);
    zipccl_put_escaped(zipccl_document_text(point, "limit"), out);
    if (strcmp(zipccl_document_text(point, "limit"), "compute") != 0) {
        fputs(": ", out);
        zipccl_put_escaped(zipccl_document_text(point, "most_exposed_op"), out);
        fputc(' ', out);
        zipccl_put_escaped(zipccl_document_text(point, "most_exposed_group"), out);
    }
    fputs("</td></tr>\n", out);
}

static void put_rows(yajl_val sweep, int level, FILE *out)
{
    zipccl_page_heading(level, "Points", out);
    fputs("<div class=\"scroll\"><table class=\"rows\"><thead><tr>", out);
    for (size_t i = 0; i < zipccl_document_length(sweep, "axes"); i++) {
        yajl_val axis = zipccl_document_item(sweep, "axes", i);

        if (!varies(axis))
            continue;
        fputs("<th class=\"l\">", out);
        zipccl_put_escaped(zipccl_document_text(axis, "name"), out);
        fputs("</th>", out);
    }
    fputs("<th>GPUs</th><th>raw, ms</th><th>adaptive, ms</th><th>speedup</th><th>communication "
          "speedup</th><th>exposed, % of raw</th><th>tokens/s/GPU raw</th><th>adaptive</th>"
          "<th>memory, GB/GPU</th><th class=\"l\">limit</th></tr></thead><tbody>\n",
          out);
    for (size_t i = 0; i < zipccl_document_length(sweep, "points"); i++)
        put_row(sweep, zipccl_document_item(sweep, "points", i), out);
    fputs("</tbody></table></div>\n", out);
}

static void put_skipped(yajl_val sweep, int level, FILE *out)
{
    size_t n = zipccl_document_length(sweep, "skipped");

    if (n == 0)
        return;
    zipccl_page_heading(level, "Combinations not run", out);
    fputs("<div class=\"scroll\"><table class=\"rows\"><thead><tr>"
          "<th class=\"l\">for</th><th class=\"l\">combination</th><th class=\"l\">reason</th></tr>"
          "</thead><tbody>\n",
          out);
    for (size_t i = 0; i < n; i++) {
        yajl_val skipped = zipccl_document_item(sweep, "skipped", i);
        yajl_val axes = zipccl_document_get(skipped, "axes");
        bool any = false;

        fputs("<tr>", out);
        zipccl_page_text(zipccl_document_text(skipped, "kind"), out);
        fputs("<td class=\"l\">", out);
        for (size_t k = 0; k < zipccl_document_length(sweep, "axes"); k++) {
            yajl_val axis = zipccl_document_item(sweep, "axes", k);
            const char *name = zipccl_document_text(axis, "name");

            if (!varies(axis))
                continue;
            fputs(any ? ", " : "", out);
            zipccl_put_escaped(name, out);
            fputc(' ', out);
            zipccl_put_escaped(zipccl_document_text(axes, name), out);
            any = true;
        }
        fputs("</td>", out);
        zipccl_page_text(zipccl_document_text(skipped, "reason"), out);
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
}

static void put_clusters(yajl_val sweep, int level, FILE *out)
{
    for (size_t i = 0; i < zipccl_document_length(sweep, "clusters"); i++) {
        yajl_val cluster = zipccl_document_item(sweep, "clusters", i);

        fprintf(out, "<h%d>", level);
        zipccl_put_escaped(zipccl_document_text(cluster, "name"), out);
        fprintf(out, ": what it rests on</h%d>\n<p>", level);
        zipccl_put_escaped(zipccl_document_text(cluster, "provenance_of_steps"), out);
        fputs("</p>\n", out);
        zipccl_page_notes(cluster, "settings", level + 1, "Settings", out);
        zipccl_page_notes(cluster, "assumptions", level + 1,
                          "Assumptions, without what the axes change", out);
    }
}

zipccl_status zipccl_sweep_section(yajl_val sweep, int level, FILE *out, struct zipccl_error *error)
{
    put_head(sweep, level, out);
    put_tiles(sweep, out);
    zipccl_page_heading(level, "Speedup of the step, raw over adaptive", out);
    ZIPCCL_TRY(zipccl_sweep_maps(sweep, level + 1, out, error));
    fputs("<p>Grey: a gain of less than 2 %. A dash: not run.</p>\n", out);
    put_break_evens(sweep, level, out);
    put_rows(sweep, level, out);
    put_skipped(sweep, level, out);
    put_clusters(sweep, level, out);
    return ZIPCCL_OK;
}

zipccl_status zipccl_sweep_page(yajl_val sweep, const char *title, FILE *out,
                                struct zipccl_error *error)
{
    zipccl_page_begin(title != NULL ? title : ZIPCCL_SWEEP_TITLE, zipccl_sweep_style, out);
    ZIPCCL_TRY(zipccl_sweep_section(sweep, 2, out, error));
    zipccl_page_end("Schema zipccl.sweep version 1.", out);
    if (ferror(out))
        return zipccl_fail(error, ZIPCCL_ERR_IO, "page: %s", strerror(errno));
    return ZIPCCL_OK;
}

zipccl_status zipccl_sweep_html(const char *json, size_t nbytes, FILE *out,
                                struct zipccl_error *error)
{
    zipccl_status status;
    yajl_val sweep, schema;

    ZIPCCL_TRY(zipccl_document_parse(json, nbytes, &sweep, error));
    schema = zipccl_document_get(sweep, "schema");
    if (strcmp(zipccl_document_text(schema, "name"), "zipccl.sweep") != 0 ||
        zipccl_document_number(schema, "version") != 1)
        status = zipccl_fail(error, ZIPCCL_ERR_INPUT,
                             "result: expected schema \"zipccl.sweep\" version 1, found \"%.60s\"",
                             zipccl_document_text(schema, "name"));
    else
        status = zipccl_sweep_page(sweep, NULL, out, error);
    yajl_tree_free(sweep);
    return status;
}
