/*
 * fuzz_decode.c - any bytes decode to something or are refused, by every row alike
 *
 * For libFuzzer, or with core/fuzz/fuzz_main.c as a plain program over files and changes of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec.h"

#include "core/fuzz/fuzz.h"
#include "core/wire.h"

#include <stdlib.h>
#include <string.h>

/* More elements than this only cost time. */
#define MOST_N 70000u

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* Adding has the same verdict. */
static void add(enum zipccl_isa isa, const uint8_t *wire, size_t nbytes,
                const struct zipccl_message *message, void *scratch, zipccl_status expected)
{
    if (message->dtype != ZIPCCL_BFLOAT16 && message->dtype != ZIPCCL_FLOAT16 &&
        message->dtype != ZIPCCL_FLOAT32)
        return;
    float *acc = calloc((size_t)message->n + 1, sizeof *acc);
    check(acc != NULL);
    check(zipccl_decode_add(isa, message->dtype, wire, nbytes, acc, (size_t)message->n, scratch) ==
          expected);
    free(acc);
}

/* Decode by every row into buffers of the exact size; rows must agree. */
static void decode_all(const uint8_t *wire, size_t nbytes, const struct zipccl_message *message)
{
    size_t out_nbytes = (size_t)message->n * zipccl_dtype_size(message->dtype);
    uint8_t *out[2] = {malloc(out_nbytes + 1), malloc(out_nbytes + 1)};
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    check(out[0] && out[1] && scratch);
    zipccl_status status[2] = {ZIPCCL_OK, ZIPCCL_OK};
    for (int isa = 0; isa < ZIPCCL_NUM_ISAS; isa++) {
        if (!zipccl_isa_usable((enum zipccl_isa)isa))
            continue;
        int k = isa != ZIPCCL_ISA_SCALAR;
        /* One byte off the allocator's alignment, up to its end. */
        status[k] = zipccl_decode((enum zipccl_isa)isa, message->dtype, wire, nbytes, out[k] + 1,
                                  (size_t)message->n, scratch);
        check(status[k] == ZIPCCL_OK || status[k] == ZIPCCL_ERR_CORRUPT ||
              status[k] == ZIPCCL_ERR_OVERFLOW);
        check(status[k] == status[0]);
        if (k && status[0] == ZIPCCL_OK)
            check(memcmp(out[0] + 1, out[1] + 1, out_nbytes) == 0);
        add((enum zipccl_isa)isa, wire, nbytes, message, scratch, status[0]);
    }
    free(out[0]);
    free(out[1]);
    free(scratch);
}

static void decode_if_header(const uint8_t *wire, size_t nbytes)
{
    struct zipccl_message message;
    if (zipccl_message_read(wire, nbytes, &message) != ZIPCCL_OK)
        return;
    check(message.nbytes <= nbytes);
    if (message.n <= MOST_N)
        decode_all(wire, nbytes, &message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    uint8_t *wire = calloc(nbytes ? nbytes : 1, 1);
    check(wire != NULL);
    if (nbytes > 0)
        memcpy(wire, data, nbytes);
    decode_if_header(wire, nbytes);
    if (nbytes >= ZIPCCL_MESSAGE_HEADER_BYTES) {
        /* With the header put right, so that changes reach what lies behind its check. */
        static const uint8_t dtypes[] = {9, 6, 7, 10, 11};
        memcpy(wire, "ZCCL\2", 5);
        wire[5] = memchr(dtypes, wire[5], 5) ? wire[5] : dtypes[wire[5] % 5];
        wire[7] = 0;
        zipccl_put_u64(wire + 8, zipccl_get_u64(wire + 8) % MOST_N);
        zipccl_put_u64(wire + 16, nbytes - ZIPCCL_MESSAGE_HEADER_BYTES);
        zipccl_put_u32(wire + 24, 0);
        wire[6] &= ZIPCCL_MESSAGE_RAW;
        zipccl_message_set_flags(wire, 0);
        decode_if_header(wire, nbytes);
    }
    free(wire);
    return 0;
}
