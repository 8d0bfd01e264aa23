/*
 * codec_bench.h - measures codecs beside memcpy in one run: ratio, speed, and that nothing is lost
 *
 * One thread, or our codec alone on more.  In every repeat each codec's encode and decode and a memcpy of the same elements
 * follow one another, so that what disturbs the machine disturbs all of them.  It prints nothing
 * and parses nothing: see bench_options.h and bench_report.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_CODEC_BENCH_H
#define ZIPCCL_EXPERIMENTS_CODEC_BENCH_H

#include "experiments/bench/bench_codec.h"
#include "experiments/bench/bench_input.h"

/* Elements of so many bytes are taken from and brought to memory, unless asked otherwise. */
#define ZIPCCL_BENCH_COLD_BYTES  (UINT64_C(64) << 20)
#define ZIPCCL_BENCH_MAX_BYTES   (UINT64_C(1) << 30)
#define ZIPCCL_BENCH_MAX_REPEATS 10000

enum zipccl_bench_cache {
    ZIPCCL_BENCH_BY_SIZE, /* cold from ZIPCCL_BENCH_COLD_BYTES on, if the machine can evict */
    ZIPCCL_BENCH_HOT,     /* buffers as the call before left them */
    ZIPCCL_BENCH_COLD     /* input and output out of all caches before every call */
};

struct zipccl_bench_options {
    uint64_t min_bytes, max_bytes; /* raw; for a file 0 and 0: all its elements of a type */
    uint64_t step_bytes;           /* added from size to size; 0: multiplied by 'factor' */
    unsigned factor;
    unsigned repeats, warmup;
    unsigned threads; /* of our codec; with more than one, times are those of the wall clock */
    enum zipccl_dtype dtypes[ZIPCCL_NUM_DTYPES];
    size_t ndtypes;
    enum zipccl_bench_input input;
    const char *path; /* of a file */
    bool isa[ZIPCCL_NUM_ISAS];
    bool peers;
    enum zipccl_bench_cache cache;
};

/* A figure over all repeats. */
struct zipccl_spread {
    double median, q1, q3; /* quartiles */
};

struct zipccl_bench_row {
    struct zipccl_bench_codec codec;
    enum zipccl_dtype dtype;
    bool cold;
    uint64_t n, raw_bytes, wire_bytes;
    double bound_ratio; /* if exponents took their entropy: models/exponent_code.h */
    struct zipccl_spread encode_GBps, decode_GBps, memcpy_GBps; /* raw bytes a second */
    struct zipccl_spread encode_x, decode_x; /* times the memcpy of the same repeat */
    double best_copy_GBps;                   /* median of the best plain copy; 0: not measured */
    const char *best_copy;                   /* its name */
    uint64_t wrong;                          /* elements that came back changed */
};

typedef void zipccl_bench_report_fn(void *context, const struct zipccl_bench_row *row);
typedef void zipccl_bench_progress_fn(void *context, uint64_t done, uint64_t total,
                                      const char *what);

/*
 * Measure; rows come as they are complete, all codecs of a size together.
 *
 * Every codec's result is decoded and compared before and after the timing.
 * ZIPCCL_ERR_INPUT if a file has no elements of a type or fewer than asked for; ZIPCCL_ERR_NOMEM;
 * ZIPCCL_ERR_INTERNAL if a codec refuses; else what reading the file says.
 */
zipccl_status zipccl_codec_bench(const struct zipccl_bench_options *options,
                                 zipccl_bench_report_fn *report, void *report_context,
                                 zipccl_bench_progress_fn *progress, void *progress_context,
                                 struct zipccl_error *error);

/* Median and quartiles of x [n], n > 0, which is sorted; between two values by a line. */
struct zipccl_spread zipccl_spread_of(double *x, size_t n);

#endif
