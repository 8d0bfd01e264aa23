/*
 * race_checked.h - is this built for ThreadSanitizer?
 *
 * It looks at how threads meet, which few cases show, and is many times slower: tests take each way
 * through the code, not every type and size.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_TESTS_RACE_CHECKED_H
#define ZIPCCL_CORE_TESTS_RACE_CHECKED_H

#if defined(__SANITIZE_THREAD__)
#define RACE_CHECKED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RACE_CHECKED 1
#endif
#endif
#ifndef RACE_CHECKED
#define RACE_CHECKED 0
#endif

#endif
