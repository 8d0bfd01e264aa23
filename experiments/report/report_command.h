/*
 * report_command.h - zipccl report: result files as one page
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_REPORT_COMMAND_H
#define ZIPCCL_EXPERIMENTS_REPORT_COMMAND_H

/* zipccl report RESULT... -o PAGE: argv[0] is "report". */
int zipccl_report_command(int argc, char **argv);

#endif
