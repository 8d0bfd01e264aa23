/*
 * stat.c - measures one tensor after the other
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/stat.h"

#include "core/codec/directory.h"
#include "models/exponent_code.h"
#include "models/exponent_size.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(ZIPCCL_PROGRAM_CONSTANT < ZIPCCL_MODE_ZEROS, "a mode for each program");

/* Add a superblock to what 'stat' tells of modes. */
static void add_mode(struct zipccl_tensor_stat *stat, const struct zipccl_superblock_mode *mode,
                     uint64_t first)
{
    double size = (double)stat->raw_bytes / (double)stat->n;
    double ratio = size * (double)mode->n / (double)mode->nbytes;
    stat->modes[mode->program + (mode->zeros ? ZIPCCL_MODE_ZEROS : 0)]++;
    if (!stat->worst.tensor || ratio < stat->worst.ratio)
        stat->worst = (struct zipccl_worst_block){stat->name, first, ratio};
}

/* Which modes the superblocks of a message took; a RAW message is so many raw ones. */
static zipccl_status read_modes(const void *wire, size_t nbytes, struct zipccl_tensor_stat *stat)
{
    struct zipccl_directory directory;
    struct zipccl_superblock_mode mode;
    ZIPCCL_TRY(zipccl_directory_open(wire, nbytes, &directory));
    for (size_t s = 0; s < directory.nsuperblocks; s++) {
        ZIPCCL_TRY(zipccl_directory_read(&directory, s, &mode));
        add_mode(stat, &mode, (uint64_t)s * ZIPCCL_SUPERBLOCK);
    }
    if (directory.nsuperblocks > 0)
        return ZIPCCL_OK;
    for (uint64_t first = 0; first < stat->n; first += ZIPCCL_SUPERBLOCK) {
        size_t n =
            stat->n - first < ZIPCCL_SUPERBLOCK ? (size_t)(stat->n - first) : ZIPCCL_SUPERBLOCK;
        mode = (struct zipccl_superblock_mode){
            .program = ZIPCCL_PROGRAM_RAW, .n = n, .nbytes = n * (stat->raw_bytes / stat->n)};
        add_mode(stat, &mode, first);
    }
    return ZIPCCL_OK;
}

/* Encode, decode and compare; fills the size of the message and its modes. */
static zipccl_status round_trip(enum zipccl_dtype dtype, const void *data,
                                struct zipccl_tensor_stat *stat)
{
    enum zipccl_isa isa = zipccl_isa_best();
    size_t n = (size_t)stat->n, nbytes = (size_t)stat->raw_bytes, nwire = 0;
    size_t bound = zipccl_bound(dtype, n);
    zipccl_status status = ZIPCCL_ERR_NOMEM;
    void *wire = bound ? malloc(bound) : NULL, *back = malloc(nbytes ? nbytes : 1);
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    if (wire && back && scratch) {
        status = zipccl_encode(isa, dtype, data, n, wire, bound, scratch, &nwire);
        if (status == ZIPCCL_OK)
            status = zipccl_decode(isa, dtype, wire, nwire, back, n, scratch);
        if (status != ZIPCCL_OK || (nbytes && memcmp(back, data, nbytes) != 0) ||
            read_modes(wire, nwire, stat) != ZIPCCL_OK)
            status = ZIPCCL_ERR_INTERNAL;
        stat->wire_bytes = nwire;
    }
    free(wire);
    free(back);
    free(scratch);
    return status;
}

/* Bytes of a message by exponent probabilities; types with no coded form are raw. */
static zipccl_status predict(const double *p, uint64_t n, double *nbytes)
{
    struct zipccl_size_model *model = malloc(sizeof *model);
    if (!model)
        return ZIPCCL_ERR_NOMEM;
    zipccl_status status = zipccl_size_expect(p, n, model);
    if (status == ZIPCCL_OK)
        *nbytes = model->mean;
    free(model);
    return status;
}

/* Shorter tensors say too little of a law, and files of many would take minutes. */
#define LEAST_PREDICTED 256u

/* What the law of a bf16 tensor says. */
static zipccl_status fit(const void *data, struct zipccl_tensor_stat *stat)
{
    struct zipccl_exponent_counts counts;
    double p[ZIPCCL_NUM_EXPONENTS];
    stat->predicted_bytes = stat->shares_bytes = (double)zipccl_bound(ZIPCCL_BFLOAT16, stat->n);
    if (stat->n == 0 || stat->n > ZIPCCL_MAX_CODED_N)
        return ZIPCCL_OK;
    zipccl_exponent_count(data, stat->n, &counts);
    zipccl_exponent_shares(&counts, p);
    ZIPCCL_TRY(predict(p, stat->n, &stat->shares_bytes));
    stat->predicted_bytes = stat->shares_bytes;

    zipccl_status status = zipccl_exponent_fit_best(&counts, &stat->fit);
    if (status == ZIPCCL_ERR_UNSUPPORTED)
        return ZIPCCL_OK;
    ZIPCCL_TRY(status);
    stat->fitted = true;
    stat->sigma = zipccl_exponent_sigma(zipccl_exponent_mean(&counts), 0);
    ZIPCCL_TRY(zipccl_exponent_pmf(&stat->fit.model, p));
    return predict(p, stat->n, &stat->predicted_bytes);
}

static zipccl_status measure(enum zipccl_dtype dtype, const void *data,
                             struct zipccl_tensor_stat *stat)
{
    struct zipccl_exponent_histogram histogram;
    ZIPCCL_TRY(round_trip(dtype, data, stat));
    if (!zipccl_exponent_histogram_of(dtype, data, stat->n, &histogram))
        return ZIPCCL_ERR_INTERNAL;
    stat->entropy = zipccl_histogram_entropy(&histogram);
    stat->bound_bytes = zipccl_histogram_bound_bytes(&histogram);
    stat->huffman_bytes = zipccl_histogram_huffman_bytes(&histogram);
    stat->zero = stat->n ? (double)histogram.zeros / (double)stat->n : 0;
    stat->predicted = dtype == ZIPCCL_BFLOAT16 && (stat->n == 0 || stat->n >= LEAST_PREDICTED);
    return stat->predicted ? fit(data, stat) : ZIPCCL_OK;
}

static char *copy_of(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    if (copy)
        memcpy(copy, text, size);
    return copy;
}

zipccl_status zipccl_stats_add(struct zipccl_stats *stats, const char *name, const char *dtype_name,
                               bool known, enum zipccl_dtype dtype, const void *data, uint64_t n,
                               uint64_t nbytes, struct zipccl_error *error)
{
    double raw = (double)nbytes;
    struct zipccl_tensor_stat stat = {.n = n,
                                      .raw_bytes = nbytes,
                                      .wire_bytes = nbytes,
                                      .bound_bytes = raw,
                                      .huffman_bytes = raw,
                                      .predicted = true,
                                      .predicted_bytes = raw,
                                      .shares_bytes = raw};
    stat.covered = known && zipccl_dtype_compressible(dtype);
    snprintf(stat.dtype_name, sizeof stat.dtype_name, "%s", dtype_name);
    struct zipccl_tensor_stat *grown =
        realloc(stats->tensor, (stats->ntensors + 1) * sizeof *stats->tensor);
    if (!grown)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", name);
    stats->tensor = grown;
    stat.name = copy_of(name);
    if (!stat.name)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", name);
    zipccl_status status = stat.covered ? measure(dtype, data, &stat) : ZIPCCL_OK;
    if (status != ZIPCCL_OK) {
        free(stat.name);
        return zipccl_fail(error, status, "%s: %s", name, zipccl_status_string(status));
    }
    stats->tensor[stats->ntensors++] = stat;
    return ZIPCCL_OK;
}

void zipccl_stats_destroy(struct zipccl_stats *stats)
{
    for (size_t i = 0; i < stats->ntensors; i++)
        free(stats->tensor[i].name);
    free(stats->tensor);
    *stats = (struct zipccl_stats){0};
}

struct zipccl_tensor_stat zipccl_stats_total(const struct zipccl_stats *stats)
{
    struct zipccl_tensor_stat total = {.predicted = true};
    for (size_t i = 0; i < stats->ntensors; i++) {
        const struct zipccl_tensor_stat *stat = &stats->tensor[i];
        total.n += stat->n;
        total.raw_bytes += stat->raw_bytes;
        total.wire_bytes += stat->wire_bytes;
        total.bound_bytes += stat->bound_bytes;
        total.huffman_bytes += stat->huffman_bytes;
        total.predicted &= stat->predicted;
        total.predicted_bytes += stat->predicted_bytes;
        total.shares_bytes += stat->shares_bytes;
        total.covered |= stat->covered;
        for (int k = 0; k < ZIPCCL_NUM_MODES; k++)
            total.modes[k] += stat->modes[k];
        if (stat->worst.tensor && (!total.worst.tensor || stat->worst.ratio < total.worst.ratio))
            total.worst = stat->worst;
    }
    return total;
}

static double ratio_of(const struct zipccl_tensor_stat *stat, double nbytes)
{
    return stat->raw_bytes ? (double)stat->raw_bytes / nbytes : 1;
}

double zipccl_stat_ratio(const struct zipccl_tensor_stat *stat)
{
    return ratio_of(stat, (double)stat->wire_bytes);
}

double zipccl_stat_bound(const struct zipccl_tensor_stat *stat)
{
    return ratio_of(stat, stat->bound_bytes);
}

double zipccl_stat_huffman(const struct zipccl_tensor_stat *stat)
{
    return ratio_of(stat, stat->huffman_bytes);
}

double zipccl_stat_predicted(const struct zipccl_tensor_stat *stat)
{
    return ratio_of(stat, stat->predicted_bytes);
}

void zipccl_mode_name(int i, char text[24])
{
    bool zeros = i >= ZIPCCL_MODE_ZEROS;
    int program = i % ZIPCCL_MODE_ZEROS;
    snprintf(text, 24, "%s%s", zeros ? "zeros, " : "", zipccl_program_name((uint8_t)program));
}
