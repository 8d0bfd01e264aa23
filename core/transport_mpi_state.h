/*
 * transport_mpi_state.h - what the parts of the MPI transport share
 *
 * Private to transport_mpi.c (creation, pairs), transport_mpi_wait.c (waiting, notices of failures) and
 * transport_mpi_native.c (MPI's own collectives).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_TRANSPORT_MPI_STATE_H
#define ZIPCCL_CORE_TRANSPORT_MPI_STATE_H

#include "core/transport_mpi.h"

#include <pthread.h>
#include <stdatomic.h>

/* A posted send or receive. */
struct zipccl_mpi_op {
    const char *src; /* send */
    char *dst;       /* receive */
    size_t nbytes;
    uint32_t peer;
    bool is_send;
};

/* One MPI message of an op: all but the last of an op are full, the last is shorter and may be empty,
 * so that both ends know from a piece's length whether another follows. */
struct zipccl_mpi_piece {
    size_t op, offset, nbytes;
    bool done;
};

/* Types that MPI does not have, or does not reduce as we do, with an operator for each reduction. */
enum zipccl_mpi_types {
    ZIPCCL_MPI_BF16,
    ZIPCCL_MPI_FP16,
    ZIPCCL_MPI_INT8,
    ZIPCCL_MPI_UINT8,
    ZIPCCL_MPI_NUM_TYPES
};
struct zipccl_mpi_type {
    MPI_Datatype type;
    MPI_Op op[ZIPCCL_NUM_REDOPS]; /* MPI_OP_NULL for avg */
};

/* Status (4 bytes), the rank whose call does not fit (4), text. */
#define ZIPCCL_MPI_NOTICE_BYTES (8 + sizeof((struct zipccl_error *)0)->text)
#define ZIPCCL_MPI_NO_RANK      UINT32_MAX

struct zipccl_mpi {
    struct zipccl_transport base;
    struct zipccl_transport_mpi_config config;
    MPI_Comm comm, control; /* payload and natives; notices */
    int *world;             /* [nranks] ranks in MPI_COMM_WORLD, for texts */
    uint64_t *bytes;        /* [nranks] sent */

    pthread_mutex_t lock; /* held by the call in progress; guards all down to 'scratch' */
    struct zipccl_mpi_op *ops;
    size_t nops, op_capacity;
    uint32_t depth;
    struct zipccl_mpi_piece *pieces;
    MPI_Request *requests; /* [npieces] and these: */
    MPI_Status *statuses;
    int *indices;
    size_t npieces, piece_capacity;
    void *scratch; /* of natives, grown */
    size_t scratch_bytes;
    struct zipccl_mpi_type types[ZIPCCL_MPI_NUM_TYPES];
    bool failed, mismatch;     /* 'mismatch': a peer found that this rank's call does not fit */
    uint8_t *notice, *arrived; /* [NOTICE_BYTES] sent; the next that comes */
    MPI_Request listening;
    MPI_Request *telling; /* [nranks] */
    bool *heard;          /* [nranks] has told that it failed */

    atomic_bool abort_wanted, told;
    pthread_mutex_t text_lock;
    struct zipccl_error error; /* of the first failure; written once, under text_lock */
};

/* How long a call has waited. */
struct zipccl_mpi_wait {
    double start_s, progress_s;
    unsigned nidle; /* polls since */
};

/* Post the receive of the next notice; MPI's return code. */
int zipccl_mpi_listen(struct zipccl_mpi *m);

/* Start and end a call: one at a time, none after a failure. */
zipccl_status zipccl_mpi_begin(struct zipccl_mpi *m);
zipccl_status zipccl_mpi_end(struct zipccl_mpi *m, zipccl_status status);

/*
 * Fail with 'text', unless an earlier failure has left its own, and tell all ranks.
 *
 * end  the rank on the other side of a mismatch, or ZIPCCL_MPI_NO_RANK
 */
zipccl_status zipccl_mpi_fail(struct zipccl_mpi *m, zipccl_status status, uint32_t end,
                              const struct zipccl_error *text);

/* Send a notice to every rank, once: what comes after the first is not sent. */
void zipccl_mpi_tell(struct zipccl_mpi *m, zipccl_status status, uint32_t end,
                     const struct zipccl_error *text);

/* Fail because MPI call 'what' returned 'rc'. */
zipccl_status zipccl_mpi_fail_rc(struct zipccl_mpi *m, const char *what, int rc);

void zipccl_mpi_wait_start(struct zipccl_mpi_wait *wait);
void zipccl_mpi_wait_progress(struct zipccl_mpi_wait *wait);

/*
 * Nothing has come: see whether to give up, and let other threads run.
 *
 * ZIPCCL_ERR_TIMEOUT if the limit is over: the caller then says so with zipccl_mpi_fail().
 * ZIPCCL_ERR_ABORTED or ZIPCCL_ERR_MISMATCH if a rank has failed: all is said.
 */
zipccl_status zipccl_mpi_wait_idle(struct zipccl_mpi *m, struct zipccl_mpi_wait *wait);

/* After a failure: cancel receives, and give what is under way a second to end. */
void zipccl_mpi_drain(struct zipccl_mpi *m, MPI_Request *requests, size_t n, bool cancel);

/* After a failure was told: wait a second for the others to say the same; a rank that did not, or
 * ZIPCCL_MPI_NO_RANK. */
uint32_t zipccl_mpi_silent_rank(struct zipccl_mpi *m);

/* Entries of the table, and what they need. */
zipccl_status zipccl_mpi_native(struct zipccl_transport *t, const struct zipccl_native_call *call);
bool zipccl_mpi_has_native(const struct zipccl_transport *t, enum zipccl_op op,
                           enum zipccl_dtype dtype, enum zipccl_redop redop);
void zipccl_mpi_abort(struct zipccl_transport *t);
const char *zipccl_mpi_error_text(const struct zipccl_transport *t);
void zipccl_mpi_types_clear(struct zipccl_mpi *m);
int zipccl_mpi_types_create(struct zipccl_mpi *m);
void zipccl_mpi_types_destroy(struct zipccl_mpi *m);

#endif
