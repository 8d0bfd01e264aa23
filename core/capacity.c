/*
 * capacity.c - settled capacities from a table of rates, and the classes around them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/capacity.h"

#include "core/codec.h"
#include "core/codec/layout.h"

struct rate {
    uint32_t at;   /* superblocks, or elements of the last, partial one */
    uint32_t rate; /* variable bytes for each of them, in the unit of the table */
};

#include "core/codec/capacity_table.inc"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/*
 * x times the rate at x, in units of 1 / 'unit', rounded up.  Between two entries of the table a
 * straight line lies above the rates or close to them.
 */
static uint64_t amount(const struct rate *table, size_t count, uint64_t x, uint64_t unit)
{
    size_t i = 0;
    while (i + 1 < count && table[i + 1].at <= x)
        i++;
    uint64_t rate = table[i].rate;
    if (i + 1 < count && x > table[i].at) {
        int64_t fall = (int64_t)rate - (int64_t)table[i + 1].rate;
        int64_t width = table[i + 1].at - table[i].at;
        rate = (uint64_t)((int64_t)rate - fall * (int64_t)(x - table[i].at) / width);
    }
    return (x * rate + unit - 1) / unit;
}

/* The last, partial superblock: coded like the others, or raw where it has no more to lose. */
static uint64_t last_superblock(const struct zipccl_fields *fields, size_t m)
{
    size_t share = zipccl_raw_share(fields, m);
    uint64_t raw = zipccl_align64(share) + m * fields->size - share;
    if (m < last_rates[0].at)
        return raw;
    uint64_t coded =
        zipccl_full_share(fields, m) + amount(last_rates, COUNT(last_rates), m, LAST_UNIT);
    return coded < raw ? coded : raw;
}

size_t zipccl_capacity_settled(enum zipccl_dtype dtype, size_t n)
{
    size_t bound = zipccl_bound(dtype, n);
    const struct zipccl_fields *fields = zipccl_fields_of(dtype);
    struct zipccl_layout at;
    if (bound == 0 || n == 0 || !fields || !zipccl_layout_of(fields, n, &at))
        return bound;

    size_t nfull = n / ZIPCCL_SUPERBLOCK, rest = n % ZIPCCL_SUPERBLOCK;
    uint64_t capacity = at.fixed + nfull * zipccl_full_share(fields, ZIPCCL_SUPERBLOCK);
    if (nfull)
        capacity += amount(full_rates, COUNT(full_rates), nfull, FULL_UNIT);
    if (rest)
        capacity += last_superblock(fields, rest);
    return capacity < bound ? (size_t)capacity : bound;
}

/* What each class gives back of what the settled capacity saves, in thousandths. */
static const size_t class_permille[ZIPCCL_NUM_CLASSES] = {400, 142, 68, 26, 0};

/* Whole cache lines, so that messages laid end to end stay aligned. */
#define CAPACITY_ALIGN 64u

const char *zipccl_class_name(int capacity_class)
{
    static const char *const names[ZIPCCL_NUM_CLASSES] = {"wide", "loose", "medium", "tight",
                                                          "settled"};

    return capacity_class >= 0 && capacity_class < ZIPCCL_NUM_CLASSES ? names[capacity_class]
                                                                      : "none";
}

size_t zipccl_capacity(enum zipccl_dtype dtype, size_t n, uint32_t capacity_class)
{
    size_t bound = zipccl_bound(dtype, n), raw = n * zipccl_dtype_size(dtype);
    size_t capacity, saved, permille;

    if (bound == 0 || !zipccl_dtype_compressible(dtype) || capacity_class >= ZIPCCL_NUM_CLASSES)
        return bound;
    capacity = zipccl_capacity_settled(dtype, n);
    if (capacity >= raw)
        return bound;
    saved = raw - capacity;
    permille = class_permille[capacity_class];
    capacity += saved / 1000 * permille + (saved % 1000 * permille + 999) / 1000;
    capacity = (capacity + CAPACITY_ALIGN - 1) / CAPACITY_ALIGN * CAPACITY_ALIGN;
    return capacity < bound ? capacity : bound;
}

int zipccl_class_fit(enum zipccl_dtype dtype, size_t n, size_t nbytes)
{
    for (int cls = ZIPCCL_NUM_CLASSES - 1; cls >= 0; cls--)
        if (nbytes <= zipccl_capacity(dtype, n, (uint32_t)cls))
            return cls;
    return ZIPCCL_NO_CLASS;
}

int zipccl_class_narrowest(enum zipccl_dtype dtype, size_t n)
{
    int cls = ZIPCCL_CLASS_SETTLED;

    while (cls > ZIPCCL_CLASS_WIDE &&
           zipccl_capacity(dtype, n, (uint32_t)cls) == zipccl_capacity(dtype, n, (uint32_t)cls - 1))
        cls--;
    return cls;
}
