/*
 * import_chakra_read.c - the nodes of a Chakra execution trace in protobuf
 *
 * One message is in memory at a time; of a node only what counts is kept.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_chakra.h"

#include <traces/chakra.pb-c.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define MAX_MESSAGE ((uint64_t)64 << 20)

struct source {
    struct chakra_file *file;
    gzFile stream;
    uint64_t message; /* number of the one being read, the metadata being 0 */
    unsigned char *bytes;
    size_t room;
};

static bool varint(const unsigned char *p, size_t n, uint64_t *out, size_t *used)
{
    *out = 0;
    for (*used = 0; *used < n && *used < 5; (*used)++) {
        *out |= (uint64_t)(p[*used] & 0x7f) << (7 * *used);
        if (p[*used] < 0x80) {
            (*used)++;
            return true;
        }
    }
    return false;
}

/* A field of text whose tag stands at 'p', printable as far as it can be seen. */
static bool is_text(const unsigned char *p, size_t n, unsigned char tag)
{
    if (n < 3 || p[0] != tag || p[1] == 0 || p[1] > 0x7f)
        return false;
    for (size_t i = 0; i < p[1] && 2 + i < n; i++)
        if (p[2 + i] < 0x20 || p[2 + i] > 0x7e)
            return false;
    return true;
}

/* JSON that begins with a line break looks like a message of 123 or 91 bytes with a text. */
static bool opens_json(const char *head, size_t nbytes)
{
    size_t i = 1;

    if (nbytes == 0 || (head[0] != '{' && head[0] != '['))
        return false;
    while (i < nbytes && strchr(" \t\r\n", head[i]) != NULL && head[i] != '\0')
        i++;
    return i < nbytes && head[i] != '\0' && strchr("\"{[]}", head[i]) != NULL;
}

/* The metadata's version, or its first attribute's name; without them, a node. */
bool chakra_is_protobuf(const char *head, size_t nbytes)
{
    const unsigned char *p = (const unsigned char *)head;
    uint64_t length, inner;
    size_t used, more;

    if (opens_json(head, nbytes) || !varint(p, nbytes, &length, &used) || length > MAX_MESSAGE)
        return false;
    p += used;
    nbytes -= used;
    if (length == 0)
        return varint(p, nbytes, &length, &used) && length > 0 && nbytes > used &&
               (p[used] == 0x08 || is_text(p + used, nbytes - used, 0x12));
    if (is_text(p, nbytes, 0x0a))
        return p[1] + 2u <= length;
    return nbytes > 2 && p[0] == 0x12 && varint(p + 1, nbytes - 1, &inner, &more) &&
           inner + 1 + more <= length && is_text(p + 1 + more, nbytes - 1 - more, 0x0a);
}

static zipccl_status nomem(const struct source *s)
{
    struct zipccl_place at = {s->file->path, 0, s->file->importer->error};

    return zipccl_place_nomem(&at);
}

static zipccl_status wrong(const struct source *s, const char *what)
{
    struct zipccl_place at = {s->file->path, 0, s->file->importer->error};

    return zipccl_place_fail(&at, "message %" PRIu64 ": %s", s->message, what);
}

/* Read [n]; '*got' less than that only at the end of the file. */
static zipccl_status read_bytes(struct source *s, unsigned char *out, size_t n, size_t *got)
{
    *got = 0;
    while (*got < n) {
        int code, more = gzread(s->stream, out + *got, (unsigned)(n - *got));

        gzerror(s->stream, &code);
        if (more < 0 && code == Z_ERRNO)
            return zipccl_fail(s->file->importer->error, ZIPCCL_ERR_IO, "%s: %s", s->file->path,
                               strerror(errno));
        if (more < 0 || (more == 0 && code == Z_BUF_ERROR))
            return wrong(s, "the gzip stream is cut or broken, expected a whole one");
        if (more == 0)
            return ZIPCCL_OK;
        *got += (size_t)more;
    }
    return ZIPCCL_OK;
}

/* The next message; '*nbytes' SIZE_MAX at the end of the file. */
static zipccl_status next(struct source *s, size_t *nbytes)
{
    unsigned char head[5];
    size_t n = 0, got, used;
    uint64_t length = 0;

    *nbytes = SIZE_MAX;
    do {
        ZIPCCL_TRY(read_bytes(s, head + n, 1, &got));
        if (got == 0 && n == 0)
            return ZIPCCL_OK;
        if (got == 0)
            return wrong(s, "the end of the file in a length: the file is cut");
    } while (head[n++] >= 0x80 && n < sizeof head);
    if (!varint(head, n, &length, &used) || length > MAX_MESSAGE)
        return wrong(s, "a length of more than 64 MiB, expected that of a Chakra message");
    if (length > s->room) {
        unsigned char *more = realloc(s->bytes, (size_t)length);

        if (more == NULL)
            return nomem(s);
        s->bytes = more;
        s->room = (size_t)length;
    }
    ZIPCCL_TRY(read_bytes(s, s->bytes, (size_t)length, &got));
    if (got < length)
        return wrong(s, "the end of the file inside a message, expected more of it: the file is "
                        "cut");
    *nbytes = got;
    return ZIPCCL_OK;
}

/* Any of the integers; false for what is none. */
static bool integer_of(const Zipccl__ChakraAttribute *a, int64_t *out)
{
    switch (a->value_case) {
    case ZIPCCL__CHAKRA_ATTRIBUTE__VALUE_INT32_VAL: *out = a->int32_val; return true;
    case ZIPCCL__CHAKRA_ATTRIBUTE__VALUE_INT64_VAL: *out = a->int64_val; return true;
    case ZIPCCL__CHAKRA_ATTRIBUTE__VALUE_UINT32_VAL: *out = a->uint32_val; return true;
    case ZIPCCL__CHAKRA_ATTRIBUTE__VALUE_UINT64_VAL:
        *out = a->uint64_val <= INT64_MAX ? (int64_t)a->uint64_val : INT64_MAX;
        return true;
    case ZIPCCL__CHAKRA_ATTRIBUTE__VALUE_SINT32_VAL: *out = a->sint32_val; return true;
    case ZIPCCL__CHAKRA_ATTRIBUTE__VALUE_SINT64_VAL: *out = a->sint64_val; return true;
    case ZIPCCL__CHAKRA_ATTRIBUTE__VALUE_FIXED32_VAL: *out = a->fixed32_val; return true;
    case ZIPCCL__CHAKRA_ATTRIBUTE__VALUE_FIXED64_VAL:
        *out = a->fixed64_val <= INT64_MAX ? (int64_t)a->fixed64_val : INT64_MAX;
        return true;
    case ZIPCCL__CHAKRA_ATTRIBUTE__VALUE_SFIXED32_VAL: *out = a->sfixed32_val; return true;
    case ZIPCCL__CHAKRA_ATTRIBUTE__VALUE_SFIXED64_VAL: *out = a->sfixed64_val; return true;
    case ZIPCCL__CHAKRA_ATTRIBUTE__VALUE_BOOL_VAL: *out = a->bool_val; return true;
    default: return false;
    }
}

static bool take_deps(struct chakra_file *f, struct chakra_node *node,
                      const Zipccl__ChakraNode *from)
{
    size_t n = from->n_ctrl_deps + from->n_data_deps;

    if (n >= KINETO_NONE)
        return false;
    node->deps = zipccl_arena_alloc(&f->arena, n, sizeof *node->deps);
    if (node->deps == NULL)
        return false;
    for (size_t i = 0; i < from->n_ctrl_deps; i++)
        node->deps[node->ndeps++] = from->ctrl_deps[i];
    for (size_t i = 0; i < from->n_data_deps; i++)
        node->deps[node->ndeps++] = from->data_deps[i];
    return true;
}

static bool take_node(struct chakra_file *f, const Zipccl__ChakraNode *from, uint64_t place)
{
    struct chakra_node *node = chakra_add_node(f);

    if (node == NULL || !take_deps(f, node, from))
        return false;
    node->id = from->id;
    node->place = place;
    node->type = (uint8_t)(from->type < CHAKRA_TYPES ? from->type : CHAKRA_INVALID);
    node->start_us = from->start_time_micros;
    node->duration_us = (double)from->duration_micros;
    if (node->type == CHAKRA_COLL && !chakra_take_text(f, node, "name", from->name))
        return false;
    for (size_t i = 0; i < from->n_attr; i++) {
        const Zipccl__ChakraAttribute *a = from->attr[i];
        int64_t value;

        if (integer_of(a, &value))
            chakra_take_number(node, a->name, value);
        else if (a->value_case == ZIPCCL__CHAKRA_ATTRIBUTE__VALUE_STRING_VAL &&
                 !chakra_take_text(f, node, a->name, a->string_val))
            return false;
    }
    return node->type < CHAKRA_SEND || from->inputs == NULL ||
           chakra_take_types(f, node, from->inputs->types);
}

static zipccl_status read_nodes(struct source *s)
{
    size_t nbytes;

    ZIPCCL_TRY(next(s, &nbytes));
    if (nbytes != SIZE_MAX) {
        Zipccl__ChakraMetadata *m = zipccl__chakra_metadata__unpack(NULL, nbytes, s->bytes);

        if (m == NULL)
            return wrong(s, "no metadata of Chakra, expected a .et file");
        zipccl__chakra_metadata__free_unpacked(m, NULL);
    }
    for (s->message = 1;; s->message++) {
        Zipccl__ChakraNode *node;
        bool taken;

        ZIPCCL_TRY(next(s, &nbytes));
        if (nbytes == SIZE_MAX)
            return ZIPCCL_OK;
        node = zipccl__chakra_node__unpack(NULL, nbytes, s->bytes);
        if (node == NULL)
            return wrong(s, "no node of Chakra, expected a .et file");
        taken = take_node(s->file, node, s->message);
        zipccl__chakra_node__free_unpacked(node, NULL);
        if (!taken)
            return nomem(s);
    }
}

zipccl_status chakra_read_protobuf(struct chakra_file *f)
{
    struct source s = {.file = f};
    zipccl_status status;

    errno = 0;
    s.stream = gzopen(f->path, "rb");
    if (s.stream == NULL)
        return zipccl_fail(f->importer->error, errno == 0 ? ZIPCCL_ERR_NOMEM : ZIPCCL_ERR_IO,
                           "%s: %s", f->path, errno == 0 ? "out of memory" : strerror(errno));
    status = read_nodes(&s);
    gzclose(s.stream);
    free(s.bytes);
    return status;
}
