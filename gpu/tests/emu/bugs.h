/*
 * bugs.h - kernels with one planted bug each, for the tests of the emulator
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_TESTS_EMU_BUGS_H
#define ZIPCCL_GPU_TESTS_EMU_BUGS_H

#include <cuda_runtime_api.h>

struct emu_bug {
    const char *name;
    int plain;         /* found without a sanitizer, under the settings below */
    int order;         /* enum emu_order */
    const char *says;  /* part of emu_error(), where 'plain' */
    const char *place; /* line with this comment is named, where 'plain'; NULL for none */
    void (*launch)(unsigned *d_words, cudaStream_t stream);
};

/* Words that every launch gets. */
enum { EMU_BUG_WORDS = 4096 };

extern const struct emu_bug emu_bugs[];
extern const int emu_nbugs;

#endif
