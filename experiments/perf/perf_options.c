/*
 * perf_options.c - the command line of zipccl perf: table of options, and how they fit together
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/perf/perf_options.h"

#include "core/codec_mt.h"
#include "experiments/perf/perf_values.h"
#include "experiments/program/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_ON = 256,
    KEY_MODE,
    KEY_STRATEGY,
    KEY_NCHUNKS,
    KEY_EFFORT,
    KEY_CLASS,
    KEY_GATE,
    KEY_CLUSTER,
    KEY_CLUSTER_DIR,
    KEY_SET,
    KEY_INPUT,
    KEY_THREADS,
    KEY_RANKS_PER_NODE,
    KEY_CSV,
    KEY_TIER,
    KEY_RATIO,
    KEY_STATE_LOAD,
    KEY_STATE_SAVE,
    KEY_STATE_FREEZE,
    KEY_PLAN,
    MAX_SIZES = 1000,
    MAX_ITERS = 1000000
};

const char *const zipccl_perf_mode_names[ZIPCCL_NUM_PERF_MODES] = {
    [ZIPCCL_PERF_RAW] = "raw",
    [ZIPCCL_PERF_NATIVE] = "native",
    [ZIPCCL_PERF_COMPRESSED] = "compressed",
    [ZIPCCL_PERF_ADAPTIVE] = "adaptive",
};

static const struct argp_option option_table[] = {
    {NULL, 0, NULL, 0, "Sizes (bytes as nccl-tests counts them; K, M, G are powers of 1024):", 1},
    {"minbytes", 'b', "SIZE", 0, "from this size (default 32M)", 1},
    {"maxbytes", 'e', "SIZE", 0, "up to this size (default: that of -b)", 1},
    {"stepfactor", 'f', "N", 0, "multiply the size by N from row to row (default 2)", 1},
    {"stepbytes", 'i', "SIZE", 0, "add SIZE from row to row instead", 1},
    {NULL, 0, NULL, 0, "Operation:", 2},
    {"datatype", 'd', "TYPE", 0,
     "nccl-tests' names: bfloat16 (default), half, float, double, fp8_e4m3, fp8_e5m2, int8, ..., "
     "or "
     "all",
     2},
    {"op", 'o', "OP", 0, "of reductions: sum (default), prod, min, max, avg or all", 2},
    {"root", 'r', "RANK", 0, "of broadcast (default 0), or all", 2},
    {"input", KEY_INPUT, "WHAT", 0,
     "elements: gauss (default), mixture, FILE.safetensors (its tensors of that type, one after "
     "the "
     "other) or FILE.safetensors:TENSOR. Tiled where shorter; each rank begins elsewhere in them",
     2},
    {"unalign", 'u', "BYTES", 0, "buffers begin so many bytes off a cache line (default 0)", 2},
    {NULL, 0, NULL, 0, "Plans:", 3},
    {"mode", KEY_MODE, "MODE,...", 0,
     "raw (best uncompressed plan), native (the transport's own), compressed, adaptive (default), "
     "several of them with commas, or all: a row of each, their iterations taking turns",
     3},
    {"strategy", KEY_STRATEGY, "NAME", 0,
     "pin a strategy, such as 'exact ring', for the mode it belongs to, which is the default of "
     "--mode then",
     3},
    {"nchunks", KEY_NCHUNKS, "N", 0, "with --strategy: chunks of its plan (default 1)", 3},
    {"effort", KEY_EFFORT, "fast|ratio", 0, "of the codec (default fast)", 3},
    {"class", KEY_CLASS, "CLASS", 0,
     "capacity of messages of fixed size: learn (default), wide, loose, medium, tight or settled, "
     "or "
     "one after those: wide-1 to -8, loose-1 and -2, medium-1, tight-1, settled-1 to -16",
     3},
    {"plan", KEY_PLAN, "FILE", 0,
     "run exactly the plan in FILE, which 'zipccl plan OP -o FILE' writes; type, size, operator "
     "and "
     "root are the plan's, and --mode is by default that which it belongs to",
     3},
    {"cluster", KEY_CLUSTER, "NAME|FILE", 0,
     "rates that the chooser goes by ('zipccl cluster list'); default: round figures of one core a "
     "rank",
     3},
    {"set", KEY_SET, "KEY=VALUE", 0, "override a key of the cluster; may repeat", 3},
    {"cluster-dir", KEY_CLUSTER_DIR, "DIR", 0, "where named clusters are looked for", 3},
    {"state-load", KEY_STATE_LOAD, "DIR", 0,
     "mode adaptive begins with what a run with the same ranks and settings has saved in DIR", 3},
    {"state-save", KEY_STATE_SAVE, "DIR", 0,
     "save what mode adaptive has learnt at the end, a file for each rank (core/STATE.md); DIR is "
     "made if it is not there",
     3},
    {"state-freeze", KEY_STATE_FREEZE, NULL, 0,
     "mode adaptive learns nothing in this run: plans follow from the rates, and from "
     "--state-load",
     3},
    {NULL, 0, NULL, 0, "Ranks:", 4},
    {"on", KEY_ON, "KIND", 0,
     "threads (of this process), mpi (processes of mpirun, or of srun --mpi=pmix; torchrun brings "
     "up no MPI and is refused), nccl (GPUs: processes of any launcher, or without one threads, a "
     "rank a GPU; 'zipccl perf' runs zipccl-perf-nccl for it; not run on a GPU yet) or sim "
     "(simulated); default: mpi under a launcher, else threads",
     4},
    {"nthreads", 't', "N", 0,
     "ranks, with threads (default: as many as processors, but at least 2; with nccl as many as "
     "GPUs)",
     4},
    {"ranks-per-node", KEY_RANKS_PER_NODE, "N", 0,
     "take N ranks after each other for one node (default: threads are one node, processes are as "
     "their hosts)",
     4},
    {"threads", KEY_THREADS, "N", 0, "threads that each rank codes with (default 1)", 4},
    {"gate", KEY_GATE, "off|all", 0,
     "with --on nccl: who waits to know whether messages overflowed: the host (off, default), or "
     "the "
     "stream, and no host (all; it has not run on a GPU)",
     4},
    {"timeout", 'T', "SECONDS", 0,
     "longest that a call may wait for another rank (default 60; 0: no limit); a rank's own work "
     "does not count",
     4},
    {NULL, 0, NULL, 0, "Repeats:", 5},
    {"iters", 'n', "N", 0, "timed iterations (default 20)", 5},
    {"warmup_iters", 'w', "N", 0, "iterations before these, not timed (default 5)", 5},
    {"agg_iters", 'm', "N", 0, "calls in each iteration, whose time is divided by N (default 1)",
     5},
    {"run_cycles", 'N', "N", 0, "run everything N times (default 1)", 5},
    {"check", 'c', "N", 0,
     "check every element of N calls (default 1), each with other elements; 0: check nothing", 5},
    {NULL, 0, NULL, 0, "Simulated (--on sim), on the ranks that --cluster has:", 8},
    {"tier", KEY_TIER, "TIER", 0,
     "t0: closed form (default); t1: flows in SimGrid; t2: every message of every rank", 8},
    {"ratio", KEY_RATIO, "X", 0,
     "assume this compression ratio, 1 to 2, instead of coding the --input", 8},
    {NULL, 0, NULL, 0, "What is told:", 6},
    {"average", 'a', "0|1|2|3", 0,
     "time of an iteration: rank 0's, the mean, the least or the largest (default 3)", 6},
    {"report_cputime", 'C', "0|1", 0,
     "processor time of the process, over its ranks, instead of time", 6},
    {"report_timestamps", 'S', "0|1", 0, "add the time of day to each row", 6},
    {"per_iteration", 'I', "0|1", 0, "add columns of the iterations: i_min i_max i_p99 i_cv%", 6},
    {"all_iterations", 'K', "0|1", 0, "put the time of every iteration into the JSON", 6},
    {"memory_report", 'M', "0|1", 0, "tell what memory was used", 6},
    {"json", 'J', "FILE", 0,
     "everything as JSON, schema zipccl.perf; '-' for one of these files is standard output, where "
     "the table then is left out",
     6},
    {"csv", KEY_CSV, "FILE", 0, "the rows as CSV", 6},
    {"quiet", 'q', NULL, 0, "print no table", 6},
#define FOREIGN(name, letter)                                                                      \
    {                                                                                              \
        name, letter, "N", OPTION_HIDDEN, NULL, 7                                                  \
    }
    FOREIGN("ngpus", 'g'),
    FOREIGN("parallel_init", 'p'),
    FOREIGN("blocking", 'z'),
    FOREIGN("stream_null", 'y'),
    FOREIGN("cudagraph", 'G'),
    FOREIGN("local_register", 'R'),
    FOREIGN("device_implementation", 'D'),
    FOREIGN("device_cta_count", 'V'),
    FOREIGN("ctas", 'x'),
    FOREIGN("output_file", 'F'),
#undef FOREIGN
    {0}};

static const char doc[] =
    "Measure one collective on real ranks, raw and compressed, and check every element.  OP is "
    "all_gather, reduce_scatter, all_reduce, alltoall, alltoallv, sendrecv or broadcast."
    "\vExamples:\n"
    "  zipccl perf all_reduce -b 8 -e 64M -f 8 -t 4\n"
    "  zipccl perf all_gather -b 32M -t 4 --mode all --ranks-per-node 2\n"
    "  zipccl perf alltoall -b 1M -e 64M -d all -n 5 -c 3 -J alltoall.json\n"
    "  zipccl perf all_gather --plan gather.json --mode raw,compressed -t 8 --ranks-per-node 4\n"
    "  zipccl perf reduce_scatter --input grads.safetensors:layer.3 --strategy 'exact direct'\n"
    "  mpirun --oversubscribe -np 4 zipccl perf all_reduce -b 1M -e 64M --mode all\n"
    "  zipccl perf all_gather -b 1M -e 64M --mode all --on sim --cluster laptop\n\n"
    "Letters and the table are those of nccl-tests, with our columns on the right: mode, ratio "
    "(raw / wire), encode and decode time of the busiest rank, bus bandwidth of the bytes on the "
    "wire, x raw (time of mode raw over this one's), and the strategy. Times are medians. Options "
    "that mean nothing on CPUs (-g, -G, -R, ...) are refused. The environment's NCCL_TESTS_SPLIT, "
    "NCCL_TESTS_SPLIT_MASK and NCCL_TESTS_MIN_BW are heeded.\n\n"
    "Exit code: 0 done, 1 wrong elements, less bandwidth than NCCL_TESTS_MIN_BW asks for, or a "
    "failure, 2 wrong input or usage. A result file appears whole or not at all.";

struct parse {
    const char *program;
    struct zipccl_perf_options *out;
    bool seen[512]; /* by key */
    bool op;
};

/* Options of nccl-tests that ask for what CPUs do not have; some values change nothing. */
static int refuse_foreign(const char *program, int key, const char *arg)
{
    const char *why = NULL;

    switch (key) {
    case 'g':
        why = strcmp(arg, "1") == 0 ? NULL : "ranks run on CPUs, one rank a thread (-t) or process";
        break;
    case 'z':
        why =
            strcmp(arg, "1") == 0 ? NULL : "on CPUs a call returns when it is done, which is -z 1";
        break;
    case 'G': why = strcmp(arg, "0") == 0 ? NULL : "CPUs have no CUDA graphs"; break;
    case 'R': why = strcmp(arg, "0") == 0 ? NULL : "no transport here registers memory"; break;
    case 'y': why = strcmp(arg, "0") == 0 ? NULL : "CPUs have no streams"; break;
    case 'p': why = strcmp(arg, "0") == 0 ? NULL : "ranks are always made in parallel"; break;
    case 'F': why = "--csv FILE writes the rows as CSV"; break;
    default: why = "CPUs have no device API"; break;
    }
    if (why == NULL)
        return 0;
    zipccl_usage_error(program, "perf: -%c %s of nccl-tests is not offered: %s", key, arg, why);
    return -1;
}

static int add_set(const char *program, struct zipccl_perf_options *o, const char *arg)
{
    if (o->nsets >= ZIPCCL_PERF_MAX_SETS) {
        zipccl_usage_error(program, "perf: more than %d --set options", ZIPCCL_PERF_MAX_SETS);
        return -1;
    }
    o->sets[o->nsets++] = arg;
    return 0;
}

static int set_timeout(const char *program, struct zipccl_perf_options *o, const char *arg)
{
    uint32_t seconds;

    if (zipccl_perf_number(program, "-T", arg, 0, 86400, &seconds) != 0)
        return -1;
    o->timeout_s = seconds;
    return 0;
}

/* Options of nccl-tests. */
static int set_letter(struct parse *p, int key, const char *arg)
{
    struct zipccl_perf_options *o = p->out;
    const char *program = p->program;
    uint32_t number;

    switch (key) {
    case 'b': return zipccl_perf_size(program, "-b", arg, &o->min_bytes);
    case 'e': return zipccl_perf_size(program, "-e", arg, &o->max_bytes);
    case 'i': return zipccl_perf_size(program, "-i", arg, &o->step_bytes);
    case 'f': return zipccl_perf_number(program, "-f", arg, 2, 1024, &o->factor);
    case 'd': return zipccl_perf_dtypes(program, arg, o);
    case 'o': return zipccl_perf_redops(program, arg, o);
    case 'r': return zipccl_perf_root(program, arg, o);
    case 'u': return zipccl_perf_number(program, "-u", arg, 0, 4096, &o->unalign);
    case 't': return zipccl_perf_number(program, "-t", arg, 1, 1024, &o->nthreads);
    case 'T': return set_timeout(program, o, arg);
    case 'n': return zipccl_perf_number(program, "-n", arg, 1, MAX_ITERS, &o->iters);
    case 'w': return zipccl_perf_number(program, "-w", arg, 0, MAX_ITERS, &o->warmup);
    case 'm': return zipccl_perf_number(program, "-m", arg, 1, MAX_ITERS, &o->agg_iters);
    case 'N': return zipccl_perf_number(program, "-N", arg, 1, MAX_ITERS, &o->cycles);
    case 'c': return zipccl_perf_number(program, "-c", arg, 0, MAX_ITERS, &o->check_iters);
    case 'a':
        if (zipccl_perf_number(program, "-a", arg, 0, 3, &number) != 0)
            return -1;
        o->average = (enum zipccl_perf_average)number;
        return 0;
    case 'C': return zipccl_perf_switch(program, "-C", arg, &o->cputime);
    case 'S': return zipccl_perf_switch(program, "-S", arg, &o->timestamps);
    case 'I': return zipccl_perf_switch(program, "-I", arg, &o->per_iteration);
    case 'K': return zipccl_perf_switch(program, "-K", arg, &o->all_iterations);
    case 'M': return zipccl_perf_switch(program, "-M", arg, &o->memory);
    case 'J': o->json = arg; return 0;
    case 'q': o->quiet = true; return 0;
    default: return refuse_foreign(program, key, arg);
    }
}

/* Our own. */
static int set_word(struct parse *p, int key, const char *arg)
{
    struct zipccl_perf_options *o = p->out;
    const char *program = p->program;

    switch (key) {
    case KEY_ON: return zipccl_perf_on(program, arg, o);
    case KEY_MODE: return zipccl_perf_modes(program, arg, o);
    case KEY_STRATEGY: return zipccl_perf_strategy(program, arg, o);
    case KEY_NCHUNKS: return zipccl_perf_number(program, "--nchunks", arg, 1, 4096, &o->nchunks);
    case KEY_EFFORT: return zipccl_perf_effort(program, arg, o);
    case KEY_CLASS: return zipccl_perf_class(program, arg, o);
    case KEY_GATE: return zipccl_perf_gate(program, arg, o);
    case KEY_CLUSTER: o->cluster = arg; return 0;
    case KEY_CLUSTER_DIR: o->cluster_dir = arg; return 0;
    case KEY_SET: return add_set(program, o, arg);
    case KEY_INPUT: return zipccl_perf_input(program, arg, o);
    case KEY_THREADS:
        return zipccl_perf_number(program, "--threads", arg, 1, ZIPCCL_MAX_THREADS,
                                  &o->codec_threads);
    case KEY_RANKS_PER_NODE:
        return zipccl_perf_number(program, "--ranks-per-node", arg, 1, 65535, &o->ranks_per_node);
    case KEY_STATE_LOAD: o->state.load = arg; return 0;
    case KEY_STATE_SAVE: o->state.save = arg; return 0;
    case KEY_STATE_FREEZE: o->state.freeze = true; return 0;
    case KEY_PLAN: o->plan_path = arg; return 0;
    case KEY_TIER: return zipccl_perf_tier(program, arg, o);
    case KEY_RATIO: return zipccl_perf_ratio_value(program, arg, o);
    default: o->csv = arg; return 0;
    }
}

static const struct argp_option *option_of(int key)
{
    for (const struct argp_option *o = option_table; o->name != NULL || o->doc != NULL; o++)
        if (o->key != 0 && o->key == key)
            return o;
    return NULL;
}

static int set_op(struct parse *p, const char *arg)
{
    const char *names[ZIPCCL_NUM_OPS + 1];

    for (int i = 0; i < ZIPCCL_NUM_OPS; i++)
        names[i] = zipccl_op_name((enum zipccl_op)i);
    names[ZIPCCL_NUM_OPS] = NULL;
    if (p->op) {
        zipccl_usage_error(p->program, "perf: unexpected argument '%s' after the operation", arg);
        return -1;
    }
    p->op = true;
    if (zipccl_op_parse(arg, &p->out->op))
        return 0;
    const char *nearest = zipccl_nearest_name(arg, names);
    zipccl_usage_error(p->program,
                       "perf: '%s': expected all_gather, reduce_scatter, all_reduce, alltoall, "
                       "alltoallv, sendrecv or broadcast%s%s%s",
                       arg, nearest != NULL ? "; did you mean '" : "",
                       nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
    return -1;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct parse *p = state->input;
    const struct argp_option *option = option_of(key);
    int failed;

    if (key == ARGP_KEY_ARG)
        return set_op(p, arg) == 0 ? 0 : ECANCELED;
    if (option == NULL)
        return ARGP_ERR_UNKNOWN;
    if (p->seen[key] && key != KEY_SET) {
        if (key < 256)
            zipccl_usage_error(p->program, "perf: -%c is given twice", key);
        else
            zipccl_usage_error(p->program, "perf: --%s is given twice", option->name);
        return ECANCELED;
    }
    p->seen[key] = true;
    failed = key < 256 ? set_letter(p, key, arg) : set_word(p, key, arg);
    return failed == 0 ? 0 : ECANCELED;
}

static int check_sizes(const struct parse *p)
{
    struct zipccl_perf_options *o = p->out;
    size_t nsizes = 0;

    if (p->seen['f'] && p->seen['i'])
        return zipccl_usage_error(p->program, "perf: -f and -i exclude each other");
    if (!p->seen['b'])
        o->min_bytes =
            p->seen['e'] && o->max_bytes < (32u << 20) ? o->max_bytes : UINT64_C(32) << 20;
    if (!p->seen['e'])
        o->max_bytes = o->min_bytes;
    if (o->min_bytes > o->max_bytes)
        return zipccl_usage_error(p->program, "perf: -b is more than -e");
    for (uint64_t s = o->min_bytes; s != 0; s = zipccl_perf_next_size(o, s))
        if (++nsizes > MAX_SIZES)
            return zipccl_usage_error(p->program, "perf: more than %d sizes from -b to -e",
                                      MAX_SIZES);
    return ZIPCCL_EXIT_OK;
}

/* The mode that a pinned strategy belongs to. */
static enum zipccl_perf_mode mode_of(const char *strategy)
{
    if (strcmp(strategy, "native") == 0)
        return ZIPCCL_PERF_NATIVE;
    return zipccl_strategy_find(strategy)->compressed ? ZIPCCL_PERF_COMPRESSED : ZIPCCL_PERF_RAW;
}

/* What a plan says itself. */
static int check_plan_file(const struct parse *p)
{
    static const int keys[] = {'b', 'e',          'f',         'i',        'd',      'o',
                               'r', KEY_STRATEGY, KEY_NCHUNKS, KEY_EFFORT, KEY_CLASS};

    if (p->out->plan_path == NULL)
        return ZIPCCL_EXIT_OK;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (p->seen[keys[i]])
            return zipccl_usage_error(p->program, "perf: --%s beside --plan, which says it itself",
                                      option_of(keys[i])->name);
    if (p->out->on == ZIPCCL_ON_SIM)
        return zipccl_usage_error(p->program, "perf: --plan is of real ranks, not of --on sim");
    return ZIPCCL_EXIT_OK;
}

static int check_plans(const struct parse *p)
{
    struct zipccl_perf_options *o = p->out;

    if (o->nchunks > 0 && o->strategy == NULL)
        return zipccl_usage_error(p->program, "perf: --nchunks is of a --strategy, which is not "
                                              "given");
    if (o->nsets > 0 && o->cluster == NULL)
        return zipccl_usage_error(p->program, "perf: --set is of a --cluster, which is not given");
    if (o->cluster_dir != NULL && o->cluster == NULL)
        return zipccl_usage_error(p->program, "perf: --cluster-dir without --cluster");
    if (o->strategy != NULL && p->seen[KEY_MODE] && !o->modes[mode_of(o->strategy)])
        return zipccl_usage_error(p->program,
                                  "perf: --strategy '%s' is of --mode %s, which is not run",
                                  o->strategy, zipccl_perf_mode_names[mode_of(o->strategy)]);
    if (!p->seen[KEY_MODE] && o->plan_path == NULL)
        o->modes[o->strategy != NULL ? mode_of(o->strategy) : ZIPCCL_PERF_ADAPTIVE] = true;
    return ZIPCCL_EXIT_OK;
}

static int check_state(const struct parse *p)
{
    const struct zipccl_perf_options *o = p->out;
    const char *option = o->state.load != NULL   ? "load"
                         : o->state.save != NULL ? "save"
                         : o->state.freeze       ? "freeze"
                                                 : NULL;

    if (option == NULL)
        return ZIPCCL_EXIT_OK;
    if (o->on == ZIPCCL_ON_SIM)
        return zipccl_usage_error(p->program, "perf: --state-%s is of real ranks, not of --on sim",
                                  option);
    if (!o->modes[ZIPCCL_PERF_ADAPTIVE])
        return zipccl_usage_error(
            p->program, "perf: --state-%s is of --mode adaptive, which is not run", option);
    if (o->capacity_class != ZIPCCL_CLASS_LEARN)
        return zipccl_usage_error(p->program, "perf: --state-%s: with --class %s nothing is learnt",
                                  option, zipccl_class_name((int)o->capacity_class));
    if (o->state.save != NULL && o->state.freeze)
        return zipccl_usage_error(p->program, "perf: with --state-freeze nothing is learnt that "
                                              "--state-save could save");
    return ZIPCCL_EXIT_OK;
}

static int check(const struct parse *p)
{
    struct zipccl_perf_options *o = p->out;
    bool reduces = zipccl_is_reduction(o->op);

    if (!p->op)
        return zipccl_usage_error(p->program, "perf: name an operation; 'zipccl perf --help' lists "
                                              "them");
    if (p->seen['o'] && !reduces)
        return zipccl_usage_error(p->program, "perf: -o is of reductions, %s reduces nothing",
                                  zipccl_op_name(o->op));
    if (p->seen['r'] && o->op != ZIPCCL_BROADCAST)
        return zipccl_usage_error(p->program, "perf: -r is of broadcast, %s has no root",
                                  zipccl_op_name(o->op));
    if (p->seen['K'] && o->all_iterations && o->json == NULL)
        return zipccl_usage_error(p->program, "perf: -K 1 is of the JSON, which -J asks for");
    if (o->on != ZIPCCL_ON_SIM && (p->seen[KEY_TIER] || p->seen[KEY_RATIO]))
        return zipccl_usage_error(p->program, "perf: --%s is of --on sim, which is not given",
                                  p->seen[KEY_TIER] ? "tier" : "ratio");
    if (o->gate != ZIPCCL_GATE_OFF && o->on != ZIPCCL_ON_NCCL)
        return zipccl_usage_error(p->program, "perf: --gate is of --on nccl, which is not given");
    for (size_t d = 0; d < o->ndtypes; d++)
        if (o->unalign % zipccl_dtype_size(o->dtypes[d]) != 0)
            return zipccl_usage_error(p->program,
                                      "perf: -u %u is no multiple of the %zu bytes of %s: elements "
                                      "are aligned",
                                      o->unalign, zipccl_dtype_size(o->dtypes[d]),
                                      zipccl_dtype_name(o->dtypes[d]));
    int code = check_plan_file(p);

    if (code == ZIPCCL_EXIT_OK)
        code = check_sizes(p);
    if (code == ZIPCCL_EXIT_OK)
        code = check_plans(p);
    return code != ZIPCCL_EXIT_OK ? code : check_state(p);
}

int zipccl_perf_parse(const char *program, int argc, char **argv, struct zipccl_perf_options *out,
                      bool *helped)
{
    static const struct argp argp = {option_table, parse_option, "OP", doc, NULL, NULL, NULL};
    struct parse p = {.program = program, .out = out};

    *out = (struct zipccl_perf_options){.factor = 2,
                                        .dtypes = {ZIPCCL_BFLOAT16},
                                        .ndtypes = 1,
                                        .redops = {ZIPCCL_SUM},
                                        .nredops = 1,
                                        .iters = 20,
                                        .warmup = 5,
                                        .agg_iters = 1,
                                        .cycles = 1,
                                        .check_iters = 1,
                                        .codec_threads = 1,
                                        .timeout_s = 60,
                                        .capacity_class = ZIPCCL_CLASS_LEARN,
                                        .input = "gauss",
                                        .average = ZIPCCL_AVERAGE_MAX,
                                        .min_bw = -1};
    int code = zipccl_parse_options(&argp, argc, argv, program, "zipccl perf", &p, helped);
    if (code != ZIPCCL_EXIT_OK || *helped)
        return code;
    out->given.check = p.seen['c'];
    out->given.warmup = p.seen['w'];
    out->given.iters = p.seen['n'];
    out->given.threads = p.seen['t'];
    out->given.on = p.seen[KEY_ON];
    out->given.input = p.seen[KEY_INPUT];
    code = check(&p);
    if (code == ZIPCCL_EXIT_OK && zipccl_perf_environment(program, out) != 0)
        code = ZIPCCL_EXIT_USAGE;
    return code;
}

uint64_t zipccl_perf_next_size(const struct zipccl_perf_options *o, uint64_t nbytes)
{
    uint64_t next = o->step_bytes != 0 ? nbytes + o->step_bytes : nbytes * o->factor;

    return next <= o->max_bytes ? next : 0;
}

uint32_t zipccl_perf_colour(const struct zipccl_perf_options *o, uint32_t rank)
{
    switch (o->split) {
    case ZIPCCL_SPLIT_AND: return rank & o->split_by;
    case ZIPCCL_SPLIT_OR: return rank | o->split_by;
    case ZIPCCL_SPLIT_MOD: return rank % o->split_by;
    case ZIPCCL_SPLIT_DIV: return rank / o->split_by;
    default: return 0;
    }
}
