/*
 * isa_probe.c - what the best row of this processor writes, for every type: its name and a digest
 *
 * Run natively and on emulated processors that lack features (cpus.sh): the digests must agree,
 * and an instruction that a processor has not ends the program.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/isa.h"
#include "core/tests/codec_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 2 * 16384 + 777 };

static uint64_t fnv(uint64_t digest, const uint8_t *bytes, size_t nbytes)
{
    for (size_t i = 0; i < nbytes; i++)
        digest = (digest ^ bytes[i]) * UINT64_C(0x100000001b3);
    return digest;
}

/* Encode, decode, compare and add the message to the digest. */
static uint64_t probe(enum zipccl_dtype dtype, const void *src, void *scratch, uint64_t digest)
{
    enum zipccl_isa isa = zipccl_isa_best();
    size_t capacity = zipccl_bound(dtype, N), nbytes = 0, raw = N * zipccl_dtype_size(dtype);
    uint8_t *wire = malloc(capacity), *back = calloc(1, raw);
    if (!wire || !back ||
        zipccl_encode(isa, dtype, src, N, wire, capacity, scratch, &nbytes) != ZIPCCL_OK ||
        zipccl_decode(isa, dtype, wire, nbytes, back, N, scratch) != ZIPCCL_OK ||
        memcmp(back, src, raw) != 0) {
        fprintf(stderr, "isa_probe: %s does not survive\n", zipccl_dtype_name(dtype));
        exit(1);
    }
    digest = fnv(digest, wire, nbytes);
    free(wire);
    free(back);
    return digest;
}

int main(void)
{
    struct data_random random = {71};
    void *src = malloc(4 * N), *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    if (!src || !scratch)
        return 1;
    for (int t = 0; t < DATA_NUM_TYPES; t++)
        for (int kind = 0; kind < DATA_NUM_KINDS; kind++) {
            data_fill_type(data_types[t], (enum data_kind)kind, &random, kind / 11.0, src, N);
            digest = probe(data_types[t], src, scratch, digest);
        }
    printf("%s %016llx\n", zipccl_isa_name(zipccl_isa_best()), (unsigned long long)digest);
    free(src);
    free(scratch);
    return 0;
}
