/*
 * perf_options.h - the command line of zipccl perf: nccl-tests' options and ours
 *
 * Shared by the programs that offer perf, on real ranks and in simulation.  What an option asks
 * for and cannot be had on CPUs is refused with the reason, never ignored.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_PERF_OPTIONS_H
#define ZIPCCL_EXPERIMENTS_PERF_OPTIONS_H

#include "core/zipccl.h"
#include "experiments/perf/state_files.h"
#include "gpu/gate_mode.h"

/* Where the ranks are: AUTO is MPI under a launcher, else threads. */
enum zipccl_perf_on {
    ZIPCCL_ON_AUTO,
    ZIPCCL_ON_THREADS,
    ZIPCCL_ON_MPI,
    ZIPCCL_ON_SIM,
    ZIPCCL_ON_NCCL
};

/* How a row's calls are served; the order of rows. */
enum zipccl_perf_mode {
    ZIPCCL_PERF_RAW,        /* best uncompressed plan */
    ZIPCCL_PERF_NATIVE,     /* the transport's own collective */
    ZIPCCL_PERF_COMPRESSED, /* best compressed plan */
    ZIPCCL_PERF_ADAPTIVE,   /* best of both */
    ZIPCCL_NUM_PERF_MODES
};

/* What the elements are. */
enum zipccl_perf_data { ZIPCCL_DATA_GAUSS, ZIPCCL_DATA_MIXTURE, ZIPCCL_DATA_FILE };

/* -a: what becomes of the ranks' times of an iteration. */
enum zipccl_perf_average {
    ZIPCCL_AVERAGE_RANK0,
    ZIPCCL_AVERAGE_MEAN,
    ZIPCCL_AVERAGE_MIN,
    ZIPCCL_AVERAGE_MAX
};

/* NCCL_TESTS_SPLIT: ranks of one colour, rank OP number, are a communicator. */
enum zipccl_perf_split {
    ZIPCCL_SPLIT_NONE,
    ZIPCCL_SPLIT_AND,
    ZIPCCL_SPLIT_OR,
    ZIPCCL_SPLIT_MOD,
    ZIPCCL_SPLIT_DIV
};

enum { ZIPCCL_PERF_MAX_SETS = 32 };
#define ZIPCCL_PERF_MAX_BYTES (UINT64_C(1) << 38)

struct zipccl_perf_options {
    enum zipccl_op op;
    enum zipccl_perf_on on;
    bool modes[ZIPCCL_NUM_PERF_MODES];
    /* Sizes, in bytes as nccl-tests counts them. */
    uint64_t min_bytes, max_bytes, step_bytes; /* step_bytes 0: 'factor' */
    uint32_t factor;
    /* Lists, in the order in which rows come. */
    enum zipccl_dtype dtypes[ZIPCCL_NUM_DTYPES];
    size_t ndtypes;
    enum zipccl_redop redops[ZIPCCL_NUM_REDOPS]; /* of reductions */
    size_t nredops;
    uint32_t root; /* of broadcasts */
    bool all_roots;
    /* Repeats. */
    uint32_t iters, warmup, agg_iters, cycles, check_iters;
    /* Ranks. */
    uint32_t nthreads;       /* 0: as many as processors, at least 2 */
    uint32_t ranks_per_node; /* 0: as they are */
    uint32_t codec_threads;
    enum zipccl_gate_mode gate; /* of NCCL */
    double timeout_s;           /* 0: none */
    enum zipccl_perf_split split;
    uint32_t split_by;
    /* Plans. */
    const char *strategy; /* pinned; NULL: choose */
    uint32_t nchunks;     /* 0: as the chooser finds best, pinned 1 */
    enum zipccl_effort effort;
    uint32_t capacity_class;        /* or ZIPCCL_CLASS_LEARN */
    const char *plan_path;          /* --plan; NULL: none */
    const struct zipccl_plan *plan; /* what is in it, once it is read; borrowed */
    uint32_t plan_nodes;            /* that it was made for */
    const char *cluster, *cluster_dir, *sets[ZIPCCL_PERF_MAX_SETS];
    size_t nsets;
    struct zipccl_state_files state; /* of mode adaptive */
    /* Elements. */
    enum zipccl_perf_data data;
    const char *input;                  /* as given */
    char input_path[1024], tensor[256]; /* of a file; "": all tensors of the type */
    uint32_t unalign;                   /* bytes */
    /* Of simulations. */
    unsigned tier; /* 0, 1, 2: T0 .. T2 */
    double ratio;  /* > 0: given, no elements are coded */
    /* What is told. */
    enum zipccl_perf_average average;
    bool cputime, timestamps, per_iteration, all_iterations, memory, quiet;
    double min_bw; /* NCCL_TESTS_MIN_BW, GB/s; < 0: none */
    const char *json, *csv;
    /* Given on the command line, for who cannot honour them. */
    struct {
        bool check, warmup, iters, threads, on, input;
    } given;
};

extern const char *const zipccl_perf_mode_names[ZIPCCL_NUM_PERF_MODES];

/*
 * Parse "perf OP [OPTION...]": argv[0] is skipped.  Reads NCCL_TESTS_SPLIT, NCCL_TESTS_SPLIT_MASK,
 * NCCL_TESTS_MIN_BW and NCCL_TESTS_DEVICE.  Returns an exit code; errors are printed as
 * "PROGRAM: perf: ...".
 */
int zipccl_perf_parse(const char *program, int argc, char **argv, struct zipccl_perf_options *out,
                      bool *helped);

/* The size after 'nbytes', 0 after the last. */
uint64_t zipccl_perf_next_size(const struct zipccl_perf_options *options, uint64_t nbytes);

/* The group that rank 'rank' is in: ranks of one colour; 0 without a split. */
uint32_t zipccl_perf_colour(const struct zipccl_perf_options *options, uint32_t rank);

#endif
