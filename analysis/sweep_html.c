/*
 * sweep_html.c - turns the result of a sweep into one self-contained page
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/sweep_html.h"

#include "analysis/document.h"
#include "analysis/page_style.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* What the maps need beyond the style of all pages. */
static const char picture_style[] =
    "svg .gain-cell { fill: var(--reduce_scatter); } svg .flat { fill: var(--tile); }\n"
    "svg .none { fill: none; stroke: var(--line); } h3 { font-size: .95rem; margin: 1rem 0 .2rem; "
    "}\n";

static void put_number(yajl_val object, const char *key, double scale, int decimals, FILE *out)
{
    fputs("<td>", out);
    zipccl_put_fixed(scale * zipccl_document_number(object, key), decimals, out);
    fputs("</td>", out);
}

static void put_text(const char *text, FILE *out)
{
    fputs("<td class=\"l\">", out);
    zipccl_put_escaped(text, out);
    fputs("</td>", out);
}

static bool varies(yajl_val axis)
{
    return zipccl_document_length(axis, "values") > 1;
}

static void put_head(yajl_val sweep, FILE *out)
{
    fprintf(out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            "<title>Where compression pays</title>\n<style>\n%s%s</style>\n</head>\n<body>\n"
            "<h1>Where compression pays</h1>\n"
            "<p class=\"banner\"><strong>Simulated</strong> (tier %s). No number on this page was "
            "measured on a GPU.</p>\n<dl>\n",
            zipccl_page_style, picture_style,
            strcmp(zipccl_document_text(sweep, "fidelity"), "t0") == 0
                ? "T0: closed form; groups of a set share NICs, no other contention"
                : "T1: flows");
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

static void put_break_evens(yajl_val sweep, FILE *out)
{
    yajl_val summary = zipccl_document_get(sweep, "summary");
    size_t n = zipccl_document_length(summary, "along");

    if (n == 0)
        return;
    fputs("<h2>Break-even</h2>\n<p>Where the gain passes 2 %, all else equal, interpolated between "
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
        put_text(zipccl_document_text(along, "axis"), out);
        put_number(along, "lines", 1, 0, out);
        put_number(along, "pay_everywhere", 1, 0, out);
        put_number(along, "pay_nowhere", 1, 0, out);
        fprintf(out, "<td>%zu</td>", ncrossings);
        snprintf(text, sizeof text,
                 isnan(least) ? "<td></td><td></td>" : "<td>%.3g</td><td>%.3g</td>", least, most);
        fputs(text, out);
        put_text(zipccl_document_text(along, "unit"), out);
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
            put_text(zipccl_document_text(axes, zipccl_document_text(axis, "name")), out);
    }
    if (error[0] != '\0') {
        fputs("<td colspan=\"10\" class=\"l\">failed: ", out);
        zipccl_put_escaped(error, out);
        fputs("</td></tr>\n", out);
        return;
    }
    put_number(point, "nranks", 1, 0, out);
    put_number(point, "step_time_raw_s", 1e3, 1, out);
    put_number(point, "step_time_adaptive_s", 1e3, 1, out);
    put_number(point, "end_to_end_speedup", 1, 3, out);
    put_number(point, "comm_speedup", 1, 2, out);
    put_number(point, "exposed_comm_share", 100, 1, out);
    put_number(point, "tokens_per_s_per_gpu_raw", 1, 0, out);
    put_number(point, "tokens_per_s_per_gpu_adaptive", 1, 0, out);
    put_number(point, "memory_bytes", 1e-9, 1, out);
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

static void put_rows(yajl_val sweep, FILE *out)
{
    fputs("<h2>Points</h2>\n<div class=\"scroll\"><table class=\"rows\"><thead><tr>", out);
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

static void put_skipped(yajl_val sweep, FILE *out)
{
    size_t n = zipccl_document_length(sweep, "skipped");

    if (n == 0)
        return;
    fputs("<h2>Combinations not run</h2>\n<div class=\"scroll\"><table class=\"rows\"><thead><tr>"
          "<th class=\"l\">for</th><th class=\"l\">combination</th><th class=\"l\">reason</th></tr>"
          "</thead><tbody>\n",
          out);
    for (size_t i = 0; i < n; i++) {
        yajl_val skipped = zipccl_document_item(sweep, "skipped", i);
        yajl_val axes = zipccl_document_get(skipped, "axes");
        bool any = false;

        fputs("<tr>", out);
        put_text(zipccl_document_text(skipped, "kind"), out);
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
        put_text(zipccl_document_text(skipped, "reason"), out);
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
}

static void put_notes(yajl_val cluster, const char *key, const char *title, FILE *out)
{
    fprintf(out,
            "<h3>%s</h3>\n<table class=\"notes\"><thead><tr><th class=\"l\">name</th><th "
            "class=\"l\">value</th><th class=\"l\">unit</th><th class=\"l\">source</th></tr>"
            "</thead><tbody>\n",
            title);
    for (size_t i = 0; i < zipccl_document_length(cluster, key); i++) {
        yajl_val note = zipccl_document_item(cluster, key, i);
        yajl_val value = zipccl_document_get(note, "value");

        fputs("<tr>", out);
        put_text(zipccl_document_text(note, "name"), out);
        put_text(YAJL_IS_NUMBER(value) ? YAJL_GET_NUMBER(value)
                                       : zipccl_document_text(note, "value"),
                 out);
        put_text(zipccl_document_text(note, "unit"), out);
        put_text(zipccl_document_text(note, "source"), out);
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table>\n", out);
}

static void put_clusters(yajl_val sweep, FILE *out)
{
    for (size_t i = 0; i < zipccl_document_length(sweep, "clusters"); i++) {
        yajl_val cluster = zipccl_document_item(sweep, "clusters", i);

        fputs("<h2>", out);
        zipccl_put_escaped(zipccl_document_text(cluster, "name"), out);
        fputs(": what it rests on</h2>\n<p>", out);
        zipccl_put_escaped(zipccl_document_text(cluster, "provenance_of_steps"), out);
        fputs("</p>\n", out);
        put_notes(cluster, "settings", "Settings", out);
        put_notes(cluster, "assumptions", "Assumptions, without what the axes change", out);
    }
}

static zipccl_status put_page(yajl_val sweep, FILE *out, struct zipccl_error *error)
{
    put_head(sweep, out);
    put_tiles(sweep, out);
    fputs("<h2>Speedup of the step, raw over adaptive</h2>\n", out);
    ZIPCCL_TRY(zipccl_sweep_maps(sweep, out, error));
    fputs("<p>Grey: a gain of less than 2 %. A dash: not run.</p>\n", out);
    put_break_evens(sweep, out);
    put_rows(sweep, out);
    put_skipped(sweep, out);
    put_clusters(sweep, out);
    fputs("<footer>Made by zipccl.</footer>\n</body>\n</html>\n", out);
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
        status = put_page(sweep, out, error);
    yajl_tree_free(sweep);
    return status;
}
