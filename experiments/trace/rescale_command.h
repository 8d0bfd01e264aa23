/*
 * rescale_command.h - zipccl trace rescale
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_RESCALE_COMMAND_H
#define ZIPCCL_EXPERIMENTS_RESCALE_COMMAND_H

/* 'argv[0]' is "rescale"; returns the exit code. */
int zipccl_rescale_command(int argc, char **argv);

#endif
