/*
 * codec_vectors.c - reads the format's test vectors by their manifest, and checks them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/codec/codec_vectors.h"

#include "core/dtype.h"

#include <errno.h>
#include <inttypes.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Columns of the manifest, divided by tabs. */
enum { NAME, VERDICT, WIRE_SUM, DTYPE, COUNT, ELEMENTS, ELEMENTS_SUM, ABOUT, COLUMNS };

/* More than any vector has. */
#define MOST_BYTES ((size_t)64 << 20)

/* Where an error is. */
struct place {
    const char *manifest;
    size_t line;
    struct zipccl_error *error;
};

#define FAIL(at, format, ...)                                                                      \
    zipccl_fail((at)->error, ZIPCCL_ERR_INPUT, "%s:%zu: " format, (at)->manifest, (at)->line,      \
                __VA_ARGS__)

static zipccl_status read_file(const char *path, uint8_t **bytes, size_t *nbytes,
                               struct zipccl_error *error)
{
    FILE *file = fopen(path, "rb");
    size_t room = 0, n = 0;
    uint8_t *all = NULL;

    if (file == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s", path, strerror(errno));
    do {
        room = room > 0 ? 2 * room : 65536;
        uint8_t *grown = room <= 2 * MOST_BYTES ? realloc(all, room) : NULL;
        if (grown == NULL) {
            free(all);
            fclose(file);
            return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: too large, or out of memory", path);
        }
        all = grown;
        n += fread(all + n, 1, room - n - 1, file);
    } while (n == room - 1);
    bool failed = ferror(file);
    fclose(file);
    if (failed) {
        free(all);
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: cannot read", path);
    }
    all[n] = '\0';
    *bytes = all;
    *nbytes = n;
    return ZIPCCL_OK;
}

/* Read the file 'name' of the folder and compare its sum. */
static zipccl_status read_checked(const struct place *at, const char *directory, const char *name,
                                  const char *sum, uint8_t **bytes, size_t *nbytes)
{
    char path[4096], found[SHA256_DIGEST_STRING_LENGTH];

    if (name[0] == '/' || strstr(name, "..") != NULL ||
        snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path)
        return FAIL(at, "file '%.80s', expected one inside the folder", name);
    ZIPCCL_TRY(read_file(path, bytes, nbytes, at->error));
    if (strcmp(SHA256Data(*bytes, *nbytes, found), sum) != 0)
        return FAIL(at, "%s has sha256 %s, expected %.64s: the vectors are damaged", name, found,
                    sum);
    return ZIPCCL_OK;
}

/* What only valid vectors have. */
static zipccl_status read_elements(const struct place *at, const char *directory, char **column,
                                   struct zipccl_vector *v)
{
    enum zipccl_dtype dtype;
    char *end;

    if (!zipccl_dtype_parse(column[DTYPE], &dtype))
        return FAIL(at, "dtype '%.20s', expected one that the codec has", column[DTYPE]);
    unsigned long long n = strtoull(column[COUNT], &end, 10);
    if (column[COUNT][0] < '0' || column[COUNT][0] > '9' || *end != '\0')
        return FAIL(at, "'%.20s' elements, expected a number", column[COUNT]);
    ZIPCCL_TRY(read_checked(at, directory, column[ELEMENTS], column[ELEMENTS_SUM], &v->elements,
                            &v->elements_nbytes));
    if (v->elements_nbytes % zipccl_dtype_size(dtype) != 0 ||
        v->elements_nbytes / zipccl_dtype_size(dtype) != n)
        return FAIL(at, "%s has %zu bytes, expected %llu elements of %s", column[ELEMENTS],
                    v->elements_nbytes, n, column[DTYPE]);
    return ZIPCCL_OK;
}

static zipccl_status read_line(const struct place *at, const char *directory, char *line,
                               struct zipccl_vector *v)
{
    char *column[COLUMNS];
    int n = 0;

    for (char *next = line; next != NULL && n < COLUMNS; n++) {
        column[n] = next;
        next = strchr(next, '\t');
        if (next != NULL)
            *next++ = '\0';
        if (next != NULL && n == COLUMNS - 1)
            n++;
    }
    if (n != COLUMNS)
        return FAIL(at, "%s columns, expected %d", n < COLUMNS ? "too few" : "too many", COLUMNS);
    v->valid = strcmp(column[VERDICT], "valid") == 0;
    if (!v->valid && strcmp(column[VERDICT], "corrupt") != 0 &&
        strcmp(column[VERDICT], "overflow") != 0)
        return FAIL(at, "verdict '%.20s', expected valid, corrupt or overflow", column[VERDICT]);
    v->name = strdup(column[NAME]);
    v->verdict = strdup(column[VERDICT]);
    v->dtype = strdup(column[DTYPE]);
    v->about = strdup(column[ABOUT]);
    if (v->name == NULL || v->verdict == NULL || v->dtype == NULL || v->about == NULL)
        return zipccl_fail(at->error, ZIPCCL_ERR_NOMEM, "%s: out of memory", at->manifest);
    ZIPCCL_TRY(read_checked(at, directory, v->name, column[WIRE_SUM], &v->wire, &v->wire_nbytes));
    return v->valid ? read_elements(at, directory, column, v) : ZIPCCL_OK;
}

static zipccl_status read_lines(struct place *at, const char *directory, char *text,
                                struct zipccl_vectors *vectors)
{
    for (char *line = text, *next; *line != '\0'; line = next) {
        next = strchr(line, '\n');
        at->line++;
        if (next == NULL)
            return FAIL(at, "%s", "no newline at the end: the manifest is cut");
        *next++ = '\0';
        if (line[0] == '#' || line[0] == '\0')
            continue;
        struct zipccl_vector *grown =
            realloc(vectors->vectors, (vectors->count + 1) * sizeof *vectors->vectors);
        if (grown == NULL)
            return zipccl_fail(at->error, ZIPCCL_ERR_NOMEM, "%s: out of memory", at->manifest);
        vectors->vectors = grown;
        memset(&grown[vectors->count], 0, sizeof *grown);
        ZIPCCL_TRY(read_line(at, directory, line, &grown[vectors->count++]));
    }
    if (vectors->count == 0)
        return FAIL(at, "%s", "no vectors, expected some");
    return ZIPCCL_OK;
}

zipccl_status zipccl_vectors_load(const char *directory, struct zipccl_vectors *vectors,
                                  struct zipccl_error *error)
{
    struct zipccl_vectors found = {0};
    char path[4096];
    struct place at = {path, 0, error};
    uint8_t *text = NULL;
    size_t nbytes;

    if (snprintf(path, sizeof path, "%s/MANIFEST.tsv", directory) >= (int)sizeof path)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "the path of the vectors is too long");
    ZIPCCL_TRY(read_file(path, &text, &nbytes, error));
    zipccl_status status = read_lines(&at, directory, (char *)text, &found);
    free(text);
    if (status != ZIPCCL_OK) {
        zipccl_vectors_destroy(&found);
        return status;
    }
    *vectors = found;
    return ZIPCCL_OK;
}

void zipccl_vectors_destroy(struct zipccl_vectors *vectors)
{
    for (size_t i = 0; i < vectors->count; i++) {
        struct zipccl_vector *v = &vectors->vectors[i];

        free(v->name);
        free(v->verdict);
        free(v->dtype);
        free(v->about);
        free(v->wire);
        free(v->elements);
    }
    free(vectors->vectors);
    memset(vectors, 0, sizeof *vectors);
}
