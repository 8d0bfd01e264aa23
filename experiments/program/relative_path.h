/*
 * relative_path.h - a path as seen from another folder
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_RELATIVE_PATH_H
#define ZIPCCL_EXPERIMENTS_RELATIVE_PATH_H

#include "core/status.h"

#include <stddef.h>

/*
 * Write to 'out' how 'path' is named from the folder of the file 'from'; both start at the
 * current folder.  An absolute 'path' stays as it is.  Names are compared as text: links are not
 * followed.  ZIPCCL_ERR_IO if the current folder is unknown or 'size' too small.
 */
zipccl_status zipccl_relative_path(const char *path, const char *from, char *out, size_t size,
                                   struct zipccl_error *error);

/*
 * The same of a file that exists, absolute or not, from a folder that exists, links followed: right
 * as long as both are moved together.  ZIPCCL_ERR_IO if one is missing.
 */
zipccl_status zipccl_relative_real_path(const char *path, const char *from, char *out, size_t size,
                                        struct zipccl_error *error);

#endif
