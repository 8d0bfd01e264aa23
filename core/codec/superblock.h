/*
 * superblock.h - one superblock to and from its three places in a message
 *
 * It knows neither headers nor how a message is laid out.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_CODEC_SUPERBLOCK_H
#define ZIPCCL_CORE_CODEC_SUPERBLOCK_H

#include "core/codec/row.h"

/*
 * Choose a tier program and the bases of 'm' elements from a sample; integer arithmetic only,
 * so every row chooses the same.  Fills 'entry' but for escapes and offset.
 */
void zipccl_superblock_choose(const struct zipccl_row *row, const uint8_t *src, size_t m,
                              struct zipccl_scratch *scratch, struct zipccl_entry *entry);

/*
 * Encode 'm' elements, 1 <= m <= ZIPCCL_SUPERBLOCK.
 *
 * low       [m]
 * tier1     [zipccl_tier1_bytes(m)]
 * variable  [room]; bytes beyond those written may be scribbled over
 * entry     filled but for the offset
 *
 * Returns the number of variable bytes, which is more than 'room' if they do not fit; then
 * 'variable' is undefined.
 */
size_t zipccl_superblock_encode(const struct zipccl_row *row, const uint8_t *src, size_t m,
                                uint8_t *low, uint8_t *tier1, uint8_t *variable, size_t room,
                                struct zipccl_scratch *scratch, struct zipccl_entry *entry);

/*
 * Decode 'm' elements whose 'entry' zipccl_entry_read() has accepted.  Reads exactly the bytes
 * the entry names.  ZIPCCL_ERR_CORRUPT if the planes and the entry disagree.
 */
zipccl_status zipccl_superblock_decode(const struct zipccl_row *row, const uint8_t *low,
                                       const uint8_t *tier1, const uint8_t *variable, size_t m,
                                       const struct zipccl_entry *entry,
                                       struct zipccl_scratch *scratch, uint8_t *dst);

#endif
