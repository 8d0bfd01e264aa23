/*
 * fold.h - text for people in lines that a terminal holds
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_FOLD_H
#define ZIPCCL_EXPERIMENTS_FOLD_H

#include <stdio.h>

/* Columns of a line, where words allow it. */
enum { ZIPCCL_FOLD_WIDTH = 100 };

/*
 * Write 'text' to 'out', its lines broken between words where they are longer than
 * ZIPCCL_FOLD_WIDTH; what follows a break stands 'indent' columns to the right.
 */
void zipccl_fold(const char *text, int indent, FILE *out);

#endif
