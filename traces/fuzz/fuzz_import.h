/*
 * fuzz_import.h - what the targets of importers share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_FUZZ_FUZZ_IMPORT_H
#define ZIPCCL_TRACES_FUZZ_FUZZ_IMPORT_H

#include "traces/fuzz/fuzz.h"
#include "traces/import.h"

#include <stdbool.h>

/* End the program, which says 'what', if it does not hold. */
void zipccl_fuzz_check(bool holds, const char *what);

/* Seed 'i' of the texts 'seeds' [n], as zipccl_fuzz_seed() gives it. */
size_t zipccl_fuzz_seed_of(const char *const *seeds, size_t n, unsigned i, uint8_t *out);

/* Import 'paths' [n] in 'format': they are refused with a reason, or become a trace that loads. */
void zipccl_fuzz_import(const char *format, const char *const *paths, size_t n,
                        const struct zipccl_import_options *options);

#endif
