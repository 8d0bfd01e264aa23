/*
 * comms.h - the communicators of this process, what was agreed on them, and what they counted
 *
 * A record outlives its communicator, since another thread may abort that while a call looks at it, and
 * since its counts are wanted at exit.  Once nobody holds it, its counts are added to those of one that
 * is gone and was like it, if there is one, and the record is used again: a job that makes and destroys
 * communicators all day keeps a bounded number of records, and loses no count.
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

/* Calls of one op, type and size class (bytes from 2^class up). */
struct zipccl_shim_kind {
    uint8_t op, dtype, size_class;
    uint64_t calls, elements, bytes; /* counts and message bytes, see counts.h */
};

/* What verify mode found out about a call. */
enum zipccl_shim_verdict {
    ZIPCCL_SHIM_EQUAL,
    ZIPCCL_SHIM_DIFFERENT, /* on this rank */
    ZIPCCL_SHIM_UNCHECKED, /* no compressed plan, or no memory for it */
    ZIPCCL_SHIM_NUM_VERDICTS
};

struct zipccl_shim_counts {
    size_t nkinds, room;
    struct zipccl_shim_kind *kinds; /* [nkinds] */
    uint64_t reasons[ZIPCCL_SHIM_NUM_OPS][ZIPCCL_SHIM_NUM_REASONS];
    uint64_t checks[ZIPCCL_SHIM_NUM_OPS][ZIPCCL_SHIM_NUM_VERDICTS];
    struct zipccl_gpu_op_stats coded[ZIPCCL_NUM_OPS]; /* of the back end, after its last call */
};

/* Bytes of the text of a failure. */
enum { ZIPCCL_SHIM_ERROR = 256 };

/* What a record is. */
enum zipccl_shim_stage {
    ZIPCCL_SHIM_UNUSED, /* free to be used again; it has no counts */
    ZIPCCL_SHIM_ALIVE,  /* of a communicator, or of one that is gone and still held */
    ZIPCCL_SHIM_PAST    /* of communicators that are gone: only counts */
};

struct zipccl_shim_control; /* control.h */

struct zipccl_shim_comm {
    struct zipccl_shim_comm *next; /* of all records */
    struct zipccl_shim_comm *also; /* of those that are unused, or past */
    int holds;                     /* threads and waiting calls that look at it */
    pthread_rwlock_t engine_lock;  /* held for reading while 'engine' has to stay */
    pthread_mutex_t call_lock;     /* held besides while a call is inside 'engine' */
    pthread_mutex_t lock;          /* of counts and error */
    ncclComm_t handle;             /* atomic: who looks it up may meet another's */
    int gone;                      /* destroyed or aborted: NCCL may not be given its handle */
    enum zipccl_shim_stage stage;  /* from here on: of one communicator */
    size_t ncomms;                 /* communicators that 'counts' are of */
    int rank, nranks, device;
    uint64_t uid;                  /* the same on all ranks, of no other communicator */
    char name[64];                 /* of its config, on rank 0 */
    enum zipccl_shim_reason plain; /* why nothing on it is compressed; TAKEN: nothing against it */
    int *job_ranks;                /* [nranks] numbers in the job; NULL if not told */
    struct zipccl_topology *topology; /* NULL if nothing was exchanged */
    struct zipccl_gpu_comm *engine;   /* NULL if nothing is compressed */
    struct zipccl_shim_control *control;
    struct zipccl_shim_messages
        *messages;        /* verify.h; NULL if sends and receives are not checked */
    uint64_t splits;      /* children so far, equal on all ranks */
    uint32_t shrinks[16]; /* by which ranks were left out: equal on all others */
    uint64_t collectives; /* collective calls so far, equal on all ranks */
    uint64_t taken_calls; /* of them compressed, equal on all ranks */
    int stopped;          /* a reason that came later: ABORTED, WINDOW, SWITCHED_OFF, DISABLED */
    int failed;           /* ncclResult_t of this library's own work; every later call returns it */
    int leaving;          /* it is being aborted: wait for nobody */
    struct zipccl_shim_counts counts;
    char error
        [ZIPCCL_SHIM_ERROR]; /* text of its last failure, if that was this library's; fault.h */
};

/*
 * Add a record for a communicator that exists, held by the caller; NULL without memory or if there are
 * too many alive.  One that had the same handle is gone: NCCL gives no handle twice.
 */
struct zipccl_shim_comm *zipccl_shim_comm_add(ncclComm_t handle, int rank, int nranks, int device);

/*
 * The record of a communicator that is alive, held: zipccl_shim_comm_put() it; NULL if it is not known.
 * No lock on the way.
 */
struct zipccl_shim_comm *zipccl_shim_comm_get(ncclComm_t handle);

/* The one record, held, of all communicators that this library has not seen being made; NULL without memory. */
struct zipccl_shim_comm *zipccl_shim_comm_unknown(void);

/* Hold once more what is held; let go (NULL is allowed). */
void zipccl_shim_comm_hold(struct zipccl_shim_comm *comm);
void zipccl_shim_comm_put(struct zipccl_shim_comm *comm);

/* The communicator, held, goes away; its counts stay. */
void zipccl_shim_comm_remove(struct zipccl_shim_comm *comm);

/*
 * The first of all records, newest first, that have counts, and the next one; none is used again before the
 * unlock.  Not to be nested.
 */
struct zipccl_shim_comm *zipccl_shim_comms_lock(void);
struct zipccl_shim_comm *zipccl_shim_comms_next(const struct zipccl_shim_comm *comm);
void zipccl_shim_comms_unlock(void);

/* Communicators alive; on 'device' alone, if that is not negative. */
size_t zipccl_shim_comms_alive(int device);

/* A reason that ends compression on it from the next call on; the first one stays. */
void zipccl_shim_comm_stop(struct zipccl_shim_comm *comm, enum zipccl_shim_reason reason);

#endif
