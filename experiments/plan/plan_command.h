/*
 * plan_command.h - zipccl plan
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_PLAN_COMMAND_H
#define ZIPCCL_EXPERIMENTS_PLAN_COMMAND_H

/* Run "plan" with its arguments, argv[0] being the command's name; returns an exit code. */
int zipccl_plan_command(int argc, char **argv);

#endif
