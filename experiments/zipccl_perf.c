/*
 * zipccl_perf.c - the program that runs collectives for real: threads, and MPI where it was found
 *
 * It links neither SimGrid nor GSL.  People call it through 'zipccl', which finds it beside itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/perf/perf_command.h"
#include "experiments/program/program.h"
#include "experiments/replay/real_replay_command.h"

#include <string.h>

static void print_help(void)
{
    puts("Usage: zipccl-perf COMMAND [OPTION...]\n"
         "Collectives of zipccl on real ranks; the front command 'zipccl' runs it.\n"
         "\n"
         "  perf       measure and check one collective\n"
         "  replay     run the step of a training trace\n"
         "  version    print the version; --build tells how it was built\n"
         "\n"
         "'zipccl-perf COMMAND --help' lists its options.");
}

static int run(const char *program, int argc, char **argv)
{
    static const char *const commands[] = {"perf", "replay", "version", "help", NULL};
    const char *command = argc > 1 ? argv[1] : NULL;

    if (command == NULL)
        return zipccl_usage_error(program, "no command; 'zipccl-perf --help' lists them");
    if (strcmp(command, "perf") == 0)
        return zipccl_perf_command(program, argc - 1, argv + 1);
    if (strcmp(command, "replay") == 0)
        return zipccl_real_replay_command(program, argc - 1, argv + 1);
    if (strcmp(command, "--help") == 0 || strcmp(command, "-h") == 0 ||
        strcmp(command, "help") == 0) {
        print_help();
        return ZIPCCL_EXIT_OK;
    }
    if (strcmp(command, "version") == 0 || strcmp(command, "--version") == 0) {
        zipccl_print_version(program, argc > 2 && strcmp(argv[2], "--build") == 0, stdout);
        return ZIPCCL_EXIT_OK;
    }
    const char *nearest = zipccl_nearest_name(command, commands);
    if (nearest != NULL)
        return zipccl_usage_error(program, "unknown command '%s'; did you mean '%s'?", command,
                                  nearest);
    return zipccl_usage_error(program, "unknown command '%s'; 'zipccl-perf --help' lists them",
                              command);
}

/* Errors begin with the command that was typed: 'zipccl' passes its own name as argv[0]. */
int main(int argc, char **argv)
{
    const char *program = argc > 0 && strcmp(argv[0], "zipccl") == 0 ? "zipccl" : "zipccl-perf";

    return zipccl_finish_output(program, run(program, argc, argv));
}
