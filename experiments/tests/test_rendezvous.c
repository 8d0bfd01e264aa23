/*
 * test_rendezvous.c - rank 0's bytes reach its own job's processes, whoever else connects
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/ranks/rendezvous.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NBYTES = 128, WHOLE = 320 /* greeting */, HEAD = 16 /* reply before the bytes */ };

#define LONG_S 20.0 /* longer than anything takes that works */

static int bad;

static void check(bool holds, const char *what)
{
    if (holds)
        return;
    printf("failed: %s\n", what);
    bad = 1;
}

static struct sockaddr_in local(unsigned port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
}

/* Listen on a port, 0: a free one, which is returned in it. */
static int listen_on(unsigned *port)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in at = local(*port);
    socklen_t n = sizeof at;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&at, n) != 0 || listen(fd, 16) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &n) != 0) {
        perror("listen");
        exit(1);
    }
    *port = ntohs(at.sin_port);
    return fd;
}

/* Connect as soon as somebody listens. */
static int connect_to(unsigned port)
{
    for (int i = 0; i < 1000; i++) {
        struct sockaddr_in at = local(port);
        int fd = socket(AF_INET, SOCK_STREAM, 0);

        if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0)
            return fd;
        close(fd);
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    printf("failed: nobody listens\n");
    exit(1);
}

/* A process of a job; its exit code is the status, or 99 if the bytes are wrong or 98 the text. */
static pid_t start(uint32_t rank, uint32_t size, size_t nbytes, const char *job, double timeout_s,
                   const char *text)
{
    struct zipccl_launch launch = {.launcher = "test", .rank = rank, .size = size};
    struct zipccl_error error = {""};
    unsigned char bytes[2 * NBYTES] = {0};
    zipccl_status status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid != 0)
        return pid;
    for (int fd = 3; fd < 32; fd++)
        close(fd); /* a listener of the parent's would stay one */
    setenv("ZIPCCL_JOB", job, 1);
    if (rank == 0)
        memset(bytes, 0xa5, nbytes);
    status = zipccl_rendezvous(&launch, bytes, nbytes, timeout_s, &error);
    for (size_t i = 0; status == ZIPCCL_OK && i < nbytes; i++)
        if (bytes[i] != 0xa5)
            _exit(99);
    if (strstr(error.text, text) == NULL) {
        fprintf(stderr, "rank %u: found \"%s\", expected \"%s\"\n", rank, error.text, text);
        _exit(98);
    }
    _exit((int)status);
}

static int end_of(pid_t pid)
{
    int code = 0;

    return waitpid(pid, &code, 0) == pid && WIFEXITED(code) ? WEXITSTATUS(code) : -1;
}

/* As a process that greets, takes all and says so; or that goes away before it has said so. */
static void replay(unsigned port, const char *greeting, bool whole)
{
    char reply[HEAD + NBYTES], done = 1;
    int fd = connect_to(port);

    check(send(fd, greeting, WHOLE, 0) == WHOLE, "greeting");
    check(recv(fd, reply, sizeof reply, MSG_WAITALL) == (ssize_t)sizeof reply, "reply");
    check(reply[HEAD] == (char)0xa5, "bytes in the reply");
    if (whole)
        check(send(fd, &done, 1, 0) == 1 && recv(fd, &done, 1, 0) == 1, "acknowledgement");
    close(fd);
}

static void test_strangers(unsigned port)
{
    char greeting[WHOLE], garbage[2 * WHOLE];
    int fd = listen_on(&port), peer, silent[8];
    pid_t zero, one, two, other;

    /* Rank 1 meets a listener that goes away: its greeting is kept, and it comes again. */
    one = start(1, 3, NBYTES, "ours", LONG_S, "");
    peer = accept(fd, NULL, NULL);
    check(recv(peer, greeting, WHOLE, MSG_WAITALL) == WHOLE, "a greeting comes");
    close(peer);
    close(fd);

    zero = start(0, 3, NBYTES, "ours", LONG_S, "");
    for (int i = 0; i < 8; i++)
        silent[i] = connect_to(port);
    check(send(silent[0], greeting, WHOLE / 2, 0) == WHOLE / 2, "half a greeting");
    memset(garbage, 'x', sizeof garbage);
    peer = connect_to(port);
    check(send(peer, garbage, sizeof garbage, 0) == (ssize_t)sizeof garbage, "garbage");

    replay(port, greeting, false);
    replay(port, greeting, true);
    replay(port, greeting, true);
    check(end_of(one) == ZIPCCL_OK, "rank 1 is served after others of its number");

    other = start(2, 3, NBYTES, "theirs", 0.3, "rank 0 of another job");
    check(end_of(other) == ZIPCCL_ERR_IO, "another job");
    other = start(2, 4, NBYTES, "ours", LONG_S, "another number of processes than 4");
    check(end_of(other) == ZIPCCL_ERR_MISMATCH, "another size");
    other = start(2, 3, NBYTES / 2, "ours", LONG_S, "another program");
    check(end_of(other) == ZIPCCL_ERR_MISMATCH, "another number of bytes");

    two = start(2, 3, NBYTES, "ours", LONG_S, "");
    check(end_of(two) == ZIPCCL_OK, "rank 2 is served last");
    check(end_of(zero) == ZIPCCL_OK, "rank 0 has served all");
    for (int i = 0; i < 8; i++)
        close(silent[i]);
    close(peer);
}

static void test_deadlines(unsigned port)
{
    int fd = listen_on(&port), peer;
    char reply[HEAD] = "no zipccl here!";
    pid_t pid = start(1, 2, NBYTES, "ours", 0.3, "cannot fetch");

    check(end_of(pid) == ZIPCCL_ERR_IO, "a listener that says nothing");
    pid = start(0, 2, NBYTES, "ours", 0.3, "rank 0 cannot listen");
    check(end_of(pid) == ZIPCCL_ERR_IO, "a port in use");
    close(accept(fd, NULL, NULL));
    pid = start(1, 2, NBYTES, "ours", 0.3, "cannot fetch");
    peer = accept(fd, NULL, NULL);
    check(send(peer, reply, sizeof reply, 0) == (ssize_t)sizeof reply, "another reply");
    check(end_of(pid) == ZIPCCL_ERR_IO, "a reply that is none");
    close(peer);
    close(fd);
    pid = start(0, 2, NBYTES, "ours", 0.2, "1 of 2 processes have come");
    check(end_of(pid) == ZIPCCL_ERR_IO, "rank 0 alone");
}

static void test_hosts(void)
{
    static const struct {
        const char *list, *first;
    } cases[] = {{"node7", "node7"},
                 {"node[003-005,7],x1", "node003"},
                 {"a,b", "a"},
                 {"r[1-2]n[30,41]s,b", "r1n30s"},
                 {"gpu-1.example.org", "gpu-1.example.org"},
                 {"", NULL},
                 {"n[", NULL},
                 {"n[3-", NULL},
                 {"n[a]", NULL},
                 {",a", NULL},
                 {"far-too-long-a-name", NULL}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[18] = "";
        bool found = zipccl_rendezvous_first_host(cases[i].list, out, sizeof out);

        check(found == (cases[i].first != NULL) && (!found || strcmp(out, cases[i].first) == 0),
              cases[i].list);
    }
}

int main(void)
{
    unsigned port = 0;
    char text[16];

    close(listen_on(&port));
    snprintf(text, sizeof text, "%u", port - 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MASTER_PORT", text, 1);
    test_strangers(port);
    test_deadlines(port);
    test_hosts();
    return bad;
}
