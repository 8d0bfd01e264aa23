/*
 * fuzz.h - the one function of a fuzz target
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_FUZZ_FUZZ_H
#define ZIPCCL_CORE_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Try the target on data [nbytes]; aborts if it misbehaves. libFuzzer gives the name. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

#endif
