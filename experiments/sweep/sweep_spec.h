/*
 * sweep_spec.h - the axes of a sweep: names, values, and the combinations they make
 *
 * An axis is a list of values, as text, of one option of 'trace generate', of the ranks, the cluster, one
 * of its keys, or the ratio.  Combinations are numbered, the last axis running fastest.  It knows which
 * names and values there are, not which combinations make sense.  It prints nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_SWEEP_SPEC_H
#define ZIPCCL_EXPERIMENTS_SWEEP_SPEC_H

#include "core/status.h"
#include "models/workload.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    ZIPCCL_SWEEP_MAX_AXES = 48,
    ZIPCCL_SWEEP_MAX_VALUES = 1000,       /* of an axis */
    ZIPCCL_SWEEP_MAX_COMBINATIONS = 20000 /* of all axes */
};

/* In the order that axes have. */
enum zipccl_sweep_role {
    ZIPCCL_SWEEP_MODEL,
    ZIPCCL_SWEEP_TRACE,
    ZIPCCL_SWEEP_PARALLEL, /* several options of 'trace generate' in one value: "tp=8,pp=4" */
    ZIPCCL_SWEEP_OPTION,   /* one of them */
    ZIPCCL_SWEEP_GPUS,
    ZIPCCL_SWEEP_NODES,
    ZIPCCL_SWEEP_CLUSTER,
    ZIPCCL_SWEEP_KEY, /* of the cluster */
    ZIPCCL_SWEEP_RATIO
};

struct zipccl_sweep_axis {
    char key[64];    /* "tp", "nic.rate" */
    char place[320]; /* begins errors: "--tp", or file, line and key */
    enum zipccl_sweep_role role;
    size_t n;
    char **values;   /* [n] as given */
    double *numbers; /* [n] in base units; NaN where the axis is of texts */
    char unit[16];   /* of the numbers */
};

struct zipccl_sweep_spec {
    size_t naxes;
    struct zipccl_sweep_axis axes[ZIPCCL_SWEEP_MAX_AXES];
};

/*
 * Add an axis.
 *
 * key     a name of an axis; "nic" is nic.rate
 * place   as above
 * values  [n] copied
 * ZIPCCL_ERR_INPUT with 'place': an unknown name, one that is there already, no values, a value that is
 * none or is there twice.  Values of cluster keys are checked by zipccl_sweep_spec_finish()'s caller,
 * who has clusters.
 */
zipccl_status zipccl_sweep_spec_add(struct zipccl_sweep_spec *spec, const char *key,
                                    const char *place, const char *const *values, size_t n,
                                    struct zipccl_error *error);

/*
 * Add the axes of a YAML file: keys and lists.  As zipccl_sweep_spec_add(), with file and line.
 */
zipccl_status zipccl_sweep_spec_read(struct zipccl_sweep_spec *spec, const char *path,
                                     struct zipccl_error *error);

/* See that axes go together, and put them in order.  ZIPCCL_ERR_INPUT. */
zipccl_status zipccl_sweep_spec_finish(struct zipccl_sweep_spec *spec, struct zipccl_error *error);
void zipccl_sweep_spec_release(struct zipccl_sweep_spec *spec);

/* Combinations of all values. */
size_t zipccl_sweep_spec_count(const struct zipccl_sweep_spec *spec);

/* Which value of axis 'axis' combination 'index' has. */
size_t zipccl_sweep_spec_choice(const struct zipccl_sweep_spec *spec, size_t index, size_t axis);

/* The axis 'key' or of 'role', the first of several; NULL if there is none. */
const struct zipccl_sweep_axis *zipccl_sweep_spec_find(const struct zipccl_sweep_spec *spec,
                                                       const char *key);
const struct zipccl_sweep_axis *zipccl_sweep_spec_role(const struct zipccl_sweep_spec *spec,
                                                       enum zipccl_sweep_role role);

/* Set in 'w' what combination 'index' says of options; '*dp_given' if dp is one.  Values are good ones. */
void zipccl_sweep_spec_apply(const struct zipccl_sweep_spec *spec, size_t index,
                             struct zipccl_workload *w, bool *dp_given);

/* Text of combination 'index' on axes with several values, "gpus 64, nic.rate 200Gbps"; cut at 'size'. */
void zipccl_sweep_spec_describe(const struct zipccl_sweep_spec *spec, size_t index, char *out,
                                size_t size);

#endif
