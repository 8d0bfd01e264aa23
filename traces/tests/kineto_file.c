/*
 * kineto_file.c - small profiler files as text, for tests
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/tests/kineto_file.h"

#include <stdarg.h>
#include <stdlib.h>

void kineto_begin(struct kineto_text *k, int rank, int world)
{
    *k = (struct kineto_text){.thread = 100};
    k->file = open_memstream(&k->text, &k->nbytes);
    if (k->file == NULL)
        abort();
    fputs("{\n  \"schemaVersion\": 1,\n", k->file);
    if (world > 0)
        fprintf(
            k->file,
            "  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %d, \"world_size\": %d},\n",
            rank, world);
    fputs("  \"traceEvents\": [\n", k->file);
}

void kineto_event(struct kineto_text *k, const char *format, ...)
{
    va_list args;

    fputs(k->nevents++ > 0 ? ",\n  {" : "  {", k->file);
    va_start(args, format);
    vfprintf(k->file, format, args);
    va_end(args);
    fputs("}", k->file);
}

void kineto_kernel(struct kineto_text *k, const char *name, int stream, double launch_us,
                   double start_us, double us, const char *args)
{
    k->correlation++;
    if (launch_us >= 0)
        kineto_event(k,
                     "\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", "
                     "\"pid\": 1, \"tid\": %d, \"ts\": %.3f, \"dur\": 1, \"args\": "
                     "{\"correlation\": %d}",
                     k->thread, k->clock_us + launch_us, k->correlation);
    kineto_event(k,
                 "\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"%s\", \"pid\": 0, \"tid\": %d, "
                 "\"ts\": %.3f, \"dur\": %.3f, \"args\": {\"stream\": %d, \"correlation\": %d%s%s}",
                 name, stream, k->clock_us + start_us, us, stream, k->correlation,
                 args[0] != '\0' ? ", " : "", args);
}

void kineto_wait(struct kineto_text *k, double us)
{
    kineto_event(
        k,
        "\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaStreamWaitEvent\", "
        "\"pid\": 1, \"tid\": %d, \"ts\": %.3f, \"dur\": 1, \"args\": {\"correlation\": %d}",
        k->thread, k->clock_us + us, ++k->correlation);
}

const char *kineto_call(const char *name, const char *dtype, long long in, long long out, int size,
                        const char *ranks, const char *more)
{
    static char text[4096];

    snprintf(text, sizeof text,
             "\"Collective name\": \"%s\", \"dtype\": \"%s\", \"In msg nelems\": %lld, \"Out msg "
             "nelems\": %lld, \"Group size\": %d, \"Process Group Name\": \"0\", \"Process Group "
             "Description\": \"default_pg\", \"Process Group Ranks\": \"%s\"%s%s",
             name, dtype, in, out, size, ranks, more[0] != '\0' ? ", " : "", more);
    return text;
}

void kineto_end(struct kineto_text *k)
{
    fputs("\n  ],\n  \"traceName\": \"t.json\"\n}\n", k->file);
    fclose(k->file);
}
