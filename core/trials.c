/*
 * trials.c - when a kind of plan is tried, and when it replaces the one in use
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/trials.h"

#include "core/classes.h"

#include <string.h>

/* Times are cut off here, so that they can be multiplied by a percentage: 104 days. */
#define MOST_NS ((uint64_t)1 << 53)

/* A kind that is slower by more than this is left alone as if by this. */
#define MOST_TIMES_SLOWER 512u

/* What a trial costs besides: ranks exchange what they saw, about as long as a call. */
#define EXCHANGE ZIPCCL_TRIAL_SHARE

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

static int best_uncompressed(const struct zipccl_trials *t)
{
    uint64_t native = t->kinds[ZIPCCL_PLAN_NATIVE].predicted_ns;
    uint64_t raw = t->kinds[ZIPCCL_PLAN_RAW].predicted_ns;

    return native > 0 && (raw == 0 || native <= raw) ? ZIPCCL_PLAN_NATIVE : ZIPCCL_PLAN_RAW;
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
    if (t->on && t->now == ZIPCCL_PLAN_COMPRESSED)
        t->challenger = best_uncompressed(t);
}

/* Calls in which the kind in use and the one on trial take turns: the opening is in period 0. */
static uint32_t trial_calls(const struct zipccl_trials *t)
{
    if (t->challenger == ZIPCCL_NO_KIND)
        return 0;
    if (t->period == 0)
        return ZIPCCL_TRIAL_OPENING_CALLS;
    return t->challenger == t->now || t->kinds[t->challenger].ns > 0 ? ZIPCCL_TRIAL_CALLS : 2;
}

int zipccl_trials_kind(const struct zipccl_trials *t, uint32_t call)
{
    return zipccl_trials_timed(t, call) && call % 2 == 1 ? t->challenger : t->now;
}

bool zipccl_trials_timed(const struct zipccl_trials *t, uint32_t call)
{
    return call < trial_calls(t);
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

/* What 'ncalls' of 'other' lose beside as many of 'now', with the exchange, in parts of a call. */
static uint64_t cost(uint64_t now, uint64_t other, uint32_t ncalls)
{
    uint64_t times;

    if (other <= now)
        return EXCHANGE;
    times = (other - now) / now;
    if (times >= MOST_TIMES_SLOWER)
        return EXCHANGE + (uint64_t)ncalls * ZIPCCL_TRIAL_SHARE * MOST_TIMES_SLOWER;
    return EXCHANGE + (other - now) * ncalls / now * ZIPCCL_TRIAL_SHARE +
           (other - now) * ncalls % now * ZIPCCL_TRIAL_SHARE / now;
}

/* The same of a trial of 'k' to come. */
static uint64_t expected_cost(const struct zipccl_trials *t, int k)
{
    const struct zipccl_trial_kind *now = &t->kinds[t->now], *kind = &t->kinds[k];

    if (k == t->now)
        return EXCHANGE;
    if (kind->ns > 0 && now->ns > 0)
        return cost(now->ns, kind->ns, ZIPCCL_TRIAL_CALLS / 2);
    return cost(now->predicted_ns, ZIPCCL_TRIAL_DOUBT * kind->predicted_ns,
                kind->ns > 0 ? ZIPCCL_TRIAL_CALLS / 2 : 1);
}

/* All that trials may have cost by now, from which what was spent goes. */
static uint64_t earned(const struct zipccl_trials *t)
{
    return t->period * ZIPCCL_CLASS_PERIOD;
}

static bool affords(const struct zipccl_trials *t, int k)
{
    return t->spent + expected_cost(t, k) <= earned(t);
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

/* The one on trial is in use from now on; the other one took 'slower' times as long. */
static void change(struct zipccl_trials *t, uint64_t slower)
{
    int old = t->now;

    t->now = t->challenger;
    t->changes++;
    for (int k = 0; k < ZIPCCL_NUM_KINDS; k++)
        t->kinds[k].wins = 0;
    postpone(t, old, slower);
}

/* Wins in a row that change the kind in use. */
static uint32_t wins_needed(const struct zipccl_trials *t)
{
    return t->changes < ZIPCCL_TRIAL_MOST_WINS - ZIPCCL_TRIAL_WINS ? ZIPCCL_TRIAL_WINS + t->changes
                                                                   : ZIPCCL_TRIAL_MOST_WINS;
}

/* Take in what a trial of 'ncalls' each showed, and what it cost; false if it compared nothing. */
static bool take(struct zipccl_trials *t, struct zipccl_trial_seen seen, uint32_t ncalls)
{
    uint64_t now = seen.ns[0], other = seen.ns[1];
    bool compared = now > 0 && other > 0 && t->challenger != t->now;

    t->ntrials++;
    t->spent += compared ? cost(now, other, ncalls) : EXCHANGE;
    if (now > 0)
        t->kinds[t->now].ns = now;
    if (compared)
        t->kinds[t->challenger].ns = other;
    return compared;
}

static void judge(struct zipccl_trials *t, struct zipccl_trial_seen seen, uint32_t ncalls)
{
    struct zipccl_trial_kind *tried = &t->kinds[t->challenger];
    uint64_t now = seen.ns[0], other = seen.ns[1];
    bool probe = tried->ns == 0;

    if (!take(t, seen, ncalls)) {
        postpone(t, t->challenger, 1);
        return;
    }
    /* One call, in which memory was cold, says how slow it may be, not that it is slower. */
    if (probe && other < 2 * now)
        return;
    if (other * 100 >= now * (100 - ZIPCCL_TRIAL_MARGIN_PERCENT)) {
        postpone(t, t->challenger, other / now);
        return;
    }
    tried->wins++;
    if (tried->wins >= wins_needed(t) || (t->changes == 0 && other < now / 2))
        change(t, now / other);
}

bool zipccl_trials_opened(const struct zipccl_trials *t, uint32_t call)
{
    return t->period == 0 && t->challenger != ZIPCCL_NO_KIND && call == ZIPCCL_TRIAL_OPENING_CALLS;
}

void zipccl_trials_open(struct zipccl_trials *t, struct zipccl_trial_seen seen)
{
    uint64_t now = seen.ns[0], other = seen.ns[1];
    bool compared = take(t, seen, ZIPCCL_TRIAL_OPENING_CALLS / 2);

    if (compared && other * 100 < now * (100 - ZIPCCL_TRIAL_OPENING_PERCENT)) {
        int old = t->now;

        /* Two calls each, the first of them cold, show less than a trial does: that may undo it. */
        change(t, now / other);
        t->changes = 0;
        t->kinds[old].wins = ZIPCCL_TRIAL_WINS - 1;
    }
    t->challenger = ZIPCCL_NO_KIND;
    t->seen = (struct zipccl_trial_seen){{0, 0}};
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
        if (t->kinds[k].next <= t->period && affords(t, k) &&
            (best == ZIPCCL_NO_KIND || t->kinds[k].next < t->kinds[best].next ||
             (t->kinds[k].next == t->kinds[best].next &&
              t->kinds[k].predicted_ns < t->kinds[best].predicted_ns)))
            best = k;
    }
    return !others && t->kinds[t->now].next <= t->period && affords(t, t->now) ? t->now : best;
}

void zipccl_trials_decide(struct zipccl_trials *t, struct zipccl_trial_seen seen, bool compresses)
{
    uint32_t ncalls = trial_calls(t) / 2;

    t->seen = (struct zipccl_trial_seen){{0, 0}};
    if (!t->on)
        return;
    t->period++;
    if (t->challenger != ZIPCCL_NO_KIND)
        judge(t, seen, ncalls);
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
    hash = hash_u64(hash, t->spent);
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
