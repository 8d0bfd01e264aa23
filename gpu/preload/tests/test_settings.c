/*
 * test_settings.c - the variables are read as documented, and nonsense is refused
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "gpu/preload/rates.h"
#include "gpu/preload/settings.h"
#include "gpu/preload/tests/expect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *given[16]; /* name, value, name, value */

static const char *look_up(const char *name)
{
    for (int i = 0; given[i] != NULL; i += 2)
        if (strcmp(given[i], name) == 0)
            return given[i + 1];
    return NULL;
}

/* Read with up to three variables. */
static bool read_with(struct zipccl_shim_settings *s, char *problem, const char *a, const char *x,
                      const char *b, const char *y)
{
    memset(given, 0, sizeof given);
    given[0] = a;
    given[1] = x;
    given[2] = b;
    given[3] = y;
    return zipccl_shim_settings_read(look_up, s, problem, 256);
}

static void test_values(void)
{
    struct zipccl_shim_settings s;
    char problem[256];

    EXPECT(read_with(&s, problem, NULL, NULL, NULL, NULL));
    EXPECT(s.mode == ZIPCCL_SHIM_OFF && s.min_bytes == 1 << 20 && s.rank == -1 && !s.stats);
    EXPECT(s.compress[ZIPCCL_SHIM_ALL_GATHER] && s.compress[ZIPCCL_SHIM_ALLTOALLV] &&
           s.compress[ZIPCCL_SHIM_BROADCAST] && !s.compress[ZIPCCL_SHIM_ALL_REDUCE] &&
           !s.compress[ZIPCCL_SHIM_REDUCE_SCATTER] && !s.compress[ZIPCCL_SHIM_REDUCE]);
    EXPECT(read_with(&s, problem, "ZIPCCL_MODE", "on", "ZIPCCL_REDUCTIONS", "reduce_scatter"));
    EXPECT(s.mode == ZIPCCL_SHIM_ON && s.compress[ZIPCCL_SHIM_REDUCE_SCATTER] &&
           !s.compress[ZIPCCL_SHIM_ALL_REDUCE] && s.compress[ZIPCCL_SHIM_ALL_GATHER] && s.stats);
    EXPECT(read_with(&s, problem, "ZIPCCL_OPS", "sendrecv", "ZIPCCL_MIN_BYTES", "64K"));
    EXPECT(s.compress[ZIPCCL_SHIM_ALLTOALLV] && !s.compress[ZIPCCL_SHIM_ALL_GATHER] &&
           s.min_bytes == 65536);
    EXPECT(read_with(&s, problem, "ZIPCCL_GROUPS", "tp*,!size=8,ranks=0-7:16,!ranks=3",
                     "ZIPCCL_MEMORY", "1"));
    EXPECT(s.memory_bytes == 1);
    EXPECT(read_with(&s, problem, "OMPI_COMM_WORLD_RANK", "3", "OMPI_COMM_WORLD_SIZE", "8"));
    EXPECT(s.rank == 3 && s.world == 8);
}

static void test_refused(void)
{
    static const char *const bad[][2] = {{"ZIPCCL_MODE", "yes"},
                                         {"ZIPCCL_OPS", "all_gather,gather"},
                                         {"ZIPCCL_OPS", "allgather"},
                                         {"ZIPCCL_OPS", "none,all_gather"},
                                         {"ZIPCCL_REDUCTIONS", "all_gather"},
                                         {"ZIPCCL_MIN_BYTES", "1X"},
                                         {"ZIPCCL_MIN_BYTES", "-1"},
                                         {"ZIPCCL_MEMORY", "99999999999G"},
                                         {"ZIPCCL_MEMORY", "0"},
                                         {"ZIPCCL_GROUPS", "size=abc"},
                                         {"ZIPCCL_GROUPS", "tp*,!size="},
                                         {"ZIPCCL_GROUPS", "size=8x"},
                                         {"ZIPCCL_GROUPS", "ranks=x-y"},
                                         {"ZIPCCL_GROUPS", "ranks=0-7:,pp"},
                                         {"ZIPCCL_GROUPS", "ranks=7-0"},
                                         {"ZIPCCL_GROUPS", "ranks=3-"},
                                         {"ZIPCCL_VERIFY", "1/100"},
                                         {"ZIPCCL_VERIFY_ACTION", "warn"},
                                         {"ZIPCCL_CONTROL_EVERY", "0"},
                                         {"ZIPCCL_STATS", "yes"},
                                         {"ZIPCCL_CHOOSE", "never"},
                                         {"ZIPCCL_GATE", "on"}};
    struct zipccl_shim_settings s;
    char problem[256];

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        EXPECT(!read_with(&s, problem, bad[i][0], bad[i][1], "ZIPCCL_MODE", "on"));
        EXPECT(strstr(problem, bad[i][0]) != NULL && strstr(problem, "expected") != NULL);
        EXPECT(s.mode == ZIPCCL_SHIM_OFF);
    }
}

static void test_digest(void)
{
    struct zipccl_shim_settings a, b;
    char problem[256];

    EXPECT(read_with(&a, problem, "ZIPCCL_MODE", "on", NULL, NULL));
    EXPECT(read_with(&b, problem, "ZIPCCL_MODE", "on", "ZIPCCL_STATS_FILE", "x"));
    EXPECT(zipccl_shim_settings_digest(&a) == zipccl_shim_settings_digest(&b));
    EXPECT(read_with(&b, problem, "ZIPCCL_MODE", "on", "ZIPCCL_GATE", "capture"));
    EXPECT(a.gate == ZIPCCL_GATE_OFF && b.gate == ZIPCCL_GATE_CAPTURE);
    EXPECT(zipccl_shim_settings_digest(&a) != zipccl_shim_settings_digest(&b));
    EXPECT(read_with(&b, problem, "ZIPCCL_MODE", "on", "ZIPCCL_MIN_BYTES", "2M"));
    EXPECT(zipccl_shim_settings_digest(&a) != zipccl_shim_settings_digest(&b));
}

static void test_groups(void)
{
    const int ranks[] = {0, 8, 16};

    EXPECT(zipccl_shim_group_selected("", "", NULL, 4));
    EXPECT(zipccl_shim_group_selected("dp*", "dp_group", NULL, 4));
    EXPECT(!zipccl_shim_group_selected("dp*", "tp", NULL, 4));
    EXPECT(zipccl_shim_group_selected("d?_*p", "dp_group", NULL, 4));
    EXPECT(!zipccl_shim_group_selected("dp*", "", NULL, 4));
    EXPECT(zipccl_shim_group_selected("!tp", "dp", NULL, 4));
    EXPECT(!zipccl_shim_group_selected("!tp", "tp", NULL, 4));
    EXPECT(zipccl_shim_group_selected("tp,size=3", "", ranks, 3));
    EXPECT(!zipccl_shim_group_selected("size=4", "", ranks, 3));
    EXPECT(zipccl_shim_group_selected("ranks=0-8:16", "", ranks, 3));
    EXPECT(!zipccl_shim_group_selected("ranks=0-8", "", ranks, 3));
    EXPECT(!zipccl_shim_group_selected("ranks=0-99", "", NULL, 3));
    EXPECT(!zipccl_shim_group_selected("*,!size=3", "dp", ranks, 3));
}

/* Which ops the two variables select; all others are not. */
static void test_ops(void)
{
    static const struct {
        const char *ops, *reductions, *selected;
    } rows[] = {
        {NULL, NULL, "all_gather,alltoall,sendrecv,broadcast"},
        {NULL, "all_reduce", "all_gather,alltoall,sendrecv,broadcast,all_reduce"},
        {"all_gather", NULL, "all_gather"},
        {"all_reduce", NULL, "all_reduce"},
        {"all_gather,reduce_scatter", NULL, "all_gather,reduce_scatter"},
        {"all_gather", "reduce_scatter", "all_gather,reduce_scatter"},
        {"all_reduce", "reduce_scatter", "reduce_scatter,all_reduce"},
        {"none", NULL, "none"},
        {"none", "all_reduce", "all_reduce"},
        {"alltoallv", NULL, "sendrecv"},
    };
    struct zipccl_shim_settings s;
    char problem[256], text[128];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        EXPECT(read_with(&s, problem, "ZIPCCL_OPS", rows[i].ops, "ZIPCCL_REDUCTIONS",
                         rows[i].reductions));
        zipccl_shim_ops_text(&s, text, sizeof text);
        if (strcmp(text, rows[i].selected) != 0) {
            fprintf(stderr, "row %zu: \"%s\", expected \"%s\"\n", i, text, rows[i].selected);
            failures++;
        }
    }
}

#define SLOW "gpu/preload/tests/slow.txt"

/* Read SLOW with one line more. */
static bool rates_of(const char *more, char *problem)
{
    char path[] = "/tmp/zipccl-rates-XXXXXX", text[4096];
    FILE *in = fopen(SLOW, "r"), *out;
    size_t n = in != NULL ? fread(text, 1, sizeof text, in) : 0;
    int file = mkstemp(path);
    bool ok;

    out = file >= 0 ? fdopen(file, "w") : NULL;
    if (n == 0 || n == sizeof text || out == NULL || fwrite(text, 1, n, out) != n ||
        fputs(more, out) < 0 || fclose(out) != 0 || fclose(in) != 0)
        exit(2);
    ok = zipccl_shim_rates_read(path, problem, 1024);
    (void)remove(path);
    return ok;
}

static void test_rates(void)
{
    char problem[1024], longer[700], folder[] = "/tmp/zipccl-fifo-XXXXXX", fifo[64];
    struct zipccl_cost_params params;
    const char *source;

    EXPECT(zipccl_shim_rates_read("", problem, sizeof problem));
    zipccl_shim_rates(&params, &source);
    EXPECT(params.nic_Bps == 48e9 && strstr(source, "assumed") != NULL);
    EXPECT(zipccl_shim_rates_read(SLOW, problem, sizeof problem));
    zipccl_shim_rates(&params, &source);
    EXPECT(params.nic_Bps == 3e9 && params.nics_per_node == 1 && params.copy_Bps == 1.675e12);
    EXPECT(strstr(source, "of slow, from " SLOW) != NULL);
    EXPECT(rates_of("nic.burst\t1MB\tfor tests\n", problem));
    EXPECT(!rates_of("nic.burst\t48\tfor tests\n", problem) &&
           strstr(problem, "nic.burst") != NULL && strstr(problem, "ZIPCCL_CLUSTER") != NULL);
    EXPECT(!rates_of("nic.burst 1MB\n", problem) && strstr(problem, "line 24") != NULL);
    EXPECT(!rates_of("nic\t1MB\tx\n", problem) && strstr(problem, "unknown key") != NULL);
    EXPECT(!rates_of("nodes\t2\tx\n", problem) && strstr(problem, "twice") != NULL);
    (void)snprintf(longer, sizeof longer, "#%0600d\n", 0);
    EXPECT(!rates_of(longer, problem) && strstr(problem, "line 24") != NULL);
    EXPECT(!zipccl_shim_rates_read("/nowhere/rates", problem, sizeof problem));
    EXPECT(!zipccl_shim_rates_read("nowhere", problem, sizeof problem));
    /* Nobody writes into it, and nobody waits for that. */
    if (mkdtemp(folder) == NULL)
        exit(2);
    (void)snprintf(fifo, sizeof fifo, "%s/fifo", folder);
    EXPECT(mkfifo(fifo, 0600) == 0);
    EXPECT(!zipccl_shim_rates_read(fifo, problem, sizeof problem) &&
           strstr(problem, "expected a regular file") != NULL);
    (void)remove(fifo);
    (void)remove(folder);
}

int main(void)
{
    test_values();
    test_refused();
    test_digest();
    test_groups();
    test_ops();
    test_rates();
    return failures != 0;
}
