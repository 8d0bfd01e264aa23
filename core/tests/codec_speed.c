/*
 * codec_speed.c - GB/s and ratio of each row, next to memcpy in the same run
 *
 * A program to look at, not a test: nothing depends on what it prints.
 * Usage: codec_speed [seconds per figure, default 0.3]
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec.h"

#include "core/tests/codec_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct buffers {
    uint16_t *src, *out;
    uint8_t *wire;
    void *scratch;
    size_t n, capacity, nbytes;
    enum zipccl_effort effort;
};

enum work { WORK_COPY, WORK_ENCODE, WORK_DECODE };

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void work_once(struct buffers *b, enum zipccl_isa isa, enum work work)
{
    zipccl_status status = ZIPCCL_OK;
    switch (work) {
    case WORK_COPY: memcpy(b->out, b->src, 2 * b->n); break;
    case WORK_ENCODE:
        status = zipccl_encode_effort(isa, b->effort, ZIPCCL_BFLOAT16, b->src, b->n, b->wire,
                                      b->capacity, b->scratch, &b->nbytes);
        break;
    case WORK_DECODE:
        status = zipccl_decode(isa, ZIPCCL_BFLOAT16, b->wire, b->nbytes, b->out, b->n, b->scratch);
        break;
    }
    if (status != ZIPCCL_OK) {
        fprintf(stderr, "codec_speed: %s\n", zipccl_status_string(status));
        exit(1);
    }
}

/* Raw GB/s of the fastest repeat; each is long enough for the clock. */
static double rate(struct buffers *b, enum zipccl_isa isa, enum work work, double seconds)
{
    int calls = (int)(1 + (4u << 20) / (2 * b->n));
    double best = 1e9, end = now_s() + seconds;
    work_once(b, isa, work);
    do {
        double start = now_s();
        for (int i = 0; i < calls; i++)
            work_once(b, isa, work);
        double each = (now_s() - start) / calls;
        if (each < best)
            best = each;
    } while (now_s() < end);
    return 2e-9 * (double)b->n / best;
}

static void measure(size_t nbytes, enum data_kind kind, const char *name, double seconds)
{
    struct data_random random = {7};
    struct buffers b = {.n = nbytes / 2, .capacity = zipccl_bound(ZIPCCL_BFLOAT16, nbytes / 2)};
    b.src = aligned_alloc(64, nbytes);
    b.out = aligned_alloc(64, nbytes);
    b.wire = aligned_alloc(64, (b.capacity + 63) & ~(size_t)63);
    b.scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    if (!b.src || !b.out || !b.wire || !b.scratch)
        exit(1);
    data_fill(kind, &random, 0, b.src, b.n);
    memset(b.wire, 0, b.capacity);
    for (int k = 0; k < ZIPCCL_NUM_ISAS * ZIPCCL_NUM_EFFORTS; k++) {
        enum zipccl_isa isa = (enum zipccl_isa)(k / ZIPCCL_NUM_EFFORTS);
        b.effort = (enum zipccl_effort)(k % ZIPCCL_NUM_EFFORTS);
        if (!zipccl_isa_usable(isa))
            continue;
        double copy = rate(&b, 0, WORK_COPY, seconds);
        double enc = rate(&b, isa, WORK_ENCODE, seconds);
        double dec = rate(&b, isa, WORK_DECODE, seconds);
        printf("%10zu  %-8s %-8s %-6s %8.4f  %8.2f %8.2f %8.2f\n", nbytes, name,
               zipccl_isa_name(isa), b.effort == ZIPCCL_EFFORT_FAST ? "fast" : "ratio",
               (double)nbytes / (double)b.nbytes, copy, enc, dec);
    }
    free(b.src);
    free(b.out);
    free(b.wire);
    free(b.scratch);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {256u << 10, 1u << 20, 64u << 20};
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 0.3;
    printf("%10s  %-8s %-8s %-6s %8s  %8s %8s %8s   (GB/s of raw bytes, one thread, best)\n",
           "bytes", "data", "row", "effort", "ratio", "memcpy", "encode", "decode");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        measure(sizes[i], DATA_GAUSS, "gauss", seconds);
    measure(1u << 20, DATA_MIXTURE, "mixture", seconds);
    measure(1u << 20, DATA_SPOILED, "spoiled", seconds);
    measure(1u << 20, DATA_BITS, "bits", seconds);
    return 0;
}
