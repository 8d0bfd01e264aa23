/*
 * reference.c - sums in the order that a plan states, rounded where it says
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

zipccl_status zipccl_reference_init(struct zipccl_reference *ref, const struct zipccl_plan *plan,
                                    const struct zipccl_topology *topology)
{
    *ref = (struct zipccl_reference){.dtype = (enum zipccl_dtype)plan->dtype,
                                     .topology = topology,
                                     .swap = ZIPCCL_REFERENCE_NO_SWAP};
    for (uint32_t i = 0; i < plan->nsteps; i++) {
        const struct zipccl_step *s = &plan->steps[i];

        if (s->kind != ZIPCCL_STEP_REDUCE || s->chunk != 0)
            continue;
        if (ref->nlevels == 2 || !s->first || !s->round)
            return ZIPCCL_ERR_UNSUPPORTED;
        ref->level[ref->nlevels].group = (enum zipccl_group_kind)s->group;
        ref->level[ref->nlevels++].redop = (enum zipccl_redop)s->redop;
    }
    if (ref->nlevels == 1 && ref->level[0].group != ZIPCCL_GROUP_WORLD)
        return ZIPCCL_ERR_UNSUPPORTED;
    if (ref->nlevels == 2 &&
        (ref->level[0].group != ZIPCCL_GROUP_NODE || ref->level[1].group != ZIPCCL_GROUP_RAIL))
        return ZIPCCL_ERR_UNSUPPORTED;
    return ref->nlevels == 0 && topology->nranks > 1 && plan->count > 0 ? ZIPCCL_ERR_UNSUPPORTED
                                                                        : ZIPCCL_OK;
}

/* Significand bits, and the exponent of the smallest normal number. */
static int digits(enum zipccl_dtype dtype)
{
    return dtype == ZIPCCL_BFLOAT16 ? 8 : dtype == ZIPCCL_FLOAT16 ? 11 : 24;
}

static int smallest(enum zipccl_dtype dtype)
{
    return dtype == ZIPCCL_FLOAT16 ? -14 : -126;
}

static double value_at(enum zipccl_dtype dtype, const void *data, size_t i)
{
    uint16_t x;
    uint32_t wide;
    float f;

    if (dtype == ZIPCCL_FLOAT32) {
        memcpy(&f, (const char *)data + 4 * i, sizeof f);
        return f;
    }
    memcpy(&x, (const char *)data + 2 * i, sizeof x);
    if (dtype == ZIPCCL_FLOAT16) {
        int exponent = x >> 10 & 0x1f, mantissa = x & 0x3ff;
        double v = exponent == 0x1f ? (mantissa != 0 ? (double)NAN : (double)INFINITY)
                   : exponent == 0  ? ldexp(mantissa, -24)
                                    : ldexp(mantissa + 1024, exponent - 25);

        return x & 0x8000 ? -v : v;
    }
    wide = (uint32_t)x << 16;
    memcpy(&f, &wide, sizeof f);
    return f;
}

/* The pattern nearest to 'v', ties to the even one. */
static uint32_t pattern_of(enum zipccl_dtype dtype, double v)
{
    int m = digits(dtype), emin = smallest(dtype), e, quantum;
    uint32_t width = dtype == ZIPCCL_FLOAT32 ? 32 : 16;
    uint32_t sign = signbit(v) ? 1u << (width - 1) : 0;
    uint32_t infinity = ((1u << (width - (uint32_t)m)) - 1) << (m - 1), bits;
    double steps;

    if (isnan(v))
        return infinity | 1u << (m - 2);
    if (isinf(v))
        return sign | infinity;
    if (v == 0)
        return sign;
    frexp(fabs(v), &e);
    quantum = e - m > emin - m + 1 ? e - m : emin - m + 1;
    steps = nearbyint(ldexp(fabs(v), -quantum));
    if (steps < ldexp(1, m - 1)) /* subnormal, or zero */
        return sign | (uint32_t)steps;
    bits =
        ((uint32_t)(quantum + m - 1 - emin + 1) << (m - 1)) + (uint32_t)(steps - ldexp(1, m - 1));
    return sign | (bits < infinity ? bits : infinity);
}

static void put(enum zipccl_dtype dtype, uint32_t bits, void *out, size_t i)
{
    uint16_t low = (uint16_t)bits;

    if (dtype == ZIPCCL_FLOAT32)
        memcpy((char *)out + 4 * i, &bits, sizeof bits);
    else
        memcpy((char *)out + 2 * i, &low, sizeof low);
}

/* The sum of 'n' arrays in the order given, two of them swapped if the mutation says so. */
static void sum(const struct zipccl_reference *ref, const void **x, uint32_t n, size_t first,
                size_t len, uint32_t divisor, void *out)
{
    if (ref->swap != ZIPCCL_REFERENCE_NO_SWAP && ref->swap + 1 < n) {
        const void *held = x[ref->swap];

        x[ref->swap] = x[ref->swap + 1];
        x[ref->swap + 1] = held;
    }
    for (size_t i = 0; i < len; i++) {
        double acc = value_at(ref->dtype, x[0], first + i);

        /* Two floats added or divided in double, then to float, are rounded once: 53 >= 2*24 + 2. */
        for (uint32_t k = 1; k < n; k++)
            acc = (double)(float)(acc + value_at(ref->dtype, x[k], first + i));
        if (divisor > 1)
            acc = (double)(float)(acc / divisor);
        put(ref->dtype, pattern_of(ref->dtype, acc), out, i);
    }
}

static uint32_t divisor_of(const struct zipccl_reference *ref, uint32_t level)
{
    return ref->level[level].redop == ZIPCCL_AVG ? ref->topology->nranks : 1;
}

/* 'members' [nranks] is for the node's inputs. */
static void node_sum(const struct zipccl_reference *ref, const void *const *inputs, uint32_t node,
                     size_t first, size_t n, const void **members, void *out)
{
    const struct zipccl_topology *t = ref->topology;
    uint32_t size = zipccl_topology_node_size(t, node);

    for (uint32_t k = 0; k < size; k++)
        members[k] = inputs[t->members[t->node_start[node] + k]];
    sum(ref, members, size, first, n, divisor_of(ref, 0), out);
}

zipccl_status zipccl_reference_node_sum(const struct zipccl_reference *ref,
                                        const void *const *inputs, uint32_t node, size_t first,
                                        size_t n, void *out)
{
    const void **members = malloc(ref->topology->nranks * sizeof *members);

    if (members == NULL)
        return ZIPCCL_ERR_NOMEM;
    node_sum(ref, inputs, node, first, n, members, out);
    free(members);
    return ZIPCCL_OK;
}

/* The nodes' sums, rounded, then summed. */
static zipccl_status two_levels(const struct zipccl_reference *ref, const void *const *inputs,
                                size_t first, size_t n, const void **x, void *out)
{
    size_t nbytes = n * zipccl_dtype_size(ref->dtype);
    uint32_t nnodes = ref->topology->nnodes;
    char *sums = malloc(nnodes * nbytes + 1);

    if (sums == NULL)
        return ZIPCCL_ERR_NOMEM;
    for (uint32_t v = 0; v < nnodes; v++)
        node_sum(ref, inputs, v, first, n, x, sums + v * nbytes);
    for (uint32_t v = 0; v < nnodes; v++)
        x[v] = sums + v * nbytes;
    sum(ref, x, nnodes, 0, n, divisor_of(ref, 1), out);
    free(sums);
    return ZIPCCL_OK;
}

zipccl_status zipccl_reference_result(const struct zipccl_reference *ref, const void *const *inputs,
                                      size_t first, size_t n, void *out)
{
    const struct zipccl_topology *t = ref->topology;
    size_t size = zipccl_dtype_size(ref->dtype);
    zipccl_status status = ZIPCCL_OK;
    const void **x;

    if (ref->nlevels == 0) { /* one rank: its own bits */
        memcpy(out, (const char *)inputs[0] + first * size, n * size);
        return ZIPCCL_OK;
    }
    x = malloc(t->nranks * sizeof *x);
    if (x == NULL)
        return ZIPCCL_ERR_NOMEM;
    for (uint32_t r = 0; r < t->nranks; r++)
        x[r] = inputs[r];
    if (ref->nlevels == 1)
        sum(ref, x, t->nranks, first, n, divisor_of(ref, 0), out);
    else
        status = two_levels(ref, inputs, first, n, x, out);
    free(x);
    return status;
}
