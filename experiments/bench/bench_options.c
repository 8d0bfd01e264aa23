/*
 * bench_options.c - parses and checks the options of zipccl codec bench
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/bench/bench_options.h"

#include "core/codec/isa.h"
#include "core/codec_mt.h"
#include "experiments/bench/plain_copy.h"
#include "experiments/program/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char program[] = "zipccl";

enum {
    KEY_INPUT = 256,
    KEY_ISA,
    KEY_CSV,
    KEY_CACHE,
    KEY_PEERS,
    MAX_SIZES = 1000,
    /* Hidden: options of nccl-tests, so that each is refused with a reason. */
    KEY_FOREIGN
};

static const struct argp_option option_table[] = {
    {NULL, 0, NULL, 0, "What (sizes are raw bytes; K, M, G are powers of 1024):", 1},
    {"minbytes", 'b', "SIZE", 0, "from this size (default 64K; a file: all of it)", 1},
    {"maxbytes", 'e', "SIZE", 0, "up to this size (default 64M, or -b if that is larger)", 1},
    {"stepfactor", 'f', "N", 0, "multiply the size by N from row to row (default 4)", 1},
    {"stepbytes", 'i', "SIZE", 0, "add SIZE from row to row instead", 1},
    {"datatype", 'd', "TYPE", 0, "bf16 (default), fp16, fp32, fp8 types, or all", 1},
    {"input", KEY_INPUT, "WHAT", 0,
     "gauss (default), mixture, zeros, bits, or FILE.safetensors: its tensors of that type, one "
     "after the other",
     1},
    {NULL, 0, NULL, 0, "How:", 2},
    {"iters", 'n', "N", 0,
     "timed repeats of everything (default 11); small sizes are called often "
     "enough in each for the clock",
     2},
    {"warmup_iters", 'w', "N", 0, "repeats before these, not timed (default 1)", 2},
    {"nthreads", 't', "N", 0,
     "threads of zipccl (default 1). With more, times are of the wall clock, memcpy stays on one "
     "thread and the peers, which have one, are left out",
     2},
    {"isa", KEY_ISA, "LIST", 0,
     "rows of zipccl: all that run here (default), best, or some of "
     "scalar,avx2,avx512",
     2},
    {"peers", KEY_PEERS, "all|none", 0, "measure zstd, lz4 and Huffman codes too (default all)", 2},
    {"cache", KEY_CACHE, "HOW", 0,
     "hot: buffers as the call before left them; cold: out of all caches before each call; "
     "size (default): cold from 64M on",
     2},
    {NULL, 0, NULL, 0, "What to write:", 3},
    {"json", 'J', "FILE", 0,
     "everything as JSON, schema zipccl.codec-bench; '-' for one of these files is standard "
     "output, where the table then is left out",
     3},
    {"csv", KEY_CSV, "FILE", 0, "the rows as CSV", 3},
    {"quiet", 'q', NULL, 0, "print no table and no progress", 3},
#define FOREIGN(name, letter)                                                                      \
    {                                                                                              \
        name, letter, "N", OPTION_HIDDEN, NULL, 4                                                  \
    }

    FOREIGN("ngpus", 'g'),
    FOREIGN("agg_iters", 'm'),
    FOREIGN("run_cycles", 'N'),
    FOREIGN("parallel_init", 'p'),
    FOREIGN("check", 'c'),
    FOREIGN("op", 'o'),
    FOREIGN("root", 'r'),
    FOREIGN("blocking", 'z'),
    FOREIGN("stream_null", 'y'),
    FOREIGN("timeout", 'T'),
    FOREIGN("cudagraph", 'G'),
    FOREIGN("report_cputime", 'C'),
    FOREIGN("average", 'a'),
    FOREIGN("local_register", 'R'),
    FOREIGN("device_implementation", 'D'),
#undef FOREIGN
    {0}};

static const char doc[] =
    "Measure the codec: ratio, speed, and that nothing is lost, beside memcpy and beside codecs of "
    "packaged libraries, in one run and on one thread."
    "\vExamples:\n"
    "  zipccl codec bench\n"
    "  zipccl codec bench -b 256K -e 256K -d all --peers none\n"
    "  zipccl codec bench --input mixture -b 1M -e 64M -f 2 --isa best -J bench.json\n"
    "  zipccl codec bench --input model.safetensors\n"
    "  zipccl codec bench --input bits -b 1M -e 1M -n 50 -w 5 --csv -\n\n"
    "Letters are those of nccl-tests; those that make no sense on a processor ("
    "-g, -o, -c, ...) are refused. Every row is decoded and compared, before and after the timing; "
    "#wrong counts elements.\n\n"
    "Exit code: 0 done, 1 an element came back wrong or the machine gave out, 2 wrong input or "
    "usage. A result file appears whole or not at all.";

struct parse {
    struct zipccl_bench_command *command;
    bool min, max, factor, step, type, isa, peers, cache, repeats, warmup, threads;
};

static int refuse_foreign(int key)
{
    switch (key) {
    case 'g':
        return zipccl_usage_error(program, "codec bench: -g is not offered: processors are "
                                           "measured, no GPU");
    case 'c':
        return zipccl_usage_error(program, "codec bench: -c is not offered: every row is checked");
    case 'a':
        return zipccl_usage_error(program, "codec bench: -a is not offered: rows show the median "
                                           "and the quartiles");
    default:
        return zipccl_usage_error(program,
                                  "codec bench: -%c of nccl-tests is not offered: no "
                                  "collective runs here",
                                  key);
    }
}

static bool twice(bool *given, const char *name)
{
    if (*given)
        zipccl_usage_error(program, "codec bench: %s is given twice", name);
    bool before = *given;
    *given = true;
    return before;
}

/* "64K" as in nccl-tests; 1 to ZIPCCL_BENCH_MAX_BYTES. */
static int set_size(const char *option, const char *text, uint64_t *out)
{
    static const char units[] = "KMG";
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    bool fine = text[0] >= '0' && text[0] <= '9' && errno == 0 && value <= ZIPCCL_BENCH_MAX_BYTES;
    const char *unit = *end != '\0' ? strchr(units, *end & ~0x20) : NULL;
    for (const char *u = units; unit && u <= unit && fine; u++) {
        value *= 1024;
        fine = value <= ZIPCCL_BENCH_MAX_BYTES;
    }
    if (!fine || value == 0 || (*end != '\0' && (!unit || end[1] != '\0'))) {
        zipccl_usage_error(program,
                           "codec bench: %s '%s': expected a size from 1 to 1G, such as "
                           "65536, 64K or 1M",
                           option, text);
        return -1;
    }
    *out = value;
    return 0;
}

static int set_count(const char *option, const char *text, unsigned least, unsigned most,
                     unsigned *out)
{
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value < least ||
        value > most) {
        zipccl_usage_error(program, "codec bench: %s '%s': expected a number from %u to %u", option,
                           text, least, most);
        return -1;
    }
    *out = (unsigned)value;
    return 0;
}

static int set_types(struct zipccl_bench_options *bench, const char *text)
{
    enum zipccl_dtype dtype;
    bench->ndtypes = 0;
    if (strcmp(text, "all") == 0) {
        static const enum zipccl_dtype order[] = {ZIPCCL_BFLOAT16, ZIPCCL_FLOAT16, ZIPCCL_FLOAT32,
                                                  ZIPCCL_FLOAT8_E4M3, ZIPCCL_FLOAT8_E5M2};
        for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
            bench->dtypes[bench->ndtypes++] = order[i];
        return 0;
    }
    if (!zipccl_dtype_parse(text, &dtype) || !zipccl_dtype_compressible(dtype)) {
        zipccl_usage_error(program,
                           "codec bench: -d '%s': expected bf16, fp16, fp32, %s, %s or "
                           "all: other types pass as they are",
                           text, zipccl_dtype_name(ZIPCCL_FLOAT8_E4M3),
                           zipccl_dtype_name(ZIPCCL_FLOAT8_E5M2));
        return -1;
    }
    bench->dtypes[bench->ndtypes++] = dtype;
    return 0;
}

static int set_input(struct zipccl_bench_command *command, const char *text)
{
    static const char *const names[] = {"gauss", "mixture", "zeros", "bits", NULL};
    static const char suffix[] = ".safetensors";
    size_t length = strlen(text);
    if (command->input) {
        zipccl_usage_error(program, "codec bench: --input is given twice");
        return -1;
    }
    command->input = text;
    for (int i = 0; names[i]; i++)
        if (strcmp(text, names[i]) == 0) {
            command->bench.input = (enum zipccl_bench_input)i;
            return 0;
        }
    command->bench.input = ZIPCCL_BENCH_FILE;
    command->bench.path = text;
    if (length > strlen(suffix) && strcmp(text + length - strlen(suffix), suffix) == 0)
        return 0;
    const char *nearest = zipccl_nearest_name(text, names);
    zipccl_usage_error(program,
                       "codec bench: --input '%s': expected gauss, mixture, zeros, bits or "
                       "a .safetensors file%s%s%s",
                       text, nearest ? "; did you mean '" : "", nearest ? nearest : "",
                       nearest ? "'?" : "");
    return -1;
}

/* One row by name; refuses what this machine cannot run and says what is missing. */
static int add_row(struct zipccl_bench_options *bench, const char *name, size_t length)
{
    for (int isa = 0; isa < ZIPCCL_NUM_ISAS; isa++) {
        const char *known = zipccl_isa_name((enum zipccl_isa)isa);
        uint32_t needs = 0;
        if (strlen(known) != length || strncmp(known, name, length) != 0)
            continue;
        bench->isa[isa] = true;
        if (zipccl_isa_usable((enum zipccl_isa)isa))
            return 0;
        if (!zipccl_isa_needs((enum zipccl_isa)isa, &needs)) {
            zipccl_usage_error(program, "codec bench: --isa: this build has no row '%s'", known);
            return -1;
        }
        needs &= ~zipccl_features_here();
        int first = 0;
        while (!(needs >> first & 1))
            first++;
        zipccl_usage_error(program, "codec bench: --isa: this machine cannot run %s: it has no %s",
                           known, zipccl_feature_name((enum zipccl_feature)first));
        return -1;
    }
    zipccl_usage_error(program,
                       "codec bench: --isa '%.*s': expected all, best, or some of "
                       "scalar,avx2,avx512",
                       (int)length, name);
    return -1;
}

static int set_rows(struct zipccl_bench_options *bench, const char *text)
{
    if (strcmp(text, "best") == 0) {
        bench->isa[zipccl_isa_best()] = true;
        return 0;
    }
    if (strcmp(text, "all") == 0) {
        for (int isa = 0; isa < ZIPCCL_NUM_ISAS; isa++)
            bench->isa[isa] = zipccl_isa_usable((enum zipccl_isa)isa);
        return 0;
    }
    for (;;) {
        size_t length = strcspn(text, ",");
        if (add_row(bench, text, length) != 0)
            return -1;
        if (text[length] == '\0')
            return 0;
        text += length + 1;
    }
}

static int set_cache(struct zipccl_bench_options *bench, const char *text)
{
    static const char *const names[] = {"size", "hot", "cold"};
    for (int i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            bench->cache = (enum zipccl_bench_cache)i;
            if (bench->cache != ZIPCCL_BENCH_COLD || zipccl_can_evict())
                return 0;
            zipccl_usage_error(program, "codec bench: --cache cold: this processor has no "
                                        "clflushopt");
            return -1;
        }
    zipccl_usage_error(program, "codec bench: --cache '%s': expected size, hot or cold", text);
    return -1;
}

static int set_peers(struct zipccl_bench_options *bench, const char *text)
{
    bench->peers = strcmp(text, "all") == 0;
    if (bench->peers || strcmp(text, "none") == 0)
        return 0;
    zipccl_usage_error(program, "codec bench: --peers '%s': expected all or none", text);
    return -1;
}

static int set_file(const char **file, const char *option, const char *path)
{
    if (*file) {
        zipccl_usage_error(program, "codec bench: %s is given twice", option);
        return -1;
    }
    *file = path;
    return 0;
}

static int set_option(struct parse *p, int key, const char *arg)
{
    struct zipccl_bench_options *bench = &p->command->bench;
    switch (key) {
    case 'b': return twice(&p->min, "-b") ? -1 : set_size("-b", arg, &bench->min_bytes);
    case 'e': return twice(&p->max, "-e") ? -1 : set_size("-e", arg, &bench->max_bytes);
    case 'i': return twice(&p->step, "-i") ? -1 : set_size("-i", arg, &bench->step_bytes);
    case 'f': return twice(&p->factor, "-f") ? -1 : set_count("-f", arg, 2, 1024, &bench->factor);
    case 'n':
        return twice(&p->repeats, "-n")
                   ? -1
                   : set_count("-n", arg, 1, ZIPCCL_BENCH_MAX_REPEATS, &bench->repeats);
    case 'w': return twice(&p->warmup, "-w") ? -1 : set_count("-w", arg, 0, 1000, &bench->warmup);
    case 't':
        return twice(&p->threads, "-t")
                   ? -1
                   : set_count("-t", arg, 1, ZIPCCL_MAX_THREADS, &bench->threads);
    case 'd': return twice(&p->type, "-d") ? -1 : set_types(bench, arg);
    case KEY_INPUT: return set_input(p->command, arg);
    case KEY_ISA: return twice(&p->isa, "--isa") ? -1 : set_rows(bench, arg);
    case KEY_CACHE: return twice(&p->cache, "--cache") ? -1 : set_cache(bench, arg);
    case KEY_PEERS: return twice(&p->peers, "--peers") ? -1 : set_peers(bench, arg);
    case 'J': return set_file(&p->command->json, "-J", arg);
    case KEY_CSV: return set_file(&p->command->csv, "--csv", arg);
    case 'q': p->command->quiet = true; return 0;
    default: return refuse_foreign(key) ? -1 : 0;
    }
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    for (const struct argp_option *o = option_table; o->name || o->doc; o++)
        if (o->key != 0 && o->key == key)
            return set_option(state->input, key, arg) == 0 ? 0 : ECANCELED;
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    zipccl_usage_error(program, "codec bench: unexpected argument '%s'; a file goes to --input",
                       arg);
    return ECANCELED;
}

/* Sizes that were not given, and whether the given ones make sense. */
static int check_sizes(const struct parse *p)
{
    struct zipccl_bench_options *bench = &p->command->bench;
    size_t largest = 1, nsizes = 0;
    if (p->factor && p->step)
        return zipccl_usage_error(program, "codec bench: -f and -i exclude each other");
    if (bench->input == ZIPCCL_BENCH_FILE && !p->min && !p->max) {
        if (p->factor || p->step)
            return zipccl_usage_error(program, "codec bench: a file is measured whole without -b "
                                               "and -e, so -f and -i mean nothing");
        return ZIPCCL_EXIT_OK;
    }
    if (!p->min)
        bench->min_bytes = p->max && bench->max_bytes < 65536 ? bench->max_bytes : 65536;
    if (!p->max)
        bench->max_bytes = bench->min_bytes > (64u << 20) ? bench->min_bytes : 64u << 20;
    for (size_t t = 0; t < bench->ndtypes; t++)
        if (zipccl_dtype_size(bench->dtypes[t]) > largest)
            largest = zipccl_dtype_size(bench->dtypes[t]);
    if (bench->min_bytes < largest)
        return zipccl_usage_error(program, "codec bench: -b is less than one element of %zu bytes",
                                  largest);
    if (bench->min_bytes > bench->max_bytes)
        return zipccl_usage_error(program, "codec bench: -b is more than -e");
    for (uint64_t s = bench->min_bytes; s <= bench->max_bytes; nsizes++)
        s = bench->step_bytes ? s + bench->step_bytes : s * bench->factor;
    if (nsizes > MAX_SIZES)
        return zipccl_usage_error(program,
                                  "codec bench: %zu sizes from -b to -e, expected at most "
                                  "%d",
                                  nsizes, MAX_SIZES);
    return ZIPCCL_EXIT_OK;
}

int zipccl_bench_parse(int argc, char **argv, struct zipccl_bench_command *out, bool *helped)
{
    static const struct argp argp = {option_table, parse_option, "", doc, NULL, NULL, NULL};
    struct parse p = {.command = out};
    *out = (struct zipccl_bench_command){.bench = {.factor = 4,
                                                   .repeats = 11,
                                                   .warmup = 1,
                                                   .threads = 1,
                                                   .dtypes = {ZIPCCL_BFLOAT16},
                                                   .ndtypes = 1,
                                                   .peers = true}};
    int code = zipccl_parse_options(&argp, argc, argv, program, "zipccl codec bench", &p, helped);
    if (code != ZIPCCL_EXIT_OK || *helped)
        return code;
    if (!p.isa)
        set_rows(&out->bench, "all");
    if (!out->input)
        out->input = "gauss";
    if (out->bench.threads > 1 && p.peers && out->bench.peers)
        return zipccl_usage_error(program,
                                  "codec bench: --peers all needs one thread, -t asks "
                                  "for %u",
                                  out->bench.threads);
    out->bench.peers &= out->bench.threads == 1;
    return check_sizes(&p);
}
