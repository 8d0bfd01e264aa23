/*
 * nccl_comm.cpp - communicators of the double: made, split, shrunk, failed, gone
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/cuda_state.h"
#include "gpu/tests/emu/nccl_state.h"
#include "gpu/tests/emu/nccl_make.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <algorithm>

ncclComm::~ncclComm()
{
    for (void *h : handles) {
        delete static_cast<char *>(h);
    }
    if (shared) {
        munmap(shared, mapped);
    }
    if (last_event) {
        cudaEventDestroy(last_event);
    }
}

namespace emu
{
static std::mutex &list_mutex = *new std::mutex;
static auto &comms = *new std::map<ncclComm_t, CommRef>;
static thread_local std::string thread_error;

CommRef find_comm(ncclComm_t c)
{
    std::lock_guard<std::mutex> lock(list_mutex);
    const auto found = comms.find(c);
    return found == comms.end() ? nullptr : found->second;
}

void list_comm(const CommRef &c)
{
    std::lock_guard<std::mutex> lock(list_mutex);
    comms[c.get()] = c;
}

void unlist_comm(ncclComm_t c)
{
    std::lock_guard<std::mutex> lock(list_mutex);
    comms.erase(c);
}

double now_s()
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double peer_limit_s()
{
    struct emu_options o;
    emu_get_options(&o);
    return (double)o.peer_ms * 1e-3;
}

static std::string compose(const ncclComm *c, const char *fmt, va_list args)
{
    char text[1024];
    int k = 0;
    if (c) {
        k = snprintf(text, sizeof text, "rank %d of %d: ", c->rank, c->nranks);
    }
    vsnprintf(text + k, sizeof text - (size_t)k, fmt, args);
    const char *level = getenv("NCCL_DEBUG");
    if (level && strcmp(level, "VERSION")) {
        fprintf(stderr, "NCCL double: %s\n", text);
    }
    return text;
}

ncclResult_t complain(ncclComm *c, ncclResult_t code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    thread_error = compose(c, fmt, args);
    va_end(args);
    if (c) {
        std::lock_guard<std::mutex> lock(c->mutex);
        c->error = thread_error;
    }
    return code;
}

void fault(ncclComm *c, ncclResult_t code, const char *fmt, ...)
{
    int fine = ncclSuccess;
    va_list args;
    va_start(args, fmt);
    if (c->state.compare_exchange_strong(fine, code)) {
        const std::string text = compose(c, fmt, args);
        std::lock_guard<std::mutex> lock(c->mutex);
        c->error = text;
        c->shared->failed = 1;
    }
    va_end(args);
}

const char *last_text(ncclComm_t handle)
{
    static thread_local std::string kept; /* what the caller reads must stay */
    CommRef c = find_comm(handle);
    if (c) {
        std::lock_guard<std::mutex> lock(c->mutex);
        kept = c->error;
    } else {
        kept = thread_error;
    }
    return kept.c_str();
}

/* Map the object that all ranks name alike; whoever comes first makes it. */
static ncclResult_t open_shared(ncclComm *c)
{
    const size_t nrings = (size_t)c->nranks * (size_t)c->nranks;
    c->mapped = sizeof(Shared) + sizeof(Ring) * nrings;
    const int fd = shm_open(c->name.c_str(), O_CREAT | O_RDWR, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)c->mapped)) {
        if (fd >= 0) {
            close(fd);
        }
        return complain(c, ncclSystemError, "%s: no shared memory of %zu bytes", c->name.c_str(),
                        c->mapped);
    }
    void *m = mmap(nullptr, c->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (m == MAP_FAILED) {
        return complain(c, ncclSystemError, "%s: cannot map shared memory", c->name.c_str());
    }
    c->shared = static_cast<Shared *>(m);
    return ncclSuccess;
}

static ncclResult_t announce(ncclComm *c)
{
    uint32_t n = 0;
    if (!c->shared->nranks.compare_exchange_strong(n, (uint32_t)c->nranks) &&
        n != (uint32_t)c->nranks) {
        return complain(c, ncclInvalidArgument, "another rank says there are %u ranks", n);
    }
    Member *me = &c->shared->member[c->rank];
    me->device = c->device;
    me->pid = (int32_t)getpid();
    if (me->joined.exchange(1)) {
        return complain(c, ncclInvalidUsage, "two ranks call themselves %d", c->rank);
    }
    c->shared->njoined++;
    return ncclSuccess;
}

static std::string absent(const ncclComm *c)
{
    std::string text;
    for (int p = 0; p < c->nranks; p++) {
        if (!c->shared->member[p].joined) {
            text += (text.empty() ? "" : ", ") + std::to_string(p);
        }
    }
    return text;
}

/* Two ranks of a process on one device are refused, as by the real library. */
static ncclResult_t check_devices(ncclComm *c)
{
    for (int p = 0; p < c->nranks; p++) {
        const Member *m = &c->shared->member[p];
        if (p != c->rank && m->pid == (int32_t)getpid() && m->device == c->device) {
            return complain(c, ncclInvalidUsage, "duplicate GPU: ranks %d and %d are on device %d",
                            p, c->rank, c->device);
        }
    }
    return ncclSuccess;
}

static ncclResult_t await_members(ncclComm *c)
{
    const double start_s = now_s(), limit_s = peer_limit_s();
    while (c->shared->njoined < (uint32_t)c->nranks) {
        if (c->aborted) {
            return complain(c, ncclInternalError, "aborted while it was made");
        }
        if (now_s() - start_s > limit_s) {
            shm_unlink(c->name.c_str());
            return complain(c, ncclSystemError, "after %.1f s rank(s) %s have not joined", limit_s,
                            absent(c).c_str());
        }
        usleep(50);
    }
    /* Everyone has it mapped. */
    shm_unlink(c->name.c_str());
    return check_devices(c);
}

ncclResult_t make_comm(CommRef *out, const std::string &name, int rank, int nranks)
{
    CommRef c = std::make_shared<ncclComm>();
    c->name = name;
    c->rank = rank;
    c->nranks = nranks;
    cudaGetDevice(&c->device);
    ncclResult_t r = open_shared(c.get());
    if (!r) {
        r = announce(c.get());
    }
    if (!r) {
        *out = c;
    }
    return r;
}

/* Tell the others of 'parent' what this rank wants from its next split; the split's number. */
uint32_t publish_split(ncclComm *parent, int color, int key)
{
    const uint32_t seq = ++parent->nsplits;
    auto *slot = &parent->shared->member[parent->rank].split[seq % SPLITS];
    slot->color = color;
    slot->key = key;
    slot->seq = seq;
    return seq;
}

static ncclResult_t await_split(ncclComm *parent, uint32_t seq)
{
    const double start_s = now_s(), limit_s = peer_limit_s();
    for (int p = 0; p < parent->nranks; p++) {
        while (parent->shared->member[p].split[seq % SPLITS].seq != seq) {
            if (now_s() - start_s > limit_s) {
                return complain(parent, ncclSystemError,
                                "after %.1f s rank %d has not called ncclCommSplit", limit_s, p);
            }
            usleep(50);
        }
    }
    return ncclSuccess;
}

/* Ranks of this one's color, by key and then by rank. */
static ncclResult_t make_split(Joining *j)
{
    ncclComm *parent = j->parent.get();
    const uint32_t seq = j->seq;
    std::vector<std::pair<int, int>> members;
    ncclResult_t r = await_split(parent, seq);
    *j->out = nullptr;
    if (r || j->color == NCCL_SPLIT_NOCOLOR) {
        return r;
    }
    for (int p = 0; p < parent->nranks; p++) {
        const auto &slot = parent->shared->member[p].split[seq % SPLITS];
        if (slot.color == j->color) {
            members.emplace_back(slot.key, p);
        }
    }
    std::sort(members.begin(), members.end());
    int rank = 0;
    while (members[(size_t)rank].second != parent->rank) {
        rank++;
    }
    const std::string name =
        parent->name + "-s" + std::to_string(seq) + "c" + std::to_string(j->color);
    return make_comm(&j->comm, name, rank, (int)members.size());
}

ncclResult_t finish_joining(std::vector<Joining> *list)
{
    ncclResult_t first = ncclSuccess;
    int before;
    cudaGetDevice(&before);
    for (Joining &j : *list) {
        ncclResult_t r = ncclSuccess;
        if (j.parent) {
            cudaSetDevice(j.parent->device);
            r = make_split(&j);
        }
        first = first ? first : r;
    }
    for (Joining &j : *list) {
        if (!j.comm) {
            continue;
        }
        const ncclResult_t r = await_members(j.comm.get());
        j.comm->state = r;
        if (!r) {
            list_comm(j.comm);
            if (j.parent) {
                *j.out = j.comm.get(); /* others were told at the call */
            }
        } else if (j.blocking) {
            unlist_comm(j.comm.get());
            *j.out = nullptr;
        }
        first = first ? first : r;
    }
    cudaSetDevice(before);
    return first;
}
} // namespace emu
