/*
 * perf_picture.c - busbw over size, a line a mode, as inline SVG
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/perf_page.h"

#include "analysis/document.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Layout in SVG units. */
enum { WIDTH = 640, HEIGHT = 300, LEFT = 80, TOP = 14, BOTTOM = 54, LEGEND = 150, MARK = 4 };

static const char *const modes[] = {"raw", "native", "compressed", "adaptive"};

enum { NUM_MODES = sizeof modes / sizeof *modes };

const char zipccl_perf_style[] =
    "svg .line { fill: none; stroke-width: 2; }\n"
    "svg .m-raw { stroke: var(--soft); } svg .m-native { stroke: var(--reduce_scatter); }\n"
    "svg .m-compressed { stroke: var(--all_gather); } svg .m-adaptive { stroke: var(--codec); }\n"
    "svg .dot { fill: var(--page); stroke-width: 2; }\n";

/* What is drawn: points of one mode after the other, by size. */
struct chart {
    const struct zipccl_row **points; /* [n] */
    size_t n;
    double low, high, most; /* log2 of sizes; GB/s */
};

static int mode_of(const struct zipccl_row *row)
{
    for (int m = 0; m < NUM_MODES; m++)
        if (strcmp(row->mode, modes[m]) == 0)
            return m;
    return 0;
}

static int by_mode_and_size(const void *a, const void *b)
{
    const struct zipccl_row *x = *(const struct zipccl_row *const *)a;
    const struct zipccl_row *y = *(const struct zipccl_row *const *)b;
    int order = mode_of(x) - mode_of(y);

    if (order == 0)
        order = (x->size_bytes > y->size_bytes) - (x->size_bytes < y->size_bytes);
    return order != 0 ? order : (x->place > y->place) - (x->place < y->place);
}

static double at_x(const struct chart *c, const struct zipccl_row *row)
{
    return LEFT + WIDTH * (log2(row->size_bytes) - c->low) / (c->high - c->low);
}

static double at_y(const struct chart *c, double GBps)
{
    return TOP + HEIGHT - HEIGHT * GBps / c->most;
}

static void put_size(double nbytes, char *out, size_t size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;

    while (nbytes >= 1024 && unit < 4) {
        nbytes /= 1024;
        unit++;
    }
    snprintf(out, size, "%.4g %s", nbytes, units[unit]);
}

/* Powers of two, at most eight of them. */
static void put_sizes(const struct chart *c, FILE *out)
{
    int first = (int)ceil(c->low), last = (int)floor(c->high), step = (last - first) / 8 + 1;

    for (int power = first; power <= last; power += step) {
        double x = LEFT + WIDTH * (power - c->low) / (c->high - c->low);
        char text[32];

        put_size(ldexp(1, power), text, sizeof text);
        fprintf(out,
                "<line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>\n"
                "<text class=\"tick\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                x, TOP, x, TOP + HEIGHT, x, TOP + HEIGHT + 18, text);
    }
    fprintf(out, "<text class=\"name\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">size</text>\n",
            LEFT + WIDTH / 2, TOP + HEIGHT + 40);
}

static void put_rates(const struct chart *c, FILE *out)
{
    double power = pow(10, floor(log10(c->most / 5))), step = power;
    static const double factors[] = {1, 2, 5, 10};

    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        step = factors[i] * power;
        if (c->most / step <= 6)
            break;
    }
    for (int i = 0; i * step <= c->most; i++)
        fprintf(out,
                "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n"
                "<text class=\"tick\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.6g</text>\n",
                LEFT, at_y(c, i * step), LEFT + WIDTH, at_y(c, i * step), LEFT - 8,
                at_y(c, i * step) + 4, i * step);
    fprintf(out,
            "<text class=\"name\" transform=\"translate(18 %d) rotate(-90)\" "
            "text-anchor=\"middle\">busbw, GB/s</text>\n",
            TOP + HEIGHT / 2);
}

/* The points from 'first' on that have its mode; returns where the next mode begins. */
static size_t put_line(const struct chart *c, size_t first, FILE *out)
{
    const char *mode = modes[mode_of(c->points[first])];
    size_t end = first;

    fprintf(out, "<polyline class=\"line m-%s\" points=\"", mode);
    for (; end < c->n && mode_of(c->points[end]) == mode_of(c->points[first]); end++)
        fprintf(out, "%s%.1f,%.1f", end > first ? " " : "", at_x(c, c->points[end]),
                at_y(c, zipccl_row_busbw(c->points[end])));
    fputs("\"/>\n", out);
    for (size_t i = first; i < end; i++) {
        const struct zipccl_row *row = c->points[i];

        fprintf(
            out,
            "<circle class=\"dot m-%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"><title>%s, %.0f bytes: "
            "%.4g GB/s, ",
            mode, at_x(c, row), at_y(c, zipccl_row_busbw(row)), MARK, mode, row->size_bytes,
            zipccl_row_busbw(row));
        zipccl_put_escaped(row->strategy, out);
        fputs("</title></circle>\n", out);
    }
    return end;
}

static void put_chart(const struct chart *c, FILE *out)
{
    int y = TOP + 14;

    fprintf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"busbw over size\">\n",
            LEFT + WIDTH + LEGEND, TOP + HEIGHT + BOTTOM);
    put_sizes(c, out);
    put_rates(c, out);
    for (size_t i = 0; i < c->n; y += 22) {
        const char *mode = modes[mode_of(c->points[i])];
        int x = LEFT + WIDTH + 20;

        fprintf(out,
                "<line class=\"line m-%s\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>"
                "<text x=\"%d\" y=\"%d\">%s</text>\n",
                mode, x, y - 4, x + 20, y - 4, x + 28, y, mode);
        i = put_line(c, i, out);
    }
    fputs("</svg>\n", out);
}

void zipccl_perf_svg(const struct zipccl_rows *rows, const struct zipccl_row *like, FILE *out)
{
    struct chart c = {.points = malloc(rows->n * sizeof *c.points), .low = INFINITY};

    for (size_t i = 0; i < rows->n && c.points != NULL; i++) {
        const struct zipccl_row *row = &rows->rows[i];
        double busbw = zipccl_row_busbw(row);

        if (!zipccl_perf_alike(row, like) || !(busbw > 0 && busbw < 1e12) ||
            !(row->size_bytes >= 1))
            continue;
        c.points[c.n++] = row;
        c.low = fmin(c.low, log2(row->size_bytes));
        c.high = fmax(c.high, log2(row->size_bytes));
        c.most = fmax(c.most, busbw);
    }
    if (c.n > 0) {
        qsort(c.points, c.n, sizeof *c.points, by_mode_and_size);
        /* One size alone stands in the middle. */
        c.low -= c.high > c.low ? 0.25 : 1;
        c.high += 0.25;
        c.most *= 1.08;
        put_chart(&c, out);
    }
    free(c.points);
}
