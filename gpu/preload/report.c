/*
 * report.c - what was counted, as a table at exit
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/report.h"

#include "gpu/preload/counts.h"
#include "gpu/preload/log.h"
#include "gpu/preload/predict.h"
#include "gpu/preload/rates.h"
#include "gpu/preload/shim.h"
#include "gpu/preload/totals.h"

static void print_ops(FILE *out, const struct zipccl_shim_totals *t)
{
    fprintf(out, "%-15s %10s %12s  %s\n", "op", "calls", "MB", "calls by what became of them");
    for (int op = 0; op < ZIPCCL_SHIM_NUM_OPS; op++) {
        const char *comma = "";

        if (t->calls[op] == 0)
            continue;
        fprintf(out, "%-15s %10llu %12.3f  ", zipccl_shim_op_name((enum zipccl_shim_op)op),
                (unsigned long long)t->calls[op], (double)t->bytes[op] / 1e6);
        for (int r = 0; r < ZIPCCL_SHIM_NUM_REASONS; r++) {
            if (t->reasons[op][r] == 0)
                continue;
            fprintf(out, "%s%s %llu", comma, zipccl_shim_reason_text((enum zipccl_shim_reason)r),
                    (unsigned long long)t->reasons[op][r]);
            comma = ", ";
        }
        fputc('\n', out);
    }
}

/* What the back end did with what it got; messages for sends and receives. */
static void print_coded(FILE *out, const struct zipccl_shim_totals *t)
{
    bool head = false;

    for (int op = 0; op < ZIPCCL_NUM_OPS; op++) {
        const struct zipccl_gpu_op_stats *s = &t->coded[op];

        if (s->calls == 0)
            continue;
        if (!head)
            fprintf(out, "%-15s %10s %10s %12s %12s %7s %9s  %s\n", "back end", "calls",
                    "compressed", "raw MB", "wire MB", "ratio", "overflows", "not compressed");
        head = true;
        fprintf(out, "%-15s %10llu %10llu %12.3f %12.3f %7.4f %9llu ",
                zipccl_op_name((enum zipccl_op)op), (unsigned long long)s->calls,
                (unsigned long long)s->reasons[ZIPCCL_GPU_COMPRESSED],
                (double)s->coded_raw_bytes / 1e6, (double)s->coded_wire_bytes / 1e6,
                s->coded_wire_bytes > 0 ? (double)s->coded_raw_bytes / (double)s->coded_wire_bytes
                                        : 0.0,
                (unsigned long long)s->overflows);
        for (int r = ZIPCCL_GPU_COMPRESSED + 1; r < ZIPCCL_GPU_NUM_REASONS; r++)
            if (s->reasons[r] != 0)
                fprintf(out, " %s %llu", zipccl_shim_back_end_reason((enum zipccl_gpu_reason)r),
                        (unsigned long long)s->reasons[r]);
        fputc('\n', out);
    }
}

static void print_verified(FILE *out, const struct zipccl_shim_totals *t)
{
    for (int op = 0; op < ZIPCCL_SHIM_NUM_OPS; op++) {
        const uint64_t *n = t->checks[op];

        if (n[ZIPCCL_SHIM_EQUAL] + n[ZIPCCL_SHIM_DIFFERENT] + n[ZIPCCL_SHIM_UNCHECKED] > 0)
            fprintf(out, "verified %s: %llu calls equal, %llu not, %llu not checked\n",
                    zipccl_shim_op_name((enum zipccl_shim_op)op),
                    (unsigned long long)n[ZIPCCL_SHIM_EQUAL],
                    (unsigned long long)n[ZIPCCL_SHIM_DIFFERENT],
                    (unsigned long long)n[ZIPCCL_SHIM_UNCHECKED]);
    }
}

/* Seconds that are predicted, of calls that would be compressed and of those that could be. */
struct sums {
    double native_s, raw_s, best_s;
};

static void print_kind(FILE *out, const struct zipccl_shim_comm *comm,
                       const struct zipccl_shim_kind *k, struct sums *selected, struct sums *more)
{
    const struct zipccl_shim_settings *settings = &zipccl_shim.settings;
    struct zipccl_shim_prediction p;
    struct sums *sums = comm->plain == ZIPCCL_SHIM_TAKEN && settings->compress[k->op] &&
                                k->bytes / k->calls >= settings->min_bytes
                            ? selected
                            : more;

    if (!zipccl_shim_predict(comm, k, &p))
        return;
    sums->native_s += p.native_s;
    sums->raw_s += p.raw_s;
    sums->best_s += p.best_s;
    fprintf(out, "%-12.12s %5d %5u %-15s %-8s %9.3f %9llu %11.3f %11.3f %11.3f  %-8s %s\n",
            comm->name[0] != '\0' ? comm->name : "-", comm->nranks, comm->topology->nnodes,
            zipccl_shim_op_name((enum zipccl_shim_op)k->op),
            zipccl_dtype_name((enum zipccl_dtype)k->dtype),
            (double)k->bytes / (double)k->calls / 1e6, (unsigned long long)k->calls,
            p.native_s * 1e3, p.raw_s * 1e3, p.best_s * 1e3, sums == selected ? "yes" : "no",
            p.strategy);
}

static void print_sums(FILE *out, const char *what, const struct sums *sums)
{
    fprintf(
        out,
        "%s: %.3f ms by NCCL, %.3f ms by the best uncompressed plans, %.3f ms in mode on: %.1f %% "
        "less than NCCL, %.1f %% by compression alone\n",
        what, sums->native_s * 1e3, sums->raw_s * 1e3, sums->best_s * 1e3,
        sums->native_s > 0 ? 100 * (1 - sums->best_s / sums->native_s) : 0.0,
        sums->raw_s > 0 ? 100 * (1 - sums->best_s / sums->raw_s) : 0.0);
}

static void print_prediction(FILE *out)
{
    struct sums selected = {0, 0, 0}, more = {0, 0, 0};
    const char *source;
    struct zipccl_cost_params params;

    zipccl_shim_rates(&params, &source);
    fprintf(out,
            "predicted by the cost model, not measured; Gaussian data, no overlap with "
            "compute or with each other\nrates %s\n",
            source);
    fprintf(out, "%-12s %5s %5s %-15s %-8s %9s %9s %11s %11s %11s  %-8s %s\n", "group", "ranks",
            "nodes", "op", "type", "MB a call", "calls", "NCCL ms", "best raw ms", "on ms",
            "selected", "plan in mode on");
    for (struct zipccl_shim_comm *c = zipccl_shim_comms_lock(); c != NULL;
         c = zipccl_shim_comms_next(c)) {
        pthread_mutex_lock(&c->lock);
        for (size_t i = 0; i < c->counts.nkinds; i++)
            print_kind(out, c, &c->counts.kinds[i], &selected, &more);
        pthread_mutex_unlock(&c->lock);
    }
    zipccl_shim_comms_unlock();
    print_sums(out, "selected calls", &selected);
    print_sums(
        out, "calls not selected (ZIPCCL_OPS, ZIPCCL_REDUCTIONS, ZIPCCL_MIN_BYTES, ZIPCCL_GROUPS)",
        &more);
    fputs("rates in use:\n", out);
    zipccl_shim_rates_print(out);
}

void zipccl_shim_report(void)
{
    const struct zipccl_shim_settings *settings = &zipccl_shim.settings;
    const struct zipccl_nccl *nccl = zipccl_nccl_get();
    struct zipccl_shim_totals totals = {0};
    size_t n = 0;
    FILE *out;

    for (struct zipccl_shim_comm *comm = zipccl_shim_comms_lock(); comm != NULL;
         comm = zipccl_shim_comms_next(comm)) {
        zipccl_shim_totals_add(&totals, comm);
        n += comm->ncomms;
    }
    zipccl_shim_comms_unlock();
    if (n == 0)
        return;
    zipccl_shim_report_file();
    if (!settings->stats || settings->rank > 0)
        return;
    out = zipccl_log_lock();
    fprintf(out, "# zipccl: rank %d, mode %s, NCCL %d, %zu communicators\n", settings->rank,
            zipccl_shim_mode_name(settings->mode), nccl->version, n);
    print_ops(out, &totals);
    print_coded(out, &totals);
    print_verified(out, &totals);
    if (settings->mode == ZIPCCL_SHIM_OBSERVE)
        print_prediction(out);
    zipccl_log_unlock(out);
}
