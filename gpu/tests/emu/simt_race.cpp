/*
 * simt_race.cpp - what ThreadSanitizer is told about fibers
 *
 * See simt_state.h for the rules; each was found by a race that went unseen or a false report.
 * clang 14's run-time misses races between blocks of 256 threads and more; g++'s does not.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/simt_state.h"

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
enum { NO_ORDER = 1, DEAD_KEPT = 2048 };
#endif

namespace simt
{
#if SIMT_TSAN
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
        e->pristine = __tsan_create_fiber(0);
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
    f->race = __tsan_create_fiber(0);
    race_switch(here);
}

void race_end_fibers(Engine *e, Block *b)
{
    for (Fiber &f : b->fibers) {
        free(f.stack);
        e->dead.push_back(f.race);
    }
    while (e->dead.size() > DEAD_KEPT) {
        __tsan_destroy_fiber(e->dead.front());
        e->dead.pop_front();
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
