/*
 * cluster.h - a cluster as YAML describes it: nodes, GPUs, links, codec rates, each with a source
 *
 * Rates are effective ones, what a transfer really reaches, not the number on the box.  Every
 * value can be overridden by key (--set nic.rate=800Gbps).  It holds no ranks and no time model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_MODELS_CLUSTER_H
#define ZIPCCL_MODELS_CLUSTER_H

#include "core/cost.h"
#include "core/status.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct zipccl_cluster {
    char name[64];
    char description[256];
    uint32_t nodes;                 /* nodes */
    uint32_t gpus_per_node;         /* gpus_per_node */
    char gpu_name[64];              /* gpu.name */
    uint32_t gpu_sms;               /* gpu.sms */
    double gpu_hbm_Bps;             /* gpu.hbm_rate */
    double gpu_memory_bytes;        /* gpu.memory */
    double gpu_flops;               /* gpu.flops, effective dense bf16 flop/s in training kernels */
    double nvlink_Bps;              /* nvlink.rate, per GPU and direction */
    double nvlink_alpha_s;          /* nvlink.alpha */
    uint32_t nics_per_node;         /* nic.per_node */
    double nic_Bps;                 /* nic.rate, per NIC and direction */
    double nic_alpha_s;             /* nic.alpha */
    double nic_burst_bytes;         /* nic.burst; 0: none */
    double fabric_oversubscription; /* fabric.oversubscription, >= 1 */
    uint32_t channels;              /* nccl.channels, rings of native collectives */
    double encode_Bps;              /* codec.encode_rate, raw bytes/s per GPU */
    double decode_Bps;              /* codec.decode_rate */
    double ratio_encode_Bps;        /* codec.ratio_encode_rate; 0: the file has none, not offered */
    double ratio_decode_Bps;        /* codec.ratio_decode_rate */
    uint32_t codec_sms;             /* codec.sms, SMs it runs on */
    double codec_launch_s;          /* codec.launch */
    double fence_s;                 /* codec.fence, device-to-host wait before an exact exchange */
    double compute_hbm_share;       /* compute.hbm_share, part of HBM that training kernels use */
    double reduce_Bps; /* reduce.rate, bytes of sums that a rank makes per second; 0: not charged */
    uint32_t shared_cores; /* machine.cores, of one machine that carries all ranks; 0: not so */
};

/* One key, for printing, --set and the list of assumptions. */
struct zipccl_cluster_setting {
    const char *key;    /* "nic.rate" */
    double value;       /* base unit; text keys: NaN */
    const char *text;   /* as written: "24.2GBps" */
    const char *unit;   /* "B/s", "s", "bytes", "flop/s", "" */
    const char *source; /* from the file, or "--set" */
    int overridden;
};

struct zipccl_cluster_file;

/*
 * Read a cluster: a name of a bundled one (looked for in 'search_dir'/NAME.yaml) or a path.
 * ZIPCCL_ERR_IO / ZIPCCL_ERR_INPUT with file, key or line, what was found, what was expected; for
 * a name that is not there, the names that are.
 */
zipccl_status zipccl_cluster_open(const char *name_or_path, const char *search_dir,
                                  struct zipccl_cluster_file **out, struct zipccl_error *error);

/*
 * List what 'search_dir' has: '*out' [n] names, sorted; release with zipccl_cluster_names_free().
 * ZIPCCL_ERR_IO, ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_cluster_names(const char *search_dir, char ***out, size_t *n,
                                   struct zipccl_error *error);
void zipccl_cluster_names_free(char **names, size_t n);

/* The file that was read; borrowed. */
const char *zipccl_cluster_path(const struct zipccl_cluster_file *file);

/* Override one key: "nic.rate=800Gbps".  Unknown keys are refused, naming near ones. */
zipccl_status zipccl_cluster_set(struct zipccl_cluster_file *file, const char *assignment,
                                 struct zipccl_error *error);

/*
 * Give 'key' another value, 'text' with its unit, and say where it comes from: at most 255 characters on
 * one line.  ZIPCCL_ERR_INPUT as zipccl_cluster_set().
 */
zipccl_status zipccl_cluster_put(struct zipccl_cluster_file *file, const char *key,
                                 const char *text, const char *source, struct zipccl_error *error);

/*
 * Write 'file' with all that was set, in the form that zipccl_cluster_open() reads; keys that it leaves
 * out stay out.  ZIPCCL_ERR_INPUT as zipccl_cluster_get(); the caller checks 'out'.
 */
zipccl_status zipccl_cluster_write(const struct zipccl_cluster_file *file, FILE *out,
                                   struct zipccl_error *error);

/* Values after overrides; checks that they fit together. */
zipccl_status zipccl_cluster_get(const struct zipccl_cluster_file *file, struct zipccl_cluster *out,
                                 struct zipccl_error *error);

/* All settings that have a value, in file order; borrowed until the next zipccl_cluster_set(). */
const struct zipccl_cluster_setting *zipccl_cluster_settings(const struct zipccl_cluster_file *file,
                                                             size_t *n);
/* The keys that a cluster may have, "nic.rate": '*n' names. */
const char *const *zipccl_cluster_keys(size_t *n);
void zipccl_cluster_close(struct zipccl_cluster_file *file);

/* The rates that the T0 cost model needs. */
void zipccl_cluster_cost_params(const struct zipccl_cluster *cluster,
                                struct zipccl_cost_params *out);

#endif
