/*
 * link_call.c - a measured call as the plan that ran, ready to be priced again and again
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/link_call.h"

#include "core/group.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Staging that a call may use, as the communicator's default. */
#define MAX_STAGING_BYTES ((size_t)256 << 20)

static size_t message_bytes(void *context, uint32_t src, uint32_t dst, size_t n)
{
    const struct zipccl_link_call *call = context;

    (void)src;
    (void)dst;
    return (size_t)((double)(n * zipccl_dtype_size(call->row->dtype)) * call->per_byte + 0.5);
}

static struct zipccl_wire_sizes sizes_of(const struct zipccl_link_call *call)
{
    return (struct zipccl_wire_sizes){.bytes = message_bytes,
                                      .ratio_bytes = message_bytes,
                                      .context = (void *)call,
                                      .by_n = true};
}

zipccl_status zipccl_link_call_price(const struct zipccl_link_call *call,
                                     const struct zipccl_cost_params *params,
                                     struct zipccl_cost *out)
{
    struct zipccl_placement placement = {call->topology, NULL};
    struct zipccl_wire_sizes sizes = sizes_of(call);

    return zipccl_cost_plan(call->plan, &placement, params, &sizes, out);
}

/* "exact ring x4" is strategy "exact ring" with 4 channels. */
static const struct zipccl_strategy *find_strategy(const char *name, uint32_t *channels)
{
    const struct zipccl_strategy *found = zipccl_strategy_find(name);
    char bare[48];
    char *times, *end;
    unsigned long n;

    if (found != NULL)
        return found;
    snprintf(bare, sizeof bare, "%s", name);
    times = strrchr(bare, ' ');
    if (times == NULL || times[1] != 'x' || times[2] < '1' || times[2] > '9')
        return NULL;
    n = strtoul(times + 2, &end, 10);
    if (*end != '\0' || n > UINT16_MAX)
        return NULL;
    *times = '\0';
    *channels = (uint32_t)n;
    return zipccl_strategy_find(bare);
}

static zipccl_status build(const struct zipccl_link_call *call, uint32_t channels,
                           const struct zipccl_strategy *strategy, uint32_t capacity_class,
                           struct zipccl_plan **out)
{
    const struct zipccl_link_row *row = call->row;
    struct zipccl_call c = {.op = row->op,
                            .dtype = row->dtype,
                            .redop = row->redop,
                            .root = row->root,
                            .count = row->count,
                            .has_native = true,
                            .effort = row->effort};

    if (!strategy->serves(&c))
        return ZIPCCL_ERR_UNSUPPORTED;
    return strategy->build(&c, call->topology, channels, row->nchunks > 0 ? row->nchunks : 1,
                           capacity_class, MAX_STAGING_BYTES, out);
}

/* Wire bytes per rank that the plan has with messages of 'per_byte'. */
static zipccl_status wire_bytes(struct zipccl_link_call *call,
                                const struct zipccl_cost_params *params, double per_byte,
                                double *out)
{
    struct zipccl_cost cost;

    call->per_byte = per_byte;
    ZIPCCL_TRY(zipccl_link_call_price(call, params, &cost));
    *out = (double)cost.wire_bytes;
    return ZIPCCL_OK;
}

/* Choose the class of FIXED messages that puts nearest to the row's bytes on the wire. */
static zipccl_status fit_class(struct zipccl_link_call *call,
                               const struct zipccl_cost_params *params, uint32_t channels,
                               const struct zipccl_strategy *strategy)
{
    double nearest = INFINITY;

    for (uint32_t c = ZIPCCL_CLASS_WIDE; c < ZIPCCL_NUM_CLASSES; c++) {
        struct zipccl_plan *before = call->plan;
        double nbytes = 0, distance;
        zipccl_status status = build(call, channels, strategy, c, &call->plan);

        if (status != ZIPCCL_OK) {
            call->plan = before;
            return status;
        }
        status = wire_bytes(call, params, 1, &nbytes);
        distance = fabs(nbytes - call->row->wire_bytes);
        if (status == ZIPCCL_OK && distance < nearest) {
            zipccl_plan_destroy(before);
            nearest = distance;
            continue;
        }
        zipccl_plan_destroy(call->plan);
        call->plan = before;
        ZIPCCL_TRY(status);
    }
    return ZIPCCL_OK;
}

/* Wire bytes are a constant and a part in proportion to the size of messages: solve for that. */
static zipccl_status fit_size(struct zipccl_link_call *call,
                              const struct zipccl_cost_params *params, struct zipccl_error *error)
{
    double whole, half, per_byte;

    ZIPCCL_TRY(wire_bytes(call, params, 1, &whole));
    ZIPCCL_TRY(wire_bytes(call, params, 0.5, &half));
    per_byte = 1 - (whole - call->row->wire_bytes) / (2 * (whole - half));
    if (!(whole > half))
        per_byte = 1; /* levels of which nothing is coded */
    else if (!(per_byte > 0.001 && per_byte < 2))
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "wire_bytes is %.0f, where strategy \"%s\" sends %.0f uncompressed",
                           call->row->wire_bytes, call->row->strategy, whole);
    call->per_byte = per_byte;
    return ZIPCCL_OK;
}

static zipccl_status fit_wire(struct zipccl_link_call *call,
                              const struct zipccl_cost_params *params, uint32_t channels,
                              const struct zipccl_strategy *strategy, struct zipccl_error *error)
{
    const struct zipccl_link_row *row = call->row;
    size_t raw = call->plan->chunk_n * zipccl_dtype_size(row->dtype);

    if (raw == 0)
        return ZIPCCL_OK;
    call->per_byte =
        isfinite(row->ratio) && row->ratio > 0
            ? 1 / row->ratio
            : (double)zipccl_capacity_settled(row->dtype, call->plan->chunk_n) / (double)raw;
    if (!call->plan->compressed || !isfinite(row->wire_bytes))
        return ZIPCCL_OK;
    return zipccl_plan_is_fixed(call->plan) ? fit_class(call, params, channels, strategy)
                                            : fit_size(call, params, error);
}

/* What the busiest rank encodes and decodes, in bytes and in launches. */
static void count_codec(struct zipccl_link_call *call)
{
    double size = (double)zipccl_dtype_size(call->row->dtype);

    for (uint32_t r = 0; r < call->plan->nranks; r++) {
        double n[2] = {0, 0}, launches[2] = {0, 0}, added = 0;

        for (uint32_t i = 0; i < call->plan->nsteps; i++) {
            const struct zipccl_step *s = &call->plan->steps[i];
            bool encode = s->kind == ZIPCCL_STEP_ENCODE;
            double own;

            if (!encode && s->kind != ZIPCCL_STEP_DECODE && s->kind != ZIPCCL_STEP_REDUCE)
                continue;
            own = zipccl_cost_local_n(call->plan, s, call->topology, NULL, r);
            n[!encode] += own;
            launches[!encode] += own > 0;
            if (own > 0)
                added += zipccl_cost_summed_n(call->plan, s, call->topology, r);
        }
        if (n[0] * size > call->encode_n) {
            call->encode_n = n[0] * size;
            call->nencodes = launches[0];
        }
        if (n[1] * size > call->decode_n) {
            call->decode_n = n[1] * size;
            call->ndecodes = launches[1];
            call->summed_n = added * size;
        }
    }
}

static zipccl_status check_row(const struct zipccl_link_row *row, struct zipccl_error *error)
{
    if (zipccl_is_uneven(row->op))
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%s: how much each pair moved is not known, expected an op with equal "
                           "counts",
                           zipccl_op_name(row->op));
    if (row->nranks == 0 || row->nnodes == 0 || row->nranks % row->nnodes != 0)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%u rank%s on %u node%s, expected as many on each", row->nranks,
                           row->nranks == 1 ? "" : "s", row->nnodes, row->nnodes == 1 ? "" : "s");
    if (!(row->time_s > 0) || !isfinite(row->time_s))
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "a time of %g s, expected one above 0",
                           row->time_s);
    return ZIPCCL_OK;
}

static zipccl_status open_call(const struct zipccl_cost_params *params,
                               struct zipccl_link_call *call, struct zipccl_error *error)
{
    const struct zipccl_link_row *row = call->row;
    uint32_t channels = params->channels;
    const struct zipccl_strategy *strategy = find_strategy(row->strategy, &channels);
    zipccl_status status;

    if (strategy == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "there is no strategy \"%.47s\"",
                           row->strategy);
    ZIPCCL_TRY(
        zipccl_topology_create_even(row->nnodes, row->nranks / row->nnodes, &call->topology));
    status = build(call, channels, strategy, ZIPCCL_CLASS_SETTLED, &call->plan);
    if (status == ZIPCCL_OK && call->plan->nsteps > 0)
        status = fit_wire(call, params, channels, strategy, error);
    if (status == ZIPCCL_ERR_INPUT)
        return status;
    if (status != ZIPCCL_OK)
        return zipccl_fail(error, status == ZIPCCL_ERR_NOMEM ? status : ZIPCCL_ERR_INPUT,
                           "strategy \"%.47s\" for %s of %zu %s on %u nodes of %u: %s",
                           row->strategy, zipccl_op_name(row->op), row->count,
                           zipccl_dtype_name(row->dtype), row->nnodes, row->nranks / row->nnodes,
                           zipccl_status_string(status));
    count_codec(call);
    return ZIPCCL_OK;
}

zipccl_status zipccl_link_call_open(const struct zipccl_link_row *row,
                                    const struct zipccl_cost_params *params,
                                    struct zipccl_link_call *call, struct zipccl_error *error)
{
    zipccl_status status;

    *call = (struct zipccl_link_call){.row = row};
    ZIPCCL_TRY(check_row(row, error));
    status = open_call(params, call, error);
    if (status != ZIPCCL_OK)
        zipccl_link_call_close(call);
    return status;
}

void zipccl_link_call_close(struct zipccl_link_call *call)
{
    zipccl_plan_destroy(call->plan);
    zipccl_topology_destroy(call->topology);
    call->plan = NULL;
    call->topology = NULL;
}

zipccl_status zipccl_link_predict(const struct zipccl_link_row *row,
                                  const struct zipccl_cost_params *params, double *seconds,
                                  struct zipccl_error *error)
{
    struct zipccl_link_call call;
    struct zipccl_cost cost;
    zipccl_status status;

    ZIPCCL_TRY(zipccl_link_call_open(row, params, &call, error));
    status = zipccl_link_call_price(&call, params, &cost);
    zipccl_link_call_close(&call);
    if (status != ZIPCCL_OK)
        return zipccl_fail(error, status, "cannot be priced: %s", zipccl_status_string(status));
    *seconds = cost.total_s;
    return ZIPCCL_OK;
}
