/*
 * bench_options.h - the options of zipccl codec bench, with nccl-tests' letters
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_BENCH_OPTIONS_H
#define ZIPCCL_EXPERIMENTS_BENCH_OPTIONS_H

#include "experiments/bench/codec_bench.h"

struct zipccl_bench_command {
    struct zipccl_bench_options bench;
    const char *input;      /* as given */
    const char *json, *csv; /* NULL: not wanted */
    bool quiet;
};

/*
 * Parse and check; what cannot be run is refused with one line on stderr.  'helped' as in
 * zipccl_parse_options().  Returns an exit code.
 */
int zipccl_bench_parse(int argc, char **argv, struct zipccl_bench_command *out, bool *helped);

#endif
