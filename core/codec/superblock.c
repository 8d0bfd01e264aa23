/*
 * superblock.c - tiers, planes and bitmaps of one superblock, the same for every row
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/superblock.h"

#include <string.h>

/* Where one superblock goes. */
struct place {
    uint8_t *share, *variable;
    size_t limit; /* variable bytes at which raw is no longer */
    size_t nshare, nvariable;
};

static size_t encode_raw(const struct zipccl_coder *c, const uint8_t *src, size_t rest,
                         struct place *to, struct zipccl_entry *entry)
{
    size_t first = zipccl_raw_share(c->fields, rest), more = rest * c->fields->size - first;
    entry->program = ZIPCCL_PROGRAM_RAW | (entry->program & ZIPCCL_PROGRAM_ZEROS);
    entry->planes = 0;
    memset(entry->escapes, 0, sizeof entry->escapes);
    memset(entry->base, 0, sizeof entry->base);
    to->nshare = zipccl_align64(first);
    memcpy(to->share, src, first);
    memset(to->share + first, 0, to->nshare - first);
    memcpy(to->variable + to->nvariable, src + first, more);
    return to->nvariable + more;
}

/*
 * Take the elements apart into the share; what tier 1 needs of them goes to the scratch.
 * Planes without a bit set are left out.
 */
static void encode_fields(const struct zipccl_coder *c, const uint8_t *src, size_t rest, int width,
                          struct place *to, struct zipccl_entry *entry, struct zipccl_share *share)
{
    const struct zipccl_fields *fields = c->fields;
    *share = zipccl_share_of(fields, rest, fields->nplanes, width);
    uint8_t *planes = to->share + share->planes;
    uint32_t any = c->row->take(fields, src, rest, to->share, planes, share->plane_nbytes,
                                c->scratch->bits, c->scratch->exponents);
    int nplanes = 0;
    entry->planes = 0;
    for (int k = 0; k < fields->nplanes; k++) {
        if (!(fields->byte_planes ? any >> 8 * k & 0xff : any >> k & 1))
            continue;
        entry->planes |= (uint8_t)(1 << k);
        if (fields->byte_planes) {
            uint8_t *plane = planes + (size_t)nplanes * share->plane_nbytes;
            if (k > nplanes)
                memmove(plane, planes + (size_t)k * share->plane_nbytes, rest);
            memset(plane + rest, 0, share->plane_nbytes - rest);
        }
        nplanes++;
    }
    if (!fields->byte_planes && nplanes > 0)
        c->row->pack(c->scratch->bits, rest, entry->planes, planes);
    *share = zipccl_share_of(fields, rest, nplanes, width);
}

/* Zero what lies between the parts of a share. */
static void clear_gaps(const struct zipccl_coder *c, size_t rest, const struct zipccl_share *share,
                       int nplanes, uint8_t *p)
{
    size_t nlow = c->fields->low_bytes * rest;
    size_t planes_end = share->planes + (size_t)nplanes * share->plane_nbytes;
    memset(p + nlow, 0, share->planes - nlow);
    memset(p + planes_end, 0, share->tier1 - planes_end);
    memset(p + share->end, 0, zipccl_align64(share->end) - share->end);
}

/*
 * Code 'rest' elements by entry->program.  Returns the variable bytes, or to->limit as soon as
 * it is clear that they reach it.
 */
static size_t encode_tiers(const struct zipccl_coder *c, const uint8_t *src, size_t rest,
                           struct place *to, struct zipccl_entry *entry)
{
    const struct zipccl_tier_program *program =
        &zipccl_programs[entry->program & ~ZIPCCL_PROGRAM_ZEROS];
    const struct zipccl_row *row = c->row;
    struct zipccl_share share;
    uint8_t *d = c->scratch->a;
    int width = program->tier[0].width;
    size_t used = to->nvariable, reach;
    if (c->fields->split == ZIPCCL_SPLIT_BF16 && width == 2) {
        share = zipccl_share_of(c->fields, rest, 0, width);
        reach =
            row->split(src, rest, entry->base, c->stream, to->share, to->share + share.tier1, d);
    } else {
        encode_fields(c, src, rest, width, to, entry, &share);
        d = c->scratch->exponents;
        reach =
            row->tier1(d, rest, entry->base, width, to->share + share.tier1, to->variable + used);
        used += width == 3 ? 8 * zipccl_groups(rest) : 0;
    }
    clear_gaps(c, rest, &share, __builtin_popcount(entry->planes), to->share);
    to->nshare = zipccl_align64(share.end);
    to->limit = to->nvariable + rest * c->fields->size;
    to->limit = to->limit > share.end ? to->limit - share.end : 0;
    entry->escapes[0] = (uint16_t)reach;
    for (int t = 1; t < program->ntiers; t++) {
        size_t nbytes = zipccl_plane_bytes(reach, program->tier[t].width);
        if (used + nbytes >= to->limit)
            return to->limit;
        reach = row->sift(d, reach, &program->tier[t], to->variable + used);
        used += nbytes;
        entry->escapes[t] = (uint16_t)reach;
    }
    if (used + reach >= to->limit)
        return to->limit;
    memcpy(to->variable + used, d, reach);
    return used + reach;
}

/* Take the zeros out.  False, and nothing changed, if that does not save anything. */
static bool encode_bitmap(const struct zipccl_coder *c, const uint8_t *src, size_t m,
                          struct place *to, struct zipccl_entry *entry)
{
    uint64_t *words = c->scratch->words;
    size_t ngroups = zipccl_groups(m), nshown = 0;
    size_t rest = c->row->compact(c->fields->size, src, m, words, c->scratch->rest);
    for (size_t g = 0; g < ngroups; g++)
        nshown += words[g] != 0;
    if ((m - rest) * c->fields->size <= zipccl_bitmap_bytes(m, nshown))
        return false;

    uint8_t *shown = to->variable, *out = to->variable + 8 * zipccl_groups(ngroups);
    memset(shown, 0, (size_t)(out - shown));
    for (size_t g = 0; g < ngroups; g++) {
        if (words[g] == 0)
            continue;
        shown[g / 8] |= (uint8_t)(1 << g % 8);
        memcpy(out, &words[g], 8);
        out += 8;
    }
    to->nvariable = (size_t)(out - to->variable);
    entry->program = ZIPCCL_PROGRAM_ZEROS;
    entry->rest = (uint16_t)rest;
    entry->ngroups = (uint16_t)nshown;
    return true;
}

/*
 * Code 'rest' elements by entry->program, or raw if that is no longer, behind the first 'start'
 * variable bytes.  Returns the bytes of share and variable.
 */
static size_t encode_by(const struct zipccl_coder *c, const uint8_t *src, size_t rest, size_t start,
                        struct place *to, struct zipccl_entry *entry)
{
    bool raw = (entry->program & ~ZIPCCL_PROGRAM_ZEROS) == ZIPCCL_PROGRAM_RAW;
    size_t used = 0;
    to->nvariable = start;
    if (!raw)
        used = encode_tiers(c, src, rest, to, entry);
    if (raw || used >= to->limit)
        used = encode_raw(c, src, rest, to, entry);
    to->nvariable = used;
    return to->nshare + used;
}

/* The same by program ANS with the tables of 'entry'; SIZE_MAX if raw is no longer. */
static size_t encode_ans(const struct zipccl_coder *c, const uint8_t *src, size_t rest,
                         size_t start, struct place *to, struct zipccl_entry *entry)
{
    size_t nshare,
        used = zipccl_ans_encode(c, src, rest, to->share, to->variable + start, entry, &nshare);
    to->nshare = zipccl_align64(nshare);
    to->nvariable = start + used;
    return nshare + used < rest * c->fields->size ? to->nshare + to->nvariable : SIZE_MAX;
}

/* The entry of program ANS with the tables chosen. */
static struct zipccl_entry ans_entry(const struct zipccl_coder *c, const struct zipccl_entry *entry)
{
    const struct zipccl_ans_choice *choice = &c->scratch->choice;
    struct zipccl_entry ans = *entry;
    memset(ans.escapes, 0, sizeof ans.escapes);
    ans.program = (uint8_t)(ZIPCCL_PROGRAM_ANS | (entry->program & ZIPCCL_PROGRAM_ZEROS));
    ans.escapes[ZIPCCL_ANS_AT_LAW] = choice->law;
    memcpy(ans.base, choice->base, sizeof ans.base);
    return ans;
}

/*
 * Code by program ANS or by 'entry', whichever is shorter.  A Gaussian's estimate is trusted if it
 * says that ANS is; all other data is coded both ways.
 */
static void encode_shorter(const struct zipccl_coder *c, const uint8_t *src, size_t rest,
                           struct place *to, struct zipccl_entry *entry)
{
    const struct zipccl_fields *fields = c->fields;
    const struct zipccl_ans_choice *choice = &c->scratch->choice;
    struct zipccl_entry ans = ans_entry(c, entry), tiers = *entry;
    size_t start = to->nvariable, by_ans, by_tiers;
    if (choice->gaussian) {
        by_ans = encode_ans(c, src, rest, start, to, &ans);
        int nplanes = __builtin_popcount(ans.planes) + fields->nplanes - zipccl_ans_planes(fields);
        size_t estimate = start + zipccl_share_of(fields, rest, nplanes, 2).tier1 +
                          rest * choice->tier_bits / (8 * 256);
        *entry = ans;
        if (by_ans <= estimate)
            return;
        by_tiers = encode_by(c, src, rest, start, to, &tiers);
        if (by_tiers <= by_ans)
            *entry = tiers;
        else
            encode_ans(c, src, rest, start, to, entry);
    } else {
        by_tiers = encode_by(c, src, rest, start, to, &tiers);
        by_ans = encode_ans(c, src, rest, start, to, &ans);
        if (by_ans < by_tiers)
            *entry = ans;
        else
            encode_by(c, src, rest, start, to, entry);
    }
}

static void encode_at(const struct zipccl_coder *c, const uint8_t *src, size_t m, struct place *to,
                      struct zipccl_entry *entry)
{
    size_t rest = m;
    bool zeros = zipccl_superblock_choose(c, src, m, true, entry);
    if (zeros && encode_bitmap(c, src, m, to, entry)) {
        rest = entry->rest;
        src = c->scratch->rest;
        zipccl_superblock_choose(c, src, rest, false, entry);
        entry->program |= ZIPCCL_PROGRAM_ZEROS;
    } else if (zeros) {
        zipccl_superblock_choose(c, src, m, false, entry);
    }
    entry->rest = (uint16_t)rest;
    if (c->max_ratio && c->scratch->choice.possible)
        encode_shorter(c, src, rest, to, entry);
    else
        encode_by(c, src, rest, to->nvariable, to, entry);
}

void zipccl_superblock_encode(const struct zipccl_coder *c, const uint8_t *src, size_t m,
                              uint8_t *share, size_t share_room, uint8_t *variable,
                              size_t variable_room, struct zipccl_entry *entry, size_t *nshare,
                              size_t *nvariable)
{
    size_t size = c->fields->size;
    memset(entry, 0, sizeof *entry);
    if (zipccl_superblock_is_constant(c->fields, src, m)) {
        entry->program = ZIPCCL_PROGRAM_CONSTANT;
        memcpy(entry->base, src, size);
        *nshare = *nvariable = 0;
        return;
    }
    /* Kernels store whole vectors, so where there is little room they work beside it. */
    bool in_share = share_room >= zipccl_full_share(c->fields, m);
    bool in_variable = variable_room >= ZIPCCL_MAX_VARIABLE + ZIPCCL_SLACK;
    struct place to = {.share = in_share ? share : c->scratch->share,
                       .variable = in_variable ? variable : c->scratch->variable};
    encode_at(c, src, m, &to, entry);
    if (!in_share && share && to.nshare <= share_room)
        memcpy(share, to.share, to.nshare);
    if (!in_variable && variable && to.nvariable <= variable_room)
        memcpy(variable, to.variable, to.nvariable);
    *nshare = to.nshare;
    *nvariable = to.nvariable;
}

/* Put exponents and all that rests together again. */
static void decode_fields(const struct zipccl_coder *c, const uint8_t *share,
                          const struct zipccl_share *at, const struct zipccl_entry *entry,
                          uint8_t *dst)
{
    const uint8_t *byte_plane[2] = {NULL, NULL}, *next = share + at->planes;
    if (c->fields->byte_planes) {
        for (int k = 0; k < c->fields->nplanes; k++)
            if (entry->planes >> k & 1) {
                byte_plane[k] = next;
                next += at->plane_nbytes;
            }
    } else if (c->fields->nplanes > 0) {
        c->row->unpack(next, entry->rest, entry->planes, c->scratch->bits);
    }
    c->row->give(c->fields, share, byte_plane[0], byte_plane[1], c->scratch->bits,
                 c->scratch->exponents, entry->rest, dst);
}

/* Decode the entry's rest to 'dst'. */
static zipccl_status decode_rest(const struct zipccl_coder *c, const uint8_t *share,
                                 const uint8_t *variable, const struct zipccl_entry *entry,
                                 uint8_t *dst)
{
    uint8_t id = entry->program & ~ZIPCCL_PROGRAM_ZEROS;
    if (id == ZIPCCL_PROGRAM_ANS)
        return zipccl_ans_decode(c, share, variable, entry, dst);
    const struct zipccl_tier_program *program = &zipccl_programs[id];
    const struct zipccl_row *row = c->row;
    size_t rest = entry->rest;
    if (program->ntiers == 0) {
        size_t first = zipccl_raw_share(c->fields, rest);
        memcpy(dst, share, first);
        memcpy(dst + first, variable, rest * c->fields->size - first);
        return ZIPCCL_OK;
    }
    int width = program->tier[0].width;
    const uint8_t *planes[ZIPCCL_MAX_TIERS];
    const uint8_t *p = variable + (width == 3 ? 8 * zipccl_groups(rest) : 0);
    for (int t = 1; t < program->ntiers; t++) {
        planes[t] = p;
        p += zipccl_plane_bytes(entry->escapes[t - 1], program->tier[t].width);
    }
    /*
     * From the last tier up: each fills in what escaped the one before.  Planes may call for
     * more than there is; such reads stay inside the work buffers and are found by the count.
     */
    uint8_t *in = c->scratch->a, *out = c->scratch->b;
    memcpy(in, p, entry->escapes[program->ntiers - 1]);
    for (int t = program->ntiers - 1; t >= 1; t--) {
        size_t reach = entry->escapes[t - 1];
        if (row->unsift(planes[t], in, reach, &program->tier[t], out) != entry->escapes[t])
            return ZIPCCL_ERR_CORRUPT;
        uint8_t *swap = in;
        in = out;
        out = swap;
    }
    struct zipccl_share at =
        zipccl_share_of(c->fields, rest, __builtin_popcount(entry->planes), width);
    if (c->fields->split == ZIPCCL_SPLIT_BF16 && width == 2)
        return row->join(share, share + at.tier1, in, rest, entry->base,
                         c->stream && dst != c->scratch->rest && dst != c->scratch->elements,
                         dst) == entry->escapes[0]
                   ? ZIPCCL_OK
                   : ZIPCCL_ERR_CORRUPT;
    if (row->untier1(share + at.tier1, variable, in, rest, entry->base, width,
                     c->scratch->exponents) != entry->escapes[0])
        return ZIPCCL_ERR_CORRUPT;
    decode_fields(c, share, &at, entry, dst);
    return ZIPCCL_OK;
}

/* Read the bitmap of 'm' elements into the scratch's words; it must agree with the entry. */
static zipccl_status decode_bitmap(const struct zipccl_coder *c, const uint8_t *variable, size_t m,
                                   const struct zipccl_entry *entry)
{
    size_t ngroups = zipccl_groups(m), nshown = 0, rest = 0;
    const uint8_t *in = variable + 8 * zipccl_groups(ngroups);
    for (size_t g = 0; g < ngroups; g++) {
        uint64_t word = 0;
        if (variable[g / 8] >> g % 8 & 1) {
            if (++nshown > entry->ngroups)
                return ZIPCCL_ERR_CORRUPT;
            memcpy(&word, in, 8);
            in += 8;
            if (m - 64 * g < 64)
                word &= (1ull << (m - 64 * g)) - 1;
        }
        c->scratch->words[g] = word;
        rest += (size_t)__builtin_popcountll(word);
    }
    return nshown == entry->ngroups && rest == entry->rest ? ZIPCCL_OK : ZIPCCL_ERR_CORRUPT;
}

static void fill(const uint8_t *element, size_t size, size_t m, uint8_t *dst)
{
    size_t done = size;
    memcpy(dst, element, size);
    while (done < m * size) {
        size_t part = done < m * size - done ? done : m * size - done;
        memcpy(dst + done, dst, part);
        done += part;
    }
}

zipccl_status zipccl_superblock_decode(const struct zipccl_coder *c, const uint8_t *share,
                                       const uint8_t *variable, size_t m,
                                       const struct zipccl_entry *entry, uint8_t *dst)
{
    if (entry->program == ZIPCCL_PROGRAM_CONSTANT) {
        fill(entry->base, c->fields->size, m, dst);
        return ZIPCCL_OK;
    }
    if (!(entry->program & ZIPCCL_PROGRAM_ZEROS))
        return decode_rest(c, share, variable, entry, dst);
    ZIPCCL_TRY(decode_bitmap(c, variable, m, entry));
    variable += zipccl_bitmap_bytes(m, entry->ngroups);
    ZIPCCL_TRY(decode_rest(c, share, variable, entry, c->scratch->rest));
    c->row->scatter(c->fields->size, c->scratch->words, c->scratch->rest, m, dst);
    return ZIPCCL_OK;
}
