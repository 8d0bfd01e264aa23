/*
 * test_codec_bench.c - codec bench: its inputs, its peers, its statistics and its files
 *
 * Nothing here depends on how long anything takes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/bench/bench_report.h"
#include "experiments/bench/plain_copy.h"
#include "models/exponent_code.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_tree.h>

enum { N = 70001 };

static const enum zipccl_dtype types[] = {ZIPCCL_BFLOAT16, ZIPCCL_FLOAT16, ZIPCCL_FLOAT32,
                                          ZIPCCL_FLOAT8_E4M3, ZIPCCL_FLOAT8_E5M2};
enum { NUM_TYPES = sizeof types / sizeof types[0] };

Test(codec_bench, quartiles_are_between_the_values_beside_them)
{
    double five[] = {5, 1, 4, 2, 3}, four[] = {4, 1, 3, 2}, one[] = {7};
    struct zipccl_spread s = zipccl_spread_of(five, 5);
    cr_expect(s.median == 3 && s.q1 == 2 && s.q3 == 4);
    s = zipccl_spread_of(four, 4);
    cr_expect(s.median == 2.5 && s.q1 == 1.75 && s.q3 == 3.25);
    s = zipccl_spread_of(one, 1);
    cr_expect(s.median == 7 && s.q1 == 7 && s.q3 == 7);
}

/* Values of an fp8 by its definition. */
static double fp8_value(uint8_t x, int exponent_bits, int mantissa_bits)
{
    int e = (x & 0x7f) >> mantissa_bits, m = x & ((1 << mantissa_bits) - 1);
    int bias = (1 << (exponent_bits - 1)) - 1;
    double value = e ? ldexp((1 << mantissa_bits) + m, e - bias - mantissa_bits)
                     : ldexp(m, 1 - bias - mantissa_bits);
    return x & 0x80 ? -value : value;
}

Test(codec_bench, gaussians_have_their_scale_in_every_type)
{
    float *fp32 = malloc(4 * N);
    uint16_t *bf16 = malloc(2 * N);
    uint8_t *e4m3 = malloc(N), *e5m2 = malloc(N);
    double sums[4] = {0};
    zipccl_bench_fill(ZIPCCL_BENCH_GAUSS, ZIPCCL_FLOAT32, fp32, N);
    zipccl_bench_fill(ZIPCCL_BENCH_GAUSS, ZIPCCL_BFLOAT16, bf16, N);
    zipccl_bench_fill(ZIPCCL_BENCH_GAUSS, ZIPCCL_FLOAT8_E4M3, e4m3, N);
    zipccl_bench_fill(ZIPCCL_BENCH_GAUSS, ZIPCCL_FLOAT8_E5M2, e5m2, N);
    for (int i = 0; i < N; i++) {
        uint32_t bits = (uint32_t)bf16[i] << 16;
        float rounded;
        memcpy(&rounded, &bits, 4);
        /* The same numbers in every type, each to half a step. */
        double x = fp32[i], a = fp8_value(e4m3[i], 4, 3) / 4096;
        double b = fp8_value(e5m2[i], 5, 2) / 524288;
        cr_assert_leq(fabs(rounded - x), fabs(x) / 256);
        cr_assert_leq(fabs(a - x), fmax(fabs(x) / 16, ldexp(1, -10) / 4096), "%g %g", a, x);
        cr_assert_leq(fabs(b - x), fmax(fabs(x) / 8, ldexp(1, -17) / 524288), "%g %g", b, x);
        cr_assert((e4m3[i] & 0x7f) <= 0x7e && (e5m2[i] & 0x7f) <= 0x7b);
        double values[] = {x, rounded, a, b};
        for (int t = 0; t < 4; t++)
            sums[t] += values[t] * values[t];
    }
    for (int t = 0; t < 4; t++)
        cr_expect_float_eq(sqrt(sums[t] / N) / 0.02, 1, 0.02);
    free(fp32);
    free(bf16);
    free(e4m3);
    free(e5m2);
}

Test(codec_bench, other_inputs_are_what_they_are_called)
{
    uint16_t *x = malloc(2 * N);
    struct zipccl_exponent_histogram h;
    size_t ones = 0;
    zipccl_bench_fill(ZIPCCL_BENCH_ZEROS, ZIPCCL_BFLOAT16, x, N);
    for (int i = 0; i < N; i++)
        cr_assert_eq(x[i], 0);
    zipccl_bench_fill(ZIPCCL_BENCH_BITS, ZIPCCL_BFLOAT16, x, N);
    for (int i = 0; i < N; i++)
        ones += (size_t)__builtin_popcount(x[i]);
    cr_expect_float_eq((double)ones / (16.0 * N), 0.5, 0.005);
    /* Scales of a mixture spread the exponents wider than any Gaussian. */
    zipccl_bench_fill(ZIPCCL_BENCH_MIXTURE, ZIPCCL_BFLOAT16, x, N);
    cr_assert(zipccl_exponent_histogram_of(ZIPCCL_BFLOAT16, x, N, &h));
    cr_expect_gt(zipccl_histogram_entropy(&h), 2.7);
    free(x);
}

static void round_trip(const struct zipccl_bench_codec *codec, enum zipccl_dtype dtype,
                       const void *src, size_t n)
{
    struct zipccl_bench_elements elements = {dtype, n, zipccl_dtype_size(dtype)};
    size_t capacity = codec->capacity(&elements), nbytes = 0;
    void *state = codec->create(codec, &elements);
    uint8_t *wire = malloc(capacity), *back = malloc(n * elements.size);
    cr_assert(state && wire && back);
    cr_assert(codec->encode(state, &elements, src, wire, capacity, &nbytes), "%s", codec->name);
    cr_assert(nbytes > 0 && nbytes <= capacity);
    memset(back, 0x5a, n * elements.size);
    cr_assert(codec->decode(state, &elements, wire, nbytes, back), "%s", codec->name);
    cr_assert(memcmp(back, src, n * elements.size) == 0, "%s, %s, n = %zu", codec->name,
              zipccl_dtype_name(dtype), n);
    codec->destroy(state);
    free(wire);
    free(back);
}

Test(codec_bench, every_codec_gives_back_every_input_of_every_type)
{
    static const size_t sizes[] = {1, 2, 63, 1000, N};
    size_t npeers;
    const struct zipccl_bench_codec *peers = zipccl_bench_peers(&npeers);
    struct zipccl_bench_codec ours = zipccl_bench_ours(zipccl_isa_best(), 1);
    struct zipccl_bench_codec threads = zipccl_bench_ours(zipccl_isa_best(), 3);
    void *src = malloc(4 * N);
    cr_assert_geq(npeers, (size_t)1);
    for (int t = 0; t < NUM_TYPES; t++)
        for (int input = ZIPCCL_BENCH_GAUSS; input < ZIPCCL_BENCH_FILE; input++) {
            zipccl_bench_fill((enum zipccl_bench_input)input, types[t], src, N);
            for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
                round_trip(&ours, types[t], src, sizes[s]);
                round_trip(&threads, types[t], src, sizes[s]);
                for (size_t i = 0; i < npeers; i++)
                    round_trip(&peers[i], types[t], src, sizes[s]);
            }
        }
    free(src);
}

Test(codec_bench, huffman_peers_reach_what_huffmans_code_can)
{
    struct zipccl_bench_elements elements = {ZIPCCL_BFLOAT16, N, 2};
    struct zipccl_exponent_histogram h;
    size_t npeers, found = 0;
    const struct zipccl_bench_codec *peers = zipccl_bench_peers(&npeers);
    uint16_t *src = malloc(2 * N);
    zipccl_bench_fill(ZIPCCL_BENCH_GAUSS, ZIPCCL_BFLOAT16, src, N);
    cr_assert(zipccl_exponent_histogram_of(ZIPCCL_BFLOAT16, src, N, &h));
    for (size_t i = 0; i < npeers; i++) {
        if (strncmp(peers[i].name, "huffman", 7) != 0)
            continue;
        size_t capacity = peers[i].capacity(&elements), nbytes = 0;
        void *state = peers[i].create(&peers[i], &elements);
        uint8_t *wire = malloc(capacity);
        cr_assert(peers[i].encode(state, &elements, src, wire, capacity, &nbytes));
        /* Tables and block headers cost, but not two percent; and nothing else is gained. */
        double ideal = zipccl_histogram_huffman_bytes(&h);
        cr_expect((double)nbytes > ideal * 0.999 && (double)nbytes < ideal * 1.02, "%s: %zu, %g",
                  peers[i].name, nbytes, ideal);
        found++;
        peers[i].destroy(state);
        free(wire);
    }
    cr_expect_geq(found, (size_t)1);
    free(src);
}

Test(codec_bench, plain_copies_copy)
{
    enum { MOST = 1000 };
    struct zipccl_plain_copy copies[ZIPCCL_MAX_COPIES];
    size_t ncopies = zipccl_plain_copies(copies);
    uint8_t src[MOST + 64], dst[MOST + 64];
    for (int i = 0; i < MOST + 64; i++)
        src[i] = (uint8_t)(i * 7 + 1);
    if (zipccl_can_evict())
        zipccl_evict(src + 3, MOST);
    for (size_t c = 0; c < ncopies; c++)
        for (size_t n = 0; n <= MOST; n += 37)
            for (size_t shift = 0; shift < 64; shift += 9) {
                memset(dst, 0, sizeof dst);
                copies[c].copy(dst + shift, src + 1, n);
                cr_assert(memcmp(dst + shift, src + 1, n) == 0, "%s", copies[c].name);
                for (size_t i = 0; i < sizeof dst; i++)
                    cr_assert(dst[i] == 0 || (i >= shift && i < shift + n), "%s", copies[c].name);
            }
}

static struct zipccl_bench_options small_options(void)
{
    struct zipccl_bench_options options = {.min_bytes = 1001,
                                           .max_bytes = 4004,
                                           .factor = 4,
                                           .repeats = 2,
                                           .warmup = 1,
                                           .threads = 1,
                                           .ndtypes = NUM_TYPES,
                                           .input = ZIPCCL_BENCH_GAUSS,
                                           .peers = true};
    memcpy(options.dtypes, types, sizeof types);
    options.isa[ZIPCCL_ISA_SCALAR] = true;
    options.isa[zipccl_isa_best()] = true;
    if (zipccl_can_evict())
        options.cache = ZIPCCL_BENCH_COLD;
    return options;
}

static struct zipccl_bench_run run_of(const struct zipccl_bench_options *options)
{
    struct zipccl_bench_run run = {.options = options, .input = "gauss", .command = "test"};
    struct zipccl_error error = {""};
    cr_assert_eq(zipccl_codec_bench(options, zipccl_bench_add, &run, NULL, NULL, &error), ZIPCCL_OK,
                 "%s", error.text);
    return run;
}

Test(codec_bench, gives_a_row_for_each_codec_type_and_size)
{
    struct zipccl_bench_options options = small_options();
    struct zipccl_bench_run run = run_of(&options);
    size_t npeers, own = zipccl_isa_best() == ZIPCCL_ISA_SCALAR ? 1 : 2;
    zipccl_bench_peers(&npeers);
    cr_assert_eq(run.nrows, (own + npeers) * NUM_TYPES * 2);
    for (size_t i = 0; i < run.nrows; i++) {
        const struct zipccl_bench_row *row = &run.rows[i];
        cr_expect_eq(row->wrong, (uint64_t)0);
        cr_expect_eq(row->raw_bytes, row->n * zipccl_dtype_size(row->dtype));
        cr_expect(row->raw_bytes <= 4004 && row->raw_bytes > 0);
        cr_expect_eq(row->cold, zipccl_can_evict());
        const struct zipccl_spread *spreads[] = {&row->encode_GBps, &row->decode_GBps,
                                                 &row->memcpy_GBps, &row->encode_x, &row->decode_x};
        for (int k = 0; k < 5; k++)
            cr_expect(spreads[k]->median > 0 && spreads[k]->q1 <= spreads[k]->median &&
                      spreads[k]->median <= spreads[k]->q3);
        cr_expect(row->bound_ratio > 1 && row->bound_ratio < 2);
        cr_expect_null(row->best_copy);
    }
    free(run.rows);
}

Test(codec_bench, threads_are_measured_without_peers)
{
    struct zipccl_bench_options options = small_options();
    options.min_bytes = options.max_bytes = 200000;
    options.ndtypes = 1;
    options.threads = 2;
    options.peers = false;
    struct zipccl_bench_run run = run_of(&options);
    cr_assert_gt(run.nrows, (size_t)0);
    for (size_t i = 0; i < run.nrows; i++) {
        cr_expect_eq(run.rows[i].codec.threads, 2u);
        cr_expect_eq(run.rows[i].wrong, (uint64_t)0);
        cr_expect_gt(run.rows[i].encode_GBps.median, 0);
    }
    free(run.rows);
}

static yajl_val member(yajl_val value, const char *key, yajl_type type)
{
    const char *path[] = {key, NULL};
    return yajl_tree_get(value, path, type);
}

static char *contents(FILE *file)
{
    long size = ftell(file);
    char *text = calloc(1, (size_t)size + 1);
    rewind(file);
    cr_assert(text && fread(text, 1, (size_t)size, file) == (size_t)size);
    return text;
}

Test(codec_bench, json_and_csv_hold_the_same_rows)
{
    static const char *const numbers[] = {"raw_bytes",   "ratio",       "bound_ratio",
                                          "encode_GBps", "decode_GBps", "memcpy_GBps"};
    static const char *const texts[] = {"codec", "isa", "dtype", "input"};
    struct zipccl_bench_options options = small_options();
    struct zipccl_bench_run run = run_of(&options);
    struct zipccl_error error = {""};
    FILE *file = tmpfile(), *table = tmpfile();
    char reason[256];
    run.input = "a,\"b\".safetensors";
    cr_assert_eq(zipccl_bench_json(&run, file, &error), ZIPCCL_OK);
    char *text = contents(file);
    yajl_val root = yajl_tree_parse(text, reason, sizeof reason);
    cr_assert(root, "%s", reason);
    yajl_val rows = member(root, "rows", yajl_t_array);
    cr_assert(rows && YAJL_GET_ARRAY(rows)->len == run.nrows);
    for (size_t i = 0; i < run.nrows; i++) {
        yajl_val row = YAJL_GET_ARRAY(rows)->values[i];
        for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++)
            cr_expect(member(row, numbers[k], yajl_t_number), "%s", numbers[k]);
        for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++)
            cr_expect(member(row, texts[k], yajl_t_string), "%s", texts[k]);
        cr_expect_eq(YAJL_GET_INTEGER(member(row, "raw_bytes", yajl_t_number)),
                     (long long)run.rows[i].raw_bytes);
    }
    yajl_tree_free(root);
    free(text);
    rewind(file);
    cr_assert_eq(zipccl_bench_csv(&run, table, &error), ZIPCCL_OK);
    text = contents(table);
    size_t lines = 0;
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    cr_expect_eq(lines, run.nrows + 1);
    cr_expect(strncmp(text, "codec,isa,dtype,input,", 22) == 0);
    cr_expect(strstr(text, ",\"a,\"\"b\"\".safetensors\","));
    free(text);
    free(run.rows);
    fclose(file);
    fclose(table);
}

Test(codec_bench, a_file_is_measured_whole_or_up_to_a_size)
{
    static const char header[] =
        "{\"a\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[0,6]},"
        "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[6,10]},"
        "\"c\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[10,14]}}";
    char path[] = "/tmp/zipccl_bench_XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    uint8_t length[8] = {sizeof header - 1};
    static const uint8_t data[14] = {1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 7, 8, 9, 10};
    cr_assert(file);
    fwrite(length, 1, sizeof length, file);
    fwrite(header, 1, sizeof header - 1, file);
    fwrite(data, 1, sizeof data, file);
    fclose(file);

    struct zipccl_bench_options options = small_options();
    struct zipccl_error error = {""};
    options.input = ZIPCCL_BENCH_FILE;
    options.path = path;
    options.min_bytes = options.max_bytes = 0;
    options.ndtypes = 1;
    struct zipccl_bench_run run = run_of(&options);
    cr_expect(run.nrows > 0 && run.rows[0].n == 5 && run.rows[0].wrong == 0);
    free(run.rows);
    options.min_bytes = options.max_bytes = 12;
    struct zipccl_bench_run more = {.options = &options};
    cr_expect_eq(zipccl_codec_bench(&options, zipccl_bench_add, &more, NULL, NULL, &error),
                 ZIPCCL_ERR_INPUT);
    cr_expect(strstr(error.text, "found 10 bytes of bf16, expected 12 for"), "%s", error.text);
    options.dtypes[0] = ZIPCCL_FLOAT8_E5M2;
    cr_expect_eq(zipccl_codec_bench(&options, zipccl_bench_add, &more, NULL, NULL, &error),
                 ZIPCCL_ERR_INPUT);
    cr_expect(strstr(error.text, "found none"), "%s", error.text);
    cr_expect_eq(more.nrows, (size_t)0);
    remove(path);
}
