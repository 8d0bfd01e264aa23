/*
 * gate_mode.h - which calls wait for a raw resend on the device instead of on the host
 *
 * What docs/gpu.md calls the gate; the same on all ranks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_GATE_MODE_H
#define ZIPCCL_GPU_GATE_MODE_H

#include <stddef.h>
#include <string.h>

enum zipccl_gate_mode {
    ZIPCCL_GATE_OFF,     /* none: the host waits, and captured streams are plain NCCL */
    ZIPCCL_GATE_CAPTURE, /* those in captured streams */
    ZIPCCL_GATE_ALL,     /* all */
    ZIPCCL_NUM_GATE_MODES
};

/* "off", "capture", "all". */
static inline const char *zipccl_gate_mode_name(enum zipccl_gate_mode mode)
{
    static const char *const names[ZIPCCL_NUM_GATE_MODES] = {"off", "capture", "all"};

    return (unsigned)mode < ZIPCCL_NUM_GATE_MODES ? names[mode] : "?";
}

/* The mode of that name; ZIPCCL_NUM_GATE_MODES if there is none. */
static inline enum zipccl_gate_mode zipccl_gate_mode_find(const char *name)
{
    int mode = 0;

    while (mode < ZIPCCL_NUM_GATE_MODES &&
           strcmp(zipccl_gate_mode_name((enum zipccl_gate_mode)mode), name) != 0)
        mode++;
    return (enum zipccl_gate_mode)mode;
}

#endif
