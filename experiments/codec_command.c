/*
 * codec_command.c - zipccl codec: finds the action, which has options of its own
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/codec_command.h"

#include "experiments/bench_command.h"
#include "experiments/program.h"
#ifdef ZIPCCL_HAVE_CODEC_STAT
#include "experiments/stat_command.h"
#endif

#include <stdio.h>
#include <string.h>

static const char program[] = "zipccl";

static const struct action {
    const char *name, *arguments, *purpose;
    int (*run)(int argc, char **argv); /* NULL: not in this build */
} actions[] = {
    {"bench", "[OPTION...]", "ratio and speed beside memcpy and other codecs",
     zipccl_bench_command},
#ifdef ZIPCCL_HAVE_CODEC_STAT
    {"stat", "FILE.safetensors", "what the codec makes of a file's tensors, one by one",
     zipccl_stat_command},
#else
    {"stat", "FILE.safetensors", "not in this build: install libgsl-dev and build again", NULL},
#endif
};

enum { NUM_ACTIONS = sizeof actions / sizeof actions[0] };

static void print_help(void)
{
    puts("Usage: zipccl codec ACTION [OPTION...]\nLook at the codec: what it makes of tensors, and "
         "how fast.\n");
    for (int i = 0; i < NUM_ACTIONS; i++)
        printf("  %-8s %-18s %s\n", actions[i].name, actions[i].arguments, actions[i].purpose);
    puts("\n'zipccl codec ACTION --help' tells more.");
}

int zipccl_codec_command(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "nothing", *names[NUM_ACTIONS + 1] = {NULL};

    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        print_help();
        return ZIPCCL_EXIT_OK;
    }
    for (int i = 0; i < NUM_ACTIONS; i++) {
        names[i] = actions[i].name;
        if (strcmp(name, names[i]) != 0)
            continue;
        if (actions[i].run == NULL)
            return zipccl_usage_error(program, "codec %s: %s", name, actions[i].purpose);
        return actions[i].run(argc - 1, argv + 1);
    }
    const char *nearest = argc > 1 ? zipccl_nearest_name(name, names) : NULL;
    return zipccl_usage_error(program,
                              "codec: expected an action ('zipccl codec --help'), found "
                              "'%s'%s%s%s",
                              name, nearest != NULL ? "; did you mean '" : "",
                              nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
}
