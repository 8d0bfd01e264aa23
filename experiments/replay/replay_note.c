/*
 * replay_note.c - what a result says of its tensors and of what an import assumed
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/replay/replay_input.h"

#include "experiments/report/report.h"
#include "traces/safetensors.h"

#include <stdlib.h>
#include <string.h>

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
