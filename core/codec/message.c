/*
 * message.c - headers, and messages written as sequences of superblocks
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/message.h"

#include "core/codec/header.h"
#include "core/wire.h"

#include <string.h>

void zipccl_message_write_header(void *wire, enum zipccl_dtype dtype, uint32_t flags, uint64_t n,
                                 uint64_t nbytes)
{
    if (flags & ZIPCCL_MESSAGE_OVERFLOW)
        nbytes = ZIPCCL_MESSAGE_HEADER_BYTES;
    else if (nbytes >= zipccl_bound(dtype, n))
        flags |= ZIPCCL_MESSAGE_RAW;
    zipccl_header_write(wire, dtype, flags, n, nbytes - ZIPCCL_MESSAGE_HEADER_BYTES);
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

/* Elements of superblock 's', which has 'm'; rounded ones last until the next call. */
static const uint8_t *source_at(const struct zipccl_coder *c, const struct zipccl_source *source,
                                size_t s, size_t m)
{
    if (!source->values)
        return source->elements + c->fields->size * s * ZIPCCL_SUPERBLOCK;
    c->row->round(c->fields, source->values + s * ZIPCCL_SUPERBLOCK, m, c->scratch->elements);
    return c->scratch->elements;
}

/* Superblocks that are looked at before more than one is coded, from so many on. */
#define LOOK_AHEAD 4u

/* True if every superblock's sample says raw: then no more needs to be coded. */
static bool is_hopeless(const struct zipccl_coder *c, const struct zipccl_source *source, size_t n,
                        size_t nsuperblocks)
{
    for (size_t s = 0; s < nsuperblocks; s++) {
        size_t m = zipccl_superblock_n(n, s);
        const uint8_t *src = source_at(c, source, s, m);
        struct zipccl_entry entry;
        /* One value: a sample of NaNs would say raw. */
        if (zipccl_superblock_is_constant(c->fields, src, m) ||
            zipccl_superblock_choose(c, src, m, true, &entry) ||
            entry.program != ZIPCCL_PROGRAM_RAW)
            return false;
    }
    return nsuperblocks >= LOOK_AHEAD;
}

/* Ask for the elements that the first look at superblock 's' will take, while another is coded. */
static void fetch_sample(const struct zipccl_coder *c, const struct zipccl_source *source, size_t n,
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

static struct zipccl_source source_of(const struct zipccl_encoder *e)
{
    return (struct zipccl_source){e->elements, e->values};
}

struct zipccl_coder zipccl_coder_of(enum zipccl_isa isa, enum zipccl_dtype dtype, size_t n,
                                    void *scratch)
{
    return (struct zipccl_coder){zipccl_row_of(isa), zipccl_fields_of(dtype), scratch,
                                 streams(dtype, n), false};
}

struct zipccl_coder zipccl_encoder_coder(const struct zipccl_encoder *e, void *scratch)
{
    struct zipccl_coder c = zipccl_coder_of(e->isa, e->dtype, e->n, scratch);
    c.max_ratio = e->effort == ZIPCCL_EFFORT_RATIO;
    return c;
}

void zipccl_encoder_superblock(const struct zipccl_encoder *e, const struct zipccl_coder *c,
                               size_t s, uint8_t *share, size_t share_room, uint8_t *variable,
                               size_t variable_room, size_t *nshare, size_t *nvariable)
{
    size_t m = zipccl_superblock_n(e->n, s);
    struct zipccl_source source = source_of(e);
    struct zipccl_entry entry;
    if (s + 1 < e->nsuperblocks)
        fetch_sample(c, &source, e->n, s + 1);
    zipccl_superblock_encode(c, source_at(c, &source, s, m), m, share, share_room, variable,
                             variable_room, &entry, nshare, nvariable);
    if (*nvariable <= variable_room)
        zipccl_entry_write(e->dst + ZIPCCL_MESSAGE_HEADER_BYTES + s * ZIPCCL_ENTRY_BYTES, &entry);
}

static bool encode_next(struct zipccl_encoder *e, const struct zipccl_coder *c)
{
    if (e->end > e->limit)
        return false;
    size_t room = e->limit - e->end, nshare, nvariable;
    zipccl_encoder_superblock(e, c, e->next, e->dst + e->final_end, e->variable - e->final_end,
                              e->dst + e->end, room, &nshare, &nvariable);
    if (nvariable > room)
        return false;
    e->final_end += nshare;
    e->end += nvariable;
    e->next++;
    return true;
}

/*
 * Find out, without writing, how much the next superblock to the last take, and move the variable
 * region down to where it ends up.  False if the message does not fit.
 */
static bool make_room(struct zipccl_encoder *e, const struct zipccl_coder *c)
{
    size_t shares = e->final_end, used = e->end - e->variable, more = 0;
    struct zipccl_source source = source_of(e);
    for (size_t s = e->next; s < e->nsuperblocks; s++) {
        size_t m = zipccl_superblock_n(e->n, s), nshare, nvariable;
        struct zipccl_entry entry;
        zipccl_superblock_encode(c, source_at(c, &source, s, m), m, NULL, 0, NULL, 0, &entry,
                                 &nshare, &nvariable);
        shares += nshare;
        more += nvariable;
        if (shares + used + more > e->limit)
            return false;
    }
    if (used > 0)
        memmove(e->dst + shares, e->dst + e->variable, used);
    e->variable = shares;
    e->end = shares + used;
    return true;
}

bool zipccl_encoder_hopeless(const struct zipccl_encoder *e)
{
    /* What is raw by tiers may be shorter by ANS: coding finds that out. */
    if (e->effort == ZIPCCL_EFFORT_RATIO)
        return false;
    struct zipccl_coder c = zipccl_encoder_coder(e, e->scratch);
    struct zipccl_source source = source_of(e);
    return is_hopeless(&c, &source, e->n, e->nsuperblocks);
}

/* Most bytes that the fixed region of 'n' elements takes. */
static size_t most_shares(const struct zipccl_fields *fields, size_t n)
{
    size_t most = n / ZIPCCL_SUPERBLOCK * zipccl_full_share(fields, ZIPCCL_SUPERBLOCK);
    return n % ZIPCCL_SUPERBLOCK ? most + zipccl_full_share(fields, n % ZIPCCL_SUPERBLOCK) : most;
}

void zipccl_early_region(enum zipccl_dtype dtype, size_t n, size_t *first, size_t *end)
{
    const struct zipccl_fields *fields = zipccl_fields_of(dtype);
    struct zipccl_layout layout;
    bool coded = fields && n > 0 && zipccl_layout_of(fields, n, &layout);
    *first = coded ? layout.fixed : 0;
    *end = coded ? layout.fixed + most_shares(fields, n) : 0;
}

size_t zipccl_early_superblock(enum zipccl_dtype dtype)
{
    const struct zipccl_fields *fields = zipccl_fields_of(dtype);
    return fields ? zipccl_full_share(fields, ZIPCCL_SUPERBLOCK) : 0;
}

/*
 * Where the variable region starts is only known at the end: it is written where it starts if no
 * share is smaller than it can be, and moved if one was.
 */
static void start_body(struct zipccl_encoder *e)
{
    struct zipccl_coder c = zipccl_encoder_coder(e, e->scratch);
    struct zipccl_layout layout;
    if (!c.fields || e->n == 0 || !zipccl_layout_of(c.fields, e->n, &layout) ||
        layout.fixed > e->limit)
        return;
    size_t directory_end = layout.directory + layout.nsuperblocks * ZIPCCL_ENTRY_BYTES;
    memset(e->dst + directory_end, 0, layout.fixed - directory_end);
    e->coded = true;
    e->nsuperblocks = layout.nsuperblocks;
    e->first = e->final_end = layout.fixed;
    e->variable = e->end = layout.fixed + most_shares(c.fields, e->n);
}

zipccl_status zipccl_encoder_start(struct zipccl_encoder *e, enum zipccl_isa isa,
                                   enum zipccl_effort effort, enum zipccl_dtype dtype,
                                   const struct zipccl_source *source, size_t n, void *dst,
                                   size_t capacity, void *scratch)
{
    size_t bound = zipccl_bound(dtype, n);
    if (!zipccl_row_of(isa) || (unsigned)effort >= ZIPCCL_NUM_EFFORTS || bound == 0 ||
        capacity < ZIPCCL_MESSAGE_HEADER_BYTES)
        return ZIPCCL_ERR_ARG;
    *e = (struct zipccl_encoder){.isa = isa,
                                 .effort = effort,
                                 .dtype = dtype,
                                 .elements = source->elements,
                                 .values = source->values,
                                 .n = n,
                                 .scratch = scratch,
                                 .dst = dst,
                                 .capacity = capacity};
    /* Coding stops where raw would be no longer: what fits does not depend on the capacity. */
    e->limit = capacity < bound ? capacity : bound;
    start_body(e);
    return ZIPCCL_OK;
}

zipccl_status zipccl_encode_begin(struct zipccl_encoder *encoder, enum zipccl_isa isa,
                                  enum zipccl_effort effort, enum zipccl_dtype dtype,
                                  const void *src, size_t n, void *dst, size_t capacity,
                                  void *scratch)
{
    struct zipccl_source source = {.elements = src};
    return zipccl_encoder_start(encoder, isa, effort, dtype, &source, n, dst, capacity, scratch);
}

bool zipccl_encode_step(struct zipccl_encoder *e)
{
    if (!e->coded || e->next == e->nsuperblocks)
        return false;
    struct zipccl_coder c = zipccl_encoder_coder(e, e->scratch);
    e->coded = encode_next(e, &c) || (make_room(e, &c) && encode_next(e, &c));
    /* Asked only where the first superblock gives reason to. */
    if (e->coded && e->next == 1 && e->dst[ZIPCCL_MESSAGE_HEADER_BYTES] == ZIPCCL_PROGRAM_RAW)
        e->coded = !zipccl_encoder_hopeless(e);
    if (!e->coded)
        return false;
    /* A superblock takes at most its elements, rounded up to 64 bytes. */
    size_t left = e->n - (e->next < e->nsuperblocks ? e->next * ZIPCCL_SUPERBLOCK : e->n);
    size_t most = e->final_end + (e->end - e->variable) + left * c.fields->size +
                  63 * (e->nsuperblocks - e->next);
    e->certain = most <= e->capacity && most < zipccl_bound(e->dtype, e->n);
    return true;
}

static void write_raw(const struct zipccl_row *row, const struct zipccl_fields *fields,
                      const struct zipccl_source *source, size_t n, uint8_t *body, size_t nbody)
{
    if (source->values)
        row->round(fields, source->values, n, body);
    else if (n > 0)
        memcpy(body, source->elements, nbody);
}

zipccl_status zipccl_encode_finish(struct zipccl_encoder *e, size_t *nbytes)
{
    while (zipccl_encode_step(e))
        ;
    size_t used = e->final_end + (e->end - e->variable), bound = zipccl_bound(e->dtype, e->n);
    if (e->coded && used < bound) {
        if (e->final_end < e->variable)
            memmove(e->dst + e->final_end, e->dst + e->variable, e->end - e->variable);
        zipccl_header_write(e->dst, e->dtype, 0, e->n, used - ZIPCCL_MESSAGE_HEADER_BYTES);
        *nbytes = used;
        return ZIPCCL_OK;
    }
    if (e->capacity < bound) {
        zipccl_header_write(e->dst, e->dtype, ZIPCCL_MESSAGE_OVERFLOW, e->n, 0);
        *nbytes = ZIPCCL_MESSAGE_HEADER_BYTES;
        return ZIPCCL_ERR_OVERFLOW;
    }
    struct zipccl_source source = source_of(e);
    zipccl_header_write(e->dst, e->dtype, ZIPCCL_MESSAGE_RAW, e->n,
                        bound - ZIPCCL_MESSAGE_HEADER_BYTES);
    write_raw(zipccl_row_of(e->isa), zipccl_fields_of(e->dtype), &source, e->n,
              e->dst + ZIPCCL_MESSAGE_HEADER_BYTES, bound - ZIPCCL_MESSAGE_HEADER_BYTES);
    *nbytes = bound;
    return ZIPCCL_OK;
}

static zipccl_status encode(enum zipccl_isa isa, enum zipccl_effort effort, enum zipccl_dtype dtype,
                            const struct zipccl_source *source, size_t n, void *dst,
                            size_t capacity, void *scratch, size_t *nbytes)
{
    struct zipccl_encoder encoder;
    ZIPCCL_TRY(
        zipccl_encoder_start(&encoder, isa, effort, dtype, source, n, dst, capacity, scratch));
    return zipccl_encode_finish(&encoder, nbytes);
}

zipccl_status zipccl_encode(enum zipccl_isa isa, enum zipccl_dtype dtype, const void *src, size_t n,
                            void *dst, size_t capacity, void *scratch, size_t *nbytes)
{
    return zipccl_encode_effort(isa, ZIPCCL_EFFORT_FAST, dtype, src, n, dst, capacity, scratch,
                                nbytes);
}

zipccl_status zipccl_encode_effort(enum zipccl_isa isa, enum zipccl_effort effort,
                                   enum zipccl_dtype dtype, const void *src, size_t n, void *dst,
                                   size_t capacity, void *scratch, size_t *nbytes)
{
    struct zipccl_source source = {.elements = src};
    return encode(isa, effort, dtype, &source, n, dst, capacity, scratch, nbytes);
}

zipccl_status zipccl_encode_f32(enum zipccl_isa isa, enum zipccl_dtype dtype, const float *src,
                                size_t n, void *dst, size_t capacity, void *scratch, size_t *nbytes)
{
    return zipccl_encode_f32_effort(isa, ZIPCCL_EFFORT_FAST, dtype, src, n, dst, capacity, scratch,
                                    nbytes);
}

zipccl_status zipccl_encode_f32_effort(enum zipccl_isa isa, enum zipccl_effort effort,
                                       enum zipccl_dtype dtype, const float *src, size_t n,
                                       void *dst, size_t capacity, void *scratch, size_t *nbytes)
{
    struct zipccl_source source = {.values = src};
    if (dtype == ZIPCCL_FLOAT32)
        return zipccl_encode_effort(isa, effort, dtype, src, n, dst, capacity, scratch, nbytes);
    if (dtype != ZIPCCL_BFLOAT16 && dtype != ZIPCCL_FLOAT16)
        return ZIPCCL_ERR_UNSUPPORTED;
    return encode(isa, effort, dtype, &source, n, dst, capacity, scratch, nbytes);
}

zipccl_status zipccl_message_read(const void *wire, size_t nbytes, struct zipccl_message *message)
{
    const uint8_t *p = wire;
    if (nbytes < ZIPCCL_MESSAGE_HEADER_BYTES ||
        zipccl_get_u32(p + ZIPCCL_AT_MAGIC) != ZIPCCL_WIRE_MAGIC ||
        zipccl_get_u32(p + ZIPCCL_AT_CHECK) != zipccl_header_check(p) ||
        p[ZIPCCL_AT_VERSION] != ZIPCCL_WIRE_VERSION || p[ZIPCCL_AT_ZERO] != 0 ||
        zipccl_get_u32(p + ZIPCCL_AT_RESERVED) != 0)
        return ZIPCCL_ERR_CORRUPT;

    enum zipccl_dtype dtype = (enum zipccl_dtype)p[ZIPCCL_AT_DTYPE];
    uint32_t flags = p[ZIPCCL_AT_FLAGS];
    uint64_t n = zipccl_get_u64(p + ZIPCCL_AT_N), nbody = zipccl_get_u64(p + ZIPCCL_AT_BODY);
    size_t size = zipccl_dtype_size(dtype);
    if (size == 0 || (flags & ~ZIPCCL_MESSAGE_FLAGS) || n > SIZE_MAX / size ||
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
    p[ZIPCCL_AT_FLAGS] = (uint8_t)(p[ZIPCCL_AT_FLAGS] | (flags & ZIPCCL_MESSAGE_FLAGS));
    zipccl_put_u32(p + ZIPCCL_AT_CHECK, zipccl_header_check(p));
}
