/*
 * document.c - read access to a parsed result, and escaped text for the page
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/document.h"

#include "core/regular_file.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

/*
 * Results are nested by five; yajl frees a tree by recursion, so a tree is never deeper.  Keys are looked
 * up one after the other, some once a row; results have tens.
 */
enum { MAX_DEPTH = 64, MAX_KEYS = 1024 };

/* Why yajl is not to see 'text', and at which byte '*at'; NULL if it may. */
static const char *unfit(const char *text, size_t nbytes, size_t *at)
{
    bool in_string = false;
    size_t nkeys[MAX_DEPTH + 1] = {0}; /* of the objects around; of a list always 0 */
    int depth = 0;

    for (size_t i = 0; i < nbytes; i++) {
        char c = text[i];

        *at = i;
        if (c == '\0')
            return "a zero byte";
        if (in_string) {
            in_string = c != '"';
            i += c == '\\';
            continue;
        }
        in_string = c == '"';
        depth += (c == '[' || c == '{') - (c == ']' || c == '}');
        if (c == '/') /* quotes in it would hide brackets from this count */
            return "a comment, which JSON has not";
        if (depth > MAX_DEPTH)
            return "nested deeper than any result is";
        if (depth <= 0) /* before and behind the text, or not JSON */
            continue;
        if (c == '[' || c == '{')
            nkeys[depth] = c == '{';
        else if (c == ',' && nkeys[depth] > 0 && ++nkeys[depth] > MAX_KEYS)
            return "an object of more keys than any result has";
    }
    return NULL;
}

/* How far 'text' is JSON: the tree's reader does not tell. */
static size_t good_bytes(const char *text, size_t nbytes)
{
    yajl_handle reader = yajl_alloc(NULL, NULL, NULL);
    size_t n = nbytes;

    if (reader == NULL)
        return 0;
    yajl_config(reader, yajl_allow_comments, 1);
    if (yajl_parse(reader, (const unsigned char *)text, nbytes) != yajl_status_ok)
        n = yajl_get_bytes_consumed(reader);
    yajl_free(reader);
    return n < nbytes ? n : nbytes;
}

static zipccl_status not_json(const char *text, size_t nbytes, char *reason,
                              struct zipccl_error *error)
{
    size_t n = good_bytes(text, nbytes), line = 1;

    for (size_t i = 0; i < n; i++)
        line += text[i] == '\n';
    reason[strcspn(reason, "\r\n")] = '\0';
    return zipccl_fail(error, ZIPCCL_ERR_INPUT, "result: not JSON at line %zu, byte %zu: %s", line,
                       n, reason[0] != '\0' ? reason : "the text ends early");
}

zipccl_status zipccl_document_parse(const char *json, size_t nbytes, yajl_val *out,
                                    struct zipccl_error *error)
{
    char reason[256] = "";
    size_t at = 0;
    const char *why = unfit(json, nbytes, &at);
    char *text;
    yajl_val root;

    if (why != NULL)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "result: not JSON at byte %zu: %s", at, why);
    text = malloc(nbytes + 1);
    if (text == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "result: out of memory");
    memcpy(text, json, nbytes);
    text[nbytes] = '\0';
    root = yajl_tree_parse(text, reason, sizeof reason);
    free(text);
    if (root == NULL)
        return not_json(json, nbytes, reason, error);
    *out = root;
    return ZIPCCL_OK;
}

zipccl_status zipccl_document_read(const char *path, size_t most, char **text, size_t *nbytes,
                                   struct zipccl_error *error)
{
    size_t room = 1 << 16, n = 0;
    char *all;
    FILE *file;

    ZIPCCL_TRY(zipccl_open_regular(path, &file, error));
    all = malloc(room);
    while (all != NULL) {
        n += fread(all + n, 1, room - n, file);
        if (n < room || room >= most)
            break;
        char *grown = realloc(all, 2 * room);
        if (grown == NULL)
            free(all);
        all = grown;
        room *= 2;
    }
    bool failed = ferror(file) != 0;
    int reason = errno;
    fclose(file);
    if (all == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
    if (failed || n == room) {
        free(all);
        if (!failed)
            return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: %zu MiB or more, which no result has",
                               path, most >> 20);
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s", path, strerror(reason));
    }
    *text = all;
    *nbytes = n;
    return ZIPCCL_OK;
}

yajl_val zipccl_document_get(yajl_val object, const char *key)
{
    if (!YAJL_IS_OBJECT(object))
        return NULL;
    for (size_t i = 0; i < object->u.object.len; i++)
        if (strcmp(object->u.object.keys[i], key) == 0)
            return object->u.object.values[i];
    return NULL;
}

double zipccl_document_number(yajl_val object, const char *key)
{
    yajl_val value = zipccl_document_get(object, key);

    return YAJL_IS_NUMBER(value) ? strtod(YAJL_GET_NUMBER(value), NULL) : (double)NAN;
}

const char *zipccl_document_text(yajl_val object, const char *key)
{
    yajl_val value = zipccl_document_get(object, key);

    return YAJL_IS_STRING(value) ? YAJL_GET_STRING(value) : "";
}

size_t zipccl_document_length(yajl_val object, const char *key)
{
    yajl_val value = zipccl_document_get(object, key);

    return YAJL_IS_ARRAY(value) ? value->u.array.len : 0;
}

yajl_val zipccl_document_item(yajl_val object, const char *key, size_t i)
{
    return i < zipccl_document_length(object, key)
               ? zipccl_document_get(object, key)->u.array.values[i]
               : NULL;
}

void zipccl_put_escaped(const char *text, FILE *out)
{
    for (; *text != '\0'; text++)
        switch (*text) {
        case '&': fputs("&amp;", out); break;
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '"': fputs("&quot;", out); break;
        case '\'': fputs("&#39;", out); break;
        default:
            /* Control characters are no HTML text. */
            fputc((unsigned char)*text < 0x20 && *text != '\n' && *text != '\t' ? ' ' : *text, out);
        }
}

void zipccl_put_fixed(double value, int decimals, FILE *out)
{
    if (!isfinite(value))
        fputs("\xe2\x80\x93", out);
    else if (value > 0 && value < 0.5 * pow(10, -decimals))
        fprintf(out, "%.2g", value);
    else
        fprintf(out, fabs(value) < 1e18 ? "%.*f" : "%.*g", decimals, value);
}

void zipccl_searched_rate(double Bps, char *out, size_t size)
{
    double gbps = Bps * 8 / 1e9, unit = gbps > 0 ? pow(10, floor(log10(gbps)) - 1) : 1;

    snprintf(out, size, "%.12g Gb/s", round(gbps / unit) * unit);
}
