/*
 * import_chakra.h - a Chakra execution trace of one rank, as it is read
 *
 * A file is a graph: nodes with dependencies, in protobuf (.et) or JSON.  What is kept of it fits
 * what import_kineto.h has for profiler files, which then matches ranks and writes the trace.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_IMPORT_CHAKRA_H
#define ZIPCCL_TRACES_IMPORT_CHAKRA_H

#include "traces/import_kineto.h"

/* Types of nodes, as numbered in the files. */
enum chakra_type {
    CHAKRA_INVALID,
    CHAKRA_METADATA,
    CHAKRA_MEM_LOAD,
    CHAKRA_MEM_STORE,
    CHAKRA_COMP,
    CHAKRA_SEND,
    CHAKRA_RECV,
    CHAKRA_COLL,
    CHAKRA_TYPES
};

/* Collectives, as numbered in the files. */
enum chakra_comm {
    CHAKRA_ALL_REDUCE,
    CHAKRA_REDUCE,
    CHAKRA_ALL_GATHER,
    CHAKRA_GATHER,
    CHAKRA_SCATTER,
    CHAKRA_BROADCAST,
    CHAKRA_ALL_TO_ALL,
    CHAKRA_REDUCE_SCATTER,
    CHAKRA_REDUCE_SCATTER_BLOCK,
    CHAKRA_BARRIER,
    CHAKRA_COMMS
};

struct chakra_node {
    uint64_t id, place; /* number of the node in the file, or line; from 1 */
    uint64_t start_us;  /* 0: not told */
    double duration_us;
    double flops, hbm_bytes; /* < 0: not told */
    int64_t nbytes;          /* of communication; -1: not told */
    int64_t comm;            /* enum chakra_comm, or -1 */
    int64_t src, dst, root;  /* -1: not told */
    const char *dtype;       /* "float" as PyTorch calls it, "" */
    const char *kernel;      /* a name of a kernel, or of an operator; "" */
    const char *pg;          /* "" */
    uint32_t ndeps;
    uint64_t *deps; /* ids */
    uint8_t type;
    bool cpu;    /* what the host does */
    bool timed;  /* a time of 0 is told too */
    bool inputs; /* 'nbytes' is that of the input tensors, not of the full tensor */
};

struct chakra_group {
    const char *name, *ranks; /* "[0, 1]" */
    uint64_t last;            /* the highest of the ranks */
};

struct chakra_file {
    const struct zipccl_importer *importer;
    const char *path;
    struct zipccl_arena arena;
    size_t nnodes, room;
    struct chakra_node *nodes;
    int64_t world; /* -1: not told */
};

/* What of side files, for all ranks. */
struct chakra_groups {
    struct zipccl_arena arena;
    size_t n, room;
    struct chakra_group *groups;
};

/* Protobuf, JSON, or a file of groups, by its beginning. */
bool chakra_is_protobuf(const char *head, size_t nbytes);
bool chakra_is_json(const char *head, size_t nbytes);
bool chakra_is_groups(const char *head, size_t nbytes);

/* Read a file of one rank; chakra_file_free() also after a failure. */
zipccl_status chakra_read_protobuf(struct chakra_file *f);
zipccl_status chakra_read_json(struct chakra_file *f);
void chakra_file_free(struct chakra_file *f);

/* Room for one more node, filled with what is not told; NULL if memory is out. */
struct chakra_node *chakra_add_node(struct chakra_file *f);

/* Take an attribute: a number, or a text (else NULL). */
bool chakra_take_number(struct chakra_node *node, const char *name, int64_t value);
bool chakra_take_text(struct chakra_file *f, struct chakra_node *node, const char *name,
                      const char *text);

/* The type of the first tensor in "['GenericList[Tensor(float)]']"; NULL if memory is out. */
bool chakra_take_types(struct chakra_file *f, struct chakra_node *node, const char *types);

/* Read { "1": [0, 1, ...], ... }. */
zipccl_status chakra_read_groups(struct chakra_groups *g, const char *path,
                                 struct zipccl_error *error);
void chakra_groups_free(struct chakra_groups *g);

/* Make calls and compute of a rank from the graph (import_chakra_rank.c). */
zipccl_status chakra_make_rank(struct kineto_import *k, struct chakra_file *f,
                               const struct chakra_groups *groups, int64_t number,
                               struct kineto_rank *rank);

/* Places in the order of dependencies, else of the file; '*cycles' and '*missing' count what broke. */
zipccl_status chakra_order(const struct chakra_file *f, uint32_t *order, uint32_t **first_dep,
                           uint32_t **dep_of, uint64_t *cycles, uint64_t *missing);

#endif
