/*
 * driver.c - runs a fuzz target on mutated seeds, the same ones each time
 *
 * usage: PROGRAM [ROUNDS [FILE...]]; with files, those are run once, unchanged, to replay a find.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static size_t splice(uint8_t *bytes, size_t n, size_t at, size_t drop, const uint8_t *with,
                     size_t nwith)
{
    if (n - drop + nwith > FUZZ_CAPACITY)
        return n;
    memmove(bytes + at + nwith, bytes + at + drop, n - at - drop);
    memcpy(bytes + at, with, nwith);
    return n - drop + nwith;
}

/* One change: a bit, a byte, a cut, a doubled range, or a token that parsers trip over. */
static size_t mutate(uint8_t *bytes, size_t n, uint64_t *state)
{
    static const char *const tokens[] = {"-1",
                                         "0",
                                         "1e999",
                                         "9007199254740993",
                                         "\"",
                                         "[",
                                         "]",
                                         "{",
                                         "}",
                                         ",",
                                         "\n",
                                         "null",
                                         "\\u0000",
                                         "\xff",
                                         "[[[[",
                                         "1.5",
                                         "18446744073709551616",
                                         "{\"kind\":\"loop_end\"}\n",
                                         "{\"kind\":\"loop_begin\",\"repeat\":9}\n"};
    const char *token = tokens[next(state) % (sizeof tokens / sizeof tokens[0])];
    size_t at = next(state) % (n + 1), length = next(state) % 16;
    uint8_t copy[16];

    if (at + length > n)
        length = n - at;
    switch (next(state) % 6) {
    case 0:
        if (at < n)
            bytes[at] ^= (uint8_t)(1u << next(state) % 8);
        return n;
    case 1:
        if (at < n)
            bytes[at] = (uint8_t)next(state);
        return n;
    case 2: return splice(bytes, n, at, length, copy, 0);
    case 3: memcpy(copy, bytes + at, length); return splice(bytes, n, at, 0, copy, length);
    case 4: return splice(bytes, n, at, length, (const uint8_t *)token, strlen(token));
    default: return splice(bytes, n, at, 0, (const uint8_t *)token, strlen(token));
    }
}

static int run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    static uint8_t bytes[1 << 20];
    size_t n;

    if (file == NULL)
        return 1;
    n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, n);
    return 0;
}

int main(int argc, char **argv)
{
    unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 2000;
    uint8_t seed[FUZZ_CAPACITY], bytes[FUZZ_CAPACITY];
    uint64_t state = 0x9e3779b97f4a7c15u;
    size_t n;

    for (int i = 2; i < argc; i++)
        if (run_file(argv[i]) != 0)
            return 1;
    for (unsigned i = 0; argc < 3 && (n = zipccl_fuzz_seed(i, seed)) > 0; i++) {
        LLVMFuzzerTestOneInput(seed, n);
        for (unsigned long round = 0; round < rounds; round++) {
            size_t m = n;

            memcpy(bytes, seed, n);
            for (uint64_t changes = 1 + next(&state) % 4; changes > 0; changes--)
                m = mutate(bytes, m, &state);
            LLVMFuzzerTestOneInput(bytes, m);
        }
    }
    return 0;
}
