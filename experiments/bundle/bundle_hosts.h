/*
 * bundle_hosts.h - names of hosts, and texts without them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_BUNDLE_HOSTS_H
#define ZIPCCL_EXPERIMENTS_BUNDLE_HOSTS_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>

struct zipccl_hosts {
    size_t n;
    char **names; /* owned */
};

/* True for a name with a letter before its domain, and for an address. */
bool zipccl_hosts_valid(const char *name);

/* Add an address, or a name without its domain; what is there already, and "localhost", is not added. */
zipccl_status zipccl_hosts_add(struct zipccl_hosts *hosts, const char *name, size_t nbytes);

/* Add the names that lines "zipccl-rank R of N on NAME:" of text [nbytes] have. */
zipccl_status zipccl_hosts_find(struct zipccl_hosts *hosts, const char *text, size_t nbytes);

/*
 * Copy text [nbytes] with names as "host0", "host1", ..., in any case.  Rather too much is replaced
 * than too little: a name at the begin of a word, and all letters, digits, '-', '_' and '.' behind
 * it ("node1-ib0", "node12", "node1.example.org"), unless a letter follows its last letter ("node"
 * in "nodes").  Addresses and numbers count as a whole, so 10.0.0.1 leaves 10.0.0.12.  The caller
 * frees '*out'.  ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_hosts_hide(const struct zipccl_hosts *hosts, const char *text, size_t nbytes,
                                char **out, size_t *out_nbytes, size_t *nhidden);

/* The same of the name of a file, where - and _ also part words, and an ending like .json stays. */
zipccl_status zipccl_hosts_hide_name(const struct zipccl_hosts *hosts, const char *name, char **out,
                                     size_t *nhidden);

void zipccl_hosts_release(struct zipccl_hosts *hosts);

#endif
