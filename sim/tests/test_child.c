/*
 * test_child.c - children hand back results, errors, and the way they died
 *
 * A plain program: Criterion runs tests in children of its own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/child.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NTASKS  20
#define NVALUES 40000 /* more than a pipe holds */

static int failures;

static void expect(const char *what, int good)
{
    printf("%s: %s\n", what, good ? "ok" : "FAILED");
    failures += !good;
}

static zipccl_status square(void *context, void *result, struct zipccl_error *error)
{
    const int *x = context;
    int *out = result;

    (void)error;
    for (int i = 0; i < NVALUES; i++)
        out[i] = *x * *x;
    return ZIPCCL_OK;
}

static zipccl_status refuse(void *context, void *result, struct zipccl_error *error)
{
    (void)context;
    (void)result;
    return zipccl_fail(error, ZIPCCL_ERR_INPUT, "no such thing");
}

static zipccl_status die(void *context, void *result, struct zipccl_error *error)
{
    (void)context;
    (void)result;
    (void)error;
    raise(SIGKILL);
    return ZIPCCL_OK;
}

static zipccl_status leave(void *context, void *result, struct zipccl_error *error)
{
    (void)context;
    (void)result;
    (void)error;
    _exit(3);
}

static void count(void *context, uint32_t ndone)
{
    uint32_t *last = context;

    if (ndone == *last + 1)
        *last = ndone;
}

static void test_results(uint32_t nprocs)
{
    static int results[NTASKS][NVALUES];
    struct zipccl_child_task tasks[NTASKS];
    int inputs[NTASKS], good = 1;
    uint32_t last = 0;

    memset(results, 0, sizeof(results));
    for (int i = 0; i < NTASKS; i++) {
        inputs[i] = i;
        tasks[i] = (struct zipccl_child_task){square, &inputs[i], results[i], sizeof(results[i])};
    }
    good = zipccl_child_run(tasks, NTASKS, nprocs, count, &last, NULL) == ZIPCCL_OK;
    for (int i = 0; i < NTASKS; i++)
        good = good && results[i][0] == i * i && results[i][NVALUES - 1] == i * i;
    expect("results arrive", good && last == NTASKS);
}

static void test_failure(zipccl_status (*work)(void *, void *, struct zipccl_error *),
                         zipccl_status want, const char *says)
{
    struct zipccl_error error = {""};
    struct zipccl_child_task tasks[2];
    static int results[NVALUES];
    int input = 1;

    tasks[0] = (struct zipccl_child_task){work, NULL, NULL, 0};
    tasks[1] = (struct zipccl_child_task){square, &input, results, sizeof(results)};
    expect(says, zipccl_child_run(tasks, 2, 2, NULL, NULL, &error) == want &&
                     strstr(error.text, says) != NULL);
}

int main(void)
{
    test_results(1);
    test_results(2);
    test_results(100);
    test_failure(refuse, ZIPCCL_ERR_INPUT, "no such thing");
    test_failure(die, ZIPCCL_ERR_INTERNAL, "by signal 9");
    test_failure(leave, ZIPCCL_ERR_INTERNAL, "exit code 3");
    expect("no tasks", zipccl_child_run(NULL, 0, 2, NULL, NULL, NULL) == ZIPCCL_OK);
    return failures != 0;
}
