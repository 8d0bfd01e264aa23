/*
 * result.h - what a replay found: rows, totals, settings, assumptions, sensitivities
 *
 * Filled by the replay (simulated) or a real run (measured), written by experiments as table,
 * JSON, CSV and page.  Pure data with owned memory.
 *
 * Bytes are sent per rank; bytes and times are sums over the calls of one step; times are of the
 * slowest rank from when the last rank enters.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_RESULT_H
#define ZIPCCL_SIM_RESULT_H

#include "core/dtype.h"
#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One (op, group, dtype, count, nranks, stream). */
struct zipccl_result_row {
    enum zipccl_op op;
    char group[64];
    enum zipccl_dtype dtype;
    uint64_t count; /* NCCL argument */
    uint32_t nranks;
    char stream[64];
    uint64_t calls;
    double raw_bytes;         /* as NCCL counts them: (N-1)/N of the tensor for most ops */
    double wire_bytes;        /* the same at the ratio of what the adaptive plan codes */
    double ratio;             /* raw / wire */
    const char *ratio_source; /* "captured", "class", "model", "given"; "none": sent raw */
    char strategy_raw[48], strategy_compressed[48], strategy[48];
    double time_recorded_s; /* < 0: none */
    double time_raw_s, time_compressed_s, time_adaptive_s;
    double exposed_raw_s, exposed_compressed_s, exposed_adaptive_s;
    double sent_bytes; /* all payload of that plan; two-level plans add raw bytes inside the node */
    const char *capacity_class; /* of the compressed plan's fixed messages: "settled" .. "wide";
                                   NULL: it has none */
    double capacity_ratio;      /* raw / capacity of a full one, 0: none */
    bool overflows_settled;     /* the samples do not fit the settled capacity */
};

/* One step under one mode, on the rank that ends last; the parts add up to step_s. */
struct zipccl_result_step {
    bool present; /* the mode was run */
    double step_s;
    double compute_s;     /* as in the trace, scaled to the cluster's GPU */
    double codec_slow_s;  /* compute took this much longer while the codec ran */
    double exposed_s;     /* communication that nothing hid */
    double wait_s;        /* for ranks that came late */
    double comm_s;        /* sum of collective times of this rank */
    double codec_s;       /* encode and decode time of this rank */
    uint32_t nmeasured;   /* measured: steps that 'step_s' is the median of */
    double low_s, high_s; /* measured: quartiles of these */
    double least_s, most_s;
};

enum { ZIPCCL_STEP_RAW, ZIPCCL_STEP_COMPRESSED, ZIPCCL_STEP_ADAPTIVE, ZIPCCL_NUM_STEPS };

/* A setting or an assumption: name, value, unit, source. */
struct zipccl_result_note {
    char name[64];
    char value[128];
    char unit[32];
    char source[256];
};

/* End-to-end speedup (adaptive over raw) under one changed input. */
struct zipccl_result_sensitivity {
    char name[64]; /* "nic.rate -10 %" */
    double step_raw_s, step_adaptive_s, end_to_end_speedup, comm_speedup;
};

/* What an importer assumed ('guess') or noted, how often and from which line on. */
struct zipccl_result_import_item {
    char what[24];
    char text[232];
    uint64_t count, line; /* line 0: the file as a whole */
    bool guess;
};

/* The least and the most compressible class of samples, where classes stand in for tensors. */
struct zipccl_result_interval {
    char low_class[64], high_class[64];
    double low_ratio, high_ratio;     /* 0: no interval */
    double low_speedup, high_speedup; /* end to end, if all payload were like that class */
};

/* Where the trace came from, if it was imported for this replay. */
struct zipccl_result_import {
    char format[16];
    uint64_t nlayers, ncollectives, nguesses;
    size_t nitems;
    struct zipccl_result_import_item *items;
    struct zipccl_result_interval interval;
};

struct zipccl_timeline; /* sim/timeline.h */

struct zipccl_replay_result {
    bool measured;
    bool native;      /* raw is NCCL's own algorithms, not the best uncompressed plans */
    char fidelity[8]; /* "t0", "t1", "t2" */
    char trace_name[128], trace_model[256], trace_provenance[256], cluster_name[64];
    char cluster_line[256]; /* for people: "8 x 8 A100; NVLink 230 GB/s/GPU, ..." */
    char codec_line[256];
    uint32_t nranks, nodes, gpus_per_node;
    size_t nrows;
    struct zipccl_result_row *rows; /* sorted by exposed time saved, largest first */
    struct zipccl_result_step steps[ZIPCCL_NUM_STEPS];
    double step_time_recorded_s;             /* < 0: none */
    double comm_speedup, end_to_end_speedup; /* adaptive over raw; 0 if either was not run */
    double exposed_comm_share;               /* exposed_raw / step_raw */
    uint32_t codec_sms;
    char adaptive_note[160]; /* "" or why the adaptive step was pinned to one mode */
    size_t nsettings, nassumptions, nsensitivities, nwarnings;
    struct zipccl_result_note *settings, *assumptions;
    struct zipccl_result_sensitivity *sensitivities;
    char (*warnings)[256];
    /* NIC rates, bytes/s per NIC; 0: none found within the searched range, see the notes. */
    double break_even_nic_Bps; /* gain falls under 2 % above this */
    double raw_match_nic_Bps;  /* raw would need this to match adaptive */
    char break_even_note[160], raw_match_note[160];
    double raw_dtype_bytes; /* bytes that went raw because the codec does not cover the dtype */
    char raw_dtypes[128];   /* their names, "fp32, int64" */
    double source_share[5]; /* share of bytes by ratio source: captured class model given none;
                               'none' is what the adaptive step sends raw, for any reason */
    double wall_s;          /* what the replay took */
    struct zipccl_result_import *import; /* NULL: the trace was not imported */
    struct zipccl_timeline *timeline;    /* NULL: not asked for */
};

/* Order of rows for qsort(): by exposed time saved, then by time, then by op and count. */
int zipccl_result_row_order(const void *a, const void *b);

void zipccl_replay_result_destroy(struct zipccl_replay_result *result);

#endif
