/*
 * report_page.h - result files as one page: what kind each is, whether it is whole, and the page
 *
 * Files are taken for what others sent: each is checked by its schema before a byte of the page is
 * written.  The page needs nothing but itself, and its only links lead to its own parts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_ANALYSIS_REPORT_PAGE_H
#define ZIPCCL_ANALYSIS_REPORT_PAGE_H

#include "core/status.h"

#include <stddef.h>
#include <stdio.h>

struct zipccl_report_file;

/*
 * Read a result of any schema that a page is made of, or of nccl-tests.  The caller destroys '*out'.
 *
 * path  borrowed until then
 *
 * ZIPCCL_ERR_IO; ZIPCCL_ERR_INPUT with path, place, what was found and what was expected;
 * ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_report_read(const char *path, struct zipccl_report_file **out,
                                 struct zipccl_error *error);

/* The same of [nbytes] 'text'. */
zipccl_status zipccl_report_parse(const char *path, const char *text, size_t nbytes,
                                  struct zipccl_report_file **out, struct zipccl_error *error);
void zipccl_report_destroy(struct zipccl_report_file *file);

/* What the file is, a schema's name or "nccl-tests". */
const char *zipccl_report_schema(const struct zipccl_report_file *file);

/*
 * Write the page of [n] files, n > 0; of one replay or sweep without a title it is the
 * page of zipccl_report_html() or zipccl_sweep_html().
 *
 * title  NULL: of what is in it
 *
 * ZIPCCL_ERR_IO, ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_report_page(struct zipccl_report_file *const *files, size_t n,
                                 const char *title, FILE *out, struct zipccl_error *error);

#endif
