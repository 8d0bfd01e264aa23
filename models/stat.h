/*
 * stat.h - statistics of tensors: their law, what it promises and what the codec makes of them
 *
 * From elements in memory to one row per tensor, as a table and as JSON.  It opens no files:
 * experiments/codec/codec_stat.h does for `zipccl codec stat`.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_MODELS_STAT_H
#define ZIPCCL_MODELS_STAT_H

#include "core/codec.h"
#include "core/codec/layout.h"
#include "models/exponent_fit.h"

#include <stdbool.h>
#include <stdio.h>

/* A superblock's mode: its program, or ZIPCCL_MODE_ZEROS more if after a bitmap of zeros. */
#define ZIPCCL_MODE_ZEROS 16
#define ZIPCCL_NUM_MODES  (2 * ZIPCCL_MODE_ZEROS)

/* The superblock that gained least. */
struct zipccl_worst_block {
    const char *tensor; /* its name, borrowed; NULL if there is no superblock */
    uint64_t first;     /* element that it starts with */
    double ratio;       /* without the message's header */
};

struct zipccl_tensor_stat {
    char *name;             /* owned */
    char dtype_name[16];    /* as in the file, "BF16" */
    bool covered;           /* the codec compresses this type; else only n, sizes and ratio 1 */
    uint64_t n;             /* elements */
    uint64_t raw_bytes;     /* as they are */
    uint64_t wire_bytes;    /* one message, measured, and decoded to the same bits */
    double bound_bytes;     /* if exponents took their entropy (models/exponent_code.h) */
    double huffman_bytes;   /* if they took Huffman's code; its table is free */
    bool predicted;         /* the next two are known: bf16, and what the codec does not cover */
    double predicted_bytes; /* one message, by the fitted law */
    double shares_bytes;    /* the same by the tensor's own exponent shares: errors of the law */
    double entropy;         /* bits of an exponent, from the tensor's own shares */
    double zero;            /* share of exact zeros */
    bool fitted;            /* bf16 with a normal value; else no scale, no law */
    double sigma;           /* from the log-moment, over values that are not zero */
    struct zipccl_exponent_fit fit;
    uint64_t modes[ZIPCCL_NUM_MODES]; /* superblocks of each */
    struct zipccl_worst_block worst;
};

struct zipccl_stats {
    size_t ntensors;
    struct zipccl_tensor_stat *tensor; /* [ntensors], owned */
};

/*
 * Measure one tensor of 'n' elements at 'data' (any alignment) and append it to 'stats'.
 *
 * dtype       ignored unless 'known'; types that the codec does not cover have ratio 1
 * nbytes      of 'data'
 * ZIPCCL_ERR_NOMEM; ZIPCCL_ERR_INTERNAL if the codec does not give back what it was given.
 */
zipccl_status zipccl_stats_add(struct zipccl_stats *stats, const char *name, const char *dtype_name,
                               bool known, enum zipccl_dtype dtype, const void *data, uint64_t n,
                               uint64_t nbytes, struct zipccl_error *error);
void zipccl_stats_destroy(struct zipccl_stats *stats);

/*
 * All tensors together; sizes, modes and n are sums, nothing is fitted and there is no name.
 * Predicted only if every tensor is.
 */
struct zipccl_tensor_stat zipccl_stats_total(const struct zipccl_stats *stats);

/* raw / wire size as measured, and what it would be; 1 for an empty or an uncovered tensor. */
double zipccl_stat_ratio(const struct zipccl_tensor_stat *stat);
double zipccl_stat_bound(const struct zipccl_tensor_stat *stat);
double zipccl_stat_huffman(const struct zipccl_tensor_stat *stat);
double zipccl_stat_predicted(const struct zipccl_tensor_stat *stat);

/* Name of mode 'i' < ZIPCCL_NUM_MODES in text [24]: "22123", "zeros, 323". */
void zipccl_mode_name(int i, char text[24]);

/*
 * Write a table, with '?' for what a terminal would obey in names.  ZIPCCL_ERR_IO if 'out' refuses,
 * ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_stats_print(const struct zipccl_stats *stats, FILE *out,
                                 struct zipccl_error *error);

/* Write JSON: "schema", "version", "isa", "tensors" and "total".  Errors as above, or NOMEM. */
zipccl_status zipccl_stats_json(const struct zipccl_stats *stats, const char *path, FILE *out,
                                struct zipccl_error *error);

#endif
