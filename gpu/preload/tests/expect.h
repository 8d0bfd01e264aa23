/*
 * expect.h - what a test of this folder expects: told if it is not so, and counted
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_PRELOAD_TESTS_EXPECT_H
#define ZIPCCL_GPU_PRELOAD_TESTS_EXPECT_H

#include <stdio.h>

static int failures;

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

#endif
