/*
 * zipccl_sim.c - the program that links SimGrid: runs what needs a simulation
 *
 * People call it through 'zipccl', which finds it beside itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/perf/perf_sim.h"
#include "experiments/program/program.h"
#include "experiments/replay/replay_command.h"
#include "experiments/sweep/sweep_command.h"

#include <string.h>

static void print_help(void)
{
    puts("Usage: zipccl-sim COMMAND [OPTION...]\n"
         "Simulations of zipccl; the front command 'zipccl' runs it.\n"
         "\n"
         "  replay     replay a training trace on a simulated cluster\n"
         "  sweep      many configurations\n"
         "  perf       one collective on a simulated cluster (--on sim)\n"
         "  version    print the version\n"
         "\n"
         "'zipccl-sim replay --help' lists its options.");
}

static int run(const char *program, int argc, char **argv)
{
    static const char *const commands[] = {"replay", "sweep", "perf", "version", "help", NULL};
    const char *command = argc > 1 ? argv[1] : NULL;

    if (command == NULL)
        return zipccl_usage_error(program, "no command; 'zipccl-sim --help' lists them");
    if (strcmp(command, "replay") == 0)
        return zipccl_replay_command(program, argc - 1, argv + 1);
    if (strcmp(command, "sweep") == 0)
        return zipccl_sweep_command(program, argc - 1, argv + 1);
    if (strcmp(command, "perf") == 0)
        return zipccl_perf_sim_command(program, argc - 1, argv + 1);
    if (strcmp(command, "--help") == 0 || strcmp(command, "-h") == 0 ||
        strcmp(command, "help") == 0) {
        print_help();
        return ZIPCCL_EXIT_OK;
    }
    if (strcmp(command, "version") == 0 || strcmp(command, "--version") == 0) {
        zipccl_print_version(program, false, stdout);
        return ZIPCCL_EXIT_OK;
    }
    const char *nearest = zipccl_nearest_name(command, commands);
    if (nearest != NULL)
        return zipccl_usage_error(program, "unknown command '%s'; did you mean '%s'?", command,
                                  nearest);
    return zipccl_usage_error(program, "unknown command '%s'; 'zipccl-sim --help' lists them",
                              command);
}

/* Errors begin with the command that was typed: 'zipccl' passes its own name as argv[0]. */
int main(int argc, char **argv)
{
    const char *program = argc > 0 && strcmp(argv[0], "zipccl") == 0 ? "zipccl" : "zipccl-sim";

    return zipccl_finish_output(program, run(program, argc, argv));
}
