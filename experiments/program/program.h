/*
 * program.h - what every program of the suite shares: exit codes, error line, its own place, names
 *
 * Programs print and exit; libraries do not.  One line on stderr, beginning with the program's
 * name, tells each failure.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_PROGRAM_H
#define ZIPCCL_EXPERIMENTS_PROGRAM_H

#include "core/status.h"

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum zipccl_exit {
    ZIPCCL_EXIT_OK = 0,
    ZIPCCL_EXIT_FAILED = 1, /* a defect, or the machine gave out */
    ZIPCCL_EXIT_USAGE = 2   /* input or usage */
};

/* Exit code that goes with 'status'. */
int zipccl_exit_code(zipccl_status status);

/* Print "PROGRAM: text" to stderr and return the exit code of 'status'. */
int zipccl_print_error(const char *program, zipccl_status status, const struct zipccl_error *error);

/* The same with ZIPCCL_EXIT_USAGE and a printf format. */
int zipccl_usage_error(const char *program, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * The last thing a program does: see that all of stdout was written.  Returns 'code', or, if that
 * was success and something was lost, ZIPCCL_EXIT_FAILED after one line that says so; none where
 * the reader has closed its end, as 'head' does.
 */
int zipccl_finish_output(const char *program, int code);

/*
 * Path of 'name' beside the running program ("" for its folder).  ZIPCCL_ERR_IO if /proc tells
 * nothing, ZIPCCL_ERR_NOMEM if 'size' is too small.
 */
zipccl_status zipccl_beside_program(const char *name, char *out, size_t size,
                                    struct zipccl_error *error);

/* The name of 'names' (NULL ends the list) that 'word' was probably meant to be; NULL if none. */
const char *zipccl_nearest_name(const char *word, const char *const *names);

/*
 * The collective that 'text' names, as an enum zipccl_op; -1 after a usage error that begins with
 * 'option' ("compare: --op").
 */
int zipccl_parse_op(const char *program, const char *option, const char *text);

/*
 * Parse with argp, but report like zipccl_usage_error(): argp itself would print two lines.
 * 'argv'[0] is skipped.  'argp' has the keys 'h' (--help) for the help text, printed to stdout as
 * "Usage: USAGE_NAME ...", after which '*helped' is true.  Returns an exit code.
 */
int zipccl_parse_options(const struct argp *argp, int argc, char **argv, const char *program,
                         const char *usage_name, void *input, bool *helped);

/* Print the version, with 'build' how it was built; shared by all programs. */
void zipccl_print_version(const char *program, bool build, FILE *out);

#endif
