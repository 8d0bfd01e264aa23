/*
 * toy.h - small traces built in memory, for tests of the schedule
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_TESTS_TOY_H
#define ZIPCCL_SIM_TESTS_TOY_H

#include "models/cluster.h"
#include "traces/trace.h"

#include <string.h>

#define TOY_EVENTS 16

/* Streams: 0 compute, 1 and 2 for collectives.  Groups: 0 world, 1 halves of the world. */
struct toy {
    struct zipccl_trace trace;
    struct zipccl_event events[TOY_EVENTS];
    char *streams[3];
    char names[8][16];
    struct zipccl_trace_group groups[2];
    uint32_t ranks[64];
    double by_rank[64];
    uint64_t deps[TOY_EVENTS][4];
};

/* 2 nodes of 4 GPUs, one NIC each, and rates that are easy to reckon with. */
static inline struct zipccl_cluster toy_cluster(void)
{
    struct zipccl_cluster c = {.name = "toy",
                               .gpu_name = "toy",
                               .nodes = 2,
                               .gpus_per_node = 4,
                               .gpu_sms = 100,
                               .gpu_hbm_Bps = 2000e9,
                               .gpu_memory_bytes = 80e9,
                               .gpu_flops = 1e14,
                               .nvlink_Bps = 200e9,
                               .nics_per_node = 1,
                               .nic_Bps = 10e9,
                               .fabric_oversubscription = 1,
                               .channels = 1,
                               .encode_Bps = 100e9,
                               .decode_Bps = 100e9,
                               .codec_sms = 50};
    return c;
}

static inline void toy_init(struct toy *t, uint32_t nranks)
{
    memset(t, 0, sizeof(*t));
    memcpy(t->names[0], "compute", 8);
    memcpy(t->names[1], "comm", 5);
    memcpy(t->names[2], "other", 6);
    memcpy(t->names[3], "world", 6);
    memcpy(t->names[4], "half", 5);
    memcpy(t->names[5], "toy", 4);
    memcpy(t->names[6], "generated", 10);
    for (uint32_t r = 0; r < nranks; r++)
        t->ranks[r] = r;
    for (int i = 0; i < 3; i++)
        t->streams[i] = t->names[i];
    t->groups[0] = (struct zipccl_trace_group){t->names[3], 1, nranks, t->ranks};
    t->groups[1] = (struct zipccl_trace_group){t->names[4], 2, nranks / 2, t->ranks};
    t->trace.header = (struct zipccl_trace_header){.version = 1,
                                                   .name = t->names[5],
                                                   .model = t->names[5],
                                                   .provenance = t->names[6],
                                                   .generator = t->names[5],
                                                   .nranks = nranks,
                                                   .recorded_step_s = -1,
                                                   .nstreams = 3,
                                                   .streams = t->streams,
                                                   .ngroups = 2,
                                                   .groups = t->groups};
    t->trace.events = t->events;
}

static inline struct zipccl_event *toy_add(struct toy *t, enum zipccl_event_kind kind,
                                           uint32_t stream, uint64_t dep)
{
    size_t i = t->trace.nevents++;
    struct zipccl_event *e = &t->events[i];

    *e = (struct zipccl_event){.kind = kind,
                               .id = i + 1,
                               .stream = stream,
                               .repeat = 1,
                               .duration_s = -1,
                               .flops = -1,
                               .hbm_bytes = -1,
                               .splits = -1,
                               .recorded_s = -1};
    if (dep > 0) {
        t->deps[i][0] = dep;
        e->deps = t->deps[i];
        e->ndeps = 1;
    }
    return e;
}

/* A kernel of 'seconds' on every rank; ids count from 1, dep 0 is none. */
static inline struct zipccl_event *toy_compute(struct toy *t, double seconds, uint64_t dep)
{
    struct zipccl_event *e = toy_add(t, ZIPCCL_EVENT_COMPUTE, 0, dep);

    e->duration_s = seconds;
    e->hbm_bytes = 0;
    return e;
}

static inline struct zipccl_event *toy_collective(struct toy *t, enum zipccl_op op,
                                                  enum zipccl_dtype dtype, uint64_t count,
                                                  uint32_t stream, uint64_t dep)
{
    struct zipccl_event *e = toy_add(t, ZIPCCL_EVENT_COLLECTIVE, stream, dep);

    e->op = op;
    e->dtype = dtype;
    e->count = count;
    return e;
}

#endif
