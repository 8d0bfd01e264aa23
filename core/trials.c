/*
 * trials.c - when a kind of plan is tried, and when it replaces the one in use
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/trials.h"

#include <string.h>

/* Times are cut off here, so that they can be multiplied by a percentage: 104 days. */
#define MOST_NS ((uint64_t)1 << 53)

/* A kind that is slower by more than this is left alone as if by this. */
#define MOST_TIMES_SLOWER 512u

static uint64_t to_ns(double seconds)
{
    double ns = seconds * 1e9;

    if (!(ns > 0))
        return 0;
    return ns < 1 ? 1 : ns < (double)MOST_NS ? (uint64_t)ns : MOST_NS;
}

bool zipccl_trials_worth(const double *predicted_s, double wire_s)
{
    double native_s = predicted_s[ZIPCCL_PLAN_NATIVE], raw_s = predicted_s[ZIPCCL_PLAN_RAW];

    if (!(raw_s > 0) || (native_s > 0 && native_s < raw_s))
        raw_s = native_s;
    return raw_s > 0 && 4 * wire_s >= raw_s;
}

void zipccl_trials_init(struct zipccl_trials *t, const double *predicted_s, double wire_s)
{
    unsigned nkinds = 0;

    memset(t, 0, sizeof *t);
    t->now = t->challenger = ZIPCCL_NO_KIND;
    for (int k = 0; k < ZIPCCL_NUM_KINDS; k++) {
        struct zipccl_trial_kind *kind = &t->kinds[k];

        kind->predicted_ns = to_ns(predicted_s[k]);
        kind->next = 1;
        kind->pause = ZIPCCL_TRIAL_PAUSE;
        if (kind->predicted_ns == 0)
            continue;
        nkinds++;
        if (t->now == ZIPCCL_NO_KIND || predicted_s[k] < predicted_s[t->now])
            t->now = k;
    }
    t->on = nkinds > 1 && zipccl_trials_worth(predicted_s, wire_s);
}

int zipccl_trials_kind(const struct zipccl_trials *t, uint32_t call)
{
    return zipccl_trials_timed(t, call) && call % 2 == 1 ? t->challenger : t->now;
}

bool zipccl_trials_timed(const struct zipccl_trials *t, uint32_t call)
{
    return t->challenger != ZIPCCL_NO_KIND && call < ZIPCCL_TRIAL_CALLS;
}

void zipccl_trials_note(struct zipccl_trials *t, uint32_t call, uint64_t ns)
{
    uint64_t *least = &t->seen.ns[call % 2];

    ns = ns == 0 ? 1 : ns < MOST_NS ? ns : MOST_NS;
    if (*least == 0 || ns < *least)
        *least = ns;
}

static uint64_t longer(uint64_t a, uint64_t b)
{
    return a == 0 || b == 0 ? 0 : a > b ? a : b;
}

struct zipccl_trial_seen zipccl_trials_merge(struct zipccl_trial_seen a, struct zipccl_trial_seen b)
{
    return (struct zipccl_trial_seen){{longer(a.ns[0], b.ns[0]), longer(a.ns[1], b.ns[1])}};
}

/* Leave a kind alone after a trial in which it was 'slower' times as slow as the one in use. */
static void postpone(struct zipccl_trials *t, int k, uint64_t slower)
{
    struct zipccl_trial_kind *kind = &t->kinds[k];
    uint64_t limit;

    slower = slower < 1 ? 1 : slower < MOST_TIMES_SLOWER ? slower : MOST_TIMES_SLOWER;
    limit = ZIPCCL_TRIAL_PAUSE_LIMIT * slower;
    kind->wins = 0;
    if (kind->pause < ZIPCCL_TRIAL_PAUSE * slower)
        kind->pause = ZIPCCL_TRIAL_PAUSE * slower;
    kind->next = t->period + kind->pause;
    kind->pause = 2 * kind->pause < limit ? 2 * kind->pause : limit;
}

static void change(struct zipccl_trials *t)
{
    int old = t->now;

    t->now = t->challenger;
    t->changes++;
    for (int k = 0; k < ZIPCCL_NUM_KINDS; k++)
        t->kinds[k].wins = 0;
    postpone(t, old, 1);
}

/* Wins in a row that change the kind in use. */
static uint32_t wins_needed(const struct zipccl_trials *t)
{
    return t->changes < ZIPCCL_TRIAL_MOST_WINS - ZIPCCL_TRIAL_WINS ? ZIPCCL_TRIAL_WINS + t->changes
                                                                   : ZIPCCL_TRIAL_MOST_WINS;
}

static void judge(struct zipccl_trials *t, struct zipccl_trial_seen seen)
{
    struct zipccl_trial_kind *tried = &t->kinds[t->challenger];
    uint64_t now = seen.ns[0], other = seen.ns[1];

    t->ntrials++;
    if (now == 0 || other == 0 || t->challenger == t->now) {
        t->kinds[t->now].ns = now;
        postpone(t, t->challenger, 1);
        return;
    }
    t->kinds[t->now].ns = now;
    tried->ns = other;
    if (other * 100 >= now * (100 - ZIPCCL_TRIAL_MARGIN_PERCENT)) {
        postpone(t, t->challenger, other / now);
        return;
    }
    tried->wins++;
    if (tried->wins >= wins_needed(t) || (t->changes == 0 && other < now / 2))
        change(t);
}

static bool in_reach(const struct zipccl_trials *t, int k)
{
    const struct zipccl_trial_kind *now = &t->kinds[t->now], *kind = &t->kinds[k];

    return kind->predicted_ns > 0 &&
           (kind->predicted_ns * 100 <= now->predicted_ns * ZIPCCL_TRIAL_REACH_PERCENT ||
            kind->predicted_ns < now->ns);
}

/* The kind that waits longest; the one in use alone, to have its time, if there is no other. */
static int next_challenger(const struct zipccl_trials *t)
{
    int best = ZIPCCL_NO_KIND;
    bool others = false;

    for (int k = 0; k < ZIPCCL_NUM_KINDS; k++) {
        if (k == t->now || !in_reach(t, k))
            continue;
        others = true;
        if (t->kinds[k].next <= t->period &&
            (best == ZIPCCL_NO_KIND || t->kinds[k].next < t->kinds[best].next ||
             (t->kinds[k].next == t->kinds[best].next &&
              t->kinds[k].predicted_ns < t->kinds[best].predicted_ns)))
            best = k;
    }
    return !others && t->kinds[t->now].next <= t->period ? t->now : best;
}

void zipccl_trials_decide(struct zipccl_trials *t, struct zipccl_trial_seen seen, bool compresses)
{
    t->seen = (struct zipccl_trial_seen){{0, 0}};
    if (!t->on)
        return;
    t->period++;
    if (t->challenger != ZIPCCL_NO_KIND)
        judge(t, seen);
    t->challenger = compresses ? next_challenger(t) : ZIPCCL_NO_KIND;
}

static uint64_t hash_u64(uint64_t hash, uint64_t x)
{
    for (unsigned b = 0; b < 64; b += 8)
        hash = (hash ^ ((x >> b) & 0xff)) * UINT64_C(0x100000001b3);
    return hash;
}

uint64_t zipccl_trials_digest(const struct zipccl_trials *t, uint64_t hash)
{
    hash = hash_u64(hash, t->on);
    hash = hash_u64(hash, (uint64_t)(int64_t)t->now);
    hash = hash_u64(hash, (uint64_t)(int64_t)t->challenger);
    hash = hash_u64(hash, t->changes);
    hash = hash_u64(hash, t->period);
    for (int k = 0; k < ZIPCCL_NUM_KINDS; k++) {
        hash = hash_u64(hash, t->kinds[k].predicted_ns);
        hash = hash_u64(hash, t->kinds[k].ns);
        hash = hash_u64(hash, t->kinds[k].next);
        hash = hash_u64(hash, t->kinds[k].pause);
        hash = hash_u64(hash, t->kinds[k].wins);
    }
    return hash;
}

const char *zipccl_kind_name(int kind)
{
    static const char *const names[ZIPCCL_NUM_KINDS] = {"native", "raw", "compressed"};

    return kind >= 0 && kind < ZIPCCL_NUM_KINDS ? names[kind] : "none";
}
