/*
 * emu.h - controls and observations of the emulator and the doubles, for tests
 *
 * What a test sets (schedule, delays, failures) and what it reads back (the text of an error,
 * counters, bytes on the wire).  Product code never includes this header.
 *
 * Start values come from the environment variable ZIPCCL_EMU, a list such as
 * "seed=7,policy=2,order=2,resident=4,delay_us=100"; the keys are the fields' names.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_TESTS_EMU_EMU_H
#define ZIPCCL_GPU_TESTS_EMU_EMU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum emu_policy {
    EMU_WARP_FIRST = 0,  /* a lane runs until it waits, then the next lane of its warp: fastest */
    EMU_ROUND_ROBIN = 1, /* at every wait the next warp, the next lane */
    EMU_RANDOM = 2       /* any thread that can run, chosen by the seed, at every operation */
};

enum emu_order {
    EMU_ASCENDING = 0,
    EMU_DESCENDING = 1, /* the last block starts first */
    EMU_SHUFFLED = 2    /* by the seed */
};

struct emu_options {
    uint64_t seed; /* of schedules, delays and the noise in fresh shared memory */
    int policy;    /* enum emu_policy */
    int order;     /* enum emu_order: the order in which blocks start */
    int resident;  /* blocks in flight at a time per worker, >= 1 */
    int workers;   /* operating-system threads per launch, >= 1; schedules repeat with 1 only */
    int strict; /* 0: no checks of divergence; 1: the checks; 2: also one source line per meeting */
    int spins;  /* waiting steps without progress until a launch counts as livelocked */
    int stack_kib; /* stack of one CUDA thread */
    int devices;   /* what cudaGetDeviceCount() says */
    int sms;       /* what cudaDevAttrMultiProcessorCount says */
    int delay_us;  /* before each operation of a stream: up to so long, by the seed; 0 is off */
    int word_ms;   /* a stream that waits longer for a word is reported: it would wait for ever */
    int peer_ms;   /* NCCL double: without progress for so long, a peer counts as missing */
    int lazy; /* NCCL double: 1: the first call that needs a connection waits for the other ranks' */
};

/* Read or replace the options; those in flight keep theirs.  Threads: any. */
void emu_get_options(struct emu_options *out);
void emu_set_options(const struct emu_options *options);

/* The start values: defaults, then ZIPCCL_EMU. */
void emu_default_options(struct emu_options *out);

/*
 * Text of the first failed launch since the last emu_reset(): kernel, what is wrong, the places of
 * the threads involved.  Empty if none failed.  Valid until emu_reset().
 */
const char *emu_error(void);

/* Forget errors (those that stick to devices too) and injected failures; counters become zero. */
void emu_reset(void);

struct emu_stats {
    uint64_t launches;        /* kernels started, also by replaying a graph */
    uint64_t syncs;           /* calls that made the host wait */
    uint64_t mallocs;         /* device and pinned allocations, also in stream order */
    uint64_t bytes_allocated; /* now held; not reset */
    uint64_t most_allocated;  /* the most held at a time since emu_reset() */
    uint64_t streams;         /* streams created */
    uint64_t events;          /* events created */
    uint64_t nccl_ops;        /* operations of the NCCL double that were enqueued */
    uint64_t nccl_sent;       /* bytes this process sent to other ranks, all communicators */
};

void emu_get_stats(struct emu_stats *out);

/*
 * Let the 'nth' call (1 is the next) of the function named 'what' in this process fail: a cudart
 * or NCCL function by its name ("cudaMalloc", "ncclAllGather"), or "launch" for kernels.  It returns
 * 'code' (a cudaError_t or ncclResult_t) and has no effect.  One failure is armed at a time per name.
 */
void emu_fail(const char *what, int nth, int code);

/*
 * Bytes that rank 'src' of the communicator 'comm' (an ncclComm_t) has sent to 'dst' since it was
 * made; any rank may ask for any pair.  0 for a rank's own data and for what is no communicator.
 */
uint64_t emu_nccl_wire(const void *comm, int src, int dst);

/* True if [p, p + nbytes) lies in one device allocation of the double. */
int emu_is_device(const void *p, size_t nbytes);

#ifdef __cplusplus
}
#endif

#endif
