/*
 * plan_table.c - candidates, the reason for the choice, and the sizes at which it flips, for people
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/plan/plan_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const zipccl_plan_mode_names[] = {"raw", "compressed", "adaptive"};

const char *zipccl_plan_effort_name(enum zipccl_effort effort)
{
    return effort == ZIPCCL_EFFORT_RATIO ? "max" : "fast";
}

struct zipccl_plan_parts zipccl_plan_parts_of(const struct zipccl_plan_row *row)
{
    const struct zipccl_cost *cost = &row->cost;
    double rest = cost->total_s - cost->wire_s - cost->alpha_s;

    return (struct zipccl_plan_parts){cost->wire_s, cost->alpha_s, rest > 0 ? rest : 0};
}

double zipccl_plan_gain(const struct zipccl_plan_answer *answer)
{
    double chosen_s = answer->rows[answer->chosen].cost.total_s;

    return answer->best_raw == answer->nrows || !(chosen_s > 0)
               ? 0
               : answer->rows[answer->best_raw].cost.total_s / chosen_s;
}

/* Bytes in the unit of their size. */
static const char *bytes_text(double nbytes, char *text, size_t size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    unsigned u = 0;

    for (; nbytes >= 1024 && u < 4; u++)
        nbytes /= 1024;
    snprintf(text, size,
             nbytes < 10 && u > 0 ? "%.2f %s"
             : nbytes < 100       ? "%.1f %s"
                                  : "%.0f %s",
             nbytes, units[u]);
    return text;
}

static void print_question(const struct zipccl_plan_report *r, FILE *out)
{
    const struct zipccl_plan_query *q = r->query;
    const struct zipccl_plan_answer *a = r->answer;
    bool reduces = zipccl_is_reduction(q->call.op);
    char size[32];

    fprintf(out, "PREDICTED: tier T0, closed form. No number below was measured%s.\n",
            r->learnt != NULL ? ", but what a run has learnt" : "");
    fprintf(out, "call     %s%s%s of %zu %s elements, %s; %u rank%s on %u node%s, mode %s\n",
            zipccl_op_name(q->call.op), reduces ? " " : "",
            reduces ? zipccl_redop_name(q->call.redop) : "", q->call.count,
            zipccl_dtype_name(q->call.dtype), bytes_text((double)a->size_bytes, size, sizeof size),
            a->nranks, a->nranks == 1 ? "" : "s", a->nnodes, a->nnodes == 1 ? "" : "s",
            zipccl_plan_mode_names[q->mode]);
    fprintf(out, "cluster  %s: %s\n", r->cluster->name, r->cluster->description);
    if (!zipccl_dtype_compressible(q->call.dtype))
        fprintf(out, "ratio    1: %s travels raw\n", zipccl_dtype_name(q->call.dtype));
    else if (q->input != NULL)
        fprintf(out, "ratio    %.4f (max effort %.4f, worst piece %.4f): tensors of %s\n", q->ratio,
                q->max_ratio, q->worst, q->input);
    else if (q->ratio > 0)
        fprintf(out, "ratio    %.4g: --ratio\n", q->ratio);
    else
        fprintf(out, "ratio    that of Gaussian data, 1.504 for long bf16 messages\n");
}

static void print_row(const struct zipccl_plan_answer *a, size_t i, FILE *out)
{
    const struct zipccl_plan_row *row = &a->rows[i];
    const struct zipccl_cost *c = &row->cost;

    fprintf(out, " %c %-24s %6u %-6s %-7s %12.1f %12.1f %10.1f %11.1f %8.1f %10.3f\n",
            i == a->chosen     ? '>'
            : i == a->best_raw ? 'r'
                               : ' ',
            row->strategy, row->nchunks,
            row->compressed ? zipccl_plan_effort_name(row->effort) : "-",
            row->capacity_class != ZIPCCL_NO_CLASS ? zipccl_class_name(row->capacity_class) : "-",
            1e6 * c->total_s, 1e6 * c->wire_s, 1e6 * c->alpha_s, 1e6 * (c->codec_s + c->reduce_s),
            1e6 * c->fence_s, 1e-6 * (double)c->wire_bytes);
}

static void put_change(double seconds, const char *what, const char **comma, FILE *out)
{
    if (fabs(seconds) < 0.05e-6)
        return;
    fprintf(out, "%s%.1f us %s %s", *comma, 1e6 * fabs(seconds), seconds < 0 ? "less" : "more",
            what);
    *comma = ", ";
}

/* What the chosen one gains and loses against the other, term by term, and what bounds it. */
static void print_reason(const struct zipccl_plan_answer *a, FILE *out)
{
    const struct zipccl_plan_row *chosen = &a->rows[a->chosen];
    struct zipccl_plan_parts own = zipccl_plan_parts_of(chosen), other;
    double most = own.wire_s, total = chosen->cost.total_s;
    const char *comma = "", *bound = "bytes on the wire";
    size_t rival = a->chosen == a->best_raw ? a->nrows : a->best_raw;

    /* Raw was chosen: against the best that compresses. */
    for (size_t i = 0; a->chosen == a->best_raw && i < a->nrows && rival == a->nrows; i++)
        if (a->rows[i].compressed)
            rival = i;
    if (own.alpha_s > most) {
        most = own.alpha_s;
        bound = "latencies";
    }
    if (own.codec_s > most) {
        most = own.codec_s;
        bound = "codec, additions and copies";
    }
    fputs("why      ", out);
    if (rival < a->nrows) {
        other = zipccl_plan_parts_of(&a->rows[rival]);
        fprintf(out, "than %s, %u chunk%s: ", a->rows[rival].strategy, a->rows[rival].nchunks,
                a->rows[rival].nchunks == 1 ? "" : "s");
        put_change(own.wire_s - other.wire_s, "for bytes on the wire", &comma, out);
        put_change(own.alpha_s - other.alpha_s, "of latencies", &comma, out);
        put_change(own.codec_s - other.codec_s, "of codec, additions and copies that nothing hides",
                   &comma, out);
        fputs(comma[0] == '\0' ? "the same; " : "; ", out);
    }
    fprintf(out, "%.0f %% of its time is %s\n", total > 0 ? 100 * most / total : 0, bound);
}

static void print_choice(const struct zipccl_plan_answer *a, FILE *out)
{
    const struct zipccl_plan_row *chosen = &a->rows[a->chosen];
    double gain = zipccl_plan_gain(a);

    fprintf(out, "chosen   %s, %u chunk%s: %.1f us", chosen->strategy, chosen->nchunks,
            chosen->nchunks == 1 ? "" : "s", 1e6 * chosen->cost.total_s);
    if (a->chosen == a->best_raw)
        fputs(", the best uncompressed plan\n", out);
    else if (gain > 0)
        fprintf(out, "; the best uncompressed plan, %s, takes %.1f us: %.2fx\n",
                a->rows[a->best_raw].strategy, 1e6 * a->rows[a->best_raw].cost.total_s, gain);
    else
        fputc('\n', out);
    print_reason(a, out);
}

static void print_flips(const struct zipccl_plan_answer *a, bool pairs, FILE *out)
{
    char size[32];

    if (pairs) {
        fprintf(out,
                "pairs    a communicator takes one strategy for all pairs of a type, the best for "
                "%zu elements each: %s%s\n",
                a->flips[0].count, a->flips[0].family,
                a->flips[0].effort == ZIPCCL_EFFORT_RATIO ? ", max effort" : "");
        return;
    }
    fputs("flips    between 1 KiB and 1 GiB, same ranks:\n", out);
    for (size_t i = 0; i < a->nflips; i++)
        fprintf(out, "         from %9s (count %zu): %s%s\n",
                bytes_text((double)a->flips[i].size_bytes, size, sizeof size), a->flips[i].count,
                a->flips[i].family,
                a->flips[i].effort == ZIPCCL_EFFORT_RATIO ? ", max effort" : "");
}

static void print_pairs_learnt(const struct zipccl_plan_learnt *l, FILE *out)
{
    const char *comma = ": ";

    fprintf(out, "messages to and from peers in %zu classes", l->npairs);
    for (int c = ZIPCCL_NO_CLASS; c < ZIPCCL_NUM_CLASSES; c++) {
        size_t n = l->pairs_in[c - ZIPCCL_NO_CLASS];

        if (n == 0)
            continue;
        fprintf(out, "%s%zu %s", comma, n, zipccl_class_name(c));
        comma = ", ";
    }
    fputc('\n', out);
}

static void print_call_learnt(const struct zipccl_state_even *e, FILE *out)
{
    const struct zipccl_trials *t = &e->trials;

    fprintf(out, "%llu calls; ", (unsigned long long)e->state.calls);
    if (t->on)
        fprintf(out, "%s in use after %llu trial%s and %u change%s\n", zipccl_kind_name(t->now),
                (unsigned long long)t->ntrials, t->ntrials != 1 ? "s" : "", t->changes,
                t->changes != 1 ? "s" : "");
    else
        fputs("kinds of plans are not compared\n", out);
    for (int k = 0; k < ZIPCCL_NUM_KINDS && t->on; k++)
        if (t->kinds[k].ns > 0)
            fprintf(out, "         %-10s measured %.1f us, predicted there %.1f us\n",
                    zipccl_kind_name(k), 1e-3 * (double)t->kinds[k].ns,
                    1e-3 * (double)t->kinds[k].predicted_ns);
    fprintf(out, "         class %s: %s", zipccl_class_name(e->state.now),
            zipccl_class_reason_text(e->state.reason));
    if (e->coded_ppm > 0)
        fprintf(out, "; ratio %.3f with %s effort", 1e6 / e->coded_ppm,
                zipccl_plan_effort_name(e->effort));
    fputc('\n', out);
}

static void print_learnt(const struct zipccl_plan_learnt *l, FILE *out)
{
    fprintf(out, "learnt   rank %u of %s: ", l->state.rank, l->path);
    if (l->call != NULL)
        print_call_learnt(l->call, out);
    else if (l->npairs > 0)
        print_pairs_learnt(l, out);
    else
        fputs("nothing of this call\n", out);
}

void zipccl_plan_print_answer(const struct zipccl_plan_report *report, bool steps, FILE *out)
{
    const struct zipccl_plan_answer *a = report->answer;
    enum zipccl_op op = report->query->call.op;

    print_question(report, out);
    fprintf(out, "\n   %-24s %6s %-6s %-7s %12s %12s %10s %11s %8s %10s\n", "candidate", "chunks",
            "effort", "class", "time us", "wire us", "alpha us", "codec us", "fence us", "sent MB");
    for (size_t i = 0; i < a->nrows; i++)
        print_row(a, i, out);
    fputs("   > chosen, r the best uncompressed; codec: of the busiest rank with its additions, "
          "hidden "
          "or not; sent: per rank, MB = 1e6 bytes\n\n",
          out);
    print_choice(a, out);
    print_flips(a, zipccl_is_uneven(op), out);
    if (report->learnt != NULL)
        print_learnt(report->learnt, out);
    if (steps) {
        fputc('\n', out);
        zipccl_plan_print(a->plan, out);
    }
}
