/*
 * rows.h - rows of result files: times of collectives, whoever wrote them
 *
 * One form for schema "zipccl.perf", schema "zipccl.replay" and what nccl-tests writes, as a table or
 * with -J, so that any two compare and a fit reads all of them.  Strict: a file that is cut off, of
 * another kind, or holds a number that is none is refused, with the place.  It computes nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_ANALYSIS_ROWS_H
#define ZIPCCL_ANALYSIS_ROWS_H

#include "core/dtype.h"
#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum zipccl_rows_kind {
    ZIPCCL_ROWS_PERF,   /* a collective at a time */
    ZIPCCL_ROWS_REPLAY, /* calls of a step; one row a mode */
    ZIPCCL_ROWS_NCCL    /* nccl-tests, table or JSON */
};

/* Texts are "" and numbers NaN or 0 where the file does not say. */
struct zipccl_row {
    enum zipccl_op op;
    enum zipccl_dtype dtype;
    enum zipccl_redop redop; /* SUM where there is none */
    uint32_t root, nranks, nodes;
    uint64_t count, calls; /* NCCL argument; calls that 'time_s' is the sum of */
    char mode[16], strategy[48], effort[16];
    char group[64], stream[64]; /* of a replay */
    char input[128];            /* of perf: what the tensors are */
    uint32_t nchunks;
    bool in_place;
    double size_bytes;        /* as nccl-tests counts it */
    double time_s;            /* > 0 */
    double q1_s, q3_s, iters; /* of repetitions */
    double raw_bytes, wire_bytes, ratio;
    double encode_s, decode_s;
    double wrong;   /* elements; NaN: not checked */
    unsigned place; /* row from 1 on, or line of a table */
};

struct zipccl_rows {
    char path[256];
    enum zipccl_rows_kind kind;
    bool measured;
    char on[16], cluster[64]; /* "threads", "mpi", "sim"; of a simulation: its cluster */
    size_t nskipped;          /* rows without a time: calls of nothing, modes that were not run */
    size_t n;
    struct zipccl_row *rows; /* [n] */
};

/*
 * Read the rows of 'path'.  The caller destroys '*out'.
 *
 * op  of nccl-tests tables that do not tell theirs, -1: none given; refused if it contradicts a file
 * ZIPCCL_ERR_IO; ZIPCCL_ERR_INPUT with the place, what was found and what was expected;
 * ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_rows_read(const char *path, int op, struct zipccl_rows **out,
                               struct zipccl_error *error);

/* The same of [nbytes] 'text'; 'path' is for messages. */
zipccl_status zipccl_rows_parse(const char *path, const char *text, size_t nbytes, int op,
                                struct zipccl_rows **out, struct zipccl_error *error);
void zipccl_rows_destroy(struct zipccl_rows *rows);

/* The collective of a program of nccl-tests, given its path: "build/all_reduce_perf". */
bool zipccl_nccl_program_op(const char *program, enum zipccl_op *op);

#endif
