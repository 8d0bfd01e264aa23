/*
 * stat.c - measures one tensor after the other
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/stat.h"

#include "models/exponent_size.h"

#include <stdlib.h>
#include <string.h>

/* Encode, decode and compare; the size of the message. */
static zipccl_status round_trip(enum zipccl_dtype dtype, const void *data, size_t n, size_t nbytes,
                                size_t *nwire)
{
    enum zipccl_isa isa = zipccl_isa_best();
    size_t bound = zipccl_bound(dtype, n);
    zipccl_status status = ZIPCCL_ERR_NOMEM;
    void *wire = bound ? malloc(bound) : NULL, *back = malloc(nbytes ? nbytes : 1);
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    if (wire && back && scratch) {
        status = zipccl_encode(isa, dtype, data, n, wire, bound, scratch, nwire);
        if (status == ZIPCCL_OK)
            status = zipccl_decode(isa, dtype, wire, *nwire, back, n, scratch);
        if (status != ZIPCCL_OK || (nbytes && memcmp(back, data, nbytes) != 0))
            status = ZIPCCL_ERR_INTERNAL;
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

static zipccl_status measure(const void *data, struct zipccl_tensor_stat *stat)
{
    struct zipccl_exponent_counts counts;
    double p[ZIPCCL_NUM_EXPONENTS];
    size_t nwire = 0;
    ZIPCCL_TRY(round_trip(ZIPCCL_BFLOAT16, data, stat->n, stat->raw_bytes, &nwire));
    stat->wire_bytes = nwire;
    zipccl_exponent_count(data, stat->n, &counts);
    zipccl_exponent_shares(&counts, p);
    stat->entropy = zipccl_exponent_entropy(p);
    stat->zero = counts.n ? (double)counts.zeros / (double)counts.n : 0;
    stat->predicted_bytes = stat->shares_bytes = (double)zipccl_bound(ZIPCCL_BFLOAT16, stat->n);
    if (stat->n == 0 || stat->n > ZIPCCL_MAX_CODED_N)
        return ZIPCCL_OK;
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
    struct zipccl_tensor_stat stat = {
        .n = n, .raw_bytes = nbytes, .wire_bytes = nbytes, .predicted_bytes = (double)nbytes};
    stat.shares_bytes = stat.predicted_bytes;
    stat.covered = known && dtype == ZIPCCL_BFLOAT16;
    snprintf(stat.dtype_name, sizeof stat.dtype_name, "%s", dtype_name);
    struct zipccl_tensor_stat *grown =
        realloc(stats->tensor, (stats->ntensors + 1) * sizeof *stats->tensor);
    if (!grown)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", name);
    stats->tensor = grown;
    zipccl_status status = stat.covered ? measure(data, &stat) : ZIPCCL_OK;
    if (status != ZIPCCL_OK)
        return zipccl_fail(error, status, "%s: %s", name, zipccl_status_string(status));
    stat.name = copy_of(name);
    if (!stat.name)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", name);
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
    struct zipccl_tensor_stat total = {.name = NULL};
    for (size_t i = 0; i < stats->ntensors; i++) {
        const struct zipccl_tensor_stat *stat = &stats->tensor[i];
        total.n += stat->n;
        total.raw_bytes += stat->raw_bytes;
        total.wire_bytes += stat->wire_bytes;
        total.predicted_bytes += stat->predicted_bytes;
        total.shares_bytes += stat->shares_bytes;
        total.covered |= stat->covered;
    }
    return total;
}

double zipccl_stat_measured(const struct zipccl_tensor_stat *stat)
{
    return stat->raw_bytes ? (double)stat->raw_bytes / (double)stat->wire_bytes : 1;
}

double zipccl_stat_predicted(const struct zipccl_tensor_stat *stat)
{
    return stat->raw_bytes ? (double)stat->raw_bytes / stat->predicted_bytes : 1;
}
