/*
 * coll_world.h - ranks as threads for the tests of collectives, and the data they exchange
 *
 * Test code.  A case names an operation, a plan and an input; every rank builds its own buffers
 * from the case alone and knows what must arrive, so that nothing but the calls is shared.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_TESTS_COLL_WORLD_H
#define ZIPCCL_CORE_TESTS_COLL_WORLD_H

#include "core/exec.h"
#include "core/executor.h"
#include "core/strategy.h"
#include "core/tests/race_checked.h"
#include "core/transport_mem.h"

#include <pthread.h>

#define MAX_RANKS 9
#define TO_ALL    UINT32_MAX

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Worlds of the tests: nnodes x ranks_per_node, nodes that are neither contiguous nor even, and nodes
 * that are even but not contiguous. */
#define ODD_NODES                                                                                  \
    {                                                                                              \
        7, 3, 7, 3, 3                                                                              \
    }
#define MIXED_NODES                                                                                \
    {                                                                                              \
        7, 3, 3, 1, 7, 1                                                                           \
    }

struct rank_thread;
struct world;

typedef bool rank_fn(void *context, uint32_t rank);

/* How the ranks of a world run where they are not threads of this process; see world_run(). */
struct world_kind {
    bool (*run)(const struct world *w, rank_fn *fn, void *context);
    void (*share)(const struct world *w, void *array, size_t element);
};

struct world {
    const struct world_kind *kind; /* NULL: threads */
    struct rank_thread *threads;   /* [nranks] parked between calls of world_run() */
    struct zipccl_topology *topology;
    struct zipccl_transport *t[MAX_RANKS];
    struct zipccl_exec *exec[MAX_RANKS];
    uint32_t nranks, node_ids[MAX_RANKS];
};

/* node_ids  [nranks] */
void world_open(struct world *w, uint32_t nranks, const uint32_t *node_ids);
void world_open_even(struct world *w, uint32_t nnodes, uint32_t ranks_per_node);

/* A fresh transport for the same ranks, after an abort. */
void world_reopen(struct world *w);
void world_close(struct world *w);

/* Run 'fn(context, rank)' on every rank at once; it returns whether all was well. */
bool world_run(const struct world *w, rank_fn *fn, void *context);

/* Give every rank what each has written at its own place of 'array' [nranks]. */
void world_share(const struct world *w, void *array, size_t element);

enum kind {
    KIND_GAUSS,   /* compresses */
    KIND_SPECIAL, /* Gaussian with NaN payloads, infinities, subnormals and zeros in between */
    KIND_RANDOM,  /* random bits: every fixed message overflows */
    KIND_MIXED,   /* random bits for some sources and pairs, Gaussian for the others */
    NUM_KINDS,
    KIND_CANCEL = NUM_KINDS /* reductions only: sums whose bits depend on the order of operands */
};

enum split { SPLIT_RANDOM, SPLIT_NONE, SPLIT_SHIFT, SPLIT_PAIRS, SPLIT_ONE_WAY, NUM_SPLITS };

struct coll_case {
    enum zipccl_op op;
    const struct zipccl_strategy *strategy;
    size_t count;
    uint32_t nchunks, channels, root;
    enum kind kind;
    enum split split; /* uneven ops */
    bool in_place;
};

/* Write 'n' bf16 elements of the block from 'src' to 'dst' (or TO_ALL), from 'first' on. */
void case_block(const struct coll_case *c, uint32_t src, uint32_t dst, size_t first, size_t n,
                uint16_t *out);

/* Elements from 'src' to 'dst' of an uneven case. */
size_t case_split(const struct coll_case *c, uint32_t nranks, uint32_t src, uint32_t dst);

struct zipccl_call case_call(const struct coll_case *c);

/* Capacity class of the case's plan: by turns, so that the cases of a test have all of them. */
uint32_t case_class(const struct coll_case *c);
void case_print(const struct coll_case *c, const struct world *w);

/* Guarded buffers of one rank; freed by buffers_close(). */
struct buffers {
    uint16_t *send, *recv;           /* what the call gets */
    uint16_t *send_all, *recv_all;   /* the allocations */
    size_t send_n, recv_n;           /* elements of the allocations */
    uint16_t *send_want, *recv_want; /* [send_n], [recv_n] contents after the call */
    size_t displs[4][MAX_RANKS];     /* send counts, send displs, recv counts, recv displs */
};

void buffers_open(struct buffers *b, const struct coll_case *c, uint32_t nranks, uint32_t rank);

/* True if the receive buffer, what is around it, and the send buffer are as they must be. */
bool buffers_right(const struct buffers *b, const struct coll_case *c);
void buffers_close(struct buffers *b);

#endif
