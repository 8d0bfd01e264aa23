/*
 * simt_race.cpp - what ThreadSanitizer is told about fibers
 *
 * See simt_state.h for the rules; each was found by a race that went unseen or a false report.
 * clang 14's run-time misses races between blocks of 256 threads and more; g++'s does not.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/simt_state.h"

#include <sched.h>
#include <stdlib.h>

#if SIMT_TSAN
extern "C" {
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void *__tsan_get_current_fiber(void);
void __tsan_acquire(void *address);
void __tsan_release(void *address);
}
enum { NO_ORDER = 1, DEAD_KEPT = 2048, MOST_FIBERS = 6144 };
#endif

namespace simt
{
#if SIMT_TSAN
/*
 * Of all engines: ThreadSanitizer ends the process at 8128 threads and fibers, which four ranks with
 * dead ones of their own would reach.  A ring of plain memory: ThreadSanitizer sees allocations and
 * copies of the library, and does not see the lock.
 */
static void *dead[MOST_FIBERS]; /* of exited threads, the oldest at 'oldest' */
static size_t oldest, ndead, nfibers;
static std::atomic_flag fibers_busy = ATOMIC_FLAG_INIT;

/* ThreadSanitizer sees a mutex, which would order the blocks of the program under test. */
struct Unseen_lock {
    Unseen_lock()
    {
        while (fibers_busy.test_and_set(std::memory_order_acquire)) {
            sched_yield();
        }
    }
    ~Unseen_lock()
    {
        fibers_busy.clear(std::memory_order_release);
    }
};

/* Needs the lock. */
static void forget_dead(size_t kept)
{
    while (ndead > 0 && (ndead > kept || nfibers >= MOST_FIBERS)) {
        __tsan_destroy_fiber(dead[oldest]);
        oldest = (oldest + 1) % MOST_FIBERS;
        ndead--;
        nfibers--;
    }
}

static void *new_fiber()
{
    Unseen_lock lock;
    forget_dead(DEAD_KEPT);
    nfibers++;
    return __tsan_create_fiber(0);
}

void race_switch(void *to)
{
    __tsan_switch_to_fiber(to, NO_ORDER);
}

void race_acquire(void *clock)
{
    __tsan_acquire(clock);
}

void race_release(void *clock)
{
    __tsan_release(clock);
}

void race_begin(Engine *e)
{
    e->main_race = __tsan_get_current_fiber();
    if (!e->pristine) {
        e->pristine = new_fiber();
    }
}

void *race_enter_pristine(Engine *e)
{
    void *here = __tsan_get_current_fiber();
    race_switch(e->pristine);
    return here;
}

void race_create_fiber(Engine *e, Fiber *f)
{
    void *here = race_enter_pristine(e);
    f->race = new_fiber();
    race_switch(here);
}

void race_end_fibers(Engine *e, Block *b)
{
    (void)e;
    Unseen_lock lock;
    for (Fiber &f : b->fibers) {
        free(f.stack);
        forget_dead(DEAD_KEPT - 1);
        dead[(oldest + ndead++) % MOST_FIBERS] = f.race;
    }
}

void race_clocks(Launch *launch, Block *b)
{
    const size_t n = 4 + 64 * b->warps.size();
    std::lock_guard<std::mutex> lock(launch->mutex);
    launch->clocks.emplace_back(new char[n + 8]);
    b->clocks = launch->clocks.back().get();
    for (size_t i = 0; i < b->warps.size(); i++) {
        b->warps[i].clock_in = b->clocks + 4 + 64 * i;
        b->warps[i].clock_out = b->warps[i].clock_in + 32;
    }
}
#else
void race_switch(void *)
{
}
void race_acquire(void *)
{
}
void race_release(void *)
{
}
void race_begin(Engine *)
{
}
void *race_enter_pristine(Engine *)
{
    return nullptr;
}
void race_create_fiber(Engine *, Fiber *)
{
}
void race_end_fibers(Engine *, Block *)
{
}
void race_clocks(Launch *, Block *)
{
}
#endif
} // namespace simt
