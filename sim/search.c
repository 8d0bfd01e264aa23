/*
 * search.c - finds roots of "how much too good is this NIC rate" over a range of rates
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/search.h"

#include "sim/adapt.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Roots are good enough where the excess is this small: a tenth of a percent of the step. */
#define EXCESS_TOLERANCE 0.001

/* Where plans change the excess jumps; the rate is then known this well. */
#define RATE_TOLERANCE 0.001

struct searching {
    struct zipccl_run_base base; /* as the search's, at this fidelity */
    const struct zipccl_search *search;
    double target_s; /* RAW_MATCH: adaptive step to reach */
    uint32_t nevals, most;
    struct zipccl_error *error;
};

/* A NIC rate, over the cluster's, and how much too good it is. */
struct point {
    double factor, excess;
};

static void start_search(struct searching *s, const struct zipccl_search *search,
                         enum zipccl_fidelity fidelity, uint32_t most, struct zipccl_error *error)
{
    *s = (struct searching){.base = *search->base, .search = search, .most = most, .error = error};
    s->base.fidelity = fidelity;
    s->base.nkept = 0;
}

/* Positive where the rate is too low: falls as it grows. */
static zipccl_status evaluate(struct searching *s, double factor, struct point *out)
{
    bool raw_only = s->search->kind == ZIPCCL_SEARCH_RAW_MATCH;
    struct zipccl_adapted_step step;
    struct zipccl_scenario scenario;

    zipccl_scenario_init(&scenario);
    scenario.nic_factor = factor;
    scenario.raw_only = raw_only;
    s->nevals++;
    ZIPCCL_TRY(zipccl_adapt_step(&s->base, &scenario, NULL, &step, s->error));
    out->factor = factor;
    if (raw_only)
        out->excess = s->target_s > 0 ? step.raw_s / s->target_s - 1 : 0;
    else
        out->excess = step.adaptive_s > 0
                          ? step.raw_s / step.adaptive_s - 1 - ZIPCCL_BREAK_EVEN_GAIN
                          : -ZIPCCL_BREAK_EVEN_GAIN;
    return ZIPCCL_OK;
}

/* Between 'low', too low, and 'high': false position in the log, halving where that is slow. */
static zipccl_status narrow(struct searching *s, struct point low, struct point high,
                            struct point *root)
{
    bool halve = false;

    for (;;) {
        double share = low.excess / (low.excess - high.excess), width;
        struct point middle;

        if (low.excess <= EXCESS_TOLERANCE || high.excess >= -EXCESS_TOLERANCE ||
            high.factor / low.factor < 1 + RATE_TOLERANCE || s->nevals >= s->most)
            break;
        if (halve || !(share > 0.01 && share < 0.99))
            share = 0.5;
        width = high.factor / low.factor;
        ZIPCCL_TRY(evaluate(s, low.factor * pow(width, share), &middle));
        if (middle.excess >= 0)
            low = middle;
        else
            high = middle;
        halve = high.factor / low.factor > sqrt(width);
    }
    *root = low.excess < -high.excess ? low : high;
    return ZIPCCL_OK;
}

/*
 * Root of the excess around 'start': walk by 'stride', longer each time, until the sign changes,
 * then narrow.  '*found' is false if the range or the evaluations end first.
 */
static zipccl_status solve(struct searching *s, struct point start, double stride,
                           struct point *root, bool *found)
{
    struct point last = start, next = start;
    bool up = start.excess >= 0;

    *found = fabs(start.excess) <= EXCESS_TOLERANCE;
    *root = start;
    if (*found)
        return ZIPCCL_OK;
    while ((next.excess >= 0) == up) {
        double factor = up ? next.factor * stride : next.factor / stride;

        if (factor > ZIPCCL_SEARCH_RANGE * stride || factor < 1 / (ZIPCCL_SEARCH_RANGE * stride) ||
            s->nevals >= s->most)
            return ZIPCCL_OK;
        last = next;
        ZIPCCL_TRY(evaluate(s, factor, &next));
        stride = stride * stride < 2 ? stride * stride : 2;
    }
    *found = true;
    return up ? narrow(s, last, next, root) : narrow(s, next, last, root);
}

static void note_none(const struct zipccl_search *search, struct zipccl_search_result *result)
{
    double gain = search->adaptive_s > 0 ? search->raw_s / search->adaptive_s - 1 : 0;
    double nic = search->base->cluster->nic_Bps;

    if (search->kind == ZIPCCL_SEARCH_RAW_MATCH)
        snprintf(result->note, sizeof(result->note),
                 "raw does not get there with any NIC up to %.5g Gb/s",
                 8 * nic * ZIPCCL_SEARCH_RANGE / 1e9);
    else if (gain >= ZIPCCL_BREAK_EVEN_GAIN)
        snprintf(result->note, sizeof(result->note),
                 "the gain stays above %.0f %% with any NIC up to %.5g Gb/s",
                 100 * ZIPCCL_BREAK_EVEN_GAIN, 8 * nic * ZIPCCL_SEARCH_RANGE / 1e9);
    else
        snprintf(result->note, sizeof(result->note),
                 "the gain stays under %.0f %% with any NIC from %.5g Gb/s up",
                 100 * ZIPCCL_BREAK_EVEN_GAIN, 8 * nic / ZIPCCL_SEARCH_RANGE / 1e9);
}

/* At T1 from the T0 root on: confirmed if the T1 excess there is small, else a few steps more. */
static zipccl_status confirm(const struct zipccl_search *search, double t0_factor,
                             struct zipccl_search_result *result, struct zipccl_error *error)
{
    double nic = search->base->cluster->nic_Bps;
    struct point start, root;
    struct searching s;
    bool found;

    start_search(&s, search, ZIPCCL_FIDELITY_T1, 16, error);
    s.target_s = search->adaptive_s;
    ZIPCCL_TRY(evaluate(&s, t0_factor, &start));
    ZIPCCL_TRY(solve(&s, start, 1.02, &root, &found));
    result->nic_Bps = root.factor * nic;
    if (found && s.nevals == 1)
        snprintf(result->note, sizeof(result->note), "searched at T0, confirmed at T1");
    else
        snprintf(result->note, sizeof(result->note),
                 found ? "at T1; the search at T0 gave %.3g GB/s"
                       : "T0 gave %.3g GB/s, which T1 does not confirm: taken as it is",
                 t0_factor * nic / 1e9);
    return ZIPCCL_OK;
}

static zipccl_status search_work(void *context, void *out, struct zipccl_error *error)
{
    const struct zipccl_search *search = context;
    struct zipccl_search_result *result = out;
    struct zipccl_adapted_step step;
    struct zipccl_scenario scenario;
    struct point start, root;
    struct searching s;
    bool found;

    if (search->kind == ZIPCCL_SEARCH_RAW_MATCH &&
        search->raw_s <= search->adaptive_s * (1 + 1e-6)) {
        result->nic_Bps = search->base->cluster->nic_Bps;
        snprintf(result->note, sizeof(result->note), "raw is as fast already");
        return ZIPCCL_OK;
    }
    start_search(&s, search, ZIPCCL_FIDELITY_T0, 60, error);
    zipccl_scenario_init(&scenario);
    ZIPCCL_TRY(zipccl_adapt_step(&s.base, &scenario, NULL, &step, error));
    s.target_s = step.adaptive_s;
    ZIPCCL_TRY(evaluate(&s, 1, &start));
    ZIPCCL_TRY(solve(&s, start, 2, &root, &found));
    if (!found) {
        note_none(search, result);
        return ZIPCCL_OK;
    }
    if (search->base->fidelity == ZIPCCL_FIDELITY_T1)
        return confirm(search, root.factor, result, error);
    result->nic_Bps = root.factor * search->base->cluster->nic_Bps;
    snprintf(result->note, sizeof(result->note), "searched at T0");
    return ZIPCCL_OK;
}

struct zipccl_child_task zipccl_search_task(struct zipccl_search *search)
{
    return (struct zipccl_child_task){search_work, search, &search->result, sizeof(search->result)};
}
