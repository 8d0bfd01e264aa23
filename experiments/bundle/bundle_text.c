/*
 * bundle_text.c - what a file of a bundle may be, and its text without names of hosts
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/bundle/bundle_text.h"

#include "traces/json.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yajl/yajl_gen.h>
#include <yajl/yajl_parse.h>
#include <yajl/yajl_tree.h>

/* Logs of a run are far smaller. */
#define MOST_PLAIN ((size_t)16 << 20)

static const char *const schemas[] = {
    "zipccl.perf",         "zipccl.replay",        "zipccl.compare",    "zipccl.plan",
    "zipccl.device_check", "zipccl.preflight",     "zipccl.codec-file", "zipccl.codec-bench",
    "zipccl.codec-stat",   "zipccl.codec-conform", "zipccl-trace",      "zipccl-trace-info",
    "zipccl-preload",      "zipccl.plan_steps"};

static bool is_schema(const char *text, size_t nbytes)
{
    for (size_t i = 0; i < sizeof schemas / sizeof schemas[0]; i++)
        if (strlen(schemas[i]) == nbytes && memcmp(schemas[i], text, nbytes) == 0)
            return true;
    return false;
}

/* ---- is it a result? */

/* Where a parse of JSON is, and whether it has seen what makes it ours. */
struct search {
    int depth;
    bool at_schema, in_schema, at_name, at_own, ours;
};

static bool equals(const unsigned char *text, size_t nbytes, const char *word)
{
    return strlen(word) == nbytes && memcmp(text, word, nbytes) == 0;
}

static int on_map(void *data)
{
    struct search *s = data;

    s->in_schema = s->depth == 1 && s->at_schema;
    s->ours |= s->at_own; /* a timeline */
    s->at_schema = s->at_name = s->at_own = false;
    s->depth++;
    return 1;
}

static int on_array(void *data)
{
    struct search *s = data;

    s->at_schema = s->at_name = s->at_own = false;
    s->depth++;
    return 1;
}

static int on_end(void *data)
{
    struct search *s = data;

    s->depth--;
    s->in_schema = false;
    return 1;
}

static int on_key(void *data, const unsigned char *key, size_t nbytes)
{
    struct search *s = data;

    s->at_schema =
        s->depth == 1 && (equals(key, nbytes, "schema") || equals(key, nbytes, "format"));
    s->at_own = s->depth == 1 && equals(key, nbytes, "zipccl");
    s->at_name = s->depth == 2 && s->in_schema && equals(key, nbytes, "name");
    return 1;
}

static int on_string(void *data, const unsigned char *text, size_t nbytes)
{
    struct search *s = data;

    if (memchr(text, 0, nbytes) != NULL)
        return 0; /* what follows would be lost */
    s->ours |= (s->at_schema || s->at_name) && is_schema((const char *)text, nbytes);
    s->at_schema = s->at_name = s->at_own = false;
    return 1;
}

/* Line of text[at]. */
static size_t line_of(const char *text, size_t at)
{
    size_t line = 1;

    for (size_t i = 0; i < at; i++)
        line += text[i] == '\n';
    return line;
}

static zipccl_status check_json(const char *path, const char *text, size_t nbytes, bool many,
                                struct zipccl_error *error)
{
    static const yajl_callbacks callbacks = {.yajl_string = on_string,
                                             .yajl_start_map = on_map,
                                             .yajl_map_key = on_key,
                                             .yajl_end_map = on_end,
                                             .yajl_start_array = on_array,
                                             .yajl_end_array = on_end};
    struct search s = {0};
    yajl_handle parser = yajl_alloc(&callbacks, NULL, &s);
    yajl_status code;
    size_t at;

    if (parser == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
    if (many)
        yajl_config(parser, yajl_allow_multiple_values, 1);
    code = yajl_parse(parser, (const unsigned char *)text, nbytes);
    at = yajl_get_bytes_consumed(parser);
    if (code == yajl_status_ok)
        code = yajl_complete_parse(parser);
    yajl_free(parser);
    if (code != yajl_status_ok)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s:%zu: no JSON, expected what zipccl wrote",
                           path, line_of(text, at < nbytes ? at : nbytes));
    if (!s.ours)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%s: JSON without a schema of zipccl, expected a result such as "
                           "zipccl.perf, a trace or a timeline",
                           path);
    return ZIPCCL_OK;
}

/* Text that people read: UTF-8, without control characters but those of terminals. */
static zipccl_status check_characters(const char *path, const char *text, size_t nbytes,
                                      struct zipccl_error *error)
{
    if (nbytes == 0)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: empty, expected a result", path);
    for (size_t i = 0; i < nbytes; i++) {
        unsigned char c = (unsigned char)text[i];

        if ((c < 32 && strchr("\t\n\r\f\b\033", c) == NULL) || c == 0 || c == 127)
            return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                               "%s: binary: byte 0x%02x at %zu, expected text", path, c, i);
    }
    if (!zipccl_utf8_valid(text, nbytes))
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: binary: no UTF-8, expected text", path);
    return ZIPCCL_OK;
}

/* True if 'word' is in text [nbytes], in any case. */
static bool has(const char *text, size_t nbytes, const char *word)
{
    size_t n = strlen(word);

    for (size_t i = 0; i + n <= nbytes; i++)
        if (strncasecmp(text + i, word, n) == 0)
            return true;
    return false;
}

/* What a file of an ending must have in it, NULL for nothing. */
struct ending {
    const char *name;
    enum zipccl_text_kind kind;
    const char *must;
};

static const struct ending *find_ending(const char *path)
{
    static const struct ending endings[] = {
        {".json", ZIPCCL_TEXT_JSON, NULL},    {".jsonl", ZIPCCL_TEXT_JSON, NULL},
        {".csv", ZIPCCL_TEXT_CSV, ","},       {".txt", ZIPCCL_TEXT_PLAIN, NULL},
        {".log", ZIPCCL_TEXT_PLAIN, NULL},    {".yaml", ZIPCCL_TEXT_PLAIN, ":"},
        {".yml", ZIPCCL_TEXT_PLAIN, ":"},     {".svg", ZIPCCL_TEXT_PLAIN, "<svg"},
        {".html", ZIPCCL_TEXT_PLAIN, "<html"}};
    size_t n = strlen(path);

    if (n > 3 && strcmp(path + n - 3, ".gz") == 0)
        n -= 3;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t k = strlen(endings[i].name);

        if (n > k && strncmp(path + n - k, endings[i].name, k) == 0)
            return &endings[i];
    }
    return NULL;
}

zipccl_status zipccl_text_check(const char *path, const char *text, size_t nbytes,
                                enum zipccl_text_kind *kind, struct zipccl_error *error)
{
    const struct ending *ending = find_ending(path);

    if (ending == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%s: no kind of result, expected .json, .jsonl, .csv, .txt, .log, "
                           ".yaml, .svg or .html, or one of them with .gz",
                           path);
    ZIPCCL_TRY(check_characters(path, text, nbytes, error));
    *kind = ending->kind;
    if (*kind == ZIPCCL_TEXT_JSON)
        return check_json(path, text, nbytes, strcmp(ending->name, ".jsonl") == 0, error);
    if (ending->must != NULL && !has(text, nbytes, ending->must))
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: no '%s' in it, expected a %s file", path,
                           ending->must, ending->name + 1);
    if (*kind == ZIPCCL_TEXT_PLAIN && ending->must == NULL && nbytes > MOST_PLAIN)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: %zu MiB of text, expected at most %zu MiB",
                           path, nbytes >> 20, MOST_PLAIN >> 20);
    return ZIPCCL_OK;
}

/* ---- names of hosts */

/* Text that grows. */
struct sink {
    FILE *out;
    const struct zipccl_hosts *hosts;
    size_t nhidden;
};

static zipccl_status hide(struct sink *sink, const char *text, size_t nbytes)
{
    size_t n, nhidden;
    char *copy;

    ZIPCCL_TRY(zipccl_hosts_hide(sink->hosts, text, nbytes, &copy, &n, &nhidden));
    fwrite(copy, 1, n, sink->out);
    free(copy);
    sink->nhidden += nhidden;
    return ZIPCCL_OK;
}

/* A string [nbytes] of JSON, quotes included, which has escapes: without them, then with. */
static zipccl_status hide_escaped(struct sink *sink, const char *text, size_t nbytes)
{
    char *token = strndup(text, nbytes), *plain = NULL;
    yajl_val value = token != NULL ? yajl_tree_parse(token, NULL, 0) : NULL;
    yajl_gen gen = yajl_gen_alloc(NULL);
    const char *string = value != NULL ? YAJL_GET_STRING(value) : NULL;
    zipccl_status status = ZIPCCL_ERR_NOMEM;
    const unsigned char *made;
    size_t n, nmade, nhidden = 0;

    if (string != NULL && gen != NULL)
        status = zipccl_hosts_hide(sink->hosts, string, strlen(string), &plain, &n, &nhidden);
    if (status == ZIPCCL_OK && nhidden == 0) {
        fwrite(text, 1, nbytes, sink->out);
    } else if (status == ZIPCCL_OK) {
        yajl_gen_string(gen, (const unsigned char *)plain, n);
        yajl_gen_get_buf(gen, &made, &nmade);
        fwrite(made, 1, nmade, sink->out);
    }
    sink->nhidden += nhidden;
    yajl_tree_free(value);
    if (gen != NULL)
        yajl_gen_free(gen);
    free(plain);
    free(token);
    return status;
}

/* The string at text[at], with its quotes; what comes behind it says whether it is a key. */
static zipccl_status hide_string(struct sink *sink, const char *text, size_t nbytes, size_t *at)
{
    size_t begin = *at, end = begin + 1, next;
    bool escapes = false;

    for (; end < nbytes && text[end] != '"'; end++)
        if (text[end] == '\\') {
            escapes = true;
            end++;
        }
    next = ++end;
    while (next < nbytes && isspace((unsigned char)text[next]))
        next++;
    *at = end;
    if ((next < nbytes && text[next] == ':') || is_schema(text + begin + 1, end - begin - 2)) {
        fwrite(text + begin, 1, end - begin, sink->out);
        return ZIPCCL_OK;
    }
    return escapes ? hide_escaped(sink, text + begin, end - begin)
                   : hide(sink, text + begin, end - begin);
}

static zipccl_status hide_json(struct sink *sink, const char *text, size_t nbytes)
{
    for (size_t at = 0; at < nbytes;) {
        const char *quote = memchr(text + at, '"', nbytes - at);
        size_t n = (quote != NULL ? (size_t)(quote - text) : nbytes) - at;

        fwrite(text + at, 1, n, sink->out);
        at += n;
        if (at < nbytes)
            ZIPCCL_TRY(hide_string(sink, text, nbytes, &at));
    }
    return ZIPCCL_OK;
}

/* Bytes of the first line if it has the columns that zipccl writes, else 0. */
static size_t header(const char *text, size_t nbytes)
{
    static const char *const columns[] = {"op,", "kind,op,", "file,", "codec,"};
    const char *end = memchr(text, '\n', nbytes);
    size_t n = end != NULL ? (size_t)(end - text) : 0;

    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        if (n > strlen(columns[i]) && strncmp(text, columns[i], strlen(columns[i])) == 0)
            return n;
    return 0;
}

zipccl_status zipccl_text_hide(const struct zipccl_hosts *hosts, enum zipccl_text_kind kind,
                               const char *text, size_t nbytes, char **out, size_t *out_nbytes,
                               size_t *nhidden)
{
    size_t kept = kind == ZIPCCL_TEXT_CSV ? header(text, nbytes) : 0;
    struct sink sink = {NULL, hosts, 0};
    zipccl_status status;

    *out = NULL;
    if ((sink.out = open_memstream(out, out_nbytes)) == NULL)
        return ZIPCCL_ERR_NOMEM;
    fwrite(text, 1, kept, sink.out);
    status = kind == ZIPCCL_TEXT_JSON ? hide_json(&sink, text, nbytes)
                                      : hide(&sink, text + kept, nbytes - kept);
    if (ferror(sink.out))
        status = ZIPCCL_ERR_NOMEM;
    if (fclose(sink.out) != 0)
        status = ZIPCCL_ERR_NOMEM;
    if (status != ZIPCCL_OK) {
        free(*out);
        *out = NULL;
    }
    *nhidden = sink.nhidden;
    return status;
}
