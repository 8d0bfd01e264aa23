/*
 * fuzz_aicb.c - any bytes as a list of calls of AICB: refused, or imported into a trace that loads
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/fuzz/fuzz_import.h"

#define COLUMNS                                                                                    \
    "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,count\n"

static const char *const seeds[] = {
    "[rank0 ~ rank7]\n" COLUMNS "CommType.all_gather,CommGroup.tp_group,4,800,forward,None,None,,"
    "None,1\nCommType.reduce_scatter,CommGroup.dp_group,2,1600,step,None,None,,None,1\n"
    "CommType.epoch_end,None,None,0,,None,None,,None,1\n",
    COLUMNS "CommType.computation,None,None,((8, 2, 4), (4, 6)),forward,None,None,,1.5,1\n"
            "CommType.broadcast,CommGroup.tp_group,2,160,forward,None,1,overlap,0.25,2\n"
            "CommType.isend,CommGroup.pp_group,4,77,forward,None,None,send_next,None,1\n",
};

size_t zipccl_fuzz_seed(unsigned i, uint8_t *out)
{
    return zipccl_fuzz_seed_of(seeds, sizeof seeds / sizeof seeds[0], i, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    const char *path = zipccl_fuzz_file(data, nbytes);

    zipccl_fuzz_import("aicb", &path, 1, NULL);
    return 0;
}
