/*
 * fused.c - several messages at once: an all-to-all's slices, a reduction's terms
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/message.h"

#include "core/reduce.h"

#include <string.h>

zipccl_status zipccl_slices_check(enum zipccl_isa isa, enum zipccl_dtype dtype,
                                  const struct zipccl_slice *slices, size_t nslices)
{
    if (!zipccl_row_of(isa) || zipccl_dtype_size(dtype) == 0)
        return ZIPCCL_ERR_ARG;
    for (size_t i = 0; i < nslices; i++)
        if (zipccl_bound(dtype, slices[i].n) == 0 ||
            slices[i].capacity < ZIPCCL_MESSAGE_HEADER_BYTES)
            return ZIPCCL_ERR_ARG;
    return ZIPCCL_OK;
}

zipccl_status zipccl_slices_flag(struct zipccl_slice *slices, size_t nslices)
{
    size_t noverflows = 0;
    for (size_t i = 0; i < nslices; i++)
        noverflows += slices[i].status == ZIPCCL_ERR_OVERFLOW;
    for (size_t i = 0; i < nslices; i++)
        if (noverflows > (slices[i].status == ZIPCCL_ERR_OVERFLOW))
            zipccl_message_set_flags(slices[i].dst, ZIPCCL_MESSAGE_ANY_OVERFLOW);
    return noverflows > 0 ? ZIPCCL_ERR_OVERFLOW : ZIPCCL_OK;
}

zipccl_status zipccl_encode_many(enum zipccl_isa isa, enum zipccl_dtype dtype,
                                 struct zipccl_slice *slices, size_t nslices, void *scratch)
{
    ZIPCCL_TRY(zipccl_slices_check(isa, dtype, slices, nslices));
    for (size_t i = 0; i < nslices; i++) {
        struct zipccl_slice *slice = &slices[i];
        slice->status = zipccl_encode(isa, dtype, slice->src, slice->n, slice->dst, slice->capacity,
                                      scratch, &slice->nbytes);
    }
    return zipccl_slices_flag(slices, nslices);
}

static bool adds(enum zipccl_dtype dtype)
{
    return dtype == ZIPCCL_BFLOAT16 || dtype == ZIPCCL_FLOAT16 || dtype == ZIPCCL_FLOAT32;
}

zipccl_status zipccl_sum_check(enum zipccl_dtype dtype, size_t nterms, uint32_t divisor)
{
    if (!adds(dtype))
        return ZIPCCL_ERR_UNSUPPORTED;
    return nterms > 0 && divisor > 0 ? ZIPCCL_OK : ZIPCCL_ERR_ARG;
}

static void finish(const struct zipccl_coder *c, size_t m, uint32_t divisor, uint8_t *dst)
{
    float *sums = c->scratch->sums;
    if (divisor != 1)
        for (size_t i = 0; i < m; i++)
            sums[i] /= (float)divisor;
    if (c->fields->split != ZIPCCL_SPLIT_FP32) {
        c->row->round(c->fields, sums, m, dst);
        return;
    }
    for (size_t i = 0; i < m; i++) {
        uint32_t x = sums[i] != sums[i] ? ZIPCCL_FP32_NAN : zipccl_float_to_bits(sums[i]);
        memcpy(dst + 4 * i, &x, 4);
    }
}

zipccl_status zipccl_sum_run(const struct zipccl_coder *c, struct zipccl_term *terms, size_t nterms,
                             size_t n, size_t s, size_t end, uint32_t divisor, uint8_t *dst)
{
    size_t size = c->fields->size;
    for (; s < end; s++) {
        size_t m = zipccl_superblock_n(n, s), first = s * ZIPCCL_SUPERBLOCK;
        /* -0 + x is x, whatever x is; so the sum starts as the first term. */
        for (size_t i = 0; i < m; i++)
            c->scratch->sums[i] = -0.0f;
        for (size_t t = 0; t < nterms; t++) {
            struct zipccl_reader *reader = &terms[t].reader;
            const uint8_t *x = reader->elements ? reader->elements + size * first : NULL;
            if (!x) {
                ZIPCCL_TRY(zipccl_reader_next(c, reader, m, c->scratch->elements));
                x = c->scratch->elements;
            }
            c->row->add(c->fields, x, m, c->scratch->sums);
        }
        finish(c, m, divisor, dst + size * first);
    }
    return ZIPCCL_OK;
}

zipccl_status zipccl_decode_sum(enum zipccl_isa isa, enum zipccl_dtype dtype,
                                struct zipccl_term *terms, size_t nterms, size_t n,
                                uint32_t divisor, void *dst, void *scratch)
{
    struct zipccl_coder c = zipccl_coder_of(isa, dtype, n, scratch);
    ZIPCCL_TRY(zipccl_sum_check(dtype, nterms, divisor));
    if (!c.row)
        return ZIPCCL_ERR_ARG;
    for (size_t t = 0; t < nterms; t++)
        ZIPCCL_TRY(zipccl_term_open(&c, dtype, &terms[t], n, &terms[t].reader, 1));
    return zipccl_sum_run(&c, terms, nterms, n, 0, zipccl_superblocks(n), divisor, dst);
}

zipccl_status zipccl_term_open(const struct zipccl_coder *c, enum zipccl_dtype dtype,
                               const struct zipccl_term *term, size_t n,
                               struct zipccl_reader *readers, size_t nreaders)
{
    if (term->is_message)
        return zipccl_reader_open(c, dtype, term->bytes, term->nbytes, n, readers, nreaders);
    for (size_t t = 0; t < nreaders; t++)
        readers[t] = (struct zipccl_reader){.elements = term->bytes, .n = n};
    return ZIPCCL_OK;
}
