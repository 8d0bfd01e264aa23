/*
 * codec_command.c - zipccl codec: which command is meant
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/codec/codec_command.h"

#include "experiments/program/program.h"

#include <string.h>

static const char program[] = "zipccl";

/* What works; argv[0] is the command's name. */
static const struct command {
    const char *name, *arguments, *purpose;
    int (*run)(int argc, char **argv);
} commands[] = {
#ifdef ZIPCCL_HAVE_CODEC_STAT
    {"stat", "FILE.safetensors", "per tensor: ratio, what others could reach, programs taken",
     zipccl_codec_stat_command},
#endif
    {"bench", "[OPTION...]", "ratio and speed, beside memcpy and other codecs",
     zipccl_codec_bench_command},
    {"encode", "FILE -o OUT",
     "compress a file without loss; --dtype for files that are no "
     ".safetensors",
     zipccl_codec_encode_command},
    {"decode", "FILE -o OUT", "restore the file bit for bit", zipccl_codec_decode_command},
    {"conform", "-- COMMAND", "run the format's test vectors through another decoder",
     zipccl_codec_conform_command},
};

enum { NUM_COMMANDS = sizeof commands / sizeof *commands };

static int print_help(void)
{
    puts("Usage: zipccl codec COMMAND [OPTION...]\n"
         "The codec alone: files, what it makes of tensors, how fast, and other decoders.\n");
    for (int i = 0; i < NUM_COMMANDS; i++)
        printf("  %-8s%-18s%s\n", commands[i].name, commands[i].arguments, commands[i].purpose);
    puts("\nExamples:\n"
         "  zipccl codec stat model.safetensors\n"
         "  zipccl codec bench\n"
         "  zipccl codec encode model.safetensors -o model.zcf\n"
         "  zipccl codec decode model.zcf -o model.safetensors\n"
         "  zipccl codec conform -- python3 core/tests/decoder.py\n"
         "\n'zipccl codec COMMAND --help' tells more.");
    return ZIPCCL_EXIT_OK;
}

static int unknown_command(const char *name)
{
    const char *names[NUM_COMMANDS + 1] = {NULL};
    char list[128] = "";

    for (int i = 0; i < NUM_COMMANDS; i++) {
        names[i] = commands[i].name;
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s'%s'",
                 i == 0                  ? ""
                 : i + 1 == NUM_COMMANDS ? " or "
                                         : ", ",
                 commands[i].name);
    }
    const char *nearest = name != NULL ? zipccl_nearest_name(name, names) : NULL;
    if (nearest != NULL)
        return zipccl_usage_error(program, "codec: expected %s, found '%s'; did you mean '%s'?",
                                  list, name, nearest);
    return zipccl_usage_error(program, "codec: expected %s, found %s%s%s", list,
                              name != NULL ? "'" : "", name != NULL ? name : "nothing",
                              name != NULL ? "'" : "");
}

int zipccl_codec_command(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;

    if (name != NULL && (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0))
        return print_help();
    for (int i = 0; name != NULL && i < NUM_COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    return unknown_command(name);
}
