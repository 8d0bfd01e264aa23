/*
 * fuzz.h - what a fuzz target gives to the driver
 *
 * A target is built twice: with clang's -fsanitize=fuzzer, where libFuzzer drives it, and with
 * driver.c as a plain program that runs a fixed number of mutated seeds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_FUZZ_FUZZ_H
#define ZIPCCL_TRACES_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#define FUZZ_CAPACITY 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

/* Write seed 'i' to 'out' [FUZZ_CAPACITY] and return its size; 0 if there are no more. */
size_t zipccl_fuzz_seed(unsigned i, uint8_t *out);

/* Write [nbytes] to a file of this process and return its path. */
const char *zipccl_fuzz_file(const uint8_t *data, size_t nbytes);

#endif
