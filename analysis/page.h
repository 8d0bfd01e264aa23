/*
 * page.h - what pages are made of: begin, end, headings, cells
 *
 * All text is escaped here; titles of columns and headings are the program's own and may hold tags.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_ANALYSIS_PAGE_H
#define ZIPCCL_ANALYSIS_PAGE_H

#include <yajl/yajl_tree.h>

#include <stdio.h>

/* Write all up to the first heading, with 'title' and beside the style of all pages 'style'. */
void zipccl_page_begin(const char *title, const char *style, FILE *out);

/* Write the last line, which names 'source', and the end. */
void zipccl_page_end(const char *source, FILE *out);

/* Parts of a page of one result are headings 2, of one of several 3. */
void zipccl_page_heading(int level, const char *html, FILE *out);

/* A cell with text, left; with a number, an en dash if it is NaN; with the number under 'key', times 'scale'. */
void zipccl_page_text(const char *text, FILE *out);
void zipccl_page_number(double value, int decimals, FILE *out);
void zipccl_page_value(yajl_val object, const char *key, double scale, int decimals, FILE *out);

/* A term and what it is, in a list of terms; nothing where 'text' is empty. */
void zipccl_page_term(const char *term, const char *text, FILE *out);

/* The list under 'key' of name, value, unit and source, below a heading; nothing if it is empty. */
void zipccl_page_notes(yajl_val result, const char *key, int level, const char *title, FILE *out);

#endif
