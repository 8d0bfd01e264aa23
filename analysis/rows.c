/*
 * rows.c - rows of result files: which kind a file is, and what the readers share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/rows.h"

#include "analysis/document.h"
#include "analysis/result_check.h"
#include "analysis/rows_parts.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No result is larger; a tensor file given by mistake is not read to its end. */
#define MAX_FILE_BYTES ((size_t)256 << 20)

void zipccl_row_init(struct zipccl_row *row)
{
    memset(row, 0, sizeof *row);
    row->calls = 1;
    row->nchunks = 1;
    row->size_bytes = row->iters = NAN;
    row->time_s = row->q1_s = row->q3_s = NAN;
    row->raw_bytes = row->wire_bytes = row->ratio = NAN;
    row->encode_s = row->decode_s = row->wrong = NAN;
}

zipccl_status zipccl_rows_add(struct zipccl_rows *rows, const struct zipccl_row *row,
                              struct zipccl_error *error)
{
    bool full = rows->n == 0 || (rows->n & (rows->n - 1)) == 0;

    if (full) {
        size_t room = rows->n > 0 ? 2 * rows->n : 1;
        struct zipccl_row *grown = realloc(rows->rows, room * sizeof *grown);

        if (grown == NULL)
            return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", rows->path);
        rows->rows = grown;
    }
    rows->rows[rows->n++] = *row;
    return ZIPCCL_OK;
}

zipccl_status zipccl_row_fail(const struct zipccl_row_place *at, const char *format, ...)
{
    char text[400];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (at->row > 0)
        return zipccl_fail(at->error, ZIPCCL_ERR_INPUT, "%s: row %zu: %s", at->path, at->row, text);
    return zipccl_fail(at->error, ZIPCCL_ERR_INPUT, "%s: %s", at->path, text);
}

/* The value if it is there. */
static yajl_val present(yajl_val object, const char *key)
{
    yajl_val value = zipccl_document_get(object, key);

    return value == NULL || YAJL_IS_NULL(value) ? NULL : value;
}

static zipccl_status missing(const struct zipccl_row_place *at, yajl_val object, const char *key,
                             bool must, const char *expected)
{
    if (!must)
        return ZIPCCL_OK;
    return zipccl_row_fail(at, "key \"%s\": found %s, expected %s", key,
                           zipccl_value_kind(zipccl_document_get(object, key)), expected);
}

zipccl_status zipccl_row_text(const struct zipccl_row_place *at, yajl_val object, const char *key,
                              bool must, char *out, size_t size)
{
    yajl_val value = present(object, key);
    const char *text;

    if (value == NULL)
        return missing(at, object, key, must, "a text");
    if (!YAJL_IS_STRING(value))
        return zipccl_row_fail(at, "key \"%s\": found %s, expected a text", key,
                               zipccl_value_kind(value));
    text = YAJL_GET_STRING(value);
    for (const char *p = text; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return zipccl_row_fail(
                at, "key \"%s\": a text with control characters, expected one line", key);
    if (strlen(text) >= size)
        return zipccl_row_fail(at, "key \"%s\": a text of %zu bytes, expected at most %zu", key,
                               strlen(text), size - 1);
    snprintf(out, size, "%s", text);
    return ZIPCCL_OK;
}

zipccl_status zipccl_row_number(const struct zipccl_row_place *at, yajl_val object, const char *key,
                                bool must, double *out)
{
    yajl_val value = present(object, key);
    double number;

    if (value == NULL)
        return missing(at, object, key, must, "a number");
    if (!YAJL_IS_NUMBER(value))
        return zipccl_row_fail(at, "key \"%s\": found %s, expected a number", key,
                               zipccl_value_kind(value));
    number = strtod(YAJL_GET_NUMBER(value), NULL);
    if (!isfinite(number) || number < 0)
        return zipccl_row_fail(at, "key \"%s\": found %.40s, expected a number from 0 up", key,
                               YAJL_GET_NUMBER(value));
    *out = number;
    return ZIPCCL_OK;
}

zipccl_status zipccl_row_integer(const struct zipccl_row_place *at, yajl_val object,
                                 const char *key, bool must, uint64_t most, uint64_t *out)
{
    double number = -1;

    ZIPCCL_TRY(zipccl_row_number(at, object, key, must, &number));
    if (number < 0)
        return ZIPCCL_OK;
    if (number != floor(number) || number > (double)most)
        return zipccl_row_fail(at, "key \"%s\": found %.12g, expected a whole number up to %.12g",
                               key, number, (double)most);
    *out = (uint64_t)number;
    return ZIPCCL_OK;
}

zipccl_status zipccl_row_op(const struct zipccl_row_place *at, yajl_val object,
                            struct zipccl_row *row)
{
    char op[32], dtype[32], redop[32] = "";

    ZIPCCL_TRY(zipccl_row_text(at, object, "op", true, op, sizeof op));
    if (!zipccl_op_parse(op, &row->op))
        return zipccl_row_fail(at, "key \"op\": there is no collective \"%s\"", op);
    ZIPCCL_TRY(zipccl_row_text(at, object, "dtype", true, dtype, sizeof dtype));
    if (!zipccl_dtype_parse(dtype, &row->dtype))
        return zipccl_row_fail(at, "key \"dtype\": there is no type \"%s\"", dtype);
    ZIPCCL_TRY(zipccl_row_text(at, object, "redop", false, redop, sizeof redop));
    if (redop[0] != '\0' && !zipccl_redop_parse(redop, &row->redop))
        return zipccl_row_fail(at, "key \"redop\": there is no reduction \"%s\"", redop);
    return ZIPCCL_OK;
}

static zipccl_status check_version(yajl_val schema, const char *name, const char *path,
                                   struct zipccl_error *error)
{
    yajl_val value = zipccl_document_get(schema, "version");
    double version = zipccl_document_number(schema, "version");

    if (version == 1)
        return ZIPCCL_OK;
    if (!YAJL_IS_NUMBER(value))
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: schema %s: version: found %s, expected 1",
                           path, name, zipccl_value_kind(value));
    return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: schema %s has version %.12g, expected 1", path,
                       name, version);
}

static zipccl_status parse_json(const char *text, size_t nbytes, int op, struct zipccl_rows *rows,
                                struct zipccl_error *error)
{
    struct zipccl_error why = {""};
    yajl_val root = NULL;
    zipccl_status status = zipccl_document_parse(text, nbytes, &root, &why);

    if (status != ZIPCCL_OK)
        return zipccl_fail(error, status, "%s: %s", rows->path,
                           strncmp(why.text, "result: ", 8) == 0 ? why.text + 8 : why.text);
    yajl_val schema = zipccl_document_get(root, "schema");
    const char *name = zipccl_document_text(schema, "name");

    if (YAJL_IS_ARRAY(zipccl_document_get(root, "results")) &&
        zipccl_document_get(root, "nccl_version") != NULL)
        status = zipccl_rows_nccl_json(root, op, rows, error);
    else if (strcmp(name, "zipccl.perf") != 0 && strcmp(name, "zipccl.replay") != 0)
        status = zipccl_fail(error, ZIPCCL_ERR_INPUT,
                             "%s: found %s%.60s%s, expected schema zipccl.perf or zipccl.replay, "
                             "or JSON of nccl-tests",
                             rows->path, name[0] != '\0' ? "schema \"" : "JSON without a schema",
                             name, name[0] != '\0' ? "\"" : "");
    else if ((status = check_version(schema, name, rows->path, error)) != ZIPCCL_OK)
        ; /* says why */
    else if (strcmp(name, "zipccl.perf") == 0)
        status = zipccl_rows_perf(root, rows, error);
    else
        status = zipccl_rows_replay(root, rows, error);
    yajl_tree_free(root);
    return status;
}

/* A table as text with an end; a NUL would hide what follows. */
static zipccl_status parse_table(const char *text, size_t nbytes, int op, struct zipccl_rows *rows,
                                 struct zipccl_error *error)
{
    char *copy;
    zipccl_status status;

    if (memchr(text, '\0', nbytes) != NULL)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%s: not a text; expected JSON or a table of nccl-tests", rows->path);
    copy = malloc(nbytes + 1);
    if (copy == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", rows->path);
    memcpy(copy, text, nbytes);
    copy[nbytes] = '\0';
    status = zipccl_rows_nccl_table(copy, op, rows, error);
    free(copy);
    return status;
}

zipccl_status zipccl_rows_parse(const char *path, const char *text, size_t nbytes, int op,
                                struct zipccl_rows **out, struct zipccl_error *error)
{
    struct zipccl_rows *rows = calloc(1, sizeof *rows);
    size_t start = 0;
    zipccl_status status;

    if (rows == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
    snprintf(rows->path, sizeof rows->path, "%s", path);
    while (start < nbytes && strchr(" \t\r\n", text[start]) != NULL && text[start] != '\0')
        start++;
    if (start == nbytes)
        status = zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: empty; expected a result", path);
    else if (text[start] == '{')
        status = parse_json(text, nbytes, op, rows, error);
    else
        status = parse_table(text, nbytes, op, rows, error);
    if (status == ZIPCCL_OK && rows->n == 0)
        status = zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: no row has a time", path);
    if (status != ZIPCCL_OK) {
        zipccl_rows_destroy(rows);
        return status;
    }
    *out = rows;
    return ZIPCCL_OK;
}

zipccl_status zipccl_rows_read(const char *path, int op, struct zipccl_rows **out,
                               struct zipccl_error *error)
{
    char *text = NULL;
    size_t nbytes = 0;
    zipccl_status status;

    ZIPCCL_TRY(zipccl_document_read(path, MAX_FILE_BYTES, &text, &nbytes, error));
    status = zipccl_rows_parse(path, text, nbytes, op, out, error);
    free(text);
    return status;
}

void zipccl_rows_destroy(struct zipccl_rows *rows)
{
    if (rows == NULL)
        return;
    free(rows->rows);
    free(rows);
}
