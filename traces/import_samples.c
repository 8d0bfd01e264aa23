/*
 * import_samples.c - the captured tensors that an import binds to its calls
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_internal.h"

#include "traces/arena.h"
#include "traces/safetensors.h"

#include <string.h>

/* Names as in the bundled samples; the first that is there in the type of the call is taken. */
static const struct {
    enum zipccl_op op;
    const char *class;
} classes[] = {
    {ZIPCCL_ALL_GATHER, "class:allgather.param"},
    {ZIPCCL_REDUCE_SCATTER, "class:reducescatter.grad"},
    {ZIPCCL_REDUCE_SCATTER, "class:allreduce.grad_fp32"},
    {ZIPCCL_ALL_REDUCE, "class:allreduce.grad"},
    {ZIPCCL_ALL_REDUCE, "class:reducescatter.grad"},
    {ZIPCCL_ALL_REDUCE, "class:allreduce.grad_fp32"},
    {ZIPCCL_ALLTOALL, "class:alltoall.dispatch"},
    {ZIPCCL_ALLTOALLV, "class:alltoall.dispatch"},
    {ZIPCCL_SENDRECV, "class:p2p.pp.hidden"},
    {ZIPCCL_BROADCAST, "class:allgather.param"},
    {ZIPCCL_BROADCAST, "class:allreduce.grad_fp32"},
    {ZIPCCL_ALL_GATHER, "class:allreduce.grad_fp32"},
};

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

const char *zipccl_import_class(const struct zipccl_safetensors *file, enum zipccl_op op,
                                enum zipccl_dtype dtype)
{
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (classes[i].op == op && zipccl_import_class_fits(file, classes[i].class, dtype))
            return classes[i].class;
    return NULL;
}
