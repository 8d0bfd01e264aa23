/*
 * report.h - what was counted: a table at exit, and a file
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_PRELOAD_REPORT_H
#define ZIPCCL_GPU_PRELOAD_REPORT_H

/* At the end of the process: the table (rank 0 of the job, or all where that is not known), the file. */
void zipccl_shim_report(void);

/* The file alone, ZIPCCL_STATS_FILE, whole or not at all; nothing if none is wanted. */
void zipccl_shim_report_file(void);

#endif
