/*
 * test_codec_rows.c - every row writes the scalar row's bytes and reads them alike
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec.h"

#include "core/tests/codec_data.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 200001 };

/* Buffers of one comparison. */
struct bench {
    uint16_t *src, *out;
    uint8_t *expected, *wire;
    void *scratch;
    size_t capacity;
};

static struct bench bench_create(void)
{
    struct bench b = {.capacity = zipccl_bound(ZIPCCL_BFLOAT16, MOST)};
    b.src = malloc(2 * MOST);
    b.out = malloc(2 * MOST);
    b.expected = malloc(b.capacity);
    b.wire = malloc(b.capacity);
    b.scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    return b;
}

static void bench_destroy(struct bench *b)
{
    free(b->src);
    free(b->out);
    free(b->expected);
    free(b->wire);
    free(b->scratch);
}

/* Compare rows on b->src [n]; returns the message's bytes. */
static size_t compare(struct bench *b, size_t n)
{
    size_t nexpected = 0;
    memset(b->expected, 0x5a, b->capacity);
    cr_assert_eq(zipccl_encode(ZIPCCL_ISA_SCALAR, ZIPCCL_BFLOAT16, b->src, n, b->expected,
                               b->capacity, b->scratch, &nexpected),
                 ZIPCCL_OK);
    for (int isa = 0; isa < ZIPCCL_NUM_ISAS; isa++) {
        if (!zipccl_isa_usable((enum zipccl_isa)isa))
            continue;
        size_t nbytes = 0;
        /* Other leftovers in the buffer and in scratch: no byte may depend on them. */
        memset(b->wire, 0xa5, b->capacity);
        memset(b->scratch, isa, zipccl_codec_scratch_bytes());
        cr_assert_eq(zipccl_encode((enum zipccl_isa)isa, ZIPCCL_BFLOAT16, b->src, n, b->wire,
                                   b->capacity, b->scratch, &nbytes),
                     ZIPCCL_OK);
        cr_assert_eq(nbytes, nexpected, "%s: %zu and %zu bytes",
                     zipccl_isa_name((enum zipccl_isa)isa), nbytes, nexpected);
        cr_assert(memcmp(b->wire, b->expected, nbytes) == 0, "%s, n = %zu",
                  zipccl_isa_name((enum zipccl_isa)isa), n);
        memset(b->out, 0, 2 * n);
        cr_assert_eq(zipccl_decode((enum zipccl_isa)isa, ZIPCCL_BFLOAT16, b->expected, nexpected,
                                   b->out, n, b->scratch),
                     ZIPCCL_OK);
        cr_assert(memcmp(b->out, b->src, 2 * n) == 0);
    }
    return nexpected;
}

Test(codec_rows, write_the_same_bytes_at_every_phase)
{
    struct bench b = bench_create();
    struct data_random random = {11};
    for (int phase = 0; phase < 32; phase++) {
        for (int kind = 0; kind < DATA_NUM_KINDS; kind++) {
            size_t n = 40000 + data_next(&random) % 2000;
            data_fill((enum data_kind)kind, &random, phase / 32.0, b.src, n);
            compare(&b, n);
        }
    }
    bench_destroy(&b);
}

Test(codec_rows, write_the_same_bytes_at_every_size)
{
    struct bench b = bench_create();
    struct data_random random = {12};
    for (int kind = 0; kind < DATA_NUM_KINDS; kind++) {
        data_fill((enum data_kind)kind, &random, 0.3, b.src, MOST);
        compare(&b, MOST);
        for (size_t n = 1; n <= 700; n++)
            compare(&b, n);
        for (size_t n = 16384 - 70; n <= 16384 + 70; n++)
            compare(&b, n);
    }
    bench_destroy(&b);
}

Test(codec_rows, write_the_same_bytes_around_a_short_raw_superblock)
{
    struct bench b = bench_create();
    struct data_random random = {14};
    data_gauss(&random, b.src, 16384, 1.0);
    data_bits(&random, b.src + 16384, 200);
    for (size_t m = 1; m <= 200; m++)
        cr_assert_lt(compare(&b, 16384 + m), 2 * (16384 + m));
    bench_destroy(&b);
}

Test(codec_rows, write_the_same_bytes_at_any_scale)
{
    struct bench b = bench_create();
    struct data_random random = {13};
    for (int exponent = -130; exponent <= 124; exponent += 2) {
        data_gauss(&random, b.src, 33000, ldexp(1.0, exponent));
        compare(&b, 33000);
    }
    bench_destroy(&b);
}

Test(codec_rows, write_the_same_bytes_past_the_caches)
{
    /* 16 MiB and more are stored non-temporally where they are aligned; shifted, they are not. */
    enum { N = (8 << 20) + 70 };
    struct data_random random = {15};
    uint16_t *src = aligned_alloc(64, 2 * N + 116);
    size_t capacity = zipccl_bound(ZIPCCL_BFLOAT16, N), nbytes = 0, nexpected = 0;
    uint8_t *expected = malloc(capacity), *wire = aligned_alloc(64, 2 * N + 244);
    uint8_t *out = aligned_alloc(64, 2 * N + 244);
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    data_gauss(&random, src, N, 1.0);
    memset(src + 50000, 0, 50000);
    cr_assert_eq(zipccl_encode(ZIPCCL_ISA_SCALAR, ZIPCCL_BFLOAT16, src, N, expected, capacity,
                               scratch, &nexpected),
                 ZIPCCL_OK);
    for (int isa = 0; isa < ZIPCCL_NUM_ISAS; isa++)
        for (size_t shift = 0; shift < 96 && zipccl_isa_usable((enum zipccl_isa)isa); shift += 32) {
            cr_assert_eq(zipccl_encode((enum zipccl_isa)isa, ZIPCCL_BFLOAT16, src, N, wire + shift,
                                       capacity, scratch, &nbytes),
                         ZIPCCL_OK);
            cr_assert(nbytes == nexpected && memcmp(wire + shift, expected, nbytes) == 0);
            memset(out, 0, 2 * N + 128);
            cr_assert_eq(zipccl_decode((enum zipccl_isa)isa, ZIPCCL_BFLOAT16, wire + shift, nbytes,
                                       out + shift, N, scratch),
                         ZIPCCL_OK);
            cr_assert(memcmp(out + shift, src, 2 * N) == 0);
        }
    free(src);
    free(expected);
    free(wire);
    free(out);
    free(scratch);
}

Test(codec_rows, write_the_same_bytes_on_captured_tensors)
{
    static const char *const names[] = {"dense", "moe"};
    struct bench b = bench_create();
    int found = 0;
    for (size_t i = 0; i < 2; i++) {
        char path[64];
        snprintf(path, sizeof path, "../shared/data/tensors/%s.safetensors", names[i]);
        FILE *file = fopen(path, "rb");
        if (!file) { /* the same folder, seen from a linked worktree */
            snprintf(path, sizeof path, "../../shared/data/tensors/%s.safetensors", names[i]);
            file = fopen(path, "rb");
        }
        uint8_t length[8];
        if (!file)
            continue;
        found++;
        /* Behind 8 bytes of length and the description lie the tensors, most of them bf16. */
        cr_assert_eq(fread(length, 1, 8, file), 8);
        long skip = (long)length[0] | (long)length[1] << 8 | (long)length[2] << 16;
        cr_assert_eq(fseek(file, skip, SEEK_CUR), 0);
        size_t raw = 0, wire = 0, n;
        while ((n = fread(b.src, 2, 131072, file)) > 0) {
            wire += compare(&b, n);
            raw += 2 * n;
        }
        fclose(file);
        printf("%s: ratio %.4f over %zu bytes\n", names[i], (double)raw / (double)wire, raw);
        cr_expect_gt((double)raw / (double)wire, 1.35);
    }
    bench_destroy(&b);
    if (found == 0) {
        puts("skipped: no captured tensors beside the tree");
        cr_skip_test("no captured tensors");
    }
}
