/*
 * decode_message.c - a message from standard input, its elements to standard output
 *
 * Usage: decode_message scalar|avx2|avx512 < MESSAGE > ELEMENTS
 * For `zipccl codec conform`.  Exit code 1 for a message that is not valid, 77 for a row that
 * this machine does not have.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 20 };

static int decode(enum zipccl_isa isa, const uint8_t *wire, size_t nbytes)
{
    struct zipccl_message message;
    if (zipccl_message_read(wire, nbytes, &message) != ZIPCCL_OK || message.n > MOST)
        return 1;
    size_t size = zipccl_dtype_size(message.dtype), n = (size_t)message.n;
    uint8_t *out = malloc(n * size + 1);
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    bool good = out && scratch &&
                zipccl_decode(isa, message.dtype, wire, nbytes, out, n, scratch) == ZIPCCL_OK &&
                fwrite(out, 1, n * size, stdout) == n * size && fflush(stdout) == 0;
    free(out);
    free(scratch);
    return good ? 0 : 1;
}

int main(int argc, char **argv)
{
    int isa = 0;
    while (isa < ZIPCCL_NUM_ISAS && argc == 2 &&
           strcmp(argv[1], zipccl_isa_name((enum zipccl_isa)isa)) != 0)
        isa++;
    if (argc != 2 || isa == ZIPCCL_NUM_ISAS) {
        fprintf(stderr, "usage: decode_message scalar|avx2|avx512\n");
        return 2;
    }
    if (!zipccl_isa_usable((enum zipccl_isa)isa))
        return 77;
    uint8_t *wire = malloc(MOST);
    size_t nbytes = wire ? fread(wire, 1, MOST, stdin) : 0;
    int code = wire ? decode((enum zipccl_isa)isa, wire, nbytes) : 1;
    free(wire);
    return code;
}
