/*
 * json_put.c - keys and values for yajl's generator that every JSON reader takes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/program/json_put.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Length of the UTF-8 sequence at 's', 0 if it is none. */
static size_t utf8_length(const unsigned char *s)
{
    static const unsigned least[5] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;
    unsigned code = n < 2 ? s[0] : s[0] & (0x7fu >> n);

    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3f);
    }
    if (n == 0 || code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return 0;
    return n;
}

void zipccl_put_text(yajl_gen gen, const char *text)
{
    char clean[512];
    size_t n = 0;

    while (*text != '\0') {
        size_t length = utf8_length((const unsigned char *)text);

        if (n + (length > 0 ? length : 1) > sizeof clean)
            break;
        if (length == 0) {
            clean[n++] = '?';
            text++;
            continue;
        }
        memcpy(clean + n, text, length);
        n += length;
        text += length;
    }
    yajl_gen_string(gen, (const unsigned char *)clean, n);
}

void zipccl_put_key(yajl_gen gen, const char *key)
{
    yajl_gen_string(gen, (const unsigned char *)key, strlen(key));
}

void zipccl_put_string(yajl_gen gen, const char *key, const char *value)
{
    zipccl_put_key(gen, key);
    zipccl_put_text(gen, value);
}

void zipccl_put_integer(yajl_gen gen, const char *key, unsigned long long value)
{
    char digits[32];
    int n = snprintf(digits, sizeof digits, "%llu", value);

    zipccl_put_key(gen, key);
    yajl_gen_number(gen, digits, (size_t)n);
}

void zipccl_put_schema(yajl_gen gen, const char *name, unsigned version)
{
    zipccl_put_key(gen, "schema");
    yajl_gen_map_open(gen);
    zipccl_put_string(gen, "name", name);
    zipccl_put_integer(gen, "version", version);
    yajl_gen_map_close(gen);
}

void zipccl_put_number(yajl_gen gen, const char *key, double value, bool present)
{
    char digits[40];
    int n = 0;

    zipccl_put_key(gen, key);
    if (!present || !isfinite(value)) {
        yajl_gen_null(gen);
        return;
    }
    for (int precision = 12; precision <= 17; precision++) {
        n = snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    yajl_gen_number(gen, digits, (size_t)n);
}

static void print(void *file, const char *text, size_t n)
{
    fwrite(text, 1, n, file);
}

zipccl_status zipccl_json_start(const char *what, FILE *out, yajl_gen *gen,
                                struct zipccl_error *error)
{
    *gen = yajl_gen_alloc(NULL);
    if (*gen == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", what);
    yajl_gen_config(*gen, yajl_gen_beautify, 1);
    yajl_gen_config(*gen, yajl_gen_indent_string, "  ");
    yajl_gen_config(*gen, yajl_gen_print_callback, print, (void *)out);
    return ZIPCCL_OK;
}

zipccl_status zipccl_written(FILE *out, const char *what, struct zipccl_error *error)
{
    if (ferror(out))
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s", what, strerror(errno));
    return ZIPCCL_OK;
}

zipccl_status zipccl_json_end(yajl_gen gen, const char *what, FILE *out, struct zipccl_error *error)
{
    yajl_gen_free(gen);
    return zipccl_written(out, what, error);
}
