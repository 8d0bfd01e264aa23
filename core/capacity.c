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

/* Classes as wide as the settled one or wider: what each gives back of what the settled capacity saves, in
 * thousandths.  Long bf16 messages are 1.0 to 1.3 % shorter in each than in the one before. */
static const uint16_t given_back[ZIPCCL_CLASS_SETTLED + 1] = {
    400, 370, 340, 311, 282, 253, 225, 197, 170, 142, 118, 93, 68, 48, 26, 13, 0};

/* Narrower ones: what each takes of the settled capacity, in thousandths; 1.2 % less than the one before, but
 * for the last, for data that are far from Gaussian. */
static const uint16_t taken[ZIPCCL_NUM_CLASSES - ZIPCCL_CLASS_SETTLED - 1] = {
    988, 976, 964, 953, 941, 930, 919, 908, 897, 886, 875, 864, 800, 700, 600, 500};

/* Whole cache lines, so that messages laid end to end stay aligned. */
#define CAPACITY_ALIGN 64u

const char *zipccl_class_name(int capacity_class)
{
    static const char *const names[ZIPCCL_NUM_CLASSES] = {
        "wide",       "wide-1",     "wide-2",     "wide-3",     "wide-4",     "wide-5",
        "wide-6",     "wide-7",     "wide-8",     "loose",      "loose-1",    "loose-2",
        "medium",     "medium-1",   "tight",      "tight-1",    "settled",    "settled-1",
        "settled-2",  "settled-3",  "settled-4",  "settled-5",  "settled-6",  "settled-7",
        "settled-8",  "settled-9",  "settled-10", "settled-11", "settled-12", "settled-13",
        "settled-14", "settled-15", "settled-16"};

    return capacity_class >= 0 && capacity_class < ZIPCCL_NUM_CLASSES ? names[capacity_class]
                                                                      : "none";
}

static size_t permille_of(size_t nbytes, size_t permille)
{
    return nbytes / 1000 * permille + (nbytes % 1000 * permille + 999) / 1000;
}

/* What the classes of messages of one length have in common. */
struct ladder {
    size_t raw, bound, settled;
    bool flat; /* every class has the bound */
};

static struct ladder ladder_of(enum zipccl_dtype dtype, size_t n)
{
    struct ladder l = {n * zipccl_dtype_size(dtype), zipccl_bound(dtype, n), 0, true};

    if (l.bound == 0 || !zipccl_dtype_compressible(dtype))
        return l;
    l.settled = zipccl_capacity_settled(dtype, n);
    l.flat = l.settled >= l.raw;
    return l;
}

static size_t capacity_of(const struct ladder *l, uint32_t cls)
{
    size_t capacity = l->settled;

    if (l->flat || cls >= ZIPCCL_NUM_CLASSES)
        return l->bound;
    if (cls <= ZIPCCL_CLASS_SETTLED)
        capacity += permille_of(l->raw - capacity, given_back[cls]);
    else
        capacity = permille_of(capacity, taken[cls - ZIPCCL_CLASS_SETTLED - 1]);
    capacity = (capacity + CAPACITY_ALIGN - 1) / CAPACITY_ALIGN * CAPACITY_ALIGN;
    return capacity < l->bound ? capacity : l->bound;
}

size_t zipccl_capacity(enum zipccl_dtype dtype, size_t n, uint32_t capacity_class)
{
    struct ladder l = ladder_of(dtype, n);

    return capacity_of(&l, capacity_class);
}

int zipccl_class_fit(enum zipccl_dtype dtype, size_t n, size_t nbytes)
{
    struct ladder l = ladder_of(dtype, n);
    int fits = ZIPCCL_NO_CLASS, over = ZIPCCL_NUM_CLASSES;

    while (over - fits > 1) { /* narrower than 'over' none fits, 'fits' and all wider ones do */
        int cls = fits + (over - fits) / 2;

        if (nbytes <= capacity_of(&l, (uint32_t)cls))
            fits = cls;
        else
            over = cls;
    }
    return fits;
}

int zipccl_class_roomier(enum zipccl_dtype dtype, size_t n, int cls)
{
    struct ladder l = ladder_of(dtype, n);
    size_t room;

    if (cls < 0 || cls >= ZIPCCL_NUM_CLASSES)
        return ZIPCCL_NO_CLASS;
    room = capacity_of(&l, (uint32_t)cls);
    while (cls >= 0 && capacity_of(&l, (uint32_t)cls) == room)
        cls--;
    return cls;
}

int zipccl_class_narrowest(enum zipccl_dtype dtype, size_t n)
{
    int cls = ZIPCCL_NUM_CLASSES - 1;

    while (cls > ZIPCCL_CLASS_WIDE &&
           zipccl_capacity(dtype, n, (uint32_t)cls) == zipccl_capacity(dtype, n, (uint32_t)cls - 1))
        cls--;
    return cls;
}
