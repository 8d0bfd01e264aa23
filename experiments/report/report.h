/*
 * report.h - writes what a replay found: table for people, JSON and CSV for programs
 *
 * One result in, text out; nothing is computed here but shares, sums and speedups of what the
 * result holds.  It opens no file and runs no simulation.  The page with the picture is made from
 * the JSON, see analysis/report_html.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_REPORT_H
#define ZIPCCL_EXPERIMENTS_REPORT_H

#include "core/status.h"
#include "sim/result.h"

#include <stdio.h>

#define ZIPCCL_REPLAY_SCHEMA_NAME "zipccl.replay"
enum { ZIPCCL_REPLAY_SCHEMA_VERSION = 1 };

/* Name of the assumption that tells what the tensors are. */
#define ZIPCCL_NOTE_SAMPLES "samples"

/* The op behind most of the gain. */
struct zipccl_report_gain {
    enum zipccl_op op;
    double share; /* of the exposed time saved over all ops, 0..1 */
};

/*
 * Write the whole table: banner, inputs, rows, step, reasons.  With 'summary' only the banner,
 * the cluster and the lines below the step block are written.
 */
void zipccl_report_table(const struct zipccl_replay_result *result, bool summary, FILE *out);

/* Write the lines that follow the step block: why, how sure, break-even, baseline, warnings. */
void zipccl_report_reasons(const struct zipccl_replay_result *result, FILE *out);

/* Write the sentence that "Why:" begins, without it and without a newline; "" if a mode is missing. */
void zipccl_report_why(const struct zipccl_replay_result *result, FILE *out);

/*
 * Find the op that saves most exposed time, raw against adaptive.  False if nothing is saved or a
 * mode is missing.
 */
bool zipccl_report_largest_gain(const struct zipccl_replay_result *result,
                                struct zipccl_report_gain *out);

/*
 * Tell how far the raw step's exposed communication follows the NIC rate, from the sensitivities:
 * 1 all of it, 0 nothing; -1 if the result holds no NIC sensitivity.
 */
double zipccl_report_nic_share(const struct zipccl_replay_result *result);

/*
 * Write schema "zipccl.replay" version 1.  The bytes depend on the result alone: no clock, no
 * path, no host.  Numbers that are missing or not finite are null.
 *
 * ZIPCCL_ERR_IO if writing failed, ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_report_json(const struct zipccl_replay_result *result, FILE *out,
                                 struct zipccl_error *error);

/*
 * Write the timeline as Chrome trace events; 'path' is for messages, gzip if it ends in .gz.
 *
 * ZIPCCL_ERR_ARG if the result holds no timeline, ZIPCCL_ERR_IO, ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_report_perfetto(const struct zipccl_replay_result *result, const char *path,
                                     FILE *out, struct zipccl_error *error);

/* "raw", "compressed", "adaptive" by ZIPCCL_STEP_... */
extern const char *const zipccl_step_names[ZIPCCL_NUM_STEPS];

/* Write the rows as CSV with a header line, quoted as in RFC 4180; missing numbers are empty. */
zipccl_status zipccl_report_csv(const struct zipccl_replay_result *result, FILE *out,
                                struct zipccl_error *error);

#endif
