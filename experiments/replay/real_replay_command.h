/*
 * real_replay_command.h - zipccl-perf replay
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_REAL_REPLAY_COMMAND_H
#define ZIPCCL_EXPERIMENTS_REAL_REPLAY_COMMAND_H

/* argv[0] is "replay"; 'program' begins each error.  Returns an exit code. */
int zipccl_real_replay_command(const char *program, int argc, char **argv);

#endif
