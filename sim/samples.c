/*
 * samples.c - message sizes from captured tensors through the real codec
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/samples.h"

#include "core/codec.h"
#include "core/reduce.h"
#include "sim/gaussian.h"
#include "traces/safetensors.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MEASURE_N   ((size_t)1 << 20) /* longest message that is really encoded */
#define MAX_SET_N   ((size_t)1 << 23) /* elements kept of a set */
#define MAX_WINDOWS 8

/* Ranks that are added up at once, and in two rounds. */
#define SUM_AT_ONCE 8
#define MAX_SUMMED  (SUM_AT_ONCE * SUM_AT_ONCE)

struct measured {
    size_t n;
    uint32_t nsummed;
    enum zipccl_effort effort;
    size_t mean, longest;
};

struct set {
    enum zipccl_dtype dtype;
    enum zipccl_ratio_source source;
    uint32_t nnames;
    char **names; /* owned */
    void *data;   /* owned; NULL unless measured */
    size_t n;
    size_t *ends; /* [nends] owned: where its tensors end */
    size_t nends;
    size_t nsizes, room;
    struct measured *sizes; /* owned */
};

struct zipccl_samples {
    const struct zipccl_safetensors *file;
    double given_ratio;
    enum zipccl_isa isa;
    size_t nsets;
    struct set *sets;
    void *scratch; /* aligned to 64 */
    zipccl_status status;
    struct zipccl_error error;
};

const char *zipccl_ratio_source_name(enum zipccl_ratio_source source)
{
    static const char *const names[] = {"captured", "class", "model", "given", "none"};

    return source < ZIPCCL_NUM_RATIO_SOURCES ? names[source] : "?";
}

zipccl_status zipccl_samples_open(const char *path, double given_ratio, struct zipccl_samples **out,
                                  struct zipccl_error *error)
{
    struct zipccl_samples *s = calloc(1, sizeof(*s));
    zipccl_status status = ZIPCCL_OK;

    if (s == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    s->given_ratio = given_ratio;
    s->isa = zipccl_isa_best();
    s->scratch = aligned_alloc(64, (zipccl_codec_scratch_bytes() + 63) / 64 * 64);
    if (s->scratch == NULL)
        status = zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    if (status == ZIPCCL_OK && path != NULL)
        status = zipccl_safetensors_open(path, &s->file, error);
    if (status != ZIPCCL_OK) {
        zipccl_samples_close(s);
        return status;
    }
    *out = s;
    return ZIPCCL_OK;
}

static void release_set(struct set *set)
{
    for (uint32_t i = 0; set->names != NULL && i < set->nnames; i++)
        free(set->names[i]);
    free(set->names);
    free(set->data);
    free(set->ends);
    free(set->sizes);
}

void zipccl_samples_close(struct zipccl_samples *samples)
{
    if (samples == NULL)
        return;
    for (size_t i = 0; i < samples->nsets; i++)
        release_set(&samples->sets[i]);
    free(samples->sets);
    free(samples->scratch);
    if (samples->file != NULL)
        zipccl_safetensors_close(samples->file);
    free(samples);
}

/* The set goes on to 'end' with a tensor of its own. */
static zipccl_status add_end(struct set *set, size_t end, struct zipccl_error *error)
{
    size_t *ends = realloc(set->ends, (set->nends + 1) * sizeof(*ends));

    if (ends == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    set->ends = ends;
    set->ends[set->nends++] = set->n = end;
    return ZIPCCL_OK;
}

/* Lay one tensor behind what the set holds. */
static zipccl_status append(struct set *set, const struct zipccl_tensor *tensor,
                            struct zipccl_error *error)
{
    size_t size = zipccl_dtype_size(set->dtype), n = (size_t)tensor->n;
    char *data;

    if (n > MAX_SET_N - set->n)
        n = MAX_SET_N - set->n;
    if (n == 0)
        return ZIPCCL_OK;
    data = realloc(set->data, (set->n + n) * size);
    if (data == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    memcpy(data + set->n * size, tensor->data, n * size);
    set->data = data;
    return add_end(set, set->n + n, error);
}

static zipccl_status load_named(const struct zipccl_samples *s, struct set *set,
                                struct zipccl_error *error)
{
    set->source = ZIPCCL_RATIO_CAPTURED;
    for (uint32_t i = 0; i < set->nnames; i++) {
        const struct zipccl_tensor *t = zipccl_safetensors_find(s->file, set->names[i]);

        if (t == NULL)
            return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                               "sample \"%.100s\" is not in the trace's tensor file",
                               set->names[i]);
        if (!t->known || t->dtype != set->dtype)
            return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                               "sample \"%.100s\" is %s, but the event that names it moves %s",
                               set->names[i], t->dtype_name, zipccl_dtype_name(set->dtype));
        ZIPCCL_TRY(append(set, t, error));
    }
    return ZIPCCL_OK;
}

static zipccl_status load_class(const struct zipccl_samples *s, struct set *set,
                                struct zipccl_error *error)
{
    const struct zipccl_tensor *t;
    size_t position = 0;

    set->source = ZIPCCL_RATIO_CLASS;
    while ((t = zipccl_safetensors_match(s->file, set->names[0], &position)) != NULL)
        if (t->known && t->dtype == set->dtype)
            ZIPCCL_TRY(append(set, t, error));
    if (set->n == 0)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "no %s tensor of the trace's tensor file has a name that starts with "
                           "\"%.100s.\"",
                           zipccl_dtype_name(set->dtype), set->names[0] + strlen("class:"));
    return ZIPCCL_OK;
}

static zipccl_status load_model(struct set *set, struct zipccl_error *error)
{
    set->source = ZIPCCL_RATIO_MODEL;
    set->data = malloc(MEASURE_N * zipccl_dtype_size(set->dtype));
    if (set->data == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    ZIPCCL_TRY(add_end(set, MEASURE_N, error));
    return zipccl_gaussian_fill(set->dtype, set->data, set->n, error);
}

static zipccl_status load_set(const struct zipccl_samples *s, struct set *set,
                              struct zipccl_error *error)
{
    if (!zipccl_dtype_compressible(set->dtype)) {
        set->source = ZIPCCL_RATIO_NONE;
        return ZIPCCL_OK;
    }
    if (s->given_ratio > 0) {
        set->source = ZIPCCL_RATIO_GIVEN;
        return ZIPCCL_OK;
    }
    if (set->nnames == 0)
        return load_model(set, error);
    if (s->file == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "an event names the sample \"%.100s\", but the trace has no tensor file",
                           set->names[0]);
    if (set->nnames == 1 && strncmp(set->names[0], "class:", 6) == 0)
        ZIPCCL_TRY(load_class(s, set, error));
    else
        ZIPCCL_TRY(load_named(s, set, error));
    if (set->n == 0)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "sample \"%.100s\" is empty", set->names[0]);
    return ZIPCCL_OK;
}

static bool same_set(const struct set *set, enum zipccl_dtype dtype, char *const *names,
                     uint32_t nnames)
{
    if (set->dtype != dtype || set->nnames != nnames)
        return false;
    for (uint32_t i = 0; i < nnames; i++)
        if (strcmp(set->names[i], names[i]) != 0)
            return false;
    return true;
}

static zipccl_status copy_names(struct set *set, char *const *names, uint32_t nnames)
{
    set->names = calloc((size_t)nnames + 1, sizeof(*set->names));
    if (set->names == NULL)
        return ZIPCCL_ERR_NOMEM;
    for (set->nnames = 0; set->nnames < nnames; set->nnames++) {
        size_t n = strlen(names[set->nnames]) + 1;

        set->names[set->nnames] = malloc(n);
        if (set->names[set->nnames] == NULL)
            return ZIPCCL_ERR_NOMEM;
        memcpy(set->names[set->nnames], names[set->nnames], n);
    }
    return ZIPCCL_OK;
}

zipccl_status zipccl_samples_bind(struct zipccl_samples *samples, enum zipccl_dtype dtype,
                                  char *const *names, uint32_t nnames, uint32_t *set,
                                  struct zipccl_error *error)
{
    struct set fresh = {.dtype = dtype};
    struct set *sets;
    zipccl_status status;

    for (size_t i = 0; i < samples->nsets; i++)
        if (same_set(&samples->sets[i], dtype, names, nnames)) {
            *set = (uint32_t)i;
            return ZIPCCL_OK;
        }
    sets = realloc(samples->sets, (samples->nsets + 1) * sizeof(*sets));
    if (sets == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    samples->sets = sets;
    status = copy_names(&fresh, names, nnames);
    if (status == ZIPCCL_OK)
        status = load_set(samples, &fresh, error);
    else
        zipccl_fail(error, status, "out of memory");
    if (status != ZIPCCL_OK) {
        release_set(&fresh);
        return status;
    }
    *set = (uint32_t)samples->nsets;
    samples->sets[samples->nsets++] = fresh;
    return ZIPCCL_OK;
}

enum zipccl_ratio_source zipccl_samples_source(const struct zipccl_samples *samples, uint32_t set)
{
    return samples->sets[set].source;
}

/*
 * Copy 'n' elements of the set from 'offset' on, starting over at its end; each tensor rotated by
 * 'turn' / 'nturns' of its length.
 */
static void tile(const struct set *set, size_t offset, size_t n, uint32_t turn, uint32_t nturns,
                 char *out)
{
    size_t size = zipccl_dtype_size(set->dtype), i = 0;

    while (n > 0) {
        while (set->ends[i] <= offset)
            i++;
        size_t first = i > 0 ? set->ends[i - 1] : 0, len = set->ends[i] - first;
        size_t at = (offset - first + len / nturns * turn) % len, part = len - at;

        part = part < set->ends[i] - offset ? part : set->ends[i] - offset;
        part = part < n ? part : n;
        memcpy(out, (const char *)set->data + (first + at) * size, part * size);
        out += part * size;
        n -= part;
        offset += part;
        if (offset == set->n)
            offset = i = 0;
    }
}

bool zipccl_samples_copy(const struct zipccl_samples *samples, uint32_t set, uint32_t turn,
                         uint32_t nturns, size_t offset, size_t n, void *out)
{
    const struct set *s = &samples->sets[set];

    if (s->data == NULL)
        return false;
    tile(s, offset % s->n, n, turn, nturns, out);
    return true;
}

/* Sums of 'n' elements over 'nsummed' ranks, rounded after SUM_AT_ONCE of them as levels do. */
static zipccl_status sum(const struct set *set, size_t offset, size_t n, uint32_t nsummed,
                         char *out)
{
    size_t nbytes = n * zipccl_dtype_size(set->dtype);
    uint32_t nparts = (nsummed + SUM_AT_ONCE - 1) / SUM_AT_ONCE;
    char *buffers = malloc((SUM_AT_ONCE + nparts) * nbytes), *parts;
    const void *sources[SUM_AT_ONCE];
    zipccl_status status = buffers != NULL ? ZIPCCL_OK : ZIPCCL_ERR_NOMEM;

    if (status != ZIPCCL_OK)
        return status;
    parts = buffers + SUM_AT_ONCE * nbytes;
    for (uint32_t p = 0; p < nparts && status == ZIPCCL_OK; p++) {
        uint32_t first = p * SUM_AT_ONCE, m = nsummed - first;

        m = m < SUM_AT_ONCE ? m : SUM_AT_ONCE;
        for (uint32_t k = 0; k < m; k++) {
            tile(set, offset, n, first + k, nsummed, buffers + k * nbytes);
            sources[k] = buffers + k * nbytes;
        }
        status = zipccl_reduce(set->dtype, ZIPCCL_SUM, sources, m, n, parts + p * nbytes);
    }
    for (uint32_t p = 0; p < nparts; p++)
        sources[p] = parts + p * nbytes;
    if (status == ZIPCCL_OK)
        status = zipccl_reduce(set->dtype, ZIPCCL_SUM, sources, nparts, n, out);
    free(buffers);
    return status;
}

/* Encode one window, decode it, compare; its bytes. */
static zipccl_status measure_window(struct zipccl_samples *s, const struct set *set,
                                    const struct measured *what, size_t offset, char *buffers,
                                    size_t *nbytes)
{
    size_t n = what->n;
    uint32_t nsummed = what->nsummed;
    size_t size = zipccl_dtype_size(set->dtype), bound = zipccl_bound(set->dtype, n);
    char *src = buffers, *back = buffers + n * size, *wire = back + n * size;

    if (nsummed > 1 && zipccl_reduce_serves(set->dtype, ZIPCCL_SUM))
        ZIPCCL_TRY(sum(set, offset, n, nsummed, src));
    else
        tile(set, offset, n, 0, 1, src);
    ZIPCCL_TRY(zipccl_encode_effort(s->isa, what->effort, set->dtype, src, n, wire, bound,
                                    s->scratch, nbytes));
    ZIPCCL_TRY(zipccl_decode(s->isa, set->dtype, wire, *nbytes, back, n, s->scratch));
    return memcmp(src, back, n * size) == 0 ? ZIPCCL_OK : ZIPCCL_ERR_CORRUPT;
}

/* Fill in the bytes of out->n elements. */
static zipccl_status measure(struct zipccl_samples *s, const struct set *set, struct measured *out)
{
    size_t n = out->n, windows = set->n / n, size = zipccl_dtype_size(set->dtype), total = 0;
    char *buffers = malloc(2 * n * size + zipccl_bound(set->dtype, n));
    zipccl_status status = buffers != NULL ? ZIPCCL_OK : ZIPCCL_ERR_NOMEM;

    windows = windows < 1 ? 1 : windows > MAX_WINDOWS ? MAX_WINDOWS : windows;
    out->longest = 0;
    for (size_t w = 0; w < windows && status == ZIPCCL_OK; w++) {
        size_t offset = windows > 1 ? (set->n - n) / (windows - 1) * w : 0, nbytes = 0;

        status = measure_window(s, set, out, offset, buffers, &nbytes);
        total += nbytes;
        out->longest = nbytes > out->longest ? nbytes : out->longest;
    }
    out->mean = (total + windows / 2) / windows;
    free(buffers);
    return status;
}

/* Less than, equal to or greater than 0, as 'a' comes before 'b', is of the same, or comes after. */
static int compare(const struct measured *a, const struct measured *b)
{
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    if (a->nsummed != b->nsummed)
        return a->nsummed < b->nsummed ? -1 : 1;
    return (a->effort > b->effort) - (a->effort < b->effort);
}

/* Where 'what' stands or belongs among the set's sizes, which are sorted. */
static size_t place_of_size(const struct set *set, const struct measured *what)
{
    size_t low = 0, high = set->nsizes;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare(&set->sizes[middle], what) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct measured *find_size(const struct set *set, const struct measured *what)
{
    size_t at = place_of_size(set, what);

    return at < set->nsizes && compare(&set->sizes[at], what) == 0 ? &set->sizes[at] : NULL;
}

static const struct measured *add_size(struct zipccl_samples *s, struct set *set,
                                       const struct measured *what)
{
    size_t at = place_of_size(set, what);
    struct measured fresh = *what;
    zipccl_status status;

    if (set->nsizes == set->room) {
        size_t room = set->room ? 2 * set->room : 16;
        struct measured *sizes = realloc(set->sizes, room * sizeof(*sizes));

        if (sizes == NULL) {
            s->status = zipccl_fail(&s->error, ZIPCCL_ERR_NOMEM, "out of memory");
            return NULL;
        }
        set->sizes = sizes;
        set->room = room;
    }
    status = measure(s, set, &fresh);
    if (status != ZIPCCL_OK) {
        s->status = zipccl_fail(
            &s->error, status, "sample \"%.100s\": %zu elements did not survive the codec: %s",
            set->nnames > 0 ? set->names[0] : "(generated)", what->n, zipccl_status_string(status));
        return NULL;
    }
    memmove(&set->sizes[at + 1], &set->sizes[at], (set->nsizes - at) * sizeof(fresh));
    set->nsizes++;
    set->sizes[at] = fresh;
    return &set->sizes[at];
}

void zipccl_samples_bytes(struct zipccl_samples *samples, uint32_t set, enum zipccl_effort effort,
                          size_t n, uint32_t nsummed, size_t *mean, size_t *longest)
{
    struct set *s = &samples->sets[set];
    size_t raw = n * zipccl_dtype_size(s->dtype), m = n < MEASURE_N ? n : MEASURE_N;
    struct measured what = {.n = m, .effort = effort};
    const struct measured *found;

    *mean = *longest = s->source == ZIPCCL_RATIO_NONE ? raw : zipccl_bound(s->dtype, n);
    if (n == 0 || s->source == ZIPCCL_RATIO_NONE || samples->status != ZIPCCL_OK)
        return;
    if (s->source == ZIPCCL_RATIO_GIVEN) {
        *mean = *longest = (size_t)ceil((double)raw / samples->given_ratio);
        return;
    }
    what.nsummed = nsummed < 1 ? 1 : nsummed > MAX_SUMMED ? MAX_SUMMED : nsummed;
    found = find_size(s, &what);
    if (found == NULL)
        found = add_size(samples, s, &what);
    if (found == NULL)
        return;
    *mean = m == n ? found->mean : (size_t)((double)found->mean * (double)n / (double)m);
    *longest = m == n ? found->longest : (size_t)((double)found->longest * (double)n / (double)m);
}

zipccl_status zipccl_samples_check(const struct zipccl_samples *samples, struct zipccl_error *error)
{
    if (samples->status != ZIPCCL_OK)
        zipccl_fail(error, samples->status, "%s", samples->error.text);
    return samples->status;
}
