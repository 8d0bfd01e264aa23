/*
 * avx512.h - what the files of the AVX-512 row share
 *
 * Only files that are built for AVX-512 include it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_CODEC_AVX512_H
#define ZIPCCL_CORE_CODEC_AVX512_H

#include "core/codec/row.h"

#include <immintrin.h>

/* Constants stay in registers only where the helpers are part of the loop. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

ALWAYS_INLINE __mmask64 mask_of(size_t len)
{
    return len < 64 ? (1ull << len) - 1 : ~0ull;
}

/* What row.h's sample_all does, for ZIPCCL_SUPERBLOCK bf16 at 'src'. */
uint32_t zipccl_sample_all_avx512(const uint8_t *src, size_t look, struct zipccl_sample *sample,
                                  struct zipccl_moments *moments);

/* row.h's locate. */
int zipccl_locate_avx512(struct zipccl_moments *moments);

/* row.h's cost and cost_all. */
uint32_t zipccl_cost_avx512(const struct zipccl_sample *sample, size_t n, const uint8_t *bases,
                            const uint8_t bits[ZIPCCL_NUM_D]);
uint32_t zipccl_cost_all_avx512(const struct zipccl_sample *sample,
                                const struct zipccl_moments *moments, const uint8_t *bases,
                                const uint8_t bits[ZIPCCL_NUM_D], uint32_t *each);

/* row.h's sift and unsift. */
size_t zipccl_sift_avx512(uint8_t *d, size_t m, const struct zipccl_tier *tier, uint8_t *planes);
size_t zipccl_unsift_avx512(const uint8_t *planes, const uint8_t *escaped, size_t m,
                            const struct zipccl_tier *tier, uint8_t *d);

#endif
