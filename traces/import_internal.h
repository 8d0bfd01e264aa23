/*
 * import_internal.h - what the importers of single formats share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_IMPORT_INTERNAL_H
#define ZIPCCL_TRACES_IMPORT_INTERNAL_H

#include "traces/arena.h"
#include "traces/import.h"

/* One import while it runs; everything is borrowed. */
struct zipccl_importer {
    const char *const *paths;
    size_t npaths;
    const char *out_path;
    const struct zipccl_import_options *options;
    struct zipccl_import_report *report;
    struct zipccl_error *error;
};

struct zipccl_import_format {
    const char *name, *about;
    /* True if a file that starts with [nbytes] of 'head' is of this format. */
    bool (*detect)(const char *head, size_t nbytes);
    /* Read 'importer->paths' and write 'importer->out_path'. */
    zipccl_status (*run)(const struct zipccl_importer *importer);
};

extern const struct zipccl_import_format zipccl_import_simai;
extern const struct zipccl_import_format zipccl_import_kineto;
extern const struct zipccl_import_format zipccl_import_nccl;
extern const struct zipccl_import_format zipccl_import_aicb;
extern const struct zipccl_import_format zipccl_import_et;
extern const struct zipccl_import_format zipccl_import_chakra;

struct zipccl_safetensors;

/* Open the samples of the options as a reader of the output will find them. */
zipccl_status zipccl_import_open_samples(const struct zipccl_importer *importer,
                                         const struct zipccl_safetensors **out);

/*
 * What the trace is called: as the options say, else as the file without folder and endings, or as
 * the folder of several files; 'fallback' if a trace cannot bear it.
 */
const char *zipccl_import_trace_name(const struct zipccl_importer *importer,
                                     struct zipccl_arena *arena, const char *fallback);

/* Choose a class of samples for each op and type, NULL where there is none; nothing without samples. */
zipccl_status zipccl_import_bind_samples(const struct zipccl_importer *importer,
                                         const char *bound[ZIPCCL_NUM_OPS][ZIPCCL_NUM_DTYPES]);

/*
 * Add 'n' to the item 'what' of the report; the text, printf-formatted, is that of the first call.
 * ZIPCCL_ERR_INPUT with file and line if it is a guess and the options are strict.
 */
zipccl_status zipccl_import_count(const struct zipccl_importer *importer, bool guess,
                                  const char *what, uint64_t line, uint64_t n, const char *format,
                                  ...) __attribute__((format(printf, 6, 7)));

#endif
