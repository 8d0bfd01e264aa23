/*
 * layout.h - where the bytes of a coded message lie
 *
 * The constants and sizes of core/FORMAT.md, version 1.  It holds no algorithm: rows, the
 * message layer and later the device code share it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_CODEC_LAYOUT_H
#define ZIPCCL_CORE_CODEC_LAYOUT_H

#include "core/codec.h"

#include <stddef.h>
#include <stdint.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "elements travel as they lie in memory, and the wire is little-endian"
#endif

#define ZIPCCL_WIRE_MAGIC   0x4c43435au /* "ZCCL" */
#define ZIPCCL_WIRE_VERSION 1

/* Elements of one superblock, which names its tier program, and of one sub-block, which has a base. */
#define ZIPCCL_SUPERBLOCK 16384u
#define ZIPCCL_SUBBLOCK   1024u
#define ZIPCCL_SUBBLOCKS  (ZIPCCL_SUPERBLOCK / ZIPCCL_SUBBLOCK)
/* Elements that share a word of a bit-plane. */
#define ZIPCCL_GROUP 64u
/* Bytes of a superblock's directory entry. */
#define ZIPCCL_ENTRY_BYTES 32u
#define ZIPCCL_MAX_TIERS   5
/* Every d that a tier lists lies in [ZIPCCL_LEAST_D, ZIPCCL_LEAST_D + 15). */
#define ZIPCCL_LEAST_D (-3)
/* Most bytes that one superblock puts into the variable region: the rest of its raw exponents. */
#define ZIPCCL_MAX_VARIABLE (ZIPCCL_SUPERBLOCK - ZIPCCL_SUPERBLOCK / 4)
/* Coded messages have at most so many elements, so that offsets fit 32 bits. */
#define ZIPCCL_MAX_CODED_N 0xffffffffu

/* One tier: 'width' bits a code; code k < 2^width - 1 stands for d[k], the last code escapes. */
struct zipccl_tier {
    uint8_t width;
    int8_t d[3];
};

struct zipccl_tier_program {
    int ntiers;
    struct zipccl_tier tier[ZIPCCL_MAX_TIERS];
};

/* Ids of tier programs.  Ids from ZIPCCL_NUM_PROGRAMS on are reserved: wide, zeros, constant. */
enum zipccl_program_id {
    ZIPCCL_PROGRAM_RAW = 0,
    ZIPCCL_PROGRAM_2222 = 1,
    ZIPCCL_PROGRAM_21222_UP = 2,   /* tier 2 is {3} */
    ZIPCCL_PROGRAM_21222_DOWN = 3, /* tier 2 is {-1} */
    ZIPCCL_NUM_PROGRAMS = 4
};

extern const struct zipccl_tier_program zipccl_programs[ZIPCCL_NUM_PROGRAMS];

/* One superblock's directory entry, unpacked; 'offset' counts from the variable region's start. */
struct zipccl_entry {
    uint8_t program;
    uint16_t escapes[ZIPCCL_MAX_TIERS]; /* out of each tier; 0 beyond the program's last */
    uint32_t offset;                    /* of its variable bytes */
    uint8_t base[ZIPCCL_SUBBLOCKS];     /* 0 beyond the last sub-block and in raw superblocks */
};

/* Byte offsets of a coded message's regions, from the message's first byte. */
struct zipccl_layout {
    size_t nsuperblocks;
    size_t directory;
    size_t low;      /* low bytes: mantissa and sign of each element */
    size_t tier1;    /* bit-planes of tier 1 */
    size_t variable; /* deeper tiers and raw exponents, superblock after superblock */
};

static inline size_t zipccl_align64(size_t x)
{
    return (x + 63) & ~(size_t)63;
}

/* Bytes of tier-1 planes for 'm' elements: whole groups of two 64-bit words. */
static inline size_t zipccl_tier1_bytes(size_t m)
{
    return (m + ZIPCCL_GROUP - 1) / ZIPCCL_GROUP * 16;
}

/* Bytes of the planes of a deeper tier that 'm' elements reach. */
static inline size_t zipccl_plane_bytes(size_t m, int width)
{
    return (size_t)width * ((m + 7) / 8);
}

/* Variable bytes of a raw superblock of 'm' elements: exponents that its tier-1 slot has no room for. */
static inline size_t zipccl_raw_variable(size_t m)
{
    size_t slot = zipccl_tier1_bytes(m);
    return m > slot ? m - slot : 0;
}

/* Elements of superblock 's' of a message of 'n'. */
static inline size_t zipccl_superblock_n(size_t n, size_t s)
{
    size_t left = n - s * ZIPCCL_SUPERBLOCK;
    return left < ZIPCCL_SUPERBLOCK ? left : ZIPCCL_SUPERBLOCK;
}

/* Regions of a coded message of 'n' <= ZIPCCL_MAX_CODED_N elements; false if they overflow size_t. */
bool zipccl_layout_of(size_t n, struct zipccl_layout *layout);

void zipccl_entry_write(uint8_t *p, const struct zipccl_entry *entry);

/*
 * Read entry 'p' of a superblock of 'm' elements whose variable bytes must start at 'offset',
 * and tell how many there are.  ZIPCCL_ERR_CORRUPT if any field cannot have been written.
 */
zipccl_status zipccl_entry_read(const uint8_t *p, size_t m, size_t offset,
                                struct zipccl_entry *entry, size_t *nvariable);

#endif
