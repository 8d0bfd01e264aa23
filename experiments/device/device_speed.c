/*
 * device_speed.c - how long the device takes to encode and decode, next to a copy of as many bytes
 *
 * Bytes that are really moved: a copy reads and writes the raw bytes; encoding reads them and
 * writes the message, decoding the other way round; adding reads and writes fp32 sums besides.
 * Elements are Gaussian bf16.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/device/device_check.h"

#include "core/tests/codec_data.h"

#include <stdlib.h>
#include <string.h>

const char *const device_work_names[DEVICE_NUM_WORKS] = {"copy", "encode", "decode", "decode+add"};

enum { MOST_REPEATS = 64, POOL = 1 << 22 /* elements made on the host, repeated */ };

struct timing {
    struct device_buffers b;
    size_t n, nbytes;
    uint32_t nsms;
    struct zipccl_gpu_result result;
    cudaEvent_t from, to;
    cudaStream_t stream;
};

zipccl_status device_fill_gauss(void *d_elements, size_t total, struct zipccl_error *error)
{
    size_t n = total < POOL ? total : POOL;
    uint16_t *x = malloc(n * sizeof *x);
    struct data_random random = {1};

    if (x == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    data_gauss(&random, x, n, 0.02);
    for (size_t at = 0; at < total; at += n) {
        size_t part = total - at < n ? total - at : n;
        cudaError_t rc = cudaMemcpy((char *)d_elements + at * sizeof *x, x, part * sizeof *x,
                                    cudaMemcpyHostToDevice);

        if (rc != cudaSuccess) {
            free(x);
            return zipccl_fail(error, ZIPCCL_ERR_IO, "cudaMemcpy: %s", cudaGetErrorString(rc));
        }
    }
    free(x);
    return ZIPCCL_OK;
}

static cudaError_t launch(struct timing *t, enum device_work work)
{
    struct zipccl_gpu_encode_args encode = {
        .dtype = ZIPCCL_BFLOAT16,
        .nsms = t->nsms,
        .batch = {.nmessages = 1,
                  .first = {t->b.d_elements, t->b.d_wire, t->n, t->b.capacity},
                  .total_n = t->n},
        .d_workspace = t->b.d_workspace,
        .workspace_nbytes = t->b.workspace_nbytes,
        .d_results = t->b.d_results,
    };
    struct zipccl_gpu_decode_args decode = {
        .dtype = ZIPCCL_BFLOAT16,
        .nsms = t->nsms,
        .batch = {.nmessages = 1,
                  .first = {work == DEVICE_DECODE_ADD ? t->b.d_sums : t->b.d_out, t->b.d_wire, t->n,
                            t->result.nbytes},
                  .total_n = t->n},
        .d_workspace = t->b.d_workspace,
        .workspace_nbytes = t->b.workspace_nbytes,
        .d_results = t->b.d_results,
    };

    switch (work) {
    case DEVICE_ENCODE: return zipccl_gpu_encode(&encode, t->stream);
    case DEVICE_DECODE: return zipccl_gpu_decode(&decode, t->stream);
    case DEVICE_DECODE_ADD: return zipccl_gpu_decode_add(&decode, false, t->stream);
    default:
        return cudaMemcpyAsync(t->b.d_out, t->b.d_elements, t->nbytes, cudaMemcpyDeviceToDevice,
                               t->stream);
    }
}

static int by_time(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

void device_row_times(struct device_row *row, float *ms, uint32_t n)
{
    qsort(ms, n, sizeof ms[0], by_time);
    row->median_s = ms[n / 2] / 1e3;
    row->q1_s = ms[n / 4] / 1e3;
    row->q3_s = ms[3 * n / 4] / 1e3;
}

static zipccl_status measure(struct timing *t, enum device_work work, uint32_t repeats,
                             struct device_row *row, struct zipccl_error *error)
{
    float ms[MOST_REPEATS];

    DEVICE_TRY(launch(t, work)); /* warms up, and leaves the message for the decoders */
    DEVICE_TRY(cudaStreamSynchronize(t->stream));
    if (work == DEVICE_ENCODE)
        DEVICE_TRY(
            cudaMemcpy(&t->result, t->b.d_results, sizeof t->result, cudaMemcpyDeviceToHost));
    for (uint32_t i = 0; i < repeats; i++) {
        DEVICE_TRY(cudaEventRecord(t->from, t->stream));
        DEVICE_TRY(launch(t, work));
        DEVICE_TRY(cudaEventRecord(t->to, t->stream));
        DEVICE_TRY(cudaEventSynchronize(t->to));
        DEVICE_TRY(cudaEventElapsedTime(&ms[i], t->from, t->to));
    }
    device_row_times(row, ms, repeats);
    row->work = work;
    row->nbytes = t->nbytes;
    row->nsms = work == DEVICE_COPY ? 0 : t->nsms;
    row->ratio = work == DEVICE_COPY ? 1 : (double)t->nbytes / (double)t->result.nbytes;
    row->moved_bytes = work == DEVICE_COPY ? 2.0 * (double)t->nbytes
                                           : (double)t->nbytes + (double)t->result.nbytes;
    /* Sums are fp32, read and written; elements themselves are not stored. */
    if (work == DEVICE_DECODE_ADD)
        row->moved_bytes = (double)t->result.nbytes + 8.0 * (double)t->n;
    return ZIPCCL_OK;
}

static zipccl_status measure_all(struct timing *t, uint32_t repeats, struct device_row *rows,
                                 struct zipccl_error *error)
{
    DEVICE_TRY(cudaEventCreate(&t->from));
    DEVICE_TRY(cudaEventCreate(&t->to));
    DEVICE_TRY(cudaStreamCreateWithFlags(&t->stream, cudaStreamNonBlocking));
    DEVICE_TRY(cudaMemset(t->b.d_sums, 0, t->n * sizeof(float)));
    DEVICE_TRY(zipccl_gpu_workspace_clear(t->b.d_workspace, t->b.workspace_nbytes, NULL));
    ZIPCCL_TRY(device_fill_gauss(t->b.d_elements, t->n, error));
    DEVICE_TRY(cudaDeviceSynchronize());
    for (int work = 0; work < DEVICE_NUM_WORKS; work++) {
        ZIPCCL_TRY(measure(t, (enum device_work)work, repeats, &rows[work], error));
        rows[work].share = rows[work].moved_bytes / rows[work].median_s /
                           (rows[DEVICE_COPY].moved_bytes / rows[DEVICE_COPY].median_s);
    }
    return ZIPCCL_OK;
}

zipccl_status device_speed(size_t nbytes, uint32_t nsms, uint32_t repeats, struct device_row *rows,
                           struct zipccl_error *error)
{
    struct timing t = {.n = nbytes / 2, .nbytes = nbytes, .nsms = nsms};
    zipccl_status status = device_buffers_open(&t.b, ZIPCCL_BFLOAT16, t.n, nsms, error);

    memset(rows, 0, DEVICE_NUM_WORKS * sizeof *rows);
    if (status == ZIPCCL_OK)
        status = measure_all(&t, repeats < MOST_REPEATS ? repeats : MOST_REPEATS, rows, error);
    if (t.stream != NULL)
        (void)cudaStreamDestroy(t.stream);
    if (t.from != NULL)
        (void)cudaEventDestroy(t.from);
    if (t.to != NULL)
        (void)cudaEventDestroy(t.to);
    device_buffers_close(&t.b);
    return status;
}
