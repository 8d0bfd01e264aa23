/*
 * make_vectors.c - write the codec's test vectors
 *
 * Usage: make_vectors DIRECTORY
 * Writes NAME.raw (elements) and NAME.zccl (message) for each case below.  Run it after a
 * change of format or of the encoder's choices, and look at what changed: released versions
 * must keep decoding the old files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec.h"

#include "core/tests/codec_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 70000 };

/* Either 'fill', for bf16, or a kind of codec_data.h. */
struct vector {
    const char *name;
    size_t n;
    enum zipccl_dtype dtype;
    void (*fill)(struct data_random *random, uint16_t *out, size_t n);
    enum data_kind kind;
};

/* Four phases of log2(sigma), one a superblock: the four programs for Gaussians. */
static void fill_phases(struct data_random *random, uint16_t *out, size_t n)
{
    static const double sigma[] = {1.0, 1.14, 1.31, 1.6};
    for (size_t i = 0, s = 0; i < n; i += 16384, s++)
        data_gauss(random, out + i, n - i < 16384 ? n - i : 16384, sigma[s % 4]);
}

static void fill_gauss(struct data_random *random, uint16_t *out, size_t n)
{
    data_gauss(random, out, n, 1.0);
}

/* Heavy tails: the product of two Gaussians. */
static void fill_heavy(struct data_random *random, uint16_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t pair[2];
        data_gauss(random, pair, 2, 1.0);
        /* Adding the exponents over their bias is enough of a product here. */
        int e = (pair[0] >> 7 & 255) + 2 * ((pair[1] >> 7 & 255) - 127);
        out[i] = (uint16_t)((pair[0] & 0x807f) | (e < 1 ? 1 : e > 254 ? 254 : e) << 7);
    }
}

/* Sub-blocks of different scales. */
static void fill_scales(struct data_random *random, uint16_t *out, size_t n)
{
    static const double sigma[] = {1.0, 1.1, 40.0, 1e-6, 3e10};
    for (size_t i = 0, s = 0; i < n; i += 1024, s++)
        data_gauss(random, out + i, n - i < 1024 ? n - i : 1024, sigma[s % 5]);
}

/* A superblock without any order in it, then one with. */
static void fill_half_bits(struct data_random *random, uint16_t *out, size_t n)
{
    data_bits(random, out, n);
    if (n > 16384)
        data_gauss(random, out + 16384, n - 16384, 0.1);
}

static void fill_specials(struct data_random *random, uint16_t *out, size_t n)
{
    static const uint16_t special[] = {0x0000, 0x8000, 0x0001, 0x807f, 0x7f80, 0xff80,
                                       0x7fc0, 0xffff, 0x7f81, 0x7f7f, 0x0080, 0x8001};
    data_gauss(random, out, n, 1.0);
    for (size_t i = 0; i < n; i += 37)
        out[i] = special[i / 37 % (sizeof special / sizeof special[0])];
}

/* Zeros among random bits: a bitmap, and the rest raw. */
static void fill_sparse_bits(struct data_random *random, uint16_t *out, size_t n)
{
    data_bits(random, out, n);
    for (size_t i = 0; i < n; i++)
        if (i / 50 % 3)
            out[i] = 0;
}

/* A little heavier than Gaussian in its tails. */
static void fill_student(struct data_random *random, uint16_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        data_gauss(random, out + i, 1, data_next(random) % 4 ? 1.0 : 3.0);
}

/* fp32 whose lower bytes are zero in the first superblock. */
static void fill_widened(struct data_random *random, uint16_t *out, size_t n)
{
    data_gauss(random, out, n, 0.5);
    for (size_t i = 0; i < n; i += 2)
        out[i] = i < 32768 ? 0 : (uint16_t)data_next(random);
}

static const struct vector vectors[] = {
    {"empty", 0, ZIPCCL_BFLOAT16, fill_gauss, 0},
    {"one", 1, ZIPCCL_BFLOAT16, fill_gauss, 0},
    {"bits", 300, ZIPCCL_BFLOAT16, data_bits, 0},
    {"fp64", 40, ZIPCCL_FLOAT64, data_bits, 0},
    {"gauss_1000", 1000, ZIPCCL_BFLOAT16, fill_gauss, 0},
    {"gauss_phases", 65600, ZIPCCL_BFLOAT16, fill_phases, 0},
    {"scales", 5000, ZIPCCL_BFLOAT16, fill_scales, 0},
    {"student", 16384, ZIPCCL_BFLOAT16, fill_student, 0},
    {"heavy", 3001, ZIPCCL_BFLOAT16, fill_heavy, 0},
    {"peaked", 3000, ZIPCCL_BFLOAT16, NULL, DATA_PEAKED},
    {"specials", 4097, ZIPCCL_BFLOAT16, fill_specials, 0},
    {"raw_superblock", 19000, ZIPCCL_BFLOAT16, fill_half_bits, 0},
    {"constant", 20000, ZIPCCL_BFLOAT16, NULL, DATA_CONSTANT},
    {"sparse", 5000, ZIPCCL_BFLOAT16, NULL, DATA_SPARSE},
    {"rows", 20000, ZIPCCL_BFLOAT16, NULL, DATA_ROWS},
    {"sparse_bits", 3000, ZIPCCL_BFLOAT16, fill_sparse_bits, 0},
    {"fp16", 3000, ZIPCCL_FLOAT16, NULL, DATA_GAUSS},
    {"fp16_rows", 9000, ZIPCCL_FLOAT16, NULL, DATA_ROWS},
    {"fp32", 3000, ZIPCCL_FLOAT32, NULL, DATA_GAUSS},
    {"fp32_widened", 17000, ZIPCCL_FLOAT32, fill_widened, 0},
    {"e4m3", 3000, ZIPCCL_FLOAT8_E4M3, NULL, DATA_GAUSS},
    {"e5m2", 3000, ZIPCCL_FLOAT8_E5M2, NULL, DATA_MIXTURE},
    {"e5m2_bits", 16000, ZIPCCL_FLOAT8_E5M2, NULL, DATA_HALF_BITS},
};

static void save(const char *directory, const char *name, const char *ending, const void *bytes,
                 size_t nbytes)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.%s", directory, name, ending);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, nbytes, file) != nbytes || fclose(file) != 0) {
        fprintf(stderr, "make_vectors: cannot write %s\n", path);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    static uint16_t src[MOST];
    static uint8_t wire[2 * sizeof src + ZIPCCL_MESSAGE_HEADER_BYTES];
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    if (argc != 2 || !scratch) {
        fprintf(stderr, "usage: make_vectors DIRECTORY\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        const struct vector *v = &vectors[i];
        struct data_random random = {1000 + i};
        size_t size = zipccl_dtype_size(v->dtype), nbytes = 0;
        if (v->fill)
            v->fill(&random, src, v->n * size / 2);
        else
            data_fill_type(v->dtype, v->kind, &random, 0.3, src, v->n);
        if (zipccl_encode(ZIPCCL_ISA_SCALAR, v->dtype, src, v->n, wire, sizeof wire, scratch,
                          &nbytes) != ZIPCCL_OK)
            return 1;
        save(argv[1], v->name, "raw", src, v->n * size);
        save(argv[1], v->name, "zccl", wire, nbytes);
        printf("%-16s %6zu elements %6zu bytes\n", v->name, v->n, nbytes);
    }
    free(scratch);
    return 0;
}
