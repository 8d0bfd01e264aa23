/*
 * report_csv.c - the rows of a replay as CSV
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/report/report.h"

#include "experiments/program/csv.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static void put_number(double value, bool present, FILE *out)
{
    fputc(',', out);
    if (present && isfinite(value) && value >= 0)
        fprintf(out, "%.15g", value);
}

static void put_row(const struct zipccl_replay_result *result, const struct zipccl_result_row *row,
                    FILE *out)
{
    bool raw = result->steps[ZIPCCL_STEP_RAW].present;
    bool compressed = result->steps[ZIPCCL_STEP_COMPRESSED].present;
    bool adaptive = result->steps[ZIPCCL_STEP_ADAPTIVE].present;

    fprintf(out, "%s,%s,", result->measured ? "measured" : "simulated", zipccl_op_name(row->op));
    zipccl_csv_text(row->group, out);
    fprintf(out, ",%s,%llu,%u,", zipccl_dtype_name(row->dtype), (unsigned long long)row->count,
            row->nranks);
    zipccl_csv_text(row->stream, out);
    fprintf(out, ",%llu", (unsigned long long)row->calls);
    put_number(row->raw_bytes, true, out);
    put_number(row->wire_bytes, true, out);
    put_number(row->ratio, true, out);
    fprintf(out, ",%s,", row->ratio_source != NULL ? row->ratio_source : "none");
    zipccl_csv_text(row->strategy_raw, out);
    fputc(',', out);
    zipccl_csv_text(row->strategy_compressed, out);
    fputc(',', out);
    zipccl_csv_text(row->strategy, out);
    fprintf(out, ",%s", row->capacity_class != NULL ? row->capacity_class : "none");
    put_number(row->capacity_ratio, row->capacity_ratio > 0, out);
    fprintf(out, ",%d", row->overflows_settled);
    put_number(row->time_recorded_s, true, out);
    put_number(row->time_raw_s, raw, out);
    put_number(row->time_compressed_s, compressed, out);
    put_number(row->time_adaptive_s, adaptive, out);
    put_number(row->exposed_raw_s, raw, out);
    put_number(row->exposed_compressed_s, compressed, out);
    put_number(row->exposed_adaptive_s, adaptive, out);
    fputc('\n', out);
}

zipccl_status zipccl_report_csv(const struct zipccl_replay_result *result, FILE *out,
                                struct zipccl_error *error)
{
    fputs("kind,op,group,dtype,count,nranks,stream,calls,raw_bytes,wire_bytes,ratio,ratio_source,"
          "strategy_raw,strategy_compressed,strategy,capacity_class,capacity_ratio,"
          "overflows_settled,time_recorded_s,time_raw_s,time_compressed_s,"
          "time_adaptive_s,exposed_raw_s,exposed_compressed_s,exposed_adaptive_s\n",
          out);
    for (size_t i = 0; i < result->nrows; i++)
        put_row(result, &result->rows[i], out);
    if (ferror(out))
        return zipccl_fail(error, ZIPCCL_ERR_IO, "CSV: %s", strerror(errno));
    return ZIPCCL_OK;
}
