/*
 * bundle_text.h - what a file of a bundle may be, and its text without names of hosts
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_BUNDLE_TEXT_H
#define ZIPCCL_EXPERIMENTS_BUNDLE_TEXT_H

#include "core/status.h"
#include "experiments/bundle/bundle_hosts.h"

#include <stddef.h>

enum zipccl_text_kind {
    ZIPCCL_TEXT_PLAIN,
    ZIPCCL_TEXT_CSV,
    ZIPCCL_TEXT_JSON, /* one document or, .jsonl, one a line */
};

/*
 * Find what text [nbytes] of file 'path' is, by its ending (.gz left out), and check that it is
 * that.  ZIPCCL_ERR_INPUT if it is no result; ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_text_check(const char *path, const char *text, size_t nbytes,
                                enum zipccl_text_kind *kind, struct zipccl_error *error);

/*
 * zipccl_hosts_hide() of what may have names: strings that are values of JSON, lines below the
 * header of a CSV file with our columns, all of a plain text.  JSON is one that was checked.
 */
zipccl_status zipccl_text_hide(const struct zipccl_hosts *hosts, enum zipccl_text_kind kind,
                               const char *text, size_t nbytes, char **out, size_t *out_nbytes,
                               size_t *nhidden);

#endif
