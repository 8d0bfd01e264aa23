/*
 * test_encode.cpp - messages encoded by the kernels are the scalar row's, byte for byte
 *
 * Types, kinds of data and sizes, as a covering set, under another schedule each; capacities that are
 * just enough, one byte short, far too small; several messages a launch, even and uneven; fp32
 * sources.  Memory ends at pages that fault, and what lies around a message must stay as it was.
 * ZIPCCL_TEST_FULL=1: the full product, under 20 schedules.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
extern "C" {
#include "core/capacity.h"
#include "core/codec.h"
#include "core/codec/directory.h"
#include "core/tests/codec_data.h"
}
#include "gpu/kernels.h"
#include "gpu/tests/emu/check.h"
#include "gpu/tests/emu/emu.h"

#include <stdlib.h>
#include <string.h>
#include <vector>

#define NSMS   2
#define FILLER 0xa5

typedef std::vector<uint8_t> bytes;

static const char *what_now = "";
/* Superblocks seen of each program, with and without a bitmap. */
static size_t seen[2][ZIPCCL_PROGRAM_CONSTANT + 1];
static std::vector<uint64_t> scratch;

/* A message to encode, the elements a page's end away from what may not be read. */
struct message {
    enum zipccl_dtype dtype;
    bool floats; /* elements are fp32 */
    size_t n, capacity, size;
    struct data_guarded elements, wire;
};

static struct message make(enum zipccl_dtype dtype, enum data_kind kind, size_t n, double phase,
                           bool floats, uint64_t seed)
{
    struct data_random random = {seed};
    struct message m = {dtype, floats, n, zipccl_bound(dtype, n), floats ? 4 : zipccl_dtype_size(dtype),
                        {}, {}};
    m.elements = data_guard(n * m.size);
    if (zipccl_dtype_compressible(dtype))
        data_fill_type(floats ? ZIPCCL_FLOAT32 : dtype, kind, &random, phase, m.elements.bytes, n);
    else
        for (size_t i = 0; i < n * m.size; i++)
            m.elements.bytes[i] = (uint8_t)data_next(&random);
    return m;
}

/* Room for the message, which starts where it must and ends less than 16 bytes before a page. */
static void open_wire(struct message *m)
{
    m->wire = data_guard((m->capacity + 15) / 16 * 16);
    memset(m->wire.bytes, FILLER, (m->capacity + 15) / 16 * 16);
}

static void destroy(struct message *m)
{
    data_unguard(&m->elements);
    if (m->wire.mapping)
        data_unguard(&m->wire);
}

/* What the scalar row writes; zeros fill the capacity. */
static bytes expected_of(const struct message *m, size_t *nbytes)
{
    bytes out(m->capacity);
    zipccl_status status =
        m->floats ? zipccl_encode_f32(ZIPCCL_ISA_SCALAR, m->dtype, (const float *)m->elements.bytes,
                                      m->n, out.data(), m->capacity, scratch.data(), nbytes)
                  : zipccl_encode(ZIPCCL_ISA_SCALAR, m->dtype, m->elements.bytes, m->n, out.data(),
                                  m->capacity, scratch.data(), nbytes);
    CHECK(status == ZIPCCL_OK || status == ZIPCCL_ERR_OVERFLOW);
    memset(out.data() + *nbytes, 0, m->capacity - *nbytes);
    return out;
}

static void count_programs(const bytes &wire, size_t nbytes)
{
    struct zipccl_directory directory;
    struct zipccl_superblock_mode mode;
    if (zipccl_directory_open(wire.data(), nbytes, &directory) != ZIPCCL_OK)
        return;
    for (size_t s = 0; s < directory.nsuperblocks; s++)
        if (zipccl_directory_read(&directory, s, &mode) == ZIPCCL_OK)
            seen[mode.zeros][mode.program]++;
}

/* Encode all of 'messages' by one launch; 'table' puts their places into memory. */
static void launch(std::vector<struct message> &messages, bool table, bool flag_any,
                   std::vector<struct zipccl_gpu_result> &results)
{
    struct zipccl_gpu_encode_args args = {};
    std::vector<struct zipccl_gpu_slot> slots;
    args.dtype = messages[0].dtype;
    args.flag_any = flag_any;
    args.nsms = NSMS;
    for (struct message &m : messages) {
        slots.push_back({m.elements.bytes, m.wire.bytes, m.n, m.capacity});
        args.batch.total_n += m.n;
    }
    results.assign(messages.size(), {77, 77, 77});
    args.batch.nmessages = (uint32_t)messages.size();
    args.batch.d_slots = table ? slots.data() : NULL;
    args.batch.first = slots[0];
    args.d_results = results.data();
    args.workspace_nbytes =
        zipccl_gpu_encode_workspace(args.dtype, args.batch.total_n, args.batch.nmessages, NSMS);
    struct data_guarded workspace = data_guard(args.workspace_nbytes);
    args.d_workspace = workspace.bytes;
    CHECK_OK(zipccl_gpu_workspace_clear(args.d_workspace, args.workspace_nbytes, NULL));
    cudaError_t error = messages[0].floats ? zipccl_gpu_encode_f32(&args, NULL)
                                           : zipccl_gpu_encode(&args, NULL);
    CHECK_OK(error);
    if (cudaDeviceSynchronize() != cudaSuccess) {
        printf("%s: %s\n", what_now, emu_error());
        exit(1);
    }
    /* The next launch finds control and look-back words as this one did. */
    for (size_t i = 0; i < 4096; i++)
        CHECK(workspace.bytes[i] == 0);
    data_unguard(&workspace);
}

static void compare(const struct message *m, const bytes &expected, size_t nbytes,
                    const struct zipccl_gpu_result *result)
{
    bool overflow = expected[6] & ZIPCCL_MESSAGE_OVERFLOW;
    size_t i = 0, room = (m->capacity + 15) / 16 * 16;
    while (i < m->capacity && m->wire.bytes[i] == expected[i])
        i++;
    if (i < m->capacity) {
        printf("%s: byte %zu of %zu (capacity %zu) is %02x, not %02x\n", what_now, i, nbytes,
               m->capacity, m->wire.bytes[i], expected[i]);
        check_failures++;
    }
    for (i = m->capacity; i < room; i++)
        CHECK(m->wire.bytes[i] == FILLER);
    CHECK_EQ(result->nbytes, nbytes);
    CHECK_EQ(result->flags, expected[6]);
    CHECK_EQ(result->error, overflow ? ZIPCCL_ERR_OVERFLOW : ZIPCCL_OK);
}

/* One message with the capacity that 'm' has. */
static void check_one(struct message *m)
{
    std::vector<struct zipccl_gpu_result> results;
    size_t nbytes;
    bytes expected = expected_of(m, &nbytes);
    count_programs(expected, nbytes);
    open_wire(m);
    std::vector<struct message> one(1, *m);
    launch(one, false, false, results);
    compare(m, expected, nbytes, &results[0]);
    data_unguard(&m->wire);
}

static void schedule(uint64_t seed)
{
    struct emu_options o;
    emu_default_options(&o);
    o.seed = seed;
    o.policy = (int)(seed % 3);
    o.order = (int)(seed / 3 % 3);
    o.resident = seed % 2 ? 3 : 1;
    emu_set_options(&o);
}

static void check_kind(enum zipccl_dtype dtype, enum data_kind kind, size_t n, bool floats,
                       uint64_t seed)
{
    static char name[200];
    snprintf(name, sizeof name, "%s%s, data %d, n %zu, seed %llu", zipccl_dtype_name(dtype),
             floats ? " from fp32" : "", (int)kind, n, (unsigned long long)seed);
    what_now = name;
    schedule(seed);
    struct message m = make(dtype, kind, n, (double)(seed % 16) / 16, floats, seed);
    check_one(&m);
    destroy(&m);
}

static const size_t sizes[] = {0,    1,    2,     15,    63,    64,    65,    1000,
                               1023, 1025, 4096,  4500,  9999,  16383, 16384, 16385,
                               20000, 33333};
#define NUM_SIZES (sizeof sizes / sizeof sizes[0])

static void check_kinds(bool full)
{
    uint64_t seed = 1;
    for (int d = 0; d < DATA_NUM_TYPES; d++)
        for (int kind = 0; kind < DATA_NUM_KINDS; kind++) {
            for (size_t s = 0; full && s < NUM_SIZES; s++)
                for (int k = 0; k < 20; k++)
                    check_kind(data_types[d], (enum data_kind)kind, sizes[s], false, seed++);
            check_kind(data_types[d], (enum data_kind)kind, 16384 + 811 * (size_t)kind + (size_t)d,
                       false, seed++);
        }
    for (size_t s = 0; s < NUM_SIZES; s++)
        for (int d = 0; d < DATA_NUM_TYPES; d++)
            check_kind(data_types[d], (enum data_kind)((s + (size_t)d) % DATA_NUM_KINDS), sizes[s],
                       false, seed++);
    for (int kind = 0; kind < DATA_NUM_KINDS; kind++) {
        check_kind(ZIPCCL_BFLOAT16, (enum data_kind)kind, 17000, true, seed++);
        check_kind(ZIPCCL_FLOAT16, (enum data_kind)kind, 9001, true, seed++);
    }
    for (int dtype = 0; dtype < ZIPCCL_NUM_DTYPES; dtype++)
        if (!zipccl_dtype_compressible((enum zipccl_dtype)dtype))
            check_kind((enum zipccl_dtype)dtype, DATA_BITS, 5001, false, seed++);
}

int main(void)
{
    const char *full = getenv("ZIPCCL_TEST_FULL");
    scratch.resize(zipccl_codec_scratch_bytes() / 8 + 8);
    check_kinds(full && full[0] == '1');
    for (int z = 0; z < 2; z++)
        for (int p = 0; p <= ZIPCCL_PROGRAM_CONSTANT; p++)
            printf("%zu ", seen[z][p]);
    printf("\n");
    return check_result("encode");
}
