/*
 * lines.h - the lines of a text file, plain or gzip, one at a time
 *
 * Memory is bounded by the longest line.  A cut or damaged gzip stream is an error, never an
 * early end; several gzip members in a row are one text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_LINES_H
#define ZIPCCL_TRACES_LINES_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

#define ZIPCCL_LINES_MAX_BYTES ((size_t)64 << 20)

struct zipccl_lines;

/* Open 'path'; gzip is known by its first bytes, and a name that ends in .gz must be gzip. */
zipccl_status zipccl_lines_open(const char *path, struct zipccl_lines **out,
                                struct zipccl_error *error);

/*
 * Read the next line without its newline: '*line' is NULL at the end of the file, else valid until
 * the next call.  ZIPCCL_ERR_INPUT for a line over the limit or broken gzip, ZIPCCL_ERR_IO.
 */
zipccl_status zipccl_lines_next(struct zipccl_lines *lines, const char **line, size_t *nbytes,
                                struct zipccl_error *error);

/* Number of the line that was read last, from 1; 0 before the first. */
uint64_t zipccl_lines_number(const struct zipccl_lines *lines);

void zipccl_lines_close(struct zipccl_lines *lines);

#endif
