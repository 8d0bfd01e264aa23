/*
 * simt_state.h - the emulator's own state: fibers, warps, blocks, launches, engines
 *
 * Private to simt_*.cpp.  Those files are compiled without -fsanitize=thread, for their state is no
 * part of the program under test, but with -DSIMT_TSAN=1 where kernels are instrumented.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_TESTS_EMU_SIMT_STATE_H
#define ZIPCCL_GPU_TESTS_EMU_SIMT_STATE_H

#include <stddef.h>
#include <stdint.h>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "gpu/tests/emu/emu.h"
#include "gpu/tests/emu/simt.h"

#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim

#ifndef SIMT_TSAN
#define SIMT_TSAN 0
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SIMT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMT_ASAN 1
#endif
#endif
#ifndef SIMT_ASAN
#define SIMT_ASAN 0
#endif

namespace simt
{
enum State : uint8_t { READY, IN_WARP, IN_BLOCK, DONE };

struct Block;

struct Fiber {
    void *sp; /* saved stack pointer while not running */
    Coords c;
    Block *block;
    uint16_t warp;
    uint8_t lane;
    State state;
    Place at;    /* of the last operation it waited or passed in */
    char *stack; /* lowest address */
    size_t stack_bytes;
    void *race;       /* TSan's fiber */
    void *fake_stack; /* ASan's */
};

/* The lanes' arguments as arrays: the last lane to arrive reads them all. */
struct Warp {
    unsigned ready, exists, done, waiting; /* bit per lane */
    Fiber *fibers;
    uint8_t last; /* lane picked last, for round robin */
    unsigned mask[32];
    uint8_t op[32];
    int arg[32], width[32];
    uint64_t in[32], out[32];
    char *clock_in, *clock_out; /* [32] addresses that stand for TSan's clocks */
};

struct SharedVar {
    const void *key;
    unsigned char *raw, *p;
    size_t nbytes;
};

struct Launch;

struct Block {
    std::vector<Fiber> fibers;
    std::vector<Warp> warps;
    std::vector<SharedVar> shared;
    SharedVar dyn;
    bool busy;
    int alive;
    int bar_count, bar_sum, bar_result;
    unsigned bar_phase;
    Fiber *bar_first; /* who came first to the barrier that is filling */
    char *clocks;     /* [4]: two barrier phases, the end, allocation */
};

struct Launch {
    dim3 grid, block;
    size_t smem;
    Call call;
    const char *name;
    struct emu_options options;
    uint64_t nblocks;
    std::vector<uint32_t> order; /* empty: ascending */
    std::atomic<uint64_t> next;
    std::atomic<bool> failed;
    char clock_start, clock_end;
    std::mutex mutex;                            /* of 'clocks' */
    std::vector<std::unique_ptr<char[]>> clocks; /* never reused within a launch */
};

/* One per operating-system thread that runs blocks; kept for the next launch. */
struct Engine {
    Launch *launch;
    std::vector<Block> blocks; /* [resident] */
    std::vector<Warp *> queue;
    size_t at; /* position in 'queue' */
    Fiber *running;
    int live; /* threads started and not exited */
    uint64_t rng;
    uint64_t spins; /* waiting steps since the last progress */
    long spin_start_s;
    struct Stack {
        char *base;
        size_t nbytes;
    };
    std::vector<Stack> stacks;
    void *main_sp;
    void *main_fake;
    const void *main_bottom;
    size_t main_size;
    void *main_race, *pristine; /* TSan fibers; 'pristine' allocates and never acquires */
};

extern thread_local Engine *engine;

inline uint64_t random64(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* simt_switch.cpp: from one stack to another, with the sanitizers told. */
void prepare_fiber(Engine *e, Fiber *f, size_t colour);
void run_fiber(Engine *e, Fiber *to);                    /* called by the engine's own stack */
void leave_to_engine(Engine *e, Fiber *from);            /* back to run_fiber()'s return */
void leave_to_next(Engine *e, Fiber *from, bool rotate); /* to another fiber that can run */
void fiber_started(Engine *e);
[[noreturn]] void die(Engine *e, Fiber *f);

/* simt_engine.cpp */
Fiber *pick(Engine *e, bool rotate);
[[noreturn]] void fiber_main();

/* simt_block.cpp: start and end of blocks, their memory. */
void start_block(Engine *e, Block *b, uint64_t index);
void end_block(Engine *e, Block *b);

/* simt_report.cpp: the first error of a launch is kept. */
void fail(Engine *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *describe(const Fiber *f, char *out, size_t nbytes);
void report_waiting(Engine *e, const char *what);
enum { DESCRIBE = 320 };

/*
 * simt_race.cpp: ThreadSanitizer's view.  All do nothing unless SIMT_TSAN.
 *
 * Fibers and shared memory come from the pristine fiber, which never acquires: otherwise their
 * creation would order blocks.  Clock addresses are not reused within a launch, stacks are fresh
 * heap, and dead fibers are kept a while, for TSan reuses a freed slot at once and then misses
 * races with it.
 */
void race_begin(Engine *e);
void race_create_fiber(Engine *e, Fiber *f);
void race_end_fibers(Engine *e, Block *b);
void race_switch(void *to);
void race_acquire(void *clock);
void race_release(void *clock);
void *race_enter_pristine(Engine *e); /* returns what race_switch() takes to come back */
void race_clocks(Launch *launch, Block *b);

/* Run the grid on the calling thread (and options.workers - 1 more); the launch's first error is kept. */
cudaError_t run_grid(dim3 grid, dim3 block, size_t smem, Call call, const char *name);
} // namespace simt

#endif
