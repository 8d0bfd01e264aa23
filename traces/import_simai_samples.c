/*
 * import_simai_samples.c - which captured tensors stand for which calls of a SimAI workload
 *
 * A class is bound only if the samples file has it in the type of the call.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_simai.h"
#include "traces/safetensors.h"

#include <stddef.h>

/* Names as in the bundled samples; the first that fits is taken. */
static const struct {
    int phase;
    enum zipccl_op op;
    const char *class;
} classes[] = {
    {SIMAI_FWD, ZIPCCL_ALL_REDUCE, "class:allreduce.tp"},
    {SIMAI_FWD, ZIPCCL_ALL_GATHER, "class:allreduce.tp"},
    {SIMAI_FWD, ZIPCCL_REDUCE_SCATTER, "class:allreduce.tp"},
    {SIMAI_FWD, ZIPCCL_ALLTOALL, "class:alltoall.dispatch"},
    {SIMAI_FWD, ZIPCCL_SENDRECV, "class:p2p.pp.hidden"},
    {SIMAI_IG, ZIPCCL_ALL_REDUCE, "class:allreduce.tp"},
    {SIMAI_IG, ZIPCCL_ALL_GATHER, "class:allreduce.tp"},
    {SIMAI_IG, ZIPCCL_REDUCE_SCATTER, "class:allreduce.tp"},
    {SIMAI_IG, ZIPCCL_ALLTOALL, "class:alltoall.dispatch_grad"},
    {SIMAI_IG, ZIPCCL_SENDRECV, "class:p2p.pp.grad"},
    {SIMAI_WG, ZIPCCL_ALL_GATHER, "class:allgather.param"},
    {SIMAI_WG, ZIPCCL_REDUCE_SCATTER, "class:reducescatter.grad"},
    {SIMAI_WG, ZIPCCL_REDUCE_SCATTER, "class:allreduce.grad_fp32"},
    {SIMAI_WG, ZIPCCL_ALL_REDUCE, "class:reducescatter.grad"},
    {SIMAI_WG, ZIPCCL_ALL_REDUCE, "class:allreduce.grad_fp32"},
};

static enum zipccl_dtype wanted_dtype(const struct zipccl_import_options *o, int phase,
                                      enum zipccl_op op)
{
    if (phase == SIMAI_WG && op != ZIPCCL_ALL_GATHER)
        return o->grad_dtype_given ? o->grad_dtype : ZIPCCL_FLOAT32;
    return o->dtype_given ? o->dtype : ZIPCCL_BFLOAT16;
}

zipccl_status simai_bind_samples(const struct simai_workload *w, struct simai_output *out)
{
    const struct zipccl_safetensors *file;

    if (w->importer->options->samples == NULL)
        return ZIPCCL_OK;
    ZIPCCL_TRY(zipccl_import_open_samples(w->importer, &file));
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        int phase = classes[i].phase;
        enum zipccl_op op = classes[i].op;
        enum zipccl_dtype dtype = wanted_dtype(w->importer->options, phase, op);

        if (out->sample[phase][op] != NULL ||
            !zipccl_import_class_fits(file, classes[i].class, dtype))
            continue;
        out->sample[phase][op] = (char *)classes[i].class;
        out->sample_dtype[phase][op] = dtype;
    }
    zipccl_safetensors_close(file);
    return zipccl_import_count(w->importer, true, "samples", 0, 1,
                               "payload is taken from the classes of tensors that bear the names "
                               "of the bundled samples");
}
