/*
 * codec_data.c - deterministic inputs for the codec's tests, and pages that fault
 *
 * SPDX-License-Identifier: Apache-2.0
 */
/* MAP_ANONYMOUS is not in POSIX 2008. */
#define _DEFAULT_SOURCE
#include "core/tests/codec_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CELLS 32768

uint64_t data_next(struct data_random *random)
{
    uint64_t x = random->state += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

uint16_t data_bf16(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* Edges of CELLS equally likely cells of |z|; the last one ends where nothing is left. */
static const float *half_normal_edges(void)
{
    static float edges[CELLS + 1];
    if (edges[CELLS] != 0)
        return edges;
    double z = 0;
    for (int i = 1; i < CELLS; i++) {
        double target = (double)i / CELLS;
        for (int step = 0; step < 4; step++)
            z += (target - erf(z * M_SQRT1_2)) / (0.7978845608028654 * exp(-0.5 * z * z));
        edges[i] = (float)z;
    }
    edges[CELLS] = 4.6f;
    return edges;
}

void data_gauss(struct data_random *random, uint16_t *out, size_t n, double sigma)
{
    const float *edges = half_normal_edges();
    for (size_t i = 0; i < n; i++) {
        uint64_t x = data_next(random);
        size_t cell = x >> 49;
        float inside = (float)(x & 0xffffff) * 0x1p-24f;
        float z = edges[cell] + inside * (edges[cell + 1] - edges[cell]);
        out[i] = (uint16_t)(data_bf16(z * (float)sigma) | (x >> 24 & 1) << 15);
    }
}

void data_mixture(struct data_random *random, uint16_t *out, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t run = 500 + data_next(random) % 19500;
        if (run > n - i)
            run = n - i;
        data_gauss(random, out + i, run,
                   1e-3 * pow(100, (double)(data_next(random) % 1000) / 1000));
        i += run;
    }
}

void data_spoiled(struct data_random *random, uint16_t *out, size_t n, unsigned every)
{
    data_gauss(random, out, n, 1.0);
    for (size_t i = 0; i < n; i++) {
        uint64_t x = data_next(random);
        if (x % every == 0)
            out[i] = (uint16_t)(x >> 32);
    }
}

void data_bits(struct data_random *random, uint16_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (uint16_t)(data_next(random) >> 20);
}

void data_wide(struct data_random *random, uint8_t *out, size_t n)
{
    /* In 1/256, of exponents from 14 down. */
    static const uint8_t shares[15] = {6, 6, 10, 13, 17, 21, 24, 26, 28, 25, 23, 19, 16, 12, 10};
    for (size_t i = 0; i < n; i++) {
        uint64_t x = data_next(random);
        unsigned left = x & 255, k = 0;
        while (left >= shares[k])
            left -= shares[k++];
        out[i] = (uint8_t)((14 - k) << 3 | (x >> 8 & 0x87));
    }
}

void data_fill(enum data_kind kind, struct data_random *random, double phase, uint16_t *out,
               size_t n)
{
    double sigma = 0.02 * exp2(phase);
    switch (kind) {
    case DATA_GAUSS: data_gauss(random, out, n, sigma); break;
    case DATA_MIXTURE: data_mixture(random, out, n); break;
    case DATA_SPOILED: data_spoiled(random, out, n, 50); break;
    case DATA_SPARSE:
        data_gauss(random, out, n, sigma);
        for (size_t i = 0; i < n; i++)
            if (data_next(random) % 10 < 7)
                out[i] = 0;
        break;
    case DATA_BITS: data_bits(random, out, n); break;
    case DATA_ZEROS: memset(out, 0, 2 * n); break;
    case DATA_CONSTANT:
        for (size_t i = 0; i < n; i++)
            out[i] = data_bf16((float)sigma);
        break;
    case DATA_RAMP: /* every bit pattern in turn */
        for (size_t i = 0; i < n; i++)
            out[i] = (uint16_t)i;
        break;
    case DATA_HALF_BITS: /* superblocks that shrink and superblocks that do not */
        data_gauss(random, out, n, sigma);
        for (size_t i = 0; i < n; i += 40000)
            data_bits(random, out + i, n - i < 20000 ? n - i : 20000);
        break;
    case DATA_ROWS: /* two rows of 600 in 50 are not zero */
        data_gauss(random, out, n, sigma);
        for (size_t i = 0; i < n; i++)
            if (i / 600 % 25 != 7)
                out[i] = 0;
        break;
    case DATA_PEAKED: /* nearly one exponent */
        for (size_t i = 0; i < n; i++) {
            uint64_t x = data_next(random);
            out[i] = (uint16_t)((x & 0x807f) | (x >> 20 & 31 ? 120u : 117 + (x >> 30 & 3)) << 7);
        }
        break;
    case DATA_NUM_KINDS: break;
    }
}

const enum zipccl_dtype data_types[DATA_NUM_TYPES] = {
    ZIPCCL_BFLOAT16, ZIPCCL_FLOAT16, ZIPCCL_FLOAT32, ZIPCCL_FLOAT8_E4M3, ZIPCCL_FLOAT8_E5M2};

/* An exponent of bf16 in one of 'most' + 1 values around 'bias'; far ones become the ends. */
static uint32_t narrow_exponent(uint16_t x, uint32_t bias, uint32_t most)
{
    int e = (x >> 7 & 255) - 122 + (int)bias;
    return e < 0 ? 0 : (uint32_t)e > most ? most : (uint32_t)e;
}

void data_fill_type(enum zipccl_dtype dtype, enum data_kind kind, struct data_random *random,
                    double phase, void *out, size_t n)
{
    uint8_t *p = out;
    uint16_t *x = malloc(2 * n + 2);
    data_fill(kind, random, phase, x, n);
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = data_next(random);
        uint32_t sign = x[i] >> 15, low = x[i] ? (uint32_t)bits : 0, y = (uint32_t)(bits >> 32);
        if (kind != DATA_BITS)
            switch (dtype) {
            case ZIPCCL_FLOAT16:
                y = sign << 15 | narrow_exponent(x[i], 15, 31) << 10 | (x[i] & 127u) << 3 |
                    (low & 7);
                break;
            case ZIPCCL_FLOAT32: y = (uint32_t)x[i] << 16 | (low & 0xffff); break;
            case ZIPCCL_FLOAT8_E4M3:
                y = sign << 7 | narrow_exponent(x[i], 12, 15) << 3 | (x[i] >> 4 & 7u);
                break;
            case ZIPCCL_FLOAT8_E5M2:
                y = sign << 7 | narrow_exponent(x[i], 15, 31) << 2 | (x[i] >> 5 & 3u);
                break;
            default: y = x[i]; break;
            }
        memcpy(p, &y, zipccl_dtype_size(dtype));
        p += zipccl_dtype_size(dtype);
    }
    free(x);
}

struct data_guarded data_guard(size_t nbytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (nbytes + page - 1) / page * page;
    struct data_guarded guarded = {.mapped = room + page};
    guarded.mapping =
        mmap(NULL, guarded.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (guarded.mapping == MAP_FAILED ||
        mprotect((uint8_t *)guarded.mapping + room, page, PROT_NONE) != 0)
        abort();
    guarded.bytes = (uint8_t *)guarded.mapping + room - nbytes;
    return guarded;
}

void data_unguard(struct data_guarded *guarded)
{
    munmap(guarded->mapping, guarded->mapped);
    guarded->mapping = NULL;
}
