/*
 * import_kineto_stream.c - the bytes of a profiler file, made fit for a strict JSON parser
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_kineto_stream.h"

#include "traces/json.h"

#include <errno.h>
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

static zipccl_status read_failed(gzFile file, const char *path, struct zipccl_error *error)
{
    struct zipccl_place at = {path, 0, error};
    int code;
    const char *message = gzerror(file, &code);

    if (code == Z_ERRNO)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s", path, strerror(errno));
    if (code == Z_MEM_ERROR)
        return zipccl_place_nomem(&at);
    /* zlib's message starts with the path. */
    if (code == Z_BUF_ERROR)
        return zipccl_place_fail(&at, "the gzip stream is cut, expected more of it");
    return zipccl_place_fail(&at, "broken gzip stream (%s), expected a whole one",
                             strrchr(message, ':') != NULL ? strrchr(message, ':') + 2 : message);
}

static zipccl_status pump(gzFile file, const char *path, struct kineto_filter *filter, char *buffer,
                          zipccl_status (*feed)(void *context, const char *bytes, size_t n),
                          void *context, struct zipccl_error *error)
{
    char *out = buffer + PIECE;
    bool first = true;
    int n;

    while ((n = gzread(file, buffer, (unsigned)PIECE)) > 0) {
        const char *in = buffer;
        size_t nbytes = (size_t)n, filtered;

        if (first && nbytes >= 3 && memcmp(in, "\xef\xbb\xbf", 3) == 0) {
            in += 3;
            nbytes -= 3;
        }
        first = false;
        filtered = kineto_filter(filter, in, nbytes, out);
        ZIPCCL_TRY(feed(context, out, filtered));
    }
    gzerror(file, &n);
    if (n != Z_OK && n != Z_STREAM_END)
        return read_failed(file, path, error);
    return feed(context, out, kineto_filter_end(filter, out));
}

zipccl_status kineto_stream(const char *path, struct kineto_filter *filter,
                            zipccl_status (*feed)(void *context, const char *bytes, size_t n),
                            void *context, struct zipccl_error *error)
{
    char *buffer = malloc(PIECE + KINETO_FILTER_ROOM(PIECE));
    zipccl_status status;
    gzFile file;

    if (buffer == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
    errno = 0;
    file = gzopen(path, "rb");
    if (file == NULL) {
        free(buffer);
        return zipccl_fail(error, errno == 0 ? ZIPCCL_ERR_NOMEM : ZIPCCL_ERR_IO, "%s: %s", path,
                           errno == 0 ? "out of memory" : strerror(errno));
    }
    status = pump(file, path, filter, buffer, feed, context, error);
    gzclose(file);
    free(buffer);
    return status;
}
