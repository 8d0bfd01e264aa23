/*
 * test_encode.cpp - messages encoded by the kernels are the scalar row's, byte for byte
 *
 * Types, kinds of data and sizes, as a covering set, under another schedule each; capacities that are
 * just enough, one byte short, far too small; several messages a launch, even and uneven; fp32
 * sources.  Memory ends at pages that fault, and what lies around a message must stay as it was.
 * ZIPCCL_TEST_FULL=1: the full product, under 20 schedules.  Argument bf16: only that type, for the kernel
 * as it is on sm_80.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
extern "C" {
#include "core/capacity.h"
#include "core/codec.h"
#include "core/codec/directory.h"
#include "core/tests/codec_data.h"
#include "core/tests/race_checked.h"
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
static enum zipccl_effort effort = ZIPCCL_EFFORT_FAST;
/* Superblocks seen of each program, with and without a bitmap. */
static size_t seen[ZIPCCL_NUM_EFFORTS][2][ZIPCCL_PROGRAM_ANS + 1];
static std::vector<uint64_t> scratch;
/* Workspace that launches share; NULL: each has one of its own, of just the size that it takes. */
static uint8_t *d_shared;
static size_t shared_nbytes;

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
    if (n > 0)
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
        m->floats ? zipccl_encode_f32_effort(ZIPCCL_ISA_SCALAR, effort, m->dtype,
                                             (const float *)m->elements.data(), m->n, out.data(),
                                             m->capacity, scratch.data(), nbytes)
                  : zipccl_encode_effort(ZIPCCL_ISA_SCALAR, effort, m->dtype, m->elements.data(),
                                         m->n, out.data(), m->capacity, scratch.data(), nbytes);
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
            seen[effort][mode.zeros][mode.program]++;
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
    args.effort = effort;
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
    args.workspace_nbytes = (effort == ZIPCCL_EFFORT_RATIO ? zipccl_gpu_encode_ratio_workspace
                                                           : zipccl_gpu_encode_workspace)(
        args.dtype, args.batch.total_n, args.batch.nmessages, NSMS);
    if (d_shared) {
        CHECK(args.workspace_nbytes <= shared_nbytes);
        args.workspace_nbytes = shared_nbytes;
        args.d_workspace = d_shared;
    } else {
        args.d_workspace = device(args.workspace_nbytes);
        CHECK_OK(zipccl_gpu_workspace_clear(args.d_workspace, args.workspace_nbytes, NULL));
    }
    /* The second launch finds the workspace as the first one left it. */
    if (nmessages > 1)
        CHECK_OK(m->floats ? zipccl_gpu_encode_f32(&args, NULL) : zipccl_gpu_encode(&args, NULL));
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
    if (!d_shared)
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
    snprintf(name, sizeof name, "%s%s%s, data %d, n %zu, seed %llu", zipccl_dtype_name(dtype),
             floats ? " from fp32" : "", effort == ZIPCCL_EFFORT_RATIO ? ", max ratio" : "",
             (int)kind, n, (unsigned long long)seed);
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

/* Superblocks whose samples say raw, the first of which is; max ratio codes the others all the same. */
static void check_wide(void)
{
    struct data_random random = {77};
    size_t n = 4 * 16384 + 5, nbytes;
    struct message m = make(ZIPCCL_FLOAT8_E4M3, DATA_BITS, n, 0, false, 1);
    data_wide(&random, m.elements.data() + 16384, n - 16384);
    CHECK_OK(cudaMemcpy(m.d_elements, m.elements.data(), n, cudaMemcpyHostToDevice));
    what_now = "wide exponents";
    schedule(1);
    check_one(&m);
    bytes expected = expected_of(&m, &nbytes);
    CHECK_EQ(expected[6], effort == ZIPCCL_EFFORT_RATIO ? 0 : ZIPCCL_MESSAGE_RAW);
    destroy(&m);
}

/* Capacities around what messages take, and around where their parts begin. */
static void check_capacities(void)
{
    static const struct {
        enum zipccl_dtype dtype;
        enum data_kind kind;
        size_t n;
        bool floats;
    } cases[] = {
        {ZIPCCL_BFLOAT16, DATA_GAUSS, 33000, false}, {ZIPCCL_BFLOAT16, DATA_BITS, 17000, false},
        {ZIPCCL_FLOAT32, DATA_ROWS, 20001, false},   {ZIPCCL_FLOAT8_E5M2, DATA_ZEROS, 777, false},
        {ZIPCCL_FLOAT16, DATA_GAUSS, 16390, true},   {ZIPCCL_INT32, DATA_BITS, 100, false}};
    uint64_t seed = 900;
    for (const auto &c : cases) {
        struct message m = make(c.dtype, c.kind, c.n, 0.3, c.floats, seed);
        size_t used, bound = zipccl_bound(c.dtype, c.n);
        expected_of(&m, &used);
        const size_t capacities[] = {used, used - 1, used + 1, used + 333, 32,    33,          63,
                                     128,  160,      used / 2, bound - 1,  bound, bound + 1000};
        what_now = "capacities";
        for (size_t capacity : capacities) {
            schedule(seed++);
            m.capacity = capacity;
            if (capacity >= 32)
                check_one(&m);
        }
        destroy(&m);
    }
}

/* What zipccl_encode_many() writes, or each message for itself; zeros fill the capacity. */
static std::vector<bytes> expected_of_many(const std::vector<struct message> &messages,
                                           bool flag_any, std::vector<size_t> &nbytes)
{
    std::vector<bytes> out;
    std::vector<struct zipccl_slice> slices;
    nbytes.resize(messages.size());
    for (size_t i = 0; i < messages.size(); i++)
        out.push_back(expected_of(&messages[i], &nbytes[i]));
    for (size_t i = 0; i < messages.size(); i++) {
        struct zipccl_slice slice = {};
        slice.dst = out[i].data();
        slice.status = out[i][6] & ZIPCCL_MESSAGE_OVERFLOW ? ZIPCCL_ERR_OVERFLOW : ZIPCCL_OK;
        slices.push_back(slice);
    }
    if (flag_any)
        zipccl_slices_flag(slices.data(), slices.size());
    return out;
}

/* Messages of the sizes given, each with room for 'share' of its bound, at regular distances. */
static void check_batch(enum zipccl_dtype dtype, const std::vector<size_t> &ns, double share,
                        size_t noverflows, bool table, bool flag_any, uint64_t seed)
{
    std::vector<struct message> messages;
    std::vector<struct zipccl_gpu_result> results;
    std::vector<size_t> nbytes;
    size_t at = 0, wire = 0;
    for (size_t i = 0; i < ns.size(); i++) {
        messages.push_back(make(dtype, DATA_GAUSS, ns[i], 0.1 * (double)i, false, seed + i));
        struct message *m = &messages[i];
        m->capacity = i < noverflows ? 32 : 32 + (size_t)(share * (double)(m->capacity - 32));
        destroy(m);
        at += m->elements.size();
        wire += (m->capacity + FENCE + 15) / 16 * 16;
    }
    uint8_t *d_elements = device(at), *d_wire = device(wire);
    CHECK_OK(cudaMemset(d_wire, FILLER, wire));
    at = wire = 0;
    for (struct message &m : messages) {
        m.d_elements = d_elements + at;
        m.d_wire = d_wire + wire;
        if (m.n > 0)
            CHECK_OK(cudaMemcpy(m.d_elements, m.elements.data(), m.elements.size(),
                                cudaMemcpyHostToDevice));
        at += m.elements.size();
        wire += (m.capacity + FENCE + 15) / 16 * 16;
    }
    schedule(seed);
    what_now = table ? "uneven messages" : "even messages";
    std::vector<bytes> expected = expected_of_many(messages, flag_any, nbytes);
    launch(messages, table, flag_any, results);
    for (size_t i = 0; i < messages.size(); i++)
        compare(&messages[i], expected[i], nbytes[i], &results[i]);
    CHECK_OK(cudaFree(d_elements));
    CHECK_OK(cudaFree(d_wire));
}

/* A message of few superblocks leaves bytes in the workspace: they must not be words of many's look-back. */
static void check_reuse(void)
{
    shared_nbytes = zipccl_gpu_encode_workspace(ZIPCCL_FLOAT32, 36 * 16384, 1, NSMS);
    d_shared = device(shared_nbytes);
    CHECK_OK(zipccl_gpu_workspace_clear(d_shared, shared_nbytes, NULL));
    for (uint64_t seed = 11; seed <= 17; seed += 6) {
        check_kind(ZIPCCL_BFLOAT16, DATA_GAUSS, 9000, false, seed);
        check_kind(ZIPCCL_FLOAT8_E4M3, DATA_CONSTANT, 36 * 16384, false, seed);
    }
    CHECK_OK(cudaFree(d_shared));
    d_shared = NULL;
}

static void check_batches(void)
{
    check_batch(ZIPCCL_BFLOAT16, {20000, 20000, 20000}, 0.7, 0, false, true, 21);
    check_batch(ZIPCCL_FLOAT8_E4M3, {3001, 3001, 3001, 3001}, 1, 0, false, false, 22);
    check_batch(ZIPCCL_BFLOAT16, {0, 5, 17000, 16384, 333, 40000}, 1, 1, true, true, 23);
    check_batch(ZIPCCL_FLOAT32, {900, 0, 20000}, 1, 1, true, true, 24);
    check_batch(ZIPCCL_FLOAT32, {900, 16385, 77}, 0.9, 2, true, true, 25);
    check_batch(ZIPCCL_BFLOAT16, {4000, 1000, 0}, 1, 2, true, false, 26);
    check_batch(ZIPCCL_INT64, {10, 9000, 0, 1}, 1, 0, true, true, 27);
    check_batch(ZIPCCL_FLOAT16, std::vector<size_t>(40, 130), 1, 0, false, true, 28);
}

/* For ThreadSanitizer: each kernel, each program's way, several blocks; uneven messages with an overflow. */
static void check_few_fast(void)
{
    uint64_t seed = 1;
    for (int d = 0; d < DATA_NUM_TYPES; d++, seed++)
        check_kind(data_types[d], (enum data_kind)(2 * d % DATA_NUM_KINDS), 17000, false, seed);
    check_kind(ZIPCCL_BFLOAT16, DATA_GAUSS, 17000, true, seed++);
    check_kind(ZIPCCL_FLOAT16, DATA_BITS, 17000, true, seed++);
    check_kind(ZIPCCL_INT32, DATA_BITS, 9001, false, seed++);
    check_batch(ZIPCCL_BFLOAT16, {0, 17000, 333}, 0.9, 1, true, true, seed);
}

/* Arguments that cannot be are refused by the call, tables that cannot be on the device. */
static void check_refusals(void)
{
    struct zipccl_gpu_encode_args good = {}, args;
    uint8_t *d_results = device(64), *d_wire = device(4096), *d_x = device(4096);
    struct zipccl_gpu_slot slots[2] = {{d_x, d_wire, 100, 400}, {d_x, d_wire + 1024, 100, 31}};
    uint8_t *d_slots = device(sizeof slots);
    good.dtype = ZIPCCL_BFLOAT16;
    good.nsms = NSMS;
    good.batch.nmessages = 1;
    good.batch.first = slots[0];
    good.workspace_nbytes = zipccl_gpu_encode_workspace(good.dtype, 200, 2, NSMS);
    good.d_workspace = device(good.workspace_nbytes);
    good.d_results = (struct zipccl_gpu_result *)d_results;
    CHECK_OK(cudaMemset(d_x, 0, 4096));
    CHECK_OK(cudaMemcpy(d_slots, slots, sizeof slots, cudaMemcpyHostToDevice));
    CHECK_OK(zipccl_gpu_workspace_clear(good.d_workspace, good.workspace_nbytes, NULL));
    CHECK_OK(zipccl_gpu_encode(&good, NULL));
    /* What failed before, and was the program's own to ask for, is no failure of a launch. */
    CHECK_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
    CHECK_OK(zipccl_gpu_encode(&good, NULL));
#define REFUSED(error, change)                                                                     \
    args = good;                                                                                   \
    change;                                                                                        \
    CHECK_EQ(zipccl_gpu_encode(&args, NULL), error)
    REFUSED(cudaErrorInvalidValue, args.effort = ZIPCCL_EFFORT_RATIO); /* wants more workspace */
    REFUSED(cudaErrorInvalidValue, args.effort = 7);
    REFUSED(cudaErrorInvalidValue, args.dtype = ZIPCCL_NUM_DTYPES);
    REFUSED(cudaErrorInvalidValue, args.nsms = 0);
    REFUSED(cudaErrorInvalidValue, args.workspace_nbytes = 1000);
    REFUSED(cudaErrorInvalidValue, args.d_workspace = d_wire + 8);
    REFUSED(cudaErrorInvalidValue, args.d_results = NULL);
    REFUSED(cudaErrorInvalidValue, args.batch.first.capacity = 31);
    REFUSED(cudaErrorInvalidValue, args.batch.first.wire = d_wire + 4);
    REFUSED(cudaErrorInvalidValue, args.batch.first.n = UINT64_MAX / 2);
    REFUSED(cudaErrorInvalidValue, args.batch.nmessages = ZIPCCL_GPU_MAX_MESSAGES + 1);
    REFUSED(cudaSuccess, args.batch.nmessages = 0);
    args = good;
    args.dtype = ZIPCCL_FLOAT8_E5M2;
    CHECK_EQ(zipccl_gpu_encode_f32(&args, NULL), cudaErrorInvalidValue);
    /* The second message of a table has no room for a header; then the table has too many elements. */
    struct zipccl_gpu_result results[2];
    for (int many = 0; many < 2; many++) {
        args = good;
        args.batch.nmessages = 2;
        args.batch.d_slots = (const struct zipccl_gpu_slot *)d_slots;
        args.batch.total_n = 200;
        slots[0].n = many ? 100000 : 100;
        CHECK_OK(cudaMemcpy(d_slots, slots, sizeof slots, cudaMemcpyHostToDevice));
        CHECK_OK(zipccl_gpu_encode(&args, NULL));
        CHECK_OK(cudaMemcpy(results, d_results, sizeof results, cudaMemcpyDeviceToHost));
        CHECK_EQ(results[0].error, many ? ZIPCCL_ERR_ARG : ZIPCCL_OK);
        CHECK_EQ(results[1].error, ZIPCCL_ERR_ARG);
    }
    for (void *p : {(void *)d_results, (void *)d_wire, (void *)d_x, (void *)d_slots,
                    (void *)good.d_workspace})
        CHECK_OK(cudaFree(p));
}

/* The cases above are of use only while they are of every kind. */
static void check_seen(void)
{
    for (int program = 0; program <= ZIPCCL_PROGRAM_CONSTANT; program++)
        if (!seen[ZIPCCL_EFFORT_FAST][0][program]) {
            printf("no superblock of program %d\n", program);
            check_failures++;
        }
    const size_t *zeros = seen[ZIPCCL_EFFORT_FAST][1], *ratio = seen[ZIPCCL_EFFORT_RATIO][0];
    CHECK(zeros[ZIPCCL_PROGRAM_RAW] && zeros[ZIPCCL_PROGRAM_21223] && zeros[ZIPCCL_PROGRAM_1222]);
    if (RACE_CHECKED)
        return;
    CHECK(ratio[ZIPCCL_PROGRAM_RAW] && ratio[ZIPCCL_PROGRAM_CONSTANT] && ratio[ZIPCCL_PROGRAM_ANS]);
    CHECK(ratio[ZIPCCL_PROGRAM_1222] && ratio[ZIPCCL_PROGRAM_323]);
    zeros = seen[ZIPCCL_EFFORT_RATIO][1];
    CHECK(zeros[ZIPCCL_PROGRAM_RAW] && zeros[ZIPCCL_PROGRAM_ANS]);
}

/* Each type, and each way through the kernel for max ratio. */
static void check_few_ratio(void)
{
    uint64_t seed = 3000;
    for (int d = 0; d < DATA_NUM_TYPES; d++)
        check_kind(data_types[d], (enum data_kind)(3 * d % DATA_NUM_KINDS), 2500, false, seed++);
    check_kind(ZIPCCL_BFLOAT16, DATA_SPARSE, 17000, true, seed++);
    check_batch(ZIPCCL_BFLOAT16, {0, 5, 17000, 333}, 1, 1, true, true, seed);
}

/* What differs where the kernel for bf16 is compiled in another way. */
static void check_bf16(void)
{
    uint64_t seed = 2000;
    for (int kind = 0; kind < DATA_NUM_KINDS; kind++) {
        check_kind(ZIPCCL_BFLOAT16, (enum data_kind)kind, 16384 + 811 * (size_t)kind, false,
                   seed++);
        check_kind(ZIPCCL_BFLOAT16, (enum data_kind)kind, 3001, true, seed++);
    }
    for (size_t s = 0; s < NUM_SIZES; s++)
        check_kind(ZIPCCL_BFLOAT16, (enum data_kind)(s % DATA_NUM_KINDS), sizes[s], false, seed++);
}

int main(int argc, char **argv)
{
    const char *full = getenv("ZIPCCL_TEST_FULL");
    setvbuf(stdout, NULL, _IOLBF, 0);
    scratch.resize(zipccl_codec_scratch_bytes() / 8 + 8);
    if (argc > 1 && strcmp(argv[1], "bf16") == 0) {
        check_bf16();
        return check_result("encode bf16");
    }
    for (int e = 0; e < ZIPCCL_NUM_EFFORTS; e++) {
        effort = (enum zipccl_effort)e;
        if (RACE_CHECKED) {
            effort == ZIPCCL_EFFORT_FAST ? check_few_fast() : check_few_ratio();
            continue;
        }
        check_kinds(full && full[0] == '1');
        check_wide();
        check_capacities();
        check_batches();
    }
    if (!RACE_CHECKED)
        check_seen();
    effort = ZIPCCL_EFFORT_FAST;
    check_reuse();
    check_refusals();
    return check_result("encode");
}
