/*
 * zipccl.c - the front command: offline work built in, the rest in programs beside it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/bundle/bundle_command.h"
#include "experiments/cluster/cluster_command.h"
#include "experiments/codec/codec_command.h"
#include "experiments/compare/compare_command.h"
#include "experiments/plan/plan_command.h"
#include "experiments/program/program.h"
#include "experiments/report/report_command.h"
#include "experiments/trace/trace_command.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const char program[] = "zipccl";

static int run_perf(int argc, char **argv);
/* The program for --on 'on'; only one is linked with NCCL. */
static const char *program_on(const char *on)
{
    if (strcmp(on, "sim") == 0)
        return "zipccl-sim";
    return strcmp(on, "nccl") == 0 ? "zipccl-perf-nccl" : "zipccl-perf";
}

static int run_replay(int argc, char **argv);
static int run_sweep(int argc, char **argv);
static int run_version(int argc, char **argv);
static int run_help(int argc, char **argv);

/* What works; argv[0] is the command's name. */
static const struct command {
    const char *name, *purpose;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"replay", "replay a training trace on a simulated cluster, or on real ranks (--on)",
     run_replay},
    {"sweep", "many configurations, models, ranks, clusters: where compression pays, how much",
     run_sweep},
    {"perf", "measure a collective on real ranks, raw and compressed", run_perf},
    {"trace", "look at a training trace; import one from another tool, or make one up",
     zipccl_trace_command},
    {"codec", "compress files and restore them; what the codec makes of tensors, and how fast",
     zipccl_codec_command},
    {"compare", "predicted and measured, or before and after, row by row", zipccl_compare_command},
    {"report", "one page of result files, to look at or to hand on", zipccl_report_command},
    {"cluster", "list, show and check cluster descriptions; fit one to measurements",
     zipccl_cluster_command},
    {"plan", "what would be chosen for one collective, why, and where that flips",
     zipccl_plan_command},
    {"bundle", "pack results and what they ran on into one file to send back",
     zipccl_bundle_command},
    {"version", "print the version; --build tells how it was built", run_version},
    {"help", "print this, or the help of a command", run_help},
};

enum { NUM_COMMANDS = sizeof commands / sizeof *commands };

static const struct command *find_command(const char *name)
{
    for (int i = 0; i < NUM_COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int unknown_command(const char *name)
{
    const char *names[NUM_COMMANDS + 1] = {NULL};

    for (int i = 0; i < NUM_COMMANDS; i++)
        names[i] = commands[i].name;
    const char *nearest = zipccl_nearest_name(name, names);
    if (nearest != NULL)
        return zipccl_usage_error(program, "unknown command '%s'; did you mean '%s'?", name,
                                  nearest);
    return zipccl_usage_error(program, "unknown command '%s'; 'zipccl help' lists them", name);
}

/* Replace this process by 'name', which lies beside it, with the same arguments. */
static int run_program(const char *name, char **argv)
{
    struct zipccl_error error = {""};
    char path[4096];
    zipccl_status status = zipccl_beside_program(name, path, sizeof path, &error);

    if (status != ZIPCCL_OK)
        return zipccl_print_error(program, status, &error);
    /* main() keeps the program's name before the command. */
    char **all = argv - 1;
    char *own_name = all[0];

    /* The other program then speaks under the name that was typed. */
    all[0] = (char *)program;
    execv(path, all);
    int reason = errno;
    all[0] = own_name;
    return zipccl_usage_error(program, "%s needs %s beside zipccl: %s: %s", argv[0], name, path,
                              strerror(reason));
}

/* What --on says; NULL: nothing.  Whether it is right the program that is run tells. */
static const char *find_on(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strncmp(argv[i], "--on=", 5) == 0)
            return argv[i] + 5;
        else if (strcmp(argv[i], "--on") == 0 && i + 1 < argc)
            return argv[i + 1];
    return NULL;
}

static int run_replay(int argc, char **argv)
{
    const char *on = find_on(argc, argv);

    return run_program(on == NULL ? "zipccl-sim" : program_on(on), argv);
}

static int run_sweep(int argc, char **argv)
{
    (void)argc;
    return run_program("zipccl-sim", argv);
}

static int run_perf(int argc, char **argv)
{
    const char *on = find_on(argc, argv);

    return run_program(on == NULL ? "zipccl-perf" : program_on(on), argv);
}

static int run_version(int argc, char **argv)
{
    bool build = argc == 2 && strcmp(argv[1], "--build") == 0;

    if (argc > 1 && !build)
        return zipccl_usage_error(program, "version: unknown argument '%s'", argv[1]);
    zipccl_print_version(program, build, stdout);
    return ZIPCCL_EXIT_OK;
}

static int run_help(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "help") != 0 && strcmp(argv[1], "version") != 0) {
        const struct command *command = find_command(argv[1]);
        char *arguments[] = {argv[-1], argv[1], (char *)"--help", NULL};

        return command != NULL ? command->run(2, arguments + 1) : unknown_command(argv[1]);
    }
    puts("Usage: zipccl COMMAND [OPTION...]\n"
         "Lossless compressed collectives for training: what they gain, and where.\n");
    for (int i = 0; i < NUM_COMMANDS; i++)
        printf("  %-10s %s\n", commands[i].name, commands[i].purpose);
    puts("\n'zipccl COMMAND --help' tells more.  Start: zipccl replay traces/samples/moe64 \\\n"
         "    --cluster a100-8x8-200g");
    return ZIPCCL_EXIT_OK;
}

static int run(int argc, char **argv)
{
    if (argc < 2)
        return zipccl_usage_error(program, "no command; 'zipccl help' lists them");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return run_help(1, argv + 1);
    if (strcmp(argv[1], "--version") == 0)
        return run_version(1, argv + 1);
    const struct command *command = find_command(argv[1]);
    return command != NULL ? command->run(argc - 1, argv + 1) : unknown_command(argv[1]);
}

int main(int argc, char **argv)
{
    return zipccl_finish_output(program, run(argc, argv));
}
