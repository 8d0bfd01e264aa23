/*
 * nccl_reduce.cpp - reductions of the double: every NCCL type, one rounding to the type per step
 *
 * Conversions are those of CUDA's own headers.  The order of operands is decided by the caller.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/nccl_state.h"

#include <string.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

namespace emu
{
size_t type_bytes(ncclDataType_t t)
{
    switch (t) {
    case ncclInt8:
    case ncclUint8:
    case ncclFloat8e4m3:
    case ncclFloat8e5m2: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32: return 4;
    default: return 8;
    }
}

/* W is the type that T is computed in: T itself, or float for what C++ does not add. */
template <class T, class W> static T combined(T a, T b, ncclRedOp_t op)
{
    const W x = (W)a, y = (W)b;
    switch (op) {
    case ncclProd: return (T)(W)(x * y);
    case ncclMax: return x > y ? a : b;
    case ncclMin: return x < y ? a : b;
    default: return (T)(W)(x + y);
    }
}

template <class T, class W>
static void combine_all(void *acc, const void *x, size_t n, ncclRedOp_t op)
{
    char *a = static_cast<char *>(acc);
    const char *b = static_cast<const char *>(x);
    for (size_t i = 0; i < n; i++) {
        T u, v;
        memcpy(&u, a + i * sizeof u, sizeof u);
        memcpy(&v, b + i * sizeof v, sizeof v);
        u = combined<T, W>(u, v, op);
        memcpy(a + i * sizeof u, &u, sizeof u);
    }
}

void combine(void *acc, const void *x, size_t n, ncclDataType_t t, ncclRedOp_t op)
{
    switch (t) {
    /* Unsigned sums have the bits of signed ones and cannot overflow; max and min differ. */
    case ncclInt8: combine_all<int8_t, int32_t>(acc, x, n, op); break;
    case ncclUint8: combine_all<uint8_t, uint32_t>(acc, x, n, op); break;
    case ncclInt32:
        if (op == ncclMax || op == ncclMin) {
            combine_all<int32_t, int32_t>(acc, x, n, op);
            break;
        }
        /* fallthrough */
    case ncclUint32: combine_all<uint32_t, uint32_t>(acc, x, n, op); break;
    case ncclInt64:
        if (op == ncclMax || op == ncclMin) {
            combine_all<int64_t, int64_t>(acc, x, n, op);
            break;
        }
        /* fallthrough */
    case ncclUint64: combine_all<uint64_t, uint64_t>(acc, x, n, op); break;
    case ncclFloat32: combine_all<float, float>(acc, x, n, op); break;
    case ncclFloat64: combine_all<double, double>(acc, x, n, op); break;
    case ncclFloat16: combine_all<__half, float>(acc, x, n, op); break;
    case ncclBfloat16: combine_all<__nv_bfloat16, float>(acc, x, n, op); break;
    case ncclFloat8e4m3: combine_all<__nv_fp8_e4m3, float>(acc, x, n, op); break;
    default: combine_all<__nv_fp8_e5m2, float>(acc, x, n, op); break;
    }
}

template <class T, class W> static void scale_all(void *x, size_t n, W factor)
{
    char *a = static_cast<char *>(x);
    for (size_t i = 0; i < n; i++) {
        T u;
        memcpy(&u, a + i * sizeof u, sizeof u);
        u = (T)(W)((W)u * factor);
        memcpy(a + i * sizeof u, &u, sizeof u);
    }
}

template <class T, class W> static void scale_by(void *x, size_t n, const unsigned char *scalar)
{
    T s;
    memcpy(&s, scalar, sizeof s);
    scale_all<T, W>(x, n, (W)s);
}

static void scale(void *x, size_t n, ncclDataType_t t, const unsigned char *scalar)
{
    switch (t) {
    case ncclInt8: scale_by<int8_t, int32_t>(x, n, scalar); break;
    case ncclUint8: scale_by<uint8_t, uint32_t>(x, n, scalar); break;
    case ncclInt32:
    case ncclUint32: scale_by<uint32_t, uint32_t>(x, n, scalar); break;
    case ncclInt64:
    case ncclUint64: scale_by<uint64_t, uint64_t>(x, n, scalar); break;
    case ncclFloat32: scale_by<float, float>(x, n, scalar); break;
    case ncclFloat64: scale_by<double, double>(x, n, scalar); break;
    case ncclFloat16: scale_by<__half, float>(x, n, scalar); break;
    case ncclBfloat16: scale_by<__nv_bfloat16, float>(x, n, scalar); break;
    case ncclFloat8e4m3: scale_by<__nv_fp8_e4m3, float>(x, n, scalar); break;
    default: scale_by<__nv_fp8_e5m2, float>(x, n, scalar); break;
    }
}

/* As in NCCL: an average of floats multiplies by 1/n first, one of integers divides at the end. */
static bool average_input(void *x, size_t n, ncclDataType_t t, int nranks)
{
    const float f = 1.0f / (float)nranks;
    switch (t) {
    case ncclFloat32: scale_all<float, float>(x, n, f); return true;
    case ncclFloat64: scale_all<double, double>(x, n, 1.0 / nranks); return true;
    case ncclFloat16: scale_all<__half, float>(x, n, (float)(__half)f); return true;
    case ncclBfloat16: scale_all<__nv_bfloat16, float>(x, n, (float)(__nv_bfloat16)f); return true;
    case ncclFloat8e4m3:
        scale_all<__nv_fp8_e4m3, float>(x, n, (float)(__nv_fp8_e4m3)f);
        return true;
    case ncclFloat8e5m2:
        scale_all<__nv_fp8_e5m2, float>(x, n, (float)(__nv_fp8_e5m2)f);
        return true;
    default: return false;
    }
}

void scale_input(ncclComm *c, void *x, size_t n, ncclDataType_t t, ncclRedOp_t op)
{
    if (op == ncclAvg) {
        (void)average_input(x, n, t, c->nranks);
    }
    if ((int)op < ncclNumOps) {
        return;
    }
    ReductionOp r;
    {
        std::lock_guard<std::mutex> lock(c->mutex);
        r = c->ops[(int)op];
    }
    if (r.device_scalar) {
        memcpy(r.scalar, r.device_scalar, type_bytes(t));
    }
    scale(x, n, t, r.scalar);
}

template <class T> static void divide_all(void *x, size_t n, int by)
{
    char *a = static_cast<char *>(x);
    for (size_t i = 0; i < n; i++) {
        T u;
        memcpy(&u, a + i * sizeof u, sizeof u);
        u = (T)(u / (T)by);
        memcpy(a + i * sizeof u, &u, sizeof u);
    }
}

void finish_average(void *x, size_t n, ncclDataType_t t, int nranks)
{
    switch (t) {
    case ncclInt8: divide_all<int8_t>(x, n, nranks); break;
    case ncclUint8: divide_all<uint8_t>(x, n, nranks); break;
    case ncclInt32: divide_all<int32_t>(x, n, nranks); break;
    case ncclUint32: divide_all<uint32_t>(x, n, nranks); break;
    case ncclInt64: divide_all<int64_t>(x, n, nranks); break;
    case ncclUint64: divide_all<uint64_t>(x, n, nranks); break;
    default: break;
    }
}
} // namespace emu
