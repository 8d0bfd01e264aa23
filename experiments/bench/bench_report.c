/*
 * bench_report.c - codec bench as a table
 *
 * Lines that begin with '#' are for people, as in nccl-tests.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/bench/bench_report.h"

#include <inttypes.h>
#include <stdlib.h>

static double ratio_of(const struct zipccl_bench_row *row)
{
    return (double)row->raw_bytes / (double)row->wire_bytes;
}

static double percent_of_bound(const struct zipccl_bench_row *row)
{
    return 100 * ratio_of(row) / row->bound_ratio;
}

static void print_codecs(const struct zipccl_bench_run *run)
{
    size_t n;
    const struct zipccl_bench_codec *peers = zipccl_bench_peers(&n);
    fprintf(run->table, "# %-13s one message; bound: the ratio if exponents took their entropy\n",
            "zipccl");
    for (size_t i = 0; i < n && run->options->peers; i++)
        fprintf(run->table, "# %-13s %s\n", peers[i].name, peers[i].what);
    if (run->options->peers && zipccl_bench_missing()[0] != '\0')
        fprintf(run->table, "# not in this build, install and build again: %s\n",
                zipccl_bench_missing());
}

void zipccl_bench_print_head(const struct zipccl_bench_run *run)
{
    const struct zipccl_machine *m = &run->machine;
    if (!run->table)
        return;
    unsigned threads = run->options->threads;
    fprintf(run->table, "# zipccl codec bench, input %s, %u thread%s, %s\n", run->input, threads,
            threads > 1 ? "s of zipccl, memcpy on one" : "", run->date);
    fprintf(run->table, "# %s, %ld cores, %.0f GB of memory, load %.1f; %s\n", m->cpu, m->cores,
            1e-9 * (double)m->memory_bytes, m->load, m->compiler);
    fprintf(run->table,
            "# GB/s: 1e9 raw bytes a second of %s time, median (first to third quartile) of %u "
            "repeats\n"
            "# x: times the memcpy timed beside it; cold: input and output out of all caches "
            "before each call\n",
            threads > 1 ? "wall clock" : "the thread's processor", run->options->repeats);
    print_codecs(run);
    fprintf(run->table,
            "#\n# %10s %10s %-8s %-4s %-12s %-7s %9s %7s  %-19s %6s  %-19s %6s %7s %6s\n",
            "size(B)", "count", "type", "from", "codec", "isa", "ratio", "%bound", "encode GB/s",
            "x", "decode GB/s", "x", "memcpy", "#wrong");
    fflush(run->table);
}

static void spread_text(const struct zipccl_spread *spread, char text[40])
{
    int digits = spread->median < 10 ? 2 : 1;
    snprintf(text, 40, "%.*f (%.*f-%.*f)", digits, spread->median, digits, spread->q1, digits,
             spread->q3);
}

static void print_row(const struct zipccl_bench_row *row, FILE *out)
{
    char encode[40], decode[40];
    spread_text(&row->encode_GBps, encode);
    spread_text(&row->decode_GBps, decode);
    fprintf(out,
            "  %10" PRIu64 " %10" PRIu64 " %-8s %-4s %-12s %-7s %9.4f %7.1f  %-19s %6.3f  %-19s "
            "%6.3f %7.1f %6" PRIu64 "\n",
            row->raw_bytes, row->n, zipccl_dtype_name(row->dtype), row->cold ? "cold" : "hot",
            row->codec.name, row->codec.isa, ratio_of(row), percent_of_bound(row), encode,
            row->encode_x.median, decode, row->decode_x.median, row->memcpy_GBps.median,
            row->wrong);
}

/* Below the rows of a size: the best copy there is. */
static void print_copy(const struct zipccl_bench_run *run, const struct zipccl_bench_row *row)
{
    const struct zipccl_bench_row *last = run->nrows ? &run->rows[run->nrows - 1] : NULL;
    if (row->best_copy && (!last || last->raw_bytes != row->raw_bytes || last->dtype != row->dtype))
        fprintf(run->table, "# %10" PRIu64 " best plain copy: %s, %.1f GB/s\n", row->raw_bytes,
                row->best_copy, row->best_copy_GBps);
}

void zipccl_bench_add(void *context, const struct zipccl_bench_row *row)
{
    struct zipccl_bench_run *run = context;
    struct zipccl_bench_row *grown = realloc(run->rows, (run->nrows + 1) * sizeof *grown);
    if (run->table) {
        print_copy(run, row);
        print_row(row, run->table);
        fflush(run->table);
    }
    if (!grown) {
        run->lost = true;
        return;
    }
    run->rows = grown;
    run->rows[run->nrows++] = *row;
}

void zipccl_bench_print_tail(const struct zipccl_bench_run *run)
{
    uint64_t wrong = 0;
    for (size_t i = 0; i < run->nrows; i++)
        wrong += run->rows[i].wrong;
    if (run->table)
        fprintf(run->table,
                "# %zu rows, each decoded and compared; wrong elements: %" PRIu64
                "; load afterwards %.1f\n",
                run->nrows, wrong, run->load_after);
}
