/*
 * exponent_code.c - entropy and Huffman's code of exponents
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/exponent_code.h"

#include "core/codec/layout.h"

#include <math.h>
#include <string.h>

bool zipccl_exponent_histogram_of(enum zipccl_dtype dtype, const void *src, uint64_t n,
                                  struct zipccl_exponent_histogram *out)
{
    const struct zipccl_fields *fields = zipccl_fields_of(dtype);
    const uint8_t *bytes = src;
    if (!fields)
        return false;
    memset(out, 0, sizeof *out);
    out->size = fields->size;
    out->exponent_bits = fields->exponent_bits;
    out->n = n;
    unsigned mantissa = 8 * out->size - 1 - out->exponent_bits;
    uint32_t magnitude = (1u << (mantissa + out->exponent_bits)) - 1;
    for (uint64_t i = 0; i < n; i++) {
        uint32_t x = 0;
        memcpy(&x, bytes + out->size * i, out->size);
        out->count[(x & magnitude) >> mantissa]++;
        out->zeros += (x & magnitude) == 0;
    }
    return true;
}

double zipccl_histogram_entropy(const struct zipccl_exponent_histogram *histogram)
{
    double bits = 0, n = (double)histogram->n;
    for (int e = 0; e < 256; e++)
        if (histogram->count[e]) {
            double p = (double)histogram->count[e] / n;
            bits -= p * log2(p);
        }
    return bits;
}

/* Move the least of weight [n] to its end. */
static void least_last(double *weight, int n)
{
    int least = n - 1;
    for (int i = 0; i < n; i++)
        if (weight[i] < weight[least])
            least = i;
    double swap = weight[least];
    weight[least] = weight[n - 1];
    weight[n - 1] = swap;
}

double zipccl_histogram_huffman(const struct zipccl_exponent_histogram *histogram)
{
    double weight[256], sum = 0;
    int n = 0;
    for (int e = 0; e < 256; e++)
        if (histogram->count[e])
            weight[n++] = (double)histogram->count[e];
    /* The lengths times the counts are the sum of all inner weights of the tree. */
    for (; n > 1; n--) {
        least_last(weight, n);
        least_last(weight, n - 1);
        weight[n - 2] += weight[n - 1];
        sum += weight[n - 2];
    }
    return sum;
}

static double other_bits(const struct zipccl_exponent_histogram *histogram)
{
    return (double)histogram->n * (8.0 * histogram->size - histogram->exponent_bits);
}

double zipccl_histogram_bound_bytes(const struct zipccl_exponent_histogram *histogram)
{
    double n = (double)histogram->n;
    return (other_bits(histogram) + n * zipccl_histogram_entropy(histogram)) / 8;
}

double zipccl_histogram_huffman_bytes(const struct zipccl_exponent_histogram *histogram)
{
    return (other_bits(histogram) + zipccl_histogram_huffman(histogram)) / 8;
}
