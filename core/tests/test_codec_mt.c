/*
 * test_codec_mt.c - several threads write the bytes of one, and read them
 *
 * A plain program, so that ThreadSanitizer can run it; sanitized builds run a part of the cases.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/layout.h"
#include "core/codec_mt.h"

#include "core/tests/codec_data.h"
#include "core/tests/coll_world.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = SANITIZED ? 150001 : 310001, CANARY = 64, NSLICES = 6, NTERMS = 3, NUM_USERS = 3 };

static unsigned nchecks, nfailed;

static void expect(bool right, const char *what, enum zipccl_dtype dtype, int kind, size_t n)
{
    nchecks++;
    if (right)
        return;
    nfailed++;
    fprintf(stderr, "%s: %zu %s, input %d\n", what, n, zipccl_dtype_name(dtype), kind);
}

static void *allocate(size_t nbytes)
{
    void *p = aligned_alloc(64, (nbytes + 64) / 64 * 64);
    if (!p)
        abort();
    return p;
}

struct room {
    uint8_t *elements, *out, *one, *many;
    void *scratch;
    enum zipccl_isa isa;
    enum zipccl_effort effort;
};

static struct room room_open(enum zipccl_isa isa)
{
    size_t room = zipccl_bound(ZIPCCL_FLOAT32, MOST) + CANARY;
    return (struct room){allocate(4 * MOST),
                         allocate(4 * MOST),
                         allocate(room),
                         allocate(room),
                         allocate(zipccl_codec_scratch_bytes()),
                         isa,
                         ZIPCCL_EFFORT_FAST};
}

static void room_close(struct room *b)
{
    free(b->elements);
    free(b->out);
    free(b->one);
    free(b->many);
    free(b->scratch);
}

static bool is_canary(const uint8_t *p)
{
    for (size_t i = 0; i < CANARY; i++)
        if (p[i] != 0xc3)
            return false;
    return true;
}

/* A byte changed anywhere is found, or not, by both. */
static void check_broken(struct zipccl_pool *pool, struct room *b, enum zipccl_dtype dtype,
                         int kind, size_t n, size_t nbytes)
{
    struct data_random random = {n};
    for (int i = 0; i < 4; i++) {
        size_t at = data_next(&random) % (i < 2 && nbytes > 96 ? 96 : nbytes);
        b->one[at] ^= 0x10;
        zipccl_status one = zipccl_decode(b->isa, dtype, b->one, nbytes, b->out, n, b->scratch);
        expect(zipccl_decode_mt(pool, b->isa, dtype, b->one, nbytes, b->out, n) == one,
               "status of a broken message", dtype, kind, n);
        b->one[at] ^= 0x10;
    }
}

static void check_message(struct zipccl_pool *pool, struct room *b, enum zipccl_dtype dtype,
                          int kind, size_t n, size_t capacity)
{
    size_t none = 0, nmany = 1;
    capacity = capacity < 32 ? 32 : capacity;
    memset(b->many + capacity, 0xc3, CANARY);
    zipccl_status one = zipccl_encode_effort(b->isa, b->effort, dtype, b->elements, n, b->one,
                                             capacity, b->scratch, &none);
    zipccl_status many =
        zipccl_encode_mt(pool, b->isa, b->effort, dtype, b->elements, n, b->many, capacity, &nmany);
    expect(one == many && none == nmany && memcmp(b->one, b->many, none) == 0, "encoded", dtype,
           kind, n);
    expect(is_canary(b->many + capacity), "beyond the capacity", dtype, kind, n);
    memset(b->out, 0, n * zipccl_dtype_size(dtype));
    many = zipccl_decode_mt(pool, b->isa, dtype, b->one, none, b->out, n);
    expect(many == one &&
               (one != ZIPCCL_OK || memcmp(b->out, b->elements, n * zipccl_dtype_size(dtype)) == 0),
           "decoded", dtype, kind, n);
    check_broken(pool, b, dtype, kind, n, none);
}

static void check_messages(struct zipccl_pool *pool, struct room *b)
{
    static const size_t sizes[] = {0, 5, 65536, 16384 * 8 + 777, MOST};
    struct data_random random = {5};
    for (size_t t = 0; t < DATA_NUM_TYPES; t++)
        for (int kind = 0; kind < DATA_NUM_KINDS; kind += RACE_CHECKED ? 5 : SANITIZED ? 3 : 1)
            for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
                size_t n = sizes[s], bound = zipccl_bound(data_types[t], n);
                data_fill_type(data_types[t], (enum data_kind)kind, &random, 0.6, b->elements, n);
                check_message(pool, b, data_types[t], kind, n, bound);
                check_message(pool, b, data_types[t], kind, n, bound * 7 / 10);
                check_message(pool, b, data_types[t], kind, n, bound / 5);
            }
}

/*
 * One NaN everywhere, as after an overflow in training, alone and after random bits: superblocks of
 * one value, of which a sample says raw.
 */
static void check_constant_nans(struct zipccl_pool *pool, struct room *b)
{
    static const struct {
        enum zipccl_dtype dtype;
        uint8_t bytes[2];
    } nans[] = {{ZIPCCL_FLOAT16, {0x00, 0x7e}},
                {ZIPCCL_BFLOAT16, {0xc0, 0x7f}},
                {ZIPCCL_FLOAT8_E5M2, {0x7e, 0x7e}}};
    struct data_random random = {6};
    for (size_t i = 0; i < sizeof nans / sizeof nans[0]; i++)
        for (size_t nrandom = 0; nrandom <= ZIPCCL_SUPERBLOCK; nrandom += ZIPCCL_SUPERBLOCK) {
            size_t n = 8 * ZIPCCL_SUPERBLOCK, size = zipccl_dtype_size(nans[i].dtype), nbytes;
            size_t bound = zipccl_bound(nans[i].dtype, n);
            data_fill_type(nans[i].dtype, DATA_BITS, &random, 0, b->elements, nrandom);
            for (size_t k = nrandom * size; k < n * size; k++)
                b->elements[k] = nans[i].bytes[k % 2];
            check_message(pool, b, nans[i].dtype, -1, n, bound);
            zipccl_encode(b->isa, nans[i].dtype, b->elements, n, b->one, bound, b->scratch,
                          &nbytes);
            expect(nbytes < nrandom * size + 2048, "constant NaNs raw", nans[i].dtype, -1, n);
        }
}

/* Samples that say raw of elements that max ratio codes all the same. */
static void check_wide(struct zipccl_pool *pool, struct room *b)
{
    struct data_random random = {9};
    for (size_t nbits = 0; nbits <= ZIPCCL_SUPERBLOCK; nbits += ZIPCCL_SUPERBLOCK) {
        size_t n = 8 * ZIPCCL_SUPERBLOCK, nbytes, bound = zipccl_bound(ZIPCCL_FLOAT8_E4M3, n);
        data_wide(&random, b->elements, n);
        data_fill_type(ZIPCCL_FLOAT8_E4M3, DATA_BITS, &random, 0, b->elements, nbits);
        check_message(pool, b, ZIPCCL_FLOAT8_E4M3, -2, n, bound);
        zipccl_encode_effort(b->isa, b->effort, ZIPCCL_FLOAT8_E4M3, b->elements, n, b->one, bound,
                             b->scratch, &nbytes);
        expect((nbytes < bound) == (b->effort == ZIPCCL_EFFORT_RATIO), "wide exponents",
               ZIPCCL_FLOAT8_E4M3, -2, n);
    }
}

/* Gaussians with zeros, constants and random bits here and there: shares of many sizes. */
static void fill_patches(enum zipccl_dtype dtype, struct data_random *random, uint8_t *out,
                         size_t n)
{
    size_t size = zipccl_dtype_size(dtype);
    for (size_t first = 0; first < n;) {
        size_t len = 1 + data_next(random) % 40000;
        len = len < n - first ? len : n - first;
        data_fill_type(dtype, (enum data_kind)(data_next(random) % DATA_NUM_KINDS), random, 0.1,
                       out + size * first, len);
        first += len;
    }
}

/* Every capacity around the message's own size, where the variable bytes have to move. */
static void check_patches(struct zipccl_pool *pool, struct room *b)
{
    struct data_random random = {6};
    for (size_t t = 0; t < DATA_NUM_TYPES; t++)
        for (int i = 0; i < (SANITIZED ? 2 : 6); i++) {
            size_t n = MOST - data_next(&random) % (MOST / 3), nbytes = 0;
            enum zipccl_dtype dtype = data_types[t];
            fill_patches(dtype, &random, b->elements, n);
            zipccl_encode_effort(b->isa, b->effort, dtype, b->elements, n, b->one,
                                 zipccl_bound(dtype, n), b->scratch, &nbytes);
            check_message(pool, b, dtype, -1, n, nbytes);
            check_message(pool, b, dtype, -1, n, nbytes - 1);
            check_message(pool, b, dtype, -1, n, nbytes + nbytes / 20);
        }
}

static void check_slices(struct zipccl_pool *pool, struct room *b, const size_t *ns, size_t percent)
{
    struct zipccl_slice slices[2][NSLICES];
    enum zipccl_dtype dtype = ZIPCCL_BFLOAT16;
    struct data_random random = {7};
    size_t first = 0, at = 0;
    for (size_t i = 0; i < NSLICES; i++) {
        size_t capacity = zipccl_bound(dtype, ns[i]) * percent / 100;
        struct zipccl_slice slice = {b->elements + 2 * first,       ns[i], b->one + at,
                                     capacity < 32 ? 32 : capacity, 0,     ZIPCCL_OK};
        data_fill_type(dtype, i == 3 ? DATA_BITS : DATA_GAUSS, &random, 0.5,
                       b->elements + 2 * first, ns[i]);
        slices[0][i] = slices[1][i] = slice;
        slices[1][i].dst = b->many + at;
        first += ns[i];
        at += slice.capacity;
    }
    bool right = zipccl_encode_many(b->isa, b->effort, dtype, slices[0], NSLICES, b->scratch) ==
                 zipccl_encode_many_mt(pool, b->isa, b->effort, dtype, slices[1], NSLICES);
    for (size_t i = 0; i < NSLICES; i++)
        right = right && slices[0][i].status == slices[1][i].status &&
                slices[0][i].nbytes == slices[1][i].nbytes &&
                memcmp(slices[0][i].dst, slices[1][i].dst, slices[0][i].nbytes) == 0;
    expect(right, "slices", dtype, (int)percent, first);
}

static void check_sum(struct zipccl_pool *pool, struct room *b, enum zipccl_dtype dtype, size_t n)
{
    struct zipccl_term terms[NTERMS] = {{0}};
    struct data_random random = {8};
    size_t size = zipccl_dtype_size(dtype), bound = zipccl_bound(dtype, n);
    uint8_t *want = allocate(size * n);
    for (size_t t = 0; t < NTERMS; t++) {
        uint8_t *elements = allocate(size * n), *wire = allocate(bound);
        data_fill_type(dtype, t == 1 ? DATA_SPOILED : DATA_GAUSS, &random, 0.5, elements, n);
        terms[t] = (struct zipccl_term){.bytes = elements};
        if (t > 0) {
            terms[t] = (struct zipccl_term){.bytes = wire, .is_message = true};
            zipccl_encode(b->isa, dtype, elements, n, wire, bound, b->scratch, &terms[t].nbytes);
        }
        free(t > 0 ? elements : wire);
    }
    zipccl_status one = zipccl_decode_sum(b->isa, dtype, terms, NTERMS, n, 3, want, b->scratch);
    zipccl_status many = zipccl_decode_sum_mt(pool, b->isa, dtype, terms, NTERMS, n, 3, b->out);
    expect(one == ZIPCCL_OK && many == one && memcmp(want, b->out, size * n) == 0, "sum", dtype, 0,
           n);
    terms[2].nbytes -= 1;
    expect(zipccl_decode_sum_mt(pool, b->isa, dtype, terms, NTERMS, n, 3, b->out) ==
               ZIPCCL_ERR_CORRUPT,
           "sum of a short message", dtype, 0, n);
    for (size_t t = 0; t < NTERMS; t++)
        free((void *)(uintptr_t)terms[t].bytes);
    free(want);
}

static void check_fused(struct zipccl_pool *pool, struct room *b)
{
    static const size_t equal[NSLICES] = {20000, 20000, 20000, 20000, 20000, 20000};
    static const size_t uneven[NSLICES] = {80000, 0, 70, 3000, 40000, 16384};
    static const size_t tiny[NSLICES] = {1, 2, 3, 4, 5, 6};
    static const enum zipccl_dtype types[] = {ZIPCCL_BFLOAT16, ZIPCCL_FLOAT16, ZIPCCL_FLOAT32};
    check_slices(pool, b, equal, 100);
    check_slices(pool, b, equal, 72);
    check_slices(pool, b, uneven, 100);
    check_slices(pool, b, uneven, 72);
    check_slices(pool, b, tiny, 100);
    for (size_t t = 0; t < 3; t++) {
        check_sum(pool, b, types[t], 7);
        check_sum(pool, b, types[t], 65536);
        check_sum(pool, b, types[t], MOST);
    }
}

/* One of several threads that use a pool at once. */
struct user {
    struct zipccl_pool *pool;
    struct room room;
    bool right;
};

static void *use(void *p)
{
    struct user *user = p;
    struct room *b = &user->room;
    size_t n = MOST, nbytes = 0;
    user->right = true;
    for (int i = 0; i < 4; i++)
        user->right =
            user->right &&
            zipccl_encode_mt(user->pool, b->isa, b->effort, ZIPCCL_BFLOAT16, b->elements, n, b->one,
                             zipccl_bound(ZIPCCL_BFLOAT16, n), &nbytes) == ZIPCCL_OK &&
            zipccl_decode_mt(user->pool, b->isa, ZIPCCL_BFLOAT16, b->one, nbytes, b->out, n) ==
                ZIPCCL_OK &&
            memcmp(b->elements, b->out, 2 * n) == 0;
    return NULL;
}

static void check_sharing(struct zipccl_pool *pool, enum zipccl_isa isa)
{
    struct user users[NUM_USERS];
    pthread_t threads[NUM_USERS];
    for (size_t i = 0; i < NUM_USERS; i++) {
        struct data_random random = {i};
        users[i] = (struct user){pool, room_open(isa), false};
        data_fill_type(ZIPCCL_BFLOAT16, DATA_GAUSS, &random, 0.5, users[i].room.elements, MOST);
        if (pthread_create(&threads[i], NULL, use, &users[i]) != 0)
            abort();
    }
    for (size_t i = 0; i < NUM_USERS; i++) {
        pthread_join(threads[i], NULL);
        expect(users[i].right, "a shared pool", ZIPCCL_BFLOAT16, (int)i, MOST);
        room_close(&users[i].room);
    }
}

static void check_arguments(struct zipccl_pool *pool)
{
    struct zipccl_pool *none = NULL;
    struct zipccl_slice slice = {.capacity = 31};
    struct zipccl_term term = {.bytes = &none};
    uint8_t wire[64];
    size_t nbytes = 3;
    enum zipccl_isa best = zipccl_isa_best();
    bool right =
        zipccl_pool_create(0, &none) == ZIPCCL_ERR_ARG &&
        zipccl_pool_create(ZIPCCL_MAX_THREADS + 1, &none) == ZIPCCL_ERR_ARG &&
        zipccl_pool_create(2, NULL) == ZIPCCL_ERR_ARG && none == NULL &&
        zipccl_encode_mt(pool, best, ZIPCCL_EFFORT_FAST, ZIPCCL_INT8, "x", 1, wire, 31, &nbytes) ==
            ZIPCCL_ERR_ARG &&
        zipccl_encode_mt(pool, ZIPCCL_NUM_ISAS, ZIPCCL_EFFORT_FAST, ZIPCCL_INT8, "x", 1, wire, 64,
                         &nbytes) == ZIPCCL_ERR_ARG &&
        zipccl_decode_mt(pool, best, ZIPCCL_NUM_DTYPES, wire, 64, wire, 1) == ZIPCCL_ERR_ARG &&
        zipccl_decode_mt(pool, ZIPCCL_NUM_ISAS, ZIPCCL_INT8, wire, 64, wire, 1) == ZIPCCL_ERR_ARG &&
        zipccl_encode_many_mt(pool, best, ZIPCCL_EFFORT_FAST, ZIPCCL_INT8, &slice, 1) ==
            ZIPCCL_ERR_ARG &&
        zipccl_decode_sum_mt(pool, best, ZIPCCL_INT8, &term, 1, 1, 1, wire) ==
            ZIPCCL_ERR_UNSUPPORTED &&
        zipccl_decode_sum_mt(pool, best, ZIPCCL_BFLOAT16, &term, 1, 1, 0, wire) == ZIPCCL_ERR_ARG &&
        zipccl_decode_sum_mt(pool, ZIPCCL_NUM_ISAS, ZIPCCL_BFLOAT16, &term, 1, 1, 1, wire) ==
            ZIPCCL_ERR_ARG &&
        nbytes == 3;
    expect(right, "arguments", ZIPCCL_INT8, 0, 0);
    zipccl_pool_destroy(NULL);
}

int main(void)
{
    static const uint32_t nthreads[] = {2, 3, 1, 7};
    for (size_t i = RACE_CHECKED; i < (SANITIZED ? 2 : 4); i++) {
        enum zipccl_isa isa = i == 1 && !SANITIZED ? ZIPCCL_ISA_SCALAR : zipccl_isa_best();
        struct room b = room_open(isa);
        struct zipccl_pool *pool;
        if (zipccl_pool_create(nthreads[i], &pool) != ZIPCCL_OK)
            abort();
        check_arguments(pool);
        check_messages(pool, &b);
        check_constant_nans(pool, &b);
        check_patches(pool, &b);
        check_wide(pool, &b);
        b.effort = ZIPCCL_EFFORT_RATIO;
        check_patches(pool, &b);
        check_wide(pool, &b);
        b.effort = ZIPCCL_EFFORT_FAST;
        check_fused(pool, &b);
        check_sharing(pool, isa);
        zipccl_pool_destroy(pool);
        room_close(&b);
    }
    printf("%u checks, %u failures\n", nchecks, nfailed);
    return nfailed == 0 && nchecks > 0 ? 0 : 1;
}
