/*
 * fuzz_main.c - run a fuzz target without libFuzzer: files as they are, then changed
 *
 * Usage: TARGET CHANGES FILE...
 * Each file is tried as it is and with CHANGES random changes; the seed is fixed, so a failure
 * comes back.  It steers by nothing: finding new paths is libFuzzer's work.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 20 };

static uint64_t next(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

/* Change 'bytes' in one to four places, more often near the start, where headers are. */
static size_t change(uint8_t *bytes, size_t nbytes, uint64_t *state)
{
    static const uint8_t telling[] = {0, 1, 0x7f, 0x80, 0xfe, 0xff};
    for (uint64_t k = 1 + next(state) % 4; k > 0 && nbytes > 0; k--) {
        size_t range = next(state) % 2 && nbytes > 128 ? 128 : nbytes;
        size_t at = next(state) % range;
        switch (next(state) % 5) {
        case 0: bytes[at] ^= (uint8_t)(1 << next(state) % 8); break;
        case 1: bytes[at] = (uint8_t)next(state); break;
        case 2: bytes[at] = telling[next(state) % sizeof telling]; break;
        case 3: bytes[at] = bytes[next(state) % nbytes]; break;
        case 4: nbytes -= next(state) % 16 == 0 ? next(state) % nbytes : 0; break;
        }
    }
    return nbytes;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s CHANGES FILE...\n", argv[0]);
        return 2;
    }
    unsigned long changes = strtoul(argv[1], NULL, 10);
    uint8_t *file = malloc(MOST), *work = malloc(MOST);
    uint64_t state = 1;
    if (!file || !work)
        return 1;
    for (int i = 2; i < argc; i++) {
        FILE *f = fopen(argv[i], "rb");
        if (!f) {
            fprintf(stderr, "%s: cannot read %s\n", argv[0], argv[i]);
            return 2;
        }
        size_t nfile = fread(file, 1, MOST, f);
        fclose(f);
        LLVMFuzzerTestOneInput(file, nfile);
        for (unsigned long k = 0; k < changes; k++) {
            memcpy(work, file, nfile);
            LLVMFuzzerTestOneInput(work, change(work, nfile, &state));
        }
    }
    printf("%d files, %lu changes each\n", argc - 2, changes);
    free(file);
    free(work);
    return 0;
}
