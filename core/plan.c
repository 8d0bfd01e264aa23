/*
 * plan.c - building, digesting and destroying plans
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/plan_builder.h"

#include "core/wire.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void zipccl_plan_destroy(struct zipccl_plan *plan)
{
    if (plan == NULL)
        return;
    free(plan->steps);
    free(plan);
}

size_t zipccl_plan_fixed_bytes(const struct zipccl_plan *plan, size_t n)
{
    return zipccl_capacity((enum zipccl_dtype)plan->dtype, n, plan->capacity_class);
}

bool zipccl_plan_is_fixed(const struct zipccl_plan *plan)
{
    for (uint32_t i = 0; i < plan->nsteps; i++)
        if (plan->steps[i].form == ZIPCCL_FORM_FIXED)
            return true;
    return false;
}

size_t zipccl_plan_owner_n(const struct zipccl_plan *plan, uint32_t chunk, uint32_t owner)
{
    size_t before = plan->shard_n * owner, n = plan->count;

    if (plan->shard_n > 0) {
        n = before < plan->count ? plan->count - before : 0;
        n = n < plan->shard_n ? n : plan->shard_n;
    }
    return zipccl_chunk_n(n, plan->chunk_n, chunk);
}

size_t zipccl_plan_staging_bytes(const struct zipccl_plan *plan)
{
    const size_t parts[] = {plan->tx_bytes, plan->rx_bytes, plan->tmp_bytes, plan->acc_bytes};
    size_t sum = 0;

    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
        sum = parts[i] > SIZE_MAX - sum ? SIZE_MAX : sum + parts[i];
    return sum;
}

void zipccl_builder_start(struct zipccl_builder *builder, const struct zipccl_call *call,
                          const struct zipccl_topology *topology, const char *name,
                          uint32_t channels)
{
    struct zipccl_plan *plan = calloc(1, sizeof *plan);

    *builder = (struct zipccl_builder){plan, 0, plan == NULL ? ZIPCCL_ERR_NOMEM : ZIPCCL_OK};
    if (plan == NULL)
        return;
    if (channels > 0)
        snprintf(plan->strategy, sizeof plan->strategy, "%s x%u", name, (unsigned)channels);
    else
        snprintf(plan->strategy, sizeof plan->strategy, "%s", name);
    plan->op = (uint8_t)call->op;
    plan->dtype = (uint8_t)call->dtype;
    plan->redop = ZIPCCL_SUM;
    plan->effort = (uint8_t)call->effort;
    plan->nranks = topology->nranks;
    plan->root = call->op == ZIPCCL_BROADCAST ? call->root : 0;
    plan->count = call->count;
    plan->chunk_n = call->count;
    plan->nchunks = call->count > 0 ? 1 : 0;
}

uint16_t zipccl_builder_add(struct zipccl_builder *builder, const struct zipccl_step *step)
{
    struct zipccl_plan *plan = builder->plan;

    if (builder->status != ZIPCCL_OK)
        return 0;
    if (plan->nsteps == ZIPCCL_STEP_NONE) {
        builder->status = ZIPCCL_ERR_NOMEM;
        return 0;
    }
    if (plan->nsteps == builder->room) {
        uint32_t room = builder->room == 0 ? 16 : 2 * builder->room;
        struct zipccl_step *steps = realloc(plan->steps, room * sizeof *steps);

        if (steps == NULL) {
            builder->status = ZIPCCL_ERR_NOMEM;
            return 0;
        }
        plan->steps = steps;
        builder->room = room;
    }
    plan->steps[plan->nsteps] = *step;
    if (step->kind == ZIPCCL_STEP_ENCODE)
        plan->compressed = 1;
    return (uint16_t)plan->nsteps++;
}

zipccl_status zipccl_builder_finish(struct zipccl_builder *builder, struct zipccl_plan **out)
{
    if (builder->status != ZIPCCL_OK)
        zipccl_plan_destroy(builder->plan);
    else
        *out = builder->plan;
    builder->plan = NULL;
    return builder->status;
}

struct zipccl_step zipccl_step_make(enum zipccl_step_kind kind, enum zipccl_lane lane,
                                    uint32_t chunk, size_t n)
{
    struct zipccl_step step = {0};

    step.kind = (uint8_t)kind;
    step.lane = (uint8_t)lane;
    step.group = ZIPCCL_GROUP_WORLD;
    step.chunk = (uint16_t)chunk;
    step.channels = 1;
    step.nblocks = 1;
    step.n = n;
    step.sizes_of = ZIPCCL_STEP_NONE;
    step.raw_of = ZIPCCL_STEP_NONE;
    return step;
}

void zipccl_step_dep(struct zipccl_step *step, uint16_t on)
{
    if (on == ZIPCCL_STEP_NONE)
        return;
    assert(step->ndeps < ZIPCCL_STEP_MAX_DEPS);
    step->deps[step->ndeps++] = on;
}

static uint64_t fnv_bytes(uint64_t hash, const void *bytes, size_t nbytes)
{
    const uint8_t *p = bytes;

    for (size_t i = 0; i < nbytes; i++)
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Each number counts as eight little-endian bytes, whatever its width in the struct. */
static uint64_t fnv_numbers(uint64_t hash, const uint64_t *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t bytes[8];

        zipccl_put_u64(bytes, numbers[i]);
        hash = fnv_bytes(hash, bytes, sizeof bytes);
    }
    return hash;
}

static uint64_t digest_place(uint64_t hash, const struct zipccl_place *p)
{
    const uint64_t numbers[] = {p->buf,  p->slot,        p->uneven,      p->by_rank,
                                p->base, p->peer_stride, p->self_stride, p->block_stride};

    return fnv_numbers(hash, numbers, sizeof numbers / sizeof *numbers);
}

static uint64_t digest_step(uint64_t hash, const struct zipccl_step *s)
{
    const uint64_t numbers[] = {s->kind,     s->lane,     s->pattern,  s->form,  s->lowering,
                                s->group,    s->chunk,    s->channels, s->root,  s->n,
                                s->capacity, s->sizes_of, s->raw_of,   s->ndeps, s->nblocks,
                                s->remote,   s->redop,    s->first,    s->round, s->part};

    hash = fnv_numbers(hash, numbers, sizeof numbers / sizeof *numbers);
    hash = digest_place(hash, &s->src);
    hash = digest_place(hash, &s->dst);
    hash = digest_place(hash, &s->self);
    for (uint32_t d = 0; d < s->ndeps; d++) {
        uint64_t dep = s->deps[d];

        hash = fnv_numbers(hash, &dep, 1);
    }
    return hash;
}

uint64_t zipccl_plan_digest(const struct zipccl_plan *plan)
{
    const uint64_t numbers[] = {
        plan->op,          plan->dtype,    plan->redop,  plan->root,
        plan->compressed,  plan->nranks,   plan->count,  plan->chunk_n,
        plan->raw_below_n, plan->nchunks,  plan->nslots, plan->capacity_class,
        plan->tx_bytes,    plan->rx_bytes, plan->nsteps, plan->effort};
    uint64_t hash =
        fnv_bytes(UINT64_C(0xcbf29ce484222325), plan->strategy, strlen(plan->strategy) + 1);

    hash = fnv_numbers(hash, numbers, sizeof numbers / sizeof *numbers);
    for (uint32_t i = 0; i < plan->nsteps; i++)
        hash = digest_step(hash, &plan->steps[i]);
    return hash;
}
