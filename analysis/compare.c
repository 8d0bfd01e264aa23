/*
 * compare.c - which rows of two results are the same call, and how far they differ
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const zipccl_compare_modes[4] = {"raw", "native", "compressed", "adaptive"};

double zipccl_compare_bytes(const struct zipccl_row *row)
{
    if (isfinite(row->size_bytes))
        return row->size_bytes;
    return row->calls > 0 ? row->raw_bytes / (double)row->calls : row->raw_bytes;
}

/* What two rows differ in, the most telling last: a later one is a nearer miss.  NULL: nothing. */
static const char *difference(const struct zipccl_row *a, const struct zipccl_row *b,
                              const struct zipccl_compare_options *options, bool places,
                              int *nearness)
{
    bool reduces = a->op == ZIPCCL_REDUCE_SCATTER || a->op == ZIPCCL_ALL_REDUCE;
    bool names = a->strategy[0] != '\0' && b->strategy[0] != '\0' && !options->any_strategy;
    const struct {
        bool same;
        const char *name;
    } checks[] = {
        {a->op == b->op, "op"},
        {a->dtype == b->dtype, "type"},
        {!reduces || a->redop == b->redop, "reduction"},
        {a->op != ZIPCCL_BROADCAST || a->root == b->root, "root"},
        {strcmp(a->group, b->group) == 0, "group"},
        {strcmp(a->stream, b->stream) == 0, "stream"},
        {a->nranks == b->nranks, "ranks"},
        {a->nodes == b->nodes || a->nodes == 0 || b->nodes == 0, "nodes"},
        {a->count == b->count, "count"},
        {a->calls == b->calls, "calls"},
        {strcmp(a->mode, b->mode) == 0, "mode"},
        {!places || a->in_place == b->in_place, "in place"},
        {!names || strcmp(a->strategy, b->strategy) == 0, "strategy"},
        {!names || a->nchunks == b->nchunks, "chunks"},
        {!names || a->effort[0] == '\0' || b->effort[0] == '\0' ||
             strcmp(a->effort, b->effort) == 0,
         "effort"},
    };

    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (!checks[i].same) {
            *nearness = (int)i;
            return checks[i].name;
        }
    return NULL;
}

/* The row of 'rows' that is the same call as 'row', else NULL and in what the nearest differs. */
static const struct zipccl_row *partner(const struct zipccl_rows *rows,
                                        const struct zipccl_row *row,
                                        const struct zipccl_compare_options *options,
                                        const char **why)
{
    int nearest = -1, nearness = 0;

    *why = "there are no rows";
    /* A row of the same place first; a simulated one knows no places. */
    for (int places = 1; places >= (rows->measured ? 1 : 0); places--)
        for (size_t i = 0; i < rows->n; i++) {
            const char *d = difference(&rows->rows[i], row, options, places != 0, &nearness);

            if (d == NULL)
                return &rows->rows[i];
            if (nearness > nearest) {
                nearest = nearness;
                *why = d;
            }
        }
    return NULL;
}

static zipccl_status check_kinds(const struct zipccl_compare *c, struct zipccl_error *error)
{
    bool step = c->first->kind == ZIPCCL_ROWS_REPLAY;

    for (size_t i = 0; i < c->nseconds; i++) {
        const struct zipccl_rows *file = c->seconds[i];

        if ((file->kind == ZIPCCL_ROWS_REPLAY) != step)
            return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                               "%s is %s, %s is %s: expected two of one kind", c->first->path,
                               step ? "a step" : "collectives one at a time", file->path,
                               step ? "collectives one at a time" : "a step");
        if (c->first->measured && !file->measured)
            return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                               "%s is measured and %s simulated: expected the prediction first",
                               c->first->path, file->path);
        if (file->measured != c->seconds[0]->measured)
            return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                               "%s is %s and %s %s: expected the same of all but the first",
                               c->seconds[0]->path,
                               c->seconds[0]->measured ? "measured" : "simulated", file->path,
                               file->measured ? "measured" : "simulated");
    }
    return ZIPCCL_OK;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, by_value);
    return n % 2 != 0 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* Sum up the pairs of 'op' and 'mode'; negative: of all. */
static void sum_up(const struct zipccl_compare *c, int op, int mode, double *scratch,
                   struct zipccl_compare_sum *out)
{
    size_t n = 0;

    *out = (struct zipccl_compare_sum){.n = 0};
    for (int sign = 0; sign < 2; sign++) {
        n = 0;
        for (size_t i = 0; i < c->npairs; i++) {
            const struct zipccl_row *row = c->pairs[i].second;

            if ((op >= 0 && (int)row->op != op) ||
                (mode >= 0 && strcmp(row->mode, zipccl_compare_modes[mode]) != 0))
                continue;
            scratch[n++] = sign ? c->pairs[i].error : fabs(c->pairs[i].error);
        }
        if (n == 0)
            return;
        *(sign ? &out->bias : &out->median) = median(scratch, n);
        if (!sign)
            out->worst = scratch[n - 1];
    }
    out->n = n;
}

static bool large(const struct zipccl_row *row, const struct zipccl_compare_options *options)
{
    return !(options->least_bytes > 0) || zipccl_compare_bytes(row) >= options->least_bytes;
}

static void pair_rows(struct zipccl_compare *c, const struct zipccl_compare_options *options,
                      bool *used)
{
    const char *why;

    for (size_t f = 0; f < c->nseconds; f++)
        for (size_t i = 0; i < c->seconds[f]->n; i++) {
            const struct zipccl_row *row = &c->seconds[f]->rows[i];
            const struct zipccl_row *found;

            if (!large(row, options))
                continue;
            found = partner(c->first, row, options, &why);
            if (found == NULL) {
                c->singles[c->nsingles++] =
                    (struct zipccl_compare_single){c->seconds[f], row, false, why};
                continue;
            }
            used[found - c->first->rows] = true;
            c->pairs[c->npairs++] = (struct zipccl_compare_pair){
                found, row,
                c->predicts ? found->time_s / row->time_s - 1 : row->time_s / found->time_s - 1};
        }
    for (size_t i = 0; i < c->first->n; i++) {
        const struct zipccl_row *row = &c->first->rows[i];

        if (used[i] || !large(row, options))
            continue;
        for (size_t f = 0; f < c->nseconds; f++)
            if (partner(c->seconds[f], row, options, &why) != NULL)
                why = "nothing: another row is of the same call";
        c->singles[c->nsingles++] = (struct zipccl_compare_single){c->first, row, true, why};
    }
}

zipccl_status zipccl_compare_rows(const struct zipccl_rows *first,
                                  struct zipccl_rows *const *seconds, size_t nseconds,
                                  const struct zipccl_compare_options *options,
                                  struct zipccl_compare *out, struct zipccl_error *error)
{
    struct zipccl_compare c = {.first = first, .seconds = seconds, .nseconds = nseconds};
    size_t most = first->n;
    double *scratch;
    bool *used;

    if (nseconds == 0)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "nothing to compare with");
    ZIPCCL_TRY(check_kinds(&c, error));
    c.predicts = !first->measured && seconds[0]->measured;
    for (size_t f = 0; f < nseconds; f++)
        most += seconds[f]->n;
    c.pairs = calloc(most, sizeof *c.pairs);
    c.singles = calloc(most, sizeof *c.singles);
    scratch = calloc(most, sizeof *scratch);
    used = calloc(most, sizeof *used);
    if (c.pairs == NULL || c.singles == NULL || scratch == NULL || used == NULL) {
        zipccl_compare_release(&c);
        free(scratch);
        free(used);
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    }
    pair_rows(&c, options, used);
    sum_up(&c, -1, -1, scratch, &c.all);
    for (int op = 0; op < ZIPCCL_NUM_OPS; op++)
        sum_up(&c, op, -1, scratch, &c.by_op[op]);
    for (int mode = 0; mode < 4; mode++)
        sum_up(&c, -1, mode, scratch, &c.by_mode[mode]);
    free(scratch);
    free(used);
    *out = c;
    return ZIPCCL_OK;
}

void zipccl_compare_release(struct zipccl_compare *compare)
{
    free(compare->pairs);
    free(compare->singles);
    compare->pairs = NULL;
    compare->singles = NULL;
}
