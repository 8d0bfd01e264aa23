/*
 * import_archive.h - tar archives of files to import, as if they were folders
 *
 * What importers know is unpacked to a temporary folder; other members are skipped.  Members that
 * are links, or would leave the folder, are never written.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_IMPORT_ARCHIVE_H
#define ZIPCCL_TRACES_IMPORT_ARCHIVE_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True if a file, gzip taken off, starts as a tar archive does. */
bool zipccl_archive_is(const char *head, size_t nbytes);

/* Whether a file that starts so, gzip taken off, is one to import. */
typedef bool zipccl_archive_wanted(const char *head, size_t nbytes);

/*
 * Look for the first member that is wanted and copy how it starts to 'head' [*nbytes]; '*nbytes' is
 * 0 if there is none.
 */
zipccl_status zipccl_archive_peek(const char *path, zipccl_archive_wanted *wanted, char *head,
                                  size_t *nbytes, struct zipccl_error *error);

/* Files that take the place of those that were given. */
struct zipccl_unpacked {
    char folder[32]; /* "" if nothing was unpacked */
    size_t n, room;
    char **files;    /* [n] to import, by name within an archive */
    const char **of; /* [n] the archive, NULL: the file was given itself */
    uint64_t nskipped;
};

/* Unpack those of 'paths' that are archives; zipccl_archive_remove() also after a failure. */
zipccl_status zipccl_archive_unpack(const char *const *paths, size_t npaths,
                                    zipccl_archive_wanted *wanted, struct zipccl_unpacked *out,
                                    struct zipccl_error *error);

/* Say ARCHIVE:MEMBER in an error where it names an unpacked file. */
void zipccl_archive_rename(const struct zipccl_unpacked *unpacked, struct zipccl_error *error);

/* Remove the temporary files. */
void zipccl_archive_remove(struct zipccl_unpacked *unpacked);

#endif
