/*
 * superblock.h - one superblock to and from its places in a message
 *
 * It knows neither headers nor how a message is laid out.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_CODEC_SUPERBLOCK_H
#define ZIPCCL_CORE_CODEC_SUPERBLOCK_H

#include "core/codec/row.h"

#include <string.h>

/* What a message's superblocks have in common. */
struct zipccl_coder {
    const struct zipccl_row *row;
    const struct zipccl_fields *fields;
    struct zipccl_scratch *scratch;
    bool stream;    /* what is written goes past the caches */
    bool max_ratio; /* encode for size before speed */
};

/*
 * Choose the program and the bases of 'm' elements from a sample; integer arithmetic only, so
 * every row chooses the same.  Fills program and base of 'entry'.  With 'look_for_zeros', returns
 * true, and fills nothing, if one in 16 sampled elements or more have no bit set.  For max ratio the
 * choice in the scratch is filled too.
 */
bool zipccl_superblock_choose(const struct zipccl_coder *coder, const uint8_t *src, size_t m,
                              bool look_for_zeros, struct zipccl_entry *entry);

/* True if all of 'm' elements, at least 1, have the same bits. */
static inline bool zipccl_superblock_is_constant(const struct zipccl_fields *fields,
                                                 const uint8_t *src, size_t m)
{
    return memcmp(src, src + fields->size, (m - 1) * fields->size) == 0;
}

/*
 * Encode 'm' elements, 1 <= m <= ZIPCCL_SUPERBLOCK.
 *
 * share          [share_room], NULL if there is none; bytes beyond those written may be scribbled over
 * variable       [variable_room]; the same
 * entry          filled
 * nshare         bytes of the share, a multiple of 64, at most zipccl_full_share()
 * nvariable      variable bytes
 *
 * Sizes are right also where there is no room; then what lies there is undefined.
 */
void zipccl_superblock_encode(const struct zipccl_coder *coder, const uint8_t *src, size_t m,
                              uint8_t *share, size_t share_room, uint8_t *variable,
                              size_t variable_room, struct zipccl_entry *entry, size_t *nshare,
                              size_t *nvariable);

/*
 * Decode 'm' elements whose 'entry' zipccl_entry_read() has accepted.  Reads exactly the bytes
 * the entry names.  ZIPCCL_ERR_CORRUPT if bitmap or planes and the entry disagree.
 */
zipccl_status zipccl_superblock_decode(const struct zipccl_coder *coder, const uint8_t *share,
                                       const uint8_t *variable, size_t m,
                                       const struct zipccl_entry *entry, uint8_t *dst);

/*
 * Encode 'rest' elements by program ANS, whose tables 'entry' names; its other fields but 'rest' are
 * filled.  Returns the variable bytes.
 *
 * share     [zipccl_full_share()]
 * variable  [ZIPCCL_MAX_VARIABLE + ZIPCCL_SLACK less a bitmap]
 * nshare    bytes of the share before it is rounded up; zeros follow up to there
 */
size_t zipccl_ans_encode(const struct zipccl_coder *coder, const uint8_t *src, size_t rest,
                         uint8_t *share, uint8_t *variable, struct zipccl_entry *entry,
                         size_t *nshare);

/* Inverse, of what zipccl_entry_read() has accepted, without a bitmap. */
zipccl_status zipccl_ans_decode(const struct zipccl_coder *coder, const uint8_t *share,
                                const uint8_t *variable, const struct zipccl_entry *entry,
                                uint8_t *dst);

#endif
