/*
 * plan_file_fields.c - the numbers of a plan, its steps and their places, by the names of the file
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/plan/plan_file_fields.h"

#include "core/capacity.h"
#include "core/plan.h"
#include "core/strategy.h"

#include <string.h>

/* Offsets are sums of a few of these times a number of ranks: none wraps. */
#define MOST_SIZE  ((uint64_t)1 << 40)
#define MOST_RANKS 65536u

/* By the enums of core/plan.h and core/dtype.h. */
static const char *const kinds[] = {"encode", "sizes",  "exchange", "resolve", "decode",
                                    "copy",   "native", "reduce",   NULL};
static const char *const patterns[] = {"all_gather", "all_to_all", "pairs", "broadcast", NULL};
static const char *const forms[] = {"raw", "fixed", "exact", NULL};
static const char *const lowerings[] = {"direct", "ring", NULL};
static const char *const groups[] = {"world", "node", "rail", NULL};
static const char *const bufs[] = {"send", "recv", "tx", "rx", "tmp", NULL};
static const char *const redops[] = {"sum", "prod", "max", "min", "avg", NULL};
static const char *const efforts[] = {"fast", "ratio", NULL};
static const char *const ops[] = {"all_gather", "reduce_scatter", "all_reduce", "alltoall",
                                  "alltoallv",  "sendrecv",       "broadcast",  NULL};
static const char *const dtypes[] = {"int8",     "uint8",    "int32", "uint32", "int64",
                                     "uint64",   "fp16",     "fp32",  "fp64",   "bf16",
                                     "fp8_e4m3", "fp8_e5m2", NULL};

#define NUMBER(type, member, highest)                                                              \
    {                                                                                              \
        .name = #member, .offset = offsetof(struct type, member),                                  \
        .width = sizeof(((struct type *)NULL)->member), .most = (highest)                          \
    }
#define WORD(type, member, names)                                                                  \
    {                                                                                              \
        .name = #member, .offset = offsetof(struct type, member),                                  \
        .width = sizeof(((struct type *)NULL)->member), .words = (names)                           \
    }
#define STEP(type, member)                                                                         \
    {                                                                                              \
        .name = #member, .offset = offsetof(struct type, member),                                  \
        .width = sizeof(((struct type *)NULL)->member), .most = ZIPCCL_STEP_NONE - 1, .none = true \
    }

const struct plan_field plan_fields[] = {
    WORD(zipccl_plan, op, ops),
    WORD(zipccl_plan, dtype, dtypes),
    WORD(zipccl_plan, redop, redops),
    WORD(zipccl_plan, effort, efforts),
    NUMBER(zipccl_plan, nranks, MOST_RANKS),
    NUMBER(zipccl_plan, root, MOST_RANKS - 1),
    NUMBER(zipccl_plan, count, MOST_SIZE),
    NUMBER(zipccl_plan, chunk_n, MOST_SIZE),
    NUMBER(zipccl_plan, nchunks, ZIPCCL_STEP_NONE),
    NUMBER(zipccl_plan, raw_below_n, MOST_SIZE),
    NUMBER(zipccl_plan, capacity_class, ZIPCCL_NUM_CLASSES - 1),
    NUMBER(zipccl_plan, nslots, ZIPCCL_MAX_SLOTS),
    NUMBER(zipccl_plan, tx_bytes, MOST_SIZE),
    NUMBER(zipccl_plan, rx_bytes, MOST_SIZE),
    NUMBER(zipccl_plan, tmp_bytes, MOST_SIZE),
    NUMBER(zipccl_plan, acc_bytes, MOST_SIZE),
    NUMBER(zipccl_plan, shard_n, MOST_SIZE),
    {.name = NULL},
};

const struct plan_field plan_step_fields[] = {
    WORD(zipccl_step, kind, kinds),
    WORD(zipccl_step, pattern, patterns),
    WORD(zipccl_step, form, forms),
    WORD(zipccl_step, lowering, lowerings),
    WORD(zipccl_step, group, groups),
    NUMBER(zipccl_step, chunk, UINT16_MAX),
    NUMBER(zipccl_step, channels, UINT16_MAX),
    NUMBER(zipccl_step, root, MOST_RANKS - 1),
    NUMBER(zipccl_step, n, MOST_SIZE),
    NUMBER(zipccl_step, capacity, MOST_SIZE),
    STEP(zipccl_step, sizes_of),
    STEP(zipccl_step, raw_of),
    NUMBER(zipccl_step, nblocks, UINT16_MAX),
    NUMBER(zipccl_step, remote, 1),
    WORD(zipccl_step, redop, redops),
    NUMBER(zipccl_step, part, UINT8_MAX),
    NUMBER(zipccl_step, first, 1),
    NUMBER(zipccl_step, round, 1),
    {.name = NULL},
};

const struct plan_field plan_place_fields[] = {
    WORD(zipccl_place, buf, bufs),
    NUMBER(zipccl_place, slot, UINT8_MAX),
    NUMBER(zipccl_place, uneven, 1),
    NUMBER(zipccl_place, by_rank, 1),
    NUMBER(zipccl_place, base, MOST_SIZE),
    NUMBER(zipccl_place, peer_stride, MOST_SIZE),
    NUMBER(zipccl_place, self_stride, MOST_SIZE),
    NUMBER(zipccl_place, block_stride, MOST_SIZE),
    {.name = NULL},
};

const struct plan_place_name plan_place_names[PLAN_NUM_PLACES] = {
    {"src", offsetof(struct zipccl_step, src)},
    {"dst", offsetof(struct zipccl_step, dst)},
    {"self", offsetof(struct zipccl_step, self)},
};

uint64_t plan_field_get(const void *from, const struct plan_field *field)
{
    const unsigned char *at = (const unsigned char *)from + field->offset;
    uint16_t two;
    uint32_t four;
    uint64_t eight;

    switch (field->width) {
    case 1: return *at;
    case 2: memcpy(&two, at, 2); return two;
    case 4: memcpy(&four, at, 4); return four;
    default: memcpy(&eight, at, 8); return eight;
    }
}

void plan_field_set(void *to, const struct plan_field *field, uint64_t value)
{
    unsigned char *at = (unsigned char *)to + field->offset;
    uint16_t two = (uint16_t)value;
    uint32_t four = (uint32_t)value;

    switch (field->width) {
    case 1: *at = (unsigned char)value; break;
    case 2: memcpy(at, &two, 2); break;
    case 4: memcpy(at, &four, 4); break;
    default: memcpy(at, &value, 8); break;
    }
}
