/*
 * fuzz_encode.c - any elements come back, and every row writes the same bytes
 *
 * The first byte picks the type, the second repeats the others up to 16 times; what follows are
 * elements.  For libFuzzer, or with core/fuzz/fuzz_main.c as a plain program.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec.h"

#include "core/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void try_rows(enum zipccl_dtype dtype, const uint8_t *src, size_t n)
{
    size_t raw = n * zipccl_dtype_size(dtype), bound = zipccl_bound(dtype, n), nexpected = 0;
    uint8_t *expected = malloc(bound), *wire = malloc(bound), *out = malloc(raw + 1);
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    check(expected && wire && out && scratch);
    check(zipccl_encode(ZIPCCL_ISA_SCALAR, dtype, src, n, expected, bound, scratch, &nexpected) ==
          ZIPCCL_OK);
    for (int isa = 0; isa < ZIPCCL_NUM_ISAS; isa++) {
        size_t nbytes = 0;
        if (!zipccl_isa_usable((enum zipccl_isa)isa))
            continue;
        check(zipccl_encode((enum zipccl_isa)isa, dtype, src, n, wire, bound, scratch, &nbytes) ==
              ZIPCCL_OK);
        check(nbytes == nexpected && memcmp(wire, expected, nbytes) == 0);
        /* In exactly the room that is needed, too. */
        uint8_t *exact = malloc(nbytes);
        check(exact != NULL);
        size_t again = 0;
        check(zipccl_encode((enum zipccl_isa)isa, dtype, src, n, exact, nbytes, scratch, &again) ==
              ZIPCCL_OK);
        check(again == nbytes && memcmp(exact, expected, nbytes) == 0);
        check(zipccl_decode((enum zipccl_isa)isa, dtype, exact, nbytes, out, n, scratch) ==
              ZIPCCL_OK);
        check(memcmp(out, src, raw) == 0);
        free(exact);
    }
    free(expected);
    free(wire);
    free(out);
    free(scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    static const enum zipccl_dtype dtypes[] = {ZIPCCL_BFLOAT16, ZIPCCL_FLOAT16, ZIPCCL_FLOAT32,
                                               ZIPCCL_FLOAT8_E4M3, ZIPCCL_FLOAT8_E5M2};
    if (nbytes < 2)
        return 0;
    enum zipccl_dtype dtype = dtypes[data[0] % 5];
    size_t repeats = 1 + data[1] % 16, each = nbytes - 2;
    uint8_t *src = malloc(repeats * each + 1);
    check(src != NULL);
    for (size_t i = 0; i < repeats; i++)
        memcpy(src + i * each, data + 2, each);
    try_rows(dtype, src, repeats * each / zipccl_dtype_size(dtype));
    free(src);
    return 0;
}
