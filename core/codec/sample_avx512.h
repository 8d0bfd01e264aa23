/*
 * sample_avx512.h - sampling with AVX-512, a superblock at once
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_CODEC_SAMPLE_AVX512_H
#define ZIPCCL_CORE_CODEC_SAMPLE_AVX512_H

#include "core/codec/row.h"

/* What row.h's sample_all does, for ZIPCCL_SUPERBLOCK bf16 at 'src'. */
void zipccl_sample_all_avx512(const uint8_t *src, size_t look, struct zipccl_sample *sample);

/* row.h's cost and cost_all. */
uint32_t zipccl_cost_avx512(const struct zipccl_sample *sample, size_t n, const uint8_t *bases,
                            const uint8_t bits[ZIPCCL_NUM_D]);
uint32_t zipccl_cost_all_avx512(const struct zipccl_sample *sample, size_t nlooks,
                                const uint8_t *bases, const uint8_t bits[ZIPCCL_NUM_D],
                                uint32_t *each);

#endif
