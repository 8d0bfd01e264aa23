/*
 * import_aicb_call.c - what a row of AICB's .csv moves: op, type and count in NCCL's terms
 *
 * Sizes are bytes of the full tensor.  AICB itself moves bf16 whatever the call; types here are
 * those of the training that it models, as far as the file lets them be told.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_aicb.h"

#include <string.h>

/* Control values: losses, flags, sizes. */
#define SMALL_BYTES 64

static enum zipccl_dtype dtype_of(const struct aicb_file *f, const struct aicb_row *row,
                                  bool *guessed)
{
    const struct zipccl_import_options *o = f->importer->options;
    bool reduces = row->type == AICB_ALL_REDUCE || row->type == AICB_REDUCE_SCATTER;
    bool gradient = reduces && (row->group == AICB_DP || row->group == AICB_EP_DP);

    *guessed = true;
    if (row->bytes <= SMALL_BYTES)
        return row->bytes % 4 == 0 ? ZIPCCL_FLOAT32 : ZIPCCL_UINT8;
    if (row->type == AICB_BROADCAST && row->group == AICB_TP && row->bytes % 8 == 0)
        return ZIPCCL_INT64; /* tokens */
    if (strstr(row->stage, "CrossEntropy") != NULL)
        return ZIPCCL_FLOAT32;
    *guessed = gradient ? !o->grad_dtype_given : !o->dtype_given;
    if (gradient && (o->grad_dtype_given || f->wide_gradients))
        return o->grad_dtype_given ? o->grad_dtype : ZIPCCL_FLOAT32;
    return o->dtype_given ? o->dtype : ZIPCCL_BFLOAT16;
}

bool aicb_call_of(const struct aicb_file *f, const struct aicb_row *row, struct aicb_call *out)
{
    static const enum zipccl_op ops[AICB_TYPES] = {[AICB_ALL_REDUCE] = ZIPCCL_ALL_REDUCE,
                                                   [AICB_ALL_GATHER] = ZIPCCL_ALL_GATHER,
                                                   [AICB_REDUCE_SCATTER] = ZIPCCL_REDUCE_SCATTER,
                                                   [AICB_ALL_TO_ALL] = ZIPCCL_ALLTOALL,
                                                   [AICB_BROADCAST] = ZIPCCL_BROADCAST,
                                                   [AICB_BARRIER] = ZIPCCL_ALL_REDUCE,
                                                   [AICB_ISEND] = ZIPCCL_SENDRECV};
    bool shared = row->type == AICB_ALL_GATHER || row->type == AICB_REDUCE_SCATTER ||
                  row->type == AICB_ALL_TO_ALL;
    uint64_t unit;

    if (row->type == AICB_REDUCE || row->type == AICB_IRECV || row->type >= AICB_COMPUTATION)
        return false;
    out->op = ops[row->type];
    if (row->type == AICB_BARRIER) {
        *out = (struct aicb_call){ZIPCCL_ALL_REDUCE, ZIPCCL_UINT8, 1, false, false};
        return true;
    }
    out->dtype = dtype_of(f, row, &out->guessed);
    unit = zipccl_dtype_size(out->dtype) * (shared ? f->sizes[row->group] : 1);
    out->count = row->bytes / unit + (row->bytes % unit != 0);
    out->rounded = row->bytes % unit != 0;
    return true;
}
