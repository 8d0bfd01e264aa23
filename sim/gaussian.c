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

struct fp8 {
    int mantissa, bias; /* bits; of the exponent */
    double largest;
};

/* The bits of 'x', at most 'largest', rounded to nearest, ties to even. */
static uint8_t to_fp8(const struct fp8 *type, double x)
{
    int least = 1 - type->bias, exponent = x != 0 ? ilogb(x) : least;
    uint8_t sign = x < 0 ? 0x80 : 0;
    double steps;

    if (exponent < least)
        exponent = least;
    /* In units of the last place; from 2^mantissa on the number is a normal one. */
    steps = rint(fabs(x) * ldexp(1, type->mantissa - exponent));
    return (uint8_t)(sign | ((exponent - least) * (1 << type->mantissa) + (int)steps));
}

static void draw_two(uint64_t *state, double sigma, double out[2])
{
    const double two_pi = 6.283185307179586;
    double r = sigma * sqrt(-2 * log(uniform(state))), phi = two_pi * uniform(state);

    out[0] = r * cos(phi);
    out[1] = r * sin(phi);
}

/* As tokens are sent in fp8: 128 values share a scale that takes the largest to the type's largest. */
static void fill_fp8(const struct fp8 *type, uint8_t *data, size_t n)
{
    uint64_t state = SEED;
    double block[128];

    for (size_t i = 0; i < n; i += 128) {
        size_t m = n - i < 128 ? n - i : 128;
        double most = 0;

        for (size_t j = 0; j < 128; j += 2)
            draw_two(&state, 1, block + j);
        for (size_t j = 0; j < m; j++)
            most = fabs(block[j]) > most ? fabs(block[j]) : most;
        for (size_t j = 0; j < m; j++)
            data[i + j] = to_fp8(type, block[j] / most * type->largest);
    }
}

zipccl_status zipccl_gaussian_fill(enum zipccl_dtype dtype, void *data, size_t n,
                                   struct zipccl_error *error)
{
    static const struct fp8 e4m3 = {3, 7, 448}, e5m2 = {2, 15, 57344};
    uint64_t state = SEED;

    if (dtype == ZIPCCL_FLOAT8_E4M3 || dtype == ZIPCCL_FLOAT8_E5M2) {
        fill_fp8(dtype == ZIPCCL_FLOAT8_E4M3 ? &e4m3 : &e5m2, data, n);
        return ZIPCCL_OK;
    }
    if (dtype != ZIPCCL_BFLOAT16 && dtype != ZIPCCL_FLOAT32)
        return zipccl_fail(error, ZIPCCL_ERR_UNSUPPORTED,
                           "no sample and no generator for %s: give a ratio",
                           zipccl_dtype_name(dtype));
    for (size_t i = 0; i < n; i += 2) {
        double x[2];

        draw_two(&state, SIGMA, x);
        store(dtype, data, i, (float)x[0]);
        if (i + 1 < n)
            store(dtype, data, i + 1, (float)x[1]);
    }
    return ZIPCCL_OK;
}
