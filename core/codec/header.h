/*
 * header.h - the 32 bytes at the start of a message
 *
 * Where its fields lie, its check, and how it is written.  Reading one is the message layer's and the
 * kernels' own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_CODEC_HEADER_H
#define ZIPCCL_CORE_CODEC_HEADER_H

#include "core/codec.h"
#include "core/codec/layout.h"
#include "core/hostdev.h"
#include "core/wire.h"

/* All message flags there are. */
#define ZIPCCL_MESSAGE_FLAGS                                                                       \
    (ZIPCCL_MESSAGE_RAW | ZIPCCL_MESSAGE_OVERFLOW | ZIPCCL_MESSAGE_ANY_OVERFLOW)

/* Byte offsets. */
enum {
    ZIPCCL_AT_MAGIC = 0,
    ZIPCCL_AT_VERSION = 4,
    ZIPCCL_AT_DTYPE = 5,
    ZIPCCL_AT_FLAGS = 6,
    ZIPCCL_AT_ZERO = 7,
    ZIPCCL_AT_N = 8,
    ZIPCCL_AT_BODY = 16,
    ZIPCCL_AT_RESERVED = 24,
    ZIPCCL_AT_CHECK = 28
};

/* FNV-1a over the header but its last field: any change of one byte changes it. */
static ZIPCCL_HOSTDEV inline uint32_t zipccl_header_check(const uint8_t *header)
{
    uint32_t h = 2166136261u;
    for (int i = 0; i < ZIPCCL_AT_CHECK; i++)
        h = (h ^ header[i]) * 16777619u;
    return h;
}

static ZIPCCL_HOSTDEV inline void zipccl_header_write(uint8_t *p, enum zipccl_dtype dtype,
                                                      uint32_t flags, uint64_t n, uint64_t nbody)
{
    zipccl_put_u32(p + ZIPCCL_AT_MAGIC, ZIPCCL_WIRE_MAGIC);
    p[ZIPCCL_AT_VERSION] = ZIPCCL_WIRE_VERSION;
    p[ZIPCCL_AT_DTYPE] = (uint8_t)dtype;
    p[ZIPCCL_AT_FLAGS] = (uint8_t)flags;
    p[ZIPCCL_AT_ZERO] = 0;
    zipccl_put_u64(p + ZIPCCL_AT_N, n);
    zipccl_put_u64(p + ZIPCCL_AT_BODY, nbody);
    zipccl_put_u32(p + ZIPCCL_AT_RESERVED, 0);
    zipccl_put_u32(p + ZIPCCL_AT_CHECK, zipccl_header_check(p));
}

#endif
