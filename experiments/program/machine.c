/*
 * machine.c - reads /proc/cpuinfo and /proc/loadavg
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/program/machine.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

static void read_cpu(char *cpu, size_t size)
{
    static const char key[] = "model name";
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(cpu, size, "unknown");
    while (file && fgets(line, sizeof line, file)) {
        char *value = strchr(line, ':');
        if (!value || strncmp(line, key, strlen(key)) != 0)
            continue;
        value += strspn(value, ": \t");
        snprintf(cpu, size, "%.*s", (int)strcspn(value, "\n"), value);
        break;
    }
    if (file)
        fclose(file);
}

static double read_load(void)
{
    double load = -1;
    FILE *file = fopen("/proc/loadavg", "r");
    if (!file)
        return -1;
    if (fscanf(file, "%lf", &load) != 1)
        load = -1;
    fclose(file);
    return load;
}

void zipccl_machine_read(struct zipccl_machine *out)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    read_cpu(out->cpu, sizeof out->cpu);
    out->cores = sysconf(_SC_NPROCESSORS_ONLN);
    out->memory_bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    out->load = read_load();
    snprintf(out->compiler, sizeof out->compiler, "%.*s", (int)sizeof out->compiler - 1, COMPILER);
}
