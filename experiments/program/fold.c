/*
 * fold.c - text for people in lines that a terminal holds
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/program/fold.h"

#include <string.h>

/* Bytes of 'line' [n] that fit into 'room' columns, up to a blank; at least one word. */
static size_t fitting(const char *line, size_t n, size_t room)
{
    size_t first = strspn(line, " "), end = room;

    if (n <= room)
        return n;
    while (end > first && line[end] != ' ')
        end--;
    if (end > first)
        return end;
    for (end = first; end < n && line[end] != ' ';)
        end++;
    return end;
}

static void fold_line(const char *line, size_t n, int indent, FILE *out)
{
    size_t room = ZIPCCL_FOLD_WIDTH, taken = fitting(line, n, room);

    fwrite(line, 1, taken, out);
    for (size_t at = taken; at < n; at += taken) {
        at += strspn(line + at, " ");
        if (at >= n)
            return;
        taken = fitting(line + at, n - at, room - (size_t)indent);
        fprintf(out, "\n%*s", indent, "");
        fwrite(line + at, 1, taken, out);
    }
}

void zipccl_fold(const char *text, int indent, FILE *out)
{
    while (*text != '\0') {
        size_t n = strcspn(text, "\n");

        fold_line(text, n, indent, out);
        text += n;
        if (*text == '\n')
            fputc(*text++, out);
    }
}
