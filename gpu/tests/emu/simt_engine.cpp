/*
 * simt_engine.cpp - runs a grid: which block starts, which thread runs next, when it is over
 *
 * One engine per operating-system thread keeps 'resident' blocks in flight and runs one fiber at a
 * time.  With one worker a launch is deterministic: same options, same schedule.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/simt_state.h"

#include <sched.h>
#include <time.h>
#include <thread>

namespace simt
{
__thread const Coords *cur;
thread_local Engine *engine;

enum { WORKERS_TIMEOUT_S = 20 };

static int nth_lane(unsigned lanes, unsigned n)
{
    while (n--) {
        lanes &= lanes - 1;
    }
    return __builtin_ctz(lanes);
}

/* The next thread that can run, taken out of its warp's ready set; NULL if there is none. */
Fiber *pick(Engine *e, bool rotate)
{
    const size_t n = e->queue.size();
    const int policy = e->launch->options.policy;
    if (n == 0) {
        return nullptr;
    }
    rotate = rotate || policy == EMU_ROUND_ROBIN;
    if (policy == EMU_RANDOM) {
        e->at = random64(&e->rng) % n;
    } else if (rotate) {
        e->at = e->at + 1 >= n ? 0 : e->at + 1;
    }
    for (size_t k = 0; k < n; k++) {
        Warp *w = e->queue[e->at];
        const unsigned ready = w->ready;
        if (ready) {
            int lane = __builtin_ctz(ready);
            if (policy == EMU_RANDOM) {
                lane = nth_lane(
                    ready, (unsigned)(random64(&e->rng) % (unsigned)__builtin_popcount(ready)));
            } else if (rotate) {
                const unsigned later = ready & ~((2u << w->last) - 1u);
                lane = __builtin_ctz(later ? later : ready);
            }
            w->last = (uint8_t)lane;
            w->ready &= ~(1u << lane);
            return &w->fibers[lane];
        }
        e->at = e->at + 1 >= n ? 0 : e->at + 1;
    }
    return nullptr;
}

/* A thread may not leave while others wait for it. */
static void check_exit(Engine *e, Fiber *f)
{
    Block *b = f->block;
    Warp *w = &b->warps[f->warp];
    char x[DESCRIBE], y[DESCRIBE];
    if (b->bar_count) {
        fail(e, "thread exited while others wait at a barrier\n  %s\n  %s",
             describe(f, x, sizeof x), describe(b->bar_first, y, sizeof y));
        leave_to_engine(e, f);
    }
    for (unsigned k = w->waiting; k; k &= k - 1) {
        const int lane = __builtin_ctz(k);
        if (w->mask[lane] >> f->lane & 1) {
            fail(e, "lane exited while a warp operation that names it waits\n  %s\n  %s",
                 describe(f, x, sizeof x), describe(&w->fibers[lane], y, sizeof y));
            leave_to_engine(e, f);
        }
    }
}

void fiber_main()
{
    Engine *e = engine;
    Fiber *f = e->running;
    Launch *l = e->launch;
    fiber_started(e);
    race_acquire(&l->clock_start);
    l->call.body(l->call.state);

    Block *b = f->block;
    f->state = DONE;
    b->warps[f->warp].done |= 1u << f->lane;
    b->alive--;
    e->live--;
    e->spins = 0;
    if (l->options.strict) {
        check_exit(e, f);
    }
    race_release(&l->clock_end);
    race_release(b->clocks + 2);
    if (l->failed || b->alive == 0) {
        leave_to_engine(e, f); /* refills the block's place at once */
    }
    leave_to_next(e, f, false);
    __builtin_unreachable();
}

static long now_s()
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* Alone, an engine counts; beside others it may wait for one that the system does not run, so time counts. */
static bool livelocked(Engine *e)
{
    e->spins++;
    if (e->launch->options.workers == 1) {
        return e->spins >= (uint64_t)e->launch->options.spins;
    }
    if ((e->spins & 0xfff) != 0) {
        return false;
    }
    sched_yield();
    if (e->spins == 0x1000) {
        e->spin_start_s = now_s();
    }
    return now_s() - e->spin_start_s >= WORKERS_TIMEOUT_S;
}

void yield_point(bool moved, Place at)
{
    Engine *e = engine;
    if (!e || !e->running) {
        return; /* host code may share a function with kernels */
    }
    Fiber *f = e->running;
    f->at = at;
    if (e->launch->failed) {
        die(e, f);
    }
    if (moved) {
        e->spins = 0;
    } else if (livelocked(e)) {
        f->state = READY;
        report_waiting(e, "livelock: threads spin without progress");
        die(e, f);
    }
    if (e->launch->options.policy == EMU_RANDOM && (random64(&e->rng) & 1)) {
        return;
    }
    f->block->warps[f->warp].ready |= 1u << f->lane;
    leave_to_next(e, f, true);
}

static void refill(Engine *e, bool *more)
{
    Launch *l = e->launch;
    for (Block &b : e->blocks) {
        if (b.busy && b.alive == 0) {
            end_block(e, &b);
        }
        if (!b.busy && *more && !l->failed) {
            const uint64_t i = l->next.fetch_add(1, std::memory_order_relaxed);
            if (i >= l->nblocks) {
                *more = false;
            } else {
                start_block(e, &b, i);
            }
        }
    }
}

static void engine_run(Engine *e, Launch *l, uint64_t seed)
{
    engine = e;
    e->launch = l;
    e->queue.clear();
    e->at = 0;
    e->live = 0;
    e->spins = 0;
    e->running = nullptr;
    e->main_bottom = nullptr;
    e->rng = seed * 0x9E3779B97F4A7C15ull | 1;
    e->blocks.resize((size_t)l->options.resident);
    race_begin(e);
    race_release(&l->clock_start); /* this thread's own start, which its fibers come after */
    bool more = true;
    for (;;) {
        refill(e, &more);
        if (l->failed) {
            break;
        }
        Fiber *f = pick(e, false);
        if (!f) {
            if (e->live) {
                report_waiting(e, "deadlock: no thread can run");
            }
            break;
        }
        run_fiber(e, f);
    }
    for (Block &b : e->blocks) {
        if (b.busy) {
            end_block(e, &b);
        }
    }
    cur = nullptr;
    engine = nullptr;
}

static void order_blocks(Launch *l)
{
    if (l->options.order == EMU_ASCENDING) {
        return;
    }
    l->order.resize(l->nblocks);
    for (uint64_t i = 0; i < l->nblocks; i++) {
        l->order[i] = (uint32_t)(l->nblocks - 1 - i);
    }
    uint64_t s = l->options.seed * 0x9E3779B97F4A7C15ull | 1;
    for (uint64_t i = l->nblocks - 1; i > 0 && l->options.order == EMU_SHUFFLED; i--) {
        std::swap(l->order[i], l->order[random64(&s) % (i + 1)]);
    }
}

static std::mutex pool_mutex;
static std::vector<Engine *> &pool =
    *new std::vector<Engine *>; /* never destroyed: threads outlive main */

static void work(Launch *l, int worker)
{
    Engine *e = nullptr;
    {
        std::lock_guard<std::mutex> lock(pool_mutex);
        if (!pool.empty()) {
            e = pool.back();
            pool.pop_back();
        }
    }
    if (!e) {
        e = new Engine();
    }
    engine_run(e, l, l->options.seed + (uint64_t)worker);
    std::lock_guard<std::mutex> lock(pool_mutex);
    pool.push_back(e);
}

cudaError_t run_grid(dim3 grid, dim3 block, size_t smem, Call call, const char *name)
{
    Launch l;
    l.grid = grid;
    l.block = block;
    l.smem = smem;
    l.call = call;
    l.name = name;
    l.nblocks = (uint64_t)grid.x * grid.y * grid.z;
    l.next = 0;
    l.failed = false;
    emu_get_options(&l.options);
    order_blocks(&l);
    race_release(&l.clock_start);
    std::vector<std::thread> others;
    for (int k = 1; k < l.options.workers; k++) {
        others.emplace_back(work, &l, k);
    }
    work(&l, 0);
    for (std::thread &t : others) {
        t.join();
    }
    race_acquire(&l.clock_end);
    return l.failed ? cudaErrorLaunchFailure : cudaSuccess;
}
} // namespace simt
