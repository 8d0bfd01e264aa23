/*
 * codec_mt.h - the codec on several threads of one process
 *
 * A pool of threads that a CPU exec owns.  Bytes, statuses and results are those of the functions
 * of core/codec.h without _mt, for every number of threads: superblocks are coded apart and put
 * where they belong.  Calls that share a pool take turns; what is too small to be divided runs in
 * the caller.  Not for code that simulated ranks run: a call blocks its thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_CODEC_MT_H
#define ZIPCCL_CORE_CODEC_MT_H

#include "core/codec.h"

/* Threads of a pool at most. */
#define ZIPCCL_MAX_THREADS 256u

struct zipccl_pool;

/*
 * Start a pool of 'nthreads' threads, the caller of each function among them: nthreads - 1 are
 * started, each with its scratch, about 0.8 MB.  They sleep between calls.
 *
 * nthreads  1 to ZIPCCL_MAX_THREADS
 *
 * The caller destroys '*out', when no call uses it.  ZIPCCL_ERR_ARG for another number;
 * ZIPCCL_ERR_NOMEM if memory or threads are not to be had.
 */
zipccl_status zipccl_pool_create(uint32_t nthreads, struct zipccl_pool **out);
void zipccl_pool_destroy(struct zipccl_pool *pool);

/*
 * As zipccl_encode().  Shares are coded where they lie; variable bytes, about a twentieth of a
 * message, go through the threads' memory, since their places depend on all before them.
 */
zipccl_status zipccl_encode_mt(struct zipccl_pool *pool, enum zipccl_isa isa,
                               enum zipccl_dtype dtype, const void *src, size_t n, void *dst,
                               size_t capacity, size_t *nbytes);

/* As zipccl_decode(); each thread decodes superblocks whose places the directory tells. */
zipccl_status zipccl_decode_mt(struct zipccl_pool *pool, enum zipccl_isa isa,
                               enum zipccl_dtype dtype, const void *wire, size_t nbytes, void *dst,
                               size_t n);

/* As zipccl_encode_many(); small slices are coded one a thread, large ones by all together. */
zipccl_status zipccl_encode_many_mt(struct zipccl_pool *pool, enum zipccl_isa isa,
                                    enum zipccl_dtype dtype, struct zipccl_slice *slices,
                                    size_t nslices);

/*
 * As zipccl_decode_sum(); each thread adds up a part of the elements.  ZIPCCL_ERR_NOMEM, before
 * anything is written, if there is no memory for the threads' notes, 80 bytes a term.
 */
zipccl_status zipccl_decode_sum_mt(struct zipccl_pool *pool, enum zipccl_isa isa,
                                   enum zipccl_dtype dtype, struct zipccl_term *terms,
                                   size_t nterms, size_t n, uint32_t divisor, void *dst);

#endif
