/*
 * child.c - a small pool of forked children
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/child.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child sends its status, its error text, then its result. */
struct head {
    int status;
    struct zipccl_error error;
};

struct running {
    pid_t pid;
    int fd;
    uint32_t task;
    size_t received;
    char *bytes; /* [sizeof(struct head) + task's nbytes] */
};

static bool write_all(int fd, const void *bytes, size_t nbytes)
{
    const char *p = bytes;

    while (nbytes > 0) {
        ssize_t n = write(fd, p, nbytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        nbytes -= (size_t)n;
    }
    return true;
}

/*
 * Never returns; _exit, so that nothing the parent had buffered is written twice.  A child ends with
 * its parent, however that ends, and with it the children of its own.
 */
static void child_main(const struct zipccl_child_task *task, int fd, pid_t parent)
{
    struct head head;
    void *result;

    /* The parent may have ended before the signal was asked for. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(1);
    /* Simulations take and free large matrices all the time: new pages cost more than filling them. */
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    result = calloc(1, task->nbytes + 1);
    memset(&head, 0, sizeof(head));
    head.status = result != NULL ? (int)task->work(task->context, result, &head.error)
                                 : (int)ZIPCCL_ERR_NOMEM;
    if (!write_all(fd, &head, sizeof(head)) ||
        (result != NULL && !write_all(fd, result, task->nbytes)))
        _exit(1);
    _exit(0);
}

static zipccl_status start(const struct zipccl_child_task *tasks, uint32_t index,
                           struct running *out, struct zipccl_error *error)
{
    pid_t parent = getpid();
    int fds[2];

    out->bytes = malloc(sizeof(struct head) + tasks[index].nbytes);
    if (out->bytes == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    if (pipe(fds) != 0) {
        free(out->bytes);
        return zipccl_fail(error, ZIPCCL_ERR_IO, "pipe: %s", strerror(errno));
    }
    fflush(NULL); /* or the child's libraries would write the parent's buffers once more */
    out->pid = fork();
    if (out->pid < 0) {
        close(fds[0]);
        close(fds[1]);
        free(out->bytes);
        return zipccl_fail(error, ZIPCCL_ERR_IO, "fork: %s", strerror(errno));
    }
    if (out->pid == 0) {
        close(fds[0]);
        child_main(&tasks[index], fds[1], parent);
    }
    close(fds[1]);
    out->fd = fds[0];
    out->task = index;
    out->received = 0;
    return ZIPCCL_OK;
}

/* The child closed its end: take its result, or say how it died. */
static zipccl_status finish(struct zipccl_child_task *tasks, struct running *r,
                            struct zipccl_error *error)
{
    struct zipccl_child_task *task = &tasks[r->task];
    zipccl_status status = ZIPCCL_OK;
    struct head head;
    int how = 0;

    close(r->fd);
    while (waitpid(r->pid, &how, 0) < 0 && errno == EINTR)
        continue;
    if (r->received != sizeof(head) + task->nbytes) {
        status = zipccl_fail(error, ZIPCCL_ERR_INTERNAL, "a simulation process ended early, %s %d",
                             WIFSIGNALED(how) ? "by signal" : "with exit code",
                             WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
    } else {
        memcpy(&head, r->bytes, sizeof(head));
        if (task->nbytes > 0)
            memcpy(task->result, r->bytes + sizeof(head), task->nbytes);
        if (head.status != (int)ZIPCCL_OK)
            status = zipccl_fail(error, (zipccl_status)head.status, "%s", head.error.text);
    }
    free(r->bytes);
    return status;
}

/* Read what is there; true at the end of the stream. */
static bool take(const struct zipccl_child_task *tasks, struct running *r)
{
    size_t all = sizeof(struct head) + tasks[r->task].nbytes;
    char spare[64];
    ssize_t n = r->received < all ? read(r->fd, r->bytes + r->received, all - r->received)
                                  : read(r->fd, spare, sizeof(spare));

    if (n < 0 && errno == EINTR)
        return false;
    if (n > 0 && r->received < all)
        r->received += (size_t)n;
    return n <= 0;
}

static void wait_readable(const struct running *running, uint32_t n, struct pollfd *polls)
{
    for (uint32_t i = 0; i < n; i++)
        polls[i] = (struct pollfd){.fd = running[i].fd, .events = POLLIN};
    while (poll(polls, n, -1) < 0 && errno == EINTR)
        continue;
}

/* A failure that is kept is none of the pool's. */
static zipccl_status keep_failure(struct zipccl_child_task *tasks, struct running *r,
                                  struct zipccl_child_failure *failures)
{
    struct zipccl_child_failure *failure = &failures[r->task];

    failure->status = finish(tasks, r, &failure->error);
    return ZIPCCL_OK;
}

zipccl_status zipccl_child_run_each(struct zipccl_child_task *tasks, uint32_t ntasks,
                                    uint32_t nprocs, struct zipccl_child_failure *failures,
                                    void (*finished)(void *context, uint32_t ndone), void *context,
                                    struct zipccl_error *error)
{
    uint32_t slots = nprocs < 1 ? 1 : nprocs < 64 ? nprocs : 64, n = 0, next = 0, done = 0;
    zipccl_status status = ZIPCCL_OK;
    struct running running[64];
    struct pollfd polls[64];

    while (n > 0 || (next < ntasks && status == ZIPCCL_OK)) {
        while (n < slots && next < ntasks && status == ZIPCCL_OK) {
            status = start(tasks, next, &running[n], error);
            if (status == ZIPCCL_OK) {
                n++;
                next++;
            }
        }
        if (n == 0)
            break;
        wait_readable(running, n, polls);
        for (uint32_t i = n; i-- > 0;) {
            zipccl_status s;

            if (polls[i].revents == 0 || !take(tasks, &running[i]))
                continue;
            /* Only the first failure's text is kept. */
            s = failures == NULL ? finish(tasks, &running[i], status == ZIPCCL_OK ? error : NULL)
                                 : keep_failure(tasks, &running[i], failures);
            running[i] = running[--n];
            /* What the others find is of no use any more. */
            for (uint32_t k = 0; s != ZIPCCL_OK && k < n; k++)
                kill(running[k].pid, SIGKILL);
            status = status == ZIPCCL_OK ? s : status;
            if (finished != NULL)
                finished(context, ++done);
        }
    }
    return status;
}

zipccl_status zipccl_child_run(struct zipccl_child_task *tasks, uint32_t ntasks, uint32_t nprocs,
                               void (*finished)(void *context, uint32_t ndone), void *context,
                               struct zipccl_error *error)
{
    return zipccl_child_run_each(tasks, ntasks, nprocs, NULL, finished, context, error);
}
