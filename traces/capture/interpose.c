/*
 * interpose.c - libzipccl-capture.so: stands in for NCCL's functions, notes each call, forwards it
 *
 * Preloaded.  ZIPCCL_CAPTURE names the folder; without it every call is only forwarded.  The real
 * functions are NCCL's pncclX, which do not come back here.  A rank is what a process does with
 * the communicators of one device.  Nothing here waits for a device or another rank.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "traces/capture/interpose.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT      __attribute__((visibility("default")))
#define MAX_PENDING 4096

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct capture capture;

/* Calls and communicators of the group that this thread has open. */
static __thread struct {
    int depth;
    size_t ncalls, ncomms;
    struct {
        unsigned slot;
        size_t call;
    } calls[MAX_PENDING];
    struct {
        ncclComm_t *comm;
        uint64_t id;
    } comms[CAPTURE_SLOTS];
} group;

EXPORT void zipccl_capture_step(void);
/* nccl.h has them without a prototype. */
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

/* NCCL's own function: its second name, which it never calls itself. */
static void *real(const char *name)
{
    char other[64];
    void *library = dlopen("libnccl.so.2", RTLD_NOLOAD | RTLD_LAZY), *p;

    snprintf(other, sizeof other, "p%s", name);
    p = dlsym(RTLD_NEXT, other);
    if (p == NULL && library != NULL)
        p = dlsym(library, other);
    if (p == NULL)
        p = dlsym(RTLD_NEXT, name);
    return p;
}

static void *cuda_symbol(const char *name)
{
    static const char *const libraries[] = {"libcudart.so.13", "libcudart.so.12",
                                            "libcudart.so.11.0", "libcudart.so"};
    void *p = dlsym(RTLD_DEFAULT, name);

    for (size_t i = 0; p == NULL && i < sizeof libraries / sizeof libraries[0]; i++) {
        void *library = dlopen(libraries[i], RTLD_NOLOAD | RTLD_LAZY);

        p = library != NULL ? dlsym(library, name) : NULL;
    }
    return p;
}

/* POSIX has dlsym() give functions as objects. */
#define LOAD(member, name)                                                                         \
    do {                                                                                           \
        void *symbol_ = cuda_symbol(name);                                                         \
        memcpy(&cuda->member, &symbol_, sizeof symbol_);                                           \
        cuda->whole &= symbol_ != NULL;                                                            \
    } while (0)

static void load_cuda(struct capture_cuda *cuda)
{
    cuda->whole = true;
    LOAD(event_create, "cudaEventCreate");
    LOAD(event_record, "cudaEventRecord");
    LOAD(event_query, "cudaEventQuery");
    LOAD(event_elapsed, "cudaEventElapsedTime");
    LOAD(event_destroy, "cudaEventDestroy");
    LOAD(is_capturing, "cudaStreamIsCapturing");
    LOAD(exchange_mode, "cudaThreadExchangeStreamCaptureMode");
    LOAD(host_alloc, "cudaHostAlloc");
    LOAD(free_host, "cudaFreeHost");
    LOAD(memcpy_async, "cudaMemcpyAsync");
}

/* "A:B" of a variable; false if it is set and is none. */
static bool read_range(const char *name, uint64_t *first, uint64_t *last)
{
    const char *text = getenv(name);
    char *end;

    if (text == NULL)
        return true;
    *first = strtoull(text, &end, 10);
    *last = *end == ':' ? strtoull(end + 1, &end, 10) : *first + 1;
    return end != text && *end == '\0' && *first < *last;
}

static size_t read_size(const char *name, size_t otherwise, unsigned shift)
{
    const char *text = getenv(name);

    return text != NULL ? (size_t)strtoull(text, NULL, 10) << shift : otherwise;
}

static void set_up(void)
{
    const char *folder = getenv("ZIPCCL_CAPTURE");

    if (folder == NULL || folder[0] == '\0')
        return;
    capture.first = 0;
    capture.last = 10000;
    capture.by_step = getenv("ZIPCCL_CAPTURE_STEPS") != NULL;
    if (!read_range(capture.by_step ? "ZIPCCL_CAPTURE_STEPS" : "ZIPCCL_CAPTURE_CALLS",
                    &capture.first, &capture.last)) {
        fprintf(stderr,
                "libzipccl-capture: ZIPCCL_CAPTURE_%s: expected FIRST:END, as in 100:200; "
                "nothing is captured\n",
                capture.by_step ? "STEPS" : "CALLS");
        return;
    }
    if (capture.by_step && capture.last != capture.first + 1) {
        fprintf(stderr,
                "libzipccl-capture: ZIPCCL_CAPTURE_STEPS: %llu steps, expected one; nothing "
                "is captured\n",
                (unsigned long long)(capture.last - capture.first));
        return;
    }
    capture.sample_limit = read_size("ZIPCCL_CAPTURE_SAMPLES_MB", (size_t)16 << 20, 20);
    capture.sample_size = read_size("ZIPCCL_CAPTURE_SAMPLE_KB", (size_t)256 << 10, 10);
    load_cuda(&capture.cuda);
    capture.folder = folder;
}

static bool is_on(void)
{
    pthread_once(&once, set_up);
    return capture.folder != NULL;
}

static int number_of(const char *const names[], int otherwise)
{
    for (; *names != NULL; names++)
        if (getenv(*names) != NULL)
            return atoi(getenv(*names));
    return otherwise;
}

/* The slot of a device; its rank is the launcher's, or that in its first communicator. */
static unsigned slot_of_device(int device, int rank, int nranks)
{
    static const char *const ranks[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID",
                                        NULL};
    static const char *const sizes[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                        "SLURM_NTASKS", NULL};
    unsigned i;

    for (i = 0; i + 1 < CAPTURE_SLOTS && capture.slots[i].used; i++)
        if (capture.slots[i].device == device)
            return i;
    capture.slots[i].used = true;
    capture.slots[i].device = device;
    capture.slots[i].rank = i == 0 ? number_of(ranks, rank) : rank;
    capture.slots[i].nranks = i == 0 ? number_of(sizes, nranks) : nranks;
    return i;
}

static bool ask(const char *name, ncclComm_t comm, int *out)
{
    ncclResult_t (*question)(ncclComm_t, int *) = NULL;
    void *symbol = real(name);

    memcpy(&question, &symbol, sizeof symbol);
    return comm != NULL && question != NULL && question(comm, out) == ncclSuccess;
}

static void add_comm(ncclComm_t comm, uint64_t id)
{
    struct capture_comm made = {.comm = comm, .id = id};
    int device = 0;

    if (!ask("ncclCommCount", comm, &made.nranks) || !ask("ncclCommUserRank", comm, &made.rank) ||
        !ask("ncclCommCuDevice", comm, &device))
        return;
    pthread_mutex_lock(&mutex);
    if (capture.ncomms == capture.comm_room) {
        size_t room = capture.comm_room == 0 ? 16 : 2 * capture.comm_room;
        struct capture_comm *more = realloc(capture.comms, room * sizeof *more);

        if (more != NULL) {
            capture.comms = more;
            capture.comm_room = room;
        }
    }
    if (capture.ncomms < capture.comm_room) {
        made.slot = slot_of_device(device, made.rank, made.nranks);
        capture.comms[capture.ncomms++] = made;
    }
    pthread_mutex_unlock(&mutex);
}

/* A communicator that exists once the open group has ended. */
static void expect_comm(ncclComm_t *comm, uint64_t id, ncclResult_t result)
{
    if (!is_on() || (result != ncclSuccess && result != ncclInProgress))
        return;
    if (group.depth == 0)
        add_comm(*comm, id);
    else if (group.ncomms < CAPTURE_SLOTS) {
        group.comms[group.ncomms].comm = comm;
        group.comms[group.ncomms++].id = id;
    }
}

static struct capture_comm *find_comm(ncclComm_t comm)
{
    for (size_t i = capture.ncomms; i-- > 0;)
        if (capture.comms[i].comm == comm)
            return &capture.comms[i];
    return NULL;
}

static uint64_t hash(const void *bytes, size_t nbytes, uint64_t h)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < nbytes; i++)
        h = (h ^ p[i]) * 1099511628211u;
    return h;
}

static uint64_t id_of(const ncclUniqueId *id)
{
    return hash(id->internal, sizeof id->internal, 14695981039346656037u);
}

/*
 * Swap the mode of this thread with 'mode', before and after CUDA is asked: in the relaxed mode that
 * cannot end a capture which some stream of the program is in.
 */
static void swap_mode(enum cudaStreamCaptureMode *mode)
{
    if (capture.cuda.whole)
        (void)capture.cuda.exchange_mode(mode);
}

static bool is_capturing(cudaStream_t stream)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;

    return capture.cuda.whole && (capture.cuda.is_capturing(stream, &status) != cudaSuccess ||
                                  status != cudaStreamCaptureStatusNone);
}

static cudaEvent_t record_event(cudaStream_t stream)
{
    cudaEvent_t event;

    if (!capture.cuda.whole || is_capturing(stream) ||
        capture.cuda.event_create(&event) != cudaSuccess)
        return NULL;
    if (capture.cuda.event_record(event, stream) == cudaSuccess)
        return event;
    capture.cuda.event_destroy(event);
    return NULL;
}

/* Note a call before it is made; the position of it in its slot, or SIZE_MAX. */
static size_t begin_call(struct capture_call call, ncclComm_t comm, const void *from, uint64_t n,
                         unsigned *slot_of)
{
    struct capture_comm *found;
    struct capture_slot *slot;
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    size_t at = SIZE_MAX;

    pthread_mutex_lock(&mutex);
    swap_mode(&mode);
    found = find_comm(comm);
    if (found == NULL || capture_dtype_name(call.dtype) == NULL)
        goto out;
    slot = &capture.slots[ *slot_of = found->slot];
    if (!capture_wants(&capture, slot)) {
        slot->seen++;
        if (!capture.by_step && slot->seen > capture.last && slot->ncalls > 0 &&
            (slot->calls[slot->ncalls - 1].end == NULL ||
             capture.cuda.event_query(slot->calls[slot->ncalls - 1].end) == cudaSuccess))
            capture_write(&capture, slot);
        goto out;
    }
    slot->seen++;
    if (slot->ncalls == slot->room) {
        size_t room = slot->room == 0 ? 1024 : 2 * slot->room;
        struct capture_call *more = realloc(slot->calls, room * sizeof *more);

        if (more == NULL)
            goto out;
        slot->calls = more;
        slot->room = room;
    }
    call.comm = (uint32_t)(found - capture.comms);
    call.captured = is_capturing(call.stream);
    slot->ncaptured += call.captured;
    call.sample = capture_sample(&capture, slot, &call, from, n);
    call.begin_ns = capture_now();
    call.begin = record_event(call.stream);
    if (slot->ncalls == 0) {
        slot->step_begin_ns = call.begin_ns;
        slot->base = call.begin;
    }
    if (group.depth == 0 || group.ncalls == 0)
        slot->nbatches++;
    call.batch = slot->nbatches;
    at = slot->ncalls++;
    slot->calls[at] = call;
out:
    swap_mode(&mode);
    pthread_mutex_unlock(&mutex);
    return at;
}

static void end_call(unsigned slot, size_t at)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    struct capture_call *call;

    if (at == SIZE_MAX)
        return;
    pthread_mutex_lock(&mutex);
    swap_mode(&mode);
    call = &capture.slots[slot].calls[at];
    call->end_ns = capture_now();
    call->end = call->begin != NULL ? record_event(call->stream) : NULL;
    swap_mode(&mode);
    pthread_mutex_unlock(&mutex);
}

/* After NCCL took the call: its end is now, or that of the group. */
static void made_call(unsigned slot, size_t at)
{
    if (at == SIZE_MAX)
        return;
    if (group.depth == 0 || group.ncalls == MAX_PENDING)
        end_call(slot, at);
    else {
        group.calls[group.ncalls].slot = slot;
        group.calls[group.ncalls++].call = at;
    }
}

/* Define a function of NCCL's data calls: note, forward, note the end. */
#define FORWARD(name, params, args, comm_, from_, n_, ...)                                         \
    EXPORT ncclResult_t name params                                                                \
    {                                                                                              \
        static ncclResult_t(*next) params;                                                         \
        unsigned slot = 0;                                                                         \
        size_t at = SIZE_MAX;                                                                      \
        ncclResult_t result;                                                                       \
                                                                                                   \
        if (next == NULL) {                                                                        \
            void *symbol = real(#name);                                                            \
            memcpy(&next, &symbol, sizeof symbol);                                                 \
        }                                                                                          \
        if (next == NULL)                                                                          \
            return ncclSystemError;                                                                \
        if (is_on())                                                                               \
            at = begin_call(                                                                       \
                (struct capture_call){.dtype = datatype, .stream = stream, __VA_ARGS__}, comm_,    \
                from_, n_, &slot);                                                                 \
        result = next args;                                                                        \
        made_call(slot, at);                                                                       \
        return result;                                                                             \
    }

FORWARD(ncclAllReduce,
        (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
         ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream),
        (sendbuff, recvbuff, count, datatype, op, comm, stream), comm, sendbuff, count,
        .op = "all_reduce", .count = count, .redop = op, .reduces = true)
FORWARD(ncclReduceScatter,
        (const void *sendbuff, void *recvbuff, size_t recvcount, ncclDataType_t datatype,
         ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream),
        (sendbuff, recvbuff, recvcount, datatype, op, comm, stream), comm, sendbuff, recvcount,
        .op = "reduce_scatter", .count = recvcount, .redop = op, .reduces = true)
FORWARD(ncclAllGather,
        (const void *sendbuff, void *recvbuff, size_t sendcount, ncclDataType_t datatype,
         ncclComm_t comm, cudaStream_t stream),
        (sendbuff, recvbuff, sendcount, datatype, comm, stream), comm, sendbuff, sendcount,
        .op = "all_gather", .count = sendcount)
FORWARD(ncclBroadcast,
        (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
         ncclComm_t comm, cudaStream_t stream),
        (sendbuff, recvbuff, count, datatype, root, comm, stream), comm, NULL, 0, .op = "broadcast",
        .count = count, .root = root, .has_root = true)
FORWARD(ncclBcast,
        (void *buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
         cudaStream_t stream),
        (buff, count, datatype, root, comm, stream), comm, NULL, 0, .op = "broadcast",
        .count = count, .root = root, .has_root = true)
FORWARD(ncclReduce,
        (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
         ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream),
        (sendbuff, recvbuff, count, datatype, op, root, comm, stream), comm, NULL, 0,
        .op = "all_reduce", .count = count, .redop = op, .reduces = true, .label = "reduce",
        .opaque = true)
FORWARD(ncclAlltoAll,
        (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
         ncclComm_t comm, cudaStream_t stream),
        (sendbuff, recvbuff, count, datatype, comm, stream), comm, sendbuff, count,
        .op = "alltoall", .count = count)
FORWARD(ncclGather,
        (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
         ncclComm_t comm, cudaStream_t stream),
        (sendbuff, recvbuff, count, datatype, root, comm, stream), comm, NULL, 0,
        .op = "all_gather", .count = count, .label = "gather", .opaque = true)
FORWARD(ncclScatter,
        (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
         ncclComm_t comm, cudaStream_t stream),
        (sendbuff, recvbuff, count, datatype, root, comm, stream), comm, NULL, 0,
        .op = "all_gather", .count = count, .label = "scatter", .opaque = true)
FORWARD(ncclSend,
        (const void *sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
         cudaStream_t stream),
        (sendbuff, count, datatype, peer, comm, stream), comm, sendbuff, count, .op = "send",
        .count = count, .peer = peer, .has_peer = true)
FORWARD(ncclRecv,
        (void *recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
         cudaStream_t stream),
        (recvbuff, count, datatype, peer, comm, stream), comm, NULL, 0, .op = "recv",
        .count = count, .peer = peer, .has_peer = true)

/* Find the real function of a call that is not of data. */
#define NEXT(name, params)                                                                         \
    static ncclResult_t(*next) params;                                                             \
                                                                                                   \
    if (next == NULL) {                                                                            \
        void *symbol = real(#name);                                                                \
        memcpy(&next, &symbol, sizeof symbol);                                                     \
    }                                                                                              \
    if (next == NULL)                                                                              \
    return ncclSystemError

EXPORT ncclResult_t ncclGroupStart(void)
{
    NEXT(ncclGroupStart, (void));
    group.depth++;
    return next();
}

EXPORT ncclResult_t ncclGroupEnd(void)
{
    ncclResult_t result;

    NEXT(ncclGroupEnd, (void));
    result = next();
    if (group.depth > 0 && --group.depth == 0) {
        for (size_t i = 0; i < group.ncalls; i++)
            end_call(group.calls[i].slot, group.calls[i].call);
        for (size_t i = 0; i < group.ncomms; i++)
            add_comm(*group.comms[i].comm, group.comms[i].id);
        group.ncalls = group.ncomms = 0;
    }
    return result;
}

EXPORT ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
    ncclResult_t result;

    NEXT(ncclCommInitRank, (ncclComm_t *, int, ncclUniqueId, int));
    result = next(comm, nranks, id, rank);
    expect_comm(comm, id_of(&id), result);
    return result;
}

EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank,
                                           ncclConfig_t *config)
{
    ncclResult_t result;

    NEXT(ncclCommInitRankConfig, (ncclComm_t *, int, ncclUniqueId, int, ncclConfig_t *));
    result = next(comm, nranks, id, rank, config);
    expect_comm(comm, id_of(&id), result);
    return result;
}

EXPORT ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int nranks, int rank, int nids,
                                             ncclUniqueId *ids, ncclConfig_t *config)
{
    ncclResult_t result;

    NEXT(ncclCommInitRankScalable, (ncclComm_t *, int, int, int, ncclUniqueId *, ncclConfig_t *));
    result = next(comm, nranks, rank, nids, ids, config);
    if (nids > 0)
        expect_comm(comm, id_of(&ids[0]), result);
    return result;
}

EXPORT ncclResult_t ncclCommInitAll(ncclComm_t *comms, int ndev, const int *devices)
{
    static uint64_t nth;
    uint64_t id = hash(&ndev, sizeof ndev, 7919 * ++nth);
    ncclResult_t result;

    NEXT(ncclCommInitAll, (ncclComm_t *, int, const int *));
    result = next(comms, ndev, devices);
    for (int i = 0; i < ndev && result == ncclSuccess && is_on(); i++)
        add_comm(comms[i], id);
    return result;
}

EXPORT ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *made,
                                  ncclConfig_t *config)
{
    struct capture_comm *parent;
    uint64_t id = 0;
    ncclResult_t result;

    NEXT(ncclCommSplit, (ncclComm_t, int, int, ncclComm_t *, ncclConfig_t *));
    result = next(comm, color, key, made, config);
    if (!is_on())
        return result;
    pthread_mutex_lock(&mutex);
    parent = find_comm(comm);
    if (parent != NULL) {
        int what[] = {parent->nsplits++, color};

        id = hash(what, sizeof what, parent->id);
    }
    pthread_mutex_unlock(&mutex);
    if (id != 0 && color != NCCL_SPLIT_NOCOLOR)
        expect_comm(made, id, result);
    return result;
}

static void forget(ncclComm_t comm)
{
    struct capture_comm *found;

    pthread_mutex_lock(&mutex);
    found = find_comm(comm);
    if (found != NULL)
        found->comm = NULL;
    pthread_mutex_unlock(&mutex);
}

EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    NEXT(ncclCommDestroy, (ncclComm_t));
    forget(comm);
    return next(comm);
}

EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    NEXT(ncclCommAbort, (ncclComm_t));
    forget(comm);
    return next(comm);
}

/* A program that knows its steps calls this at the end of each. */
void zipccl_capture_step(void)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;

    if (!is_on())
        return;
    pthread_mutex_lock(&mutex);
    swap_mode(&mode);
    capture.step++;
    for (unsigned i = 0; i < CAPTURE_SLOTS && capture.by_step; i++)
        if (capture.step == capture.last)
            capture.slots[i].step_end_ns = capture_now();
        else if (capture.step > capture.last)
            capture_write(&capture, &capture.slots[i]);
    swap_mode(&mode);
    pthread_mutex_unlock(&mutex);
}

__attribute__((destructor)) static void at_exit(void)
{
    if (capture.folder == NULL)
        return;
    for (unsigned i = 0; i < CAPTURE_SLOTS; i++)
        if (capture.slots[i].used)
            capture_write(&capture, &capture.slots[i]);
}
