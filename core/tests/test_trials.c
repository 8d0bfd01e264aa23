/*
 * test_trials.c - the rule of trials: what is tried when, what wins, and that noise changes little
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/classes.h"
#include "core/trials.h"

#include <criterion/criterion.h>

/* Predicted seconds of native, raw and compressed plans; of the fastest 'wire_s' on bytes. */
static struct zipccl_trials start(double native, double raw, double compressed, double wire_s)
{
    const double predicted_s[ZIPCCL_NUM_KINDS] = {native, raw, compressed};
    struct zipccl_trials t;

    zipccl_trials_init(&t, predicted_s, wire_s);
    return t;
}

/* A period in which the kinds take 'ns' each; true if there was a trial. */
static bool period(struct zipccl_trials *t, const uint64_t ns[ZIPCCL_NUM_KINDS])
{
    bool tried = t->challenger != ZIPCCL_NO_KIND;

    for (uint32_t call = 0; call < ZIPCCL_CLASS_PERIOD; call++) {
        if (zipccl_trials_opened(t, call))
            zipccl_trials_open(t, t->seen);
        if (zipccl_trials_timed(t, call))
            zipccl_trials_note(t, call, ns[zipccl_trials_kind(t, call)]);
    }
    zipccl_trials_decide(t, t->seen, true);
    return tried;
}

static unsigned periods(struct zipccl_trials *t, unsigned n, const uint64_t ns[ZIPCCL_NUM_KINDS])
{
    unsigned ntrials = 0;

    for (unsigned i = 0; i < n; i++)
        ntrials += period(t, ns);
    return ntrials;
}

Test(trials, starts_with_what_is_predicted_to_be_fastest)
{
    struct zipccl_trials t = start(3e-3, 2e-3, 2.5e-3, 1e-3);

    cr_assert_eq(t.now, ZIPCCL_PLAN_RAW);
    cr_assert(t.on);
    cr_assert_eq(zipccl_trials_kind(&t, 1), ZIPCCL_PLAN_RAW);
    cr_assert_not(zipccl_trials_timed(&t, 0));
}

Test(trials, are_off_where_bytes_take_less_than_a_quarter_of_the_time)
{
    const uint64_t ns[] = {10, 1, 1};
    struct zipccl_trials t = start(1e-5, 1.1e-5, 1.2e-5, 0.249e-5);

    cr_assert_not(t.on);
    cr_assert_eq(periods(&t, 100, ns), 0);
    cr_assert_eq(t.now, ZIPCCL_PLAN_NATIVE);
    cr_assert(start(1e-5, 1.1e-5, 1.2e-5, 0.251e-5).on);
}

Test(trials, are_off_where_there_is_one_kind_or_none)
{
    struct zipccl_trials t = start(1e-3, 0, 0, 1e-3);

    cr_assert_not(t.on);
    cr_assert_eq(t.now, ZIPCCL_PLAN_NATIVE);
    t = start(0, 0, 0, 0);
    cr_assert_not(t.on);
    cr_assert_eq(t.now, ZIPCCL_NO_KIND);
}

/* Periods until the next trial, in all of which the kinds take 'ns' each. */
static unsigned until_trial(struct zipccl_trials *t, const uint64_t ns[ZIPCCL_NUM_KINDS])
{
    unsigned n = 0;

    for (period(t, ns); t->challenger == ZIPCCL_NO_KIND && n < 100000; n++)
        period(t, ns);
    return n;
}

Test(trials, are_a_single_call_of_a_kind_that_was_never_timed_then_four)
{
    const uint64_t ns[] = {1000, 1000, 1000};
    struct zipccl_trials t = start(1e-6, 0, 1.4e-6, 1e-6);

    for (uint32_t ncalls = 2; ncalls <= ZIPCCL_TRIAL_CALLS; ncalls += 6) {
        until_trial(&t, ns);
        cr_assert_eq(t.challenger, ZIPCCL_PLAN_COMPRESSED);
        for (uint32_t call = 0; call < ZIPCCL_CLASS_PERIOD; call++) {
            bool tried = call < ncalls && call % 2 == 1;

            cr_assert_eq(zipccl_trials_timed(&t, call), call < ncalls);
            cr_assert_eq(zipccl_trials_kind(&t, call),
                         tried ? ZIPCCL_PLAN_COMPRESSED : ZIPCCL_PLAN_NATIVE);
        }
    }
}

Test(trials, a_compressed_kind_proves_itself_in_the_first_four_calls)
{
    struct zipccl_trials t = start(1.6e-6, 1.5e-6, 1e-6, 1e-6);
    const int kinds[] = {ZIPCCL_PLAN_COMPRESSED, ZIPCCL_PLAN_RAW, ZIPCCL_PLAN_COMPRESSED,
                         ZIPCCL_PLAN_RAW, ZIPCCL_PLAN_COMPRESSED};

    for (uint32_t call = 0; call < 5; call++) {
        cr_assert_eq(zipccl_trials_kind(&t, call), kinds[call]);
        cr_assert_eq(zipccl_trials_timed(&t, call), call < 4);
        cr_assert_eq(zipccl_trials_opened(&t, call), call == 4);
    }
}

Test(trials, what_does_not_prove_itself_is_out_of_use_from_the_fifth_call_on)
{
    for (uint64_t raw = 890; raw <= 910; raw += 20) {
        struct zipccl_trials t = start(0, 1.5e-6, 1e-6, 1e-6);
        int winner = raw < 900 ? ZIPCCL_PLAN_RAW : ZIPCCL_PLAN_COMPRESSED;

        zipccl_trials_open(&t, (struct zipccl_trial_seen){{1000, raw}});
        cr_assert_eq(zipccl_trials_kind(&t, 4), winner);
        cr_assert_eq(t.kinds[ZIPCCL_PLAN_RAW].ns, raw);
        cr_assert_eq(t.kinds[ZIPCCL_PLAN_COMPRESSED].ns, 1000);
        for (uint32_t call = 4; call < ZIPCCL_CLASS_PERIOD; call++)
            cr_assert_not(zipccl_trials_timed(&t, call));
    }
}

Test(trials, an_opening_that_a_rank_could_not_time_changes_nothing)
{
    struct zipccl_trials t = start(0, 1.5e-6, 1e-6, 1e-6);

    zipccl_trials_open(&t, (struct zipccl_trial_seen){{1000, 0}});
    cr_assert_eq(t.now, ZIPCCL_PLAN_COMPRESSED);
    cr_assert_eq(t.challenger, ZIPCCL_NO_KIND);
}

Test(trials, uncompressed_kinds_in_use_have_no_opening)
{
    struct zipccl_trials t = start(1e-6, 1.1e-6, 1.2e-6, 1e-6);

    cr_assert_not(zipccl_trials_timed(&t, 0));
    cr_assert_not(zipccl_trials_opened(&t, 4));
}

Test(trials, a_faster_kind_is_in_use_after_three_wins)
{
    const uint64_t ns[] = {1000, 940, 2000};
    struct zipccl_trials t = start(1e-6, 1.2e-6, 0, 1e-6);

    while (t.changes == 0)
        period(&t, ns);
    cr_assert_eq(t.now, ZIPCCL_PLAN_RAW);
    cr_assert_eq(t.ntrials, 4); /* the first is a probe */
    cr_assert_lt(t.period, 20);
    periods(&t, 1000, ns);
    cr_assert_eq(t.changes, 1);
    cr_assert_eq(t.kinds[ZIPCCL_PLAN_RAW].ns, 940);
    cr_assert_eq(t.kinds[ZIPCCL_PLAN_NATIVE].ns, 1000);
}

Test(trials, less_than_the_margin_is_no_win)
{
    const uint64_t ns[] = {1000, 950, 2000};
    struct zipccl_trials t = start(1e-6, 1.2e-6, 0, 1e-6);

    periods(&t, 1000, ns);
    cr_assert_eq(t.changes, 0);
}

Test(trials, a_kind_twice_as_fast_is_in_use_after_its_first_trial)
{
    const uint64_t ns[] = {1000, 0, 499};
    struct zipccl_trials t = start(1e-6, 0, 1.4e-6, 1e-6);

    while (t.changes == 0)
        period(&t, ns);
    cr_assert_eq(t.now, ZIPCCL_PLAN_COMPRESSED);
    cr_assert_eq(t.ntrials, 2); /* the first is a probe */
}

Test(trials, a_kind_out_of_reach_is_tried_once_the_other_was_seen_to_be_slower_than_it)
{
    const uint64_t as_said[] = {1000, 0, 10000}, slow[] = {20000, 0, 10000};
    struct zipccl_trials t = start(1e-6, 0, 8e-6, 1e-6);

    periods(&t, 1000, as_said);
    cr_assert_eq(t.kinds[ZIPCCL_PLAN_COMPRESSED].ns, 0);
    cr_assert_eq(t.kinds[ZIPCCL_PLAN_NATIVE].ns, 1000);
    periods(&t, 1000, slow);
    cr_assert_eq(t.now, ZIPCCL_PLAN_COMPRESSED);
}

/* Seconds of calls and of what trials lost, by a kind that takes 'slower' times as long as the other. */
static void lose(uint64_t slower, double predicted, unsigned nperiods, double *most)
{
    const uint64_t ns[] = {1000, 1000 * slower, 0};
    struct zipccl_trials t = start(1e-6, predicted, 0, 1e-6);
    double all = 0, lost = 0, unexpected = (double)slower - 4 * predicted / 1e-6;

    *most = 0;
    for (unsigned k = 0; k < nperiods; k++) {
        uint32_t ntried = 0;

        for (uint32_t call = 0; call < ZIPCCL_CLASS_PERIOD; call++)
            ntried += zipccl_trials_kind(&t, call) == ZIPCCL_PLAN_RAW;
        lost += (double)ntried * (double)(slower - 1);
        all += ZIPCCL_CLASS_PERIOD;
        period(&t, ns);
        if (ntried > 0 && (lost - (unexpected > 0 ? unexpected : 0)) / all > *most)
            *most = (lost - (unexpected > 0 ? unexpected : 0)) / all;
        cr_assert_eq(t.changes, 0);
    }
    cr_assert_gt(t.ntrials, 1);
}

Test(trials, never_cost_more_than_their_share_of_the_time_so_far)
{
    static const double predicted[] = {1e-6, 1.2e-6, 1.5e-6};
    double most;

    /* But for a first call that takes more than four times what is predicted: by so much more. */
    for (unsigned p = 0; p < 3; p++)
        for (uint64_t slower = 1; slower <= 256; slower += slower < 8 ? 1 : slower) {
            lose(slower, predicted[p], 2000 * (unsigned)slower, &most);
            cr_assert_leq(most, 1.0 / ZIPCCL_TRIAL_SHARE, "%u times slower: %g", (unsigned)slower,
                          most);
        }
}

Test(trials, of_a_slow_loser_are_ever_rarer)
{
    const uint64_t ns[] = {1000, 3000, 0};
    struct zipccl_trials t = start(1e-6, 1e-6, 0, 1e-6);
    unsigned first = periods(&t, 500, ns), later;

    periods(&t, 2000, ns);
    later = periods(&t, 500, ns);
    cr_assert_lt(later, first);
    cr_assert_leq(later, 2);
}

Test(trials, a_compressed_kind_in_use_pays_for_its_opening_before_anything_is_tried)
{
    const uint64_t ns[] = {0, 1000, 5000};
    struct zipccl_trials t = start(0, 1.5e-6, 1e-6, 1e-6);
    unsigned n;

    period(&t, ns);
    cr_assert_eq(t.now, ZIPCCL_PLAN_RAW);
    n = until_trial(&t, ns) + 2;
    /* Two calls that took five times as long, and four more of the next trial: 24 calls of 64 each. */
    cr_assert_geq(n * ZIPCCL_CLASS_PERIOD, 16 * ZIPCCL_TRIAL_SHARE, "after %u periods", n);
}

Test(trials, one_trial_undoes_an_opening_that_met_a_hiccup)
{
    const uint64_t hiccup[] = {0, 1000, 1500}, ns[] = {0, 1000, 700};
    struct zipccl_trials t = start(0, 1.5e-6, 1e-6, 1e-6);
    unsigned n;

    period(&t, hiccup);
    cr_assert_eq(t.now, ZIPCCL_PLAN_RAW);
    n = until_trial(&t, ns) + 2;
    period(&t, ns);
    cr_assert_eq(t.now, ZIPCCL_PLAN_COMPRESSED);
    /* What the opening lost, what the trial might lose, and two exchanges. */
    cr_assert_leq(n * ZIPCCL_CLASS_PERIOD, 6 * ZIPCCL_TRIAL_SHARE, "after %u periods", n);
}

Test(trials, an_opening_that_a_trial_confirms_takes_three_wins_to_undo)
{
    const uint64_t slow[] = {0, 1000, 1500}, ns[] = {0, 1000, 700};
    struct zipccl_trials t = start(0, 1.5e-6, 1e-6, 1e-6);

    period(&t, slow);
    uint64_t before;

    until_trial(&t, slow);
    period(&t, slow);
    cr_assert_eq(t.now, ZIPCCL_PLAN_RAW);
    before = t.ntrials;
    for (unsigned n = 0; t.now == ZIPCCL_PLAN_RAW && n < 100000; n++)
        period(&t, ns);
    cr_assert_eq(t.ntrials - before, 3);
    cr_assert_eq(t.now, ZIPCCL_PLAN_COMPRESSED);
}

Test(trials, alternating_noise_changes_nothing)
{
    struct zipccl_trials t = start(1e-6, 1.2e-6, 0, 1e-6);

    for (unsigned k = 0; k < 20000; k++) {
        const uint64_t ns[] = {1000, t.ntrials % 2 == 0 ? 800 : 1200, 0};

        period(&t, ns);
    }
    cr_assert_gt(t.ntrials, 100);
    cr_assert_eq(t.changes, 0);
}

Test(trials, random_noise_changes_ever_more_seldom)
{
    struct zipccl_trials t = start(1e-6, 1.2e-6, 0, 1e-6);
    uint64_t random = 1;

    for (unsigned k = 0; k < 50000; k++) {
        uint64_t ns[] = {0, 0, 0};

        for (int i = 0; i < 2; i++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
            ns[i] = 800 + (random >> 33) % 400;
        }
        period(&t, ns);
    }
    cr_assert_gt(t.ntrials, 200);
    cr_assert_leq(t.changes, 6, "%u changes", t.changes);
}

Test(trials, the_slowest_rank_counts)
{
    struct zipccl_trial_seen a = {{5, 9}}, b = {{7, 3}}, none = {{0, 8}};
    struct zipccl_trial_seen both = zipccl_trials_merge(a, b);

    cr_assert_eq(both.ns[0], 7);
    cr_assert_eq(both.ns[1], 9);
    cr_assert_eq(zipccl_trials_merge(a, none).ns[0], 0);
}

Test(trials, nothing_is_tried_while_compressed_plans_are_not_to_be_had)
{
    const uint64_t ns[] = {1000, 0, 500};
    struct zipccl_trials t = start(1e-6, 0, 1.4e-6, 1e-6);

    for (unsigned k = 0; k < 100; k++)
        zipccl_trials_decide(&t, t.seen, false);
    cr_assert_eq(t.ntrials, 0);
    periods(&t, 5, ns);
    cr_assert_eq(t.now, ZIPCCL_PLAN_COMPRESSED);
}

Test(trials, every_part_of_the_state_that_decides_is_in_the_digest)
{
    const uint64_t ns[] = {1000, 940, 2000};
    struct zipccl_trials t = start(1e-6, 1.2e-6, 0, 1e-6), other;
    uint64_t digest;

    periods(&t, 12, ns);
    digest = zipccl_trials_digest(&t, 1);
    other = t;
    other.changes++;
    cr_assert_neq(zipccl_trials_digest(&other, 1), digest);
    other = t;
    other.spent++;
    cr_assert_neq(zipccl_trials_digest(&other, 1), digest);
    other = t;
    other.kinds[1].wins++;
    cr_assert_neq(zipccl_trials_digest(&other, 1), digest);
    other = t;
    other.kinds[2].pause++;
    cr_assert_neq(zipccl_trials_digest(&other, 1), digest);
    other = t;
    other.seen.ns[0] = 1; /* a rank's own */
    cr_assert_eq(zipccl_trials_digest(&other, 1), digest);
}
