/*
 * search.c - finds roots of "how much too good is this NIC rate" in log steps
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/search.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct searching {
    const struct zipccl_search *search;
    enum zipccl_fidelity fidelity;
    double target_s; /* RAW_MATCH: adaptive step to reach */
    uint32_t nevals;
    struct zipccl_error *error;
};

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* Raw and adaptive step at the NIC rate times 'factor'. */
static zipccl_status steps_at(const struct searching *s, double factor, double *raw_s,
                              double *adaptive_s)
{
    bool raw_only = s->search->kind == ZIPCCL_SEARCH_RAW_MATCH;
    double step_s[ZIPCCL_NUM_STEPS] = {0, 0, 0};
    struct zipccl_scenario scenario;
    struct zipccl_run runs[2];
    zipccl_status status;

    zipccl_scenario_init(&scenario);
    scenario.nic_factor = factor;
    scenario.raw_only = raw_only;
    if (s->fidelity == ZIPCCL_FIDELITY_T0) {
        status = zipccl_run_t0(s->search->base, &scenario, step_s, s->error);
        *raw_s = step_s[ZIPCCL_STEP_RAW];
        *adaptive_s =
            smaller(step_s[ZIPCCL_STEP_COMPRESSED], smaller(step_s[ZIPCCL_STEP_ADAPTIVE], *raw_s));
        return status;
    }
    if (zipccl_run_init(&runs[0], s->search->base, ZIPCCL_STEP_RAW) != ZIPCCL_OK)
        return zipccl_fail(s->error, ZIPCCL_ERR_NOMEM, "out of memory");
    if (zipccl_run_init(&runs[1], s->search->base, ZIPCCL_STEP_ADAPTIVE) != ZIPCCL_OK) {
        zipccl_run_release(&runs[0]);
        return zipccl_fail(s->error, ZIPCCL_ERR_NOMEM, "out of memory");
    }
    runs[0].scenario = runs[1].scenario = scenario;
    status = zipccl_run_execute(runs, raw_only ? 1 : 2, 1, s->error);
    *raw_s = runs[0].step->step_s;
    *adaptive_s = smaller(runs[1].step->step_s, *raw_s);
    zipccl_run_release(&runs[0]);
    zipccl_run_release(&runs[1]);
    return status;
}

/* Positive where the rate is too low: falls as it grows. */
static zipccl_status excess(struct searching *s, double factor, double *out)
{
    double raw_s = 0, adaptive_s = 0;

    s->nevals++;
    ZIPCCL_TRY(steps_at(s, factor, &raw_s, &adaptive_s));
    if (s->search->kind == ZIPCCL_SEARCH_RAW_MATCH)
        *out = raw_s / s->target_s - 1;
    else
        *out = raw_s / adaptive_s - 1 - ZIPCCL_BREAK_EVEN_GAIN;
    return ZIPCCL_OK;
}

/*
 * Root of excess() around 'start': walk by 'stride' until the sign changes, then halve the log
 * interval until it is within 'tolerance'.  '*found' is false if the range or the evaluations
 * end first.
 */
static zipccl_status solve(struct searching *s, double start, double stride, double tolerance,
                           uint32_t most, double *factor, bool *found)
{
    double low = start, high = start, x;

    *found = false;
    *factor = start;
    ZIPCCL_TRY(excess(s, start, &x));
    if (x >= 0)
        while (x >= 0) {
            low = high;
            high = high * stride;
            if (high > ZIPCCL_SEARCH_RANGE * stride || s->nevals >= most)
                return ZIPCCL_OK;
            ZIPCCL_TRY(excess(s, high, &x));
        }
    else
        while (x < 0) {
            high = low;
            low = low / stride;
            if (low < 1 / (ZIPCCL_SEARCH_RANGE * stride) || s->nevals >= most)
                return ZIPCCL_OK;
            ZIPCCL_TRY(excess(s, low, &x));
        }
    while (high / low > 1 + tolerance && s->nevals < most) {
        double middle = sqrt(low * high);

        ZIPCCL_TRY(excess(s, middle, &x));
        if (x >= 0)
            low = middle;
        else
            high = middle;
    }
    *factor = sqrt(low * high);
    *found = true;
    return ZIPCCL_OK;
}

static void note_none(const struct zipccl_search *search, struct zipccl_search_result *result)
{
    double gain = search->raw_s / search->adaptive_s - 1;
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
    struct searching s = {search, ZIPCCL_FIDELITY_T1, search->adaptive_s, 0, error};
    double nic = search->base->cluster->nic_Bps, x, factor;
    bool found;

    ZIPCCL_TRY(excess(&s, t0_factor, &x));
    if (fabs(x) <= 0.002) {
        snprintf(result->note, sizeof(result->note), "searched at T0, confirmed at T1");
        result->nic_Bps = t0_factor * nic;
        return ZIPCCL_OK;
    }
    ZIPCCL_TRY(solve(&s, t0_factor, 1.2, 0.03, 10, &factor, &found));
    snprintf(result->note, sizeof(result->note),
             found ? "at T1; the search at T0 gave %.3g GB/s"
                   : "T0 gave %.3g GB/s, which T1 does not confirm: taken as it is",
             t0_factor * nic / 1e9);
    result->nic_Bps = (found ? factor : t0_factor) * nic;
    return ZIPCCL_OK;
}

static zipccl_status search_work(void *context, void *out, struct zipccl_error *error)
{
    const struct zipccl_search *search = context;
    struct zipccl_search_result *result = out;
    struct searching s = {search, ZIPCCL_FIDELITY_T0, 0, 0, error};
    double step_s[ZIPCCL_NUM_STEPS], factor;
    struct zipccl_scenario scenario;
    bool found;

    if (search->kind == ZIPCCL_SEARCH_RAW_MATCH &&
        search->raw_s <= search->adaptive_s * (1 + 1e-6)) {
        result->nic_Bps = search->base->cluster->nic_Bps;
        snprintf(result->note, sizeof(result->note), "raw is as fast already");
        return ZIPCCL_OK;
    }
    zipccl_scenario_init(&scenario);
    ZIPCCL_TRY(zipccl_run_t0(search->base, &scenario, step_s, error));
    s.target_s = smaller(step_s[ZIPCCL_STEP_COMPRESSED],
                         smaller(step_s[ZIPCCL_STEP_ADAPTIVE], step_s[ZIPCCL_STEP_RAW]));
    ZIPCCL_TRY(solve(&s, 1, 2, 0.01, 40, &factor, &found));
    if (!found) {
        note_none(search, result);
        return ZIPCCL_OK;
    }
    if (search->base->fidelity == ZIPCCL_FIDELITY_T1)
        return confirm(search, factor, result, error);
    result->nic_Bps = factor * search->base->cluster->nic_Bps;
    snprintf(result->note, sizeof(result->note), "searched at T0");
    return ZIPCCL_OK;
}

struct zipccl_child_task zipccl_search_task(struct zipccl_search *search)
{
    return (struct zipccl_child_task){search_work, search, &search->result, sizeof(search->result)};
}
