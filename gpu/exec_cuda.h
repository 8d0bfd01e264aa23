/*
 * exec_cuda.h - runs plans on CUDA streams: kernels in one, NCCL in the other
 *
 * One host thread walks the steps and enqueues them; what the lanes of a plan are to each other becomes
 * events.  The steps themselves are core's (executor_state.h); this file's functions are what they
 * call, and they only start work.  Where a plan has to know something on the host (sizes, overflows)
 * the walk waits for the device.
 *
 * The codec lane is the caller's stream.  The wire lane is a stream of its own if the plan has more
 * than one chunk, else it is the caller's as well.
 *
 * Private to gpu/; zipccl_gpu.h is what is used.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_EXEC_CUDA_H
#define ZIPCCL_GPU_EXEC_CUDA_H

#include "core/executor_state.h"
#include "gpu/kernels.h"
#include "gpu/transport_nccl.h"

struct zipccl_gate;      /* gate.h */
struct zipccl_cuda_late; /* exec_cuda_walk.h */

/* Calls of which the host runs ahead of the device at most. */
#define ZIPCCL_CUDA_ARENAS 4u

/* Timed calls that are remembered, and launches of the codec that are timed between two readings. */
#define ZIPCCL_CUDA_TIMERS 64u
#define ZIPCCL_CUDA_SPANS  1024u

/* Memory on the device and pinned on the host, of the same layout; handed out front to back. */
struct zipccl_cuda_region {
    char *d, *h; /* [nbytes] */
    size_t nbytes, used;
};

/* What one call keeps on the device besides messages. */
struct zipccl_cuda_arena {
    struct zipccl_cuda_region tables;   /* of messages and terms, to the device */
    struct zipccl_cuda_region results;  /* of encoders and of looks at headers, from it */
    struct zipccl_cuda_region outcomes; /* of decoders, from it when the call ends */
    cudaEvent_t done;
    bool busy; /* until 'done' */
    bool late; /* messages were decoded before their headers were looked at: some have overflowed */
};

struct zipccl_cuda_workspace {
    void *d;
    size_t nbytes;
};

/* A block that became too small.  To free one waits for all of the device, so it stays till the end. */
struct zipccl_cuda_old {
    struct zipccl_cuda_old *next;
    void *d, *h;   /* h: pinned, or NULL */
    size_t nbytes; /* at 'd' */
    void *handle;  /* of its registration, or NULL */
    bool staging;  /* allocated as staging is */
};

/* What the walk of a plan keeps of chunks that it looks at late; grown, never shrunk. */
struct zipccl_cuda_late_room {
    struct zipccl_cuda_late *chunks; /* [nchunks] */
    size_t nchunks;
    struct zipccl_slice *slices; /* [nslices] of all chunks, one after the other */
    uint32_t *encoded;           /* [nslices] */
    size_t nslices;
};

/* A call that is timed. */
struct zipccl_cuda_timer {
    cudaEvent_t start, end;
    uint64_t ticket;
    bool ended; /* 'end' has been recorded */
};

/* A launch that is timed. */
struct zipccl_cuda_span {
    cudaEvent_t start, end;
    bool decodes;
};

/* What codec kernels took, and what they coded, as experiments/perf/timed_exec.h counts. */
struct zipccl_cuda_codec {
    double encode_s, decode_s, coded_raw, coded_wire;
};

struct zipccl_exec_cuda {
    struct zipccl_exec base;
    struct zipccl_transport_nccl *transport; /* borrowed */
    const struct zipccl_nccl_api *api;
    uint32_t nsms;
    cudaStream_t wire; /* of chunked plans */
    cudaStream_t now;  /* that steps enqueue into */
    cudaEvent_t done;  /* end of the last call */
    bool used;
    cudaEvent_t looked; /* the last look at headers of a call is on the host */
    struct zipccl_cuda_workspace encode, decode, sum;
    struct {
        char *d;
        size_t nbytes;
        bool borrowed;
        void *handle; /* of its registration */
    } staging;
    size_t most_staging;
    struct zipccl_cuda_old *old;
    struct zipccl_cuda_arena arenas[ZIPCCL_CUDA_ARENAS], *arena;
    unsigned next_arena;
    struct zipccl_gpu_slot *list;  /* [room_list] messages of the launch that is put together */
    size_t nlist, room_list, read; /* 'read': of those looked at, how many core has asked for */
    const struct zipccl_gpu_result *seen; /* of these */
    /* Of the last ENCODE into each slot. */
    const struct zipccl_gpu_result *coded[UINT8_MAX + 1];
    cudaEvent_t coded_event[UINT8_MAX + 1];
    cudaEvent_t *events[2]; /* rings of the lanes, see exec_cuda_run.c */
    struct zipccl_cuda_late_room late;
    struct zipccl_cuda_timer timers[ZIPCCL_CUDA_TIMERS], *timer; /* of the next run, or NULL */
    uint64_t next_ticket;
    bool time_codec;
    struct zipccl_cuda_span *spans; /* [ZIPCCL_CUDA_SPANS] */
    size_t nspans;
    struct zipccl_cuda_codec codec;
    zipccl_status failed;     /* of what could not be returned; sticks */
    struct zipccl_gate *gate; /* NULL: the host waits where it has to know what overflowed */
};

struct zipccl_exec_cuda_options {
    uint32_t nsms;       /* 0: all */
    size_t most_staging; /* bytes of staging that any plan has at most */
    void *staging;       /* borrowed [most_staging], or NULL */
    bool time_codec;     /* for zipccl_exec_cuda_codec() */
};

/* ZIPCCL_ERR_NOMEM, ZIPCCL_ERR_IO, with the text in the transport. */
zipccl_status zipccl_exec_cuda_create(struct zipccl_transport_nccl *transport,
                                      const struct zipccl_exec_cuda_options *options,
                                      struct zipccl_exec_cuda **out);

/* Waits for its work, unless the transport was aborted: then the memory in use is left alone. */
void zipccl_exec_cuda_destroy(struct zipccl_exec_cuda *e);

/* Let what is enqueued into 'stream' from here on come after the last call, and use it. */
zipccl_status zipccl_exec_cuda_enter(struct zipccl_exec_cuda *e, cudaStream_t stream);

/* Look at what ended; the sticking failure.  Does not wait. */
zipccl_status zipccl_exec_cuda_failed(struct zipccl_exec_cuda *e);

/* Device memory that it holds. */
size_t zipccl_exec_cuda_bytes(const struct zipccl_exec_cuda *e);

/* What the codec has done so far, of which kernels have been timed; waits for them. */
zipccl_status zipccl_exec_cuda_codec(struct zipccl_exec_cuda *e, struct zipccl_cuda_codec *out);

/* exec->ops->time_next and ->time_of (exec_cuda_time.c); around a run, and around a launch. */
zipccl_status zipccl_cuda_time_next(struct zipccl_exec *exec, uint64_t *ticket);
uint64_t zipccl_cuda_time_of(struct zipccl_exec *exec, uint64_t ticket);
zipccl_status zipccl_cuda_timer_start(struct zipccl_exec_cuda *e, cudaStream_t stream);
void zipccl_cuda_timer_end(struct zipccl_exec_cuda *e, cudaStream_t stream, bool failed);
zipccl_status zipccl_cuda_span_start(struct zipccl_exec_cuda *e, bool decodes);
zipccl_status zipccl_cuda_span_end(struct zipccl_exec_cuda *e);
void zipccl_cuda_count_coded(struct zipccl_exec_cuda *e, enum zipccl_dtype dtype,
                             const struct zipccl_slice *slice);
void zipccl_cuda_times_destroy(struct zipccl_exec_cuda *e);

/* exec->ops->run (exec_cuda_run.c). */
zipccl_status zipccl_cuda_run(struct zipccl_exec *exec, const struct zipccl_run *run,
                              struct zipccl_transport *transport, void *stream,
                              struct zipccl_run_stats *stats);

void zipccl_cuda_events_destroy(struct zipccl_exec_cuda *e);
void zipccl_cuda_late_destroy(struct zipccl_exec_cuda *e);

/* What a plan needs of the device, at most (exec_cuda_memory.c). */
struct zipccl_cuda_needs {
    size_t tables, results, outcomes; /* bytes */
    size_t encode, decode, sum;       /* workspace */
    size_t staging;
};

/* Have it, before anything of the call is enqueued; take the next arena.  May wait. */
zipccl_status zipccl_cuda_provide(struct zipccl_exec_cuda *e, const struct zipccl_run_state *s,
                                  cudaStream_t stream);
zipccl_status zipccl_cuda_memory_create(struct zipccl_exec_cuda *e);
void zipccl_cuda_memory_destroy(struct zipccl_exec_cuda *e);

/* Look at what decoders of a call found, once it has ended. */
void zipccl_cuda_arena_look(struct zipccl_exec_cuda *e, struct zipccl_cuda_arena *arena);

/* Take 'nbytes' of a region, which has them; their offset. */
size_t zipccl_cuda_take(struct zipccl_cuda_region *region, size_t nbytes);

/* Launches (exec_cuda_launch.c); all go into e->now. */

/* Add a message to the launch that is put together; zipccl_cuda_list_start() begins one. */
void zipccl_cuda_list_start(struct zipccl_exec_cuda *e);
zipccl_status zipccl_cuda_list_add(struct zipccl_exec_cuda *e, struct zipccl_gpu_slot message);

/* Look at the headers of the listed messages; results come to the host, in e->seen. */
zipccl_status zipccl_cuda_look(struct zipccl_exec_cuda *e, enum zipccl_dtype dtype);

/* Decode the listed messages. */
zipccl_status zipccl_cuda_decode(struct zipccl_exec_cuda *e, enum zipccl_dtype dtype);

/* exec->ops->encode_many, ->decode_sum and ->message_read. */
zipccl_status zipccl_cuda_encode_many(struct zipccl_exec *exec, enum zipccl_dtype dtype,
                                      struct zipccl_slice *slices, size_t nslices);
zipccl_status zipccl_cuda_decode_sum(struct zipccl_exec *exec, enum zipccl_dtype dtype,
                                     struct zipccl_term *terms, size_t nterms, size_t n,
                                     uint32_t divisor, void *dst);
zipccl_status zipccl_cuda_message_read(struct zipccl_exec *exec, enum zipccl_dtype dtype, size_t n,
                                       const void *at, struct zipccl_message *message);

/* Staging of a kind begins aligned to a cache line, as plans count it. */
static inline size_t zipccl_cuda_staging_up(size_t nbytes)
{
    return (nbytes + 63) / 64 * 64;
}

static inline struct zipccl_exec_cuda *zipccl_cuda_of(struct zipccl_exec *e)
{
    return (struct zipccl_exec_cuda *)e;
}

/* Keep the text of a CUDA call that failed, in the transport, which is what communicators ask. */
#define ZIPCCL_CUDA_TRY(e, call)                                                                   \
    ZIPCCL_TRY(zipccl_transport_nccl_cuda((e)->transport, (call), #call))

#endif
