/*
 * filter_process.c - runs a program once: bytes to its standard input, what it says back
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/codec/filter_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* Our ends of the pipes: to standard input, from standard output and standard error; -1: closed. */
struct filter {
    int fds[3];
    int signals;   /* readable if a signal waits that would end us */
    sigset_t mask; /* what was blocked before; the child's */
    pid_t pid;
};

static void shut(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/*
 * Hold back the signals that would end us, as the child's group does not get those of a terminal:
 * they stay pending, and are delivered by release_signals() when the child is no more.
 */
static zipccl_status hold_signals(struct filter *filter, struct zipccl_error *error)
{
    static const int enders[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction action;
    sigset_t held;

    sigemptyset(&held);
    for (size_t i = 0; i < sizeof enders / sizeof enders[0]; i++)
        if (sigaction(enders[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&held, enders[i]);
    filter->signals = signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK);
    if (filter->signals < 0)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "cannot watch for signals: %s", strerror(errno));
    sigprocmask(SIG_BLOCK, &held, &filter->mask);
    return ZIPCCL_OK;
}

static void release_signals(struct filter *filter)
{
    shut(&filter->signals);
    sigprocmask(SIG_SETMASK, &filter->mask, NULL);
}

static bool interrupted(const struct filter *filter)
{
    struct pollfd polled = {filter->signals, POLLIN, 0};

    return poll(&polled, 1, 0) > 0;
}

/* Start it with the ends 'theirs' of the pipes. */
static int start(char *const *argv, const int theirs[3], const sigset_t *mask, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t defaults;

    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    for (int i = 0; i < 3; i++)
        posix_spawn_file_actions_adddup2(&actions, theirs[i], i);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setsigmask(&attributes, mask);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETSIGMASK);
    int reason = posix_spawnp(pid, argv[0], &actions, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return reason;
}

/* Pipes that the child does not inherit but by dup2(), above 2 so that none is in the way. */
static bool make_pipe(int fds[2])
{
    int low[2];

    if (pipe(low) != 0)
        return false;
    for (int i = 0; i < 2; i++) {
        fds[i] = fcntl(low[i], F_DUPFD_CLOEXEC, 3);
        close(low[i]);
    }
    return fds[0] >= 0 && fds[1] >= 0;
}

static zipccl_status open_filter(struct filter *filter, char *const *argv,
                                 struct zipccl_error *error)
{
    int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    bool made = true;

    for (int i = 0; i < 3 && made; i++)
        made = make_pipe(pipes[i]);
    int reason = errno;
    int theirs[3] = {pipes[0][0], pipes[1][1], pipes[2][1]};
    int started = made ? start(argv, theirs, &filter->mask, &filter->pid) : -1;
    filter->fds[0] = pipes[0][1];
    filter->fds[1] = pipes[1][0];
    filter->fds[2] = pipes[2][0];
    for (int i = 0; i < 3; i++) {
        shut(&theirs[i]);
        if (started != 0)
            shut(&filter->fds[i]);
        else
            fcntl(filter->fds[i], F_SETFL, O_NONBLOCK);
    }
    if (!made)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "cannot make a pipe: %s", strerror(reason));
    if (started != 0)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "cannot run '%s': %s", argv[0],
                           strerror(started));
    return ZIPCCL_OK;
}

/* Hand on what it takes; close its input when all is handed on or it takes no more. */
static void feed(struct filter *filter, const uint8_t *input, size_t nbytes, size_t *done)
{
    ssize_t n = *done < nbytes ? write(filter->fds[0], input + *done, nbytes - *done) : 0;

    if (n > 0)
        *done += (size_t)n;
    if (*done == nbytes || (n < 0 && errno != EAGAIN && errno != EINTR))
        shut(&filter->fds[0]);
}

/* Read what there is into to [capacity]; what does not fit is counted and dropped. */
static void drain(int *fd, uint8_t *to, size_t capacity, size_t *done)
{
    uint8_t bytes[65536];
    ssize_t n = read(*fd, bytes, sizeof bytes);

    if (n <= 0) {
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            shut(fd);
        return;
    }
    size_t room = *done < capacity ? capacity - *done : 0;
    memcpy(to + (*done < capacity ? *done : capacity), bytes, (size_t)n < room ? (size_t)n : room);
    *done += (size_t)n;
}

/* Talk until it has closed both its outputs, or must be ended. */
static void talk(struct filter *filter, const uint8_t *input, size_t nbytes, double deadline,
                 uint8_t *output, size_t capacity, struct zipccl_filter_result *result)
{
    size_t fed = 0, said = 0;

    while (filter->fds[1] >= 0 || filter->fds[2] >= 0) {
        struct pollfd polled[4];
        double left = deadline - now();

        for (int i = 0; i < 3; i++)
            polled[i] = (struct pollfd){filter->fds[i], i == 0 ? POLLOUT : POLLIN, 0};
        polled[3] = (struct pollfd){filter->signals, POLLIN, 0};
        result->timed_out = left <= 0;
        result->too_much = result->nbytes > capacity;
        if (result->timed_out || result->too_much)
            break;
        if (poll(polled, 4, left < 1e6 ? (int)(left * 1000) + 1 : -1) <= 0)
            continue;
        if (polled[3].revents != 0)
            break;
        if (filter->fds[0] >= 0 && polled[0].revents != 0)
            feed(filter, input, nbytes, &fed);
        if (filter->fds[1] >= 0 && polled[1].revents != 0)
            drain(&filter->fds[1], output, capacity, &result->nbytes);
        if (filter->fds[2] >= 0 && polled[2].revents != 0)
            drain(&filter->fds[2], (uint8_t *)result->said, sizeof result->said - 1, &said);
    }
    result->too_much = result->nbytes > capacity;
}

static bool has_ended(pid_t pid)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid;
}

/* End what is left of it and tell how it ended. */
static zipccl_status reap(const struct filter *filter, const char *name,
                          struct zipccl_filter_result *result, struct zipccl_error *error)
{
    int status = 0;

    /* Whatever it started and left behind ends with it; it is not reaped yet, so the id is its own. */
    kill(-filter->pid, SIGKILL);
    while (waitpid(filter->pid, &status, 0) < 0)
        if (errno != EINTR)
            return zipccl_fail(error, ZIPCCL_ERR_IO, "cannot wait for '%s': %s", name,
                               strerror(errno));
    result->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    result->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return ZIPCCL_OK;
}

zipccl_status zipccl_filter_run(char *const *argv, const uint8_t *input, size_t nbytes,
                                double timeout_s, uint8_t *output, size_t capacity,
                                struct zipccl_filter_result *result, struct zipccl_error *error)
{
    struct filter filter;
    double deadline = now() + timeout_s;

    memset(result, 0, sizeof *result);
    ZIPCCL_TRY(hold_signals(&filter, error));
    zipccl_status status = open_filter(&filter, argv, error);
    if (status != ZIPCCL_OK) {
        release_signals(&filter);
        return status;
    }
    talk(&filter, input, nbytes, deadline, output, capacity, result);
    for (int i = 0; i < 3; i++)
        shut(&filter.fds[i]);
    /* One that closed its outputs may still take its time to end. */
    while (!result->timed_out && !result->too_much && !interrupted(&filter) &&
           !has_ended(filter.pid)) {
        const struct timespec pause = {0, 1000000};

        nanosleep(&pause, NULL);
        result->timed_out = now() >= deadline;
    }
    bool ended = interrupted(&filter);
    status = reap(&filter, argv[0], result, error);
    /* Ends us here, unless the program handles the signal. */
    release_signals(&filter);
    if (status == ZIPCCL_OK && ended)
        status = zipccl_fail(error, ZIPCCL_ERR_IO, "'%s': interrupted by a signal", argv[0]);
    return status;
}
