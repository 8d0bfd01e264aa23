/*
 * on_signal.h - temporary files that do not outlive a program ended by SIGINT, SIGTERM or SIGHUP
 *
 * Libraries know no signals, so commands say which names their libraries write to.  One set of
 * names at a time; not for several threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_ON_SIGNAL_H
#define ZIPCCL_EXPERIMENTS_ON_SIGNAL_H

#include <stdint.h>

/* Remove 'path'. */
void zipccl_on_signal_remove(const char *path);

/* Remove what zipccl_trace_writer_open() made for a trace at 'path'. */
void zipccl_on_signal_remove_trace(const char *path);

/* Remove a trace called trace.jsonl in 'made', finished or not, and that folder. */
void zipccl_on_signal_remove_scratch(const char *made);

/* Remove what zipccl_export_chakra() made for 'nranks' ranks at 'prefix', and 'folder' (or NULL). */
void zipccl_on_signal_remove_export(const char *prefix, uint32_t nranks, const char *folder);

/* Files have their names: remove nothing any more. */
void zipccl_on_signal_keep(void);

#endif
