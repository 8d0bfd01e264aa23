/*
 * ans.c - one superblock by program ANS, the same for every row
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/ans.h"

#include "core/codec/superblock.h"

#include <string.h>

#include "core/codec/ans_table.inc"

const struct zipccl_ans_law *zipccl_ans_law_at(int law)
{
    return &ans_laws[law];
}

void zipccl_ans_table_fill(struct zipccl_ans_table *table, int law)
{
    const struct zipccl_ans_law *from = &ans_laws[law];
    unsigned start = 0;
    if (table->law == law)
        return;
    memset(table->frequency, 0, sizeof table->frequency);
    memcpy(table->frequency, from->frequency, ZIPCCL_ANS_ESCAPE);
    memcpy(table->frequency + ZIPCCL_ANS_ESCAPE, from->escape, sizeof from->escape);
    for (unsigned u = 0; u < ZIPCCL_ANS_SYMBOLS; u++) {
        unsigned f = table->frequency[u];
        uint64_t eight = u * 0x0101010101010101ull;
        table->start[u] = (uint8_t)start;
        table->inverse[u] = (uint16_t)(f ? 65535 / f : 0);
        /* Eight at a time: what is too much, the next symbol overwrites. */
        for (unsigned k = 0; k < f; k += sizeof eight)
            memcpy(table->symbol + start + k, &eight, sizeof eight);
        start += f;
    }
    table->octaves = from->octaves;
    table->law = law;
}

/* What a sub-block's table byte names: the law's number is returned. */
static int law_of(const struct zipccl_entry *entry, size_t i, uint8_t *top)
{
    unsigned law = entry->escapes[ZIPCCL_ANS_AT_LAW];
    *top = (uint8_t)((law & 255) + (entry->base[i] >> 3));
    return zipccl_ans_law_of((int)(law >> 8), entry->base[i] & 7);
}

static size_t min(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Bytes of the low parts of a full sub-block. */
#define SUBBLOCK_LOW (7 * ZIPCCL_SUBBLOCK / 8)

/*
 * Low parts and planes to scratch->fixed, exponents and bits to theirs, all low bytes to
 * scratch->a; planes without a bit set are left out.
 */
static struct zipccl_share take(const struct zipccl_coder *c, const uint8_t *src, size_t rest,
                                struct zipccl_entry *entry)
{
    const struct zipccl_fields *fields = c->fields;
    struct zipccl_scratch *s = c->scratch;
    int nplanes = zipccl_ans_planes(fields), present = 0;
    struct zipccl_share share = zipccl_ans_share_of(fields, rest, nplanes);
    uint8_t *planes = s->fixed + share.planes;
    uint32_t any =
        c->row->take(fields, src, rest, s->a, planes, share.plane_nbytes, s->bits, s->exponents);
    entry->planes = 0;
    for (int k = 0; k < nplanes; k++) {
        if (!(fields->byte_planes ? any >> 8 * k & 0xff : any >> k & 1))
            continue;
        entry->planes |= (uint8_t)(1 << k);
        if (fields->byte_planes) {
            uint8_t *plane = planes + (size_t)present * share.plane_nbytes;
            if (k > present)
                memmove(plane, planes + (size_t)k * share.plane_nbytes, rest);
            memset(plane + rest, 0, share.plane_nbytes - rest);
        }
        present++;
    }
    if (!fields->byte_planes && present > 0)
        c->row->pack(s->bits, rest, entry->planes, planes);
    share = zipccl_ans_share_of(fields, rest, present);
    size_t planes_end = share.planes + (size_t)present * share.plane_nbytes;
    memset(s->fixed + planes_end, 0, share.end - planes_end);
    if (fields->low_bytes) {
        memset(s->fixed + (7 * rest + 7) / 8, 0, share.planes - (7 * rest + 7) / 8);
        c->row->ans->pack(s->a, rest, s->fixed);
    }
    return share;
}

/* The cursor at which encoding starts: the states carry the first bytes of the parts. */
static struct zipccl_ans_cursor cursor_at_end(struct zipccl_scratch *s,
                                              const struct zipccl_share *at)
{
    struct zipccl_ans_cursor cursor = {.stream = s->stream + sizeof s->stream,
                                       .escaped = s->exponents + ZIPCCL_SUPERBLOCK};
    memset(cursor.states.high, 1, sizeof cursor.states.high);
    memcpy(cursor.states.low, s->fixed, zipccl_ans_carried(at));
    s->table.law = -1;
    return cursor;
}

/*
 * Everything but where it goes in the variable bytes: the share, and the cursor with the states and
 * the beginnings of the stream and of what escapes.  Returns how many escape.
 */
static size_t code_any(const struct zipccl_coder *c, const uint8_t *src, size_t rest,
                       uint8_t *share, struct zipccl_entry *entry, struct zipccl_share *at,
                       struct zipccl_ans_cursor *cursor)
{
    struct zipccl_scratch *s = c->scratch;
    size_t reach = 0, nsub = (rest + ZIPCCL_SUBBLOCK - 1) / ZIPCCL_SUBBLOCK;
    *at = take(c, src, rest, entry);
    const uint8_t *bits = c->fields->low_bytes ? s->a : s->bits;
    int lead = c->fields->low_bytes ? 7 : c->fields->nplanes - 1;
    for (size_t i = 0; i < nsub; i++) {
        size_t first = i * ZIPCCL_SUBBLOCK;
        uint8_t top;
        int law = law_of(entry, i, &top);
        /* In place: what escapes lies behind what is read. */
        reach += c->row->ans->symbols(s->exponents + first, bits + first, lead,
                                      min(ZIPCCL_SUBBLOCK, rest - first), top,
                                      ans_laws[law].octaves, s->b + first, s->exponents + reach);
    }
    size_t carried = zipccl_ans_carried(at);
    memcpy(share, s->fixed + carried, at->end - carried);
    *cursor = cursor_at_end(s, at);
    cursor->escaped = s->exponents;
    for (size_t i = nsub; i-- > 0;) {
        size_t first = i * ZIPCCL_SUBBLOCK;
        uint8_t top;
        zipccl_ans_table_fill(&s->table, law_of(entry, i, &top));
        cursor->stream = c->row->ans->encode(s->b + first, min(ZIPCCL_SUBBLOCK, rest - first),
                                             &s->table, &cursor->states, cursor->stream);
    }
    return reach;
}

/*
 * The same for bf16, whose low parts go where they belong at once.  The first sub-block is split
 * before any is coded, since the states carry its low parts, and coded last.
 */
static size_t code_bf16(const struct zipccl_coder *c, const uint8_t *src, size_t rest,
                        uint8_t *share, struct zipccl_entry *entry, struct zipccl_share *at,
                        struct zipccl_ans_cursor *cursor)
{
    const struct zipccl_ans_kernels *kernels = c->row->ans;
    struct zipccl_scratch *s = c->scratch;
    uint8_t top;
    int law = law_of(entry, 0, &top);
    *at = zipccl_ans_share_of(c->fields, rest, 0);
    entry->planes = 0;
    size_t carried = zipccl_ans_carried(at), nlow = (7 * rest + 7) / 8;
    size_t m = min(ZIPCCL_SUBBLOCK, rest), n = min(SUBBLOCK_LOW, nlow);
    size_t nfirst = kernels->split(src, m, top, ans_laws[law].octaves, s->fixed, s->b, s->a);
    memset(s->fixed + n, 0, ZIPCCL_SLACK);
    *cursor = cursor_at_end(s, at);
    for (size_t i = (rest - 1) / ZIPCCL_SUBBLOCK; i > 0; i--) {
        size_t first = i * ZIPCCL_SUBBLOCK;
        zipccl_ans_table_fill(&s->table, law_of(entry, i, &top));
        kernels->encode_bf16(src + 2 * first, min(ZIPCCL_SUBBLOCK, rest - first), top, &s->table,
                             cursor, c->stream, share + i * SUBBLOCK_LOW - carried);
    }
    zipccl_ans_table_fill(&s->table, law);
    cursor->stream = kernels->encode(s->b, m, &s->table, &cursor->states, cursor->stream);
    cursor->escaped -= nfirst;
    memcpy(cursor->escaped, s->a, nfirst);
    if (n > carried)
        memcpy(share, s->fixed + carried, n - carried);
    if (at->end > carried) {
        size_t from = nlow > carried ? nlow - carried : 0;
        memset(share + from, 0, at->end - carried - from);
    }
    return (size_t)(s->exponents + ZIPCCL_SUPERBLOCK - cursor->escaped);
}

size_t zipccl_ans_encode(const struct zipccl_coder *c, const uint8_t *src, size_t rest,
                         uint8_t *share, uint8_t *variable, struct zipccl_entry *entry,
                         size_t *nshare)
{
    struct zipccl_scratch *s = c->scratch;
    struct zipccl_share at;
    struct zipccl_ans_cursor cursor;
    bool at_once = c->fields->split == ZIPCCL_SPLIT_BF16 && c->row->ans->encode_bf16;
    size_t reach = (at_once ? code_bf16 : code_any)(c, src, rest, share, entry, &at, &cursor);
    size_t nstream = (size_t)(s->stream + sizeof s->stream - cursor.stream);
    memcpy(variable, &cursor.states, ZIPCCL_ANS_STATE_BYTES);
    memcpy(variable + ZIPCCL_ANS_STATE_BYTES, cursor.stream, nstream);
    size_t used = ZIPCCL_ANS_STATE_BYTES + nstream;
    entry->escapes[ZIPCCL_ANS_AT_STREAM] = (uint16_t)nstream;
    entry->escapes[0] = (uint16_t)reach;
    for (int t = 0; t < ZIPCCL_ANS_TIERS; t++) {
        size_t nbytes = zipccl_plane_bytes(reach, zipccl_ans_tiers[t].width);
        reach = c->row->sift(cursor.escaped, reach, &zipccl_ans_tiers[t], variable + used);
        entry->escapes[t + 1] = (uint16_t)reach;
        used += nbytes;
    }
    memcpy(variable + used, cursor.escaped, reach);
    *nshare = at.end - zipccl_ans_carried(&at);
    memset(share + *nshare, 0, zipccl_align64(*nshare) - *nshare);
    return used + reach;
}

/* The cursor at which decoding starts; false if a state cannot be. */
static bool cursor_at_start(const struct zipccl_coder *c, const uint8_t *variable,
                            const struct zipccl_entry *entry, struct zipccl_ans_cursor *cursor)
{
    struct zipccl_scratch *s = c->scratch;
    /* The stream may call for more than there is: at most a byte an element, found at the end. */
    cursor->stream = s->stream;
    memcpy(s->stream, variable + ZIPCCL_ANS_STATE_BYTES, entry->escapes[ZIPCCL_ANS_AT_STREAM]);
    cursor->escaped = s->a;
    memcpy(&cursor->states, variable, ZIPCCL_ANS_STATE_BYTES);
    s->table.law = -1;
    return memchr(cursor->states.high, 0, sizeof cursor->states.high) == NULL;
}

/* Decode sub-block 'i' to symbols. */
static void decode_symbols(const struct zipccl_coder *c, const struct zipccl_entry *entry, size_t i,
                           struct zipccl_ans_cursor *cursor)
{
    struct zipccl_scratch *s = c->scratch;
    size_t first = i * ZIPCCL_SUBBLOCK;
    uint8_t top;
    zipccl_ans_table_fill(&s->table, law_of(entry, i, &top));
    cursor->stream += c->row->ans->decode(cursor->stream, min(ZIPCCL_SUBBLOCK, entry->rest - first),
                                          &s->table, &cursor->states, s->b + first) -
                      cursor->stream;
}

/* Take what the last states carry; false if they or the end of the stream cannot be. */
static bool end_cursor(const struct zipccl_coder *c, const struct zipccl_entry *entry,
                       const struct zipccl_ans_cursor *cursor)
{
    for (size_t l = 0; l < ZIPCCL_ANS_LANES; l++)
        if (cursor->states.high[l] != 1)
            return false;
    memcpy(c->scratch->fixed, cursor->states.low, sizeof cursor->states.low);
    return cursor->stream == c->scratch->stream + entry->escapes[ZIPCCL_ANS_AT_STREAM];
}

/* The d of all that escape the table, to scratch->a; what the tiers need lies at 'variable'. */
static zipccl_status decode_escapes(const struct zipccl_coder *c, const uint8_t *variable,
                                    const struct zipccl_entry *entry)
{
    struct zipccl_scratch *s = c->scratch;
    const uint8_t *planes[ZIPCCL_ANS_TIERS];
    for (int t = 0; t < ZIPCCL_ANS_TIERS; t++) {
        planes[t] = variable;
        variable += zipccl_plane_bytes(entry->escapes[t], zipccl_ans_tiers[t].width);
    }
    /* Two tiers: from a to exponents and back. */
    memcpy(s->a, variable, entry->escapes[ZIPCCL_ANS_TIERS]);
    uint8_t *in = s->a, *out = s->exponents;
    for (int t = ZIPCCL_ANS_TIERS - 1; t >= 0; t--) {
        if (c->row->unsift(planes[t], in, entry->escapes[t], &zipccl_ans_tiers[t], out) !=
            entry->escapes[t + 1])
            return ZIPCCL_ERR_CORRUPT;
        uint8_t *swap = in;
        in = out;
        out = swap;
    }
    return ZIPCCL_OK;
}

/* Put elements together from the symbols in scratch->b; returns how many escapes there are. */
static size_t give(const struct zipccl_coder *c, const uint8_t *share,
                   const struct zipccl_entry *entry, const struct zipccl_share *at, uint8_t *dst)
{
    struct zipccl_scratch *s = c->scratch;
    const struct zipccl_fields *fields = c->fields;
    size_t rest = entry->rest, reach = 0, carried = zipccl_ans_carried(at);
    memcpy(s->fixed + carried, share, at->end - carried);
    const uint8_t *byte_plane[2] = {NULL, NULL}, *next = s->fixed + at->planes;
    if (fields->byte_planes) {
        for (int k = 0; k < fields->nplanes; k++)
            if (entry->planes >> k & 1) {
                byte_plane[k] = next;
                next += at->plane_nbytes;
            }
    } else if (fields->nplanes > 0) {
        c->row->unpack(next, rest, entry->planes, s->bits);
    }
    if (fields->low_bytes)
        c->row->ans->unpack(s->fixed, rest, s->low);
    uint8_t *bits = fields->low_bytes ? s->low : s->bits;
    int lead = fields->low_bytes ? 7 : fields->nplanes - 1;
    for (size_t first = 0, i = 0; first < rest; first += ZIPCCL_SUBBLOCK, i++) {
        uint8_t top;
        int law = law_of(entry, i, &top);
        /* The symbols may call for more than there is: no more than elements, found by the count. */
        reach += c->row->ans->exponents(
            s->b + first, s->a + reach, min(ZIPCCL_SUBBLOCK, rest - first), top,
            ans_laws[law].octaves, lead, bits + first, s->exponents + first);
    }
    c->row->give(fields, s->low, byte_plane[0], byte_plane[1], s->bits, s->exponents, rest, dst);
    return reach;
}

static bool decode_any(const struct zipccl_coder *c, const uint8_t *share,
                       const struct zipccl_entry *entry, const struct zipccl_share *at,
                       struct zipccl_ans_cursor *cursor, uint8_t *dst)
{
    for (size_t i = 0; i * ZIPCCL_SUBBLOCK < entry->rest; i++)
        decode_symbols(c, entry, i, cursor);
    return end_cursor(c, entry, cursor) && give(c, share, entry, at, dst) == entry->escapes[0];
}

/* The same for bf16, from where the low parts are. */
static bool decode_bf16(const struct zipccl_coder *c, const uint8_t *share,
                        const struct zipccl_entry *entry, const struct zipccl_share *at,
                        struct zipccl_ans_cursor *cursor, uint8_t *dst)
{
    const struct zipccl_ans_kernels *kernels = c->row->ans;
    struct zipccl_scratch *s = c->scratch;
    size_t rest = entry->rest, carried = zipccl_ans_carried(at), m = min(ZIPCCL_SUBBLOCK, rest);
    bool stream = c->stream && dst != s->rest && dst != s->elements;
    uint8_t top, top0;
    unsigned octaves = ans_laws[law_of(entry, 0, &top0)].octaves;
    /* The first low parts are known at the end: until then two groups have wrong ones. */
    memcpy(s->fixed + carried, share, min(SUBBLOCK_LOW, at->end) - carried);
    decode_symbols(c, entry, 0, cursor);
    cursor->escaped += kernels->join(s->b, s->fixed, s->a, m, top0, (uint8_t)octaves, stream, dst);
    for (size_t i = 1; i * ZIPCCL_SUBBLOCK < rest; i++) {
        size_t first = i * ZIPCCL_SUBBLOCK;
        const uint8_t *packed = share + i * SUBBLOCK_LOW - carried;
        /* The last ones would be read beyond the share. */
        if (rest - first <= ZIPCCL_SUBBLOCK)
            packed = memcpy(s->low, packed, at->end - i * SUBBLOCK_LOW);
        zipccl_ans_table_fill(&s->table, law_of(entry, i, &top));
        kernels->decode_bf16(packed, min(ZIPCCL_SUBBLOCK, rest - first), top, &s->table, cursor,
                             stream, dst + 2 * first);
    }
    if (!end_cursor(c, entry, cursor) || cursor->escaped != s->a + entry->escapes[0])
        return false;
    kernels->join(s->b, s->fixed, s->a, min(2 * ZIPCCL_GROUP, rest), top0, (uint8_t)octaves, stream,
                  dst);
    return true;
}

zipccl_status zipccl_ans_decode(const struct zipccl_coder *c, const uint8_t *share,
                                const uint8_t *variable, const struct zipccl_entry *entry,
                                uint8_t *dst)
{
    struct zipccl_share at =
        zipccl_ans_share_of(c->fields, entry->rest, __builtin_popcount(entry->planes));
    struct zipccl_ans_cursor cursor;
    bool at_once = c->fields->split == ZIPCCL_SPLIT_BF16 && c->row->ans->decode_bf16;
    if (!cursor_at_start(c, variable, entry, &cursor))
        return ZIPCCL_ERR_CORRUPT;
    variable += ZIPCCL_ANS_STATE_BYTES + entry->escapes[ZIPCCL_ANS_AT_STREAM];
    ZIPCCL_TRY(decode_escapes(c, variable, entry));
    return (at_once ? decode_bf16 : decode_any)(c, share, entry, &at, &cursor, dst)
               ? ZIPCCL_OK
               : ZIPCCL_ERR_CORRUPT;
}
