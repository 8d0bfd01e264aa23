/*
 * safetensors.c - reads .safetensors files and trusts nothing in them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/safetensors.h"

#include "traces/arena.h"
#include "traces/json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The limit of the reference implementation (safetensors, MAX_HEADER_SIZE). */
#define MAX_HEADER 100000000u
#define MAX_NDIM   64

/* What zipccl_safetensors_open() returns is the first member. */
struct owner {
    struct zipccl_safetensors file;
    struct zipccl_arena arena;
    struct zipccl_tensor **by_name; /* [ntensors] sorted */
    void *map;
    size_t map_nbytes;
    bool loose; /* unknown types, holes and trailing bytes are no error */
};

static const struct {
    const char *name;
    uint32_t nbytes;
    bool known;
    enum zipccl_dtype dtype;
} dtypes[] = {
    {"BF16", 2, true, ZIPCCL_BFLOAT16},
    {"F16", 2, true, ZIPCCL_FLOAT16},
    {"F32", 4, true, ZIPCCL_FLOAT32},
    {"F64", 8, true, ZIPCCL_FLOAT64},
    {"I8", 1, true, ZIPCCL_INT8},
    {"U8", 1, true, ZIPCCL_UINT8},
    {"I32", 4, true, ZIPCCL_INT32},
    {"U32", 4, true, ZIPCCL_UINT32},
    {"I64", 8, true, ZIPCCL_INT64},
    {"U64", 8, true, ZIPCCL_UINT64},
    {"F8_E4M3", 1, true, ZIPCCL_FLOAT8_E4M3},
    {"F8_E5M2", 1, true, ZIPCCL_FLOAT8_E5M2},
    {"I16", 2, false, ZIPCCL_UINT8},
    {"U16", 2, false, ZIPCCL_UINT8},
    {"BOOL", 1, false, ZIPCCL_UINT8},
    {"F8_E8M0", 1, false, ZIPCCL_UINT8},
    {"C64", 8, false, ZIPCCL_UINT8},
};

#define NUM_DTYPES (sizeof dtypes / sizeof dtypes[0])

static const struct zipccl_json_key tensor_keys[] = {
    {"dtype", 1, 1}, {"shape", 1, 1}, {"data_offsets", 1, 1}};

/* A name that is not in the table, cut, with '?' for all but printable ASCII. */
static void keep_dtype(const char *name, struct zipccl_tensor *t)
{
    size_t n = 0;

    for (; name[n] != '\0' && n + 1 < sizeof t->dtype_name; n++)
        t->dtype_name[n] = name[n] > 0x20 && name[n] < 0x7f ? name[n] : '?';
    t->dtype_name[n] = '\0';
    t->known = false;
    t->dtype = ZIPCCL_UINT8;
}

/* '*nbytes' of an element; 0 for a type that is not in the table. */
static zipccl_status parse_dtype(const struct zipccl_place *at, const char *tensor,
                                 const struct zipccl_json *node, bool loose,
                                 struct zipccl_tensor *t, uint32_t *nbytes)
{
    char found[ZIPCCL_QUOTE_SIZE];

    for (size_t i = 0; i < NUM_DTYPES && node->type == ZIPCCL_JSON_STRING; i++)
        if (strcmp(node->value.string, dtypes[i].name) == 0) {
            t->known = dtypes[i].known;
            t->dtype = dtypes[i].dtype;
            strcpy(t->dtype_name, dtypes[i].name);
            *nbytes = dtypes[i].nbytes;
            return ZIPCCL_OK;
        }
    if (loose && node->type == ZIPCCL_JSON_STRING) {
        keep_dtype(node->value.string, t);
        *nbytes = 0;
        return ZIPCCL_OK;
    }
    return zipccl_place_fail(at,
                             "dtype %s of tensor %s, expected BF16, F16, F32, F64, F8_E4M3, "
                             "F8_E5M2, I8, U8, I16, U16, I32, U32, I64, U64 or BOOL",
                             zipccl_json_describe(found, node), tensor);
}

/* Sets ndim, shape and n; the product must not overflow. */
static zipccl_status parse_shape(const struct zipccl_place *at, const char *tensor,
                                 const struct zipccl_json *node, struct zipccl_arena *arena,
                                 struct zipccl_tensor *t)
{
    uint32_t i = 0;
    bool empty = false;

    ZIPCCL_TRY(zipccl_json_array(at, node, "shape", 0));
    if (node->n > MAX_NDIM)
        return zipccl_place_fail(at, "%" PRIu32 " dimensions of tensor %s, expected at most %d",
                                 node->n, tensor, MAX_NDIM);
    t->ndim = node->n;
    t->n = 1;
    t->shape = zipccl_arena_alloc(arena, node->n, sizeof *t->shape);
    if (t->shape == NULL)
        return zipccl_place_nomem(at);
    for (const struct zipccl_json *dim = node->child; dim != NULL; dim = dim->next, i++) {
        ZIPCCL_TRY(zipccl_json_uint(at, dim, "shape", 0, ZIPCCL_JSON_MAX_INTEGER, &t->shape[i]));
        empty = empty || t->shape[i] == 0;
    }
    for (i = 0; i < t->ndim && !empty; i++) {
        if (t->n > ZIPCCL_JSON_MAX_INTEGER / t->shape[i])
            return zipccl_place_fail(at,
                                     "shape of tensor %s with more than 2^53 elements, "
                                     "expected fewer",
                                     tensor);
        t->n *= t->shape[i];
    }
    if (empty)
        t->n = 0;
    return ZIPCCL_OK;
}

static zipccl_status parse_offsets(const struct zipccl_place *at, const char *tensor,
                                   const struct zipccl_json *node, uint32_t element,
                                   const struct owner *owner, struct zipccl_tensor *t)
{
    uint64_t begin, end;

    ZIPCCL_TRY(zipccl_json_array(at, node, "data_offsets", 2));
    if (node->n != 2)
        return zipccl_place_fail(at, "%" PRIu32 " data_offsets of tensor %s, expected 2", node->n,
                                 tensor);
    ZIPCCL_TRY(
        zipccl_json_uint(at, node->child, "data_offsets", 0, ZIPCCL_JSON_MAX_INTEGER, &begin));
    ZIPCCL_TRY(
        zipccl_json_uint(at, node->child->next, "data_offsets", 0, ZIPCCL_JSON_MAX_INTEGER, &end));
    if (end < begin || end > owner->file.data_nbytes)
        return zipccl_place_fail(at,
                                 "tensor %s at bytes %" PRIu64 " to %" PRIu64
                                 ", expected a range within the %zu bytes of data",
                                 tensor, begin, end, owner->file.data_nbytes);
    if (element > 0 && (t->n > ZIPCCL_JSON_MAX_INTEGER / element || end - begin != t->n * element))
        return zipccl_place_fail(at,
                                 "%" PRIu64 " bytes for tensor %s, expected %" PRIu64
                                 " elements of %" PRIu32 " bytes by its shape",
                                 end - begin, tensor, t->n, element);
    t->nbytes = end - begin;
    t->offset = owner->map_nbytes - owner->file.data_nbytes + begin;
    t->data = (const unsigned char *)owner->map + t->offset;
    return ZIPCCL_OK;
}

static zipccl_status parse_tensor(const struct zipccl_place *at, const struct zipccl_json *node,
                                  struct owner *owner, struct zipccl_tensor *t)
{
    const struct zipccl_json *values[3];
    char quoted[ZIPCCL_QUOTE_SIZE], what[ZIPCCL_QUOTE_SIZE + 8] = "tensor ";
    uint32_t element = 1;

    strcat(what, zipccl_quote(quoted, node->key));
    if (node->type != ZIPCCL_JSON_OBJECT)
        return zipccl_place_fail(at, "%s is no object, expected dtype, shape, data_offsets", what);
    ZIPCCL_TRY(zipccl_json_keys(at, node, what, 0, tensor_keys, 3, values));
    t->name = zipccl_arena_string(&owner->arena, node->key, strlen(node->key));
    if (t->name == NULL)
        return zipccl_place_nomem(at);
    ZIPCCL_TRY(parse_dtype(at, quoted, values[0], owner->loose, t, &element));
    ZIPCCL_TRY(parse_shape(at, quoted, values[1], &owner->arena, t));
    return parse_offsets(at, quoted, values[2], element, owner, t);
}

/* Of the metadata one key is kept; a text that a terminal would obey is left out. */
static zipccl_status read_metadata(const struct zipccl_place *at, const struct zipccl_json *node,
                                   struct owner *owner)
{
    if (node->type != ZIPCCL_JSON_OBJECT)
        return zipccl_place_fail(at, "__metadata__ that is no object, expected one");
    for (node = node->child; node != NULL; node = node->next) {
        if (node->type != ZIPCCL_JSON_STRING)
            return zipccl_place_fail(at, "a value in __metadata__ that is no string, expected one");
        if (strcmp(node->key, "origin") != 0 || node->value.string[0] == '\0' ||
            !zipccl_text_printable(node->value.string))
            continue;
        owner->file.origin =
            zipccl_arena_string(&owner->arena, node->value.string, strlen(node->value.string));
        if (owner->file.origin == NULL)
            return zipccl_place_nomem(at);
    }
    return ZIPCCL_OK;
}

static int compare_offsets(const void *a, const void *b)
{
    const struct zipccl_tensor *x = a, *y = b;

    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    if (x->nbytes != y->nbytes)
        return x->nbytes < y->nbytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(struct zipccl_tensor *const *)a)->name,
                  (*(struct zipccl_tensor *const *)b)->name);
}

/* No overlaps, no name twice; no holes either, unless loose. */
static zipccl_status check_layout(const struct zipccl_place *at, struct owner *owner)
{
    struct zipccl_safetensors *f = &owner->file;
    uint64_t next = owner->map_nbytes - f->data_nbytes;
    char quoted[ZIPCCL_QUOTE_SIZE];

    qsort(f->tensors, f->ntensors, sizeof *f->tensors, compare_offsets);
    owner->by_name = zipccl_arena_alloc(&owner->arena, f->ntensors, sizeof *owner->by_name);
    if (owner->by_name == NULL)
        return zipccl_place_nomem(at);
    for (size_t i = 0; i < f->ntensors; i++)
        owner->by_name[i] = &f->tensors[i];
    qsort(owner->by_name, f->ntensors, sizeof(struct zipccl_tensor *), compare_names);
    for (size_t i = 1; i < f->ntensors; i++)
        if (strcmp(owner->by_name[i - 1]->name, owner->by_name[i]->name) == 0)
            return zipccl_place_fail(at, "tensor %s twice, expected names to differ",
                                     zipccl_quote(quoted, owner->by_name[i]->name));
    for (size_t i = 0; i < f->ntensors; i++) {
        const struct zipccl_tensor *t = &f->tensors[i];

        zipccl_quote(quoted, t->name);
        if (t->offset < next)
            return zipccl_place_fail(
                at, "tensor %s overlaps %" PRIu64 " bytes of the one before, expected none", quoted,
                next - t->offset);
        if (t->offset > next && !owner->loose)
            return zipccl_place_fail(at,
                                     "a hole of %" PRIu64 " bytes before tensor %s, expected none",
                                     t->offset - next, quoted);
        next = t->offset + t->nbytes;
    }
    if (next != owner->map_nbytes && !owner->loose)
        return zipccl_place_fail(at, "%" PRIu64 " bytes after the last tensor, expected none",
                                 owner->map_nbytes - next);
    return ZIPCCL_OK;
}

static zipccl_status parse_header(const struct zipccl_place *at, const struct zipccl_json *json,
                                  struct owner *owner)
{
    struct zipccl_safetensors *f = &owner->file;
    bool metadata = false;

    f->tensors = zipccl_arena_alloc(&owner->arena, json->n, sizeof *f->tensors);
    if (f->tensors == NULL)
        return zipccl_place_nomem(at);
    for (const struct zipccl_json *node = json->child; node != NULL; node = node->next) {
        if (strcmp(node->key, "__metadata__") != 0) {
            ZIPCCL_TRY(parse_tensor(at, node, owner, &f->tensors[f->ntensors]));
            f->ntensors++;
            continue;
        }
        if (metadata)
            return zipccl_place_fail(at, "__metadata__ twice, expected once");
        metadata = true;
        ZIPCCL_TRY(read_metadata(at, node, owner));
    }
    return check_layout(at, owner);
}

static zipccl_status read_header(const struct zipccl_place *at, struct owner *owner)
{
    const unsigned char *bytes = owner->map;
    struct zipccl_arena arena = {0};
    struct zipccl_json *json;
    zipccl_status status;
    uint64_t nbytes = 0;

    for (int i = 7; i >= 0; i--)
        nbytes = nbytes << 8 | bytes[i];
    if (nbytes > owner->map_nbytes - 8)
        return zipccl_place_fail(at,
                                 "a header of %" PRIu64 " bytes in a file of %zu, expected it "
                                 "to fit: the file is cut or no .safetensors",
                                 nbytes, owner->map_nbytes);
    if (nbytes > MAX_HEADER)
        return zipccl_place_fail(at, "a header of %" PRIu64 " bytes, expected at most %u", nbytes,
                                 MAX_HEADER);
    if (nbytes < 2 || bytes[8] != '{')
        return zipccl_place_fail(at, "a header that does not start with '{', expected JSON");
    owner->file.data_nbytes = owner->map_nbytes - 8 - (size_t)nbytes;
    status = zipccl_json_parse(at, &arena, (const char *)bytes + 8, (size_t)nbytes, &json);
    if (status == ZIPCCL_OK)
        status = parse_header(at, json, owner);
    zipccl_arena_free(&arena);
    return status;
}

static zipccl_status map_file(const char *path, struct owner *owner, struct zipccl_error *error)
{
    struct zipccl_place at = {path, 0, error};
    zipccl_status status = ZIPCCL_OK;
    struct stat info;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s", path, strerror(errno));
    if (fstat(fd, &info) != 0)
        status = zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(info.st_mode))
        status = zipccl_place_fail(&at, "no regular file, expected a .safetensors file");
    else if (info.st_size < 8)
        status = zipccl_place_fail(&at, "a file of %" PRIdMAX " bytes, expected at least 8",
                                   (intmax_t)info.st_size);
    if (status == ZIPCCL_OK) {
        owner->map_nbytes = (size_t)info.st_size;
        owner->map = mmap(NULL, owner->map_nbytes, PROT_READ, MAP_PRIVATE, fd, 0);
        if (owner->map == MAP_FAILED) {
            owner->map = NULL;
            status = zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s", path, strerror(errno));
        }
    }
    close(fd);
    return status;
}

static zipccl_status open_file(const char *path, bool loose, const struct zipccl_safetensors **out,
                               struct zipccl_error *error)
{
    struct zipccl_place at = {path, 0, error};
    zipccl_status status;
    struct owner *owner;

    if (path == NULL || out == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "zipccl_safetensors_open: NULL argument");
    owner = calloc(1, sizeof *owner);
    if (owner == NULL)
        return zipccl_place_nomem(&at);
    owner->loose = loose;
    status = map_file(path, owner, error);
    if (status == ZIPCCL_OK)
        status = read_header(&at, owner);
    if (status != ZIPCCL_OK) {
        zipccl_safetensors_close(&owner->file);
        return status;
    }
    *out = &owner->file;
    return ZIPCCL_OK;
}

zipccl_status zipccl_safetensors_open(const char *path, const struct zipccl_safetensors **out,
                                      struct zipccl_error *error)
{
    return open_file(path, false, out, error);
}

zipccl_status zipccl_safetensors_open_loose(const char *path, const struct zipccl_safetensors **out,
                                            struct zipccl_error *error)
{
    return open_file(path, true, out, error);
}

void zipccl_safetensors_close(const struct zipccl_safetensors *file)
{
    struct owner *owner = (struct owner *)file;

    if (owner == NULL)
        return;
    if (owner->map != NULL)
        munmap(owner->map, owner->map_nbytes);
    zipccl_arena_free(&owner->arena);
    free(owner);
}

const struct zipccl_tensor *zipccl_safetensors_find(const struct zipccl_safetensors *file,
                                                    const char *name)
{
    const struct owner *owner = (const struct owner *)file;
    size_t low = 0, high = file->ntensors;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, owner->by_name[middle]->name);

        if (order == 0)
            return owner->by_name[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const struct zipccl_tensor *zipccl_safetensors_match(const struct zipccl_safetensors *file,
                                                     const char *sample, size_t *position)
{
    size_t n;

    if (strncmp(sample, "class:", 6) != 0)
        return (*position)++ == 0 ? zipccl_safetensors_find(file, sample) : NULL;
    sample += 6;
    n = strlen(sample);
    while (*position < file->ntensors) {
        const struct zipccl_tensor *t = &file->tensors[(*position)++];

        if (strncmp(t->name, sample, n) == 0 && t->name[n] == '.')
            return t;
    }
    return NULL;
}
