/*
 * example_result.c - a replay's result made by hand, for tests of what is written about it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/tests/example_result.h"

#include <string.h>

static struct zipccl_result_row rows[ZIPCCL_EXAMPLE_ROWS] = {
    {ZIPCCL_ALLTOALL,
     "ep",
     ZIPCCL_BFLOAT16,
     524288,
     64,
     "comm",
     128,
     8590e6,
     5844e6,
     1.47,
     "captured",
     "native",
     "direct_compressed",
     "direct_compressed",
     -1,
     2.487,
     1.741,
     1.741,
     2.487,
     1.741,
     1.741,
     5844e6,
     "settled",
     1.5,
     false},
    {ZIPCCL_REDUCE_SCATTER,
     "dp",
     ZIPCCL_BFLOAT16,
     1048576,
     64,
     "comm",
     32,
     2950e6,
     2950e6,
     1.0,
     "none",
     "two_level",
     "two_level",
     "two_level",
     -1,
     0.1104,
     0.1104,
     0.1104,
     0.024,
     0.015,
     0.015,
     2950e6,
     NULL,
     0,
     false},
    {ZIPCCL_ALL_GATHER,
     "dp",
     ZIPCCL_BFLOAT16,
     1048576,
     64,
     "comm",
     32,
     2950e6,
     1980e6,
     1.49,
     "class",
     "two_level",
     "two_level_compressed",
     "two_level_compressed",
     0.12,
     0.1104,
     0.079,
     0.079,
     0.012,
     0.007,
     0.007,
     1980e6,
     "wide",
     1.25,
     true},
    {ZIPCCL_ALL_REDUCE,
     "world",
     ZIPCCL_INT32,
     1,
     64,
     "comm",
     4,
     16,
     16,
     1.0,
     "none",
     "native",
     "native",
     "native",
     -1,
     0.0003,
     0.0003,
     0.0003,
     0.00001,
     0.00001,
     0.00001,
     16,
     NULL,
     0,
     false},
};

static struct zipccl_result_note settings[] = {
    {"simulator", "SimGrid 3.32.0", "", "linked library"},
    {"host/model", "ptask_L07", "", "set in code"},
    {"seed", "1", "", "set in code"},
    {"nic.rate", "3.03e+09", "B/s", "--set"},
};

static struct zipccl_result_note assumptions[] = {
    {"codec.encode_rate", "300000000000", "B/s", "published: <250 to 600 GB/s> & scaled"},
    {"codec.sms", "16", "", "\"estimate\""},
};

static struct zipccl_result_sensitivity sensitivities[] = {
    {"nic.rate -10 %", 4.911, 4.08, 1.204, 1.43},
    {"nic.rate +10 %", 4.41, 3.73, 1.18, 1.41},
    {"ratio -0.05", 4.635, 3.95, 1.173, 1.38},
    {"codec rate x 0.5", 4.635, 3.9, 1.19, 1.41},
};

static char warnings[1][256] = {"2 samples are shorter than the message and were tiled"};

void zipccl_example_result(struct zipccl_replay_result *out)
{
    memset(out, 0, sizeof *out);
    strcpy(out->fidelity, "t1");
    strcpy(out->trace_name, "moe64");
    strcpy(out->trace_model, "16 layers, 64 experts top-2 <EP 64>, 4096 tokens/GPU");
    strcpy(out->trace_provenance, "generated");
    strcpy(out->cluster_name, "a100-8x8-200g");
    strcpy(out->cluster_line, "8 x 8 A100; NVLink 230 GB/s/GPU, NIC 24.2 GB/s/node, alpha 5 us");
    strcpy(out->codec_line, "encode 300, decode 340 GB/s/GPU on 16 of 108 SMs");
    out->nranks = 64;
    out->nodes = out->gpus_per_node = 8;
    out->nrows = ZIPCCL_EXAMPLE_ROWS;
    out->rows = rows;
    out->steps[ZIPCCL_STEP_RAW] =
        (struct zipccl_result_step){true, 4.635, 2.104, 0, 2.531, 0, 2.7158, 0, 0, 0, 0, 0, 0};
    out->steps[ZIPCCL_STEP_COMPRESSED] = (struct zipccl_result_step){
        true, 3.883, 2.104, 0.058, 1.671, 0.05, 1.9096, 0.11, 0, 0, 0, 0, 0};
    out->steps[ZIPCCL_STEP_ADAPTIVE] = (struct zipccl_result_step){
        true, 3.883, 2.104, 0.058, 1.671, 0.05, 1.9096, 0.11, 0, 0, 0, 0, 0};
    out->step_time_recorded_s = -1;
    out->comm_speedup = 1.42;
    out->end_to_end_speedup = 1.1937;
    out->exposed_comm_share = 0.546;
    out->codec_sms = 16;
    out->nsettings = sizeof settings / sizeof *settings;
    out->settings = settings;
    out->nassumptions = sizeof assumptions / sizeof *assumptions;
    out->assumptions = assumptions;
    out->nsensitivities = sizeof sensitivities / sizeof *sensitivities;
    out->sensitivities = sensitivities;
    out->nwarnings = 1;
    out->warnings = warnings;
    out->break_even_nic_Bps = 225e9;
    out->raw_match_nic_Bps = 35.6e9;
    out->raw_dtype_bytes = 16;
    strcpy(out->raw_dtypes, "int32");
    out->source_share[0] = 0.6;
    out->source_share[1] = 0.2;
    out->source_share[4] = 0.2;
    out->wall_s = 3.1;
}
