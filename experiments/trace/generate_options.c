/*
 * generate_options.c - the command line of 'zipccl trace generate'
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/trace/generate_options.h"

#include "experiments/program/program.h"
#include "experiments/trace/generate_set.h"
#include "models/units.h"

#include <errno.h>
#include <string.h>

static const char program[] = "zipccl";

enum key {
    KEY_TP = 0x100,
    KEY_PP,
    KEY_DP,
    KEY_CP,
    KEY_EP,
    KEY_ETP,
    KEY_DISPATCH,
    KEY_VPP,
    KEY_GPUS,
    KEY_SEQ,
    KEY_MICRO,
    KEY_GLOBAL,
    KEY_BUCKET,
    KEY_PER_NODE,
    KEY_SP,
    KEY_SHARDING,
    KEY_SHARD,
    KEY_RECOMPUTE,
    KEY_ATTENTION,
    KEY_GRAD_DTYPE,
    KEY_FP8,
    KEY_IMBALANCE,
    KEY_OVERLAP,
    KEY_UNROLL,
    KEY_PEAK,
    KEY_MFU,
    KEY_TIMES,
    KEY_WORKLOAD,
    KEY_SYNC,
    KEY_CLUSTER_DIR,
    KEY_MODEL_DIR,
    KEY_MEMORY,
    KEY_SAMPLES,
    KEY_ESTIMATE
};

/* clang-format off */
static const struct argp_option option_table[] = {
    {"model", 'm', "NAME|FILE", 0, "a bundled model ('list' lists them), FILE.yaml, or a config.json of Hugging Face", 1},
    {"output", 'o', "OUT", 0, "the trace to write: .jsonl or .jsonl.gz", 1},
    {"estimate", KEY_ESTIMATE, NULL, 0, "print memory and work, write nothing", 1},
    {"quiet", 'q', NULL, 0, "print nothing but warnings", 1},
    {"model-dir", KEY_MODEL_DIR, "DIR", 0, "where named models are looked for", 1},
    {NULL, 0, NULL, 0, "Parallelism (each 1 by default):", 2},
    {"tp", KEY_TP, "N", 0, "tensor parallel ranks", 2},
    {"sp", KEY_SP, NULL, 0, "sequence parallelism over the ranks of tp", 2},
    {"pp", KEY_PP, "N", 0, "pipeline stages", 2},
    {"vpp", KEY_VPP, "N", 0, "model chunks of a stage, interleaved", 2},
    {"dp", KEY_DP, "N", 0, "data parallel ranks", 2},
    {"gpus", KEY_GPUS, "N", 0, "all ranks, instead of --dp", 2},
    {"cp", KEY_CP, "N", 0, "context parallel ranks, a ring", 2},
    {"ep", KEY_EP, "N", 0, "expert parallel ranks, out of tp x cp x dp", 2},
    {"etp", KEY_ETP, "N", 0, "tensor parallel ranks of each expert; ep x etp out of tp x cp x dp", 2},
    {"sharding", KEY_SHARDING, "WAY", 0, "ddp, zero1 (default), zero2, zero3 or fsdp, fsdp-noreshard", 2},
    {"shard", KEY_SHARD, "N", 0, "fsdp inside groups of N ranks of dp x cp, replicated across them (HSDP)", 2},
    {NULL, 0, NULL, 0, "Batch:", 3},
    {"seq", KEY_SEQ, "N", 0, "tokens of a sequence (default: 4096)", 3},
    {"micro-batch", KEY_MICRO, "N", 0, "sequences of a micro-batch (default: 1)", 3},
    {"global-batch", KEY_GLOBAL, "N", 0, "sequences of a step (default: one micro-batch a rank of dp; with pp, 4 x pp)", 3},
    {NULL, 0, NULL, 0, "How it is run:", 4},
    {"grad-dtype", KEY_GRAD_DTYPE, "TYPE", 0, "of gradients while they are reduced: bf16 (default) or fp32", 4},
    {"fp8-dispatch", KEY_FP8, NULL, 0, "tokens travel to experts in fp8, with scales", 4},
    {"dispatch", KEY_DISPATCH, "WAY", 0, "rank (default): a token travels to each of its experts; node: once to each node, on from there", 4},
    {"imbalance", KEY_IMBALANCE, "X", 0, "tokens of the busiest rank of ep over the mean (default: 1)", 4},
    {"recompute", KEY_RECOMPUTE, "WHAT", 0, "none (default), selective or full", 4},
    {"attention", KEY_ATTENTION, "KIND", 0, "fused (default), or plain, which keeps its scores", 4},
    {"overlap", KEY_OVERLAP, "LIST", 0, "of grad, param, p2p, shared, tp, a2a, or none (default: grad,p2p)", 4},
    {"bucket", KEY_BUCKET, "N", 0, "elements of a gradient bucket (default: the framework's)", 4},
    {"workload", KEY_WORKLOAD, "KIND", 0, "train (default) or weight-sync", 4},
    {"sync", KEY_SYNC, "WAY", 0, "weight-sync: broadcast (default) or all-gather", 4},
    {"unroll", KEY_UNROLL, NULL, 0, "write repeated layers and micro-batches out", 4},
    {NULL, 0, NULL, 0, "How long computing takes (default: flops are written, the replay divides them):", 5},
    {"peak", KEY_PEAK, "RATE", 0, "of the GPU, such as 989TFLOPS: with --mfu, durations are written", 5},
    {"mfu", KEY_MFU, "X", 0, "part of the peak that kernels reach", 5},
    {"times", KEY_TIMES, "FILE", 0, "measured times, YAML such as attention_forward: 1.2ms", 5},
    {NULL, 0, NULL, 0, "Where it is run:", 6},
    {"cluster", 'c', "NAME|FILE", 0, "for GPUs a node, memory and rates of the estimate", 6},
    {"set", 's', "KEY=VALUE", 0, "override a key of the cluster; may repeat", 6},
    {"cluster-dir", KEY_CLUSTER_DIR, "DIR", 0, "where named clusters are looked for", 6},
    {"gpu-memory", KEY_MEMORY, "SIZE", 0, "such as 80GB, instead of the cluster's", 6},
    {"ranks-per-node", KEY_PER_NODE, "N", 0, "instead of the cluster's", 6},
    {"samples", KEY_SAMPLES, "FILE", 0, ".safetensors with captured tensors (default: the bundled ones), or none", 6},
    {0}};
/* clang-format on */

static const char doc[] =
    "Make up the trace of a training step from a model and a parallelism."
    "\vCounts, order and dependencies follow formulas, each with its source in "
    "docs/generating.md; nothing is measured.\n\n"
    "Examples:\n"
    "  zipccl trace generate --model llama3-70b --sharding fsdp --dp 64 --seq 8192 -o fsdp.jsonl\n"
    "  zipccl trace generate -m llama3-70b --tp 8 --sp --pp 4 --dp 2 --global-batch 32 -c "
    "h100-8x8-400g -o 3d.jsonl\n"
    "  zipccl trace generate -m deepseek-v3 --pp 8 --dp 64 --ep 64 --fp8-dispatch --estimate "
    "--gpu-memory 80GB\n"
    "  zipccl trace generate -m llama3-8b --workload weight-sync --dp 8 -o sync.jsonl\n\n"
    "Exit code: 0 done, 1 internal failure, 2 wrong input or usage.";

/* One of 'words' (NULL ends them); its index, or -1 after telling. */
static int choose(const char *option, const char *text, const char *const *words)
{
    char list[128] = "";
    size_t n = 0;

    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], text) == 0)
            return i;
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i > 0 ? ", " : "", words[i]);
    }
    zipccl_usage_error(program, "trace generate: %s '%s': expected one of %s", option, text, list);
    return -1;
}

static error_t set_number(const char *option, const char *text, enum zipccl_unit unit, double min,
                          double max, double *out)
{
    struct zipccl_error error = {""};

    if (zipccl_parse_quantity(text, unit, min, max, out, &error) == ZIPCCL_OK)
        return 0;
    zipccl_usage_error(program, "trace generate: %s: %s", option, error.text);
    return ECANCELED;
}

/* Options that 'generate_set.h' has, by their long names; false for another key. */
static bool set_named(int key, const char *arg, struct zipccl_generate_options *o, error_t *failed)
{
    struct zipccl_error error = {""};
    const char *name = NULL;

    for (size_t i = 0; i < sizeof option_table / sizeof *option_table; i++)
        if (option_table[i].key == key && option_table[i].name != NULL)
            name = option_table[i].name;
    if (name == NULL)
        return false;
    zipccl_status status =
        zipccl_generate_set(&o->workload, name, arg != NULL ? arg : "true", &error);
    if (status == ZIPCCL_ERR_ARG)
        return false;
    if (status != ZIPCCL_OK)
        zipccl_usage_error(program, "trace generate: --%s%s %s", name,
                           error.text[0] == '\'' ? "" : ":", error.text);
    *failed = status == ZIPCCL_OK ? 0 : ECANCELED;
    return true;
}

/* Options of which one of several words is meant, and that are the program's own. */
static bool set_word(int key, char *arg, struct zipccl_generate_options *o, error_t *failed)
{
    static const char *const kinds[] = {"train", "weight-sync", NULL};
    static const char *const ways[] = {"broadcast", "all-gather", NULL};
    int i = -1;

    switch (key) {
    case KEY_WORKLOAD: o->sync = (i = choose("--workload", arg, kinds)) == 1; break;
    case KEY_SYNC:
        o->sync_given = true;
        i = choose("--sync", arg, ways);
        o->workload.kind = i == 1 ? ZIPCCL_WORKLOAD_SYNC_GATHER : ZIPCCL_WORKLOAD_SYNC_BROADCAST;
        break;
    default: return false;
    }
    *failed = i < 0 ? ECANCELED : 0;
    return true;
}

static error_t set_once(const char *option, const char **slot, const char *arg)
{
    if (*slot == NULL && arg[0] != '\0') {
        *slot = arg;
        return 0;
    }
    zipccl_usage_error(program, "trace generate: %s is %s", option,
                       *slot != NULL ? "given twice" : "empty");
    return ECANCELED;
}

static error_t set_rest(int key, char *arg, struct zipccl_generate_options *o)
{
    switch (key) {
    case KEY_GPUS: return set_number("--gpus", arg, ZIPCCL_UNIT_COUNT, 1, 1 << 20, &o->gpus);
    case KEY_PER_NODE: {
        double value = 0;
        error_t failed = set_number("--ranks-per-node", arg, ZIPCCL_UNIT_COUNT, 1, 1 << 20, &value);

        o->workload.ranks_per_node = (uint32_t)value;
        return failed;
    }
    case KEY_MEMORY:
        return set_number("--gpu-memory", arg, ZIPCCL_UNIT_BYTES, 1e6, 1e15, &o->gpu_memory);
    case 's':
        if (o->nsets == ZIPCCL_GENERATE_MAX_SETS) {
            zipccl_usage_error(program, "trace generate: more than %d --set options",
                               ZIPCCL_GENERATE_MAX_SETS);
            return ECANCELED;
        }
        o->sets[o->nsets++] = arg;
        return 0;
    case 'm': return set_once("--model", &o->model, arg);
    case 'o': return set_once("-o", &o->out, arg);
    case 'c': return set_once("--cluster", &o->cluster, arg);
    case KEY_TIMES: return set_once("--times", &o->times, arg);
    case KEY_SAMPLES: return set_once("--samples", &o->samples, arg);
    case KEY_CLUSTER_DIR: return set_once("--cluster-dir", &o->cluster_dir, arg);
    case KEY_MODEL_DIR: return set_once("--model-dir", &o->model_dir, arg);
    case ARGP_KEY_ARG:
        zipccl_usage_error(program, "trace generate: unexpected argument '%s'", arg);
        return ECANCELED;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct zipccl_generate_options *o = state->input;
    error_t failed = 0;

    switch (key) {
    case KEY_UNROLL: o->workload.unroll = true; return 0;
    case KEY_ESTIMATE: o->estimate = true; return 0;
    case 'q': o->quiet = true; return 0;
    default: break;
    }
    if (set_named(key, arg, o, &failed) || set_word(key, arg, o, &failed))
        return failed;
    return set_rest(key, arg, o);
}

int zipccl_generate_parse(int argc, char **argv, struct zipccl_generate_options *options,
                          bool *helped)
{
    static const struct argp argp = {option_table, parse_option, "--model NAME -o OUT", doc, NULL,
                                     NULL,         NULL};

    memset(options, 0, sizeof *options);
    zipccl_workload_init(&options->workload);
    return zipccl_parse_options(&argp, argc, argv, program, "zipccl trace generate", options,
                                helped);
}
