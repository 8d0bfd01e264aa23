/*
 * codec.h - messages: tensors coded losslessly, one buffer at a time
 *
 * A message is a header and a body; core/FORMAT.md gives the bytes.  Any bit pattern survives.
 * The codec allocates nothing, keeps no state and may run on several threads at once, each
 * with its own scratch.  It knows no rank, no plan and no transport.
 * The scalar row defines the bytes; every other row writes the same ones.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_CODEC_H
#define ZIPCCL_CORE_CODEC_H

#include "core/dtype.h"
#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

/* Instruction-set rows.  A caller asks once for the best and keeps the answer. */
enum zipccl_isa { ZIPCCL_ISA_SCALAR = 0, ZIPCCL_ISA_AVX2, ZIPCCL_ISA_AVX512, ZIPCCL_NUM_ISAS };

/* Best row that this machine can run and this build contains. */
enum zipccl_isa zipccl_isa_best(void);

/* True if 'isa' is in this build and the machine can run it. */
bool zipccl_isa_usable(enum zipccl_isa isa);
const char *zipccl_isa_name(enum zipccl_isa isa);

/* Bytes of the header at the start of every message. */
#define ZIPCCL_MESSAGE_HEADER_BYTES 32

/* Message flags in the header. */
#define ZIPCCL_MESSAGE_RAW          0x01u /* body is the elements as they are */
#define ZIPCCL_MESSAGE_OVERFLOW     0x02u /* did not fit its capacity: header only, sent raw later */
#define ZIPCCL_MESSAGE_ANY_OVERFLOW 0x04u /* another message of this sender and step overflowed */

/* What a header says; filled by zipccl_message_read(). */
struct zipccl_message {
    enum zipccl_dtype dtype;
    uint32_t flags;
    uint64_t n;      /* elements */
    uint64_t nbytes; /* bytes of the whole message, header included; <= what was received */
};

/* Bytes of scratch that encode and decode need; the same for every row, alignment 64. */
size_t zipccl_codec_scratch_bytes(void);

/*
 * Largest message that 'n' elements of 'dtype' can become: a header and the raw elements, since
 * what would grow is stored raw.  0 if it does not fit size_t or 'dtype' is invalid.
 */
size_t zipccl_bound(enum zipccl_dtype dtype, size_t n);

/*
 * Encode 'n' elements into one message.
 *
 * src       [n] elements, any alignment; not modified
 * dst       [capacity] bytes, any alignment; bytes from '*nbytes' on may be scribbled over,
 *           never beyond 'capacity'
 * capacity  room in 'dst'; at least ZIPCCL_MESSAGE_HEADER_BYTES
 * scratch   [zipccl_codec_scratch_bytes()], aligned to 64, contents irrelevant
 * nbytes    bytes of the message; on OVERFLOW the header alone
 *
 * Types the codec does not cover, and data that would grow, are stored raw inside the message.
 * ZIPCCL_ERR_OVERFLOW if the message does not fit: 'dst' then starts with a valid header that
 * has ZIPCCL_MESSAGE_OVERFLOW set.  ZIPCCL_ERR_ARG for an invalid type, a row that is not usable,
 * a size that overflows or too small a capacity.
 *
 * Cost: one pass, and one copy where the message is stored raw.  Threads: reentrant.
 */
zipccl_status zipccl_encode(enum zipccl_isa isa, enum zipccl_dtype dtype, const void *src, size_t n,
                            void *dst, size_t capacity, void *scratch, size_t *nbytes);

/*
 * Read the header of a message of which 'nbytes' bytes were received.
 * ZIPCCL_ERR_CORRUPT if it is none, is of another version, or claims more than 'nbytes'.
 */
zipccl_status zipccl_message_read(const void *wire, size_t nbytes, struct zipccl_message *message);

/*
 * Write a header alone, as of a message of 'n' elements and 'nbytes' bytes, for whoever accounts for
 * messages without their bodies.  A message as long as zipccl_bound() gets ZIPCCL_MESSAGE_RAW; with
 * ZIPCCL_MESSAGE_OVERFLOW in 'flags' nbytes is ZIPCCL_MESSAGE_HEADER_BYTES.
 *
 * wire  [ZIPCCL_MESSAGE_HEADER_BYTES]
 */
void zipccl_message_write_header(void *wire, enum zipccl_dtype dtype, uint32_t flags, uint64_t n,
                                 uint64_t nbytes);

/* Set further flags in the header of a message written by zipccl_encode() (checksum kept valid). */
void zipccl_message_set_flags(void *wire, uint32_t flags);

/*
 * Decode a message of exactly 'n' elements of 'dtype'.
 *
 * wire     [nbytes] bytes as received; may be longer than the message (fixed capacity)
 * dst      [n] elements, any alignment; undefined after an error
 *
 * ZIPCCL_ERR_CORRUPT for bytes that break a rule of core/FORMAT.md, another 'n' or another 'dtype';
 * ZIPCCL_ERR_OVERFLOW for a header-only message; ZIPCCL_ERR_ARG for an invalid type or a row that
 * is not usable.  Never reads outside 'wire' or writes outside 'dst' and 'scratch', whatever the
 * bytes.  A changed mantissa cannot be told from another value: the body has no checksum.
 */
zipccl_status zipccl_decode(enum zipccl_isa isa, enum zipccl_dtype dtype, const void *wire,
                            size_t nbytes, void *dst, size_t n, void *scratch);

/*
 * Encode 'n' fp32 values as elements of 'dtype' (bf16, fp16 or fp32), each rounded once, to
 * nearest even, as zipccl_reduce() does; every NaN becomes the canonical one of bf16 or fp16.
 *
 * src       [n] float; not modified
 *
 * All else as zipccl_encode(), whose bytes for the rounded elements these are.
 * Cost: rounded a superblock at a time, no pass over memory of its own.
 * ZIPCCL_ERR_UNSUPPORTED for other types.
 */
zipccl_status zipccl_encode_f32(enum zipccl_isa isa, enum zipccl_dtype dtype, const float *src,
                                size_t n, void *dst, size_t capacity, void *scratch,
                                size_t *nbytes);

/*
 * Decode a message of exactly 'n' elements of 'dtype' (bf16, fp16 or fp32) and add each to 'acc'.
 *
 * acc      [n] float, owned by the caller; after an error it has some of the elements added
 *
 * All else as zipccl_decode().  A sum that is NaN has any payload.
 * Cost: added a superblock at a time, no pass over memory of its own.
 * ZIPCCL_ERR_UNSUPPORTED for other types.
 */
zipccl_status zipccl_decode_add(enum zipccl_isa isa, enum zipccl_dtype dtype, const void *wire,
                                size_t nbytes, float *acc, size_t n, void *scratch);

#endif
