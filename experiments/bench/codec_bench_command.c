/*
 * codec_bench_command.c - zipccl codec bench: runs the bench, prints the table, writes the files
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/bench/bench_options.h"
#include "experiments/bench/bench_report.h"
#include "experiments/codec/codec_command.h"
#include "experiments/program/output.h"
#include "experiments/program/program.h"
#include "experiments/program/progress.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char program[] = "zipccl";

enum { FILE_JSON, FILE_CSV, NUM_FILES };

static void note_date(char *text, size_t size)
{
    time_t now = time(NULL);
    struct tm utc;
    if (!gmtime_r(&now, &utc) || strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        snprintf(text, size, "unknown");
}

/* The command line in one text, to be freed. */
static char *command_line(int argc, char **argv)
{
    size_t size = sizeof "zipccl codec bench";
    for (int i = 1; i < argc; i++)
        size += strlen(argv[i]) + 1;
    char *text = malloc(size), *end = text;
    if (!text)
        return NULL;
    end += sprintf(end, "zipccl codec bench");
    for (int i = 1; i < argc; i++)
        end += sprintf(end, " %s", argv[i]);
    return text;
}

/* Refuse before anything is measured: an output that cannot be, is the input, or is two in one. */
static zipccl_status check_outputs(const struct zipccl_bench_command *command,
                                   struct zipccl_output outputs[NUM_FILES],
                                   struct zipccl_error *error)
{
    const char *const paths[NUM_FILES] = {command->json, command->csv};
    for (int i = 0; i < NUM_FILES; i++) {
        ZIPCCL_TRY(zipccl_output_check(&outputs[i], paths[i], error));
        ZIPCCL_TRY(zipccl_output_spare(&outputs[i], command->bench.path, error));
    }
    return zipccl_output_differ(&outputs[FILE_JSON], &outputs[FILE_CSV], error);
}

static zipccl_status write_outputs(const struct zipccl_bench_run *run,
                                   struct zipccl_output outputs[NUM_FILES],
                                   struct zipccl_error *error)
{
    for (int i = 0; i < NUM_FILES; i++) {
        ZIPCCL_TRY(zipccl_output_open(&outputs[i], error));
        if (outputs[i].file)
            ZIPCCL_TRY(i == FILE_JSON ? zipccl_bench_json(run, outputs[i].file, error)
                                      : zipccl_bench_csv(run, outputs[i].file, error));
        ZIPCCL_TRY(zipccl_output_close(&outputs[i], error));
    }
    for (int i = 0; i < NUM_FILES; i++)
        ZIPCCL_TRY(zipccl_output_commit(&outputs[i], error));
    return ZIPCCL_OK;
}

/* Rows and the bar share a terminal. */
struct screen {
    struct zipccl_bench_run *run;
    struct zipccl_progress progress;
};

static void show_row(void *context, const struct zipccl_bench_row *row)
{
    struct screen *screen = context;
    zipccl_progress_end(&screen->progress);
    /* Not earlier: a file that cannot be read gives an error and no half table. */
    if (screen->run->nrows == 0)
        zipccl_bench_print_head(screen->run);
    zipccl_bench_add(screen->run, row);
}

static zipccl_status measure(const struct zipccl_bench_command *command,
                             struct zipccl_bench_run *run, struct zipccl_error *error)
{
    struct screen screen = {.run = run};
    struct zipccl_machine after;
    zipccl_progress_start(&screen.progress, "bench", !command->quiet);
    zipccl_status status = zipccl_codec_bench(&command->bench, show_row, &screen,
                                              zipccl_progress_update, &screen.progress, error);
    zipccl_progress_end(&screen.progress);
    zipccl_machine_read(&after);
    run->load_after = after.load;
    if (status == ZIPCCL_OK)
        zipccl_bench_print_tail(run);
    return status;
}

static bool any_wrong(const struct zipccl_bench_run *run)
{
    for (size_t i = 0; i < run->nrows; i++)
        if (run->rows[i].wrong)
            return true;
    return false;
}

int zipccl_codec_bench_command(int argc, char **argv)
{
    struct zipccl_bench_command command;
    struct zipccl_output outputs[NUM_FILES] = {{.path = NULL}, {.path = NULL}};
    struct zipccl_error error = {""};
    bool helped;
    int code = zipccl_bench_parse(argc, argv, &command, &helped);
    if (code != ZIPCCL_EXIT_OK || helped)
        return code;

    char *line = command_line(argc, argv);
    struct zipccl_bench_run run = {
        .options = &command.bench, .input = command.input, .command = line ? line : ""};
    zipccl_status status = check_outputs(&command, outputs, &error);
    note_date(run.date, sizeof run.date);
    zipccl_machine_read(&run.machine);
    run.table =
        command.quiet || outputs[FILE_JSON].standard || outputs[FILE_CSV].standard ? NULL : stdout;
    if (status == ZIPCCL_OK)
        status = measure(&command, &run, &error);
    if (status == ZIPCCL_OK)
        status = write_outputs(&run, outputs, &error);
    for (int i = 0; i < NUM_FILES; i++)
        zipccl_output_discard(&outputs[i]);
    if (status != ZIPCCL_OK)
        code = zipccl_print_error(program, status, &error);
    else if (any_wrong(&run)) {
        fprintf(stderr, "%s: codec bench: elements came back wrong, see #wrong\n", program);
        code = ZIPCCL_EXIT_FAILED;
    }
    free(run.rows);
    free(line);
    return code;
}
