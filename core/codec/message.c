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

/* Elements of so many bytes do not stay in a cache: what is written goes past it. */
#define STREAM_BYTES ((size_t)16 << 20)

static bool streams(enum zipccl_dtype dtype, size_t n)
{
    size_t size = zipccl_dtype_size(dtype);
    return size > 0 && n >= STREAM_BYTES / size;
}

/* The elements of a message: as they are, or fp32 values to be rounded on the way. */
struct source {
    const uint8_t *elements;
    const float *values; /* NULL if there are elements */
};

/* Elements of superblock 's', which has 'm'; rounded ones last until the next call. */
static const uint8_t *source_at(const struct zipccl_coder *c, const struct source *source, size_t s,
                                size_t m)
{
    if (!source->values)
        return source->elements + c->fields->size * s * ZIPCCL_SUPERBLOCK;
    c->row->round(c->fields, source->values + s * ZIPCCL_SUPERBLOCK, m, c->scratch->elements);
    return c->scratch->elements;
}

/* Superblocks that are looked at before any is coded, from so many on. */
#define LOOK_AHEAD 4u

/* True if every superblock's sample says raw: then none needs to be coded. */
static bool is_hopeless(const struct zipccl_coder *c, const struct source *source, size_t n,
                        size_t nsuperblocks)
{
    for (size_t s = 0; s < nsuperblocks; s++) {
        size_t m = zipccl_superblock_n(n, s);
        struct zipccl_entry entry;
        if (zipccl_superblock_choose(c, source_at(c, source, s, m), m, true, &entry) ||
            entry.program != ZIPCCL_PROGRAM_RAW)
            return false;
    }
    return nsuperblocks >= LOOK_AHEAD;
}

/* A message being written: shares up to 'fixed', the variable region from 'variable' to 'end'. */
struct cursor {
    uint8_t *dst;
    size_t limit, fixed, variable, end;
};

/* Ask for the elements that the first look at superblock 's' will take, while another is coded. */
static void fetch_sample(const struct zipccl_coder *c, const struct source *source, size_t n,
                         size_t s)
{
    size_t first = s * ZIPCCL_SUPERBLOCK, size = c->fields->size;
    if (source->values || n - first < ZIPCCL_SUPERBLOCK)
        return;
    for (size_t i = 0; i < ZIPCCL_SUBBLOCKS; i++)
        for (size_t run = 0; run < 2; run++) {
            size_t at = i * ZIPCCL_SUBBLOCK + zipccl_sample_start(i, ZIPCCL_SUBBLOCK, 0, run);
            __builtin_prefetch(source->elements + size * (first + at), 0, 3);
        }
}

static bool encode_one(const struct zipccl_coder *c, const struct source *source, size_t n,
                       size_t s, struct cursor *at)
{
    size_t m = zipccl_superblock_n(n, s), nshare, nvariable;
    if (n - s * ZIPCCL_SUPERBLOCK > m)
        fetch_sample(c, source, n, s + 1);
    size_t room = at->limit - at->end;
    struct zipccl_entry entry;
    if (at->end > at->limit)
        return false;
    zipccl_superblock_encode(c, source_at(c, source, s, m), m, at->dst + at->fixed,
                             at->variable - at->fixed, at->dst + at->end, room, &entry, &nshare,
                             &nvariable);
    if (nvariable > room)
        return false;
    zipccl_entry_write(at->dst + ZIPCCL_MESSAGE_HEADER_BYTES + s * ZIPCCL_ENTRY_BYTES, &entry);
    at->fixed += nshare;
    at->end += nvariable;
    return true;
}

/*
 * Find out, without writing, how much superblocks 's' to the last take, and move the variable
 * region down to where it ends up.  False if the message does not fit.
 */
static bool make_room(const struct zipccl_coder *c, const struct source *source, size_t n, size_t s,
                      size_t nsuperblocks, struct cursor *at)
{
    size_t shares = at->fixed, used = at->end - at->variable, more = 0;
    for (; s < nsuperblocks; s++) {
        size_t m = zipccl_superblock_n(n, s), nshare, nvariable;
        struct zipccl_entry entry;
        zipccl_superblock_encode(c, source_at(c, source, s, m), m, NULL, 0, NULL, 0, &entry,
                                 &nshare, &nvariable);
        shares += nshare;
        more += nvariable;
        if (shares + used + more > at->limit)
            return false;
    }
    if (used > 0)
        memmove(at->dst + shares, at->dst + at->variable, used);
    at->variable = shares;
    at->end = shares + used;
    return true;
}

/*
 * Write everything of a coded message but its header into 'dst' [limit].  False if it does not
 * fit.  Where the variable region starts is only known at the end: it is written where it starts
 * if no share is smaller than it can be, and moved if one was.
 */
static bool encode_body(const struct zipccl_coder *c, const struct source *source, size_t n,
                        uint8_t *dst, size_t limit, size_t *nbytes)
{
    struct zipccl_layout layout;
    if (!zipccl_layout_of(c->fields, n, &layout) || layout.fixed > limit ||
        is_hopeless(c, source, n, layout.nsuperblocks))
        return false;
    size_t directory_end = layout.directory + layout.nsuperblocks * ZIPCCL_ENTRY_BYTES;
    memset(dst + directory_end, 0, layout.fixed - directory_end);
    struct cursor at = {.dst = dst, .limit = limit, .fixed = layout.fixed};
    at.variable =
        layout.fixed + n / ZIPCCL_SUPERBLOCK * zipccl_full_share(c->fields, ZIPCCL_SUPERBLOCK);
    if (n % ZIPCCL_SUPERBLOCK)
        at.variable += zipccl_full_share(c->fields, n % ZIPCCL_SUPERBLOCK);
    at.end = at.variable;
    for (size_t s = 0; s < layout.nsuperblocks; s++)
        if (!encode_one(c, source, n, s, &at) &&
            (!make_room(c, source, n, s, layout.nsuperblocks, &at) ||
             !encode_one(c, source, n, s, &at)))
            return false;
    if (at.fixed < at.variable)
        memmove(dst + at.fixed, dst + at.variable, at.end - at.variable);
    *nbytes = at.fixed + at.end - at.variable;
    return true;
}

static void write_raw(const struct zipccl_row *row, const struct zipccl_fields *fields,
                      const struct source *source, size_t n, uint8_t *body, size_t nbody)
{
    if (source->values)
        row->round(fields, source->values, n, body);
    else if (n > 0)
        memcpy(body, source->elements, nbody);
}

static zipccl_status encode(enum zipccl_isa isa, enum zipccl_dtype dtype,
                            const struct source *source, size_t n, uint8_t *dst, size_t capacity,
                            void *scratch, size_t *nbytes)
{
    struct zipccl_coder c = {zipccl_row_of(isa), zipccl_fields_of(dtype), scratch,
                             streams(dtype, n)};
    size_t bound = zipccl_bound(dtype, n);
    if (!c.row || bound == 0 || capacity < ZIPCCL_MESSAGE_HEADER_BYTES)
        return ZIPCCL_ERR_ARG;

    /* Coding stops where raw would be no longer: what fits does not depend on the capacity. */
    size_t limit = capacity < bound ? capacity : bound, used = 0;
    if (c.fields && n > 0 && encode_body(&c, source, n, dst, limit, &used) && used < bound) {
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
    write_raw(c.row, c.fields, source, n, dst + ZIPCCL_MESSAGE_HEADER_BYTES,
              bound - ZIPCCL_MESSAGE_HEADER_BYTES);
    *nbytes = bound;
    return ZIPCCL_OK;
}

zipccl_status zipccl_encode(enum zipccl_isa isa, enum zipccl_dtype dtype, const void *src, size_t n,
                            void *dst, size_t capacity, void *scratch, size_t *nbytes)
{
    struct source source = {.elements = src};
    return encode(isa, dtype, &source, n, dst, capacity, scratch, nbytes);
}

zipccl_status zipccl_encode_f32(enum zipccl_isa isa, enum zipccl_dtype dtype, const float *src,
                                size_t n, void *dst, size_t capacity, void *scratch, size_t *nbytes)
{
    struct source source = {.values = src};
    if (dtype == ZIPCCL_FLOAT32)
        return zipccl_encode(isa, dtype, src, n, dst, capacity, scratch, nbytes);
    if (dtype != ZIPCCL_BFLOAT16 && dtype != ZIPCCL_FLOAT16)
        return ZIPCCL_ERR_UNSUPPORTED;
    return encode(isa, dtype, &source, n, dst, capacity, scratch, nbytes);
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

/* Sum up what the directory says: where the variable region starts, if the message ends with it. */
static zipccl_status read_directory(const struct zipccl_fields *fields, const uint8_t *wire,
                                    size_t nbytes, size_t n, const struct zipccl_layout *layout,
                                    size_t *variable)
{
    size_t fixed = layout->fixed, nvariable = 0;
    for (size_t s = 0; s < layout->nsuperblocks; s++) {
        size_t share, more;
        struct zipccl_entry entry;
        ZIPCCL_TRY(zipccl_entry_read(fields, wire + layout->directory + s * ZIPCCL_ENTRY_BYTES,
                                     zipccl_superblock_n(n, s), &entry, &share, &more));
        fixed += share;
        nvariable += more;
    }
    if (fixed > nbytes || nvariable != nbytes - fixed)
        return ZIPCCL_ERR_CORRUPT;
    *variable = fixed;
    return ZIPCCL_OK;
}

/* Decode a coded message of 'nbytes' into 'dst', or if that is NULL add it to 'acc'. */
static zipccl_status decode_body(const struct zipccl_coder *c, const uint8_t *wire, size_t nbytes,
                                 size_t n, uint8_t *dst, float *acc)
{
    struct zipccl_layout layout;
    size_t variable;
    if (!zipccl_layout_of(c->fields, n, &layout) || layout.fixed > nbytes)
        return ZIPCCL_ERR_CORRUPT;
    ZIPCCL_TRY(read_directory(c->fields, wire, nbytes, n, &layout, &variable));
    size_t fixed = layout.fixed;
    for (size_t s = 0; s < layout.nsuperblocks; s++) {
        size_t first = s * ZIPCCL_SUPERBLOCK, m = zipccl_superblock_n(n, s), nshare, nvariable;
        uint8_t *out = dst ? dst + c->fields->size * first : c->scratch->elements;
        struct zipccl_entry entry;
        ZIPCCL_TRY(zipccl_entry_read(c->fields, wire + layout.directory + s * ZIPCCL_ENTRY_BYTES, m,
                                     &entry, &nshare, &nvariable));
        ZIPCCL_TRY(zipccl_superblock_decode(c, wire + fixed, wire + variable, m, &entry, out));
        if (!dst)
            c->row->add(c->fields, out, m, acc + first);
        fixed += nshare;
        variable += nvariable;
    }
    return ZIPCCL_OK;
}

static zipccl_status decode(enum zipccl_isa isa, enum zipccl_dtype dtype, const uint8_t *wire,
                            size_t nbytes, size_t n, uint8_t *dst, float *acc, void *scratch)
{
    struct zipccl_coder c = {zipccl_row_of(isa), zipccl_fields_of(dtype), scratch,
                             streams(dtype, n)};
    if (!c.row || zipccl_dtype_size(dtype) == 0)
        return ZIPCCL_ERR_ARG;
    struct zipccl_message message;
    ZIPCCL_TRY(zipccl_message_read(wire, nbytes, &message));
    if (message.dtype != dtype || message.n != n)
        return ZIPCCL_ERR_CORRUPT;
    if (message.flags & ZIPCCL_MESSAGE_OVERFLOW)
        return ZIPCCL_ERR_OVERFLOW;
    if (n == 0)
        return ZIPCCL_OK;
    if (!(message.flags & ZIPCCL_MESSAGE_RAW))
        return decode_body(&c, wire, (size_t)message.nbytes, n, dst, acc);
    if (dst)
        memcpy(dst, wire + ZIPCCL_MESSAGE_HEADER_BYTES, n * zipccl_dtype_size(dtype));
    else
        c.row->add(c.fields, wire + ZIPCCL_MESSAGE_HEADER_BYTES, n, acc);
    return ZIPCCL_OK;
}

zipccl_status zipccl_decode(enum zipccl_isa isa, enum zipccl_dtype dtype, const void *wire,
                            size_t nbytes, void *dst, size_t n, void *scratch)
{
    return decode(isa, dtype, wire, nbytes, n, dst, NULL, scratch);
}

zipccl_status zipccl_decode_add(enum zipccl_isa isa, enum zipccl_dtype dtype, const void *wire,
                                size_t nbytes, float *acc, size_t n, void *scratch)
{
    if (dtype != ZIPCCL_BFLOAT16 && dtype != ZIPCCL_FLOAT16 && dtype != ZIPCCL_FLOAT32)
        return ZIPCCL_ERR_UNSUPPORTED;
    return decode(isa, dtype, wire, nbytes, n, NULL, acc, scratch);
}
