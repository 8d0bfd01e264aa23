/*
 * wire.h - fixed-width little-endian integers in byte streams
 *
 * Everything that travels or is stored goes through these; no struct is ever sent as it lies
 * in memory.  Callers check bounds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_WIRE_H
#define ZIPCCL_CORE_WIRE_H

#include "core/hostdev.h"

#include <stdint.h>

static ZIPCCL_HOSTDEV inline void zipccl_put_u16(uint8_t *p, uint16_t x)
{
    p[0] = (uint8_t)x;
    p[1] = (uint8_t)(x >> 8);
}

static ZIPCCL_HOSTDEV inline void zipccl_put_u32(uint8_t *p, uint32_t x)
{
    zipccl_put_u16(p, (uint16_t)x);
    zipccl_put_u16(p + 2, (uint16_t)(x >> 16));
}

static ZIPCCL_HOSTDEV inline void zipccl_put_u64(uint8_t *p, uint64_t x)
{
    zipccl_put_u32(p, (uint32_t)x);
    zipccl_put_u32(p + 4, (uint32_t)(x >> 32));
}

static ZIPCCL_HOSTDEV inline uint16_t zipccl_get_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static ZIPCCL_HOSTDEV inline uint32_t zipccl_get_u32(const uint8_t *p)
{
    return (uint32_t)zipccl_get_u16(p) | (uint32_t)zipccl_get_u16(p + 2) << 16;
}

static ZIPCCL_HOSTDEV inline uint64_t zipccl_get_u64(const uint8_t *p)
{
    return (uint64_t)zipccl_get_u32(p) | (uint64_t)zipccl_get_u32(p + 4) << 32;
}

#endif
