/*
 * exec.h - computes: in-order queues of encode, decode, reduce and copy, and the lanes they run on
 *
 * Lanes are spawned and awaited through this table (threads here, actors in a simulator, streams
 * on a GPU), so that shared code never names a thread primitive.  An exec moves no bytes between
 * ranks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_EXEC_H
#define ZIPCCL_CORE_EXEC_H

#include "core/split.h"

struct zipccl_exec;
struct zipccl_run; /* executor.h */
struct zipccl_run_stats;
struct zipccl_ended_call;
struct zipccl_transport;
struct zipccl_lane_task; /* a running lane, opaque to all but its exec */
struct zipccl_event;     /* counts up from 0; waiters wait for a value at least as high */

struct zipccl_exec_ops {
    const char *name;
    /* As zipccl_encode() and zipccl_decode(), with this exec's scratch; in order, may block. */
    zipccl_status (*encode)(struct zipccl_exec *e, enum zipccl_dtype dtype, const void *src,
                            size_t n, void *dst, size_t capacity, size_t *nbytes);
    zipccl_status (*decode)(struct zipccl_exec *e, enum zipccl_dtype dtype, const void *wire,
                            size_t nbytes, void *dst, size_t n);
    void (*copy)(struct zipccl_exec *e, void *dst, const void *src, size_t nbytes);
    /* Run fn(arg) beside the caller until it returns; join waits for that. */
    zipccl_status (*spawn)(struct zipccl_exec *e, void (*fn)(void *), void *arg,
                           struct zipccl_lane_task **task);
    void (*join)(struct zipccl_exec *e, struct zipccl_lane_task *task);
    zipccl_status (*event_create)(struct zipccl_exec *e, struct zipccl_event **event);
    void (*event_signal)(struct zipccl_exec *e, struct zipccl_event *event, uint64_t value);
    void (*event_wait)(struct zipccl_exec *e, struct zipccl_event *event, uint64_t value);
    void (*event_destroy)(struct zipccl_exec *e, struct zipccl_event *event);
    /* Memory for staging; aligned to 64. */
    void *(*alloc)(struct zipccl_exec *e, size_t nbytes);
    void (*free)(struct zipccl_exec *e, void *p);
    void (*destroy)(struct zipccl_exec *e);
    /* Nanoseconds of a clock that only goes forward, from any start: real ones, or those of a
     * simulation.  NULL if this exec has none; the communicator then learns no times. */
    uint64_t (*clock_ns)(struct zipccl_exec *e);
    /* Set 'nbytes' to zero; in order with encode. */
    void (*zero)(struct zipccl_exec *e, void *dst, size_t nbytes);
    /* Around the work of one step of the codec lane: what a step computes is one launch, and done
     * when step_end returns.  NULL if each call is done when it returns. */
    void (*step_begin)(struct zipccl_exec *e);
    void (*step_end)(struct zipccl_exec *e);
    /* Wait until the host knows the sizes that were exchanged; NULL if it always does. */
    void (*fence)(struct zipccl_exec *e);
    /* As zipccl_accumulate() and zipccl_round_sums(), in order with decode; NULL if this exec
     * does not reduce. */
    void (*reduce_add)(struct zipccl_exec *e, enum zipccl_dtype dtype, float *acc, const void *x,
                       size_t n, bool first);
    void (*reduce_round)(struct zipccl_exec *e, enum zipccl_dtype dtype, const float *acc, size_t n,
                         uint32_t divisor, void *dst);
    /* As zipccl_encode_many(): what one step sends; NULL: messages are encoded one by one. */
    zipccl_status (*encode_many)(struct zipccl_exec *e, enum zipccl_dtype dtype,
                                 struct zipccl_slice *slices, size_t nslices);
    /* As zipccl_decode_sum(); NULL: decode, reduce_add and reduce_round do a REDUCE. */
    zipccl_status (*decode_sum)(struct zipccl_exec *e, enum zipccl_dtype dtype,
                                struct zipccl_term *terms, size_t nterms, size_t n,
                                uint32_t divisor, void *dst);
    /*
     * Parts of a message, as zipccl_split_begin() and zipccl_split_end() code them, with this exec's
     * scratch; the encoder is the caller's.  NULL, both: encode() does all in the place of the first.
     */
    zipccl_status (*encode_early)(struct zipccl_exec *e, enum zipccl_dtype dtype, const void *src,
                                  size_t n, void *dst, size_t capacity,
                                  struct zipccl_encoder *encoder);
    zipccl_status (*encode_rest)(struct zipccl_exec *e, struct zipccl_encoder *encoder,
                                 size_t *nbytes);
    /*
     * Run a plan on a device: enqueue it into 'stream', with staging of the exec's own ('run' has none).
     * As zipccl_execute(), but what was enqueued may go on after it returns.  NULL: zipccl_execute()
     * does, and calls take no stream.  Such an exec codes messages in one go, and then
     *   - encode_many() only starts the work; nbytes and status of slices are filled in by run() before
     *     it calls zipccl_run_keep(), and the room behind a message is zeroed by the kernel;
     *   - decode(), decode_sum(), copy() and zero() only start theirs.
     */
    zipccl_status (*run)(struct zipccl_exec *e, const struct zipccl_run *run,
                         struct zipccl_transport *transport, void *stream,
                         struct zipccl_run_stats *stats);
    /*
     * Of a device: time the next run(), by the device's clock; '*ticket' names it.  Nanoseconds that it took on
     * this rank, 1 at least; waits until it is known; 0: it is forgotten, or failed.  NULL, both: no times.
     */
    zipccl_status (*time_next)(struct zipccl_exec *e, uint64_t *ticket);
    uint64_t (*time_of)(struct zipccl_exec *e, uint64_t ticket);
    /* As zipccl_message_read() for a message of 'n' elements of 'dtype' at 'at', whose header has been
     * looked at on the device before; NULL: it is host memory. */
    zipccl_status (*message_read)(struct zipccl_exec *e, enum zipccl_dtype dtype, size_t n,
                                  const void *at, struct zipccl_message *message);
    /* Tell of a call of 'owner' that has ended, of which run() could not tell all; false if there is
     * none.  NULL: run() always can. */
    bool (*ended)(struct zipccl_exec *e, const void *owner, struct zipccl_ended_call *out);
};

struct zipccl_exec {
    const struct zipccl_exec_ops *ops;
    enum zipccl_effort effort; /* of 'encode'; set by the executor before each run of a plan */
    bool
        no_sizes; /* plans that exchange sizes are run, but not chosen: they would wait on the host */
};

/*
 * CPU kernels and threads; both lanes may compute at once.  The caller destroys '*out'.
 * ZIPCCL_ERR_ARG if 'isa' is no row that this machine can run.
 */
zipccl_status zipccl_exec_cpu_create(enum zipccl_isa isa, struct zipccl_exec **out);

/*
 * The same with 'nthreads' threads for encode, decode and sums, the lane that calls among them: for
 * ranks that have several cores each.  Bytes and results do not depend on it, so ranks may differ.
 *
 * nthreads  1 (as above) to ZIPCCL_MAX_THREADS of core/codec_mt.h, else ZIPCCL_ERR_ARG
 */
zipccl_status zipccl_exec_cpu_create_mt(enum zipccl_isa isa, uint32_t nthreads,
                                        struct zipccl_exec **out);

#endif
