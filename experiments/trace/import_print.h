/*
 * import_print.h - what an importer had to assume, for people
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_IMPORT_PRINT_H
#define ZIPCCL_EXPERIMENTS_IMPORT_PRINT_H

#include "traces/import.h"

#include <stdio.h>

/* Write a line about 'report', then its guesses and notes with their counts, in wrapped lines. */
void zipccl_import_print(const struct zipccl_import_report *report, FILE *out);

#endif
