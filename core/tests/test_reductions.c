/*
 * test_reductions.c - native reductions of the memory transport against a reference of their own
 *
 * The reference shares no code with reduce.c: it converts by arithmetic on values, not on bits.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/lower.h"
#include "core/tests/coll_world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reduction {
    enum zipccl_op op;
    enum zipccl_dtype dtype;
    enum zipccl_redop redop;
    size_t count;
    uint32_t channels;
    bool in_place;
    const struct world *world;
};

/* Values of every kind; every 11th one is special. */
static uint64_t input_bits(enum zipccl_dtype dtype, uint32_t rank, size_t i)
{
    static const float specials[] = {INFINITY, -INFINITY, NAN,   -0.0f,
                                     0.0f,     1e-40f,    3e38f, 65504.0f};
    uint64_t h = (rank + 1) * UINT64_C(0x9e3779b97f4a7c15) + i * UINT64_C(0xd1342543de82ef95);
    float f;
    uint32_t bits;
    double d;

    h ^= h >> 31;
    h *= UINT64_C(0xbf58476d1ce4e5b9);
    h ^= h >> 29;
    f = ((float)(h >> 40) - 8388608.0f) * 0x1p-22f;
    if (h % 11 == 0)
        f = specials[h / 11 % 8];
    memcpy(&bits, &f, sizeof bits);
    switch (dtype) {
    case ZIPCCL_BFLOAT16: return bits >> 16;
    case ZIPCCL_FLOAT16: /* any pattern, but mostly with a middling exponent */
        return h % 11 == 0 ? h >> 20 & 0xffff : (h >> 20 & 0x8fff) | 0x3000;
    case ZIPCCL_FLOAT32: return bits;
    case ZIPCCL_FLOAT64:
        d = f;
        memcpy(&h, &d, sizeof h);
        return h;
    default: return h;
    }
}

static void put(enum zipccl_dtype dtype, void *buf, size_t i, uint64_t bits)
{
    size_t size = zipccl_dtype_size(dtype);

    for (size_t k = 0; k < size; k++)
        ((uint8_t *)buf)[i * size + k] = (uint8_t)(bits >> (8 * k));
}

static double fp16_value(uint32_t x)
{
    int exponent = (int)(x >> 10 & 0x1f), mantissa = (int)(x & 0x3ff);
    double v = exponent == 0x1f ? (mantissa != 0 ? (double)NAN : (double)INFINITY)
               : exponent == 0  ? ldexp(mantissa, -24)
                                : ldexp(mantissa + 1024, exponent - 25);

    return x & 0x8000 ? -v : v;
}

static double value_of(enum zipccl_dtype dtype, uint64_t bits)
{
    uint32_t low = dtype == ZIPCCL_BFLOAT16 ? (uint32_t)bits << 16 : (uint32_t)bits;
    float f;
    double d;

    if (dtype == ZIPCCL_FLOAT16)
        return fp16_value((uint32_t)bits & 0xffff);
    if (dtype == ZIPCCL_FLOAT64) {
        memcpy(&d, &bits, sizeof d);
        return d;
    }
    memcpy(&f, &low, sizeof f);
    return f;
}

/* Value of a positive pattern; the one above the largest finite value stands for 2^(emax+1). */
static double ladder(enum zipccl_dtype dtype, uint32_t x)
{
    if (dtype == ZIPCCL_FLOAT16)
        return x == 0x7c00 ? 65536 : fp16_value(x);
    return x == 0x7f80 ? ldexp(1, 128) : value_of(dtype, x);
}

/* Nearest pattern, ties to the even one, by bisection. */
static uint64_t nearest(enum zipccl_dtype dtype, double v)
{
    uint32_t low = 0, high = dtype == ZIPCCL_FLOAT16 ? 0x7c00 : 0x7f80, infinity = high;
    uint64_t sign = signbit(v) ? 0x8000 : 0;
    double x = fabs(v), a, b;

    if (isnan(v))
        return dtype == ZIPCCL_FLOAT16 ? 0x7e00 : 0x7fc0;
    if (x >= ladder(dtype, infinity))
        return sign | infinity;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (ladder(dtype, middle) <= x)
            low = middle;
        else
            high = middle;
    }
    a = x - ladder(dtype, low);
    b = ladder(dtype, high) - x;
    return sign | (a > b || (a == b && (low & 1)) ? high : low);
}

static uint64_t round_to(enum zipccl_dtype dtype, double v)
{
    float f = (float)v;
    uint32_t bits;
    uint64_t wide;

    if (dtype == ZIPCCL_FLOAT64) {
        memcpy(&wide, &v, sizeof wide);
        return isnan(v) ? UINT64_C(0x7ff8000000000000) : wide;
    }
    if (dtype == ZIPCCL_FLOAT32) {
        memcpy(&bits, &f, sizeof bits);
        return isnan(f) ? 0x7fc00000 : bits;
    }
    return nearest(dtype, v);
}

static uint64_t reduce_floats(const struct reduction *c, size_t i)
{
    bool wide = c->dtype == ZIPCCL_FLOAT64;
    uint32_t n = c->world->nranks;
    double acc = value_of(c->dtype, input_bits(c->dtype, 0, i));

    for (uint32_t r = 1; r < n; r++) {
        double x = value_of(c->dtype, input_bits(c->dtype, r, i));

        if (c->redop == ZIPCCL_MAX || c->redop == ZIPCCL_MIN) {
            bool better = c->redop == ZIPCCL_MAX ? x > acc : x < acc;

            acc = isnan(acc) || isnan(x) ? (double)NAN : better ? x : acc;
        } else {
            /* Sums and products of two floats in double, then to float: one rounding, since 53 >=
             * 2 * 24 + 2. */
            acc = c->redop == ZIPCCL_PROD ? acc * x : acc + x;
            acc = wide ? acc : (double)(float)acc;
        }
    }
    if (c->redop == ZIPCCL_AVG)
        acc = wide ? acc / n : (double)(float)(acc / n);
    return round_to(c->dtype, acc);
}

/* Cut to the type's width and extend again. */
static int64_t narrow(enum zipccl_dtype dtype, uint64_t x)
{
    switch (dtype) {
    case ZIPCCL_INT8: return (int64_t)(x & 0xff) - (x & 0x80 ? 0x100 : 0);
    case ZIPCCL_UINT8: return (int64_t)(x & 0xff);
    case ZIPCCL_INT32: return (int64_t)(x & 0xffffffff) - (x & 0x80000000 ? INT64_C(1) << 32 : 0);
    case ZIPCCL_UINT32: return (int64_t)(x & 0xffffffff);
    default: return (int64_t)x;
    }
}

static uint64_t reduce_ints(const struct reduction *c, size_t i)
{
    bool huge = c->dtype == ZIPCCL_UINT64;
    int64_t acc = narrow(c->dtype, input_bits(c->dtype, 0, i));

    for (uint32_t r = 1; r < c->world->nranks; r++) {
        int64_t x = narrow(c->dtype, input_bits(c->dtype, r, i));
        bool above = huge ? (uint64_t)x > (uint64_t)acc : x > acc;

        switch (c->redop) {
        case ZIPCCL_MAX: acc = above ? x : acc; break;
        case ZIPCCL_MIN: acc = above ? acc : x; break;
        case ZIPCCL_PROD: acc = narrow(c->dtype, (uint64_t)acc * (uint64_t)x); break;
        default: acc = narrow(c->dtype, (uint64_t)acc + (uint64_t)x); break;
        }
    }
    if (c->redop == ZIPCCL_AVG && huge)
        return (uint64_t)acc / c->world->nranks;
    return (uint64_t)(c->redop == ZIPCCL_AVG ? acc / (int64_t)c->world->nranks : acc);
}

static uint64_t expected_bits(const struct reduction *c, size_t i)
{
    bool is_float = c->dtype == ZIPCCL_BFLOAT16 || c->dtype == ZIPCCL_FLOAT16 ||
                    c->dtype == ZIPCCL_FLOAT32 || c->dtype == ZIPCCL_FLOAT64;

    if (c->world->nranks == 1)
        return input_bits(c->dtype, 0, i);
    return is_float ? reduce_floats(c, i) : reduce_ints(c, i);
}

static bool run_rank(void *context, uint32_t rank)
{
    const struct reduction *c = context;
    size_t size = zipccl_dtype_size(c->dtype), n = c->world->nranks;
    bool scatter = c->op == ZIPCCL_REDUCE_SCATTER;
    size_t send_n = scatter ? c->count * n : c->count, first = scatter ? rank * c->count : 0;
    uint8_t *send = calloc(send_n + 1, size), *recv = calloc(c->count + 1, size);
    uint8_t *out = c->in_place ? send + first * size : recv;
    uint8_t want[8];
    struct zipccl_transport *t = c->world->t[rank];
    struct zipccl_native_call call = {.op = c->op,
                                      .dtype = c->dtype,
                                      .redop = c->redop,
                                      .send = send,
                                      .recv = out,
                                      .count = c->count,
                                      .channels = c->channels};
    bool ok;

    if (send == NULL || recv == NULL)
        abort();
    for (size_t i = 0; i < send_n; i++)
        put(c->dtype, send, i, input_bits(c->dtype, rank, i));
    ok = t->ops->native(t, &call) == ZIPCCL_OK;
    for (size_t i = 0; ok && i < c->count; i++) {
        put(c->dtype, want, 0, expected_bits(c, first + i));
        ok = memcmp(out + i * size, want, size) == 0;
    }
    for (size_t i = 0; ok && !c->in_place && i < send_n; i++) {
        put(c->dtype, want, 0, input_bits(c->dtype, rank, i));
        ok = memcmp(send + i * size, want, size) == 0;
    }
    free(send);
    free(recv);
    return ok;
}

static void add_flow(void *context, uint32_t src, uint32_t dst, uint64_t nbytes)
{
    uint64_t(*bytes)[MAX_RANKS] = context;

    bytes[src][dst] += nbytes;
}

static bool bytes_right(const struct reduction *c)
{
    const struct world *w = c->world;
    struct zipccl_call call = {
        .op = c->op, .dtype = c->dtype, .redop = c->redop, .count = c->count, .has_native = true};
    uint64_t bytes[MAX_RANKS][MAX_RANKS] = {{0}};
    struct zipccl_plan *plan;
    uint32_t nrounds;
    bool right = true;

    if (zipccl_strategy_find("native")->build(&call, w->topology, c->channels, 1, 0, 0, &plan) !=
            ZIPCCL_OK ||
        zipccl_lower(plan, 0, w->topology, NULL, add_flow, bytes, &nrounds) != ZIPCCL_OK)
        abort();
    for (uint32_t src = 0; src < w->nranks; src++)
        for (uint32_t dst = 0; dst < w->nranks; dst++)
            right = right && zipccl_transport_mem_bytes(w->t[0], src, dst) == bytes[src][dst];
    zipccl_plan_destroy(plan);
    return right;
}

static unsigned run_world(const struct world *w, unsigned *ncases)
{
    static const size_t counts[] = {1, 7, 33, 1030};
    unsigned nfailed = 0;

    for (unsigned d = 0; d < ZIPCCL_NUM_DTYPES; d++)
        for (unsigned redop = 0; redop < ZIPCCL_NUM_REDOPS; redop++)
            for (unsigned k = 0; k < 4 * 2 * 2; k++) {
                struct reduction c = {.op = k & 4 ? ZIPCCL_ALL_REDUCE : ZIPCCL_REDUCE_SCATTER,
                                      .dtype = (enum zipccl_dtype)d,
                                      .redop = (enum zipccl_redop)redop,
                                      .count = counts[k & 3],
                                      .channels = k & 1 ? 3 : 1,
                                      .in_place = k & 8,
                                      .world = w};

                if (!w->t[0]->ops->has_native(w->t[0], c.op, c.dtype, c.redop) ||
                    (RACE_CHECKED && (d + redop + k) % 4 != 0))
                    continue;
                zipccl_transport_mem_reset_bytes(w->t[0]);
                ++*ncases;
                if (world_run(w, run_rank, &c) && bytes_right(&c))
                    continue;
                nfailed++;
                fprintf(stderr, "%s %s %s of %zu on %u ranks%s\n", zipccl_op_name(c.op),
                        zipccl_dtype_name(c.dtype), zipccl_redop_name(c.redop), c.count, w->nranks,
                        c.in_place ? ", in place" : "");
            }
    return nfailed;
}

int main(void)
{
    static const uint32_t worlds[][2] = {{1, 1}, {1, 2}, {1, 3}, {1, 5}, {2, 4}, {3, 3}};
    static const uint32_t odd_nodes[] = ODD_NODES;
    unsigned ncases = 0, nfailed = 0;
    struct world odd;

    world_open(&odd, sizeof odd_nodes / sizeof *odd_nodes, odd_nodes);
    nfailed += run_world(&odd, &ncases);
    world_close(&odd);
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        struct world w;

        world_open_even(&w, worlds[i][0], worlds[i][1]);
        nfailed += run_world(&w, &ncases);
        world_close(&w);
    }
    printf("%u reductions, %u failures\n", ncases, nfailed);
    return nfailed == 0 && ncases > 0 ? 0 : 1;
}
