/*
 * reader.c - messages read as sequences of superblocks, and where their elements go
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/message.h"

#include <string.h>

static const uint8_t *entry_at(const uint8_t *wire, size_t s)
{
    return wire + ZIPCCL_MESSAGE_HEADER_BYTES + s * ZIPCCL_ENTRY_BYTES;
}

/*
 * Sum up what the directory says and place the readers.  The variable region starts where the
 * shares end; the message must end with it.
 */
static zipccl_status read_directory(const struct zipccl_fields *fields, const uint8_t *wire,
                                    size_t nbytes, size_t n, struct zipccl_reader *readers,
                                    size_t nreaders)
{
    struct zipccl_layout layout;
    if (!fields || !zipccl_layout_of(fields, n, &layout) || layout.fixed > nbytes)
        return ZIPCCL_ERR_CORRUPT;
    size_t fixed = layout.fixed, variable = 0, t = 0;
    for (size_t s = 0; s < layout.nsuperblocks; s++) {
        size_t nshare, nvariable;
        struct zipccl_entry entry;
        for (; t < nreaders && readers[t].next == s; t++) {
            readers[t].fixed = fixed;
            readers[t].variable = variable;
        }
        ZIPCCL_TRY(zipccl_entry_read(fields, entry_at(wire, s), zipccl_superblock_n(n, s), &entry,
                                     &nshare, &nvariable));
        fixed += nshare;
        variable += nvariable;
    }
    if (fixed > nbytes || variable != nbytes - fixed)
        return ZIPCCL_ERR_CORRUPT;
    for (t = 0; t < nreaders; t++)
        readers[t].variable += fixed;
    return ZIPCCL_OK;
}

zipccl_status zipccl_reader_open(const struct zipccl_coder *c, enum zipccl_dtype dtype,
                                 const void *wire, size_t nbytes, size_t n,
                                 struct zipccl_reader *readers, size_t nreaders)
{
    struct zipccl_message message;
    ZIPCCL_TRY(zipccl_message_read(wire, nbytes, &message));
    if (message.dtype != dtype || message.n != n)
        return ZIPCCL_ERR_CORRUPT;
    if (message.flags & ZIPCCL_MESSAGE_OVERFLOW)
        return ZIPCCL_ERR_OVERFLOW;
    bool raw = (message.flags & ZIPCCL_MESSAGE_RAW) || n == 0;
    for (size_t t = 0; t < nreaders; t++)
        readers[t] = (struct zipccl_reader){
            .wire = wire,
            .elements = raw ? (const uint8_t *)wire + ZIPCCL_MESSAGE_HEADER_BYTES : NULL,
            .n = n,
            .next = zipccl_superblocks(n) * t / nreaders};
    if (raw)
        return ZIPCCL_OK;
    return read_directory(c->fields, wire, (size_t)message.nbytes, n, readers, nreaders);
}

zipccl_status zipccl_reader_next(const struct zipccl_coder *c, struct zipccl_reader *r, size_t m,
                                 uint8_t *dst)
{
    size_t nshare, nvariable;
    struct zipccl_entry entry;
    ZIPCCL_TRY(
        zipccl_entry_read(c->fields, entry_at(r->wire, r->next), m, &entry, &nshare, &nvariable));
    ZIPCCL_TRY(
        zipccl_superblock_decode(c, r->wire + r->fixed, r->wire + r->variable, m, &entry, dst));
    r->fixed += nshare;
    r->variable += nvariable;
    r->next++;
    return ZIPCCL_OK;
}

/* Where 'm' elements from number 'first' on lie, if they lie together; else NULL. */
static uint8_t *place_of(const struct zipccl_sink *sink, size_t first, size_t m)
{
    if (!sink->dst || m > sink->row - first % sink->row)
        return NULL;
    return sink->dst + sink->size * (first / sink->row * sink->stride + first % sink->row);
}

/* Put 'm' decoded elements, from number 'first' on, where they go. */
static void put(const struct zipccl_coder *c, const struct zipccl_sink *sink, size_t first,
                const uint8_t *src, size_t m)
{
    if (!sink->dst) {
        c->row->add(c->fields, src, m, sink->acc + first);
        return;
    }
    size_t in = first % sink->row;
    uint8_t *dst = sink->dst + sink->size * (first / sink->row * sink->stride);
    while (m > 0) {
        size_t len = m < sink->row - in ? m : sink->row - in;
        memcpy(dst + sink->size * in, src, sink->size * len);
        src += sink->size * len;
        m -= len;
        in = 0;
        dst += m > 0 ? sink->size * sink->stride : 0;
    }
}

zipccl_status zipccl_reader_run(const struct zipccl_coder *c, struct zipccl_reader *r, size_t end,
                                const struct zipccl_sink *sink)
{
    if (r->elements && r->next < end) {
        size_t first = r->next * ZIPCCL_SUPERBLOCK;
        size_t last = end * ZIPCCL_SUPERBLOCK < r->n ? end * ZIPCCL_SUPERBLOCK : r->n;
        put(c, sink, first, r->elements + sink->size * first, last - first);
        r->next = end;
    }
    while (r->next < end) {
        size_t first = r->next * ZIPCCL_SUPERBLOCK, m = zipccl_superblock_n(r->n, r->next);
        uint8_t *place = place_of(sink, first, m);
        ZIPCCL_TRY(zipccl_reader_next(c, r, m, place ? place : c->scratch->elements));
        if (!place)
            put(c, sink, first, c->scratch->elements, m);
    }
    return ZIPCCL_OK;
}

static zipccl_status decode(enum zipccl_isa isa, enum zipccl_dtype dtype, const void *wire,
                            size_t nbytes, size_t n, struct zipccl_sink *sink, void *scratch)
{
    struct zipccl_coder c = zipccl_coder_of(isa, dtype, n, scratch);
    struct zipccl_reader reader;
    sink->size = zipccl_dtype_size(dtype);
    if (!c.row || sink->size == 0)
        return ZIPCCL_ERR_ARG;
    ZIPCCL_TRY(zipccl_reader_open(&c, dtype, wire, nbytes, n, &reader, 1));
    return zipccl_reader_run(&c, &reader, zipccl_superblocks(n), sink);
}

zipccl_status zipccl_decode(enum zipccl_isa isa, enum zipccl_dtype dtype, const void *wire,
                            size_t nbytes, void *dst, size_t n, void *scratch)
{
    struct zipccl_sink sink = {.dst = dst, .row = SIZE_MAX, .stride = SIZE_MAX};
    return decode(isa, dtype, wire, nbytes, n, &sink, scratch);
}

bool zipccl_rows_fit(size_t size, size_t n, size_t row, size_t stride)
{
    if (row == 0 || stride < row || size == 0)
        return false;
    size_t nrows = n / row + (n % row != 0), most = SIZE_MAX / size;
    return nrows <= 1 ? n <= most : stride <= (most - row) / (nrows - 1);
}

zipccl_status zipccl_decode_strided(enum zipccl_isa isa, enum zipccl_dtype dtype, const void *wire,
                                    size_t nbytes, void *dst, size_t n, size_t row, size_t stride,
                                    void *scratch)
{
    struct zipccl_sink sink = {.dst = dst, .row = row, .stride = stride};
    if (!zipccl_rows_fit(zipccl_dtype_size(dtype), n, row, stride))
        return ZIPCCL_ERR_ARG;
    return decode(isa, dtype, wire, nbytes, n, &sink, scratch);
}

zipccl_status zipccl_decode_add(enum zipccl_isa isa, enum zipccl_dtype dtype, const void *wire,
                                size_t nbytes, float *acc, size_t n, void *scratch)
{
    struct zipccl_sink sink = {.acc = acc};
    if (dtype != ZIPCCL_BFLOAT16 && dtype != ZIPCCL_FLOAT16 && dtype != ZIPCCL_FLOAT32)
        return ZIPCCL_ERR_UNSUPPORTED;
    return decode(isa, dtype, wire, nbytes, n, &sink, scratch);
}
