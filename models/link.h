/*
 * link.h - fits links and codec to measured calls: alpha and rate per level, codec, additions
 *
 * The model is T0's own: the time of the very plan that was measured, priced by zipccl_cost_plan(), so
 * that what is fitted here is what every simulation reads.  Parameters are fitted as logarithms to the
 * logarithm of predicted over measured, by nonlinear least squares (GSL).  What the rows cannot tell is
 * left as it was, and said.  It reads no files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_MODELS_LINK_H
#define ZIPCCL_MODELS_LINK_H

#include "core/cost.h"
#include "core/strategy.h"

/* One measured call; ranks lie contiguously on nodes of equal size. */
struct zipccl_link_row {
    enum zipccl_op op;
    enum zipccl_dtype dtype;
    enum zipccl_redop redop;
    uint32_t root; /* broadcast */
    size_t count;  /* NCCL argument */
    uint32_t nranks, nnodes;
    char strategy[48]; /* as a plan names it: "exact ring x4" */
    uint32_t nchunks;
    enum zipccl_effort effort;
    double time_s;     /* > 0 */
    double spread;     /* of it, one standard deviation, relative; NaN: not known */
    double wire_bytes; /* sent by a rank, mean; NaN: not known */
    double ratio;      /* of the codec, where wire_bytes is not known; NaN: Gaussian */
    /* The codec's of the busiest rank, with the additions of what it decodes; NaN: not known. */
    double encode_s, decode_s;
};

enum zipccl_link_key {
    ZIPCCL_LINK_NVLINK_RATE,
    ZIPCCL_LINK_NVLINK_ALPHA,
    ZIPCCL_LINK_NIC_RATE,
    ZIPCCL_LINK_NIC_ALPHA,
    ZIPCCL_LINK_ENCODE_RATE,
    ZIPCCL_LINK_DECODE_RATE,
    ZIPCCL_LINK_RATIO_ENCODE_RATE, /* of rows with ZIPCCL_EFFORT_RATIO */
    ZIPCCL_LINK_RATIO_DECODE_RATE,
    ZIPCCL_LINK_LAUNCH,
    ZIPCCL_LINK_REDUCE_RATE, /* of reductions' rows */
    ZIPCCL_NUM_LINK_KEYS
};

/* As in cluster files: "nvlink.rate", "nic.alpha", "codec.launch". */
const char *zipccl_link_key_name(enum zipccl_link_key key);

/* The field of 'params' that 'key' names; bytes/s or seconds. */
double *zipccl_link_value(struct zipccl_cost_params *params, enum zipccl_link_key key);

enum zipccl_link_state {
    ZIPCCL_LINK_FITTED,
    ZIPCCL_LINK_NO_ROWS, /* no row's time depends on it */
    ZIPCCL_LINK_UNCLEAR, /* rows depend on it, but do not say how large it is; see 'with' */
    ZIPCCL_LINK_BOUND /* only one end is known: an alpha of 0 or a rate that never is the limit */
};

struct zipccl_link_estimate {
    enum zipccl_link_state state;
    double value;     /* bytes/s or seconds; NO_ROWS and UNCLEAR: as it was, 0 for no rate */
    double low, high; /* 95 % interval; of FITTED */
    enum zipccl_link_key with; /* UNCLEAR: what it cannot be told from; itself: from nothing */
    size_t nrows;              /* rows whose time depends on it */
};

struct zipccl_link_fit {
    struct zipccl_link_estimate estimates[ZIPCCL_NUM_LINK_KEYS];
    struct zipccl_cost_params params; /* with what was fitted */
    double median, worst;             /* |predicted / measured - 1| over the rows */
};

/*
 * Price 'row' as T0 does with 'params'.
 *
 * The sizes of its messages are those that give the row's wire_bytes, or ratio.
 * ZIPCCL_ERR_INPUT with the reason: a strategy that there is not or that does not serve the call, an
 * uneven op, nodes of unequal size, wire bytes that the plan cannot have sent.
 */
zipccl_status zipccl_link_predict(const struct zipccl_link_row *row,
                                  const struct zipccl_cost_params *params, double *seconds,
                                  struct zipccl_error *error);

/*
 * Fit to 'rows' [n], starting from 'base' and keeping from it what the rows do not tell.
 *
 * predicted_s  out [n]
 * The interval of an estimate is 1.96 standard errors or more (Student's t).  A row weighs as its
 * spread and ZIPCCL_LINK_FLOOR together let it.
 * ZIPCCL_ERR_INPUT, naming the row by its number from 1 on, as zipccl_link_predict(); also if the rows
 * tell nothing at all, and why.  ZIPCCL_ERR_NOMEM.
 * GSL's error handler is off while it runs.
 */
zipccl_status zipccl_link_fit(const struct zipccl_link_row *rows, size_t n,
                              const struct zipccl_cost_params *base, struct zipccl_link_fit *out,
                              double *predicted_s, struct zipccl_error *error);

/* What the model itself is off by, relative: no row counts as more exact than this. */
#define ZIPCCL_LINK_FLOOR 0.02

/* An interval that reaches further than this factor from its estimate says nothing. */
#define ZIPCCL_LINK_VAGUE 3.0

#endif
