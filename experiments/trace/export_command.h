/*
 * export_command.h - zipccl trace export
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_EXPORT_COMMAND_H
#define ZIPCCL_EXPERIMENTS_EXPORT_COMMAND_H

/* 'argv[0]' is "export"; returns the exit code. */
int zipccl_export_command(int argc, char **argv);

#endif
