/*
 * replay_input.c - what a replay is given: a trace, or a file of another tool imported on the way
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/replay_input.h"

#include "experiments/import_options.h"
#include "experiments/report.h"
#include "traces/safetensors.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A regular file that one of the importers knows; what is no trace either is left to its reader. */
static bool is_foreign(const char *path)
{
    char format[ZIPCCL_IMPORT_NAME_SIZE];
    struct stat info;

    return stat(path, &info) == 0 && S_ISREG(info.st_mode) &&
           zipccl_import_detect(path, format, sizeof format, NULL) == ZIPCCL_OK;
}

zipccl_status zipccl_replay_input_load(const char *path,
                                       const struct zipccl_import_options *options, uint64_t ngpus,
                                       struct zipccl_replay_input *input,
                                       struct zipccl_error *error)
{
    struct zipccl_import_options import = *options;
    const char *given = zipccl_import_first_given(options);

    memset(input, 0, sizeof *input);
    if (!is_foreign(path)) {
        ZIPCCL_TRY(zipccl_trace_load(path, &input->trace, error));
        if (given == NULL)
            return ZIPCCL_OK;
        zipccl_replay_input_release(input);
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%.300s: is a trace; %s is for files to import",
                           path, given);
    }
    input->imported = true;
    import.likely_nranks = ngpus <= UINT32_MAX ? (uint32_t)ngpus : 0;
    zipccl_status status =
        zipccl_import_to_memory(NULL, &path, 1, &import, &input->report, &input->trace, error);
    if (status != ZIPCCL_OK)
        zipccl_replay_input_release(input);
    return status;
}

void zipccl_replay_input_release(struct zipccl_replay_input *input)
{
    zipccl_trace_destroy(input->trace);
    zipccl_import_report_free(&input->report);
    memset(input, 0, sizeof *input);
}

/* Add the assumption that says where the tensors behind the ratios come from. */
static zipccl_status note_samples(const struct zipccl_trace *trace,
                                  struct zipccl_replay_result *result, struct zipccl_error *error)
{
    const struct zipccl_safetensors *file;
    struct zipccl_result_note *notes, *note;

    if (trace->samples_path == NULL || !(result->source_share[0] + result->source_share[1] > 0))
        return ZIPCCL_OK;
    ZIPCCL_TRY(zipccl_safetensors_open(trace->samples_path, &file, error));
    if (file->origin != NULL) {
        notes = realloc(result->assumptions, (result->nassumptions + 1) * sizeof *notes);
        if (notes == NULL) {
            zipccl_safetensors_close(file);
            return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "result: out of memory");
        }
        result->assumptions = notes;
        note = &notes[result->nassumptions++];
        snprintf(note->name, sizeof note->name, "%s", ZIPCCL_NOTE_SAMPLES);
        snprintf(note->value, sizeof note->value, "%s", file->origin);
        snprintf(note->source, sizeof note->source, "metadata of the samples file");
        note->unit[0] = '\0';
    }
    zipccl_safetensors_close(file);
    return ZIPCCL_OK;
}

zipccl_status zipccl_replay_input_note(const struct zipccl_replay_input *input,
                                       struct zipccl_replay_result *result,
                                       struct zipccl_error *error)
{
    const struct zipccl_import_report *report = &input->report;
    struct zipccl_result_import *import;

    ZIPCCL_TRY(note_samples(input->trace, result, error));
    if (!input->imported)
        return ZIPCCL_OK;
    import = calloc(1, sizeof *import);
    result->import = import;
    if (import != NULL)
        import->items = calloc(report->nitems + 1, sizeof *import->items);
    if (import == NULL || import->items == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "import: out of memory");
    snprintf(import->format, sizeof import->format, "%s", report->format);
    import->nlayers = report->nlayers;
    import->ncollectives = report->ncollectives;
    import->nguesses = report->nguesses;
    import->nitems = report->nitems;
    for (size_t i = 0; i < report->nitems; i++) {
        const struct zipccl_import_item *from = &report->items[i];
        struct zipccl_result_import_item *to = &import->items[i];

        snprintf(to->what, sizeof to->what, "%s", from->what);
        snprintf(to->text, sizeof to->text, "%s", from->text);
        to->count = from->count;
        to->line = from->line;
        to->guess = from->guess;
    }
    return ZIPCCL_OK;
}
