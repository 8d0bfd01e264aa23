/*
 * simt_block.cpp - a block's life: its threads, its shared memory, its barrier
 *
 * Fresh shared memory holds noise, for CUDA promises nothing about it, between two rows of guard
 * bytes that are checked when the block ends (ASan, where on, names the access itself).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/simt_state.h"

#include <stdlib.h>
#include <sys/mman.h>

namespace simt
{
enum { PAGE = 4096, GUARD = 128, GUARD_BYTE = 0xC5 };

static SharedVar allocate_shared(Engine *e, const void *key, size_t nbytes, size_t align)
{
    const size_t guard = SIMT_ASAN || SIMT_TSAN ? 0 : GUARD;
    void *raw = nullptr;
    void *here = race_enter_pristine(e);
    const size_t total = nbytes + 2 * guard;
    if (posix_memalign(&raw, align < 128 ? 128 : align, total ? total : 1)) {
        abort();
    }
    race_switch(here);
    SharedVar v = {key, static_cast<unsigned char *>(raw), nullptr, nbytes};
    v.p = v.raw + guard;
    memset(v.raw, GUARD_BYTE, guard);
    for (size_t i = 0; i < nbytes; i++) {
        v.p[i] = (unsigned char)random64(&e->rng);
    }
    memset(v.p + nbytes, GUARD_BYTE, guard);
    return v;
}

static void free_shared(Engine *e, const Block *b, const SharedVar &v, const char *what)
{
    if (v.p != v.raw && !e->launch->failed) {
        for (size_t i = 0; i < GUARD; i++) {
            if (v.raw[i] != GUARD_BYTE || v.p[v.nbytes + i] != GUARD_BYTE) {
                const uint3 id = b->fibers[0].c.bid;
                fail(e, "block (%u,%u,%u) wrote outside %s shared memory of %zu bytes", id.x, id.y,
                     id.z, what, v.nbytes);
                break;
            }
        }
    }
    free(v.raw);
}

void *shared_var(const void *key, size_t nbytes, size_t align)
{
    Engine *e = engine;
    Block *b = e->running->block;
    for (const SharedVar &v : b->shared) {
        if (v.key == key) {
            race_acquire(b->clocks + 3);
            return v.p;
        }
    }
    b->shared.push_back(allocate_shared(e, key, nbytes, align));
    void *here = race_enter_pristine(e);
    race_release(b->clocks + 3);
    race_switch(here);
    race_acquire(b->clocks + 3);
    return b->shared.back().p;
}

void *dyn_shared()
{
    return engine->running->block->dyn.p;
}

/* Stacks are kept for later blocks, each above a page that cannot be touched. */
static void give_stack(Engine *e, Fiber *f, size_t k, size_t nbytes)
{
    f->stack_bytes = nbytes;
#if SIMT_TSAN
    /* A reused stack has the shadow of the thread before; fresh heap memory has not. */
    void *p = nullptr;
    void *here = race_enter_pristine(e);
    if (posix_memalign(&p, 64, nbytes)) {
        abort();
    }
    race_switch(here);
    f->stack = static_cast<char *>(p);
    (void)k;
#else
    if (e->stacks.size() <= k) {
        e->stacks.resize(k + 1, Engine::Stack{nullptr, 0});
    }
    Engine::Stack *s = &e->stacks[k];
    if (s->nbytes < nbytes) {
        if (s->base) {
            munmap(s->base, s->nbytes + PAGE);
        }
        void *m = mmap(nullptr, nbytes + PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (m == MAP_FAILED || mprotect(m, PAGE, PROT_NONE)) {
            abort();
        }
        *s = Engine::Stack{static_cast<char *>(m), nbytes};
    }
    f->stack = s->base + PAGE;
    f->stack_bytes = s->nbytes;
#endif
}

static void start_thread(Engine *e, Block *b, unsigned t, uint64_t index, size_t stack)
{
    const Launch *l = e->launch;
    Fiber *f = &b->fibers[t];
    const dim3 d = l->block, g = l->grid;
    f->block = b;
    f->warp = (uint16_t)(t / 32);
    f->lane = (uint8_t)(t % 32);
    f->state = READY;
    f->at = Place{nullptr, 0};
    f->c.tid = make_uint3(t % d.x, t / d.x % d.y, t / (d.x * d.y));
    f->c.bid = make_uint3((unsigned)(index % g.x), (unsigned)(index / g.x % g.y),
                          (unsigned)(index / ((uint64_t)g.x * g.y)));
    f->c.bdim = d;
    f->c.gdim = g;
    give_stack(e, f, stack, (size_t)l->options.stack_kib * 1024 + PAGE);
    /* Stacks at equal offsets within a page would fight for the same lines of the L1 cache. */
    prepare_fiber(e, f, SIMT_ASAN ? 0 : stack * 320 % PAGE & ~(size_t)63);
    b->warps[f->warp].exists |= 1u << f->lane;
    b->warps[f->warp].ready |= 1u << f->lane;
    e->live++;
}

void start_block(Engine *e, Block *b, uint64_t index)
{
    Launch *l = e->launch;
    const unsigned n = l->block.x * l->block.y * l->block.z;
    const size_t slot = (size_t)(b - e->blocks.data());
    if (!l->order.empty()) {
        index = l->order[index];
    }
    if (b->fibers.capacity() < n) {
        std::vector<Fiber>().swap(b->fibers); /* the pristine fiber has not seen who read it end */
    }
    void *here = race_enter_pristine(e); /* threads read their coordinates there */
    b->fibers.resize(n);
    b->warps.resize((n + 31) / 32);
    race_switch(here);
    b->alive = (int)n;
    b->bar_count = b->bar_sum = b->bar_result = 0;
    b->bar_phase = 0;
    b->bar_first = nullptr;
    b->busy = true;
    b->shared.clear();
    race_clocks(l, b);
    b->dyn = allocate_shared(e, nullptr, l->smem, 128);
    for (size_t i = 0; i < b->warps.size(); i++) {
        Warp *w = &b->warps[i];
        w->ready = w->exists = w->done = w->waiting = 0;
        w->last = 31;
        w->fibers = &b->fibers[i * 32];
        memset(w->mask, 0, sizeof w->mask);
        memset(w->op, 0, sizeof w->op);
        e->queue.push_back(w);
    }
    for (unsigned t = 0; t < n; t++) {
        start_thread(e, b, t, index, slot * n + t);
    }
}

void end_block(Engine *e, Block *b)
{
    const Warp *first = b->warps.data(), *end = first + b->warps.size();
    size_t kept = 0;
    for (Warp *w : e->queue) {
        if (w < first || w >= end) {
            e->queue[kept++] = w;
        }
    }
    e->queue.resize(kept);
    if (e->at >= kept) {
        e->at = 0;
    }
    race_acquire(b->clocks + 2);
    for (const SharedVar &v : b->shared) {
        free_shared(e, b, v, "static");
    }
    b->shared.clear();
    free_shared(e, b, b->dyn, "dynamic");
    b->busy = false;
    race_end_fibers(e, b);
}

/* Two threads at one barrier must stand at the same one. */
static void check_barrier(Engine *e, Fiber *f, Op op)
{
    Block *b = f->block;
    char x[DESCRIBE], y[DESCRIBE];
    f->state = IN_BLOCK;
    if (b->alive != (int)b->fibers.size()) {
        fail(e, "barrier after some threads of the block exited\n  %s", describe(f, x, sizeof x));
        die(e, f);
    }
    if (b->bar_count > 0) {
        const Fiber *o = b->bar_first;
        if (b->warps[o->warp].op[o->lane] != op || o->at.line != f->at.line) {
            fail(e, "threads of one block meet at different barriers\n  %s\n  %s",
                 describe(o, x, sizeof x), describe(f, y, sizeof y));
            die(e, f);
        }
    }
    f->state = READY;
}

static void open_barrier(Engine *e, Block *b, Op op)
{
    b->bar_result = op == OP_BAR_COUNT ? b->bar_sum
                    : op == OP_BAR_AND ? b->bar_sum == b->alive
                                       : b->bar_sum != 0;
    b->bar_count = b->bar_sum = 0;
    b->bar_phase++;
    e->spins = 0;
    for (Fiber &o : b->fibers) {
        if (o.state == IN_BLOCK) {
            o.state = READY;
            b->warps[o.warp].ready |= 1u << o.lane;
        }
    }
}

int block_op(Op op, int pred, Place at)
{
    Engine *e = engine;
    Fiber *f = e->running;
    Block *b = f->block;
    Warp *w = &b->warps[f->warp];
    const unsigned phase = b->bar_phase & 1;
    w->op[f->lane] = op;
    w->mask[f->lane] = ~0u;
    f->at = at;
    if (e->launch->options.strict) {
        check_barrier(e, f, op);
    }
    if (b->bar_count++ == 0) {
        b->bar_first = f;
    }
    b->bar_sum += pred != 0;
    race_release(b->clocks + phase);
    int result;
    if (b->bar_count < b->alive) {
        f->state = IN_BLOCK;
        leave_to_next(e, f, false);
        result = b->bar_result;
    } else {
        open_barrier(e, b, op);
        result = b->bar_result;
        if (e->launch->options.policy == EMU_RANDOM) {
            w->ready |= 1u << f->lane;
            leave_to_next(e, f, false);
        }
    }
    race_acquire(b->clocks + phase);
    return result;
}
} // namespace simt
