/*
 * perf_page.h - rows of single collectives as a part of a page: table, and busbw over size
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_ANALYSIS_PERF_PAGE_H
#define ZIPCCL_ANALYSIS_PERF_PAGE_H

#include "analysis/rows.h"

#include <stdio.h>
#include <yajl/yajl_tree.h>

/* Beside the style of all pages. */
extern const char zipccl_perf_style[];

/*
 * Write the part with headings of 'level'.
 *
 * result  for settings and assumptions; NULL: the file has none
 */
void zipccl_perf_section(const struct zipccl_rows *rows, yajl_val result, int level, FILE *out);

/* GB/s as nccl-tests counts busbw, by raw bytes; NaN if the row has none. */
double zipccl_row_busbw(const struct zipccl_row *row);

/* "all_reduce, all_gather", the ops of the rows in their order. */
void zipccl_perf_ops(const struct zipccl_rows *rows, char *out, size_t size);

/* Write a picture of the rows of the call that 'like' is one of, any size and mode. */
void zipccl_perf_svg(const struct zipccl_rows *rows, const struct zipccl_row *like, FILE *out);

/* Whether two rows belong into one picture: all but size, mode and plan is equal. */
bool zipccl_perf_alike(const struct zipccl_row *a, const struct zipccl_row *b);

#endif
