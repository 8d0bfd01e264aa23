/*
 * codec_command.h - zipccl codec: its commands
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_CODEC_COMMAND_H
#define ZIPCCL_EXPERIMENTS_CODEC_COMMAND_H

/* Run with the command's own arguments, 'argv'[0] the command.  Returns the exit code. */
int zipccl_codec_command(int argc, char **argv);

/* Its commands, likewise. */
int zipccl_codec_stat_command(int argc, char **argv);
int zipccl_codec_bench_command(int argc, char **argv);
int zipccl_codec_encode_command(int argc, char **argv);
int zipccl_codec_decode_command(int argc, char **argv);
int zipccl_codec_conform_command(int argc, char **argv);

#endif
