/*
 * reduce.h - element-wise reductions with one rounding, and the conversions they need
 *
 * What a native reduction of the memory transport (and the reference of every other) computes:
 * contributions are taken in rank order, small floats accumulate in fp32 and are rounded once at
 * the end.  It is not a transport and knows no ranks, only sources in order.
 * Conversions are our own: round to nearest even, subnormals kept, no flush to zero.
 * Source: original.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_REDUCE_H
#define ZIPCCL_CORE_REDUCE_H

#include "core/dtype.h"
#include "core/hostdev.h"
#include "core/status.h"

#include <stdint.h>
#include <string.h>

/* Quiet NaNs that a reduction stores for every NaN result: sign 0, top mantissa bit alone. */
#define ZIPCCL_BF16_NAN UINT16_C(0x7fc0)
#define ZIPCCL_FP16_NAN UINT16_C(0x7e00)
#define ZIPCCL_FP32_NAN UINT32_C(0x7fc00000)
#define ZIPCCL_FP64_NAN UINT64_C(0x7ff8000000000000)

static ZIPCCL_HOSTDEV inline float zipccl_float_from_bits(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static ZIPCCL_HOSTDEV inline uint32_t zipccl_float_to_bits(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Exact; a NaN keeps its payload. */
static ZIPCCL_HOSTDEV inline float zipccl_bf16_to_float(uint16_t x)
{
    return zipccl_float_from_bits((uint32_t)x << 16);
}

/* Round to nearest even; every NaN becomes ZIPCCL_BF16_NAN. */
static ZIPCCL_HOSTDEV inline uint16_t zipccl_bf16_from_float(float x)
{
    uint32_t bits = zipccl_float_to_bits(x);

    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return ZIPCCL_BF16_NAN;
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/* Exact; a NaN keeps its payload. */
static ZIPCCL_HOSTDEV inline float zipccl_fp16_to_float(uint16_t x)
{
    uint32_t sign = (uint32_t)(x & 0x8000u) << 16;
    uint32_t exponent = (x >> 10) & 0x1fu;
    uint32_t mantissa = x & 0x3ffu;

    if (exponent == 0x1f)
        return zipccl_float_from_bits(sign | 0x7f800000u | mantissa << 13);
    if (exponent != 0)
        return zipccl_float_from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
    /* Zero or subnormal: mantissa * 2^-24, exact in fp32. */
    return zipccl_float_from_bits(sign | zipccl_float_to_bits((float)mantissa * 0x1p-24f));
}

/* Round to nearest even; every NaN becomes ZIPCCL_FP16_NAN. */
static ZIPCCL_HOSTDEV inline uint16_t zipccl_fp16_from_float(float x)
{
    uint32_t bits = zipccl_float_to_bits(x);
    uint32_t sign = (bits >> 16) & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t half, shift, mantissa, rest, middle;

    if (magnitude > 0x7f800000u)
        return ZIPCCL_FP16_NAN;
    if (magnitude >= 0x47800000u) /* 65536 and above, infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude >= 0x38800000u) { /* normal; a carry out of the mantissa may reach infinity */
        half = (magnitude - 0x38000000u) >> 13;
        rest = magnitude & 0x1fffu;
        half += rest > 0x1000u || (rest == 0x1000u && (half & 1u));
        return (uint16_t)(sign | half);
    }
    if (magnitude < 0x33000000u) /* below half of the smallest subnormal */
        return (uint16_t)sign;
    shift = 126 - (magnitude >> 23); /* 14 to 24 */
    mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    half = mantissa >> shift;
    rest = mantissa & ((1u << shift) - 1);
    middle = 1u << (shift - 1);
    half += rest > middle || (rest == middle && (half & 1u));
    return (uint16_t)(sign | half);
}

/* True if zipccl_reduce() serves the pair: all types but fp8, every operator. */
bool zipccl_reduce_serves(enum zipccl_dtype dtype, enum zipccl_redop redop);

/*
 * Reduce 'nsources' arrays element by element, in the order given.
 *
 * sources  [nsources] each [n] elements, aligned to the element
 * dst      [n] elements; may be one of the sources, not overlap one in another way
 *
 * The accumulator starts as the first source's value.  bf16 and fp16 accumulate in fp32 and round
 * once, fp32 and fp64 round at each step, integers wrap.  avg divides the sum once, before the
 * last rounding (integers: truncating).  A NaN in any source makes the result NaN, for min and max
 * too; a NaN result is the canonical quiet NaN.  min and max keep the earlier of two equal values
 * (-0 and +0 are equal).  One source: the bits are copied.
 *
 * Cost: one pass, no allocation.  Threads: reentrant.
 * ZIPCCL_ERR_UNSUPPORTED if zipccl_reduce_serves() says no; ZIPCCL_ERR_ARG without a source.
 */
zipccl_status zipccl_reduce(enum zipccl_dtype dtype, enum zipccl_redop redop,
                            const void *const *sources, size_t nsources, size_t n, void *dst);

/*
 * Add 'n' elements of 'x' to the fp32 sums in 'acc', or start the sums with them if 'first'.
 *
 * dtype  bf16, fp16 or fp32
 * x      [n] elements, aligned to the element
 */
void zipccl_accumulate(enum zipccl_dtype dtype, float *acc, const void *x, size_t n, bool first);

/*
 * Round 'n' sums to 'dtype', after one division by 'divisor' if that is not 1; as zipccl_reduce().
 *
 * dst  [n] elements; may be anything but 'acc'
 */
void zipccl_round_sums(enum zipccl_dtype dtype, const float *acc, size_t n, uint32_t divisor,
                       void *dst);

#endif
