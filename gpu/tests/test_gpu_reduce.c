/*
 * test_gpu_reduce.c - sums on the device have the bits of core/reduce.h and zipccl_decode_sum()
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/gpu_data.h"

#include "core/reduce.h"

static const enum zipccl_dtype added[] = {ZIPCCL_BFLOAT16, ZIPCCL_FLOAT16, ZIPCCL_FLOAT32};

/* Gaussians, and every eighth element infinity, NaN, zero of either sign, subnormal or any bits. */
static void *special_elements(enum zipccl_dtype dtype, uint64_t seed, size_t n)
{
    static const uint32_t bits[3][9] = {
        {0x7f80, 0xff80, 0x7f81, 0xffff, 0x0000, 0x8000, 0x0001, 0x807f, 0x7f7f},
        {0x7c00, 0xfc00, 0x7c01, 0xffff, 0x0000, 0x8000, 0x0001, 0x83ff, 0x7bff},
        {0x7f800000, 0xff800000, 0x7f800001, 0xffffffff, 0, 0x80000000, 1, 0x807fffff, 0x7f7fffff}};
    struct data_random random = {seed};
    int row = dtype == ZIPCCL_BFLOAT16 ? 0 : dtype == ZIPCCL_FLOAT16 ? 1 : 2;
    uint8_t *elements = gpu_elements(dtype, DATA_GAUSS, seed, n);
    for (size_t i = 0; i < n; i++) {
        uint64_t x = data_next(&random);
        uint32_t special = x >> 3 & 15;
        special = special < 9 ? bits[row][special] : (uint32_t)(x >> 16);
        if (x % 8 == 0)
            memcpy(elements + i * zipccl_dtype_size(dtype), &special, zipccl_dtype_size(dtype));
    }
    return elements;
}

/* Sums that are NaN have any payload. */
static size_t differ(const float *got, const float *expected, size_t n, bool exact)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        bool same = memcmp(&got[i], &expected[i], sizeof got[i]) == 0;
        if (!exact && got[i] != got[i] && expected[i] != expected[i])
            same = true;
        count += !same;
    }
    return count;
}

/* decode_add of 'nmessages' equal messages at a time, three times: start, add, add. */
static void test_decode_add(enum zipccl_dtype dtype, enum zipccl_effort effort, size_t n)
{
    enum { COUNT = 3 };
    size_t size = zipccl_dtype_size(dtype), room = (zipccl_bound(dtype, n) + 15) / 16 * 16;
    float *acc = gpu_alloc(COUNT * n * sizeof *acc), *expected = gpu_alloc(COUNT * n * sizeof *acc);
    uint8_t *wire = gpu_alloc(COUNT * room);
    size_t nbytes = zipccl_gpu_decode_workspace(dtype, COUNT * n, COUNT, 2);
    void *workspace = aligned_alloc(256, nbytes);
    struct zipccl_gpu_result results[COUNT];
    struct zipccl_gpu_decode_args args = {.dtype = dtype,
                                          .nsms = 2,
                                          .batch = {.nmessages = COUNT,
                                                    .first = {acc, wire, n, room},
                                                    .elements_stride = n * sizeof *acc,
                                                    .wire_stride = room},
                                          .d_workspace = workspace,
                                          .workspace_nbytes = nbytes,
                                          .d_results = results};
    for (uint64_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < COUNT; i++) {
            /* Message 1 has zeros taken out, the others are of tiers or raw. */
            uint64_t seed = n + 10 * round + i;
            void *elements = i == 1 ? gpu_elements(dtype, DATA_SPARSE, seed, n)
                                    : special_elements(dtype, seed, n);
            struct gpu_message m = gpu_encode(zipccl_isa_best(), effort, dtype, elements, n);
            memcpy(wire + i * room, m.wire, m.nbytes);
            zipccl_accumulate(dtype, expected + i * n, elements, n, round == 0);
            gpu_message_free(&m);
        }
        CHECK(zipccl_gpu_decode_add(&args, round == 0, NULL) == cudaSuccess, "launch");
        gpu_wait();
        for (size_t i = 0; i < COUNT; i++)
            CHECK(results[i].error == ZIPCCL_OK, "error %u", results[i].error);
        size_t wrong = differ(acc, expected, COUNT * n, round == 0);
        CHECK(wrong == 0, "%zu of %zu sums of %s, round %d", wrong, COUNT * n,
              zipccl_dtype_name(dtype), (int)round);
    }
    args.dtype = ZIPCCL_FLOAT8_E4M3;
    CHECK(zipccl_gpu_decode_add(&args, true, NULL) == cudaErrorInvalidValue, "fp8 has no sums");
    free(acc);
    free(expected);
    free(wire);
    free(workspace);
    (void)size;
}

/* Raw elements into sums and sums into elements, at any place. */
static void test_plain(enum zipccl_dtype dtype, size_t n, size_t shift)
{
    static const uint32_t divisors[] = {1, 3, 8, 1000003};
    size_t size = zipccl_dtype_size(dtype);
    float *acc = gpu_alloc((n + shift) * sizeof *acc), *expected = gpu_alloc(n * sizeof *acc);
    uint8_t *x = gpu_alloc((n + shift) * size), *out = gpu_alloc((n + shift) * size);
    uint8_t *rounded = gpu_alloc(n * size);
    for (uint64_t round = 0; round < 3; round++) {
        void *elements = special_elements(dtype, n + round, n);
        memcpy(x + shift * size, elements, n * size);
        zipccl_accumulate(dtype, expected, elements, n, round == 0);
        CHECK(zipccl_gpu_accumulate(dtype, x + shift * size, n, round == 0, acc + shift, 2, NULL) ==
                  cudaSuccess,
              "launch");
        gpu_wait();
        size_t wrong = differ(acc + shift, expected, n, round == 0);
        CHECK(wrong == 0, "%zu of %zu sums of %s", wrong, n, zipccl_dtype_name(dtype));
        free(elements);
    }
    /* All of the fp32 bits, the borders of rounding among them. */
    struct data_random random = {n + shift};
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)data_next(&random);
        if (i % 3 == 0)
            bits = (bits & 0xfffff000u) + 0x800u * (i % 4);
        if (i % 5 < 2)
            memcpy(&acc[shift + i], &bits, 4);
    }
    for (size_t k = 0; k < sizeof divisors / sizeof divisors[0]; k++) {
        zipccl_round_sums(dtype, acc + shift, n, divisors[k], rounded);
        CHECK(zipccl_gpu_round(dtype, acc + shift, n, divisors[k], out + shift * size, 2, NULL) ==
                  cudaSuccess,
              "launch");
        gpu_wait();
        CHECK(memcmp(out + shift * size, rounded, n * size) == 0, "%zu of %s by %u", n,
              zipccl_dtype_name(dtype), divisors[k]);
        for (size_t b = 0; b < shift * size; b++)
            CHECK(out[b] == 0xa5, "byte %zu before the elements", b);
    }
    free(acc);
    free(expected);
    free(x);
    free(out);
    free(rounded);
}

/*
 * Sum of 'nterms' as zipccl_decode_sum() has it: from a table with messages and elements in turn, then of
 * messages at regular distances with elements of one's own among them, which the result overwrites.
 */
static void test_sum(enum zipccl_dtype dtype, size_t n, uint32_t nterms, uint32_t divisor)
{
    enum { MOST_TERMS = 9 };
    size_t size = zipccl_dtype_size(dtype), room = (zipccl_bound(dtype, n) + 15) / 16 * 16;
    struct zipccl_term terms[MOST_TERMS];
    struct zipccl_gpu_term d_terms[MOST_TERMS];
    struct zipccl_gpu_result results[MOST_TERMS];
    struct gpu_message messages[MOST_TERMS];
    uint8_t *wire = gpu_alloc(nterms * room), *out = gpu_alloc(n * size);
    uint8_t *expected = gpu_alloc(n * size);
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    for (uint32_t t = 0; t < nterms; t++) {
        void *elements =
            t % 4 == 2 ? gpu_elements(dtype, DATA_SPARSE, t, n) : special_elements(dtype, n + t, n);
        messages[t] =
            gpu_encode(zipccl_isa_best(), (enum zipccl_effort)(t / 2 % 2), dtype, elements, n);
        memcpy(wire + t * room, messages[t].wire, messages[t].nbytes);
        bool raw = t % 3 == 1;
        terms[t] = (struct zipccl_term){.bytes = raw ? elements : messages[t].wire,
                                        .nbytes = messages[t].nbytes,
                                        .is_message = !raw};
        d_terms[t] = (struct zipccl_gpu_term){terms[t].bytes, raw ? 0 : messages[t].nbytes};
    }
    CHECK(zipccl_decode_sum(ZIPCCL_ISA_SCALAR, dtype, terms, nterms, n, divisor, expected,
                            scratch) == ZIPCCL_OK,
          "on the CPU");
    size_t nbytes = zipccl_gpu_sum_workspace(dtype, n, nterms, 1);
    void *workspace = aligned_alloc(256, nbytes);
    struct zipccl_gpu_sum_args args = {.dtype = dtype,
                                       .nsms = 1,
                                       .nterms = nterms,
                                       .divisor = divisor,
                                       .n = n,
                                       .d_terms = d_terms,
                                       .own = -1,
                                       .d_dst = out,
                                       .d_workspace = workspace,
                                       .workspace_nbytes = nbytes,
                                       .d_results = results};
    CHECK(zipccl_gpu_decode_sum(&args, NULL) == cudaSuccess, "launch");
    gpu_wait();
    CHECK(memcmp(out, expected, n * size) == 0, "%u terms of %zu %s by %u", nterms, n,
          zipccl_dtype_name(dtype), divisor);
    for (uint32_t t = 0; t < nterms; t++)
        CHECK(results[t].error == ZIPCCL_OK, "term %u", t);
    uint32_t own = nterms / 2;
    args.d_terms = NULL;
    args.d_wire = wire;
    args.wire_stride = args.wire_nbytes = room;
    args.own = (int32_t)own;
    args.d_own = out;
    memcpy(out, messages[own].elements, n * size);
    CHECK(zipccl_gpu_decode_sum(&args, NULL) == cudaSuccess, "launch");
    gpu_wait();
    CHECK(memcmp(out, expected, n * size) == 0, "in place");
    if (n > 0 && own != 0) {
        wire[5] ^= 1;
        CHECK(zipccl_gpu_decode_sum(&args, NULL) == cudaSuccess, "launch");
        gpu_wait();
        CHECK(results[0].error == ZIPCCL_ERR_CORRUPT && results[own].error == ZIPCCL_OK, "corrupt");
    }
    for (uint32_t t = 0; t < nterms; t++)
        gpu_message_free(&messages[t]);
    free(wire);
    free(out);
    free(expected);
    free(scratch);
    free(workspace);
}

/* Headers of a batch: a coded message, one stored raw, one that overflowed, and one that is none. */
static void test_resolve(void)
{
    enum { N = 300, ROOM = 1024 };
    uint8_t *wire = gpu_alloc(4 * ROOM);
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    size_t nbytes[4];
    for (int i = 0; i < 4; i++) {
        void *x = gpu_elements(ZIPCCL_BFLOAT16, i == 1 ? DATA_BITS : DATA_GAUSS, 5, N);
        (void)zipccl_encode(ZIPCCL_ISA_SCALAR, ZIPCCL_BFLOAT16, x, N, wire + i * ROOM,
                            i == 2 ? 100 : ROOM, scratch, &nbytes[i]);
        free(x);
    }
    zipccl_message_set_flags(wire, ZIPCCL_MESSAGE_ANY_OVERFLOW);
    struct zipccl_gpu_result results[4];
    struct zipccl_gpu_seen seen;
    struct zipccl_gpu_batch batch = {
        .nmessages = 4, .first = {NULL, wire, N, ROOM}, .wire_stride = ROOM};
    CHECK(zipccl_gpu_resolve(ZIPCCL_BFLOAT16, &batch, results, &seen, NULL) == cudaSuccess,
          "launch");
    gpu_wait();
    CHECK(seen.flags ==
              (ZIPCCL_MESSAGE_RAW | ZIPCCL_MESSAGE_OVERFLOW | ZIPCCL_MESSAGE_ANY_OVERFLOW),
          "flags %u", seen.flags);
    CHECK(seen.error == ZIPCCL_OK && seen.noverflows == 1 && seen.nraw == 1, "%u %u %u", seen.error,
          seen.noverflows, seen.nraw);
    CHECK(seen.most == nbytes[1] && seen.nbytes == nbytes[0] + nbytes[1] + nbytes[2] + nbytes[3],
          "bytes");
    CHECK(results[2].error == ZIPCCL_ERR_OVERFLOW && results[0].nbytes == nbytes[0], "results");
    wire[3 * ROOM + 9] ^= 1;
    CHECK(zipccl_gpu_resolve(ZIPCCL_BFLOAT16, &batch, NULL, &seen, NULL) == cudaSuccess, "launch");
    gpu_wait();
    CHECK(seen.error == ZIPCCL_ERR_CORRUPT && seen.nbytes == nbytes[0] + nbytes[1] + nbytes[2],
          "a changed header");
    free(wire);
    free(scratch);
}

/* For ThreadSanitizer: each kernel, several blocks. */
static void test_few(void)
{
    gpu_schedule(1);
    test_decode_add(added[0], ZIPCCL_EFFORT_FAST, 17000);
    test_plain(added[1], 5003, 1);
    test_sum(added[2], 17000, 2, 1);
}

int main(void)
{
    if (RACE_CHECKED)
        test_few();
    for (size_t t = 0; t < 3 && !RACE_CHECKED; t++) {
        for (int effort = 0; effort < ZIPCCL_NUM_EFFORTS; effort++) {
            test_decode_add(added[t], (enum zipccl_effort)effort, 701);
            test_decode_add(added[t], (enum zipccl_effort)effort, 17000);
        }
        for (size_t shift = 0; shift < 4; shift++)
            test_plain(added[t], 20003, shift);
        test_plain(added[t], 1, 0);
        test_sum(added[t], 0, 2, 1);
        test_sum(added[t], 1, 1, 1);
        test_sum(added[t], 701, 9, 9);
        test_sum(added[t], 16384, 2, 1);
        for (uint64_t seed = 1; seed <= 20; seed++) {
            gpu_schedule(seed);
            test_sum(added[t], 1001 + seed, 3, (uint32_t)seed);
        }
        gpu_schedule(0);
        test_sum(added[t], 33000, 4, 4);
    }
    test_resolve();
    printf("test_gpu_reduce: %s\n", gpu_failures ? "FAILED" : "ok");
    return gpu_failures != 0;
}
