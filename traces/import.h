/*
 * import.h - turns workloads and traces of other tools into ours
 *
 * One entry point for all formats.  What a file does not say and an importer had to assume is
 * counted and listed in the report, never hidden; traces/IMPORT.md says per format what is read,
 * guessed and known to be wrong in such files.  Nothing is printed here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_IMPORT_H
#define ZIPCCL_TRACES_IMPORT_H

#include "traces/trace.h"

/* Room for the name of a format. */
#define ZIPCCL_IMPORT_NAME_SIZE 16

struct zipccl_import_options {
    bool strict;            /* a guess is an error */
    const char *name;       /* of the trace; NULL: from the file's name */
    const char *samples;    /* .safetensors, relative to the folder of the output; NULL: none */
    uint32_t nranks;        /* world size where the file does not say it; 0: not given */
    uint32_t likely_nranks; /* world to assume if 'nranks' is 0 and the groups divide it; 0: none */
    uint32_t ranks_per_node; /* 0: unknown */
    bool dtype_given;        /* 'dtype' is that of activations and parameters */
    enum zipccl_dtype dtype;
    bool grad_dtype_given; /* 'grad_dtype' is that of gradients while they are reduced */
    enum zipccl_dtype grad_dtype;
    uint64_t micro_batches;  /* run the loop over micro-batches this often; 0: as in the file */
    bool single_tp_as_dp;    /* simai: calls of tensor-parallel groups of one rank belong to dp */
    uint64_t dispatch_bytes; /* kineto: what a rank sends in one call of an expert library past
                                NCCL, to all ranks together; 0: unknown */
};

/* Set every option to what is used if a person says nothing. */
void zipccl_import_options_init(struct zipccl_import_options *options);

/* One thing that was assumed ('guess') or is worth knowing, and how often. */
struct zipccl_import_item {
    char what[24]; /* "dtype", "world", ...: fixed words, one item each */
    char text[232];
    uint64_t count;
    uint64_t line; /* of the first; 0: the file as a whole */
    bool guess;
};

struct zipccl_import_report {
    char format[ZIPCCL_IMPORT_NAME_SIZE];
    uint64_t nlayers;      /* rows, records or events that were read */
    const char *layers;    /* what they are: "layers", "events"; static */
    uint64_t ncollectives; /* calls that one rank makes in the step, loops written out */
    uint64_t nguesses;     /* sum of the counts of all guesses */
    size_t nitems;
    struct zipccl_import_item *items; /* [nitems], guesses and others in order of appearance */
};

void zipccl_import_report_free(struct zipccl_import_report *report);

/*
 * The class of tensors ("class:PREFIX") in 'file' that stands best for what 'op' moves in 'dtype',
 * by the names of the bundled samples; NULL if there is none.  Static.
 */
struct zipccl_safetensors;
const char *zipccl_import_class(const struct zipccl_safetensors *file, enum zipccl_op op,
                                enum zipccl_dtype dtype);

/* True if 'file' has 'class' ("class:PREFIX") and all its tensors are of 'dtype'. */
bool zipccl_import_class_fits(const struct zipccl_safetensors *file, const char *class,
                              enum zipccl_dtype dtype);

/*
 * The files that 'path' means to an importer: itself, or if it is a folder those in it that end in
 * .json, .json.gz, .et or .et.gz, by name.  '*files' [*n] and what it points to are freed by
 * zipccl_import_files_free(), also after a failure.
 *
 * ZIPCCL_ERR_INPUT for a folder without any; ZIPCCL_ERR_IO.
 */
zipccl_status zipccl_import_files(const char *path, char ***files, size_t *n,
                                  struct zipccl_error *error);
void zipccl_import_files_free(char **files, size_t n);

/* Name of format number 'i' and what it is, for help texts; NULL after the last. */
const char *zipccl_import_format_name(size_t i);
const char *zipccl_import_format_about(size_t i);

/*
 * Find the format of the file 'path' (plain or gzip) by its beginning and write its name to
 * 'format' [size].
 *
 * ZIPCCL_ERR_IO; ZIPCCL_ERR_INPUT if it is empty or none that is known, naming those that are.
 */
zipccl_status zipccl_import_detect(const char *path, char *format, size_t size,
                                   struct zipccl_error *error);

/*
 * Import 'paths' [npaths], of which tar archives (plain or gzip) stand for what is in them, and write the trace 'out_path' (gzip if it ends in .gz), which appears
 * only when it is complete.
 *
 * format   a name; NULL: detect it from the first file
 * options  NULL: as zipccl_import_options_init()
 * report   filled also on failure with what was seen; the caller frees it; NULL if not wanted
 *
 * Memory: all of a file's layers.  ZIPCCL_ERR_INPUT with file, line, what was found and what was
 * expected; ZIPCCL_ERR_UNSUPPORTED for a variant that is known but not read; ZIPCCL_ERR_IO.
 */
zipccl_status zipccl_import(const char *format, const char *const *paths, size_t npaths,
                            const char *out_path, const struct zipccl_import_options *options,
                            struct zipccl_import_report *report, struct zipccl_error *error);

/*
 * The same into memory; zipccl_trace_destroy() frees it.  A temporary folder below /tmp is used
 * and removed; 'options->samples' is then relative to the current folder, and the trace's path is
 * that of the first file.
 */
zipccl_status zipccl_import_to_memory(const char *format, const char *const *paths, size_t npaths,
                                      const struct zipccl_import_options *options,
                                      struct zipccl_import_report *report,
                                      struct zipccl_trace **out, struct zipccl_error *error);

#endif
