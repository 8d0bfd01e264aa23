/*
 * device_conform.c - what the device encodes and decodes is what the scalar row does, bit for bit
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/device/device_check.h"

#include "core/codec.h"
#include "core/codec/directory.h"
#include "core/tests/codec_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

zipccl_status device_buffers_open(struct device_buffers *b, enum zipccl_dtype dtype, size_t n,
                                  uint32_t nsms, struct zipccl_error *error)
{
    size_t nbytes = n * zipccl_dtype_size(dtype) + 16;
    /* More than effort fast takes. */
    size_t encode = zipccl_gpu_encode_ratio_workspace(dtype, n, 1, nsms);
    size_t decode = zipccl_gpu_decode_workspace(dtype, n, 1, nsms);

    memset(b, 0, sizeof *b);
    b->capacity = (zipccl_bound(dtype, n) + 15) / 16 * 16;
    b->workspace_nbytes = encode > decode ? encode : decode;
    DEVICE_TRY(cudaMalloc(&b->d_elements, nbytes));
    DEVICE_TRY(cudaMalloc(&b->d_wire, b->capacity + 16));
    DEVICE_TRY(cudaMalloc(&b->d_out, nbytes));
    DEVICE_TRY(cudaMalloc(&b->d_sums, (n + 4) * sizeof(float)));
    DEVICE_TRY(cudaMalloc(&b->d_workspace, b->workspace_nbytes));
    DEVICE_TRY(cudaMalloc((void **)&b->d_results, sizeof *b->d_results));
    return ZIPCCL_OK;
}

void device_buffers_close(struct device_buffers *b)
{
    void *all[] = {b->d_elements, b->d_wire, b->d_out, b->d_sums, b->d_workspace, b->d_results};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i] != NULL)
            (void)cudaFree(all[i]);
    memset(b, 0, sizeof *b);
}

/* One case: elements, what the scalar row makes of them, and what came from the device. */
struct one {
    enum zipccl_dtype dtype;
    enum data_kind kind;
    enum zipccl_effort effort;
    size_t n, size, nbytes; /* of the message */
    uint8_t *elements, *expected, *got;
    float *sums, *got_sums;
    void *scratch;
    uint32_t nsms;
    struct device_buffers b;
    struct device_conform *out;
};

static void wrong(struct one *c, uint64_t *count, const char *what)
{
    if (c->out->first[0] == '\0')
        snprintf(c->out->first, sizeof c->out->first, "%s of %zu %s, data %d%s", what, c->n,
                 zipccl_dtype_name(c->dtype), (int)c->kind,
                 c->effort == ZIPCCL_EFFORT_RATIO ? ", effort ratio" : "");
    (*count)++;
}

static zipccl_status clear(struct one *c, struct zipccl_error *error)
{
    DEVICE_TRY(zipccl_gpu_workspace_clear(c->b.d_workspace, c->b.workspace_nbytes, NULL));
    return ZIPCCL_OK;
}

static zipccl_status encode(struct one *c, size_t capacity, struct zipccl_gpu_result *result,
                            struct zipccl_error *error)
{
    struct zipccl_gpu_encode_args args = {
        .dtype = c->dtype,
        .effort = (int)c->effort,
        .nsms = c->nsms,
        .batch = {.nmessages = 1,
                  .first = {c->b.d_elements, c->b.d_wire, c->n, capacity},
                  .total_n = c->n},
        .d_workspace = c->b.d_workspace,
        .workspace_nbytes = c->b.workspace_nbytes,
        .d_results = c->b.d_results,
    };

    ZIPCCL_TRY(clear(c, error));
    DEVICE_TRY(cudaMemset(c->b.d_wire, 0xa5, capacity));
    DEVICE_TRY(zipccl_gpu_encode(&args, NULL));
    DEVICE_TRY(cudaMemcpy(result, c->b.d_results, sizeof *result, cudaMemcpyDeviceToHost));
    DEVICE_TRY(cudaMemcpy(c->got, c->b.d_wire, capacity, cudaMemcpyDeviceToHost));
    return ZIPCCL_OK;
}

/* The message with room enough, and with a byte too little. */
static zipccl_status check_encode(struct one *c, struct zipccl_error *error)
{
    struct zipccl_gpu_result result;
    struct zipccl_message message;
    zipccl_status status =
        zipccl_encode_effort(ZIPCCL_ISA_SCALAR, c->effort, c->dtype, c->elements, c->n, c->expected,
                             c->b.capacity, c->scratch, &c->nbytes);

    if (status != ZIPCCL_OK)
        return zipccl_fail(error, status, "the scalar row cannot encode %zu elements", c->n);
    ZIPCCL_TRY(encode(c, c->b.capacity, &result, error));
    if (result.error != ZIPCCL_OK || result.nbytes != c->nbytes ||
        memcmp(c->got, c->expected, c->nbytes) != 0)
        wrong(c, &c->out->messages_wrong, "the message");
    if (c->nbytes <= ZIPCCL_MESSAGE_HEADER_BYTES)
        return ZIPCCL_OK;
    ZIPCCL_TRY(encode(c, c->nbytes - 1, &result, error));
    if (result.error != ZIPCCL_ERR_OVERFLOW ||
        zipccl_message_read(c->got, c->nbytes - 1, &message) != ZIPCCL_OK ||
        (message.flags & ZIPCCL_MESSAGE_OVERFLOW) == 0)
        wrong(c, &c->out->overflows_wrong, "the overflow");
    return ZIPCCL_OK;
}

/* Note which programs the message's superblocks have. */
static void note_modes(struct one *c)
{
    struct zipccl_directory directory;
    struct zipccl_superblock_mode mode;

    if (zipccl_directory_open(c->expected, c->nbytes, &directory) != ZIPCCL_OK)
        return;
    for (size_t s = 0; s < directory.nsuperblocks; s++)
        if (zipccl_directory_read(&directory, s, &mode) == ZIPCCL_OK)
            c->out->modes |= 1u << mode.program | (mode.zeros ? 1u << 31 : 0);
}

static zipccl_status check_decode(struct one *c, struct zipccl_error *error)
{
    struct zipccl_gpu_decode_args args = {
        .dtype = c->dtype,
        .nsms = c->nsms,
        .batch = {.nmessages = 1,
                  .first = {c->b.d_out, c->b.d_wire, c->n, c->nbytes},
                  .total_n = c->n},
        .d_workspace = c->b.d_workspace,
        .workspace_nbytes = c->b.workspace_nbytes,
        .d_results = c->b.d_results,
    };
    struct zipccl_gpu_result result;
    bool adds =
        c->dtype == ZIPCCL_BFLOAT16 || c->dtype == ZIPCCL_FLOAT16 || c->dtype == ZIPCCL_FLOAT32;

    note_modes(c);
    ZIPCCL_TRY(clear(c, error));
    DEVICE_TRY(cudaMemcpy(c->b.d_wire, c->expected, c->nbytes, cudaMemcpyHostToDevice));
    DEVICE_TRY(zipccl_gpu_decode(&args, NULL));
    DEVICE_TRY(cudaMemcpy(&result, c->b.d_results, sizeof result, cudaMemcpyDeviceToHost));
    DEVICE_TRY(cudaMemcpy(c->got, c->b.d_out, c->n * c->size, cudaMemcpyDeviceToHost));
    if (result.error != ZIPCCL_OK || memcmp(c->got, c->elements, c->n * c->size) != 0)
        wrong(c, &c->out->elements_wrong, "the elements");
    /* Sums of NaNs may have any payload: such data are left out. */
    if (!adds || c->kind == DATA_BITS || c->kind == DATA_SPOILED || c->kind == DATA_HALF_BITS)
        return ZIPCCL_OK;
    args.batch.first.elements = c->b.d_sums;
    for (size_t i = 0; i < c->n; i++)
        c->sums[i] = (float)i / 7;
    DEVICE_TRY(cudaMemcpy(c->b.d_sums, c->sums, c->n * sizeof(float), cudaMemcpyHostToDevice));
    DEVICE_TRY(zipccl_gpu_decode_add(&args, false, NULL));
    DEVICE_TRY(cudaMemcpy(c->got_sums, c->b.d_sums, c->n * sizeof(float), cudaMemcpyDeviceToHost));
    if (zipccl_decode_add(ZIPCCL_ISA_SCALAR, c->dtype, c->expected, c->nbytes, c->sums, c->n,
                          c->scratch) != ZIPCCL_OK ||
        memcmp(c->got_sums, c->sums, c->n * sizeof(float)) != 0)
        wrong(c, &c->out->sums_wrong, "the sums");
    return ZIPCCL_OK;
}

static zipccl_status run_case(struct one *c, struct zipccl_error *error)
{
    struct data_random random = {(uint64_t)c->kind * 1000 + c->n};
    size_t room = c->b.capacity + c->n * sizeof(float) + 64;
    zipccl_status status;

    c->elements = malloc(room);
    c->expected = malloc(room);
    c->got = malloc(room);
    c->sums = malloc(room);
    c->got_sums = malloc(room);
    if (c->elements == NULL || c->expected == NULL || c->got == NULL || c->sums == NULL ||
        c->got_sums == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    data_fill_type(c->dtype, c->kind, &random, 0.3, c->elements, c->n);
    DEVICE_TRY(cudaMemcpy(c->b.d_elements, c->elements, c->n * c->size, cudaMemcpyHostToDevice));
    status = ZIPCCL_OK;
    for (int effort = 0; effort < ZIPCCL_NUM_EFFORTS && status == ZIPCCL_OK; effort++) {
        c->effort = (enum zipccl_effort)effort;
        status = check_encode(c, error);
        if (status == ZIPCCL_OK)
            status = check_decode(c, error);
    }
    c->out->cases++;
    return status;
}

static zipccl_status check(enum zipccl_dtype dtype, enum data_kind kind, size_t n, uint32_t nsms,
                           void *scratch, struct device_conform *out, struct zipccl_error *error)
{
    struct one c = {.dtype = dtype, .kind = kind, .n = n, .nsms = nsms, .out = out};
    zipccl_status status = device_buffers_open(&c.b, dtype, n, nsms, error);

    c.size = zipccl_dtype_size(dtype);
    c.scratch = scratch;
    if (status == ZIPCCL_OK)
        status = run_case(&c, error);
    free(c.elements);
    free(c.expected);
    free(c.got);
    free(c.sums);
    free(c.got_sums);
    device_buffers_close(&c.b);
    return status;
}

zipccl_status device_conform(bool tiny, uint32_t nsms, struct device_conform *out,
                             struct zipccl_error *error)
{
    static const size_t sizes[] = {1,     63,    64,    65,     1000,   1025,    4097,
                                   16383, 16384, 16385, 131071, 300001, 3000017, 0};
    static const size_t few[] = {1, 65, 1025, 16385, 0};
    const size_t *list = tiny ? few : sizes;
    zipccl_status status = ZIPCCL_OK;
    void *scratch = NULL;

    memset(out, 0, sizeof *out);
    if (posix_memalign(&scratch, 64, zipccl_codec_scratch_bytes()) != 0)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    for (int t = 0; t < DATA_NUM_TYPES; t++)
        for (int kind = 0; kind < DATA_NUM_KINDS; kind++)
            for (size_t i = 0; list[i] != 0 && status == ZIPCCL_OK; i++)
                /* The largest of a tiny run for some kinds each. */
                if (!tiny || list[i] < 10000 || (kind + t) % 4 == 0)
                    status = check(data_types[t], (enum data_kind)kind, list[i], nsms, scratch, out,
                                   error);
    free(scratch);
    return status;
}
