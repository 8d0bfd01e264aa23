/*
 * replay_page.h - the page of a parsed replay, whole or as a part of a page of several results
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_ANALYSIS_REPLAY_PAGE_H
#define ZIPCCL_ANALYSIS_REPLAY_PAGE_H

#include "core/status.h"

#include <stdio.h>
#include <yajl/yajl_tree.h>

/* Write the page; 'title' NULL: trace and cluster.  ZIPCCL_ERR_IO, ZIPCCL_ERR_NOMEM. */
zipccl_status zipccl_replay_page(yajl_val result, const char *title, FILE *out,
                                 struct zipccl_error *error);

/* Write what stands on it below the title, with headings of 'level'. */
void zipccl_replay_section(yajl_val result, int level, FILE *out);

#endif
