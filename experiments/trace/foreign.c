/*
 * foreign.c - files of other tools, given where a trace is expected
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/trace/foreign.h"

#include "experiments/program/on_signal.h"
#include "experiments/trace/import_print.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yajl/yajl_parse.h>
#include <zlib.h>

static bool is_known(const char *path)
{
    char format[ZIPCCL_IMPORT_NAME_SIZE];

    return zipccl_import_detect(path, format, sizeof format, NULL) == ZIPCCL_OK;
}

/* Something that begins as no trace does, plain or gzip. */
static bool begins_otherwise(const char *path)
{
    gzFile file = gzopen(path, "rb");
    int first = ' ';

    while (file != NULL && (first == ' ' || first == '\n' || first == '\t' || first == '\r'))
        first = gzgetc(file);
    if (file != NULL)
        gzclose(file);
    return file != NULL && first >= 0 && first != '{';
}

/* Whole JSON, plain or gzip. */
static bool is_json(const char *path)
{
    gzFile file = gzopen(path, "rb");
    yajl_handle parser = file != NULL ? yajl_alloc(NULL, NULL, NULL) : NULL;
    unsigned char text[4096];
    int n = 0;
    bool ok = parser != NULL;

    while (ok && (n = gzread(file, text, sizeof text)) > 0)
        ok = yajl_parse(parser, text, (size_t)n) == yajl_status_ok;
    ok = ok && n == 0 && yajl_complete_parse(parser) == yajl_status_ok;
    if (parser != NULL)
        yajl_free(parser);
    if (file != NULL)
        ok = gzclose(file) == Z_OK && ok;
    return ok;
}

/* JSON that no importer knows: a file of something else.  What is broken or empty is not that. */
static bool is_other(const char *path)
{
    char format[ZIPCCL_IMPORT_NAME_SIZE];
    struct zipccl_error why = {""};

    return zipccl_import_detect(path, format, sizeof format, &why) == ZIPCCL_ERR_INPUT &&
           strstr(why.text, "of no known format") != NULL && is_json(path);
}

static bool is_folder(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Leave others out, as long as something is left. */
static void skip_others(struct zipccl_foreign_files *files, size_t first)
{
    size_t n = first;
    bool any = false;

    for (size_t i = first; i < files->n; i++)
        any = any || is_known(files->names[i]);
    for (size_t i = first; any && i < files->n; i++) {
        if (!is_other(files->names[i])) {
            files->names[n++] = files->names[i];
            continue;
        }
        if (files->nskipped++ == 0)
            snprintf(files->skipped, sizeof files->skipped, "%s", files->names[i]);
        free(files->names[i]);
    }
    files->n = any ? n : files->n;
}

zipccl_status zipccl_foreign_list(const char *const *paths, size_t npaths,
                                  struct zipccl_foreign_files *files, struct zipccl_error *error)
{
    memset(files, 0, sizeof *files);
    for (size_t i = 0; i < npaths; i++) {
        char **more, **all;
        size_t nmore, first = files->n;
        zipccl_status status = zipccl_import_files(paths[i], &more, &nmore, error);

        all = status == ZIPCCL_OK ? realloc(files->names, (first + nmore) * sizeof *all) : NULL;
        if (all == NULL) {
            zipccl_import_files_free(more, nmore);
            return status != ZIPCCL_OK ? status : zipccl_fail(error, ZIPCCL_ERR_NOMEM, "no memory");
        }
        memcpy(all + first, more, nmore * sizeof *all);
        free(more);
        files->names = all;
        files->n += nmore;
        if (is_folder(paths[i]))
            skip_others(files, first);
    }
    return ZIPCCL_OK;
}

void zipccl_foreign_free(struct zipccl_foreign_files *files)
{
    zipccl_import_files_free(files->names, files->n);
    memset(files, 0, sizeof *files);
}

zipccl_status zipccl_foreign_note(const struct zipccl_foreign_files *files,
                                  struct zipccl_import_report *report, struct zipccl_error *error)
{
    struct zipccl_import_item *items, *item;

    if (files->nskipped == 0)
        return ZIPCCL_OK;
    items = realloc(report->items, (report->nitems + 1) * sizeof *items);
    if (items == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "no memory");
    report->items = items;
    item = memset(&items[report->nitems++], 0, sizeof *item);
    snprintf(item->what, sizeof item->what, "other files");
    snprintf(item->text, sizeof item->text,
             "JSON of the folder that is of no known format: skipped (%s)", files->skipped);
    item->count = files->nskipped;
    return ZIPCCL_OK;
}

bool zipccl_foreign_is(const char *path)
{
    struct zipccl_trace_reader *reader;
    struct zipccl_foreign_files files;
    bool found = false;
    struct stat info;

    if (stat(path, &info) != 0)
        return false;
    if (S_ISREG(info.st_mode))
        return is_known(path);
    if (!S_ISDIR(info.st_mode))
        return false;
    if (zipccl_trace_open(path, &reader, NULL) == ZIPCCL_OK) {
        zipccl_trace_close(reader);
        return false;
    }
    if (zipccl_foreign_list(&path, 1, &files, NULL) == ZIPCCL_OK)
        for (size_t i = 0; i < files.n && !found; i++)
            found = is_known(files.names[i]); /* the others are broken, which the importer tells */
    zipccl_foreign_free(&files);
    return found;
}

/* Bytes of 'path' before its last part. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? (size_t)(slash - path) : 0;
}

/* One file of several ranks' files. */
static bool is_of_ranks(const char *path)
{
    char format[ZIPCCL_IMPORT_NAME_SIZE];
    const char *name = path + folder_length(path);

    return !is_folder(path) && strstr(name, ".tar") == NULL && strstr(name, ".tgz") == NULL &&
           zipccl_import_detect(path, format, sizeof format, NULL) == ZIPCCL_OK &&
           strcmp(format, "simai") != 0 && strcmp(format, "aicb") != 0;
}

bool zipccl_foreign_joins(const char *const *paths, size_t npaths)
{
    for (size_t i = 0; i < npaths; i++)
        if (folder_length(paths[i]) != folder_length(paths[0]) ||
            strncmp(paths[i], paths[0], folder_length(paths[0])) != 0 || !is_of_ranks(paths[i]))
            return false;
    return npaths > 1;
}

/* What is neither a trace nor to be imported, and known all the same. */
static bool is_refused(const char *path, struct zipccl_error *why)
{
    char format[ZIPCCL_IMPORT_NAME_SIZE];
    struct stat info;

    return stat(path, &info) == 0 && S_ISREG(info.st_mode) &&
           zipccl_import_detect(path, format, sizeof format, why) == ZIPCCL_ERR_INPUT &&
           (strstr(why->text, "a tar archive") != NULL || strstr(why->text, "nccl-tests") != NULL);
}

zipccl_status zipccl_foreign_explain(const char *path, zipccl_status status,
                                     const struct zipccl_error *why, struct zipccl_error *error)
{
    char format[ZIPCCL_IMPORT_NAME_SIZE];
    struct zipccl_error known = {""};

    if (is_refused(path, &known))
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s", known.text);
    if (why->text[0] == '\0')
        return ZIPCCL_OK;
    if (strstr(why->text, ": a folder without trace.jsonl") != NULL)
        return zipccl_fail(error, status,
                           "%.300s: a folder without trace.jsonl or trace.jsonl.gz and without "
                           "files to import (.json, .json.gz, .et or .et.gz), expected one",
                           path);
    if (status == ZIPCCL_ERR_INPUT && begins_otherwise(path) &&
        zipccl_import_detect(path, format, sizeof format, &known) == ZIPCCL_ERR_INPUT)
        return zipccl_fail(error, status, "%.400s; and no trace either", known.text);
    return zipccl_fail(error, status, "%s", why->text);
}

zipccl_status zipccl_foreign_load(const char *path, struct zipccl_trace **out,
                                  struct zipccl_error *error)
{
    struct zipccl_error why = {""};
    zipccl_status status;

    if (zipccl_foreign_is(path))
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%.200s: a file to import, expected a trace: zipccl trace import %.200s "
                           "-o TRACE.jsonl.gz makes one",
                           path, path);
    status = zipccl_trace_load(path, out, &why);
    return status == ZIPCCL_OK ? status : zipccl_foreign_explain(path, status, &why, error);
}

/* What 'print' says of 'file', which people know as 'path'. */
static zipccl_status print_as(const char *path, const char *file, zipccl_inspect_fn *print,
                              struct zipccl_error *error)
{
    size_t n = 0, skip = strlen(file);
    char *text = NULL;
    FILE *memory = open_memstream(&text, &n);
    zipccl_status status;

    if (memory == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
    status = print(file, memory, error);
    if (fclose(memory) != 0 && status == ZIPCCL_OK)
        status = zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
    skip = status == ZIPCCL_OK && strncmp(text, file, skip) == 0 ? skip : 0;
    if (status == ZIPCCL_OK)
        printf("%s%s", skip > 0 ? path : "", text + skip);
    free(text);
    return status;
}

/* The trace is imported to 'file', which is removed again. */
static zipccl_status inspect_imported(const char *path, const struct zipccl_foreign_files *files,
                                      const char *file, const char *json_path,
                                      zipccl_inspect_fn *print, zipccl_inspect_fn *json,
                                      struct zipccl_error *error)
{
    struct zipccl_import_report report = {.nitems = 0};
    struct zipccl_import_options options;
    zipccl_status status;

    zipccl_import_options_init(&options);
    status = zipccl_import(NULL, (const char *const *)files->names, files->n, file, &options,
                           &report, error);
    if (status == ZIPCCL_OK)
        status = zipccl_foreign_note(files, &report, error);
    if (status == ZIPCCL_OK && (json_path == NULL || strcmp(json_path, "-") != 0)) {
        zipccl_import_print(&report, stdout);
        putchar('\n');
    }
    if (status == ZIPCCL_OK && json_path != NULL)
        status = zipccl_inspect(file, json_path, zipccl_output_spare, print, json, error);
    else if (status == ZIPCCL_OK)
        status = print_as(path, file, print, error);
    zipccl_import_report_free(&report);
    unlink(file);
    return status;
}

zipccl_status zipccl_foreign_inspect(const char *const *paths, size_t npaths, const char *json_path,
                                     zipccl_inspect_fn *print, zipccl_inspect_fn *json,
                                     struct zipccl_error *error)
{
    char folder[] = "/tmp/zipccl-import-XXXXXX", file[sizeof folder + 16];
    struct zipccl_foreign_files files;
    struct zipccl_output output;
    zipccl_status status;

    ZIPCCL_TRY(zipccl_output_check(&output, json_path, error));
    status = zipccl_foreign_list(paths, npaths, &files, error);
    for (size_t i = 0; status == ZIPCCL_OK && i < files.n; i++)
        status = zipccl_output_spare(&output, files.names[i], error);
    if (status == ZIPCCL_OK && mkdtemp(folder) == NULL)
        status = zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s", folder, strerror(errno));
    if (status == ZIPCCL_OK) {
        zipccl_on_signal_remove_scratch(folder);
        snprintf(file, sizeof file, "%s/trace.jsonl", folder);
        status = inspect_imported(paths[0], &files, file, json_path, print, json, error);
        rmdir(folder);
        zipccl_on_signal_keep();
    }
    zipccl_foreign_free(&files);
    return status;
}
