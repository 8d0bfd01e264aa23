/*
 * report_page.c - one page of several results: a summary, then a part for each
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/report_page.h"

#include "analysis/document.h"
#include "analysis/page.h"
#include "analysis/perf_page.h"
#include "analysis/replay_page.h"
#include "analysis/report_file.h"
#include "analysis/sweep_html.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

static const char parts_style[] =
    "h2.file { font-size: 1.4rem; margin-top: 3rem; padding-top: 1rem;\n"
    "  border-top: 2px solid var(--line); } h3 { font-size: 1.1rem; margin: 1.6rem 0 .5rem; }\n"
    "figcaption { font-weight: 600; margin: .6rem 0; } a { color: inherit; }\n";

/* The name without folders, which say nothing to whom the page is sent; with them where two agree. */
static const char *name_of(struct zipccl_report_file *const *files, size_t n, size_t i)
{
    const char *slash = strrchr(files[i]->path, '/');
    const char *name = slash != NULL ? slash + 1 : files[i]->path;

    for (size_t k = 0; k < n; k++) {
        const char *other = strrchr(files[k]->path, '/');

        if (k != i && strcmp(name, other != NULL ? other + 1 : files[k]->path) == 0)
            return files[i]->path;
    }
    return name;
}

static bool is_replay(const struct zipccl_report_file *file)
{
    return file->form == NULL && file->rows == NULL && !file->sweep;
}

static void put_link(const char *name, size_t i, FILE *out)
{
    fprintf(out, "<td class=\"l\"><a href=\"#r%zu\">", i + 1);
    zipccl_put_escaped(name, out);
    fputs("</a></td>", out);
}

/* The speedup of one step over another; an en dash where one was not run. */
static void put_speedup(yajl_val totals, const char *over, FILE *out)
{
    double raw = zipccl_document_number(totals, "step_time_raw_s");
    double step = zipccl_document_number(totals, over);

    zipccl_page_number(step > 0 ? raw / step : (double)NAN, 2, out);
}

static void put_replay_row(const struct zipccl_report_file *file, const char *name, size_t i,
                           FILE *out)
{
    yajl_val totals = zipccl_document_get(file->root, "totals");
    yajl_val trace = zipccl_document_get(file->root, "trace");
    yajl_val cluster = zipccl_document_get(file->root, "cluster");
    double raw = zipccl_document_number(totals, "raw_bytes");
    double wire = zipccl_document_number(totals, "wire_bytes");
    bool measured = strcmp(zipccl_document_text(file->root, "kind"), "measured") == 0;
    bool native = strcmp(zipccl_document_text(file->root, "baseline"), "native") == 0;

    fputs("<tr>", out);
    put_link(name, i, out);
    zipccl_page_text(zipccl_document_text(trace, "name"), out);
    zipccl_page_text(zipccl_document_text(cluster, "name"), out);
    zipccl_page_value(trace, "nranks", 1, 0, out);
    zipccl_page_text(measured ? "measured" : zipccl_document_text(file->root, "fidelity"), out);
    zipccl_page_text(native ? "NCCL's own" : "best plan", out);
    zipccl_page_number(wire > 0 ? raw / wire : (double)NAN, 2, out);
    zipccl_page_value(totals, "step_time_raw_s", 1e3, 1, out);
    zipccl_page_value(totals, "step_time_compressed_s", 1e3, 1, out);
    zipccl_page_value(totals, "step_time_adaptive_s", 1e3, 1, out);
    zipccl_page_value(totals, "exposed_comm_share", 100, 1, out);
    zipccl_page_value(totals, "comm_speedup", 1, 2, out);
    put_speedup(totals, "step_time_compressed_s", out);
    zipccl_page_value(totals, "end_to_end_speedup", 1, 2, out);
    fputs("</tr>\n", out);
}

static void put_replays(struct zipccl_report_file *const *files, size_t n, FILE *out)
{
    bool simulated = false;
    size_t nreplays = 0;

    for (size_t i = 0; i < n; i++) {
        nreplays += is_replay(files[i]);
        simulated =
            simulated || (is_replay(files[i]) &&
                          strcmp(zipccl_document_text(files[i]->root, "kind"), "measured") != 0);
    }
    if (nreplays == 0)
        return;
    zipccl_page_heading(2, "Replayed steps", out);
    fputs(simulated ? "<p class=\"banner\">Rows with a tier (t0, t1, t2) are <strong>simulated"
                      "</strong>: no number of theirs was measured on a GPU.</p>\n"
                    : "",
          out);
    fputs("<p>Speedups are over the raw step: that of the fastest uncompressed plans, or of NCCL's "
          "own "
          "algorithms where the table says so.</p>\n"
          "<div class=\"scroll\"><table class=\"rows\"><thead><tr><th class=\"l\">file</th>"
          "<th class=\"l\">trace</th><th class=\"l\">cluster</th><th>ranks</th>"
          "<th class=\"l\">tier</th><th class=\"l\">raw "
          "is</th><th>ratio</th><th>raw<br>ms</th><th>always<br>ms</th>"
          "<th>adaptive<br>ms</th><th>exposed<br>% of raw</th><th>communication<br>x</th>"
          "<th>end to end<br>always x</th><th>end to end<br>adaptive x</th></tr></thead><tbody>\n",
          out);
    for (size_t i = 0; i < n; i++)
        if (is_replay(files[i]))
            put_replay_row(files[i], name_of(files, n, i), i, out);
    fputs("</tbody></table></div>\n", out);
}

static void put_other_row(const struct zipccl_report_file *file, const char *name, size_t i,
                          FILE *out)
{
    char what[160];

    fputs("<tr>", out);
    put_link(name, i, out);
    zipccl_page_text(zipccl_report_schema(file), out);
    if (file->rows != NULL)
        zipccl_perf_ops(file->rows, what, sizeof what);
    else
        snprintf(what, sizeof what, "%s", file->sweep ? ZIPCCL_SWEEP_TITLE : file->form->title);
    zipccl_page_text(what, out);
    if (file->rows != NULL)
        zipccl_page_text(file->rows->measured ? "measured" : "simulated", out);
    else
        zipccl_page_text(file->sweep ? "simulated" : "", out);
    fputs("</tr>\n", out);
}

static void put_others(struct zipccl_report_file *const *files, size_t n, FILE *out)
{
    size_t nothers = 0;

    for (size_t i = 0; i < n; i++)
        nothers += !is_replay(files[i]);
    if (nothers == 0)
        return;
    zipccl_page_heading(2, nothers < n ? "Other results" : "Results", out);
    fputs("<div class=\"scroll\"><table class=\"rows\"><thead><tr><th class=\"l\">file</th>"
          "<th class=\"l\">schema</th><th class=\"l\">what</th><th class=\"l\">kind</th></tr>"
          "</thead><tbody>\n",
          out);
    for (size_t i = 0; i < n; i++)
        if (!is_replay(files[i]))
            put_other_row(files[i], name_of(files, n, i), i, out);
    fputs("</tbody></table></div>\n", out);
}

static zipccl_status put_section(const struct zipccl_report_file *file, int level, FILE *out,
                                 struct zipccl_error *error)
{
    if (file->sweep)
        return zipccl_sweep_section(file->root, level, out, error);
    if (file->form != NULL)
        zipccl_form_section(file->form, file->root, level, out);
    else if (file->rows != NULL)
        zipccl_perf_section(file->rows, file->root, level, out);
    else
        zipccl_replay_section(file->root, level, out);
    return ZIPCCL_OK;
}

static zipccl_status put_parts(struct zipccl_report_file *const *files, size_t n, FILE *out,
                               struct zipccl_error *error)
{
    put_replays(files, n, out);
    put_others(files, n, out);
    for (size_t i = 0; i < n; i++) {
        fprintf(out, "<section>\n<h2 class=\"file\" id=\"r%zu\">", i + 1);
        if (is_replay(files[i])) {
            yajl_val trace = zipccl_document_get(files[i]->root, "trace");
            yajl_val cluster = zipccl_document_get(files[i]->root, "cluster");

            zipccl_put_escaped(zipccl_document_text(trace, "name"), out);
            fputs(" on ", out);
            zipccl_put_escaped(zipccl_document_text(cluster, "name"), out);
            fputs(" (", out);
            zipccl_put_escaped(name_of(files, n, i), out);
            fputs(")", out);
        } else {
            zipccl_put_escaped(name_of(files, n, i), out);
        }
        fputs("</h2>\n", out);
        ZIPCCL_TRY(put_section(files[i], 3, out, error));
        fputs("</section>\n", out);
    }
    return ZIPCCL_OK;
}

/* The title of a page that got none. */
static void put_title(struct zipccl_report_file *const *files, size_t n, char *out, size_t size)
{
    char ops[160];

    if (n > 1) {
        snprintf(out, size, "%zu results", n);
    } else if (files[0]->rows != NULL) {
        zipccl_perf_ops(files[0]->rows, ops, sizeof ops);
        snprintf(out, size, "%s, %s", ops, files[0]->rows->measured ? "measured" : "simulated");
    } else {
        snprintf(out, size, "%s", files[0]->form->title);
    }
}

zipccl_status zipccl_report_page(struct zipccl_report_file *const *files, size_t n,
                                 const char *title, FILE *out, struct zipccl_error *error)
{
    char style[3072], own[256], source[64];

    if (n == 1 && is_replay(files[0]))
        return zipccl_replay_page(files[0]->root, title, out, error);
    if (n == 1 && files[0]->sweep)
        return zipccl_sweep_page(files[0]->root, title, out, error);
    if (title == NULL)
        put_title(files, n, own, sizeof own);
    snprintf(style, sizeof style, "%s%s%s", zipccl_sweep_style, parts_style, zipccl_perf_style);
    zipccl_page_begin(title != NULL ? title : own, style, out);
    if (n == 1)
        ZIPCCL_TRY(put_section(files[0], 2, out, error));
    else
        ZIPCCL_TRY(put_parts(files, n, out, error));
    if (n == 1)
        snprintf(source, sizeof source, "From %s.", zipccl_report_schema(files[0]));
    else
        snprintf(source, sizeof source, "From %zu results.", n);
    zipccl_page_end(source, out);
    if (ferror(out))
        return zipccl_fail(error, ZIPCCL_ERR_IO, "page: %s", strerror(errno));
    return ZIPCCL_OK;
}
