/*
 * gpu_data.h - device buffers, messages and failures for the kernels' tests on the emulator
 *
 * "Device" memory comes from malloc() with the exact size, so that ASan sees an access one byte
 * beyond it.  Test support.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_TESTS_GPU_DATA_H
#define ZIPCCL_GPU_TESTS_GPU_DATA_H

#include "core/codec.h"
#include "core/tests/codec_data.h"
#include "core/tests/race_checked.h"
#include "gpu/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int gpu_failures;

/* Print and count a fact that does not hold. */
#define CHECK(fact, ...)                                                                           \
    do {                                                                                           \
        if (!(fact)) {                                                                             \
            printf("%s:%d: does not hold: %s: ", __FILE__, __LINE__, #fact);                       \
            printf(__VA_ARGS__);                                                                   \
            printf("\n");                                                                          \
            gpu_failures++;                                                                        \
        }                                                                                          \
    } while (0)

/* [nbytes], aligned to 16, filled with 0xa5; never NULL. */
void *gpu_alloc(size_t nbytes);

/* Wait for the default stream; a failed launch is printed and ends the program. */
void gpu_wait(void);

/* A message of its own buffer. */
struct gpu_message {
    enum zipccl_dtype dtype;
    size_t n, nbytes;
    void *elements; /* [n] */
    uint8_t *wire;  /* [nbytes], exactly */
};

/* Encode elements (taken over by the message) on the CPU by 'isa'. */
struct gpu_message gpu_encode(enum zipccl_isa isa, enum zipccl_effort effort,
                              enum zipccl_dtype dtype, void *elements, size_t n);
void gpu_message_free(struct gpu_message *message);

/* New elements [n] of 'kind', at the end of exactly as many bytes. */
void *gpu_elements(enum zipccl_dtype dtype, enum data_kind kind, uint64_t seed, size_t n);

/* Set the emulator's schedule by a number; 0 is the fastest one. */
void gpu_schedule(uint64_t seed);

#endif
