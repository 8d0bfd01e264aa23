/*
 * sweep_summary.c - what the points of a sweep say together: order, best, where compression pays
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/sweep/sweep_summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const zipccl_sweep_sorts[] = {"order",   "speedup", "comm",   "raw", "adaptive",
                                          "exposed", "tokens",  "memory", NULL};

double zipccl_sweep_tokens(const struct zipccl_sweep_point *p, int mode)
{
    const struct zipccl_result_step *step = &p->outcome.steps[mode];

    if (!step->present || !(step->step_s > 0) || !(p->tokens > 0))
        return (double)NAN;
    return p->tokens / step->step_s / (double)p->nranks;
}

double zipccl_sweep_mfu(const struct zipccl_sweep_point *p, int mode)
{
    const struct zipccl_result_step *step = &p->outcome.steps[mode];

    if (!step->present || !(step->step_s > 0) || !(p->model_flops > 0) || !(p->peak_flops > 0))
        return (double)NAN;
    return p->model_flops / step->step_s / (double)p->nranks / p->peak_flops;
}

bool zipccl_sweep_compared(const struct zipccl_sweep_point *p)
{
    return p->skip == ZIPCCL_SWEEP_RUNS && !p->failed && p->outcome.end_to_end_speedup > 0;
}

/* What comes first has the smaller one; NaN last. */
static double sort_key(const struct zipccl_sweep_point *p, int sort)
{
    const struct zipccl_sweep_outcome *o = &p->outcome;

    switch (sort) {
    case 1: return -o->end_to_end_speedup;
    case 2: return -o->comm_speedup;
    case 3: return o->steps[ZIPCCL_STEP_RAW].step_s;
    case 4: return o->steps[ZIPCCL_STEP_ADAPTIVE].step_s;
    case 5: return -o->exposed_comm_share;
    case 6: {
        double tokens = zipccl_sweep_tokens(p, ZIPCCL_STEP_ADAPTIVE);

        return -(isnan(tokens) ? zipccl_sweep_tokens(p, ZIPCCL_STEP_RAW) : tokens);
    }
    case 7: return p->memory;
    default: return 0;
    }
}

struct keyed {
    const struct zipccl_sweep_point *point;
    double key;
};

static int compare(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;

    if (x->point->failed != y->point->failed)
        return x->point->failed ? 1 : -1;
    if (isnan(x->key) != isnan(y->key))
        return isnan(x->key) ? 1 : -1;
    if (x->key < y->key || x->key > y->key)
        return x->key < y->key ? -1 : 1;
    return x->point->index < y->point->index ? -1 : 1;
}

zipccl_status zipccl_sweep_order(const struct zipccl_sweep *s, int sort,
                                 const struct zipccl_sweep_point ***out, size_t *n,
                                 struct zipccl_error *error)
{
    struct keyed *keyed = malloc((s->npoints + 1) * sizeof *keyed);
    const struct zipccl_sweep_point **points = malloc((s->npoints + 1) * sizeof(*points));

    if (keyed == NULL || points == NULL) {
        free(keyed);
        free((void *)points);
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    }
    *n = 0;
    for (size_t i = 0; i < s->npoints; i++)
        if (s->points[i].skip == ZIPCCL_SWEEP_RUNS)
            keyed[(*n)++] = (struct keyed){&s->points[i], sort_key(&s->points[i], sort)};
    if (sort > 0)
        qsort(keyed, *n, sizeof *keyed, compare);
    for (size_t i = 0; i < *n; i++)
        points[i] = keyed[i].point;
    free(keyed);
    *out = points;
    return ZIPCCL_OK;
}

/* Combinations between two values of 'axis' that are neighbours in its list. */
static size_t stride_of(const struct zipccl_sweep_spec *spec, size_t axis)
{
    size_t n = 1;

    for (size_t i = axis + 1; i < spec->naxes; i++)
        n *= spec->axes[i].n;
    return n;
}

static bool is_numeric(const struct zipccl_sweep_axis *axis)
{
    for (size_t i = 0; i < axis->n; i++)
        if (isnan(axis->numbers[i]))
            return false;
    return axis->n > 1;
}

/* Values of 'axis' by number, ascending. */
static void sort_values(const struct zipccl_sweep_axis *axis, size_t *order)
{
    for (size_t i = 0; i < axis->n; i++) {
        size_t k = i;

        for (; k > 0 && axis->numbers[order[k - 1]] > axis->numbers[i]; k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
}

static double gain(const struct zipccl_sweep_point *p)
{
    return p->outcome.end_to_end_speedup - 1 - ZIPCCL_SWEEP_PAYS;
}

/* Where the gain is zero between two points, in the logarithm where numbers are positive. */
static double crossing_at(double x, double y, double gain_x, double gain_y)
{
    double share = gain_x / (gain_x - gain_y);

    return x > 0 && y > 0 ? x * pow(y / x, share) : x + (y - x) * share;
}

static zipccl_status add_crossing(struct zipccl_sweep_summary *out,
                                  const struct zipccl_sweep_crossing *crossing)
{
    struct zipccl_sweep_crossing *grown =
        realloc(out->crossings, (out->ncrossings + 1) * sizeof *grown);

    if (grown == NULL)
        return ZIPCCL_ERR_NOMEM;
    out->crossings = grown;
    grown[out->ncrossings++] = *crossing;
    return ZIPCCL_OK;
}

/* One line: points that differ in 'axis' alone; 'first' has its first value. */
static zipccl_status look_along(const struct zipccl_sweep *s, size_t axis, size_t first,
                                const size_t *order, struct zipccl_sweep_lines *lines,
                                struct zipccl_sweep_summary *out)
{
    const struct zipccl_sweep_axis *a = &s->spec->axes[axis];
    const struct zipccl_sweep_point *before = NULL;
    size_t stride = stride_of(s->spec, axis), npoints = 0, npays = 0;
    double number_before = 0;

    for (size_t i = 0; i < a->n; i++) {
        const struct zipccl_sweep_point *p = &s->points[first + order[i] * stride];
        double number = a->numbers[order[i]];

        if (!zipccl_sweep_compared(p))
            continue;
        npoints++;
        npays += gain(p) >= 0;
        if (before != NULL && (gain(before) >= 0) != (gain(p) >= 0)) {
            struct zipccl_sweep_crossing c = {
                axis, before, p, crossing_at(number_before, number, gain(before), gain(p)),
                gain(before) >= 0};

            ZIPCCL_TRY(add_crossing(out, &c));
            lines->least = lines->ncrossings > 0 ? fmin(lines->least, c.value) : c.value;
            lines->most = lines->ncrossings > 0 ? fmax(lines->most, c.value) : c.value;
            if (number_before > 0)
                lines->widest = fmax(lines->widest, number / number_before);
            lines->ncrossings++;
            lines->nbelow += c.pays_below;
        }
        before = p;
        number_before = number;
    }
    lines->nlines += npoints > 1;
    lines->always += npoints > 1 && npays == npoints;
    lines->never += npoints > 1 && npays == 0;
    return ZIPCCL_OK;
}

static zipccl_status look_at_axis(const struct zipccl_sweep *s, size_t axis,
                                  struct zipccl_sweep_summary *out)
{
    struct zipccl_sweep_lines *lines = &out->lines[out->nlines];
    size_t order[ZIPCCL_SWEEP_MAX_VALUES];

    sort_values(&s->spec->axes[axis], order);
    *lines = (struct zipccl_sweep_lines){.axis = axis};
    for (size_t i = 0; i < s->npoints; i++)
        if (zipccl_sweep_spec_choice(s->spec, i, axis) == 0)
            ZIPCCL_TRY(look_along(s, axis, i, order, lines, out));
    out->nlines += lines->nlines > 0;
    return ZIPCCL_OK;
}

zipccl_status zipccl_sweep_summarize(const struct zipccl_sweep *s, struct zipccl_sweep_summary *out,
                                     struct zipccl_error *error)
{
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < s->npoints; i++) {
        const struct zipccl_sweep_point *p = &s->points[i];

        if (!zipccl_sweep_compared(p))
            continue;
        out->ncompared++;
        out->npays += gain(p) >= 0;
        if (out->best == NULL ||
            p->outcome.end_to_end_speedup > out->best->outcome.end_to_end_speedup)
            out->best = p;
        if (!isnan(zipccl_sweep_tokens(p, ZIPCCL_STEP_ADAPTIVE)) && p->fits &&
            (out->fastest == NULL || zipccl_sweep_tokens(p, ZIPCCL_STEP_ADAPTIVE) >
                                         zipccl_sweep_tokens(out->fastest, ZIPCCL_STEP_ADAPTIVE)))
            out->fastest = p;
    }
    for (size_t a = 0; a < s->spec->naxes; a++)
        if (is_numeric(&s->spec->axes[a]) && look_at_axis(s, a, out) != ZIPCCL_OK) {
            free(out->crossings);
            return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
        }
    return ZIPCCL_OK;
}

/* Three digits, and no exponent. */
static void put_number(double value, const char *unit, char *out, size_t size)
{
    double step = value > 0 ? pow(10, floor(log10(value)) - 2) : 1;

    snprintf(out, size, "%.12g%s%s", round(value / step) * step, unit[0] != '\0' ? " " : "", unit);
}

void zipccl_sweep_number(const struct zipccl_sweep_axis *axis, double number, char *out,
                         size_t size)
{
    if (strcmp(axis->unit, "B/s") == 0 && strncmp(axis->key, "nic.", 4) == 0)
        put_number(number * 8 / 1e9, "Gb/s", out, size);
    else if (strcmp(axis->unit, "B/s") == 0)
        put_number(number / 1e9, "GB/s", out, size);
    else if (strcmp(axis->unit, "s") == 0)
        put_number(number * 1e6, "us", out, size);
    else if (strcmp(axis->unit, "flop/s") == 0)
        put_number(number / 1e12, "TFLOPS", out, size);
    else
        put_number(number, axis->unit, out, size);
}
