/*
 * test_kineto_memory.c - a large profiler file through a pipe, in bounded memory
 *
 * A child writes MEGABYTES of events to a named pipe, this program imports from it and looks at
 * its own peak.  Nothing is timed.
 *
 * usage: PROGRAM MEGABYTES
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_MB 200

/* As a profiler writes: much of the CPU, one kernel in ten events, calls now and then. */
static void write_events(FILE *f, size_t nbytes)
{
    size_t written = 0;
    long t = 0;

    written += (size_t)fprintf(f, "{\"schemaVersion\": 1, \"distributedInfo\": {\"backend\": "
                                  "\"nccl\", \"rank\": 0, \"world_size\": 2},\n\"traceEvents\": [");
    for (long i = 0; written < nbytes; i++, t += 10) {
        for (int cpu = 0; cpu < 8; cpu++)
            written += (size_t)fprintf(
                f,
                "%s\n  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": "
                "\"autograd::engine::evaluate_function: MmBackward%d\", \"pid\": 2910249, \"tid\": "
                "2919752,\n    \"ts\": %ld.690, \"dur\": 156.777,\n    \"args\": {\n      "
                "\"External "
                "id\": %ld,\"Record function id\": 1909, \"Sequence number\": 1080, \"Fwd thread "
                "id\": 1, \"Input Dims\": [[4096, 4096], [], [4096]], \"Ev Idx\": %ld\n    }\n  }",
                i + cpu > 0 ? "," : "", cpu, t, i, i);
        written += (size_t)fprintf(
            f,
            ",\n  {\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", "
            "\"pid\": 1, \"tid\": 2, \"ts\": %ld, \"dur\": 4, \"args\": {\"External id\": %ld, "
            "\"cbid\": 211, \"correlation\": %ld}}",
            t, i, i);
        written += (size_t)fprintf(
            f,
            ",\n  {\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"%s\", \"pid\": 0, \"tid\": %d, "
            "\"ts\": %ld.5, \"dur\": 7.25, \"args\": {\"stream\": %d, \"correlation\": %ld, "
            "\"grid\": [8, 1, 1]%s}}",
            i % 100 == 99 ? "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
                          : "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm>",
            i % 100 == 99 ? 20 : 7, t + 1, i % 100 == 99 ? 20 : 7, i,
            i % 100 == 99
                ? ", \"Collective name\": \"allreduce\", \"dtype\": \"BFloat16\", \"In msg "
                  "nelems\": 4096, \"Out msg nelems\": 4096, \"Group size\": 2, \"Process "
                  "Group Name\": \"0\", \"Process Group Ranks\": \"[0, 1]\""
                : "");
    }
    fprintf(f, "\n]}\n");
}

int main(int argc, char **argv)
{
    size_t megabytes = argc > 1 ? strtoul(argv[1], NULL, 10) : 300;
    char folder[] = "/tmp/zipccl-memory-XXXXXX", pipe_path[64], out[64];
    const char *paths[] = {pipe_path};
    struct zipccl_import_report report = {.nitems = 0};
    struct zipccl_error error = {""};
    zipccl_status status;
    struct rusage usage;
    int written = 1;
    pid_t child;

    if (mkdtemp(folder) == NULL)
        return 1;
    snprintf(pipe_path, sizeof pipe_path, "%s/rank0.json", folder);
    snprintf(out, sizeof out, "%s/out.jsonl", folder);
    if (mkfifo(pipe_path, 0600) != 0 || (child = fork()) < 0)
        return 1;
    if (child == 0) {
        FILE *f = fopen(pipe_path, "wb");

        if (f == NULL)
            _exit(1);
        write_events(f, megabytes * 1000000);
        _exit(fclose(f) != 0);
    }
    status = zipccl_import("kineto", paths, 1, out, NULL, &report, &error);
    waitpid(child, &written, 0);
    getrusage(RUSAGE_SELF, &usage);
    printf("%zu MB: %llu events, %llu collectives, peak %ld MB %s\n", megabytes,
           (unsigned long long)report.nlayers, (unsigned long long)report.ncollectives,
           usage.ru_maxrss / 1000, error.text);
    unlink(pipe_path);
    unlink(out);
    rmdir(folder);
    if (status != ZIPCCL_OK || written != 0 || report.ncollectives < megabytes / 2 ||
        usage.ru_maxrss / 1000 >= LIMIT_MB) {
        printf("FAILED: expected an import below %d MB\n", LIMIT_MB);
        return 1;
    }
    zipccl_import_report_free(&report);
    return 0;
}
