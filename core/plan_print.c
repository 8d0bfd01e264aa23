/*
 * plan_print.c - plans as text for people and tests
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec.h"
#include "core/plan.h"

#include <stdio.h>

static const char *const kinds[] = {"encode", "sizes", "exchange", "resolve",
                                    "decode", "copy",  "native",   "reduce"};
static const char *const lanes[] = {"codec", "wire"};
static const char *const patterns[] = {"all-gather", "all-to-all", "pairs", "broadcast"};
static const char *const forms[] = {"raw", "fixed", "exact"};
static const char *const bufs[] = {"send", "recv", "tx", "rx", "tmp"};
static const char *const groups[] = {"", " node", " rail"};

#define NAME(table, i) ((i) < sizeof(table) / sizeof *(table) ? (table)[i] : "?")

static bool is_wire(const struct zipccl_step *s)
{
    return s->kind == ZIPCCL_STEP_EXCHANGE || s->kind == ZIPCCL_STEP_NATIVE;
}

/* buf[slot]+base+p*stride, elements in user buffers and bytes in staging */
static void print_place(const struct zipccl_place *p, FILE *out)
{
    fputs(NAME(bufs, p->buf), out);
    if (p->buf != ZIPCCL_BUF_SEND && p->buf != ZIPCCL_BUF_RECV)
        fprintf(out, "[%u]", p->slot);
    if (p->base > 0)
        fprintf(out, "+%zu", p->base);
    if (p->uneven)
        fputs("+displ", out);
    if (p->peer_stride > 0)
        fprintf(out, p->by_rank ? "+r*%zu" : "+p*%zu", p->peer_stride);
    if (p->block_stride > 0)
        fprintf(out, "+b*%zu", p->block_stride);
    if (p->self_stride > 0)
        fprintf(out, "+i*%zu", p->self_stride);
}

static const char *part_name(unsigned part)
{
    switch (part) {
    case ZIPCCL_PART_HEAD: return " head";
    case ZIPCCL_PART_EARLY: return " early";
    case ZIPCCL_PART_TAIL: return " tail";
    default: return " rest";
    }
}

static void print_step(const struct zipccl_step *s, uint32_t number, FILE *out)
{
    fprintf(out, "%4u %-5s %-8s chunk %u", number, NAME(lanes, s->lane), NAME(kinds, s->kind),
            s->chunk);
    if (s->kind != ZIPCCL_STEP_NATIVE)
        fprintf(out, "%s %s", NAME(groups, s->group), NAME(patterns, s->pattern));
    if (s->nblocks > 1)
        fprintf(out, " x%u%s", s->nblocks, s->remote ? " remote" : "");
    if (s->kind != ZIPCCL_STEP_COPY && s->kind != ZIPCCL_STEP_NATIVE)
        fprintf(out, " %s", NAME(forms, s->form));
    if (s->part != 0)
        fputs(part_name(s->part), out);
    if (s->kind == ZIPCCL_STEP_REDUCE)
        fprintf(out, " %s%s%s", zipccl_redop_name((enum zipccl_redop)s->redop),
                s->first ? " first" : "", s->round ? " round" : "");
    if (is_wire(s) && s->lowering == ZIPCCL_LOWER_RING)
        fprintf(out, " ring x%u", s->channels);
    else if (is_wire(s))
        fputs(" direct", out);
    if (s->pattern == ZIPCCL_PATTERN_BROADCAST)
        fprintf(out, " root %u", s->root);
    fputs("  ", out);
    print_place(&s->src, out);
    if (s->kind == ZIPCCL_STEP_REDUCE) {
        fputs(" and ", out);
        print_place(&s->self, out);
    }
    if (s->kind != ZIPCCL_STEP_SIZES && s->kind != ZIPCCL_STEP_RESOLVE) {
        fputs(" -> ", out);
        print_place(&s->dst, out);
    }
    fprintf(out, "  n %zu", s->n);
    if (s->capacity > 0)
        fprintf(out, " capacity %zu", s->capacity);
    if (s->sizes_of != ZIPCCL_STEP_NONE)
        fprintf(out, " sizes of %u", s->sizes_of);
    if (s->raw_of != ZIPCCL_STEP_NONE)
        fprintf(out, " raw of %u", s->raw_of);
    for (uint32_t d = 0; d < s->ndeps; d++)
        fprintf(out, "%s%u", d == 0 ? " after " : ",", s->deps[d]);
    fputc('\n', out);
}

void zipccl_plan_print(const struct zipccl_plan *plan, FILE *out)
{
    fprintf(out, "plan \"%s\": %s %s count %zu on %u ranks", plan->strategy,
            zipccl_op_name((enum zipccl_op)plan->op),
            zipccl_dtype_name((enum zipccl_dtype)plan->dtype), plan->count, plan->nranks);
    if (plan->op == ZIPCCL_BROADCAST)
        fprintf(out, " root %u", plan->root);
    if (zipccl_is_reduction(plan->op))
        fprintf(out, " %s", zipccl_redop_name((enum zipccl_redop)plan->redop));
    fprintf(out, ", %u chunks of %zu", plan->nchunks, plan->chunk_n);
    if (plan->raw_below_n > 0)
        fprintf(out, ", raw below %zu", plan->raw_below_n);
    if (plan->shard_n > 0)
        fprintf(out, " of shards of %zu", plan->shard_n);
    fprintf(out, ", %u slots, class %u, staging %zu + %zu", plan->nslots, plan->capacity_class,
            plan->tx_bytes, plan->rx_bytes);
    if (plan->tmp_bytes > 0)
        fprintf(out, " + tmp %zu", plan->tmp_bytes);
    if (plan->acc_bytes > 0)
        fprintf(out, " + acc %zu", plan->acc_bytes);
    fprintf(out, " B, %u steps", plan->nsteps);
    if (plan->effort == ZIPCCL_EFFORT_RATIO)
        fputs(", coded for ratio", out);
    fputc('\n', out);
    for (uint32_t i = 0; i < plan->nsteps; i++)
        print_step(&plan->steps[i], i, out);
}
