/*
 * spare_trace.c - keeps outputs off the files that a trace consists of
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/trace/spare_trace.h"

#include "traces/trace.h"

#include <limits.h>

zipccl_status zipccl_output_spare_trace(const struct zipccl_output *output, const char *path,
                                        struct zipccl_error *error)
{
    static const char *const inside[] = {"trace.jsonl", "trace.jsonl.gz"};
    struct zipccl_trace_reader *reader = NULL;
    char file[PATH_MAX];

    ZIPCCL_TRY(zipccl_output_spare(output, path, error));
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        snprintf(file, sizeof file, "%s/%s", path, inside[i]);
        ZIPCCL_TRY(zipccl_output_spare(output, file, error));
    }
    if (output->path == NULL || zipccl_trace_open(path, &reader, NULL) != ZIPCCL_OK)
        return ZIPCCL_OK;
    zipccl_status status = zipccl_output_spare(output, zipccl_trace_samples_path(reader), error);
    zipccl_trace_close(reader);
    return status;
}
