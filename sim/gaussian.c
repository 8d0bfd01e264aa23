/*
 * gaussian.c - Gaussian test data, Box and Muller over splitmix64
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/gaussian.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define SIGMA 0.02
#define SEED  1

static double uniform(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return ((double)(z >> 11) + 0.5) * 0x1p-53;
}

static void store(enum zipccl_dtype dtype, char *data, size_t i, float x)
{
    uint32_t bits;
    uint16_t half;

    memcpy(&bits, &x, sizeof(bits));
    if (dtype == ZIPCCL_FLOAT32) {
        memcpy(data + 4 * i, &bits, 4);
        return;
    }
    bits += 0x7fffu + (bits >> 16 & 1); /* to nearest, ties to even; no NaN comes here */
    half = (uint16_t)(bits >> 16);
    memcpy(data + 2 * i, &half, 2);
}

zipccl_status zipccl_gaussian_fill(enum zipccl_dtype dtype, void *data, size_t n,
                                   struct zipccl_error *error)
{
    const double two_pi = 6.283185307179586;
    uint64_t state = SEED;

    if (dtype != ZIPCCL_BFLOAT16 && dtype != ZIPCCL_FLOAT32)
        return zipccl_fail(error, ZIPCCL_ERR_UNSUPPORTED,
                           "no sample and no generator for %s: give a ratio",
                           zipccl_dtype_name(dtype));
    for (size_t i = 0; i < n; i += 2) {
        double r = SIGMA * sqrt(-2 * log(uniform(&state))), phi = two_pi * uniform(&state);

        store(dtype, data, i, (float)(r * cos(phi)));
        if (i + 1 < n)
            store(dtype, data, i + 1, (float)(r * sin(phi)));
    }
    return ZIPCCL_OK;
}
