/*
 * sweep_command.h - zipccl-sim sweep: axes in, points out
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_SWEEP_COMMAND_H
#define ZIPCCL_EXPERIMENTS_SWEEP_COMMAND_H

/* 'argv'[0] is "sweep"; returns an exit code: 1 also if a point failed. */
int zipccl_sweep_command(const char *program, int argc, char **argv);

#endif
