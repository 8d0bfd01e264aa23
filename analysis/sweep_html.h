/*
 * sweep_html.h - turns the result of a sweep into one self-contained page
 *
 * Reads schema "zipccl.sweep" as JSON text.  The page needs nothing but itself: styles and pictures are
 * inline, there is no script and no outside address.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_ANALYSIS_SWEEP_HTML_H
#define ZIPCCL_ANALYSIS_SWEEP_HTML_H

#include "core/status.h"

#include <yajl/yajl_tree.h>

#include <stddef.h>
#include <stdio.h>

/*
 * Write the page of one sweep to 'out'.
 *
 * json    [nbytes] text, not modified
 *
 * ZIPCCL_ERR_INPUT if 'json' is not JSON or not schema "zipccl.sweep" version 1; ZIPCCL_ERR_IO if
 * writing failed; ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_sweep_html(const char *json, size_t nbytes, FILE *out,
                                struct zipccl_error *error);

#define ZIPCCL_SWEEP_TITLE "Where compression pays"

/* Of a parsed sweep the page, 'title' NULL: ZIPCCL_SWEEP_TITLE; what stands on it below the title. */
zipccl_status zipccl_sweep_page(yajl_val sweep, const char *title, FILE *out,
                                struct zipccl_error *error);
zipccl_status zipccl_sweep_section(yajl_val sweep, int level, FILE *out,
                                   struct zipccl_error *error);

/* Beside the style of all pages. */
extern const char zipccl_sweep_style[];

/* Check a file that others sent by schema "zipccl.sweep" version 1.  ZIPCCL_ERR_INPUT with path and place. */
zipccl_status zipccl_sweep_check(yajl_val sweep, const char *path, struct zipccl_error *error);

/*
 * Write maps of the speedup over two axes, as HTML with inline SVG: nic.rate or the longest numeric axis
 * across, the longest other one down, a map for each combination of the rest, at most
 * ZIPCCL_SWEEP_MAX_MAPS, each with a heading of 'level'.  Nothing if no axis has two values.
 * ZIPCCL_ERR_NOMEM.
 */
enum { ZIPCCL_SWEEP_MAX_MAPS = 24 };
zipccl_status zipccl_sweep_maps(yajl_val sweep, int level, FILE *out, struct zipccl_error *error);

#endif
