/*
 * kineto_file.h - small profiler files as text, for tests
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_TESTS_KINETO_FILE_H
#define ZIPCCL_TRACES_TESTS_KINETO_FILE_H

#include <stddef.h>
#include <stdio.h>

#define KINETO_COMPUTE_STREAM 7
#define KINETO_NCCL_STREAM    40

struct kineto_text {
    FILE *file;
    char *text;
    size_t nbytes;
    int nevents, correlation;
    double clock_us; /* added to every time */
    int thread;
};

/* Start a file of 'rank' of 'world'; world 0 leaves out distributedInfo. */
void kineto_begin(struct kineto_text *k, int rank, int world);

/* Any event; 'format' is all of it but the braces. */
void kineto_event(struct kineto_text *k, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A launch at 'launch_us' of a kernel that runs from 'start_us' for 'us'; more arguments or "". */
void kineto_kernel(struct kineto_text *k, const char *name, int stream, double launch_us,
                   double start_us, double us, const char *args);

/* cudaStreamWaitEvent. */
void kineto_wait(struct kineto_text *k, double us);

/* Arguments of a call, to be passed to kineto_kernel(); in a static buffer. */
const char *kineto_call(const char *name, const char *dtype, long long in, long long out, int size,
                        const char *ranks, const char *more);

/* Close; 'text' is then the file, to be freed. */
void kineto_end(struct kineto_text *k);

#endif
