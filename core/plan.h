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
 * A pair whose n is 0 sends no message and no header.
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
    ZIPCCL_STEP_COPY,  /* own block, src place -> dst place (nothing if the addresses are equal) */
    ZIPCCL_STEP_NATIVE /* the transport's own collective on the user buffers */
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

enum zipccl_buf {
    ZIPCCL_BUF_SEND, /* the user's send buffer */
    ZIPCCL_BUF_RECV, /* the user's receive buffer */
    ZIPCCL_BUF_TX,   /* staging, outgoing */
    ZIPCCL_BUF_RX    /* staging, incoming */
};

/* How an exchange moves on the wire (lower.h); a property of the step so that plans can differ. */
enum zipccl_lowering {
    ZIPCCL_LOWER_DIRECT, /* every source to every destination, all at once */
    ZIPCCL_LOWER_RING    /* forwarded along zipccl_ring_next() on 'channels' rings */
};

/* Where the block of group peer p lies, seen by group member i:
 *     base + p * peer_stride + i * self_stride      elements in user buffers, bytes in staging
 * UNEVEN places in user buffers add the call's displacement of p instead of p * peer_stride. */
struct zipccl_place {
    uint8_t buf;  /* enum zipccl_buf */
    uint8_t slot; /* staging slot; a slot is reused only after a dependency on its last reader */
    uint8_t uneven;
    size_t base, peer_stride, self_stride;
};

enum zipccl_group_kind { ZIPCCL_GROUP_WORLD, ZIPCCL_GROUP_NODE, ZIPCCL_GROUP_RAIL };

#define ZIPCCL_STEP_NONE     UINT16_MAX
#define ZIPCCL_STEP_MAX_DEPS 6

struct zipccl_step {
    uint8_t kind;      /* enum zipccl_step_kind */
    uint8_t lane;      /* enum zipccl_lane; steps of a lane run in plan order */
    uint8_t pattern;   /* enum zipccl_pattern; all but COPY and NATIVE */
    uint8_t form;      /* enum zipccl_form */
    uint8_t lowering;  /* enum zipccl_lowering; EXCHANGE and NATIVE */
    uint8_t group;     /* enum zipccl_group_kind */
    uint16_t chunk;    /* number of the chunk this step works on */
    uint16_t channels; /* rings of LOWER_RING */
    uint32_t root;     /* broadcast */
    struct zipccl_place src, dst;
    size_t n;          /* elements per peer; UNEVEN places: chunk_n, see above */
    size_t capacity;   /* room per message in staging, bytes; the wire size of a FIXED message */
    uint16_t sizes_of; /* EXACT EXCHANGE: its SIZES step; else NONE */
    uint16_t raw_of;   /* EXCHANGE run only if that RESOLVE step saw an overflow; else NONE */
    uint8_t ndeps;
    uint16_t deps[ZIPCCL_STEP_MAX_DEPS]; /* earlier steps, of either lane */
};

/* Plans are immutable once built, reference no other memory, and may be shared by threads. */
struct zipccl_plan {
    char strategy[48];  /* name in tables, for example "exact ring x4" */
    uint8_t op, dtype;  /* enum zipccl_op, enum zipccl_dtype */
    uint8_t redop;      /* NATIVE reductions; else ZIPCCL_SUM */
    uint8_t compressed; /* some step encodes */
    uint32_t nranks, root;
    size_t count;   /* NCCL argument; uneven ops: largest pair count the plan serves */
    size_t chunk_n; /* elements of a full chunk */
    size_t
        raw_below_n; /* uneven: a pair chunk of fewer elements travels RAW, decided by both ends */
    uint32_t nchunks, nslots;
    size_t tx_bytes, rx_bytes; /* staging, all slots */
    uint32_t nsteps;
    struct zipccl_step *steps; /* [nsteps] owned */
};

void zipccl_plan_destroy(struct zipccl_plan *plan);

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
 * ends agree on n; staging lies within tx_bytes/rx_bytes and within 'max_staging_bytes'; forms,
 * lanes and references are consistent.
 *
 * in_place  as NCCL defines it for the op
 * splits    [nranks * nranks] elements from source (row) to destination, uneven ops; else NULL
 * ZIPCCL_ERR_ARG with the step and the rule in 'error' if the plan breaks one.
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
