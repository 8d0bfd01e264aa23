/*
 * bundle_hosts.h - names of hosts, and texts without them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_BUNDLE_HOSTS_H
#define ZIPCCL_EXPERIMENTS_BUNDLE_HOSTS_H

#include "core/status.h"

#include <stddef.h>

struct zipccl_hosts {
    size_t n;
    char **names; /* owned */
};

/* Add a name, without its domain; what is there already, and "localhost", is not added. */
zipccl_status zipccl_hosts_add(struct zipccl_hosts *hosts, const char *name, size_t nbytes);

/* Add the names that lines "zipccl-rank R of N on NAME:" of text [nbytes] have. */
zipccl_status zipccl_hosts_find(struct zipccl_hosts *hosts, const char *text, size_t nbytes);

/*
 * Copy text [nbytes] with each name, and a domain behind it, as "host0", "host1", ...; names count
 * as words, in any case.  The caller frees '*out'.  ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_hosts_hide(const struct zipccl_hosts *hosts, const char *text, size_t nbytes,
                                char **out, size_t *out_nbytes, size_t *nhidden);

/* The same of the name of a file, where - and _ also part words, and an ending like .json stays. */
zipccl_status zipccl_hosts_hide_name(const struct zipccl_hosts *hosts, const char *name, char **out,
                                     size_t *nhidden);

void zipccl_hosts_release(struct zipccl_hosts *hosts);

#endif
