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

#define FENCE 64 /* bytes behind a message that nobody may write */

/* A message to encode; 'd_' is on the device. */
struct message {
    enum zipccl_dtype dtype;
    bool floats; /* elements are fp32 */
    size_t n, capacity, size;
    bytes elements;
    uint8_t *d_memory, *d_elements, *d_wire;
};

static uint8_t *device(size_t nbytes)
{
    void *p = NULL;
    CHECK_OK(cudaMalloc(&p, nbytes ? nbytes : 1));
    return (uint8_t *)p;
}

/* 'shift' elements too far for loads of 16 bytes; they end where the device's memory does. */
static struct message make(enum zipccl_dtype dtype, enum data_kind kind, size_t n, double phase,
                           bool floats, uint64_t seed)
{
    struct data_random random = {seed};
    struct message m = {};
    m.dtype = dtype;
    m.floats = floats;
    m.n = n;
    m.capacity = zipccl_bound(dtype, n);
    m.size = floats ? 4 : zipccl_dtype_size(dtype);
    m.elements.resize(n * m.size);
    if (zipccl_dtype_compressible(dtype))
        data_fill_type(floats ? ZIPCCL_FLOAT32 : dtype, kind, &random, phase, m.elements.data(), n);
    else
        for (uint8_t &x : m.elements)
            x = (uint8_t)data_next(&random);
    size_t shift = seed % 4 == 0 ? m.size * (1 + seed / 4 % 3) : 0;
    m.d_memory = device(shift + n * m.size);
    m.d_elements = m.d_memory + shift;
    CHECK_OK(cudaMemcpy(m.d_elements, m.elements.data(), n * m.size, cudaMemcpyHostToDevice));
    return m;
}

static void open_wire(struct message *m)
{
    m->d_wire = device(m->capacity + FENCE);
    CHECK_OK(cudaMemset(m->d_wire, FILLER, m->capacity + FENCE));
}

static void close_wire(struct message *m)
{
    CHECK_OK(cudaFree(m->d_wire));
}

static void destroy(struct message *m)
{
    CHECK_OK(cudaFree(m->d_memory));
}

/* What the scalar row writes; zeros fill the capacity. */
static bytes expected_of(const struct message *m, size_t *nbytes)
{
    bytes out(m->capacity);
    zipccl_status status =
        m->floats
            ? zipccl_encode_f32(ZIPCCL_ISA_SCALAR, m->dtype, (const float *)m->elements.data(),
                                m->n, out.data(), m->capacity, scratch.data(), nbytes)
            : zipccl_encode(ZIPCCL_ISA_SCALAR, m->dtype, m->elements.data(), m->n, out.data(),
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
static void launch(const std::vector<struct message> &messages, bool table, bool flag_any,
                   std::vector<struct zipccl_gpu_result> &results)
{
    struct zipccl_gpu_encode_args args = {};
    std::vector<struct zipccl_gpu_slot> slots;
    const struct message *m = &messages[0];
    size_t nmessages = messages.size(), nresults = nmessages * sizeof results[0];
    args.dtype = m->dtype;
    args.flag_any = flag_any;
    args.nsms = NSMS;
    for (const struct message &x : messages) {
        slots.push_back({x.d_elements, x.d_wire, x.n, x.capacity});
        args.batch.total_n += x.n;
    }
    args.batch.nmessages = (uint32_t)nmessages;
    args.batch.first = slots[0];
    if (nmessages > 1) {
        args.batch.elements_stride = (size_t)(messages[1].d_elements - m->d_elements);
        args.batch.wire_stride = (size_t)(messages[1].d_wire - m->d_wire);
    }
    uint8_t *d_slots = device(nmessages * sizeof slots[0]), *d_results = device(nresults);
    CHECK_OK(
        cudaMemcpy(d_slots, slots.data(), nmessages * sizeof slots[0], cudaMemcpyHostToDevice));
    args.batch.d_slots = table ? (const struct zipccl_gpu_slot *)d_slots : NULL;
    args.d_results = (struct zipccl_gpu_result *)d_results;
    args.workspace_nbytes =
        zipccl_gpu_encode_workspace(args.dtype, args.batch.total_n, args.batch.nmessages, NSMS);
    args.d_workspace = device(args.workspace_nbytes);
    CHECK_OK(zipccl_gpu_workspace_clear(args.d_workspace, args.workspace_nbytes, NULL));
    CHECK_OK(m->floats ? zipccl_gpu_encode_f32(&args, NULL) : zipccl_gpu_encode(&args, NULL));
    if (cudaDeviceSynchronize() != cudaSuccess) {
        printf("%s: %s\n", what_now, emu_error());
        exit(1);
    }
    results.resize(nmessages);
    CHECK_OK(cudaMemcpy(results.data(), d_results, nresults, cudaMemcpyDeviceToHost));
    bytes control(4096);
    CHECK_OK(cudaMemcpy(control.data(), args.d_workspace, 4096, cudaMemcpyDeviceToHost));
    for (uint8_t x : control)
        CHECK(x == 0);
    CHECK_OK(cudaFree(d_slots));
    CHECK_OK(cudaFree(d_results));
    CHECK_OK(cudaFree(args.d_workspace));
}

static void compare(const struct message *m, const bytes &expected, size_t nbytes,
                    const struct zipccl_gpu_result *result)
{
    bytes got(m->capacity + FENCE);
    bool overflow = expected[6] & ZIPCCL_MESSAGE_OVERFLOW;
    size_t i = 0;
    CHECK_OK(cudaMemcpy(got.data(), m->d_wire, got.size(), cudaMemcpyDeviceToHost));
    while (i < m->capacity && got[i] == expected[i])
        i++;
    if (i < m->capacity) {
        printf("%s: byte %zu of %zu (capacity %zu) is %02x, not %02x\n", what_now, i, nbytes,
               m->capacity, got[i], expected[i]);
        check_failures++;
    }
    for (i = m->capacity; i < got.size(); i++)
        CHECK(got[i] == FILLER);
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
    close_wire(m);
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

static const size_t sizes[] = {0,    1,    2,    15,   63,    64,    65,    1000,  1023,
                               1025, 4096, 4500, 9999, 16383, 16384, 16385, 20000, 33333};
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
    setvbuf(stdout, NULL, _IOLBF, 0);
    scratch.resize(zipccl_codec_scratch_bytes() / 8 + 8);
    check_kinds(full && full[0] == '1');
    for (int z = 0; z < 2; z++)
        for (int p = 0; p <= ZIPCCL_PROGRAM_CONSTANT; p++)
            printf("%zu ", seen[z][p]);
    printf("\n");
    return check_result("encode");
}
