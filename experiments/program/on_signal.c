/*
 * on_signal.c - temporary files that do not outlive a program ended by SIGINT, SIGTERM or SIGHUP
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/program/on_signal.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Numbers a trace writer tries for its temporary file, see traces/trace_writer.c. */
#define TRACE_NAMES 100

/*
 * The names: 'before', a number below 'n', 'after'; then 'single' and the folder.  A handler can
 * reach nothing else.
 */
static char before[PATH_MAX + 64], after[32], single[PATH_MAX + 64], folder[PATH_MAX];
static volatile uint32_t n;
static volatile sig_atomic_t armed;

/* snprintf() is not for handlers. */
static void remove_numbered(uint32_t number)
{
    static char path[sizeof before + sizeof after + 16];
    size_t length = strlen(before), ndigits = 0;
    char digits[16];

    do {
        digits[ndigits++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    memcpy(path, before, length);
    while (ndigits > 0)
        path[length++] = digits[--ndigits];
    strcpy(path + length, after);
    unlink(path);
}

static void end_by_signal(int number)
{
    if (armed) {
        for (uint32_t i = 0; i < n; i++)
            remove_numbered(i);
        if (single[0] != '\0')
            unlink(single);
        if (folder[0] != '\0')
            rmdir(folder);
    }
    signal(number, SIG_DFL);
    raise(number);
}

/* From here on a signal removes the names. */
static void arm(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = end_by_signal}, old;

    armed = 1;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(numbers[i], &action, NULL);
}

void zipccl_on_signal_keep(void)
{
    armed = 0;
    n = 0;
    single[0] = folder[0] = '\0';
}

/* Print into 'to', or nothing if it does not fit. */
#define SET(to, ...)                                                                               \
    do {                                                                                           \
        if (snprintf(to, sizeof to, __VA_ARGS__) >= (int)sizeof to)                                \
            to[0] = '\0';                                                                          \
    } while (0)

void zipccl_on_signal_remove(const char *path)
{
    zipccl_on_signal_keep();
    SET(single, "%s", path);
    arm();
}

void zipccl_on_signal_remove_trace(const char *path)
{
    zipccl_on_signal_keep();
    SET(before, "%s.%ld-", path, (long)getpid());
    SET(after, ".tmp");
    n = before[0] != '\0' ? TRACE_NAMES : 0;
    arm();
}

void zipccl_on_signal_remove_scratch(const char *made)
{
    zipccl_on_signal_keep();
    SET(before, "%s/trace.jsonl.%ld-", made, (long)getpid());
    SET(after, ".tmp");
    SET(single, "%s/trace.jsonl", made);
    SET(folder, "%s", made);
    n = before[0] != '\0' ? TRACE_NAMES : 0;
    arm();
}

void zipccl_on_signal_remove_export(const char *prefix, uint32_t nranks, const char *made)
{
    zipccl_on_signal_keep();
    SET(before, "%s.", prefix);
    SET(after, ".et.partial");
    SET(single, "%s.comm_group.json.partial", prefix);
    SET(folder, "%s", made != NULL ? made : "");
    n = before[0] != '\0' ? nranks : 0;
    arm();
}
