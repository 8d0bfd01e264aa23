/*
 * inspect.c - text to stdout, JSON to a file, each whole or not at all
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/trace/inspect.h"

#include <stdlib.h>

/* Through memory, so that a file that is broken at its end gives no half text. */
static zipccl_status print_whole(const char *path, zipccl_inspect_fn *print, FILE *out,
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
        fwrite(text, 1, n, out);
    free(text);
    return status;
}

static zipccl_status write_json(const char *path, struct zipccl_output *output,
                                zipccl_inspect_fn *json, struct zipccl_error *error)
{
    zipccl_status status = zipccl_output_open(output, error);

    if (status == ZIPCCL_OK && output->file != NULL)
        status = print_whole(path, json, output->file, error);
    if (status == ZIPCCL_OK)
        status = zipccl_output_close(output, error);
    if (status == ZIPCCL_OK)
        status = zipccl_output_commit(output, error);
    zipccl_output_discard(output);
    return status;
}

zipccl_status zipccl_inspect(const char *path, const char *json_path, zipccl_spare_fn *spare,
                             zipccl_inspect_fn *print, zipccl_inspect_fn *json,
                             struct zipccl_error *error)
{
    struct zipccl_output output;

    ZIPCCL_TRY(zipccl_output_check(&output, json_path, error));
    ZIPCCL_TRY(spare(&output, path, error));
    ZIPCCL_TRY(write_json(path, &output, json, error));
    return output.standard ? ZIPCCL_OK : print_whole(path, print, stdout, error);
}
