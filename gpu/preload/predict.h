/*
 * predict.h - what compression would gain on the calls that were counted, by the cost model
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_PRELOAD_PREDICT_H
#define ZIPCCL_GPU_PRELOAD_PREDICT_H

#include "gpu/preload/comms.h"

/* Seconds of all calls of a kind: by NCCL's own collective (sends and receives as they are), by the
 * best uncompressed plan, and by the plan that mode on would choose. */
struct zipccl_shim_prediction {
    double native_s, raw_s, best_s;
    char strategy[48]; /* of that plan */
};

/* False where nothing is predicted: types and ops that are never compressed, unknown topologies. */
bool zipccl_shim_predict(const struct zipccl_shim_comm *comm, const struct zipccl_shim_kind *kind,
                         struct zipccl_shim_prediction *out);

#endif
