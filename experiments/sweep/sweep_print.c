/*
 * sweep_print.c - a sweep as a table for people
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/sweep/sweep_print.h"

#include <math.h>
#include <string.h>

static const char *value_of(const struct zipccl_sweep *s, size_t index, size_t axis)
{
    return s->spec->axes[axis].values[zipccl_sweep_spec_choice(s->spec, index, axis)];
}

static size_t width_of(const struct zipccl_sweep_axis *axis)
{
    size_t width = strlen(axis->key);

    for (size_t i = 0; i < axis->n; i++)
        if (strlen(axis->values[i]) > width)
            width = strlen(axis->values[i]);
    return width;
}

static void print_fixed(const struct zipccl_sweep *s, FILE *out)
{
    bool any = false;

    for (size_t i = 0; i < s->spec->naxes; i++) {
        if (s->spec->axes[i].n > 1)
            continue;
        fprintf(out, "%s%s %s", any ? "; " : "fixed    ", s->spec->axes[i].key,
                s->spec->axes[i].values[0]);
        any = true;
    }
    if (any)
        fputc('\n', out);
}

/* Where ratios come from. */
static void print_ratios(const struct zipccl_sweep *s, FILE *out)
{
    if (zipccl_sweep_spec_role(s->spec, ZIPCCL_SWEEP_RATIO) != NULL) {
        fputs("ratios   as given, no codec was run\n", out);
        return;
    }
    for (size_t i = 0; i < s->ntensors; i++) {
        const char *slash = strrchr(s->tensors[i].path, '/');

        fprintf(out, "ratios   the codec on %s: %s\n",
                slash != NULL ? slash + 1 : s->tensors[i].path,
                s->tensors[i].origin[0] != '\0' ? s->tensors[i].origin : "it says no origin");
    }
    if (s->ntensors == 0)
        fputs("ratios   no captured tensors: generated Gaussian data stand in\n", out);
}

static void print_head(const struct zipccl_sweep *s, FILE *out)
{
    const struct zipccl_sweep_axis *clusters =
        zipccl_sweep_spec_role(s->spec, ZIPCCL_SWEEP_CLUSTER);
    static const char *const tiers[] = {"T0 (closed form)", "T1 (flows)", "T2 (messages)"};
    size_t nskipped = s->npoints - s->nruns;

    fprintf(out, "SIMULATED: tier %s. No number below was measured on a GPU.\n",
            tiers[s->options.replay.fidelity]);
    fprintf(out, "sweep    %zu combination%s: %zu run", s->npoints, s->npoints == 1 ? "" : "s",
            s->nruns - s->nfailed);
    if (s->nfailed > 0)
        fprintf(out, ", %zu failed", s->nfailed);
    if (nskipped > 0)
        fprintf(out, ", %zu skipped", nskipped);
    fprintf(out, "; %zu distinct steps; %.1f s\n", s->nsteps, s->wall_s);
    print_fixed(s, out);
    for (size_t i = 0; i < s->nclusters; i++)
        if (s->noted[i])
            fprintf(out, "codec    %s: %s\n", clusters->values[i], s->notes[i].codec_line);
    print_ratios(s, out);
    if (s->nmodels > 0)
        fputs("steps    made up by formula, nothing in them measured (docs/generating.md)\n", out);
}

static void put(double value, const char *format, int width, FILE *out)
    __attribute__((format(printf, 2, 0)));

static void put(double value, const char *format, int width, FILE *out)
{
    char text[40] = "-";

    if (isfinite(value))
        snprintf(text, sizeof text, format, value);
    fprintf(out, " %*s", width, text);
}

static double or_nan(double value, bool present)
{
    return present ? value : (double)NAN;
}

static void print_titles(const struct zipccl_sweep *s, FILE *out)
{
    fputc('\n', out);
    for (size_t i = 0; i < s->spec->naxes; i++)
        if (s->spec->axes[i].n > 1)
            fprintf(out, " %-*s", (int)width_of(&s->spec->axes[i]), s->spec->axes[i].key);
    fputs(" |   raw ms adaptive speedup  comm | exposed | tokens/s/GPU      | MFU %         |  "
          "memory | limit\n",
          out);
    for (size_t i = 0; i < s->spec->naxes; i++)
        if (s->spec->axes[i].n > 1)
            fprintf(out, " %*s", (int)width_of(&s->spec->axes[i]), "");
    fputs(" |                                  |  % step |      raw adaptive |    raw adaptive |  "
          "GB/GPU |\n",
          out);
}

static void print_row(const struct zipccl_sweep *s, const struct zipccl_sweep_point *p, FILE *out)
{
    const struct zipccl_sweep_outcome *o = &p->outcome;
    const struct zipccl_result_step *raw = &o->steps[ZIPCCL_STEP_RAW];
    const struct zipccl_result_step *adaptive = &o->steps[ZIPCCL_STEP_ADAPTIVE];

    for (size_t i = 0; i < s->spec->naxes; i++)
        if (s->spec->axes[i].n > 1)
            fprintf(out, " %-*s", (int)width_of(&s->spec->axes[i]), value_of(s, p->index, i));
    if (p->failed) {
        fprintf(out, " | FAILED: %.200s\n", p->error);
        return;
    }
    fputs(" |", out);
    put(or_nan(1e3 * raw->step_s, raw->present), "%.1f", 8, out);
    put(or_nan(1e3 * adaptive->step_s, adaptive->present), "%.1f", 8, out);
    put(or_nan(o->end_to_end_speedup, o->end_to_end_speedup > 0), "%.3f", 7, out);
    put(or_nan(o->comm_speedup, o->comm_speedup > 0), "%.2f", 5, out);
    fputs(" |", out);
    put(or_nan(100 * o->exposed_comm_share, raw->present), "%.1f", 7, out);
    fputs(" |", out);
    put(zipccl_sweep_tokens(p, ZIPCCL_STEP_RAW), "%.0f", 8, out);
    put(zipccl_sweep_tokens(p, ZIPCCL_STEP_ADAPTIVE), "%.0f", 8, out);
    fputs(" |", out);
    put(100 * zipccl_sweep_mfu(p, ZIPCCL_STEP_RAW), "%.1f", 6, out);
    put(100 * zipccl_sweep_mfu(p, ZIPCCL_STEP_ADAPTIVE), "%.1f", 8, out);
    fputs(" |", out);
    put(or_nan(p->memory / 1e9, p->memory > 0), p->fits ? "%.1f" : "%.1f!", 7, out);
    fprintf(out, " | %s", zipccl_sweep_limit_name(o->limit));
    if (o->limit != ZIPCCL_LIMIT_COMPUTE)
        fprintf(out, ": %s %s", zipccl_op_name(o->limit_op), o->limit_group);
    fputc('\n', out);
}

/* Of each reason how many, and the first. */
static void print_skipped(const struct zipccl_sweep *s, FILE *out)
{
    for (int k = 1; k < ZIPCCL_SWEEP_NUM_SKIPS; k++) {
        size_t i = 0;
        char which[160];

        if (s->nskipped[k] == 0)
            continue;
        while ((int)s->points[i].skip != k)
            i++;
        zipccl_sweep_spec_describe(s->spec, s->points[i].index, which, sizeof which);
        fprintf(out, " Skipped, %s: %zu, such as %s: %s\n",
                zipccl_sweep_skip_name((enum zipccl_sweep_skip)k), s->nskipped[k], which,
                s->points[i].reason);
    }
}

/* Values of an axis of which no combination could be run. */
static void print_lost_values(const struct zipccl_sweep *s, FILE *out)
{
    for (size_t a = 0; a < s->spec->naxes; a++)
        for (size_t v = 0; v < s->spec->axes[a].n; v++) {
            size_t n = 0;

            for (size_t i = 0; i < s->npoints; i++)
                n += s->points[i].skip == ZIPCCL_SWEEP_RUNS &&
                     zipccl_sweep_spec_choice(s->spec, i, a) == v;
            if (n == 0)
                fprintf(out, " No combination with %s %s can be run.\n", s->spec->axes[a].key,
                        s->spec->axes[a].values[v]);
        }
}

static void print_lines(const struct zipccl_sweep *s, const struct zipccl_sweep_lines *l, FILE *out)
{
    const struct zipccl_sweep_axis *axis = &s->spec->axes[l->axis];
    char least[40], most[40];

    zipccl_sweep_number(axis, l->least, least, sizeof least);
    zipccl_sweep_number(axis, l->most, most, sizeof most);
    fprintf(out, " Break-even along %s:", axis->key);
    if (l->ncrossings == 0)
        fputs(" none", out);
    else if (strcmp(least, most) == 0)
        fprintf(out, " near %s", least);
    else
        fprintf(out, " %s to %s", least, most);
    if (l->ncrossings > 0)
        fprintf(out, ", pays %s",
                l->nbelow == l->ncrossings ? "below"
                : l->nbelow == 0           ? "above"
                                           : "below in some lines, above in others");
    /* An interpolation over more than a doubling is a guess. */
    if (l->widest > 2.001)
        fprintf(out, " (a guess between values up to %.3g times apart)", l->widest);
    fprintf(out, "; of %zu line%s with all else equal %zu pay everywhere, %zu nowhere.\n",
            l->nlines, l->nlines == 1 ? "" : "s", l->always, l->never);
}

static void print_point(const struct zipccl_sweep *s, const char *what,
                        const struct zipccl_sweep_point *p, FILE *out)
{
    double tokens = zipccl_sweep_tokens(p, ZIPCCL_STEP_ADAPTIVE);
    char which[240];

    zipccl_sweep_spec_describe(s->spec, p->index, which, sizeof which);
    fprintf(out, " %s: %s: %.3fx end to end, %.2fx communication", what, which,
            p->outcome.end_to_end_speedup, p->outcome.comm_speedup);
    if (!isnan(tokens))
        fprintf(out, ", %.0f tokens/s/GPU", tokens);
    fputs(p->fits ? ".\n" : "; does not fit into memory.\n", out);
}

static void print_summary(const struct zipccl_sweep *s, const struct zipccl_sweep_summary *summary,
                          FILE *out)
{
    fputc('\n', out);
    if (summary->best != NULL) {
        print_point(s, "Largest gain", summary->best, out);
        if (summary->fastest != NULL)
            print_point(s, "Most tokens a GPU", summary->fastest, out);
        fprintf(out, " Compression pays 2 %% or more at %zu of %zu points.\n", summary->npays,
                summary->ncompared);
    }
    for (size_t i = 0; i < summary->nlines; i++)
        print_lines(s, &summary->lines[i], out);
    print_skipped(s, out);
    print_lost_values(s, out);
    if (s->nunfit > 0)
        fprintf(out, " %zu point%s not fit into memory (!), and %s kept.\n", s->nunfit,
                s->nunfit == 1 ? " does" : "s do", s->nunfit == 1 ? "is" : "are");
    fputs(
        " speedup = raw step / adaptive step; raw = best uncompressed plan; comm = the same of the "
        "sum of collectives.\n limit = what most exposed communication is; compute: less than 2 % "
        "of the step is exposed. MB = 1e6 bytes.\n",
        out);
}

void zipccl_sweep_print(const struct zipccl_sweep *s, const struct zipccl_sweep_summary *summary,
                        const struct zipccl_sweep_point *const *rows, size_t nrows, size_t most,
                        FILE *out)
{
    print_head(s, out);
    print_titles(s, out);
    for (size_t i = 0; i < nrows && i < most; i++)
        print_row(s, rows[i], out);
    if (nrows > most)
        fprintf(out, " ... %zu rows more\n", nrows - most);
    print_summary(s, summary, out);
}
