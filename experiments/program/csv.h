/*
 * csv.h - texts in comma-separated values
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_CSV_H
#define ZIPCCL_EXPERIMENTS_CSV_H

#include <stdio.h>
#include <string.h>

/* Write a field, quoted where a comma, a quote or a line's end is in it (RFC 4180). */
static inline void zipccl_csv_text(const char *text, FILE *out)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

#endif
