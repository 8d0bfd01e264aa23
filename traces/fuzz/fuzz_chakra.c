/*
 * fuzz_chakra.c - any bytes as a Chakra execution trace: refused, or imported into a trace that loads
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/fuzz/fuzz_import.h"

#include <string.h>

/* Protobuf: metadata "0.0.4"; an all_reduce of 64 bytes; a send to rank 1 after it, 7 us of compute. */
static const char binary[] = "\x07\x0a\x05"
                             "0.0.4"
                             "\x27\x08\x05\x12\x01"
                             "c\x18\x07\x52\x0d\x0a\x09"
                             "comm_type\x48\x00\x52\x0d\x0a\x09"
                             "comm_size\x48\x40"
                             "\x06\x08\x06\x18\x04\x38\x07"
                             "\x26\x08\x08\x18\x05\x2a\x02\x05\x06\x52\x0c\x0a\x08"
                             "comm_dst\x38\x01\x52\x0d\x0a\x09"
                             "comm_size\x48\x40";

static const char json[] =
    "{\"workload_graph\":[{\"Id\":1,\"Name\":\"a_Sum_\",\"NodeType\":7,\"comm_type\":2,"
    "\"comm_size\":96,\"runtime\":5},{\"Id\":2,\"NodeType\":4,\"data_deps\":[1,3],\"runtime\":7},"
    "{\"Id\":3,\"NodeType\":7,\"ctrlDeps\":[2],\"comm_type\":7,\"comm_size\":64,\"dtype\":\"fp32\","
    "\"is_cpu_op\":false}],\"ngpus\":4}";

size_t zipccl_fuzz_seed(unsigned i, uint8_t *out)
{
    size_t n = i == 0 ? sizeof binary - 1 : i == 1 ? sizeof json - 1 : 0;

    memcpy(out, i == 0 ? binary : json, n);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    const char *path = zipccl_fuzz_file(data, nbytes);
    struct zipccl_import_options options;

    zipccl_import_options_init(&options);
    options.nranks = 4;
    zipccl_fuzz_import("chakra", &path, 1, &options);
    return 0;
}
