/*
 * report_table.c - the replay's table: inputs, rows and step, in columns as wide as they need
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/report/report.h"

#include "experiments/program/fold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUM_COLUMNS = 13, CELL = 32, GROUP_WIDTH = 14 };

enum column {
    COL_OP,
    COL_GROUP,
    COL_DTYPE,
    COL_CALLS,
    COL_RAW_MB,
    COL_WIRE_MB,
    COL_RATIO,
    COL_TIME_RAW,
    COL_TIME_ALWAYS,
    COL_TIME_ADAPTIVE,
    COL_SPEEDUP,
    COL_EXPOSED_RAW,
    COL_EXPOSED_ADAPTIVE
};

static const char *const column_names[NUM_COLUMNS] = {
    "op",  "group",  "dtype",    "calls",   "raw MB", "wire MB", "ratio",
    "raw", "always", "adaptive", "speedup", "raw",    "adaptive"};

/* Columns up to and including 'last' belong to a section with a title of its own. */
static const struct {
    const char *title;
    enum column first, last;
} sections[] = {{"per rank and step", COL_OP, COL_RATIO},
                {"time, ms (sum of calls)", COL_TIME_RAW, COL_SPEEDUP},
                {"exposed ms", COL_EXPOSED_RAW, COL_EXPOSED_ADAPTIVE}};

struct cells {
    char text[NUM_COLUMNS][CELL];
};

/* One decimal; three where one would show a small value as nothing; '-' where there is none. */
static void put_number(char out[CELL], double value)
{
    if (!isfinite(value) || value < 0)
        snprintf(out, CELL, "-");
    else if (value >= 0.0005 && value < 0.05)
        snprintf(out, CELL, "%.3f", value);
    else if (value >= 1e15)
        snprintf(out, CELL, "%.3e", value);
    else
        snprintf(out, CELL, "%.1f", value);
}

static void put_ratio(char out[CELL], double value)
{
    if (!isfinite(value) || value <= 0)
        snprintf(out, CELL, "-");
    else
        snprintf(out, CELL, "%.2f", value);
}

/* Keep both ends of a long name: "tensor_parallel_3" and "tensor_parallel_4" differ at the end. */
static void put_name(char out[CELL], const char *name, size_t width)
{
    size_t n = strlen(name);

    if (n <= width) {
        snprintf(out, CELL, "%s", name);
        return;
    }
    size_t head = (width - 1) / 2, tail = width - 1 - head;
    snprintf(out, CELL, "%.*s~%s", (int)head, name, name + n - tail);
}

static double present(const struct zipccl_replay_result *result, int mode, double value)
{
    return result->steps[mode].present ? value : -1;
}

static void put_times(const struct zipccl_replay_result *result,
                      const struct zipccl_result_row *row, struct cells *cells)
{
    double raw = present(result, ZIPCCL_STEP_RAW, row->time_raw_s);
    double always = present(result, ZIPCCL_STEP_COMPRESSED, row->time_compressed_s);
    double adaptive = present(result, ZIPCCL_STEP_ADAPTIVE, row->time_adaptive_s);
    double other = result->steps[ZIPCCL_STEP_ADAPTIVE].present ? adaptive : always;

    put_number(cells->text[COL_TIME_RAW], raw * 1e3);
    put_number(cells->text[COL_TIME_ALWAYS], always * 1e3);
    put_number(cells->text[COL_TIME_ADAPTIVE], adaptive * 1e3);
    put_ratio(cells->text[COL_SPEEDUP], raw > 0 && other > 0 ? raw / other : -1);
    put_number(cells->text[COL_EXPOSED_RAW],
               1e3 * present(result, ZIPCCL_STEP_RAW, row->exposed_raw_s));
    put_number(cells->text[COL_EXPOSED_ADAPTIVE],
               1e3 * present(result, ZIPCCL_STEP_ADAPTIVE, row->exposed_adaptive_s));
}

static void put_row(const struct zipccl_replay_result *result, const struct zipccl_result_row *row,
                    struct cells *cells)
{
    put_name(cells->text[COL_OP], zipccl_op_name(row->op), CELL - 1);
    put_name(cells->text[COL_GROUP], row->group, GROUP_WIDTH);
    put_name(cells->text[COL_DTYPE], zipccl_dtype_name(row->dtype), CELL - 1);
    snprintf(cells->text[COL_CALLS], CELL, "%llu", (unsigned long long)row->calls);
    put_number(cells->text[COL_RAW_MB], row->raw_bytes / 1e6);
    put_number(cells->text[COL_WIRE_MB], row->wire_bytes / 1e6);
    put_ratio(cells->text[COL_RATIO], row->ratio);
    put_times(result, row, cells);
}

static void put_total(const struct zipccl_replay_result *result, struct cells *cells)
{
    struct zipccl_result_row sum = {0};

    for (size_t i = 0; i < result->nrows; i++) {
        const struct zipccl_result_row *row = &result->rows[i];

        sum.calls += row->calls;
        sum.raw_bytes += row->raw_bytes;
        sum.wire_bytes += row->wire_bytes;
        sum.time_raw_s += row->time_raw_s;
        sum.time_compressed_s += row->time_compressed_s;
        sum.time_adaptive_s += row->time_adaptive_s;
        sum.exposed_raw_s += row->exposed_raw_s;
        sum.exposed_adaptive_s += row->exposed_adaptive_s;
    }
    sum.ratio = sum.wire_bytes > 0 ? sum.raw_bytes / sum.wire_bytes : -1;
    put_row(result, &sum, cells);
    snprintf(cells->text[COL_OP], CELL, "total");
    cells->text[COL_GROUP][0] = cells->text[COL_DTYPE][0] = '\0';
}

static void print_cells(const struct cells *cells, const int widths[NUM_COLUMNS], FILE *out)
{
    for (int c = 0; c < NUM_COLUMNS; c++) {
        if (c == COL_TIME_RAW || c == COL_EXPOSED_RAW)
            fputs(" |", out);
        if (c <= COL_DTYPE)
            fprintf(out, " %-*s", widths[c], cells->text[c]);
        else
            fprintf(out, " %*s", widths[c], cells->text[c]);
    }
    fputc('\n', out);
}

static void print_section_titles(const int widths[NUM_COLUMNS], FILE *out)
{
    for (size_t s = 0; s < sizeof sections / sizeof *sections; s++) {
        int room = 0;

        for (int c = sections[s].first; c <= (int)sections[s].last; c++)
            room += widths[c] + 1;
        if (s == 0)
            fprintf(out, "%*s", room, sections[s].title);
        else
            fprintf(out, " | %s%*s", sections[s].title,
                    s == 1 ? room - 1 - (int)strlen(sections[s].title) : 0, "");
    }
    fputc('\n', out);
}

static void print_rows(const struct zipccl_replay_result *result, FILE *out)
{
    size_t n = result->nrows + 2;
    struct cells *all = calloc(n, sizeof *all);
    int widths[NUM_COLUMNS] = {0};

    if (all == NULL)
        return;
    for (int c = 0; c < NUM_COLUMNS; c++)
        snprintf(all[0].text[c], CELL, "%s", column_names[c]);
    for (size_t i = 0; i < result->nrows; i++)
        put_row(result, &result->rows[i], &all[1 + i]);
    put_total(result, &all[n - 1]);

    for (size_t i = 0; i < n; i++)
        for (int c = 0; c < NUM_COLUMNS; c++)
            if ((int)strlen(all[i].text[c]) > widths[c])
                widths[c] = (int)strlen(all[i].text[c]);
    /* The second section's title must fit, so that the bars stay under each other. */
    int room = 3 + widths[COL_TIME_RAW] + widths[COL_TIME_ALWAYS] + widths[COL_TIME_ADAPTIVE] +
               widths[COL_SPEEDUP];
    if (room < (int)strlen(sections[1].title))
        widths[COL_TIME_RAW] += (int)strlen(sections[1].title) - room;

    print_section_titles(widths, out);
    for (size_t i = 0; i < n; i++)
        print_cells(&all[i], widths, out);
    free(all);
}

static void print_step_line(const struct zipccl_replay_result *result, const char *name,
                            const double values[ZIPCCL_NUM_STEPS], const char *note, FILE *out)
{
    fprintf(out, " %-21s", name);
    for (int m = 0; m < ZIPCCL_NUM_STEPS; m++) {
        char cell[CELL];

        put_number(cell, 1e3 * present(result, m, values[m]));
        fprintf(out, " %8s", cell);
    }
    fprintf(out, "%s%s\n", note[0] != '\0' ? "   " : "", note);
}

static void step_note(const struct zipccl_replay_result *result, char *note, size_t size)
{
    const struct zipccl_result_step *steps = result->steps;

    note[0] = '\0';
    if (result->end_to_end_speedup > 0 && result->comm_speedup > 0)
        snprintf(note, size, "=> %.2fx end to end, %.2fx communication", result->end_to_end_speedup,
                 result->comm_speedup);
    else if (steps[ZIPCCL_STEP_RAW].present && steps[ZIPCCL_STEP_COMPRESSED].present &&
             steps[ZIPCCL_STEP_COMPRESSED].step_s > 0)
        snprintf(note, size, "=> %.2fx end to end, always compressed",
                 steps[ZIPCCL_STEP_RAW].step_s / steps[ZIPCCL_STEP_COMPRESSED].step_s);
}

static void print_step(const struct zipccl_replay_result *result, FILE *out)
{
    double compute[ZIPCCL_NUM_STEPS], slow[ZIPCCL_NUM_STEPS], exposed[ZIPCCL_NUM_STEPS];
    double wait[ZIPCCL_NUM_STEPS], step[ZIPCCL_NUM_STEPS];
    char note[96];

    for (int m = 0; m < ZIPCCL_NUM_STEPS; m++) {
        compute[m] = result->steps[m].compute_s;
        slow[m] = result->steps[m].codec_slow_s;
        exposed[m] = result->steps[m].exposed_s;
        wait[m] = result->steps[m].wait_s;
        step[m] = result->steps[m].step_s;
    }
    snprintf(note, sizeof note, "step, ms (%s)", result->measured ? "measured" : "simulated");
    fprintf(out, " %-21s %8s %8s %8s\n", note, "raw", "always", "adaptive");
    print_step_line(result, "compute", compute, "", out);
    snprintf(note, sizeof note, "%u SMs and HBM share while it runs", result->codec_sms);
    print_step_line(result, "codec slows compute", slow, result->codec_sms > 0 ? note : "", out);
    snprintf(note, sizeof note, "%.1f %% of the raw step", result->exposed_comm_share * 100);
    print_step_line(result, "exposed communication", exposed,
                    result->steps[ZIPCCL_STEP_RAW].present ? note : "", out);
    print_step_line(result, "wait for late ranks", wait, "", out);
    step_note(result, note, sizeof note);
    print_step_line(result, "step", step, note, out);
}

/* Value of the first setting with this name; NULL if there is none. */
static const char *setting(const struct zipccl_replay_result *result, const char *name)
{
    for (size_t i = 0; i < result->nsettings; i++)
        if (strcmp(result->settings[i].name, name) == 0)
            return result->settings[i].value;
    return NULL;
}

static void print_banner(const struct zipccl_replay_result *result, FILE *out)
{
    const char *simgrid = setting(result, "simulator");
    bool messages = strcmp(result->fidelity, "t2") == 0;
    const char *model = setting(result, messages ? "network/model" : "host/model");
    const char *seed = setting(result, "seed");

    if (result->measured) {
        fputs("MEASURED.\n", out);
        return;
    }
    if (strcmp(result->fidelity, "t0") == 0) {
        fputs("SIMULATED: tier T0 (closed form; groups of a set share NICs, no other contention)",
              out);
    } else {
        fputs(messages ? "SIMULATED: tier T2 (messages)" : "SIMULATED: tier T1 (flows)", out);
        if (simgrid != NULL)
            fprintf(out, ", %s%s%s", simgrid, model != NULL ? " " : "", model != NULL ? model : "");
        if (seed != NULL)
            fprintf(out, ", seed %s", seed);
    }
    fputs(". No number below was measured on a GPU.\n", out);
}

static void print_ratios(const struct zipccl_replay_result *result, FILE *out)
{
    static const char *const sources[5] = {"sized by captured tensors", "by a class of samples",
                                           "by the fitted model", "by the ratio given", "sent raw"};
    const char *separator = "";

    fputs("ratios   ", out);
    for (int i = 0; i < 5; i++) {
        if (!(result->source_share[i] >= 0.0005))
            continue;
        fprintf(out, "%s%.1f %%%s %s", separator, result->source_share[i] * 100,
                separator[0] == '\0' ? " of bytes" : "", sources[i]);
        separator = ", ";
    }
    fputs(separator[0] == '\0' ? "no bytes compressed\n" : "\n", out);
    for (size_t i = 0; i < result->nassumptions; i++)
        if (strcmp(result->assumptions[i].name, ZIPCCL_NOTE_SAMPLES) == 0)
            fprintf(out, "         tensors of %s\n", result->assumptions[i].value);
}

static void write_inputs(const struct zipccl_replay_result *result, FILE *out)
{
    uint64_t calls = 0;

    for (size_t i = 0; i < result->nrows; i++)
        calls += result->rows[i].calls;
    fprintf(out, "trace    %s: %s; %u ranks, 1 step\n", result->trace_name, result->trace_model,
            result->nranks);
    fprintf(out, "         %s%s\n", result->trace_provenance,
            result->step_time_recorded_s < 0 ? " (no recorded step time to compare with)" : "");
    fprintf(out, "cluster  %s: %s\n", result->cluster_name, result->cluster_line);
    fprintf(out, "codec    %s\n", result->codec_line);
    print_ratios(result, out);
    fprintf(out, "replay   %llu collectives per rank, %.1f s\n\n", (unsigned long long)calls,
            result->wall_s);
}

static void print_inputs(const struct zipccl_replay_result *result, FILE *out)
{
    char *text = NULL;
    size_t n = 0;
    FILE *memory = open_memstream(&text, &n);

    if (memory == NULL) {
        write_inputs(result, out);
        return;
    }
    write_inputs(result, memory);
    if (fclose(memory) == 0)
        zipccl_fold(text, 9, out);
    free(text);
}

static void print_step_summary(const struct zipccl_replay_result *result, FILE *out)
{
    static const char *const names[ZIPCCL_NUM_STEPS] = {"raw", "always compressed", "adaptive"};
    const char *separator = "";
    char note[96];

    fprintf(out, "step (%s)", result->measured ? "measured" : "simulated");
    for (int m = 0; m < ZIPCCL_NUM_STEPS; m++) {
        char cell[CELL];

        if (!result->steps[m].present)
            continue;
        put_number(cell, result->steps[m].step_s * 1e3);
        fprintf(out, "%s %s %s ms", separator, names[m], cell);
        separator = ",";
    }
    step_note(result, note, sizeof note);
    fprintf(out, "%s%s\n", note[0] != '\0' ? " " : "", note);
}

void zipccl_report_table(const struct zipccl_replay_result *result, bool summary, FILE *out)
{
    print_banner(result, out);
    if (summary) {
        fprintf(out, "trace    %s on %s: %s\n", result->trace_name, result->cluster_name,
                result->cluster_line);
        print_step_summary(result, out);
    } else {
        print_inputs(result, out);
        print_rows(result, out);
        fputc('\n', out);
        print_step(result, out);
        fputc('\n', out);
    }
    zipccl_report_reasons(result, out);
}
