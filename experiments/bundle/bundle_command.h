/*
 * bundle_command.h - zipccl bundle
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_BUNDLE_COMMAND_H
#define ZIPCCL_EXPERIMENTS_BUNDLE_COMMAND_H

/* 'argv[0]' is "bundle"; returns the exit code. */
int zipccl_bundle_command(int argc, char **argv);

#endif
