/*
 * rendezvous.c - gives what rank 0 has to all processes of a launcher, without MPI
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/rendezvous.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_TIMEOUT_S 60.0
#define RETRY_NS          50000000

/* Ports of processes on one host; below those that kernels give to clients. */
#define FIRST_PORT 20000u
#define NUM_PORTS  10000u

/* What a process says first, so that a stranger's connection gets nothing. */
#define GREETING "zipccl-1"

struct place {
    const char *host;
    char port[16];
    double deadline_s;
};

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static zipccl_status find_place(struct place *place, struct zipccl_error *error)
{
    const char *host = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
    unsigned number;
    char *end;

    if ((host == NULL) != (port == NULL))
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%s is set without %s: expected both, or neither where all processes "
                           "are on one host",
                           host != NULL ? "MASTER_ADDR" : "MASTER_PORT",
                           host != NULL ? "MASTER_PORT" : "MASTER_ADDR");
    place->host = host != NULL ? host : "127.0.0.1";
    number = FIRST_PORT + (unsigned)getppid() % NUM_PORTS;
    if (port != NULL) {
        unsigned long value = strtoul(port, &end, 10);

        if (end == port || *end != '\0' || value == 0 || value >= 65535)
            return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                               "MASTER_PORT=\"%.20s\": expected 1 to 65534", port);
        number = (unsigned)value + 1;
    }
    snprintf(place->port, sizeof place->port, "%u", number);
    return ZIPCCL_OK;
}

static zipccl_status fail_io(const struct place *place, const char *what,
                             struct zipccl_error *error)
{
    return zipccl_fail(error, ZIPCCL_ERR_IO, "%s at %s, port %s: %s", what, place->host,
                       place->port, errno != 0 ? strerror(errno) : "timed out");
}

/* Move all bytes one way before the deadline; false, with errno, if that fails. */
static bool move(int fd, void *bytes, size_t nbytes, bool out, double deadline_s)
{
    char *at = bytes;

    while (nbytes > 0) {
        struct pollfd p = {.fd = fd, .events = out ? POLLOUT : POLLIN};
        double left = deadline_s - now_s();
        ssize_t n;

        errno = 0;
        if (left <= 0 || poll(&p, 1, (int)(1000 * left) + 1) <= 0)
            return false;
        n = out ? send(fd, at, nbytes, MSG_NOSIGNAL) : recv(fd, at, nbytes, 0);
        if (n <= 0)
            return false;
        at += n;
        nbytes -= (size_t)n;
    }
    return true;
}

static int listen_at(const struct place *place)
{
    struct addrinfo hints = {
        .ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *list;
    int fd, one = 1;

    errno = 0;
    if (getaddrinfo(NULL, place->port, &hints, &list) != 0)
        return -1;
    fd = socket(list->ai_family, list->ai_socktype, 0);
    if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
                    bind(fd, list->ai_addr, list->ai_addrlen) != 0 || listen(fd, 1024) != 0)) {
        int kept = errno;

        close(fd);
        errno = kept;
        fd = -1;
    }
    freeaddrinfo(list);
    return fd;
}

/* Serve one process; false if it is none of ours, or is gone. */
static bool serve(int fd, void *bytes, size_t nbytes, double deadline_s)
{
    char greeting[sizeof GREETING];

    return move(fd, greeting, sizeof greeting, false, deadline_s) &&
           memcmp(greeting, GREETING, sizeof greeting) == 0 &&
           move(fd, bytes, nbytes, true, deadline_s);
}

static zipccl_status give(const struct zipccl_launch *launch, const struct place *place,
                          void *bytes, size_t nbytes, struct zipccl_error *error)
{
    int fd = listen_at(place);
    uint32_t served = 0;

    if (fd < 0)
        return fail_io(place, "rank 0 cannot listen", error);
    while (served + 1 < launch->size) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        double left = place->deadline_s - now_s();
        int peer;

        errno = 0;
        if (left <= 0 || poll(&p, 1, (int)(1000 * left) + 1) <= 0)
            break;
        peer = accept(fd, NULL, NULL);
        if (peer < 0)
            continue;
        served += serve(peer, bytes, nbytes, place->deadline_s);
        close(peer);
    }
    close(fd);
    if (served + 1 == launch->size)
        return ZIPCCL_OK;
    return zipccl_fail(error, ZIPCCL_ERR_IO, "%u of %u processes have come to %s, port %s",
                       served + 1, launch->size, place->host, place->port);
}

/* One try; the listener may not be up yet. */
static bool fetch_once(const struct place *place, void *bytes, size_t nbytes)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *list;
    char greeting[] = GREETING;
    bool done = false;
    int fd;

    errno = 0;
    if (getaddrinfo(place->host, place->port, &hints, &list) != 0)
        return false;
    fd = socket(list->ai_family, list->ai_socktype, 0);
    if (fd >= 0) {
        done = connect(fd, list->ai_addr, list->ai_addrlen) == 0 &&
               move(fd, greeting, sizeof greeting, true, place->deadline_s) &&
               move(fd, bytes, nbytes, false, place->deadline_s);
        close(fd);
    }
    freeaddrinfo(list);
    return done;
}

zipccl_status zipccl_rendezvous(const struct zipccl_launch *launch, void *bytes, size_t nbytes,
                                double timeout_s, struct zipccl_error *error)
{
    const struct timespec pause = {0, RETRY_NS};
    struct place place;

    if (launch->size <= 1)
        return ZIPCCL_OK;
    ZIPCCL_TRY(find_place(&place, error));
    place.deadline_s = now_s() + (timeout_s > 0 ? timeout_s : DEFAULT_TIMEOUT_S);
    if (launch->rank == 0)
        return give(launch, &place, bytes, nbytes, error);
    while (!fetch_once(&place, bytes, nbytes)) {
        if (now_s() > place.deadline_s)
            return fail_io(&place, "cannot fetch what rank 0 gives", error);
        nanosleep(&pause, NULL);
    }
    return ZIPCCL_OK;
}
