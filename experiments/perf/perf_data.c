/*
 * perf_data.c - the elements that perf moves: random ones, or tensors of a file
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/perf/perf_data.h"

#include "experiments/bench/bench_input.h"
#include "experiments/perf/perf_options.h"
#include "traces/safetensors.h"

#include <stdlib.h>
#include <string.h>

/* Gaussians of fp64, as the codec's generator has none of them. */
static zipccl_status fill_doubles(enum zipccl_bench_input input, double *out, size_t n)
{
    float *x = malloc(n * sizeof *x);

    if (x == NULL)
        return ZIPCCL_ERR_NOMEM;
    zipccl_bench_fill(input, ZIPCCL_FLOAT32, x, n);
    for (size_t i = 0; i < n; i++)
        out[i] = x[i];
    free(x);
    return ZIPCCL_OK;
}

static zipccl_status generate(struct zipccl_perf_pool *pool, enum zipccl_perf_data data, size_t n,
                              struct zipccl_error *error)
{
    enum zipccl_bench_input input =
        data == ZIPCCL_DATA_MIXTURE ? ZIPCCL_BENCH_MIXTURE : ZIPCCL_BENCH_GAUSS;
    zipccl_status status = ZIPCCL_OK;

    pool->n = n > 0 ? n : 1;
    pool->bytes = malloc(pool->n * zipccl_dtype_size(pool->dtype));
    if (pool->bytes == NULL)
        status = ZIPCCL_ERR_NOMEM;
    else if (pool->dtype == ZIPCCL_FLOAT64)
        status = fill_doubles(input, (double *)(void *)pool->bytes, pool->n);
    else if (zipccl_dtype_compressible(pool->dtype))
        zipccl_bench_fill(input, pool->dtype, pool->bytes, pool->n);
    else
        zipccl_bench_fill(ZIPCCL_BENCH_BITS, pool->dtype, pool->bytes, pool->n);
    return status == ZIPCCL_OK ? status
                               : zipccl_fail(error, status, "%zu elements: out of memory", pool->n);
}

static zipccl_status load_tensor(struct zipccl_perf_pool *pool, const char *path, const char *name,
                                 struct zipccl_error *error)
{
    const struct zipccl_safetensors *file;
    const struct zipccl_tensor *tensor;
    zipccl_status status = ZIPCCL_OK;

    ZIPCCL_TRY(zipccl_safetensors_open(path, &file, error));
    tensor = zipccl_safetensors_find(file, name);
    if (tensor == NULL)
        status =
            zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: no tensor is named \"%s\"; it has %zu%s%s",
                        path, name, file->ntensors, file->ntensors > 0 ? ", the first is " : "",
                        file->ntensors > 0 ? file->tensors[0].name : "");
    else if (!tensor->known || tensor->dtype != pool->dtype)
        status =
            zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: tensor \"%s\" is %s, expected %s as -d says",
                        path, name, tensor->dtype_name, zipccl_dtype_name(pool->dtype));
    else if (tensor->n == 0)
        status = zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: tensor \"%s\" is empty", path, name);
    else if ((pool->bytes = malloc((size_t)tensor->nbytes)) == NULL)
        status = zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
    if (status == ZIPCCL_OK) {
        memcpy(pool->bytes, tensor->data, (size_t)tensor->nbytes);
        pool->n = (size_t)tensor->n;
    }
    zipccl_safetensors_close(file);
    return status;
}

zipccl_status zipccl_perf_pool_open(struct zipccl_perf_pool *pool,
                                    const struct zipccl_perf_options *options,
                                    enum zipccl_dtype dtype, size_t most,
                                    struct zipccl_error *error)
{
    void *elements = NULL;
    uint64_t n = 0;

    *pool = (struct zipccl_perf_pool){.dtype = dtype};
    if (options->data != ZIPCCL_DATA_FILE)
        return generate(pool, options->data, most, error);
    if (options->tensor[0] != '\0')
        return load_tensor(pool, options->input_path, options->tensor, error);
    ZIPCCL_TRY(zipccl_bench_load(options->input_path, dtype, &elements, &n, error));
    pool->bytes = elements;
    pool->n = (size_t)n;
    return ZIPCCL_OK;
}

void zipccl_perf_pool_close(struct zipccl_perf_pool *pool)
{
    free(pool->bytes);
    *pool = (struct zipccl_perf_pool){.bytes = NULL};
}

/* Where a rank's elements begin; any spread will do, it is the same in every process. */
static size_t start_of(uint32_t rank, uint32_t call, size_t n)
{
    uint64_t x = (uint64_t)rank << 32 | call;

    x = (x ^ x >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return (size_t)((x ^ x >> 32) % n);
}

void zipccl_perf_pool_copy(const struct zipccl_perf_pool *pool, uint32_t rank, uint32_t call,
                           size_t first, size_t n, void *out)
{
    size_t size = zipccl_dtype_size(pool->dtype);
    size_t at = (start_of(rank, call, pool->n) + first % pool->n) % pool->n;
    unsigned char *to = out;

    while (n > 0) {
        size_t len = pool->n - at < n ? pool->n - at : n;

        memcpy(to, pool->bytes + at * size, len * size);
        to += len * size;
        n -= len;
        at = 0;
    }
}
