/*
 * decode_index.cuh - the first of a decoder's two launches: where each superblock's bytes lie
 *
 * It checks headers and directories and leaves, in the workspace, sums over the directories.  The
 * second launch adds them up where it needs them, so that no block ever waits for another.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_DECODE_INDEX_CUH
#define ZIPCCL_GPU_DECODE_INDEX_CUH

#include "gpu/block.cuh"
#include "gpu/decode_wire.cuh"

enum decode_kind { DECODE_SKIP, DECODE_RAW, DECODE_CODED, DECODE_ELEMENTS };

struct decode_state {
    uint64_t nbytes; /* of the message */
    uint32_t kind;
    uint32_t nchunks, chunk; /* parts of the directory, and entries of each but the last */
};

/* What a chunk of a directory sums up to. */
struct decode_chunk {
    uint64_t shares, variable;
    uint32_t bad; /* an entry breaks a rule */
};

/* A superblock's bytes: before it in its chunk, and its own. */
struct decode_place {
    uint32_t shares, variable, nvariable;
};

/* The workspace.  Chunks and places of message i lie from decode_first_chunk() and first[i] on. */
struct decode_space {
    uint32_t *first; /* [nmessages + 1] superblocks of the messages before; for a table */
    struct decode_state *states; /* [nmessages] */
    struct decode_chunk *chunks;
    struct decode_place *places; /* [superblocks] */
};

struct decode_launch {
    struct decode_input in;
    struct decode_space space;
    uint32_t nmessages;
    uint32_t superblocks; /* of each message, if there is no table */
};

static __device__ __host__ inline uint32_t decode_superblocks(uint64_t n)
{
    return (uint32_t)(n / ZIPCCL_SUPERBLOCK + (n % ZIPCCL_SUPERBLOCK != 0));
}

/* Superblocks of the messages before message i, which may be the number of messages. */
static __device__ inline uint32_t decode_first(const struct decode_launch *p, uint32_t i)
{
    return p->in.batch.d_slots ? p->space.first[i] : i * p->superblocks;
}

/* Entries that a block takes at once, and the most chunks of a directory: one a lane of who adds them up. */
#define DECODE_CHUNK       TEAM_THREADS
#define DECODE_MOST_CHUNKS 32u

/* No two messages' chunks meet: a message has at most 1 + superblocks / DECODE_CHUNK of them. */
static __device__ __host__ inline uint32_t decode_first_chunk(uint32_t first, uint32_t i)
{
    return first / DECODE_CHUNK + i;
}

/* Bytes of workspace for 'nmessages' messages of 'superblocks' in all. */
size_t zipccl_gpu_index_workspace(uint64_t superblocks, uint32_t nmessages);

/*
 * Cut the workspace up and launch the index kernel.  p->in, nmessages and superblocks are set; most is
 * how many superblocks there are at most in all.  cudaErrorInvalidValue if the workspace is too small.
 */
cudaError_t zipccl_gpu_index(struct decode_launch *p, uint64_t most, void *d_workspace,
                             size_t workspace_nbytes, uint32_t nsms, cudaStream_t stream);

#endif
