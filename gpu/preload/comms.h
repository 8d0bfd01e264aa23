/*
 * comms.h - the communicators of this process, what was agreed on them, and what they counted
 *
 * A record outlives its communicator, since another thread may abort that while a call looks at it, and
 * since its counts are wanted at exit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_PRELOAD_COMMS_H
#define ZIPCCL_GPU_PRELOAD_COMMS_H

#include "core/topology.h"
#include "gpu/preload/settings.h"
#include "gpu/zipccl_gpu.h"

#include <nccl.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Why a call went to plain NCCL.  All are functions of the call and of what was agreed. */
enum zipccl_shim_reason {
    ZIPCCL_SHIM_TAKEN,        /* it did not: the back end has it */
    ZIPCCL_SHIM_OBSERVING,    /* mode observe */
    ZIPCCL_SHIM_SMALL,        /* below ZIPCCL_MIN_BYTES */
    ZIPCCL_SHIM_TYPE,         /* integers, fp64 */
    ZIPCCL_SHIM_REDOP,        /* not sum or avg */
    ZIPCCL_SHIM_OP,           /* not among ZIPCCL_OPS and ZIPCCL_REDUCTIONS */
    ZIPCCL_SHIM_GROUP,        /* not among ZIPCCL_GROUPS */
    ZIPCCL_SHIM_ONE_RANK,     /* nobody to talk to */
    ZIPCCL_SHIM_CAPTURED,     /* the stream is being captured into a graph */
    ZIPCCL_SHIM_WINDOW,       /* memory windows were registered on the communicator */
    ZIPCCL_SHIM_NONBLOCKING,  /* a communicator with blocking=0 */
    ZIPCCL_SHIM_ABORTED,      /* aborted or revoked */
    ZIPCCL_SHIM_DIFFER,       /* ranks have different settings */
    ZIPCCL_SHIM_STRANGER,     /* the rank that made its id runs without this library, or off */
    ZIPCCL_SHIM_UNKNOWN,      /* created in a way that this library does not see */
    ZIPCCL_SHIM_SWITCHED_OFF, /* by the control file */
    ZIPCCL_SHIM_DISABLED,     /* after a mismatch that verify mode found */
    ZIPCCL_SHIM_THREAD,       /* several of its ranks were made by one thread */
    ZIPCCL_SHIM_BACK_END,     /* a rank's machine cannot compress */
    ZIPCCL_SHIM_NUM_REASONS
};

const char *zipccl_shim_reason_text(enum zipccl_shim_reason reason);

/* Calls of one op, type and size class (bytes from 2^class up). */
struct zipccl_shim_kind {
    uint8_t op, dtype, size_class;
    uint64_t calls, elements, bytes; /* counts and message bytes, see zipccl_shim_count() */
};

struct zipccl_shim_counts {
    size_t nkinds, room;
    struct zipccl_shim_kind *kinds; /* [nkinds] */
    uint64_t reasons[ZIPCCL_SHIM_NUM_OPS][ZIPCCL_SHIM_NUM_REASONS];
    uint64_t verified[ZIPCCL_SHIM_NUM_OPS], unverified[ZIPCCL_SHIM_NUM_OPS];
    struct zipccl_gpu_op_stats coded[ZIPCCL_NUM_OPS]; /* of the back end, once the comm is gone */
};

struct zipccl_shim_control; /* control.h */

struct zipccl_shim_comm {
    ncclComm_t handle;
    int rank, nranks, device;
    uint64_t uid;                  /* the same on all ranks, of no other communicator */
    char name[64];                 /* of its config, on rank 0 */
    enum zipccl_shim_reason plain; /* why nothing on it is compressed; TAKEN: nothing against it */
    int *job_ranks;                /* [nranks] numbers in the job; NULL if not told */
    struct zipccl_topology *topology; /* NULL if nothing was exchanged */
    pthread_rwlock_t engine_lock;     /* held for reading while 'engine' has to stay */
    pthread_mutex_t call_lock;        /* held besides while a call is inside 'engine' */
    struct zipccl_gpu_comm *engine;   /* NULL if nothing is compressed */
    struct zipccl_shim_control *control;
    struct zipccl_shim_messages
        *messages;        /* verify.h; NULL if sends and receives are not checked */
    uint64_t splits;      /* children so far, equal on all ranks */
    uint64_t collectives; /* collective calls so far, equal on all ranks */
    uint64_t taken_calls; /* of them compressed, equal on all ranks */
    int stopped;          /* a reason that came later: ABORTED, WINDOW, SWITCHED_OFF, DISABLED */
    int failed;           /* ncclResult_t of this library's own work; every later call returns it */
    int leaving;          /* it is being aborted: wait for nobody */
    pthread_mutex_t lock; /* of counts */
    struct zipccl_shim_counts counts;
    struct zipccl_shim_comm *next; /* of all that there ever were */
};

/* Add a record for a communicator that exists; NULL without memory or if there are
 * too many alive. */
struct zipccl_shim_comm *zipccl_shim_comm_add(ncclComm_t handle, int rank, int nranks, int device);

/* The record of a communicator that is alive; NULL if it is not known.  No lock on the way. */
struct zipccl_shim_comm *zipccl_shim_comm_find(ncclComm_t handle);

/* The communicator goes away; its record stays for the statistics. */
void zipccl_shim_comm_remove(struct zipccl_shim_comm *comm);

/* All records, newest first. */
struct zipccl_shim_comm *zipccl_shim_comm_first(void);

/* Communicators alive. */
size_t zipccl_shim_comm_alive(void);

/* A reason that ends compression on it from the next call on; the first one stays. */
void zipccl_shim_comm_stop(struct zipccl_shim_comm *comm, enum zipccl_shim_reason reason);

/*
 * Count a call.
 *
 * bytes  message bytes: what one rank contributes (all_gather, broadcast, reduce, all_reduce: count;
 *        alltoall, reduce_scatter: count times ranks; alltoallv: sent to all peers)
 */
void zipccl_shim_count(struct zipccl_shim_comm *comm, enum zipccl_shim_op op,
                       enum zipccl_dtype dtype, size_t elements, size_t bytes,
                       enum zipccl_shim_reason reason);

#endif
