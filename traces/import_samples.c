/*
 * import_samples.c - the captured tensors that an import binds to its calls
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_internal.h"

#include "traces/arena.h"
#include "traces/safetensors.h"

#include <string.h>

zipccl_status zipccl_import_open_samples(const struct zipccl_importer *importer,
                                         const struct zipccl_safetensors **out)
{
    const char *samples = importer->options->samples;
    const char *slash = strrchr(importer->out_path, '/');
    size_t folder =
        slash != NULL && samples[0] != '/' ? (size_t)(slash + 1 - importer->out_path) : 0;
    struct zipccl_arena arena = {NULL};
    char *path = zipccl_arena_alloc(&arena, folder + strlen(samples) + 1, 1);
    zipccl_status status;

    if (path == NULL)
        return zipccl_fail(importer->error, ZIPCCL_ERR_NOMEM, "%s: out of memory", samples);
    memcpy(path, importer->out_path, folder);
    strcpy(path + folder, samples);
    status = zipccl_safetensors_open(path, out, importer->error);
    zipccl_arena_free(&arena);
    return status;
}

bool zipccl_import_class_fits(const struct zipccl_safetensors *file, const char *class,
                              enum zipccl_dtype dtype)
{
    const struct zipccl_tensor *tensor;
    size_t position = 0, n = 0;

    while ((tensor = zipccl_safetensors_match(file, class, &position)) != NULL) {
        if (!tensor->known || tensor->dtype != dtype)
            return false;
        n++;
    }
    return n > 0;
}
