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

/*
 * What encoding goes for.  Decoding needs not know: any decoder reads both.
 *
 * FAST   near the speed of memcpy; within a percent of the exponents' entropy
 * RATIO  for slow links: several times slower, and at or below the exponents' entropy, since the
 *        leading mantissa bit is coded with them; a superblock of a Gaussian may by chance be
 *        some bytes longer than with FAST, of other data none is
 */
enum zipccl_effort { ZIPCCL_EFFORT_FAST = 0, ZIPCCL_EFFORT_RATIO, ZIPCCL_NUM_EFFORTS };

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

/* zipccl_encode() with an effort; ZIPCCL_ERR_ARG for an invalid one. */
zipccl_status zipccl_encode_effort(enum zipccl_isa isa, enum zipccl_effort effort,
                                   enum zipccl_dtype dtype, const void *src, size_t n, void *dst,
                                   size_t capacity, void *scratch, size_t *nbytes);

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

/* zipccl_encode_f32() with an effort; ZIPCCL_ERR_ARG for an invalid one. */
zipccl_status zipccl_encode_f32_effort(enum zipccl_isa isa, enum zipccl_effort effort,
                                       enum zipccl_dtype dtype, const float *src, size_t n,
                                       void *dst, size_t capacity, void *scratch, size_t *nbytes);

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

/* One of several messages of a sender; see zipccl_encode_many(). */
struct zipccl_slice {
    const void *src; /* [n] elements, any alignment; not modified */
    size_t n;
    void *dst; /* [capacity] bytes, as for zipccl_encode() */
    size_t capacity;
    size_t nbytes;        /* filled: bytes of the message */
    zipccl_status status; /* filled: ZIPCCL_OK or ZIPCCL_ERR_OVERFLOW */
};

/*
 * Encode slices of one buffer, or of several, into a message each: what an all-to-all sends.
 *
 * slices   [nslices] of any sizes, 0 among them; the message buffers do not overlap
 *
 * Each message has the bytes that zipccl_encode_effort() writes, but for one flag: if messages overflow,
 * every message but one that overflowed alone gets ZIPCCL_MESSAGE_ANY_OVERFLOW, so that whoever
 * sees one header knows of all.
 * ZIPCCL_ERR_OVERFLOW if some did not fit; all are written.  ZIPCCL_ERR_ARG, before anything is
 * written, if zipccl_encode() would return it for one of them.
 *
 * Cost: one pass over the elements, one scratch for all.
 */
zipccl_status zipccl_encode_many(enum zipccl_isa isa, enum zipccl_effort effort,
                                 enum zipccl_dtype dtype, struct zipccl_slice *slices,
                                 size_t nslices, void *scratch);

/*
 * Set ZIPCCL_MESSAGE_ANY_OVERFLOW as zipccl_encode_many() does, for messages encoded one by one.
 * Returns ZIPCCL_ERR_OVERFLOW if one overflowed.
 */
zipccl_status zipccl_slices_flag(struct zipccl_slice *slices, size_t nslices);

/*
 * A message on its way, for a sender that does not wait for its end.  Its fixed region (low bytes,
 * planes, tier 1; see core/FORMAT.md) is written front to back, superblock by superblock, to where
 * it stays; header, directory and variable bytes are known only at the end.
 *
 * 'first' and the end of the region at most follow from type and n: zipccl_early_region().  A sender
 * and a receiver that agree on a cut of it into pieces can move each piece as soon as it is final,
 * and the ones that never were (shares of constants, bitmaps and the like are shorter), with all
 * around the region, after zipccl_encode_finish().  Pieces put together are the message.
 */
struct zipccl_encoder {
    size_t first;     /* where the fixed region starts in dst; 0 if nothing is final early */
    size_t final_end; /* bytes [first, final_end) of dst stay as they are if the message is coded */
    bool certain;     /* it will be: the message can no longer become raw or overflow */
    /* The rest is the codec's own. */
    enum zipccl_isa isa;
    enum zipccl_effort effort;
    enum zipccl_dtype dtype;
    bool coded;              /* still to be coded */
    const uint8_t *elements; /* borrowed until the message is finished, */
    const float *values;     /* the one that is not NULL */
    size_t n, nsuperblocks, next;
    void *scratch;
    uint8_t *dst;
    size_t capacity, limit;
    size_t variable, end; /* the variable bytes so far */
};

/*
 * Where bytes of a message of 'n' elements may be final before its end: from '*first' to at most
 * '*end', and not beyond the message.  Both 0 if the type is not coded or n is 0.  A superblock
 * adds at most zipccl_early_superblock() bytes of these, and just as many if it is coded by a first
 * tier of two bits or more and leaves no plane out, as nearly all of bf16 are.
 */
void zipccl_early_region(enum zipccl_dtype dtype, size_t n, size_t *first, size_t *end);
size_t zipccl_early_superblock(enum zipccl_dtype dtype);

/*
 * Start to encode; arguments as for zipccl_encode_effort().  src, dst and scratch are borrowed until
 * zipccl_encode_finish(); between the calls the scratch may serve for other work.
 * ZIPCCL_ERR_ARG as zipccl_encode().
 */
zipccl_status zipccl_encode_begin(struct zipccl_encoder *encoder, enum zipccl_isa isa,
                                  enum zipccl_effort effort, enum zipccl_dtype dtype,
                                  const void *src, size_t n, void *dst, size_t capacity,
                                  void *scratch);

/*
 * Code the next superblock, and move encoder->final_end on.  False, and nothing done, if none is
 * left to code, which may be long before the last one if the message becomes raw or overflows: then
 * what was final is not part of it and zipccl_encode_finish() writes another body.
 */
bool zipccl_encode_step(struct zipccl_encoder *encoder);

/*
 * Code what is left and write the rest of the message, the header last.  Status and '*nbytes' as
 * zipccl_encode(), and so are the bytes.
 */
zipccl_status zipccl_encode_finish(struct zipccl_encoder *encoder, size_t *nbytes);

/*
 * Decode a message of exactly 'n' elements of 'dtype' into rows: element i goes to
 * dst[i / row * stride + i % row].
 *
 * dst          any alignment; what lies between rows is neither read nor written
 * row, stride  in elements, 1 <= row <= stride; the last row may be short
 *
 * All else as zipccl_decode().  ZIPCCL_ERR_ARG also for other rows, or if they do not fit size_t.
 * Cost: no pass over memory of its own; a superblock that does not lie in one row goes through the
 * scratch.
 */
zipccl_status zipccl_decode_strided(enum zipccl_isa isa, enum zipccl_dtype dtype, const void *wire,
                                    size_t nbytes, void *dst, size_t n, size_t row, size_t stride,
                                    void *scratch);

/* A message being read; the codec's own. */
struct zipccl_reader {
    const uint8_t *wire;
    const uint8_t *elements; /* not NULL: the elements as they are */
    size_t n, next;          /* elements in all, next superblock */
    size_t fixed, variable;  /* offsets of that superblock's bytes */
};

/* One contribution to a sum; see zipccl_decode_sum(). */
struct zipccl_term {
    const void *bytes;           /* a message [nbytes], or elements [n]; any alignment */
    size_t nbytes;               /* of a message */
    bool is_message;             /* false: elements */
    struct zipccl_reader reader; /* the codec's own */
};

/*
 * Add up contributions, decoding those that are messages, and round the sums: one step of a
 * reduction.
 *
 * terms    [nterms], 1 or more, each of exactly 'n' elements; added in this order
 * divisor  the sum is divided by it before it is rounded, if it is not 1; not 0
 * dst      [n] elements, any alignment; may be a term's elements, not overlap them in another way
 *
 * Bits as those of zipccl_accumulate() and zipccl_round_sums(): fp32 sums that start as the first
 * term, one rounding, a NaN becomes the canonical one.
 * Cost: a superblock of all terms at a time, so that neither sums nor decoded elements leave the
 * cache: each message is read once, each result written once.
 * Errors as zipccl_decode() for any term; then dst has some of the results.  ZIPCCL_ERR_UNSUPPORTED
 * for types other than bf16, fp16 and fp32, ZIPCCL_ERR_ARG without a term or for a divisor of 0.
 */
zipccl_status zipccl_decode_sum(enum zipccl_isa isa, enum zipccl_dtype dtype,
                                struct zipccl_term *terms, size_t nterms, size_t n,
                                uint32_t divisor, void *dst, void *scratch);

#endif
