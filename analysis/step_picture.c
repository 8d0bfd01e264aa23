/*
 * step_picture.c - the picture of a step: one stacked bar per mode, as inline SVG
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/step_picture.h"

#include "analysis/document.h"
#include "core/dtype.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { PART_COMPUTE, PART_CODEC, PART_OPS, PART_WAIT = PART_OPS + ZIPCCL_NUM_OPS };

_Static_assert(PART_WAIT + 1 == ZIPCCL_PICTURE_PARTS, "a part per op, and three more");

/* Order of the bars: what a reader compares stands first. */
static const struct {
    const char *key, *title, *exposed_key;
} modes[ZIPCCL_PICTURE_MODES] = {
    {"raw", "raw", "exposed_raw_s"},
    {"adaptive", "adaptive", "exposed_adaptive_s"},
    {"compressed", "always compressed", "exposed_compressed_s"},
};

static const char *part_class(int part)
{
    switch (part) {
    case PART_COMPUTE: return "compute";
    case PART_CODEC: return "codec";
    case PART_WAIT: return "wait";
    default: return zipccl_op_name((enum zipccl_op)(part - PART_OPS));
    }
}

static const char *part_title(int part)
{
    switch (part) {
    case PART_COMPUTE: return "compute";
    case PART_CODEC: return "codec slows compute";
    case PART_WAIT: return "wait for late ranks";
    default: return zipccl_op_name((enum zipccl_op)(part - PART_OPS));
    }
}

/* What differences of times leave where there is nothing: no part of the picture. */
static double positive(double value)
{
    return value > 1e-9 ? value : 0;
}

/*
 * Rows hold the exposed time of the slowest rank, the step that of the rank that ends last: the
 * step's exposed time is split in the proportion of the rows, so that the bar's length is the step.
 */
static void read_ops(yajl_val result, const char *key, double exposed_s, double *parts)
{
    double sums[ZIPCCL_NUM_OPS] = {0}, all = 0;

    for (size_t i = 0; i < zipccl_document_length(result, "rows"); i++) {
        yajl_val row = zipccl_document_item(result, "rows", i);
        enum zipccl_op op;

        if (!zipccl_op_parse(zipccl_document_text(row, "op"), &op))
            continue;
        sums[op] += positive(zipccl_document_number(row, key));
        all += positive(zipccl_document_number(row, key));
    }
    for (int op = 0; op < ZIPCCL_NUM_OPS; op++)
        parts[PART_OPS + op] = all > 0 ? exposed_s * sums[op] / all : 0;
}

void zipccl_step_picture_read(yajl_val result, struct zipccl_step_picture *out)
{
    yajl_val steps = zipccl_document_get(result, "steps");

    memset(out, 0, sizeof *out);
    for (int m = 0; m < ZIPCCL_PICTURE_MODES; m++) {
        yajl_val step = zipccl_document_get(steps, modes[m].key);
        double *parts = out->part_s[m];

        out->step_s[m] = -1;
        /* Below a picosecond there is nothing to draw, and marks of the axis would not end. */
        if (!(zipccl_document_number(step, "step_s") > 1e-12))
            continue;
        out->step_s[m] = zipccl_document_number(step, "step_s");
        parts[PART_COMPUTE] = positive(zipccl_document_number(step, "compute_s"));
        parts[PART_CODEC] = positive(zipccl_document_number(step, "codec_slow_s"));
        parts[PART_WAIT] = positive(zipccl_document_number(step, "wait_s"));
        read_ops(result, modes[m].exposed_key, positive(zipccl_document_number(step, "exposed_s")),
                 parts);
    }
}

/* Layout in SVG units. */
enum { WIDTH = 940, LEFT = 175, BAR_WIDTH = 620, BAR_HEIGHT = 38, PITCH = 58, TOP = 8, AXIS = 34 };

/* A round distance between axis marks, at most six of them. */
static double tick_distance(double longest)
{
    double power = pow(10, floor(log10(longest / 6)));
    static const double factors[] = {1, 2, 5, 10};

    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
        if (longest / (factors[i] * power) <= 6)
            return factors[i] * power;
    return 10 * power;
}

static void put_axis(double longest_ms, int bottom, FILE *out)
{
    double distance = tick_distance(longest_ms);

    for (double tick = 0; tick <= longest_ms * 1.0001; tick += distance) {
        double x = LEFT + BAR_WIDTH * tick / longest_ms;

        fprintf(out, "<line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>\n", x,
                TOP - 4, x, bottom);
        fprintf(out,
                "<text class=\"tick\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.12g</text>\n", x,
                bottom + 16, tick);
    }
    fprintf(out, "<text class=\"tick\" x=\"%d\" y=\"%d\" text-anchor=\"start\">ms</text>\n",
            LEFT + BAR_WIDTH + 30, bottom + 16);
}

static void put_bar(const struct zipccl_step_picture *picture, int m, int y, double longest_ms,
                    FILE *out)
{
    double x = LEFT, raw = picture->step_s[0], step = picture->step_s[m];

    fprintf(out, "<text class=\"name\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n",
            LEFT - 12, y + BAR_HEIGHT / 2 + 5, modes[m].title);
    for (int p = 0; p < ZIPCCL_PICTURE_PARTS; p++) {
        double ms = picture->part_s[m][p] * 1e3, width = BAR_WIDTH * ms / longest_ms;
        char label[32];

        if (!(width > 0))
            continue;
        fprintf(out,
                "<rect class=\"c-%s\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\">"
                "<title>%s: %.3f ms</title></rect>\n",
                part_class(p), x, y, width, BAR_HEIGHT, part_title(p), ms);
        snprintf(label, sizeof label, ms < 10 ? "%.2f" : "%.0f", ms);
        if (width > 9.0 * (double)strlen(label) + 8)
            fprintf(
                out,
                "<text class=\"in t-%s\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                part_class(p), x + width / 2, y + BAR_HEIGHT / 2 + 5, label);
        x += width;
    }
    fprintf(out, "<text class=\"sum\" x=\"%.1f\" y=\"%d\">%.*f ms", x + 8, y + BAR_HEIGHT / 2 + 5,
            step < 0.01 ? 2 : 0, step * 1e3);
    if (m > 0 && raw > 0)
        fprintf(out, "<tspan class=\"gain\" dx=\"6\">%.2fx</tspan>", raw / step);
    fputs("</text>\n", out);
}

void zipccl_step_picture_svg(const struct zipccl_step_picture *picture, FILE *out)
{
    double longest_ms = 0;
    int nbars = 0, y = TOP;

    for (int m = 0; m < ZIPCCL_PICTURE_MODES; m++) {
        if (!(picture->step_s[m] > 0))
            continue;
        nbars++;
        longest_ms = fmax(longest_ms, picture->step_s[m] * 1e3);
    }
    if (nbars == 0)
        return;
    int bottom = TOP + PITCH * nbars - (PITCH - BAR_HEIGHT) + 8;

    fprintf(out,
            "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Step time by mode, split into "
            "compute, codec, exposed communication and wait\">\n",
            WIDTH, bottom + AXIS);
    put_axis(longest_ms, bottom, out);
    for (int m = 0; m < ZIPCCL_PICTURE_MODES; m++)
        if (picture->step_s[m] > 0) {
            put_bar(picture, m, y, longest_ms, out);
            y += PITCH;
        }
    fputs("</svg>\n", out);
}

static bool part_seen(const struct zipccl_step_picture *picture, int part)
{
    for (int m = 0; m < ZIPCCL_PICTURE_MODES; m++)
        if (picture->part_s[m][part] > 0)
            return true;
    return false;
}

static void put_legend_row(const struct zipccl_step_picture *picture, int part, FILE *out)
{
    bool op = part >= PART_OPS && part < PART_WAIT;

    fprintf(out,
            "<tr><td class=\"l\"><svg class=\"key\" viewBox=\"0 0 12 12\">"
            "<rect class=\"c-%s\" width=\"12\" height=\"12\"/></svg> %s%s</td>",
            part_class(part), op ? "exposed " : "", part_title(part));
    for (int m = 0; m < ZIPCCL_PICTURE_MODES; m++) {
        if (!(picture->step_s[m] > 0))
            continue;
        fputs("<td>", out);
        zipccl_put_fixed(picture->part_s[m][part] * 1e3, 1, out);
        fputs("</td>", out);
    }
    fputs("</tr>\n", out);
}

void zipccl_step_picture_legend(const struct zipccl_step_picture *picture, FILE *out)
{
    fputs("<table class=\"legend\"><thead><tr><th class=\"l\">part of the step, ms</th>", out);
    for (int m = 0; m < ZIPCCL_PICTURE_MODES; m++)
        if (picture->step_s[m] > 0)
            fprintf(out, "<th>%s</th>", modes[m].title);
    fputs("</tr></thead><tbody>\n", out);
    for (int p = 0; p < ZIPCCL_PICTURE_PARTS; p++)
        if (part_seen(picture, p))
            put_legend_row(picture, p, out);
    fputs("<tr class=\"total\"><td class=\"l\">step</td>", out);
    for (int m = 0; m < ZIPCCL_PICTURE_MODES; m++) {
        if (!(picture->step_s[m] > 0))
            continue;
        fputs("<td>", out);
        zipccl_put_fixed(picture->step_s[m] * 1e3, 1, out);
        fputs("</td>", out);
    }
    fputs("</tr></tbody></table>\n", out);
}
