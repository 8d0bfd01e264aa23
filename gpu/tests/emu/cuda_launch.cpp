/*
 * cuda_launch.cpp - kernels onto streams: from SIMT_LAUNCH, and from nvcc's host code
 *
 * The second half are the entry points that nvcc 13's host code calls, so that a library built by
 * nvcc runs unmodified: its kernels are found by name among the emulated ones (SIMT_KERNEL).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/cuda_state.h"
#include "gpu/tests/emu/simt.h"

#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim

#include <cxxabi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <map>
#include <string>

namespace simt
{
cudaError_t run_grid(dim3 grid, dim3 block, size_t smem, Call call, const char *name);

static cudaError_t check_launch(dim3 grid, dim3 block, size_t smem)
{
    const uint64_t threads = (uint64_t)block.x * block.y * block.z;
    const uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;
    if (threads == 0 || threads > 1024 || blocks == 0 || grid.x > 0x7fffffffu || grid.y > 65535 ||
        grid.z > 65535 || block.z > 64) {
        return cudaErrorInvalidConfiguration;
    }
    return smem > 232448 ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t enqueue(dim3 grid, dim3 block, size_t smem, cudaStream_t stream, const char *name,
                    Call call)
{
    std::shared_ptr<void> state(call.state, call.destroy);
    cudaError_t error = check_launch(grid, block, smem);
    if (!error) {
        error = emu::enter("launch");
    }
    if (!error) {
        emu::StreamRef s = emu::find_stream(stream);
        const int device = s ? s->device : 0;
        error = emu::enqueue(stream, [=] {
            emu::stats()->launches++;
            const cudaError_t failed = run_grid(grid, block, smem, call, name);
            if (failed) {
                emu::stick(device, failed);
            }
            (void)state; /* held until here */
        });
    }
    return emu::set_last(error);
}

struct Entry {
    Binder bind;
};

static std::map<std::string, Binder> &kernels()
{
    static auto &m = *new std::map<std::string, Binder>;
    return m;
}

static std::string demangled(const char *mangled)
{
    int status;
    char *text = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
    std::string out = text ? text : mangled;
    free(text);
    return out;
}

/* "simt::Tag<&(NAME)>" or "simt::Tag<&NAME>" becomes NAME. */
static std::string kernel_name(const char *tag)
{
    std::string s = demangled(tag);
    const size_t start = s.find("Tag<"), end = s.rfind('>');
    s = s.substr(start + 4, end - start - 4);
    if (s[0] == '&') {
        s = s.substr(1);
    }
    if (s[0] == '(' && s.back() == ')') {
        s = s.substr(1, s.size() - 2);
    }
    return s;
}

bool register_kernel(const char *tag, Binder bind)
{
    kernels()[kernel_name(tag)] = bind;
    return true;
}

Binder find_kernel(const char *mangled)
{
    const auto found = kernels().find(demangled(mangled));
    return found == kernels().end() ? nullptr : found->second;
}
} // namespace simt

struct CUkern_st {
    std::string name;
};

namespace emu
{
static std::mutex &functions_mutex = *new std::mutex;
static auto &functions = *new std::map<const void *, CUkern_st>;

struct Configuration {
    dim3 grid, block;
    size_t smem;
    cudaStream_t stream;
};
static thread_local std::vector<Configuration> configurations;
} // namespace emu

using namespace emu;

extern "C" {
void **__cudaRegisterFatBinary(void *binary)
{
    return static_cast<void **>(binary);
}

void __cudaRegisterFatBinaryEnd(void **)
{
}

void __cudaUnregisterFatBinary(void **)
{
}

char __cudaInitModule(void **)
{
    return 1;
}

void __cudaRegisterFunction(void **, const char *function, char *, const char *name, int, uint3 *,
                            uint3 *, dim3 *, dim3 *, int *)
{
    std::lock_guard<std::mutex> lock(functions_mutex);
    functions[function] = CUkern_st{name};
}

/* Tables in constant memory: the emulated bodies have their own. */
void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int)
{
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t smem, cudaStream_t stream)
{
    configurations.push_back(Configuration{grid, block, smem, stream});
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *smem, void *stream)
{
    if (configurations.empty()) {
        return set_last(cudaErrorLaunchFailure);
    }
    const Configuration c = configurations.back();
    configurations.pop_back();
    *grid = c.grid;
    *block = c.block;
    *smem = c.smem;
    *static_cast<cudaStream_t *>(stream) = c.stream;
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *function)
{
    std::lock_guard<std::mutex> lock(functions_mutex);
    const auto found = functions.find(function);
    if (found == functions.end()) {
        return set_last(cudaErrorInvalidDeviceFunction);
    }
    *out = &found->second;
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t smem,
                               cudaStream_t stream)
{
    const char *name = kernel->name.c_str();
    simt::Binder bind = simt::find_kernel(name);
    if (!bind) {
        fprintf(stderr, "emulator: no body for kernel %s (SIMT_KERNEL is missing)\n",
                simt::demangled(name).c_str());
        return set_last(cudaErrorInvalidDeviceFunction);
    }
    return simt::enqueue(grid, block, smem, stream, name, bind(args));
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **args, size_t smem,
                             cudaStream_t stream)
{
    cudaKernel_t kernel;
    const cudaError_t error = __cudaGetKernel(&kernel, function);
    return error ? error : __cudaLaunchKernel(kernel, grid, block, args, smem, stream);
}

/* Limits are not modelled: any value that CUDA could accept is accepted. */
cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute attr, int value)
{
    const bool smem = attr == cudaFuncAttributeMaxDynamicSharedMemorySize;
    if (!function || value < -1 || (smem && value > 232448)) {
        return set_last(cudaErrorInvalidValue);
    }
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *out, const void *, int threads,
                                                          size_t smem)
{
    if (!out || threads < 1 || threads > 1024 || smem > 232448) {
        return set_last(cudaErrorInvalidValue);
    }
    const int by_threads = 2048 / threads, by_smem = smem ? (int)(233472 / smem) : 32;
    *out = by_threads < by_smem ? by_threads : by_smem;
    return cudaSuccess;
}
}
