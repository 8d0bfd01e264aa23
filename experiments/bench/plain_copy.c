/*
 * plain_copy.c - non-temporal and string copies, and clflushopt
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/bench/plain_copy.h"

#include "core/codec.h"

#include <stdint.h>
#include <string.h>

#ifdef __x86_64__

#include <cpuid.h>
#include <immintrin.h>

/* Bytes up to where 'dst' is aligned for stores of 64. */
static size_t head_of(const void *dst, size_t nbytes)
{
    size_t head = (size_t)(-(uintptr_t)dst & 63);
    return head < nbytes ? head : nbytes;
}

static void copy_sse2(void *dst, const void *src, size_t nbytes)
{
    size_t i = head_of(dst, nbytes);
    memcpy(dst, src, i);
    for (; i + 64 <= nbytes; i += 64) {
        const __m128i *in = (const __m128i *)((const char *)src + i);
        __m128i *out = (__m128i *)((char *)dst + i);
        __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1);
        __m128i c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);
        _mm_stream_si128(out, a);
        _mm_stream_si128(out + 1, b);
        _mm_stream_si128(out + 2, c);
        _mm_stream_si128(out + 3, d);
    }
    _mm_sfence();
    memcpy((char *)dst + i, (const char *)src + i, nbytes - i);
}

__attribute__((target("avx512f"))) static void copy_avx512(void *dst, const void *src,
                                                           size_t nbytes)
{
    size_t i = head_of(dst, nbytes);
    memcpy(dst, src, i);
    for (; i + 64 <= nbytes; i += 64)
        _mm512_stream_si512((void *)((char *)dst + i), _mm512_loadu_si512((const char *)src + i));
    _mm_sfence();
    memcpy((char *)dst + i, (const char *)src + i, nbytes - i);
}

static void copy_string(void *dst, const void *src, size_t nbytes)
{
    __asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(nbytes) : : "memory");
}

size_t zipccl_plain_copies(struct zipccl_plain_copy copies[ZIPCCL_MAX_COPIES])
{
    size_t n = 0;
    copies[n++] = (struct zipccl_plain_copy){"sse2 non-temporal", copy_sse2};
    copies[n++] = (struct zipccl_plain_copy){"rep movsb", copy_string};
    if (zipccl_isa_usable(ZIPCCL_ISA_AVX512))
        copies[n++] = (struct zipccl_plain_copy){"avx512 non-temporal", copy_avx512};
    return n;
}

bool zipccl_can_evict(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 23 & 1);
}

__attribute__((target("clflushopt"))) void zipccl_evict(const void *p, size_t nbytes)
{
    const char *line = (const char *)((uintptr_t)p & ~(uintptr_t)63);
    for (; line < (const char *)p + nbytes; line += 64)
        _mm_clflushopt((void *)line);
    _mm_mfence();
}

#else

size_t zipccl_plain_copies(struct zipccl_plain_copy copies[ZIPCCL_MAX_COPIES])
{
    (void)copies;
    return 0;
}

bool zipccl_can_evict(void)
{
    return false;
}

void zipccl_evict(const void *p, size_t nbytes)
{
    (void)p;
    (void)nbytes;
}

#endif
