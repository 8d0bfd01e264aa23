/*
 * decode_elements.cuh - elements from what a block has prepared, four at a time or one by one
 *
 * SPLIT is the type's enum zipccl_split, a constant wherever these functions are used.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_DECODE_ELEMENTS_CUH
#define ZIPCCL_GPU_DECODE_ELEMENTS_CUH

#include "gpu/decode_ans.cuh"

/* Bytes of an element. */
template <int SPLIT> struct element {
    static const unsigned size = SPLIT == ZIPCCL_SPLIT_FP32                                 ? 4
                                 : SPLIT == ZIPCCL_SPLIT_BF16 || SPLIT == ZIPCCL_SPLIT_FP16 ? 2
                                                                                            : 1;
    static const bool low_bytes = size > 1;
    static const int nplanes = SPLIT == ZIPCCL_SPLIT_BF16   ? 0
                               : SPLIT == ZIPCCL_SPLIT_FP32 ? 2
                               : SPLIT == ZIPCCL_SPLIT_E4M3 ? 4
                                                            : 3;
    /* Of types without low bytes: the plane that program ANS codes. */
    static const int lead = nplanes > 0 ? nplanes - 1 : 0;
};

/* What the rest needs, by its program. */
static __device__ inline bool open_rest(struct decode_shared *sh,
                                        const struct zipccl_fields *fields, struct decode_view *v)
{
    int nplanes = __popc(v->planes);
    struct zipccl_share at;
    if (v->id == ZIPCCL_PROGRAM_RAW) {
        v->raw_share = (unsigned)zipccl_raw_share(fields, v->rest);
        return true;
    }
    if (v->id == ZIPCCL_PROGRAM_ANS) {
        at = zipccl_ans_share_of(fields, v->rest, nplanes);
        v->ncarried = (unsigned)zipccl_ans_carried(&at);
    } else {
        v->width = decode_programs[v->id].tier[0].width;
        at = zipccl_share_of(fields, v->rest, nplanes, (int)v->width);
    }
    v->planes_at = (unsigned)at.planes;
    v->plane_nbytes = (unsigned)at.plane_nbytes;
    return v->id == ZIPCCL_PROGRAM_ANS ? open_ans(sh, v) : open_tiers(sh, v, (unsigned)at.tier1);
}

/* The view of a superblock whose entry is in sh; false if its bytes and the entry disagree. */
static __device__ inline bool open_superblock(struct decode_shared *sh,
                                              const struct zipccl_fields *fields,
                                              const uint8_t *wire, unsigned m,
                                              struct decode_view *v)
{
    const struct decode_view none = {};
    unsigned program = sh->entry[0] & 255;
    struct decode_shown shown = {0, 0};
    *v = none;
    v->id = program & ~(unsigned)ZIPCCL_PROGRAM_ZEROS;
    v->zeros = program & ZIPCCL_PROGRAM_ZEROS;
    v->m = m;
    v->share = wire + sh->fixed;
    v->variable = wire + sh->variable;
    v->rest = entry_u16(sh, 6);
    v->planes = sh->entry[0] >> 8 & 255;
    if (v->id == ZIPCCL_PROGRAM_CONSTANT)
        return true;
    unsigned keep = v->id != ZIPCCL_PROGRAM_RAW ? entry_escapes(sh, 0) : 0;
    v->variable = stage(sh, v->variable, sh->nvariable, keep, &v->staged);
    if (v->zeros && !open_bitmap(sh, v, &shown))
        return false;
    if (!open_rest(sh, fields, v))
        return false;
    if (v->zeros)
        keep_bitmap(sh, v->id, &shown);
    return true;
}

/* Where plane k starts in the parts; it is there. */
static __device__ inline unsigned plane_at(const struct decode_view *v, int k)
{
    return v->planes_at + __popc(v->planes & ((1u << k) - 1)) * v->plane_nbytes;
}

/* An element from its exponent, low byte, and its bits of the planes. */
template <int SPLIT>
static __device__ inline uint32_t put_together(uint32_t e, uint32_t low, uint32_t bits)
{
    switch (SPLIT) {
    case ZIPCCL_SPLIT_BF16: return (e << 7 & 0x7f80) | low >> 1 | (low & 1) << 15;
    case ZIPCCL_SPLIT_FP16: return (e & 31) << 10 | (low & 0xfe) << 2 | (low & 1) << 15 | bits;
    case ZIPCCL_SPLIT_FP32: return (e & 255) << 23 | (low >> 1) << 16 | (low & 1) << 31 | bits;
    case ZIPCCL_SPLIT_E4M3: return (e & 15) << 3 | bits >> 1 | (bits & 1) << 7;
    default: return (e & 31) << 2 | bits >> 1 | (bits & 1) << 7;
    }
}

/* Element r's bits of the planes that are there, one bit or byte a plane. */
template <int SPLIT>
static __device__ inline uint32_t plane_bits(const struct decode_shared *sh,
                                             const struct decode_view *v, unsigned r)
{
    uint32_t bits = 0;
    SIMT_UNROLL
    for (int k = 0; k < element<SPLIT>::nplanes; k++) {
        if (!(v->planes >> k & 1))
            continue;
        bool bytes = SPLIT == ZIPCCL_SPLIT_FP32;
        unsigned at = plane_at(v, k) + (bytes ? r : r / 8);
        uint32_t x = v->id == ZIPCCL_PROGRAM_ANS ? ans_part(sh, v, at) : v->share[at];
        bits |= bytes ? x << 8 * k : (x >> r % 8 & 1) << k;
    }
    return bits;
}

/* Element r of the rest of a raw superblock. */
template <int SPLIT>
static __device__ inline uint32_t raw_element(const struct decode_view *v, unsigned r)
{
    const unsigned size = element<SPLIT>::size, at = r * size;
    const uint8_t *p = at < v->raw_share ? v->share + at : v->variable + (at - v->raw_share);
    uint32_t x = 0;
    SIMT_UNROLL
    for (unsigned k = 0; k < size; k++)
        x |= (uint32_t)p[k] << 8 * k;
    return x;
}

/* Element r of the rest, of any program. */
template <int SPLIT>
static __device__ inline uint32_t rest_element(const struct decode_shared *sh,
                                               const struct decode_view *v, unsigned r)
{
    if (v->id == ZIPCCL_PROGRAM_RAW)
        return raw_element<SPLIT>(v, r);
    uint32_t e, low = 0, bits = plane_bits<SPLIT>(sh, v, r);
    if (v->id == ZIPCCL_PROGRAM_ANS) {
        e = ans_exponent(sh, r);
        if (element<SPLIT>::low_bytes)
            low = ans_low(sh, v, r) | e >> 8 << 7;
        else
            bits |= e >> 8 << element<SPLIT>::lead;
        e &= 255;
    } else {
        uint32_t d = quad_of(sh, r / 4, v->width, 0x03020100, 0x07060504, sh->a) >> 8 * (r % 4);
        e = (entry_base(sh, r / ZIPCCL_SUBBLOCK) - d) & 255;
        if (element<SPLIT>::low_bytes)
            low = v->share[r];
    }
    return put_together<SPLIT>(e, low, bits);
}

/* Element j of the superblock. */
template <int SPLIT>
static __device__ inline uint32_t any_element(struct decode_shared *sh, const struct decode_view *v,
                                              unsigned j)
{
    if (v->id == ZIPCCL_PROGRAM_CONSTANT)
        return element<SPLIT>::size == 4
                   ? sh->entry[4]
                   : sh->entry[4] & ((1u << 8 * element<SPLIT>::size % 32) - 1);
    if (v->zeros) {
        uint32_t word = shown_words(sh, v->id)[j / 32];
        if (!(word >> j % 32 & 1))
            return 0;
        j = shown_before(sh, v->id)[j / 32] + __popc(word & ((1u << j % 32) - 1));
    }
    return rest_element<SPLIT>(sh, v, j);
}

/* Byte by byte, modulo 256. */
static __device__ inline uint32_t subtract_bytes(uint32_t x, uint32_t y)
{
    const uint32_t top = 0x80808080u;
    return ((x | top) - (y & ~top)) ^ ((x ^ ~y) & top);
}

/* Four exponents and low bytes, as upper halves of fp32: those of elements 0 and 1, and 2 and 3. */
static __device__ inline void join_pairs(uint32_t e, uint32_t low, uint32_t *x)
{
    uint32_t x0 = __byte_perm(low, e, 0x5140), x1 = __byte_perm(low, e, 0x7362);
    x[0] = (x0 >> 1 & 0x7fff7fff) | (x0 << 15 & 0x80008000);
    x[1] = (x1 >> 1 & 0x7fff7fff) | (x1 << 15 & 0x80008000);
}

/* Two elements of fp16 from bytes lower and lower + 1 of each. */
static __device__ inline uint32_t join_fp16(uint32_t e, uint32_t low, uint32_t bits,
                                            unsigned selector)
{
    e = __byte_perm(e, 0, selector);
    low = __byte_perm(low, 0, selector);
    return (e & 0x001f001f) << 10 | (low & 0x00fe00fe) << 2 | (low & 0x00010001) << 15 |
           __byte_perm(bits, 0, selector);
}

/* Low bytes of N quads, from quad N * u on; 0 for types without. */
template <int SPLIT, unsigned N>
static __device__ inline void load_lows(const struct decode_view *v, unsigned u, uint32_t *low)
{
    SIMT_UNROLL
    for (unsigned k = 0; k < N; k++)
        low[k] = 0;
    if constexpr (element<SPLIT>::low_bytes && N == 1) {
        low[0] = ((const uint32_t *)v->share)[u];
    } else if constexpr (element<SPLIT>::low_bytes) {
        uint2 both = ((const uint2 *)v->share)[u];
        low[0] = both.x;
        low[1] = both.y;
    }
}

/*
 * Elements 4 q to 4 q + 3 of a superblock of programs 1 to 7 without a bitmap, as they lie in memory:
 * x [element size], from their low bytes.  May be called where some of them are beyond the end.
 */
template <int SPLIT>
static __device__ inline void quad_elements(const struct decode_shared *sh,
                                            const struct decode_view *v, unsigned q,
                                            [[maybe_unused]] uint32_t low, uint32_t *x)
{
    uint32_t d = quad_of(sh, q, v->width, 0x03020100, 0x07060504, sh->a);
    [[maybe_unused]] uint32_t bits = 0;
    uint32_t e = subtract_bytes(entry_base(sh, 4 * q / ZIPCCL_SUBBLOCK) * 0x01010101u, d);
    if constexpr (SPLIT == ZIPCCL_SPLIT_BF16) {
        join_pairs(e, low, x);
    } else if constexpr (SPLIT == ZIPCCL_SPLIT_FP32) {
        uint32_t y[2], plane[2] = {0, 0};
        join_pairs(e, low, y);
        SIMT_UNROLL
        for (int k = 0; k < 2; k++)
            if (v->planes >> k & 1)
                plane[k] = ((const uint32_t *)(v->share + plane_at(v, k)))[q];
        uint32_t z0 = __byte_perm(plane[0], plane[1], 0x5140);
        uint32_t z1 = __byte_perm(plane[0], plane[1], 0x7362);
        x[0] = __byte_perm(z0, y[0], 0x5410);
        x[1] = __byte_perm(z0, y[0], 0x7632);
        x[2] = __byte_perm(z1, y[1], 0x5410);
        x[3] = __byte_perm(z1, y[1], 0x7632);
    } else {
        SIMT_UNROLL
        for (int k = 0; k < element<SPLIT>::nplanes; k++)
            if (v->planes >> k & 1)
                bits |= spread_bytes(v->share[plane_at(v, k) + q / 2] >> 4 * (q % 2) & 15) << k;
        if constexpr (SPLIT == ZIPCCL_SPLIT_FP16) {
            x[0] = join_fp16(e, low, bits, 0x4140);
            x[1] = join_fp16(e, low, bits, 0x4342);
        } else {
            uint32_t sign = (bits & 0x01010101) << 7, mantissa = bits >> 1 & 0x07070707;
            e = SPLIT == ZIPCCL_SPLIT_E4M3 ? (e & 0x0f0f0f0f) << 3 : (e & 0x1f1f1f1f) << 2;
            x[0] = sign | e | mantissa;
        }
    }
}

/* An element as a float; bf16, fp16 and fp32 only. */
template <int SPLIT> static __device__ inline float float_of(uint32_t x)
{
    return SPLIT == ZIPCCL_SPLIT_BF16   ? zipccl_bf16_to_float((uint16_t)x)
           : SPLIT == ZIPCCL_SPLIT_FP16 ? zipccl_fp16_to_float((uint16_t)x)
                                        : zipccl_float_from_bits(x);
}

#endif
