/*
 * fuzz_simai.c - any bytes as a SimAI workload: refused, or imported into a trace that loads
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/fuzz/fuzz_import.h"

static const char *const seeds[] = {
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 2 vpp: 4 ga: 2 "
    "all_gpus: 16 checkpoints: 1 2 checkpoint_initiates: 1 2 pp_comm: 4096.0\n6\n"
    "grad_gather\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tALLGATHER\t65536\t100\n"
    "embedding_layer -1 10 ALLREDUCE 4096 1 NONE 0 20 NONE 0 100\n"
    "moelayer -1 5 ALLTOALL_EP 8192 5 ALLTOALL_EP 8192 1 REDUCESCATTER_DP_EP 0 100\n"
    "embedding_layer -1 12 ALLREDUCE 4096 1 NONE 0 20 NONE 0 100\n"
    "moelayer -1 5 ALLTOALL_EP 8192 5 ALLTOALL_EP 8192 1 REDUCESCATTER_DP_EP 0 100\n"
    "optimizer1 -1 0 ALLREDUCE 4 0 NONE 0 0 NONE 0 100 test\n",
    "MICRO\n2\nmicro_test -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 65536 1\n"
    "micro_test -1 1 NONE 0 1 NONE 0 1 ALLTOALL 131072 1\n",
    "HYBRID_TRANSFORMER tp: 1 ga: 3\n3\n"
    "a -1 1 ALLGATHER 130 1 BROADCAST 64 1 ALLREDUCEALLTOALL 64 0\n"
    "a -1 1 ALLGATHER 130 1 BROADCAST 64 1 ALLREDUCEALLTOALL 64 0\n"
    "a -1 1 ALLGATHER 130 1 BROADCAST 64 1 ALLREDUCEALLTOALL 64 0\n",
};

size_t zipccl_fuzz_seed(unsigned i, uint8_t *out)
{
    return zipccl_fuzz_seed_of(seeds, sizeof seeds / sizeof seeds[0], i, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    const char *path = zipccl_fuzz_file(data, nbytes);
    struct zipccl_import_options options;

    zipccl_fuzz_import("simai", &path, 1, NULL);
    zipccl_import_options_init(&options);
    options.nranks = 16;
    options.micro_batches = 3;
    options.single_tp_as_dp = true;
    zipccl_fuzz_import("simai", &path, 1, &options);
    return 0;
}
