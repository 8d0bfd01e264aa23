/*
 * simt_registry.h - emulated kernels by the name that nvcc gives them
 *
 * An nvcc-built library starts a kernel by its mangled device name and an array of pointers to the
 * arguments.  SIMT_KERNEL(kern) enters the emulated body under the demangled form of that name.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_TESTS_EMU_SIMT_REGISTRY_H
#define ZIPCCL_GPU_TESTS_EMU_SIMT_REGISTRY_H

#include <stddef.h>
#include <tuple>
#include <typeinfo>
#include <utility>

namespace simt
{
/* A kernel with its arguments: 'body' runs one CUDA thread, 'destroy' frees 'state'. */
struct Call {
    void (*body)(void *state);
    void (*destroy)(void *state);
    void *state;
};

/* Copies the arguments from an array of pointers to them. */
typedef Call (*Binder)(void **args);

/* 'tag' is typeid(Tag<&kern>).name(): the kernel's name is read out of it. */
bool register_kernel(const char *tag, Binder bind);

/* The binder of the kernel whose mangled device name is 'mangled'; NULL if there is none. */
Binder find_kernel(const char *mangled);

template <auto F> struct Tag {
};

template <auto F, class... A> struct Bound {
    typedef std::tuple<A...> Args;
    template <size_t... I> static Args *copy(void **args, std::index_sequence<I...>)
    {
        (void)args;
        return new Args(*static_cast<A *>(args[I])...);
    }
    static void body(void *state)
    {
        std::apply(F, *static_cast<Args *>(state));
    }
    static void destroy(void *state)
    {
        delete static_cast<Args *>(state);
    }
    static Call bind(void **args)
    {
        return Call{&body, &destroy, copy(args, std::index_sequence_for<A...>{})};
    }
};

template <auto F, class... A> bool enter(void (*)(A...))
{
    return register_kernel(typeid(Tag<F>).name(), &Bound<F, A...>::bind);
}
} // namespace simt

#define SIMT_JOIN2(a, b) a##b
#define SIMT_JOIN(a, b)  SIMT_JOIN2(a, b)
#define SIMT_KERNEL(...)                                                                           \
    static const bool SIMT_JOIN(simt_kernel_, __LINE__) __attribute__((unused)) =                  \
        simt::enter<&__VA_ARGS__>(&__VA_ARGS__)

#endif
