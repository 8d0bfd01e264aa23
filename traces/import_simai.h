/*
 * import_simai.h - a SimAI workload file in memory, and the steps of importing it
 *
 * Reading (import_simai_read.c, import_simai_header.c) keeps the file as it is; import_simai.c
 * finds micro-batches, groups and streams; import_simai_step.c writes the step.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_IMPORT_SIMAI_H
#define ZIPCCL_TRACES_IMPORT_SIMAI_H

#include "traces/arena.h"
#include "traces/import_internal.h"
#include "traces/json.h"

/* The three columns of a layer. */
enum { SIMAI_FWD, SIMAI_IG, SIMAI_WG, SIMAI_PHASES };

enum simai_call {
    SIMAI_NONE,
    SIMAI_ALLREDUCE,
    SIMAI_ALLGATHER,
    SIMAI_REDUCESCATTER,
    SIMAI_ALLTOALL,
    SIMAI_ALLREDUCEALLTOALL,
    SIMAI_BROADCAST
};

/* Sets of process groups; the last two hold pairs of neighbouring pipeline stages. */
enum simai_set {
    SIMAI_TP,
    SIMAI_DP,
    SIMAI_EP,
    SIMAI_DP_EP,
    SIMAI_PP_EVEN, /* stages 0-1, 2-3, ... */
    SIMAI_PP_ODD,  /* stages 1-2, 3-4, ... */
    SIMAI_SETS
};

/* One column of a layer: compute, then a call. */
struct simai_part {
    double ns;
    uint64_t nbytes; /* of the full tensor, as the file says */
    uint8_t call;    /* enum simai_call */
    uint8_t set;     /* enum simai_set */
};

struct simai_row {
    const char *name;
    uint64_t line;
    struct simai_part part[SIMAI_PHASES];
    uint32_t recompute; /* forward passes of that many rows before this one precede its backward */
};

/* Micro-batches one after the other that are equal, times included. */
struct simai_run {
    size_t first; /* row of the first */
    uint64_t repeat;
};

enum simai_mode {
    SIMAI_MODE_DATA,
    SIMAI_MODE_MODEL,
    SIMAI_MODE_TRANSFORMER, /* also with FWD_IN_BCKWD */
    SIMAI_MODE_MICRO,
    SIMAI_MODE_INFERENCE
};

struct simai_workload {
    const struct zipccl_importer *importer;
    struct zipccl_arena arena;
    uint64_t line; /* that was read last */
    /* Line 1; 0 where the file does not say. */
    enum simai_mode mode;
    const char *mode_name;
    uint64_t tp, ep, pp, vpp, ga, all_gpus;
    uint64_t pp_nbytes;
    size_t ncheckpoints, ninitiates;
    uint64_t *checkpoints, *initiates; /* layer numbers from 0 */
    /* Line 2 and layers. */
    uint64_t announced;
    size_t nrows, capacity;
    struct simai_row *rows;
    /* What follows from them. */
    uint64_t dp;
    size_t block, block_rows; /* rows of micro-batches start, and rows of each; 0 rows: none */
    size_t block_end;         /* the first row after all of them; 'block' if there are none */
    size_t nruns;
    struct simai_run *runs; /* [nruns] */
};

/* Place of the current line. */
struct zipccl_place simai_place(const struct simai_workload *w);

/* A word of a line. */
struct simai_token {
    const char *p;
    size_t n;
};

/* Take the next word from 'line' and shorten that; false if there is none. */
bool simai_next_token(struct simai_token *line, struct simai_token *out);

/* Write a word in quotes. */
const char *simai_quote(char out[ZIPCCL_QUOTE_SIZE], struct simai_token token);

/*
 * Read a number from 0 to 2^53, written as an integer or with point or exponent; a fraction is
 * rounded up and '*rounded' set.  'name' and the current line are for the error.
 */
zipccl_status simai_number(const struct simai_workload *w, struct simai_token token,
                           const char *name, double *exact, uint64_t *out, bool *rounded);

/* Read line 1 (import_simai_header.c). */
zipccl_status simai_read_header(struct simai_workload *w, struct simai_token line);

/* True if 'token' is the name of a mode, read here or not. */
bool simai_mode_known(struct simai_token token);

/* Read all of the file (import_simai_read.c). */
zipccl_status simai_read(struct simai_workload *w);
void simai_free(struct simai_workload *w);

/* Ranks in each group of a set. */
uint32_t simai_set_size(const struct simai_workload *w, enum simai_set set);

/* Where the dtype of a call comes from. */
enum simai_source { SIMAI_GIVEN, SIMAI_ACTIVATION, SIMAI_GRADIENT, SIMAI_SCALAR, SIMAI_INTEGER };

/* One collective that a column of a layer stands for. */
struct simai_collective {
    enum zipccl_op op;
    enum zipccl_dtype dtype;
    enum simai_source source;
    uint64_t count; /* NCCL's argument */
    bool rounded;   /* the size did not divide */
};

/*
 * Turn column 'phase' of 'row' into collectives (import_simai_call.c) and return how many, 0 to 2.
 * Sizes are those of the full tensor; they are divided by the members where NCCL counts a part.
 */
unsigned simai_collectives(const struct simai_workload *w, const struct simai_row *row, int phase,
                           struct simai_collective out[2]);

/* The pp_comm of one micro-batch. */
struct simai_collective simai_pipeline_send(const struct simai_workload *w);

/* Count what the conversion of all calls assumes. */
zipccl_status simai_count_assumptions(const struct simai_workload *w);

/* What the writer of the step needs; set up by import_simai.c. */
struct simai_output {
    struct zipccl_trace_writer *writer;
    uint32_t group[SIMAI_SETS], stream[SIMAI_SETS]; /* indices into the header's */
    const uint32_t *ranks;                          /* [all_gpus] 0, 1, ... */
    char *sample[SIMAI_PHASES][ZIPCCL_NUM_OPS];     /* "class:..." or NULL */
    enum zipccl_dtype sample_dtype[SIMAI_PHASES][ZIPCCL_NUM_OPS];
    uint64_t ncalls; /* of rank 0, loops written out; counted by the writer */
};

/* Choose the classes of samples (import_simai_samples.c); nothing without a samples file. */
zipccl_status simai_bind_samples(const struct simai_workload *w, struct simai_output *out);

/* True if neighbouring stages exchange something. */
bool simai_has_pipeline(const struct simai_workload *w);

/* Write all events (import_simai_step.c). */
zipccl_status simai_write_step(const struct simai_workload *w, struct simai_output *out);

#endif
