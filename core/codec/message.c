/*
 * message.c - headers, and messages as sequences of superblocks
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/superblock.h"

#include "core/wire.h"

#include <string.h>

#define KNOWN_FLAGS (ZIPCCL_MESSAGE_RAW | ZIPCCL_MESSAGE_OVERFLOW | ZIPCCL_MESSAGE_ANY_OVERFLOW)

/* Byte offsets in the header. */
enum {
    AT_MAGIC = 0,
    AT_VERSION = 4,
    AT_DTYPE = 5,
    AT_FLAGS = 6,
    AT_ZERO = 7,
    AT_N = 8,
    AT_BODY = 16,
    AT_RESERVED = 24,
    AT_CHECK = 28
};

/* FNV-1a over the header but its last field: any change of one byte changes it. */
static uint32_t header_check(const uint8_t *header)
{
    uint32_t h = 2166136261u;
    for (int i = 0; i < AT_CHECK; i++)
        h = (h ^ header[i]) * 16777619u;
    return h;
}

static void header_write(uint8_t *p, enum zipccl_dtype dtype, uint32_t flags, uint64_t n,
                         uint64_t nbody)
{
    memset(p, 0, ZIPCCL_MESSAGE_HEADER_BYTES);
    zipccl_put_u32(p + AT_MAGIC, ZIPCCL_WIRE_MAGIC);
    p[AT_VERSION] = ZIPCCL_WIRE_VERSION;
    p[AT_DTYPE] = (uint8_t)dtype;
    p[AT_FLAGS] = (uint8_t)flags;
    zipccl_put_u64(p + AT_N, n);
    zipccl_put_u64(p + AT_BODY, nbody);
    zipccl_put_u32(p + AT_CHECK, header_check(p));
}

void zipccl_message_write_header(void *wire, enum zipccl_dtype dtype, uint32_t flags, uint64_t n,
                                 uint64_t nbytes)
{
    if (flags & ZIPCCL_MESSAGE_OVERFLOW)
        nbytes = ZIPCCL_MESSAGE_HEADER_BYTES;
    else if (nbytes >= zipccl_bound(dtype, n))
        flags |= ZIPCCL_MESSAGE_RAW;
    header_write(wire, dtype, flags, n, nbytes - ZIPCCL_MESSAGE_HEADER_BYTES);
}

size_t zipccl_codec_scratch_bytes(void)
{
    return zipccl_align64(sizeof(struct zipccl_scratch));
}

size_t zipccl_bound(enum zipccl_dtype dtype, size_t n)
{
    size_t size = zipccl_dtype_size(dtype);
    if (size == 0 || n > (SIZE_MAX - ZIPCCL_MESSAGE_HEADER_BYTES) / size)
        return 0;
    return ZIPCCL_MESSAGE_HEADER_BYTES + n * size;
}

/*
 * Write everything of a coded message but its header into 'dst' [capacity].  False if it does
 * not fit.
 */
static bool encode_body(const struct zipccl_row *row, const uint8_t *src, size_t n, uint8_t *dst,
                        size_t capacity, struct zipccl_scratch *scratch, size_t *nbytes)
{
    struct zipccl_layout at;
    if (!zipccl_layout_of(n, &at) || at.variable > capacity)
        return false;
    size_t directory_end = at.directory + at.nsuperblocks * ZIPCCL_ENTRY_BYTES;
    memset(dst + directory_end, 0, at.low - directory_end);
    memset(dst + at.low + n, 0, at.tier1 - at.low - n);

    size_t used = at.variable;
    for (size_t s = 0; s < at.nsuperblocks; s++) {
        size_t first = s * ZIPCCL_SUPERBLOCK;
        struct zipccl_entry entry;
        size_t nvariable = zipccl_superblock_encode(
            row, src + 2 * first, zipccl_superblock_n(n, s), dst + at.low + first,
            dst + at.tier1 + first / 4, dst + used, capacity - used, scratch, &entry);
        if (nvariable > capacity - used)
            return false;
        entry.offset = (uint32_t)(used - at.variable);
        zipccl_entry_write(dst + at.directory + s * ZIPCCL_ENTRY_BYTES, &entry);
        used += nvariable;
    }
    *nbytes = used;
    return true;
}

zipccl_status zipccl_encode(enum zipccl_isa isa, enum zipccl_dtype dtype, const void *src, size_t n,
                            void *dst, size_t capacity, void *scratch, size_t *nbytes)
{
    const struct zipccl_row *row = zipccl_row_of(isa);
    size_t bound = zipccl_bound(dtype, n);
    if (!row || bound == 0 || capacity < ZIPCCL_MESSAGE_HEADER_BYTES)
        return ZIPCCL_ERR_ARG;

    /* Coding stops where raw would be no longer: what fits does not depend on the capacity. */
    size_t limit = capacity < bound ? capacity : bound, used = 0;
    if (zipccl_dtype_compressible(dtype) && encode_body(row, src, n, dst, limit, scratch, &used) &&
        used < bound) {
        header_write(dst, dtype, 0, n, used - ZIPCCL_MESSAGE_HEADER_BYTES);
        *nbytes = used;
        return ZIPCCL_OK;
    }
    if (capacity < bound) {
        header_write(dst, dtype, ZIPCCL_MESSAGE_OVERFLOW, n, 0);
        *nbytes = ZIPCCL_MESSAGE_HEADER_BYTES;
        return ZIPCCL_ERR_OVERFLOW;
    }
    header_write(dst, dtype, ZIPCCL_MESSAGE_RAW, n, bound - ZIPCCL_MESSAGE_HEADER_BYTES);
    if (n > 0)
        memcpy((uint8_t *)dst + ZIPCCL_MESSAGE_HEADER_BYTES, src,
               bound - ZIPCCL_MESSAGE_HEADER_BYTES);
    *nbytes = bound;
    return ZIPCCL_OK;
}

zipccl_status zipccl_message_read(const void *wire, size_t nbytes, struct zipccl_message *message)
{
    const uint8_t *p = wire;
    if (nbytes < ZIPCCL_MESSAGE_HEADER_BYTES || zipccl_get_u32(p + AT_MAGIC) != ZIPCCL_WIRE_MAGIC ||
        zipccl_get_u32(p + AT_CHECK) != header_check(p) || p[AT_VERSION] != ZIPCCL_WIRE_VERSION ||
        p[AT_ZERO] != 0 || zipccl_get_u32(p + AT_RESERVED) != 0)
        return ZIPCCL_ERR_CORRUPT;

    enum zipccl_dtype dtype = (enum zipccl_dtype)p[AT_DTYPE];
    uint32_t flags = p[AT_FLAGS];
    uint64_t n = zipccl_get_u64(p + AT_N), nbody = zipccl_get_u64(p + AT_BODY);
    size_t size = zipccl_dtype_size(dtype);
    if (size == 0 || (flags & ~KNOWN_FLAGS) || n > SIZE_MAX / size ||
        nbody > nbytes - ZIPCCL_MESSAGE_HEADER_BYTES)
        return ZIPCCL_ERR_CORRUPT;
    bool raw = flags & ZIPCCL_MESSAGE_RAW, overflow = flags & ZIPCCL_MESSAGE_OVERFLOW;
    if ((raw && overflow) || (raw && nbody != n * size) || (overflow && nbody != 0))
        return ZIPCCL_ERR_CORRUPT;
    if (!raw && !overflow && (!zipccl_dtype_compressible(dtype) || nbody >= n * size))
        return ZIPCCL_ERR_CORRUPT;

    message->dtype = dtype;
    message->flags = flags;
    message->n = n;
    message->nbytes = ZIPCCL_MESSAGE_HEADER_BYTES + nbody;
    return ZIPCCL_OK;
}

void zipccl_message_set_flags(void *wire, uint32_t flags)
{
    uint8_t *p = wire;
    p[AT_FLAGS] = (uint8_t)(p[AT_FLAGS] | (flags & KNOWN_FLAGS));
    zipccl_put_u32(p + AT_CHECK, header_check(p));
}

/* Decode a coded message of exactly 'nbytes' bytes. */
static zipccl_status decode_body(const struct zipccl_row *row, const uint8_t *wire, size_t nbytes,
                                 uint8_t *dst, size_t n, struct zipccl_scratch *scratch)
{
    struct zipccl_layout at;
    if (!zipccl_layout_of(n, &at) || at.variable > nbytes)
        return ZIPCCL_ERR_CORRUPT;
    size_t used = at.variable;
    for (size_t s = 0; s < at.nsuperblocks; s++) {
        size_t first = s * ZIPCCL_SUPERBLOCK, m = zipccl_superblock_n(n, s), nvariable;
        struct zipccl_entry entry;
        ZIPCCL_TRY(zipccl_entry_read(wire + at.directory + s * ZIPCCL_ENTRY_BYTES, m,
                                     used - at.variable, &entry, &nvariable));
        if (nvariable > nbytes - used)
            return ZIPCCL_ERR_CORRUPT;
        ZIPCCL_TRY(zipccl_superblock_decode(row, wire + at.low + first, wire + at.tier1 + first / 4,
                                            wire + used, m, &entry, scratch, dst + 2 * first));
        used += nvariable;
    }
    return used == nbytes ? ZIPCCL_OK : ZIPCCL_ERR_CORRUPT;
}

zipccl_status zipccl_decode(enum zipccl_isa isa, enum zipccl_dtype dtype, const void *wire,
                            size_t nbytes, void *dst, size_t n, void *scratch)
{
    const struct zipccl_row *row = zipccl_row_of(isa);
    if (!row || zipccl_dtype_size(dtype) == 0)
        return ZIPCCL_ERR_ARG;
    struct zipccl_message message;
    ZIPCCL_TRY(zipccl_message_read(wire, nbytes, &message));
    if (message.dtype != dtype || message.n != n)
        return ZIPCCL_ERR_CORRUPT;
    if (message.flags & ZIPCCL_MESSAGE_OVERFLOW)
        return ZIPCCL_ERR_OVERFLOW;
    if (message.flags & ZIPCCL_MESSAGE_RAW) {
        if (n > 0)
            memcpy(dst, (const uint8_t *)wire + ZIPCCL_MESSAGE_HEADER_BYTES,
                   n * zipccl_dtype_size(dtype));
        return ZIPCCL_OK;
    }
    return decode_body(row, wire, (size_t)message.nbytes, dst, n, scratch);
}
