/*
 * sweep_picture.c - maps of the speedup over two axes of a sweep
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/sweep_html.h"

#include "analysis/document.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Layout in SVG units. */
enum { CELL_X = 86, CELL_Y = 30, LEFT = 190, TOP = 46, BOTTOM = 12, LETTER = 7 };

/* An axis of the document: its name and values. */
struct axis {
    yajl_val object;
    const char *name;
    size_t n;
    size_t *order; /* [n] values as they are drawn: by number where all are numbers */
};

struct map {
    yajl_val sweep;
    const struct axis *x, *y; /* y NULL: one row */
    int level;                /* of headings */
    double most;              /* largest gain of all maps */
    yajl_val *cells;          /* [ny * nx] points; NULL: none */
};

static const char *value_of(const struct axis *axis, size_t i)
{
    yajl_val value = zipccl_document_item(axis->object, "values", i);

    return YAJL_IS_STRING(value) ? YAJL_GET_STRING(value) : "";
}

/* NaN where it is none. */
static double number_of(const struct axis *axis, size_t i)
{
    yajl_val value = zipccl_document_item(axis->object, "numbers", i);

    return YAJL_IS_NUMBER(value) ? strtod(YAJL_GET_NUMBER(value), NULL) : (double)NAN;
}

static bool is_numeric(const struct axis *axis)
{
    for (size_t i = 0; i < axis->n; i++)
        if (isnan(number_of(axis, i)))
            return false;
    return true;
}

static bool open_axis(yajl_val sweep, size_t i, struct axis *out)
{
    out->object = zipccl_document_item(sweep, "axes", i);
    out->name = zipccl_document_text(out->object, "name");
    out->n = zipccl_document_length(out->object, "values");
    out->order = malloc((out->n + 1) * sizeof *out->order);
    if (out->order == NULL)
        return false;
    bool numeric = is_numeric(out);
    for (size_t k = 0; k < out->n; k++) {
        size_t at = k;

        for (; numeric && at > 0 && number_of(out, out->order[at - 1]) > number_of(out, k); at--)
            out->order[at] = out->order[at - 1];
        out->order[at] = k;
    }
    return true;
}

/* Where a point lies on 'axis', as drawn; axis->n if nowhere. */
static size_t place_of(yajl_val point, const struct axis *axis)
{
    const char *value = zipccl_document_text(zipccl_document_get(point, "axes"), axis->name);

    for (size_t i = 0; i < axis->n; i++)
        if (strcmp(value_of(axis, axis->order[i]), value) == 0)
            return i;
    return axis->n;
}

static double gain_of(yajl_val point)
{
    return zipccl_document_number(point, "end_to_end_speedup") - 1;
}

/* True if 'point' is in the map of 'first': all axes but two agree. */
static bool same_map(const struct map *map, yajl_val point, yajl_val first)
{
    yajl_val axes = zipccl_document_get(point, "axes"), other = zipccl_document_get(first, "axes");

    for (size_t i = 0; i < zipccl_document_length(map->sweep, "axes"); i++) {
        const char *name =
            zipccl_document_text(zipccl_document_item(map->sweep, "axes", i), "name");

        if (strcmp(name, map->x->name) == 0 || (map->y != NULL && strcmp(name, map->y->name) == 0))
            continue;
        if (strcmp(zipccl_document_text(axes, name), zipccl_document_text(other, name)) != 0)
            return false;
    }
    return true;
}

/* What all cells of a map have in common, of axes with several values. */
static void put_title(const struct map *map, yajl_val first, FILE *out)
{
    bool any = false;

    for (size_t i = 0; i < zipccl_document_length(map->sweep, "axes"); i++) {
        yajl_val axis = zipccl_document_item(map->sweep, "axes", i);
        const char *name = zipccl_document_text(axis, "name");

        if (zipccl_document_length(axis, "values") < 2 || strcmp(name, map->x->name) == 0 ||
            (map->y != NULL && strcmp(name, map->y->name) == 0))
            continue;
        if (any)
            fputs(", ", out);
        else
            fprintf(out, "<h%d>", map->level);
        zipccl_put_escaped(name, out);
        fputc(' ', out);
        zipccl_put_escaped(zipccl_document_text(zipccl_document_get(first, "axes"), name), out);
        any = true;
    }
    if (any)
        fprintf(out, "</h%d>\n", map->level);
}

static void put_ms(const char *before, yajl_val point, const char *key, FILE *out)
{
    double ms = 1e3 * zipccl_document_number(point, key);

    if (isfinite(ms))
        fprintf(out, "%s %.4g", before, ms);
    else
        fprintf(out, "%s \xe2\x80\x93", before);
}

static void put_cell(const struct map *map, size_t row, size_t column, FILE *out)
{
    yajl_val point = map->cells[row * map->x->n + column];
    double gain = point != NULL ? gain_of(point) : (double)NAN;
    int x = LEFT + (int)column * CELL_X, y = TOP + (int)row * CELL_Y;

    fputs("<g><title>", out);
    zipccl_put_escaped(value_of(map->x, map->x->order[column]), out);
    if (map->y != NULL) {
        fputs(", ", out);
        zipccl_put_escaped(value_of(map->y, map->y->order[row]), out);
    }
    if (point == NULL)
        fputs(": not run", out);
    else if (isnan(gain))
        fputs(": no speedup", out);
    else {
        put_ms(": raw", point, "step_time_raw_s", out);
        put_ms(" ms, adaptive", point, "step_time_adaptive_s", out);
        fputs(" ms, limit ", out);
        zipccl_put_escaped(zipccl_document_text(point, "limit"), out);
    }
    fprintf(out, "</title><rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"",
            isnan(gain)   ? "none"
            : gain < 0.02 ? "flat"
                          : "gain-cell",
            x, y, CELL_X, CELL_Y);
    if (!isnan(gain) && gain >= 0.02)
        fprintf(out, " fill-opacity=\"%.2f\"", 0.15 + 0.75 * fmin(1, gain / map->most));
    fprintf(out, "/><text x=\"%d\" y=\"%d\" text-anchor=\"middle\">", x + CELL_X / 2,
            y + CELL_Y / 2 + 5);
    if (isnan(gain))
        fputs("\xe2\x80\x93", out);
    else
        fprintf(out, "%.3f", 1 + gain);
    fputs("</text></g>\n", out);
}

static void put_labels(const struct map *map, size_t nrows, FILE *out)
{
    fprintf(out, "<text class=\"name\" x=\"%d\" y=\"16\">", LEFT);
    zipccl_put_escaped(map->x->name, out);
    fputs("</text>\n", out);
    for (size_t i = 0; i < map->x->n; i++) {
        fprintf(out, "<text class=\"tick\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">",
                LEFT + (int)i * CELL_X + CELL_X / 2, TOP - 8);
        zipccl_put_escaped(value_of(map->x, map->x->order[i]), out);
        fputs("</text>\n", out);
    }
    if (map->y == NULL)
        return;
    fprintf(out, "<text class=\"name\" x=\"%d\" y=\"%d\" text-anchor=\"end\">", LEFT - 10, TOP - 8);
    zipccl_put_escaped(map->y->name, out);
    fputs("</text>\n", out);
    for (size_t i = 0; i < nrows; i++) {
        const char *text = value_of(map->y, map->y->order[i]);
        size_t length = strlen(text), room = (LEFT - 10) / LETTER;

        /* The end of a long path tells more than its beginning. */
        fprintf(out, "<text class=\"tick\" x=\"%d\" y=\"%d\" text-anchor=\"end\">", LEFT - 10,
                TOP + (int)i * CELL_Y + CELL_Y / 2 + 5);
        zipccl_put_escaped(length > room ? text + length - room : text, out);
        fputs("</text>\n", out);
    }
}

static void put_map(const struct map *map, FILE *out)
{
    size_t nrows = map->y != NULL ? map->y->n : 1;
    int width = LEFT + (int)map->x->n * CELL_X + 10;

    fprintf(out,
            "<figure><svg viewBox=\"0 0 %d %d\" style=\"max-width: %dpx\" role=\"img\" "
            "aria-label=\"Speedup of the step by ",
            width, TOP + (int)nrows * CELL_Y + BOTTOM, width);
    zipccl_put_escaped(map->x->name, out);
    fputs("\">\n", out);
    put_labels(map, nrows, out);
    for (size_t row = 0; row < nrows; row++)
        for (size_t column = 0; column < map->x->n; column++)
            put_cell(map, row, column, out);
    fputs("</svg></figure>\n", out);
}

/* Fill the cells of the map that 'first' is in; points of it are marked in 'done'. */
static void fill_map(struct map *map, yajl_val first, bool *done)
{
    size_t n = zipccl_document_length(map->sweep, "points");

    memset((void *)map->cells, 0,
           map->x->n * (map->y != NULL ? map->y->n : 1) * sizeof(*map->cells));
    for (size_t i = 0; i < n; i++) {
        yajl_val point = zipccl_document_item(map->sweep, "points", i);
        size_t column, row;

        if (done[i] || !same_map(map, point, first))
            continue;
        done[i] = true;
        column = place_of(point, map->x);
        row = map->y != NULL ? place_of(point, map->y) : 0;
        if (column < map->x->n && row < (map->y != NULL ? map->y->n : 1))
            map->cells[row * map->x->n + column] = point;
    }
}

static zipccl_status put_maps(yajl_val sweep, const struct axis *x, const struct axis *y, int level,
                              FILE *out, struct zipccl_error *error)
{
    size_t npoints = zipccl_document_length(sweep, "points"), nmaps = 0, nleft = 0;
    struct map map = {.sweep = sweep, .x = x, .y = y, .level = level, .most = 0.02};
    bool *done = calloc(npoints + 1, sizeof *done);

    map.cells = calloc(x->n * (y != NULL ? y->n : 1), sizeof(*map.cells));
    if (done == NULL || map.cells == NULL) {
        free(done);
        free((void *)map.cells);
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "page: out of memory");
    }
    for (size_t i = 0; i < npoints; i++)
        map.most = fmax(map.most, gain_of(zipccl_document_item(sweep, "points", i)));
    for (size_t i = 0; i < npoints; i++) {
        yajl_val first = zipccl_document_item(sweep, "points", i);

        if (done[i])
            continue;
        if (nmaps == ZIPCCL_SWEEP_MAX_MAPS) {
            nleft++;
            continue;
        }
        fill_map(&map, first, done);
        put_title(&map, first, out);
        put_map(&map, out);
        nmaps++;
    }
    if (nleft > 0)
        fprintf(out, "<p>%zu points more are in the table alone.</p>\n", nleft);
    free(done);
    free((void *)map.cells);
    return ZIPCCL_OK;
}

/* nic.rate, or the numeric axis with most values; -1 if there is none with two. */
static int choose(const struct axis *axes, size_t naxes, int not_this, bool numeric)
{
    int best = -1;

    for (size_t i = 0; i < naxes; i++) {
        if ((int)i == not_this || axes[i].n < 2 || (numeric && !is_numeric(&axes[i])))
            continue;
        if (numeric && strcmp(axes[i].name, "nic.rate") == 0)
            return (int)i;
        if (best < 0 || axes[i].n > axes[best].n)
            best = (int)i;
    }
    return best;
}

zipccl_status zipccl_sweep_maps(yajl_val sweep, int level, FILE *out, struct zipccl_error *error)
{
    size_t naxes = zipccl_document_length(sweep, "axes"), nopen = 0;
    struct axis *axes = calloc(naxes + 1, sizeof *axes);
    zipccl_status status = ZIPCCL_OK;

    while (axes != NULL && nopen < naxes && open_axis(sweep, nopen, &axes[nopen]))
        nopen++;
    if (axes == NULL || nopen < naxes)
        status = zipccl_fail(error, ZIPCCL_ERR_NOMEM, "page: out of memory");
    if (status == ZIPCCL_OK) {
        int x = choose(axes, naxes, -1, true), y;

        x = x < 0 ? choose(axes, naxes, -1, false) : x;
        y = choose(axes, naxes, x, false);
        if (x >= 0)
            status = put_maps(sweep, &axes[x], y >= 0 ? &axes[y] : NULL, level, out, error);
    }
    for (size_t i = 0; i < nopen; i++)
        free(axes[i].order);
    free(axes);
    return status;
}
