/*
 * fault.c - the text of a failure that was this library's own
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Of the thread's last failure; "" if that was none of ours.  And what was handed out. */
static __thread char last[ZIPCCL_SHIM_ERROR], shown[ZIPCCL_SHIM_ERROR];

ncclResult_t zipccl_shim_fault(struct zipccl_shim_comm *comm, ncclResult_t result,
                               const char *format, ...)
{
    int n = snprintf(last, sizeof last, "zipccl: ");
    va_list args;

    va_start(args, format);
    (void)vsnprintf(last + n, sizeof last - (size_t)n, format, args);
    va_end(args);
    if (comm != NULL) {
        pthread_mutex_lock(&comm->lock);
        memcpy(comm->error, last, sizeof comm->error);
        pthread_mutex_unlock(&comm->lock);
    }
    return result;
}

ncclResult_t zipccl_shim_fault_again(struct zipccl_shim_comm *comm, ncclResult_t result)
{
    pthread_mutex_lock(&comm->lock);
    memcpy(last, comm->error, sizeof last);
    pthread_mutex_unlock(&comm->lock);
    return result;
}

ncclResult_t zipccl_shim_nccl_said(struct zipccl_shim_comm *comm, ncclResult_t result)
{
    if (result == ncclSuccess || result == ncclInProgress)
        return result;
    last[0] = '\0';
    if (comm != NULL) {
        pthread_mutex_lock(&comm->lock);
        comm->error[0] = '\0';
        pthread_mutex_unlock(&comm->lock);
    }
    return result;
}

const char *zipccl_shim_fault_text(struct zipccl_shim_comm *comm)
{
    if (comm == NULL) {
        memcpy(shown, last, sizeof shown);
    } else {
        pthread_mutex_lock(&comm->lock);
        memcpy(shown, comm->error, sizeof shown);
        pthread_mutex_unlock(&comm->lock);
    }
    return shown[0] != '\0' ? shown : NULL;
}
