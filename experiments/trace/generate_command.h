/*
 * generate_command.h - zipccl trace generate, zipccl trace models
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_GENERATE_COMMAND_H
#define ZIPCCL_EXPERIMENTS_GENERATE_COMMAND_H

/* argv[0] is "generate" or "models"; returns the exit code. */
int zipccl_generate_command(int argc, char **argv);
int zipccl_models_command(int argc, char **argv);

#endif
