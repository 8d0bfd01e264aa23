/*
 * test_sweep_spec.c - axes of a sweep, their combinations, which are skipped, and what points say together
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/sweep_html.h"
#include "experiments/sweep/sweep_spec.h"
#include "experiments/sweep/sweep_summary.h"

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A spec with the axes "KEY VALUE VALUE" of 'lines', ended by NULL; the first error, or "". */
static struct zipccl_error make(struct zipccl_sweep_spec *spec, const char *const *lines)
{
    struct zipccl_error error = {""};

    memset(spec, 0, sizeof *spec);
    for (; *lines != NULL && error.text[0] == '\0'; lines++) {
        char text[400], place[80], *rest = NULL;
        const char *values[32];
        size_t n = 0;

        snprintf(text, sizeof text, "%s", *lines);
        char *key = strtok_r(text, " ", &rest);
        for (char *v = strtok_r(NULL, " ", &rest); v != NULL; v = strtok_r(NULL, " ", &rest))
            values[n++] = v;
        snprintf(place, sizeof place, "--%s", key);
        zipccl_sweep_spec_add(spec, key, place, values, n, &error);
    }
    if (error.text[0] == '\0')
        zipccl_sweep_spec_finish(spec, &error);
    return error;
}

Test(sweep_spec, combinations_run_the_last_axis_fastest)
{
    static const char *const lines[] = {"nic 100Gbps 200Gbps 400Gbps", "cluster laptop",
                                        "gpus 64 128", "model a b", NULL};
    struct zipccl_sweep_spec spec;
    struct zipccl_error error = make(&spec, lines);
    char text[200];

    cr_assert_str_eq(error.text, "");
    cr_assert_eq(zipccl_sweep_spec_count(&spec), 12);
    /* Models come first, then ranks, then the cluster and its keys, however they were given. */
    cr_assert_str_eq(spec.axes[0].key, "model");
    cr_assert_str_eq(spec.axes[3].key, "nic.rate");
    zipccl_sweep_spec_describe(&spec, 0, text, sizeof text);
    cr_assert_str_eq(text, "model a, gpus 64, nic.rate 100Gbps");
    zipccl_sweep_spec_describe(&spec, 11, text, sizeof text);
    cr_assert_str_eq(text, "model b, gpus 128, nic.rate 400Gbps");
    zipccl_sweep_spec_describe(&spec, 4, text, sizeof text);
    cr_assert_str_eq(text, "model a, gpus 128, nic.rate 200Gbps");
    zipccl_sweep_spec_release(&spec);
}

Test(sweep_spec, a_combination_of_options_reaches_the_workload)
{
    static const char *const lines[] = {"parallel tp=8,pp=4,sp,sharding=fsdp dp=3", "seq 8192",
                                        "model a", "cluster laptop", NULL};
    struct zipccl_sweep_spec spec;
    struct zipccl_error error = make(&spec, lines);
    struct zipccl_workload w;
    bool dp_given;

    cr_assert_str_eq(error.text, "");
    zipccl_workload_init(&w);
    zipccl_sweep_spec_apply(&spec, 0, &w, &dp_given);
    cr_assert(w.tp == 8 && w.pp == 4 && w.sp && w.sharding == ZIPCCL_SHARD_FSDP && w.seq == 8192);
    cr_assert_not(dp_given);
    zipccl_workload_init(&w);
    zipccl_sweep_spec_apply(&spec, 1, &w, &dp_given);
    cr_assert(w.tp == 1 && w.dp == 3 && !w.sp && dp_given);
    zipccl_sweep_spec_release(&spec);
}

Test(sweep_spec, what_is_no_axis_and_no_value_is_refused)
{
    static const struct {
        const char *lines[8], *told;
    } cases[] = {
        {{"gpu 8", NULL}, "\"gpu\" is no axis; did you mean 'gpus'?"},
        {{"gpus", NULL}, "--gpus: an empty list"},
        {{"gpus 8 x", NULL}, "--gpus: found \"x\""},
        {{"gpus 8 16 8", NULL}, "--gpus: \"8\" is there twice"},
        {{"gpus 8", "gpus 16", NULL}, "--gpus: given twice, the other by --gpus"},
        {{"nic 8Gbps", "nic.rate 16Gbps", NULL}, "--nic.rate: given twice, the other by --nic"},
        {{"ratio 3", NULL}, "--ratio: "},
        {{"sharding zero9", NULL}, "--sharding 'zero9': expected one of ddp"},
        {{"parallel tp=8,xp=1", NULL}, "found \"xp\""},
        {{"parallel tp=8,tp=4", NULL}, "tp is there twice"},
        {{"parallel tp=eight", NULL}, "tp: found \"eight\""},
        {{"parallel tp=8", "tp 4", "model a", "cluster c", NULL}, "--tp: tp is in \"tp=8\" too"},
        {{"cluster c", NULL}, "no model and no trace"},
        {{"model a", NULL}, "no cluster given"},
        {{"model a", "trace b", "cluster c", NULL}, "--model and --trace exclude each other"},
        {{"trace b", "cluster c", "tp 2", NULL}, "--tp: is for models"},
        {{"model a", "cluster c", "gpus 8", "nodes 1", NULL}, "exclude each other"},
        {{"model a", "cluster c", "seq 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20",
          "gpus 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20",
          "micro-batch 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20", "dp 1 2 3", NULL},
         "24000 combinations, expected at most 20000"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct zipccl_sweep_spec spec;
        struct zipccl_error error = make(&spec, cases[i].lines);

        cr_assert(strstr(error.text, cases[i].told) != NULL, "case %zu: %s", i, error.text);
        zipccl_sweep_spec_release(&spec);
    }
}

Test(sweep_spec, a_bad_file_is_told_with_file_and_line)
{
    static const struct {
        const char *text, *told;
    } cases[] = {
        {"model: [a]\ngpuz: [8]\n", "line 2: unknown key \"gpuz\" in a sweep; docs/sweep.md"},
        {"model: [a]\ngpus: []\n", "line 2: key \"gpus\": an empty list"},
        {"model: [a]\n\ngpus: [8, 8]\n", "line 3: key \"gpus\": \"8\" is there twice"},
        {"gpus: [8]\nmodel: a\ngpus: [9]\n", "already seen: gpus"},
        {"gpus:\n  - 8\n  - eight\n", "line 1: key \"gpus\": found \"eight\""},
        {"gpus: {a: 8}\n", "line 1"},
        {"gpus: [[8]]\n", "line 1"},
        {"- 8\n", "expected a sweep"},
        {"", "expected a sweep"},
        {"model: a\n---\nmodel: b\n", "line 2: a second document"},
    };
    char path[] = "/tmp/test_sweep_XXXXXX.yaml", name[] = "/tmp/test_sweep_XXXXXX";
    int fd = mkstemp(name);

    cr_assert(fd >= 0);
    close(fd);
    snprintf(path, sizeof path, "%s", name);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct zipccl_sweep_spec spec = {.naxes = 0};
        struct zipccl_error error = {""};
        FILE *file = fopen(path, "w");

        fputs(cases[i].text, file);
        fclose(file);
        cr_assert_eq(zipccl_sweep_spec_read(&spec, path, &error), ZIPCCL_ERR_INPUT, "case %zu", i);
        cr_assert(strncmp(error.text, path, strlen(path)) == 0, "case %zu: %s", i, error.text);
        cr_assert(strstr(error.text, cases[i].told) != NULL, "case %zu: %s", i, error.text);
        zipccl_sweep_spec_release(&spec);
    }
    unlink(path);
}

/* Options with the folders of the source tree, from where tests run. */
static const struct zipccl_sweep_options tree = {.model_dir = "models/workloads",
                                                 .cluster_dir = "models/clusters"};

Test(sweep_points, combinations_that_make_no_sense_are_skipped_with_the_reason)
{
    static const char *const lines[] = {"model qwen3-0.6b",    "tp 1 3 16",
                                        "gpus 4 8 16",         "cluster h100-8x8-400g",
                                        "nic 100Gbps 200Gbps", NULL};
    struct zipccl_sweep_spec spec;
    struct zipccl_error error = make(&spec, lines);
    struct zipccl_sweep s;

    cr_assert_str_eq(error.text, "");
    cr_assert_eq(zipccl_sweep_open(&spec, &tree, &s, &error), ZIPCCL_OK, "%s", error.text);
    /* tp 1 on 8 and 16, tp 16 on 16: three steps on two clusters each. */
    cr_assert_eq(s.npoints, 18);
    cr_assert_eq(s.nruns, 6);
    cr_assert_eq(s.nsteps, 3);
    cr_assert_eq(s.nskipped[ZIPCCL_SWEEP_NO_WORLD], 2);
    cr_assert_eq(s.nskipped[ZIPCCL_SWEEP_NO_SHAPE], 10);
    cr_assert(strstr(s.points[0].reason, "4 GPUs are no whole number of nodes of 8") != NULL);
    cr_assert(s.points[2].step == s.points[3].step && s.points[2].nodes == 1);
    zipccl_sweep_release(&s);
    zipccl_sweep_spec_release(&spec);
}

Test(sweep_points, what_does_not_fit_memory_is_skipped_or_kept)
{
    static const char *const lines[] = {"model llama3-70b", "sharding ddp fsdp",     "gpus 64",
                                        "recompute full",   "cluster h100-8x8-400g", NULL};
    struct zipccl_sweep_options options = tree;
    struct zipccl_sweep_spec spec;
    struct zipccl_error error = make(&spec, lines);
    struct zipccl_sweep s;

    cr_assert_eq(zipccl_sweep_open(&spec, &options, &s, &error), ZIPCCL_OK, "%s", error.text);
    cr_assert(s.nruns == 1 && s.nskipped[ZIPCCL_SWEEP_NO_MEMORY] == 1);
    zipccl_sweep_release(&s);
    options.keep_unfit = true;
    cr_assert_eq(zipccl_sweep_open(&spec, &options, &s, &error), ZIPCCL_OK, "%s", error.text);
    cr_assert(s.nruns == 2 && s.nunfit == 1 && !s.points[0].fits);
    zipccl_sweep_release(&s);
    options.keep_unfit = false;
    options.gpu_memory = 1e9;
    cr_assert_eq(zipccl_sweep_open(&spec, &options, &s, &error), ZIPCCL_ERR_INPUT);
    cr_assert(strstr(error.text, "none of 2 combinations can be run; 2 of them for their memory"));
    zipccl_sweep_release(&s);
    zipccl_sweep_spec_release(&spec);
}

Test(sweep_points, values_of_keys_are_checked_against_clusters)
{
    static const char *const unit[] = {"model qwen3-0.6b", "cluster h100-8x8-400g", "nic 100",
                                       NULL};
    static const char *const same[] = {"model qwen3-0.6b", "cluster h100-8x8-400g",
                                       "nic 200Gbps 25GBps", NULL};
    struct zipccl_sweep_spec spec;
    struct zipccl_error error = make(&spec, unit);
    struct zipccl_sweep s;

    cr_assert_eq(zipccl_sweep_open(&spec, &tree, &s, &error), ZIPCCL_ERR_INPUT);
    cr_assert(strstr(error.text, "--nic: ") != NULL && strstr(error.text, "unit"), "%s",
              error.text);
    zipccl_sweep_release(&s);
    zipccl_sweep_spec_release(&spec);
    error = make(&spec, same);
    cr_assert_eq(zipccl_sweep_open(&spec, &tree, &s, &error), ZIPCCL_ERR_INPUT);
    cr_assert(strstr(error.text, "are the same"), "%s", error.text);
    zipccl_sweep_release(&s);
    zipccl_sweep_spec_release(&spec);
}

/* Gains of 6, 4 and 0 % at 100, 200 and 800 Gb/s: 2 % are half way, in the logarithm, 200 to 800. */
Test(sweep_summary, a_break_even_is_interpolated_between_its_neighbours)
{
    static const char *const lines[] = {"model qwen3-0.6b", "gpus 8", "cluster h100-8x8-400g",
                                        "nic 800Gbps 100Gbps 200Gbps", NULL};
    static const double speedups[] = {1.00, 1.06, 1.04};
    struct zipccl_sweep_summary summary;
    struct zipccl_sweep_spec spec;
    struct zipccl_error error = make(&spec, lines);
    const struct zipccl_sweep_point **rows;
    struct zipccl_sweep s;
    char text[40];
    size_t n;

    cr_assert_eq(zipccl_sweep_open(&spec, &tree, &s, &error), ZIPCCL_OK, "%s", error.text);
    for (size_t i = 0; i < 3; i++)
        s.points[i].outcome.end_to_end_speedup = speedups[i];
    cr_assert_eq(zipccl_sweep_summarize(&s, &summary, &error), ZIPCCL_OK);
    cr_assert(summary.npays == 2 && summary.ncompared == 3 && summary.best == &s.points[1]);
    cr_assert(summary.nlines == 1 && summary.ncrossings == 1);
    cr_assert(summary.lines[0].nlines == 1 && summary.lines[0].nbelow == 1);
    cr_assert_float_eq(summary.crossings[0].value, 50e9, 1);
    zipccl_sweep_number(&spec.axes[3], summary.crossings[0].value, text, sizeof text);
    cr_assert_str_eq(text, "400 Gb/s");
    cr_assert_eq(zipccl_sweep_order(&s, 1, &rows, &n, &error), ZIPCCL_OK);
    cr_assert(n == 3 && rows[0] == &s.points[1] && rows[2] == &s.points[0]);
    free((void *)rows);
    zipccl_sweep_release(&s);
    free(summary.crossings);
    zipccl_sweep_spec_release(&spec);
}

/* A page from JSON alone: a map of one row, with a cell that was not run. */
Test(sweep_html, makes_a_page_of_its_schema_alone)
{
    static const char json[] =
        "{\"schema\": {\"name\": \"zipccl.sweep\", \"version\": 1}, \"fidelity\": \"t0\", "
        "\"axes\": "
        "[{\"name\": \"gpus\", \"values\": [\"8\", \"<16>\"], \"numbers\": [8, 16]}], \"points\": "
        "[{\"axes\": {\"gpus\": \"8\"}, \"end_to_end_speedup\": 1.25, \"limit\": \"NIC\"}]}";
    static const char other[] = "{\"schema\": {\"name\": \"zipccl.replay\", \"version\": 1}}";
    struct zipccl_error error = {""};
    char *page = NULL;
    size_t nbytes = 0;
    FILE *out = open_memstream(&page, &nbytes);

    cr_assert_eq(zipccl_sweep_html(other, strlen(other), out, &error), ZIPCCL_ERR_INPUT);
    cr_assert_eq(zipccl_sweep_html(json, 20, out, &error), ZIPCCL_ERR_INPUT);
    cr_assert_eq(ftell(out), 0, "nothing is written of what is no sweep");
    cr_assert_eq(zipccl_sweep_html(json, strlen(json), out, &error), ZIPCCL_OK, "%s", error.text);
    fclose(out);
    cr_assert(strstr(page, ">1.250</text>") != NULL && strstr(page, "not run") != NULL);
    cr_assert(strstr(page, "&lt;16&gt;") != NULL && strstr(page, "<16>") == NULL);
    free(page);
}
