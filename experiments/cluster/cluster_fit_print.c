/*
 * cluster_fit_print.c - what a fit found, as tables
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/cluster/cluster_fit.h"

#include <string.h>

/* A row that is further off is worth a remark. */
#define POOR 0.2

/* Why a parameter is as it was, or what is known of it. */
static void print_reason(const struct zipccl_link_estimate *e, enum zipccl_link_key key, FILE *out)
{
    switch (e->state) {
    case ZIPCCL_LINK_NO_ROWS: fputs("as it was: no row's time depends on it", out); break;
    case ZIPCCL_LINK_UNCLEAR:
        fputs("as it was: the rows do not tell it", out);
        if (e->with != key)
            fprintf(out, " from %s", zipccl_link_key_name(e->with));
        break;
    default:
        fputs(e->value > 0 ? "at least: it is never the limit in these rows"
                           : "none can be seen in these rows",
              out);
    }
}

static void print_parameter(const struct zipccl_cluster_fit *fit, enum zipccl_link_key key,
                            FILE *out)
{
    const struct zipccl_link_estimate *e = &fit->fit.estimates[key];
    bool rate = strstr(zipccl_link_key_name(key), "rate") != NULL;
    char value[32], low[32], high[32];

    if (e->state == ZIPCCL_LINK_NO_ROWS && !(e->value > 0) && rate)
        return;
    zipccl_link_text(key, e->value, value, sizeof value);
    if (rate && !(e->value > 0))
        snprintf(value, sizeof value, "none");
    fprintf(out, "  %-24s %-12s ", zipccl_link_key_name(key), value);
    if (e->state == ZIPCCL_LINK_FITTED) {
        zipccl_link_text(key, e->low, low, sizeof low);
        zipccl_link_text(key, e->high, high, sizeof high);
        fprintf(out, "%s to %s (+-%.2g %%), %zu rows", low, high, zipccl_link_percent(e), e->nrows);
    } else {
        print_reason(e, key, out);
    }
    fputc('\n', out);
}

static void print_row(const struct zipccl_cluster_fit *fit, size_t i, FILE *out)
{
    const struct zipccl_row *row = fit->sources[i];
    const struct zipccl_link_row *r = &fit->rows[i];

    fprintf(out, "  %-14s %12.0f %-5s %5ux%-3u %-22.22s %6u %12.1f %12.1f %+8.1f\n",
            zipccl_op_name(r->op), row->size_bytes, zipccl_dtype_name(r->dtype), r->nnodes,
            r->nnodes > 0 ? r->nranks / r->nnodes : 0, r->strategy, r->nchunks, 1e6 * r->time_s,
            1e6 * fit->predicted_s[i], 100 * (fit->predicted_s[i] / r->time_s - 1));
}

void zipccl_cluster_fit_print(const struct zipccl_cluster_fit *fit, const char *base, FILE *out)
{
    size_t nfiles = 0;

    for (size_t i = 0; i < fit->nrows; i++)
        nfiles += i == 0 || fit->files[i] != fit->files[i - 1];
    fprintf(out, "zipccl cluster fit: %zu %srows of %zu file%s, base %s\n", fit->nrows,
            fit->measured ? "measured " : "SIMULATED ", nfiles, nfiles == 1 ? "" : "s", base);
    if (fit->nfiltered > 0)
        fprintf(out, "  left out: %zu rows of other sizes or modes\n", fit->nfiltered);
    if (fit->npairs > 0)
        fprintf(out, "  left out: %zu rows of sendrecv and alltoallv\n", fit->npairs);
    if (fit->nlibrary > 0)
        fprintf(out, "  left out: %zu rows of MPI's own collectives, whose algorithms it chooses\n",
                fit->nlibrary);
    fprintf(out, "\n  %-24s %-12s %s\n", "key", "value", "95 % interval");
    for (int k = 0; k < ZIPCCL_NUM_LINK_KEYS; k++)
        print_parameter(fit, (enum zipccl_link_key)k, out);
    fprintf(out, "\n  %-14s %12s %-5s %9s %-22s %6s %12s %12s %8s\n", "op", "bytes", "type",
            "nodes", "strategy", "chunks", "measured us", "model us", "off %");
    for (size_t i = 0; i < fit->nrows; i++)
        print_row(fit, i, out);
    fprintf(out,
            "\n  off by %.1f %% at the median, %.1f %% at worst, in the rows it was fitted to\n",
            100 * fit->fit.median, 100 * fit->fit.worst);
    if (fit->fit.worst > POOR)
        fputs("  one alpha and one rate a level do not describe all of these rows: --sizes fits "
              "those "
              "that matter\n",
              out);
}
