/*
 * codec_command.h - zipccl codec stat
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_CODEC_COMMAND_H
#define ZIPCCL_EXPERIMENTS_CODEC_COMMAND_H

/* Run with the command's own arguments, 'argv'[0] the command.  Returns the exit code. */
int zipccl_codec_command(int argc, char **argv);

#endif
