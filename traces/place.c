/*
 * place.c - error texts with file and line, and the quoting of what a file holds
 *
 * Declared in json.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/json.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Of a long path the end is kept, so that the reason still fits into the error text. */
#define PATH_SHOWN 160

zipccl_status zipccl_place_fail(const struct zipccl_place *at, const char *format, ...)
{
    size_t nbytes = strlen(at->file);
    const char *cut = nbytes > PATH_SHOWN ? "..." : "";
    const char *file = nbytes > PATH_SHOWN ? at->file + nbytes - PATH_SHOWN : at->file;
    char text[sizeof at->error->text], line[24] = "";
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (at->line > 0)
        snprintf(line, sizeof line, ":%" PRIu64, at->line);
    return zipccl_fail(at->error, ZIPCCL_ERR_INPUT, "%s%s%s: %s", cut, file, line, text);
}

zipccl_status zipccl_place_nomem(const struct zipccl_place *at)
{
    zipccl_place_fail(at, "out of memory");
    return ZIPCCL_ERR_NOMEM;
}

const char *zipccl_quote(char out[ZIPCCL_QUOTE_SIZE], const char *s)
{
    const size_t room = ZIPCCL_QUOTE_SIZE - 6; /* two quotes, "...", NUL */
    size_t n = strlen(s);
    bool cut = n > room;
    char *p = out;

    if (cut)
        for (n = room; n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80; n--)
            ;
    *p++ = '"';
    for (size_t i = 0; i < n; i++)
        *p++ = (unsigned char)s[i] < 0x20 || s[i] == 0x7f ? '?' : s[i];
    *p++ = '"';
    memcpy(p, cut ? "..." : "", cut ? 4 : 1);
    return out;
}

bool zipccl_text_printable(const char *s)
{
    while ((unsigned char)*s >= 0x20 && *s != 0x7f)
        s++;
    return *s == '\0';
}

const char *zipccl_json_describe(char out[ZIPCCL_QUOTE_SIZE], const struct zipccl_json *node)
{
    switch (node->type) {
    case ZIPCCL_JSON_NULL: return "null";
    case ZIPCCL_JSON_BOOL: return node->value.boolean ? "true" : "false";
    case ZIPCCL_JSON_INTEGER:
        snprintf(out, ZIPCCL_QUOTE_SIZE, "%" PRId64, node->value.integer);
        return out;
    case ZIPCCL_JSON_REAL: snprintf(out, ZIPCCL_QUOTE_SIZE, "%s", node->value.string); return out;
    case ZIPCCL_JSON_STRING: return zipccl_quote(out, node->value.string);
    case ZIPCCL_JSON_ARRAY:
        snprintf(out, ZIPCCL_QUOTE_SIZE, "an array of %" PRIu32, node->n);
        return out;
    case ZIPCCL_JSON_OBJECT: return "an object";
    }
    return "?";
}

bool zipccl_utf8_valid(const char *s, size_t nbytes)
{
    const unsigned char *p = (const unsigned char *)s, *end = p + nbytes;

    while (p < end) {
        unsigned tail = *p < 0x80 ? 0 : *p < 0xe0 ? 1 : *p < 0xf0 ? 2 : 3;
        /* The second byte's range shuts out overlong forms, surrogates and above U+10FFFF. */
        unsigned low = *p == 0xe0 ? 0xa0 : *p == 0xf0 ? 0x90 : 0x80;
        unsigned high = *p == 0xed ? 0x9f : *p == 0xf4 ? 0x8f : 0xbf;

        if ((*p >= 0x80 && *p < 0xc2) || *p > 0xf4 || (size_t)(end - p) <= tail)
            return false;
        for (unsigned i = 1; i <= tail; i++, low = 0x80, high = 0xbf)
            if (p[i] < low || p[i] > high)
                return false;
        p += tail + 1;
    }
    return true;
}
