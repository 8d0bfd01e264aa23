/*
 * test_real.c - worlds of threads, and perf on them: every op, right and without races
 *
 * A plain program, so that ThreadSanitizer can run it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/perf/perf_plan.h"
#include "experiments/perf/perf_run.h"
#include "experiments/plan/plan_file.h"
#include "experiments/replay/real_replay.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Changes of each plan; races are the same in few. */
#ifdef __SANITIZE_THREAD__
enum { NTRIES = 10 };
#else
enum { NTRIES = 80 };
#endif

static unsigned nfailures;

static void expect(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "FAILED: %s\n", what);
    nfailures++;
}

/* Every rank tells its number, and its square in the group of the odd ones. */
struct meeting {
    struct zipccl_transport *odd[8];
    atomic_uint sums[8];
};

static zipccl_status meet(struct zipccl_transport *whole, void *arg)
{
    struct meeting *m = arg;
    uint32_t mine = whole->rank, all[8];
    struct zipccl_transport *group = m->odd[whole->rank];

    ZIPCCL_TRY(zipccl_world_gather(whole, &mine, sizeof mine, all));
    for (uint32_t r = 0; r < whole->nranks; r++)
        atomic_fetch_add(&m->sums[whole->rank], all[r]);
    if (group == NULL)
        return ZIPCCL_OK;
    mine = whole->rank * whole->rank;
    ZIPCCL_TRY(zipccl_world_gather(group, &mine, sizeof mine, all));
    for (uint32_t r = 0; r < group->nranks; r++)
        atomic_fetch_add(&m->sums[whole->rank], 100 * all[r]);
    return ZIPCCL_OK;
}

static zipccl_status fail_one(struct zipccl_transport *whole, void *arg)
{
    unsigned char one = 1, all[8];

    (void)arg;
    return whole->rank == 2 ? ZIPCCL_ERR_CORRUPT : zipccl_world_gather(whole, &one, 1, all);
}

static void test_world(void)
{
    struct zipccl_world_options options = {
        .kind = ZIPCCL_WORLD_THREADS, .nthreads = 5, .ranks_per_node = 2};
    static const uint32_t odd[] = {3, 1}, twice[] = {1, 1}, beyond[] = {5};
    struct zipccl_error error = {""};
    struct meeting m = {.odd = {NULL}};
    struct zipccl_world *world = NULL;

    expect(zipccl_world_open(&options, &world, &error) == ZIPCCL_OK, "a world of threads opens");
    expect(world->nlocal == 5 && world->first == 0 && world->topology->nnodes == 3,
           "5 ranks, 2 a node, are 3 nodes");
    expect(zipccl_world_group(world, odd, 2, m.odd, &error) == ZIPCCL_OK, "a group is made");
    expect(m.odd[0] == NULL && m.odd[3]->rank == 0 && m.odd[1]->rank == 1 &&
               m.odd[1]->topology->nnodes == 2,
           "its ranks are in the order given, on their nodes");
    expect(zipccl_world_group(world, twice, 2, m.odd, &error) == ZIPCCL_ERR_ARG &&
               zipccl_world_group(world, beyond, 1, m.odd, &error) == ZIPCCL_ERR_ARG,
           "wrong groups are refused");
    expect(zipccl_world_run(world, meet, &m, &error) == ZIPCCL_OK, "a run succeeds");
    for (uint32_t r = 0; r < 5; r++)
        expect(atomic_load(&m.sums[r]) == 10 + (r % 2 ? 100 * (9 + 1) : 0), "what was told");
    expect(zipccl_world_run(world, fail_one, NULL, &error) == ZIPCCL_ERR_CORRUPT &&
               strstr(error.text, "rank 2") != NULL,
           "the rank that failed is named, and no other waits");
    zipccl_world_close(world);
    options.kind = ZIPCCL_WORLD_MPI;
    expect(zipccl_world_open(&options, &world, &error) == ZIPCCL_ERR_UNSUPPORTED,
           "a world of a kind that the program has not is refused");
}

/* Run perf with 'words' on 'nthreads' ranks; the rows are the caller's. */
static void run_perf(const char *words, uint32_t nthreads, uint32_t ranks_per_node,
                     struct zipccl_perf_result *result)
{
    struct zipccl_world_options options = {.kind = ZIPCCL_WORLD_THREADS,
                                           .nthreads = nthreads,
                                           .ranks_per_node = ranks_per_node,
                                           .timeout_s = 60};
    static struct zipccl_perf_options perf;
    struct zipccl_error error = {""};
    struct zipccl_comm_config config;
    struct zipccl_world *world;
    char text[400], *argv[40] = {(char *)"perf"}, *save = NULL;
    int argc = 1;
    bool helped;

    snprintf(text, sizeof text, "%s", words);
    for (char *w = strtok_r(text, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    zipccl_comm_config_init(&config);
    *result = (struct zipccl_perf_result){.measured = true, .on = "threads"};
    if (zipccl_perf_parse("test", argc, argv, &perf, &helped) != 0 ||
        zipccl_world_open(&options, &world, &error) != ZIPCCL_OK)
        exit(1);
    result->input = perf.input;
    if (zipccl_perf_run(&perf, world, &config.params, result, NULL, &error) != ZIPCCL_OK) {
        fprintf(stderr, "%s: %s\n", words, error.text);
        nfailures++;
    }
    zipccl_world_close(world);
}

/* Rows of one mode. */
static size_t rows_of(const struct zipccl_perf_result *result, enum zipccl_perf_mode mode,
                      bool compressed)
{
    size_t n = 0;

    for (size_t i = 0; i < result->nrows; i++)
        n += result->rows[i].mode == mode &&
             (result->rows[i].wire_bytes < result->rows[i].raw_bytes) == compressed &&
             result->rows[i].wrong == 0;
    return n;
}

/* All ops: 2 sizes, 4 modes, in place where that is. */
static void test_ops(void)
{
    for (int op = 0; op < ZIPCCL_NUM_OPS; op++) {
        struct zipccl_perf_result result;
        struct zipccl_perf_call call;
        char words[200];

        snprintf(words, sizeof words, "%s -b 1K -e 32K -f 32 -n 2 -w 0 -c 1 --mode all",
                 zipccl_op_name((enum zipccl_op)op));
        run_perf(words, 4, 2, &result);
        zipccl_perf_call_init(&call, (enum zipccl_op)op, ZIPCCL_BFLOAT16, ZIPCCL_SUM, 0, 1024, 4);
        size_t each = call.has_in_place ? 2 : 1;
        expect(result.nrows == 2 * 4 * each, "rows of every size and mode");
        expect(zipccl_perf_wrong(&result) == 0, "no element is wrong");
        expect(rows_of(&result, ZIPCCL_PERF_RAW, false) == 2 * each &&
                   rows_of(&result, ZIPCCL_PERF_NATIVE, false) == 2 * each,
               "raw modes send raw");
        expect(rows_of(&result, ZIPCCL_PERF_COMPRESSED, true) >= each,
               "compressed sends less, of the larger size at least");
        zipccl_perf_release(&result);
    }
}

static void test_types(void)
{
    struct zipccl_perf_result result;

    run_perf("all_reduce -b 1K -n 1 -w 0 -c 1 -d all -o all", 3, 0, &result);
    expect(result.nrows == 10 * 5 * 2 && zipccl_perf_wrong(&result) == 0,
           "all types but fp8, all operators, out of place and in place");
    zipccl_perf_release(&result);
    run_perf("all_gather -b 256K -n 3 -w 0 --threads 2 --class settled --mode compressed -a 1 -C 1 "
             "-K 1 -J x",
             2, 0, &result);
    zipccl_perf_release(&result);
}

static void check_steps(const struct zipccl_replay_result *r)
{
    for (int m = 0; m < ZIPCCL_NUM_STEPS; m++) {
        const struct zipccl_result_step *s = &r->steps[m];
        double parts = s->compute_s + s->codec_slow_s + s->exposed_s + s->wait_s;

        expect(s->present && s->step_s > 0 && fabs(parts - s->step_s) <= 1e-9 * s->step_s,
               "the parts of a step add up to it");
    }
    expect(r->steps[ZIPCCL_STEP_RAW].codec_s == 0 && r->steps[ZIPCCL_STEP_COMPRESSED].codec_s > 0,
           "the codec works in the compressed step alone");
}

/* Every operation, on three sets of groups and four streams, with a loop and with dependencies. */
static const char trace_text[] =
    "{\"format\":\"zipccl-trace\",\"version\":1,\"name\":\"all\",\"provenance\":\"generated\","
    "\"generator\":\"test\",\"nranks\":4,\"streams\":[\"compute\",\"a\",\"b\",\"c\"],"
    "\"groups\":[{\"name\":\"world\",\"size\":4},{\"name\":\"node\",\"size\":2},{\"name\":\"pair\","
    "\"size\":2,\"stride\":2}],\"splits\":[{\"name\":\"s\",\"counts\":[[0,4000,1,700],[512,0,8000,"
    "3],"
    "[1,2,3,4],[9000,0,0,100]]}]}\n"
    "{\"id\":1,\"kind\":\"compute\",\"duration_s\":0.0005}\n"
    "{\"kind\":\"loop_begin\",\"repeat\":2}\n"
    "{\"id\":2,\"kind\":\"collective\",\"stream\":\"a\",\"op\":\"alltoall\",\"group\":\"world\","
    "\"dtype\":\"bf16\",\"count\":20000,\"deps\":[1]}\n"
    "{\"id\":3,\"kind\":\"collective\",\"stream\":\"b\",\"op\":\"reduce_scatter\",\"group\":"
    "\"world\","
    "\"dtype\":\"bf16\",\"count\":9001,\"redop\":\"avg\"}\n"
    "{\"id\":4,\"kind\":\"compute\",\"deps\":[2,3],\"duration_s\":0.0003}\n"
    "{\"kind\":\"loop_end\"}\n"
    "{\"id\":5,\"kind\":\"collective\",\"stream\":\"b\",\"op\":\"all_gather\",\"group\":\"world\","
    "\"dtype\":\"bf16\",\"count\":20000,\"deps\":[4]}\n"
    "{\"id\":6,\"kind\":\"collective\",\"stream\":\"a\",\"op\":\"alltoallv\",\"group\":\"world\","
    "\"dtype\":\"bf16\",\"count\":9000,\"splits\":\"s\"}\n"
    "{\"id\":7,\"kind\":\"collective\",\"stream\":\"c\",\"op\":\"sendrecv\",\"group\":\"pair\","
    "\"dtype\":\"bf16\",\"count\":20000,\"pairs\":[[0,1],[1,0]]}\n"
    "{\"id\":8,\"kind\":\"collective\",\"stream\":\"c\",\"op\":\"all_reduce\",\"group\":\"node\","
    "\"dtype\":\"bf16\",\"count\":20000,\"redop\":\"sum\",\"deps\":[5]}\n"
    "{\"id\":9,\"kind\":\"collective\",\"stream\":\"c\",\"op\":\"broadcast\",\"group\":\"world\","
    "\"dtype\":\"int64\",\"count\":100,\"root\":2}\n"
    "{\"id\":10,\"kind\":\"compute\",\"ranks\":[1,3],\"deps\":[6,7,8],\"duration_s\":0.0005}\n"
    "{\"kind\":\"end\",\"events\":12}\n";

/* Every row is there, compressed ones send less, nothing is wrong, also where compute is slept. */
static void test_replay(enum zipccl_gaps gaps)
{
    char path[] = "/tmp/zipccl_test_real_XXXXXX";
    int fd = mkstemp(path);
    struct zipccl_world_options options = {
        .kind = ZIPCCL_WORLD_THREADS, .nthreads = 4, .ranks_per_node = 2, .timeout_s = 60};
    struct zipccl_comm_config config;
    struct zipccl_real_replay_options replay = {.modes = {true, true, true},
                                                .gaps = gaps,
                                                .gap_scale = 1,
                                                .steps = 1,
                                                .check = true,
                                                .codec_threads = 1,
                                                .capacity_class = ZIPCCL_CLASS_LEARN};
    struct zipccl_replay_result *r = NULL;
    struct zipccl_error error = {""};
    struct zipccl_trace *trace = NULL;
    struct zipccl_world *world = NULL;
    uint64_t wrong = 1;
    size_t coded = 0;

    zipccl_comm_config_init(&config);
    replay.params = &config.params;
    if (fd < 0 || write(fd, trace_text, strlen(trace_text)) != (ssize_t)strlen(trace_text))
        exit(1);
    close(fd);
    if (zipccl_trace_load(path, &trace, &error) != ZIPCCL_OK ||
        zipccl_world_open(&options, &world, &error) != ZIPCCL_OK ||
        zipccl_real_replay(trace, &replay, world, &r, &wrong, &error) != ZIPCCL_OK) {
        fprintf(stderr, "FAILED: replay of %s: %s\n", path, error.text);
        exit(1);
    }
    unlink(path);
    expect(r->measured && r->nrows == 7 && r->nodes == 2 && wrong == 0, "7 rows, nothing wrong");
    check_steps(r);
    expect(gaps == ZIPCCL_GAPS_SKIP || r->steps[ZIPCCL_STEP_RAW].compute_s > 1e-3,
           "ranks compute as long as the trace says");
    for (size_t i = 0; i < r->nrows; i++) {
        const struct zipccl_result_row *row = &r->rows[i];

        coded += strncmp(row->strategy_compressed, "fixed", 5) == 0 ||
                 strncmp(row->strategy_compressed, "exact", 5) == 0;
        expect(row->calls > 0 && row->time_raw_s > 0 && row->strategy_raw[0] != '\0' &&
                   row->wire_bytes <= row->raw_bytes * 1.001,
               "a row has calls, times and names");
    }
    expect(coded >= 5, "rows of bf16 have compressed plans");
    zipccl_replay_result_destroy(r);
    zipccl_world_close(world);
    options.nthreads = 3;
    expect(zipccl_world_open(&options, &world, &error) == ZIPCCL_OK &&
               zipccl_real_replay(trace, &replay, world, &r, &wrong, &error) == ZIPCCL_ERR_INPUT &&
               strstr(error.text, "4 ranks, but 3 are there") != NULL,
           "another number of ranks is refused");
    zipccl_world_close(world);
    zipccl_trace_destroy(trace);
}

/* A plan of 4 ranks on 2 nodes as text, which the caller frees; NULL if there is none. */
static char *plan_text(enum zipccl_op op, const struct zipccl_strategy *strategy,
                       struct zipccl_plan **plan)
{
    struct zipccl_call call = {
        .op = op, .dtype = ZIPCCL_BFLOAT16, .count = 7 * 5000, .root = 1, .has_native = true};
    struct zipccl_topology *topology = NULL;
    struct zipccl_error error = {""};
    char *text = NULL;
    size_t nbytes;
    FILE *out;

    call.root = op == ZIPCCL_BROADCAST ? 1 : 0;
    if (!strategy->serves(&call) || zipccl_topology_create_even(2, 2, &topology) != ZIPCCL_OK)
        return NULL;
    if (strategy->build(&call, topology, 1, 3, ZIPCCL_CLASS_SETTLED, 1 << 24, plan) == ZIPCCL_OK) {
        out = open_memstream(&text, &nbytes);
        expect(out != NULL && zipccl_plan_file_write(*plan, 2, out, &error) == ZIPCCL_OK,
               "a plan is written");
        fclose(out);
    }
    zipccl_topology_destroy(topology);
    return text;
}

/* Perf of 'plan' on 4 threads: its rows, and whether nothing is wrong. */
static bool run_plan(const struct zipccl_plan *plan, struct zipccl_world *world, size_t *nrows,
                     struct zipccl_error *error)
{
    static struct zipccl_perf_options perf;
    struct zipccl_perf_result result = {.measured = true, .on = "threads", .input = "gauss"};
    char *argv[] = {(char *)"perf", (char *)zipccl_op_name((enum zipccl_op)plan->op),
                    (char *)"-n",   (char *)"1",
                    (char *)"-w",   (char *)"0",
                    (char *)"-q",   NULL};
    struct zipccl_comm_config config;
    bool helped, right;

    zipccl_comm_config_init(&config);
    if (zipccl_perf_parse("test", 7, argv, &perf, &helped) != 0)
        exit(1);
    perf.plan_path = "test";
    perf.plan = plan;
    perf.plan_nodes = 2;
    memset(perf.modes, 0, sizeof perf.modes);
    perf.modes[zipccl_perf_plan_mode(plan)] = true;
    perf.dtypes[0] = (enum zipccl_dtype)plan->dtype;
    perf.redops[0] = (enum zipccl_redop)plan->redop;
    perf.root = plan->root;
    right = zipccl_perf_run(&perf, world, &config.params, &result, NULL, error) == ZIPCCL_OK &&
            zipccl_perf_wrong(&result) == 0;
    for (size_t i = 0; i < result.nrows; i++)
        right = right && strcmp(result.rows[i].strategy, plan->strategy) == 0 &&
                result.rows[i].nchunks == plan->nchunks;
    *nrows = result.nrows;
    zipccl_perf_release(&result);
    return right;
}

/* Every strategy's plan of every op: written, read and run, it is the same plan and right. */
static void test_plan_files(struct zipccl_world *world)
{
    size_t nplans = 0, nrows = 0;

    for (int op = 0; op < ZIPCCL_NUM_OPS; op++)
        for (size_t i = 0; zipccl_strategies[i] != NULL; i++) {
            struct zipccl_plan *plan = NULL, *read = NULL;
            struct zipccl_error error = {""};
            uint32_t nodes = 0;
            char *text = plan_text((enum zipccl_op)op, zipccl_strategies[i], &plan);

            if (text == NULL)
                continue;
            nplans++;
            if (zipccl_plan_file_parse("text", text, strlen(text), &read, &nodes, &error) !=
                    ZIPCCL_OK ||
                zipccl_plan_digest(read) != zipccl_plan_digest(plan) || nodes != 2 ||
                read->acc_bytes != plan->acc_bytes || read->tmp_bytes != plan->tmp_bytes ||
                !run_plan(read, world, &nrows, &error) || nrows == 0) {
                fprintf(stderr, "FAILED: plan %s of %s: %s\n", plan->strategy,
                        zipccl_op_name((enum zipccl_op)op), error.text);
                nfailures++;
            }
            zipccl_plan_destroy(read);
            zipccl_plan_destroy(plan);
            free(text);
        }
    expect(nplans >= 40, "there are plans of all strategies");
}

static uint32_t random_below(uint64_t *state, uint32_t n)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((*state >> 33) % n);
}

/* One number of a step, or the plan, becomes another. */
static char *change_number(const char *text, uint64_t *state)
{
    static const char *const others[] = {
        "0",    "1",  "2",   "3",    "64",   "1024", "65535", "1099511627776",
        "null", "-1", "1e3", "5000", "11667"};
    size_t n = strlen(text), from, to;
    char *out = malloc(n + 32), old[24];
    const char *other = others[random_below(state, sizeof others / sizeof *others)];
    char near[24];

    do
        from = random_below(state, (uint32_t)n);
    while (text[from] < '0' || text[from] > '9' || text[from - 1] != ' ');
    for (to = from; text[to] >= '0' && text[to] <= '9' && to - from < 20; to++)
        ;
    memcpy(old, text + from, to - from);
    old[to - from] = '\0';
    if (random_below(state, 2) == 0) {
        snprintf(near, sizeof near, "%llu",
                 strtoull(old, NULL, 10) + (random_below(state, 2) == 0 ? 1 : 64));
        other = near;
    }
    memcpy(out, text, from);
    snprintf(out + from, n + 32 - from, "%s%s", other, text + to);
    return out;
}

/* What is read and validated is right, or is refused: never a wrong element, nor a wait. */
static void fuzz_plan(struct zipccl_world *world, const char *text, uint64_t seed, int ntries,
                      size_t *naccepted)
{
    uint64_t state = seed;

    for (int i = 0; i < ntries; i++) {
        struct zipccl_perf_options options = {.plan_path = "changed", .plan_nodes = 2};
        char *changed = change_number(text, &state);
        struct zipccl_error error = {""};
        struct zipccl_plan *plan = NULL;
        bool in_place;
        uint32_t nodes;
        size_t nrows;

        if (zipccl_plan_file_parse("changed", changed, strlen(changed), &plan, &nodes, &error) ==
            ZIPCCL_OK) {
            options.plan = plan;
            if (zipccl_perf_plan_check(&options, world->topology, &in_place, &error) == ZIPCCL_OK) {
                ++*naccepted;
                if (!run_plan(plan, world, &nrows, &error)) {
                    fprintf(stderr, "FAILED: seed %llu, change %d passes and is wrong: %s\n",
                            (unsigned long long)seed, i, error.text);
                    nfailures++;
                }
            }
        }
        expect(plan != NULL || error.text[0] != '\0', "a refusal says why");
        zipccl_plan_destroy(plan);
        free(changed);
    }
}

static void refuses_plan(const char *text, const char *expected)
{
    struct zipccl_error error = {""};
    struct zipccl_plan *plan = NULL;
    uint32_t nodes;

    if (zipccl_plan_file_parse("broken", text, strlen(text), &plan, &nodes, &error) !=
            ZIPCCL_ERR_INPUT ||
        strstr(error.text, expected) == NULL) {
        fprintf(stderr, "FAILED: expected \"%s\", found \"%s\"\n", expected, error.text);
        nfailures++;
        zipccl_plan_destroy(plan);
    }
}

/* 'text' with its first 'from' replaced. */
static char *with(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    char *out = malloc(strlen(text) + strlen(to) + 1);

    if (at == NULL || out == NULL)
        exit(1);
    sprintf(out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return out;
}

static void test_broken_plans(struct zipccl_world *world)
{
    static const struct {
        const char *from, *to, *expected;
    } cases[] = {
        {"zipccl.plan_steps", "zipccl.plan", "'schema': found zipccl.plan, expected"},
        {"\"version\": 1", "\"version\": 2", "'version': found 2, expected 1"},
        {"\"count\": 35000", "\"count\": 35001", "'digest': found"},
        {"\"nranks\": 4", "\"nranks\": 4, \"more\": 1", "one is unknown or stands twice"},
        {"\"kind\": \"encode\"", "\"kind\": \"encod\"",
         "step 0: 'kind': found encod, expected one of"},
        {"\"base\": 0", "\"base\": -1", "step 0, src: 'base': found -1, expected a whole number"},
        {"\"base\": 0", "\"bas\": 0", "step 0, src: 'base': found no such key"},
        {"\"after\": [", "\"after\": [ 0 ",
         "step 0: 'after': found 0, expected an array of at most 6 earlier steps"},
        {"\"strategy\": \"", "\"strategy\": \"a name that is too long for any plan of ours, ",
         "'strategy': found another text"},
        {"{", "", "broken: not JSON at line 2, byte "},
    };
    static const struct {
        enum zipccl_op op;
        const char *strategy;
    } kinds[] = {{ZIPCCL_ALL_GATHER, "fixed two-level"}, {ZIPCCL_REDUCE_SCATTER, "fixed direct"},
                 {ZIPCCL_ALL_REDUCE, "exact two-level"}, {ZIPCCL_ALLTOALLV, "exact direct"},
                 {ZIPCCL_BROADCAST, "fixed ring"},       {ZIPCCL_ALL_GATHER, "exact split"},
                 {ZIPCCL_ALLTOALL, "raw two-level"},     {ZIPCCL_SENDRECV, "fixed direct"}};
    size_t naccepted = 0;

    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct zipccl_plan *plan = NULL;
        char *text = plan_text(kinds[k].op, zipccl_strategy_find(kinds[k].strategy), &plan),
             *free_of;

        if (text == NULL)
            exit(1);
        for (size_t i = 0; k == 0 && i < sizeof cases / sizeof *cases; i++) {
            char *broken = with(text, cases[i].from, cases[i].to);

            refuses_plan(broken, cases[i].expected);
            free(broken);
        }
        for (size_t n = 0; n + 2 < strlen(text); n += 1 + strlen(text) / 40) {
            char *cut = strndup(text, n);

            refuses_plan(cut, "broken");
            free(cut);
        }
        free_of = with(text, "\"digest\"", "\"digest\": null, \"x\"");
        refuses_plan(free_of, "found");
        free(free_of);
        char *end = strchr(strstr(text, "\"digest\""), ','), *start = strstr(text, "\"digest\"");

        memset(start, ' ', (size_t)(end - start) + 1);
        fuzz_plan(world, text, 100 + k, NTRIES, &naccepted);
        zipccl_plan_destroy(plan);
        free(text);
    }
    expect(naccepted > 0, "some changes make another plan that is right");
}

static void test_plans(void)
{
    struct zipccl_world_options options = {
        .kind = ZIPCCL_WORLD_THREADS, .nthreads = 4, .ranks_per_node = 2, .timeout_s = 20};
    struct zipccl_error error = {""};
    struct zipccl_world *world;

    if (zipccl_world_open(&options, &world, &error) != ZIPCCL_OK)
        exit(1);
    test_plan_files(world);
    test_broken_plans(world);
    zipccl_world_close(world);
}

int main(void)
{
    struct zipccl_perf_result result;

    test_world();
    test_ops();
    test_types();
    setenv("NCCL_TESTS_SPLIT", "MOD 2", 1);
    run_perf("all_reduce -b 4K -n 2 -w 0 -c 1", 4, 0, &result);
    expect(result.nrows == 2 && result.nranks == 2 && result.rows[0].nranks == 2 &&
               zipccl_perf_wrong(&result) == 0,
           "two communicators of two ranks at once");
    zipccl_perf_release(&result);
    test_replay(ZIPCCL_GAPS_SKIP);
    test_replay(ZIPCCL_GAPS_SLEEP);
    unsetenv("NCCL_TESTS_SPLIT");
    test_plans();
    printf("%u failures\n", nfailures);
    return nfailures == 0 ? 0 : 1;
}
