/*
 * encode_ratio_ans.cuh - program ANS: a superblock's symbols, its stream and its parts
 *
 * As zipccl_ans_encode() writes them.  All warps make symbols, then one runs the 64 states, two a
 * lane, from the last group of elements to the first: a step a group.  The stream takes the place of
 * the symbols that are done.  Nothing is written to the message before it is known whether this is
 * the shorter way.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_ENCODE_RATIO_ANS_CUH
#define ZIPCCL_GPU_ENCODE_RATIO_ANS_CUH

#include "gpu/ans_laws.cuh"
#include "gpu/encode_ratio_words.cuh"

ZIPCCL_TABLE struct zipccl_tier ratio_tiers[ZIPCCL_ANS_TIERS] = {
#include "core/codec/ans_tiers.inc"
};

/* In shared memory. */
struct ratio_ans {
    /* What coding a symbol needs: its frequency, its start above, and ceil(2^24 / frequency). */
    uint2 steps[ZIPCCL_ANS_SYMBOLS];
    uint8_t symbols[ZIPCCL_SUPERBLOCK]; /* then the stream, from the end on */
    uint8_t states[ZIPCCL_ANS_STATE_BYTES];
    uint8_t tables[ZIPCCL_SUBBLOCKS]; /* as the directory entry has them */
    uint32_t law;                     /* the same */
    uint32_t nstream;
    uint32_t escapes[ZIPCCL_ANS_TIERS + 1]; /* out of the table, then out of each tier */
    struct enc_sizes sizes;
    /* How it was chosen; here it takes no registers. */
    bool gaussian;
    uint32_t tier_bits; /* what a Gaussian's tiers are thought to take an exponent, in 1/256 bit */
};

/* 0xff in each byte whose bit 7 is set in 'x'. */
static __device__ __forceinline__ uint32_t ratio_bytes(uint32_t x)
{
    return (x >> 7 & 0x01010101u) * 255u;
}

/* Symbols of four elements, and what those that escape are coded as; bytes of those are 0xff. */
static __device__ __forceinline__ uint32_t ratio_symbols_of(const uint32_t *words, int q,
                                                            uint32_t top, uint32_t octaves,
                                                            uint32_t lead, uint32_t *symbols,
                                                            uint32_t *far)
{
    uint32_t d = bytes_sub(bytes_of(top), enc_exponents<ENC_ANY>(words, q));
    uint32_t low = lead == 7 ? enc_low<ENC_ANY>(words, q) : enc_bits<ENC_ANY>(words, q);
    uint32_t outside = ratio_bytes(((d & 0x7f7f7f7fu) + bytes_of(128 - octaves)) | d);
    *symbols =
        (outside & bytes_of(ZIPCCL_ANS_ESCAPE)) | (d & ~outside) << 1 | (low >> lead & 0x01010101u);
    *far = bytes_sub(d, ~ratio_bytes(d) & bytes_of(octaves));
    return outside;
}

/* Which bit of a low byte, or of the planes' bits, is the leading one of the mantissa. */
static __device__ __forceinline__ uint32_t ratio_lead(const struct zipccl_fields *fields)
{
    return fields->low_bytes ? 7 : fields->nplanes - 1u;
}

/*
 * Symbols of the whole superblock to ans->symbols, in order those far values that escape to sh->d.
 * Returns which planes there are.  Every thread calls it; ends with a barrier.
 */
static __device__ __forceinline__ uint32_t ratio_symbols(struct enc_thread *t,
                                                         struct ratio_ans *ans)
{
    struct enc_shared *sh = t->sh;
    uint32_t table = ans->tables[t->warp], top = ((ans->law & 255) + (table >> 3)) & 255;
    uint32_t octaves = ans_laws[zipccl_ans_law_of((int)(ans->law >> 8), (int)(table & 7))].octaves;
    uint32_t lead = ratio_lead(&sh->fields), masks = 0, any = 0, places[ENC_QUARTERS], deeper = 0;
    uint32_t words[ENC_WORDS(ENC_ANY)], symbols[2], far[2], outside[2];
    ENC_ROLLED
    for (uint32_t h = 0; h < ENC_QUARTERS; h++) {
        uint32_t first = enc_first(t, h);
        enc_load<ENC_ANY, false>(&sh->src, first, words);
        SIMT_UNROLL
        for (int q = 0; q < 2; q++)
            outside[q] = ratio_symbols_of(words, q, top, octaves, lead, &symbols[q], &far[q]);
        *(uint2 *)(ans->symbols + first) = make_uint2(symbols[0], symbols[1]);
        masks |= (bytes_plane(outside[0], outside[1], 7) & bits_below((int)sh->src.m - (int)first))
                 << 8 * h;
        any |= enc_plane_bits<ENC_ANY>(words);
    }
    any = __reduce_or_sync(ALL_LANES, any);
    if (t->lane == 0)
        sh->any[t->warp] = any;
    uint32_t reach = enc_places(t, masks, places);
    uint64_t starts =
        (uint64_t)(places[0] | places[1] << 16) | (uint64_t)(places[2] | places[3] << 16) << 32;
    ENC_ROLLED
    for (uint32_t h = 0; h < ENC_QUARTERS; h++) {
        uint32_t mask = masks >> 8 * h & 0xffu, planes[3], left;
        if (mask == 0)
            continue;
        enc_load<ENC_ANY, false>(&sh->src, enc_first(t, h), words);
        SIMT_UNROLL
        for (int q = 0; q < 2; q++)
            (void)ratio_symbols_of(words, q, top, octaves, lead, &symbols[q], &far[q]);
        enc_append(far[0], far[1], mask, sh->d + (starts >> 16 * h & 0xffff));
        left = enc_codes_of_tier(&ratio_tiers[0], far[0], far[1], planes) & mask;
        deeper += (uint32_t)__popc(left);
        left &= enc_codes_of_tier(&ratio_tiers[1], far[0], far[1], planes);
        deeper += (uint32_t)__popc(left) << 16;
    }
    (void)enc_scan(t, 1, deeper, &deeper);
    if (t->warp == 0 && t->lane == 0) {
        ans->escapes[0] = reach;
        ans->escapes[1] = deeper & 0xffff;
        ans->escapes[2] = deeper >> 16;
    }
    any = t->lane < ZIPCCL_SUBBLOCKS ? sh->any[t->lane] : 0;
    any = enc_planes(sh->fields.byte_planes, __reduce_or_sync(ALL_LANES, any));
    return any & ((1u << zipccl_ans_planes(&sh->fields)) - 1);
}

/* Bytes i to i + 3 of the parts, which lie as 'at' says; i a multiple of 4. */
static __device__ __forceinline__ uint32_t ratio_part(const struct enc_shared *sh,
                                                      const struct zipccl_share *at,
                                                      uint32_t planes, uint32_t i)
{
    uint64_t bits = 0;
    if (i < at->planes) {
        uint32_t first = 8 * i / 7;
        SIMT_UNROLL
        for (uint32_t k = 0; k < 6; k++) {
            uint32_t w = ratio_staged(sh, first + k);
            bits |= (uint64_t)((w >> 15 & 0x7eu) | w >> 31) << 7 * k;
        }
        return (uint32_t)(bits >> 8 * i % 7);
    }
    uint32_t plane_nbytes = (uint32_t)at->plane_nbytes, k = 0;
    i -= (uint32_t)at->planes;
    /* The plane in question is the lowest of those that are left. */
    for (; i >= plane_nbytes && planes; i -= plane_nbytes)
        planes &= planes - 1;
    if (planes == 0)
        return 0;
    k = (uint32_t)__ffs((int)planes) - 1;
    if (sh->fields.byte_planes) {
        SIMT_UNROLL
        for (uint32_t j = 0; j < 4; j++)
            bits |= (ratio_staged(sh, i + j) >> 8 * k & 0xffu) << 8 * j;
    } else {
        ENC_ROLLED
        for (uint32_t j = 0; j < 32; j++)
            bits |= (ratio_staged(sh, 8 * i + j) >> k & 1u) << j;
    }
    return (uint32_t)bits;
}

/* Steps of law 'number', by one warp. */
static __device__ __forceinline__ void ratio_steps(struct ratio_ans *ans, int number, uint32_t lane)
{
    const struct zipccl_ans_law *law = &ans_laws[number];
    uint32_t f =
        lane < ZIPCCL_ANS_ESCAPE ? law->frequency[lane] : law->escape[lane - ZIPCCL_ANS_ESCAPE];
    uint32_t start = warp_scan(f, lane) - f;
    __syncwarp();
    ans->steps[lane] = make_uint2(f | start << 8, f ? ((1u << 24) + f - 1) / f : 0);
    __syncwarp();
}

/* State 'x' after a symbol, whose frequency is at least what lies above 8 bits of it. */
static __device__ __forceinline__ uint32_t ratio_step(uint2 step, uint32_t x)
{
    uint32_t f = step.x & 255, q = (uint32_t)((uint64_t)x * step.y >> 24);
    return x + (step.x >> 8) + q * (256 - f);
}

/*
 * Code the symbols from the last group to the first; the states start as ans->states says, and end there.
 * Returns the bytes of the stream.  One warp calls it.
 */
static __device__ __forceinline__ uint32_t ratio_stream(struct ratio_ans *ans, uint32_t m,
                                                        uint32_t lane)
{
    uint32_t x0 = 256u | ans->states[lane], x1 = 256u | ans->states[lane + 32], end = m;
    uint32_t before = (1u << lane) - 1;
    int law = -1;
    ENC_ROLLED
    for (uint32_t g = (uint32_t)zipccl_groups(m); g-- > 0;) {
        uint32_t j = ZIPCCL_GROUP * g + lane, table = ans->tables[j / ZIPCCL_SUBBLOCK];
        int named = zipccl_ans_law_of((int)(ans->law >> 8), (int)(table & 7));
        if (named != law)
            ratio_steps(ans, law = named, lane);
        bool here0 = j < m, here1 = j + 32 < m;
        uint2 step0 = ans->steps[ans->symbols[j]], step1 = ans->steps[ans->symbols[j + 32]];
        bool give0 = here0 && x0 >> 8 >= (step0.x & 255);
        bool give1 = here1 && x1 >> 8 >= (step1.x & 255);
        uint32_t given0 = __ballot_sync(ALL_LANES, give0);
        uint32_t given1 = __ballot_sync(ALL_LANES, give1);
        uint32_t n0 = (uint32_t)__popc(given0);
        end -= n0 + (uint32_t)__popc(given1);
        /* The stream takes the place of symbols that all lanes have read: at most a byte each. */
        __syncwarp();
        if (give0) {
            ans->symbols[end + (uint32_t)__popc(given0 & before)] = (uint8_t)x0;
            x0 >>= 8;
        }
        if (give1) {
            ans->symbols[end + n0 + (uint32_t)__popc(given1 & before)] = (uint8_t)x1;
            x1 >>= 8;
        }
        x0 = here0 ? ratio_step(step0, x0) : x0;
        x1 = here1 ? ratio_step(step1, x1) : x1;
    }
    ans->states[lane] = (uint8_t)x0;
    ans->states[lane + 32] = (uint8_t)x1;
    ans->states[lane + 64] = (uint8_t)(x0 >> 8);
    ans->states[lane + 96] = (uint8_t)(x1 >> 8);
    return m - end;
}

/* Bytes of the stream's end and of the tiers. */
static __device__ __forceinline__ uint32_t ratio_variable(const struct ratio_ans *ans)
{
    uint32_t nbytes = ZIPCCL_ANS_STATE_BYTES + ans->nstream + ans->escapes[ZIPCCL_ANS_TIERS];
    SIMT_UNROLL
    for (int k = 0; k < ZIPCCL_ANS_TIERS; k++)
        nbytes += (uint32_t)zipccl_plane_bytes(ans->escapes[k], ratio_tiers[k].width);
    return nbytes;
}

/*
 * Code sh->src by program ANS with the tables of 'ans': states, stream and far values stay in shared
 * memory, ans->sizes tells how much it is, but not the base.  False if raw is no longer.  Every thread calls
 * it, after a barrier since sh->d was used; ends with one.
 */
static __device__ __forceinline__ bool ratio_code_ans(struct enc_thread *t, struct ratio_ans *ans)
{
    struct enc_shared *sh = t->sh;
    uint32_t thread = 32 * t->warp + t->lane, planes = ratio_symbols(t, ans);
    struct zipccl_share at = zipccl_ans_share_of(&sh->fields, sh->src.m, __popc(planes));
    uint32_t carried = (uint32_t)zipccl_ans_carried(&at);
    if (thread < ZIPCCL_ANS_LANES / 4) {
        uint32_t part = 4 * thread < carried ? ratio_part(sh, &at, planes, 4 * thread) : 0;
        *(uint32_t *)(ans->states + 4 * thread) = part;
    }
    __syncthreads();
    if (t->warp == 0) {
        uint32_t nstream = ratio_stream(ans, sh->src.m, t->lane);
        if (t->lane == 0) {
            ans->nstream = nstream;
            ans->sizes =
                (struct enc_sizes){ZIPCCL_PROGRAM_ANS, planes, 0, (uint32_t)at.end - carried,
                                   sh->nbitmap + ratio_variable(ans)};
        }
    }
    __syncthreads();
    return ans->sizes.share + ans->sizes.variable - sh->nbitmap < sh->src.m * sh->fields.size;
}

/*
 * Write what ratio_code_ans() has coded to the slot, and the entry's numbers to sh->escapes.  Every
 * thread calls it.
 */
static __device__ __forceinline__ void ratio_write_ans(struct enc_thread *t, struct ratio_ans *ans)
{
    struct enc_shared *sh = t->sh;
    uint32_t thread = 32 * t->warp + t->lane, reach = ans->escapes[0];
    uint8_t *out = sh->slot + sh->nbitmap;
    enc_copy(out, ans->states, ZIPCCL_ANS_STATE_BYTES, thread);
    out += ZIPCCL_ANS_STATE_BYTES;
    enc_copy(out, ans->symbols + sh->src.m - ans->nstream, ans->nstream, thread);
    out += ans->nstream;
    ENC_ROLLED
    for (int k = 0; k < ZIPCCL_ANS_TIERS; k++) {
        uint32_t nbytes = (uint32_t)zipccl_plane_bytes(reach, ratio_tiers[k].width);
        reach = enc_sift(t, reach, &ratio_tiers[k], out);
        out += nbytes;
    }
    for (uint32_t i = thread; i < reach; i += ENC_THREADS)
        out[i] = sh->d[i];
    if (thread == 0) {
        SIMT_UNROLL
        for (int k = 0; k <= ZIPCCL_ANS_TIERS; k++)
            sh->escapes[k] = ans->escapes[k];
        sh->escapes[ZIPCCL_ANS_AT_LAW] = ans->law;
        sh->escapes[ZIPCCL_ANS_AT_STREAM] = ans->nstream;
    }
}

/* The share of a superblock by program ANS: the parts that the states do not carry. */
static __device__ __forceinline__ void ratio_place_ans(const struct enc_thread *t,
                                                       const struct enc_sizes *z, uint8_t *share)
{
    const struct enc_shared *sh = t->sh;
    struct zipccl_share at = zipccl_ans_share_of(&sh->fields, sh->src.m, __popc(z->planes));
    uint32_t carried = (uint32_t)zipccl_ans_carried(&at);
    uint32_t end = (uint32_t)zipccl_align64(z->share);
    ENC_ROLLED
    for (uint32_t i = 4 * (32 * t->warp + t->lane); i < end; i += 4 * ENC_THREADS)
        *(uint32_t *)(share + i) = i < z->share ? ratio_part(sh, &at, z->planes, carried + i) : 0;
}

#endif
