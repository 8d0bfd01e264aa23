/*
 * samples.h - how long messages get: the real codec run on a trace's captured tensors
 *
 * A set is the tensors that a call moves, laid end to end and tiled to the message.  Sizes are
 * measured by encoding up to 1 Mi elements, longer messages grow in proportion; every measurement
 * is decoded and compared bit for bit.  It knows no plan and no time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_SAMPLES_H
#define ZIPCCL_SIM_SAMPLES_H

#include "core/codec.h"
#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a size comes from; the order of zipccl_replay_result.source_share. */
enum zipccl_ratio_source {
    ZIPCCL_RATIO_CAPTURED, /* tensors named by the event */
    ZIPCCL_RATIO_CLASS,    /* tensors of a class: names that start alike */
    ZIPCCL_RATIO_MODEL,    /* Gaussian data, generated with a fixed seed */
    ZIPCCL_RATIO_GIVEN,    /* a ratio given by the user */
    ZIPCCL_RATIO_NONE,     /* the codec does not cover the type; in results: sent raw */
    ZIPCCL_NUM_RATIO_SOURCES
};

const char *zipccl_ratio_source_name(enum zipccl_ratio_source source);

struct zipccl_samples;

/*
 * Open the tensors of a trace.
 *
 * path         .safetensors file; NULL if the trace has none
 * given_ratio  > 0: raw / wire of every compressible type, nothing is measured
 */
zipccl_status zipccl_samples_open(const char *path, double given_ratio, struct zipccl_samples **out,
                                  struct zipccl_error *error);
void zipccl_samples_close(struct zipccl_samples *samples);

/*
 * Find or make the set of 'names' for elements of 'dtype'.
 *
 * names  [nnames] tensor names, or a single "class:PREFIX"; nnames 0: none bound
 * ZIPCCL_ERR_INPUT, naming the tensor, if it is missing, empty or of another type.
 */
zipccl_status zipccl_samples_bind(struct zipccl_samples *samples, enum zipccl_dtype dtype,
                                  char *const *names, uint32_t nnames, uint32_t *set,
                                  struct zipccl_error *error);

enum zipccl_ratio_source zipccl_samples_source(const struct zipccl_samples *samples, uint32_t set);

/*
 * Elements [offset, offset + n) of what rank 'turn' of 'nturns' has of 'set', tiled; see 'nsummed' below.
 *
 * out  [n] elements
 * False, and 'out' untouched, if no elements are known: the ratio is given, or the codec does not
 * cover the type.
 */
bool zipccl_samples_copy(const struct zipccl_samples *samples, uint32_t set, uint32_t turn,
                         uint32_t nturns, size_t offset, size_t n, void *out);

/*
 * Bytes of a message of 'n' elements of 'set': mean and longest over windows of the set.
 *
 * effort   of the codec; a given ratio is that of both
 * nsummed  ranks whose elements were added up, 1 for a rank's own.  A set is what one rank has:
 *          the others' stand to it as it stands to itself rotated, tensor by tensor, so that rows
 *          of zeros do not meet.  More than 64 count as 64.
 *
 * Measured once per effort, n and nsummed, then remembered; after a failure, see zipccl_samples_check(), the
 * bound.
 */
void zipccl_samples_bytes(struct zipccl_samples *samples, uint32_t set, enum zipccl_effort effort,
                          size_t n, uint32_t nsummed, size_t *mean, size_t *longest);

/* The first failure of a measurement: out of memory, or a message that did not decode exactly. */
zipccl_status zipccl_samples_check(const struct zipccl_samples *samples,
                                   struct zipccl_error *error);

#endif
