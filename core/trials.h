/*
 * trials.h - which kind of plan really is the fastest: trials, and a rule with hysteresis
 *
 * The rule alone, as classes.h is for capacities: it knows no rank, no clock and no plan.  The
 * ranks that make a call feed it the same numbers at the same calls, so they come to the same kind
 * of plan however their clocks differ.
 *
 * The kinds are the transport's own collective, our best uncompressed plan, and the best compressed
 * one.  The first in use is the one that is predicted to be the fastest.  In a trial it takes turns
 * with another kind, in the first calls of a period of ZIPCCL_CLASS_PERIOD.  A rank keeps the
 * shortest time of each of the two; the longest over all ranks counts.
 *
 *   opening   a compressed kind that is in use first has to prove itself at once: in the first four
 *             calls it takes turns with the best uncompressed one, which is in use from the fifth
 *             call on if it was faster by more than ZIPCCL_TRIAL_OPENING_PERCENT.  So few calls may
 *             have met a hiccup: the first trial that the compressed kind wins brings it back
 *   probe     of a kind that was never timed: one call
 *   trial     of one that was: four calls
 *
 * What trials cost is bounded.  They may take one part of ZIPCCL_TRIAL_SHARE of the time of all
 * calls so far, so a trial waits until its expected loss fits: what it lost before by being slower,
 * or of a kind that was never timed four times what is predicted, since a prediction may be wrong;
 * and a call for what ranks exchange.  Afterwards the loss that was seen is charged.  Only a kind
 * that is slower still than four times its prediction, and the two calls of the opening, exceed the
 * bound, and nothing is tried until that is made up for.
 *
 *   faster by the margin     a win; after ZIPCCL_TRIAL_WINS in a row, one more for each change that
 *                            there has been, that kind is in use.  A first change comes at once if
 *                            it takes less than half the time
 *   else                     the wins are gone, and the kind is left alone for a while: twice as
 *                            long each time, longer the slower it was
 *
 * A kind is tried if it is predicted to take at most half as long again as the one in use, or less
 * than that one was seen to take.  Nothing is tried where less than a quarter of the fastest
 * uncompressed plan's predicted time is spent on bytes: small messages have no time to gain.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_TRIALS_H
#define ZIPCCL_CORE_TRIALS_H

#include <stdbool.h>
#include <stdint.h>

enum zipccl_kind { ZIPCCL_PLAN_NATIVE, ZIPCCL_PLAN_RAW, ZIPCCL_PLAN_COMPRESSED, ZIPCCL_NUM_KINDS };
#define ZIPCCL_NO_KIND (-1)

/* Calls of a trial, of both kinds together, at most.  Four each: the first pays for cold memory,
 * and the shortest of the others is close to what the call takes undisturbed. */
#define ZIPCCL_TRIAL_CALLS 8u

/* The same of the opening: two each. */
#define ZIPCCL_TRIAL_OPENING_CALLS   4u
#define ZIPCCL_TRIAL_OPENING_PERCENT 10u

/* Trials may take one part of so many of the time of all calls: 1.6 %. */
#define ZIPCCL_TRIAL_SHARE 64u

/* How many times slower than predicted a kind is taken to be that was never timed. */
#define ZIPCCL_TRIAL_DOUBT 4u

/* A win is a time shorter by so many percent.  Two equal collectives on two noisy cores differ by 5
 * to 9 % at the median; the shortest of four differs less. */
#define ZIPCCL_TRIAL_MARGIN_PERCENT 5u
#define ZIPCCL_TRIAL_WINS           3u
#define ZIPCCL_TRIAL_MOST_WINS      16u
#define ZIPCCL_TRIAL_REACH_PERCENT  150u

/* Periods for which a kind that lost is left alone: at first, and at most, times how many times
 * slower it was. */
#define ZIPCCL_TRIAL_PAUSE       2u
#define ZIPCCL_TRIAL_PAUSE_LIMIT 128u

/* Shortest times of the kind in use and of the one on trial, 0: none. */
struct zipccl_trial_seen {
    uint64_t ns[2];
};

struct zipccl_trial_kind {
    uint64_t predicted_ns; /* 0: there is no such plan */
    uint64_t ns;           /* at its last trial, or the other's in which it was in use; 0: none */
    uint64_t next, pause;  /* period from which on it may be tried; how long a loss costs */
    uint32_t wins;         /* in a row */
};

struct zipccl_trials {
    bool on;        /* false: the predicted kind stays in use */
    int now;        /* in use; ZIPCCL_NO_KIND: 'on' is false and there was nothing to compare */
    int challenger; /* on trial in this period; ZIPCCL_NO_KIND: none; 'now': it is timed alone */
    uint32_t changes;
    uint64_t period, ntrials;
    uint64_t spent; /* on trials so far, in parts of ZIPCCL_TRIAL_SHARE of a call */
    struct zipccl_trial_kind kinds[ZIPCCL_NUM_KINDS];
    struct zipccl_trial_seen seen; /* on this rank, in this trial */
};

/*
 * predicted_s  [ZIPCCL_NUM_KINDS] of the best plan of each kind; 0: there is none
 * wire_s       part of the time of the fastest uncompressed of them that is spent on bytes
 */
void zipccl_trials_init(struct zipccl_trials *t, const double *predicted_s, double wire_s);

/* True if the fastest uncompressed plan spends enough on bytes; arguments as above. */
bool zipccl_trials_worth(const double *predicted_s, double wire_s);

/* The kind of plan for call number 'call' of the period; whether it is to be timed. */
int zipccl_trials_kind(const struct zipccl_trials *t, uint32_t call);
bool zipccl_trials_timed(const struct zipccl_trials *t, uint32_t call);

/* Take in the time of call number 'call' of the period, which is to be timed. */
void zipccl_trials_note(struct zipccl_trials *t, uint32_t call, uint64_t ns);

/* What both saw: the longer times. */
struct zipccl_trial_seen zipccl_trials_merge(struct zipccl_trial_seen a,
                                             struct zipccl_trial_seen b);

/* True if the opening ends before call number 'call' of the period. */
bool zipccl_trials_opened(const struct zipccl_trials *t, uint32_t call);

/* End the opening: judge it from 'seen', what all who must agree saw. */
void zipccl_trials_open(struct zipccl_trials *t, struct zipccl_trial_seen seen);

/*
 * End a period: judge its trial from 'seen', what all who must agree saw, and set up the next one.
 *
 * compresses  false: compressed plans are not to be had now; a compressed kind in use stays, but
 *             nothing is tried
 */
void zipccl_trials_decide(struct zipccl_trials *t, struct zipccl_trial_seen seen, bool compresses);

/* FNV-1a digest, from 'hash' on, of what decisions depend on: equal on all who must agree. */
uint64_t zipccl_trials_digest(const struct zipccl_trials *t, uint64_t hash);

/* "native", "raw", "compressed"; "none" for all other numbers. */
const char *zipccl_kind_name(int kind);

#endif
