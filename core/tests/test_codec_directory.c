/*
 * test_codec_directory.c - what a message's directory says of its superblocks
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/directory.h"
#include "core/tests/codec_data.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { N = 4 * 16384 + 1000 };

struct message {
    uint8_t *wire;
    size_t nbytes;
};

static struct message encode(enum zipccl_dtype dtype, const void *src, size_t n)
{
    struct message m = {.wire = malloc(zipccl_bound(dtype, n))};
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    cr_assert(m.wire && scratch);
    cr_assert_eq(zipccl_encode(zipccl_isa_best(), dtype, src, n, m.wire, zipccl_bound(dtype, n),
                               scratch, &m.nbytes),
                 ZIPCCL_OK);
    free(scratch);
    return m;
}

Test(codec_directory, accounts_for_every_byte_of_the_message)
{
    struct data_random random = {61};
    void *src = malloc(4 * N);
    size_t coded = 0;
    cr_assert(src);
    for (int t = 0; t < DATA_NUM_TYPES; t++)
        for (int kind = 0; kind < DATA_NUM_KINDS; kind++) {
            data_fill_type(data_types[t], (enum data_kind)kind, &random, 0.4, src, N);
            struct message m = encode(data_types[t], src, N);
            struct zipccl_directory directory;
            cr_assert_eq(zipccl_directory_open(m.wire, m.nbytes, &directory), ZIPCCL_OK);
            size_t nbytes = 32, n = 0;
            for (size_t s = 0; s < directory.nsuperblocks; s++) {
                struct zipccl_superblock_mode mode;
                cr_assert_eq(zipccl_directory_read(&directory, s, &mode), ZIPCCL_OK);
                nbytes += mode.nbytes;
                n += mode.n;
                cr_expect_str_neq(zipccl_program_name(mode.program), "?");
            }
            if (directory.nsuperblocks > 0) {
                /* Five entries and the header end on a multiple of 64. */
                cr_expect_eq(directory.nsuperblocks, (size_t)5);
                cr_expect_eq(nbytes, m.nbytes);
                cr_expect_eq(n, (size_t)N);
                coded++;
            } else {
                cr_expect_eq(m.nbytes, zipccl_bound(data_types[t], N));
            }
            free(m.wire);
        }
    cr_expect_gt(coded, (size_t)30);
    free(src);
}

Test(codec_directory, names_the_program_that_each_superblock_took)
{
    static uint16_t src[N];
    struct data_random random = {62};
    struct zipccl_directory directory;
    struct zipccl_superblock_mode mode;
    data_gauss(&random, src, N, 1.0);
    memset(src + 16384, 0, 2 * 16384);
    data_bits(&random, src + 2 * 16384, 16384);
    memset(src + 3 * 16384, 0, 16384);
    struct message m = encode(ZIPCCL_BFLOAT16, src, N);
    cr_assert_eq(zipccl_directory_open(m.wire, m.nbytes, &directory), ZIPCCL_OK);
    cr_assert_eq(directory.nsuperblocks, (size_t)5);
    static const struct {
        const char *name; /* NULL: one of the Gaussians' */
        bool zeros;
    } expected[5] = {
        {NULL, false}, {"constant", false}, {"raw", false}, {NULL, true}, {NULL, false}};
    for (size_t s = 0; s < 5; s++) {
        cr_assert_eq(zipccl_directory_read(&directory, s, &mode), ZIPCCL_OK);
        cr_expect_eq(mode.zeros, expected[s].zeros, "%zu", s);
        if (expected[s].name)
            cr_expect_str_eq(zipccl_program_name(mode.program), expected[s].name);
        else
            cr_expect(mode.program >= ZIPCCL_PROGRAM_21223 && mode.program < ZIPCCL_NUM_PROGRAMS);
        cr_expect_eq(mode.n, s < 4 ? (size_t)16384 : (size_t)1000);
    }
    cr_expect_eq(zipccl_directory_read(&directory, 5, &mode), ZIPCCL_ERR_ARG);
    free(m.wire);
}

Test(codec_directory, trusts_no_byte)
{
    static uint16_t src[N];
    struct data_random random = {63};
    struct zipccl_directory directory;
    struct zipccl_superblock_mode mode;
    data_gauss(&random, src, N, 1.0);
    struct message m = encode(ZIPCCL_BFLOAT16, src, N);
    cr_expect_eq(zipccl_directory_open(m.wire, m.nbytes - 1, &directory), ZIPCCL_ERR_CORRUPT);
    cr_expect_eq(zipccl_directory_open(m.wire, 31, &directory), ZIPCCL_ERR_CORRUPT);
    m.wire[32] = ZIPCCL_PROGRAM_ANS + 1; /* no such program */
    cr_assert_eq(zipccl_directory_open(m.wire, m.nbytes, &directory), ZIPCCL_OK);
    cr_expect_eq(zipccl_directory_read(&directory, 0, &mode), ZIPCCL_ERR_CORRUPT);
    cr_expect_eq(zipccl_directory_read(&directory, 1, &mode), ZIPCCL_OK);
    /* A header whose body could not hold the directory it calls for. */
    zipccl_message_write_header(m.wire, ZIPCCL_BFLOAT16, 0, 1u << 20, 100);
    cr_expect_eq(zipccl_directory_open(m.wire, m.nbytes, &directory), ZIPCCL_ERR_CORRUPT);
    free(m.wire);
    m = encode(ZIPCCL_INT32, src, 100);
    cr_assert_eq(zipccl_directory_open(m.wire, m.nbytes, &directory), ZIPCCL_OK);
    cr_expect_eq(directory.nsuperblocks, (size_t)0);
    cr_expect_eq(zipccl_directory_read(&directory, 0, &mode), ZIPCCL_ERR_ARG);
    free(m.wire);
}
