/*
 * vector_set.c - test vectors in memory, and as files with a manifest
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/vector_set.h"

#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *what, const char *name)
{
    fprintf(stderr, "make_vectors: %s: %s\n", what, name);
    exit(1);
}

static uint8_t *copy(const void *bytes, size_t nbytes)
{
    uint8_t *to = malloc(nbytes + 1);
    if (!to)
        fail("out of memory", "");
    if (nbytes > 0)
        memcpy(to, bytes, nbytes);
    return to;
}

static struct vector *add(struct vector_set *set, const char *name, enum verdict verdict,
                          const void *wire, size_t nbytes, const char *about)
{
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->vectors[i].name, name) == 0)
            fail("a name twice", name);
    if (set->count == VECTORS || strlen(name) >= sizeof set->vectors[0].name)
        fail("too many vectors or too long a name", name);
    struct vector *v = &set->vectors[set->count++];
    snprintf(v->name, sizeof v->name, "%s", name);
    v->verdict = verdict;
    v->wire = copy(wire, nbytes);
    v->nbytes = nbytes;
    v->about = about;
    return v;
}

void set_add(struct vector_set *set, const char *name, enum zipccl_dtype dtype, const void *raw,
             size_t n, const void *wire, size_t nbytes, const char *about)
{
    struct vector *v = add(set, name, VERDICT_VALID, wire, nbytes, about);
    v->dtype = dtype;
    v->n = n;
    snprintf(v->elements, sizeof v->elements, "%s", name);
    set->raw[set->count - 1] = copy(raw, n * zipccl_dtype_size(dtype));
}

void set_add_same(struct vector_set *set, const char *name, const char *other, const void *wire,
                  size_t nbytes, const char *about)
{
    const struct vector *source = set_find(set, other);
    struct vector *v = add(set, name, VERDICT_VALID, wire, nbytes, about);
    v->dtype = source->dtype;
    v->n = source->n;
    snprintf(v->elements, sizeof v->elements, "%s", source->elements);
}

void set_add_refused(struct vector_set *set, const char *name, enum verdict verdict,
                     const void *wire, size_t nbytes, const char *about)
{
    add(set, name, verdict, wire, nbytes, about);
}

const struct vector *set_find(const struct vector_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->vectors[i].name, name) == 0)
            return &set->vectors[i];
    fail("no such vector", name);
    return NULL;
}

const uint8_t *set_elements(const struct vector_set *set, const struct vector *vector)
{
    return set->raw[set_find(set, vector->elements) - set->vectors];
}

static void save(const char *directory, const char *name, const char *ending, const void *bytes,
                 size_t nbytes)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.%s", directory, name, ending);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, nbytes, file) != nbytes || fclose(file) != 0)
        fail("cannot write", path);
}

static void print_line(const struct vector_set *set, const struct vector *v, FILE *out)
{
    static const char *const verdicts[] = {"valid", "corrupt", "overflow"};
    char sum[SHA256_DIGEST_STRING_LENGTH];
    fprintf(out, "%s.zccl\t%s\t%s\t", v->name, verdicts[v->verdict],
            SHA256Data(v->wire, v->nbytes, sum));
    if (v->verdict == VERDICT_VALID)
        fprintf(out, "%s\t%zu\t%s.raw\t%s\t%s\n", zipccl_dtype_name(v->dtype), v->n, v->elements,
                SHA256Data(set_elements(set, v), v->n * zipccl_dtype_size(v->dtype), sum),
                v->about);
    else
        fprintf(out, "-\t-\t-\t-\t%s\n", v->about);
}

void set_save(const struct vector_set *set, const char *directory)
{
    char *text = NULL;
    size_t nbytes = 0;
    FILE *manifest = open_memstream(&text, &nbytes);
    if (!manifest)
        fail("out of memory", "");
    fputs("# Test vectors of core/FORMAT.md, written by make_vectors.\n"
          "# message\tverdict\tsha256 of the message\tdtype\telements\tfile of the elements\t"
          "sha256 of the elements\tabout\n",
          manifest);
    for (size_t i = 0; i < set->count; i++) {
        const struct vector *v = &set->vectors[i];
        save(directory, v->name, "zccl", v->wire, v->nbytes);
        if (set->raw[i])
            save(directory, v->name, "raw", set->raw[i], v->n * zipccl_dtype_size(v->dtype));
        print_line(set, v, manifest);
    }
    if (fclose(manifest) != 0)
        fail("out of memory", "");
    save(directory, "MANIFEST", "tsv", text, nbytes);
    free(text);
}

void set_destroy(struct vector_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        free(set->vectors[i].wire);
        free(set->raw[i]);
    }
}
