/*
 * encode_tiers.cuh - tiers and bitmaps of a superblock, as a block of threads codes them
 *
 * Tier 1 works on registers; what escapes goes, in order, to shared memory, and each deeper tier
 * takes it from there, eight elements a thread.  Variable bytes are written where the caller says,
 * aligned to 16; the caller places them later.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_ENCODE_TIERS_CUH
#define ZIPCCL_GPU_ENCODE_TIERS_CUH

#include "gpu/encode_state.cuh"

/* Eight elements in tier 1: their d, the bytes of their planes, and which escape. */
struct enc_codes {
    uint32_t d[2];
    uint32_t plane[3];
    uint32_t escapes;
};

/* 'inside' has a bit for each of the eight that is one. */
static __device__ __forceinline__ void enc_tier1(uint32_t e0, uint32_t e1, uint32_t base,
                                                 uint32_t width, uint32_t inside,
                                                 struct enc_codes *c)
{
    /* A d beyond the codes has all bits set, and so has the one that is the last code. */
    uint32_t beyond = bytes_of(0xffu << width & 0xffu), four = bytes_of(base);
    c->d[0] = bytes_sub(four, e0);
    c->d[1] = bytes_sub(four, e1);
    uint32_t x0 = bytes_nonzero(c->d[0] & beyond), x1 = bytes_nonzero(c->d[1] & beyond);
    x0 = c->d[0] | x0 >> 7 | x0 >> 6 | x0 >> 5;
    x1 = c->d[1] | x1 >> 7 | x1 >> 6 | x1 >> 5;
    c->plane[0] = bytes_plane(x0, x1, 0) & inside;
    c->plane[1] = c->plane[2] = 0;
    c->escapes = c->plane[0];
    if (width > 1) {
        c->plane[1] = bytes_plane(x0, x1, 1) & inside;
        c->escapes &= c->plane[1];
    }
    if (width > 2) {
        c->plane[2] = bytes_plane(x0, x1, 2) & inside;
        c->escapes &= c->plane[2];
    }
}

/* Append the bytes of x0, x1 that 'mask' marks at 'out'. */
static __device__ __forceinline__ void enc_append(uint32_t x0, uint32_t x1, uint32_t mask,
                                                  uint8_t *out)
{
    SIMT_UNROLL
    for (int j = 0; j < 8; j++)
        if (mask >> j & 1)
            *out++ = (uint8_t)((j < 4 ? x0 : x1) >> 8 * (j % 4));
}

/* Codes of eight d by a deeper tier: bytes of its planes, and which escape. */
static __device__ __forceinline__ uint32_t enc_codes_of_tier(const struct zipccl_tier *tier,
                                                             uint32_t x0, uint32_t x1,
                                                             uint32_t plane[3])
{
    uint32_t n = (1u << tier->width) - 1, any = 0;
    plane[0] = plane[1] = plane[2] = 0;
    /* The code of all ones is what is left: collect who has a 0 in each plane. */
    SIMT_UNROLL
    for (uint32_t code = 0; code < 7; code++) {
        if (code >= n)
            break;
        uint32_t v = bytes_of((uint8_t)tier->d[code]);
        uint32_t is = bytes_plane(~bytes_nonzero(x0 ^ v), ~bytes_nonzero(x1 ^ v), 7);
        any |= is;
        plane[0] |= code & 1 ? 0 : is;
        plane[1] |= code & 2 ? 0 : is;
        plane[2] |= code & 4 ? 0 : is;
    }
    SIMT_UNROLL
    for (int k = 0; k < 3; k++)
        plane[k] ^= 0xff;
    return any ^ 0xff;
}

/*
 * Code 'm' of sh->d by 'tier' to 'planes'; those that escape move to the front, their number is
 * returned.  Every thread calls it, after a barrier since sh->d was written; ends with one.
 */
static __device__ __forceinline__ uint32_t enc_sift(struct enc_thread *t, uint32_t m,
                                                    const struct zipccl_tier *tier, uint8_t *planes)
{
    uint8_t *d = t->sh->d;
    uint32_t width = tier->width, kept = 0, thread = 32 * t->warp + t->lane;
    for (uint32_t start = 0; start < m; start += 8 * ENC_THREADS) {
        uint32_t first = start + 8 * thread, escapes = 0, total;
        uint2 x = make_uint2(0, 0);
        if (first < m) {
            uint32_t plane[3], group = first / ZIPCCL_GROUP, inside = bits_below((int)(m - first));
            uint32_t left = m - group * ZIPCCL_GROUP;
            uint32_t nbytes = left < ZIPCCL_GROUP ? (left + 7) / 8 : ZIPCCL_GROUP / 8;
            uint8_t *out = planes + 8 * width * group + first % ZIPCCL_GROUP / 8;
            x = *(const uint2 *)(d + first);
            escapes = enc_codes_of_tier(tier, x.x, x.y, plane) & inside;
            SIMT_UNROLL
            for (uint32_t k = 0; k < 3; k++)
                if (k < width)
                    out[k * nbytes] = (uint8_t)(plane[k] & inside);
        }
        /* In place: everyone has read when the scan is done. */
        uint32_t place =
            enc_scan(t, start / (8 * ENC_THREADS) % 2, (uint32_t)__popc(escapes), &total);
        enc_append(x.x, x.y, escapes, d + kept + place);
        kept += total;
    }
    __syncthreads();
    return kept;
}

/* What was written for a superblock. */
struct enc_sizes {
    uint32_t program, planes, base; /* base: of the warp's sub-block */
    uint32_t share, variable;       /* bytes; share before it is rounded up */
};

/*
 * Code the deeper tiers of program 'z->program': 'reach' of sh->d.  'used' bytes of the slot are taken.  Returns false if that and the rest reach 'limit'.  Every thread calls it.
 */
static __device__ __forceinline__ bool enc_deeper(struct enc_thread *t, struct enc_sizes *z,
                                                  uint32_t reach, uint32_t used, uint32_t limit)
{
    uint8_t *variable = t->sh->slot;
    const struct zipccl_tier_program *program = &enc_programs[z->program];
    bool writes = t->warp == 0 && t->lane == 0;
    if (writes)
        t->sh->escapes[0] = reach;
    ENC_ROLLED
    for (int k = 1; k < program->ntiers; k++) {
        uint32_t nbytes = (uint32_t)zipccl_plane_bytes(reach, program->tier[k].width);
        if (used + nbytes >= limit)
            return false;
        reach = enc_sift(t, reach, &program->tier[k], variable + used);
        used += nbytes;
        if (writes)
            t->sh->escapes[k] = reach;
    }
    if (used + reach >= limit)
        return false;
    for (uint32_t i = 32 * t->warp + t->lane; i < reach; i += ENC_THREADS)
        variable[used + i] = t->sh->d[i];
    z->variable = used + reach;
    return true;
}

/*
 * Take the zeros out: the bitmap goes to the slot, the other elements to sh->rest, and sh->src says
 * so.  Nothing changes if that does not save anything.  Every thread calls it.
 */
template <int SPLIT, bool FLOATS>
static __device__ __forceinline__ void enc_bitmap(struct enc_thread *t)
{
    struct enc_shared *sh = t->sh;
    const struct enc_source *src = &sh->src;
    uint8_t *variable = sh->slot;
    constexpr uint32_t size = enc_fields[ENC_AS(SPLIT)].size;
    uint32_t masks = 0, places[ENC_QUARTERS], total, nshown, thread = 32 * t->warp + t->lane;
    uint32_t ngroups = (uint32_t)zipccl_groups(src->m), nheads = (uint32_t)zipccl_groups(ngroups);
    ENC_ROLLED
    for (uint32_t h = 0; h < ENC_QUARTERS; h++) {
        uint32_t words[ENC_WORDS(SPLIT)];
        enc_load<SPLIT, FLOATS>(src, enc_first(t, h), words);
        masks |= enc_nonzero<SPLIT>(words) << 8 * h;
    }
    /* Quarter lane mod 4, half a group. */
    uint32_t group = t->warp * 16 + (t->lane & 3) * 4 + (t->lane >> 3);
    ((uint32_t *)sh->d)[2 * group + (t->lane >> 2 & 1)] = quad_transpose(masks, t->lane);
    total = enc_places(t, masks, places);
    uint2 word = make_uint2(0, 0);
    if (thread < ngroups)
        word = ((const uint2 *)sh->d)[thread];
    bool shown = (word.x | word.y) != 0;
    uint32_t place = enc_scan(t, 1, shown, &nshown);
    if ((src->m - total) * enc_fields_of<SPLIT>(sh).size <= zipccl_bitmap_bytes(src->m, nshown))
        return;
    uint32_t heads = __ballot_sync(ALL_LANES, shown);
    if (t->lane == 0 && t->warp < 2 * nheads)
        ((uint32_t *)variable)[t->warp] = heads;
    if (shown)
        ((uint2 *)variable)[nheads + place] = word;
    uint64_t starts =
        (uint64_t)(places[0] | places[1] << 16) | (uint64_t)(places[2] | places[3] << 16) << 32;
    ENC_ROLLED
    for (uint32_t h = 0; h < ENC_QUARTERS; h++) {
        uint32_t words[ENC_WORDS(SPLIT)];
        enc_load<SPLIT, FLOATS>(src, enc_first(t, h), words);
        uint8_t *out = sh->rest + size * (starts >> 16 * h & 0xffff);
        SIMT_UNROLL
        for (uint32_t j = 0; j < 8; j++) {
            uint32_t x = words[j * size / 4] >> 8 * (j * size % 4);
            if (!(masks >> (8 * h + j) & 1))
                continue;
            if (size == 1)
                *out = (uint8_t)x;
            else if (size == 2)
                *(uint16_t *)out = (uint16_t)x;
            else
                *(uint32_t *)out = x;
            out += size;
        }
    }
    __syncthreads();
    if (thread == 0) {
        sh->nbitmap = (uint32_t)zipccl_bitmap_bytes(src->m, nshown);
        sh->ngroups = nshown;
        sh->src = (struct enc_source){sh->rest, total, false, true};
    }
    __syncthreads();
}

#endif
