/*
 * bench_input.c - random elements of every type, and tensors of a file
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/bench/bench_input.h"

#include "core/reduce.h"
#include "traces/safetensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct random {
    uint64_t state;
    double spare; /* the polar method gives two */
    bool has_spare;
};

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t next(struct random *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* In (-1, 1), never 0. */
static double uniform(struct random *random)
{
    return ((double)(next(random) >> 12) + 0.5) * 0x1p-51 - 1;
}

/* A unit Gaussian by Marsaglia's polar method. */
static double gaussian(struct random *random)
{
    double x, y, square;
    if (random->has_spare) {
        random->has_spare = false;
        return random->spare;
    }
    do {
        x = uniform(random);
        y = uniform(random);
        square = x * x + y * y;
    } while (square >= 1);
    double scale = sqrt(-2 * log(square) / square);
    random->spare = y * scale;
    random->has_spare = true;
    return x * scale;
}

/*
 * Round to a float of 'exponent' and 'mantissa' bits, 1 + exponent + mantissa = 8, to nearest even;
 * what is too large becomes the largest value of the type, 'most'.
 */
static uint8_t fp8_from_float(float x, int exponent, int mantissa, uint8_t most)
{
    int bias = (1 << (exponent - 1)) - 1, octave;
    double size = fabs((double)x);
    uint8_t sign = signbit(x) ? 0x80 : 0;
    if (size == 0)
        return sign;
    frexp(size, &octave);
    int lowest = 1 - bias, e = octave - 1 < lowest ? lowest : octave - 1;
    /* Steps of the octave; rint() is to even, and 2^mantissa of them reach the next exponent. */
    double steps = rint(ldexp(size, mantissa - e));
    double code = steps + ldexp(e - lowest, mantissa);
    return (uint8_t)(sign | (code > most ? most : (uint8_t)code));
}

double zipccl_bench_sigma(enum zipccl_dtype dtype)
{
    /* Training with fp8 scales a tensor's largest value to the type's: 448 and 57344. */
    if (dtype == ZIPCCL_FLOAT8_E4M3)
        return 0.02 * 4096;
    return dtype == ZIPCCL_FLOAT8_E5M2 ? 0.02 * 524288 : 0.02;
}

static void put(enum zipccl_dtype dtype, float x, uint8_t *out)
{
    uint16_t half;
    switch (dtype) {
    case ZIPCCL_FLOAT32: memcpy(out, &x, sizeof x); return;
    case ZIPCCL_FLOAT8_E4M3: *out = fp8_from_float(x, 4, 3, 0x7e); return;
    case ZIPCCL_FLOAT8_E5M2: *out = fp8_from_float(x, 5, 2, 0x7b); return;
    case ZIPCCL_FLOAT16: half = zipccl_fp16_from_float(x); break;
    default: half = zipccl_bf16_from_float(x); break;
    }
    memcpy(out, &half, sizeof half);
}

static void fill_gaussians(struct random *random, enum zipccl_dtype dtype, bool mixture,
                           uint8_t *out, uint64_t n)
{
    size_t size = zipccl_dtype_size(dtype);
    double sigma = zipccl_bench_sigma(dtype), scale = sigma;
    uint64_t left = mixture ? 0 : n;
    for (uint64_t i = 0; i < n; i++, left--) {
        if (left == 0) {
            scale = sigma * pow(10, uniform(random));
            left = 500 + next(random) % 19501;
        }
        put(dtype, (float)(scale * gaussian(random)), out + size * i);
    }
}

void zipccl_bench_fill(enum zipccl_bench_input input, enum zipccl_dtype dtype, void *out,
                       uint64_t n)
{
    struct random random = {.state = 20260};
    size_t nbytes = (size_t)n * zipccl_dtype_size(dtype);
    uint8_t *bytes = out;
    switch (input) {
    case ZIPCCL_BENCH_GAUSS:
    case ZIPCCL_BENCH_MIXTURE:
        fill_gaussians(&random, dtype, input == ZIPCCL_BENCH_MIXTURE, bytes, n);
        return;
    case ZIPCCL_BENCH_BITS:
        for (size_t i = 0; i < nbytes; i += 8) {
            uint64_t bits = next(&random);
            memcpy(bytes + i, &bits, nbytes - i < 8 ? nbytes - i : 8);
        }
        return;
    default: memset(out, 0, nbytes); return;
    }
}

zipccl_status zipccl_bench_load(const char *path, enum zipccl_dtype dtype, void **out, uint64_t *n,
                                struct zipccl_error *error)
{
    const struct zipccl_safetensors *file;
    ZIPCCL_TRY(zipccl_safetensors_open(path, &file, error));
    uint64_t total = 0, nbytes = 0;
    uint8_t *all = NULL;
    for (size_t i = 0; i < file->ntensors; i++)
        if (file->tensors[i].known && file->tensors[i].dtype == dtype)
            nbytes += file->tensors[i].nbytes;
    if (nbytes > 0 && !(all = aligned_alloc(64, (size_t)(nbytes + 63) & ~(size_t)63))) {
        zipccl_safetensors_close(file);
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
    }
    nbytes = 0;
    for (size_t i = 0; i < file->ntensors; i++) {
        const struct zipccl_tensor *t = &file->tensors[i];
        if (!t->known || t->dtype != dtype || t->nbytes == 0)
            continue;
        memcpy(all + nbytes, t->data, (size_t)t->nbytes);
        nbytes += t->nbytes;
        total += t->n;
    }
    zipccl_safetensors_close(file);
    *out = all;
    *n = total;
    return ZIPCCL_OK;
}
