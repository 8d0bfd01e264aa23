/*
 * test_result.c - what a replay says of small traces, against hand computation and other replays
 *
 * 16 ranks on two A100 nodes.  A plain program that prints what it compares.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/replay.h"
#include "sim/replay_parts.h"
#include "sim/tests/toy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define NRANKS 16

static int failures;

static void expect(const char *what, bool good)
{
    printf("  %s: %s\n", what, good ? "ok" : "FAILED");
    failures += !good;
}

static void near(const char *what, double got, double want, double tolerance)
{
    bool good = fabs(got - want) <= tolerance;

    printf("  %-44s want %.9g  got %.9g%s\n", what, want, got, good ? "" : "  FAILED");
    failures += !good;
}

/* Replay 't' on two nodes with up to two settings more; NULL and the reason if it is refused. */
static struct zipccl_replay_result *replay(const struct toy *t,
                                           const struct zipccl_replay_options *options,
                                           const char *set, const char *other,
                                           struct zipccl_error *error)
{
    struct zipccl_cluster_file *file = NULL;
    struct zipccl_replay_result *r = NULL;
    zipccl_status status = zipccl_cluster_open("a100-8x8-200g", "models/clusters", &file, error);

    if (status == ZIPCCL_OK)
        status = zipccl_cluster_set(file, "nodes=2", error);
    if (status == ZIPCCL_OK && set != NULL)
        status = zipccl_cluster_set(file, set, error);
    if (status == ZIPCCL_OK && other != NULL)
        status = zipccl_cluster_set(file, other, error);
    if (status == ZIPCCL_OK)
        zipccl_replay(&t->trace, file, options, &r, error);
    zipccl_cluster_close(file);
    return r;
}

static struct zipccl_replay_options plain(enum zipccl_fidelity fidelity, double ratio,
                                          bool sensitivities)
{
    struct zipccl_replay_options o;

    zipccl_replay_options_init(&o);
    o.fidelity = fidelity;
    o.ratio = ratio;
    o.sensitivities = sensitivities;
    return o;
}

/* The same, where a refusal is a defect. */
static struct zipccl_replay_result *must(const struct toy *t,
                                         const struct zipccl_replay_options *options,
                                         const char *set, const char *other)
{
    struct zipccl_error error = {""};
    struct zipccl_replay_result *r = replay(t, options, set, other, &error);

    if (r == NULL) {
        printf("  FAILED: %s\n", error.text);
        exit(1);
    }
    return r;
}

/* An exposed alltoall that compression shortens, and compute. */
static void init_exposed(struct toy *t)
{
    toy_init(t, NRANKS);
    toy_collective(t, ZIPCCL_ALLTOALL, ZIPCCL_BFLOAT16, 4000000, 1, 0);
    toy_compute(t, 0.010, 1);
}

static void refuse(const char *what, const struct toy *t, enum zipccl_fidelity fidelity)
{
    struct zipccl_replay_options o = plain(fidelity, 1.5, true);
    struct zipccl_error error = {""};
    struct zipccl_replay_result *r = replay(t, &o, NULL, NULL, &error);

    printf("  %s\n", error.text);
    expect(what, r == NULL && strstr(error.text, "nothing to replay: no collective of") != NULL);
    zipccl_replay_result_destroy(r);
}

static void test_nothing_moves(enum zipccl_fidelity fidelity)
{
    struct zipccl_trace_splits splits;
    uint64_t counts[NRANKS * NRANKS] = {0};
    char name[] = "own";
    struct toy t;

    printf("a trace whose collectives move nothing is refused\n");
    toy_init(&t, NRANKS);
    toy_compute(&t, 0.001, 0);
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_BFLOAT16, 0, 1, 0);
    refuse("a count of 0", &t, fidelity);
    toy_init(&t, NRANKS);
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_BFLOAT16, 1000, 1, 0);
    t.groups[0].nparts = NRANKS;
    t.groups[0].size = 1;
    refuse("groups of one rank", &t, fidelity);
    toy_init(&t, NRANKS);
    for (int i = 0; i < NRANKS; i++)
        counts[i * (NRANKS + 1)] = 1000;
    splits = (struct zipccl_trace_splits){name, NRANKS, counts};
    t.trace.header.nsplits = 1;
    t.trace.header.splits = &splits;
    toy_collective(&t, ZIPCCL_ALLTOALLV, ZIPCCL_BFLOAT16, 1000, 1, 0)->splits = 0;
    refuse("every rank keeps its own", &t, fidelity);
}

static bool finite_result(const struct zipccl_replay_result *r)
{
    for (size_t i = 0; i < r->nsensitivities; i++)
        if (!(isfinite(r->sensitivities[i].end_to_end_speedup) &&
              isfinite(r->sensitivities[i].comm_speedup)))
            return false;
    return isfinite(r->end_to_end_speedup) && isfinite(r->comm_speedup) &&
           isfinite(r->exposed_comm_share) && isfinite(r->break_even_nic_Bps) &&
           isfinite(r->raw_match_nic_Bps);
}

static void test_next_to_nothing(enum zipccl_fidelity fidelity)
{
    struct zipccl_replay_options o = plain(fidelity, 1.5, true);
    struct zipccl_replay_result *r;
    struct toy t;

    printf("one element gives numbers\n");
    toy_init(&t, NRANKS);
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_BFLOAT16, 0, 1, 0);
    toy_collective(&t, ZIPCCL_ALL_GATHER, ZIPCCL_BFLOAT16, 1, 1, 0);
    r = must(&t, &o, NULL, NULL);
    expect("finite", finite_result(r));
    zipccl_replay_result_destroy(r);
}

/* One event for both halves of the world, or one for each: the same rows, the same totals. */
static void test_two_forms(enum zipccl_fidelity fidelity)
{
    struct zipccl_replay_options o = plain(fidelity, 1.5, true);
    struct zipccl_replay_result *one, *two;
    struct toy t;

    printf("one event for all groups of a set, or one for each group\n");
    toy_init(&t, NRANKS);
    toy_collective(&t, ZIPCCL_ALL_GATHER, ZIPCCL_BFLOAT16, 10000000, 1, 0)->group = 1;
    toy_collective(&t, ZIPCCL_ALL_GATHER, ZIPCCL_FLOAT32, 1000, 1, 0)->group = 1;
    one = must(&t, &o, NULL, NULL);
    toy_init(&t, NRANKS);
    for (int i = 0; i < 4; i++) {
        struct zipccl_event *e =
            toy_collective(&t, ZIPCCL_ALL_GATHER, i < 2 ? ZIPCCL_BFLOAT16 : ZIPCCL_FLOAT32,
                           i < 2 ? 10000000 : 1000, 1, 0);

        e->group = 1;
        e->ranks = t.ranks + i % 2 * (NRANKS / 2);
        e->nranks = NRANKS / 2;
    }
    two = must(&t, &o, NULL, NULL);
    near("calls", (double)one->rows[0].calls, 1, 0);
    near("bytes a rank sends: 7 x 20e6", one->rows[0].raw_bytes, 140e6, 0);
    expect("equal rows", one->nrows == two->nrows &&
                             memcmp(one->rows, two->rows, one->nrows * sizeof(*one->rows)) == 0);
    expect("equal steps", memcmp(one->steps, two->steps, sizeof(one->steps)) == 0);
    expect("equal totals",
           one->raw_dtype_bytes == two->raw_dtype_bytes && one->comm_speedup == two->comm_speedup &&
               memcmp(one->source_share, two->source_share, sizeof(one->source_share)) == 0);
    zipccl_replay_result_destroy(one);
    zipccl_replay_result_destroy(two);
}

/* Half of the world calls twice: a row is of one rank, bytes and recorded time like calls. */
static void test_busiest(enum zipccl_fidelity fidelity)
{
    struct zipccl_replay_options o = plain(fidelity, 1.5, false);
    struct zipccl_replay_result *r;
    struct zipccl_event *e;
    struct toy t;

    printf("a row is of the rank that calls most\n");
    toy_init(&t, NRANKS);
    e = toy_collective(&t, ZIPCCL_ALL_GATHER, ZIPCCL_BFLOAT16, 1000000, 1, 0);
    e->group = 1;
    e->recorded_s = 0.25;
    e = toy_collective(&t, ZIPCCL_ALL_GATHER, ZIPCCL_BFLOAT16, 1000000, 1, 0);
    e->group = 1;
    e->recorded_s = 0.5;
    e->ranks = t.ranks + NRANKS / 2;
    e->nranks = NRANKS / 2;
    r = must(&t, &o, NULL, NULL);
    near("calls", (double)r->rows[0].calls, 2, 0);
    near("bytes: 2 x 7 x 2e6", r->rows[0].raw_bytes, 28e6, 0);
    near("recorded", r->rows[0].time_recorded_s, 0.75, 0);
    zipccl_replay_result_destroy(r);
}

/* Each changed input gives what a replay with that input gives, and in the right direction. */
static void test_sensitivities(enum zipccl_fidelity fidelity)
{
    struct zipccl_replay_options o = plain(fidelity, 1.5, true);
    struct zipccl_replay_options other = plain(fidelity, 1.45, false);
    struct zipccl_replay_result *base, *changed;
    double base_s, grown;
    struct toy t;

    printf("sensitivities are what replays with the changed input give\n");
    init_exposed(&t);
    base = must(&t, &o, NULL, NULL);
    base_s = base->steps[ZIPCCL_STEP_ADAPTIVE].step_s;
    changed = must(&t, &other, NULL, NULL);
    grown = changed->steps[ZIPCCL_STEP_ADAPTIVE].step_s;
    near("ratio -0.05", base->sensitivities[ZIPCCL_SENS_RATIO].step_adaptive_s, grown,
         1e-3 * (grown - base_s));
    expect("a lower ratio makes the step longer", grown > base_s * 1.01);
    zipccl_replay_result_destroy(changed);
    o.ratio = other.ratio = 1.5;
    for (int i = 0; i < 2; i++) {
        int sens = i == 0 ? ZIPCCL_SENS_NIC_DOWN : ZIPCCL_SENS_NIC_UP;

        changed = must(&t, &other, i == 0 ? "nic.rate=21.78GBps" : "nic.rate=26.62GBps", NULL);
        near("nic.rate, raw", base->sensitivities[sens].step_raw_s,
             changed->steps[ZIPCCL_STEP_RAW].step_s, 1e-9);
        near("nic.rate, adaptive", base->sensitivities[sens].step_adaptive_s,
             changed->steps[ZIPCCL_STEP_ADAPTIVE].step_s, 1e-9);
        expect("in the right direction", (i == 0) == (changed->steps[ZIPCCL_STEP_RAW].step_s >
                                                      base->steps[ZIPCCL_STEP_RAW].step_s));
        zipccl_replay_result_destroy(changed);
    }
    zipccl_replay_result_destroy(base);
    base = must(&t, &o, "codec.encode_rate=20GBps", "codec.decode_rate=20GBps");
    changed = must(&t, &other, "codec.encode_rate=10GBps", "codec.decode_rate=10GBps");
    near("codec at half rate", base->sensitivities[ZIPCCL_SENS_CODEC].step_adaptive_s,
         changed->steps[ZIPCCL_STEP_ADAPTIVE].step_s, 1e-9);
    expect("a slower codec makes the step longer",
           changed->steps[ZIPCCL_STEP_ADAPTIVE].step_s >
               base->steps[ZIPCCL_STEP_ADAPTIVE].step_s * 1.01);
    zipccl_replay_result_destroy(base);
    zipccl_replay_result_destroy(changed);
}

/* Over 10 % between the recorded step and the simulated raw one is worth a warning, less is not. */
static void test_recorded(enum zipccl_fidelity fidelity)
{
    static const struct {
        double raw_over_recorded;
        bool warns;
    } cases[] = {{1.09, false}, {1.11, true}, {0.91, false}, {0.89, true}};
    struct zipccl_replay_options o = plain(fidelity, 1.5, false);
    struct zipccl_replay_result *r;
    double raw_s;
    struct toy t;

    printf("a recorded step that the simulation misses by over 10 %% earns a warning\n");
    init_exposed(&t);
    r = must(&t, &o, NULL, NULL);
    raw_s = r->steps[ZIPCCL_STEP_RAW].step_s;
    zipccl_replay_result_destroy(r);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bool warned = false;

        t.trace.header.recorded_step_s = raw_s / cases[i].raw_over_recorded;
        r = must(&t, &o, NULL, NULL);
        for (size_t k = 0; k < r->nwarnings; k++)
            warned |= strstr(r->warnings[k], "recorded one") != NULL;
        printf("  raw / recorded %.2f: %s", cases[i].raw_over_recorded,
               warned ? "warns" : "silent");
        expect("", warned == cases[i].warns);
        zipccl_replay_result_destroy(r);
    }
}

/* Rows stand by exposed time saved, not in the order of the trace. */
static void test_order(enum zipccl_fidelity fidelity)
{
    struct zipccl_replay_options o = plain(fidelity, 1.5, false);
    static const uint64_t counts[] = {2000000, 1000, 4000000, 3000000};
    struct zipccl_replay_result *r;
    bool sorted = true;
    struct toy t;

    printf("rows are sorted by exposed time saved\n");
    toy_init(&t, NRANKS);
    for (int i = 0; i < 4; i++)
        toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_BFLOAT16, counts[i], 1, 0);
    r = must(&t, &o, NULL, NULL);
    for (size_t i = 1; i < r->nrows; i++)
        sorted &= r->rows[i - 1].exposed_raw_s - r->rows[i - 1].exposed_adaptive_s >=
                  r->rows[i].exposed_raw_s - r->rows[i].exposed_adaptive_s;
    expect("sorted", sorted && r->nrows == 4 && r->rows[0].count == 4000000 &&
                         r->rows[1].count == 3000000 && r->rows[2].count == 2000000);
    zipccl_replay_result_destroy(r);
}

/* Rows that go raw have no source of a ratio; the codec's rates name theirs. */
static void test_sources(enum zipccl_fidelity fidelity)
{
    struct zipccl_replay_options o = plain(fidelity, 1.5, false);
    struct zipccl_replay_result *r;
    struct toy t;

    printf("sources are those of what was used\n");
    toy_init(&t, NRANKS);
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_BFLOAT16, 4000000, 1, 0);
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_BFLOAT16, 16, 1, 0);
    r = must(&t, &o, NULL, NULL);
    expect("compressed: the ratio given", strcmp(r->rows[0].ratio_source, "given") == 0);
    expect("raw: none", strcmp(r->rows[1].ratio_source, "none") == 0 && r->rows[1].ratio == 1);
    near("share of none", r->source_share[ZIPCCL_RATIO_NONE],
         r->rows[1].raw_bytes / (r->rows[0].raw_bytes + r->rows[1].raw_bytes), 1e-12);
    expect("no type is blamed", r->nwarnings == 0 && r->raw_dtype_bytes == 0);
    expect("the codec's source is the file's", strstr(r->codec_line, "DietGPU") != NULL);
    zipccl_replay_result_destroy(r);
    r = must(&t, &o, "codec.encode_rate=300GBps", NULL);
    printf("  %s\n", r->codec_line);
    expect("or --set", strstr(r->codec_line, "encode: --set; decode: assumption") != NULL);
    zipccl_replay_result_destroy(r);
    r = must(&t, &o, "codec.encode_rate=300GBps", "codec.decode_rate=300GBps");
    expect("or --set alone", strstr(r->codec_line, "[--set]") != NULL);
    zipccl_replay_result_destroy(r);
}

/* "int8" is inside "uint8": both are named, each once. */
static void test_raw_types(enum zipccl_fidelity fidelity)
{
    struct zipccl_replay_options o = plain(fidelity, 1.5, false);
    struct zipccl_replay_result *r;
    struct toy t;

    printf("types without a codec are all named\n");
    toy_init(&t, NRANKS);
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_UINT8, 8000000, 1, 0);
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_INT8, 4000000, 1, 0);
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_UINT8, 2000000, 1, 0);
    r = must(&t, &o, NULL, NULL);
    printf("  %s\n", r->raw_dtypes);
    expect("uint8 and int8", strcmp(r->raw_dtypes, "uint8, int8") == 0);
    expect("in the warning", r->nwarnings > 0 && strstr(r->warnings[0], "uint8, int8 yet") != NULL);
    zipccl_replay_result_destroy(r);
}

/*
 * Beside compute one alltoall is hidden and another is not: compressed, the hidden one slows compute
 * and gains nothing, so that the refined step sends it raw.
 */
static void init_hidden(struct toy *t)
{
    toy_init(t, NRANKS);
    toy_collective(t, ZIPCCL_ALLTOALL, ZIPCCL_BFLOAT16, 4000000, 1, 0);
    toy_compute(t, 0.060, 0);
    toy_collective(t, ZIPCCL_ALLTOALL, ZIPCCL_BFLOAT16, 3000000, 1, 2);
    toy_compute(t, 0.001, 3);
}

static void test_refined(enum zipccl_fidelity fidelity)
{
    static const char encode[] = "codec.encode_rate=50GBps", decode[] = "codec.decode_rate=50GBps";
    struct zipccl_replay_options o = plain(fidelity, 1.5, true);
    const struct zipccl_result_step *step;
    struct zipccl_replay_result *r, *at;
    const struct zipccl_result_row *shown, *hidden;
    struct toy t;

    printf("the step is refined: what compute hides goes raw\n");
    init_hidden(&t);
    r = must(&t, &o, encode, decode);
    step = &r->steps[ZIPCCL_STEP_ADAPTIVE];
    shown = &r->rows[0];
    hidden = &r->rows[1];
    printf("  raw %.3f compressed %.3f adaptive %.3f ms; %s\n",
           1e3 * r->steps[ZIPCCL_STEP_RAW].step_s, 1e3 * r->steps[ZIPCCL_STEP_COMPRESSED].step_s,
           1e3 * step->step_s, r->adaptive_note);
    expect("noted", strstr(r->adaptive_note, "refined, 1 row ") != NULL);
    near("compute and what is exposed", step->step_s, 0.061 + shown->time_compressed_s, 1e-9);
    near("the codec slows nothing", step->codec_slow_s, 0, 1e-9);
    expect("compressed, it does", r->steps[ZIPCCL_STEP_COMPRESSED].codec_slow_s > 1e-3);
    expect("hidden: raw", hidden->count == 4000000 && hidden->ratio == 1 &&
                              strcmp(hidden->strategy, hidden->strategy_raw) == 0 &&
                              strcmp(hidden->ratio_source, "none") == 0);
    expect("exposed: compressed", shown->count == 3000000 && shown->ratio > 1.3 &&
                                      strcmp(shown->strategy, shown->strategy_compressed) == 0);
    printf("  so are its sensitivities and its break-even\n");
    o.ratio = 1.45;
    o.sensitivities = false;
    at = must(&t, &o, encode, decode);
    expect("refined too", strstr(at->adaptive_note, "refined") != NULL);
    near("ratio -0.05", r->sensitivities[ZIPCCL_SENS_RATIO].step_adaptive_s,
         at->steps[ZIPCCL_STEP_ADAPTIVE].step_s, 1e-6);
    zipccl_replay_result_destroy(at);
    zipccl_replay_result_destroy(r);
}

/*
 * Bytes of compressed calls by hand: 15 messages of 4e6 elements, at ratio 2 as long as 4e6 bytes,
 * and four bytes for the size of each chunk of each message.
 */
static void test_bytes(enum zipccl_fidelity fidelity)
{
    struct zipccl_replay_options o = plain(fidelity, 2, false);
    struct zipccl_replay_result *r;
    struct toy t;

    double sizes;

    printf("bytes of a row\n");
    init_exposed(&t);
    t.events[0].repeat = 3;
    r = must(&t, &o, NULL, NULL);
    near("raw: 3 x 15 x 4e6 x 2", r->rows[0].raw_bytes, 360e6, 0);
    /* Whole or in parts: the bytes are the same. */
    expect("exact sizes", strcmp(r->rows[0].strategy, "exact direct") == 0 ||
                              strcmp(r->rows[0].strategy, "exact split") == 0);
    sizes = r->rows[0].wire_bytes - 180e6;
    printf("  wire: 180e6 and %.0f\n", sizes);
    expect("sizes: 3 x 15 x 4 for each of up to 64 chunks",
           sizes >= 180 && sizes <= 180 * 64 && fmod(sizes, 180) == 0);
    near("ratio", r->rows[0].ratio, r->rows[0].raw_bytes / r->rows[0].wire_bytes, 0);
    zipccl_replay_result_destroy(r);
}

int main(void)
{
    static const enum zipccl_fidelity both[] = {ZIPCCL_FIDELITY_T0, ZIPCCL_FIDELITY_T1};

    for (int i = 0; i < 2; i++) {
        printf("--- T%d\n", i);
        test_nothing_moves(both[i]);
        test_next_to_nothing(both[i]);
        test_two_forms(both[i]);
        test_busiest(both[i]);
        test_sensitivities(both[i]);
        test_recorded(both[i]);
        test_order(both[i]);
        test_sources(both[i]);
        test_raw_types(both[i]);
        test_refined(both[i]);
        test_bytes(both[i]);
    }
    printf("%s\n", failures == 0 ? "ok" : "FAILED");
    return failures != 0;
}
