/*
 * bound_stub.c - the size of the largest message, for tests that are built without the codec
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec.h"

size_t zipccl_bound(enum zipccl_dtype dtype, size_t n)
{
    size_t size = zipccl_dtype_size(dtype);

    if (size == 0 || n > (SIZE_MAX - ZIPCCL_MESSAGE_HEADER_BYTES) / size)
        return 0;
    return ZIPCCL_MESSAGE_HEADER_BYTES + n * size;
}
