/*
 * simt_report.cpp - what went wrong in a kernel, with the places of the threads involved
 *
 * An error ends the launch, not the process: the text is kept for emu_error(), and the stream's
 * device gets cudaErrorLaunchFailure.  ZIPCCL_EMU_ABORT=1 stops the process instead, for a debugger.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/simt_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string>

namespace simt
{
static const char *const op_names[] = {
    "none",
    "__syncwarp",
    "__ballot_sync",
    "__any_sync",
    "__all_sync",
    "__shfl_sync",
    "__shfl_up_sync",
    "__shfl_down_sync",
    "__shfl_xor_sync",
    "__match_any_sync",
    "__reduce_add_sync",
    "__reduce_min_sync",
    "__reduce_max_sync",
    "__reduce_and_sync",
    "__reduce_or_sync",
    "__reduce_xor_sync",
    "__syncthreads",
    "__syncthreads_count",
    "__syncthreads_and",
    "__syncthreads_or",
};

static std::mutex text_mutex;
static char text[1 << 14];

const char *describe(const Fiber *f, char *out, size_t nbytes)
{
    static const char *const states[] = {"can run", "waits in ", "waits in ", "exited"};
    const Warp &w = f->block->warps[f->warp];
    const bool waits = f->state == IN_WARP || f->state == IN_BLOCK;
    const uint3 b = f->c.bid, t = f->c.tid;
    snprintf(out, nbytes,
             "block (%u,%u,%u) thread (%u,%u,%u) warp %u lane %u: %s%s, at %s:%d, mask %08x", b.x,
             b.y, b.z, t.x, t.y, t.z, f->warp, f->lane, states[f->state],
             waits ? op_names[w.op[f->lane]] : "", f->at.file ? f->at.file : "its start",
             f->at.line, w.mask[f->lane]);
    return out;
}

/* Of what is no kernel's: a stream. */
void keep_error(const char *error)
{
    std::lock_guard<std::mutex> lock(text_mutex);
    if (!text[0]) {
        snprintf(text, sizeof text, "%s", error);
    }
    if (getenv("ZIPCCL_EMU_ABORT")) {
        fprintf(stderr, "%s\n", error);
        abort();
    }
}

void fail(Engine *e, const char *fmt, ...)
{
    if (e->launch->failed.exchange(true)) {
        return;
    }
    std::lock_guard<std::mutex> lock(text_mutex);
    if (text[0]) {
        return;
    }
    const int k = snprintf(text, sizeof text, "kernel %s: ", e->launch->name);
    va_list args;
    va_start(args, fmt);
    vsnprintf(text + k, sizeof text - (size_t)k, fmt, args);
    va_end(args);
    if (getenv("ZIPCCL_EMU_ABORT")) {
        fprintf(stderr, "%s\n", text);
        abort();
    }
}

/* Adjacent lanes in the same place are one line. */
static bool same_place(const Fiber *a, const Fiber *b)
{
    const Warp &w = a->block->warps[a->warp];
    return a->warp == b->warp && a->state == b->state && a->at.line == b->at.line &&
           a->at.file == b->at.file && w.mask[a->lane] == w.mask[b->lane];
}

void report_waiting(Engine *e, const char *what)
{
    enum { LINES = 24 };
    std::string list;
    char line[DESCRIBE];
    int nlines = 0;
    for (Block &b : e->blocks) {
        const Fiber *prev = nullptr;
        if (!b.busy) {
            continue;
        }
        for (const Fiber &f : b.fibers) {
            if (f.state == DONE || (prev && same_place(prev, &f))) {
                continue;
            }
            prev = &f;
            if (nlines++ < LINES) {
                list += "\n  ";
                list += describe(&f, line, sizeof line);
            }
        }
    }
    if (nlines > LINES) {
        snprintf(line, sizeof line, "\n  and %d more places", nlines - LINES);
        list += line;
    }
    fail(e, "%s%s", what, list.c_str());
}

void forget_error()
{
    std::lock_guard<std::mutex> lock(text_mutex);
    text[0] = '\0';
}
} // namespace simt

const char *emu_error(void)
{
    return simt::text;
}
