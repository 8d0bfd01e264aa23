/*
 * zipccl_gpu.h - lossless compressed collectives over an NCCL communicator
 *
 * What core/zipccl.h is on the CPU, with device buffers and streams: strategies, plans, the cache
 * of plans, capacity classes and the order of reductions are core's.  A call either runs a plan or
 * is passed to plain NCCL, for a reason that is counted; every call has NCCL's result, bit for bit
 * where data only move, and for reductions as core/zipccl.h says.
 *
 * Calls are enqueued: work starts in stream order after what 'stream' holds, and what is put into
 * 'stream' afterwards sees the result.  One call at a time per communicator; the order of calls is
 * the same on all ranks, and the caller's own calls on the ncclComm may lie between.  A call that
 * runs a compressed plan returns once this rank knows whether a message overflowed, that is after
 * its exchange has arrived here.  So calls that two ranks make in different orders (on other
 * communicators, a receive before a send) must be in one group or not be compressed: point-to-point
 * calls are, by default, not.  Calls that run plain or raw plans never wait.
 *
 * While a stream is being captured every call is plain NCCL.
 *
 * The gate (options.gate) changes both: the device decides whether to send again, and the host does
 * not wait (docs/gpu.md).  Then numbers of overflows are known a little later; a graph must be in order
 * with the communicator's other calls, and with other graphs of it, and be gone before it.
 *
 * Errors: ZIPCCL_ERR_ARG and ZIPCCL_ERR_UNSUPPORTED before anything is enqueued.  A message that is
 * corrupt, or an error of NCCL's, shows up later: zipccl_gpu_async_error(), and every later call.
 * After any of these the peers may wait for ever, as with NCCL, until the caller aborts the
 * ncclComm.
 *
 * Not run on a GPU yet: tested over doubles of cudart and NCCL with the kernels on an emulator.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_ZIPCCL_GPU_H
#define ZIPCCL_GPU_ZIPCCL_GPU_H

#include "core/zipccl.h"
#include "gpu/gate_mode.h"
#include "gpu/nccl_api.h"

#ifdef __cplusplus
extern "C" {
#endif

struct zipccl_gpu_comm;

/* Why a call, or part of a group, was passed to plain NCCL or ran a plan that does not compress. */
enum zipccl_gpu_reason {
    ZIPCCL_GPU_COMPRESSED, /* it was not: a plan compressed it */
    ZIPCCL_GPU_OP_OFF,     /* its op is not in options.ops */
    ZIPCCL_GPU_SMALL,      /* below options.min_bytes */
    ZIPCCL_GPU_TYPE,       /* the codec does not compress its type */
    ZIPCCL_GPU_REDOP,      /* neither sum nor avg, or a sum of a type that has no plan */
    ZIPCCL_GPU_CAPTURED,   /* its stream is being captured */
    ZIPCCL_GPU_ONE_RANK,   /* nobody to send to */
    ZIPCCL_GPU_PLAN_RAW,   /* the chooser, or what was learnt, found an uncompressed plan better */
    ZIPCCL_GPU_DISABLED,   /* zipccl_gpu_disable() was called, or ZIPCCL_MODE_RAW */
    ZIPCCL_GPU_NUM_REASONS
};

/* For statistics: "small", "captured", ... */
const char *zipccl_gpu_reason_name(enum zipccl_gpu_reason reason);

/* Bits of options.ops. */
#define ZIPCCL_GPU_OP(op) ((uint32_t)1 << (op))
#define ZIPCCL_GPU_OPS_MOVE                                                                        \
    (ZIPCCL_GPU_OP(ZIPCCL_ALL_GATHER) | ZIPCCL_GPU_OP(ZIPCCL_ALLTOALL) |                           \
     ZIPCCL_GPU_OP(ZIPCCL_ALLTOALLV) | ZIPCCL_GPU_OP(ZIPCCL_BROADCAST))
#define ZIPCCL_GPU_OPS_REDUCE                                                                      \
    (ZIPCCL_GPU_OP(ZIPCCL_REDUCE_SCATTER) | ZIPCCL_GPU_OP(ZIPCCL_ALL_REDUCE))

struct zipccl_gpu_options {
    const struct zipccl_nccl_api *nccl; /* borrowed; the functions that are called */

    /* Equal on all ranks: */
    enum zipccl_mode mode;    /* default ZIPCCL_MODE_ADAPTIVE */
    uint32_t ops;             /* ops that may compress; default ZIPCCL_GPU_OPS_MOVE, where ALLTOALLV
                                 is zipccl_gpu_alltoallv(); SENDRECV is zipccl_gpu_group() */
    size_t min_bytes;         /* default 1 MiB: raw bytes, of the larger buffer of a rank in a
                                 collective, of one message of an alltoallv or a group */
    size_t max_staging_bytes; /* device memory for messages at most; 0: 256 MiB.  Outgrown blocks
                                 are kept till the end: as much again */
    enum zipccl_gate_mode gate; /* default ZIPCCL_GATE_OFF: the gate has not run on a GPU */
    const char *strategy;       /* as in struct zipccl_comm_config, */
    uint32_t nchunks;           /* and so these */
    uint32_t capacity_class;
    enum zipccl_learning learning; /* default ZIPCCL_LEARN_TIMES, by events in the stream */
    struct zipccl_cost_params params;
    enum zipccl_effort effort; /* of zipccl_comm_config too; RATIO needs its rates in 'params' */

    /* This rank's own: */
    void *staging; /* device memory [staging_bytes] to use instead of allocating, aligned to
                                 256; max_staging_bytes must not be more */
    size_t staging_bytes;
    uint32_t codec_sms;      /* SMs that a codec kernel may fill; 0: all */
    const uint32_t *node_of; /* [nranks] node of each rank, equal on all ranks; NULL: ranks of one
                                 host are a node */
    void (*notice)(void *context, const char *text); /* told once for each kind of thing that a user
                                 should know, for example that captured calls are plain; NULL */
    void *notice_context;
};

/* Fill with defaults: rates of an 8-GPU node of H100 class with a 400 Gb/s NIC a GPU, see
 * gpu/params.c for their sources; codec rates are assumptions until a GPU has measured them. */
void zipccl_gpu_options_init(struct zipccl_gpu_options *options,
                             const struct zipccl_nccl_api *nccl);

/*
 * Create one over 'nccl' for the current device, which is that of the ncclComm.  Collective over
 * it, synchronises: ranks compare their settings in an ncclAllGather.
 *
 * nccl     borrowed, outlives the communicator; blocking, not aborted
 * options  'nccl' is kept, the rest copied
 *
 * ZIPCCL_ERR_MISMATCH on every rank, naming a rank, if settings differ or a rank failed to set
 * itself up; ZIPCCL_ERR_ARG; ZIPCCL_ERR_NOMEM; ZIPCCL_ERR_IO for failures of CUDA or NCCL.
 */
zipccl_status zipccl_gpu_create(ncclComm_t nccl, const struct zipccl_gpu_options *options,
                                struct zipccl_gpu_comm **out, struct zipccl_error *error);

/* Wait for its work and free it; the ncclComm stays.  After zipccl_gpu_abort() it waits for nothing, but a
 * second at most for a resend that the gate gave up, and the device memory of messages under way is left to
 * the process. */
void zipccl_gpu_destroy(struct zipccl_gpu_comm *comm);

/*
 * Make the call under way on this rank, and every later one, return ZIPCCL_ERR_ABORTED.  Any
 * thread.  Returns when no call is inside any more, or after a second if one hangs in NCCL itself;
 * then the caller aborts the ncclComm, which it must do itself.  Node and rail communicators are
 * aborted here.
 */
void zipccl_gpu_abort(struct zipccl_gpu_comm *comm);

/* From the next call on pass all to plain NCCL; all ranks at the same call. */
void zipccl_gpu_disable(struct zipccl_gpu_comm *comm);

/* The calls, arguments as NCCL's; types and operators have NCCL's numbers.  Statuses as above. */
zipccl_status zipccl_gpu_all_gather(const void *send, void *recv, size_t count,
                                    enum zipccl_dtype dtype, struct zipccl_gpu_comm *comm,
                                    cudaStream_t stream);
zipccl_status zipccl_gpu_reduce_scatter(const void *send, void *recv, size_t recv_count,
                                        enum zipccl_dtype dtype, enum zipccl_redop redop,
                                        struct zipccl_gpu_comm *comm, cudaStream_t stream);
zipccl_status zipccl_gpu_all_reduce(const void *send, void *recv, size_t count,
                                    enum zipccl_dtype dtype, enum zipccl_redop redop,
                                    struct zipccl_gpu_comm *comm, cudaStream_t stream);
zipccl_status zipccl_gpu_broadcast(const void *send, void *recv, size_t count,
                                   enum zipccl_dtype dtype, uint32_t root,
                                   struct zipccl_gpu_comm *comm, cudaStream_t stream);
zipccl_status zipccl_gpu_alltoall(const void *send, void *recv, size_t count,
                                  enum zipccl_dtype dtype, struct zipccl_gpu_comm *comm,
                                  cudaStream_t stream);
/* Counts and displacements [nranks] in elements, host memory, read before it returns. */
zipccl_status zipccl_gpu_alltoallv(const void *send, const size_t *send_counts,
                                   const size_t *send_displs, void *recv, const size_t *recv_counts,
                                   const size_t *recv_displs, enum zipccl_dtype dtype,
                                   struct zipccl_gpu_comm *comm, cudaStream_t stream);

/* One send or receive of a group. */
struct zipccl_gpu_p2p {
    bool send;
    uint32_t peer; /* may be the caller */
    void *buf;     /* [count]; only read if 'send' */
    size_t count;
    enum zipccl_dtype dtype;
};

/*
 * What ncclSend() and ncclRecv() between a GroupStart and its GroupEnd do: all of 'ops' progress
 * together, and those between two ranks match in order.  A call of one op is an ungrouped send or
 * receive.  Only the two ends of a message need to make a call, and each may have any others in its
 * group.
 *
 * Messages of at least min_bytes are compressed if SENDRECV is in options.ops.
 */
zipccl_status zipccl_gpu_group(const struct zipccl_gpu_p2p *ops, size_t nops,
                               struct zipccl_gpu_comm *comm, cudaStream_t stream);

/*
 * Failures that calls could not return: NCCL's asynchronous error, a corrupt message, an abort.
 * ZIPCCL_OK if there is none; else what a call would return, with its text.  Does not wait; not
 * while a call is under way in another thread.
 */
zipccl_status zipccl_gpu_async_error(struct zipccl_gpu_comm *comm, struct zipccl_error *error);

/* Text of the last failure; "" if none.  Valid until the next call. */
const char *zipccl_gpu_error(const struct zipccl_gpu_comm *comm);

/* Calls of one op so far on this rank; a group counts as one SENDRECV per message that this rank
 * sends or receives. */
struct zipccl_gpu_op_stats {
    uint64_t calls;
    uint64_t reasons[ZIPCCL_GPU_NUM_REASONS]; /* of these calls; [COMPRESSED]: those that were */
    uint64_t raw_bytes,
        wire_bytes; /* handed over for peers: elements; what went on the wire.  Of plain
                                       calls both the same, as core counts native plans */
    uint64_t coded_raw_bytes, coded_wire_bytes; /* the same of compressed calls alone */
    uint64_t overflows, raw_resends; /* with a gate: of calls that had ended when the last one was
                                        made, or zipccl_gpu_async_error(); none of captured ones */
};

void zipccl_gpu_get_stats(const struct zipccl_gpu_comm *comm, enum zipccl_op op,
                          struct zipccl_gpu_op_stats *out);

/* raw / wire of compressed calls; 0 without any. */
double zipccl_gpu_ratio(const struct zipccl_gpu_op_stats *stats);

/* Requests for raw resends that the gate's helper has served, of replays too; 0 without a gate. */
uint64_t zipccl_gpu_gate_resends(const struct zipccl_gpu_comm *comm);

/* Whether there is one: all ranks asked for it, and have what it needs. */
bool zipccl_gpu_has_gate(const struct zipccl_gpu_comm *comm);

/* Device memory for staging and tables that it holds now. */
size_t zipccl_gpu_device_bytes(const struct zipccl_gpu_comm *comm);

/*
 * What lies underneath, for learnt classes (zipccl_comm_get_class()), the last plan
 * (zipccl_comm_last_plan()), saving and loading what was learnt, and which rank is on which node.
 * Owned by 'comm'; not to be called collectives on.
 */
struct zipccl_comm *zipccl_gpu_core(struct zipccl_gpu_comm *comm);
const struct zipccl_topology *zipccl_gpu_topology(const struct zipccl_gpu_comm *comm);

/* The plan of the last call, NULL if that was plain NCCL.  Valid until the next call. */
const struct zipccl_plan *zipccl_gpu_last_plan(const struct zipccl_gpu_comm *comm);

#ifdef __cplusplus
}
#endif

#endif
