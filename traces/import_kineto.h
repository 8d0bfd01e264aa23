/*
 * import_kineto.h - one profiler file in memory, and what is made of it
 *
 * A file is read in one pass (import_kineto_read.c) into what counts: GPU activities, launches,
 * waits and the metadata of communication.  Names of kernels are classified and forgotten.  From
 * that come the calls of a rank (import_kineto_calls.c), its process groups
 * (import_kineto_groups.c) and its compute between the calls (import_kineto_compute.c); after
 * which the file is let go.  import_kineto_match.c brings the ranks together,
 * import_kineto_write.c writes the trace.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_IMPORT_KINETO_H
#define ZIPCCL_TRACES_IMPORT_KINETO_H

#include "traces/arena.h"
#include "traces/import_internal.h"
#include "traces/json.h"

#define KINETO_NONE UINT32_MAX

/* What a GPU does in an interval. */
enum kineto_kind {
    KINETO_COMPUTE,
    KINETO_MEMORY, /* copies and fills */
    KINETO_NCCL,
    KINETO_FOREIGN /* communication that goes past NCCL */
};

struct kineto_gpu {
    int64_t start_ns, end_ns;
    uint32_t correlation;
    uint32_t launch; /* index into 'launches' once joined, or KINETO_NONE */
    uint32_t meta;   /* NCCL and foreign kernels: index into 'metas' */
    uint16_t stream; /* index into 'streams' */
    uint8_t kind;
};

/* A call of the CUDA runtime that counts. */
struct kineto_launch {
    int64_t ts_ns;
    uint32_t correlation;
    uint16_t thread; /* index into 'threads' */
    bool wait;       /* cudaStreamWaitEvent; else it launches something */
};

/* A wait of a stream for another one, as CUDA's synchronization events tell it. */
struct kineto_sync {
    uint32_t correlation;
    int64_t stream, wait_on_stream;
};

/* The host waits for the GPU. */
struct kineto_block {
    int64_t start_ns, end_ns;
};

/* What communication a file speaks of. */
enum kineto_coll {
    KINETO_UNKNOWN,
    KINETO_ALL_REDUCE,
    KINETO_ALL_GATHER,
    KINETO_REDUCE_SCATTER,
    KINETO_BROADCAST,
    KINETO_ALL_TO_ALL,
    KINETO_ALL_TO_ALLV,
    KINETO_SEND,
    KINETO_RECV,
    KINETO_BARRIER,
    KINETO_OTHER, /* reduce, gather, scatter: nothing a trace can express */
    KINETO_WAIT,
    KINETO_INIT
};

/* Where that comes from. */
enum kineto_source {
    KINETO_FROM_KERNEL,    /* arguments of the kernel itself */
    KINETO_FROM_CPU,       /* record_param_comms */
    KINETO_FROM_ANNOTATION /* "nccl:..." with shapes */
};

struct kineto_meta {
    int64_t start_ns, end_ns; /* on the CPU, or of the kernel */
    uint64_t line;
    uint64_t in, out; /* elements */
    int64_t seq;      /* -1: unknown */
    int64_t src, dst; /* world ranks, -1: unknown */
    int64_t first, stride;
    int64_t root;                  /* of a broadcast, a member; -1: unknown */
    const char *name;              /* as in the file: collective or kernel; interned */
    const char *dtype;             /* "Float", "float" */
    const char *pg_name, *pg_desc; /* "" unknown */
    const char *pg_ranks;          /* "[0, 1]", "" unknown */
    const char *in_split;          /* "[3, 4]", "" unknown */
    uint32_t size;                 /* of the group, 0: unknown */
    uint16_t thread;
    uint8_t source, coll;
    bool sized;   /* has sizes */
    bool wrapped; /* a negative number of elements was taken for one that overflowed 32 bits */
    bool used;    /* a kernel was found for it */
};

/* A process group of distributedInfo. */
struct kineto_pg {
    const char *name, *desc;
    uint32_t size, nranks;
    uint32_t *ranks;
};

struct kineto_stream {
    int64_t number;
    uint64_t nkernels; /* that compute */
    int64_t comm_ns;
    uint32_t trace_stream; /* of its communication; KINETO_NONE before there is any */
};

struct kineto_file {
    const char *path;
    struct zipccl_arena arena;
    size_t ngpu, gpu_room;
    struct kineto_gpu *gpu;
    size_t nlaunches, launch_room;
    struct kineto_launch *launches;
    size_t nsyncs, sync_room;
    struct kineto_sync *syncs;
    size_t nblocks, block_room;
    struct kineto_block *blocks; /* once joined by start, each 'end_ns' the latest so far */
    size_t nmetas, meta_room;
    struct kineto_meta *metas;
    size_t nordered;
    uint32_t *ordered; /* metas of the CPU by source, thread and start, once joined */
    size_t nstreams, stream_room;
    struct kineto_stream *streams;
    size_t nthreads, thread_room;
    uint64_t *threads;
    size_t npgs, pg_room;
    struct kineto_pg *pgs;
    char backend[32];
    int64_t rank, world; /* -1: unknown */
    bool has_waits;
    /* What the whole file holds, for the report and for tests. */
    uint64_t nevents, nkernels, nnccl, nforeign, nsteps, nother_backend;
    int64_t nccl_ns, foreign_ns, kernel_first_ns, kernel_last_ns;
    uint64_t nreplaced; /* NaN, infinities and control characters */
    uint64_t nuntimed;  /* events whose time is no number, but for NCCL kernels */
    uint64_t first_untimed;
    uint64_t ndropped, first_dropped; /* NCCL kernels whose time is no number; line of the first */
    struct et_beside *beside;         /* the execution trace of the same rank, NULL: none */
    uint64_t nccl_pid,
        second_gpu; /* hash of the first NCCL kernel's GPU; line of another's, 0: none */
};

/* Read 'path' (plain or gzip, a pipe too).  kineto_file_free() also after a failure. */
zipccl_status kineto_read(const char *path, struct kineto_file *file, struct zipccl_error *error);
void kineto_file_free(struct kineto_file *file);

/* Kinds and names (import_kineto_names.c). */
enum kineto_kind kineto_kernel_kind(const char *name);
/* Whose foreign kernel it is: "DeepEP", ... */
const char *kineto_foreign_name(const char *kernel);
enum kineto_coll kineto_coll_of(const char *name);
enum kineto_coll kineto_coll_of_kernel(const char *kernel);
enum zipccl_redop kineto_redop_of_kernel(const char *kernel, bool *known);
/* False if unknown; '*factor' of ours make one element. */
bool kineto_dtype_of(const char *name, enum zipccl_dtype *dtype, uint32_t *factor);
/* Numbers of "[1, 2, ...]": at most 'max'; '*cut' if the list ends in "...". */
size_t kineto_list(const char *text, uint64_t *out, size_t max, bool *cut);

/* A set of process groups that share no rank, all of one size. */
struct kineto_set {
    char name[64];
    uint32_t size, stride; /* stride 0: not regular */
    uint32_t nparts, room;
    uint32_t *ranks;   /* [nparts * size] */
    uint32_t *part_of; /* [world] or KINETO_NONE */
};

/* One call of a rank, in the order in which the host made them. */
struct kineto_call {
    int64_t start_ns, end_ns, host_ns;
    uint64_t line, count;
    int64_t seq;
    const char *label;  /* foreign: whose it is */
    uint64_t *in_split; /* [size] elements to each member; NULL: even */
    uint32_t set, part, lane, ordinal;
    uint32_t root;     /* of a broadcast, a member */
    uint32_t src, dst; /* of a pair, members */
    uint32_t stream;   /* of the trace */
    uint32_t kernel;   /* calls of one kernel share the number */
    uint8_t op, dtype, redop;
    bool opaque;            /* its time is all that is known */
    bool foreign;           /* opaque, and not NCCL's */
    bool dispatch;          /* foreign, and known to move tokens to experts or back */
    bool blocking, dropped; /* on the stream of compute; without a partner */
    bool pair;
};

/* Compute between two calls or waits, in the order of the host. */
struct kineto_segment {
    size_t first_kernel;
    uint32_t gap_before; /* no kernels: the host was late for this call; else KINETO_NONE */
    uint32_t ndeps;
    uint32_t *deps; /* calls */
};

/* Calls that must end before one starts, beside what its stream and compute hold back. */
struct kineto_after {
    uint32_t n;
    uint32_t *calls;
};

struct kineto_rank {
    uint32_t rank;
    const char *path;
    struct zipccl_arena arena;
    size_t ncalls, call_room;
    struct kineto_call *calls;
    uint32_t *kernels_before;   /* [ncalls] compute kernels that were launched before the call */
    size_t nkernels;            /* that compute */
    uint32_t class;             /* index of the rank whose structure this one shares, or its own */
    bool shares_segments;       /* 'segments' belongs to another rank */
    uint32_t *waits_for;        /* [ncalls] segment that must end first, or KINETO_NONE */
    struct kineto_after *after; /* [ncalls] or NULL: none */
    size_t nsegments;
    struct kineto_segment *segments;
    double *seconds;     /* [nsegments] */
    double *flops, *hbm; /* [nsegments] work and bytes of memory, < 0: not told; NULL: of none */
    int64_t first_ns, last_ns, busy_ns;
    uint32_t nlanes;      /* once matched: communicators a set has at most */
    uint32_t *first_of;   /* [nsets * nlanes + 1] into 'by_ordinal' */
    uint32_t *by_ordinal; /* calls that are kept, per communicator */
};

struct kineto_import {
    const struct zipccl_importer *importer;
    const char *what, *provenance, *generator; /* for the trace's header */
    int64_t (*rank_of_name)(const char *path); /* -1: the name does not tell; NULL: none does */
    struct zipccl_arena arena;
    uint32_t world;
    size_t nranks;
    struct kineto_rank *ranks; /* [nranks] those that were recorded, in order of their files */
    size_t nsets;
    struct kineto_set *sets;
    uint32_t nstreams; /* of the trace, compute included */
    uint32_t *donor;   /* [world] index into 'ranks' */
    uint64_t nsteps;
    size_t nbeside;
    struct et_beside *beside; /* execution traces that were given too */
};

/* The importer for what concerns one file, which errors then name; 'path' must stay. */
struct zipccl_importer kineto_at(const struct kineto_import *k, const char *const *path);

/* Grow '*array' of 'size' each to hold one more than 'n'; false if memory is out. */
bool kineto_grow(void *array, size_t *room, size_t n, size_t size);

/* Indices with what they are sorted by. */
struct kineto_keyed {
    int64_t major, minor;
    uint32_t index;
};
int kineto_compare_keyed(const void *a, const void *b);

/* Sort launches by time, give GPU activities theirs, and order the CPU's metas. */
zipccl_status kineto_join(struct kineto_file *file, struct zipccl_error *error);

/* True if some thread of the host waited for the GPU at that time. */
bool kineto_host_blocked(const struct kineto_file *file, int64_t when);

/* When the host launched an activity; its start if that is not known. */
int64_t kineto_host_time(const struct kineto_file *file, const struct kineto_gpu *gpu);

/* Place in 'ordered' of the last meta of a source on a thread that starts by 'ts', or nordered. */
size_t kineto_last_meta(const struct kineto_file *file, enum kineto_source source, uint16_t thread,
                        int64_t ts);

/* The call, no wait, around a launch or around that of an activity; NULL if there is none. */
struct kineto_meta *kineto_around(const struct kineto_file *file,
                                  const struct kineto_launch *launch, enum kineto_source source);
struct kineto_meta *kineto_enclosing(const struct kineto_file *file, const struct kineto_gpu *gpu,
                                     enum kineto_source source);

/*
 * Make the calls of a file that has metas alone, which stand in order: without times.  A wait
 * holds back what is called after it (import_kineto_listed.c).
 */
zipccl_status kineto_make_listed(struct kineto_import *k, struct kineto_file *file,
                                 struct kineto_rank *rank);

/* The rank of the file, in a world that the first one sets. */
zipccl_status kineto_set_rank(struct kineto_import *k, const struct kineto_file *f,
                              struct kineto_rank *r);

zipccl_status kineto_make_calls(struct kineto_import *k, struct kineto_file *file,
                                struct kineto_rank *rank);
zipccl_status kineto_find_group(struct kineto_import *k, const struct kineto_file *file,
                                uint32_t rank, const struct kineto_meta *meta, uint32_t *set,
                                uint32_t *part);
void kineto_sets_free(struct kineto_import *k);
/* Find the class of a rank among those before it: the first that makes the same calls. */
void kineto_find_class(const struct kineto_import *k, struct kineto_rank *rank);

/* Match, order and write what all ranks do. */
zipccl_status kineto_finish(struct kineto_import *k);

/* Free all but 'importer'. */
void kineto_import_free(struct kineto_import *k);

zipccl_status kineto_make_compute(struct kineto_import *k, struct kineto_file *file,
                                  struct kineto_rank *rank);

/* Bring the ranks together: which call of one is which of another; what has no partner is dropped. */
zipccl_status kineto_match(struct kineto_import *k);

/* Calls of one communicator on one member. */
struct kineto_member {
    struct kineto_rank *rank;
    uint32_t *calls; /* [n] indices */
    size_t n;
};

/* True if two ranks may mean one call by these. */
bool kineto_calls_agree(const struct kineto_call *a, const struct kineto_call *b);

/*
 * Find a sequence that all members have in common, long for all.  '*kept' tells for the calls of
 * all members, one after the other, whether they are in it; the caller frees.  '*aligned' is false
 * if less than half of the shortest would be left, or there are too many calls to try.
 */
zipccl_status kineto_align(const struct kineto_import *k, const struct kineto_member *members,
                           size_t nmembers, unsigned char **kept, bool *aligned);

enum kineto_node_kind { KINETO_NODE_CALL, KINETO_NODE_SEGMENT, KINETO_NODE_OPAQUE };

/* What becomes an event. */
struct kineto_node {
    int64_t time_ns;             /* since the first activity of its rank */
    uint32_t kind, class, index; /* an example: call or segment of a class */
    uint32_t set, family, part;  /* calls; 'part' KINETO_NONE: all of the family */
    uint32_t lane, ordinal, src, dst;
    uint32_t nlinked, next; /* classes that make the call; in the hash */
    uint32_t nin;           /* edges that lead here */
    uint64_t id;            /* once written, 0: not */
};

/* Parts of a set whose members are of the same classes. */
struct kineto_family {
    uint32_t set, nparts, nclasses; /* distinct */
    uint32_t example;               /* a part */
};

struct kineto_edge {
    uint32_t from, to;
    bool soft; /* the order of sends and receives in a stream, which buffers may have changed */
};

struct kineto_graph {
    size_t nnodes, node_room;
    struct kineto_node *nodes;
    size_t nedges, edge_room;
    struct kineto_edge *edges;
    size_t nfamilies, family_room;
    struct kineto_family *families;
    uint32_t **family_of; /* [nsets][nparts] */
    uint32_t *order;      /* [nnodes] so that nothing stands before what it needs */
    size_t nlinks, link_room;
    uint32_t *links;       /* nodes of the calls of classes, back to back */
    uint32_t **first_link; /* [nranks][ncalls + 1] of classes, else NULL */
    uint32_t **segment_of; /* [nranks][nsegments] nodes of classes, else NULL */
};

/* The class of a rank of the world. */
static inline uint32_t kineto_class(const struct kineto_import *k, uint32_t rank)
{
    return k->ranks[k->donor[rank]].class;
}

/* The recorded rank, or NULL. */
struct kineto_rank *kineto_recorded(const struct kineto_import *k, uint32_t rank);

/* The call of a communicator by its number; NULL if the rank has none. */
const struct kineto_call *kineto_call_at(const struct kineto_rank *rank, uint32_t set,
                                         uint32_t lane, uint32_t ordinal);

/* True if it is known for all members of the part how much goes to whom. */
bool kineto_is_split(const struct kineto_import *k, const struct kineto_call *c, uint32_t part);

zipccl_status kineto_graph_make(struct kineto_import *k, struct kineto_graph *g);
void kineto_graph_free(const struct kineto_import *k, struct kineto_graph *g);
zipccl_status kineto_write(struct kineto_import *k, struct kineto_graph *g);

#endif
