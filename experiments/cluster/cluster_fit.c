/*
 * cluster_fit.c - a cluster file whose links and codec are fitted to measured rows
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/cluster/cluster_fit.h"

#include "experiments/compare/compare_predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void zipccl_link_text(enum zipccl_link_key key, double value, char *out, size_t size)
{
    bool rate = strstr(zipccl_link_key_name(key), "rate") != NULL;
    static const struct {
        double unit;
        const char *name;
    } rates[] = {{1e12, "TBps"}, {1e9, "GBps"}, {1e6, "MBps"}, {1e3, "kBps"}},
      times[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
    int i = 0;

    if (!rate && value < 1e-9) {
        snprintf(out, size, "0us");
        return;
    }
    /* What rounds to a unit is one. */
    while (i < 3 && value * 1.00001 < (rate ? rates[i].unit : times[i].unit))
        i++;
    if (rate)
        snprintf(out, size, "%.5g%s", value / rates[i].unit, rates[i].name);
    else
        snprintf(out, size, "%.4g%s", value / times[i].unit, times[i].name);
}

double zipccl_link_percent(const struct zipccl_link_estimate *e)
{
    return fmax(0.01, 100 * (sqrt(e->high / e->low) - 1));
}

static bool wanted(const struct zipccl_fit_filter *filter, const struct zipccl_row *row)
{
    bool size = filter->nsizes == 0, mode = filter->nmodes == 0;

    /* Sizes are cut to whole elements on every rank. */
    for (size_t i = 0; i < filter->nsizes; i++)
        size = size || (row->size_bytes <= (double)filter->sizes[i] &&
                        row->size_bytes > 0.99 * (double)filter->sizes[i]);
    for (size_t i = 0; i < filter->nmodes; i++)
        mode = mode || strcmp(row->mode, filter->modes[i]) == 0;
    return size && mode;
}

static bool uneven(const struct zipccl_row *row)
{
    return zipccl_is_uneven(row->op);
}

static zipccl_status check_file(const struct zipccl_rows *file, struct zipccl_error *error)
{
    if (file->kind == ZIPCCL_ROWS_REPLAY)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%s: times of a step, where calls share links; expected collectives one "
                           "at a time, schema zipccl.perf or nccl-tests",
                           file->path);
    for (size_t i = 0; i < file->n; i++)
        if (file->rows[i].wrong > 0)
            return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                               "%s: row %u: %.0f wrong elements: what is not right is not measured",
                               file->path, file->rows[i].place, file->rows[i].wrong);
    return ZIPCCL_OK;
}

static bool same_number(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool same_call(const struct zipccl_row *x, const struct zipccl_row *y)
{
    return x->op == y->op && x->dtype == y->dtype && x->redop == y->redop && x->root == y->root &&
           x->count == y->count && x->nranks == y->nranks && x->nodes == y->nodes &&
           x->nchunks == y->nchunks && x->in_place == y->in_place &&
           strcmp(x->mode, y->mode) == 0 && strcmp(x->strategy, y->strategy) == 0 &&
           strcmp(x->effort, y->effort) == 0;
}

static bool same_numbers(const struct zipccl_row *x, const struct zipccl_row *y)
{
    return x->time_s == y->time_s && same_number(x->q1_s, y->q1_s) &&
           same_number(x->q3_s, y->q3_s) && same_number(x->wire_bytes, y->wire_bytes) &&
           same_number(x->encode_s, y->encode_s) && same_number(x->decode_s, y->decode_s);
}

/*
 * A row that both files have, or NULL.  Times of two runs never agree to the last digit; those of
 * nccl-tests have few digits, so there all calls that the files share must agree, two or more.
 */
static const struct zipccl_row *find_same(const struct zipccl_rows *a, const struct zipccl_rows *b)
{
    bool coarse = a->kind == ZIPCCL_ROWS_NCCL || b->kind == ZIPCCL_ROWS_NCCL;
    const struct zipccl_row *found = NULL;
    size_t ncalls = 0, nsame = 0;

    for (size_t i = 0; i < a->n; i++)
        for (size_t k = 0; k < b->n; k++) {
            if (!same_call(&a->rows[i], &b->rows[k]))
                continue;
            ncalls++;
            if (!same_numbers(&a->rows[i], &b->rows[k]))
                continue;
            nsame++;
            found = found != NULL ? found : &b->rows[k];
        }
    return !coarse || (nsame == ncalls && (nsame > 1 || a->n == b->n)) ? found : NULL;
}

/* A model's rows are no evidence beside measured ones, and a row counts once. */
static zipccl_status check_together(const struct zipccl_rows *a, const struct zipccl_rows *b,
                                    struct zipccl_error *error)
{
    const struct zipccl_row *same;

    if (a->measured != b->measured)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%s is %s and %s %s: expected all measured or all simulated", a->path,
                           a->measured ? "measured" : "simulated", b->path,
                           b->measured ? "measured" : "simulated");
    same = find_same(a, b);
    if (same != NULL)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%s: row %u is in %s as well: expected each row once", b->path,
                           same->place, a->path);
    return ZIPCCL_OK;
}

/* Take the rows that count; 'library' those of MPI itself as well. */
static void take_rows(struct zipccl_rows *const *files, size_t nfiles,
                      const struct zipccl_fit_filter *filter, bool library,
                      struct zipccl_cluster_fit *out)
{
    out->nrows = out->npairs = out->nlibrary = out->nfiltered = 0;
    for (size_t f = 0; f < nfiles; f++)
        for (size_t i = 0; i < files[f]->n; i++) {
            const struct zipccl_row *row = &files[f]->rows[i];

            if (!wanted(filter, row)) {
                out->nfiltered++;
            } else if (uneven(row)) {
                out->npairs++;
            } else if (!zipccl_row_has_plan(files[f], row) && !library) {
                out->nlibrary++;
            } else {
                zipccl_row_to_link(row, &out->rows[out->nrows]);
                out->sources[out->nrows] = row;
                out->files[out->nrows++] = files[f];
                out->measured = out->measured || files[f]->measured;
            }
        }
}

static zipccl_status collect(struct zipccl_rows *const *files, size_t nfiles,
                             const struct zipccl_fit_filter *filter, struct zipccl_cluster_fit *out,
                             struct zipccl_error *error)
{
    size_t most = 0;

    for (size_t f = 0; f < nfiles; f++) {
        ZIPCCL_TRY(check_file(files[f], error));
        for (size_t g = 0; g < f; g++)
            ZIPCCL_TRY(check_together(files[g], files[f], error));
        most += files[f]->n;
    }
    out->rows = calloc(most + 1, sizeof *out->rows);
    out->sources = calloc(most + 1, sizeof *out->sources);
    out->files = calloc(most + 1, sizeof *out->files);
    out->predicted_s = calloc(most + 1, sizeof *out->predicted_s);
    if (out->rows == NULL || out->sources == NULL || out->files == NULL || out->predicted_s == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    take_rows(files, nfiles, filter, false, out);
    if (out->nrows == 0)
        take_rows(files, nfiles, filter, true, out);
    if (out->nrows == 0)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%s%s: no row left: %zu are of other sizes or modes, %zu of sendrecv or "
                           "alltoallv",
                           files[0]->path, nfiles > 1 ? " and others" : "", out->nfiltered,
                           out->npairs);
    return ZIPCCL_OK;
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* The world of the rows. */
static zipccl_status put_world(const struct zipccl_cluster_fit *fit,
                               struct zipccl_cluster_file *cluster, struct zipccl_error *error)
{
    uint32_t nodes = 1, ranks = 1;
    char text[32], source[256];

    for (size_t i = 0; i < fit->nrows; i++) {
        const struct zipccl_link_row *r = &fit->rows[i];
        uint32_t each = r->nnodes > 0 ? (r->nranks + r->nnodes - 1) / r->nnodes : r->nranks;

        nodes = r->nnodes > nodes ? r->nnodes : nodes;
        ranks = each > ranks ? each : ranks;
    }
    snprintf(source, sizeof source, "largest of the rows of %.80s", file_name(fit->files[0]->path));
    snprintf(text, sizeof text, "%u", nodes);
    ZIPCCL_TRY(zipccl_cluster_put(cluster, "nodes", text, source, error));
    snprintf(text, sizeof text, "%u", ranks);
    return zipccl_cluster_put(cluster, "gpus_per_node", text, source, error);
}

static size_t count_files(const struct zipccl_cluster_fit *fit)
{
    size_t n = 0;

    for (size_t i = 0; i < fit->nrows; i++)
        n += i == 0 || fit->files[i] != fit->files[i - 1];
    return n;
}

static void source_text(const struct zipccl_cluster_fit *fit, enum zipccl_link_key key, char *out,
                        size_t size)
{
    const struct zipccl_link_estimate *e = &fit->fit.estimates[key];
    size_t nfiles = count_files(fit);
    char from[160], others[40] = "";

    if (nfiles > 1)
        snprintf(others, sizeof others, " and %zu more", nfiles - 1);
    snprintf(from, sizeof from, "fitted from %.80s%s%s, %zu rows", file_name(fit->files[0]->path),
             others, fit->measured ? " (measured)" : " (simulated)", e->nrows);
    if (e->state == ZIPCCL_LINK_FITTED)
        snprintf(out, size, "%s, +-%.2g %%", from, zipccl_link_percent(e));
    else
        snprintf(out, size, "%s: no row shows %s", from,
                 e->value > 0 ? "that it is the limit, and it is at least this" : "any");
}

static zipccl_status put_value(const struct zipccl_cluster_fit *fit, enum zipccl_link_key key,
                               struct zipccl_cluster_file *cluster, struct zipccl_error *error)
{
    const struct zipccl_link_estimate *e = &fit->fit.estimates[key];
    char text[32], source[256];

    zipccl_link_text(key, e->value, text, sizeof text);
    source_text(fit, key, source, sizeof source);
    return zipccl_cluster_put(cluster, zipccl_link_key_name(key), text, source, error);
}

static bool found(const struct zipccl_cluster_fit *fit, enum zipccl_link_key key)
{
    enum zipccl_link_state state = fit->fit.estimates[key].state;

    return state == ZIPCCL_LINK_FITTED || state == ZIPCCL_LINK_BOUND;
}

/* The rates of max ratio come in a pair: of one that rows do not tell, say what was taken for it. */
static zipccl_status put_ratio(const struct zipccl_cluster_fit *fit,
                               struct zipccl_cluster_file *cluster, struct zipccl_error *error)
{
    bool both[2] = {found(fit, ZIPCCL_LINK_RATIO_ENCODE_RATE),
                    found(fit, ZIPCCL_LINK_RATIO_DECODE_RATE)};
    struct zipccl_cluster now;
    struct zipccl_error unused;

    /* With both there is nothing to add; a pair that was there is whole. */
    if (both[0] == both[1] || zipccl_cluster_get(cluster, &now, &unused) == ZIPCCL_OK)
        return ZIPCCL_OK;
    enum zipccl_link_key key =
        both[0] ? ZIPCCL_LINK_RATIO_DECODE_RATE : ZIPCCL_LINK_RATIO_ENCODE_RATE;
    char text[32];

    zipccl_link_text(key, fit->fit.estimates[key].value, text, sizeof text);
    return zipccl_cluster_put(cluster, zipccl_link_key_name(key), text,
                              "assumption: a tenth of the fast mode's rate; rows do not tell",
                              error);
}

/* What codec and additions move, the memory can: at least two bytes for each. */
static zipccl_status raise_memory(const struct zipccl_cluster_fit *fit, double hbm_Bps,
                                  struct zipccl_cluster_file *cluster, bool *raised,
                                  struct zipccl_error *error)
{
    static const enum zipccl_link_key movers[] = {ZIPCCL_LINK_ENCODE_RATE, ZIPCCL_LINK_DECODE_RATE,
                                                  ZIPCCL_LINK_REDUCE_RATE};
    double most = 0;
    char text[32];

    for (size_t i = 0; i < sizeof movers / sizeof *movers; i++)
        if (found(fit, movers[i]))
            most = fmax(most, fit->fit.estimates[movers[i]].value);
    *raised = 2 * most > hbm_Bps;
    if (!*raised)
        return ZIPCCL_OK;
    zipccl_link_text(ZIPCCL_LINK_ENCODE_RATE, 2.01 * most, text, sizeof text);
    return zipccl_cluster_put(
        cluster, "gpu.hbm_rate", text,
        "at least: twice the fitted rate of codec or additions, which read and "
        "write",
        error);
}

/* The fit knows its rows by number: name the row's file, and its place there. */
static zipccl_status fit_rows(struct zipccl_cluster_fit *out,
                              const struct zipccl_cost_params *params, struct zipccl_error *error)
{
    struct zipccl_error why = {""};
    zipccl_status status =
        zipccl_link_fit(out->rows, out->nrows, params, &out->fit, out->predicted_s, &why);
    char *end = why.text;
    unsigned long row = 0;

    if (status == ZIPCCL_OK)
        return ZIPCCL_OK;
    if (strncmp(why.text, "row ", 4) == 0)
        row = strtoul(why.text + 4, &end, 10);
    if (row == 0 || row > out->nrows || *end != ':')
        return zipccl_fail(error, status, "%s%s: %s", out->files[0]->path,
                           count_files(out) > 1 ? " and others" : "", why.text);
    return zipccl_fail(error, status, "%s: row %u%s", out->files[row - 1]->path,
                       out->sources[row - 1]->place, end);
}

zipccl_status zipccl_cluster_fit_run(struct zipccl_rows *const *files, size_t nfiles,
                                     const struct zipccl_fit_filter *filter,
                                     struct zipccl_cluster_file *cluster,
                                     struct zipccl_cluster_fit *out, struct zipccl_error *error)
{
    bool again = true;

    *out = (struct zipccl_cluster_fit){.nrows = 0};
    ZIPCCL_TRY(collect(files, nfiles, filter, out, error));
    ZIPCCL_TRY(put_world(out, cluster, error));
    /* A copy's cost follows the memory: once that is raised, fit with it. */
    for (int round = 0; round < 2 && again; round++) {
        struct zipccl_cost_params params;
        struct zipccl_cluster base;

        ZIPCCL_TRY(zipccl_cluster_get(cluster, &base, error));
        zipccl_cluster_cost_params(&base, &params);
        ZIPCCL_TRY(fit_rows(out, &params, error));
        ZIPCCL_TRY(raise_memory(out, base.gpu_hbm_Bps, cluster, &again, error));
    }
    for (int k = 0; k < ZIPCCL_NUM_LINK_KEYS; k++)
        if (found(out, (enum zipccl_link_key)k))
            ZIPCCL_TRY(put_value(out, (enum zipccl_link_key)k, cluster, error));
    return put_ratio(out, cluster, error);
}

void zipccl_cluster_fit_release(struct zipccl_cluster_fit *fit)
{
    free(fit->rows);
    free((void *)fit->sources);
    free((void *)fit->files);
    free(fit->predicted_s);
    *fit = (struct zipccl_cluster_fit){.nrows = 0};
}
