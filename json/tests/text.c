/*
 * text.c - a growing text, for what the driver says
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "json/tests/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void append(struct text *t, const void *bytes, size_t n)
{
    if (t->n + n + 1 > t->room) {
        t->room = 2 * (t->n + n + 1);
        t->bytes = realloc(t->bytes, t->room);
        if (t->bytes == NULL)
            exit(1);
    }
    if (n > 0)
        memcpy(t->bytes + t->n, bytes, n);
    t->n += n;
    t->bytes[t->n] = '\0';
}

void append_text(struct text *t, const char *s)
{
    append(t, s, strlen(s));
}

void append_quoted(struct text *t, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = ((const unsigned char *)bytes)[i];
        char hex[8];

        snprintf(hex, sizeof hex, c >= 0x20 && c < 0x7f ? "%c" : "\\x%02x", c);
        append_text(t, hex);
    }
}
