/*
 * bench_command.h - zipccl codec bench: options in, table and result files out
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_BENCH_COMMAND_H
#define ZIPCCL_EXPERIMENTS_BENCH_COMMAND_H

/* Run with the command's own arguments, 'argv'[0] the command.  Returns the exit code. */
int zipccl_bench_command(int argc, char **argv);

#endif
