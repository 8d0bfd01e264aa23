/*
 * verify_sums.c - the arithmetic of checking a reduction, on host copies
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/verify_sums.h"

#include "core/wire.h"
#include "gpu/preload/verify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double value_of(enum zipccl_dtype dtype, const char *element)
{
    uint32_t bits = zipccl_get_u16((const uint8_t *)element);
    float value;

    if (dtype == ZIPCCL_FLOAT16) {
        int exponent = (int)(bits >> 10 & 31);
        double mantissa = bits & 1023, sign = (bits & 0x8000) != 0 ? -1 : 1;

        if (exponent == 31)
            return mantissa != 0 ? NAN : sign * INFINITY;
        return sign *
               (exponent == 0 ? ldexp(mantissa, -24) : ldexp(mantissa + 1024, exponent - 25));
    }
    bits = dtype == ZIPCCL_BFLOAT16 ? bits << 16 : zipccl_get_u32((const uint8_t *)element);
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Half a unit in the last place, relative. */
static double roundoff(enum zipccl_dtype dtype)
{
    return dtype == ZIPCCL_BFLOAT16 ? 0x1p-8 : dtype == ZIPCCL_FLOAT16 ? 0x1p-11 : 0x1p-24;
}

/* The least magnitude that rounding may add whatever the values: the spacing of subnormals. */
static double least(enum zipccl_dtype dtype)
{
    return dtype == ZIPCCL_FLOAT16 ? 0x1p-24 : dtype == ZIPCCL_BFLOAT16 ? 0x1p-133 : 0x1p-149;
}

static bool within_bound(const struct zipccl_shim_sums *s, size_t i)
{
    enum zipccl_dtype dtype = s->reference->dtype;
    size_t size = zipccl_dtype_size(dtype);
    double ours = value_of(dtype, s->ours + i * size), plain = value_of(dtype, s->plain + i * size);
    double magnitude = 0;

    for (size_t r = 0; r < s->nranks; r++)
        magnitude += fabs(value_of(dtype, s->inputs + (r * s->n + i) * size));
    if (s->avg)
        magnitude /= (double)s->nranks;
    /* Where a partial sum overflows on one side alone there is no bound. */
    if (!isfinite(ours) || !isfinite(plain) || !isfinite(magnitude))
        return true;
    return fabs(ours - plain) <=
           2 * ((double)s->nranks + 1) * (roundoff(dtype) * magnitude + least(dtype));
}

bool zipccl_shim_check_sums(struct zipccl_shim_comm *comm, const struct zipccl_shim_sums *sums,
                            enum zipccl_shim_op op, size_t count, size_t first)
{
    size_t size = zipccl_dtype_size(sums->reference->dtype), at;
    const void **inputs = malloc(sums->nranks * sizeof *inputs);
    char *expected = malloc(sums->n * size);
    struct zipccl_shim_difference difference = {
        "the plan's order", zipccl_shim_op_name(op), count, 0, -1, NULL, NULL, size};
    bool equal = false;

    for (size_t r = 0; inputs != NULL && r < sums->nranks; r++)
        inputs[r] = sums->inputs + r * sums->n * size;
    if (inputs != NULL && expected != NULL &&
        zipccl_reference_result(sums->reference, inputs, 0, sums->n, expected) == ZIPCCL_OK) {
        at = zipccl_shim_first_difference(expected, sums->ours, sums->n, size);
        if (at == sums->n) {
            difference.what = "plain NCCL within rounding";
            for (at = 0; at < sums->n && within_bound(sums, at);)
                at++;
        }
        equal = at == sums->n;
        if (!equal) {
            difference.index = first + at;
            difference.found = (const unsigned char *)sums->ours + at * size;
            difference.expected =
                (const unsigned char *)(difference.what[0] == 't' ? expected : sums->plain) +
                at * size;
            zipccl_shim_report_difference(comm, &difference);
        }
    }
    free(inputs);
    free(expected);
    return equal;
}
