/*
 * link_call.h - a measured call as the plan that ran, ready to be priced again and again
 *
 * Private to link.c and its parts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_MODELS_LINK_CALL_H
#define ZIPCCL_MODELS_LINK_CALL_H

#include "models/link.h"

struct zipccl_link_call {
    const struct zipccl_link_row *row;
    struct zipccl_plan *plan;
    struct zipccl_topology *topology;
    double per_byte;           /* wire bytes of a message per raw byte */
    double encode_n, decode_n; /* raw bytes of the busiest rank */
    double summed_n;           /* bytes of the sums that it makes where it decodes */
    double nencodes, ndecodes; /* its steps that launch */
};

/* Build the plan; channels and NICs are those of 'params'.  As zipccl_link_predict(). */
zipccl_status zipccl_link_call_open(const struct zipccl_link_row *row,
                                    const struct zipccl_cost_params *params,
                                    struct zipccl_link_call *call, struct zipccl_error *error);
void zipccl_link_call_close(struct zipccl_link_call *call);

zipccl_status zipccl_link_call_price(const struct zipccl_link_call *call,
                                     const struct zipccl_cost_params *params,
                                     struct zipccl_cost *out);

#endif
