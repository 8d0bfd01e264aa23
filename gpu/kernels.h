/*
 * kernels.h - the codec on a GPU: what can be launched, and what it leaves on the device
 *
 * Encoders, decoders, fp32 sums and a look at received headers, each a launch on a stream.  The
 * bytes are core/FORMAT.md's, those of the scalar row of core/codec.  It knows no rank, plan or
 * communicator, and no CUDA source is needed to call it: plain C.
 *
 * Common to all functions here
 *
 *   - Pointers are device pointers, or memory that the device reaches; structures of arguments are
 *     read before the call returns and are the caller's.
 *   - Nothing allocates, synchronises or looks at device memory from the host; every call can be
 *     captured into a graph.  What a call uses must live until the stream has done its work.
 *   - 'nsms' is how many SMs the launch occupies at most: the grid is persistent and does not grow
 *     with the data.  1 or more; more than the device has is more than enough.
 *   - cudaErrorInvalidValue: an argument breaks a rule stated here; nothing is launched.
 *     cudaErrorNotSupported: valid, but this version does not do it; nothing is launched.
 *     All else comes from the launch itself.
 *   - What is found on the device (overflow, corrupt bytes) goes to device words, never to the
 *     return value.  No byte on the wire makes a kernel touch memory that its arguments do not name.
 *   - Threads: reentrant.  Two launches that may run at the same time need two workspaces.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_KERNELS_H
#define ZIPCCL_GPU_KERNELS_H

#include "core/dtype.h"
#include "core/status.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Most messages, or terms, of one launch. */
#define ZIPCCL_GPU_MAX_MESSAGES 1024u
/* Alignment of every message and of the distance between messages, in bytes. */
#define ZIPCCL_GPU_WIRE_ALIGN 16u

/* One message of a launch, as a device table holds it. */
struct zipccl_gpu_slot {
    void *elements;    /* [n], aligned to the element; best at 16 bytes */
    void *wire;        /* [capacity], aligned to ZIPCCL_GPU_WIRE_ALIGN */
    uint64_t n;        /* elements; 0 is a message too */
    uint64_t capacity; /* bytes: room to encode into, or bytes received */
};

/*
 * The messages of a launch.  Equal ones lie at regular distances; uneven ones come from a table on
 * the device, which is read when the kernel runs.
 *
 * Encoders read 'elements' and write 'wire'; decoders the other way round.
 */
struct zipccl_gpu_batch {
    uint32_t nmessages;                    /* 0 launches nothing; at most ZIPCCL_GPU_MAX_MESSAGES */
    const struct zipccl_gpu_slot *d_slots; /* [nmessages] on the device; NULL: what follows */
    struct zipccl_gpu_slot first;          /* message 0; others have its n and capacity */
    size_t elements_stride;                /* bytes from one message's elements to the next one's */
    size_t wire_stride;                    /* and from one message to the next */
    uint64_t total_n; /* with d_slots: sum of all n at most; what the table exceeds is refused
                         on the device, with ZIPCCL_ERR_ARG in every result */
};

/* What became of a message; device memory. */
struct zipccl_gpu_result {
    uint64_t nbytes; /* of the message, header included; 0 if it cannot be told (error) */
    uint32_t flags;  /* ZIPCCL_MESSAGE_* of its header */
    uint32_t error;  /* a zipccl_status: OK, CORRUPT, OVERFLOW (header only), ARG */
};

/*
 * Encoding.
 *
 * Each message has exactly the bytes that zipccl_encode_effort() writes for the same capacity, and
 * capacity - nbytes bytes of zeros behind them.  One that does not fit is a header with
 * ZIPCCL_MESSAGE_OVERFLOW and zeros.  With 'flag_any' the launch is a sender's step, as for
 * zipccl_encode_many(): if messages overflow, every one but one that overflowed alone gets
 * ZIPCCL_MESSAGE_ANY_OVERFLOW.
 *
 * dtype        any; types the codec does not cover become RAW messages
 * effort       ZIPCCL_EFFORT_FAST or _RATIO (enum zipccl_effort of core/codec.h)
 * batch        capacity at least ZIPCCL_MESSAGE_HEADER_BYTES (on the device: else ZIPCCL_ERR_ARG in
 *              the result, and that message is not written); buffers do not overlap
 * d_workspace  [zipccl_gpu_encode_workspace()], or for RATIO [zipccl_gpu_encode_ratio_workspace()],
 *              aligned to 256; zipccl_gpu_workspace_clear() once before its first use, each launch
 *              leaves it ready for the next one that is told of the same workspace_nbytes, whatever
 *              its messages
 * d_results    [nmessages], filled; error is ZIPCCL_ERR_OVERFLOW where a message did not fit
 *
 * Cost: elements are read once, messages written once, but for their variable bytes (6 % of Gaussian
 * bf16), which pass through the workspace, and for elements of RAW messages, read twice.  RATIO takes
 * several times longer (gpu/encode.md).
 */
struct zipccl_gpu_encode_args {
    enum zipccl_dtype dtype;
    int effort;
    bool flag_any;
    uint32_t nsms;
    struct zipccl_gpu_batch batch;
    void *d_workspace;
    size_t workspace_nbytes; /* what there is; too little is cudaErrorInvalidValue */
    struct zipccl_gpu_result *d_results;
};

cudaError_t zipccl_gpu_encode(const struct zipccl_gpu_encode_args *args, cudaStream_t stream);

/*
 * The same from fp32 elements, each rounded to 'dtype' (bf16, fp16 or fp32) as zipccl_encode_f32()
 * does; elements_stride counts bytes of floats.  cudaErrorInvalidValue for other types.
 */
cudaError_t zipccl_gpu_encode_f32(const struct zipccl_gpu_encode_args *args, cudaStream_t stream);

/*
 * Bytes of workspace that encode launches of up to 'nmessages' messages of 'total_n' elements in all
 * need, on up to 'nsms' SMs, with effort FAST and with RATIO.  Grow with each argument.  0 for an
 * invalid type.
 */
size_t zipccl_gpu_encode_workspace(enum zipccl_dtype dtype, uint64_t total_n, uint32_t nmessages,
                                   uint32_t nsms);
size_t zipccl_gpu_encode_ratio_workspace(enum zipccl_dtype dtype, uint64_t total_n,
                                         uint32_t nmessages, uint32_t nsms);

/* Make a workspace of any function here ready: once, before its first use; not while it is in use. */
cudaError_t zipccl_gpu_workspace_clear(void *d_workspace, size_t nbytes, cudaStream_t stream);

/*
 * Decoding.
 *
 * As zipccl_decode() of each message: exactly slot.n elements of 'dtype' from 'capacity' bytes
 * received.  Elements of a message with an error are undefined; those of other messages are not
 * touched by it.
 *
 * d_workspace  [zipccl_gpu_decode_workspace()], as for encoding
 * d_results    [nmessages], filled; ZIPCCL_ERR_OVERFLOW for a header-only message
 *
 * Cost: messages are read once, elements written once.
 */
struct zipccl_gpu_decode_args {
    enum zipccl_dtype dtype;
    uint32_t nsms;
    struct zipccl_gpu_batch batch;
    void *d_workspace;
    size_t workspace_nbytes;
    struct zipccl_gpu_result *d_results;
};

cudaError_t zipccl_gpu_decode(const struct zipccl_gpu_decode_args *args, cudaStream_t stream);

/*
 * As zipccl_decode_add(): 'elements' are fp32 sums, to which each message's elements (bf16, fp16 or
 * fp32) are added.  With 'first' the sums start as the elements instead: nothing is read.
 * Messages of one launch have sums of their own.  cudaErrorInvalidValue for other types.
 */
cudaError_t zipccl_gpu_decode_add(const struct zipccl_gpu_decode_args *args, bool first,
                                  cudaStream_t stream);

size_t zipccl_gpu_decode_workspace(enum zipccl_dtype dtype, uint64_t total_n, uint32_t nmessages,
                                   uint32_t nsms);

/* One contribution to a sum; device table. */
struct zipccl_gpu_term {
    const void *bytes; /* a message, aligned to ZIPCCL_GPU_WIRE_ALIGN, or elements [n] */
    uint64_t nbytes;   /* bytes received of a message; 0: these are elements */
};

/*
 * As zipccl_decode_sum(): add up terms in the order given, fp32 sums that start as the first term,
 * divide once, round once; a NaN becomes the canonical one.
 *
 * dtype      bf16, fp16 or fp32
 * d_terms    [nterms] on the device; NULL: term t is the message at d_wire + t * wire_stride of
 *            wire_nbytes bytes received, but term 'own' is elements 'd_own' (own < 0: none is)
 * divisor    1 or more
 * d_dst      [n] elements, aligned to the element; may be a term's elements
 * d_results  [nterms], filled; after an error in a term d_dst is undefined
 *
 * Cost: each term is read once, the result written once.
 */
struct zipccl_gpu_sum_args {
    enum zipccl_dtype dtype;
    uint32_t nsms;
    uint32_t nterms; /* 1 to ZIPCCL_GPU_MAX_MESSAGES */
    uint32_t divisor;
    uint64_t n;
    const struct zipccl_gpu_term *d_terms;
    const void *d_wire;
    size_t wire_stride, wire_nbytes;
    int32_t own;
    const void *d_own;
    void *d_dst;
    void *d_workspace;
    size_t workspace_nbytes;
    struct zipccl_gpu_result *d_results;
};

cudaError_t zipccl_gpu_decode_sum(const struct zipccl_gpu_sum_args *args, cudaStream_t stream);

size_t zipccl_gpu_sum_workspace(enum zipccl_dtype dtype, uint64_t n, uint32_t nterms,
                                uint32_t nsms);

/*
 * Raw elements, as zipccl_accumulate(): add x [n] of 'dtype' (bf16, fp16, fp32) to d_acc [n], or start
 * the sums with them if 'first'.
 */
cudaError_t zipccl_gpu_accumulate(enum zipccl_dtype dtype, const void *d_x, uint64_t n, bool first,
                                  float *d_acc, uint32_t nsms, cudaStream_t stream);

/* As zipccl_round_sums(): round d_acc [n] to 'dtype' after a division by 'divisor' unless that is 1. */
cudaError_t zipccl_gpu_round(enum zipccl_dtype dtype, const float *d_acc, uint64_t n,
                             uint32_t divisor, void *d_dst, uint32_t nsms, cudaStream_t stream);

/*
 * Looking at received headers.
 *
 * Reads the header of each message of a batch (elements are not used) and leaves what executors ask
 * for.  Does not look at bodies.
 */
struct zipccl_gpu_seen {
    uint32_t flags; /* OR of the flags of all headers that are headers */
    uint32_t error; /* ZIPCCL_ERR_CORRUPT if one is none, or not of 'dtype' and its n; else OK */
    uint32_t noverflows; /* messages with ZIPCCL_MESSAGE_OVERFLOW */
    uint32_t nraw;       /* with ZIPCCL_MESSAGE_RAW */
    uint64_t nbytes;     /* sum over all messages */
    uint64_t most;       /* largest: what a capacity class must hold */
};

/*
 * d_results  [nmessages], filled as far as a header tells; NULL if nobody asks
 * d_seen     one, filled (not added to)
 */
cudaError_t zipccl_gpu_resolve(enum zipccl_dtype dtype, const struct zipccl_gpu_batch *batch,
                               struct zipccl_gpu_result *d_results, struct zipccl_gpu_seen *d_seen,
                               cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
