/*
 * search.h - the NIC rate where the gain ends, and the one that raw would need
 *
 * Searched at T0, then confirmed, and corrected where it is off, at T1.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_SEARCH_H
#define ZIPCCL_SIM_SEARCH_H

#include "sim/run.h"

/* The gain below which compression is not worth it. */
#define ZIPCCL_BREAK_EVEN_GAIN 0.02

/* NIC rates from the cluster's divided by this to the cluster's times this are searched. */
#define ZIPCCL_SEARCH_RANGE 100.0

enum zipccl_search_kind {
    ZIPCCL_SEARCH_BREAK_EVEN, /* raw step / adaptive step falls to 1.02 */
    ZIPCCL_SEARCH_RAW_MATCH   /* the raw step falls to the adaptive step at the cluster's rate */
};

struct zipccl_search_result {
    double nic_Bps; /* 0: none in range */
    char note[160];
};

struct zipccl_search {
    const struct zipccl_run_base *base;
    enum zipccl_search_kind kind;
    double raw_s, adaptive_s; /* steps at the cluster's rate, at the base's fidelity */
    struct zipccl_search_result result;
};

/* The search as work for a child process. */
struct zipccl_child_task zipccl_search_task(struct zipccl_search *search);

#endif
