/*
 * result.c - memory of a replay's result
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/result.h"

#include "sim/timeline.h"

#include <stdlib.h>

void zipccl_replay_result_destroy(struct zipccl_replay_result *result)
{
    if (result == NULL)
        return;
    if (result->import != NULL)
        free(result->import->items);
    free(result->import);
    zipccl_timeline_destroy(result->timeline);
    free(result->rows);
    free(result->settings);
    free(result->assumptions);
    free(result->sensitivities);
    free(result->warnings);
    free(result);
}
