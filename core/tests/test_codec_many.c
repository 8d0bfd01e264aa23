/*
 * test_codec_many.c - slices of a buffer become messages, messages become rows or sums
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec.h"

#include "core/reduce.h"
#include "core/tests/codec_data.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { NSLICES = 7, MOST = 50001, NTERMS = 4 };

static const size_t slice_n[NSLICES] = {16384, 0, 50001, 1, 777, 16385, 33000};

static void *allocate(size_t nbytes)
{
    return aligned_alloc(64, (nbytes + 64) / 64 * 64);
}

static bool usable(int isa)
{
    return zipccl_isa_usable((enum zipccl_isa)isa);
}

/* Encode slices of 'kind' with a share of the room they may need; compare with one by one. */
static void check_many(enum zipccl_isa isa, enum zipccl_dtype dtype, enum data_kind kind,
                       size_t percent)
{
    struct data_random random = {91};
    struct zipccl_slice slices[NSLICES];
    struct data_guarded wire[NSLICES];
    size_t size = zipccl_dtype_size(dtype), total = 0, noverflows = 0;
    for (size_t i = 0; i < NSLICES; i++)
        total += slice_n[i];
    uint8_t *elements = allocate(size * total), *alone = allocate(zipccl_bound(dtype, MOST));
    void *scratch = allocate(zipccl_codec_scratch_bytes());
    data_fill_type(dtype, kind, &random, 0.7, elements, total);
    for (size_t i = 0, first = 0; i < NSLICES; first += slice_n[i++]) {
        size_t capacity = zipccl_bound(dtype, slice_n[i]) * percent / 100;
        capacity = capacity < 32 ? 32 : capacity;
        wire[i] = data_guard(capacity);
        slices[i] = (struct zipccl_slice){
            elements + size * first, slice_n[i], wire[i].bytes, capacity, 99, ZIPCCL_ERR_INTERNAL};
    }
    zipccl_status status = zipccl_encode_many(isa, dtype, slices, NSLICES, scratch);
    for (size_t i = 0; i < NSLICES; i++)
        noverflows += slices[i].status == ZIPCCL_ERR_OVERFLOW;
    cr_assert_eq(status, noverflows ? ZIPCCL_ERR_OVERFLOW : ZIPCCL_OK);
    for (size_t i = 0; i < NSLICES; i++) {
        size_t nbytes = 0;
        bool over = slices[i].status == ZIPCCL_ERR_OVERFLOW;
        cr_assert_eq(zipccl_encode(ZIPCCL_ISA_SCALAR, dtype, slices[i].src, slice_n[i], alone,
                                   slices[i].capacity, scratch, &nbytes),
                     slices[i].status);
        if (noverflows > over)
            zipccl_message_set_flags(alone, ZIPCCL_MESSAGE_ANY_OVERFLOW);
        cr_assert_eq(nbytes, slices[i].nbytes);
        cr_assert(memcmp(alone, slices[i].dst, nbytes) == 0, "slice %zu, %s", i,
                  zipccl_dtype_name(dtype));
        data_unguard(&wire[i]);
    }
    free(elements);
    free(alone);
    free(scratch);
}

Test(codec_many, messages_are_those_encoded_one_by_one)
{
    static const enum data_kind kinds[] = {DATA_GAUSS, DATA_SPARSE, DATA_HALF_BITS, DATA_CONSTANT};
    for (int isa = 0; isa < ZIPCCL_NUM_ISAS; isa++)
        for (size_t k = 0; usable(isa) && k < 4; k++) {
            for (size_t t = 0; t < DATA_NUM_TYPES; t++) {
                check_many((enum zipccl_isa)isa, data_types[t], kinds[k], 100);
                check_many((enum zipccl_isa)isa, data_types[t], kinds[k], 75);
                check_many((enum zipccl_isa)isa, data_types[t], kinds[k], 1);
            }
        }
}

Test(codec_many, one_overflow_is_told_in_all_other_messages)
{
    enum { N = 4000 };
    static uint16_t elements[3][N];
    static uint8_t wire[3][2 * N + 32];
    struct data_random random = {92};
    struct zipccl_slice slices[3];
    struct zipccl_message message;
    void *scratch = allocate(zipccl_codec_scratch_bytes());
    data_gauss(&random, elements[0], N, 1);
    data_bits(&random, elements[1], N);
    data_gauss(&random, elements[2], N, 1);
    for (size_t i = 0; i < 3; i++)
        slices[i] = (struct zipccl_slice){elements[i], N, wire[i], 2 * N - N / 4, 0, ZIPCCL_OK};
    cr_assert_eq(zipccl_encode_many(zipccl_isa_best(), ZIPCCL_BFLOAT16, slices, 3, scratch),
                 ZIPCCL_ERR_OVERFLOW);
    for (size_t i = 0; i < 3; i++) {
        cr_assert_eq(zipccl_message_read(wire[i], slices[i].nbytes, &message), ZIPCCL_OK);
        cr_assert_eq(message.flags, i == 1 ? ZIPCCL_MESSAGE_OVERFLOW : ZIPCCL_MESSAGE_ANY_OVERFLOW);
    }
    free(scratch);
}

Test(codec_many, a_slice_that_cannot_be_is_refused_before_any_is_written)
{
    uint16_t x[4] = {1, 2, 3, 4};
    uint8_t wire[2][64] = {{0xaa}, {0xaa}};
    struct zipccl_slice slices[2] = {{x, 4, wire[0], 64, 5, ZIPCCL_OK},
                                     {x, 4, wire[1], 31, 5, ZIPCCL_OK}};
    enum zipccl_isa best = zipccl_isa_best();
    cr_assert_eq(zipccl_encode_many(best, ZIPCCL_BFLOAT16, slices, 2, NULL), ZIPCCL_ERR_ARG);
    slices[1].capacity = 64;
    slices[1].n = SIZE_MAX;
    cr_assert_eq(zipccl_encode_many(best, ZIPCCL_BFLOAT16, slices, 2, NULL), ZIPCCL_ERR_ARG);
    cr_assert_eq(zipccl_encode_many(ZIPCCL_NUM_ISAS, ZIPCCL_BFLOAT16, slices, 1, NULL),
                 ZIPCCL_ERR_ARG);
    cr_assert_eq(zipccl_encode_many(best, ZIPCCL_NUM_DTYPES, slices, 1, NULL), ZIPCCL_ERR_ARG);
    cr_assert(wire[0][0] == 0xaa && slices[0].nbytes == 5);
    cr_assert_eq(zipccl_encode_many(best, ZIPCCL_BFLOAT16, slices, 0, NULL), ZIPCCL_OK);
}

/* Rows in a buffer that ends with the last element; what lies between rows must stay. */
static void check_rows(enum zipccl_isa isa, enum zipccl_dtype dtype, const uint8_t *elements,
                       size_t n, const uint8_t *wire, size_t nbytes, size_t row, size_t stride,
                       void *scratch)
{
    size_t size = zipccl_dtype_size(dtype), nrows = n / row + (n % row != 0);
    size_t span = n == 0 ? 0 : (nrows - 1) * stride + (n - (nrows - 1) * row);
    struct data_guarded place = data_guard(size * span);
    uint8_t *want = allocate(size * span);
    memset(place.bytes, 0x5c, size * span);
    memset(want, 0x5c, size * span);
    for (size_t i = 0; i < n; i++)
        memcpy(want + size * (i / row * stride + i % row), elements + size * i, size);
    cr_assert_eq(
        zipccl_decode_strided(isa, dtype, wire, nbytes, place.bytes, n, row, stride, scratch),
        ZIPCCL_OK);
    cr_assert(memcmp(place.bytes, want, size * span) == 0, "%zu %s, row %zu, stride %zu", n,
              zipccl_dtype_name(dtype), row, stride);
    data_unguard(&place);
    free(want);
}

Test(codec_strided, decodes_to_where_a_copy_would_put_the_rows)
{
    static const size_t rows[][2] = {{1, 1},         {1, 3},         {64, 64},
                                     {100, 333},     {16384, 16385}, {20000, 20001},
                                     {40000, 41000}, {MOST, MOST},   {MOST + 5, MOST + 9}};
    static const size_t sizes[] = {0, 1, 99, 16384, MOST};
    static const enum data_kind kinds[] = {DATA_GAUSS, DATA_SPARSE, DATA_BITS, DATA_MIXTURE};
    struct data_random random = {93};
    uint8_t *elements = allocate(4 * MOST), *wire = allocate(4 * MOST + 64);
    void *scratch = allocate(zipccl_codec_scratch_bytes());
    for (size_t t = 0; t < DATA_NUM_TYPES; t++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            size_t nbytes = 0;
            data_fill_type(data_types[t], kinds[(s + t) % 4], &random, 0.2, elements, sizes[s]);
            zipccl_encode(ZIPCCL_ISA_SCALAR, data_types[t], elements, sizes[s], wire, 4 * MOST + 64,
                          scratch, &nbytes);
            for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
                for (int isa = 0; isa < ZIPCCL_NUM_ISAS; isa++)
                    if (usable(isa))
                        check_rows((enum zipccl_isa)isa, data_types[t], elements, sizes[s], wire,
                                   nbytes, rows[r][0], rows[r][1], scratch);
        }
    free(elements);
    free(wire);
    free(scratch);
}

Test(codec_strided, refuses_rows_that_cannot_be_and_broken_messages)
{
    uint16_t x[8] = {0};
    uint8_t wire[64];
    size_t nbytes = 0;
    void *scratch = allocate(zipccl_codec_scratch_bytes());
    enum zipccl_isa best = zipccl_isa_best();
    zipccl_encode(best, ZIPCCL_INT8, "abcdefg", 7, wire, 64, scratch, &nbytes);
    cr_assert_eq(zipccl_decode_strided(best, ZIPCCL_INT8, wire, nbytes, x, 7, 0, 1, scratch),
                 ZIPCCL_ERR_ARG);
    cr_assert_eq(zipccl_decode_strided(best, ZIPCCL_INT8, wire, nbytes, x, 7, 3, 2, scratch),
                 ZIPCCL_ERR_ARG);
    cr_assert_eq(
        zipccl_decode_strided(best, ZIPCCL_INT8, wire, nbytes, x, 7, 1, SIZE_MAX / 4, scratch),
        ZIPCCL_ERR_ARG);
    cr_assert_eq(
        zipccl_decode_strided(ZIPCCL_NUM_ISAS, ZIPCCL_INT8, wire, nbytes, x, 7, 7, 7, scratch),
        ZIPCCL_ERR_ARG);
    cr_assert_eq(zipccl_decode_strided(best, ZIPCCL_INT8, wire, nbytes, x, 7, 4, 8, scratch),
                 ZIPCCL_OK);
    cr_assert(memcmp(x, "abcd\0\0\0\0efg\0", 12) == 0);
    cr_assert_eq(zipccl_decode_strided(best, ZIPCCL_INT8, wire, nbytes - 1, x, 7, 4, 8, scratch),
                 ZIPCCL_ERR_CORRUPT);
    free(scratch);
}

/* A sum of messages and plain elements, and what separate steps make of them. */
static void check_sum(enum zipccl_isa isa, enum zipccl_dtype dtype, size_t n, uint32_t divisor,
                      uint32_t messages)
{
    static const enum data_kind kinds[NTERMS] = {DATA_SPOILED, DATA_GAUSS, DATA_SPARSE, DATA_BITS};
    struct data_random random = {94};
    struct zipccl_term terms[NTERMS];
    size_t size = zipccl_dtype_size(dtype), bound = zipccl_bound(dtype, n);
    uint8_t *elements[NTERMS], *wire[NTERMS], *want = allocate(size * n);
    struct data_guarded dst = data_guard(size * n);
    float *acc = allocate(4 * n);
    void *scratch = allocate(zipccl_codec_scratch_bytes());
    for (size_t t = 0; t < NTERMS; t++) {
        size_t nbytes = 0;
        elements[t] = allocate(size * n);
        wire[t] = allocate(bound);
        data_fill_type(dtype, kinds[t], &random, 0.9, elements[t], n);
        zipccl_encode(isa, dtype, elements[t], n, wire[t], bound, scratch, &nbytes);
        zipccl_accumulate(dtype, acc, elements[t], n, t == 0);
        terms[t] = (struct zipccl_term){.bytes = messages >> t & 1 ? wire[t] : elements[t],
                                        .nbytes = nbytes,
                                        .is_message = messages >> t & 1};
    }
    zipccl_round_sums(dtype, acc, n, divisor, want);
    cr_assert_eq(zipccl_decode_sum(isa, dtype, terms, NTERMS, n, divisor, dst.bytes, scratch),
                 ZIPCCL_OK);
    cr_assert(memcmp(dst.bytes, want, size * n) == 0, "%zu %s, messages %x", n,
              zipccl_dtype_name(dtype), messages);
    /* In place of the second term. */
    terms[1] = (struct zipccl_term){.bytes = elements[1]};
    cr_assert_eq(zipccl_decode_sum(isa, dtype, terms, NTERMS, n, divisor, elements[1], scratch),
                 ZIPCCL_OK);
    cr_assert(memcmp(elements[1], want, size * n) == 0);
    for (size_t t = 0; t < NTERMS; t++) {
        free(elements[t]);
        free(wire[t]);
    }
    data_unguard(&dst);
    free(want);
    free(acc);
    free(scratch);
}

Test(codec_sum, has_the_bits_of_separate_steps)
{
    static const size_t sizes[] = {0, 1, 16383, 16385, MOST};
    static const enum zipccl_dtype types[] = {ZIPCCL_BFLOAT16, ZIPCCL_FLOAT16, ZIPCCL_FLOAT32};
    for (int isa = 0; isa < ZIPCCL_NUM_ISAS; isa++)
        for (size_t t = 0; usable(isa) && t < 3; t++)
            for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
                for (uint32_t k = 0; k < 3; k++)
                    check_sum((enum zipccl_isa)isa, types[t], sizes[s], k == 1 ? 3 : 1,
                              k == 0   ? 15
                              : k == 1 ? 5
                                       : 0);
}

Test(codec_sum, starts_as_the_first_term)
{
    uint16_t x = 0x8000, y = 0;
    void *scratch = allocate(zipccl_codec_scratch_bytes());
    struct zipccl_term term = {.bytes = &x};
    cr_assert_eq(zipccl_decode_sum(zipccl_isa_best(), ZIPCCL_BFLOAT16, &term, 1, 1, 1, &y, scratch),
                 ZIPCCL_OK);
    cr_assert_eq(y, 0x8000, "-0 stays");
    free(scratch);
}

Test(codec_sum, refuses_what_it_cannot_add)
{
    uint16_t x[4] = {0}, y[4];
    uint8_t wire[64];
    size_t nbytes = 0;
    void *scratch = allocate(zipccl_codec_scratch_bytes());
    enum zipccl_isa best = zipccl_isa_best();
    struct zipccl_term terms[2] = {{.bytes = x}, {.bytes = wire, .nbytes = 64, .is_message = true}};
    zipccl_encode(best, ZIPCCL_BFLOAT16, x, 4, wire, 64, scratch, &nbytes);
    cr_assert_eq(zipccl_decode_sum(best, ZIPCCL_BFLOAT16, terms, 2, 4, 1, y, scratch), ZIPCCL_OK);
    cr_assert_eq(zipccl_decode_sum(best, ZIPCCL_BFLOAT16, terms, 0, 4, 1, y, scratch),
                 ZIPCCL_ERR_ARG);
    cr_assert_eq(zipccl_decode_sum(best, ZIPCCL_BFLOAT16, terms, 2, 4, 0, y, scratch),
                 ZIPCCL_ERR_ARG);
    cr_assert_eq(zipccl_decode_sum(ZIPCCL_NUM_ISAS, ZIPCCL_BFLOAT16, terms, 2, 4, 1, y, scratch),
                 ZIPCCL_ERR_ARG);
    cr_assert_eq(zipccl_decode_sum(best, ZIPCCL_FLOAT64, terms, 2, 4, 1, y, scratch),
                 ZIPCCL_ERR_UNSUPPORTED);
    cr_assert_eq(zipccl_decode_sum(best, ZIPCCL_BFLOAT16, terms, 2, 3, 1, y, scratch),
                 ZIPCCL_ERR_CORRUPT);
    zipccl_message_write_header(wire, ZIPCCL_BFLOAT16, ZIPCCL_MESSAGE_OVERFLOW, 4, 0);
    cr_assert_eq(zipccl_decode_sum(best, ZIPCCL_BFLOAT16, terms, 2, 4, 1, y, scratch),
                 ZIPCCL_ERR_OVERFLOW);
    free(scratch);
}
