/*
 * check.h - how the plain test programs here state and count facts
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_TESTS_EMU_CHECK_H
#define ZIPCCL_GPU_TESTS_EMU_CHECK_H

#include <atomic>
#include <stdio.h>

inline std::atomic<int> check_failures{0};

/* Print the fact that does not hold, and count it.  Threads: any. */
#define CHECK(fact)                                                                                \
    do {                                                                                           \
        if (!(fact)) {                                                                             \
            printf("%s:%d: does not hold: %s\n", __FILE__, __LINE__, #fact);                       \
            check_failures++;                                                                      \
        }                                                                                          \
    } while (0)
#define CHECK_EQ(a, b)                                                                             \
    do {                                                                                           \
        const long long a_ = (long long)(a), b_ = (long long)(b);                                  \
        if (a_ != b_) {                                                                            \
            printf("%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #a, a_, b_);               \
            check_failures++;                                                                      \
        }                                                                                          \
    } while (0)
#define CHECK_OK(call) CHECK_EQ(call, 0)

/* What main() returns. */
inline int check_result(const char *name)
{
    const int n = check_failures;
    printf("%s: %s\n", name, n ? "FAILED" : "ok");
    return n != 0;
}

#endif
