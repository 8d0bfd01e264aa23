/*
 * codec_file_encode.c - a file into segments, each a message and its checksum
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/wire.h"
#include "experiments/codec/codec_file_buffers.h"
#include "traces/safetensors_layout.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Told with every error of a file that is taken for .safetensors. */
#define HINT "; --dtype TYPE takes any file as elements of one type"

/* The input: what was read ahead, then the stream; and what its bytes are. */
struct source {
    uint8_t *ahead; /* [nahead] the first bytes */
    size_t nahead;
    uint64_t at; /* bytes handed on */
    struct zipccl_element_range *ranges;
    size_t nranges, range; /* the one at or after 'at' */
    uint64_t end;          /* where the last tensor ends */
};

/* Add the reason's remedy where there is room. */
static zipccl_status with_hint(zipccl_status status, struct zipccl_error *error)
{
    if (status == ZIPCCL_ERR_INPUT && error != NULL &&
        strlen(error->text) + sizeof HINT <= sizeof error->text)
        strcat(error->text, HINT);
    return status;
}

/* Read 'nbytes' more ahead, piece by piece: a length that is a lie costs no memory. */
static zipccl_status read_ahead(struct zipccl_file_work *work, struct source *source, size_t nbytes)
{
    while (nbytes > 0) {
        size_t piece = nbytes < ZIPCCL_FILE_SEGMENT ? nbytes : ZIPCCL_FILE_SEGMENT, got;
        uint8_t *grown = realloc(source->ahead, source->nahead + piece);
        if (grown == NULL)
            return zipccl_fail(work->error, ZIPCCL_ERR_NOMEM, "%s: out of memory",
                               work->job->in_name);
        source->ahead = grown;
        ZIPCCL_TRY(zipccl_file_read(work, grown + source->nahead, piece, &got));
        source->nahead += got;
        if (got < piece)
            return ZIPCCL_OK;
        nbytes -= piece;
    }
    return ZIPCCL_OK;
}

/* The tensors must lie within the file, if its size is known now. */
static zipccl_status check_end(struct zipccl_file_work *work, const struct source *source,
                               uint64_t nbytes)
{
    if (source->end > nbytes)
        return with_hint(zipccl_fail(work->error, ZIPCCL_ERR_INPUT,
                                     "%s: a file of %" PRIu64 " bytes whose header places tensors "
                                     "up to byte %" PRIu64 ": the file is cut or no .safetensors",
                                     work->job->in_name, nbytes, source->end),
                         work->error);
    return ZIPCCL_OK;
}

static zipccl_status open_safetensors(struct zipccl_file_work *work, struct source *source)
{
    const char *name = work->job->in_name;
    ZIPCCL_TRY(read_ahead(work, source, 8));
    if (source->nahead < 8)
        return with_hint(zipccl_fail(work->error, ZIPCCL_ERR_INPUT,
                                     "%s: a file of %zu bytes, expected a .safetensors file of at "
                                     "least 8",
                                     name, source->nahead),
                         work->error);
    uint64_t nheader = zipccl_get_u64(source->ahead);
    if (nheader > ZIPCCL_SAFETENSORS_MAX_HEADER)
        return with_hint(zipccl_fail(work->error, ZIPCCL_ERR_INPUT,
                                     "%s: a header of %" PRIu64 " bytes, expected at most %u: no "
                                     ".safetensors file",
                                     name, nheader, ZIPCCL_SAFETENSORS_MAX_HEADER),
                         work->error);
    ZIPCCL_TRY(read_ahead(work, source, (size_t)nheader));
    if (source->nahead < 8 + nheader)
        return with_hint(zipccl_fail(work->error, ZIPCCL_ERR_INPUT,
                                     "%s: a header of %" PRIu64 " bytes in a file of %zu, expected "
                                     "it to fit: the file is cut or no .safetensors",
                                     name, nheader, source->nahead),
                         work->error);
    ZIPCCL_TRY(with_hint(zipccl_safetensors_layout(name, (const char *)source->ahead + 8,
                                                   (size_t)nheader, &source->ranges,
                                                   &source->nranges, &source->end, work->error),
                         work->error));
    for (size_t i = 0; i < source->nranges; i++) {
        source->ranges[i].begin += 8 + nheader;
        source->ranges[i].end += 8 + nheader;
    }
    source->end += 8 + nheader;
    return work->job->in_bytes > 0 ? check_end(work, source, work->job->in_bytes) : ZIPCCL_OK;
}

/* Hand on the next 'nbytes', fewer at the end of the file. */
static zipccl_status take(struct zipccl_file_work *work, struct source *source, uint8_t *to,
                          size_t nbytes, size_t *got)
{
    size_t held = source->at < source->nahead ? source->nahead - (size_t)source->at : 0, more = 0;
    held = held < nbytes ? held : nbytes;
    if (held > 0)
        memcpy(to, source->ahead + source->at, held);
    if (nbytes > held)
        ZIPCCL_TRY(zipccl_file_read(work, to + held, nbytes - held, &more));
    *got = held + more;
    source->at += *got;
    return ZIPCCL_OK;
}

/* The type of the next segment, and how many bytes it may have. */
static enum zipccl_dtype next_segment(struct source *source, size_t *nbytes)
{
    enum zipccl_dtype dtype = ZIPCCL_UINT8;
    uint64_t left = UINT64_MAX;
    while (source->range < source->nranges && source->ranges[source->range].end <= source->at)
        source->range++;
    if (source->range < source->nranges) {
        const struct zipccl_element_range *range = &source->ranges[source->range];
        bool inside = range->begin <= source->at;
        left = (inside ? range->end : range->begin) - source->at;
        /* Bytes at a range's end that are no whole element travel as bytes. */
        if (inside && left >= zipccl_dtype_size(range->dtype)) {
            dtype = range->dtype;
            left -= left % zipccl_dtype_size(dtype);
        }
    }
    *nbytes = left < ZIPCCL_FILE_SEGMENT ? (size_t)left : ZIPCCL_FILE_SEGMENT;
    return dtype;
}

/* Encode work->raw [nbytes], see that it comes back, and write it. */
static zipccl_status put_segment(struct zipccl_file_work *work, enum zipccl_dtype dtype,
                                 size_t nbytes)
{
    size_t n = nbytes / zipccl_dtype_size(dtype), nwire = 0;
    if (zipccl_encode_mt(work->pool, work->isa, work->job->effort, dtype, work->raw, n, work->wire,
                         zipccl_bound(dtype, n), &nwire) != ZIPCCL_OK ||
        zipccl_decode_mt(work->pool, work->isa, dtype, work->wire, nwire, work->check, n) !=
            ZIPCCL_OK ||
        memcmp(work->raw, work->check, nbytes) != 0)
        return zipccl_fail(work->error, ZIPCCL_ERR_INTERNAL,
                           "%s: %zu bytes from byte %" PRIu64 " as %s do not survive the codec",
                           work->job->in_name, nbytes, work->stats.raw_bytes,
                           zipccl_dtype_name(dtype));
    XXH3_64bits_update(work->hash, work->raw, nbytes);
    zipccl_put_u64(work->wire + nwire, XXH3_64bits(work->wire, nwire));
    ZIPCCL_TRY(zipccl_file_write(work, work->wire, nwire + ZIPCCL_FILE_SUM_BYTES));
    work->stats.raw_bytes += nbytes;
    work->stats.file_bytes += nwire + ZIPCCL_FILE_SUM_BYTES;
    work->stats.nsegments++;
    work->stats.types[dtype].raw_bytes += nbytes;
    work->stats.types[dtype].wire_bytes += nwire;
    return ZIPCCL_OK;
}

static zipccl_status put_segments(struct zipccl_file_work *work, struct source *source)
{
    for (;;) {
        size_t wanted, got, rest;
        enum zipccl_dtype dtype = next_segment(source, &wanted);
        ZIPCCL_TRY(take(work, source, work->raw, wanted, &got));
        rest = got % zipccl_dtype_size(dtype);
        if (got > rest)
            ZIPCCL_TRY(put_segment(work, dtype, got - rest));
        if (rest > 0) {
            memmove(work->raw, work->raw + got - rest, rest);
            ZIPCCL_TRY(put_segment(work, ZIPCCL_UINT8, rest));
        }
        if (work->job->progress != NULL)
            work->job->progress(work->job->progress_context, source->at, work->job->in_bytes,
                                work->job->in_name);
        if (got < wanted)
            return check_end(work, source, source->at);
    }
}

static zipccl_status put_header(struct zipccl_file_work *work)
{
    uint8_t header[ZIPCCL_FILE_HEADER_BYTES] = {0};
    memcpy(header, ZIPCCL_FILE_MAGIC, 8);
    header[8] = ZIPCCL_FILE_VERSION;
    work->stats.file_bytes += sizeof header;
    return zipccl_file_write(work, header, sizeof header);
}

static zipccl_status put_trailer(struct zipccl_file_work *work)
{
    uint8_t trailer[ZIPCCL_FILE_TRAILER_BYTES] = {0};
    work->stats.sum = XXH3_64bits_digest(work->hash);
    memcpy(trailer, ZIPCCL_FILE_TRAILER_MARK, 4);
    zipccl_put_u64(trailer + 8, work->stats.nsegments);
    zipccl_put_u64(trailer + 16, work->stats.raw_bytes);
    zipccl_put_u64(trailer + 24, work->stats.sum);
    zipccl_put_u64(trailer + 32, XXH3_64bits(trailer, 32));
    work->stats.file_bytes += sizeof trailer;
    return zipccl_file_write(work, trailer, sizeof trailer);
}

static zipccl_status encode(struct zipccl_file_work *work, enum zipccl_dtype dtype,
                            struct source *source)
{
    struct zipccl_element_range all = {0, UINT64_MAX, dtype};
    if (dtype != ZIPCCL_FILE_SAFETENSORS) {
        source->ranges = &all;
        source->nranges = 1;
    } else {
        ZIPCCL_TRY(open_safetensors(work, source));
    }
    zipccl_status status = put_header(work);
    if (status == ZIPCCL_OK)
        status = put_segments(work, source);
    if (status == ZIPCCL_OK)
        status = put_trailer(work);
    if (source->ranges == &all)
        source->ranges = NULL;
    return status;
}

zipccl_status zipccl_file_encode(const struct zipccl_file_job *job, enum zipccl_dtype dtype,
                                 struct zipccl_file_stats *stats, struct zipccl_error *error)
{
    struct zipccl_file_work work;
    struct source source = {0};
    zipccl_status status = zipccl_file_work_create(&work, job, ZIPCCL_FILE_SEGMENT, error);
    if (status == ZIPCCL_OK)
        status = encode(&work, dtype, &source);
    if (status == ZIPCCL_OK)
        *stats = work.stats;
    free(source.ranges);
    free(source.ahead);
    zipccl_file_work_destroy(&work);
    return status;
}
