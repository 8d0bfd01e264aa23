/*
 * test_child.c - children hand back results, errors, and the way they died
 *
 * A plain program: Criterion runs tests in children of its own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/child.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
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

/* Say that this one runs, then stay. */
static zipccl_status stay(void *context, void *result, struct zipccl_error *error)
{
    const int *fd = context;

    (void)result;
    (void)error;
    if (write(*fd, "x", 1) == 1)
        for (;;)
            pause();
    return ZIPCCL_ERR_IO;
}

/* A child with children of its own. */
static zipccl_status have_two(void *context, void *result, struct zipccl_error *error)
{
    struct zipccl_child_task tasks[2] = {{stay, context, NULL, 0}, {stay, context, NULL, 0}};

    (void)result;
    return zipccl_child_run(tasks, 2, 2, NULL, NULL, error);
}

/* Bytes that arrive at 'fd', or -1 if nothing does, not even its end, for ten seconds. */
static long listen_to(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char c;

    return poll(&p, 1, 10000) == 1 ? (long)read(fd, &c, 1) : -1;
}

/* All descendants of the process that is killed hold the pipe open until they end. */
static void test_killed(int how)
{
    int fds[2], good = pipe(fds) == 0;
    pid_t parent;

    fflush(NULL);
    parent = fork();
    if (parent == 0) {
        struct zipccl_child_task tasks[2] = {{stay, &fds[1], NULL, 0},
                                             {have_two, &fds[1], NULL, 0}};

        zipccl_child_run(tasks, 2, 2, NULL, NULL, NULL);
        _exit(0);
    }
    close(fds[1]);
    for (int i = 0; i < 3; i++)
        good = good && listen_to(fds[0]) == 1;
    kill(parent, how);
    good = good && listen_to(fds[0]) == 0;
    waitpid(parent, NULL, 0);
    close(fds[0]);
    expect(strsignal(how), good);
}

/* The first failure ends the others, which would never end. */
static void test_first_failure(void)
{
    int fds[2], good = pipe(fds) == 0;
    struct zipccl_child_task tasks[2] = {{stay, &fds[1], NULL, 0}, {refuse, NULL, NULL, 0}};

    good = good && zipccl_child_run(tasks, 2, 2, NULL, NULL, NULL) == ZIPCCL_ERR_INPUT;
    close(fds[0]);
    close(fds[1]);
    expect("a failure ends the rest", good);
}

/* One refuses, one dies, the third goes on; what it finds stands. */
static void test_each(void)
{
    static int results[NVALUES];
    struct zipccl_child_failure kept[3];
    struct zipccl_child_task tasks[3] = {{refuse, NULL, NULL, 0}, {die, NULL, NULL, 0}};
    struct zipccl_error error = {""};
    uint32_t last = 0;
    int input = 7;

    tasks[2] = (struct zipccl_child_task){square, &input, results, sizeof(results)};
    expect("failures are kept",
           zipccl_child_run_each(tasks, 3, 1, kept, count, &last, &error) == ZIPCCL_OK &&
               last == 3 && kept[0].status == ZIPCCL_ERR_INPUT &&
               strcmp(kept[0].error.text, "no such thing") == 0 &&
               kept[1].status == ZIPCCL_ERR_INTERNAL && kept[2].status == ZIPCCL_OK &&
               results[NVALUES - 1] == 49);
}

int main(void)
{
    test_killed(SIGKILL);
    test_killed(SIGTERM);
    test_killed(SIGHUP);
    test_first_failure();
    test_results(1);
    test_results(2);
    test_results(100);
    test_failure(refuse, ZIPCCL_ERR_INPUT, "no such thing");
    test_failure(die, ZIPCCL_ERR_INTERNAL, "by signal 9");
    test_failure(leave, ZIPCCL_ERR_INTERNAL, "exit code 3");
    test_each();
    expect("no tasks", zipccl_child_run(NULL, 0, 2, NULL, NULL, NULL) == ZIPCCL_OK);
    return failures != 0;
}
