/*
 * machine.h - on what something was measured
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_MACHINE_H
#define ZIPCCL_EXPERIMENTS_MACHINE_H

#include <stdint.h>

struct zipccl_machine {
    char cpu[128]; /* model name; "unknown" */
    long cores;
    uint64_t memory_bytes;
    double load; /* of the last minute; negative if unknown */
    char compiler[64];
};

/* What /proc and the system tell now. */
void zipccl_machine_read(struct zipccl_machine *out);

#endif
