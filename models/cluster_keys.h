/*
 * cluster_keys.h - the keys of a cluster file: unit, range, and where the value goes
 *
 * Private to cluster.c and cluster_yaml.c.  One table feeds the reader, --set, the checks and the
 * list of settings, so that a key exists in all of them or in none.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_MODELS_CLUSTER_KEYS_H
#define ZIPCCL_MODELS_CLUSTER_KEYS_H

#include "models/cluster.h"
#include "models/units.h"

/* A value as the file gives it; both NULL: the file does without this key. */
struct zipccl_cluster_value {
    char *value, *source;
};

enum zipccl_cluster_key_id {
    KEY_NODES,
    KEY_GPUS_PER_NODE,
    KEY_GPU_NAME,
    KEY_GPU_SMS,
    KEY_GPU_HBM_RATE,
    KEY_GPU_MEMORY,
    KEY_GPU_FLOPS,
    KEY_NVLINK_RATE,
    KEY_NVLINK_ALPHA,
    KEY_NIC_PER_NODE,
    KEY_NIC_RATE,
    KEY_NIC_ALPHA,
    KEY_NIC_BURST, /* optional */
    KEY_FABRIC_OVERSUBSCRIPTION,
    KEY_NCCL_CHANNELS,
    KEY_CODEC_ENCODE_RATE,
    KEY_CODEC_DECODE_RATE,
    KEY_CODEC_RATIO_ENCODE_RATE, /* optional, as the next one */
    KEY_CODEC_RATIO_DECODE_RATE,
    KEY_CODEC_SMS,
    KEY_CODEC_LAUNCH,
    KEY_CODEC_FENCE,
    KEY_COMPUTE_HBM_SHARE,
    KEY_REDUCE_RATE, /* optional, as the next one, and their sections */
    KEY_MACHINE_CORES,
    NUM_KEYS
};

/* A cluster file as it lies in memory after reading; all texts owned through libcyaml. */
struct zipccl_cluster_yaml {
    char *name, *description;
    struct zipccl_cluster_value values[NUM_KEYS];
};

/* Dotted names in the order of the ids above. */
extern const char *const zipccl_cluster_key_names[NUM_KEYS];

/* Read and check the form of 'path'; values are still texts. */
zipccl_status zipccl_cluster_yaml_load(const char *path, struct zipccl_cluster_yaml **out,
                                       struct zipccl_error *error);
void zipccl_cluster_yaml_free(struct zipccl_cluster_yaml *yaml);

/*
 * The same for a cluster as plain text (cluster_plain.c), which zipccl_cluster_yaml_load() takes too:
 * true if the first line with something in it is a key and a tab; read it; the line of a key in it.
 */
bool zipccl_cluster_is_plain(const char *path);
zipccl_status zipccl_cluster_plain_load(const char *path, struct zipccl_cluster_yaml **out,
                                        struct zipccl_error *error);
unsigned zipccl_cluster_plain_line(const char *path, const char *key);

/* Say that 'search_dir' has no such name, and which it has (cluster_names.c). */
zipccl_status zipccl_cluster_unknown(const char *name, const char *search_dir,
                                     struct zipccl_error *error);

/* Line of the dotted 'key' in 'path' in block style; 0 if it is not found. */
unsigned zipccl_cluster_key_line(const char *path, const char *key);

/* The known key closest to 'key' in spelling. */
const char *zipccl_cluster_near_key(const char *key);

#endif
