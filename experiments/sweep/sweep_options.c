/*
 * sweep_options.c - the command line of 'zipccl sweep'
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/sweep/sweep_options.h"

#include "experiments/program/program.h"
#include "experiments/sweep/sweep_summary.h"
#include "models/units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Options from here on name an axis of their name. */
enum key {
    KEY_CSV = 0x100,
    KEY_HTML,
    KEY_SORT,
    KEY_TOP,
    KEY_LIST,
    KEY_UNFIT,
    KEY_MEMORY,
    KEY_SAMPLES,
    KEY_TIMES,
    KEY_MODEL_DIR,
    KEY_CLUSTER_DIR,
    KEY_PARALLEL,
    KEY_MODE,
    KEY_AXIS
};

/* clang-format off */
static const struct argp_option option_table[] = {
    {NULL, 0, NULL, 0, "What varies; each takes a list, A,B,C, or stands in the SPEC file by its name:", 1},
    {"model", 'm', "LIST", 0, "bundled models ('zipccl trace models'), YAML files, or config.json of Hugging Face", 1},
    {"trace", KEY_AXIS + 1, "LIST", 0, "traces instead of models, or files of other tools", 1},
    {"gpus", KEY_AXIS + 2, "LIST", 0, "ranks; the cluster gets as many nodes as they fill", 1},
    {"nodes", KEY_AXIS + 3, "LIST", 0, "nodes, instead of --gpus", 1},
    {"parallel", KEY_PARALLEL, "tp=N,pp=N", 0, "one combination of tp, sp, pp, vpp, dp, cp, ep, etp, sharding, shard; may repeat, then an axis of combinations", 1},
    {"tp", KEY_AXIS + 4, "LIST", 0, "tensor parallel ranks", 1},
    {"sp", KEY_AXIS + 5, "true,false", OPTION_ARG_OPTIONAL, "sequence parallelism over the ranks of tp", 1},
    {"pp", KEY_AXIS + 6, "LIST", 0, "pipeline stages", 1},
    {"vpp", KEY_AXIS + 7, "LIST", 0, "model chunks of a stage, interleaved", 1},
    {"dp", KEY_AXIS + 8, "LIST", 0, "data parallel ranks; otherwise what the ranks leave", 1},
    {"cp", KEY_AXIS + 9, "LIST", 0, "context parallel ranks", 1},
    {"ep", KEY_AXIS + 10, "LIST", 0, "expert parallel ranks", 1},
    {"etp", KEY_AXIS + 11, "LIST", 0, "tensor parallel ranks of each expert", 1},
    {"sharding", KEY_AXIS + 12, "LIST", 0, "ddp, zero1 (default), zero2, zero3 or fsdp, fsdp-noreshard", 1},
    {"shard", KEY_AXIS + 13, "LIST", 0, "fsdp inside groups of so many ranks (HSDP)", 1},
    {"seq", KEY_AXIS + 14, "LIST", 0, "tokens of a sequence (default: 4096)", 1},
    {"micro-batch", KEY_AXIS + 15, "LIST", 0, "sequences of a micro-batch (default: 1)", 1},
    {"global-batch", KEY_AXIS + 16, "LIST", 0, "sequences of a step (default: a micro-batch a rank of dp; with pp, 4 x pp)", 1},
    {"recompute", KEY_AXIS + 17, "LIST", 0, "none (default), selective, full", 1},
    {"grad-dtype", KEY_AXIS + 18, "LIST", 0, "bf16 (default), fp32", 1},
    {"attention", KEY_AXIS + 19, "LIST", 0, "fused (default), plain", 1},
    {"fp8-dispatch", KEY_AXIS + 20, "true,false", OPTION_ARG_OPTIONAL, "tokens travel to experts in fp8", 1},
    {"dispatch", KEY_AXIS + 21, "LIST", 0, "rank (default), node", 1},
    {"imbalance", KEY_AXIS + 22, "LIST", 0, "tokens of the busiest rank of ep over the mean", 1},
    {"bucket", KEY_AXIS + 23, "LIST", 0, "elements of a gradient bucket", 1},
    {"overlap", KEY_AXIS + 24, "WORDS", 0, "one value, such as grad,p2p: lists of lists only in a SPEC", 1},
    {"cluster", 'c', "LIST", 0, "bundled clusters ('zipccl cluster list') or YAML files", 1},
    {"nic", KEY_AXIS + 25, "LIST", 0, "nic.rate: 200Gbps,400Gbps", 1},
    {"set", 's', "KEY=LIST", 0, "any key of a cluster: nic.per_node=1,2,8; may repeat", 1},
    {"ratio", 'r', "LIST", 0, "assume these compression ratios instead of running the codec on samples", 1},
    {NULL, 0, NULL, 0, "How:", 2},
    {"mode", KEY_MODE, "MODE", 0, "raw, adaptive, or all (default): what is reported", 2},
    {"fidelity", 'f', "TIER", 0, "t0: closed form (default); t1: flows in SimGrid, minutes a point", 2},
    {"jobs", 'j', "N", 0, "points at once (default: one per core); the result does not depend on it", 2},
    {"keep-unfit", KEY_UNFIT, NULL, 0, "run what does not fit into the GPUs' memory too", 2},
    {"gpu-memory", KEY_MEMORY, "SIZE", 0, "such as 80GB, instead of the cluster's", 2},
    {"samples", KEY_SAMPLES, "FILE", 0, ".safetensors with captured tensors (default: the bundled ones), or none", 2},
    {"times", KEY_TIMES, "FILE", 0, "measured times of layers, see 'zipccl trace generate --help'", 2},
    {"model-dir", KEY_MODEL_DIR, "DIR", 0, "where named models are looked for", 2},
    {"cluster-dir", KEY_CLUSTER_DIR, "DIR", 0, "where named clusters are looked for", 2},
    {NULL, 0, NULL, 0, "What to write:", 3},
    {"sort", KEY_SORT, "BY", 0, "rows by order (default), speedup, comm, raw, adaptive, exposed, tokens, memory", 3},
    {"top", KEY_TOP, "N", 0, "print N rows; without --sort those of the largest speedup", 3},
    {"list", KEY_LIST, NULL, 0, "list the points and why others are none, run nothing", 3},
    {"json", 'J', "FILE", 0, "the result as JSON, schema zipccl.sweep; '-' for one of these files is standard output, where the table then is left out", 3},
    {"csv", KEY_CSV, "FILE", 0, "the points as CSV, sorted as the table", 3},
    {"html", KEY_HTML, "FILE", 0, "one self-contained page: pictures, table, assumptions", 3},
    {"quiet", 'q', NULL, 0, "print no table and no progress", 3},
    {0}};
/* clang-format on */

static const char doc[] =
    "Simulate many configurations, each a step of a model or a trace on a cluster, and tell where "
    "lossless compression of the collectives pays, and how much."
    "\vExamples:\n"
    "  zipccl sweep --model llama3-8b --sharding fsdp --gpus 64,128,256 --cluster h100-8x8-400g\n"
    "  zipccl sweep -m llama3-70b --gpus 256 --parallel tp=8,pp=4,sp --parallel sharding=fsdp \\\n"
    "      -c h100-8x8-400g --nic 100Gbps,200Gbps,400Gbps --html sizing.html\n"
    "  zipccl sweep -m mixtral-8x7b --ep 8 --gpus 64,512 -c a100-8x8-200g --set nic.per_node=1,4,8 "
    "--top 5\n"
    "  zipccl sweep --trace traces/samples/moe64 -c a100-8x8-200g --nic 100Gbps,200Gbps,800Gbps\n"
    "  zipccl sweep sizing.yaml -J sizing.json --csv sizing.csv\n\n"
    "A SPEC file is YAML: the names above, or any key of a cluster, and lists:\n"
    "  model: [llama3-70b, mixtral-8x7b]\n"
    "  gpus: [64, 256, 1024]\n"
    "  cluster: h100-8x8-400g\n"
    "  nic: [100Gbps, 400Gbps]\n\n"
    "All combinations are looked at. Those that make no sense (ranks that do not divide, nodes "
    "that "
    "are not full, memory) are skipped, counted and named. A point at T0 takes about a second. "
    "docs/sweep.md tells more.\n\n"
    "Exit code: 0 done, 1 a point failed (the others stand) or internal failure, 2 wrong input or "
    "usage.";

static error_t refuse(const struct zipccl_sweep_arguments *a, const char *option, const char *text,
                      const char *expected)
{
    zipccl_usage_error(a->program, "sweep: --%s '%s': expected %s", option, text, expected);
    return ECANCELED;
}

static error_t told(const struct zipccl_sweep_arguments *a, zipccl_status status,
                    const struct zipccl_error *error)
{
    if (status == ZIPCCL_OK)
        return 0;
    zipccl_usage_error(a->program, "%s", error->text);
    return ECANCELED;
}

/* A list with commas as an axis. */
static error_t add_list(struct zipccl_sweep_arguments *a, const char *key, const char *place,
                        char *list)
{
    const char *values[ZIPCCL_SWEEP_MAX_VALUES + 1];
    struct zipccl_error error = {""};
    size_t n = 0;

    for (char *at = list; at != NULL && n <= ZIPCCL_SWEEP_MAX_VALUES;) {
        char *comma = strchr(at, ',');

        if (comma != NULL)
            *comma = '\0';
        values[n++] = at;
        at = comma != NULL ? comma + 1 : NULL;
    }
    for (size_t i = 0; i < n; i++)
        if (values[i][0] == '\0') {
            zipccl_usage_error(a->program, "%s: an empty value in the list", place);
            return ECANCELED;
        }
    return told(a, zipccl_sweep_spec_add(&a->spec, key, place, values, n, &error), &error);
}

/* An axis by its option; words of 'overlap' are one value. */
static error_t add_axis(struct zipccl_sweep_arguments *a, const char *name, char *arg)
{
    struct zipccl_error error = {""};
    char place[80], yes[] = "true";
    const char *one = arg;

    snprintf(place, sizeof place, "--%s", name);
    if (strcmp(name, "overlap") == 0)
        return told(a, zipccl_sweep_spec_add(&a->spec, name, place, &one, 1, &error), &error);
    return add_list(a, name, place, arg != NULL ? arg : yes);
}

static error_t add_set(struct zipccl_sweep_arguments *a, char *arg)
{
    char *equal = strchr(arg, '='), place[120];

    if (equal == NULL || equal == arg)
        return refuse(a, "set", arg, "KEY=VALUE, or KEY=VALUE,VALUE");
    *equal = '\0';
    snprintf(place, sizeof place, "--set %.100s", arg);
    return add_list(a, arg, place, equal + 1);
}

static error_t set_once(const struct zipccl_sweep_arguments *a, const char *option,
                        const char **slot, const char *arg)
{
    if (*slot == NULL && arg[0] != '\0') {
        *slot = arg;
        return 0;
    }
    zipccl_usage_error(a->program, "sweep: %s is %s", option,
                       *slot != NULL ? "given twice" : "empty");
    return ECANCELED;
}

static error_t set_number(const struct zipccl_sweep_arguments *a, const char *option,
                          const char *text, enum zipccl_unit unit, double min, double max,
                          double *out)
{
    struct zipccl_error error = {""};

    if (zipccl_parse_quantity(text, unit, min, max, out, &error) == ZIPCCL_OK)
        return 0;
    zipccl_usage_error(a->program, "sweep: %s: %s", option, error.text);
    return ECANCELED;
}

static error_t set_mode(struct zipccl_sweep_arguments *a, const char *text)
{
    struct zipccl_replay_options *replay = &a->options.replay;

    replay->compressed = strcmp(text, "all") == 0;
    replay->adaptive = replay->compressed || strcmp(text, "adaptive") == 0;
    return replay->adaptive || strcmp(text, "raw") == 0
               ? 0
               : refuse(a, "mode", text, "raw, adaptive or all");
}

static error_t set_fidelity(struct zipccl_sweep_arguments *a, const char *text)
{
    bool t1 = strcmp(text, "t1") == 0 || strcmp(text, "T1") == 0;

    a->options.replay.fidelity = t1 ? ZIPCCL_FIDELITY_T1 : ZIPCCL_FIDELITY_T0;
    return t1 || strcmp(text, "t0") == 0 || strcmp(text, "T0") == 0
               ? 0
               : refuse(a, "fidelity", text, "t0 or t1");
}

static error_t set_sort(struct zipccl_sweep_arguments *a, const char *text)
{
    for (int i = 0; zipccl_sweep_sorts[i] != NULL; i++)
        if (strcmp(text, zipccl_sweep_sorts[i]) == 0) {
            a->sort = i;
            a->sort_given = true;
            return 0;
        }
    return refuse(a, "sort", text,
                  "order, speedup, comm, raw, adaptive, exposed, tokens or memory");
}

static error_t add_parallel(struct zipccl_sweep_arguments *a, const char *text)
{
    if (a->nparallel == ZIPCCL_SWEEP_MAX_VALUES)
        return refuse(a, "parallel", text, "fewer of them");
    a->parallel[a->nparallel++] = text;
    return 0;
}

static error_t set_rest(int key, char *arg, struct zipccl_sweep_arguments *a)
{
    double number = 0;
    error_t failed;

    switch (key) {
    case 'm': return add_axis(a, "model", arg);
    case 'c': return add_axis(a, "cluster", arg);
    case 'r': return add_axis(a, "ratio", arg);
    case 's': return add_set(a, arg);
    case 'f': return set_fidelity(a, arg);
    case 'j':
        failed = set_number(a, "--jobs", arg, ZIPCCL_UNIT_COUNT, 1, 1024, &number);
        a->options.replay.nprocs = (uint32_t)number;
        return failed;
    case 'J': return set_once(a, "-J", &a->files[ZIPCCL_SWEEP_JSON], arg);
    case 'q': a->quiet = true; return 0;
    case KEY_CSV: return set_once(a, "--csv", &a->files[ZIPCCL_SWEEP_CSV], arg);
    case KEY_HTML: return set_once(a, "--html", &a->files[ZIPCCL_SWEEP_HTML], arg);
    case KEY_SORT: return set_sort(a, arg);
    case KEY_TOP: return set_number(a, "--top", arg, ZIPCCL_UNIT_COUNT, 1, 1e6, &a->top);
    case KEY_LIST: a->list = true; return 0;
    case KEY_UNFIT: a->options.keep_unfit = true; return 0;
    case KEY_MEMORY:
        return set_number(a, "--gpu-memory", arg, ZIPCCL_UNIT_BYTES, 1e6, 1e15,
                          &a->options.gpu_memory);
    case KEY_SAMPLES: return set_once(a, "--samples", &a->options.samples, arg);
    case KEY_TIMES: return set_once(a, "--times", &a->options.times, arg);
    case KEY_MODEL_DIR: return set_once(a, "--model-dir", &a->options.model_dir, arg);
    case KEY_CLUSTER_DIR: return set_once(a, "--cluster-dir", &a->options.cluster_dir, arg);
    case KEY_PARALLEL: return add_parallel(a, arg);
    case KEY_MODE: return set_mode(a, arg);
    case ARGP_KEY_ARG:
        if (a->spec_path != NULL) {
            zipccl_usage_error(a->program, "sweep: two SPEC files, '%s' and '%s'", a->spec_path,
                               arg);
            return ECANCELED;
        }
        a->spec_path = arg;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    if (key > KEY_AXIS)
        for (size_t i = 0; i < sizeof option_table / sizeof *option_table; i++)
            if (option_table[i].key == key && option_table[i].name != NULL)
                return add_axis(state->input, option_table[i].name, arg);
    return set_rest(key, arg, state->input);
}

/* What is not on the command line: the SPEC file, and the combinations together. */
static zipccl_status finish(struct zipccl_sweep_arguments *a, struct zipccl_error *error)
{
    if (a->nparallel > 0)
        ZIPCCL_TRY(zipccl_sweep_spec_add(&a->spec, "parallel", "--parallel", a->parallel,
                                         a->nparallel, error));
    if (a->spec_path != NULL)
        ZIPCCL_TRY(zipccl_sweep_spec_read(&a->spec, a->spec_path, error));
    return zipccl_sweep_spec_finish(&a->spec, error);
}

int zipccl_sweep_parse(int argc, char **argv, struct zipccl_sweep_arguments *out, bool *helped)
{
    static const struct argp argp = {option_table, parse_option, "[SPEC]", doc, NULL, NULL, NULL};
    struct zipccl_error error = {""};

    zipccl_replay_options_init(&out->options.replay);
    out->options.replay.fidelity = ZIPCCL_FIDELITY_T0;
    out->options.replay.sensitivities = false;
    int code = zipccl_parse_options(&argp, argc, argv, out->program, "zipccl sweep", out, helped);

    if (code != ZIPCCL_EXIT_OK || *helped)
        return code;
    zipccl_status status = finish(out, &error);
    if (status != ZIPCCL_OK)
        return zipccl_print_error(out->program, status, &error);
    if (out->list && (out->files[0] != NULL || out->files[1] != NULL || out->files[2] != NULL))
        return zipccl_usage_error(out->program, "sweep: --list runs nothing: there is no result "
                                                "to write");
    if (out->top > 0 && !out->sort_given)
        out->sort = 1;
    return ZIPCCL_EXIT_OK;
}
