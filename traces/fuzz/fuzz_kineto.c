/*
 * fuzz_kineto.c - any bytes as a profiler file: refused, or imported into a trace that loads
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/fuzz/fuzz_import.h"

#define NCCL(name, corr, ts, rest)                                                                 \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"nccl" name "\",\"ts\":" ts                        \
    ",\"dur\":5.5,\"args\":{\"stream\":9,\"correlation\":" corr rest "}}"
#define GEMM(corr, ts)                                                                             \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"ts\":" ts                                \
    ",\"dur\":2,\"args\":{\"stream\":7,\"correlation\":" corr "}},\n"
#define CALL(name, ts, corr)                                                                       \
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"" name "\",\"tid\":1,\"ts\":" ts            \
    ",\"args\":{\"correlation\":" corr "}},\n"
#define META(name, in, out, rest)                                                                  \
    ",\"Collective name\":\"" name "\",\"dtype\":\"BFloat16\",\"In msg nelems\":" in               \
    ",\"Out msg nelems\":" out ",\"Group size\":2,\"Process Group Name\":\"0\"" rest

static const char *const seeds[] = {
    "{\"distributedInfo\":{\"rank\":1,\"world_size\":4,\"pg_config\":[{\"pg_name\":\"0\",\"ranks\":"
    "[0,1]}]},\"traceEvents\":[\n" CALL("cudaLaunchKernel", "1",
                                        "1") GEMM("1", "2") CALL("cudaLaunchKernel", "2", "2")
        NCCL("AllGather", "2", "4", META("_allgather_base", "8", "16", ",\"Seq\":3")) ",\n" CALL(
            "cudaStreamWaitEvent", "3", "3") CALL("cudaLaunchKernel", "4", "4") GEMM("4", "10")
            NCCL("SendRecv", "5", "20",
                 META("all_to_allv", "8", "8",
                      ",\"In split size\":\"[1, 3]\",\"Process Group Ranks\":\"[1, "
                      "3]\"")) ",\n"
                               "{\"ph\":\"X\",\"cat\":\"cuda_sync\",\"name\":"
                               "\"Stream Wait Event\",\"ts\":3,\"args\":{\"stream\""
                               ":7,\"wait_on_stream\":9,\"correlation\":3}}]}",
    "[{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"nccl:send 0->1\",\"tid\":1,\"ts\":1,"
    "\"dur\":9,\"args\":{\"Input Dims\":[[4,2]],\"Input type\":[\"float\"]}},\n" CALL(
        "cudaLaunchKernel", "2", "2")
        NCCL("SendRecv", "2", "4", "") ",\n"
                                       "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"deep_ep::"
                                       "dispatch\",\"ts\":NaN,\"dur\":1},\n"
                                       "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"deep_ep::"
                                       "dispatch\",\"ts\":30,\"dur\":1}]",
    "{\"traceEvents\":[\n"
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"record_param_comms\",\"tid\":1,\"ts\":1,\"dur\":1,"
    "\"args\":{\"x\":1" META(
        "send", "8", "8",
        ",\"Dst Rank\":1") "}},\n"
                           "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"record_param_comms\","
                           "\"tid\":1,\"ts\":3,\"dur\":1,"
                           "\"args\":{\"x\":1" META("broadcast", "-8", "8",
                                                    ",\"Global rank start\":0,\"Global rank "
                                                    "stride\":1") "}},\n" CALL("cudaLaunchKernel",
                                                                               "5", "2")
                               NCCL("SendRecv", "2", "6", "") "]}",
};

size_t zipccl_fuzz_seed(unsigned i, uint8_t *out)
{
    return zipccl_fuzz_seed_of(seeds, sizeof seeds / sizeof seeds[0], i, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    const char *paths[] = {zipccl_fuzz_file(data, nbytes)};
    struct zipccl_import_options options;

    zipccl_fuzz_import("kineto", paths, 1, NULL);
    zipccl_import_options_init(&options);
    options.nranks = 4;
    options.dispatch_bytes = 1000;
    zipccl_fuzz_import("kineto", paths, 1, &options);
    return 0;
}
