/*
 * sweep_csv.c - the points of a sweep as CSV
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/sweep/sweep_print.h"

#include "experiments/program/csv.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static void put_number(double value, bool present, FILE *out)
{
    fputc(',', out);
    if (present && isfinite(value))
        fprintf(out, "%.15g", value);
}

static void put_row(const struct zipccl_sweep *s, const struct zipccl_sweep_point *p, FILE *out)
{
    const struct zipccl_sweep_outcome *o = &p->outcome;
    bool good = !p->failed;

    fputs("simulated", out);
    for (size_t i = 0; i < s->spec->naxes; i++) {
        fputc(',', out);
        zipccl_csv_text(s->spec->axes[i].values[zipccl_sweep_spec_choice(s->spec, p->index, i)],
                        out);
    }
    put_number((double)p->nranks, true, out);
    put_number(p->nodes, true, out);
    put_number(p->memory, p->memory > 0, out);
    fprintf(out, ",%s", p->memory > 0 ? p->fits ? "1" : "0" : "");
    for (int mode = 0; mode < ZIPCCL_NUM_STEPS; mode++)
        put_number(o->steps[mode].step_s, good && o->steps[mode].present, out);
    put_number(o->end_to_end_speedup, good && o->end_to_end_speedup > 0, out);
    put_number(o->comm_speedup, good && o->comm_speedup > 0, out);
    put_number(o->exposed_comm_share, good, out);
    put_number(o->raw_bytes, good, out);
    put_number(o->wire_bytes, good, out);
    put_number(zipccl_sweep_tokens(p, ZIPCCL_STEP_RAW), good, out);
    put_number(zipccl_sweep_tokens(p, ZIPCCL_STEP_ADAPTIVE), good, out);
    put_number(zipccl_sweep_mfu(p, ZIPCCL_STEP_RAW), good, out);
    put_number(zipccl_sweep_mfu(p, ZIPCCL_STEP_ADAPTIVE), good, out);
    if (good) {
        fprintf(out, ",%s,%s,", zipccl_sweep_limit_name(o->limit),
                o->limit_group[0] != '\0' ? zipccl_op_name(o->limit_op) : "");
        zipccl_csv_text(o->limit_group, out);
        fputc(',', out);
    } else {
        fputs(",,,,", out);
    }
    zipccl_csv_text(p->error, out);
    fputc('\n', out);
}

zipccl_status zipccl_sweep_csv(const struct zipccl_sweep *s,
                               const struct zipccl_sweep_point *const *rows, size_t nrows,
                               FILE *out, struct zipccl_error *error)
{
    fputs("kind", out);
    for (size_t i = 0; i < s->spec->naxes; i++)
        fprintf(out, ",%s", s->spec->axes[i].key);
    /* Axes may be called gpus and nodes: what follows has names of its own. */
    fputs(",nranks,cluster_nodes,memory_bytes,fits_memory,step_time_raw_s,step_time_compressed_s,"
          "step_time_adaptive_s,end_to_end_speedup,comm_speedup,exposed_comm_share,raw_bytes,"
          "wire_bytes,tokens_per_s_per_gpu_raw,tokens_per_s_per_gpu_adaptive,mfu_raw,mfu_adaptive,"
          "limit,most_exposed_op,most_exposed_group,error\n",
          out);
    for (size_t i = 0; i < nrows; i++)
        put_row(s, rows[i], out);
    if (ferror(out))
        return zipccl_fail(error, ZIPCCL_ERR_IO, "CSV: %s", strerror(errno));
    return ZIPCCL_OK;
}
