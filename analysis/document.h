/*
 * document.h - read access to a parsed result, and escaped text for the page
 *
 * Thin accessors over yajl's tree; a missing value is NULL, NaN or "" and never an error, because
 * later versions of the schema only add keys.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_ANALYSIS_DOCUMENT_H
#define ZIPCCL_ANALYSIS_DOCUMENT_H

#include "core/status.h"

#include <yajl/yajl_tree.h>

#include <stddef.h>
#include <stdio.h>

/*
 * Read a regular file of less than 'most' bytes (a power of two from 64 KiB) whole.  The caller frees
 * '*text'.  ZIPCCL_ERR_IO, ZIPCCL_ERR_INPUT, ZIPCCL_ERR_NOMEM, each with the path.
 */
zipccl_status zipccl_document_read(const char *path, size_t most, char **text, size_t *nbytes,
                                   struct zipccl_error *error);

/* Parse [nbytes] 'json' (no NUL needed).  The caller frees '*out' with yajl_tree_free(). */
zipccl_status zipccl_document_parse(const char *json, size_t nbytes, yajl_val *out,
                                    struct zipccl_error *error);

/* Child of 'object' by key, NULL if there is none or 'object' is none. */
yajl_val zipccl_document_get(yajl_val object, const char *key);

/* Number under 'key', NaN if there is none; text under 'key', "" if there is none. */
double zipccl_document_number(yajl_val object, const char *key);
const char *zipccl_document_text(yajl_val object, const char *key);

/* Elements of the array under 'key', 0 if there is none; element 'i' of it. */
size_t zipccl_document_length(yajl_val object, const char *key);
yajl_val zipccl_document_item(yajl_val object, const char *key, size_t i);

/* Write 'text' with & < > " ' escaped, for HTML text and attributes. */
void zipccl_put_escaped(const char *text, FILE *out);

/* Write 'value' as "%.*f"; an en dash if it is NaN. */
void zipccl_put_fixed(double value, int decimals, FILE *out);

/* Write a rate that a search found, "2200 Gb/s": two digits, for its steps are no finer. */
void zipccl_searched_rate(double Bps, char *out, size_t size);

#endif
