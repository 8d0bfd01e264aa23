/*
 * fuzz_et.c - any bytes as an execution trace of PyTorch: refused, or imported into a trace that loads
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/fuzz/fuzz_import.h"

#include <stdio.h>
#include <unistd.h>

#define COMMS "\"name\":\"record_param_comms\""

static const char *const seeds[] = {
    "{\"schema\":\"1.0.1\",\"nodes\":[{\"id\":5," COMMS
    ",\"inputs\":[[4,5,0,40,4,\"cuda:0\"],11,55,0,\"all_to_allv\",[30,10],[5,5]],"
    "\"input_types\":[\"Tensor(float)\"],\"outputs\":[]},{\"id\":6," COMMS
    ",\"inputs\":[11,0,0,\"wait\",[],[]]}]}",
    "{\"schema\":\"1.1.0\",\"nodes\":[{\"id\":1,\"name\":\"## process_group:init ##\",\"inputs\":{"
    "\"values\":[\"[{\\\"pg_name\\\": \\\"0\\\", \\\"ranks\\\": [0, 2], \\\"group_size\\\": "
    "2}]\"]}},"
    "{\"id\":5," COMMS ",\"inputs\":{\"values\":[[[4,5,0,9,4,\"cuda:0\"]],1,[\"0\",\"dp\"],0,"
    "\"send\",[],[],0,2,2],\"types\":[\"Tensor(int)\"]},\"outputs\":{\"values\":[]},\"attrs\":["
    "{\"name\":\"collective_name\",\"value\":\"allreduce\"},{\"name\":\"dtype\",\"value\":"
    "\"Half\"},{\"name\":\"in_msg_nelems\",\"value\":12}]}]}",
};

size_t zipccl_fuzz_seed(unsigned i, uint8_t *out)
{
    return zipccl_fuzz_seed_of(seeds, sizeof seeds / sizeof seeds[0], i, out);
}

/* A profile whose list is cut, and a kernel without metadata. */
static const char profile[] =
    "{\"distributedInfo\":{\"rank\":0,\"world_size\":2},\"traceEvents\":[{\"ph\":\"X\",\"cat\":"
    "\"kernel\",\"name\":\"ncclDevKernel_SendRecv(x)\",\"pid\":0,\"tid\":20,\"ts\":10,\"dur\":5,"
    "\"args\":{\"stream\":20,\"correlation\":1,\"Collective name\":\"all_to_allv\",\"dtype\":"
    "\"Float\",\"In msg nelems\":40,\"Out msg nelems\":10,\"Group size\":2,\"In split size\":"
    "\"[30, ...]\",\"Process Group Name\":\"55\"}},{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":"
    "\"ncclDevKernel_SendRecv(x)\",\"pid\":0,\"tid\":20,\"ts\":20,\"dur\":5,\"args\":{\"stream\":"
    "20,"
    "\"correlation\":2}}]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    const char *path = zipccl_fuzz_file(data, nbytes);
    char beside[80];
    const char *paths[] = {beside, path};
    FILE *file;

    zipccl_fuzz_import("pytorch-et", &path, 1, NULL);
    snprintf(beside, sizeof beside, "%s.kineto", path);
    file = fopen(beside, "wb");
    zipccl_fuzz_check(file != NULL &&
                          fwrite(profile, 1, sizeof profile - 1, file) == sizeof profile - 1 &&
                          fclose(file) == 0,
                      "no file beside");
    zipccl_fuzz_import("kineto", paths, 2, NULL);
    unlink(beside);
    return 0;
}
