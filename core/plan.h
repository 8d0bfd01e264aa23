/*
 * plan.h - what a collective call does, as data: steps, places, groups
 *
 * One program for all ranks.  A plan says which bytes are encoded, exchanged, resolved, decoded,
 * copied, and in which order; it holds no pointer to user memory, no transport, no time.  The
 * executor (executor.h) runs it, the lowering (lower.h) turns its exchanges into flows, the cost
 * model (cost.h) prices it, the printer and the validator read it.
 *
 * Uneven ops (alltoallv, sendrecv): peer counts are not in the plan but in the call, so steps say
 * UNEVEN and both ends derive a chunk's size from the pair's own count alone:
 *     n(pair, chunk) = clamp(count(pair) - chunk_n * chunk, 0, chunk_n)
 * A pair whose n is 0 sends no message and no header.  In a compressed plan a pair chunk of fewer
 * than raw_below_n elements is never coded: ENCODE copies its elements into the slot, EXCHANGE
 * sends n * size bytes, SIZES and RESOLVE pass it over, DECODE copies them out.
 *
 * Who takes part in a step:
 *     all-gather   one message per rank, to all; DECODE of every peer but oneself
 *     all-to-all   a message per peer but oneself
 *     pairs        the same, only where n(pair, chunk) > 0
 *     broadcast    one message, of the root; DECODE on all ranks but the root; COPY on the root
 * "All" and "peer" are those of the step's group: the world, the ranks of the caller's node, or its
 * rail, which are the ranks with the caller's local index, one a node (even topologies only).  A
 * broadcast over NODE has a root on each node, the rank on the root's rail; one over RAIL happens on
 * the root's rail alone.
 *
 * Blocks: a step of NODE or RAIL may move more than one message per peer: with nblocks > 1 there is
 * one per node (NODE) or per local index (RAIL), all posted in one group.  Member p and block b
 * together name a rank, the one at (node b, index p) or (node p, index b), whose data it is or for
 * whom; see zipccl_group_block_rank().  REMOTE steps leave the block of the caller's own node out.
 *
 * Reductions: REDUCE takes the contributions of its group's members in member order, the caller's
 * own from 'self', adds them in fp32 and rounds the sum to the type: for a two-level plan first over
 * NODE, into TMP, then over RAIL.  The accumulator starts as the first contribution.  AVG divides
 * the sum by the number of ranks before it rounds; it is the last level's operator only.  Messages
 * are as for DECODE, raw elements for RAW.  An all_reduce cuts the buffer in shards of shard_n
 * elements, one a rank; the last ones are short or empty.  A message then has the elements of its
 * owner's shard that lie in the chunk, zipccl_plan_owner_n(): the receiver's for all-to-all, the
 * sender's for all-gather.
 * An exchange over RING is one call of the transport's all_gather or broadcast, which writes the
 * blocks of an all-gather end to end, the caller's own among them.  peer_stride of its destination
 * is therefore the wire size of one message; only for EXACT, whose size the plan cannot know, it is
 * the room, and the blocks lie at base + p * (the longest message).
 *
 * Parts: in a split plan the first chunk's messages of at least ZIPCCL_SPLIT_LEAST_N elements go in
 * parts (core/split.h).  ENCODE of EARLY codes what leaves early, its EXCHANGE sends it, ENCODE of HEAD and
 * TAIL codes what is left, SIZES tells the tail's bytes, with bit 31 set where the parts do not stand, and
 * the EXCHANGE of HEAD and TAIL sends two messages to each peer (on rings, two steps do).  DECODE needs
 * all three.  Shorter messages, and elements that travel raw, are all tail.
 *
 * Overflow: RESOLVE (on the wire lane, right after its exchange) reads the headers.  If one says
 * overflow, those who saw it run the EXCHANGE whose raw_of names the RESOLVE: the whole group for an
 * all-gather or broadcast, all messages again; the two ends for all-to-all and pairs, that message
 * alone.  The DECODE or REDUCE whose raw_of names the RESOLVE takes raw elements from that exchange's
 * destination instead of decoding.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_PLAN_H
#define ZIPCCL_CORE_PLAN_H

#include "core/dtype.h"
#include "core/status.h"
#include "core/topology.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum zipccl_step_kind {
    ZIPCCL_STEP_ENCODE,   /* src place -> messages in dst place (staging), one per peer */
    ZIPCCL_STEP_SIZES,    /* exchange u32 sizes of the encoded messages (EXACT), then host fence */
    ZIPCCL_STEP_EXCHANGE, /* messages or raw elements from src place to dst place of the peers */
    ZIPCCL_STEP_RESOLVE, /* read headers; if one overflowed, arm the step whose raw_of names this */
    ZIPCCL_STEP_DECODE,  /* messages in src place -> elements in dst place */
    ZIPCCL_STEP_COPY,   /* own block, src place -> dst place (nothing if the addresses are equal) */
    ZIPCCL_STEP_NATIVE, /* the transport's own collective on the user buffers */
    ZIPCCL_STEP_REDUCE  /* messages or raw elements in src place, and the own block in self place ->
                           their sum, rounded, in dst place */
};

enum zipccl_lane { ZIPCCL_LANE_CODEC, ZIPCCL_LANE_WIRE };

enum zipccl_pattern {
    ZIPCCL_PATTERN_ALL_GATHER,
    ZIPCCL_PATTERN_ALL_TO_ALL, /* equal counts */
    ZIPCCL_PATTERN_PAIRS,      /* uneven: alltoallv, sendrecv */
    ZIPCCL_PATTERN_BROADCAST
};

enum zipccl_form {
    ZIPCCL_FORM_RAW,   /* elements as they are, no header */
    ZIPCCL_FORM_FIXED, /* 'capacity' bytes, a message and zeros after it */
    ZIPCCL_FORM_EXACT  /* as long as the SIZES step said; all-gather and broadcast: the longest */
};

/* Parts of messages, as bits; 0: a plan that is not split. */
enum zipccl_part { ZIPCCL_PART_HEAD = 1, ZIPCCL_PART_EARLY = 2, ZIPCCL_PART_TAIL = 4 };
#define ZIPCCL_PART_REST (ZIPCCL_PART_HEAD | ZIPCCL_PART_TAIL)

enum zipccl_buf {
    ZIPCCL_BUF_SEND, /* the user's send buffer */
    ZIPCCL_BUF_RECV, /* the user's receive buffer */
    ZIPCCL_BUF_TX,   /* staging, outgoing */
    ZIPCCL_BUF_RX,   /* staging, incoming */
    ZIPCCL_BUF_TMP   /* staging, elements between two levels */
};

/* How an exchange moves on the wire (lower.h); a property of the step so that plans can differ. */
enum zipccl_lowering {
    ZIPCCL_LOWER_DIRECT, /* every source to every destination, all at once */
    ZIPCCL_LOWER_RING    /* forwarded along zipccl_ring_next() on 'channels' rings */
};

/* Where block b of group peer p lies, seen by group member i:
 *     base + p * peer_stride + i * self_stride + b * block_stride
 * in elements in user buffers, in bytes in staging.
 * UNEVEN places in user buffers add the call's displacement of p instead of p * peer_stride.
 * BY_RANK places in user buffers lie at base + r * peer_stride, r the rank that p and b name. */
struct zipccl_place {
    uint8_t buf;  /* enum zipccl_buf */
    uint8_t slot; /* staging slot; a slot is reused only after a dependency on its last reader */
    uint8_t uneven;
    uint8_t by_rank;
    size_t base, peer_stride, self_stride, block_stride;
};

enum zipccl_group_kind { ZIPCCL_GROUP_WORLD, ZIPCCL_GROUP_NODE, ZIPCCL_GROUP_RAIL };

#define ZIPCCL_STEP_NONE     UINT16_MAX
#define ZIPCCL_STEP_MAX_DEPS 6

struct zipccl_step {
    uint8_t kind;      /* enum zipccl_step_kind */
    uint8_t lane;      /* enum zipccl_lane; steps of a lane run in plan order */
    uint8_t pattern;   /* enum zipccl_pattern; all but NATIVE; COPY: whose own block */
    uint8_t form;      /* enum zipccl_form */
    uint8_t lowering;  /* enum zipccl_lowering; EXCHANGE and NATIVE */
    uint8_t group;     /* enum zipccl_group_kind */
    uint16_t chunk;    /* number of the chunk this step works on */
    uint16_t channels; /* rings of LOWER_RING */
    uint32_t root;     /* broadcast */
    struct zipccl_place src, dst;
    size_t n;          /* elements per peer; UNEVEN places: chunk_n, see above; COPY: all of it */
    size_t capacity;   /* room per message in staging, bytes; the wire size of a FIXED message,
                          for pairs the largest: zipccl_plan_fixed_bytes(plan, n(pair, chunk)) */
    uint16_t sizes_of; /* EXACT EXCHANGE: its SIZES step; else NONE */
    uint16_t raw_of;   /* EXCHANGE run only if that RESOLVE step saw an overflow; DECODE: the
                          RESOLVE of its messages; else NONE */
    uint8_t ndeps;
    uint16_t deps[ZIPCCL_STEP_MAX_DEPS]; /* earlier steps, of either lane */
    uint16_t nblocks;                    /* messages per peer, at least 1 */
    uint8_t remote;                      /* without the block of the caller's own node */
    uint8_t redop;                       /* REDUCE: ZIPCCL_SUM, or ZIPCCL_AVG at the last level */
    uint8_t part;                        /* enum zipccl_part, bits; of a split plan's coded steps */
    uint8_t first, round;                /* REDUCE: acc = x for the first member; round the sum to
                                            the type at the end.  1 in every plan: no sum is
                                            carried from one step to another */
    struct zipccl_place self;            /* REDUCE: the own contribution */
};

/* Plans are immutable once built, reference no other memory, and may be shared by threads. */
struct zipccl_plan {
    char strategy[48];  /* name in tables, for example "exact ring x4" */
    uint8_t op, dtype;  /* enum zipccl_op, enum zipccl_dtype */
    uint8_t redop;      /* NATIVE reductions; else ZIPCCL_SUM */
    uint8_t compressed; /* some step encodes */
    uint8_t effort;     /* enum zipccl_effort of what it encodes */
    uint32_t nranks, root;
    size_t count;            /* NCCL argument; uneven ops: largest pair count the plan serves */
    size_t chunk_n;          /* elements of a full chunk */
    size_t raw_below_n;      /* uneven: a pair chunk of fewer elements travels RAW */
    uint32_t capacity_class; /* of FIXED messages, see zipccl_capacity() */
    uint32_t nchunks, nslots;
    size_t tx_bytes, rx_bytes; /* staging, all slots */
    size_t tmp_bytes;          /* the same, between two levels */
    size_t acc_bytes; /* fp32 sums of a block and one decoded block, used within REDUCE steps */
    size_t shard_n;   /* all_reduce of our own: elements of a full shard; else 0 */
    uint32_t nsteps;
    struct zipccl_step *steps; /* [nsteps] owned */
};

void zipccl_plan_destroy(struct zipccl_plan *plan);

/*
 * Wire size of a FIXED message of 'n' elements of 'plan': zipccl_capacity() of its class.
 */
size_t zipccl_plan_fixed_bytes(const struct zipccl_plan *plan, size_t n);

/* True if some of its messages are FIXED. */
bool zipccl_plan_is_fixed(const struct zipccl_plan *plan);

/*
 * Elements in chunk 'chunk' of what belongs to rank 'owner': of its shard, or of a whole block of
 * 'count' if the plan has no shards.  Not for uneven ops.
 */
size_t zipccl_plan_owner_n(const struct zipccl_plan *plan, uint32_t chunk, uint32_t owner);

/*
 * Bytes of staging of all kinds; SIZE_MAX if the sum does not fit.
 */
size_t zipccl_plan_staging_bytes(const struct zipccl_plan *plan);

/*
 * FNV-1a digest over every field in wire order: equal plans have equal digests on every machine.
 */
uint64_t zipccl_plan_digest(const struct zipccl_plan *plan);

/* Print 'plan' as text, one line a step, stable enough to compare in tests. */
void zipccl_plan_print(const struct zipccl_plan *plan, FILE *out);

/*
 * Check a plan against the rules: every output byte of every rank is written exactly once;
 * dependencies point to earlier steps and cover the reuse of staging slots (of either lane);
 * no byte that an in-place call may still send (raw resend included) is overwritten before; both
 * ends agree on n; staging lies within its buffers and within 'max_staging_bytes'; forms, lanes and
 * references are consistent.  Of a reduction: every output element is the sum of one contribution
 * of every rank, in rank order, or in member order of the nodes and then in node order, rounded once
 * a level and divided at the last alone.
 *
 * It follows the bytes of all ranks, with and without overflows; the inside of NATIVE steps is
 * the transport's.  Uneven ops are taken as packed end to end in both buffers.
 *
 * in_place  as NCCL defines it for the op; other ops: send and receive buffer are one
 * splits    [nranks * nranks] elements from source (row) to destination, uneven ops; else NULL
 * Cost: grows with the square of the chunks that share a slot, times nranks^2; memory with the
 * messages of the plan.
 * ZIPCCL_ERR_ARG with the step and the rule in 'error' if the plan breaks one; ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_plan_validate(const struct zipccl_plan *plan,
                                   const struct zipccl_topology *topology, bool in_place,
                                   const size_t *splits, size_t max_staging_bytes,
                                   struct zipccl_error *error);

/*
 * Elements of pair chunk 'chunk' when the pair moves 'count' in all.
 */
static inline size_t zipccl_chunk_n(size_t count, size_t chunk_n, uint32_t chunk)
{
    size_t start = chunk_n * chunk;

    if (start >= count)
        return 0;
    return count - start < chunk_n ? count - start : chunk_n;
}

#endif
