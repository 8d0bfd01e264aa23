/*
 * message.h - messages being written and read, for the files that put them together
 *
 * What message.c shares with the fused and the parallel entry points.  It knows no threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_CODEC_MESSAGE_H
#define ZIPCCL_CORE_CODEC_MESSAGE_H

#include "core/codec/superblock.h"

/* The elements of a message: as they are, or fp32 values to be rounded on the way. */
struct zipccl_source {
    const uint8_t *elements;
    const float *values; /* NULL if there are elements */
};

/* Where decoded elements go: to rows, or on top of sums. */
struct zipccl_sink {
    uint8_t *dst; /* NULL: to acc */
    float *acc;
    size_t size;        /* bytes of an element */
    size_t row, stride; /* in elements; one row holds all if row is SIZE_MAX */
};

/* What the superblocks of a message of 'n' elements have in common; row or fields may be NULL. */
struct zipccl_coder zipccl_coder_of(enum zipccl_isa isa, enum zipccl_dtype dtype, size_t n,
                                    void *scratch);

/* As zipccl_encode_begin(), from any source. */
zipccl_status zipccl_encoder_start(struct zipccl_encoder *encoder, enum zipccl_isa isa,
                                   enum zipccl_effort effort, enum zipccl_dtype dtype,
                                   const struct zipccl_source *source, size_t n, void *dst,
                                   size_t capacity, void *scratch);

/*
 * True if every superblock's sample says raw, and there are some: then the message becomes RAW, and
 * none needs to be coded.  Never for max ratio.  zipccl_encode_step() asks once the first superblock
 * is raw.
 */
bool zipccl_encoder_hopeless(const struct zipccl_encoder *encoder);

/* The same of an encoder's message, to be coded with 'scratch'. */
struct zipccl_coder zipccl_encoder_coder(const struct zipccl_encoder *encoder, void *scratch);

/*
 * Encode superblock 's' of the encoder's elements and write its directory entry.  Rooms, sizes and
 * 'share' as in zipccl_superblock_encode(); the entry is written only if all fits.
 */
void zipccl_encoder_superblock(const struct zipccl_encoder *encoder, const struct zipccl_coder *c,
                               size_t s, uint8_t *share, size_t share_room, uint8_t *variable,
                               size_t variable_room, size_t *nshare, size_t *nvariable);

/*
 * Check a message, as zipccl_decode() does, and open 'nreaders' readers of it, number t from
 * superblock t * nsuperblocks / nreaders on.
 *
 * c  without fields for types that are only stored raw
 */
zipccl_status zipccl_reader_open(const struct zipccl_coder *c, enum zipccl_dtype dtype,
                                 const void *wire, size_t nbytes, size_t n,
                                 struct zipccl_reader *readers, size_t nreaders);

/* Decode the reader's next superblock of 'm' elements; not of a message stored raw. */
zipccl_status zipccl_reader_next(const struct zipccl_coder *c, struct zipccl_reader *reader,
                                 size_t m, uint8_t *dst);

/* Decode from the reader's next superblock up to number 'end', exclusive. */
zipccl_status zipccl_reader_run(const struct zipccl_coder *c, struct zipccl_reader *reader,
                                size_t end, const struct zipccl_sink *sink);

/* Superblocks of 'n' elements. */
static inline size_t zipccl_superblocks(size_t n)
{
    return n / ZIPCCL_SUPERBLOCK + (n % ZIPCCL_SUPERBLOCK != 0);
}

/*
 * Arguments of zipccl_decode_strided() that can be: the last element's offset must fit size_t.
 */
bool zipccl_rows_fit(size_t size, size_t n, size_t row, size_t stride);

/* Terms that can be added: see zipccl_decode_sum(). */
zipccl_status zipccl_sum_check(enum zipccl_dtype dtype, size_t nterms, uint32_t divisor);

/* As zipccl_reader_open(), of a term; elements as they are need no check. */
zipccl_status zipccl_term_open(const struct zipccl_coder *c, enum zipccl_dtype dtype,
                               const struct zipccl_term *term, size_t n,
                               struct zipccl_reader *readers, size_t nreaders);

/* Add superblocks [s, end) of the terms, whose readers stand at 's', and round them to dst [n]. */
zipccl_status zipccl_sum_run(const struct zipccl_coder *c, struct zipccl_term *terms, size_t nterms,
                             size_t n, size_t s, size_t end, uint32_t divisor, uint8_t *dst);

/* Arguments of zipccl_encode_many() that can be. */
zipccl_status zipccl_slices_check(enum zipccl_isa isa, enum zipccl_effort effort,
                                  enum zipccl_dtype dtype, const struct zipccl_slice *slices,
                                  size_t nslices);

#endif
