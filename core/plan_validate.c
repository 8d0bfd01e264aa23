/*
 * plan_validate.c - the rules that each step of a plan must keep
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/plan_check.h"

#include "core/codec.h"

#include <stdarg.h>
#include <stdlib.h>

zipccl_status zipccl_check_fail(const struct zipccl_check *c, uint32_t step, const char *rule,
                                const char *format, ...)
{
    static const char *const kinds[] = {"encode", "sizes", "exchange", "resolve",
                                        "decode", "copy",  "native",   "reduce"};
    unsigned kind = c->plan->steps[step].kind;
    char text[256];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return zipccl_fail(c->error, ZIPCCL_ERR_ARG, "step %u (%s) breaks rule '%s': %s", step,
                       kind < sizeof kinds / sizeof *kinds ? kinds[kind] : "?", rule, text);
}

static bool is_staging(const struct zipccl_place *p)
{
    return p->buf != ZIPCCL_BUF_SEND && p->buf != ZIPCCL_BUF_RECV;
}

static uint32_t pattern_of(uint32_t op)
{
    switch (op) {
    case ZIPCCL_ALLTOALL: return ZIPCCL_PATTERN_ALL_TO_ALL;
    case ZIPCCL_ALLTOALLV:
    case ZIPCCL_SENDRECV: return ZIPCCL_PATTERN_PAIRS;
    case ZIPCCL_BROADCAST: return ZIPCCL_PATTERN_BROADCAST;
    default: return ZIPCCL_PATTERN_ALL_GATHER;
    }
}

/* Reductions of our own exchange contributions, and all_reduce gathers what it has summed. */
static bool has_pattern(const struct zipccl_check *c, const struct zipccl_step *s)
{
    if (zipccl_is_reduction(c->plan->op) && s->kind != ZIPCCL_STEP_NATIVE)
        return s->pattern == ZIPCCL_PATTERN_ALL_TO_ALL ||
               (s->pattern == ZIPCCL_PATTERN_ALL_GATHER && s->kind != ZIPCCL_STEP_REDUCE);
    return s->pattern == pattern_of(c->plan->op);
}

/* Who takes part, and what a REDUCE says of its sum. */
static zipccl_status check_group(const struct zipccl_check *c, uint32_t i)
{
    const struct zipccl_plan *plan = c->plan;
    const struct zipccl_step *s = &plan->steps[i];
    bool last = s->group != ZIPCCL_GROUP_NODE;

    if (!has_pattern(c, s) || (zipccl_is_uneven(c->plan->op) && s->group != ZIPCCL_GROUP_WORLD))
        return zipccl_check_fail(c, i, "form", "its pattern or group does not serve %s",
                                 zipccl_op_name((enum zipccl_op)plan->op));
    if (!zipccl_step_fits(s, c->topology))
        return zipccl_check_fail(c, i, "form", "the nodes have no such group or blocks");
    if (s->kind != ZIPCCL_STEP_REDUCE)
        return s->redop == 0 && s->first == 0 && s->round == 0
                   ? ZIPCCL_OK
                   : zipccl_check_fail(c, i, "form", "only a REDUCE has an operator");
    if (!zipccl_is_reduction(c->plan->op) || s->redop != (last ? plan->redop : ZIPCCL_SUM))
        return zipccl_check_fail(c, i, "reduce", "its operator is not that of its level");
    if (s->first != 1 || s->round != 1)
        return zipccl_check_fail(c, i, "reduce", "a sum starts and is rounded in one step");
    return ZIPCCL_OK;
}

static zipccl_status check_numbers(const struct zipccl_check *c, uint32_t i)
{
    const struct zipccl_plan *plan = c->plan;
    const struct zipccl_step *s = &plan->steps[i];
    bool on_codec = s->kind == ZIPCCL_STEP_ENCODE || s->kind == ZIPCCL_STEP_DECODE ||
                    s->kind == ZIPCCL_STEP_COPY || s->kind == ZIPCCL_STEP_REDUCE;
    bool whole = s->kind == ZIPCCL_STEP_COPY && s->n == plan->count;
    size_t n = zipccl_plan_owner_n(plan, s->chunk, 0);

    if (s->kind > ZIPCCL_STEP_REDUCE || s->self.buf > ZIPCCL_BUF_TMP ||
        s->form > ZIPCCL_FORM_EXACT || s->lowering > ZIPCCL_LOWER_RING ||
        s->src.buf > ZIPCCL_BUF_TMP || s->dst.buf > ZIPCCL_BUF_TMP)
        return zipccl_check_fail(c, i, "form", "a field holds no valid number");
    if (s->lane != (on_codec ? ZIPCCL_LANE_CODEC : ZIPCCL_LANE_WIRE))
        return zipccl_check_fail(c, i, "lane", "it runs on the wrong lane");
    ZIPCCL_TRY(check_group(c, i));
    if (s->chunk >= plan->nchunks)
        return zipccl_check_fail(c, i, "chunk", "chunk %u of %u", s->chunk, plan->nchunks);
    if (whole || s->kind == ZIPCCL_STEP_NATIVE)
        n = plan->count;
    else if (zipccl_is_uneven(c->plan->op))
        n = plan->chunk_n;
    if (s->n != n)
        return zipccl_check_fail(c, i, "agree", "n is %zu, chunk %u has %zu", s->n, s->chunk, n);
    if (s->channels == 0 || (s->pattern == ZIPCCL_PATTERN_BROADCAST && s->root != plan->root))
        return zipccl_check_fail(c, i, "agree", "root or channels differ from the plan's");
    return ZIPCCL_OK;
}

/* The step that 's' refers to must be an earlier one of that kind, for the same chunk. */
static zipccl_status check_reference(const struct zipccl_check *c, uint32_t i, uint32_t other,
                                     enum zipccl_step_kind kind)
{
    const struct zipccl_step *steps = c->plan->steps;

    if (other >= i || steps[other].kind != kind || steps[other].chunk != steps[i].chunk ||
        steps[other].group != steps[i].group || steps[other].pattern != steps[i].pattern ||
        steps[other].nblocks != steps[i].nblocks || steps[other].remote != steps[i].remote)
        return zipccl_check_fail(c, i, "reference", "step %u is not the one it needs", other);
    if (!zipccl_check_ordered(c, other, i))
        return zipccl_check_fail(c, i, "order", "it may run before step %u, which it needs", other);
    return ZIPCCL_OK;
}

static zipccl_status check_references(const struct zipccl_check *c, uint32_t i)
{
    const struct zipccl_step *s = &c->plan->steps[i];
    bool is_exchange = s->kind == ZIPCCL_STEP_EXCHANGE;
    bool decodes = s->kind == ZIPCCL_STEP_DECODE || s->kind == ZIPCCL_STEP_REDUCE;

    if (is_exchange && s->form == ZIPCCL_FORM_EXACT && s->part != ZIPCCL_PART_EARLY)
        ZIPCCL_TRY(check_reference(c, i, s->sizes_of, ZIPCCL_STEP_SIZES));
    else if (s->sizes_of != ZIPCCL_STEP_NONE)
        return zipccl_check_fail(c, i, "reference", "only exact exchanges have sizes");
    if (decodes && s->form == ZIPCCL_FORM_FIXED && s->raw_of == ZIPCCL_STEP_NONE)
        return zipccl_check_fail(c, i, "reference", "no RESOLVE has read its headers");
    if (s->raw_of == ZIPCCL_STEP_NONE)
        return ZIPCCL_OK;
    if (!(is_exchange && s->form == ZIPCCL_FORM_RAW) && !(decodes && s->form == ZIPCCL_FORM_FIXED))
        return zipccl_check_fail(c, i, "reference", "nothing of it can overflow");
    return check_reference(c, i, s->raw_of, ZIPCCL_STEP_RESOLVE);
}

/* A RESOLVE that nobody obeys would lose the data of an overflow. */
static zipccl_status check_resend(const struct zipccl_check *c, uint32_t i)
{
    const struct zipccl_plan *plan = c->plan;

    for (uint32_t k = i + 1; k < plan->nsteps; k++)
        if (plan->steps[k].kind == ZIPCCL_STEP_EXCHANGE && plan->steps[k].raw_of == i)
            return ZIPCCL_OK;
    return zipccl_check_fail(c, i, "reference", "no exchange sends again what overflows");
}

/* Which parts of messages a step may name. */
static zipccl_status check_part(const struct zipccl_check *c, uint32_t i)
{
    const struct zipccl_step *s = &c->plan->steps[i];
    bool ring = s->lowering == ZIPCCL_LOWER_RING && s->kind == ZIPCCL_STEP_EXCHANGE;
    bool known = s->part == ZIPCCL_PART_REST;

    if (s->part == 0)
        return ZIPCCL_OK;
    if (s->kind == ZIPCCL_STEP_EXCHANGE || s->kind == ZIPCCL_STEP_ENCODE)
        known = known || s->part == ZIPCCL_PART_EARLY;
    if (ring) /* one piece a step, and the blocks of an all-gather would lie apart */
        known = (s->part == ZIPCCL_PART_HEAD || s->part == ZIPCCL_PART_EARLY ||
                 s->part == ZIPCCL_PART_TAIL) &&
                s->pattern == ZIPCCL_PATTERN_BROADCAST;
    if (!known || s->form == ZIPCCL_FORM_RAW || s->kind == ZIPCCL_STEP_REDUCE ||
        c->plan->effort != ZIPCCL_EFFORT_FAST)
        return zipccl_check_fail(c, i, "form", "it cannot be of part %u of its messages", s->part);
    return ZIPCCL_OK;
}

static zipccl_status check_form(const struct zipccl_check *c, uint32_t i)
{
    const struct zipccl_plan *plan = c->plan;
    const struct zipccl_step *s = &plan->steps[i];
    enum zipccl_dtype dtype = (enum zipccl_dtype)plan->dtype;
    bool is_exchange = s->kind == ZIPCCL_STEP_EXCHANGE;
    size_t capacity = s->form == ZIPCCL_FORM_FIXED   ? zipccl_plan_fixed_bytes(plan, s->n)
                      : s->form == ZIPCCL_FORM_EXACT ? zipccl_bound(dtype, s->n)
                                                     : 0;

    if (s->kind == ZIPCCL_STEP_COPY || s->kind == ZIPCCL_STEP_NATIVE)
        return ZIPCCL_OK;
    if ((s->form == ZIPCCL_FORM_RAW && !is_exchange && s->kind != ZIPCCL_STEP_REDUCE) ||
        (s->kind == ZIPCCL_STEP_SIZES && s->form != ZIPCCL_FORM_EXACT) ||
        (s->kind == ZIPCCL_STEP_RESOLVE && s->form != ZIPCCL_FORM_FIXED))
        return zipccl_check_fail(c, i, "form", "its kind and form do not go together");
    if (s->kind != ZIPCCL_STEP_SIZES && s->capacity != capacity)
        return zipccl_check_fail(c, i, "agree", "capacity is %zu, both ends compute %zu",
                                 s->capacity, capacity);
    if (is_exchange && s->lowering == ZIPCCL_LOWER_RING &&
        ((s->pattern != ZIPCCL_PATTERN_ALL_GATHER && s->pattern != ZIPCCL_PATTERN_BROADCAST) ||
         s->group != ZIPCCL_GROUP_WORLD))
        return zipccl_check_fail(c, i, "form", "its pattern cannot go around a ring");
    if (s->kind == ZIPCCL_STEP_RESOLVE)
        ZIPCCL_TRY(check_resend(c, i));
    return check_part(c, i);
}

/* A ring writes the blocks of an all-gather end to end: the places must say the same. */
static zipccl_status check_ring_stride(const struct zipccl_check *c, uint32_t i)
{
    const struct zipccl_step *s = &c->plan->steps[i];
    size_t stride = s->form == ZIPCCL_FORM_FIXED ? s->capacity : s->n * c->size;

    if (s->kind != ZIPCCL_STEP_EXCHANGE || s->lowering != ZIPCCL_LOWER_RING ||
        s->pattern != ZIPCCL_PATTERN_ALL_GATHER || s->form == ZIPCCL_FORM_EXACT)
        return ZIPCCL_OK;
    if (!is_staging(&s->dst))
        stride /= c->size;
    if (s->dst.peer_stride != stride)
        return zipccl_check_fail(c, i, "agree", "blocks %zu apart, a ring writes them %zu apart",
                                 s->dst.peer_stride, stride);
    return ZIPCCL_OK;
}

static zipccl_status check_place(const struct zipccl_check *c, uint32_t i,
                                 const struct zipccl_place *p, bool one_message)
{
    if (is_staging(p) ? p->slot >= c->plan->nslots || p->uneven != 0 || p->by_rank != 0
                      : (p->uneven != 0) != zipccl_is_uneven(c->plan->op) ||
                            (p->uneven != 0 && p->by_rank != 0))
        return zipccl_check_fail(c, i, "form", "a place has the wrong slot or peer table");
    if (one_message && p->peer_stride != 0 && !p->by_rank)
        return zipccl_check_fail(c, i, "form", "one message for all has one place");
    return ZIPCCL_OK;
}

/* Buffers as bits, to say which ones a step may use. */
#define BUF(name) (1u << ZIPCCL_BUF_##name)

/* Buffers that the step may read and write. */
static void allowed_bufs(const struct zipccl_check *c, const struct zipccl_step *s, unsigned *src,
                         unsigned *dst)
{
    /* What has been received is passed on within the node, or once it is reduced. */
    unsigned elements = BUF(SEND) | BUF(TMP);

    if (c->plan->op == ZIPCCL_ALL_REDUCE || s->group == ZIPCCL_GROUP_NODE)
        elements |= BUF(RECV);
    *dst = 0;
    switch (s->kind) {
    case ZIPCCL_STEP_ENCODE:
        *src = elements;
        *dst = BUF(TX);
        break;
    case ZIPCCL_STEP_EXCHANGE:
        *src = s->form == ZIPCCL_FORM_RAW ? elements : BUF(TX);
        *dst = s->form == ZIPCCL_FORM_RAW && s->raw_of == ZIPCCL_STEP_NONE
                   ? BUF(RECV) | BUF(RX) | BUF(TMP)
                   : BUF(RX);
        break;
    case ZIPCCL_STEP_SIZES: *src = BUF(TX); break;
    case ZIPCCL_STEP_RESOLVE: *src = BUF(RX); break;
    case ZIPCCL_STEP_DECODE:
        *src = BUF(RX);
        *dst = BUF(RECV);
        break;
    case ZIPCCL_STEP_REDUCE:
        *src = BUF(RX);
        *dst = BUF(RECV) | BUF(TMP);
        break;
    case ZIPCCL_STEP_COPY:
        *src = BUF(SEND);
        *dst = BUF(RECV) | BUF(TMP);
        break;
    default: *src = BUF(SEND); *dst = BUF(RECV);
    }
}

static zipccl_status check_places(const struct zipccl_check *c, uint32_t i)
{
    const struct zipccl_step *s = &c->plan->steps[i];
    bool one_out = zipccl_step_shares_message(s);
    bool one_in = s->pattern == ZIPCCL_PATTERN_BROADCAST;
    bool incoming = s->src.buf == ZIPCCL_BUF_RX;
    unsigned src, dst;

    allowed_bufs(c, s, &src, &dst);
    if (!(src & 1u << s->src.buf) || (dst != 0 && !(dst & 1u << s->dst.buf)))
        return zipccl_check_fail(c, i, "form", "its kind and buffers do not go together");
    ZIPCCL_TRY(check_place(c, i, &s->src, incoming ? one_in : one_out));
    if (dst != 0)
        ZIPCCL_TRY(check_place(c, i, &s->dst, s->dst.buf == ZIPCCL_BUF_TX ? one_out : one_in));
    if (s->kind == ZIPCCL_STEP_REDUCE) {
        if (s->self.buf != ZIPCCL_BUF_SEND && s->self.buf != ZIPCCL_BUF_TMP)
            return zipccl_check_fail(c, i, "form", "its kind and buffers do not go together");
        ZIPCCL_TRY(check_place(c, i, &s->self, false));
    }
    return check_ring_stride(c, i);
}

/* Fill c->before, the two-lane clock of each step. */
static zipccl_status order_steps(struct zipccl_check *c)
{
    const struct zipccl_plan *plan = c->plan;
    uint32_t lanes[2][2] = {{0, 0}, {0, 0}}; /* clock at the end of each lane so far */

    for (uint32_t i = 0; i < plan->nsteps; i++) {
        const struct zipccl_step *s = &plan->steps[i];
        uint32_t *now = c->before[i];

        if (s->lane > ZIPCCL_LANE_WIRE)
            return zipccl_check_fail(c, i, "lane", "there is no such lane");
        if (s->ndeps > ZIPCCL_STEP_MAX_DEPS)
            return zipccl_check_fail(c, i, "reference", "%u dependencies", s->ndeps);
        now[0] = lanes[s->lane][0];
        now[1] = lanes[s->lane][1];
        for (uint32_t d = 0; d < s->ndeps; d++) {
            uint32_t dep = s->deps[d], lane;

            if (dep >= i)
                return zipccl_check_fail(c, i, "reference", "it waits for step %u, a later one",
                                         dep);
            lane = plan->steps[dep].lane;
            for (uint32_t l = 0; l < 2; l++) {
                uint32_t then = l == lane ? dep + 1 : c->before[dep][l];

                now[l] = then > now[l] ? then : now[l];
            }
        }
        lanes[s->lane][0] = now[0];
        lanes[s->lane][1] = now[1];
        lanes[s->lane][s->lane] = i + 1;
    }
    return ZIPCCL_OK;
}

/* Room for the sums of a chunk, and for a decoded block on a cache line of its own. */
static zipccl_status check_accumulator(const struct zipccl_plan *plan, size_t size,
                                       struct zipccl_error *error)
{
    size_t wanted = (plan->chunk_n * sizeof(float) + 63) / 64 * 64;

    for (uint32_t i = 0; i < plan->nsteps; i++)
        if (plan->steps[i].kind == ZIPCCL_STEP_REDUCE &&
            plan->acc_bytes <
                wanted + (plan->steps[i].form == ZIPCCL_FORM_RAW ? 0 : plan->chunk_n * size))
            return zipccl_fail(error, ZIPCCL_ERR_ARG,
                               "rule 'staging': step %u needs an accumulator of %zu elements", i,
                               plan->chunk_n);
    return ZIPCCL_OK;
}

/* The plan as a whole. */
static zipccl_status check_plan(const struct zipccl_plan *plan,
                                const struct zipccl_topology *topology, const size_t *splits,
                                size_t max_staging_bytes, struct zipccl_error *error)
{
    size_t size = zipccl_dtype_size((enum zipccl_dtype)plan->dtype);
    size_t nranks = topology->nranks;
    size_t block_n = plan->shard_n > 0 ? plan->shard_n : plan->count;

    if (plan->nranks != nranks || size == 0 || plan->op >= ZIPCCL_NUM_OPS || plan->root >= nranks)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "the plan is not one for %u ranks",
                           topology->nranks);
    if (zipccl_plan_staging_bytes(plan) == SIZE_MAX ||
        (max_staging_bytes > 0 && zipccl_plan_staging_bytes(plan) > max_staging_bytes))
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "rule 'staging': %zu + %zu bytes, bound is %zu",
                           plan->tx_bytes, plan->rx_bytes, max_staging_bytes);
    if (plan->shard_n > 0 && (plan->op != ZIPCCL_ALL_REDUCE ||
                              plan->shard_n != plan->count / nranks + (plan->count % nranks != 0)))
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "rule 'chunk': shards of %zu of %zu elements",
                           plan->shard_n, plan->count);
    if (plan->count > 0 && (plan->chunk_n == 0 || plan->nchunks == 0 ||
                            zipccl_chunk_n(block_n, plan->chunk_n, plan->nchunks - 1) == 0 ||
                            zipccl_chunk_n(block_n, plan->chunk_n, plan->nchunks) != 0))
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "rule 'chunk': %u chunks of %zu are not %zu",
                           plan->nchunks, plan->chunk_n, plan->count);
    ZIPCCL_TRY(check_accumulator(plan, size, error));
    if (!zipccl_is_uneven(plan->op))
        return ZIPCCL_OK;
    if (splits == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "an uneven op needs splits");
    for (size_t i = 0; i < nranks * nranks; i++)
        if (splits[i] > plan->count)
            return zipccl_fail(error, ZIPCCL_ERR_ARG,
                               "rule 'agree': pair %zu to %zu moves %zu, the plan serves %zu",
                               i / nranks, i % nranks, splits[i], plan->count);
    return ZIPCCL_OK;
}

/* Displacements as if all blocks lay end to end; NULL if memory is short. */
static size_t *packed(const size_t *splits, size_t nranks, bool receive)
{
    size_t *displs = calloc(nranks * nranks, sizeof *displs);

    for (size_t r = 0; displs != NULL && r < nranks; r++)
        for (size_t p = 1; p < nranks; p++) {
            size_t before = receive ? splits[(p - 1) * nranks + r] : splits[r * nranks + p - 1];

            displs[r * nranks + p] = displs[r * nranks + p - 1] + before;
        }
    return displs;
}

static zipccl_status check_all(struct zipccl_check *c)
{
    const struct zipccl_plan *plan = c->plan;
    bool native = plan->nsteps == 1 && plan->steps[0].kind == ZIPCCL_STEP_NATIVE;

    ZIPCCL_TRY(order_steps(c));
    for (uint32_t i = 0; i < plan->nsteps; i++) {
        ZIPCCL_TRY(check_numbers(c, i));
        if (plan->steps[i].kind == ZIPCCL_STEP_NATIVE && !native)
            return zipccl_check_fail(c, i, "output", "a native step does all or nothing");
        ZIPCCL_TRY(check_references(c, i));
        ZIPCCL_TRY(check_form(c, i));
        ZIPCCL_TRY(check_places(c, i));
    }
    return native ? ZIPCCL_OK : zipccl_check_world(c);
}

zipccl_status zipccl_plan_validate(const struct zipccl_plan *plan,
                                   const struct zipccl_topology *topology, bool in_place,
                                   const size_t *splits, size_t max_staging_bytes,
                                   struct zipccl_error *error)
{
    struct zipccl_check c = {
        .plan = plan, .topology = topology, .in_place = in_place, .splits = splits, .error = error};
    size_t *send_displs = NULL, *recv_displs = NULL;
    zipccl_status status;

    ZIPCCL_TRY(check_plan(plan, topology, splits, max_staging_bytes, error));
    c.size = zipccl_dtype_size((enum zipccl_dtype)plan->dtype);
    c.before = calloc((size_t)plan->nsteps + 1, sizeof *c.before);
    if (zipccl_is_uneven(plan->op)) {
        send_displs = packed(splits, plan->nranks, false);
        recv_displs = packed(splits, plan->nranks, true);
    }
    c.send_displs = send_displs;
    c.recv_displs = recv_displs;
    if (c.before == NULL ||
        (zipccl_is_uneven(plan->op) && (send_displs == NULL || recv_displs == NULL)))
        status = zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    else
        status = check_all(&c);
    free(send_displs);
    free(recv_displs);
    free(c.before);
    return status;
}
