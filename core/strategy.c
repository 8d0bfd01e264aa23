/*
 * strategy.c - the table of strategies and the size of fixed messages
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/strategy.h"

#include "core/codec.h"
#include "core/strategies/strategies.h"

#include <string.h>

const struct zipccl_strategy *const zipccl_strategies[] = {
    &zipccl_strategy_native,     &zipccl_strategy_raw_direct,
    &zipccl_strategy_raw_ring,   &zipccl_strategy_fixed_direct,
    &zipccl_strategy_fixed_ring, &zipccl_strategy_exact_direct,
    &zipccl_strategy_exact_ring, NULL,
};

const struct zipccl_strategy *zipccl_strategy_find(const char *name)
{
    for (unsigned i = 0; zipccl_strategies[i] != NULL; i++)
        if (strcmp(zipccl_strategies[i]->name, name) == 0)
            return zipccl_strategies[i];
    return NULL;
}

/* Raw size over coded size of each class, in thousandths. */
static const size_t class_permille[] = {1400, 1450, 1480, 1250};

/* Room for the headers of one block besides the message's own (DESIGN section 3: at most 128 B per
 * 64 KiB); in longer messages the ratio covers them. */
#define BLOCK_HEADER_BYTES 128u

size_t zipccl_capacity(enum zipccl_dtype dtype, size_t n, uint32_t capacity_class)
{
    size_t bound = zipccl_bound(dtype, n), raw = n * zipccl_dtype_size(dtype), permille, coded;

    if (bound == 0 || !zipccl_dtype_compressible(dtype) ||
        capacity_class >= sizeof class_permille / sizeof *class_permille)
        return bound;
    permille = class_permille[capacity_class];
    coded = raw / permille * 1000 + (raw % permille * 1000 + permille - 1) / permille;
    coded += ZIPCCL_MESSAGE_HEADER_BYTES + BLOCK_HEADER_BYTES;
    /* Whole cache lines, so that messages laid end to end stay aligned. */
    coded = (coded + 63) / 64 * 64;
    return coded < bound ? coded : bound;
}
