/*
 * interpose.h - what the NCCL interposer keeps of the calls of each rank
 *
 * libzipccl-capture.so is preloaded into a program that uses NCCL.  interpose.c stands in for
 * NCCL's functions and forwards every call; interpose_part.c keeps what was called and writes the
 * part of each rank, which zipccl_join.py joins to a trace.  It compresses nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_CAPTURE_INTERPOSE_H
#define ZIPCCL_TRACES_CAPTURE_INTERPOSE_H

#include <nccl.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CAPTURE_SLOTS = 64,   /* devices of a process */
    CAPTURE_SAMPLES = 512 /* tensors of a rank */
};

/* The functions of the CUDA runtime that are used, as the process has them; all NULL without it. */
struct capture_cuda {
    cudaError_t (*event_create)(cudaEvent_t *event);
    cudaError_t (*event_record)(cudaEvent_t event, cudaStream_t stream);
    cudaError_t (*event_query)(cudaEvent_t event);
    cudaError_t (*event_elapsed)(float *ms, cudaEvent_t begin, cudaEvent_t end);
    cudaError_t (*event_destroy)(cudaEvent_t event);
    cudaError_t (*is_capturing)(cudaStream_t stream, enum cudaStreamCaptureStatus *status);
    cudaError_t (*exchange_mode)(enum cudaStreamCaptureMode *mode);
    cudaError_t (*host_alloc)(void **p, size_t nbytes, unsigned flags);
    cudaError_t (*free_host)(void *p);
    cudaError_t (*memcpy_async)(void *to, const void *from, size_t nbytes, enum cudaMemcpyKind kind,
                                cudaStream_t stream);
    bool whole; /* all of them are there */
};

/* A call of a rank. */
struct capture_call {
    const char *op;    /* as in a part */
    const char *label; /* NULL: none */
    uint64_t count, batch;
    int64_t begin_ns, end_ns; /* host clock, from capture_now() */
    cudaEvent_t begin, end;   /* NULL: none */
    cudaStream_t stream;
    int root, peer;
    uint32_t comm, sample; /* sample: number + 1, 0: none */
    ncclDataType_t dtype;
    ncclRedOp_t redop;
    bool opaque, reduces, has_root, has_peer;
    bool captured; /* into a CUDA graph: it has neither times of the device nor a sample */
};

struct capture_comm {
    ncclComm_t comm; /* NULL: destroyed */
    uint64_t id;     /* equal on all ranks of the communicator */
    int rank, nranks, nsplits;
    unsigned slot;
};

struct capture_sample {
    char class[48];
    uint64_t call, nbytes;
    void *bytes; /* pinned, or of malloc() */
    ncclDataType_t dtype;
};

/* A rank: what is called with communicators of one device. */
struct capture_slot {
    bool used, written;
    int device, rank, nranks;
    int64_t step_begin_ns, step_end_ns;
    cudaEvent_t base;
    uint64_t seen, nbatches; /* calls, recorded or not */
    uint64_t ncaptured;      /* recorded ones whose stream was being captured */
    size_t ncalls, room, nsamples, sample_bytes;
    struct capture_call *calls;
    struct capture_sample samples[CAPTURE_SAMPLES];
};

struct capture {
    const char *folder;   /* NULL: capture is off */
    uint64_t first, last; /* calls of a rank that are recorded, last excluded */
    bool by_step;         /* 'first' and 'last' are steps, told by zipccl_capture_step() */
    uint64_t step;
    size_t sample_limit, sample_size; /* bytes of a rank, of a tensor */
    struct capture_cuda cuda;
    size_t ncomms, comm_room;
    struct capture_comm *comms;
    struct capture_slot slots[CAPTURE_SLOTS];
};

/* Nanoseconds of the monotonic clock. */
int64_t capture_now(void);

/* Bytes of an element, and the trace's name of a type; 0 and NULL if it has none. */
size_t capture_dtype_size(ncclDataType_t dtype);
const char *capture_dtype_name(ncclDataType_t dtype);

/* True if the call that a rank makes now is to be recorded. */
bool capture_wants(const struct capture *c, const struct capture_slot *slot);

/*
 * Copy the middle of 'nbytes' at 'from' if the sample is due (the 1st, 2nd, 4th ... of its op and
 * type), in the order of 'stream'; returns its number + 1, or 0.
 */
uint32_t capture_sample(struct capture *c, struct capture_slot *slot,
                        const struct capture_call *call, const void *from, uint64_t count);

/*
 * Write the part of a rank to FOLDER/parts, through temporary files, unless that was done.  Device
 * times that have not come yet are left out.  Prints one line if it fails; the program goes on.
 */
void capture_write(struct capture *c, struct capture_slot *slot);

#endif
