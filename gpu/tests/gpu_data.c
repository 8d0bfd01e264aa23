/*
 * gpu_data.c - device buffers, messages and failures for the kernels' tests
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/gpu_data.h"

#include "gpu/tests/emu/emu.h"

int gpu_failures;

void *gpu_alloc(size_t nbytes)
{
    /* malloc() aligns to 16. */
    void *p = malloc(nbytes > 0 ? nbytes : 1);
    if (!p)
        abort();
    memset(p, 0xa5, nbytes);
    return p;
}

void gpu_wait(void)
{
    if (cudaStreamSynchronize(NULL) != cudaSuccess || emu_error()[0]) {
        printf("%s\n", emu_error());
        exit(1);
    }
}

struct gpu_message gpu_encode(enum zipccl_isa isa, enum zipccl_effort effort,
                              enum zipccl_dtype dtype, void *elements, size_t n)
{
    size_t bound = zipccl_bound(dtype, n);
    struct gpu_message message = {.dtype = dtype, .n = n, .elements = elements};
    uint8_t *wire = gpu_alloc(bound);
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    CHECK(zipccl_encode_effort(isa, effort, dtype, elements, n, wire, bound, scratch,
                               &message.nbytes) == ZIPCCL_OK,
          "encode %zu", n);
    message.wire = gpu_alloc(message.nbytes);
    memcpy(message.wire, wire, message.nbytes);
    free(wire);
    free(scratch);
    return message;
}

void gpu_message_free(struct gpu_message *message)
{
    free(message->elements);
    free(message->wire);
}

void *gpu_elements(enum zipccl_dtype dtype, enum data_kind kind, uint64_t seed, size_t n)
{
    struct data_random random = {seed};
    void *elements = gpu_alloc(n * zipccl_dtype_size(dtype));
    data_fill_type(dtype, kind, &random, (double)(seed % 8) / 8, elements, n);
    return elements;
}

void gpu_schedule(uint64_t seed)
{
    struct emu_options o;
    emu_default_options(&o);
    if (seed > 0) {
        o.seed = seed;
        o.policy = (int)(seed % 3);
        o.order = (int)(seed / 3 % 3);
        o.resident = seed % 2 ? 3 : 1;
    }
    emu_set_options(&o);
}
