/*
 * filter_process.h - runs a program once: bytes to its standard input, what it says back
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_FILTER_PROCESS_H
#define ZIPCCL_EXPERIMENTS_FILTER_PROCESS_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct zipccl_filter_result {
    bool timed_out; /* ended by us */
    bool too_much;  /* wrote more than was wanted, and was ended by us */
    int exit_code;  /* -1 if a signal ended it */
    int signal;     /* 0 if it exited */
    size_t nbytes;  /* that it wrote to standard output */
    char said[256]; /* the start of what it wrote to standard error */
};

/*
 * Run 'argv' (NULL ends it; looked up in PATH) on input [nbytes] for at most 'timeout_s'.
 *
 * output  [capacity] bytes of its standard output; more than that ends it
 *
 * It runs in a process group of its own, which is ended as a whole.  SIGPIPE must be ignored.
 * INT, TERM, HUP and QUIT end it first and are delivered then; not for several threads at a time.
 * ZIPCCL_ERR_INPUT if the program cannot be started, ZIPCCL_ERR_IO, also if a handler returned.
 */
zipccl_status zipccl_filter_run(char *const *argv, const uint8_t *input, size_t nbytes,
                                double timeout_s, uint8_t *output, size_t capacity,
                                struct zipccl_filter_result *result, struct zipccl_error *error);

#endif
