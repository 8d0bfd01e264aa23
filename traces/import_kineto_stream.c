/*
 * import_kineto_stream.c - the bytes of a profiler file, made fit for a strict JSON parser
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_kineto_stream.h"

#include "traces/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#define PIECE ((size_t)1 << 16)

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Put the collected word, or null where JSON has no word for the number. */
static size_t put_word(struct kineto_filter *f, char *out)
{
    static const char *const numbers[] = {"nan", "inf", "infinity"};
    size_t sign = f->nword > 0 && f->word[0] == '-', n = f->nword;

    f->nword = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (strlen(numbers[i]) == n - sign &&
            strncasecmp(f->word + sign, numbers[i], n - sign) == 0) {
            f->nreplaced++;
            memcpy(out, "null", 4);
            return 4;
        }
    memcpy(out, f->word, n);
    return n;
}

/* The part of a string from 'in' on; '*used' bytes of input. */
static size_t filter_string(struct kineto_filter *f, const char *in, size_t n, char *out,
                            size_t *used)
{
    size_t i = 0;

    while (i < n && f->in_string) {
        char c = in[i];

        if ((unsigned char)c < 0x20) {
            f->nreplaced++;
            c = ' ';
        }
        if (f->escaped)
            f->escaped = false;
        else if (c == '\\')
            f->escaped = true;
        else if (c == '"')
            f->in_string = false;
        out[i++] = c;
    }
    *used = i;
    return i;
}

size_t kineto_filter(struct kineto_filter *f, const char *in, size_t n, char *out)
{
    size_t used, written = 0;

    for (size_t i = 0; i < n; i++) {
        if (f->in_string) {
            written += filter_string(f, in + i, n - i, out + written, &used);
            i += used - 1;
            continue;
        }
        if ((is_letter(in[i]) || (in[i] == '-' && f->nword == 0)) && f->nword < sizeof f->word) {
            f->word[f->nword++] = in[i];
            continue;
        }
        if (f->nword > 0)
            written += put_word(f, out + written);
        f->in_string = in[i] == '"';
        out[written++] = in[i];
    }
    return written;
}

size_t kineto_filter_end(struct kineto_filter *f, char *out)
{
    return f->nword > 0 ? put_word(f, out) : 0;
}

/* A file, plain or of gzip members one after the other; gzread() would drop what follows them. */
struct source {
    FILE *file;
    const char *path;
    struct zipccl_error *error;
    bool gzip, member_done;
    z_stream z;
    unsigned char in[PIECE], out[PIECE];
    char filtered[KINETO_FILTER_ROOM(PIECE)];
};

static zipccl_status fill(struct source *s)
{
    size_t n = fread(s->in, 1, PIECE, s->file);

    if (ferror(s->file))
        return zipccl_fail(s->error, ZIPCCL_ERR_IO, "%s: %s", s->path, strerror(errno));
    s->z.next_in = s->in;
    s->z.avail_in = (uInt)n;
    return ZIPCCL_OK;
}

static zipccl_status begin(struct source *s)
{
    struct zipccl_place at = {s->path, 0, s->error};

    ZIPCCL_TRY(fill(s));
    if (s->z.avail_in < 2 || s->in[0] != 0x1f || s->in[1] != 0x8b)
        return ZIPCCL_OK;
    if (inflateInit2(&s->z, 16 + MAX_WBITS) != Z_OK)
        return zipccl_place_nomem(&at);
    s->gzip = true;
    return ZIPCCL_OK;
}

/* Inflate until 'out' is full or the file ends. */
static zipccl_status unzip(struct source *s)
{
    struct zipccl_place at = {s->path, 0, s->error};

    s->z.next_out = s->out;
    s->z.avail_out = PIECE;
    while (s->z.avail_out > 0) {
        int code;

        if (s->z.avail_in == 0)
            ZIPCCL_TRY(fill(s));
        if (s->z.avail_in == 0 && !s->member_done)
            return zipccl_place_fail(
                &at, "the gzip stream is cut after %ld bytes, expected more of it", ftell(s->file));
        if (s->z.avail_in == 0)
            return ZIPCCL_OK;
        if (s->member_done) {
            if (s->z.next_in[0] != 0x1f)
                return zipccl_place_fail(&at, "bytes after the gzip stream, expected the end");
            inflateReset(&s->z);
            s->member_done = false;
        }
        code = inflate(&s->z, Z_NO_FLUSH);
        s->member_done = code == Z_STREAM_END;
        if (code == Z_MEM_ERROR)
            return zipccl_place_nomem(&at);
        if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
            return zipccl_place_fail(&at, "broken gzip stream (%s), expected a whole one",
                                     s->z.msg != NULL ? s->z.msg : "data error");
    }
    return ZIPCCL_OK;
}

/* The next bytes, to be read before the next call; none at the end. */
static zipccl_status next(struct source *s, const char **bytes, size_t *n)
{
    if (s->gzip) {
        ZIPCCL_TRY(unzip(s));
        *bytes = (const char *)s->out;
        *n = PIECE - s->z.avail_out;
        return ZIPCCL_OK;
    }
    if (s->z.avail_in == 0)
        ZIPCCL_TRY(fill(s));
    *bytes = (const char *)s->in;
    *n = s->z.avail_in;
    s->z.avail_in = 0;
    return ZIPCCL_OK;
}

static zipccl_status pump(struct source *s, struct kineto_filter *filter,
                          zipccl_status (*feed)(void *context, const char *bytes, size_t n),
                          void *context)
{
    const char *in;
    size_t n;

    ZIPCCL_TRY(begin(s));
    ZIPCCL_TRY(next(s, &in, &n));
    for (bool first = true; n > 0; first = false) {
        size_t mark = first && n >= 3 && memcmp(in, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

        ZIPCCL_TRY(
            feed(context, s->filtered, kineto_filter(filter, in + mark, n - mark, s->filtered)));
        ZIPCCL_TRY(next(s, &in, &n));
    }
    return feed(context, s->filtered, kineto_filter_end(filter, s->filtered));
}

zipccl_status kineto_stream(const char *path, struct kineto_filter *filter,
                            zipccl_status (*feed)(void *context, const char *bytes, size_t n),
                            void *context, struct zipccl_error *error)
{
    struct source *s = calloc(1, sizeof *s);
    zipccl_status status;

    if (s == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
    s->path = path;
    s->error = error;
    s->file = fopen(path, "rb");
    if (s->file == NULL) {
        free(s);
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s", path, strerror(errno));
    }
    status = pump(s, filter, feed, context);
    if (s->gzip)
        inflateEnd(&s->z);
    fclose(s->file);
    free(s);
    return status;
}
