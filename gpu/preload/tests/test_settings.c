/*
 * test_settings.c - the variables are read as documented, and nonsense is refused
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/rates.h"
#include "gpu/preload/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

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

static bool rates_of(const char *text, char *problem)
{
    char path[] = "/tmp/zipccl-rates-XXXXXX";
    int file = mkstemp(path);
    FILE *out = file >= 0 ? fdopen(file, "w") : NULL;
    bool ok;

    if (out == NULL || fputs(text, out) < 0 || fclose(out) != 0)
        exit(2);
    ok = zipccl_shim_rates_read(path, problem, 1024);
    (void)remove(path);
    return ok;
}

static void test_rates(void)
{
    struct zipccl_cost_params params;
    const char *source;
    char problem[1024], longer[400];

    EXPECT(zipccl_shim_rates_read("", problem, sizeof problem));
    zipccl_shim_rates(&params, &source);
    EXPECT(params.nic_Bps == 48e9 && strstr(source, "assumed") != NULL);
    EXPECT(rates_of("# a comment\n\nnic_Bps 12.5e9\nnics_per_node 1\n", problem));
    zipccl_shim_rates(&params, &source);
    EXPECT(params.nic_Bps == 12.5e9 && params.nics_per_node == 1);
    EXPECT(strstr(source, "assumed") == NULL);
    EXPECT(!rates_of("nic_Bps 48GBps\n", problem) && strstr(problem, "line 1") != NULL);
    EXPECT(!rates_of("channels 4294967296\n", problem) && strstr(problem, "whole") != NULL);
    EXPECT(!rates_of("channels 1.5\n", problem) && strstr(problem, "line 1") != NULL);
    (void)snprintf(longer, sizeof longer, "nic_Bps 1\n#%0300d\n", 0);
    EXPECT(!rates_of(longer, problem) && strstr(problem, "line 2 has more bytes") != NULL);
    EXPECT(!rates_of("nic_Bps\n", problem));
    EXPECT(!rates_of("nic_Bps nan\n", problem));
    EXPECT(!rates_of("# x\nnic 1\n", problem) && strstr(problem, "line 2") != NULL);
    EXPECT(!zipccl_shim_rates_read("/nowhere/rates", problem, sizeof problem));
}

int main(void)
{
    test_values();
    test_refused();
    test_digest();
    test_groups();
    test_rates();
    return failures != 0;
}
