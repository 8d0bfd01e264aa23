/*
 * sample.h - what the makers of the bundled traces share
 *
 * Formulas of compute events, used by all (t tokens per rank, s sequence length, h hidden size):
 *   matrix products   2 flops per parameter and token forward, twice that backward
 *   attention         causal: QK^T and AV take 2 * 2 * s * s * q / 2 flops a sequence, with q the
 *                     width of all query heads, so 2 * t * s * q forward, twice that backward
 *   memory traffic    weights once forward and three times backward (read twice, gradient
 *                     written), plus 34 * t * h bytes of activations, what a layer writes for its
 *                     backward pass (Korthikanti et al., arXiv 2205.05198, section 4.1, without
 *                     the attention scores, which a fused kernel keeps on chip); backward twice
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_SAMPLES_SAMPLE_H
#define ZIPCCL_TRACES_SAMPLES_SAMPLE_H

#include "traces/trace.h"

#define SAMPLE_GENERATOR "traces/samples/make_samples 1"
#define SAMPLE_RANKS     64
#define SAMPLE_PER_NODE  8
#define SAMPLE_TOKENS    ((uint64_t)4096) /* per rank: one sequence, micro-batch 1 */
#define SAMPLE_SEQ       ((uint64_t)4096)

/* AdamW, mixed precision, bytes per parameter: gradient read 4; master, m and v read and written
 * 12 + 12; flops 14: update of m and v, bias corrections, root, decay, step. */
#define SAMPLE_ADAM_BYTES 28.0
#define SAMPLE_ADAM_FLOPS 14.0

/* Writes events with ids 1, 2, 3, ... */
struct sample_out {
    struct zipccl_trace_writer *writer;
    uint64_t id; /* of the event written last */
    zipccl_status status;
    struct zipccl_error *error;
};

/* Up to four ids; 0 stands for none. */
struct sample_deps {
    uint64_t id[4];
};

/* Up to four tensor names; NULL ends the list. */
struct sample_names {
    const char *name[4];
};

/* Each returns the id of the new event; a failure is kept in 'out->status'. */
uint64_t sample_compute(struct sample_out *out, const char *label, double flops, double hbm_bytes,
                        struct sample_deps deps);
uint64_t sample_duration(struct sample_out *out, const char *label, double seconds,
                         struct sample_deps deps);
uint64_t sample_collective(struct sample_out *out, const struct zipccl_event *call,
                           struct sample_deps deps, struct sample_names names);

/* Write one trace into the file 'path'. */
zipccl_status sample_fsdp(const char *path, bool fp32, struct zipccl_error *error);
zipccl_status sample_moe(const char *path, struct zipccl_error *error);
zipccl_status sample_small(const char *path, struct zipccl_error *error);

#endif
