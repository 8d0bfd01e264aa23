/*
 * bench_input.h - elements for codec bench: random ones, zeros, or the tensors of a file
 *
 * The same numbers on every machine and in every run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_BENCH_INPUT_H
#define ZIPCCL_EXPERIMENTS_BENCH_INPUT_H

#include "core/dtype.h"
#include "core/status.h"

#include <stdint.h>

enum zipccl_bench_input {
    ZIPCCL_BENCH_GAUSS,   /* N(0, sigma^2), rounded to nearest even */
    ZIPCCL_BENCH_MIXTURE, /* runs of 500 to 20,000 Gaussians, sigma log-uniform over two decades */
    ZIPCCL_BENCH_ZEROS,
    ZIPCCL_BENCH_BITS, /* random bits */
    ZIPCCL_BENCH_FILE  /* the tensors of a .safetensors file, one after the other */
};

/* Scale of a type's Gaussians: 0.02, but for fp8 as scaled to its range. */
double zipccl_bench_sigma(enum zipccl_dtype dtype);

/*
 * Fill out [n] elements of 'dtype', one that the codec covers, with 'input', which is no file.
 */
void zipccl_bench_fill(enum zipccl_bench_input input, enum zipccl_dtype dtype, void *out,
                       uint64_t n);

/*
 * All tensors of 'dtype' in the .safetensors file 'path', one after the other in file order.
 *
 * out  [*n] elements, to be freed; NULL and 0 if there is none of that type
 * ZIPCCL_ERR_IO, ZIPCCL_ERR_INPUT, ZIPCCL_ERR_NOMEM with the reason in 'error'.
 */
zipccl_status zipccl_bench_load(const char *path, enum zipccl_dtype dtype, void **out, uint64_t *n,
                                struct zipccl_error *error);

#endif
