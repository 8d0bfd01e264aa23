/*
 * device_peers.c - how long other libraries take to encode and decode the same elements
 *
 * nvCOMP's ANS and Bitcomp, in chunks of 64 KiB, with the type of data that fits bf16 best.  What
 * comes back must be what went in.  Bytes moved as for our own: raw and compressed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/device/device_check.h"

#include "experiments/device/device_nvcomp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 65536, ALIGN = 256, MOST_REPEATS = 64, PIECE = 1 << 24 };

static const struct {
    const char *format, *name;
    struct nvcomp_options options;
} formats[] = {
    {"ANS", "nvCOMP ANS", {.first = 0, .data_type = NVCOMP_FLOAT16}},
    {"Bitcomp", "nvCOMP Bitcomp", {.first = 0, .data_type = NVCOMP_USHORT}},
};

/* Everything that calls for one size need; all owned. */
struct batch {
    size_t nbytes, nchunks, stride; /* stride: of compressed chunks */
    void *d_raw, *d_packed, *d_back, *d_temp;
    void **d_raw_chunks, **d_packed_chunks, **d_back_chunks;
    size_t *d_raw_nbytes, *d_packed_nbytes, *d_back_nbytes;
    int *d_statuses;
    size_t temp_nbytes;
    cudaStream_t stream;
    cudaEvent_t from, to;
};

static zipccl_status told(int code, const char *what, struct zipccl_error *error)
{
    return code == NVCOMP_SUCCESS
               ? ZIPCCL_OK
               : zipccl_fail(error, ZIPCCL_ERR_IO, "%s returned status %d", what, code);
}

/* Pointers to the chunks of 'd_base', on the device. */
static zipccl_status put_pointers(struct batch *b, char *d_base, size_t stride, void ***out,
                                  struct zipccl_error *error)
{
    void **pointers = malloc(b->nchunks * sizeof *pointers);
    cudaError_t rc;

    if (pointers == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < b->nchunks; i++)
        pointers[i] = d_base + i * stride;
    rc = cudaMalloc((void **)out, b->nchunks * sizeof *pointers);
    if (rc == cudaSuccess)
        rc = cudaMemcpy(*out, pointers, b->nchunks * sizeof *pointers, cudaMemcpyHostToDevice);
    free(pointers);
    DEVICE_TRY(rc);
    return ZIPCCL_OK;
}

static zipccl_status put_sizes(struct batch *b, struct zipccl_error *error)
{
    size_t *sizes = malloc(b->nchunks * sizeof *sizes);
    cudaError_t rc;

    if (sizes == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < b->nchunks; i++)
        sizes[i] = b->nbytes - i * CHUNK < CHUNK ? b->nbytes - i * CHUNK : CHUNK;
    rc = cudaMalloc((void **)&b->d_raw_nbytes, b->nchunks * sizeof *sizes);
    if (rc == cudaSuccess)
        rc = cudaMemcpy(b->d_raw_nbytes, sizes, b->nchunks * sizeof *sizes, cudaMemcpyHostToDevice);
    free(sizes);
    DEVICE_TRY(rc);
    DEVICE_TRY(cudaMalloc((void **)&b->d_packed_nbytes, b->nchunks * sizeof *sizes));
    DEVICE_TRY(cudaMalloc((void **)&b->d_back_nbytes, b->nchunks * sizeof *sizes));
    DEVICE_TRY(cudaMalloc((void **)&b->d_statuses, b->nchunks * sizeof(int)));
    return ZIPCCL_OK;
}

static zipccl_status batch_open(struct batch *b, const struct nvcomp_format *f,
                                struct nvcomp_options options, struct zipccl_error *error)
{
    const struct nvcomp_options plain = {0};
    size_t most = 0, out = 0, in = 0;

    ZIPCCL_TRY(told(f->max_output(CHUNK, options, &most), "GetMaxOutputChunkSize", error));
    ZIPCCL_TRY(told(f->compress_temp(b->nchunks, CHUNK, options, &out, b->nbytes),
                    "CompressGetTempSizeAsync", error));
    ZIPCCL_TRY(told(f->decompress_temp(b->nchunks, CHUNK, plain, &in, b->nbytes),
                    "DecompressGetTempSizeAsync", error));
    b->stride = (most + ALIGN - 1) / ALIGN * ALIGN;
    b->temp_nbytes = out > in ? out : in;
    DEVICE_TRY(cudaMalloc(&b->d_raw, b->nbytes));
    DEVICE_TRY(cudaMalloc(&b->d_packed, b->nchunks * b->stride));
    DEVICE_TRY(cudaMalloc(&b->d_back, b->nbytes));
    if (b->temp_nbytes > 0)
        DEVICE_TRY(cudaMalloc(&b->d_temp, b->temp_nbytes));
    ZIPCCL_TRY(put_pointers(b, b->d_raw, CHUNK, &b->d_raw_chunks, error));
    ZIPCCL_TRY(put_pointers(b, b->d_packed, b->stride, &b->d_packed_chunks, error));
    ZIPCCL_TRY(put_pointers(b, b->d_back, CHUNK, &b->d_back_chunks, error));
    ZIPCCL_TRY(put_sizes(b, error));
    DEVICE_TRY(cudaMemset(b->d_back, 0xa5, b->nbytes));
    DEVICE_TRY(cudaEventCreate(&b->from));
    DEVICE_TRY(cudaEventCreate(&b->to));
    DEVICE_TRY(cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking));
    return device_fill_gauss(b->d_raw, b->nbytes / 2, error);
}

static void batch_close(struct batch *b)
{
    void *const owned[] = {b->d_raw,         b->d_packed,     b->d_back,
                           b->d_temp,        b->d_raw_chunks, b->d_packed_chunks,
                           b->d_back_chunks, b->d_raw_nbytes, b->d_packed_nbytes,
                           b->d_back_nbytes, b->d_statuses};

    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        if (owned[i] != NULL)
            (void)cudaFree(owned[i]);
    if (b->stream != NULL)
        (void)cudaStreamDestroy(b->stream);
    if (b->from != NULL)
        (void)cudaEventDestroy(b->from);
    if (b->to != NULL)
        (void)cudaEventDestroy(b->to);
}

static int call(struct batch *b, const struct nvcomp_format *f, struct nvcomp_options options,
                bool packs)
{
    const struct nvcomp_options plain = {0};

    if (packs)
        return f->compress((const void *const *)b->d_raw_chunks, b->d_raw_nbytes, CHUNK, b->nchunks,
                           b->d_temp, b->temp_nbytes, (void *const *)b->d_packed_chunks,
                           b->d_packed_nbytes, options, b->d_statuses, b->stream);
    return f->decompress((const void *const *)b->d_packed_chunks, b->d_packed_nbytes,
                         b->d_raw_nbytes, b->d_back_nbytes, b->nchunks, b->d_temp, b->temp_nbytes,
                         (void *const *)b->d_back_chunks, plain, b->d_statuses, b->stream);
}

/* Once, untimed; every chunk must have been served. */
static zipccl_status try_once(struct batch *b, const struct nvcomp_format *f,
                              struct nvcomp_options options, bool packs, struct zipccl_error *error)
{
    int *statuses = malloc(b->nchunks * sizeof *statuses), first = 0;
    cudaError_t rc = cudaMemset(b->d_statuses, 0xff, b->nchunks * sizeof *statuses);
    const char *what = packs ? "CompressAsync" : "DecompressAsync";
    int code = 0;

    if (statuses == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    if (rc == cudaSuccess)
        rc = cudaDeviceSynchronize(); /* the stream does not wait for the default one's memset */
    if (rc == cudaSuccess)
        code = call(b, f, options, packs);
    if (rc == cudaSuccess && code == 0)
        rc = cudaStreamSynchronize(b->stream);
    if (rc == cudaSuccess && code == 0)
        rc = cudaMemcpy(statuses, b->d_statuses, b->nchunks * sizeof *statuses,
                        cudaMemcpyDeviceToHost);
    for (size_t i = 0; rc == cudaSuccess && code == 0 && first == 0 && i < b->nchunks; i++)
        first = statuses[i];
    free(statuses);
    DEVICE_TRY(rc);
    ZIPCCL_TRY(told(code, what, error));
    return told(first, what, error);
}

/* Bytes of all compressed chunks. */
static zipccl_status packed_bytes(struct batch *b, size_t *out, struct zipccl_error *error)
{
    size_t *sizes = malloc(b->nchunks * sizeof *sizes), sum = 0;
    cudaError_t rc;

    if (sizes == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    rc = cudaMemcpy(sizes, b->d_packed_nbytes, b->nchunks * sizeof *sizes, cudaMemcpyDeviceToHost);
    for (size_t i = 0; rc == cudaSuccess && i < b->nchunks; i++)
        sum += sizes[i];
    free(sizes);
    DEVICE_TRY(rc);
    *out = sum;
    return ZIPCCL_OK;
}

static zipccl_status compare(const struct batch *b, struct zipccl_error *error)
{
    size_t piece = b->nbytes < PIECE ? b->nbytes : PIECE;
    char *raw = malloc(2 * piece), *back = raw + piece;
    cudaError_t rc = cudaSuccess;
    bool same = true;

    if (raw == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    for (size_t at = 0; at < b->nbytes && same && rc == cudaSuccess; at += piece) {
        size_t n = b->nbytes - at < piece ? b->nbytes - at : piece;

        rc = cudaMemcpy(raw, (char *)b->d_raw + at, n, cudaMemcpyDeviceToHost);
        if (rc == cudaSuccess)
            rc = cudaMemcpy(back, (char *)b->d_back + at, n, cudaMemcpyDeviceToHost);
        same = rc != cudaSuccess || memcmp(raw, back, n) == 0;
    }
    free(raw);
    DEVICE_TRY(rc);
    return same ? ZIPCCL_OK
                : zipccl_fail(error, ZIPCCL_ERR_CORRUPT, "what comes back is not what went in");
}

static zipccl_status time_one(struct batch *b, const struct nvcomp_format *f,
                              struct nvcomp_options options, bool packs, uint32_t repeats,
                              struct device_row *row, struct zipccl_error *error)
{
    float ms[MOST_REPEATS];

    for (uint32_t i = 0; i < repeats; i++) {
        DEVICE_TRY(cudaEventRecord(b->from, b->stream));
        ZIPCCL_TRY(told(call(b, f, options, packs), "a timed call", error));
        DEVICE_TRY(cudaEventRecord(b->to, b->stream));
        DEVICE_TRY(cudaEventSynchronize(b->to));
        DEVICE_TRY(cudaEventElapsedTime(&ms[i], b->from, b->to));
    }
    device_row_times(row, ms, repeats);
    row->nbytes = b->nbytes;
    return ZIPCCL_OK;
}

/* Two rows: encode, decode. */
static zipccl_status measure(struct batch *b, const struct nvcomp_format *f, size_t which,
                             uint32_t repeats, struct device_row *rows, struct zipccl_error *error)
{
    struct nvcomp_options options = formats[which].options;
    size_t packed = 0;

    ZIPCCL_TRY(batch_open(b, f, options, error));
    DEVICE_TRY(cudaDeviceSynchronize());
    ZIPCCL_TRY(try_once(b, f, options, true, error));
    ZIPCCL_TRY(packed_bytes(b, &packed, error));
    ZIPCCL_TRY(try_once(b, f, options, false, error));
    ZIPCCL_TRY(compare(b, error));
    for (int i = 0; i < 2; i++) {
        ZIPCCL_TRY(time_one(b, f, options, i == 0, repeats, &rows[i], error));
        rows[i].work = i == 0 ? DEVICE_ENCODE : DEVICE_DECODE;
        rows[i].peer = formats[which].name;
        rows[i].moved_bytes = (double)b->nbytes + (double)packed;
        rows[i].ratio = packed > 0 ? (double)b->nbytes / (double)packed : 0;
    }
    return ZIPCCL_OK;
}

void device_nvcomp(const char *path, size_t most_nbytes, uint32_t repeats, struct device_peers *out)
{
    struct nvcomp_library library;

    memset(out, 0, sizeof *out);
    nvcomp_open(path, &library);
    out->version = library.properties.version;
    snprintf(out->why, sizeof out->why, "%s", library.why);
    for (size_t k = 0; library.handle != NULL && k < sizeof formats / sizeof *formats; k++) {
        struct nvcomp_format f;
        struct zipccl_error error = {""};
        zipccl_status status = nvcomp_find(&library, formats[k].format, &f, &error);

        for (size_t nbytes = CHUNK; nbytes <= most_nbytes && status == ZIPCCL_OK; nbytes *= 4) {
            struct batch b = {.nbytes = nbytes, .nchunks = nbytes / CHUNK};

            if (out->nrows + 2 > DEVICE_MOST_PEER_ROWS)
                break;
            status = measure(&b, &f, k, repeats < MOST_REPEATS ? repeats : MOST_REPEATS,
                             &out->rows[out->nrows], &error);
            batch_close(&b);
            out->nrows += status == ZIPCCL_OK ? 2 : 0;
        }
        if (status != ZIPCCL_OK)
            snprintf(out->why, sizeof out->why, "%.30s: %.160s", formats[k].name, error.text);
    }
    nvcomp_close(&library);
}
