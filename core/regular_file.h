/*
 * regular_file.h - opens files that are read whole, and nothing that a reader would wait for
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_REGULAR_FILE_H
#define ZIPCCL_CORE_REGULAR_FILE_H

#include "core/status.h"

#include <stdio.h>

/*
 * Open 'path' for reading; the caller closes '*out'.  A named pipe without a writer is not waited for.
 *
 * ZIPCCL_ERR_IO with the path and the reason; ZIPCCL_ERR_INPUT if it is no regular file.
 */
zipccl_status zipccl_open_regular(const char *path, FILE **out, struct zipccl_error *error);

#endif
