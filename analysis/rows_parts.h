/*
 * rows_parts.h - what the readers of row files share
 *
 * Private to rows*.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_ANALYSIS_ROWS_PARTS_H
#define ZIPCCL_ANALYSIS_ROWS_PARTS_H

#include "analysis/rows.h"

#include <yajl/yajl_tree.h>

/* A row that says nothing yet. */
void zipccl_row_init(struct zipccl_row *row);

zipccl_status zipccl_rows_add(struct zipccl_rows *rows, const struct zipccl_row *row,
                              struct zipccl_error *error);

/* Where a value stands: "PATH: row 3". */
struct zipccl_row_place {
    const char *path;
    size_t row; /* from 1 on; 0: the file as a whole */
    struct zipccl_error *error;
};

zipccl_status zipccl_row_fail(const struct zipccl_row_place *at, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Typed values of a JSON object.  A value that is absent or null is taken for missing: then 'must' makes
 * it an error, else '*out' stays as it is.  Text is one line without control characters.
 */
zipccl_status zipccl_row_text(const struct zipccl_row_place *at, yajl_val object, const char *key,
                              bool must, char *out, size_t size);
zipccl_status zipccl_row_number(const struct zipccl_row_place *at, yajl_val object, const char *key,
                                bool must, double *out); /* 0 or more */
zipccl_status zipccl_row_integer(const struct zipccl_row_place *at, yajl_val object,
                                 const char *key, bool must, uint64_t most, uint64_t *out);
zipccl_status zipccl_row_op(const struct zipccl_row_place *at, yajl_val object,
                            struct zipccl_row *row);

/* The readers; 'rows' has its path, and 'root' is an object. */
zipccl_status zipccl_rows_perf(yajl_val root, struct zipccl_rows *rows, struct zipccl_error *error);
zipccl_status zipccl_rows_replay(yajl_val root, struct zipccl_rows *rows,
                                 struct zipccl_error *error);
zipccl_status zipccl_rows_nccl_json(yajl_val root, int op, struct zipccl_rows *rows,
                                    struct zipccl_error *error);
zipccl_status zipccl_rows_nccl_table(const char *text, int op, struct zipccl_rows *rows,
                                     struct zipccl_error *error);

/* Fill the row of an nccl-tests result: raw bytes of a rank follow from op, size and ranks. */
zipccl_status zipccl_row_nccl_finish(const struct zipccl_row_place *at, double size_bytes,
                                     struct zipccl_row *row);

#endif
