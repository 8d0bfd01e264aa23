/*
 * test_classes.c - the rule of capacity classes: when one narrows, widens, gives up and tries again
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/classes.h"

#include <criterion/criterion.h>

#define PERIOD ZIPCCL_CLASS_PERIOD

/* A period of calls of which the first 'ntroubled' overflow and the others fit 'fit'; then decide. */
static void period(struct zipccl_class_state *s, unsigned ntroubled, int fit)
{
    for (unsigned i = 0; i < PERIOD; i++) {
        bool over = i < ntroubled;

        cr_assert_not(i > 0 && zipccl_class_due(s));
        zipccl_class_note(s, over ? s->now - 1 : fit, over, s->now != ZIPCCL_NO_CLASS);
    }
    cr_assert(zipccl_class_due(s));
    zipccl_class_decide(s, s->seen);
    cr_assert_not(zipccl_class_due(s));
}

/* Periods in which all is well, up to call number 'calls'; the class must not change. */
static void quiet_until(struct zipccl_class_state *s, uint64_t calls, int now)
{
    while (s->calls < calls) {
        cr_assert_eq(s->now, now, "%d at call %lu", s->now, (unsigned long)s->calls);
        period(s, 0, now == ZIPCCL_NO_CLASS ? ZIPCCL_NUM_CLASSES : ZIPCCL_CLASS_SETTLED);
    }
    cr_assert_eq(s->calls, calls);
}

Test(classes, starts_wide_and_narrows_to_what_all_fitted)
{
    for (int fit = ZIPCCL_NO_CLASS; fit <= ZIPCCL_CLASS_SETTLED; fit++) {
        struct zipccl_class_state s;

        zipccl_class_init(&s, ZIPCCL_CLASS_SETTLED);
        cr_assert_eq(s.now, ZIPCCL_CLASS_WIDE);
        cr_assert_not(zipccl_class_due(&s));
        cr_assert_eq(zipccl_class_ceiling(&s), ZIPCCL_CLASS_SETTLED);
        period(&s, 0, fit);
        cr_assert_eq(s.now, fit < 0 ? 0 : fit);
        cr_assert_eq(s.reason, fit > 0 ? ZIPCCL_CLASS_NARROWED : ZIPCCL_CLASS_STARTED);
        cr_assert_eq(s.class_calls[0], PERIOD);
    }
}

Test(classes, first_calls_narrow_to_classes_wider_than_they_fitted)
{
    for (int fit = ZIPCCL_NO_CLASS; fit <= ZIPCCL_NUM_CLASSES; fit++) {
        bool narrows = fit > ZIPCCL_CLASS_STRIDE && fit < ZIPCCL_NUM_CLASSES;
        struct zipccl_class_state s;

        zipccl_class_init(&s, ZIPCCL_NUM_CLASSES - 1);
        zipccl_class_note(&s, fit, false, true);
        zipccl_class_open(&s, s.seen);
        cr_assert_eq(s.now, narrows ? fit - ZIPCCL_CLASS_STRIDE : ZIPCCL_CLASS_WIDE);
        zipccl_class_init(&s, ZIPCCL_NUM_CLASSES - 1);
        zipccl_class_note(&s, fit, true, true);
        zipccl_class_open(&s, s.seen);
        cr_assert_eq(s.now, ZIPCCL_CLASS_WIDE, "one overflowed");
    }
}

Test(classes, one_call_of_a_period_is_enough_to_stay)
{
    struct zipccl_class_state s;

    zipccl_class_init(&s, ZIPCCL_CLASS_SETTLED);
    for (unsigned i = 0; i < PERIOD; i++)
        zipccl_class_note(&s, i == 17 ? 2 : ZIPCCL_CLASS_SETTLED, false, true);
    zipccl_class_decide(&s, s.seen);
    cr_assert_eq(s.now, 2);
}

Test(classes, never_gets_narrower_than_is_of_use)
{
    struct zipccl_class_state s;

    zipccl_class_init(&s, 1);
    period(&s, 0, ZIPCCL_CLASS_SETTLED);
    cr_assert_eq(s.now, 1);
    cr_assert_eq(zipccl_class_ceiling(&s), 1);
}

Test(classes, one_overflow_widens_and_bars_ever_longer)
{
    struct zipccl_class_state s;
    uint64_t bar = ZIPCCL_CLASS_BAR, until;

    zipccl_class_init(&s, ZIPCCL_CLASS_SETTLED);
    period(&s, 0, ZIPCCL_CLASS_SETTLED);
    for (unsigned i = 0; i < 10; i++) {
        cr_assert_eq(s.now, ZIPCCL_CLASS_SETTLED);
        period(&s, 1, ZIPCCL_CLASS_SETTLED);
        cr_assert_eq(s.now, ZIPCCL_CLASS_SETTLED - 1);
        cr_assert_eq(s.reason, ZIPCCL_CLASS_OVERFLOWED);
        cr_assert_eq(zipccl_class_ceiling(&s), ZIPCCL_CLASS_SETTLED - 1);
        until = s.calls + bar;
        quiet_until(&s, until, ZIPCCL_CLASS_SETTLED - 1);
        if (bar < ZIPCCL_CLASS_BAR_LIMIT)
            bar *= 2;
    }
    cr_assert_eq(bar, ZIPCCL_CLASS_BAR_LIMIT);
    cr_assert_eq(s.overflow_calls, 10);
}

/* Neighbours of short messages may have the same room: none of them is tried after one has overflowed. */
Test(classes, one_overflow_passes_over_classes_without_more_room)
{
    struct zipccl_class_state s;
    uint64_t until;

    zipccl_class_init(&s, ZIPCCL_NUM_CLASSES - 1);
    period(&s, 0, 20);
    cr_assert_eq(s.now, 20);
    zipccl_class_note(&s, 17, true, true);
    for (unsigned i = 1; i < PERIOD; i++)
        zipccl_class_note(&s, 20, false, true);
    zipccl_class_decide(&s, s.seen);
    cr_assert_eq(s.now, 17);
    until = s.calls + ZIPCCL_CLASS_BAR;
    while (s.calls < until) {
        period(&s, 0, 20);
        cr_assert(s.now == (s.calls < until ? 17 : 20), "%d at %lu", s.now, (unsigned long)s.calls);
    }
    /* No farther than a stride, whatever else was seen. */
    zipccl_class_note(&s, ZIPCCL_NO_CLASS, true, true);
    for (unsigned i = 1; i < PERIOD; i++)
        zipccl_class_note(&s, 20, false, true);
    zipccl_class_decide(&s, s.seen);
    cr_assert_eq(s.now, 20 - ZIPCCL_CLASS_STRIDE);
}

/* Data that have changed: many calls overflow, and single steps would take too long. */
Test(classes, many_overflows_widen_by_a_stride)
{
    static const int from[] = {ZIPCCL_NUM_CLASSES - 1, ZIPCCL_CLASS_SETTLED + 1,
                               ZIPCCL_CLASS_SETTLED, ZIPCCL_CLASS_STRIDE, 1};
    static const int to[] = {ZIPCCL_CLASS_SETTLED, ZIPCCL_CLASS_SETTLED + 1 - ZIPCCL_CLASS_STRIDE,
                             ZIPCCL_CLASS_SETTLED - ZIPCCL_CLASS_STRIDE, ZIPCCL_CLASS_WIDE,
                             ZIPCCL_CLASS_WIDE};

    for (unsigned i = 0; i < sizeof from / sizeof *from; i++) {
        struct zipccl_class_state s;

        zipccl_class_init(&s, ZIPCCL_NUM_CLASSES - 1);
        period(&s, 0, from[i]);
        cr_assert_eq(s.now, from[i]);
        period(&s, ZIPCCL_CLASS_TROUBLES, from[i]);
        cr_assert_eq(s.now, to[i], "%d to %d", from[i], s.now);
        period(&s, 0, from[i]);
        cr_assert_eq(s.now, from[i] - 1);
    }
}

/* What is short is found out; what is hoped for is settled. */
Test(classes, narrower_than_settled_is_never_priced_before_it_is_reached)
{
    struct zipccl_class_state s;

    zipccl_class_init(&s, ZIPCCL_NUM_CLASSES - 1);
    cr_assert_eq(zipccl_class_ceiling(&s), ZIPCCL_CLASS_SETTLED);
    period(&s, 0, ZIPCCL_CLASS_SETTLED + 3);
    cr_assert_eq(s.now, ZIPCCL_CLASS_SETTLED + 3);
    cr_assert_eq(zipccl_class_ceiling(&s), ZIPCCL_CLASS_SETTLED + 3);
    period(&s, 1, ZIPCCL_CLASS_SETTLED + 3);
    cr_assert_eq(zipccl_class_ceiling(&s), ZIPCCL_CLASS_SETTLED + 2);
}

Test(classes, a_barred_class_bars_the_narrower_ones)
{
    struct zipccl_class_state s;

    zipccl_class_init(&s, ZIPCCL_CLASS_SETTLED);
    period(&s, 0, 2);
    period(&s, 5, 2);
    cr_assert_eq(s.now, 1);
    quiet_until(&s, 2 * PERIOD + ZIPCCL_CLASS_BAR, 1);
    cr_assert_eq(s.now, ZIPCCL_CLASS_SETTLED); /* all of the last period fitted it */
}

Test(classes, the_widest_gives_up_after_a_quarter_of_a_period_and_is_tried_again)
{
    struct zipccl_class_state s;

    zipccl_class_init(&s, ZIPCCL_CLASS_SETTLED);
    period(&s, ZIPCCL_CLASS_TROUBLES - 1, ZIPCCL_CLASS_SETTLED);
    cr_assert_eq(s.now, ZIPCCL_CLASS_WIDE);
    period(&s, ZIPCCL_CLASS_TROUBLES, ZIPCCL_CLASS_SETTLED);
    cr_assert_eq(s.now, ZIPCCL_NO_CLASS);
    cr_assert_eq(s.reason, ZIPCCL_CLASS_OVERFLOWED);
    cr_assert_eq(zipccl_class_ceiling(&s), ZIPCCL_NO_CLASS);
    quiet_until(&s, 2 * PERIOD + ZIPCCL_CLASS_RETRY, ZIPCCL_NO_CLASS);
    cr_assert_eq(s.now, ZIPCCL_CLASS_WIDE);
    cr_assert_eq(s.reason, ZIPCCL_CLASS_RETRIED);
    cr_assert_eq(s.uncompressed_calls, ZIPCCL_CLASS_RETRY);
    period(&s, PERIOD, 0);
    cr_assert_eq(s.now, ZIPCCL_NO_CLASS);
    quiet_until(&s, s.calls + 2 * ZIPCCL_CLASS_RETRY, ZIPCCL_NO_CLASS);
    cr_assert_eq(s.now, ZIPCCL_CLASS_WIDE);
    period(&s, 0, ZIPCCL_CLASS_SETTLED);
    cr_assert_eq(s.now, ZIPCCL_CLASS_SETTLED);
}

Test(classes, nothing_seen_changes_nothing)
{
    struct zipccl_class_state s;

    zipccl_class_init(&s, ZIPCCL_CLASS_SETTLED);
    for (unsigned i = 0; i < 5; i++)
        period(&s, 0, ZIPCCL_NUM_CLASSES);
    cr_assert_eq(s.now, ZIPCCL_CLASS_WIDE);
    cr_assert_eq(s.reason, ZIPCCL_CLASS_STARTED);
}

Test(classes, calls_that_overflow_on_several_ranks_count_once)
{
    struct zipccl_class_seen a = {0x0f, 3}, b = {0x1e, ZIPCCL_NUM_CLASSES};
    struct zipccl_class_seen c = zipccl_class_merge(a, b), d = zipccl_class_merge(b, a);

    cr_assert_eq(c.troubled, 0x1f);
    cr_assert_eq(c.fit, 3);
    cr_assert(d.troubled == c.troubled && d.fit == c.fit);
}

Test(classes, the_digest_tells_states_apart)
{
    struct zipccl_class_state a, b;

    zipccl_class_init(&a, ZIPCCL_CLASS_SETTLED);
    b = a;
    cr_assert_eq(zipccl_class_digest(&a), zipccl_class_digest(&b));
    zipccl_class_note(&b, 0, false, true);
    cr_assert_neq(zipccl_class_digest(&a), zipccl_class_digest(&b));
    /* What one rank saw is no part of it. */
    zipccl_class_note(&a, 3, true, true);
    cr_assert_eq(zipccl_class_digest(&a), zipccl_class_digest(&b));
    b.now = 1;
    cr_assert_neq(zipccl_class_digest(&a), zipccl_class_digest(&b));
    b = a;
    b.bar[3]++;
    cr_assert_neq(zipccl_class_digest(&a), zipccl_class_digest(&b));
}
