/*
 * bench_codec.h - the codecs that codec bench measures: ours by row, and those of packaged libraries
 *
 * One interface for all: a buffer of elements in, a buffer of bytes out; one thread, or ours on more.  Libraries are
 * optional; what is not in this build is named, not left out silently.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_BENCH_CODEC_H
#define ZIPCCL_EXPERIMENTS_BENCH_CODEC_H

#include "core/codec.h"

/* Elements to encode, and their type. */
struct zipccl_bench_elements {
    enum zipccl_dtype dtype;
    size_t n;
    size_t size; /* bytes of one */
};

struct zipccl_bench_codec {
    const char *name; /* "zipccl", "zstd-1", ... */
    const char *isa;  /* row of ours; "library" for the others */
    const char *what; /* exactly what runs, for people */

    /* Work memory for 'elements'; NULL without memory.  Freed by destroy(NULL is allowed). */
    void *(*create)(const struct zipccl_bench_codec *codec,
                    const struct zipccl_bench_elements *elements);
    void (*destroy)(void *state);

    /* Room that any encoding of 'elements' fits. */
    size_t (*capacity)(const struct zipccl_bench_elements *elements);

    /* False if the codec refuses. */
    bool (*encode)(void *state, const struct zipccl_bench_elements *elements, const void *src,
                   void *dst, size_t capacity, size_t *nbytes);
    bool (*decode)(void *state, const struct zipccl_bench_elements *elements, const void *wire,
                   size_t nbytes, void *dst);

    enum zipccl_isa row; /* ours alone */
    unsigned threads;    /* likewise */
};

/* Our row 'isa' on 'threads' threads. */
struct zipccl_bench_codec zipccl_bench_ours(enum zipccl_isa isa, unsigned threads);

/* Codecs of other libraries in this build, peers [*n]; all of them constant. */
const struct zipccl_bench_codec *zipccl_bench_peers(size_t *n);

/* What is not in this build, "zstd, lz4"; "" if all are. */
const char *zipccl_bench_missing(void);

#endif
