/*
 * workload_keys.h - the numbers that describe a model, by the names of YAML and of config.json
 *
 * Private to the readers of models.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_MODELS_WORKLOAD_KEYS_H
#define ZIPCCL_MODELS_WORKLOAD_KEYS_H

#include "models/workload.h"

/* A config.json of Hugging Face (workload_hf.c). */
zipccl_status zipccl_workload_model_hf(const char *path, struct zipccl_workload_model *out,
                                       struct zipccl_error *error);

/* A description in YAML (workload_yaml.c). */
zipccl_status zipccl_workload_model_yaml(const char *path, struct zipccl_workload_model *out,
                                         struct zipccl_error *error);

#endif
