/*
 * report_html.h - turns a result file into one self-contained page
 *
 * Reads schema "zipccl.replay" as JSON text; knows no simulator and no program.  The page needs
 * nothing but itself: styles and picture are inline, there is no script and no outside address.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_ANALYSIS_REPORT_HTML_H
#define ZIPCCL_ANALYSIS_REPORT_HTML_H

#include "core/status.h"

#include <stddef.h>
#include <stdio.h>

/*
 * Write the page of one result to 'out'.
 *
 * json    [nbytes] text, not modified
 *
 * ZIPCCL_ERR_INPUT if 'json' is not JSON or not schema "zipccl.replay" version 1; ZIPCCL_ERR_IO
 * if writing failed; ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_report_html(const char *json, size_t nbytes, FILE *out,
                                 struct zipccl_error *error);

#endif
