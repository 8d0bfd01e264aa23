/*
 * bench_codec.c - our own codec, one row of it, as codec bench sees codecs
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/bench/bench_codec.h"

#include "core/codec_mt.h"

#include <stdlib.h>

struct own {
    enum zipccl_isa isa;
    void *scratch;
    struct zipccl_pool *pool; /* NULL: one thread */
};

static void destroy(void *state)
{
    struct own *own = state;
    if (!own)
        return;
    if (own->pool)
        zipccl_pool_destroy(own->pool);
    free(own->scratch);
    free(own);
}

static void *create(const struct zipccl_bench_codec *codec,
                    const struct zipccl_bench_elements *elements)
{
    (void)elements;
    struct own *own = calloc(1, sizeof *own);
    if (!own)
        return NULL;
    own->isa = codec->row;
    own->scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    if (own->scratch &&
        (codec->threads == 1 || zipccl_pool_create(codec->threads, &own->pool) == ZIPCCL_OK))
        return own;
    destroy(own);
    return NULL;
}

static size_t capacity_of(const struct zipccl_bench_elements *elements)
{
    return zipccl_bound(elements->dtype, elements->n);
}

static bool encode(void *state, const struct zipccl_bench_elements *elements, const void *src,
                   void *dst, size_t capacity, size_t *nbytes)
{
    struct own *own = state;
    if (own->pool)
        return zipccl_encode_mt(own->pool, own->isa, ZIPCCL_EFFORT_FAST, elements->dtype, src,
                                elements->n, dst, capacity, nbytes) == ZIPCCL_OK;
    return zipccl_encode(own->isa, elements->dtype, src, elements->n, dst, capacity, own->scratch,
                         nbytes) == ZIPCCL_OK;
}

static bool decode(void *state, const struct zipccl_bench_elements *elements, const void *wire,
                   size_t nbytes, void *dst)
{
    struct own *own = state;
    if (own->pool)
        return zipccl_decode_mt(own->pool, own->isa, elements->dtype, wire, nbytes, dst,
                                elements->n) == ZIPCCL_OK;
    return zipccl_decode(own->isa, elements->dtype, wire, nbytes, dst, elements->n, own->scratch) ==
           ZIPCCL_OK;
}

struct zipccl_bench_codec zipccl_bench_ours(enum zipccl_isa isa, unsigned threads)
{
    return (struct zipccl_bench_codec){
        .name = "zipccl",
        .isa = zipccl_isa_name(isa),
        .what = "this codec, one message, default mode",
        .create = create,
        .destroy = destroy,
        .capacity = capacity_of,
        .encode = encode,
        .decode = decode,
        .row = isa,
        .threads = threads,
    };
}
