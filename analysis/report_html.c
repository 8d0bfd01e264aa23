/*
 * report_html.c - turns a result file into one self-contained page
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/report_html.h"

#include "analysis/document.h"
#include "analysis/page.h"
#include "analysis/replay_page.h"
#include "analysis/step_picture.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* "TRACE on CLUSTER", or the trace alone; the caller frees it, NULL without memory. */
static char *title_of(yajl_val result)
{
    const char *trace = zipccl_document_text(zipccl_document_get(result, "trace"), "name");
    const char *cluster = zipccl_document_text(zipccl_document_get(result, "cluster"), "name");
    size_t size = strlen(trace) + strlen(cluster) + sizeof " on ";
    char *title = malloc(size);

    if (title != NULL)
        snprintf(title, size, "%s%s%s", trace, cluster[0] != '\0' ? " on " : "", cluster);
    return title;
}

static void put_banner(yajl_val result, int level, FILE *out)
{
    const char *tier = zipccl_document_text(result, "fidelity");

    if (strcmp(zipccl_document_text(result, "kind"), "simulated") == 0)
        fprintf(out,
                "<p class=\"banner\"><strong>Simulated</strong> (tier %s). No number %s was "
                "measured on a GPU.</p>\n",
                strcmp(tier, "t0") == 0
                    ? "T0: closed form; groups of a set share NICs, no other contention"
                : strcmp(tier, "t2") == 0 ? "T2: messages"
                                          : "T1: flows",
                level == 2 ? "on this page" : "of this part");
    else
        fputs("<p class=\"banner\"><strong>Measured.</strong></p>\n", out);
}

static void put_head(yajl_val result, int level, FILE *out)
{
    yajl_val trace = zipccl_document_get(result, "trace");
    yajl_val cluster = zipccl_document_get(result, "cluster");

    put_banner(result, level, out);
    fputs("<dl>\n<dt>Trace</dt><dd>", out);
    zipccl_put_escaped(zipccl_document_text(trace, "model"), out);
    fputs("; ", out);
    zipccl_put_fixed(zipccl_document_number(trace, "nranks"), 0, out);
    fputs(" ranks</dd>\n", out);
    zipccl_page_term("Made", zipccl_document_text(trace, "provenance"), out);
    zipccl_page_term("Cluster", zipccl_document_text(cluster, "summary"), out);
    zipccl_page_term("Codec", zipccl_document_text(cluster, "codec"), out);
    fputs("</dl>\n", out);
}

static void put_tile(const char *title, double value, const char *format, FILE *out)
{
    if (!isfinite(value))
        return;
    fputs("<div class=\"tile\"><b>", out);
    fprintf(out, "%.*f%s", strcmp(format, "x") == 0 ? 2 : 1, value, format);
    fprintf(out, "</b><span>%s</span></div>\n", title);
}

static void put_tiles(yajl_val result, FILE *out)
{
    yajl_val totals = zipccl_document_get(result, "totals");
    double raw = zipccl_document_number(totals, "raw_bytes");
    double wire = zipccl_document_number(totals, "wire_bytes");

    fputs("<div class=\"tiles\">\n", out);
    put_tile("end to end", zipccl_document_number(totals, "end_to_end_speedup"), "x", out);
    put_tile("communication", zipccl_document_number(totals, "comm_speedup"), "x", out);
    put_tile("bytes, raw over wire", wire > 0 ? raw / wire : (double)NAN, "x", out);
    put_tile("of the raw step is exposed communication",
             100 * zipccl_document_number(totals, "exposed_comm_share"), " %", out);
    fputs("</div>\n", out);
}

static void put_why(yajl_val result, FILE *out)
{
    const char *why = zipccl_document_text(result, "why");

    if (why[0] == '\0')
        return;
    fputs("<p class=\"why\"><strong>Why:</strong> ", out);
    zipccl_put_escaped(why, out);
    fputs("</p>\n", out);
}

/* What names a row, the same in both tables. */
static void put_row_names(yajl_val row, FILE *out)
{
    zipccl_page_text(zipccl_document_text(row, "op"), out);
    zipccl_page_text(zipccl_document_text(row, "group"), out);
    zipccl_page_text(zipccl_document_text(row, "dtype"), out);
}

static void put_row(yajl_val row, FILE *out)
{
    double raw = zipccl_document_number(row, "time_raw_s");
    double adaptive = zipccl_document_number(row, "time_adaptive_s");

    fputs("<tr>", out);
    put_row_names(row, out);
    zipccl_page_value(row, "calls", 1, 0, out);
    zipccl_page_value(row, "raw_bytes", 1e-6, 1, out);
    zipccl_page_value(row, "wire_bytes", 1e-6, 1, out);
    zipccl_page_value(row, "ratio", 1, 2, out);
    zipccl_page_value(row, "time_raw_s", 1e3, 1, out);
    zipccl_page_value(row, "time_compressed_s", 1e3, 1, out);
    zipccl_page_value(row, "time_adaptive_s", 1e3, 1, out);
    fputs("<td>", out);
    zipccl_put_fixed(adaptive > 0 ? raw / adaptive : (double)NAN, 2, out);
    fputs("</td>", out);
    zipccl_page_value(row, "exposed_raw_s", 1e3, 1, out);
    zipccl_page_value(row, "exposed_adaptive_s", 1e3, 1, out);
    fputs("</tr>\n", out);
}

static void put_row_plans(yajl_val row, FILE *out)
{
    fputs("<tr>", out);
    put_row_names(row, out);
    zipccl_page_value(row, "count", 1, 0, out);
    zipccl_page_value(row, "nranks", 1, 0, out);
    zipccl_page_text(zipccl_document_text(row, "stream"), out);
    zipccl_page_text(zipccl_document_text(row, "ratio_source"), out);
    zipccl_page_text(zipccl_document_text(row, "strategy_raw"), out);
    zipccl_page_text(zipccl_document_text(row, "strategy_compressed"), out);
    zipccl_page_text(zipccl_document_text(row, "strategy"), out);
    fputs("</tr>\n", out);
}

/* Times first, in a table that a common window shows whole; how they came about in another. */
static void put_rows(yajl_val result, int level, FILE *out)
{
    size_t n = zipccl_document_length(result, "rows");

    zipccl_page_heading(level, "Collectives", out);
    fprintf(out,
            "<p>Bytes per rank and step, times summed over the calls of one step. Raw is %s, "
            "always compresses whatever the codec covers, exposed is what no computation hides. "
            "MB is 1e6 bytes.</p>\n",
            strcmp(zipccl_document_text(result, "baseline"), "native") == 0
                ? "NCCL's own algorithm"
                : "the fastest uncompressed plan");
    fputs("<div class=\"scroll\"><table class=\"rows\">\n<thead><tr><th class=\"l\">op</th>"
          "<th class=\"l\">group</th><th class=\"l\">dtype</th><th>calls</th>"
          "<th>raw<br>MB</th><th>wire<br>MB</th><th>ratio</th><th>raw<br>ms</th>"
          "<th>always<br>ms</th><th>adaptive<br>ms</th><th>speedup</th>"
          "<th>exposed<br>raw ms</th><th>exposed<br>adaptive ms</th></tr></thead>\n<tbody>\n",
          out);
    for (size_t i = 0; i < n; i++)
        put_row(zipccl_document_item(result, "rows", i), out);
    fputs("</tbody></table></div>\n", out);
    zipccl_page_heading(level, "Plans", out);
    fputs("<p>The same rows: where the ratio comes from, "
          "and the plan under each rule.</p>\n"
          "<div class=\"scroll\"><table class=\"rows\">\n<thead><tr><th class=\"l\">op</th>"
          "<th class=\"l\">group</th><th class=\"l\">dtype</th><th>count</th><th>ranks</th>"
          "<th class=\"l\">stream</th><th class=\"l\">ratio from</th><th class=\"l\">raw</th>"
          "<th class=\"l\">always</th><th class=\"l\">adaptive</th></tr></thead>\n<tbody>\n",
          out);
    for (size_t i = 0; i < n; i++)
        put_row_plans(zipccl_document_item(result, "rows", i), out);
    fputs("</tbody></table></div>\n", out);
}

static void put_picture(yajl_val result, int level, FILE *out)
{
    struct zipccl_step_picture picture;

    zipccl_step_picture_read(result, &picture);
    zipccl_page_heading(level, "One step", out);
    fputs("<figure>\n", out);
    zipccl_step_picture_svg(&picture, out);
    zipccl_step_picture_legend(&picture, out);
    fputs("</figure>\n", out);
}

static void put_search(yajl_val break_even, const char *title, const char *key,
                       const char *note_key, FILE *out)
{
    double Bps = zipccl_document_number(break_even, key);
    const char *note = zipccl_document_text(break_even, note_key);
    char rate[32];

    fprintf(out, "<p>%s: ", title);
    if (Bps > 0) {
        zipccl_searched_rate(Bps, rate, sizeof rate);
        fprintf(out, "about %s per NIC%s", rate, note[0] != '\0' ? "; " : "");
    } else if (note[0] == '\0')
        fputs("not found", out);
    zipccl_put_escaped(note, out);
    fputs(".</p>\n", out);
}

static void put_sensitivities(yajl_val result, int level, FILE *out)
{
    yajl_val break_even = zipccl_document_get(result, "break_even");
    size_t n = zipccl_document_length(result, "sensitivities");

    if (n == 0)
        return;
    zipccl_page_heading(level, "How sure", out);
    fputs("<div class=\"scroll\"><table><thead><tr>"
          "<th class=\"l\">changed input</th><th>step raw ms</th><th>step adaptive ms</th>"
          "<th>communication</th><th>end to end</th></tr></thead><tbody>\n",
          out);
    for (size_t i = 0; i < n; i++) {
        yajl_val s = zipccl_document_item(result, "sensitivities", i);

        fputs("<tr>", out);
        zipccl_page_text(zipccl_document_text(s, "name"), out);
        zipccl_page_value(s, "step_time_raw_s", 1e3, 1, out);
        zipccl_page_value(s, "step_time_adaptive_s", 1e3, 1, out);
        zipccl_page_value(s, "comm_speedup", 1, 2, out);
        zipccl_page_value(s, "end_to_end_speedup", 1, 2, out);
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
    put_search(break_even, "NIC rate above which the gain is under 2 %",
               "gain_under_2_percent_nic_Bps", "gain_under_2_percent_note", out);
    put_search(break_even, "NIC rate at which raw matches the adaptive step", "raw_match_nic_Bps",
               "raw_match_note", out);
}

/* The speedup if all payload were like one class of samples, where classes stand in for tensors. */
static void put_interval(yajl_val interval, FILE *out)
{
    if (interval == NULL || !YAJL_IS_OBJECT(interval))
        return;
    fprintf(out,
            "<p>The trace has no tensors; classes of captured samples stand in. If all were "
            "like the lowest, %.2f (",
            zipccl_document_number(interval, "low_ratio"));
    zipccl_put_escaped(zipccl_document_text(interval, "low_class"), out);
    fprintf(out, "): %.2fx; the highest, %.2f (",
            zipccl_document_number(interval, "low_end_to_end_speedup"),
            zipccl_document_number(interval, "high_ratio"));
    zipccl_put_escaped(zipccl_document_text(interval, "high_class"), out);
    fprintf(out, "): %.2fx end to end.</p>\n",
            zipccl_document_number(interval, "high_end_to_end_speedup"));
}

/* What had to be assumed to read a file of another tool. */
static void put_import(yajl_val result, int level, FILE *out)
{
    yajl_val import = zipccl_document_get(result, "import");
    size_t n = zipccl_document_length(import, "items");

    if (n == 0)
        return;
    fprintf(out, "<h%d>Import (", level);
    zipccl_put_escaped(zipccl_document_text(import, "format"), out);
    fprintf(out, ")</h%d>\n", level);
    fputs("<div class=\"scroll\"><table><thead><tr><th class=\"l\">what</th>"
          "<th class=\"l\"></th><th>times</th><th>first line</th><th class=\"l\"></th></tr>"
          "</thead><tbody>\n",
          out);
    for (size_t i = 0; i < n; i++) {
        yajl_val item = zipccl_document_item(import, "items", i);

        fputs("<tr>", out);
        zipccl_page_text(zipccl_document_text(item, "what"), out);
        zipccl_page_text(YAJL_IS_TRUE(zipccl_document_get(item, "guess")) ? "guess" : "note", out);
        zipccl_page_value(item, "count", 1, 0, out);
        zipccl_page_value(item, "line", 1, 0, out);
        zipccl_page_text(zipccl_document_text(item, "text"), out);
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
    put_interval(zipccl_document_get(import, "ratio_interval"), out);
}

static void put_warnings(yajl_val result, FILE *out)
{
    const char *note = zipccl_document_text(result, "adaptive_note");

    for (size_t i = 0; i < zipccl_document_length(result, "warnings"); i++) {
        yajl_val warning = zipccl_document_item(result, "warnings", i);

        fputs("<p class=\"warning\"><strong>Warning:</strong> ", out);
        zipccl_put_escaped(YAJL_IS_STRING(warning) ? YAJL_GET_STRING(warning) : "", out);
        fputs("</p>\n", out);
    }
    if (note[0] != '\0') {
        fputs("<p>Adaptive: ", out);
        zipccl_put_escaped(note, out);
        fputs("</p>\n", out);
    }
}

/* How far measured steps lie apart: what differences are worth. */
static void put_spread(yajl_val result, FILE *out)
{
    static const char *const modes[] = {"raw", "compressed", "adaptive"};
    yajl_val steps = zipccl_document_get(result, "steps");
    const char *separator = "<p>Spread of measured steps (quartiles, ms): ";

    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        yajl_val step = zipccl_document_get(steps, modes[m]);

        if (!(zipccl_document_number(step, "measured_steps") > 1))
            continue;
        fprintf(out, "%s%s ", separator, modes[m]);
        zipccl_put_fixed(1e3 * zipccl_document_number(step, "step_q1_s"), 2, out);
        fputs(" to ", out);
        zipccl_put_fixed(1e3 * zipccl_document_number(step, "step_q3_s"), 2, out);
        fprintf(out, " (%.0f steps)", zipccl_document_number(step, "measured_steps"));
        separator = ", ";
    }
    if (separator[0] == ',')
        fputs(".</p>\n", out);
}

void zipccl_replay_section(yajl_val result, int level, FILE *out)
{
    put_head(result, level, out);
    put_warnings(result, out);
    put_tiles(result, out);
    put_spread(result, out);
    put_why(result, out);
    put_picture(result, level, out);
    put_rows(result, level, out);
    put_sensitivities(result, level, out);
    put_import(result, level, out);
    zipccl_page_notes(result, "settings", level, "Settings", out);
    zipccl_page_notes(result, "assumptions", level, "Assumptions", out);
}

zipccl_status zipccl_replay_page(yajl_val result, const char *title, FILE *out,
                                 struct zipccl_error *error)
{
    char *own = title == NULL ? title_of(result) : NULL;

    if (title == NULL && own == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "page: out of memory");
    zipccl_page_begin(title != NULL ? title : own, "", out);
    zipccl_replay_section(result, 2, out);
    zipccl_page_end("Schema zipccl.replay version 1.", out);
    free(own);
    if (ferror(out))
        return zipccl_fail(error, ZIPCCL_ERR_IO, "page: %s", strerror(errno));
    return ZIPCCL_OK;
}

zipccl_status zipccl_report_html(const char *json, size_t nbytes, FILE *out,
                                 struct zipccl_error *error)
{
    yajl_val result = NULL;
    zipccl_status status;

    ZIPCCL_TRY(zipccl_document_parse(json, nbytes, &result, error));
    yajl_val schema = zipccl_document_get(result, "schema");
    if (strcmp(zipccl_document_text(schema, "name"), "zipccl.replay") != 0 ||
        zipccl_document_number(schema, "version") != 1)
        status = zipccl_fail(error, ZIPCCL_ERR_INPUT,
                             "result: expected schema zipccl.replay version 1, found '%.64s'",
                             zipccl_document_text(schema, "name"));
    else
        status = zipccl_replay_page(result, NULL, out, error);
    yajl_tree_free(result);
    return status;
}
