/*
 * trace_command.h - zipccl trace info
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_TRACE_COMMAND_H
#define ZIPCCL_EXPERIMENTS_TRACE_COMMAND_H

/* Run with the command's own arguments, 'argv'[0] the command.  Returns the exit code. */
int zipccl_trace_command(int argc, char **argv);

#endif
