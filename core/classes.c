/*
 * classes.c - when a capacity class narrows, widens and gives up
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/classes.h"

#include <assert.h>
#include <string.h>

uint32_t zipccl_class_first_bar(int cls)
{
    return cls == ZIPCCL_CLASS_WIDE ? ZIPCCL_CLASS_RETRY : ZIPCCL_CLASS_BAR;
}

void zipccl_class_init(struct zipccl_class_state *state, int narrowest)
{
    memset(state, 0, sizeof *state);
    state->now = ZIPCCL_CLASS_WIDE;
    state->narrowest = narrowest;
    state->seen.fit = ZIPCCL_NUM_CLASSES;
    for (int c = 0; c < ZIPCCL_NUM_CLASSES; c++)
        state->bar[c] = zipccl_class_first_bar(c);
}

struct zipccl_class_seen zipccl_class_merge(struct zipccl_class_seen a, struct zipccl_class_seen b)
{
    return (struct zipccl_class_seen){a.troubled | b.troubled, a.fit < b.fit ? a.fit : b.fit};
}

void zipccl_class_note(struct zipccl_class_state *state, int fit, bool overflowed, bool compressed)
{
    uint32_t call = (uint32_t)(state->calls % ZIPCCL_CLASS_PERIOD);
    struct zipccl_class_seen seen = {overflowed ? (uint32_t)1 << call : 0, fit};

    state->seen = zipccl_class_merge(state->seen, seen);
    state->calls++;
    if (compressed && state->now != ZIPCCL_NO_CLASS)
        state->class_calls[state->now]++;
    else
        state->uncompressed_calls++;
}

void zipccl_class_note_late(struct zipccl_class_state *state, int fit, bool overflowed)
{
    /* Which call of the period it was says nothing, only how many there were. */
    uint32_t bit = ~state->seen.troubled & (state->seen.troubled + 1);
    struct zipccl_class_seen seen = {overflowed ? bit : 0, fit};

    state->seen = zipccl_class_merge(state->seen, seen);
}

bool zipccl_class_due(const struct zipccl_class_state *state)
{
    return state->calls != state->decided && state->calls % ZIPCCL_CLASS_PERIOD == 0;
}

static unsigned count_bits(uint32_t x)
{
    unsigned n = 0;

    for (; x != 0; x &= x - 1)
        n++;
    return n;
}

static bool is_barred(const struct zipccl_class_state *state, int cls)
{
    return state->calls < state->barred_until[cls];
}

static void bar(struct zipccl_class_state *state, int cls)
{
    state->barred_until[cls] = state->calls + state->bar[cls];
    if (state->bar[cls] < ZIPCCL_CLASS_BAR_LIMIT)
        state->bar[cls] *= 2;
}

/* The class after 'now' with more room; below the widest is ZIPCCL_NO_CLASS. */
static int roomier_than(int now, int fit)
{
    int most = now - ZIPCCL_CLASS_STRIDE; /* longer messages than what overflowed do not count */

    if (now == ZIPCCL_CLASS_WIDE)
        return ZIPCCL_NO_CLASS;
    most = most > ZIPCCL_CLASS_WIDE ? most : ZIPCCL_CLASS_WIDE;
    fit = fit < now ? fit : now - 1;
    return fit > most ? fit : most;
}

/* The class after 'now', the narrower ones having overflowed. */
static int wider_than(int now, int roomier, unsigned ntroubled)
{
    int cls = now - ZIPCCL_CLASS_STRIDE;

    if (ntroubled < ZIPCCL_CLASS_TROUBLES || now == ZIPCCL_CLASS_WIDE)
        return roomier;
    cls = cls < ZIPCCL_CLASS_SETTLED ? cls : ZIPCCL_CLASS_SETTLED;
    return cls > ZIPCCL_CLASS_WIDE ? cls : ZIPCCL_CLASS_WIDE;
}

static void widen(struct zipccl_class_state *state, int fit, unsigned ntroubled)
{
    int roomier = roomier_than(state->now, fit);

    if (state->now == ZIPCCL_NO_CLASS ||
        (state->now == ZIPCCL_CLASS_WIDE && ntroubled < ZIPCCL_CLASS_TROUBLES))
        return;
    for (int cls = state->now; cls > roomier; cls--)
        bar(state, cls);
    state->now = wider_than(state->now, roomier, ntroubled);
    state->reason = ZIPCCL_CLASS_OVERFLOWED;
}

/* The narrowest class that nothing bars the way to. */
static int reach(const struct zipccl_class_state *state)
{
    int cls = state->now;

    while (cls < state->narrowest && !is_barred(state, cls + 1))
        cls++;
    return cls;
}

static void narrow(struct zipccl_class_state *state, int fit)
{
    int most = reach(state);

    fit = fit < most ? fit : most;
    if (fit <= state->now)
        return;
    state->now = fit;
    state->reason = ZIPCCL_CLASS_NARROWED;
}

void zipccl_class_decide(struct zipccl_class_state *state, struct zipccl_class_seen seen)
{
    unsigned ntroubled = count_bits(seen.troubled);

    assert(zipccl_class_due(state));
    state->decided = state->calls;
    state->seen = (struct zipccl_class_seen){0, ZIPCCL_NUM_CLASSES};
    state->overflow_calls += ntroubled;
    if (ntroubled > 0) {
        widen(state, seen.fit, ntroubled);
    } else if (seen.fit < ZIPCCL_NUM_CLASSES) {
        narrow(state, seen.fit);
    } else if (state->now == ZIPCCL_NO_CLASS && !is_barred(state, ZIPCCL_CLASS_WIDE)) {
        state->now = ZIPCCL_CLASS_WIDE;
        state->reason = ZIPCCL_CLASS_RETRIED;
    }
}

void zipccl_class_open(struct zipccl_class_state *state, struct zipccl_class_seen seen)
{
    if (seen.troubled == 0 && seen.fit < ZIPCCL_NUM_CLASSES)
        narrow(state, seen.fit - ZIPCCL_CLASS_STRIDE);
}

int zipccl_class_ceiling(const struct zipccl_class_state *state)
{
    int least = state->now > ZIPCCL_CLASS_SETTLED ? state->now : ZIPCCL_CLASS_SETTLED;
    int most = reach(state);

    return most < least ? most : least;
}

uint64_t zipccl_class_digest(const struct zipccl_class_state *state)
{
    uint64_t words[3 + 2 * ZIPCCL_NUM_CLASSES], hash = UINT64_C(0xcbf29ce484222325);
    size_t n = 0;

    words[n++] = (uint64_t)(int64_t)state->now;
    words[n++] = (uint64_t)(int64_t)state->narrowest;
    words[n++] = state->calls;
    for (int c = 0; c < ZIPCCL_NUM_CLASSES; c++) {
        words[n++] = state->barred_until[c];
        words[n++] = state->bar[c];
    }
    for (size_t i = 0; i < n; i++)
        for (unsigned b = 0; b < 64; b += 8)
            hash = (hash ^ ((words[i] >> b) & 0xff)) * UINT64_C(0x100000001b3);
    return hash;
}

const char *zipccl_class_reason_text(enum zipccl_class_reason reason)
{
    static const char *const texts[] = {"as it started", "every message of a period fitted",
                                        "messages overflowed", "tried again"};

    return (unsigned)reason < sizeof texts / sizeof *texts ? texts[reason] : "?";
}
