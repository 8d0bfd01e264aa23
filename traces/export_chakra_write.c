/*
 * export_chakra_write.c - files of Chakra nodes, and how they come to their names
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/export_chakra_write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <traces/chakra.pb-c.h>
#include <unistd.h>

#define MAX_ATTRIBUTES 14

#define GROUPS UINT32_MAX /* in place of a rank */

struct chakra_writer {
    FILE *file;
    char *path; /* as it will be, for errors */
    struct zipccl_error *error;
    unsigned char *bytes;
    size_t room;
    int64_t ns; /* so far, so that rounding does not add up */
};

/* PREFIX.RANK.et or PREFIX.comm_group.json; malloc. */
static char *name_of(const char *prefix, uint32_t rank, bool partial)
{
    size_t room = strlen(prefix) + 48;
    char *out = malloc(room), middle[32];

    snprintf(middle, sizeof middle, "%" PRIu32 ".et", rank);
    if (out != NULL)
        snprintf(out, room, "%s.%s%s", prefix, rank == GROUPS ? "comm_group.json" : middle,
                 partial ? ".partial" : "");
    return out;
}

static zipccl_status failed(const char *path, struct zipccl_error *error)
{
    return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s", path, strerror(errno));
}

static zipccl_status nomem(const char *path, struct zipccl_error *error)
{
    return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
}

/* Open the temporary file of 'rank'; '*path' is the name it will get, malloc, also after a failure. */
static zipccl_status open_partial(const char *prefix, uint32_t rank, char **path, FILE **file,
                                  struct zipccl_error *error)
{
    char *partial = name_of(prefix, rank, true);
    zipccl_status status = ZIPCCL_OK;

    *path = name_of(prefix, rank, false);
    *file = partial != NULL && *path != NULL ? fopen(partial, "wb") : NULL;
    if (partial == NULL || *path == NULL)
        status = nomem(prefix, error);
    else if (*file == NULL)
        status = failed(*path, error);
    free(partial);
    return status;
}

static zipccl_status reserve(struct chakra_writer *w, size_t n)
{
    unsigned char *more;

    if (n <= w->room)
        return ZIPCCL_OK;
    more = realloc(w->bytes, 2 * n);
    if (more == NULL)
        return nomem(w->path, w->error);
    w->bytes = more;
    w->room = 2 * n;
    return ZIPCCL_OK;
}

/* 'bytes' with their length before them. */
static zipccl_status put_message(struct chakra_writer *w, size_t n)
{
    unsigned char length[10];
    size_t used = 0, rest = n;

    for (; rest >= 0x80; rest >>= 7)
        length[used++] = (unsigned char)(rest | 0x80);
    length[used++] = (unsigned char)rest;
    if (fwrite(length, 1, used, w->file) != used || fwrite(w->bytes, 1, n, w->file) != n)
        return failed(w->path, w->error);
    return ZIPCCL_OK;
}

static zipccl_status put_metadata(struct chakra_writer *w, const char *generator)
{
    Zipccl__ChakraMetadata m = ZIPCCL__CHAKRA_METADATA__INIT;
    Zipccl__ChakraAttribute a = ZIPCCL__CHAKRA_ATTRIBUTE__INIT, *list[] = {&a};
    size_t n;

    m.version = (char *)"0.0.4";
    m.n_attr = 1;
    m.attr = list;
    a.name = (char *)"generator";
    a.value_case = ZIPCCL__CHAKRA_ATTRIBUTE__VALUE_STRING_VAL;
    a.string_val = (char *)generator;
    n = zipccl__chakra_metadata__get_packed_size(&m);
    ZIPCCL_TRY(reserve(w, n));
    zipccl__chakra_metadata__pack(&m, w->bytes);
    return put_message(w, n);
}

zipccl_status chakra_writer_open(const char *prefix, uint32_t rank, const char *generator,
                                 struct chakra_writer **out, struct zipccl_error *error)
{
    struct chakra_writer *w = calloc(1, sizeof *w);
    zipccl_status status;

    if (w == NULL)
        return nomem(prefix, error);
    w->error = error;
    status = open_partial(prefix, rank, &w->path, &w->file, error);
    if (status == ZIPCCL_OK)
        status = put_metadata(w, generator);
    if (status != ZIPCCL_OK)
        return chakra_writer_close(w, status);
    *out = w;
    return ZIPCCL_OK;
}

/* Attributes of one node while they are gathered. */
struct attributes {
    Zipccl__ChakraAttribute values[MAX_ATTRIBUTES], *list[MAX_ATTRIBUTES];
    size_t n;
};

static Zipccl__ChakraAttribute *add(struct attributes *a, const char *name)
{
    Zipccl__ChakraAttribute *value = a->list[a->n] = &a->values[a->n];

    zipccl__chakra_attribute__init(value);
    value->name = (char *)name;
    a->n++;
    return value;
}

static void add_flag(struct attributes *a, const char *name, bool value)
{
    Zipccl__ChakraAttribute *to = add(a, name);

    to->value_case = ZIPCCL__CHAKRA_ATTRIBUTE__VALUE_BOOL_VAL;
    to->bool_val = value;
}

/* Readers want int64 of most, int32 of ends and tags. */
static void add_number(struct attributes *a, const char *name, int64_t value)
{
    Zipccl__ChakraAttribute *to;

    if (value < 0)
        return;
    to = add(a, name);
    to->value_case = ZIPCCL__CHAKRA_ATTRIBUTE__VALUE_INT64_VAL;
    to->int64_val = value;
}

static void add_small(struct attributes *a, const char *name, int64_t value)
{
    Zipccl__ChakraAttribute *to;

    if (value < 0)
        return;
    to = add(a, name);
    to->value_case = ZIPCCL__CHAKRA_ATTRIBUTE__VALUE_INT32_VAL;
    to->int32_val = (int32_t)value;
}

static void add_text(struct attributes *a, const char *name, const char *value)
{
    Zipccl__ChakraAttribute *to;

    if (value == NULL)
        return;
    to = add(a, name);
    to->value_case = ZIPCCL__CHAKRA_ATTRIBUTE__VALUE_STRING_VAL;
    to->string_val = (char *)value;
}

/*
 * ASTRA-sim's roofline asks for both of compute, skips what moves nothing and divides by the bytes.  Of work
 * whose bytes are not known it gets the fewest there are, so that the flops alone say how long it takes.
 */
static void add_work(struct attributes *a, double flops, double nbytes)
{
    Zipccl__ChakraAttribute *to;

    if (flops < 0 && nbytes < 0)
        return;
    add_number(a, "num_ops", flops < 0 ? 0 : flops < 9e18 ? (int64_t)flops : INT64_MAX);
    to = add(a, "tensor_size");
    to->value_case = ZIPCCL__CHAKRA_ATTRIBUTE__VALUE_UINT64_VAL;
    to->uint64_val = nbytes >= 0 ? (uint64_t)nbytes : flops > 0 ? 1 : 0;
}

/* Not more than MAX_ATTRIBUTES. */
static void gather(struct attributes *a, const struct chakra_out *out)
{
    bool ends = out->src >= 0;

    add_flag(a, "is_cpu_op", false);
    add_number(a, "stream", out->stream);
    add_number(a, "duration_ns", out->ns);
    if (out->communication)
        add_flag(a, "communication", true);
    add_work(a, out->flops, out->hbm_bytes);
    add_number(a, "comm_type", out->comm);
    add_number(a, "comm_size", out->nbytes);
    add_small(a, "comm_src", out->src);
    add_small(a, "comm_dst", out->dst);
    if (ends)
        add_small(a, "comm_tag", out->tag);
    add_number(a, "root", out->root);
    add_text(a, "pg_name", out->pg);
    add_text(a, "dtype", out->dtype);
}

zipccl_status chakra_write_node(struct chakra_writer *w, const struct chakra_out *out)
{
    Zipccl__ChakraNode node = ZIPCCL__CHAKRA_NODE__INIT;
    Zipccl__ChakraTensors inputs = ZIPCCL__CHAKRA_TENSORS__INIT;
    char shapes[40], types[48];
    struct attributes a = {.n = 0};
    size_t n;

    node.id = out->id;
    node.name = (char *)out->name;
    node.type = out->type;
    node.data_deps = out->deps;
    node.n_data_deps = out->ndeps;
    if (out->ns > 0) {
        int64_t us = (w->ns + out->ns) / 1000 - w->ns / 1000;

        w->ns += out->ns;
        node.duration_micros = (uint64_t)us;
    }
    gather(&a, out);
    if (out->tensor != NULL) {
        snprintf(shapes, sizeof shapes, "[[%" PRId64 "]]", out->elements);
        snprintf(types, sizeof types, "['%s']", out->tensor);
        inputs.shapes = shapes;
        inputs.types = types;
        node.inputs = &inputs;
    }
    node.attr = a.list;
    node.n_attr = a.n;
    n = zipccl__chakra_node__get_packed_size(&node);
    ZIPCCL_TRY(reserve(w, n));
    zipccl__chakra_node__pack(&node, w->bytes);
    return put_message(w, n);
}

zipccl_status chakra_writer_close(struct chakra_writer *w, zipccl_status status)
{
    if (w->file != NULL && fclose(w->file) != 0 && status == ZIPCCL_OK)
        status = failed(w->path, w->error);
    free(w->path);
    free(w->bytes);
    free(w);
    return status;
}

zipccl_status chakra_write_groups(const char *prefix, const struct zipccl_trace_header *h,
                                  struct zipccl_error *error)
{
    char *path;
    FILE *file;
    zipccl_status status = open_partial(prefix, GROUPS, &path, &file, error);
    uint64_t number = 0;

    if (status != ZIPCCL_OK) {
        free(path);
        return status;
    }
    fputs("{", file);
    for (uint32_t g = 0; g < h->ngroups; g++)
        for (uint32_t p = 0; p < h->groups[g].nparts; p++) {
            const uint32_t *ranks = h->groups[g].ranks + (size_t)p * h->groups[g].size;

            fprintf(file, "%s\n  \"%" PRIu64 "\": [", number > 0 ? "," : "", number + 1);
            for (uint32_t i = 0; i < h->groups[g].size; i++)
                fprintf(file, "%s%" PRIu32, i > 0 ? ", " : "", ranks[i]);
            fputs("]", file);
            number++;
        }
    fputs("\n}\n", file);
    if (ferror(file))
        status = failed(path, error);
    if (fclose(file) != 0 && status == ZIPCCL_OK)
        status = failed(path, error);
    free(path);
    return status;
}

/* Whether a file can come to the name 'path'. */
static zipccl_status check_target(const char *path, struct zipccl_error *error)
{
    struct stat info;

    if (lstat(path, &info) != 0)
        return errno == ENOENT ? ZIPCCL_OK : failed(path, error);
    if (S_ISDIR(info.st_mode))
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: a folder, expected a file or nothing", path);
    return ZIPCCL_OK;
}

zipccl_status chakra_check_targets(const char *prefix, uint32_t nranks, struct zipccl_error *error)
{
    zipccl_status status = ZIPCCL_OK;

    for (uint32_t i = 0; i <= nranks && status == ZIPCCL_OK; i++) {
        char *path = name_of(prefix, i < nranks ? i : GROUPS, false);

        status = path != NULL ? check_target(path, error) : nomem(prefix, error);
        free(path);
    }
    return status;
}

zipccl_status chakra_rename_all(const char *prefix, uint32_t nranks, zipccl_status status,
                                struct zipccl_error *error)
{
    for (uint32_t i = 0; i <= nranks; i++) {
        uint32_t rank = i < nranks ? i : GROUPS;
        char *from = name_of(prefix, rank, true), *to = name_of(prefix, rank, false);

        if (from == NULL || to == NULL)
            status = status == ZIPCCL_OK ? nomem(prefix, error) : status;
        else if (status == ZIPCCL_OK && rename(from, to) != 0)
            status = failed(to, error);
        if (status != ZIPCCL_OK && from != NULL)
            unlink(from);
        free(from);
        free(to);
    }
    return status;
}
