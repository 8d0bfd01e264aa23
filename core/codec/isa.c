/*
 * isa.c - which rows this build contains and this machine can run
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/isa.h"

#include "core/codec/row.h"

const char *zipccl_feature_name(enum zipccl_feature feature)
{
#define X(name, text) text,
    static const char *const names[ZIPCCL_NUM_FEATURES] = {ZIPCCL_FEATURES(X)};
#undef X
    return (unsigned)feature < ZIPCCL_NUM_FEATURES ? names[feature] : "?";
}

uint32_t zipccl_features_here(void)
{
#ifdef ZIPCCL_HAVE_X86_ROWS
    /* The compiler's cpuid also asks whether the operating system saves the registers. */
#define X(name, text) | (__builtin_cpu_supports(text) ? 1u << ZIPCCL_FEATURE_##name : 0)
    return 0 ZIPCCL_FEATURES(X);
#undef X
#else
    return 0;
#endif
}

/* The kernels of 'isa'; NULL if this build has none. */
static const struct zipccl_row *built_row(enum zipccl_isa isa)
{
    switch (isa) {
    case ZIPCCL_ISA_SCALAR: return &zipccl_row_scalar;
#ifdef ZIPCCL_HAVE_X86_ROWS
    case ZIPCCL_ISA_AVX2: return &zipccl_row_avx2;
    case ZIPCCL_ISA_AVX512: return &zipccl_row_avx512;
#endif
    default: return NULL;
    }
}

bool zipccl_isa_needs(enum zipccl_isa isa, uint32_t *needs)
{
    const struct zipccl_row *row = built_row(isa);
    if (!row)
        return false;
    *needs = row->needs;
    return true;
}

static bool runs_on(enum zipccl_isa isa, uint32_t features)
{
    uint32_t needs;
    return zipccl_isa_needs(isa, &needs) && (needs & ~features) == 0;
}

enum zipccl_isa zipccl_isa_choose(uint32_t features)
{
    for (int isa = ZIPCCL_NUM_ISAS - 1; isa > ZIPCCL_ISA_SCALAR; isa--)
        if (runs_on((enum zipccl_isa)isa, features))
            return (enum zipccl_isa)isa;
    return ZIPCCL_ISA_SCALAR;
}

bool zipccl_isa_usable(enum zipccl_isa isa)
{
    return runs_on(isa, zipccl_features_here());
}

enum zipccl_isa zipccl_isa_best(void)
{
    return zipccl_isa_choose(zipccl_features_here());
}

const char *zipccl_isa_name(enum zipccl_isa isa)
{
    static const char *const names[ZIPCCL_NUM_ISAS] = {"scalar", "avx2", "avx512"};
    return (unsigned)isa < ZIPCCL_NUM_ISAS ? names[isa] : "?";
}

const struct zipccl_row *zipccl_row_of(enum zipccl_isa isa)
{
    return zipccl_isa_usable(isa) ? built_row(isa) : NULL;
}
