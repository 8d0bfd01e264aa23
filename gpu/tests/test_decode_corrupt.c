/*
 * test_decode_corrupt.c - kernels and the CPU agree on which bytes are messages, and on their elements
 *
 * The vectors of core/tests/vectors, valid and refused; then messages with every byte of header and
 * directory changed, with changed variable bytes, and cut at every length.  Buffers end where the
 * message does, so that ASan sees what is read or written beyond.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/gpu_data.h"

#include "core/codec/header.h"

#define DIRECTORY "core/tests/vectors"

/* Most messages of a launch, and elements of one. */
enum { MOST = ZIPCCL_GPU_MAX_MESSAGES, MOST_N = 1 << 17 };

/* Messages to be decoded by one launch, all of a type. */
struct batch {
    enum zipccl_dtype dtype;
    uint32_t count;
    struct zipccl_gpu_slot slots[MOST];
    char names[MOST][64];
};

/* As zipccl_gpu_result.error tells it. */
static uint32_t verdict_of(enum zipccl_dtype dtype, const struct zipccl_gpu_slot *slot, void *out)
{
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    zipccl_status status =
        zipccl_decode(ZIPCCL_ISA_SCALAR, dtype, slot->wire, slot->capacity, out, slot->n, scratch);
    free(scratch);
    return (uint32_t)status;
}

static void run(struct batch *batch, uint32_t nsms)
{
    size_t size = zipccl_dtype_size(batch->dtype), total_n = 0;
    struct zipccl_gpu_result *results = gpu_alloc(MOST * sizeof *results);
    for (uint32_t i = 0; i < batch->count; i++)
        total_n += batch->slots[i].n;
    size_t nbytes = zipccl_gpu_decode_workspace(batch->dtype, total_n, batch->count, nsms);
    void *workspace = aligned_alloc(256, nbytes > 0 ? nbytes : 256);
    struct zipccl_gpu_decode_args args = {
        .dtype = batch->dtype,
        .nsms = nsms,
        .batch = {.nmessages = batch->count, .d_slots = batch->slots, .total_n = total_n},
        .d_workspace = workspace,
        .workspace_nbytes = nbytes,
        .d_results = results};
    CHECK(zipccl_gpu_decode(&args, NULL) == cudaSuccess, "launch");
    gpu_wait();
    for (uint32_t i = 0; i < batch->count; i++) {
        struct zipccl_gpu_slot *slot = &batch->slots[i];
        void *expected = gpu_alloc(slot->n * size);
        uint32_t verdict = verdict_of(batch->dtype, slot, expected);
        CHECK(results[i].error == verdict, "%s: verdict %u, on the CPU %u", batch->names[i],
              results[i].error, verdict);
        if (verdict == ZIPCCL_OK)
            CHECK(memcmp(slot->elements, expected, slot->n * size) == 0, "%s: elements",
                  batch->names[i]);
        free(expected);
        free(slot->elements);
        free(slot->wire);
    }
    batch->count = 0;
    free(results);
    free(workspace);
}

/* Add a copy of wire [nbytes] to the batch, which is run when it is full. */
static uint8_t *add(struct batch *batch, const uint8_t *wire, size_t nbytes, size_t n,
                    const char *name)
{
    if (batch->count == MOST)
        run(batch, 2);
    uint32_t i = batch->count++;
    uint8_t *copy = gpu_alloc(nbytes);
    memcpy(copy, wire, nbytes);
    void *elements = gpu_alloc(n * zipccl_dtype_size(batch->dtype));
    batch->slots[i] = (struct zipccl_gpu_slot){elements, copy, n, nbytes};
    snprintf(batch->names[i], sizeof batch->names[i], "%s", name);
    return copy;
}

static size_t load(const char *name, uint8_t *bytes, size_t most)
{
    char path[256];
    snprintf(path, sizeof path, DIRECTORY "/%s", name);
    FILE *f = fopen(path, "rb");
    CHECK(f, "%s; run from the top of the tree", path);
    if (!f)
        return 0;
    size_t nbytes = fread(bytes, 1, most, f);
    fclose(f);
    return nbytes;
}

/* Every message of the vectors, as its header calls itself; its verdict is checked too. */
static void test_vectors(void)
{
    static uint8_t bytes[1 << 18];
    static struct batch batches[ZIPCCL_NUM_DTYPES];
    char line[1024], name[64], verdict[16];
    FILE *f = fopen(DIRECTORY "/MANIFEST.tsv", "r");
    size_t nfiles = 0, nvalid = 0;
    CHECK(f, "no vectors; run from the top of the tree");
    while (f && fgets(line, sizeof line, f)) {
        if (line[0] == '#' || sscanf(line, "%63s %15s", name, verdict) != 2)
            continue;
        size_t nbytes = load(name, bytes, sizeof bytes), n = 700;
        enum zipccl_dtype dtype = ZIPCCL_BFLOAT16;
        bool valid = strcmp(verdict, "valid") == 0;
        if (nbytes >= 32 && zipccl_dtype_size((enum zipccl_dtype)bytes[5]) > 0)
            dtype = (enum zipccl_dtype)bytes[5];
        if (nbytes >= 32 && zipccl_get_u64(bytes + 8) <= MOST_N)
            n = zipccl_get_u64(bytes + 8);
        batches[dtype].dtype = dtype;
        uint8_t *copy = add(&batches[dtype], bytes, nbytes, n, name);
        uint8_t *out = gpu_alloc(n * zipccl_dtype_size(dtype));
        const struct zipccl_gpu_slot slot = {NULL, copy, n, nbytes};
        CHECK((verdict_of(dtype, &slot, out) == ZIPCCL_OK) == valid, "%s", name);
        free(out);
        nfiles++;
        nvalid += valid;
    }
    if (f)
        fclose(f);
    CHECK(nfiles > 150 && nvalid > 50, "%zu files, %zu valid", nfiles, nvalid);
    for (int dtype = 0; dtype < ZIPCCL_NUM_DTYPES; dtype++)
        run(&batches[dtype], 3);
}

/* Change byte 'at' in some ways; with 'mend' the header's check is made right again. */
static void change(struct batch *batch, const struct gpu_message *m, size_t at, bool mend)
{
    static const uint8_t flips[] = {1, 0x90, 0xff};
    for (size_t k = 0; k < sizeof flips; k++) {
        char name[64];
        snprintf(name, sizeof name, "%zu of %s, byte %zu ^ %02x", m->n, zipccl_dtype_name(m->dtype),
                 at, flips[k]);
        uint8_t *copy = add(batch, m->wire, m->nbytes, m->n, name);
        copy[at] ^= flips[k];
        if (mend)
            zipccl_put_u32(copy + ZIPCCL_AT_CHECK, zipccl_header_check(copy));
    }
}

/* A message in every way that is not a message, or another one. */
static void spoil(struct batch *batch, struct gpu_message m, bool header)
{
    size_t superblocks = (m.n + 16383) / 16384, directory = 32 + 32 * superblocks;
    struct data_random random = {m.n};
    batch->dtype = m.dtype;
    for (size_t at = 0; header && at < 32; at++) {
        change(batch, &m, at, false);
        change(batch, &m, at, true);
    }
    for (size_t at = 32; at < directory && at < m.nbytes; at++)
        change(batch, &m, at, false);
    for (size_t k = 0; k < 20 && directory < m.nbytes; k++)
        change(batch, &m, directory + data_next(&random) % (m.nbytes - directory), false);
    gpu_message_free(&m);
}

/* The first 'end' bytes, for each length, or some. */
static void cut(struct batch *batch, struct gpu_message m, size_t step)
{
    batch->dtype = m.dtype;
    for (size_t end = 0; end <= m.nbytes; end += step) {
        char name[64];
        snprintf(name, sizeof name, "%zu of %s, cut to %zu", m.n, zipccl_dtype_name(m.dtype), end);
        uint8_t *copy = add(batch, m.wire, end, m.n, name);
        /* So that the body is looked at, the header agrees. */
        if (end > 32 && !(m.wire[6] & ZIPCCL_MESSAGE_RAW) && end % 2 == 0) {
            zipccl_put_u64(copy + ZIPCCL_AT_BODY, end - 32);
            zipccl_put_u32(copy + ZIPCCL_AT_CHECK, zipccl_header_check(copy));
        }
    }
    gpu_message_free(&m);
}

static struct gpu_message message(enum zipccl_dtype dtype, enum data_kind kind,
                                  enum zipccl_effort effort, size_t n)
{
    return gpu_encode(ZIPCCL_ISA_SCALAR, effort, dtype, gpu_elements(dtype, kind, n, n), n);
}

static void test_changes(bool all)
{
    static struct batch batch;
    static const enum data_kind kinds[] = {DATA_GAUSS,  DATA_SPARSE,   DATA_SPOILED,
                                           DATA_PEAKED, DATA_CONSTANT, DATA_HALF_BITS};
    for (int t = 0; t < DATA_NUM_TYPES; t++) {
        size_t step = all || t == 0 ? 1 : 5;
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
            for (int effort = 0; effort < ZIPCCL_NUM_EFFORTS; effort++)
                if (all || t == 0 || (k + (size_t)t) % 3 == 0)
                    spoil(&batch,
                          message(data_types[t], kinds[k], (enum zipccl_effort)effort,
                                  all ? 1700 : 400),
                          all || (t == 0 && k == 0));
        if (all || t == 0)
            spoil(&batch, message(data_types[t], DATA_GAUSS, ZIPCCL_EFFORT_FAST, 17000), all);
        cut(&batch, message(data_types[t], DATA_GAUSS, ZIPCCL_EFFORT_FAST, 200), step);
        cut(&batch, message(data_types[t], DATA_SPARSE, ZIPCCL_EFFORT_RATIO, 500), step);
        run(&batch, 2);
    }
}

int main(void)
{
    const char *tests = getenv("GPU_TESTS");
    test_vectors();
    test_changes(tests && strcmp(tests, "all") == 0);
    printf("test_decode_corrupt: %s\n", gpu_failures ? "FAILED" : "ok");
    return gpu_failures != 0;
}
