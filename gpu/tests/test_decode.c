/*
 * test_decode.c - kernels decode what the CPU encodes, bit for bit, and what the vectors say
 *
 * Usage: test_decode          a covering set
 *        GPU_TESTS=all ...    the full product of schedules and cases
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/gpu_data.h"

#include "core/codec/directory.h"

/* Messages of one launch. */
enum { MOST = ZIPCCL_GPU_MAX_MESSAGES };

struct batch {
    struct gpu_message messages[MOST];
    size_t count;
};

static void add(struct batch *batch, struct gpu_message message)
{
    if (batch->count == MOST)
        abort();
    batch->messages[batch->count++] = message;
}

static void clear(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        gpu_message_free(&batch->messages[i]);
    batch->count = 0;
}

/*
 * Decode a batch by one launch from a table, each message to its own buffer, 'shift' elements into it, and
 * compare.
 */
static void decode_table(const struct batch *batch, enum zipccl_dtype dtype, size_t shift,
                         uint32_t nsms)
{
    size_t size = zipccl_dtype_size(dtype), total_n = 0;
    struct zipccl_gpu_slot *slots = gpu_alloc(batch->count * sizeof *slots);
    struct zipccl_gpu_result *results = gpu_alloc(batch->count * sizeof *results);
    for (size_t i = 0; i < batch->count; i++) {
        const struct gpu_message *m = &batch->messages[i];
        uint8_t *dst = gpu_alloc((m->n + shift) * size);
        slots[i] = (struct zipccl_gpu_slot){dst + shift * size, m->wire, m->n, m->nbytes};
        total_n += m->n;
    }
    size_t nbytes = zipccl_gpu_decode_workspace(dtype, total_n, (uint32_t)batch->count, nsms);
    void *workspace = aligned_alloc(256, nbytes);
    struct zipccl_gpu_decode_args args = {
        .dtype = dtype,
        .nsms = nsms,
        .batch = {.nmessages = (uint32_t)batch->count, .d_slots = slots, .total_n = total_n},
        .d_workspace = workspace,
        .workspace_nbytes = nbytes,
        .d_results = results};
    CHECK(zipccl_gpu_decode(&args, NULL) == cudaSuccess, "launch");
    gpu_wait();
    for (size_t i = 0; i < batch->count; i++) {
        const struct gpu_message *m = &batch->messages[i];
        uint8_t *dst = (uint8_t *)slots[i].elements - shift * size;
        CHECK(results[i].error == ZIPCCL_OK && results[i].nbytes == m->nbytes,
              "message %zu, %zu of %s: error %u, %llu bytes", i, m->n, zipccl_dtype_name(dtype),
              results[i].error, (unsigned long long)results[i].nbytes);
        CHECK(memcmp(slots[i].elements, m->elements, m->n * size) == 0,
              "message %zu, %zu of %s, shift %zu", i, m->n, zipccl_dtype_name(dtype), shift);
        for (size_t k = 0; k < shift * size; k++)
            CHECK(dst[k] == 0xa5, "byte %zu before the elements", k);
        free(dst);
    }
    free(slots);
    free(results);
    free(workspace);
}

/* Every kind of data, effort and row in turn, at sizes around the format's borders. */
static void fill(struct batch *batch, enum zipccl_dtype dtype, uint64_t seed, bool all)
{
    static const size_t sizes[] = {0,    1,    5,     63,    64,    65,   700,
                                   1024, 4097, 16383, 16384, 16385, 40001};
    size_t nsizes = sizeof sizes / sizeof sizes[0];
    for (int kind = 0; kind < DATA_NUM_KINDS; kind++)
        for (size_t k = 0; k < nsizes; k++)
            for (int effort = 0; effort < ZIPCCL_NUM_EFFORTS; effort++) {
                uint64_t x = seed + 31 * (uint64_t)kind + 7 * k;
                /* The large ones take most of the time: some kinds each. */
                if (!all && sizes[k] > 1024 && (x + (uint64_t)effort) % 4 != 0)
                    continue;
                enum zipccl_isa isa = x % 2 ? ZIPCCL_ISA_SCALAR : zipccl_isa_best();
                add(batch,
                    gpu_encode(isa, (enum zipccl_effort)effort, dtype,
                               gpu_elements(dtype, (enum data_kind)kind, x, sizes[k]), sizes[k]));
            }
}

/* Programs among the batch's superblocks, as bits; bit 31 for any with a bitmap. */
static uint32_t programs_of(const struct batch *batch)
{
    uint32_t seen = 0;
    for (size_t i = 0; i < batch->count; i++) {
        struct zipccl_directory directory;
        CHECK(zipccl_directory_open(batch->messages[i].wire, batch->messages[i].nbytes,
                                    &directory) == ZIPCCL_OK,
              "directory");
        for (size_t s = 0; s < directory.nsuperblocks; s++) {
            struct zipccl_superblock_mode mode;
            CHECK(zipccl_directory_read(&directory, s, &mode) == ZIPCCL_OK, "entry");
            seen |= 1u << mode.program | (mode.zeros ? 1u << 31 : 0);
        }
    }
    return seen;
}

static void test_product(bool all)
{
    static struct batch batch;
    uint32_t seen = 0;
    for (int t = 0; t < DATA_NUM_TYPES; t++) {
        enum zipccl_dtype dtype = data_types[t];
        fill(&batch, dtype, (uint64_t)t + 1, all);
        seen |= programs_of(&batch);
        decode_table(&batch, dtype, 0, 2);
        clear(&batch);
    }
    CHECK(seen == (0x800003ffu), "programs seen: %08x", seen);
}

/* 20 schedules on messages of several superblocks; all modes are among the vectors. */
static void test_schedules(bool all)
{
    static struct batch batch;
    static const enum data_kind kinds[] = {DATA_GAUSS, DATA_SPOILED, DATA_SPARSE, DATA_PEAKED};
    for (uint64_t seed = 1; seed <= (RACE_CHECKED ? 7 : 20); seed++) {
        enum zipccl_dtype dtype = data_types[seed % DATA_NUM_TYPES];
        gpu_schedule(seed);
        if (all)
            fill(&batch, dtype, seed, false);
        for (size_t k = 0; k < 4; k++)
            add(&batch, gpu_encode(ZIPCCL_ISA_SCALAR, (enum zipccl_effort)((seed + k) % 2), dtype,
                                   gpu_elements(dtype, kinds[k], seed, 1700), 1700));
        decode_table(&batch, dtype, seed % 3, 1);
        clear(&batch);
    }
    gpu_schedule(0);
}

/* Elements that lie anywhere, of every type. */
static void test_shifts(void)
{
    static struct batch batch;
    for (int dtype = 0; dtype < ZIPCCL_NUM_DTYPES; dtype++)
        for (size_t shift = 0; shift < 4; shift++) {
            bool coded = zipccl_dtype_compressible((enum zipccl_dtype)dtype);
            for (size_t n = 0; n < 1300; n += 431) {
                size_t nbytes = n * zipccl_dtype_size((enum zipccl_dtype)dtype);
                uint8_t *elements;
                if (coded) {
                    elements = gpu_elements((enum zipccl_dtype)dtype, DATA_GAUSS, shift, n);
                } else {
                    elements = gpu_alloc(nbytes);
                    for (size_t k = 0; k < nbytes; k++)
                        elements[k] = (uint8_t)(k * 37);
                }
                add(&batch, gpu_encode(ZIPCCL_ISA_SCALAR, ZIPCCL_EFFORT_FAST,
                                       (enum zipccl_dtype)dtype, elements, n));
            }
            decode_table(&batch, (enum zipccl_dtype)dtype, shift, 1);
            clear(&batch);
        }
}

/* Equal messages at regular distances, an overflowed one among them, and one of many superblocks. */
static void test_strides(void)
{
    enum { N = 20000, COUNT = 5, ROOM = 32768 };
    uint8_t *wire = gpu_alloc(COUNT * ROOM);
    uint16_t *elements = gpu_alloc(2 * COUNT * N), *out = gpu_alloc(2 * COUNT * N);
    struct zipccl_gpu_result results[COUNT];
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    for (size_t i = 0; i < COUNT; i++) {
        struct data_random random = {i};
        size_t nbytes, room = i == 3 ? 1000 : ROOM;
        data_gauss(&random, elements + i * N, N, 0.02);
        zipccl_status status = zipccl_encode(zipccl_isa_best(), ZIPCCL_BFLOAT16, elements + i * N,
                                             N, wire + i * ROOM, room, scratch, &nbytes);
        CHECK(status == (i == 3 ? ZIPCCL_ERR_OVERFLOW : ZIPCCL_OK), "encode");
    }
    size_t nbytes = zipccl_gpu_decode_workspace(ZIPCCL_BFLOAT16, COUNT * N, COUNT, 7);
    void *workspace = aligned_alloc(256, nbytes);
    struct zipccl_gpu_decode_args args = {.dtype = ZIPCCL_BFLOAT16,
                                          .nsms = 7,
                                          .batch = {.nmessages = COUNT,
                                                    .first = {out, wire, N, ROOM},
                                                    .elements_stride = 2 * N,
                                                    .wire_stride = ROOM},
                                          .d_workspace = workspace,
                                          .workspace_nbytes = nbytes,
                                          .d_results = results};
    CHECK(zipccl_gpu_decode(&args, NULL) == cudaSuccess, "launch");
    gpu_wait();
    for (size_t i = 0; i < COUNT; i++) {
        bool over = i == 3;
        uint16_t untouched = 0xa5a5;
        CHECK(results[i].error == (over ? ZIPCCL_ERR_OVERFLOW : ZIPCCL_OK), "message %zu", i);
        if (over)
            CHECK(out[i * N] == untouched && results[i].flags == ZIPCCL_MESSAGE_OVERFLOW &&
                      results[i].nbytes == 32,
                  "overflow");
        else
            CHECK(memcmp(out + i * N, elements + i * N, 2 * N) == 0, "message %zu", i);
    }
    args.workspace_nbytes -= 1;
    CHECK(zipccl_gpu_decode(&args, NULL) == cudaErrorInvalidValue, "small workspace");
    free(wire);
    free(elements);
    free(out);
    free(workspace);
    free(scratch);
}

/* A directory of more than one chunk, or of chunks that are long: mostly constant superblocks. */
static void test_chunks(size_t superblocks)
{
    const size_t n = superblocks * ZIPCCL_SUPERBLOCK + 77;
    static struct batch batch;
    uint8_t *elements = gpu_alloc(n);
    struct data_random random = {9};
    memset(elements, 0, n);
    for (size_t s = 0; s < superblocks; s += 37)
        data_fill_type(ZIPCCL_FLOAT8_E5M2, DATA_GAUSS, &random, 0.3,
                       elements + s * ZIPCCL_SUPERBLOCK + 5, 3000);
    add(&batch, gpu_encode(zipccl_isa_best(), ZIPCCL_EFFORT_FAST, ZIPCCL_FLOAT8_E5M2, elements, n));
    add(&batch, gpu_encode(zipccl_isa_best(), ZIPCCL_EFFORT_FAST, ZIPCCL_FLOAT8_E5M2,
                           gpu_elements(ZIPCCL_FLOAT8_E5M2, DATA_GAUSS, 3, 900), 900));
    decode_table(&batch, ZIPCCL_FLOAT8_E5M2, 0, 3);
    clear(&batch);
}

int main(void)
{
    const char *tests = getenv("GPU_TESTS");
    bool all = tests && strcmp(tests, "all") == 0;
    test_schedules(all);
    test_strides();
    if (!RACE_CHECKED) {
        test_product(all);
        test_shifts();
        test_chunks(300);
    }
    if (all)
        test_chunks(9000);
    printf("test_decode: %s\n", gpu_failures ? "FAILED" : "ok");
    return gpu_failures != 0;
}
