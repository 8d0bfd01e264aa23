/*
 * extra.h - functions that the forwarding library passes on without knowing their parameters
 *
 * nccl_extra.awk makes the three tables and a trampoline for each name.  It is part of the forwarding
 * library alone: under LD_PRELOAD such names reach the library in use without us.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_PRELOAD_EXTRA_H
#define ZIPCCL_GPU_PRELOAD_EXTRA_H

/* Names, NULL at the end; where a trampoline jumps to; the trampolines themselves. */
extern const char *const zipccl_extra_names[];
extern void *zipccl_extra_slots[];
extern void *const zipccl_extra_symbols[];

#if defined(__x86_64__)
#define ZIPCCL_TRAMPOLINE(name, offset)                                                            \
    __asm__(".text\n.globl " #name "\n.type " #name ",@function\n" #name ":\n"                     \
            "endbr64\njmp *(zipccl_extra_slots+" #offset ")(%rip)\n"                               \
            ".size " #name ",.-" #name "\n");
#elif defined(__aarch64__)
#define ZIPCCL_TRAMPOLINE(name, offset)                                                            \
    __asm__(".text\n.globl " #name "\n.type " #name ",%function\n" #name ":\n"                     \
            "hint #34\nadrp x16, zipccl_extra_slots+" #offset "\n"                                 \
            "ldr x16, [x16, :lo12:zipccl_extra_slots+" #offset "]\nbr x16\n"                       \
            ".size " #name ",.-" #name "\n");
#else
#error "the forwarding library knows x86-64 and aarch64"
#endif

#endif
