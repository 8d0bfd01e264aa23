/*
 * perf_command.h - zipccl-perf perf
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_PERF_COMMAND_H
#define ZIPCCL_EXPERIMENTS_PERF_COMMAND_H

/* argv[0] is "perf"; 'program' begins each error.  Returns an exit code. */
int zipccl_perf_command(const char *program, int argc, char **argv);

#endif
