/*
 * status.h - what a fallible function returns, and the text that goes with it
 *
 * Libraries never print: they return a status and, where a person will read it, fill a
 * struct zipccl_error.  It is not an exception mechanism and holds no chain.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_STATUS_H
#define ZIPCCL_CORE_STATUS_H

typedef enum zipccl_status {
    ZIPCCL_OK = 0,
    ZIPCCL_ERR_ARG,         /* the caller broke a documented rule */
    ZIPCCL_ERR_NOMEM,       /* out of memory, or over a bound the caller gave */
    ZIPCCL_ERR_CORRUPT,     /* bytes that no encoder of ours wrote */
    ZIPCCL_ERR_OVERFLOW,    /* does not fit the capacity; nothing is lost, send raw */
    ZIPCCL_ERR_INPUT,       /* a file or option given by a person is wrong */
    ZIPCCL_ERR_IO,          /* the operating system refused; errno is in the text */
    ZIPCCL_ERR_UNSUPPORTED, /* valid, but this build or version does not do it */
    ZIPCCL_ERR_MISMATCH,    /* ranks disagree; the text names one */
    ZIPCCL_ERR_ABORTED,     /* the communicator was aborted */
    ZIPCCL_ERR_INTERNAL,    /* a defect of zipccl */
    ZIPCCL_ERR_TIMEOUT      /* a peer did not do its part in time; the text names it */
} zipccl_status;

/* The text of one failure; a caller that does not care passes NULL. */
struct zipccl_error {
    char text[512];
};

/* Name 'status' in a few lower-case words; never NULL. */
const char *zipccl_status_string(zipccl_status status);

/*
 * Write a printf-formatted text into 'error' (may be NULL) and return 'status', so that a
 * failing function ends with: return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: ...", path);
 */
zipccl_status zipccl_fail(struct zipccl_error *error, zipccl_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define ZIPCCL_TRY(expr)                                                                           \
    do {                                                                                           \
        zipccl_status zipccl_try_status = (expr);                                                  \
        if (zipccl_try_status != ZIPCCL_OK)                                                        \
            return zipccl_try_status;                                                              \
    } while (0)

#endif
