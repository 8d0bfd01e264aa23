/*
 * test_codec_ans.c - messages for max ratio: every bit back, every row alike, shorter than fast ones
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec.h"

#include "core/codec/ans.h"
#include "core/tests/codec_data.h"
#include "core/wire.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 100003 };

struct bench {
    uint8_t *src, *expected, *fast;
    void *scratch;
    size_t capacity;
};

static struct bench bench_create(size_t n)
{
    struct bench b = {.capacity = zipccl_bound(ZIPCCL_FLOAT32, n)};
    b.src = malloc(4 * n + 4);
    b.expected = malloc(b.capacity);
    b.fast = malloc(b.capacity);
    b.scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    return b;
}

static void bench_destroy(struct bench *b)
{
    free(b->src);
    free(b->expected);
    free(b->fast);
    free(b->scratch);
}

static void encode(enum zipccl_isa isa, enum zipccl_effort effort, enum zipccl_dtype dtype,
                   const void *src, size_t n, uint8_t *dst, void *scratch, size_t *nbytes)
{
    cr_assert_eq(zipccl_encode_effort(isa, effort, dtype, src, n, dst, zipccl_bound(dtype, n),
                                      scratch, nbytes),
                 ZIPCCL_OK);
}

/* Both ways between pages that fault one byte behind the data; returns the message's bytes. */
static size_t compare(struct bench *b, enum zipccl_dtype dtype, size_t n)
{
    size_t raw = n * zipccl_dtype_size(dtype), nexpected = 0, nfast = 0;
    encode(ZIPCCL_ISA_SCALAR, ZIPCCL_EFFORT_RATIO, dtype, b->src, n, b->expected, b->scratch,
           &nexpected);
    encode(zipccl_isa_best(), ZIPCCL_EFFORT_FAST, dtype, b->src, n, b->fast, b->scratch, &nfast);
    cr_expect_leq((double)nexpected, (double)nfast * 1.001 + 8, "%zu, fast %zu", nexpected, nfast);
    struct data_guarded in = data_guard(raw), wire = data_guard(zipccl_bound(dtype, n));
    struct data_guarded exact = data_guard(nexpected), out = data_guard(raw);
    memcpy(exact.bytes, b->expected, nexpected);
    if (n > 0)
        memcpy(in.bytes, b->src, raw);
    for (int k = 0; k < ZIPCCL_NUM_ISAS; k++) {
        enum zipccl_isa isa = (enum zipccl_isa)k;
        size_t nbytes = 0, again = 0;
        if (!zipccl_isa_usable(isa))
            continue;
        /* Other leftovers in scratch: no byte may depend on them. */
        memset(b->scratch, k, zipccl_codec_scratch_bytes());
        encode(isa, ZIPCCL_EFFORT_RATIO, dtype, in.bytes, n, wire.bytes, b->scratch, &nbytes);
        cr_assert(nbytes == nexpected && memcmp(wire.bytes, b->expected, nbytes) == 0,
                  "%s, %s, n = %zu", zipccl_isa_name(isa), zipccl_dtype_name(dtype), n);
        memset(exact.bytes, 0, nexpected);
        cr_assert_eq(zipccl_encode_effort(isa, ZIPCCL_EFFORT_RATIO, dtype, in.bytes, n, exact.bytes,
                                          nexpected, b->scratch, &again),
                     ZIPCCL_OK);
        cr_assert(again == nexpected && memcmp(exact.bytes, b->expected, again) == 0);
        memset(b->scratch, 255 - k, zipccl_codec_scratch_bytes());
        cr_assert_eq(zipccl_decode(isa, dtype, exact.bytes, nexpected, out.bytes, n, b->scratch),
                     ZIPCCL_OK, "%s, %s, n = %zu", zipccl_isa_name(isa), zipccl_dtype_name(dtype),
                     n);
        cr_assert(raw == 0 || memcmp(out.bytes, b->src, raw) == 0, "%s, %s, n = %zu",
                  zipccl_isa_name(isa), zipccl_dtype_name(dtype), n);
    }
    data_unguard(&in);
    data_unguard(&wire);
    data_unguard(&exact);
    data_unguard(&out);
    return nexpected;
}

static bool is_ans(const uint8_t *wire, size_t s)
{
    return (wire[ZIPCCL_MESSAGE_HEADER_BYTES + ZIPCCL_ENTRY_BYTES * s] & 127) == ZIPCCL_PROGRAM_ANS;
}

Test(codec_ans, keeps_every_type_kind_and_size)
{
    static const size_t more[] = {1023, 1024, 1025, 2049, 16383, 16384, 16385, 32768, MOST};
    struct bench b = bench_create(MOST);
    struct data_random random = {81};
    for (int t = 0; t < DATA_NUM_TYPES; t++)
        for (int kind = 0; kind < DATA_NUM_KINDS; kind++) {
            for (size_t n = 0; n <= 2000; n += 1 + n / 7) {
                data_fill_type(data_types[t], (enum data_kind)kind, &random, (double)n / 2001,
                               b.src, n);
                compare(&b, data_types[t], n);
            }
            for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
                data_fill_type(data_types[t], (enum data_kind)kind, &random, 0.1 * (double)i, b.src,
                               more[i]);
                compare(&b, data_types[t], more[i]);
            }
        }
    bench_destroy(&b);
}

Test(codec_ans, keeps_every_bit_pattern)
{
    struct bench b = bench_create(65536);
    uint16_t *src = (uint16_t *)b.src;
    struct data_random random = {83};
    for (unsigned i = 0; i < 65536; i++)
        src[i] = (uint16_t)(i * 40503u);
    compare(&b, ZIPCCL_BFLOAT16, 65536);
    /* A few strangers among many Gaussians: they escape, and travel through every tier. */
    for (unsigned first = 0; first < 65536; first += 256) {
        data_gauss(&random, src, 16384, 1.0);
        for (unsigned i = 0; i < 64; i++)
            src[256 * i + first % 256] = (uint16_t)(first + 4 * i);
        compare(&b, ZIPCCL_BFLOAT16, 16384);
        cr_assert(is_ans(b.expected, 0));
    }
    /* Every row equal: the same 512 elements again and again. */
    for (unsigned i = 512; i < 40000; i++)
        src[i] = src[i % 512];
    compare(&b, ZIPCCL_BFLOAT16, 40000);
    bench_destroy(&b);
}

Test(codec_ans, keeps_every_scale)
{
    struct bench b = bench_create(20000);
    struct data_random random = {84};
    for (int exponent = -130; exponent <= 124; exponent += 2) {
        data_gauss(&random, (uint16_t *)b.src, 20000, ldexp(1.0, exponent));
        compare(&b, ZIPCCL_BFLOAT16, 20000);
    }
    bench_destroy(&b);
}

Test(codec_ans, needs_no_alignment)
{
    enum { N = 17000 };
    struct bench b = bench_create(N);
    struct data_random random = {85};
    uint8_t *in = malloc(2 * N + 64), *wire = malloc(b.capacity + 64), *out = malloc(2 * N + 64);
    size_t nexpected = 0, nbytes = 0;
    data_gauss(&random, (uint16_t *)b.src, N, 0.5);
    encode(ZIPCCL_ISA_SCALAR, ZIPCCL_EFFORT_RATIO, ZIPCCL_BFLOAT16, b.src, N, b.expected, b.scratch,
           &nexpected);
    for (size_t shift = 1; shift < 64; shift += 2) {
        memcpy(in + shift, b.src, 2 * N);
        encode(zipccl_isa_best(), ZIPCCL_EFFORT_RATIO, ZIPCCL_BFLOAT16, in + shift, N,
               wire + 64 - shift, b.scratch, &nbytes);
        cr_assert(nbytes == nexpected && memcmp(wire + 64 - shift, b.expected, nbytes) == 0);
        cr_assert_eq(zipccl_decode(zipccl_isa_best(), ZIPCCL_BFLOAT16, wire + 64 - shift, nbytes,
                                   out + shift, N, b.scratch),
                     ZIPCCL_OK);
        cr_assert(memcmp(out + shift, b.src, 2 * N) == 0);
    }
    free(in);
    free(wire);
    free(out);
    bench_destroy(&b);
}

Test(codec_ans, has_the_effort_of_fp32_sources_too)
{
    enum { N = 20000 };
    struct bench b = bench_create(N);
    struct data_random random = {86};
    float *values = malloc(N * sizeof *values);
    size_t nexpected = 0, nbytes = 0;
    data_gauss(&random, (uint16_t *)b.src, N, 0.5);
    for (size_t i = 0; i < N; i++) {
        uint32_t u = (uint32_t)((uint16_t *)b.src)[i] << 16;
        memcpy(&values[i], &u, 4);
    }
    encode(zipccl_isa_best(), ZIPCCL_EFFORT_RATIO, ZIPCCL_BFLOAT16, b.src, N, b.expected, b.scratch,
           &nexpected);
    cr_assert_eq(zipccl_encode_f32_effort(zipccl_isa_best(), ZIPCCL_EFFORT_RATIO, ZIPCCL_BFLOAT16,
                                          values, N, b.fast, b.capacity, b.scratch, &nbytes),
                 ZIPCCL_OK);
    cr_assert(nbytes == nexpected && memcmp(b.fast, b.expected, nbytes) == 0);
    cr_assert_eq(zipccl_encode_effort(zipccl_isa_best(), ZIPCCL_NUM_EFFORTS, ZIPCCL_BFLOAT16, b.src,
                                      N, b.fast, b.capacity, b.scratch, &nbytes),
                 ZIPCCL_ERR_ARG);
    free(values);
    bench_destroy(&b);
}

/* Decode by every row at the end of a page; they must agree. */
static zipccl_status decode_all(struct bench *b, const uint8_t *wire, size_t nbytes, size_t n)
{
    struct data_guarded in = data_guard(nbytes), out = data_guard(2 * n);
    zipccl_status first = ZIPCCL_OK;
    memcpy(in.bytes, wire, nbytes);
    for (int k = 0; k < ZIPCCL_NUM_ISAS; k++) {
        if (!zipccl_isa_usable((enum zipccl_isa)k))
            continue;
        zipccl_status status = zipccl_decode((enum zipccl_isa)k, ZIPCCL_BFLOAT16, in.bytes, nbytes,
                                             out.bytes, n, b->scratch);
        if (k == ZIPCCL_ISA_SCALAR) {
            first = status;
            memcpy(b->src, out.bytes, 2 * n);
        } else {
            cr_assert_eq(status, first);
            if (status == ZIPCCL_OK)
                cr_assert(memcmp(b->src, out.bytes, 2 * n) == 0);
        }
    }
    data_unguard(&in);
    data_unguard(&out);
    return first;
}

/* Where the variable bytes of a message of one bf16 superblock lie. */
static size_t variable_of(size_t n)
{
    size_t parts = ((7 * n + 7) / 8 + 15) / 16 * 16;
    return 64 + (parts - 64 + 63) / 64 * 64;
}

Test(codec_ans, changed_bytes_are_refused_or_decoded)
{
    enum { N = 6000 };
    struct bench b = bench_create(N);
    struct data_random random = {87};
    size_t nbytes = 0, refused = 0, decoded = 0;
    data_spoiled(&random, (uint16_t *)b.src, N, 100);
    encode(ZIPCCL_ISA_SCALAR, ZIPCCL_EFFORT_RATIO, ZIPCCL_BFLOAT16, b.src, N, b.expected, b.scratch,
           &nbytes);
    cr_assert(is_ans(b.expected, 0));
    for (size_t at = 32; at < nbytes; at += at < 100 || at > variable_of(N) ? 1 : 37) {
        uint8_t change = (uint8_t)(1 + data_next(&random) % 255);
        b.expected[at] ^= change;
        zipccl_status status = decode_all(&b, b.expected, nbytes, N);
        cr_assert(status == ZIPCCL_OK || status == ZIPCCL_ERR_CORRUPT);
        *(status == ZIPCCL_OK ? &decoded : &refused) += 1;
        b.expected[at] ^= change;
    }
    printf("%zu of %zu changes refused\n", refused, refused + decoded);
    cr_expect_gt(refused, decoded);
    for (size_t cut = 1; cut < nbytes; cut += cut < 300 ? 1 : 51)
        cr_assert_eq(decode_all(&b, b.expected, nbytes - cut, N), ZIPCCL_ERR_CORRUPT);
    bench_destroy(&b);
}

Test(codec_ans, entries_and_states_that_cannot_be_are_refused)
{
    /* Byte in the message, and what is put there. */
    enum { N = 6000, ENTRY = 32 };
    struct bench b = bench_create(N);
    struct data_random random = {88};
    size_t nbytes = 0, states = variable_of(N);
    data_gauss(&random, (uint16_t *)b.src, N, 1.0);
    encode(ZIPCCL_ISA_SCALAR, ZIPCCL_EFFORT_RATIO, ZIPCCL_BFLOAT16, b.src, N, b.expected, b.scratch,
           &nbytes);
    cr_assert(is_ans(b.expected, 0));
    const struct {
        size_t at;
        uint8_t value;
        const char *what;
    } wrong[] = {{ENTRY, 10, "program"},
                 {ENTRY, 0x8a, "program"},
                 {ENTRY + 1, 1, "plane"},
                 {ENTRY + 3, 0x40, "escapes"},
                 {ENTRY + 5, 0x40, "escapes of tier 1"},
                 {ENTRY + 7, 0x40, "escapes of tier 2"},
                 {ENTRY + 9, ZIPCCL_ANS_SHAPES, "shape"},
                 {ENTRY + 11, 0x40, "stream"},
                 {ENTRY + 15, 1, "groups"},
                 {ENTRY + 16 + 6, 1, "table of no sub-block"},
                 {states + 64, 0, "state below 256"},
                 {states + 127, 0, "state below 256"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        uint8_t right = b.expected[wrong[i].at];
        b.expected[wrong[i].at] = wrong[i].value;
        cr_expect_eq(decode_all(&b, b.expected, nbytes, N), ZIPCCL_ERR_CORRUPT, "%s",
                     wrong[i].what);
        b.expected[wrong[i].at] = right;
    }
    /* A byte of the stream more or less: the sizes add up, the states do not. */
    unsigned nstream = b.expected[ENTRY + 10] | b.expected[ENTRY + 11] << 8;
    for (int by = -1; by <= 1; by += 2) {
        memcpy(b.fast, b.expected, nbytes);
        b.fast[nbytes] = 0;
        zipccl_put_u16(b.fast + ENTRY + 10, (uint16_t)(nstream + (unsigned)by));
        zipccl_put_u64(b.fast + 16, nbytes - 32 + (size_t)by);
        zipccl_message_set_flags(b.fast, 0);
        cr_expect_eq(decode_all(&b, b.fast, nbytes + (size_t)by, N), ZIPCCL_ERR_CORRUPT);
    }
    cr_assert_eq(decode_all(&b, b.expected, nbytes, N), ZIPCCL_OK);
    bench_destroy(&b);
}

/* The tables in the document are those of the code. */
Test(codec_ans, tables_are_those_of_the_format)
{
    FILE *file = fopen("core/FORMAT.md", "r");
    char line[256];
    int found = 0;
    cr_assert(file != NULL, "run from the top of the tree");
    while (fgets(line, sizeof line, file)) {
        int shape, phase, octaves, used = 0, sum = 0;
        if (sscanf(line, "%d %d: %d:%n", &shape, &phase, &octaves, &used) != 3 || used == 0)
            continue;
        const struct zipccl_ans_law *law = zipccl_ans_law_at(zipccl_ans_law_of(shape, phase));
        cr_expect_eq(law->octaves, octaves);
        char *at = line + used;
        for (int u = 0; u < 2 * octaves + 2; u++) {
            long f = strtol(at, &at, 10);
            at += *at == ';';
            sum += (int)f;
            cr_expect_eq(f, u < 2 * octaves ? law->frequency[u] : law->escape[u - 2 * octaves],
                         "shape %d, phase %d", shape, phase);
        }
        cr_expect_eq(sum, 256);
        found++;
    }
    fclose(file);
    cr_expect_eq(found, ZIPCCL_ANS_SHAPES * ZIPCCL_ANS_PHASES);
}

/* Gaussians of every phase; the header, the directory and all rounding counted. */
static void check_phases(enum zipccl_dtype dtype, size_t n, double least_mean, double least_worst)
{
    enum { PHASES = 32 };
    struct bench b = bench_create(n);
    struct data_random random = {82};
    double mean = 0, worst = 2, bound_mean = 0;
    size_t size = zipccl_dtype_size(dtype), coded = 0, superblocks = 0;
    for (int phase = 0; phase < PHASES; phase++) {
        double count[256] = {0}, entropy = 0;
        size_t nbytes = 0;
        data_fill_type(dtype, DATA_GAUSS, &random, phase / (double)PHASES, b.src, n);
        encode(zipccl_isa_best(), ZIPCCL_EFFORT_RATIO, dtype, b.src, n, b.expected, b.scratch,
               &nbytes);
        for (size_t i = 0; i < n; i++)
            count[size == 2 ? (b.src[2 * i] | b.src[2 * i + 1] << 8) >> 7 & 255
                            : (b.src[4 * i + 2] | b.src[4 * i + 3] << 8) >> 7 & 255]++;
        for (int e = 0; e < 256; e++)
            if (count[e] > 0)
                entropy -= count[e] / (double)n * log2(count[e] / (double)n);
        double bound = 8 * (double)size / (8 * (double)size - 8 + entropy);
        double ratio = (double)(n * size) / (double)nbytes;
        bound_mean += bound / PHASES;
        mean += ratio / PHASES;
        worst = fmin(worst, ratio / bound);
        for (size_t s = 0; s < (n + ZIPCCL_SUPERBLOCK - 1) / ZIPCCL_SUPERBLOCK; s++, superblocks++)
            coded += is_ans(b.expected, s);
    }
    printf("%s, %zu KiB: mean ratio %.4f of %.4f, %.2f %% of the bound, worst phase %.2f %%; "
           "%zu of %zu superblocks by ANS\n",
           zipccl_dtype_name(dtype), n * size / 1024, mean, bound_mean, 100 * mean / bound_mean,
           100 * worst, coded, superblocks);
    cr_expect_geq(mean / bound_mean, least_mean);
    cr_expect_geq(worst, least_worst);
    cr_expect_eq(coded, superblocks);
    bench_destroy(&b);
}

Test(codec_ans, is_at_the_bound_of_a_gaussian)
{
    /* The bound is that of exponents alone; the leading mantissa bit pays for the headers. */
    check_phases(ZIPCCL_BFLOAT16, 524288, 0.9995, 0.998);
    check_phases(ZIPCCL_BFLOAT16, 32768, 0.998, 0.996);
    check_phases(ZIPCCL_FLOAT32, 262144, 0.999, 0.998);
}
