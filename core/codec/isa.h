/*
 * isa.h - CPU features that rows are built with, and which row a set of features can run
 *
 * Features are bits of a mask, so that a test can switch them off one after another: what the
 * machine has is asked in one place, what a row needs is told by the compiler's own macros.
 * It is not the rows themselves; see row.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_CODEC_ISA_H
#define ZIPCCL_CORE_CODEC_ISA_H

#include "core/codec.h"

/*
 * name of the feature as the compiler's __builtin_cpu_supports() has it, name of the macro that
 * the compiler defines for a file built with it.  F16C is left out: clang takes it for granted
 * with AVX-512 but cannot ask for it, and every processor with the one has the other.
 */
#define ZIPCCL_FEATURES(X)                                                                         \
    X(POPCNT, "popcnt")                                                                            \
    X(AVX, "avx")                                                                                  \
    X(AVX2, "avx2")                                                                                \
    X(BMI, "bmi")                                                                                  \
    X(BMI2, "bmi2")                                                                                \
    X(FMA, "fma")                                                                                  \
    X(AVX512F, "avx512f")                                                                          \
    X(AVX512BW, "avx512bw")                                                                        \
    X(AVX512VL, "avx512vl")                                                                        \
    X(AVX512DQ, "avx512dq")                                                                        \
    X(AVX512VBMI, "avx512vbmi")                                                                    \
    X(AVX512VBMI2, "avx512vbmi2")                                                                  \
    X(GFNI, "gfni")

enum zipccl_feature {
#define X(name, text) ZIPCCL_FEATURE_##name,
    ZIPCCL_FEATURES(X)
#undef X
        ZIPCCL_NUM_FEATURES
};

#define ZIPCCL_ALL_FEATURES ((1u << ZIPCCL_NUM_FEATURES) - 1)

/* "avx2", as in /proc/cpuinfo but without underscores. */
const char *zipccl_feature_name(enum zipccl_feature feature);

/* The features that this machine has and its operating system lets be used. */
uint32_t zipccl_features_here(void);

/* True if 'isa' is in this build; '*needs' is what its file was built with, 0 for scalar. */
bool zipccl_isa_needs(enum zipccl_isa isa, uint32_t *needs);

/* The best row of this build that uses no feature outside 'features'. */
enum zipccl_isa zipccl_isa_choose(uint32_t features);

#endif
