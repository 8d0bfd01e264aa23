/*
 * layout.h - where the bytes of a coded message lie
 *
 * The constants and sizes of core/FORMAT.md, version 2.  It holds no algorithm: rows, the
 * message layer and the device code share it (its tables: programs.inc and others).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_CODEC_LAYOUT_H
#define ZIPCCL_CORE_CODEC_LAYOUT_H

#include "core/codec.h"
#include "core/hostdev.h"
#include "core/wire.h"

#include <stddef.h>
#include <stdint.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "elements travel as they lie in memory, and the wire is little-endian"
#endif

#define ZIPCCL_WIRE_MAGIC   0x4c43435au /* "ZCCL" */
#define ZIPCCL_WIRE_VERSION 2

/* Elements of one superblock, which names its program, and of one sub-block, which has a base. */
#define ZIPCCL_SUPERBLOCK 16384u
#define ZIPCCL_SUBBLOCK   1024u
#define ZIPCCL_SUBBLOCKS  (ZIPCCL_SUPERBLOCK / ZIPCCL_SUBBLOCK)
/* Elements that share a word of a bit-plane. */
#define ZIPCCL_GROUP 64u
/* Bytes of a superblock's directory entry. */
#define ZIPCCL_ENTRY_BYTES 32u
#define ZIPCCL_MAX_TIERS   5
/* Every d that a tier lists lies in [ZIPCCL_LEAST_D, ZIPCCL_LEAST_D + 31). */
#define ZIPCCL_LEAST_D (-4)
#define ZIPCCL_NUM_D   32
/*
 * Program ANS: a symbol is an octave below the top and its half, the last two are escapes.  Tables of
 * frequencies are named by the shape of a distribution and the phase of its location.
 */
#define ZIPCCL_ANS_SYMBOLS 32
#define ZIPCCL_ANS_ESCAPE  30
#define ZIPCCL_ANS_SHAPES  6
#define ZIPCCL_ANS_PHASES  8
/* Lanes of the coder, the bytes of their states, and most bytes of their stream. */
#define ZIPCCL_ANS_LANES       64u
#define ZIPCCL_ANS_STATE_BYTES (2 * ZIPCCL_ANS_LANES)
#define ZIPCCL_ANS_MOST_STREAM ZIPCCL_SUPERBLOCK
/* The tiers of what escapes. */
#define ZIPCCL_ANS_TIERS 2
/* Most bytes of one superblock's share of the fixed region, and of its variable bytes. */
#define ZIPCCL_MAX_SHARE    (3 * ZIPCCL_SUPERBLOCK + ZIPCCL_SUPERBLOCK / 4)
#define ZIPCCL_MAX_VARIABLE (3 * ZIPCCL_SUPERBLOCK)
/* Coded messages have at most so many elements. */
#define ZIPCCL_MAX_CODED_N 0xffffffffu
/* Planes beside low byte and tiers: at most so many. */
#define ZIPCCL_MAX_PLANES 4

/*
 * How the elements of a type are taken apart: an exponent, a byte of sign and leading mantissa
 * bits where the type has so many, and the other bits in planes, which a superblock may leave out.
 */
enum zipccl_split {
    ZIPCCL_SPLIT_BF16,
    ZIPCCL_SPLIT_FP16,
    ZIPCCL_SPLIT_FP32,
    ZIPCCL_SPLIT_E4M3,
    ZIPCCL_SPLIT_E5M2,
    ZIPCCL_NUM_SPLITS
};

struct zipccl_fields {
    enum zipccl_split split;
    uint8_t size;          /* bytes of an element */
    uint8_t exponent_bits; /* of its exponent */
    uint8_t special;       /* exponent of infinities and NaNs; 0 if there is none */
    uint8_t low_bytes;     /* 1 if there is a low byte, else 0 */
    uint8_t nplanes;       /* further planes */
    bool byte_planes;      /* they hold a byte an element instead of a bit */
};

/* The fields of 'dtype'; NULL if the codec does not cover it. */
const struct zipccl_fields *zipccl_fields_of(enum zipccl_dtype dtype);

/* One tier: 'width' bits a code; code k < 2^width - 1 stands for d[k], the last code escapes. */
struct zipccl_tier {
    uint8_t width;
    int8_t d[7];
};

/* Tier 1 lists 0, 1, 2, ... */
struct zipccl_tier_program {
    int ntiers;
    struct zipccl_tier tier[ZIPCCL_MAX_TIERS];
};

/* Ids of programs.  With ZIPCCL_PROGRAM_ZEROS added, a bitmap takes the zeros out first. */
enum zipccl_program_id {
    ZIPCCL_PROGRAM_RAW = 0,
    ZIPCCL_PROGRAM_21223 = 1,
    ZIPCCL_PROGRAM_21123_UP = 2,
    ZIPCCL_PROGRAM_22123 = 3,
    ZIPCCL_PROGRAM_21123_DOWN = 4,
    ZIPCCL_PROGRAM_2223 = 5,
    ZIPCCL_PROGRAM_323 = 6,
    ZIPCCL_PROGRAM_1222 = 7,
    ZIPCCL_NUM_PROGRAMS = 8,
    ZIPCCL_PROGRAM_CONSTANT = 8,
    ZIPCCL_PROGRAM_ANS = 9,
    ZIPCCL_PROGRAM_ZEROS = 0x80
};

extern const struct zipccl_tier_program zipccl_programs[ZIPCCL_NUM_PROGRAMS];
extern const struct zipccl_tier zipccl_ans_tiers[ZIPCCL_ANS_TIERS];

/* In the entry of program ANS, what stands for the escapes out of tiers 4 and 5. */
enum { ZIPCCL_ANS_AT_LAW = 3, ZIPCCL_ANS_AT_STREAM = 4 };

/* Bits that program p codes d in, at [p][d - ZIPCCL_LEAST_D]; the last one is any other d's. */
extern const uint8_t zipccl_code_lengths[ZIPCCL_NUM_PROGRAMS][ZIPCCL_NUM_D];

/* One superblock's directory entry, unpacked. */
struct zipccl_entry {
    uint8_t program;
    uint8_t planes;                     /* bit k: plane k is there */
    uint16_t escapes[ZIPCCL_MAX_TIERS]; /* out of each tier; 0 beyond the program's last */
    uint16_t rest;                      /* elements that are no zeros taken out by a bitmap */
    uint16_t ngroups;                   /* groups that the bitmap shows; 0 without one */
    uint8_t base[ZIPCCL_SUBBLOCKS];     /* of the rest, or its tables; a constant's bytes */
};

/* Offsets of a superblock's parts in its share, all multiples of 16. */
struct zipccl_share {
    size_t planes; /* the low bytes lie at 0 */
    size_t plane_nbytes;
    size_t tier1;
    size_t end;
};

/* Where a message's regions start, from its first byte.  Shares follow one another from 'fixed'. */
struct zipccl_layout {
    size_t nsuperblocks;
    size_t directory;
    size_t fixed;
};

static ZIPCCL_HOSTDEV inline size_t zipccl_align64(size_t x)
{
    return (x + 63) & ~(size_t)63;
}

static ZIPCCL_HOSTDEV inline size_t zipccl_align16(size_t x)
{
    return (x + 15) & ~(size_t)15;
}

static ZIPCCL_HOSTDEV inline size_t zipccl_groups(size_t m)
{
    return (m + ZIPCCL_GROUP - 1) / ZIPCCL_GROUP;
}

/* Bytes of tier-1 words in the share: a third plane lies among the variable bytes. */
static ZIPCCL_HOSTDEV inline size_t zipccl_tier1_bytes(size_t m, int width)
{
    return zipccl_groups(m) * (width == 1 ? 8 : 16);
}

/* Bytes of the planes of a deeper tier that 'm' elements reach. */
static ZIPCCL_HOSTDEV inline size_t zipccl_plane_bytes(size_t m, int width)
{
    return (size_t)width * ((m + 7) / 8);
}

/* Bytes of the bitmap of 'm' elements with 'ngroups' groups that are not all zero. */
static ZIPCCL_HOSTDEV inline size_t zipccl_bitmap_bytes(size_t m, size_t ngroups)
{
    return ngroups ? 8 * (zipccl_groups(zipccl_groups(m)) + ngroups) : 0;
}

/* Elements of superblock 's' of a message of 'n'. */
static ZIPCCL_HOSTDEV inline size_t zipccl_superblock_n(size_t n, size_t s)
{
    size_t left = n - s * ZIPCCL_SUPERBLOCK;
    return left < ZIPCCL_SUPERBLOCK ? left : ZIPCCL_SUPERBLOCK;
}

/* The share of 'm' coded elements with 'nplanes' planes and a first tier of 'width' bits. */
static ZIPCCL_HOSTDEV inline struct zipccl_share zipccl_share_of(const struct zipccl_fields *fields,
                                                                 size_t m, int nplanes, int width)
{
    struct zipccl_share share;
    share.planes = zipccl_align16(fields->low_bytes * m);
    share.plane_nbytes = fields->byte_planes ? zipccl_align16(m) : 8 * zipccl_groups(m);
    share.tier1 = zipccl_align16(share.planes + (size_t)nplanes * share.plane_nbytes);
    share.end = share.tier1 + zipccl_tier1_bytes(m, width);
    return share;
}

/*
 * The same for program ANS, whose low bytes have seven bits and whose first bytes, at most one a
 * lane, travel in the states: the share is the others.
 */
static ZIPCCL_HOSTDEV inline struct zipccl_share
zipccl_ans_share_of(const struct zipccl_fields *fields, size_t m, int nplanes)
{
    struct zipccl_share share;
    share.planes = zipccl_align16(fields->low_bytes ? (7 * m + 7) / 8 : 0);
    share.plane_nbytes = fields->byte_planes ? zipccl_align16(m) : 8 * zipccl_groups(m);
    share.tier1 = share.end = zipccl_align16(share.planes + (size_t)nplanes * share.plane_nbytes);
    return share;
}

/* Bytes that the states carry of a share. */
static ZIPCCL_HOSTDEV inline size_t zipccl_ans_carried(const struct zipccl_share *share)
{
    return share->end < ZIPCCL_ANS_LANES ? share->end : ZIPCCL_ANS_LANES;
}

/* Planes that program ANS may leave to the share: not the leading mantissa bit. */
static ZIPCCL_HOSTDEV inline int zipccl_ans_planes(const struct zipccl_fields *fields)
{
    return fields->low_bytes ? fields->nplanes : fields->nplanes - 1;
}

/* Bytes that 'm' elements take at most in the fixed region, whatever their program: a multiple of 64. */
static ZIPCCL_HOSTDEV inline size_t zipccl_full_share(const struct zipccl_fields *fields, size_t m)
{
    return zipccl_align64(zipccl_share_of(fields, m, fields->nplanes, 2).end);
}

/*
 * Bytes of the share of a raw superblock's 'rest' elements, before rounding to 64; what remains
 * of the elements lies among the variable bytes.
 */
static ZIPCCL_HOSTDEV inline size_t zipccl_raw_share(const struct zipccl_fields *fields,
                                                     size_t rest)
{
    size_t end = zipccl_share_of(fields, rest, fields->nplanes, 2).end, raw = rest * fields->size;
    return raw < end ? raw : end;
}

/* Regions of a coded message of 'n' <= ZIPCCL_MAX_CODED_N elements; false if they overflow size_t. */
static ZIPCCL_HOSTDEV inline bool zipccl_layout_of(const struct zipccl_fields *fields, size_t n,
                                                   struct zipccl_layout *layout)
{
    /* Header, directory, shares and variable bytes stay well under 8 bytes a byte of elements. */
    if (n > ZIPCCL_MAX_CODED_N || n > SIZE_MAX / 8 / fields->size - 1024)
        return false;
    layout->nsuperblocks = (n + ZIPCCL_SUPERBLOCK - 1) / ZIPCCL_SUPERBLOCK;
    layout->directory = ZIPCCL_MESSAGE_HEADER_BYTES;
    layout->fixed = zipccl_align64(layout->directory + layout->nsuperblocks * ZIPCCL_ENTRY_BYTES);
    return true;
}

static ZIPCCL_HOSTDEV inline void zipccl_entry_write(uint8_t *p, const struct zipccl_entry *entry)
{
    p[0] = entry->program;
    p[1] = entry->planes;
    for (int t = 0; t < ZIPCCL_MAX_TIERS; t++)
        zipccl_put_u16(p + 2 + 2 * t, entry->escapes[t]);
    zipccl_put_u16(p + 12, entry->rest);
    zipccl_put_u16(p + 14, entry->ngroups);
    for (unsigned i = 0; i < ZIPCCL_SUBBLOCKS; i++)
        p[16 + i] = entry->base[i];
}

/*
 * Read entry 'p' of a superblock of 'm' elements, and tell the bytes of its share (a multiple of
 * 64) and its variable bytes.  ZIPCCL_ERR_CORRUPT if any field cannot have been written.
 */
zipccl_status zipccl_entry_read(const struct zipccl_fields *fields, const uint8_t *p, size_t m,
                                struct zipccl_entry *entry, size_t *nshare, size_t *nvariable);

#endif
