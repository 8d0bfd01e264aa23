/*
 * plan_report.h - the answer of 'zipccl plan': table for people, JSON and CSV for programs
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_PLAN_REPORT_H
#define ZIPCCL_EXPERIMENTS_PLAN_REPORT_H

#include "experiments/plan/plan_query.h"
#include "experiments/plan/plan_state.h"

#include <stdio.h>

#define ZIPCCL_PLAN_SCHEMA_NAME "zipccl.plan"
enum { ZIPCCL_PLAN_SCHEMA_VERSION = 1 };

struct zipccl_plan_report {
    const struct zipccl_plan_query *query;
    const struct zipccl_plan_answer *answer;
    const struct zipccl_cluster *cluster;
    const struct zipccl_cluster_file *file;
    const struct zipccl_plan_learnt *learnt; /* NULL: not asked for */
};

/* "raw", "compressed", "adaptive" by enum zipccl_mode. */
extern const char *const zipccl_plan_mode_names[];

/* "fast", "max" */
const char *zipccl_plan_effort_name(enum zipccl_effort effort);

/* Where the time of a row goes: on bytes, on latencies, on what is left of the codec. */
struct zipccl_plan_parts {
    double wire_s, alpha_s, codec_s;
};
struct zipccl_plan_parts zipccl_plan_parts_of(const struct zipccl_plan_row *row);

/* Time of the best uncompressed candidate over that of the one chosen; 0: there is none. */
double zipccl_plan_gain(const struct zipccl_plan_answer *answer);

/* Print table, reason and flips; with 'steps' also the steps of the plan chosen. */
void zipccl_plan_print_answer(const struct zipccl_plan_report *report, bool steps, FILE *out);

/*
 * Write schema "zipccl.plan" version 1 (docs/plan.md), or the candidates as CSV.
 * ZIPCCL_ERR_IO if writing failed, ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_plan_json(const struct zipccl_plan_report *report, FILE *out,
                               struct zipccl_error *error);
zipccl_status zipccl_plan_csv(const struct zipccl_plan_report *report, FILE *out,
                              struct zipccl_error *error);

#endif
