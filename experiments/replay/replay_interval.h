/*
 * replay_interval.h - what the speedup would be if all payload were like one class of samples
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_REPLAY_INTERVAL_H
#define ZIPCCL_EXPERIMENTS_REPLAY_INTERVAL_H

#include "experiments/replay/replay_input.h"
#include "sim/replay.h"

/*
 * Where 'input' has bundled classes of samples instead of tensors: measure the ratio of each class,
 * replay with every call bound to the lowest of its type, then to the highest, and note both in
 * 'result', which has its import noted; the classes told are those of the type with most bytes.  Else nothing.  Errors as of zipccl_replay().
 */
zipccl_status zipccl_replay_interval(const struct zipccl_replay_input *input,
                                     const struct zipccl_cluster_file *cluster,
                                     const struct zipccl_replay_options *options,
                                     struct zipccl_replay_result *result,
                                     struct zipccl_error *error);

#endif
