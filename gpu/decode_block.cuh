/*
 * decode_block.cuh - a team takes a superblock apart: what its elements need, in shared memory
 *
 * A thread for each group.  Tiers are undone from the deepest one up, each by all threads: population counts of the escape
 * masks, a prefix sum, and then four elements a thread.  What is left to do for an element
 * (decode_elements.cuh) needs no other thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_DECODE_BLOCK_CUH
#define ZIPCCL_GPU_DECODE_BLOCK_CUH

#include "gpu/block.cuh"
#include "gpu/decode_wire.cuh"

/* Words of 32 elements in a superblock. */
#define DECODE_WORDS (ZIPCCL_SUPERBLOCK / 32)
/* Bytes behind a buffer that may be read, or hold what is staged there. */
#define DECODE_SLACK 64u

struct decode_shared {
    /* d of what escapes tier 1, and what else is staged there; tiers on the way, or symbols. */
    alignas(16) uint32_t a[(ZIPCCL_SUPERBLOCK + DECODE_SLACK) / 4];
    alignas(16) uint32_t b[(ZIPCCL_SUPERBLOCK + DECODE_SLACK) / 4];
    /* Bits of the codes of a tier, first the deepest, last tier 1; escapes before each word. */
    alignas(16) uint32_t plane[3][DECODE_WORDS];
    uint16_t before[DECODE_WORDS];
    struct team_meeting meeting;
    uint8_t *elements;        /* where the superblock's go */
    uint64_t fixed, variable; /* offsets of the superblock's bytes in its message */
    uint32_t nvariable, ok;
    uint32_t entry[ZIPCCL_ENTRY_BYTES / 4];
    uint32_t fill[16]; /* see fill_selector() */
    /* Program ANS: the first bytes of the parts, and the tables of the sub-blocks. */
    uint8_t carried[ZIPCCL_ANS_LANES], top[ZIPCCL_SUBBLOCKS], octaves[ZIPCCL_SUBBLOCKS];
};

/* A superblock being decoded; the same in all threads. */
struct decode_view {
    const uint8_t *share, *variable; /* variable bytes behind a bitmap; maybe staged */
    unsigned m, rest;
    unsigned id;     /* program without ZEROS */
    bool zeros;      /* a bitmap says which elements are the rest */
    bool staged;     /* the variable bytes lie in shared memory */
    unsigned width;  /* of tier 1 */
    unsigned planes; /* bit k: plane k is there */
    unsigned planes_at, plane_nbytes, raw_share, ncarried;
};

static __device__ inline unsigned entry_u16(const struct decode_shared *sh, unsigned i)
{
    return sh->entry[i / 2] >> 16 * (i % 2) & 0xffff;
}

/* Elements that escape tier t, from 0. */
static __device__ inline unsigned entry_escapes(const struct decode_shared *sh, unsigned t)
{
    return entry_u16(sh, 1 + t);
}

static __device__ inline unsigned entry_base(const struct decode_shared *sh, unsigned i)
{
    return sh->entry[4 + i / 4] >> 8 * (i % 4) & 255;
}

static __device__ inline uint64_t lowest_bits(unsigned n)
{
    return n < 64 ? ((uint64_t)1 << n) - 1 : ~(uint64_t)0;
}

/* For four elements of which 'escapes' says who escapes: the next escaped bytes from the first operand
 * of __byte_perm(), all others from the second. */
static __device__ inline uint32_t fill_selector(unsigned escapes)
{
    uint32_t selector = 0, next = 0;
    for (unsigned i = 0; i < 4; i++)
        selector |= (escapes >> i & 1 ? next++ : 4 + i) << 4 * i;
    return selector;
}

/* Bits 0 to 3 at the bottom of four nibbles, and of four bytes. */
static __device__ inline uint32_t spread_nibbles(uint32_t x)
{
    x = (x | x << 6) & 0x0303;
    return (x | x << 3) & 0x1111;
}

static __device__ inline uint32_t spread_bytes(uint32_t x)
{
    return x * 0x00204081u & 0x01010101u;
}

/* Four bytes at any place of shared memory; reads up to 7 bytes beyond them. */
static __device__ inline uint32_t shared_u32(const uint32_t *from, unsigned at)
{
    return __byte_perm(from[at / 4], from[at / 4 + 1], 0x3210 + 0x1111 * (at % 4));
}

/* 1 to 8 bytes of variable bytes; above them anything. */
static __device__ inline uint64_t variable_bits(const uint8_t *p, unsigned nbytes, bool staged)
{
    if (staged) {
        unsigned at = (unsigned)((uintptr_t)p % 4);
        const uint32_t *from = (const uint32_t *)(p - at);
        return shared_u32(from, at) | (uint64_t)shared_u32(from + 1, at) << 32;
    }
    uint64_t x = 0;
    KEEP_LOOP
    for (unsigned i = 0; i < nbytes; i++)
        x |= (uint64_t)p[i] << 8 * i;
    return x;
}

/*
 * Copy the superblock's variable bytes behind the first 'keep' bytes of sh->a, if they fit there;
 * returns where they lie then.
 */
static __device__ inline const uint8_t *stage(struct decode_shared *sh, const uint8_t *variable,
                                              unsigned nvariable, unsigned keep, bool *staged)
{
    unsigned delta = (unsigned)((uintptr_t)variable % 16), at = (unsigned)zipccl_align16(keep);
    unsigned nbytes = (unsigned)zipccl_align16(delta + nvariable);
    /* What reads whole words reads up to 11 bytes more. */
    *staged = at + nbytes + 16 <= sizeof sh->a;
    if (!*staged)
        return variable;
    const uint8_t *from = variable - delta, *end = variable + nvariable;
    uint8_t *to = (uint8_t *)sh->a + at;
    KEEP_LOOP
    for (unsigned i = 16 * team_thread(); i < nbytes; i += 16 * TEAM_THREADS) {
        if (from + i + 16 <= end)
            *(uint4 *)(to + i) = *(const uint4 *)(from + i);
        else
            for (unsigned k = i; from + k < end; k++)
                to[k] = from[k];
    }
    team_sync(&sh->meeting);
    return to + delta;
}

/* Keep 'len' bits a group of up to three planes, and count escapes before each word. */
static __device__ inline unsigned keep_planes(struct decode_shared *sh, uint64_t x0, uint64_t x1,
                                              uint64_t x2, unsigned width, unsigned len)
{
    unsigned t = team_thread();
    uint64_t escapes = x0 & lowest_bits(len);
    uint32_t total;
    if (width > 1)
        escapes &= x1;
    if (width > 2)
        escapes &= x2;
    unsigned before = team_scan(&sh->meeting, (uint32_t)__popcll(escapes), &total);
    x0 &= lowest_bits(len);
    ((uint64_t *)sh->plane[0])[t] = x0;
    ((uint64_t *)sh->plane[1])[t] = x1;
    ((uint64_t *)sh->plane[2])[t] = x2;
    sh->before[2 * t] = (uint16_t)before;
    sh->before[2 * t + 1] = (uint16_t)(before + __popc((uint32_t)escapes));
    team_sync(&sh->meeting);
    return total;
}

/* Elements of the thread's group, of 'count' in all. */
static __device__ inline unsigned group_len(unsigned count)
{
    unsigned first = ZIPCCL_GROUP * team_thread();
    return count > first ? min(ZIPCCL_GROUP, count - first) : 0;
}

/* d of codes 0 to 3, and of 4 to 6. */
static __device__ inline uint32_t tier_values(const struct zipccl_tier *tier, unsigned from)
{
    uint32_t x = 0;
    for (unsigned k = from; k < from + 4 && k < sizeof tier->d; k++)
        x |= (uint32_t)(uint8_t)tier->d[k] << 8 * (k - from);
    return x;
}

/*
 * d of elements 4 q to 4 q + 3 whose codes lie in sh->plane: codes stand for the bytes of 'lower' and
 * 'upper', what escapes lies in 'escaped'.
 */
static __device__ inline uint32_t quad_of(const struct decode_shared *sh, unsigned q,
                                          unsigned width, uint32_t lower, uint32_t upper,
                                          const uint32_t *escaped)
{
    unsigned word = q / 8, shift = 4 * (q % 8);
    uint32_t x0 = sh->plane[0][word], escapes = x0;
    uint32_t codes = spread_nibbles(x0 >> shift & 15);
    if (width > 1) {
        uint32_t x1 = sh->plane[1][word];
        codes |= spread_nibbles(x1 >> shift & 15) << 1;
        escapes &= x1;
    }
    if (width > 2) {
        uint32_t x2 = sh->plane[2][word];
        codes |= spread_nibbles(x2 >> shift & 15) << 2;
        escapes &= x2;
    }
    uint32_t d = __byte_perm(lower, upper, codes);
    unsigned here = escapes >> shift & 15;
    if (here) {
        unsigned rank = sh->before[word] + __popc(escapes & ((1u << shift) - 1));
        d = __byte_perm(shared_u32(escaped, rank), d, sh->fill[here]);
    }
    return d;
}

/*
 * Undo one deeper tier: 'count' elements reach it, whose planes lie at 'planes', and 'escaped' holds
 * the d of the 'nescaped' that escape it.  d of all to 'out'.  False if the planes call for another
 * number.
 */
static __device__ inline bool undo_tier(struct decode_shared *sh, const struct zipccl_tier *tier,
                                        const uint8_t *planes, bool staged, unsigned count,
                                        const uint32_t *escaped, unsigned nescaped, uint32_t *out)
{
    unsigned len = group_len(count), nbytes = (len + 7) / 8, width = tier->width;
    uint64_t x[3] = {0, 0, 0};
    planes += (size_t)8 * width * team_thread();
    SIMT_UNROLL
    for (unsigned k = 0; k < 3; k++)
        if (k < width && len > 0)
            x[k] = variable_bits(planes + k * nbytes, nbytes, staged);
    if (keep_planes(sh, x[0], x[1], x[2], width, len) != nescaped)
        return false;
    uint32_t lower = tier_values(tier, 0), upper = tier_values(tier, 4);
    KEEP_LOOP
    for (unsigned q = team_thread(); 4 * q < count; q += TEAM_THREADS)
        out[q] = quad_of(sh, q, width, lower, upper, escaped);
    team_sync(&sh->meeting);
    return true;
}

/*
 * Undo tiers ntiers - 1 to 'from' whose planes start at 'variable', to sh->a.  Tier t is reached by
 * what escapes tier t - 1, or of program ANS by what escapes its table: escapes t - shift of the entry.
 */
static __device__ inline bool undo_tiers(struct decode_shared *sh, const struct zipccl_tier *tiers,
                                         unsigned from, unsigned ntiers, unsigned shift,
                                         const uint8_t *variable, bool staged)
{
    const uint8_t *end = variable;
    KEEP_LOOP
    for (unsigned t = from; t < ntiers; t++)
        end += zipccl_plane_bytes(entry_escapes(sh, t - shift), tiers[t].width);
    /* Tier 'from' goes to a, the next one to b, and so on. */
    unsigned nlast = entry_escapes(sh, ntiers - shift);
    uint8_t *last = (uint8_t *)((ntiers - from) % 2 == 0 ? sh->a : sh->b);
    KEEP_LOOP
    for (unsigned i = team_thread(); i < nlast; i += TEAM_THREADS)
        last[i] = end[i];
    KEEP_LOOP
    for (unsigned t = ntiers; t-- > from;) {
        unsigned count = entry_escapes(sh, t - shift);
        bool to_a = (t - from) % 2 == 0;
        end -= zipccl_plane_bytes(count, tiers[t].width);
        if (!undo_tier(sh, &tiers[t], end, staged, count, to_a ? sh->b : sh->a,
                       entry_escapes(sh, t + 1 - shift), to_a ? sh->a : sh->b))
            return false;
    }
    return true;
}

/* Programs 1 to 7: d of what escapes tier 1 to sh->a, its codes to sh->plane. */
static __device__ inline bool open_tiers(struct decode_shared *sh, const struct decode_view *v,
                                         unsigned tier1_at)
{
    const struct zipccl_tier_program *program = &decode_programs[v->id];
    unsigned ngroups = (unsigned)zipccl_groups(v->rest), t = team_thread();
    /* Asked for early. */
    uint64_t x0 = 0, x1 = 0, x2 = 0;
    const uint8_t *words = v->share + tier1_at;
    if (t < ngroups && v->width == 1) {
        x0 = ((const uint64_t *)words)[t];
    } else if (t < ngroups) {
        uint4 both = ((const uint4 *)words)[t];
        x0 = both.x | (uint64_t)both.y << 32;
        x1 = both.z | (uint64_t)both.w << 32;
    }
    if (!undo_tiers(sh, program->tier, 1, (unsigned)program->ntiers, 1,
                    v->variable + (v->width == 3 ? 8 * ngroups : 0), v->staged))
        return false;
    if (t < ngroups && v->width == 3)
        x2 = variable_bits(v->variable + 8 * t, 8, v->staged);
    return keep_planes(sh, x0, x1, x2, v->width, group_len(v->rest)) == entry_escapes(sh, 0);
}

/* Of the bitmap, what belongs to the thread's group. */
struct decode_shown {
    uint64_t word;
    unsigned before;
};

/* Read the bitmap and step over it; false if it and the entry disagree. */
static __device__ inline bool open_bitmap(struct decode_shared *sh, struct decode_view *v,
                                          struct decode_shown *shown)
{
    unsigned t = team_thread(), ngroups = (unsigned)zipccl_groups(v->m);
    unsigned nshown = entry_u16(sh, 7), nbytes = 8 * (unsigned)zipccl_groups(ngroups);
    uint32_t total;
    bool is_shown = t < ngroups && (v->variable[t / 8] >> t % 8 & 1);
    unsigned rank = team_scan(&sh->meeting, (uint32_t)is_shown, &total);
    if (total != nshown)
        return false;
    shown->word = 0;
    if (is_shown)
        shown->word = variable_bits(v->variable + nbytes + 8 * rank, 8, v->staged) &
                      lowest_bits(group_len(v->m));
    shown->before = team_scan(&sh->meeting, (uint32_t)__popcll(shown->word), &total);
    v->variable += nbytes + 8 * nshown;
    return total == v->rest;
}

/*
 * Where elements find the bitmap, and how many of the rest lie before each word of it.  What lies in sh->b is
 * of no use any more by then, but for the symbols of program ANS, which leaves planes free.
 */
static __device__ inline uint32_t *shown_words(struct decode_shared *sh, unsigned id)
{
    return id == ZIPCCL_PROGRAM_ANS ? sh->plane[2] : sh->b;
}

static __device__ inline uint16_t *shown_before(struct decode_shared *sh, unsigned id)
{
    return (uint16_t *)(id == ZIPCCL_PROGRAM_ANS ? sh->plane[1] : sh->b + DECODE_WORDS);
}

static __device__ inline void keep_bitmap(struct decode_shared *sh, unsigned id,
                                          const struct decode_shown *shown)
{
    unsigned t = team_thread();
    uint16_t *before = shown_before(sh, id);
    team_sync(&sh->meeting);
    ((uint64_t *)shown_words(sh, id))[t] = shown->word;
    before[2 * t] = (uint16_t)shown->before;
    before[2 * t + 1] = (uint16_t)(shown->before + __popc((uint32_t)shown->word));
    team_sync(&sh->meeting);
}

#endif
