/*
 * simt_switch.cpp - from one fiber's stack to another's
 *
 * Thirteen instructions instead of swapcontext(), whose two system calls cost ten times as much.
 * ASan is told of every switch (with no fake stack to keep on a fiber's last one), TSan through
 * simt_race.cpp.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/simt_state.h"

#include <stdlib.h>

#if SIMT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(__x86_64__)
asm(R"(
.text
.globl simt_switch
.hidden simt_switch
.type simt_switch,@function
simt_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size simt_switch,.-simt_switch
)");
#elif defined(__aarch64__)
/* Written from the ABI; not run on such a machine. */
asm(R"(
.text
.globl simt_switch
.hidden simt_switch
.type simt_switch,%function
simt_switch:
  sub sp,sp,#160
  stp x19,x20,[sp,#0]
  stp x21,x22,[sp,#16]
  stp x23,x24,[sp,#32]
  stp x25,x26,[sp,#48]
  stp x27,x28,[sp,#64]
  stp x29,x30,[sp,#80]
  stp d8,d9,[sp,#96]
  stp d10,d11,[sp,#112]
  stp d12,d13,[sp,#128]
  stp d14,d15,[sp,#144]
  mov x9,sp
  str x9,[x0]
  mov sp,x1
  ldp x19,x20,[sp,#0]
  ldp x21,x22,[sp,#16]
  ldp x23,x24,[sp,#32]
  ldp x25,x26,[sp,#48]
  ldp x27,x28,[sp,#64]
  ldp x29,x30,[sp,#80]
  ldp d8,d9,[sp,#96]
  ldp d10,d11,[sp,#112]
  ldp d12,d13,[sp,#128]
  ldp d14,d15,[sp,#144]
  add sp,sp,#160
  ret
.size simt_switch,.-simt_switch
)");
#else
#error "simt_switch is written for x86-64 and aarch64"
#endif
extern "C" void simt_switch(void **save, void *load);

namespace simt
{
/* Push what simt_switch() pops: zeros for the saved registers, fiber_main() to return to. */
void prepare_fiber(Engine *e, Fiber *f, size_t colour)
{
    uint64_t *sp = reinterpret_cast<uint64_t *>(f->stack + f->stack_bytes - colour);
    f->fake_stack = nullptr;
#if SIMT_ASAN
    __asan_unpoison_memory_region(f->stack, f->stack_bytes);
#endif
#if defined(__x86_64__)
    *--sp = 0;
    *--sp = reinterpret_cast<uint64_t>(&fiber_main);
    for (int i = 0; i < 6; i++) {
        *--sp = 0;
    }
#else
    sp -= 20;
    memset(sp, 0, 160);
    sp[11] = reinterpret_cast<uint64_t>(&fiber_main);
#endif
    f->sp = sp;
    race_create_fiber(e, f);
}

void run_fiber(Engine *e, Fiber *to)
{
    e->running = to;
    cur = &to->c;
    race_switch(to->race);
#if SIMT_ASAN
    __sanitizer_start_switch_fiber(&e->main_fake, to->stack, to->stack_bytes);
#endif
    simt_switch(&e->main_sp, to->sp);
#if SIMT_ASAN
    __sanitizer_finish_switch_fiber(e->main_fake, nullptr, nullptr);
#endif
}

/* First thing on a fiber's stack. */
void fiber_started(Engine *e)
{
#if SIMT_ASAN
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(nullptr, &bottom, &size);
    if (!e->main_bottom) { /* the first fiber comes from the engine's own stack */
        e->main_bottom = bottom;
        e->main_size = size;
    }
#else
    (void)e;
#endif
}

static void resumed(Fiber *f)
{
#if SIMT_ASAN
    __sanitizer_finish_switch_fiber(f->fake_stack, nullptr, nullptr);
#else
    (void)f;
#endif
}

void leave_to_engine(Engine *e, Fiber *from)
{
    e->running = nullptr;
    race_switch(e->main_race);
#if SIMT_ASAN
    __sanitizer_start_switch_fiber(from->state == DONE ? nullptr : &from->fake_stack,
                                   e->main_bottom, e->main_size);
#endif
    simt_switch(&from->sp, e->main_sp);
    resumed(from);
}

void leave_to_next(Engine *e, Fiber *from, bool rotate)
{
    Fiber *to = pick(e, rotate);
    if (to == from) {
        return;
    }
    if (!to) {
        leave_to_engine(e, from);
        return;
    }
    e->running = to;
    cur = &to->c;
    race_switch(to->race);
#if SIMT_ASAN
    __sanitizer_start_switch_fiber(from->state == DONE ? nullptr : &from->fake_stack, to->stack,
                                   to->stack_bytes);
#endif
    simt_switch(&from->sp, to->sp);
    resumed(from);
}

void die(Engine *e, Fiber *f)
{
    f->state = DONE;
    leave_to_engine(e, f);
    abort(); /* nobody resumes a fiber that died */
}
} // namespace simt
