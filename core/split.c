/*
 * split.c - where messages are cut, and their parts coded one after the other
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/split.h"

/* The codec's superblock. */
#define SUPERBLOCK_N (ZIPCCL_SPLIT_LEAST_N / 2)

struct zipccl_split_cut zipccl_split_of(enum zipccl_dtype dtype, size_t n)
{
    struct zipccl_split_cut split = {0, 0, 0};
    size_t nsuperblocks = n / SUPERBLOCK_N / 4, end;

    if (n < ZIPCCL_SPLIT_LEAST_N || !zipccl_dtype_compressible(dtype))
        return split;
    nsuperblocks = nsuperblocks > 0 ? nsuperblocks : 1;
    zipccl_early_region(dtype, n, &split.head, &end);
    split.early = nsuperblocks * zipccl_early_superblock(dtype);
    if (split.head == 0 || split.early > end - split.head)
        return (struct zipccl_split_cut){0, 0, 0};
    split.early_n = nsuperblocks * SUPERBLOCK_N;
    return split;
}

bool zipccl_split_stands(const struct zipccl_split_cut *split, enum zipccl_dtype dtype, size_t n,
                         size_t nbytes)
{
    return split->early > 0 && nbytes >= split->head + split->early &&
           nbytes < zipccl_bound(dtype, n);
}

static bool is_early_done(const struct zipccl_encoder *encoder)
{
    struct zipccl_split_cut split = zipccl_split_of(encoder->dtype, encoder->n);

    return encoder->final_end >= split.head + split.early;
}

zipccl_status zipccl_split_begin(struct zipccl_encoder *encoder, enum zipccl_isa isa,
                                 enum zipccl_dtype dtype, const void *src, size_t n, void *dst,
                                 size_t capacity, void *scratch)
{
    ZIPCCL_TRY(zipccl_encode_begin(encoder, isa, ZIPCCL_EFFORT_FAST, dtype, src, n, dst, capacity,
                                   scratch));
    while (!is_early_done(encoder) && zipccl_encode_step(encoder))
        ;
    return ZIPCCL_OK;
}

zipccl_status zipccl_split_end(struct zipccl_encoder *encoder, void *scratch, size_t *nbytes)
{
    encoder->scratch = scratch;
    /* What has not come as far as the early part's end would go on in it. */
    if (!is_early_done(encoder))
        return ZIPCCL_ERR_OVERFLOW;
    while (zipccl_encode_step(encoder))
        ;
    /* Only a message that is certain is finished without writing another body. */
    return encoder->certain ? zipccl_encode_finish(encoder, nbytes) : ZIPCCL_ERR_OVERFLOW;
}
