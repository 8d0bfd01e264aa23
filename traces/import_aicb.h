/*
 * import_aicb.h - AICB's list of calls (.csv), as it is read
 *
 * One file has the calls of one rank in program order; all ranks are taken to do the same.  It is
 * not the text workload that AICB writes for SimAI: import_simai.h has that.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_IMPORT_AICB_H
#define ZIPCCL_TRACES_IMPORT_AICB_H

#include "traces/arena.h"
#include "traces/import_internal.h"

enum aicb_type {
    AICB_ALL_REDUCE,
    AICB_ALL_GATHER,
    AICB_REDUCE_SCATTER,
    AICB_ALL_TO_ALL,
    AICB_BROADCAST,
    AICB_REDUCE,
    AICB_BARRIER,
    AICB_ISEND,
    AICB_IRECV,
    AICB_COMPUTATION,
    AICB_EPOCH_END,
    AICB_TYPES
};

enum aicb_group {
    AICB_TP,
    AICB_DP,
    AICB_EP,
    AICB_EP_DP,
    AICB_PP,
    AICB_ALL,
    AICB_GROUPS,
    AICB_NO_GROUP = AICB_GROUPS
};

struct aicb_row {
    uint64_t line, bytes, repeat;
    const char *stage; /* in the arena */
    double flops;      /* computation; < 0: the file does not tell */
    double seconds;    /* as measured; < 0: the file does not tell */
    uint32_t root;
    uint8_t type, group;
    bool backward; /* sends and receives: towards the stage before */
    bool overlap;  /* what follows does not wait for it */
    bool init;     /* before the first step */
};

struct aicb_file {
    const struct zipccl_importer *importer;
    struct zipccl_arena arena;
    uint64_t line;
    int columns[12]; /* place of each known column in a row, -1: none */
    uint32_t ncolumns;
    uint64_t world; /* of line 1 until aicb_complete(); 0: not told */
    uint32_t sizes[AICB_GROUPS];
    uint64_t size_lines[AICB_GROUPS]; /* where the size was first told */
    size_t nrows, room;
    struct aicb_row *rows;
    uint64_t nepochs, rounded;
    bool wide_gradients; /* gradients take twice the bytes of parameters */
};

/* Read all rows (import_aicb_read.c); aicb_free() also after a failure. */
zipccl_status aicb_read(struct aicb_file *f);
void aicb_free(struct aicb_file *f);

/* Names of types and groups without "CommType." and "CommGroup."; static. */
const char *aicb_type_name(unsigned type);
const char *aicb_group_name(unsigned group);

/* What a row moves, in NCCL's terms. */
struct aicb_call {
    enum zipccl_op op;
    enum zipccl_dtype dtype;
    uint64_t count;
    bool guessed, rounded; /* the type is not given; the size does not divide */
};

/* False if a trace has nothing for the row (import_aicb_call.c). */
bool aicb_call_of(const struct aicb_file *f, const struct aicb_row *row, struct aicb_call *out);

/* Ranks between two neighbours of a group, once the sizes are complete. */
uint64_t aicb_stride(const struct aicb_file *f, unsigned group);

/* Write the trace (import_aicb_step.c) and return how many calls rank 0 makes. */
zipccl_status aicb_write(struct aicb_file *f, uint64_t *ncalls);

#endif
