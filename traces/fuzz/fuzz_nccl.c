/*
 * fuzz_nccl.c - any bytes as a debug log of NCCL: refused, or imported into a trace that loads
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/fuzz/fuzz_import.h"

#define WHO(r) "n:" r ":7 [" r "] NCCL INFO "
#define INIT(r, n)                                                                                 \
    WHO(r) "ncclCommInitRank comm 0x1" r " rank " r " nranks " n " commId 0xa - Init COMPLETE\n"
#define CALL(r, name, number, count, root)                                                         \
    WHO(r)                                                                                         \
    name ": opCount " number " sendbuff 0x1 recvbuff 0x2 count " count                             \
         " datatype 9 op 0 root " root " comm 0x1" r " [nranks=3] stream 0x5\n"

static const char *const seeds[] = {
    INIT("0", "3") INIT("1", "3") INIT("2", "3") CALL("0", "AllGather", "a", "8", "0")
        CALL("1", "AllGather", "a", "8", "0") CALL("2", "AllGather", "a", "8", "0")
            CALL("0", "Broadcast", "b", "5", "1") CALL("1", "Broadcast", "b", "5", "1")
                CALL("2", "Broadcast", "b", "5", "1"),
    INIT("0", "3") CALL("0", "Send", "1", "4", "1") CALL("0", "Send", "1", "5", "2")
        CALL("0", "Recv", "1", "6", "1") CALL("0", "Recv", "1", "7", "2")
            CALL("0", "ReduceScatter", "2", "9", "0") CALL("0", "Reduce", "3", "9", "0"),
};

size_t zipccl_fuzz_seed(unsigned i, uint8_t *out)
{
    return zipccl_fuzz_seed_of(seeds, sizeof seeds / sizeof seeds[0], i, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    const char *path = zipccl_fuzz_file(data, nbytes);

    zipccl_fuzz_import("nccl", &path, 1, NULL);
    return 0;
}
