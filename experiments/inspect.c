/*
 * inspect.c - text to stdout, JSON to a file, each whole or not at all
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/inspect.h"

#include "experiments/output.h"

#include <stdlib.h>

static zipccl_status write_json(const char *path, const char *json_path, zipccl_inspect_fn *json,
                                struct zipccl_error *error)
{
    struct zipccl_output output;
    zipccl_status status;

    ZIPCCL_TRY(zipccl_output_check(&output, json_path, error));
    if (zipccl_output_is(&output, path))
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: an output must not overwrite an input",
                           output.path);
    status = zipccl_output_open(&output, error);
    if (status == ZIPCCL_OK && output.file != NULL)
        status = json(path, output.file, error);
    if (status == ZIPCCL_OK)
        status = zipccl_output_close(&output, error);
    if (status == ZIPCCL_OK)
        status = zipccl_output_commit(&output, error);
    zipccl_output_discard(&output);
    return status;
}

static zipccl_status print_text(const char *path, zipccl_inspect_fn *print,
                                struct zipccl_error *error)
{
    char *text = NULL;
    size_t n = 0;
    FILE *memory = open_memstream(&text, &n);

    if (memory == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
    zipccl_status status = print(path, memory, error);
    if (fclose(memory) != 0 && status == ZIPCCL_OK)
        status = zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
    if (status == ZIPCCL_OK)
        fwrite(text, 1, n, stdout);
    free(text);
    return status;
}

zipccl_status zipccl_inspect(const char *path, const char *json_path, zipccl_inspect_fn *print,
                             zipccl_inspect_fn *json, struct zipccl_error *error)
{
    ZIPCCL_TRY(write_json(path, json_path, json, error));
    return print_text(path, print, error);
}
