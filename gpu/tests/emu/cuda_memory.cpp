/*
 * cuda_memory.cpp - memory of the double: filled with a pattern, ending at a page that faults
 *
 * A kernel that reads or writes past an allocation dies at the access (under ASan with a report).
 * What was never written reads as 0xA5, not as zeros.  Copies check direction and bounds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/cuda_state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <map>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EMU_HEAP 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define EMU_HEAP 1
#endif
#endif
#ifndef EMU_HEAP
#define EMU_HEAP 0
#endif

namespace emu
{
enum { PAGE = 4096, ALIGN = 256, FILL = 0xA5, PAD = 0x5A };

struct Block {
    size_t nbytes;
    int device; /* or ON_HOST_PINNED */
    bool ours;  /* false: registered by cudaHostRegister() */
};

static std::mutex &blocks_mutex = *new std::mutex;
static auto &blocks = *new std::map<uintptr_t, Block>;

static size_t padded(size_t nbytes)
{
    return (nbytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* Mapped bytes: the pages that hold the padded block, and the page that faults. */
static size_t mapped(size_t nbytes)
{
    return (padded(nbytes) + PAGE - 1) / PAGE * PAGE + PAGE;
}

static unsigned char *map_block(size_t nbytes)
{
    if (EMU_HEAP) {
        void *p = nullptr;
        size_t align = nbytes % PAGE == 0 ? PAGE : ALIGN; /* ncclMemAlloc's, for windows */

        return posix_memalign(&p, align, nbytes) ? nullptr : static_cast<unsigned char *>(p);
    }
    const size_t total = mapped(nbytes);
    void *m = mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED) {
        return nullptr;
    }
    unsigned char *guard = static_cast<unsigned char *>(m) + total - PAGE;
    mprotect(guard, PAGE, PROT_NONE);
    memset(guard - padded(nbytes) + nbytes, PAD, padded(nbytes) - nbytes);
    return guard - padded(nbytes);
}

/* False if the bytes between the block's end and the faulting page were written. */
static bool unmap_block(unsigned char *p, size_t nbytes)
{
    bool intact = true;
    if (EMU_HEAP) {
        free(p);
        return true;
    }
    for (size_t i = nbytes; i < padded(nbytes); i++) {
        intact = intact && p[i] == PAD;
    }
    munmap(p + padded(nbytes) + PAGE - mapped(nbytes), mapped(nbytes));
    return intact;
}

void *take_memory(size_t nbytes, int device)
{
    const size_t size = nbytes ? nbytes : 1;
    if (size > (size_t)1 << 46) {
        return nullptr;
    }
    unsigned char *p = map_block(size);
    if (!p) {
        return nullptr;
    }
    memset(p, FILL, size);
    std::lock_guard<std::mutex> lock(blocks_mutex);
    blocks[(uintptr_t)p] = Block{size, device, true};
    stats()->mallocs++;
    stats()->bytes += size;
    if (stats()->bytes > stats()->most_bytes) {
        stats()->most_bytes = stats()->bytes.load();
    }
    return p;
}

cudaError_t drop_memory(void *p)
{
    if (!p) {
        return cudaSuccess;
    }
    std::lock_guard<std::mutex> lock(blocks_mutex);
    const auto found = blocks.find((uintptr_t)p);
    if (found == blocks.end() || !found->second.ours) {
        return cudaErrorInvalidValue;
    }
    const size_t nbytes = found->second.nbytes;
    stats()->bytes -= nbytes;
    blocks.erase(found);
    return unmap_block(static_cast<unsigned char *>(p), nbytes) ? cudaSuccess
                                                                : cudaErrorIllegalAddress;
}

int where(const void *p, size_t nbytes)
{
    const uintptr_t a = (uintptr_t)p;
    std::lock_guard<std::mutex> lock(blocks_mutex);
    auto found = blocks.upper_bound(a);
    if (found == blocks.begin()) {
        return ON_HOST;
    }
    --found;
    const uintptr_t end = found->first + found->second.nbytes;
    if (a >= end) {
        return ON_HOST;
    }
    return nbytes > end - a ? OUT_OF_BOUNDS : found->second.device;
}

static cudaError_t check_copy(const void *dst, const void *src, size_t nbytes, cudaMemcpyKind kind)
{
    if (nbytes == 0) {
        return cudaSuccess;
    }
    const int d = where(dst, nbytes), s = where(src, nbytes);
    if (d == OUT_OF_BOUNDS || s == OUT_OF_BOUNDS || !dst || !src) {
        return cudaErrorInvalidValue;
    }
    const bool to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (kind != cudaMemcpyDefault && (to != (d >= 0) || from != (s >= 0))) {
        return cudaErrorInvalidMemcpyDirection;
    }
    return cudaSuccess;
}

static cudaError_t copy_async(void *dst, const void *src, size_t nbytes, cudaMemcpyKind kind,
                              cudaStream_t stream)
{
    const cudaError_t error = check_copy(dst, src, nbytes, kind);
    if (error) {
        return set_last(error);
    }
    if (nbytes == 0) {
        return set_last(enqueue(stream, [] {}));
    }
    StreamRef s = find_stream(stream);
    if (s && !s->capture && where(src, nbytes) == ON_HOST) {
        /* Pageable memory is read before the call returns. */
        auto copy = std::make_shared<std::vector<char>>(static_cast<const char *>(src),
                                                        static_cast<const char *>(src) + nbytes);
        return set_last(
            enqueue(stream, [dst, copy, nbytes] { memcpy(dst, copy->data(), nbytes); }));
    }
    return set_last(enqueue(stream, [dst, src, nbytes] { memmove(dst, src, nbytes); }));
}
} // namespace emu

int emu_is_device(const void *p, size_t nbytes)
{
    return emu::where(p, nbytes) >= 0;
}

using namespace emu;

extern "C" {
static cudaError_t take(void **out, size_t nbytes, int device, const char *what)
{
    EMU_ENTER(what);
    if (!out) {
        return set_last(cudaErrorInvalidValue);
    }
    EMU_UNSAFE();
    void *p = take_memory(nbytes, device);
    if (!p) {
        return set_last(cudaErrorMemoryAllocation);
    }
    *out = p;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t nbytes)
{
    return take(out, nbytes, current_device(), "cudaMalloc");
}

/* Waits for the device first, as the real one does. */
cudaError_t cudaFree(void *p)
{
    EMU_ENTER("cudaFree");
    EMU_UNSAFE();
    if (p) {
        stats()->syncs++;
        drain_device(current_device());
    }
    return set_last(drop_memory(p));
}

cudaError_t cudaMallocAsync(void **out, size_t nbytes, cudaStream_t stream)
{
    EMU_ENTER("cudaMallocAsync");
    StreamRef s = find_stream(stream);
    if (!s || !out) {
        return set_last(s ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
    }
    if (s->capture) {
        return set_last(cudaErrorNotSupported);
    }
    *out = take_memory(nbytes, s->device);
    return *out ? cudaSuccess : set_last(cudaErrorMemoryAllocation);
}

cudaError_t cudaFreeAsync(void *p, cudaStream_t stream)
{
    EMU_ENTER("cudaFreeAsync");
    StreamRef s = find_stream(stream);
    if (!s || s->capture) {
        return set_last(s ? cudaErrorNotSupported : cudaErrorInvalidResourceHandle);
    }
    if (where(p, 1) < 0) {
        return set_last(cudaErrorInvalidValue);
    }
    push(s, [p] { (void)drop_memory(p); });
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **out, size_t nbytes)
{
    return take(out, nbytes, ON_HOST_PINNED, "cudaMallocHost");
}

cudaError_t cudaHostAlloc(void **out, size_t nbytes, unsigned)
{
    return take(out, nbytes, ON_HOST_PINNED, "cudaHostAlloc");
}

cudaError_t cudaFreeHost(void *p)
{
    EMU_ENTER("cudaFreeHost");
    EMU_UNSAFE();
    return set_last(p && where(p, 1) != ON_HOST_PINNED ? cudaErrorInvalidValue : drop_memory(p));
}

cudaError_t cudaHostGetDevicePointer(void **out, void *p, unsigned)
{
    if (!out || where(p, 1) != ON_HOST_PINNED) {
        return set_last(cudaErrorInvalidValue);
    }
    *out = p;
    return cudaSuccess;
}

cudaError_t cudaHostRegister(void *p, size_t nbytes, unsigned)
{
    EMU_ENTER("cudaHostRegister");
    EMU_UNSAFE();
    if (!p || !nbytes || where(p, nbytes) != ON_HOST) {
        return set_last(p && nbytes ? cudaErrorHostMemoryAlreadyRegistered : cudaErrorInvalidValue);
    }
    std::lock_guard<std::mutex> lock(blocks_mutex);
    blocks[(uintptr_t)p] = Block{nbytes, ON_HOST_PINNED, false};
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *p)
{
    EMU_ENTER("cudaHostUnregister");
    EMU_UNSAFE();
    std::lock_guard<std::mutex> lock(blocks_mutex);
    const auto found = blocks.find((uintptr_t)p);
    if (found == blocks.end() || found->second.ours) {
        return set_last(cudaErrorHostMemoryNotRegistered);
    }
    blocks.erase(found);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t nbytes, cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    EMU_ENTER("cudaMemcpyAsync");
    return copy_async(dst, src, nbytes, kind, stream);
}

cudaError_t cudaMemcpyPeerAsync(void *dst, int to, const void *src, int from, size_t nbytes,
                                cudaStream_t stream)
{
    EMU_ENTER("cudaMemcpyPeerAsync");
    if (nbytes && (where(dst, nbytes) != to || where(src, nbytes) != from)) {
        return set_last(cudaErrorInvalidValue);
    }
    return copy_async(dst, src, nbytes, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t nbytes, cudaMemcpyKind kind)
{
    EMU_ENTER("cudaMemcpy");
    EMU_UNSAFE();
    const cudaError_t error = copy_async(dst, src, nbytes, kind, nullptr);
    if (error) {
        return error;
    }
    stats()->syncs++;
    drain(find_stream(nullptr).get());
    return enter("");
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t nbytes, cudaStream_t stream)
{
    EMU_ENTER("cudaMemsetAsync");
    if (nbytes && where(p, nbytes) < ON_HOST_PINNED) {
        return set_last(cudaErrorInvalidValue);
    }
    return set_last(enqueue(stream, [p, value, nbytes] {
        if (nbytes) {
            memset(p, value, nbytes);
        }
    }));
}

cudaError_t cudaMemset(void *p, int value, size_t nbytes)
{
    EMU_UNSAFE();
    return cudaMemsetAsync(p, value, nbytes, nullptr);
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    *total = (size_t)64 << 30;
    *available = *total - stats()->bytes;
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *out, const void *p)
{
    EMU_ENTER("cudaPointerGetAttributes");
    const int place = where(p, 1);
    memset(out, 0, sizeof *out);
    out->type = place >= 0                ? cudaMemoryTypeDevice
                : place == ON_HOST_PINNED ? cudaMemoryTypeHost
                                          : cudaMemoryTypeUnregistered;
    out->device = place >= 0 ? place : place == ON_HOST_PINNED ? 0 : -2;
    if (place != ON_HOST) {
        out->devicePointer = const_cast<void *>(p);
        out->hostPointer = place == ON_HOST_PINNED ? const_cast<void *>(p) : nullptr;
    }
    return cudaSuccess;
}
}
