/*
 * nccl_state.h - inside the double of NCCL: shared memory, communicators, calls
 *
 * Ranks may be threads of one process or processes of one machine; both take the same path: every
 * communicator maps one POSIX shared-memory object with a ring of bytes per ordered pair of ranks.
 * All operations are sets of sends and receives that progress together on the stream's thread.
 * Private to nccl_*.cpp.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_TESTS_EMU_NCCL_STATE_H
#define ZIPCCL_GPU_TESTS_EMU_NCCL_STATE_H

#include <stddef.h>
#include <stdint.h>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <nccl.h>

#include "gpu/tests/emu/emu.h"

namespace emu
{
enum { MAX_RANKS = 64, RING = 1 << 16, SPLITS = 8 };

struct Ring {
    std::atomic<uint64_t> head, tail; /* bytes written, bytes read */
    char pad[48];
    char bytes[RING];
};

/* What a rank says of itself to the others. */
struct Member {
    std::atomic<uint32_t> joined, aborted;
    std::atomic<int32_t> pid, device;
    struct {
        std::atomic<uint32_t> seq;
        int32_t color, key;
    } split
        [SPLITS]; /* a group has half as many at most: another may still read those of the one before */
};

/* A kind of collective, small or large: NCCL chooses its algorithm by that, and connects ranks for it. */
enum { LARGE = 1 << 16, KINDS = 32 };

struct Shared {
    std::atomic<uint32_t> nranks, njoined, failed;
    std::atomic<uint32_t> called[KINDS];               /* ranks that have, option 'lazy' */
    std::atomic<uint32_t> ends[MAX_RANKS * MAX_RANKS]; /* [src * MAX_RANKS + dst] 1 the sender, 2 */
    Member member[MAX_RANKS];
    std::atomic<uint64_t> wire[MAX_RANKS * MAX_RANKS]; /* [src * MAX_RANKS + dst] bytes */
    Ring ring[1];                                      /* [src * nranks + dst] */
};

struct ReductionOp {
    ncclDataType_t dtype;
    unsigned char scalar[8];
    const void *device_scalar; /* NULL: 'scalar' holds it */
};
} // namespace emu

struct ncclComm {
    emu::Shared *shared = nullptr;
    size_t mapped = 0;
    std::string name; /* of the shared-memory object */
    int rank = 0, nranks = 0, device = 0;
    bool finalized = false, revoked = false;
    std::atomic<int> state{ncclInProgress}; /* until joined; then success or the first error */
    std::atomic<bool> aborted{false};
    std::atomic<uint64_t> issued{0}, done{0}; /* operations outside graphs */
    uint32_t nsplits = 0, nshrinks = 0;
    std::atomic<uint32_t> called{0}; /* bits: kinds, option 'lazy' */
    std::mutex running;              /* one operation at a time */
    std::mutex mutex;                /* of what follows */
    std::string error;
    std::map<int, emu::ReductionOp> ops;
    int next_op = ncclNumOps;
    std::set<void *> handles; /* of registered buffers and windows */
    cudaStream_t last_stream = nullptr;
    cudaEvent_t last_event = nullptr;
    unsigned long long last_capture = 0;
    ~ncclComm();
};

namespace emu
{
typedef std::shared_ptr<ncclComm> CommRef;

enum Kind {
    POINT_TO_POINT = 1,
    ALL_GATHER,
    REDUCE_SCATTER,
    ALL_REDUCE,
    BROADCAST,
    REDUCE,
    ALLTOALL,
    GATHER,
    SCATTER
};

struct OpCall {
    Kind kind;
    const void *send;
    void *recv;
    size_t count;
    ncclDataType_t dtype;
    ncclRedOp_t op;
    int root; /* or peer */
    CommRef comm;
    cudaStream_t stream;
    bool sends; /* of POINT_TO_POINT: a send, not a receive */
};

/* nccl_comm.cpp */
CommRef find_comm(ncclComm_t c);
ncclResult_t complain(ncclComm *c, ncclResult_t code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* An error found while an operation runs: every later call on 'c' returns it, peers are told. */
void fault(ncclComm *c, ncclResult_t code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
double now_s();
double peer_limit_s();
/* A communicator that is being made; finished in the outermost group's end. */
struct Joining {
    CommRef comm;   /* NULL: a split whose members are not known yet */
    CommRef parent; /* of a split */
    ncclComm_t *out;
    int color, key;
    bool blocking;
    uint32_t seq; /* of a split, among those of the parent */
};
ncclResult_t finish_joining(std::vector<Joining> *list);

/* nccl_connect.cpp: what 'calls' need for the first time, with option 'lazy'; waits for other ranks. */
ncclResult_t connect(const std::vector<OpCall> &calls);

/* nccl_group.cpp */
ncclResult_t submit(const char *name, OpCall call);
ncclResult_t submit_join(Joining j);
/* Splits of 'parent' in this thread's open group. */
int pending_splits(const ncclComm *parent);
ncclResult_t group_start();
ncclResult_t group_end();
ncclResult_t group_drop();

/* nccl_wire.cpp: one send or receive of a set. */
struct Transfer {
    int peer;
    bool send;
    char *p;
    size_t nbytes, moved;
    const OpCall *call;
    bool header_done;
};
void add_send(std::vector<Transfer> *list, const OpCall &call, int peer, const void *p, size_t n);
void add_recv(std::vector<Transfer> *list, const OpCall &call, int peer, void *p, size_t n);
void progress(ncclComm *c, std::vector<Transfer> *list);

/* nccl_collective.cpp: run the operations of one communicator in a group. */
void run_calls(const std::vector<OpCall> &calls);
/* Bytes that 'call' reads and writes on this rank. */
size_t send_bytes(const OpCall &call);
size_t recv_bytes(const OpCall &call);

/* nccl_reduce.cpp */
size_t type_bytes(ncclDataType_t t);
/* acc[i] = acc[i] op x[i], rounded to the type. */
void combine(void *acc, const void *x, size_t n, ncclDataType_t t, ncclRedOp_t op);
/* What 'op' does to a rank's own values before they are combined. */
void scale_input(ncclComm *c, void *x, size_t n, ncclDataType_t t, ncclRedOp_t op);
/* What an average of integers does at the end. */
void finish_average(void *x, size_t n, ncclDataType_t t, int nranks);
} // namespace emu

#endif
