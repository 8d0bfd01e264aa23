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
    memset(table, 0, sizeof *table);
    memcpy(table->frequency, from->frequency, ZIPCCL_ANS_ESCAPE);
    memcpy(table->frequency + ZIPCCL_ANS_ESCAPE, from->escape, sizeof from->escape);
    for (int u = 0; u < ZIPCCL_ANS_SYMBOLS; u++) {
        unsigned f = table->frequency[u], inverse = f ? 65535 / f : 0;
        table->start[u] = (uint8_t)start;
        table->inverse_low[u] = (uint8_t)inverse;
        table->inverse_high[u] = (uint8_t)(inverse >> 8);
        memset(table->symbol + start, u, f);
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

/*
 * What lies before the stream: the parts, of which the first go to scratch->fixed and the others to
 * 'share', symbols to scratch->b and what escapes to scratch->exponents.  Returns how many do.
 */
static size_t symbols_any(const struct zipccl_coder *c, const uint8_t *src, size_t rest,
                          uint8_t *share, struct zipccl_entry *entry, struct zipccl_share *at)
{
    struct zipccl_scratch *s = c->scratch;
    size_t reach = 0;
    *at = take(c, src, rest, entry);
    const uint8_t *bits = c->fields->low_bytes ? s->a : s->bits;
    int lead = c->fields->low_bytes ? 7 : c->fields->nplanes - 1;
    for (size_t first = 0, i = 0; first < rest; first += ZIPCCL_SUBBLOCK, i++) {
        uint8_t top;
        int law = law_of(entry, i, &top);
        /* In place: what escapes lies behind what is read. */
        reach += c->row->ans->symbols(s->exponents + first, bits + first, lead,
                                      min(ZIPCCL_SUBBLOCK, rest - first), top,
                                      ans_laws[law].octaves, s->b + first, s->exponents + reach);
    }
    size_t carried = zipccl_ans_carried(at);
    memcpy(share, s->fixed + carried, at->end - carried);
    return reach;
}

/* The same for bf16, whose low parts go where they belong at once. */
static size_t symbols_bf16(const struct zipccl_coder *c, const uint8_t *src, size_t rest,
                           uint8_t *share, struct zipccl_entry *entry, struct zipccl_share *at)
{
    struct zipccl_scratch *s = c->scratch;
    size_t reach = 0;
    *at = zipccl_ans_share_of(c->fields, rest, 0);
    size_t carried = zipccl_ans_carried(at), nlow = (7 * rest + 7) / 8;
    entry->planes = 0;
    for (size_t first = 0, i = 0; first < rest; first += ZIPCCL_SUBBLOCK, i++) {
        uint8_t top;
        int law = law_of(entry, i, &top);
        uint8_t *packed = i == 0 ? s->fixed : share + i * SUBBLOCK_LOW - ZIPCCL_ANS_LANES;
        reach +=
            c->row->ans->split(src + 2 * first, min(ZIPCCL_SUBBLOCK, rest - first), top,
                               ans_laws[law].octaves, packed, s->b + first, s->exponents + reach);
    }
    if (rest <= ZIPCCL_SUBBLOCK) {
        memset(s->fixed + nlow, 0, at->end - nlow);
        memcpy(share, s->fixed + carried, at->end - carried);
    } else {
        memcpy(share, s->fixed + carried, SUBBLOCK_LOW - carried);
        memset(share + nlow - carried, 0, at->end - nlow);
    }
    return reach;
}

size_t zipccl_ans_encode(const struct zipccl_coder *c, const uint8_t *src, size_t rest,
                         uint8_t *share, uint8_t *variable, struct zipccl_entry *entry,
                         size_t *nshare)
{
    struct zipccl_scratch *s = c->scratch;
    struct zipccl_share at;
    bool at_once = c->fields->split == ZIPCCL_SPLIT_BF16 && c->row->ans->split;
    size_t reach = (at_once ? symbols_bf16 : symbols_any)(c, src, rest, share, entry, &at);
    struct zipccl_ans_states states;
    size_t carried = zipccl_ans_carried(&at);
    memset(states.low, 0, sizeof states.low);
    memset(states.high, 1, sizeof states.high);
    memcpy(states.low, s->fixed, carried);
    uint8_t *end = s->stream + sizeof s->stream, *start = end;
    s->table.law = -1;
    for (size_t i = (rest + ZIPCCL_SUBBLOCK - 1) / ZIPCCL_SUBBLOCK; i-- > 0;) {
        size_t first = i * ZIPCCL_SUBBLOCK;
        uint8_t top;
        zipccl_ans_table_fill(&s->table, law_of(entry, i, &top));
        start = c->row->ans->encode(s->b + first, min(ZIPCCL_SUBBLOCK, rest - first), &s->table,
                                    &states, start);
    }
    memcpy(variable, &states, ZIPCCL_ANS_STATE_BYTES);
    memcpy(variable + ZIPCCL_ANS_STATE_BYTES, start, (size_t)(end - start));
    size_t used = ZIPCCL_ANS_STATE_BYTES + (size_t)(end - start);
    entry->escapes[ZIPCCL_ANS_AT_STREAM] = (uint16_t)(end - start);
    entry->escapes[0] = (uint16_t)reach;
    for (int t = 0; t < ZIPCCL_ANS_TIERS; t++) {
        size_t nbytes = zipccl_plane_bytes(reach, zipccl_ans_tiers[t].width);
        reach = c->row->sift(s->exponents, reach, &zipccl_ans_tiers[t], variable + used);
        entry->escapes[t + 1] = (uint16_t)reach;
        used += nbytes;
    }
    memcpy(variable + used, s->exponents, reach);
    *nshare = at.end - carried;
    memset(share + *nshare, 0, zipccl_align64(*nshare) - *nshare);
    return used + reach;
}

/* Symbols of all sub-blocks into scratch->b, what the states carry to scratch->fixed. */
static zipccl_status decode_symbols(const struct zipccl_coder *c, const uint8_t *variable,
                                    const struct zipccl_entry *entry)
{
    struct zipccl_scratch *s = c->scratch;
    size_t nstream = entry->escapes[ZIPCCL_ANS_AT_STREAM];
    struct zipccl_ans_states states;
    memcpy(&states, variable, ZIPCCL_ANS_STATE_BYTES);
    if (memchr(states.high, 0, sizeof states.high))
        return ZIPCCL_ERR_CORRUPT;
    /* The stream may call for more than there is: at most a byte an element, found at the end. */
    s->table.law = -1;
    const uint8_t *in = memcpy(s->stream, variable + ZIPCCL_ANS_STATE_BYTES, nstream);
    for (size_t first = 0, i = 0; first < entry->rest; first += ZIPCCL_SUBBLOCK, i++) {
        uint8_t top;
        zipccl_ans_table_fill(&s->table, law_of(entry, i, &top));
        in = c->row->ans->decode(in, min(ZIPCCL_SUBBLOCK, entry->rest - first), &s->table, &states,
                                 s->b + first);
    }
    for (size_t l = 0; l < ZIPCCL_ANS_LANES; l++)
        if (states.high[l] != 1)
            return ZIPCCL_ERR_CORRUPT;
    memcpy(s->fixed, states.low, sizeof states.low);
    return in == s->stream + nstream ? ZIPCCL_OK : ZIPCCL_ERR_CORRUPT;
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

/*
 * Put elements together from the symbols in scratch->b, what escapes in scratch->a and the parts,
 * of which the carried ones are in scratch->fixed.  Returns how many escapes there are.
 */
static size_t elements_any(const struct zipccl_coder *c, const uint8_t *share,
                           const struct zipccl_entry *entry, const struct zipccl_share *at,
                           uint8_t *dst)
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

/* The same for bf16, from where the low parts are. */
static size_t elements_bf16(const struct zipccl_coder *c, const uint8_t *share,
                            const struct zipccl_entry *entry, const struct zipccl_share *at,
                            uint8_t *dst)
{
    struct zipccl_scratch *s = c->scratch;
    size_t rest = entry->rest, reach = 0, carried = zipccl_ans_carried(at);
    bool stream = c->stream && dst != s->rest && dst != s->elements;
    for (size_t first = 0, i = 0; first < rest; first += ZIPCCL_SUBBLOCK, i++) {
        uint8_t top;
        int law = law_of(entry, i, &top);
        const uint8_t *packed = share + i * SUBBLOCK_LOW - carried;
        /* The first ones are no share, the last ones would be read beyond it. */
        if (i == 0) {
            packed = s->fixed;
            memcpy(s->fixed + carried, share, min(SUBBLOCK_LOW, at->end) - carried);
        } else if (rest - first <= ZIPCCL_SUBBLOCK) {
            packed = memcpy(s->fixed, packed, at->end - i * SUBBLOCK_LOW);
        }
        reach += c->row->ans->join(s->b + first, packed, s->a + reach,
                                   min(ZIPCCL_SUBBLOCK, rest - first), top, ans_laws[law].octaves,
                                   stream, dst + 2 * first);
    }
    return reach;
}

zipccl_status zipccl_ans_decode(const struct zipccl_coder *c, const uint8_t *share,
                                const uint8_t *variable, const struct zipccl_entry *entry,
                                uint8_t *dst)
{
    struct zipccl_share at =
        zipccl_ans_share_of(c->fields, entry->rest, __builtin_popcount(entry->planes));
    bool at_once = c->fields->split == ZIPCCL_SPLIT_BF16 && c->row->ans->join;
    ZIPCCL_TRY(decode_symbols(c, variable, entry));
    variable += ZIPCCL_ANS_STATE_BYTES + entry->escapes[ZIPCCL_ANS_AT_STREAM];
    ZIPCCL_TRY(decode_escapes(c, variable, entry));
    return (at_once ? elements_bf16 : elements_any)(c, share, entry, &at, dst) == entry->escapes[0]
               ? ZIPCCL_OK
               : ZIPCCL_ERR_CORRUPT;
}
