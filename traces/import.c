/*
 * import.c - the table of formats, detection, the report, and import into memory
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import.h"

#include "traces/import_archive.h"
#include "traces/import_internal.h"
#include "traces/json.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

/* Bytes of a file that detection sees. */
#define HEAD_SIZE 4096

#define MAX_MICRO_BATCHES ((uint64_t)1 << 30)

static const struct zipccl_import_format *const formats[] = {
    &zipccl_import_simai, &zipccl_import_kineto, &zipccl_import_nccl,
    &zipccl_import_aicb,  &zipccl_import_et,     &zipccl_import_chakra};

#define NFORMATS (sizeof formats / sizeof formats[0])

const char *zipccl_import_format_name(size_t i)
{
    return i < NFORMATS ? formats[i]->name : NULL;
}

const char *zipccl_import_format_about(size_t i)
{
    return i < NFORMATS ? formats[i]->about : NULL;
}

static struct zipccl_import_item *find_item(struct zipccl_import_report *report, const char *what)
{
    struct zipccl_import_item *items;

    for (size_t i = 0; i < report->nitems; i++)
        if (strcmp(report->items[i].what, what) == 0)
            return &report->items[i];
    items = realloc(report->items, (report->nitems + 1) * sizeof *items);
    if (items == NULL)
        return NULL;
    report->items = items;
    memset(&items[report->nitems], 0, sizeof *items);
    snprintf(items[report->nitems].what, sizeof items->what, "%s", what);
    return &items[report->nitems++];
}

zipccl_status zipccl_import_count(const struct zipccl_importer *importer, bool guess,
                                  const char *what, uint64_t line, uint64_t n, const char *format,
                                  ...)
{
    struct zipccl_place at = {importer->paths[0], line, importer->error};
    struct zipccl_import_item *item;
    va_list args;

    if (n == 0)
        return ZIPCCL_OK;
    item = find_item(importer->report, what);
    if (item == NULL)
        return zipccl_place_nomem(&at);
    if (item->count == 0) {
        va_start(args, format);
        vsnprintf(item->text, sizeof item->text, format, args);
        va_end(args);
        item->line = line;
        item->guess = guess;
    }
    item->count = item->count > UINT64_MAX - n ? UINT64_MAX : item->count + n;
    if (!guess)
        return ZIPCCL_OK;
    importer->report->nguesses += n;
    if (importer->options->strict)
        return zipccl_place_fail(&at, "%s: a guess, expected none (strict)", item->text);
    return ZIPCCL_OK;
}

static zipccl_status unknown_format(const char *path, uint64_t line, const char *what,
                                    struct zipccl_error *error)
{
    struct zipccl_place at = {path, line, error};
    char names[NFORMATS * (ZIPCCL_IMPORT_NAME_SIZE + 2) + 1] = "";

    for (size_t i = 0; i < NFORMATS; i++) {
        strcat(names, i > 0 ? ", " : "");
        strcat(names, formats[i]->name);
    }
    return zipccl_place_fail(&at, "%s, expected one of the formats %s", what, names);
}

static const struct zipccl_import_format *format_of(const char *head, size_t nbytes)
{
    for (size_t i = 0; i < NFORMATS; i++)
        if (formats[i]->detect(head, nbytes))
            return formats[i];
    return NULL;
}

static bool is_known(const char *head, size_t nbytes)
{
    return nbytes > 0 && format_of(head, nbytes) != NULL;
}

static bool contains(const char *head, size_t nbytes, const char *word)
{
    size_t n = strlen(word);

    for (size_t i = 0; i + n <= nbytes; i++)
        if (memcmp(head + i, word, n) == 0)
            return true;
    return false;
}

/* What nccl-tests prints, or writes with -J: measurements of a network. */
static bool is_nccl_tests(const char *head, size_t nbytes)
{
    if (contains(head, nbytes, "# nThread") || contains(head, nbytes, "# nccl-tests version"))
        return true;
    if (contains(head, nbytes, "out-of-place") && contains(head, nbytes, "algbw"))
        return true;
    return contains(head, nbytes, "\"start_time\"") && contains(head, nbytes, "\"args\"") &&
           (contains(head, nbytes, "\"nccl_version\"") || contains(head, nbytes, "\"env\""));
}

static zipccl_status detect_archive(const char *path, const struct zipccl_import_format **out,
                                    struct zipccl_error *error)
{
    char head[HEAD_SIZE];
    size_t n;

    ZIPCCL_TRY(zipccl_archive_peek(path, is_known, head, &n, error));
    if (n == 0)
        return unknown_format(path, 0, "a tar archive without a file of a known format", error);
    *out = format_of(head, n);
    return ZIPCCL_OK;
}

static zipccl_status detect(const char *path, const struct zipccl_import_format **out,
                            struct zipccl_error *error)
{
    char head[HEAD_SIZE];
    gzFile file;
    int n, code;

    errno = 0;
    file = gzopen(path, "rb");
    if (file == NULL)
        return zipccl_fail(error, errno == 0 ? ZIPCCL_ERR_NOMEM : ZIPCCL_ERR_IO, "%s: %s", path,
                           errno == 0 ? "out of memory" : strerror(errno));
    n = gzread(file, head, sizeof head);
    gzerror(file, &code);
    if (n < 0 && code == Z_ERRNO)
        zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s", path, strerror(errno));
    gzclose(file);
    if (n < 0)
        return code == Z_ERRNO ? ZIPCCL_ERR_IO
                               : unknown_format(path, 0, "a broken gzip stream", error);
    if (n == 0)
        return unknown_format(path, 1, "an empty file", error);
    if (zipccl_archive_is(head, (size_t)n))
        return detect_archive(path, out, error);
    if (is_nccl_tests(head, (size_t)n))
        return unknown_format(path, 0,
                              "measurements of nccl-tests, which are no trace (they make the "
                              "network of a cluster: zipccl cluster fit)",
                              error);
    *out = format_of(head, (size_t)n);
    if (*out != NULL)
        return ZIPCCL_OK;
    if (n > 1 && (memcmp(head, "\xff\xfe", 2) == 0 || memcmp(head, "\xfe\xff", 2) == 0))
        return unknown_format(path, 0, "text in UTF-16, as Windows writes it, not UTF-8", error);
    return unknown_format(path, 0, "a file of no known format", error);
}

zipccl_status zipccl_import_detect(const char *path, char *format, size_t size,
                                   struct zipccl_error *error)
{
    const struct zipccl_import_format *found;

    if (path == NULL || format == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "zipccl_import_detect: NULL argument");
    ZIPCCL_TRY(detect(path, &found, error));
    if (strlen(found->name) >= size)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "zipccl_import_detect: no room for \"%s\"",
                           found->name);
    strcpy(format, found->name);
    return ZIPCCL_OK;
}

/* That of the first file; execution traces are given beside profiler files too, others alone. */
static zipccl_status detect_all(const char *const *paths, size_t npaths,
                                const struct zipccl_import_format **out, struct zipccl_error *error)
{
    const struct zipccl_import_format *other, *first;

    ZIPCCL_TRY(detect(paths[0], &first, error));
    *out = first;
    for (size_t i = 1; i < npaths; i++) {
        struct zipccl_place place = {paths[i], 0, error};

        if (detect(paths[i], &other, NULL) != ZIPCCL_OK || other == first)
            continue;
        if (other != &zipccl_import_et && first != &zipccl_import_et)
            return zipccl_place_fail(&place, "a file of format %s, expected %s as %.160s is",
                                     other->name, first->name, paths[0]);
        if (other == &zipccl_import_kineto)
            *out = other;
    }
    return ZIPCCL_OK;
}

static zipccl_status find_format(const char *name, const char *const *paths, size_t npaths,
                                 const struct zipccl_import_format **out,
                                 struct zipccl_error *error)
{
    char quoted[ZIPCCL_QUOTE_SIZE], what[ZIPCCL_QUOTE_SIZE + 16];

    if (name == NULL)
        return detect_all(paths, npaths, out, error);
    for (size_t i = 0; i < NFORMATS; i++) {
        if (strcmp(formats[i]->name, name) == 0) {
            *out = formats[i];
            return ZIPCCL_OK;
        }
    }
    snprintf(what, sizeof what, "format %s", zipccl_quote(quoted, name));
    return unknown_format(paths[0], 0, what, error);
}

static zipccl_status check_options(const struct zipccl_import_options *o,
                                   struct zipccl_error *error)
{
    if ((o->dtype_given && (unsigned)o->dtype >= ZIPCCL_NUM_DTYPES) ||
        (o->grad_dtype_given && (unsigned)o->grad_dtype >= ZIPCCL_NUM_DTYPES))
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "zipccl_import: no such dtype");
    if (o->micro_batches > MAX_MICRO_BATCHES)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%" PRIu64 " micro-batches, expected at most 2^30", o->micro_batches);
    return ZIPCCL_OK;
}

/* Import files, none of which is an archive. */
static zipccl_status import_files(const char *format, const struct zipccl_importer *importer)
{
    const struct zipccl_import_format *found = NULL;

    ZIPCCL_TRY(find_format(format, importer->paths, importer->npaths, &found, importer->error));
    snprintf(importer->report->format, sizeof importer->report->format, "%s", found->name);
    importer->report->layers = "layers";
    return found->run(importer);
}

static zipccl_status import_all(const char *format, struct zipccl_importer *importer)
{
    struct zipccl_unpacked unpacked;
    zipccl_status status = zipccl_archive_unpack(importer->paths, importer->npaths, is_known,
                                                 &unpacked, importer->error);

    importer->paths = (const char *const *)unpacked.files;
    importer->npaths = unpacked.n;
    if (status == ZIPCCL_OK)
        status = import_files(format, importer);
    if (status == ZIPCCL_OK)
        status = zipccl_import_count(importer, false, "other members", 0, unpacked.nskipped,
                                     "members of archives that are of no known format: skipped");
    if (status != ZIPCCL_OK)
        zipccl_archive_rename(&unpacked, importer->error);
    zipccl_archive_remove(&unpacked);
    return status;
}

zipccl_status zipccl_import(const char *format, const char *const *paths, size_t npaths,
                            const char *out_path, const struct zipccl_import_options *options,
                            struct zipccl_import_report *report, struct zipccl_error *error)
{
    struct zipccl_import_options defaults;
    struct zipccl_import_report own = {.nitems = 0};
    struct zipccl_importer importer = {
        paths, npaths, out_path, options, report != NULL ? report : &own, error};
    zipccl_status status;

    memset(importer.report, 0, sizeof *importer.report);
    if (paths == NULL || npaths == 0 || paths[0] == NULL || out_path == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "zipccl_import: nothing to read or to write");
    if (options == NULL) {
        zipccl_import_options_init(&defaults);
        importer.options = &defaults;
    }
    ZIPCCL_TRY(check_options(importer.options, error));
    status = import_all(format, &importer);
    zipccl_import_report_free(&own);
    return status;
}

/* Write 'path' from the root of the file system; malloc, NULL with 'error' if that fails. */
static char *absolute(const char *path, struct zipccl_error *error)
{
    char folder[PATH_MAX] = "";
    size_t room;
    char *out;

    if (path[0] != '/' && getcwd(folder, sizeof folder) == NULL) {
        zipccl_fail(error, ZIPCCL_ERR_IO, "the current folder: %s", strerror(errno));
        return NULL;
    }
    room = strlen(folder) + strlen(path) + 2;
    out = malloc(room);
    if (out == NULL)
        zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
    else
        snprintf(out, room, "%s%s%s", folder, path[0] != '/' ? "/" : "", path);
    return out;
}

/* Import into 'file' and load that; the trace then goes by the name of what was imported. */
static zipccl_status through_file(const char *format, const char *const *paths, size_t npaths,
                                  const char *file, const struct zipccl_import_options *options,
                                  struct zipccl_import_report *report, struct zipccl_trace **out,
                                  struct zipccl_error *error)
{
    struct zipccl_trace *trace;
    char *path;

    ZIPCCL_TRY(zipccl_import(format, paths, npaths, file, options, report, error));
    path = malloc(strlen(paths[0]) + 1);
    if (path == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", paths[0]);
    if (zipccl_trace_load(file, &trace, error) != ZIPCCL_OK) {
        free(path);
        return ZIPCCL_ERR_INTERNAL;
    }
    strcpy(path, paths[0]);
    free(trace->path);
    trace->path = path;
    *out = trace;
    return ZIPCCL_OK;
}

zipccl_status zipccl_import_to_memory(const char *format, const char *const *paths, size_t npaths,
                                      const struct zipccl_import_options *options,
                                      struct zipccl_import_report *report,
                                      struct zipccl_trace **out, struct zipccl_error *error)
{
    char folder[] = "/tmp/zipccl-import-XXXXXX", file[sizeof folder + 16];
    struct zipccl_import_options copy;
    char *samples = NULL;
    zipccl_status status;

    if (report != NULL)
        memset(report, 0, sizeof *report);
    if (out == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "zipccl_import_to_memory: NULL argument");
    zipccl_import_options_init(&copy);
    if (options != NULL)
        copy = *options;
    if (copy.samples != NULL) {
        samples = absolute(copy.samples, error);
        if (samples == NULL)
            return ZIPCCL_ERR_IO;
        copy.samples = samples;
    }
    if (mkdtemp(folder) == NULL) {
        status = zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s", folder, strerror(errno));
        free(samples);
        return status;
    }
    snprintf(file, sizeof file, "%s/trace.jsonl", folder);
    status = through_file(format, paths, npaths, file, &copy, report, out, error);
    unlink(file);
    rmdir(folder);
    free(samples);
    return status;
}
