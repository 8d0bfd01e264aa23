/*
 * codec_file_decode.c - segments back into the file they were, each checked first
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/wire.h"
#include "experiments/codec/codec_file_buffers.h"

#include <inttypes.h>
#include <string.h>

/* Fail at byte 'at' of the coded file. */
#define CORRUPT(work, at, format, ...)                                                             \
    zipccl_fail((work)->error, ZIPCCL_ERR_CORRUPT, "%s: byte %" PRIu64 ": " format,                \
                (work)->job->in_name, (at), __VA_ARGS__)

/* Read all of a part of [nbytes] that starts at byte 'at'; 'have' of them are there. */
static zipccl_status need(struct zipccl_file_work *work, uint64_t at, const char *what, uint8_t *to,
                          size_t have, size_t nbytes)
{
    size_t got;
    ZIPCCL_TRY(zipccl_file_read(work, to + have, nbytes - have, &got));
    if (have + got < nbytes)
        return CORRUPT(work, at, "the file is cut: it ends after %zu of the %zu bytes of %s",
                       have + got, nbytes, what);
    return ZIPCCL_OK;
}

static zipccl_status get_header(struct zipccl_file_work *work)
{
    static const uint8_t zeros[7] = {0};
    uint8_t header[ZIPCCL_FILE_HEADER_BYTES];
    size_t got;
    ZIPCCL_TRY(zipccl_file_read(work, header, sizeof header, &got));
    if (got < 8 || memcmp(header, ZIPCCL_FILE_MAGIC, 8) != 0)
        return CORRUPT(work, (uint64_t)0, "%s, expected the start of a coded file",
                       got == 0 ? "an empty file" : "other bytes");
    if (got < sizeof header)
        return CORRUPT(work, (uint64_t)0, "the file is cut: it ends after %zu bytes of its header",
                       got);
    if (header[8] != ZIPCCL_FILE_VERSION)
        return zipccl_fail(work->error, ZIPCCL_ERR_UNSUPPORTED,
                           "%s: byte 8: a coded file of version %u, expected %d",
                           work->job->in_name, header[8], ZIPCCL_FILE_VERSION);
    if (memcmp(header + 9, zeros, sizeof zeros) != 0)
        return CORRUPT(work, (uint64_t)9, "%s", "reserved bytes that are not 0");
    work->stats.file_bytes = sizeof header;
    return ZIPCCL_OK;
}

/* What a segment's header must say beside being valid. */
static bool is_segment(const struct zipccl_message *message)
{
    size_t size = zipccl_dtype_size(message->dtype);
    return message->n > 0 && message->n <= ZIPCCL_FILE_LIMIT / size &&
           (message->flags & ~ZIPCCL_MESSAGE_RAW) == 0;
}

/* Read, check and decode the segment whose message header is in work->wire. */
static zipccl_status get_segment(struct zipccl_file_work *work)
{
    uint64_t at = work->stats.file_bytes, first = work->stats.raw_bytes;
    struct zipccl_message message;
    if (zipccl_message_read(work->wire, ZIPCCL_MESSAGE_HEADER_BYTES + ZIPCCL_FILE_LIMIT,
                            &message) != ZIPCCL_OK ||
        !is_segment(&message))
        return CORRUPT(work, at,
                       "the header of segment %" PRIu64 " is damaged, or of another "
                       "version of the codec",
                       work->stats.nsegments);
    size_t nwire = (size_t)message.nbytes;
    ZIPCCL_TRY(need(work, at, "a segment", work->wire, ZIPCCL_MESSAGE_HEADER_BYTES,
                    nwire + ZIPCCL_FILE_SUM_BYTES));
    uint64_t found = XXH3_64bits(work->wire, nwire), expected = zipccl_get_u64(work->wire + nwire);
    size_t n = (size_t)message.n, nbytes = n * zipccl_dtype_size(message.dtype);
    if (found != expected)
        return CORRUPT(work, at,
                       "segment %" PRIu64 " (%zu bytes; bytes %" PRIu64 " to %" PRIu64
                       " of the original) is damaged: checksum %016" PRIx64
                       ", expected %016" PRIx64,
                       work->stats.nsegments, nwire, first, first + nbytes, found, expected);
    if (zipccl_decode_mt(work->pool, work->isa, message.dtype, work->wire, nwire, work->raw, n) !=
        ZIPCCL_OK)
        return CORRUPT(work, at,
                       "segment %" PRIu64 " has the right checksum but is no valid message",
                       work->stats.nsegments);
    XXH3_64bits_update(work->hash, work->raw, nbytes);
    work->stats.raw_bytes += nbytes;
    work->stats.file_bytes += nwire + ZIPCCL_FILE_SUM_BYTES;
    work->stats.nsegments++;
    work->stats.types[message.dtype].raw_bytes += nbytes;
    work->stats.types[message.dtype].wire_bytes += nwire;
    return zipccl_file_write(work, work->raw, nbytes);
}

/* Check the trailer, whose first 32 bytes are in work->wire, and that nothing follows. */
static zipccl_status get_trailer(struct zipccl_file_work *work)
{
    uint64_t at = work->stats.file_bytes;
    const uint8_t *p = work->wire;
    size_t got;
    ZIPCCL_TRY(need(work, at, "the trailer", work->wire, 32, ZIPCCL_FILE_TRAILER_BYTES));
    if (zipccl_get_u64(p + 32) != XXH3_64bits(p, 32) || zipccl_get_u32(p + 4) != 0)
        return CORRUPT(work, at, "%s", "the trailer is damaged");
    if (zipccl_get_u64(p + 8) != work->stats.nsegments)
        return CORRUPT(work, at, "%" PRIu64 " segments, expected %" PRIu64 ": some are missing",
                       work->stats.nsegments, zipccl_get_u64(p + 8));
    if (zipccl_get_u64(p + 16) != work->stats.raw_bytes)
        return CORRUPT(work, at, "%" PRIu64 " bytes, expected %" PRIu64 " of the original",
                       work->stats.raw_bytes, zipccl_get_u64(p + 16));
    work->stats.sum = XXH3_64bits_digest(work->hash);
    if (zipccl_get_u64(p + 24) != work->stats.sum)
        return CORRUPT(work, at,
                       "checksum %016" PRIx64 " of all that was decoded, expected %016" PRIx64,
                       work->stats.sum, zipccl_get_u64(p + 24));
    work->stats.file_bytes += ZIPCCL_FILE_TRAILER_BYTES;
    ZIPCCL_TRY(zipccl_file_read(work, work->wire, 1, &got));
    if (got > 0)
        return CORRUPT(work, work->stats.file_bytes, "%s",
                       "bytes after the trailer, expected the end of the file");
    return ZIPCCL_OK;
}

static zipccl_status get_segments(struct zipccl_file_work *work)
{
    for (;;) {
        uint64_t at = work->stats.file_bytes;
        ZIPCCL_TRY(
            need(work, at, "a segment's header", work->wire, 0, ZIPCCL_MESSAGE_HEADER_BYTES));
        if (memcmp(work->wire, ZIPCCL_FILE_TRAILER_MARK, 4) == 0)
            return get_trailer(work);
        ZIPCCL_TRY(get_segment(work));
        if (work->job->progress != NULL)
            work->job->progress(work->job->progress_context, work->stats.file_bytes,
                                work->job->in_bytes, work->job->in_name);
    }
}

zipccl_status zipccl_file_decode(const struct zipccl_file_job *job, struct zipccl_file_stats *stats,
                                 struct zipccl_error *error)
{
    struct zipccl_file_work work;
    zipccl_status status = zipccl_file_work_create(&work, job, ZIPCCL_FILE_LIMIT, error);
    if (status == ZIPCCL_OK)
        status = get_header(&work);
    if (status == ZIPCCL_OK)
        status = get_segments(&work);
    if (status == ZIPCCL_OK)
        *stats = work.stats;
    zipccl_file_work_destroy(&work);
    return status;
}
