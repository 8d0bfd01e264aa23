/*
 * workload_pipeline.c - a step in micro-batches over the stages of a pipeline (or over one)
 *
 * The order is 1F1B, or Megatron-LM's interleaved one (Narayanan et al., arXiv 2104.04473): stage s
 * of p first runs p-s-1 forward passes, interleaved 2(p-s-1) + (v-1)p, then one forward and one
 * backward in turn, then the backward passes left over.  Where passes are paired (overlap_a2a, as
 * DualPipe and Megatron-LM's combined 1F1B do) a forward and a backward pass run layer by layer
 * beside each other, and stage s runs 2(p-s-1) + 1 first, so that neither has to wait.  In the middle all stages repeat the same,
 * shifted by whole micro-batches: that is written once, as a loop.  What one iteration sends and
 * the next needs, a marker in the stream of the message stands for.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/workload_out.h"

#include <stdlib.h>

struct pass {
    bool backward;
    uint64_t batch;
    uint32_t chunk;
};

/* A message that was sent and not yet used. */
struct message {
    bool backward;
    uint32_t virtual_stage; /* that needs it */
    uint64_t batch, id;
};

struct pipeline {
    struct workload_out *o;
    uint32_t p, v;
    uint64_t batches, total; /* total: forward passes of a stage */
    uint64_t cursor[MAX_STAGES], target[MAX_STAGES];
    struct message *messages;
    size_t nmessages, room;
};

static uint64_t warm_up(const struct pipeline *l, uint32_t stage)
{
    uint64_t n = l->p - stage - 1;

    if (l->o->w->overlap_a2a)
        n = 2 * n + 1;
    if (l->v > 1)
        n = l->batches == l->p ? l->total : 2 * n + (uint64_t)(l->v - 1) * l->p;
    return n < l->total ? n : l->total;
}

/* The k-th forward or backward pass of any stage. */
static struct pass nth(const struct pipeline *l, bool backward, uint64_t k)
{
    uint64_t group = (uint64_t)l->p * l->v, rest = k % group;
    uint32_t chunk = (uint32_t)(rest / l->p);

    if (l->v == 1)
        return (struct pass){backward, k, 0};
    return (struct pass){backward, k / group * l->p + rest % l->p,
                         backward ? l->v - 1 - chunk : chunk};
}

static uint64_t number_of(const struct pipeline *l, bool backward, uint64_t batch, uint32_t chunk)
{
    if (l->v == 1)
        return batch;
    chunk = backward ? l->v - 1 - chunk : chunk;
    return batch / l->p * l->p * l->v + (uint64_t)chunk * l->p + batch % l->p;
}

static struct pass pass_at(const struct pipeline *l, uint32_t stage, uint64_t at)
{
    uint64_t w = warm_up(l, stage), pairs = l->total - w;

    if (at < w)
        return nth(l, false, at);
    if (at < w + 2 * pairs)
        return nth(l, (at - w) % 2 == 1, (at - w) % 2 == 1 ? (at - w) / 2 : w + (at - w) / 2);
    return nth(l, true, at - l->total);
}

static uint64_t position(const struct pipeline *l, uint32_t stage, bool backward, uint64_t k)
{
    uint64_t w = warm_up(l, stage);

    if (!backward)
        return k < w ? k : w + 2 * (k - w);
    return k < l->total - w ? w + 2 * k + 1 : l->total + k;
}

/* Which stage sends what 'pass' of 'stage' needs; false if it needs nothing. */
static bool source(const struct pipeline *l, uint32_t stage, const struct pass *pass,
                   uint32_t *from, uint32_t *chunk)
{
    uint32_t vs = pass->chunk * l->p + stage, last = l->p * l->v - 1;

    if (pass->backward ? vs == last : vs == 0)
        return false;
    vs = pass->backward ? vs + 1 : vs - 1;
    *from = vs % l->p;
    *chunk = vs / l->p;
    return true;
}

/* True if the pass at 'at' is a forward one that runs beside the backward pass behind it. */
static bool paired(const struct pipeline *l, uint32_t stage, uint64_t at)
{
    uint64_t w = warm_up(l, stage);

    return l->o->w->overlap_a2a && at >= w && at < 2 * l->total - w && (at - w) % 2 == 0;
}

static bool ready_at(const struct pipeline *l, uint32_t stage, uint64_t at)
{
    struct pass pass = pass_at(l, stage, at);
    uint32_t from, chunk;

    if (!source(l, stage, &pass, &from, &chunk) || from == stage)
        return true;
    return position(l, from, pass.backward, number_of(l, pass.backward, pass.batch, chunk)) <
           l->cursor[from];
}

static bool ready(const struct pipeline *l, uint32_t stage)
{
    uint64_t at = l->cursor[stage];

    return ready_at(l, stage, at) && (!paired(l, stage, at) || ready_at(l, stage, at + 1));
}

static void add_message(struct pipeline *l, struct message message)
{
    if (l->nmessages == l->room) {
        size_t room = l->room > 0 ? 2 * l->room : 64;
        struct message *more = realloc(l->messages, room * sizeof *more);

        if (more == NULL) {
            l->o->status = zipccl_fail(l->o->error, ZIPCCL_ERR_NOMEM, "out of memory");
            return;
        }
        l->messages = more;
        l->room = room;
    }
    l->messages[l->nmessages++] = message;
}

static enum workload_stream stream_of(const struct pipeline *l, bool backward, uint32_t lower,
                                      uint64_t batch)
{
    int first = backward ? ON_PP_BACKWARD : ON_PP_FORWARD;

    /* Two are on the way at a time, and a loop's markers have to tell them apart. */
    if (!backward && l->o->w->overlap_a2a && batch % 2 == 1)
        first = ON_PP_ODD;

    /* Boundary 'lower' is that between stages lower and lower + 1. */
    return (enum workload_stream)(first + (lower == l->p - 1 ? 2 : lower % 2));
}

static enum workload_stream message_stream(const struct pipeline *l, const struct message *m)
{
    uint32_t stage = m->virtual_stage % l->p;

    return stream_of(l, m->backward, m->backward ? stage : (stage + l->p - 1) % l->p, m->batch);
}

/* Wait for what 'pass' needs. */
static void receive(struct pipeline *l, uint32_t stage, const struct pass *pass)
{
    uint32_t vs = pass->chunk * l->p + stage;

    for (size_t i = 0; i < l->nmessages; i++) {
        struct message *m = &l->messages[i];

        if (m->virtual_stage != vs || m->backward != pass->backward || m->batch != pass->batch)
            continue;
        workload_wait(l->o, m->id);
        *m = l->messages[--l->nmessages];
        return;
    }
}

static void send(struct pipeline *l, uint32_t stage, const struct pass *pass)
{
    uint32_t vs = pass->chunk * l->p + stage, last = l->p * l->v - 1, to, lower;
    struct workload_out *o = l->o;
    uint64_t id;

    if (l->p == 1 || (pass->backward ? vs == 0 : vs == last))
        return;
    vs = pass->backward ? vs - 1 : vs + 1;
    to = vs % l->p;
    lower = pass->backward ? to : stage;
    id = workload_call(
        o, &(struct workload_call){.label = pass->backward ? "gradient to the stage before"
                                                           : "activations to the next stage",
                                   .op = ZIPCCL_SENDRECV,
                                   .group = IN_PP,
                                   .stream = stream_of(l, pass->backward, lower, pass->batch),
                                   .dtype = ZIPCCL_BFLOAT16,
                                   .count = o->shard_tokens * o->w->model.hidden,
                                   .use = pass->backward ? OF_STAGE_GRAD : OF_STAGE,
                                   .pair = {stage, to}});
    add_message(l, (struct message){pass->backward, vs, pass->batch, id});
    if (!o->w->overlap_p2p) {
        workload_wait(o, id);
        workload_marker(o, ON_COMPUTE, "sent");
    }
}

static void blocks(struct workload_out *o, uint32_t n, bool moe, bool backward)
{
    uint64_t times = o->w->unroll ? 1 : n;

    workload_loop(o, times, backward ? "layers backward" : "layers forward");
    for (uint32_t i = 0; i < n / times; i++) {
        if (backward)
            workload_block_backward(o, moe);
        else
            workload_block_forward(o, moe);
    }
    workload_end(o, times);
}

/* The first micro-batch under overlap_param: each layer waits for its parameters alone. */
static void forward_gathering(struct workload_out *o, struct workload_range r, bool first,
                              bool first_chunk)
{
    static const struct workload_call call = {.label = "parameters", .free = true};
    uint64_t ids[2], next[2] = {0, 0}, root = first_chunk ? workload_gather_root(o, &call) : 0;

    if (first) {
        workload_wait(o, root);
        workload_embedding_forward(o);
    }
    for (uint32_t i = r.first; i < r.first + r.n; i++) {
        bool moe = zipccl_workload_is_moe(&o->w->model, i);

        o->place = workload_place_of(o->w, i);
        if (i == r.first)
            workload_gather_layers(o, 1, moe, 1, &call, next);
        ids[0] = next[0];
        ids[1] = next[1];
        if (i + 1 < r.first + r.n)
            workload_gather_layers(o, 1, zipccl_workload_is_moe(&o->w->model, i + 1), 1, &call,
                                   next);
        workload_wait(o, ids[0]);
        workload_wait(o, ids[1]);
        workload_block_forward(o, moe);
    }
    /* The head's own stage gathers it with its first chunk. */
    workload_wait(o, root);
}

static void forward(struct pipeline *l, uint32_t stage, const struct pass *pass)
{
    struct workload_out *o = l->o;
    uint32_t vs = pass->chunk * l->p + stage;
    struct workload_range r = workload_chunk(o->w, vs);
    bool sharded = o->w->sharding == ZIPCCL_SHARD_ZERO1 || o->w->sharding == ZIPCCL_SHARD_ZERO2;

    if (pass->batch == 0 && o->w->overlap_param && sharded) {
        forward_gathering(o, r, vs == 0, pass->chunk == 0);
    } else {
        if (vs == 0)
            workload_embedding_forward(o);
        while (r.n > 0) {
            uint32_t run = workload_run(o->w, r.first, r.n);

            o->place = workload_place_of(o->w, r.first);
            blocks(o, run, zipccl_workload_is_moe(&o->w->model, r.first), false);
            r.first += run;
            r.n -= run;
        }
    }
    if (vs == l->p * l->v - 1)
        workload_head_forward(o);
}

/* Layers that are alike, backward, a bucket after the other. */
static void backward_run(struct workload_out *o, uint32_t run, bool moe, bool reduce)
{
    uint32_t each = reduce ? workload_layers_a_bucket(o->w, moe, run) : run;
    uint64_t groups = run / each, times = o->w->unroll ? 1 : groups;

    workload_loop(o, times, "buckets");
    for (uint64_t i = 0; i < groups / times; i++) {
        blocks(o, each, moe, true);
        if (reduce && o->w->overlap_grad)
            workload_reduce_layers(o, each, moe, 1);
    }
    workload_end(o, times);
    if (run % each > 0) {
        blocks(o, run % each, moe, true);
        if (o->w->overlap_grad)
            workload_reduce_layers(o, run % each, moe, 1);
    }
}

/* The last 'n' layers up to 'end' that are alike. */
static uint32_t run_before(const struct zipccl_workload *w, uint32_t first, uint32_t end)
{
    uint32_t from = first;

    while (from + workload_run(w, from, end - from) < end)
        from += workload_run(w, from, end - from);
    return end - from;
}

static void reduce_late(struct workload_out *o, struct workload_range r)
{
    for (uint32_t end = r.first + r.n; end > r.first;) {
        uint32_t run = run_before(o->w, r.first, end);
        bool moe = zipccl_workload_is_moe(&o->w->model, end - 1);
        uint32_t each = workload_layers_a_bucket(o->w, moe, run);

        o->place = workload_place_of(o->w, end - 1);
        workload_reduce_layers(o, each, moe, run / each);
        if (run % each > 0)
            workload_reduce_layers(o, run % each, moe, 1);
        end -= run;
    }
}

static void backward(struct pipeline *l, uint32_t stage, const struct pass *pass)
{
    struct workload_out *o = l->o;
    uint32_t vs = pass->chunk * l->p + stage;
    struct workload_range r = workload_chunk(o->w, vs);
    bool reduce = pass->batch == l->batches - 1 || o->w->sharding == ZIPCCL_SHARD_ZERO2;
    /* Embedding and head are one bucket, complete with the stage's last pass. */
    bool last = pass->chunk == 0;

    if (vs == l->p * l->v - 1)
        workload_head_backward(o);
    for (uint32_t end = r.first + r.n; end > r.first;) {
        uint32_t run = run_before(o->w, r.first, end);

        o->place = workload_place_of(o->w, end - 1);
        backward_run(o, run, zipccl_workload_is_moe(&o->w->model, end - 1), reduce);
        end -= run;
    }
    if (vs == 0)
        workload_embedding_backward(o);
    if (reduce && !o->w->overlap_grad)
        reduce_late(o, r);
    if (reduce && last)
        workload_reduce_root(o);
}

static void run_pass(struct pipeline *l, uint32_t stage)
{
    struct pass pass = pass_at(l, stage, l->cursor[stage]);

    l->o->stage = stage;
    receive(l, stage, &pass);
    if (pass.backward)
        backward(l, stage, &pass);
    else
        forward(l, stage, &pass);
    send(l, stage, &pass);
}

/* A layer's forward pass beside the backward pass of another: what one waits for hides the other. */
static void layer_pair(struct workload_out *o, uint32_t forward, uint32_t backward)
{
    const struct zipccl_workload *w = o->w;
    bool f = zipccl_workload_is_moe(&w->model, forward);
    bool b = zipccl_workload_is_moe(&w->model, backward);
    struct workload_waits on_the_way[2] = {{{0}}, {{0}}};

    for (int phase = 0; phase < NUM_PHASES; phase++) {
        o->place = workload_place_of(w, backward);
        if (f && b)
            workload_moe_backward(o, (enum workload_phase)phase, &on_the_way[1]);
        else if (phase == 0)
            workload_block_backward(o, b);
        o->place = workload_place_of(w, forward);
        if (f && b)
            workload_moe_forward(o, (enum workload_phase)phase, &on_the_way[0]);
        else if (phase == 0)
            workload_block_forward(o, f);
    }
}

/* Pairs from the i-th on that are alike: layers forward in order, backward from the last on. */
static uint32_t pairs_alike(const struct zipccl_workload *w, struct workload_range r, uint32_t i)
{
    uint32_t f = r.first + i, b = r.first + r.n - 1 - i, n = 1;

    while (i + n < r.n && workload_run(w, f, n + 1) == n + 1 &&
           workload_run(w, b - n, n + 1) == n + 1)
        n++;
    return n;
}

static void run_pair(struct pipeline *l, uint32_t stage)
{
    struct pass f = pass_at(l, stage, l->cursor[stage]);
    struct pass b = pass_at(l, stage, l->cursor[stage] + 1);
    struct workload_out *o = l->o;
    struct workload_range r = workload_chunk(o->w, stage);

    o->stage = stage;
    receive(l, stage, &f);
    receive(l, stage, &b);
    if (stage == 0)
        workload_embedding_forward(o);
    if (stage == l->p - 1)
        workload_head_backward(o);
    for (uint32_t i = 0, n; i < r.n; i += n) {
        uint64_t times;

        n = pairs_alike(o->w, r, i);
        times = o->w->unroll ? 1 : n;
        workload_loop(o, times, "layers forward beside layers backward");
        for (uint32_t k = 0; k < n / times; k++)
            layer_pair(o, r.first + i + k, r.first + r.n - 1 - i - k);
        workload_end(o, times);
    }
    if (stage == l->p - 1)
        workload_head_forward(o);
    if (stage == 0)
        workload_embedding_backward(o);
    send(l, stage, &f);
    send(l, stage, &b);
}

/* Bring all stages to their targets, in an order in which each finds what it needs. */
static bool advance(struct pipeline *l, bool dry)
{
    bool moved = true, done = false;

    while (moved && !done && l->o->status == ZIPCCL_OK) {
        moved = false;
        done = true;
        for (uint32_t s = 0; s < l->p; s++) {
            while (l->cursor[s] < l->target[s] && ready(l, s)) {
                bool pair = paired(l, s, l->cursor[s]);

                if (!dry && pair)
                    run_pair(l, s);
                else if (!dry)
                    run_pass(l, s);
                l->cursor[s] += pair ? 2 : 1;
                moved = true;
            }
            done = done && l->cursor[s] == l->target[s];
        }
    }
    return done;
}

/* Passes of a stage in an iteration are 2 * period; where the loop starts on each stage. */
static uint64_t period(const struct pipeline *l)
{
    /* Forward messages of two micro-batches are on the way between paired passes. */
    if (l->v == 1)
        return l->o->w->overlap_a2a ? 2 : 1;
    return (uint64_t)l->p * l->v;
}

static uint64_t loop_start(const struct pipeline *l, uint32_t stage)
{
    /* The first micro-batch differs where it gathers; interleaved stages start one pair apart. */
    uint64_t pairs = (l->v > 1 ? stage : 0) + (l->o->w->overlap_param ? period(l) : 0);

    return warm_up(l, stage) + 2 * pairs;
}

/* How often the middle repeats; the last micro-batches differ, as they reduce gradients. */
static uint64_t iterations(struct pipeline *l)
{
    uint64_t least = UINT64_MAX, size = period(l);
    bool ok = true;

    if (l->o->w->unroll)
        return 0;
    for (uint32_t s = 0; s < l->p; s++) {
        uint64_t w = warm_up(l, s), skip = (loop_start(l, s) - w) / 2;
        uint64_t pairs = l->total - (w > size ? w : size);

        if (l->total < (w > size ? w : size) || pairs <= skip)
            return 0;
        pairs = (pairs - skip) / size;
        least = pairs < least ? pairs : least;
    }
    for (int part = 0; part < 2 && ok; part++) {
        for (uint32_t s = 0; s < l->p; s++)
            l->target[s] = loop_start(l, s) + (part == 1 ? 2 * size : 0);
        ok = advance(l, true);
    }
    for (uint32_t s = 0; s < l->p; s++)
        l->cursor[s] = 0;
    return ok && least >= 2 ? least : 0;
}

/* Messages of the iteration before are there when their stream is done with them. */
static void enter_loop(struct pipeline *l)
{
    for (size_t i = 0; i < l->nmessages; i++) {
        l->o->stage = l->messages[i].virtual_stage % l->p;
        l->messages[i].id = workload_marker(l->o, message_stream(l, &l->messages[i]), "received");
    }
}

static void write_middle(struct pipeline *l, uint64_t n)
{
    uint64_t size = period(l), shift = (n - 1) * (l->v == 1 ? size : l->p);

    for (uint32_t s = 0; s < l->p; s++)
        l->target[s] = loop_start(l, s);
    advance(l, false);
    workload_loop(l->o, n, "micro-batches");
    enter_loop(l);
    for (uint32_t s = 0; s < l->p; s++)
        l->target[s] += 2 * size;
    advance(l, false);
    workload_end(l->o, n);
    /* What is left are messages of the last iteration. */
    for (size_t i = 0; i < l->nmessages; i++)
        l->messages[i].batch += shift;
    for (uint32_t s = 0; s < l->p; s++)
        l->cursor[s] += (n - 1) * 2 * size;
}

void workload_write_pipeline(struct workload_out *o)
{
    struct pipeline *l = calloc(1, sizeof *l);
    uint64_t n;

    if (l == NULL) {
        o->status = zipccl_fail(o->error, ZIPCCL_ERR_NOMEM, "out of memory");
        return;
    }
    l->o = o;
    l->p = o->w->pp;
    l->v = o->w->vpp;
    l->batches = zipccl_workload_micro_batches(o->w);
    l->total = l->batches * l->v;
    n = iterations(l);
    if (n > 0)
        write_middle(l, n);
    for (uint32_t s = 0; s < l->p; s++)
        l->target[s] = 2 * l->total;
    if (!advance(l, false) && o->status == ZIPCCL_OK)
        o->status = zipccl_fail(o->error, ZIPCCL_ERR_INTERNAL, "the pipeline's order has no start");
    free(l->messages);
    free(l);
    workload_finish(o);
}
