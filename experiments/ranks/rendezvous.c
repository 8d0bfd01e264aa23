/*
 * rendezvous.c - gives what rank 0 has to all processes of a launcher, without MPI
 *
 * A process connects and greets: magic, version, rank, size, number of bytes, job.  Rank 0 replies:
 * magic, verdict, number of bytes, the bytes.  The process says that it has them, and rank 0 that
 * it knows; without that the process comes again, and is counted once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/ranks/rendezvous.h"

#include "core/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_TIMEOUT_S 60.0
#define MOST_S            1e6 /* as an int of milliseconds */
#define RETRY_NS          50000000

/* Longest for a peer to greet and to take the bytes; for the other end of a connection to be there,
 * and for rank 0, which may be busy with others, to reply. */
#define PEER_S    1.0
#define CONNECT_S 3.0
#define REPLY_S   5.0

/* Ports of processes on one host; below those that kernels give to clients. */
#define FIRST_PORT 20000u
#define NUM_PORTS  10000u

/* Connections that have not greeted yet; more wait in the kernel's queue. */
#define MOST_SILENT 256

#define VERSION 2u
static const char magic[8] = {'z', 'i', 'p', 'c', 'c', 'l', 'r', 'v'};

/* Greeting: magic, then words.  Reply: magic, verdict, number of bytes.  Little-endian. */
enum {
    GREETING_VERSION = 8,
    GREETING_RANK = 12,
    GREETING_SIZE = 16,
    GREETING_NBYTES = 20,
    GREETING_JOB = 24,
    JOB_BYTES = 296,
    GREETING_BYTES = GREETING_JOB + JOB_BYTES,
    REPLY_VERDICT = 8,
    REPLY_NBYTES = 12,
    REPLY_BYTES = 16
};

enum verdict { TAKEN, OTHER_JOB, OTHER_SIZE };

struct place {
    const char *host;
    char first[256]; /* the first host of Slurm's list, where 'host' is from that */
    char port[16];
    char job[JOB_BYTES]; /* filled up with 0 */
    bool by_parent;      /* the port follows from the parent process */
    double deadline_s;
};

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double earlier(double a, double b)
{
    return a < b ? a : b;
}

static void pause_shortly(void)
{
    nanosleep(&(struct timespec){0, RETRY_NS}, NULL);
}

/* What only processes of this job say alike: the first of these variables that is set, a step of
 * Slurm's with its number, and, where they are all on one host, their parent. */
static void find_job(char *job, bool one_host)
{
    static const char *const names[] = {"ZIPCCL_JOB", "TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE",
                                        "SLURM_JOB_ID"};
    const char *value = NULL, *step = getenv("SLURM_STEP_ID");
    size_t i = 0;

    for (; i < sizeof names / sizeof names[0] && value == NULL; i++)
        value = getenv(names[i]);
    if (i < sizeof names / sizeof names[0] || value == NULL)
        step = NULL; /* not Slurm's */
    memset(job, 0, JOB_BYTES);
    snprintf(job, JOB_BYTES, "%ld %.200s%s%.20s", one_host ? (long)getppid() : 0L,
             value != NULL ? value : "", step != NULL ? "." : "", step != NULL ? step : "");
}

bool zipccl_rendezvous_first_host(const char *list, char *out, size_t size)
{
    size_t n = 0;

    for (; *list != '\0' && *list != ','; list++) {
        if (n + 1 >= size)
            return false;
        if (*list != '[') {
            out[n++] = *list;
            continue;
        }
        /* The first of the numbers in brackets, with its zeros. */
        if (list[1] < '0' || list[1] > '9')
            return false;
        for (list++; *list >= '0' && *list <= '9' && n + 1 < size; list++)
            out[n++] = *list;
        list += strcspn(list, "]");
        if (*list == '\0')
            return false;
    }
    out[n] = '\0';
    return n > 0;
}

/* A variable that is set and not empty, as in launch.h; else NULL. */
static const char *value_of(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* A variable that is a number; 'missing' if it is not set. */
static unsigned long number_of(const char *name, unsigned long missing)
{
    const char *value = value_of(name);

    return value != NULL ? strtoul(value, NULL, 10) : missing;
}

/* True if Slurm has started these processes, on several hosts. */
static bool is_on_slurm_hosts(const struct zipccl_launch *launch)
{
    return number_of("SLURM_STEP_NUM_NODES", 1) > 1 &&
           number_of("SLURM_PROCID", UINT32_MAX) == launch->rank &&
           number_of("SLURM_NTASKS", 0) == launch->size;
}

/* Without MASTER_ADDR: this host if all processes are here; of Slurm's hosts the first, where it
 * has rank 0. */
static zipccl_status find_without_master(const struct zipccl_launch *launch, struct place *place,
                                         unsigned *number, struct zipccl_error *error)
{
    bool mpirun = launch->launcher != NULL && strcmp(launch->launcher, "Open MPI") == 0;
    unsigned long here = number_of("OMPI_COMM_WORLD_LOCAL_SIZE", launch->size);
    const char *list = getenv("SLURM_STEP_NODELIST");

    place->host = "127.0.0.1";
    *number = FIRST_PORT + (unsigned)getppid() % NUM_PORTS;
    if (mpirun && here < launch->size)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "mpirun has started %lu of %u processes on this host, and nothing says "
                           "where rank 0 is: set MASTER_ADDR to its host and MASTER_PORT to a free "
                           "port (mpirun -x MASTER_ADDR -x MASTER_PORT)",
                           here, launch->size);
    if (mpirun || !is_on_slurm_hosts(launch))
        return ZIPCCL_OK;
    if (list == NULL || !zipccl_rendezvous_first_host(list, place->first, sizeof place->first))
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "SLURM_STEP_NODELIST=\"%.60s\": expected a list of hosts; or set "
                           "MASTER_ADDR and MASTER_PORT",
                           list != NULL ? list : "");
    place->host = place->first;
    *number =
        FIRST_PORT +
        (unsigned)((number_of("SLURM_JOB_ID", 0) * 31 + number_of("SLURM_STEP_ID", 0)) % NUM_PORTS);
    return ZIPCCL_OK;
}

static zipccl_status find_place(const struct zipccl_launch *launch, struct place *place,
                                struct zipccl_error *error)
{
    const char *host = value_of("MASTER_ADDR"), *port = value_of("MASTER_PORT");
    unsigned number;
    char *end;

    if ((host == NULL) != (port == NULL))
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%s is set without %s: expected both, or neither where all processes "
                           "are on one host",
                           host != NULL ? "MASTER_ADDR" : "MASTER_PORT",
                           host != NULL ? "MASTER_PORT" : "MASTER_ADDR");
    if (host == NULL) {
        ZIPCCL_TRY(find_without_master(launch, place, &number, error));
    } else {
        unsigned long value = strtoul(port, &end, 10);

        if (end == port || *end != '\0' || value == 0 || value >= 65535)
            return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                               "MASTER_PORT=\"%.20s\": expected 1 to 65534", port);
        place->host = host;
        number = (unsigned)value + 1;
    }
    place->by_parent = host == NULL && place->host != place->first;
    find_job(place->job, place->by_parent);
    snprintf(place->port, sizeof place->port, "%u", number);
    return ZIPCCL_OK;
}

/* Who looks for rank 0 at another port than it has cannot know. */
static const char *hint(const struct place *place)
{
    return place->by_parent ? "; with a program between the launcher and this one, such as a "
                              "profiler, set MASTER_ADDR and MASTER_PORT"
                            : "";
}

static zipccl_status fail_io(const struct place *place, const char *what,
                             struct zipccl_error *error)
{
    return zipccl_fail(error, ZIPCCL_ERR_IO, "%s at %s, port %s: %s%s", what, place->host,
                       place->port, errno != 0 ? strerror(errno) : "timed out", hint(place));
}

/* Wait for 'events'; false, with errno 0, at the deadline. */
static bool wait_for(int fd, short events, double deadline_s)
{
    for (;;) {
        struct pollfd p = {.fd = fd, .events = events};
        double left = deadline_s - now_s();
        int n = left > 0 ? poll(&p, 1, (int)(1000 * left) + 1) : 0;

        if (n > 0)
            return true;
        if (n == 0)
            errno = 0;
        if (n == 0 || errno != EINTR)
            return false;
    }
}

/* Move all bytes one way before the deadline; false, with errno, if that fails. */
static bool move(int fd, void *bytes, size_t nbytes, bool out, double deadline_s)
{
    char *at = bytes;

    while (nbytes > 0) {
        ssize_t n;

        if (!wait_for(fd, out ? POLLOUT : POLLIN, deadline_s))
            return false;
        n = out ? send(fd, at, nbytes, MSG_NOSIGNAL | MSG_DONTWAIT)
                : recv(fd, at, nbytes, MSG_DONTWAIT);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n == 0)
            errno = ECONNRESET;
        if (n <= 0)
            return false;
        at += n;
        nbytes -= (size_t)n;
    }
    return true;
}

static void make_greeting(const struct zipccl_launch *launch, const struct place *place,
                          size_t nbytes, uint8_t *greeting)
{
    memcpy(greeting, magic, sizeof magic);
    zipccl_put_u32(greeting + GREETING_VERSION, VERSION);
    zipccl_put_u32(greeting + GREETING_RANK, launch->rank);
    zipccl_put_u32(greeting + GREETING_SIZE, launch->size);
    zipccl_put_u32(greeting + GREETING_NBYTES, (uint32_t)nbytes);
    memcpy(greeting + GREETING_JOB, place->job, JOB_BYTES);
}

/* Rank 0. */

static int listen_on(const struct addrinfo *at)
{
    int fd = socket(at->ai_family, at->ai_socktype, 0), one = 1, zero = 0, kept;

    if (fd < 0)
        return fd;
    if (at->ai_family == AF_INET6) /* all addresses: IPv4's too */
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
        fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0 &&
        bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, 1024) == 0)
        return fd;
    kept = errno;
    close(fd);
    errno = kept;
    return -1;
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 ==
               127;
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

/* Listen on the first address of 'host' (NULL: on all of this host) where that can be done. */
static int listen_at(const char *host, const char *port, int family, bool loopback)
{
    struct addrinfo hints = {
        .ai_family = family, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *list;
    int fd = -1;

    if (getaddrinfo(host, port, &hints, &list) != 0)
        return -1;
    for (const struct addrinfo *at = list; at != NULL && fd < 0; at = at->ai_next)
        if (loopback || !is_loopback(at->ai_addr))
            fd = listen_on(at);
    freeaddrinfo(list);
    return fd;
}

/*
 * Where the others look for rank 0 and nowhere else, if that is an address of this host; else, as
 * behind a NAT, on all.  That a host's own name means 127.0.1.1 there, as on Debian, is no address
 * for others.
 */
static int listen_for(const struct place *place)
{
    bool loopback = strcmp(place->host, "localhost") == 0 || strncmp(place->host, "127.", 4) == 0 ||
                    strchr(place->host, ':') != NULL;
    int fd;

    errno = 0;
    fd = listen_at(place->host, place->port, AF_UNSPEC, loopback);
    if (fd < 0 && errno != EADDRINUSE)
        fd = listen_at(NULL, place->port, AF_INET6, true);
    if (fd < 0 && errno != EADDRINUSE)
        fd = listen_at(NULL, place->port, AF_INET, true);
    return fd;
}

/* What rank 0 gives, and to whom it has. */
struct giver {
    const struct place *place;
    uint32_t size, nserved;
    bool *served; /* [size] */
    void *bytes;
    size_t nbytes;
    struct pollfd polled[MOST_SILENT + 1]; /* the listener, then who has not greeted */
    double until_s[MOST_SILENT + 1];
    nfds_t npolled;
};

/* Serve a process that has greeted; nothing for strangers. */
static void serve(struct giver *g, int fd)
{
    double deadline_s = earlier(now_s() + PEER_S, g->place->deadline_s);
    uint8_t greeting[GREETING_BYTES], reply[REPLY_BYTES], done;
    enum verdict verdict = TAKEN;
    uint32_t rank;

    if (!move(fd, greeting, sizeof greeting, false, deadline_s) ||
        memcmp(greeting, magic, sizeof magic) != 0 ||
        zipccl_get_u32(greeting + GREETING_VERSION) != VERSION)
        return;
    rank = zipccl_get_u32(greeting + GREETING_RANK);
    if (memcmp(greeting + GREETING_JOB, g->place->job, JOB_BYTES) != 0)
        verdict = OTHER_JOB;
    else if (zipccl_get_u32(greeting + GREETING_SIZE) != g->size || rank == 0 || rank >= g->size ||
             zipccl_get_u32(greeting + GREETING_NBYTES) != g->nbytes)
        verdict = OTHER_SIZE;
    memcpy(reply, magic, sizeof magic);
    zipccl_put_u32(reply + REPLY_VERDICT, verdict);
    zipccl_put_u32(reply + REPLY_NBYTES, verdict == TAKEN ? (uint32_t)g->nbytes : 0);
    if (!move(fd, reply, sizeof reply, true, deadline_s) || verdict != TAKEN ||
        !move(fd, g->bytes, g->nbytes, true, deadline_s) ||
        !move(fd, &done, 1, false, deadline_s) || !move(fd, &done, 1, true, deadline_s))
        return;
    g->nserved += !g->served[rank];
    g->served[rank] = true;
}

static void take_connection(struct giver *g)
{
    int whole = GREETING_BYTES, fd = accept(g->polled[0].fd, NULL, NULL);

    if (fd < 0) {
        if (errno != EINTR && errno != EAGAIN && errno != ECONNABORTED)
            pause_shortly(); /* no descriptors, say: poll() would not wait, since it stays queued */
        return;
    }
    /* Then poll() does not tell of less than a greeting. */
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &whole, sizeof whole) != 0) {
        close(fd);
        return;
    }
    g->polled[g->npolled] = (struct pollfd){.fd = fd, .events = POLLIN};
    g->until_s[g->npolled++] = now_s() + PEER_S;
}

/* Serve who has greeted, and send away who has not in time. */
static void look_at_connections(struct giver *g)
{
    double now = now_s();

    for (nfds_t i = g->npolled; i-- > 1;) {
        if (g->polled[i].revents == 0 && now < g->until_s[i])
            continue;
        if (g->polled[i].revents != 0) {
            int one = 1;

            (void)setsockopt(g->polled[i].fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof one);
            serve(g, g->polled[i].fd);
        }
        close(g->polled[i].fd);
        g->polled[i] = g->polled[--g->npolled];
        g->until_s[i] = g->until_s[g->npolled];
    }
}

static void serve_all(struct giver *g)
{
    while (g->nserved + 1 < g->size) {
        double left = g->place->deadline_s - now_s();
        int n;

        if (left <= 0)
            break;
        for (nfds_t i = 1; i < g->npolled; i++)
            left = earlier(left, g->until_s[i] - now_s());
        g->polled[0].events = g->npolled <= MOST_SILENT ? POLLIN : 0;
        n = poll(g->polled, g->npolled, left > 0 ? (int)(1000 * left) + 1 : 0);
        if (n < 0 && errno != EINTR)
            pause_shortly();
        for (nfds_t i = 0; n <= 0 && i < g->npolled; i++)
            g->polled[i].revents = 0;
        look_at_connections(g);
        if (g->polled[0].revents != 0 && g->npolled <= MOST_SILENT)
            take_connection(g);
    }
    for (nfds_t i = 0; i < g->npolled; i++)
        close(g->polled[i].fd);
}

static zipccl_status give(const struct zipccl_launch *launch, const struct place *place,
                          void *bytes, size_t nbytes, struct zipccl_error *error)
{
    struct giver *g = calloc(1, sizeof *g);
    bool *served = calloc(launch->size, sizeof *served);
    zipccl_status status = ZIPCCL_OK;
    int fd = g != NULL && served != NULL ? listen_for(place) : -1;

    if (g == NULL || served == NULL) {
        status = zipccl_fail(error, ZIPCCL_ERR_NOMEM, "no memory for %u processes", launch->size);
    } else if (fd < 0) {
        status = fail_io(place, "rank 0 cannot listen", error);
    } else {
        *g = (struct giver){.place = place,
                            .size = launch->size,
                            .served = served,
                            .bytes = bytes,
                            .nbytes = nbytes,
                            .polled = {{.fd = fd}},
                            .npolled = 1};
        serve_all(g);
        if (g->nserved + 1 < launch->size)
            status =
                zipccl_fail(error, ZIPCCL_ERR_IO, "%u of %u processes have come to %s, port %s%s",
                            g->nserved + 1, launch->size, place->host, place->port, hint(place));
    }
    free(served);
    free(g);
    return status;
}

/* The other ranks. */

static int connect_to(const struct addrinfo *at, double deadline_s)
{
    int fd = socket(at->ai_family, at->ai_socktype, 0), why = 0;
    socklen_t n = sizeof why;

    if (fd < 0)
        return fd;
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0) {
        if (connect(fd, at->ai_addr, at->ai_addrlen) == 0)
            return fd;
        if ((errno == EINPROGRESS || errno == EINTR) && wait_for(fd, POLLOUT, deadline_s) &&
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &n) == 0) {
            if (why == 0)
                return fd;
            errno = why;
        }
    }
    why = errno;
    close(fd);
    errno = why;
    return -1;
}

/* Greet and take the bytes; false, with errno, if that was not to be. */
static bool take(int fd, const struct zipccl_launch *launch, const struct place *place, void *bytes,
                 size_t nbytes, enum verdict *verdict)
{
    double deadline_s = earlier(now_s() + REPLY_S, place->deadline_s);
    uint8_t greeting[GREETING_BYTES], reply[REPLY_BYTES], done = 1;
    uint32_t word;

    make_greeting(launch, place, nbytes, greeting);
    if (!move(fd, greeting, sizeof greeting, true, deadline_s) ||
        !move(fd, reply, sizeof reply, false, deadline_s))
        return false;
    word = zipccl_get_u32(reply + REPLY_VERDICT);
    errno = EPROTO;
    if (memcmp(reply, magic, sizeof magic) != 0 || word > OTHER_SIZE)
        return false;
    *verdict = (enum verdict)word;
    if (word != TAKEN || zipccl_get_u32(reply + REPLY_NBYTES) != nbytes)
        return false;
    return move(fd, bytes, nbytes, false, deadline_s) && move(fd, &done, 1, true, deadline_s) &&
           move(fd, &done, 1, false, deadline_s);
}

/* One try at each address; the listener may not be up yet. */
static bool fetch_once(const struct zipccl_launch *launch, const struct place *place, void *bytes,
                       size_t nbytes, enum verdict *verdict)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list;
    bool done = false;

    errno = EHOSTUNREACH;
    if (getaddrinfo(place->host, place->port, &hints, &list) != 0)
        return false;
    for (const struct addrinfo *at = list; at != NULL && !done && *verdict != OTHER_SIZE;
         at = at->ai_next) {
        int fd = connect_to(at, earlier(now_s() + CONNECT_S, place->deadline_s)), kept;

        if (fd < 0)
            continue;
        done = take(fd, launch, place, bytes, nbytes, verdict);
        kept = errno;
        close(fd);
        errno = kept;
    }
    freeaddrinfo(list);
    return done;
}

static zipccl_status fetch(const struct zipccl_launch *launch, const struct place *place,
                           void *bytes, size_t nbytes, struct zipccl_error *error)
{
    enum verdict verdict = TAKEN;

    while (!fetch_once(launch, place, bytes, nbytes, &verdict)) {
        if (verdict == OTHER_SIZE)
            return zipccl_fail(error, ZIPCCL_ERR_MISMATCH,
                               "rank 0 at %s, port %s, has another number of processes than %u, or "
                               "is another program",
                               place->host, place->port, launch->size);
        if (now_s() > place->deadline_s && verdict == OTHER_JOB)
            return zipccl_fail(
                error, ZIPCCL_ERR_IO,
                "at %s, port %s, is rank 0 of another job: expected a MASTER_PORT of "
                "its own for each job",
                place->host, place->port);
        if (now_s() > place->deadline_s)
            return fail_io(place, "cannot fetch what rank 0 gives", error);
        pause_shortly();
    }
    return ZIPCCL_OK;
}

zipccl_status zipccl_rendezvous(const struct zipccl_launch *launch, void *bytes, size_t nbytes,
                                double timeout_s, struct zipccl_error *error)
{
    struct place place;

    if (launch->size <= 1)
        return ZIPCCL_OK;
    ZIPCCL_TRY(find_place(launch, &place, error));
    place.deadline_s = now_s() + earlier(timeout_s > 0 ? timeout_s : DEFAULT_TIMEOUT_S, MOST_S);
    return launch->rank == 0 ? give(launch, &place, bytes, nbytes, error)
                             : fetch(launch, &place, bytes, nbytes, error);
}
