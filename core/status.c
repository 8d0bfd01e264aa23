/*
 * status.c - status names and error texts
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>

const char *zipccl_status_string(zipccl_status status)
{
    switch (status) {
    case ZIPCCL_OK: return "ok";
    case ZIPCCL_ERR_ARG: return "invalid argument";
    case ZIPCCL_ERR_NOMEM: return "out of memory";
    case ZIPCCL_ERR_CORRUPT: return "corrupt data";
    case ZIPCCL_ERR_OVERFLOW: return "capacity exceeded";
    case ZIPCCL_ERR_INPUT: return "invalid input";
    case ZIPCCL_ERR_IO: return "input/output error";
    case ZIPCCL_ERR_UNSUPPORTED: return "not supported";
    case ZIPCCL_ERR_MISMATCH: return "ranks disagree";
    case ZIPCCL_ERR_ABORTED: return "aborted";
    case ZIPCCL_ERR_INTERNAL: return "internal error";
    case ZIPCCL_ERR_TIMEOUT: return "time limit exceeded";
    }
    return "unknown status";
}

zipccl_status zipccl_fail(struct zipccl_error *error, zipccl_status status, const char *format, ...)
{
    if (error != NULL) {
        va_list args;

        va_start(args, format);
        vsnprintf(error->text, sizeof error->text, format, args);
        va_end(args);
    }
    return status;
}
