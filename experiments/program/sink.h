/*
 * sink.h - text that goes to a file as it is, or through gzip
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_SINK_H
#define ZIPCCL_EXPERIMENTS_SINK_H

#include "core/status.h"

#include <stddef.h>
#include <stdio.h>

struct zipccl_sink;

/*
 * Start writing to 'file', which stays the caller's, through gzip if 'path' ends in .gz.
 *
 * path  for messages; borrowed
 * The gzip header has neither time nor name: equal text gives equal bytes.  ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_sink_open(FILE *file, const char *path, struct zipccl_sink **out,
                               struct zipccl_error *error);

/* Put [n] bytes; the signature is that of yajl_print_t.  Failures are told at the end. */
void zipccl_sink_put(void *sink, const char *text, size_t n);

/* Put what is left and free the sink.  ZIPCCL_ERR_IO if anything was lost. */
zipccl_status zipccl_sink_close(struct zipccl_sink *sink, struct zipccl_error *error);

#endif
