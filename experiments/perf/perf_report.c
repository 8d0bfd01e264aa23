/*
 * perf_report.c - perf's table: that of nccl-tests, with our columns on the right
 *
 * Widths are those of nccl-tests, so that what reads its tables reads this one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/perf/perf_report.h"

#include <inttypes.h>

const char *zipccl_perf_type_name(enum zipccl_dtype dtype)
{
    switch (dtype) {
    case ZIPCCL_FLOAT16: return "half";
    case ZIPCCL_FLOAT32: return "float";
    case ZIPCCL_FLOAT64: return "double";
    case ZIPCCL_BFLOAT16: return "bfloat16";
    default: return zipccl_dtype_name(dtype);
    }
}

/* What the times of the table are. */
static const char *average_text(const struct zipccl_perf_options *options)
{
    static const char *const texts[] = {"rank 0's time", "the ranks' mean time",
                                        "the fastest rank's time", "the slowest rank's time"};

    return texts[options->average];
}

static void print_columns(const struct zipccl_perf_options *o, FILE *out)
{
    fprintf(out,
            "#\n# %10s  %12s  %8s  %6s  %6s           out-of-place                       "
            "in-place          ",
            "", "", "", "", "");
    fprintf(out, "\n# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s %6s  %7s  %6s  %6s %6s", "size",
            "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw",
            "busbw", "#wrong");
    if (o->per_iteration)
        fprintf(out, "  %7s  %7s  %7s  %6s", "i_min", "i_max", "i_p99", "i_cv%");
    if (o->timestamps)
        fprintf(out, "  %19s", "timestamp");
    fprintf(out, "  %-10s  %6s  %7s  %7s  %6s  %6s  %s", "mode", "ratio", "encode", "decode",
            "wirebw", "x raw", "strategy");
    fprintf(out, "\n# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %5s  %7s  %6s  %6s  %5s", "(B)",
            "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)",
            "");
    if (o->per_iteration)
        fprintf(out, "  %7s  %7s  %7s  %6s", "(us)", "(us)", "(us)", "");
    if (o->timestamps)
        fprintf(out, "  %19s", "");
    fprintf(out, "  %-10s  %6s  %7s  %7s  %6s\n", "", "", "(us)", "(us)", "(GB/s)");
}

void zipccl_perf_print_head(const struct zipccl_perf_options *o, const struct zipccl_perf_result *r,
                            FILE *out)
{
    bool threads = r->on[0] == 't';

    fprintf(out, "# zipccl perf %s: %s, %u rank%s on %u node%s (%s%s), input %s\n",
            zipccl_op_name(o->op), r->measured ? "measured" : "SIMULATED", r->nranks,
            r->nranks != 1 ? "s" : "", r->nodes, r->nodes != 1 ? "s" : "", r->on,
            o->split != ZIPCCL_SPLIT_NONE ? ", each of the groups of NCCL_TESTS_SPLIT" : "",
            r->input);
    fprintf(out, "# nThread %u nGpus 1 minBytes %" PRIu64 " maxBytes %" PRIu64 " step: ",
            threads ? r->nranks : 1, o->min_bytes, o->max_bytes);
    if (o->step_bytes != 0)
        fprintf(out, "%" PRIu64 "(bytes)", o->step_bytes);
    else
        fprintf(out, "%u(factor)", o->factor);
    fprintf(out, " warmup iters: %u iters: %u agg iters: %u validation: %u graph: 0\n", o->warmup,
            o->iters, o->agg_iters, o->check_iters);
    if (r->measured)
        fprintf(out, "# time: median over the iterations of %s%s\n", average_text(o),
                o->cputime ? ", processor time" : "");
    print_columns(o, out);
    fflush(out);
}

static void print_us(double time_s, FILE *out)
{
    double us = 1e6 * time_s;

    if (time_s < 0)
        fprintf(out, "  %7s", "N/A");
    else
        fprintf(out, "  %7.*f", us >= 10000 ? 0 : us >= 100 ? 1 : 2, us);
}

static void print_bw(double GBps, FILE *out)
{
    fprintf(out, "  %6.*f", GBps < 1 ? 4 : 2, GBps);
}

static void print_part(const struct zipccl_perf_row *row, FILE *out)
{
    if (row == NULL) {
        fprintf(out, "  %7s  %6s  %6s  %5s", "N/A", "N/A", "N/A", "N/A");
        return;
    }
    print_us(row->time_s, out);
    print_bw(zipccl_perf_algbw(&row->call, row->time_s), out);
    print_bw(zipccl_perf_busbw(&row->call, row->nranks, row->time_s), out);
    if (row->wrong >= 0)
        fprintf(out, "  %5" PRId64, row->wrong);
    else
        fprintf(out, "  %5s", "N/A");
}

/* What nccl-tests does not have. */
static void print_ours(const struct zipccl_perf_row *row, FILE *out)
{
    double ratio = zipccl_perf_ratio(row);

    fprintf(out, "  %-10s  %6.4f", zipccl_perf_mode_names[row->mode], ratio);
    print_us(row->encode_s, out);
    print_us(row->decode_s, out);
    print_bw(zipccl_perf_busbw(&row->call, row->nranks, row->time_s) / ratio, out);
    if (row->to_raw > 0)
        fprintf(out, "  %6.3f", row->to_raw);
    else
        fprintf(out, "  %6s", "-");
    fprintf(out, "  %s", row->strategy[0] != '\0' ? row->strategy : "-");
    if (row->nchunks > 1)
        fprintf(out, ", %u chunks", row->nchunks);
    if (row->effort == ZIPCCL_EFFORT_RATIO)
        fputs(", ratio", out);
}

void zipccl_perf_print_row(const struct zipccl_perf_options *o, const struct zipccl_perf_row *row,
                           const struct zipccl_perf_row *in_place, FILE *out)
{
    const struct zipccl_perf_call *call = &row->call;
    bool reduces = zipccl_is_reduction(call->op);

    fprintf(out, "%12" PRIu64 "  %12zu  %8s  %6s  %6d", call->size, call->count,
            zipccl_perf_type_name(call->dtype), reduces ? zipccl_redop_name(call->redop) : "none",
            call->op == ZIPCCL_BROADCAST ? (int)call->root : -1);
    print_part(row, out);
    print_part(in_place, out);
    if (o->per_iteration) {
        print_us(row->time_min_s, out);
        print_us(row->time_max_s, out);
        print_us(row->time_p99_s, out);
        fprintf(out, "  %6.2f", 100 * row->time_cv);
    }
    if (o->timestamps)
        fprintf(out, "  %19s", row->date);
    print_ours(row, out);
    fputc('\n', out);
    fflush(out);
}

/* Fixed messages are wide until a class has seen a period of calls. */
static void print_classes(const struct zipccl_perf_options *o,
                          const struct zipccl_perf_result *result, FILE *out)
{
    size_t nwide = 0;

    for (size_t i = 0; i < result->nrows; i++)
        nwide += result->rows[i].capacity_class == ZIPCCL_CLASS_WIDE;
    if (nwide > 0 && o->capacity_class == ZIPCCL_CLASS_LEARN && o->warmup <= ZIPCCL_CLASS_PERIOD)
        fprintf(out,
                "# messages of fixed size are still in class wide, with which learning begins, in "
                "%zu row%s: -w %u shows what it comes to, --class settled what it can come to\n",
                nwide, nwide != 1 ? "s" : "", ZIPCCL_CLASS_PERIOD + 2);
}

/* Mean over the rows of one mode; 0 if there is none. */
static double mean_busbw(const struct zipccl_perf_result *result, enum zipccl_perf_mode mode)
{
    double sum = 0;
    size_t n = 0;

    for (size_t i = 0; i < result->nrows; i++) {
        const struct zipccl_perf_row *row = &result->rows[i];

        if (row->mode != mode)
            continue;
        sum += zipccl_perf_busbw(&row->call, row->nranks, row->time_s);
        n++;
    }
    return n > 0 ? sum / (double)n : 0;
}

bool zipccl_perf_print_tail(const struct zipccl_perf_options *o,
                            const struct zipccl_perf_result *result, FILE *out)
{
    uint64_t wrong = zipccl_perf_wrong(result);
    int last = ZIPCCL_NUM_PERF_MODES - 1;
    double mean;
    bool slow;

    while (last > 0 && !o->modes[last])
        last--;
    mean = mean_busbw(result, (enum zipccl_perf_mode)last);
    slow = o->min_bw >= 0 && mean < 0.9 * o->min_bw;
    if (out == NULL)
        return wrong == 0 && !slow;
    fprintf(out, "# Out of bounds values : %" PRIu64 " %s\n", wrong, wrong > 0 ? "FAILED" : "OK");
    fprintf(out, "# Avg bus bandwidth    : %g %s\n", mean,
            o->min_bw < 0 ? ""
            : slow        ? "FAILED"
                          : "OK");
    for (int m = 0; m < last; m++)
        if (o->modes[m])
            fprintf(out, "#   of mode %-10s : %g\n", zipccl_perf_mode_names[m],
                    mean_busbw(result, (enum zipccl_perf_mode)m));
    print_classes(o, result, out);
    fputs("#\n", out);
    return wrong == 0 && !slow;
}
