/*
 * test_replay.c - the bundled traces on the bundled clusters: what must hold of every replay
 *
 * usage: test_replay TRACE   A plain program; it prints the steps it compares.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/replay.h"
#include "sim/replay_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const clusters[] = {"a100-8x8-200g", "h100-8x8-400g"};
static const char *const nic_rates[] = {"nic.rate=24GBps", "nic.rate=50GBps", "nic.rate=100GBps",
                                        "nic.rate=400GBps"};

static int failures;

static void fail(const char *what)
{
    printf("FAILED: %s\n", what);
    failures++;
}

static struct zipccl_cluster_file *open_cluster(const char *name, const char *set)
{
    struct zipccl_cluster_file *file = NULL;
    struct zipccl_error error = {""};

    if (zipccl_cluster_open(name, "models/clusters", &file, &error) != ZIPCCL_OK ||
        (set != NULL && zipccl_cluster_set(file, set, &error) != ZIPCCL_OK)) {
        printf("%s\n", error.text);
        fail(name);
        exit(1);
    }
    return file;
}

static struct zipccl_replay_result *replay(const struct zipccl_trace *trace,
                                           const struct zipccl_cluster_file *file,
                                           enum zipccl_fidelity fidelity, bool sensitivities)
{
    struct zipccl_replay_result *result = NULL;
    struct zipccl_replay_options options;
    struct zipccl_error error = {""};

    zipccl_replay_options_init(&options);
    options.sensitivities = sensitivities;
    options.fidelity = fidelity;
    if (zipccl_replay(trace, file, &options, &result, &error) != ZIPCCL_OK) {
        printf("%s\n", error.text);
        fail("replay");
        exit(1);
    }
    return result;
}

static void check_parts(const struct zipccl_replay_result *r)
{
    for (int mode = 0; mode < ZIPCCL_NUM_STEPS; mode++) {
        const struct zipccl_result_step *s = &r->steps[mode];
        double sum = s->compute_s + s->codec_slow_s + s->exposed_s + s->wait_s, rows = 0;

        for (size_t i = 0; i < r->nrows; i++)
            rows += mode == ZIPCCL_STEP_RAW          ? r->rows[i].exposed_raw_s
                    : mode == ZIPCCL_STEP_COMPRESSED ? r->rows[i].exposed_compressed_s
                                                     : r->rows[i].exposed_adaptive_s;
        if (!(fabs(sum - s->step_s) <= 1e-9 * s->step_s))
            fail("the parts of a step add up to it");
        if (!(fabs(rows - s->exposed_s) <= 1e-9 * s->step_s))
            fail("the exposed time of the rows adds up to the step's");
    }
}

/* Overlaps included, adaptive is no slower than the better of raw and compressed. */
static void check_step(const struct zipccl_trace *trace, const char *cluster, const char *set)
{
    struct zipccl_cluster_file *file = open_cluster(cluster, set);
    struct zipccl_replay_result *r = replay(trace, file, ZIPCCL_FIDELITY_T1, false);
    double raw = r->steps[ZIPCCL_STEP_RAW].step_s;
    double compressed = r->steps[ZIPCCL_STEP_COMPRESSED].step_s;
    double adaptive = r->steps[ZIPCCL_STEP_ADAPTIVE].step_s;

    printf("%-14s %-16s raw %9.3f compressed %9.3f adaptive %9.3f ms  %s\n", cluster,
           set != NULL ? set : "", 1e3 * raw, 1e3 * compressed, 1e3 * adaptive, r->adaptive_note);
    if (!(adaptive <= fmin(raw, compressed)))
        fail("adaptive is no slower than raw and compressed");
    check_parts(r);
    zipccl_replay_result_destroy(r);
    zipccl_cluster_close(file);
}

static double alone(const struct zipccl_price *price, const uint32_t *gpus,
                    const struct zipccl_cluster *cluster)
{
    struct zipccl_error error = {""};
    double s = 0;

    if (price->flow != NULL &&
        zipccl_flow_price(price->flow, gpus, cluster, &s, &error) != ZIPCCL_OK)
        fail(error.text);
    return s;
}

/* The chooser sees T0, the price is T1: they agree, so adaptive is the better of both. */
static void check_calls(const struct zipccl_program *program, const struct zipccl_pricing *pricing)
{
    double worst = 0, worst_t0 = 0;

    for (size_t i = 0; i < program->nevents; i++) {
        const struct zipccl_program_event *e = &program->events[i];
        double s[ZIPCCL_NUM_STEPS], best;
        size_t before = 0;

        while (before < i &&
               (program->events[before].group == NULL || program->events[before].class != e->class))
            before++;
        if (e->group == NULL || before < i)
            continue;
        for (int mode = 0; mode < ZIPCCL_NUM_STEPS; mode++) {
            const struct zipccl_price *p = zipccl_pricing_get(pricing, e, 0, mode);

            s[mode] = alone(p, zipccl_program_members(e, 0), &pricing->cluster);
            if (p->total_s > 0)
                worst_t0 = fmax(worst_t0, fabs(s[mode] / p->total_s - 1));
        }
        best = fmin(s[ZIPCCL_STEP_RAW], s[ZIPCCL_STEP_COMPRESSED]);
        if (best > 0)
            worst = fmax(worst, s[ZIPCCL_STEP_ADAPTIVE] / best - 1);
    }
    printf(
        "  each call alone: adaptive at most %.4f %% over the better, T1 at most %.5f %% off T0\n",
        100 * worst, 100 * worst_t0);
    if (!(worst <= 0.02) || !(worst_t0 <= 1e-3))
        fail("each row priced alone");
}

static void check_alone(const struct zipccl_trace *trace, const char *name, const char *set)
{
    struct zipccl_cluster_file *file = open_cluster(name, set);
    struct zipccl_samples *samples = NULL;
    struct zipccl_program *program = NULL;
    struct zipccl_pricing *pricing = NULL;
    struct zipccl_scenario scenario;
    struct zipccl_cluster cluster;
    struct zipccl_error error = {""};

    zipccl_scenario_init(&scenario);
    if (zipccl_cluster_get(file, &cluster, &error) != ZIPCCL_OK ||
        zipccl_samples_open(trace->samples_path, 0, &samples, &error) != ZIPCCL_OK ||
        zipccl_program_create(trace, &cluster, samples, &program, &error) != ZIPCCL_OK ||
        zipccl_pricing_create(program, &cluster, &scenario, samples, &pricing, &error) !=
            ZIPCCL_OK) {
        printf("%s\n", error.text);
        fail("pricing");
    } else {
        check_calls(program, pricing);
    }
    zipccl_pricing_destroy(pricing);
    zipccl_program_destroy(program);
    zipccl_samples_close(samples);
    zipccl_cluster_close(file);
}

static void check_equal(const struct zipccl_replay_result *a, const struct zipccl_replay_result *b)
{
    if (a->nrows != b->nrows || memcmp(a->steps, b->steps, sizeof(a->steps)) != 0 ||
        a->break_even_nic_Bps != b->break_even_nic_Bps ||
        a->raw_match_nic_Bps != b->raw_match_nic_Bps ||
        memcmp(a->sensitivities, b->sensitivities, a->nsensitivities * sizeof(*a->sensitivities)) !=
            0)
        fail("two replays give the same");
    for (size_t i = 0; i < a->nrows; i++)
        if (memcmp(&a->rows[i], &b->rows[i], sizeof(a->rows[i])) != 0)
            fail("two replays give the same rows");
}

/* At the rate found, a replay gives the gain that was searched for; raw alone the adaptive step. */
static void check_found(const struct zipccl_trace *trace, const char *cluster,
                        const struct zipccl_replay_result *r, enum zipccl_fidelity fidelity)
{
    const double rates[2] = {r->break_even_nic_Bps, r->raw_match_nic_Bps};

    for (int i = 0; i < 2; i++) {
        struct zipccl_cluster_file *file;
        struct zipccl_replay_result *at;
        double x;
        char set[64];

        if (rates[i] <= 0 || (i == 1 && strstr(r->raw_match_note, "already") != NULL))
            continue;
        snprintf(set, sizeof(set), "nic.rate=%.9fGBps", rates[i] / 1e9);
        file = open_cluster(cluster, set);
        at = replay(trace, file, fidelity, false);
        x = i == 0 ? at->end_to_end_speedup - 1
                   : at->steps[ZIPCCL_STEP_RAW].step_s / r->steps[ZIPCCL_STEP_ADAPTIVE].step_s - 1;
        printf("  %s, %s, %s: %+.3f %%\n", r->fidelity, set,
               i == 0 ? "gain" : "raw over adaptive before", 100 * x);
        if (!(fabs(x - (i == 0 ? 0.02 : 0)) <= 0.003))
            fail("a replay at the rate found gives what was searched for");
        zipccl_replay_result_destroy(at);
        zipccl_cluster_close(file);
    }
}

/* A whole replay, twice; then at T0, which knows no contention. */
static void check_whole(const struct zipccl_trace *trace, const char *cluster)
{
    struct zipccl_cluster_file *file = open_cluster(cluster, NULL);
    struct zipccl_replay_result *a = replay(trace, file, ZIPCCL_FIDELITY_T1, true);
    struct zipccl_replay_result *b = replay(trace, file, ZIPCCL_FIDELITY_T1, true);
    struct zipccl_replay_result *t0 = replay(trace, file, ZIPCCL_FIDELITY_T0, true);

    check_equal(a, b);
    check_found(trace, cluster, a, ZIPCCL_FIDELITY_T1);
    check_found(trace, cluster, t0, ZIPCCL_FIDELITY_T0);
    check_parts(t0);
    printf("  %s: end to end %.4f, communication %.4f, break-even %.4g GB/s, raw match %.4g GB/s; "
           "T0 step raw %+.2f %%, adaptive %+.2f %%\n",
           cluster, a->end_to_end_speedup, a->comm_speedup, a->break_even_nic_Bps / 1e9,
           a->raw_match_nic_Bps / 1e9, 100 * (t0->steps[0].step_s / a->steps[0].step_s - 1),
           100 * (t0->steps[2].step_s / a->steps[2].step_s - 1));
    /* More bandwidth helps raw and lessens the gain; a slower NIC does the opposite. */
    if (!(a->sensitivities[0].step_raw_s >= a->steps[0].step_s &&
          a->sensitivities[1].step_raw_s <= a->steps[0].step_s))
        fail("a faster NIC makes the raw step shorter");
    for (int mode = 0; mode < ZIPCCL_NUM_STEPS; mode++)
        if (!(fabs(t0->steps[mode].step_s / a->steps[mode].step_s - 1) < 0.10))
            fail("T0 and T1 steps agree to 10 %");
    if (a->nassumptions < 20 || a->nsettings < 8)
        fail("settings and assumptions are listed");
    zipccl_replay_result_destroy(a);
    zipccl_replay_result_destroy(b);
    zipccl_replay_result_destroy(t0);
    zipccl_cluster_close(file);
}

int main(int argc, char **argv)
{
    struct zipccl_trace *trace = NULL;
    struct zipccl_error error = {""};

    if (argc != 2 || zipccl_trace_load(argv[1], &trace, &error) != ZIPCCL_OK) {
        printf("usage: test_replay TRACE  %s\n", error.text);
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        check_step(trace, clusters[i], NULL);
        check_alone(trace, clusters[i], NULL);
        for (int k = 0; k < 4; k++) {
            check_step(trace, clusters[i], nic_rates[k]);
            check_alone(trace, clusters[i], nic_rates[k]);
        }
        check_whole(trace, clusters[i]);
    }
    zipccl_trace_destroy(trace);
    printf("%s\n", failures == 0 ? "ok" : "FAILED");
    return failures != 0;
}
