/*
 * bundle_files.h - reads the files of a bundle, packed with gzip or not
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_BUNDLE_FILES_H
#define ZIPCCL_EXPERIMENTS_BUNDLE_FILES_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Read a regular file in its own folder; one whose name ends in .gz is unpacked.  The caller frees
 * '*out'.  ZIPCCL_ERR_INPUT with its name for a folder, FIFO, device, symbolic link out of the
 * folder, gzip without the name or the other way round, more than 256 MiB; ZIPCCL_ERR_IO; _NOMEM.
 */
zipccl_status zipccl_bundle_read(const char *path, char **out, size_t *nbytes, bool *packed,
                                 struct zipccl_error *error);

/* Pack '*text' with gzip, equal texts to equal bytes.  ZIPCCL_ERR_NOMEM. */
zipccl_status zipccl_bundle_pack(char **text, size_t *nbytes);

#endif
