/*
 * sweep_points.h - which combinations of a sweep make sense, what each of them is, and why others do not
 *
 * Opens models, clusters and traces once; finds ranks, nodes, memory and distinct steps by formula.  It
 * runs nothing and prints nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_SWEEP_POINTS_H
#define ZIPCCL_EXPERIMENTS_SWEEP_POINTS_H

#include "experiments/replay/replay_input.h"
#include "experiments/sweep/sweep_spec.h"
#include "models/cluster.h"
#include "sim/sweep.h"

enum zipccl_sweep_skip {
    ZIPCCL_SWEEP_RUNS,
    ZIPCCL_SWEEP_NO_SHAPE,   /* model, parallelism and ranks do not fit together */
    ZIPCCL_SWEEP_NO_WORLD,   /* the ranks fill no whole number of nodes */
    ZIPCCL_SWEEP_NO_CLUSTER, /* values of the cluster do not fit together */
    ZIPCCL_SWEEP_NO_MEMORY,
    ZIPCCL_SWEEP_NO_RESCALE, /* the trace cannot be taken to so many ranks */
    ZIPCCL_SWEEP_NUM_SKIPS
};

/* "parallelism", "world", ...: words of the result file. */
const char *zipccl_sweep_skip_name(enum zipccl_sweep_skip skip);

struct zipccl_sweep_options {
    const char *model_dir, *cluster_dir; /* NULL: those of the source tree */
    const char *samples, *times;         /* of made-up steps; NULL: the bundled ones, none */
    bool keep_unfit;                     /* what does not fit into memory is run too */
    double gpu_memory;                   /* bytes, instead of the cluster's; 0: not given */
    struct zipccl_replay_options replay; /* mode, fidelity, children at once */
};

/* A distinct step: replayed on all clusters that have it in common. */
struct zipccl_sweep_step {
    char *key;     /* what makes it distinct */
    uint64_t hash; /* of that */
    size_t source; /* value of the axis of models or traces */
    struct zipccl_workload workload;
    uint64_t ngpus; /* a trace is taken to these ranks; 0: it stays */
    size_t npoints; /* that run */
    /* While it is needed: */
    struct zipccl_replay_input input; /* .trace NULL: not loaded */
    zipccl_status status;             /* of making or loading it */
    struct zipccl_error error;
};

struct zipccl_sweep_point {
    size_t index; /* combination */
    enum zipccl_sweep_skip skip;
    char reason[256]; /* if it is skipped */
    size_t step;
    uint64_t nranks;
    uint32_t nodes, gpus_per_node;
    double memory, gpu_memory; /* bytes; 0: unknown */
    bool fits;
    double tokens, model_flops, peak_flops; /* of a step, all ranks; 0: unknown */
    bool failed;
    char error[512];
    struct zipccl_sweep_outcome outcome;
};

/* A file of tensors that ratios come from, and what it says of itself. */
struct zipccl_sweep_tensors {
    char path[512], origin[256];
};

enum { ZIPCCL_SWEEP_MAX_TENSORS = 8 };

struct zipccl_sweep {
    struct zipccl_sweep_spec *spec; /* numbers of cluster keys are filled in */
    struct zipccl_sweep_options options;
    size_t nmodels, nclusters, ntraces;
    struct zipccl_workload_model *models;  /* by value of their axis, as the next two */
    struct zipccl_cluster_file **clusters; /* their keys are those of the last combination */
    uint32_t *own_nodes;                   /* of the clusters, as their files have it */
    uint64_t *trace_ranks, *trace_tokens;  /* as it is; tokens of a rank, 0: unknown */
    struct zipccl_workload_times times;
    size_t nsteps, npoints;
    struct zipccl_sweep_step *steps;
    struct zipccl_sweep_point *points; /* [npoints] all combinations */
    size_t nruns, nskipped[ZIPCCL_SWEEP_NUM_SKIPS], nunfit, nfailed;
    struct zipccl_sweep_notes *notes; /* [nclusters] of the first point of each that ran */
    bool *noted;
    size_t ntensors; /* the first files of the steps that were made */
    struct zipccl_sweep_tensors tensors[ZIPCCL_SWEEP_MAX_TENSORS];
    double wall_s;
};

/*
 * Open what 'spec' names and look at all combinations.  'spec' is borrowed; the caller releases 'out',
 * after a failure too.
 *
 * ZIPCCL_ERR_INPUT, ZIPCCL_ERR_IO as the readers; a value of a cluster key that is none; no combination
 * that can be run, with the commonest reason.
 */
zipccl_status zipccl_sweep_open(struct zipccl_sweep_spec *spec,
                                const struct zipccl_sweep_options *options,
                                struct zipccl_sweep *out, struct zipccl_error *error);
void zipccl_sweep_release(struct zipccl_sweep *sweep);

/* The second half of zipccl_sweep_open(): all combinations, once everything is open. */
zipccl_status zipccl_sweep_look(struct zipccl_sweep *sweep, struct zipccl_error *error);

/* Give 'file' the keys of combination 'index', and 'nodes' nodes (0: as they are). */
zipccl_status zipccl_sweep_set_cluster(const struct zipccl_sweep_spec *spec, size_t index,
                                       uint32_t nodes, struct zipccl_cluster_file *file,
                                       struct zipccl_error *error);

/* Which value of its axis the model or trace, and the cluster, of combination 'index' is. */
size_t zipccl_sweep_source_of(const struct zipccl_sweep_spec *spec, size_t index);
size_t zipccl_sweep_cluster_of(const struct zipccl_sweep_spec *spec, size_t index);

#endif
