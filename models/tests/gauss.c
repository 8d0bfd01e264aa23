/*
 * gauss.c - Gaussians by cells of equal probability
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/tests/gauss.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * Cells of |x|.  Within an inner one the density is all but constant; the outer 1/256 is
 * inverted exactly.
 */
#define CELLS 65536u
#define OUTER (CELLS - CELLS / 256)

struct gauss {
    uint64_t state;
    float edge[CELLS + 1];
};

struct gauss *gauss_create(uint64_t seed)
{
    struct gauss *gauss = malloc(sizeof *gauss);
    if (!gauss)
        return NULL;
    gauss->state = seed;
    for (unsigned i = 0; i < CELLS; i++)
        gauss->edge[i] = (float)gsl_cdf_ugaussian_Pinv(0.5 + 0.5 * i / CELLS);
    gauss->edge[CELLS] = gauss->edge[CELLS - 1];
    return gauss;
}

void gauss_destroy(struct gauss *gauss)
{
    free(gauss);
}

/* splitmix64 */
uint64_t gauss_bits(struct gauss *gauss)
{
    uint64_t x = gauss->state += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

uint16_t gauss_bf16(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* |x| from the upper 48 bits. */
static float magnitude(const struct gauss *gauss, uint64_t bits)
{
    unsigned cell = (unsigned)(bits >> 48);
    if (cell >= OUTER)
        return (float)gsl_cdf_ugaussian_Qinv(((double)(~bits >> 16) + 0.5) * 0x1p-49);
    float inside = (float)(bits >> 24 & 0xffffff) * 0x1p-24f;
    return gauss->edge[cell] + inside * (gauss->edge[cell + 1] - gauss->edge[cell]);
}

double gauss_next(struct gauss *gauss)
{
    uint64_t bits = gauss_bits(gauss);
    float x = magnitude(gauss, bits);
    return bits & 1 ? -x : x;
}

void gauss_fill(struct gauss *gauss, double sigma, uint16_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = gauss_bits(gauss);
        float x = magnitude(gauss, bits) * (float)sigma;
        out[i] = (uint16_t)(gauss_bf16(x) | (bits & 1) << 15);
    }
}

void gauss_fill_student(struct gauss *gauss, double sigma, int nu, uint16_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double chi_square = 0;
        for (int k = 0; k < nu; k++) {
            double x = gauss_next(gauss);
            chi_square += x * x;
        }
        out[i] = gauss_bf16((float)(sigma * gauss_next(gauss) / sqrt(chi_square / nu)));
    }
}
