/*
 * codec_stat.c - from a safetensors file to its statistics
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/codec/codec_stat.h"

#include "models/stat.h"
#include "traces/safetensors.h"

static zipccl_status collect(const char *path, struct zipccl_stats *stats,
                             struct zipccl_error *error)
{
    const struct zipccl_safetensors *file;
    ZIPCCL_TRY(zipccl_safetensors_open_loose(path, &file, error));
    zipccl_status status = ZIPCCL_OK;
    for (size_t i = 0; i < file->ntensors && status == ZIPCCL_OK; i++) {
        const struct zipccl_tensor *t = &file->tensors[i];
        status = zipccl_stats_add(stats, t->name, t->dtype_name, t->known, t->dtype, t->data, t->n,
                                  t->nbytes, error);
    }
    zipccl_safetensors_close(file);
    return status;
}

zipccl_status zipccl_codec_stat_print(const char *path, FILE *out, struct zipccl_error *error)
{
    struct zipccl_stats stats = {0};
    zipccl_status status = collect(path, &stats, error);
    if (status == ZIPCCL_OK)
        status = zipccl_stats_print(&stats, out, error);
    zipccl_stats_destroy(&stats);
    return status;
}

zipccl_status zipccl_codec_stat_json(const char *path, FILE *out, struct zipccl_error *error)
{
    struct zipccl_stats stats = {0};
    zipccl_status status = collect(path, &stats, error);
    if (status == ZIPCCL_OK)
        status = zipccl_stats_json(&stats, path, out, error);
    zipccl_stats_destroy(&stats);
    return status;
}
