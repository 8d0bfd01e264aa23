/*
 * replay_command.h - zipccl-sim replay: options in, table and result files out
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_REPLAY_COMMAND_H
#define ZIPCCL_EXPERIMENTS_REPLAY_COMMAND_H

/* Run with the command's own arguments, 'argv'[0] the command.  Returns the exit code. */
int zipccl_replay_command(const char *program, int argc, char **argv);

#endif
