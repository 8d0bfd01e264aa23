/*
 * trace.h - training traces: header, process groups, events, samples; streaming reader and writer
 *
 * A trace says what each rank computes and sends in one training step.  traces/TRACE.md gives the
 * file format (JSON Lines, plain or .gz).  One event stands for all ranks of all groups of a set
 * where they do the same; 'ranks' restricts it where they do not.  This layer knows no cluster,
 * no time model and no codec.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_TRACE_H
#define ZIPCCL_TRACES_TRACE_H

#include "core/dtype.h"
#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A set of process groups of equal size: a partition of (some of) the ranks. */
struct zipccl_trace_group {
    const char *name; /* "world", "dp", "ep", ... */
    uint32_t nparts;  /* groups in the set */
    uint32_t size;    /* ranks in each */
    uint32_t *ranks;  /* [nparts * size], rank order inside a group is the group's own */
};

/* A named table of uneven splits: elements from group member (row) to member (column). */
struct zipccl_trace_splits {
    const char *name;
    uint32_t size;    /* members */
    uint64_t *counts; /* [size * size] */
};

struct zipccl_trace_header {
    uint32_t version;
    const char *name;         /* short name, used in tables */
    const char *model;        /* for people: "Llama-2-7B FSDP, 4096 tokens/GPU"; default: name */
    const char *provenance;   /* "generated", "captured", "imported"; then free text */
    const char *generator;    /* program and version that wrote the file */
    uint32_t nranks;          /* world size */
    uint32_t ranks_per_node;  /* 0: unknown */
    double recorded_step_s;   /* < 0: none recorded */
    uint64_t tokens_per_step; /* per rank; 0: unknown */
    const char *samples;      /* path of the .safetensors, relative to the trace; NULL: none */
    uint32_t nstreams;
    char **streams; /* [nstreams] names; stream 0 is compute */
    uint32_t ngroups;
    struct zipccl_trace_group *groups;
    uint32_t nsplits;
    struct zipccl_trace_splits *splits;
};

enum zipccl_event_kind {
    ZIPCCL_EVENT_COMPUTE,
    ZIPCCL_EVENT_COLLECTIVE,
    ZIPCCL_EVENT_LOOP_BEGIN,   /* the events up to the matching LOOP_END run 'repeat' times */
    ZIPCCL_EVENT_LOOP_END,     /* loop events have no id, stream or dependencies */
    ZIPCCL_EVENT_COMMUNICATION /* communication of which only the time is known */
};

/* A pair of a sendrecv, group-relative. */
struct zipccl_trace_pair {
    uint32_t src, dst;
};

struct zipccl_event {
    enum zipccl_event_kind kind;
    uint64_t id;       /* unique; deps name it */
    uint32_t stream;   /* in-order queue on each rank, index into header streams */
    uint64_t repeat;   /* >= 1; this many times back to back */
    const char *label; /* may be NULL */
    uint32_t ndeps;
    uint64_t *deps;    /* ids of earlier events; a dep inside a loop means the same iteration */
    uint32_t nranks;   /* ranks that run it; 0: all (for a collective: all parts of the group) */
    uint32_t *ranks;   /* [nranks] world ranks; a collective: every rank of the parts that run it */
    double duration_s; /* compute: as recorded or generated; < 0 if only 'flops' is given;
                          communication: as recorded */
    double flops;      /* compute: work, so that another GPU can be assumed; < 0: unknown */
    double hbm_bytes;  /* compute: memory traffic; < 0: unknown */
    double *duration_by_rank_s; /* [nranks or header nranks] instead of duration_s; NULL: equal */
    enum zipccl_op op;          /* collectives from here on */
    enum zipccl_dtype dtype;
    enum zipccl_redop redop;
    uint32_t group;  /* index into header groups */
    uint64_t count;  /* NCCL argument; uneven ops: largest pair */
    uint32_t root;   /* broadcast, group-relative */
    int32_t splits;  /* alltoallv: index into header splits; -1: none */
    uint32_t npairs; /* sendrecv */
    struct zipccl_trace_pair *pairs;
    double recorded_s; /* time on the slowest rank from when the last one entered; < 0: none */
    uint32_t nsamples; /* bound tensors, 0: none */
    char **samples;    /* tensor names in the samples file, or one "class:PREFIX" */
};

/* True if it is work of ranks, not a mark of a loop. */
static inline bool zipccl_event_runs(const struct zipccl_event *event)
{
    return event->kind != ZIPCCL_EVENT_LOOP_BEGIN && event->kind != ZIPCCL_EVENT_LOOP_END;
}

struct zipccl_trace_reader;

/*
 * Open a trace: a .jsonl or .jsonl.gz file, or a folder that holds trace.jsonl or trace.jsonl.gz.
 * The header is read and checked at once.
 *
 * ZIPCCL_ERR_IO, or ZIPCCL_ERR_INPUT with file, line, what was found and what was expected.
 */
zipccl_status zipccl_trace_open(const char *path, struct zipccl_trace_reader **out,
                                struct zipccl_error *error);
const struct zipccl_trace_header *zipccl_trace_header(const struct zipccl_trace_reader *reader);

/* The file that is read: in a folder, the one that was found there. */
const char *zipccl_trace_path(const struct zipccl_trace_reader *reader);

/* Path of the samples file, resolved against the trace's folder; NULL if the trace has none. */
const char *zipccl_trace_samples_path(const struct zipccl_trace_reader *reader);

/*
 * Read and check the next event.  '*event' is the reader's and valid until the next call;
 * NULL at the end (all loops closed, the gzip stream complete).
 */
zipccl_status zipccl_trace_next(struct zipccl_trace_reader *reader,
                                const struct zipccl_event **event, struct zipccl_error *error);

/* Line of the file that was read last, for messages about an event; 1 after opening. */
uint64_t zipccl_trace_line(const struct zipccl_trace_reader *reader);

/* Close a reader; NULL is allowed. */
void zipccl_trace_close(struct zipccl_trace_reader *reader);

/* A whole trace in memory. */
struct zipccl_trace {
    struct zipccl_trace_header header;
    char *path, *samples_path; /* samples_path NULL if none */
    size_t nevents;
    struct zipccl_event *events; /* [nevents], loops not expanded */
};

/* Load all of a trace; errors as of zipccl_trace_open() and zipccl_trace_next(). */
zipccl_status zipccl_trace_load(const char *path, struct zipccl_trace **out,
                                struct zipccl_error *error);
void zipccl_trace_destroy(struct zipccl_trace *trace);

struct zipccl_trace_writer;

/*
 * Start writing 'path' (gzip if it ends in .gz).  The file appears under its name only at
 * zipccl_trace_writer_finish(); abandoning leaves nothing behind.  'header' is copied.  Header and
 * events are checked as a reader would: ZIPCCL_ERR_INPUT names the line that would be wrong.
 */
zipccl_status zipccl_trace_writer_open(const char *path, const struct zipccl_trace_header *header,
                                       struct zipccl_trace_writer **out,
                                       struct zipccl_error *error);
zipccl_status zipccl_trace_write(struct zipccl_trace_writer *writer,
                                 const struct zipccl_event *event, struct zipccl_error *error);
/* Finish and rename, or with 'keep' false remove; frees the writer in every case. */
zipccl_status zipccl_trace_writer_finish(struct zipccl_trace_writer *writer, bool keep,
                                         struct zipccl_error *error);

#endif
