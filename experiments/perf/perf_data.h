/*
 * perf_data.h - the elements that perf moves: random ones, or tensors of a file
 *
 * A pool that all ranks read.  A rank's send buffer is the pool, repeated, from a place that depends
 * on the rank and on a number for the call: so ranks differ, calls differ, and every rank knows what
 * every other one sends.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_PERF_DATA_H
#define ZIPCCL_EXPERIMENTS_PERF_DATA_H

#include "core/dtype.h"
#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

struct zipccl_perf_options;

struct zipccl_perf_pool {
    enum zipccl_dtype dtype;
    size_t n;             /* elements; 0: there are none of this type */
    unsigned char *bytes; /* owned */
};

/*
 * Make the pool of 'dtype' that 'options' ask for.  Generated ones have at most 'most' elements and
 * are the same in every process.  A file without elements of the type gives a pool of 0.
 *
 * ZIPCCL_ERR_INPUT if the file or its tensor is not what it should be; ZIPCCL_ERR_IO, NOMEM.
 */
zipccl_status zipccl_perf_pool_open(struct zipccl_perf_pool *pool,
                                    const struct zipccl_perf_options *options,
                                    enum zipccl_dtype dtype, size_t most,
                                    struct zipccl_error *error);
void zipccl_perf_pool_close(struct zipccl_perf_pool *pool);

/* Elements [first, first + n) of what 'rank' sends in call number 'call'. */
void zipccl_perf_pool_copy(const struct zipccl_perf_pool *pool, uint32_t rank, uint32_t call,
                           size_t first, size_t n, void *out);

#endif
