/*
 * fuzz_file_decode.c - any bytes as a coded file: refused with a place, or a file that codes again
 *
 * For libFuzzer, or with core/fuzz/fuzz_main.c as a plain program over files and changes of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec.h"
#include "core/fuzz/fuzz.h"
#include "core/wire.h"
#include "experiments/codec/codec_file.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* Segments that code nearly nothing decode to much: only the first of it is kept. */
static void decode(const uint8_t *data, size_t nbytes)
{
    struct zipccl_error error = {""};
    struct zipccl_file_stats stats;
    struct zipccl_file_job job = {.in_name = "in", .out_name = "out"};
    /* fmemopen() refuses an empty one. */
    job.in = nbytes > 0 ? fmemopen((void *)data, nbytes, "rb") : fopen("/dev/null", "rb");
    job.out = fopen("/dev/null", "wb");
    check(job.in && job.out);
    zipccl_status status = zipccl_file_decode(&job, &stats, &error);
    check(status == ZIPCCL_OK || status == ZIPCCL_ERR_CORRUPT || status == ZIPCCL_ERR_UNSUPPORTED);
    if (status == ZIPCCL_OK)
        check(stats.file_bytes == nbytes);
    else
        check(strncmp(error.text, "in: byte ", 9) == 0);
    fclose(job.in);
    fclose(job.out);
}

/* Put headers and sums right, as far as lengths can be followed, so that changes reach further. */
static void mend(uint8_t *p, size_t nbytes)
{
    size_t at = ZIPCCL_FILE_HEADER_BYTES;
    if (nbytes < at)
        return;
    memcpy(p, "\x89ZCF\r\n\x1a\n\1\0\0\0\0\0\0\0", at);
    while (nbytes - at >= ZIPCCL_MESSAGE_HEADER_BYTES && memcmp(p + at, "ZEND", 4) != 0) {
        zipccl_message_set_flags(p + at, 0);
        uint64_t nbody = zipccl_get_u64(p + at + 16);
        size_t left = nbytes - at - ZIPCCL_MESSAGE_HEADER_BYTES;
        if (nbody > left || left - nbody < ZIPCCL_FILE_SUM_BYTES)
            return;
        size_t nwire = ZIPCCL_MESSAGE_HEADER_BYTES + (size_t)nbody;
        zipccl_put_u64(p + at + nwire, XXH3_64bits(p + at, nwire));
        at += nwire + ZIPCCL_FILE_SUM_BYTES;
    }
    if (nbytes - at >= ZIPCCL_FILE_TRAILER_BYTES)
        zipccl_put_u64(p + at + 32, XXH3_64bits(p + at, 32));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    uint8_t *copy = calloc(nbytes + 1, 1);
    check(copy != NULL);
    if (nbytes > 0)
        memcpy(copy, data, nbytes);
    decode(copy, nbytes);
    mend(copy, nbytes);
    decode(copy, nbytes);
    free(copy);
    return 0;
}
