/*
 * test_codec_tensors.c - captured tensors against a Huffman code and against exhaustive choice
 *
 * Reads ../shared/data/tensors/{dense,moe}.safetensors and is skipped without them.  Each tensor
 * is one message, every byte of it counted.  The Huffman code is one per tensor over its
 * exponents, without the bytes of its table; the exhaustive choice tries every program and base.
 * All bf16 tensors of a file in one message are a case of their own: scales change within it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/superblock.h"

#include "core/tests/codec_data.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CLASSES = 64 };

struct class
{
    char name[64];
    double raw, wire, slow, huffman, exhaustive; /* bits; slow: for max ratio */
};

/* All bf16 tensors of a file one after the other, and those with few zeros. */
struct joined {
    uint8_t *all, *dense;
    size_t nall, ndense; /* bytes */
    size_t separate;     /* bytes of the latter as messages of their own */
};

struct table {
    struct class classes[MOST_CLASSES];
    int nclasses;
    struct joined joined;
    void *scratch;
};

static struct class *class_of(struct table *t, const char *name)
{
    for (int i = 0; i < t->nclasses; i++)
        if (strcmp(t->classes[i].name, name) == 0)
            return &t->classes[i];
    cr_assert_lt(t->nclasses, MOST_CLASSES);
    struct class *c = &t->classes[t->nclasses++];
    snprintf(c->name, sizeof c->name, "%s", name);
    return c;
}

/* Sum of the lengths of a Huffman code: the sum of all inner weights. */
static double huffman_bits(const double counts[256])
{
    double weight[256], sum = 0;
    int n = 0;
    for (int i = 0; i < 256; i++)
        if (counts[i] > 0)
            weight[n++] = counts[i];
    if (n == 1)
        return weight[0];
    for (; n > 1; n--) {
        for (int k = 0; k < 2; k++) /* the two least to the end */
            for (int i = 0; i < n - 1 - k; i++)
                if (weight[i] < weight[n - 1 - k]) {
                    double swap = weight[i];
                    weight[i] = weight[n - 1 - k];
                    weight[n - 1 - k] = swap;
                }
        weight[n - 2] += weight[n - 1];
        sum += weight[n - 2];
    }
    return sum;
}

/* Bits of 'm' exponents by the best program, with the best base of each sub-block. */
static double best_bits(const uint8_t *e, size_t m)
{
    double best = 8.0 * (double)m;
    for (int id = 1; id < ZIPCCL_NUM_PROGRAMS; id++) {
        const struct zipccl_tier_program *program = &zipccl_programs[id];
        double sum = 0;
        uint8_t length[256], total = 8;
        for (int t = 0; t < program->ntiers; t++)
            total = (uint8_t)(total + program->tier[t].width);
        memset(length, total, sizeof length);
        total = 0;
        for (int t = 0; t < program->ntiers; t++) {
            total = (uint8_t)(total + program->tier[t].width);
            for (int k = 0; k < (1 << program->tier[t].width) - 1; k++)
                length[(uint8_t)program->tier[t].d[k]] = total;
        }
        for (size_t first = 0; first < m; first += ZIPCCL_SUBBLOCK) {
            double count[256] = {0}, least = 1e18;
            for (size_t i = first; i < m && i < first + ZIPCCL_SUBBLOCK; i++)
                count[e[i]]++;
            for (int base = 0; base < 256; base++) {
                double bits = 0;
                for (int k = 0; k < 256; k++)
                    bits += count[k] * length[(uint8_t)(base - k)];
                least = bits < least ? bits : least;
            }
            sum += least;
        }
        best = sum < best ? sum : best;
    }
    return best;
}

static uint8_t exponent_of(const struct zipccl_fields *f, const uint8_t *p)
{
    uint32_t x = 0;
    memcpy(&x, p, f->size);
    unsigned mantissa = 8 * f->size - 1u - f->exponent_bits;
    return (uint8_t)(x >> mantissa & ((1u << f->exponent_bits) - 1));
}

/* Bits of one superblock if program, bases and zeros were chosen by trying all. */
static double exhaustive_bits(const struct zipccl_fields *f, const uint8_t *src, size_t m)
{
    static const uint8_t zero[4];
    uint8_t *e = malloc(m), *rest = malloc(m);
    size_t nrest = 0, shown = 0;
    double other = 8.0 * f->size - f->exponent_bits;
    for (size_t i = 0; i < m; i++)
        e[i] = exponent_of(f, src + f->size * i);
    for (size_t g = 0; g < m; g += 64) {
        size_t before = nrest;
        for (size_t i = g; i < m && i < g + 64; i++)
            if (memcmp(src + f->size * i, zero, f->size) != 0)
                rest[nrest++] = e[i];
        shown += nrest > before;
    }
    double plain = best_bits(e, m) + other * (double)m;
    double bitmap =
        best_bits(rest, nrest) + other * (double)nrest + 8 * (double)zipccl_bitmap_bytes(m, shown);
    free(e);
    free(rest);
    if (nrest == 0)
        return 8 * ZIPCCL_ENTRY_BYTES;
    return (bitmap < plain ? bitmap : plain) + 8 * ZIPCCL_ENTRY_BYTES;
}

static size_t add_tensor(struct table *t, const char *const *names, enum zipccl_dtype dtype,
                         const uint8_t *src, size_t n)
{
    const struct zipccl_fields *f = zipccl_fields_of(dtype);
    size_t capacity = zipccl_bound(dtype, n), nbytes = 0;
    uint8_t *wire = malloc(capacity), *back = malloc(n * f->size);
    double counts[256] = {0}, exhaustive = 0;
    cr_assert_eq(
        zipccl_encode(zipccl_isa_best(), dtype, src, n, wire, capacity, t->scratch, &nbytes),
        ZIPCCL_OK);
    cr_assert_eq(zipccl_decode(zipccl_isa_best(), dtype, wire, nbytes, back, n, t->scratch),
                 ZIPCCL_OK);
    cr_assert(memcmp(back, src, n * f->size) == 0);
    size_t nslow = 0;
    uint8_t *slow = malloc(capacity);
    cr_assert_eq(zipccl_encode_effort(zipccl_isa_best(), ZIPCCL_EFFORT_RATIO, dtype, src, n, slow,
                                      capacity, t->scratch, &nslow),
                 ZIPCCL_OK);
    cr_assert_eq(zipccl_decode(zipccl_isa_best(), dtype, slow, nslow, back, n, t->scratch),
                 ZIPCCL_OK);
    cr_assert(memcmp(back, src, n * f->size) == 0);
    /* The estimate of a Gaussian is trusted within its chance. */
    cr_expect_leq((double)nslow, (double)nbytes * 1.001, "%s: %zu, fast %zu", names[0], nslow,
                  nbytes);
    free(slow);
    for (size_t i = 0; i < n; i++)
        counts[exponent_of(f, src + f->size * i)]++;
    for (size_t i = 0; i < n; i += ZIPCCL_SUPERBLOCK)
        exhaustive +=
            exhaustive_bits(f, src + f->size * i, zipccl_superblock_n(n, i / ZIPCCL_SUPERBLOCK));
    for (int k = 0; names[k]; k++) {
        struct class *c = class_of(t, names[k]);
        c->raw += 8.0 * (double)(n * f->size);
        c->wire += 8.0 * (double)nbytes;
        c->slow += 8.0 * (double)nslow;
        c->huffman += huffman_bits(counts) + (double)n * (8.0 * f->size - f->exponent_bits);
        c->exhaustive += exhaustive;
    }
    free(wire);
    free(back);
    return nbytes;
}

/* Append a bf16 tensor to the joined ones; alone it takes 'nbytes'. */
static void join(struct joined *joined, const uint8_t *src, size_t n, size_t nbytes)
{
    size_t zeros = 0;
    for (size_t i = 0; i < n; i++)
        zeros += src[2 * i] == 0 && (src[2 * i + 1] & 0x7f) == 0;
    memcpy(joined->all + joined->nall, src, 2 * n);
    joined->nall += 2 * n;
    if (zeros > n / 16)
        return;
    memcpy(joined->dense + joined->ndense, src, 2 * n);
    joined->ndense += 2 * n;
    joined->separate += nbytes;
}

static double ratio_of(const struct table *t, const uint8_t *src, size_t nraw)
{
    size_t capacity = zipccl_bound(ZIPCCL_BFLOAT16, nraw / 2), nbytes = 0;
    uint8_t *wire = malloc(capacity), *back = malloc(nraw);
    cr_assert_eq(zipccl_encode(zipccl_isa_best(), ZIPCCL_BFLOAT16, src, nraw / 2, wire, capacity,
                               t->scratch, &nbytes),
                 ZIPCCL_OK);
    cr_assert_eq(
        zipccl_decode(zipccl_isa_best(), ZIPCCL_BFLOAT16, wire, nbytes, back, nraw / 2, t->scratch),
        ZIPCCL_OK);
    cr_assert(memcmp(back, src, nraw) == 0);
    free(wire);
    free(back);
    return (double)nraw / (double)nbytes;
}

/* Ratio of bf16 if one Huffman code served all of src [nraw]. */
static double huffman_ratio(const uint8_t *src, size_t nraw)
{
    double counts[256] = {0};
    for (size_t i = 0; i < nraw; i += 2)
        counts[exponent_of(zipccl_fields_of(ZIPCCL_BFLOAT16), src + i)]++;
    return 8.0 * (double)nraw / (huffman_bits(counts) + 4.0 * (double)nraw);
}

/* One message of tensors whose scales lie decades apart: bases follow, one code for all cannot. */
static void check_joined(const struct table *t, const char *file)
{
    const struct joined *j = &t->joined;
    double all = ratio_of(t, j->all, j->nall), dense = ratio_of(t, j->dense, j->ndense);
    double huffman = huffman_ratio(j->dense, j->ndense);
    double separate = (double)j->ndense / (double)j->separate;
    printf("%s, all bf16 in one message: %.4f; tensors with few zeros: %.4f, as one message each "
           "%.4f, one Huffman code %.4f\n",
           file, all, dense, separate, huffman);
    cr_expect_geq(all, 1.49, "%s: %.4f", file, all);
    cr_expect_gt(dense, 0.99 * separate, "%s: %.4f", file, dense);
    cr_expect_gt(dense, huffman + 0.05);
}

/* The class of a tensor by its name. */
static const char *kind_of(const char *name)
{
    static const struct {
        const char *part, *kind;
    } kinds[] = {{"reshard.optim", "optimizer state"},
                 {"grad_fp32", "fp32 gradients"},
                 {"grad_fp16_scaled", "scaled fp16 gradients"},
                 {"grad_fp16", "unscaled fp16 gradients"},
                 {"sparse.attn_probs", "attention probabilities"},
                 {"sparse.", "sparse"},
                 {"padded", "padded"},
                 {"param", "parameters"},
                 {"cp.dk", "dk/dv"},
                 {"cp.dv", "dk/dv"},
                 {"grad.embed", "embedding gradients"},
                 {"grad.head", "head gradients"},
                 {"reducescatter.grad", "gradients"},
                 {"alltoall", "all-to-all"},
                 {"", "activations"}};
    int k = 0;
    while (!strstr(name, kinds[k].part))
        k++;
    return kinds[k].kind;
}

static bool dtype_of(const char *description, enum zipccl_dtype *dtype)
{
    static const struct {
        const char *text;
        enum zipccl_dtype dtype;
    } types[] = {{"\"dtype\":\"BF16\"", ZIPCCL_BFLOAT16},
                 {"\"dtype\":\"F16\"", ZIPCCL_FLOAT16},
                 {"\"dtype\":\"F32\"", ZIPCCL_FLOAT32}};
    for (int k = 0; k < 3; k++)
        if (strstr(description, types[k].text)) {
            *dtype = types[k].dtype;
            return true;
        }
    return false;
}

/* Every `"name":{"dtype":...,"data_offsets":[from,to]}` of a safetensors description. */
static void add_file(struct table *t, const char *file, uint8_t *bytes)
{
    size_t skip = (size_t)bytes[0] | (size_t)bytes[1] << 8 | (size_t)bytes[2] << 16;
    char *text = malloc(skip + 1), *at = text;
    memcpy(text, bytes + 8, skip);
    text[skip] = '\0';
    for (char *offsets; (offsets = strstr(at, "\"data_offsets\":[")) != NULL;) {
        char *open = offsets, name[160], class[2][64];
        size_t from, to;
        while (*open != '{')
            open--;
        char *quote = open - 2;
        while (quote > text && quote[-1] != '"')
            quote--;
        snprintf(name, sizeof name, "%.*s", (int)(open - 2 - quote), quote);
        cr_assert_eq(sscanf(offsets, "\"data_offsets\":[%zu,%zu]", &from, &to), 2);
        *offsets = '\0';
        enum zipccl_dtype dtype;
        if (dtype_of(open, &dtype)) {
            snprintf(class[0], sizeof class[0], "%s %s", file, kind_of(name));
            snprintf(class[1], sizeof class[1], "all %s", zipccl_dtype_name(dtype));
            const char *const names[] = {class[0], class[1], "all types", NULL};
            size_t n = (to - from) / zipccl_dtype_size(dtype);
            size_t nbytes = add_tensor(t, names, dtype, bytes + 8 + skip + from, n);
            if (dtype == ZIPCCL_BFLOAT16)
                join(&t->joined, bytes + 8 + skip + from, n, nbytes);
        }
        at = offsets + 1;
    }
    free(text);
}

static uint8_t *read_all(const char *name, size_t *size)
{
    static const char *const places[] = {"../shared", "../../shared"};
    for (int k = 0; k < 2; k++) {
        char path[96];
        snprintf(path, sizeof path, "%s/data/tensors/%s.safetensors", places[k], name);
        FILE *file = fopen(path, "rb");
        if (!file)
            continue;
        cr_assert_eq(fseek(file, 0, SEEK_END), 0);
        long nbytes = ftell(file);
        rewind(file);
        uint8_t *bytes = malloc((size_t)nbytes);
        cr_assert_eq(fread(bytes, 1, (size_t)nbytes, file), (size_t)nbytes);
        fclose(file);
        *size = (size_t)nbytes;
        return bytes;
    }
    return NULL;
}

static void check(const struct table *t)
{
    printf("%-32s %8s %8s %8s %8s %8s\n", "class", "ratio", "Huffman", "vs it %", "choice %",
           "max");
    for (int i = 0; i < t->nclasses; i++) {
        const struct class *c = &t->classes[i];
        double against = 100 * (c->huffman / c->wire - 1);
        double chosen = 100 * (c->exhaustive / c->wire - 1);
        printf("%-32s %8.4f %8.4f %+8.2f %+8.2f %8.4f\n", c->name, c->raw / c->wire,
               c->raw / c->huffman, against, chosen, c->raw / c->slow);
        /* Unscaled fp16 gradients are subnormal: one exponent has more than half of them, and no
         * program gives a code shorter than its bit to two. */
        double least = strstr(c->name, "dk/dv") ? -0.8 : strstr(c->name, "unscaled") ? -1.0 : -0.5;
        cr_expect_gt(against, least, "%s", c->name);
        if (strcmp(c->name, "all bf16") == 0 || strcmp(c->name, "all types") == 0)
            cr_expect_gt(against, 0, "%s", c->name);
        /* The sample's choice costs little against trying everything. */
        if (c->raw / c->wire < 2)
            cr_expect_gt(chosen, strstr(c->name, "sparse") ? -1.2 : -0.5, "%s", c->name);
        if (strcmp(c->name, "dense embedding gradients") == 0)
            cr_expect_geq(c->raw / c->wire, 12);
    }
}

Test(codec_tensors, are_no_worse_than_huffman)
{
    static const char *const names[] = {"dense", "moe"};
    struct table t = {.scratch = aligned_alloc(64, zipccl_codec_scratch_bytes())};
    for (size_t i = 0; i < 2; i++) {
        size_t size;
        uint8_t *bytes = read_all(names[i], &size);
        if (!bytes)
            continue;
        t.joined = (struct joined){.all = malloc(size), .dense = malloc(size)};
        add_file(&t, names[i], bytes);
        check_joined(&t, names[i]);
        free(t.joined.all);
        free(t.joined.dense);
        free(bytes);
    }
    free(t.scratch);
    if (t.nclasses == 0) {
        puts("skipped: no captured tensors beside the tree");
        cr_skip_test("no captured tensors");
    }
    check(&t);
}
