/*
 * import_name.c - the name of an imported trace, and the samples of its calls
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_internal.h"

#include "traces/json.h"
#include "traces/safetensors.h"

#include <string.h>

const char *zipccl_import_trace_name(const struct zipccl_importer *importer,
                                     struct zipccl_arena *arena, const char *fallback)
{
    static const char *const endings[] = {".gz", ".json", ".csv", ".et", ".trace", ".pt"};
    const char *path = importer->paths[0], *slash = strrchr(path, '/'), *name;
    size_t n;
    char *copy;

    if (importer->options->name != NULL)
        return importer->options->name;
    name = slash != NULL ? slash + 1 : path;
    n = strlen(name);
    if (importer->npaths > 1 && slash != NULL && slash > path) { /* several: that of their folder */
        for (name = slash; name > path && name[-1] != '/'; name--)
            ;
        n = (size_t)(slash - name);
    }
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t length = strlen(endings[i]);

        if (n > length && memcmp(name + n - length, endings[i], length) == 0)
            n -= length;
    }
    copy = zipccl_arena_string(arena, name, n);
    if (copy == NULL || n == 0 || !zipccl_text_printable(copy) || !zipccl_utf8_valid(copy, n))
        return fallback;
    return copy;
}

zipccl_status zipccl_import_bind_samples(const struct zipccl_importer *importer,
                                         const char *bound[ZIPCCL_NUM_OPS][ZIPCCL_NUM_DTYPES])
{
    const struct zipccl_safetensors *file;

    if (importer->options->samples == NULL)
        return ZIPCCL_OK;
    ZIPCCL_TRY(zipccl_import_open_samples(importer, &file));
    for (int op = 0; op < ZIPCCL_NUM_OPS; op++)
        for (int dtype = 0; dtype < ZIPCCL_NUM_DTYPES; dtype++)
            bound[op][dtype] =
                zipccl_import_class(file, (enum zipccl_op)op, (enum zipccl_dtype)dtype);
    zipccl_safetensors_close(file);
    return zipccl_import_count(importer, true, "samples", 0, 1,
                               "payload is taken from the classes of tensors that bear the names "
                               "of the bundled samples");
}
