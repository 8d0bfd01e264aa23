/*
 * encode_superblock.cuh - one superblock from elements to sizes, and then to its place
 *
 * Coding comes in two steps, because where a share lies follows from the sizes of all superblocks
 * before it: enc_code() finds everything out, with the variable bytes in a slot of their own, and
 * enc_place() writes share and directory entry where they belong.  In between the elements of bf16 stay in
 * registers, those of other types are read again from the caches.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_ENCODE_SUPERBLOCK_CUH
#define ZIPCCL_GPU_ENCODE_SUPERBLOCK_CUH

#include "gpu/encode_choose.cuh"
#include "gpu/encode_tiers.cuh"

/*
 * Whether threads keep their elements in registers between the steps, where 64 registers suffice for
 * that; else they are read again, mostly from the first-level cache.  ENC_FORGETS: as on sm_80.
 */
#if defined(ENC_FORGETS) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900)
#define ENC_KEEPS(SPLIT) false
#else
#define ENC_KEEPS(SPLIT) ((SPLIT) == ZIPCCL_SPLIT_BF16)
#endif

/* A superblock between the two steps. */
template <int SPLIT> struct enc_coded {
    struct enc_sizes z;
    uint32_t words[ENC_KEEPS(SPLIT) ? ENC_QUARTERS * ENC_WORDS(SPLIT) : 1];
    uint32_t tier1[2]; /* this thread's half of a word of each of tier 1's planes in the share */
};

/* Eight elements of quarter 'h' of a superblock that was read. */
template <int SPLIT, bool FLOATS>
static __device__ __forceinline__ void
enc_again(const struct enc_thread *t, const struct enc_coded<SPLIT> *c, int h, uint32_t *words)
{
    if constexpr (ENC_KEEPS(SPLIT)) {
        SIMT_UNROLL
        for (uint32_t k = 0; k < ENC_WORDS(SPLIT); k++)
            words[k] = c->words[(uint32_t)h * ENC_WORDS(SPLIT) + k];
    } else {
        enc_load<SPLIT, FLOATS>(&t->sh->src, enc_first(t, (uint32_t)h), words);
    }
}

/* OR of what eight elements differ from 'first' by, which is repeated in a word; 'left' are elements. */
template <int SPLIT>
static __device__ __forceinline__ uint32_t enc_differ(const uint32_t *words, uint32_t first,
                                                      uint32_t left)
{
    constexpr uint32_t size = enc_fields[ENC_AS(SPLIT)].size;
    uint32_t others = 0;
    SIMT_UNROLL
    for (uint32_t k = 0; k < ENC_WORDS(SPLIT); k++) {
        uint32_t bits = 0;
        SIMT_UNROLL
        for (uint32_t j = 0; j < 8; j++)
            if (j * size / 4 == k && (left >> j & 1))
                bits |= (size == 4 ? ~0u : (1u << 8 * size % 32) - 1) << 8 * (j * size % 4);
        others |= (words[k] ^ first) & bits;
    }
    return others;
}

/* Read the elements.  True, for every thread, if all are equal.  Every thread calls it. */
template <int SPLIT, bool FLOATS>
static __device__ __forceinline__ bool enc_read(struct enc_thread *t, struct enc_coded<SPLIT> *c)
{
    constexpr uint32_t size = enc_fields[ENC_AS(SPLIT)].size, nwords = ENC_WORDS(SPLIT);
    const struct enc_source *src = &t->sh->src;
    uint32_t first = enc_element<SPLIT, FLOATS>(src, 0), others = 0;
    first = size == 1 ? bytes_of(first) : size == 2 ? first * 0x10001u : first;
    uint32_t kept[ENC_KEEPS(SPLIT) ? 1 : nwords];
    if (src->wide && src->m == ZIPCCL_SUPERBLOCK) {
        /* All loads are on their way before one is waited for. */
        SIMT_UNROLL
        for (uint32_t h = 0; h < ENC_QUARTERS; h++) {
            uint32_t *words = ENC_KEEPS(SPLIT) ? c->words + h * nwords : kept;
            enc_load_wide<SPLIT, FLOATS>(src, enc_first(t, h), words);
            if (!ENC_KEEPS(SPLIT))
                others |= enc_differ<SPLIT>(words, first, 0xff);
        }
        SIMT_UNROLL
        for (uint32_t h = 0; ENC_KEEPS(SPLIT) && h < ENC_QUARTERS; h++)
            others |= enc_differ<SPLIT>(c->words + h * nwords, first, 0xff);
    } else {
        SIMT_UNROLL
        for (uint32_t h = 0; h < ENC_QUARTERS; h++) {
            uint32_t *words = ENC_KEEPS(SPLIT) ? c->words + h * nwords : kept;
            enc_load<SPLIT, FLOATS>(src, enc_first(t, h), words);
            others |=
                enc_differ<SPLIT>(words, first, bits_below((int)src->m - (int)enc_first(t, h)));
        }
    }
    return !__syncthreads_or(others != 0);
}

/* Bits that planes would hold, of all elements: for byte-planes two bytes. */
template <int SPLIT>
static __device__ __forceinline__ uint32_t enc_plane_bits(const uint32_t *words)
{
    uint32_t any = 0;
    if constexpr (ENC_AS(SPLIT) == ZIPCCL_SPLIT_FP32) {
        SIMT_UNROLL
        for (int k = 0; k < 8; k++)
            any |= words[k] & 0xffffu;
        return any;
    }
    any = enc_bits<SPLIT>(words, 0) | enc_bits<SPLIT>(words, 1);
    any |= any >> 16;
    return (any | any >> 8) & 0xffu;
}

/* Which planes are there, from the OR of what they would hold. */
static __device__ __forceinline__ uint32_t enc_planes(bool byte_planes, uint32_t any)
{
    if (byte_planes)
        return (uint32_t)((any & 0xffu) != 0) | (uint32_t)((any & 0xff00u) != 0) << 1;
    return any;
}

/*
 * Code the rest by tiers.  False if raw is no longer.  Fills z's numbers, the slot's bytes behind
 * the first z->variable, and the words of tier 1.  Every thread calls it.
 */
template <int SPLIT, bool FLOATS>
static __device__ __forceinline__ bool enc_by_tiers(struct enc_thread *t,
                                                    struct enc_coded<SPLIT> *c)
{
    const struct zipccl_fields fields = enc_fields_of<SPLIT>(t->sh);
    struct enc_shared *sh = t->sh;
    struct enc_sizes *z = &c->z;
    uint32_t width = enc_programs[z->program].tier[0].width, rest = t->sh->src.m;
    uint32_t planes[3] = {0, 0, 0}, masks = 0, any = 0, places[ENC_QUARTERS];
    ENC_QUARTERLY
    for (int h = 0; h < ENC_QUARTERS; h++) {
        uint32_t words[ENC_WORDS(SPLIT)];
        struct enc_codes codes;
        uint32_t inside = bits_below((int)rest - (int)enc_first(t, (uint32_t)h));
        enc_again<SPLIT, FLOATS>(t, c, h, words);
        enc_tier1(enc_exponents<SPLIT>(words, 0), enc_exponents<SPLIT>(words, 1), z->base, width,
                  inside, &codes);
        masks |= codes.escapes << 8 * h;
        SIMT_UNROLL
        for (int k = 0; k < 3; k++)
            planes[k] |= codes.plane[k] << 8 * h;
        if (fields.nplanes > 0)
            any |= enc_plane_bits<SPLIT>(words);
    }
    if (fields.nplanes > 0) {
        any = __reduce_or_sync(ALL_LANES, any);
        if (t->lane == 0)
            sh->any[t->warp] = any;
    }
    uint32_t reach = enc_places(t, masks, places);
    uint64_t starts =
        (uint64_t)(places[0] | places[1] << 16) | (uint64_t)(places[2] | places[3] << 16) << 32;
    ENC_QUARTERLY
    for (int h = 0; h < ENC_QUARTERS; h++) {
        uint32_t words[ENC_WORDS(SPLIT)], four = bytes_of(z->base);
        enc_again<SPLIT, FLOATS>(t, c, h, words);
        enc_append(bytes_sub(four, enc_exponents<SPLIT>(words, 0)),
                   bytes_sub(four, enc_exponents<SPLIT>(words, 1)), masks >> 8 * h & 0xffu,
                   sh->d + (SPLIT == ENC_ANY ? starts >> 16 * h & 0xffff : places[h]));
    }
    if (fields.nplanes > 0) {
        any = t->lane < ZIPCCL_SUBBLOCKS ? sh->any[t->lane] : 0;
        z->planes = enc_planes(fields.byte_planes, __reduce_or_sync(ALL_LANES, any));
    }
    SIMT_UNROLL
    for (int k = 0; k < 2; k++)
        c->tier1[k] = quad_transpose(planes[k], t->lane);
    uint32_t used = sh->nbitmap;
    if (width == 3) {
        uint32_t third = quad_transpose(planes[2], t->lane), half = t->lane >> 2 & 1;
        uint32_t group = t->warp * 16 + (t->lane & 3) * 4 + (t->lane >> 3);
        if (group < zipccl_groups(rest))
            ((uint32_t *)(sh->slot + used))[2 * group + half] = third;
        used += 8 * (uint32_t)zipccl_groups(rest);
    }
    struct zipccl_share share = zipccl_share_of(&fields, rest, __popc(z->planes), (int)width);
    uint32_t limit = sh->nbitmap + rest * fields.size;
    limit = limit > share.end ? limit - (uint32_t)share.end : 0;
    z->share = (uint32_t)share.end;
    __syncthreads();
    return enc_deeper(t, z, reach, used, limit);
}

/*
 * Find out how the superblock sh->src is coded, and how long it becomes; fills 'c'.  The slot gets its
 * variable bytes, but for those of a raw superblock.  Every thread calls it.
 */
template <int SPLIT, bool FLOATS>
static __device__ __forceinline__ void enc_code(struct enc_thread *t, struct enc_coded<SPLIT> *c)
{
    constexpr struct zipccl_fields fields = enc_fields[SPLIT];
    struct enc_shared *sh = t->sh;
    struct enc_sizes *z = &c->z;
    *z = (struct enc_sizes){};
    if (t->warp == 0 && t->lane < ZIPCCL_MAX_TIERS)
        sh->escapes[t->lane] = 0;
    /* At most three times: the elements, those without zeros, or the elements as they are. */
    for (bool again = false;; again = true) {
        if ((!again || sh->nbitmap) && enc_read<SPLIT, FLOATS>(t, c) && !again) {
            z->program = ZIPCCL_PROGRAM_CONSTANT;
            return;
        }
        struct enc_choice choice;
        z->program = enc_choose<SPLIT, FLOATS>(t, &sh->src, !again, &z->base, &choice);
        if (z->program != ZIPCCL_PROGRAM_ZEROS)
            break;
        enc_bitmap<SPLIT, FLOATS>(t);
    }
    if (z->program != ZIPCCL_PROGRAM_RAW && enc_by_tiers<SPLIT, FLOATS>(t, c))
        return;
    z->program = ZIPCCL_PROGRAM_RAW;
    z->planes = z->base = 0;
    z->share = (uint32_t)zipccl_raw_share(&fields, sh->src.m);
    z->variable = sh->nbitmap + sh->src.m * fields.size - z->share;
}

/* Directory entry, a byte a thread of the first warp; 'base' comes from all warps by sh->base. */
static __device__ __forceinline__ void enc_entry(const struct enc_thread *t,
                                                 const struct enc_sizes *z, uint8_t *out)
{
    uint32_t lane = t->lane, x = 0;
    bool constant = z->program == ZIPCCL_PROGRAM_CONSTANT;
    if (lane >= 16) {
        x = t->sh->base[lane - 16];
    } else if (lane == 0) {
        x = z->program | (t->sh->ngroups ? (uint32_t)ZIPCCL_PROGRAM_ZEROS : 0);
    } else if (!constant) {
        bool tiers = lane > 1 && lane < 12 && z->program != ZIPCCL_PROGRAM_RAW;
        x = tiers ? t->sh->escapes[lane / 2 - 1] : 0;
        x = lane == 1       ? z->planes
            : lane / 2 == 6 ? t->sh->src.m
            : lane / 2 == 7 ? t->sh->ngroups
                            : x;
        x = lane > 1 && (lane & 1) ? x >> 8 : x;
    }
    out[lane] = (uint8_t)x;
}

/* Zero 'share' from 'from' to 'end'; less than a block's threads, 4 bytes each. */
static __device__ __forceinline__ void enc_clear(const struct enc_thread *t, uint8_t *share,
                                                 uint32_t from, uint32_t end)
{
    uint32_t at = from + 4 * (32 * t->warp + t->lane);
    if (at < end)
        *(uint32_t *)(share + at) = 0;
}

/* A raw superblock's elements: those of the share to 'share', the others to the slot if 'stages'. */
template <int SPLIT, bool FLOATS>
static __device__ __forceinline__ void enc_place_raw(const struct enc_thread *t,
                                                     const struct enc_coded<SPLIT> *c,
                                                     uint8_t *share, bool stages)
{
    uint32_t first = c->z.share, end = t->sh->src.m * enc_fields[SPLIT].size;
    SIMT_UNROLL
    for (int h = 0; h < ENC_QUARTERS; h++) {
        uint32_t words[ENC_WORDS(SPLIT)];
        uint32_t at = enc_first(t, (uint32_t)h) * enc_fields[SPLIT].size;
        enc_again<SPLIT, FLOATS>(t, c, h, words);
        SIMT_UNROLL
        for (uint32_t k = 0; k < ENC_WORDS(SPLIT); k++) {
            uint32_t to = at + 4 * k;
            if (share && to < first)
                *(uint32_t *)(share + to) = words[k];
            if (stages && to >= first && to < end)
                *(uint32_t *)(t->sh->slot + t->sh->nbitmap + to - first) = words[k];
        }
    }
    if (share)
        enc_clear(t, share, (first + 3) & ~3u, (uint32_t)zipccl_align64(first));
}

/* Bit-planes of four quarters: halves of words as tier 1's. */
template <int SPLIT, bool FLOATS>
static __device__ __forceinline__ void
enc_place_bit_planes(const struct enc_thread *t, const struct enc_coded<SPLIT> *c, uint32_t at,
                     bool there, uint8_t *out, uint32_t nbytes)
{
    SIMT_UNROLL
    for (int k = 0; k < (SPLIT == ENC_ANY ? ZIPCCL_MAX_PLANES : enc_fields[ENC_AS(SPLIT)].nplanes);
         k++) {
        uint32_t plane = 0;
        if (!(c->z.planes >> k & 1))
            continue;
        ENC_QUARTERLY
        for (int h = 0; h < ENC_QUARTERS; h++) {
            uint32_t words[ENC_WORDS(SPLIT)];
            uint32_t inside = bits_below((int)t->sh->src.m - (int)enc_first(t, (uint32_t)h));
            enc_again<SPLIT, FLOATS>(t, c, h, words);
            plane |= (bytes_plane(enc_bits<SPLIT>(words, 0), enc_bits<SPLIT>(words, 1), k) & inside)
                     << 8 * h;
        }
        plane = quad_transpose(plane, t->lane);
        if (there)
            *(uint32_t *)(out + at) = plane;
        out += nbytes;
    }
}

/* The share of a superblock coded by tiers: low bytes, planes, words of tier 1, zeros between. */
template <int SPLIT, bool FLOATS>
static __device__ __forceinline__ void
enc_place_tiers(const struct enc_thread *t, const struct enc_coded<SPLIT> *c, uint8_t *share)
{
    const struct zipccl_fields fields = enc_fields_of<SPLIT>(t->sh);
    uint32_t rest = t->sh->src.m, width = enc_programs[c->z.program].tier[0].width;
    int nplanes = __popc(c->z.planes);
    struct zipccl_share at = zipccl_share_of(&fields, rest, nplanes, (int)width);
    uint8_t *planes = share + at.planes;
    if (fields.low_bytes) {
        ENC_QUARTERLY
        for (int h = 0; h < ENC_QUARTERS; h++) {
            uint32_t first = enc_first(t, (uint32_t)h), words[ENC_WORDS(SPLIT)];
            enc_again<SPLIT, FLOATS>(t, c, h, words);
            if (first >= at.planes)
                continue;
            /* Elements beyond the last one are 0, and so are these bytes. */
            *(uint2 *)(share + first) =
                make_uint2(enc_low<SPLIT>(words, 0), enc_low<SPLIT>(words, 1));
            if constexpr (ENC_AS(SPLIT) == ZIPCCL_SPLIT_FP32) {
                SIMT_UNROLL
                for (int k = 0; k < 2; k++)
                    if (fields.byte_planes && (c->z.planes >> k & 1))
                        *(uint2 *)(planes + (k == 1 && nplanes == 2 ? at.plane_nbytes : 0) +
                                   first) =
                            make_uint2(enc_byte_plane(words, 0, k), enc_byte_plane(words, 1, k));
            }
        }
    }
    uint32_t group = t->warp * 16 + (t->lane & 3) * 4 + (t->lane >> 3), half = t->lane >> 2 & 1;
    bool there = group < zipccl_groups(rest);
    if (!fields.byte_planes && fields.nplanes > 0)
        enc_place_bit_planes<SPLIT, FLOATS>(t, c, 8 * group + 4 * half, there, planes,
                                            (uint32_t)at.plane_nbytes);
    if (width == 1) {
        if (there)
            *(uint32_t *)(share + at.tier1 + 8 * group + 4 * half) = c->tier1[0];
    } else {
        /* The halves of a word come together. */
        uint32_t other = __shfl_xor_sync(ALL_LANES, half ? c->tier1[0] : c->tier1[1], 4);
        if (there)
            *(uint2 *)(share + at.tier1 + 16 * group + 8 * half) =
                half ? make_uint2(other, c->tier1[1]) : make_uint2(c->tier1[0], other);
    }
    enc_clear(t, share, (uint32_t)(at.planes + (uint32_t)nplanes * at.plane_nbytes),
              (uint32_t)at.tier1);
    enc_clear(t, share, (uint32_t)at.end, (uint32_t)zipccl_align64(at.end));
}

#endif
