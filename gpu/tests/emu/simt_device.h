/*
 * simt_device.h - device functions without threads in them: bits, caches hints, atomics
 *
 * Included by simt.h only.  Atomics are relaxed, as CUDA's are; each is a scheduling point.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_TESTS_EMU_SIMT_DEVICE_H
#define ZIPCCL_GPU_TESTS_EMU_SIMT_DEVICE_H

#include <math.h>

inline int __popc(unsigned v)
{
    return __builtin_popcount(v);
}
inline int __popcll(unsigned long long v)
{
    return __builtin_popcountll(v);
}
inline int __ffs(int v)
{
    return __builtin_ffs(v);
}
inline int __ffsll(long long v)
{
    return __builtin_ffsll(v);
}
inline int __clz(int v)
{
    return v ? __builtin_clz((unsigned)v) : 32;
}
inline int __clzll(long long v)
{
    return v ? __builtin_clzll((unsigned long long)v) : 64;
}
inline unsigned __brev(unsigned v)
{
    unsigned r = 0;
    for (int i = 0; i < 32; i++) {
        r |= (v >> i & 1u) << (31 - i);
    }
    return r;
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector)
{
    const uint64_t pair = (uint64_t)b << 32 | a;
    unsigned r = 0;
    for (int i = 0; i < 4; i++) {
        const unsigned k = selector >> (4 * i) & 15;
        unsigned byte = (unsigned)(pair >> (8 * (k & 7))) & 255;
        if (k & 8) {
            byte = byte & 128 ? 255 : 0;
        }
        r |= byte << (8 * i);
    }
    return r;
}
inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned shift)
{
    return (unsigned)(((uint64_t)hi << 32 | lo) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned shift)
{
    return (unsigned)(((uint64_t)hi << 32 | lo) >> (shift & 31));
}
inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((uint64_t)a * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline float __uint_as_float(unsigned v)
{
    float f;
    memcpy(&f, &v, sizeof f);
    return f;
}
inline unsigned __float_as_uint(float f)
{
    unsigned v;
    memcpy(&v, &f, sizeof v);
    return v;
}
inline float __int_as_float(int v)
{
    return __uint_as_float((unsigned)v);
}
inline int __float_as_int(float f)
{
    return (int)__float_as_uint(f);
}
/* One rounding each, never contracted: the build has -ffp-contract=off. */
inline float __fadd_rn(float a, float b)
{
    return a + b;
}
inline float __fmul_rn(float a, float b)
{
    return a * b;
}
inline float __fdiv_rn(float a, float b)
{
    return a / b;
}
inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}

template <class T> inline T min(T a, T b)
{
    return b < a ? b : a;
}
template <class T> inline T max(T a, T b)
{
    return a < b ? b : a;
}

template <class T> inline T __ldg(const T *p)
{
    return *p;
}
template <class T> inline T __ldcs(const T *p)
{
    return *p;
}
template <class T> inline T __ldcg(const T *p)
{
    return *p;
}
template <class T> inline void __stcs(T *p, T v)
{
    *p = v;
}
template <class T> inline void __stcg(T *p, T v)
{
    *p = v;
}

/* The second argument's type follows the first, as in CUDA's overloads. */
namespace simt
{
template <class T> struct Same {
    typedef T type;
};

template <class T> inline bool swap_if(T *p, T *old, T v)
{
    return __atomic_compare_exchange_n(p, old, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
} // namespace simt

template <class T> inline T atomicAdd(T *p, typename simt::Same<T>::type v, SIMT_PLACE)
{
    T old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (!simt::swap_if(p, &old, (T)(old + v))) {
    }
    simt::yield_point(v != 0, at);
    return old;
}
inline float atomicAdd(float *p, float v, SIMT_PLACE)
{
    unsigned *word = reinterpret_cast<unsigned *>(p), old = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (!simt::swap_if(word, &old, __float_as_uint(__uint_as_float(old) + v))) {
    }
    simt::yield_point(true, at);
    return __uint_as_float(old);
}
template <class T> inline T atomicSub(T *p, typename simt::Same<T>::type v, SIMT_PLACE)
{
    return atomicAdd(p, (T)(0 - v), at);
}
template <class T> inline T atomicOr(T *p, typename simt::Same<T>::type v, SIMT_PLACE)
{
    T old = __atomic_fetch_or(p, v, __ATOMIC_RELAXED);
    simt::yield_point((old | v) != old, at);
    return old;
}
template <class T> inline T atomicAnd(T *p, typename simt::Same<T>::type v, SIMT_PLACE)
{
    T old = __atomic_fetch_and(p, v, __ATOMIC_RELAXED);
    simt::yield_point((old & v) != old, at);
    return old;
}
template <class T> inline T atomicExch(T *p, typename simt::Same<T>::type v, SIMT_PLACE)
{
    T old = __atomic_exchange_n(p, v, __ATOMIC_RELAXED);
    simt::yield_point(old != v, at);
    return old;
}
template <class T> inline T atomicMax(T *p, typename simt::Same<T>::type v, SIMT_PLACE)
{
    T old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (old < v && !simt::swap_if(p, &old, v)) {
    }
    simt::yield_point(old < v, at);
    return old;
}
template <class T> inline T atomicMin(T *p, typename simt::Same<T>::type v, SIMT_PLACE)
{
    T old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (v < old && !simt::swap_if(p, &old, v)) {
    }
    simt::yield_point(v < old, at);
    return old;
}
template <class T>
inline T atomicCAS(T *p, typename simt::Same<T>::type expected, typename simt::Same<T>::type v,
                   SIMT_PLACE)
{
    T old = expected;
    const bool hit = simt::swap_if(p, &old, v);
    simt::yield_point(hit && v != expected, at);
    return old;
}

/* The orders between blocks: described in gpu/portable.cuh. */
template <class T> inline T simt_ld_acquire(const T *p, SIMT_PLACE)
{
    simt::yield_point(false, at);
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
template <class T> inline void simt_st_release(T *p, typename simt::Same<T>::type v, SIMT_PLACE)
{
    __atomic_store_n(p, v, __ATOMIC_RELEASE);
    simt::yield_point(true, at);
}
inline void simt_st_release_system(uint32_t *p, uint32_t v, SIMT_PLACE)
{
    simt_st_release(p, v, at);
}
inline uint32_t simt_add_acq_rel(uint32_t *p, uint32_t v, SIMT_PLACE)
{
    uint32_t old = __atomic_fetch_add(p, v, __ATOMIC_ACQ_REL);
    simt::yield_point(true, at);
    return old;
}
inline void simt_backoff(SIMT_PLACE)
{
    simt::yield_point(false, at);
}

#endif
