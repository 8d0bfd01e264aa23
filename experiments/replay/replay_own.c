/*
 * replay_own.c - what a replay is given, in builds that read zipccl's own traces alone
 *
 * It stands for replay_input.c, which imports files of other tools on the way.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/replay/replay_input.h"

#include "traces/safetensors.h"

#include <inttypes.h>
#include <string.h>

zipccl_status zipccl_replay_input_load(const char *const *paths, size_t npaths,
                                       const struct zipccl_import_options *options,
                                       const char *const *map, size_t nmap, uint64_t ngpus,
                                       struct zipccl_replay_input *input,
                                       struct zipccl_error *error)
{
    const char *path = paths[0];
    struct zipccl_error why = {""};
    zipccl_status status;

    (void)npaths;
    (void)ngpus;
    (void)map;
    memset(input, 0, sizeof *input);
    status = zipccl_trace_load(path, &input->trace, &why);
    if (status == ZIPCCL_OK && nmap > 0) {
        zipccl_replay_input_release(input);
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%.300s: --map: this build takes no trace to other ranks: 'zipccl trace "
                           "rescale' of a full build makes one",
                           path);
    }
    if (status == ZIPCCL_OK && options->nranks != 0 &&
        options->nranks != input->trace->header.nranks) {
        status = zipccl_fail(error, ZIPCCL_ERR_INPUT,
                             "%.300s: a trace of %" PRIu32 " ranks, but --ranks is %" PRIu32
                             "; this build takes no trace to other ranks: 'zipccl trace rescale' "
                             "of a full build makes one",
                             path, input->trace->header.nranks, options->nranks);
        zipccl_replay_input_release(input);
        return status;
    }
    if (status == ZIPCCL_OK)
        return status;
    return zipccl_fail(error, status,
                       "%.420s (this build reads zipccl's own traces alone: 'zipccl trace import' "
                       "of a full build makes one)",
                       why.text);
}

void zipccl_replay_input_release(struct zipccl_replay_input *input)
{
    zipccl_trace_destroy(input->trace);
    memset(input, 0, sizeof *input);
}
