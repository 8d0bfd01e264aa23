/*
 * host_hash.c - tells hosts apart as NCCL does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/host_hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint64_t zipccl_gpu_hash(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *byte = bytes;

    for (size_t i = 0; i < n; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}

uint64_t zipccl_gpu_host_hash(void)
{
    const char *given = getenv("NCCL_HOSTID");
    char text[256] = "";
    uint64_t hash;
    FILE *boot;

    if (given != NULL && given[0] != '\0')
        return zipccl_gpu_hash(ZIPCCL_GPU_HASH_START, given, strlen(given));
    (void)gethostname(text, sizeof text - 1);
    hash = zipccl_gpu_hash(ZIPCCL_GPU_HASH_START, text, strlen(text));
    boot = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (boot != NULL) {
        hash = zipccl_gpu_hash(hash, text, fread(text, 1, sizeof text, boot));
        fclose(boot);
    }
    return hash;
}
