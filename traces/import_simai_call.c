/*
 * import_simai_call.c - calls of a SimAI workload as collectives with NCCL's counts
 *
 * SimAI's sizes are bytes of the full tensor: what all_gather collects, reduce_scatter starts
 * from, all_reduce and broadcast hold, and what alltoall sends to all members together.  The file
 * says no types; where they come from is counted.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_simai.h"

#include <string.h>

uint32_t simai_set_size(const struct simai_workload *w, enum simai_set set)
{
    switch (set) {
    case SIMAI_TP: return (uint32_t)w->tp;
    case SIMAI_DP: return (uint32_t)w->dp;
    case SIMAI_EP: return (uint32_t)w->ep;
    case SIMAI_DP_EP: return (uint32_t)(w->dp / w->ep);
    case SIMAI_PP_EVEN:
    case SIMAI_PP_ODD:
    case SIMAI_SETS: break;
    }
    return 2;
}

bool simai_has_pipeline(const struct simai_workload *w)
{
    return w->pp > 1 && w->pp_nbytes > 0;
}

static bool starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

static void choose_dtype(const struct simai_workload *w, const struct simai_row *row, int phase,
                         struct simai_collective *c)
{
    const struct zipccl_import_options *o = w->importer->options;
    const struct simai_part *part = &row->part[phase];
    bool reduces = c->op == ZIPCCL_ALL_REDUCE || c->op == ZIPCCL_REDUCE_SCATTER;

    if (c->op == ZIPCCL_BROADCAST ||
        (c->op == ZIPCCL_ALL_GATHER && part->set == SIMAI_EP && phase == SIMAI_FWD)) {
        /* Tokens, and tokens for each expert: integers, which no floating-point code compresses. */
        c->dtype = part->nbytes % 8 == 0 ? ZIPCCL_INT64 : ZIPCCL_UINT8;
        c->source = SIMAI_INTEGER;
    } else if (starts_with(row->name, "cross_entropy") || starts_with(row->name, "optimizer")) {
        c->dtype = ZIPCCL_FLOAT32;
        c->source = SIMAI_SCALAR;
    } else if (reduces && phase == SIMAI_WG && w->mode != SIMAI_MODE_MICRO) {
        c->dtype = o->grad_dtype_given ? o->grad_dtype : ZIPCCL_FLOAT32;
        c->source = o->grad_dtype_given ? SIMAI_GIVEN : SIMAI_GRADIENT;
    } else {
        c->dtype = o->dtype_given ? o->dtype : ZIPCCL_BFLOAT16;
        c->source = o->dtype_given ? SIMAI_GIVEN : SIMAI_ACTIVATION;
    }
}

static void set_count(struct simai_collective *c, uint64_t nbytes, uint64_t members)
{
    uint64_t unit = members * zipccl_dtype_size(c->dtype);

    c->count = nbytes / unit + (nbytes % unit != 0);
    c->rounded = nbytes % unit != 0;
}

unsigned simai_collectives(const struct simai_workload *w, const struct simai_row *row, int phase,
                           struct simai_collective out[2])
{
    static const enum zipccl_op ops[] = {
        [SIMAI_NONE] = ZIPCCL_NUM_OPS,         [SIMAI_ALLREDUCE] = ZIPCCL_ALL_REDUCE,
        [SIMAI_ALLGATHER] = ZIPCCL_ALL_GATHER, [SIMAI_REDUCESCATTER] = ZIPCCL_REDUCE_SCATTER,
        [SIMAI_ALLTOALL] = ZIPCCL_ALLTOALL,    [SIMAI_ALLREDUCEALLTOALL] = ZIPCCL_ALL_REDUCE,
        [SIMAI_BROADCAST] = ZIPCCL_BROADCAST};
    const struct simai_part *part = &row->part[phase];
    unsigned n = part->call == SIMAI_NONE ? 0 : part->call == SIMAI_ALLREDUCEALLTOALL ? 2 : 1;

    for (unsigned i = 0; i < n; i++) {
        bool whole;

        out[i].op = i == 0 ? ops[part->call] : ZIPCCL_ALLTOALL;
        whole = out[i].op == ZIPCCL_ALL_REDUCE || out[i].op == ZIPCCL_BROADCAST;
        choose_dtype(w, row, phase, &out[i]);
        set_count(&out[i], part->nbytes, whole ? 1 : simai_set_size(w, (enum simai_set)part->set));
    }
    return n;
}

struct simai_collective simai_pipeline_send(const struct simai_workload *w)
{
    const struct zipccl_import_options *o = w->importer->options;
    struct simai_collective c = {.op = ZIPCCL_SENDRECV,
                                 .dtype = o->dtype_given ? o->dtype : ZIPCCL_BFLOAT16,
                                 .source = o->dtype_given ? SIMAI_GIVEN : SIMAI_ACTIVATION};

    set_count(&c, w->pp_nbytes, 1);
    return c;
}

static zipccl_status count_source(const struct zipccl_importer *importer, uint64_t line,
                                  enum simai_source source)
{
    switch (source) {
    case SIMAI_GIVEN: break;
    case SIMAI_ACTIVATION:
        return zipccl_import_count(importer, true, "dtype", line, 1,
                                   "calls of activations and parameters whose type the file does "
                                   "not say: bf16 is assumed, option dtype sets another");
    case SIMAI_GRADIENT:
        return zipccl_import_count(importer, true, "gradient dtype", line, 1,
                                   "reductions of gradients whose type the file does not say: fp32 "
                                   "is assumed, option grad_dtype sets another");
    case SIMAI_SCALAR:
        return zipccl_import_count(importer, true, "loss dtype", line, 1,
                                   "calls of layers named cross_entropy or optimizer are taken as "
                                   "fp32");
    case SIMAI_INTEGER:
        return zipccl_import_count(importer, true, "integers", line, 1,
                                   "BROADCAST, and ALLGATHER_EP in the forward pass, are taken as "
                                   "tokens and token counts: int64");
    }
    return ZIPCCL_OK;
}

static zipccl_status count_call(const struct simai_workload *w, const struct simai_row *row,
                                int phase)
{
    const struct zipccl_importer *importer = w->importer;
    struct simai_collective c[2];
    unsigned n = simai_collectives(w, row, phase, c);
    uint64_t line = row->line;

    for (unsigned i = 0; i < n; i++) {
        bool reduces = c[i].op == ZIPCCL_ALL_REDUCE || c[i].op == ZIPCCL_REDUCE_SCATTER;

        ZIPCCL_TRY(count_source(importer, line, c[i].source));
        ZIPCCL_TRY(zipccl_import_count(importer, true, "rounding", line, c[i].rounded,
                                       "sizes that are not a whole count for each member are "
                                       "rounded up"));
        ZIPCCL_TRY(zipccl_import_count(importer, false, "redop", line, reduces,
                                       "reductions are taken as sums"));
        ZIPCCL_TRY(zipccl_import_count(importer, true, "root", line, c[i].op == ZIPCCL_BROADCAST,
                                       "broadcasts are taken to come from the first member"));
    }
    ZIPCCL_TRY(zipccl_import_count(importer, true, "ALLREDUCEALLTOALL", line, n == 2,
                                   "taken as an all_reduce and then an alltoall, each of the full "
                                   "size"));
    return zipccl_import_count(importer, false, "zero size", line,
                               n > 0 && row->part[phase].nbytes == 0,
                               "calls of 0 bytes are kept; AICB writes them where it forgets the "
                               "size, such as the backward pass of column-parallel layers");
}

zipccl_status simai_count_assumptions(const struct simai_workload *w)
{
    for (size_t i = 0; i < w->nrows; i++)
        for (int phase = 0; phase < SIMAI_PHASES; phase++)
            if (w->rows[i].part[phase].call != SIMAI_NONE)
                ZIPCCL_TRY(count_call(w, &w->rows[i], phase));
    if (simai_has_pipeline(w)) {
        struct simai_collective c = simai_pipeline_send(w);

        ZIPCCL_TRY(count_source(w->importer, 1, c.source));
        ZIPCCL_TRY(zipccl_import_count(w->importer, true, "rounding", 1, c.rounded,
                                       "sizes that are not a whole count for each member are "
                                       "rounded up"));
    }
    return ZIPCCL_OK;
}
