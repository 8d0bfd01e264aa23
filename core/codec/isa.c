/*
 * isa.c - which rows this build contains and this machine can run
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/row.h"

static bool has_avx2(void)
{
#ifdef ZIPCCL_HAVE_X86_ROWS
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
#else
    return false;
#endif
}

static bool has_avx512(void)
{
#ifdef ZIPCCL_HAVE_X86_ROWS
    /* The compiler's cpuid also asks whether the operating system saves the registers. */
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
           __builtin_cpu_supports("gfni") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("popcnt");
#else
    return false;
#endif
}

bool zipccl_isa_usable(enum zipccl_isa isa)
{
    switch (isa) {
    case ZIPCCL_ISA_SCALAR: return true;
    case ZIPCCL_ISA_AVX2: return has_avx2();
    case ZIPCCL_ISA_AVX512: return has_avx512();
    default: return false;
    }
}

enum zipccl_isa zipccl_isa_best(void)
{
    for (int isa = ZIPCCL_NUM_ISAS - 1; isa > ZIPCCL_ISA_SCALAR; isa--)
        if (zipccl_isa_usable((enum zipccl_isa)isa))
            return (enum zipccl_isa)isa;
    return ZIPCCL_ISA_SCALAR;
}

const char *zipccl_isa_name(enum zipccl_isa isa)
{
    static const char *const names[ZIPCCL_NUM_ISAS] = {"scalar", "avx2", "avx512"};
    return (unsigned)isa < ZIPCCL_NUM_ISAS ? names[isa] : "?";
}

const struct zipccl_row *zipccl_row_of(enum zipccl_isa isa)
{
    if (!zipccl_isa_usable(isa))
        return NULL;
#ifdef ZIPCCL_HAVE_X86_ROWS
    if (isa == ZIPCCL_ISA_AVX2)
        return &zipccl_row_avx2;
    if (isa == ZIPCCL_ISA_AVX512)
        return &zipccl_row_avx512;
#endif
    return &zipccl_row_scalar;
}
