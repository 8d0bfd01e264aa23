/*
 * report_reasons.c - the lines below the table: why, how sure, where it stops, against what
 *
 * Each sentence is derived from numbers of the result; what the result does not hold is not said.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/report/report.h"

#include "analysis/document.h"
#include "experiments/program/fold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A speedup below this is not sold as a gain. */
static const double little = 1.02;

static const char *op_title(enum zipccl_op op)
{
    static const char *const titles[ZIPCCL_NUM_OPS] = {
        [ZIPCCL_ALL_GATHER] = "all-gather",       [ZIPCCL_REDUCE_SCATTER] = "reduce-scatter",
        [ZIPCCL_ALL_REDUCE] = "all-reduce",       [ZIPCCL_ALLTOALL] = "all-to-all",
        [ZIPCCL_ALLTOALLV] = "uneven all-to-all", [ZIPCCL_SENDRECV] = "send-receive",
        [ZIPCCL_BROADCAST] = "broadcast",
    };

    return (unsigned)op < ZIPCCL_NUM_OPS ? titles[op] : "?";
}

static bool modes_present(const struct zipccl_replay_result *result)
{
    return result->steps[ZIPCCL_STEP_RAW].present && result->steps[ZIPCCL_STEP_ADAPTIVE].present;
}

bool zipccl_report_largest_gain(const struct zipccl_replay_result *result,
                                struct zipccl_report_gain *out)
{
    double gains[ZIPCCL_NUM_OPS] = {0}, total = 0;
    int best = 0;

    if (!modes_present(result))
        return false;
    for (size_t i = 0; i < result->nrows; i++) {
        const struct zipccl_result_row *row = &result->rows[i];
        double gain = row->exposed_raw_s - row->exposed_adaptive_s;

        gains[row->op] += gain;
        total += gain;
    }
    for (int op = 1; op < ZIPCCL_NUM_OPS; op++)
        if (gains[op] > gains[best])
            best = op;
    if (!(total > 0) || !(gains[best] > 0))
        return false;
    out->op = (enum zipccl_op)best;
    /* Other ops may have lost time; a share above all of the gain would puzzle the reader. */
    out->share = gains[best] >= total ? 1 : gains[best] / total;
    return true;
}

double zipccl_report_nic_share(const struct zipccl_replay_result *result)
{
    double step = result->steps[ZIPCCL_STEP_RAW].step_s;
    double exposed = result->steps[ZIPCCL_STEP_RAW].exposed_s;

    if (!result->steps[ZIPCCL_STEP_RAW].present || !(exposed > 0))
        return -1;
    for (size_t i = 0; i < result->nsensitivities; i++) {
        const struct zipccl_result_sensitivity *s = &result->sensitivities[i];

        if (strcmp(s->name, "nic.rate -10 %") != 0 || !(s->step_raw_s > 0))
            continue;
        /* Time that only the NIC bounds grows by 1/0.9 - 1. */
        double share = (s->step_raw_s - step) / (exposed * (1 / 0.9 - 1));
        return share < 0 ? 0 : share > 1 ? 1 : share;
    }
    return -1;
}

static void print_limit(const struct zipccl_replay_result *result, FILE *out)
{
    double nic = zipccl_report_nic_share(result);

    if (nic < 0)
        fputs(".", out);
    else if (nic > 0.8)
        fputs("; exposed communication is limited by the NIC.", out);
    else if (nic > 0.2)
        fprintf(out, "; %.0f %% of the exposed communication follows the NIC rate.", nic * 100);
    else
        fputs("; the NIC's rate is not what limits exposed communication.", out);
}

/* True if some call that could be compressed stays raw in the adaptive step. */
static bool chooser_kept_raw(const struct zipccl_replay_result *result)
{
    for (size_t i = 0; i < result->nrows; i++) {
        const struct zipccl_result_row *row = &result->rows[i];

        if (strcmp(row->strategy_compressed, row->strategy_raw) != 0 &&
            strcmp(row->strategy, row->strategy_raw) == 0)
            return true;
    }
    return false;
}

/* What the numbers allow to say: raw is the faster choice only where nothing beats it. */
static void print_no_gain(const struct zipccl_replay_result *result, FILE *out)
{
    const struct zipccl_result_step *steps = result->steps;
    const struct zipccl_result_step *compressed = &steps[ZIPCCL_STEP_COMPRESSED];
    double raw = steps[ZIPCCL_STEP_RAW].step_s;
    double saved = raw > 0 ? 1 - steps[ZIPCCL_STEP_ADAPTIVE].step_s / raw : 0;

    if (result->end_to_end_speedup >= little) {
        fprintf(out, "the step is %.2g %% shorter, but no collective's exposed time tells where",
                saved * 100);
        print_limit(result, out);
        return;
    }
    fputs("there is little to gain: ", out);
    if (!(result->exposed_comm_share > 0))
        fputs("compute hides all communication of the raw step", out);
    else if (result->exposed_comm_share < 0.02)
        fprintf(out, "only %.2g %% of the raw step is exposed communication",
                result->exposed_comm_share * 100);
    else if (saved > 1e-9)
        fprintf(out, "%s %.2g %% of the raw step",
                result->native ? "the fastest plans save" : "compressing where it pays saves",
                saved * 100);
    else if (chooser_kept_raw(result))
        fputs("raw is the faster choice here", out);
    else
        fputs("what can be compressed is a small part of the step", out);
    if (compressed->present && compressed->step_s > 0)
        fprintf(out, " (always compressing: %.2fx)", raw / compressed->step_s);
    print_limit(result, out);
}

/* True if measured steps tell the two modes apart: the middle halves of their steps do not meet. */
static bool tells_apart(const struct zipccl_result_step *a, const struct zipccl_result_step *b)
{
    return a->nmeasured > 1 && b->nmeasured > 1 && (a->high_s < b->low_s || b->high_s < a->low_s);
}

void zipccl_report_why(const struct zipccl_replay_result *result, FILE *out)
{
    struct zipccl_report_gain gain;

    if (!modes_present(result))
        return;
    if (result->measured &&
        !tells_apart(&result->steps[ZIPCCL_STEP_RAW], &result->steps[ZIPCCL_STEP_ADAPTIVE])) {
        fputs(result->steps[ZIPCCL_STEP_RAW].nmeasured > 1
                  ? "raw and adaptive differ by less than the steps of one mode among themselves."
                  : "not told by one step of each mode, whose spread is not known.",
              out);
        return;
    }
    if (!(result->end_to_end_speedup >= little) || !zipccl_report_largest_gain(result, &gain)) {
        print_no_gain(result, out);
        return;
    }
    fprintf(out, "%.0f %% of the gain is the %s", gain.share * 100, op_title(gain.op));
    print_limit(result, out);
}

static void print_why(const struct zipccl_replay_result *result, FILE *out)
{
    if (!modes_present(result))
        return;
    fputs(" Why: ", out);
    zipccl_report_why(result, out);
    fputc('\n', out);
}

/* "nic.rate -10 %" and "nic.rate +10 %" are one item: "nic.rate +-10 %: 1.18-1.21x". */
static bool is_pair(const struct zipccl_result_sensitivity *a,
                    const struct zipccl_result_sensitivity *b)
{
    const char *minus = strchr(a->name, '-'), *plus = strchr(b->name, '+');

    return minus != NULL && plus != NULL && minus - a->name == plus - b->name &&
           strncmp(a->name, b->name, (size_t)(minus - a->name)) == 0 &&
           strcmp(minus + 1, plus + 1) == 0;
}

static void print_how_sure(const struct zipccl_replay_result *result, FILE *out)
{
    const struct zipccl_result_sensitivity *s = result->sensitivities, *largest = NULL;
    double base = result->end_to_end_speedup, distance = 0;

    if (result->nsensitivities == 0)
        return;
    fputs(" How sure:", out);
    for (size_t i = 0; i < result->nsensitivities; i++) {
        const char *bar = i > 0 ? " |" : "";

        if (i + 1 < result->nsensitivities && is_pair(&s[i], &s[i + 1])) {
            int stem = (int)(strchr(s[i].name, '-') - s[i].name);
            double a = s[i].end_to_end_speedup, b = s[i + 1].end_to_end_speedup;

            fprintf(out, "%s %.*s+-%s: %.2f-%.2fx", bar, stem, s[i].name, s[i].name + stem + 1,
                    fmin(a, b), fmax(a, b));
            i++;
        } else {
            fprintf(out, "%s %s: %.2fx", bar, s[i].name, s[i].end_to_end_speedup);
        }
    }
    for (size_t i = 0; i < result->nsensitivities; i++)
        if (fabs(s[i].end_to_end_speedup - base) > distance) {
            distance = fabs(s[i].end_to_end_speedup - base);
            largest = &s[i];
        }
    if (largest != NULL && distance >= 0.005)
        fprintf(out, " | largest effect: %s", largest->name);
    fputc('\n', out);
}

/* A search that found a rate gives 'before' RATE 'after'; else its note is the whole sentence. */
static void print_search(double Bps, const char *note, const char *before, const char *after,
                         FILE *out)
{
    char rate[32];

    zipccl_searched_rate(Bps, rate, sizeof rate);
    if (Bps > 0 && strncmp(note, "raw is", 6) != 0)
        fprintf(out, " %s about %s per NIC%s%s.", before, rate, after,
                strstr(note, "not confirm") != NULL ? " (not confirmed at T1)" : "");
    else if (note[0] != '\0')
        fprintf(out, " %c%s.", note[0] >= 'a' && note[0] <= 'z' ? note[0] - 'a' + 'A' : note[0],
                note + 1);
}

static void print_break_even(const struct zipccl_replay_result *result, FILE *out)
{
    if (!(result->break_even_nic_Bps > 0) && result->break_even_note[0] == '\0' &&
        !(result->raw_match_nic_Bps > 0) && result->raw_match_note[0] == '\0')
        return;
    fputs(" Break-even:", out);
    print_search(result->break_even_nic_Bps, result->break_even_note, "gain < 2 % above", "", out);
    print_search(result->raw_match_nic_Bps, result->raw_match_note, "Raw would need", " to match",
                 out);
    fputc('\n', out);
}

/* True if a row before 'i' has its raw strategy, and its op too unless 'any_op'. */
static bool named_before(const struct zipccl_replay_result *result, size_t i, bool any_op)
{
    const struct zipccl_result_row *rows = result->rows;

    for (size_t k = 0; k < i; k++)
        if (strcmp(rows[k].strategy_raw, rows[i].strategy_raw) == 0 &&
            (any_op || rows[k].op == rows[i].op))
            return true;
    return false;
}

/* "native: alltoall, all_reduce; two_level: all_gather" */
static void print_raw_strategies(const struct zipccl_replay_result *result, FILE *out)
{
    const struct zipccl_result_row *rows = result->rows;

    for (size_t i = 0; i < result->nrows; i++) {
        const char *separator = ": ";

        if (named_before(result, i, true))
            continue;
        fprintf(out, "%s%s", i > 0 ? "; " : "",
                strcmp(rows[i].strategy_raw, "none") != 0 ? rows[i].strategy_raw
                                                          : "nothing to send");
        for (size_t k = i; k < result->nrows; k++)
            if (strcmp(rows[k].strategy_raw, rows[i].strategy_raw) == 0 &&
                !named_before(result, k, false)) {
                fprintf(out, "%s%s", separator, zipccl_op_name(rows[k].op));
                separator = ", ";
            }
    }
}

/* True if a real run compared what arrived. */
static bool is_checked(const struct zipccl_replay_result *result)
{
    for (size_t i = 0; i < result->nsettings; i++)
        if (strcmp(result->settings[i].name, "checked") == 0)
            return strcmp(result->settings[i].value, "no") != 0;
    return false;
}

/* Ops whose adaptive plan codes for ratio. */
static void print_max_ratio(const struct zipccl_replay_result *result, FILE *out)
{
    bool ops[ZIPCCL_NUM_OPS] = {false};
    const char *separator = " Max-ratio mode (slower, shorter messages): ";

    if (!result->steps[ZIPCCL_STEP_ADAPTIVE].present)
        return;
    for (size_t i = 0; i < result->nrows; i++) {
        const struct zipccl_result_row *row = &result->rows[i];

        if (strstr(row->strategy, " max-ratio") == NULL || ops[row->op])
            continue;
        ops[row->op] = true;
        fprintf(out, "%s%s", separator, zipccl_op_name(row->op));
        separator = ", ";
    }
    if (separator[0] == ',')
        fputs(".\n", out);
}

static void print_baseline(const struct zipccl_replay_result *result, FILE *out)
{
    fputs(result->native ? " raw = NCCL's own algorithms (" : " raw = best uncompressed plan (",
          out);
    print_raw_strategies(result, out);
    fputs(").\n MB = 1e6 bytes.", out);
    if (result->measured && is_checked(result))
        fputs(" Lossless: every element of one more step of each mode was compared.", out);
    else if (!result->measured && (result->source_share[0] > 0 || result->source_share[1] > 0))
        fputs(" Lossless: every sample round-tripped bit for bit.", out);
    else if (result->source_share[3] > 0)
        fputs(" The ratio was given: no sample was encoded.", out);
    fputc('\n', out);
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* True if 'row' has a type that the codec covers, and yet no compressed plan. */
static bool has_no_compressed_form(const struct zipccl_replay_result *result,
                                   const struct zipccl_result_row *row)
{
    const char *plan = row->strategy_compressed;

    /* Always then takes the best uncompressed plan, which may not be raw's. */
    return result->steps[ZIPCCL_STEP_COMPRESSED].present && zipccl_dtype_compressible(row->dtype) &&
           row->raw_bytes > 0 &&
           (strcmp(plan, row->strategy_raw) == 0 ||
            (result->native && (starts(plan, "native") || starts(plan, "raw "))));
}

static void print_share(double bytes, double all, FILE *out)
{
    fprintf(out, bytes >= 5e4 ? " %.1f MB (%.1f %%)" : " %.2g MB (%.1f %%)", bytes / 1e6,
            100 * bytes / all);
}

/* What travels raw whatever the chooser would like, and why. */
static void print_sent_raw(const struct zipccl_replay_result *result, FILE *out)
{
    double all = 0, formless = 0;
    bool ops[ZIPCCL_NUM_OPS] = {false};
    const char *separator = ": ";

    for (size_t i = 0; i < result->nrows; i++) {
        const struct zipccl_result_row *row = &result->rows[i];

        all += row->raw_bytes;
        if (!has_no_compressed_form(result, row))
            continue;
        formless += row->raw_bytes;
        ops[row->op] = true;
    }
    if (!(all > 0) || !(result->raw_dtype_bytes > 0 || formless > 0))
        return;
    fputs(" Sent raw:", out);
    if (result->raw_dtype_bytes > 0) {
        print_share(result->raw_dtype_bytes, all, out);
        fprintf(out, " of types without a codec: %s", result->raw_dtypes);
    }
    if (formless > 0) {
        fputs(result->raw_dtype_bytes > 0 ? ";" : "", out);
        print_share(formless, all, out);
        fputs(" of ops without a compressed plan", out);
        for (int op = 0; op < ZIPCCL_NUM_OPS; op++)
            if (ops[op]) {
                fprintf(out, "%s%s", separator, zipccl_op_name((enum zipccl_op)op));
                separator = ", ";
            }
    }
    fputs(".\n", out);
}

/* Messages of a few elements are mostly header: they say nothing. */
static bool has_class(const struct zipccl_result_row *row)
{
    return row->capacity_class != NULL && row->capacity_ratio > 1;
}

static bool in_class(const struct zipccl_result_row *row, const char *class)
{
    return has_class(row) && strcmp(row->capacity_class, class) == 0;
}

/* "settled (1.50): all_gather, alltoall", the ops of one class and its lowest ratio. */
static void print_class(const struct zipccl_replay_result *result, size_t first, FILE *out)
{
    const char *class = result->rows[first].capacity_class, *separator = ": ";
    double lowest = result->rows[first].capacity_ratio;
    bool named[ZIPCCL_NUM_OPS] = {false};

    for (size_t i = first; i < result->nrows; i++)
        if (in_class(&result->rows[i], class) && result->rows[i].capacity_ratio < lowest)
            lowest = result->rows[i].capacity_ratio;
    fprintf(out, " %s (%.2f)", class, lowest);
    for (size_t i = first; i < result->nrows; i++) {
        if (!in_class(&result->rows[i], class) || named[result->rows[i].op])
            continue;
        named[result->rows[i].op] = true;
        fprintf(out, "%s%s", separator, zipccl_op_name(result->rows[i].op));
        separator = ", ";
    }
}

/* The capacity classes of the compressed plans, and why some are wider than others. */
static void print_classes(const struct zipccl_replay_result *result, FILE *out)
{
    const char *separator = " Fixed messages, by class (raw / capacity):";
    bool wider = false;

    for (size_t i = 0; i < result->nrows; i++) {
        const struct zipccl_result_row *row = &result->rows[i];
        bool known = !has_class(row);

        for (size_t k = 0; k < i && !known; k++)
            known = in_class(&result->rows[k], row->capacity_class);
        wider = wider || (has_class(row) && row->overflows_settled);
        if (known)
            continue;
        fputs(separator, out);
        print_class(result, i, out);
        separator = ";";
    }
    if (separator[0] == ';')
        fputs(wider ? "; wider than settled where samples overflow it.\n" : ".\n", out);
}

/* Classes of samples stand in for the tensors of a trace that has none. */
static void print_interval(const struct zipccl_replay_result *result, FILE *out)
{
    const struct zipccl_result_interval *i =
        result->import != NULL ? &result->import->interval : NULL;

    if (i == NULL || !(i->low_ratio > 0))
        return;
    if (strcmp(i->low_class, i->high_class) == 0 && !(i->low_speedup < i->high_speedup) &&
        !(i->low_speedup > i->high_speedup))
        fprintf(out,
                " Ratios: the trace has no tensors; a class of captured samples stands in: %s, "
                "%.2f. It is the only one of the trace's types, so that the speedup has no "
                "interval.",
                i->low_class, i->low_ratio);
    else
        fprintf(out,
                " Ratios: the trace has no tensors; classes of captured samples stand in. If all "
                "were like the lowest class of their type, %.2f (%s): %.2fx; the highest, %.2f "
                "(%s): %.2fx.",
                i->low_ratio, i->low_class, i->low_speedup, i->high_ratio, i->high_class,
                i->high_speedup);
    fputs(" To record your own: docs/importing.md, \"Samples\", then --samples FILE.\n", out);
}

/* How far measured steps lie apart: what differences are worth. */
static void print_spread(const struct zipccl_replay_result *result, FILE *out)
{
    static const char *const names[ZIPCCL_NUM_STEPS] = {"raw", "compressed", "adaptive"};
    const char *separator = " Spread of steps (quartiles, ms):";
    bool single = false;

    for (int m = 0; m < ZIPCCL_NUM_STEPS; m++) {
        const struct zipccl_result_step *step = &result->steps[m];

        if (!step->present || step->nmeasured == 0)
            continue;
        single = single || step->nmeasured == 1;
        if (step->nmeasured > 1) {
            fprintf(out, "%s %s %.3g-%.3g", separator, names[m], step->low_s * 1e3,
                    step->high_s * 1e3);
            separator = ",";
        }
    }
    if (separator[0] == ',')
        fputs(".\n", out);
    else if (single)
        fputs(" Spread of steps: not known from one step of each mode; -n asks for more.\n", out);
}

static void print_recorded(const struct zipccl_replay_result *result, FILE *out)
{
    double recorded = result->step_time_recorded_s;
    double raw = result->steps[ZIPCCL_STEP_RAW].step_s;

    if (!(recorded > 0) || !result->steps[ZIPCCL_STEP_RAW].present)
        return;
    fprintf(out, " Recorded step %.1f ms, %s raw %.1f ms (%+.1f %%).\n", recorded * 1e3,
            result->measured ? "measured" : "simulated", raw * 1e3, 100 * (raw / recorded - 1));
}

/* A log of calls has no times: what it gives must not be read as a training step. */
static void print_no_compute(const struct zipccl_replay_result *result, FILE *out)
{
    const struct zipccl_result_step *raw = &result->steps[ZIPCCL_STEP_RAW];

    if (!result->measured && raw->present && !(raw->compute_s > 0) && raw->exposed_s > 0)
        fputs(
            " No compute: the trace is communication alone, so nothing hides it, and end to end is "
            "no speedup of a training step.\n",
            out);
}

static void print_reasons(const struct zipccl_replay_result *result, FILE *out)
{
    print_recorded(result, out);
    print_spread(result, out);
    print_why(result, out);
    print_no_compute(result, out);
    if (result->adaptive_note[0] != '\0')
        fprintf(out, " Adaptive: %s.\n", result->adaptive_note);
    print_how_sure(result, out);
    print_interval(result, out);
    print_break_even(result, out);
    print_sent_raw(result, out);
    print_max_ratio(result, out);
    print_classes(result, out);
    print_baseline(result, out);
    for (size_t i = 0; i < result->nwarnings; i++)
        fprintf(out, " WARNING: %s\n", result->warnings[i]);
}

void zipccl_report_reasons(const struct zipccl_replay_result *result, FILE *out)
{
    char *text = NULL;
    size_t n = 0;
    FILE *memory = open_memstream(&text, &n);

    if (memory == NULL) {
        print_reasons(result, out);
        return;
    }
    print_reasons(result, memory);
    if (fclose(memory) == 0)
        zipccl_fold(text, 2, out);
    free(text);
}
