/*
 * simt_warp.cpp - operations that the lanes of a warp do together
 *
 * A lane leaves its argument in the warp's arrays and waits; the last lane named by the mask
 * computes for all and goes on.  Only __syncwarp orders memory for the race checker, as CUDA
 * documents: a ballot used as a fence is reported.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/simt_state.h"

namespace simt
{
static uint64_t shuffled(Engine *e, Op op, const Warp *w, const Fiber *f, unsigned m, int lane)
{
    const int arg = w->arg[lane], width = w->width[lane], base = lane & ~(width - 1);
    int src = lane;
    switch (op) {
    case OP_SHFL: src = base + (arg & (width - 1)); break;
    case OP_SHFL_UP: src = lane - arg < base ? lane : lane - arg; break;
    case OP_SHFL_DOWN: src = lane + arg >= base + width ? lane : lane + arg; break;
    default: src = (lane ^ arg) >= base + width ? lane : lane ^ arg; break;
    }
    if (!(m >> (src & 31) & 1) && e->launch->options.strict) {
        char text[DESCRIBE];
        fail(e, "shuffle to lane %d reads lane %d, which is not in the mask\n  %s", lane, src,
             describe(f, text, sizeof text));
    }
    return w->in[src & 31];
}

static uint64_t matching(const Warp *w, unsigned m, int lane)
{
    uint64_t r = 0;
    for (unsigned k = m; k; k &= k - 1) {
        const int i = __builtin_ctz(k);
        r |= (uint64_t)(w->in[i] == w->in[lane]) << i;
    }
    return r;
}

static uint64_t reduced(Op op, const Warp *w, unsigned m)
{
    uint64_t r = op == OP_ALL || op == OP_AND ? ~(uint64_t)0 : op == OP_MIN ? 0xffffffffu : 0;
    for (unsigned k = m; k; k &= k - 1) {
        const int i = __builtin_ctz(k);
        const uint64_t x = w->in[i];
        switch (op) {
        case OP_BALLOT: r |= x << i; break;
        case OP_ANY:
        case OP_OR: r |= x; break;
        case OP_ALL:
        case OP_AND: r &= x; break;
        case OP_ADD: r = (uint32_t)(r + x); break;
        case OP_MIN: r = x < r ? x : r; break;
        case OP_MAX: r = x > r ? x : r; break;
        default: r ^= x; break;
        }
    }
    return r;
}

static void compute(Engine *e, Op op, Warp *w, const Fiber *f, unsigned m)
{
    if (op == OP_SYNCWARP) {
        return;
    }
    const bool per_lane = op >= OP_SHFL && op <= OP_MATCH_ANY;
    const uint64_t same = per_lane ? 0 : reduced(op, w, m);
    for (unsigned k = m; k; k &= k - 1) {
        const int i = __builtin_ctz(k);
        w->out[i] = !per_lane            ? same
                    : op == OP_MATCH_ANY ? matching(w, m, i)
                                         : shuffled(e, op, w, f, m, i);
    }
}

/* The mask must name the caller and only lanes that can still come. */
static void check_mask(Engine *e, Fiber *f, const Warp *w, unsigned mask)
{
    char text[DESCRIBE];
    const char *what = nullptr;
    if (!(mask >> f->lane & 1)) {
        what = "calling lane is not in its own mask";
    } else if (mask & ~w->exists) {
        what = "mask names lanes that do not exist";
    } else if (mask & w->done) {
        what = "mask names lanes that exited";
    }
    if (what) {
        fail(e, "%s\n  %s", what, describe(f, text, sizeof text));
        die(e, f);
    }
}

static void check_meeting(Engine *e, Fiber *f, Warp *w, unsigned m, Op op)
{
    char x[DESCRIBE], y[DESCRIBE];
    const int strict = e->launch->options.strict;
    for (unsigned k = m; k; k &= k - 1) {
        const Fiber *o = &w->fibers[__builtin_ctz(k)];
        if (w->op[o->lane] != op || (strict > 1 && o->at.line != f->at.line)) {
            f->state = IN_WARP;
            fail(e, "lanes of one warp meet in different operations\n  %s\n  %s",
                 describe(o, x, sizeof x), describe(f, y, sizeof y));
            die(e, f);
        }
    }
}

/* True if every lane of 'm' waits here with the same mask ('f' just came). */
static bool complete(const Warp *w, const Fiber *f, unsigned m, unsigned mask)
{
    if (((w->waiting | 1u << f->lane) & m) != m) {
        return false;
    }
    for (unsigned k = m; k; k &= k - 1) {
        if (w->mask[__builtin_ctz(k)] != mask) {
            return false; /* that lane still waits in another, smaller group */
        }
    }
    return true;
}

static void pass_clocks(const Warp *w, unsigned m)
{
    if (SIMT_TSAN) {
        for (unsigned k = m; k; k &= k - 1) {
            race_acquire(w->clock_in + __builtin_ctz(k));
        }
        for (unsigned k = m; k; k &= k - 1) {
            race_release(w->clock_out + __builtin_ctz(k));
        }
    }
}

uint64_t warp_op(Op op, unsigned mask, uint64_t value, int arg, int width, Place at)
{
    Engine *e = engine;
    Fiber *f = e->running;
    Warp *w = &f->block->warps[f->warp];
    const unsigned lane = f->lane, bit = 1u << lane;
    const int strict = e->launch->options.strict;
    w->op[lane] = op;
    w->mask[lane] = mask;
    w->in[lane] = value;
    w->arg[lane] = arg;
    w->width[lane] = width;
    f->at = at;
    if (strict) {
        check_mask(e, f, w, mask);
    }
    const unsigned m = mask & w->exists & ~w->done;
    const bool sync = op == OP_SYNCWARP;
    if (SIMT_TSAN && sync) {
        race_release(w->clock_in + lane);
    }
    if (!complete(w, f, m, mask)) {
        w->waiting |= bit;
        f->state = IN_WARP;
        leave_to_next(e, f, false);
        f->state = READY;
        if (SIMT_TSAN && sync) {
            race_acquire(w->clock_out + lane);
        }
        return w->out[lane];
    }
    if (strict) {
        check_meeting(e, f, w, m, op);
    }
    compute(e, op, w, f, m);
    if (e->launch->failed.load(std::memory_order_relaxed)) {
        die(e, f);
    }
    if (sync) {
        pass_clocks(w, m);
    }
    w->waiting &= ~m;
    w->ready |= m & ~bit;
    const uint64_t result = w->out[lane];
    if (e->launch->options.policy == EMU_RANDOM) {
        w->ready |= bit;
        leave_to_next(e, f, false);
    }
    return result;
}
} // namespace simt
