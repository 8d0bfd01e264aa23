/*
 * step_picture.h - the picture of a step: one stacked bar per mode, as inline SVG
 *
 * Colours come from the page's style sheet (classes c-NAME), so that one picture serves light and
 * dark pages.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_ANALYSIS_STEP_PICTURE_H
#define ZIPCCL_ANALYSIS_STEP_PICTURE_H

#include <yajl/yajl_tree.h>

#include <stdio.h>

enum {
    ZIPCCL_PICTURE_MODES = 3, /* raw, adaptive, always compressed */
    ZIPCCL_PICTURE_PARTS = 10 /* compute, codec, seven ops, wait */
};

/* Seconds of each part of each mode's step; a mode that was not run has step_s < 0. */
struct zipccl_step_picture {
    double step_s[ZIPCCL_PICTURE_MODES];
    double part_s[ZIPCCL_PICTURE_MODES][ZIPCCL_PICTURE_PARTS];
};

/* Read the parts from a parsed result. */
void zipccl_step_picture_read(yajl_val result, struct zipccl_step_picture *out);

/* Write the bars, then (as HTML) a legend with the milliseconds of every part. */
void zipccl_step_picture_svg(const struct zipccl_step_picture *picture, FILE *out);
void zipccl_step_picture_legend(const struct zipccl_step_picture *picture, FILE *out);

#endif
