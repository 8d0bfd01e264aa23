/*
 * compare_picture.c - the picture of a comparison: one time over the other, as SVG
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/compare.h"

#include <math.h>
#include <string.h>

/* Layout in SVG units. */
enum { SIDE = 620, LEFT = 96, TOP = 16, BOTTOM = 58, LEGEND = 210, MARK = 5 };

static const double band = 0.1;

/* A file has no page around it: the same colours as the page's light ones. */
static const char own_style[] =
    "<style>svg { background: #ffffff; } text { font: 13px sans-serif; fill: #1d232b; }\n"
    ".tick { fill: #5b6672; font-size: 12px; } .name { font-weight: 600; }\n"
    ".grid { stroke: #dde2e8; } .c-all_gather { fill: #1971c2; } .c-reduce_scatter { fill: "
    "#2b8a3e; }\n"
    ".c-all_reduce { fill: #b8860b; } .c-alltoall { fill: #9c36b5; } .c-alltoallv { fill: #6741d9; "
    "}\n"
    ".c-sendrecv { fill: #0c8599; } .c-broadcast { fill: #a61e4d; } .band { fill: #b9c2cc; }\n"
    ".same { stroke: #5b6672; } .mark { stroke: #ffffff; }</style>\n";

struct scale {
    double low, high; /* decimal logarithms of seconds */
};

static double at_x(const struct scale *s, double seconds)
{
    return LEFT + SIDE * (log10(seconds) - s->low) / (s->high - s->low);
}

static double at_y(const struct scale *s, double seconds)
{
    return TOP + SIDE - SIDE * (log10(seconds) - s->low) / (s->high - s->low);
}

/* From a tenth of a decade below the least time to one above the largest. */
static struct scale scale_of(const struct zipccl_compare *c)
{
    double least = INFINITY, most = 0;

    for (size_t i = 0; i < c->npairs; i++) {
        least = fmin(least, fmin(c->pairs[i].first->time_s, c->pairs[i].second->time_s));
        most = fmax(most, fmax(c->pairs[i].first->time_s, c->pairs[i].second->time_s));
    }
    return (struct scale){log10(least) - 0.15, log10(most) + 0.15};
}

static void put_time(double seconds, char *out, size_t size)
{
    if (seconds < 0.9999e-3)
        snprintf(out, size, "%.12g us", round(seconds * 1e9) / 1e3);
    else if (seconds < 0.9999)
        snprintf(out, size, "%.12g ms", round(seconds * 1e6) / 1e3);
    else
        snprintf(out, size, "%.12g s", seconds);
}

static void put_tick(const struct scale *s, double seconds, FILE *out)
{
    double x = at_x(s, seconds), y = at_y(s, seconds);
    char text[32];

    put_time(seconds, text, sizeof text);
    fprintf(out, "<line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>\n", x, TOP, x,
            TOP + SIDE);
    fprintf(out, "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n", LEFT, y,
            LEFT + SIDE, y);
    fprintf(out, "<text class=\"tick\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x,
            TOP + SIDE + 18, text);
    fprintf(out, "<text class=\"tick\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
            LEFT - 8, y + 4, text);
}

/* 1, 2, 5 of each decade where few decades are shown, else 1. */
static void put_axes(const struct zipccl_compare *c, const struct scale *s, FILE *out)
{
    static const double steps[] = {1, 2, 5};
    int nsteps = s->high - s->low < 3.3 ? 3 : 1;

    for (int decade = (int)floor(s->low); decade <= (int)ceil(s->high); decade++)
        for (int i = 0; i < nsteps; i++) {
            double seconds = steps[i] * pow(10, decade), l = log10(seconds);

            if (l >= s->low && l <= s->high)
                put_tick(s, seconds, out);
        }
    fprintf(
        out,
        "<text class=\"name\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s time of a call</text>\n",
        LEFT + SIDE / 2, TOP + SIDE + 44, c->predicts ? "measured" : "before:");
    fprintf(out,
            "<text class=\"name\" transform=\"translate(20 %d) rotate(-90)\" "
            "text-anchor=\"middle\">%s time of a call</text>\n",
            TOP + SIDE / 2, c->predicts ? "predicted" : "after:");
}

/* The line of equal times, and the band around it, cut at the frame. */
static void put_band(const struct scale *s, FILE *out)
{
    double up = SIDE * log10(1 + band) / (s->high - s->low);
    double down = -SIDE * log10(1 - band) / (s->high - s->low);

    fprintf(out,
            "<polygon class=\"band\" opacity=\"0.35\" points=\"%d,%d %d,%.1f %.1f,%d %d,%d %d,%.1f "
            "%.1f,%d\"/>\n",
            LEFT, TOP + SIDE, LEFT, TOP + SIDE - up, LEFT + SIDE - up, TOP, LEFT + SIDE, TOP,
            LEFT + SIDE, TOP + down, LEFT + down, TOP + SIDE);
    fprintf(out,
            "<line class=\"same\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" "
            "stroke-dasharray=\"5 4\"/>\n",
            LEFT, TOP + SIDE, LEFT + SIDE, TOP);
}

static int mode_of(const struct zipccl_row *row)
{
    for (int m = 0; m < 4; m++)
        if (strcmp(row->mode, zipccl_compare_modes[m]) == 0)
            return m;
    return 0;
}

/* Circle raw, diamond native, square compressed, triangle adaptive; 'class' colours it. */
static void put_shape(int mode, double x, double y, const char *class, FILE *out)
{
    fprintf(out, "<path class=\"mark %s\" d=\"", class);
    switch (mode) {
    case 0:
        fprintf(out, "M%.1f %.1fa%d %d 0 1 0 %d 0a%d %d 0 1 0 %d 0z", x - MARK, y, MARK, MARK,
                2 * MARK, MARK, MARK, -2 * MARK);
        break;
    case 1:
        fprintf(out, "M%.1f %.1fl%d %dl%d %dl%d %dz", x, y - MARK - 1, MARK + 1, MARK + 1,
                -MARK - 1, MARK + 1, -MARK - 1, -MARK - 1);
        break;
    case 2:
        fprintf(out, "M%.1f %.1fh%dv%dh%dz", x - MARK, y - MARK, 2 * MARK, 2 * MARK, -2 * MARK);
        break;
    default:
        fprintf(out, "M%.1f %.1fl%d %dh%dz", x, y - MARK - 1, MARK + 1, 2 * MARK, -2 * MARK - 2);
    }
    fputs("\">", out);
}

static void put_points(const struct zipccl_compare *c, const struct scale *s, FILE *out)
{
    for (size_t i = 0; i < c->npairs; i++) {
        const struct zipccl_row *x = c->predicts ? c->pairs[i].second : c->pairs[i].first;
        const struct zipccl_row *y = c->predicts ? c->pairs[i].first : c->pairs[i].second;
        char class[40], across[32], up[32];

        snprintf(class, sizeof class, "c-%s", zipccl_op_name(x->op));
        put_time(x->time_s, across, sizeof across);
        put_time(y->time_s, up, sizeof up);
        put_shape(mode_of(x), at_x(s, x->time_s), at_y(s, y->time_s), class, out);
        fprintf(out, "<title>%s, %.0f bytes, %s: %s %s, %s %s (%+.1f %%)</title></path>\n",
                zipccl_op_name(x->op), zipccl_compare_bytes(x), x->mode,
                c->predicts ? "measured" : "before", across, c->predicts ? "predicted" : "after",
                up, 100 * c->pairs[i].error);
    }
}

static void put_legend(const struct zipccl_compare *c, FILE *out)
{
    int x = LEFT + SIDE + 28, y = TOP + 14;

    for (int op = 0; op < ZIPCCL_NUM_OPS; op++) {
        const char *name = zipccl_op_name((enum zipccl_op)op);
        char class[40];

        if (c->by_op[op].n == 0)
            continue;
        snprintf(class, sizeof class, "c-%s", name);
        put_shape(0, x, y - 4, class, out);
        fprintf(out, "</path><text x=\"%d\" y=\"%d\">%s</text>\n", x + 14, y, name);
        y += 22;
    }
    y += 10;
    for (int m = 0; m < 4; m++) {
        if (c->by_mode[m].n == 0)
            continue;
        put_shape(m, x, y - 4, "band", out);
        fprintf(out, "</path><text x=\"%d\" y=\"%d\">%s</text>\n", x + 14, y,
                zipccl_compare_modes[m]);
        y += 22;
    }
    y += 10;
    fprintf(out,
            "<line class=\"same\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke-dasharray=\"5 "
            "4\"/><text x=\"%d\" y=\"%d\">equal</text>\n",
            x - 9, y - 4, x + 9, y - 4, x + 14, y);
    y += 22;
    fprintf(out,
            "<rect class=\"band\" opacity=\"0.35\" x=\"%d\" y=\"%d\" width=\"18\" height=\"12\"/>"
            "<text x=\"%d\" y=\"%d\">within 10 %%</text>\n",
            x - 9, y - 10, x + 14, y);
}

void zipccl_compare_svg(const struct zipccl_compare *c, bool alone, FILE *out)
{
    struct scale s;

    if (c->npairs == 0)
        return;
    s = scale_of(c);
    fprintf(out, "<svg %sviewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n",
            alone ? "xmlns=\"http://www.w3.org/2000/svg\" " : "", LEFT + SIDE + LEGEND,
            TOP + SIDE + BOTTOM,
            c->predicts ? "Predicted over measured time of each call"
                        : "Time of each call after, over that before");
    if (alone)
        fputs(own_style, out);
    put_axes(c, &s, out);
    put_band(&s, out);
    put_points(c, &s, out);
    put_legend(c, out);
    fputs("</svg>\n", out);
}
