/*
 * import_nccl.h - NCCL's and RCCL's debug log, as it is read
 *
 * A process (host, pid and device) is a rank.  Its communicators are told apart by address, and
 * across processes by the commId of their INIT lines.  Matching and writing is what
 * import_kineto.h has for profiler files: a log is a profile without times.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_IMPORT_NCCL_H
#define ZIPCCL_TRACES_IMPORT_NCCL_H

#include "traces/import_kineto.h"

enum nccl_op {
    NCCL_ALL_REDUCE,
    NCCL_ALL_GATHER,
    NCCL_REDUCE_SCATTER,
    NCCL_BROADCAST,
    NCCL_ALL_TO_ALL,
    NCCL_SEND,
    NCCL_RECV,
    NCCL_OTHER /* Reduce, Gather, Scatter: nothing a trace can express */
};

struct nccl_comm {
    uint64_t address, id; /* id 0: no INIT line */
    uint32_t nranks;      /* 0: unknown */
    uint32_t rank;        /* KINETO_NONE: unknown */
};

struct nccl_call {
    uint64_t line, count, number; /* NCCL's opCount */
    uint32_t comm;                /* of the process */
    uint32_t peer;                /* of Send and Recv; else the root */
    uint32_t stream;              /* of the trace */
    uint8_t op, dtype, redop;
};

struct nccl_process {
    char name[128];    /* "host:pid[dev]" */
    const char *path;  /* the first file with a line of it, number 'file' */
    const char *again; /* another one, NULL if there is none */
    size_t file;
    uint32_t global_rank; /* as RCCL tells it, or KINETO_NONE */
    size_t ncomms, comm_room, ncalls, call_room, nstreams, stream_room;
    struct nccl_comm *comms;
    struct nccl_call *calls;
    uint64_t *streams; /* addresses */
};

struct nccl_log {
    const struct zipccl_importer *importer;
    size_t nfiles; /* read so far */
    size_t nprocesses, room;
    struct nccl_process *processes;
    uint64_t nlines, nbroken, first_broken;
};

/* Read one file into 'log' (import_nccl_read.c). */
zipccl_status nccl_read(struct nccl_log *log, const char *const *path);
void nccl_free(struct nccl_log *log);

#endif
