/*
 * make_samples.c - writes the bundled traces again
 *
 * make_samples FOLDER writes FOLDER/NAME/trace.jsonl for each; a test compares them with what is
 * checked in.  Not installed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/samples/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static uint64_t emit(struct sample_out *out, struct zipccl_event event, struct sample_deps deps)
{
    uint64_t ids[4];

    event.id = ++out->id;
    event.repeat = 1;
    event.deps = ids;
    for (int i = 0; i < 4; i++)
        if (deps.id[i] != 0)
            ids[event.ndeps++] = deps.id[i];
    if (out->status == ZIPCCL_OK)
        out->status = zipccl_trace_write(out->writer, &event, out->error);
    return event.id;
}

uint64_t sample_compute(struct sample_out *out, const char *label, double flops, double hbm_bytes,
                        struct sample_deps deps)
{
    struct zipccl_event event = {.kind = ZIPCCL_EVENT_COMPUTE,
                                 .label = label,
                                 .duration_s = -1,
                                 .flops = flops,
                                 .hbm_bytes = hbm_bytes};

    return emit(out, event, deps);
}

uint64_t sample_duration(struct sample_out *out, const char *label, double seconds,
                         struct sample_deps deps)
{
    struct zipccl_event event = {.kind = ZIPCCL_EVENT_COMPUTE,
                                 .label = label,
                                 .duration_s = seconds,
                                 .flops = -1,
                                 .hbm_bytes = -1};

    return emit(out, event, deps);
}

uint64_t sample_collective(struct sample_out *out, const struct zipccl_event *call,
                           struct sample_deps deps, struct sample_names names)
{
    struct zipccl_event event = *call;

    event.kind = ZIPCCL_EVENT_COLLECTIVE;
    event.splits = -1;
    event.recorded_s = -1;
    event.samples = (char **)names.name;
    while (event.nsamples < 4 && names.name[event.nsamples] != NULL)
        event.nsamples++;
    return emit(out, event, deps);
}

static int failed(const char *what, const char *reason)
{
    fprintf(stderr, "make_samples: %s: %s\n", what, reason);
    return 1;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"llama2-7b-fsdp64", "llama2-7b-fsdp64-fp32", "moe64",
                                        "moe4"};
    struct zipccl_error error = {""};
    char path[4096];

    if (argc != 2 || strlen(argv[1]) > sizeof path - 64)
        return failed("usage", "make_samples FOLDER") + 1;
    mkdir(argv[1], 0777);
    for (int i = 0; i < 4; i++) {
        zipccl_status status;

        snprintf(path, sizeof path, "%s/%s", argv[1], names[i]);
        mkdir(path, 0777);
        strcat(path, "/trace.jsonl");
        status = i < 2    ? sample_fsdp(path, i == 1, &error)
                 : i == 2 ? sample_moe(path, &error)
                          : sample_small(path, &error);
        if (status != ZIPCCL_OK)
            return failed(path, error.text);
        printf("wrote %s\n", path);
    }
    return 0;
}
