/*
 * transport_mpi_wait.c - waiting for MPI, and notices of failures between processes
 *
 * Every handle listens on a communicator of its own for a notice from any rank.  Who fails tells every
 * rank once, and so does who hears of it: a rank that dies half way through telling does no harm.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/transport_mpi_state.h"
#include "core/wire.h"

#include <string.h>
#include <time.h>

/* Open MPI looks at sockets in every eighth call only, so polls come in bursts between sleeps. */
#define POLLS_PER_SLEEP 16u
#define SLEEP_FIRST_NS  20000L
#define SLEEP_LAST_NS   100000L
#define DRAIN_S         1.0
#define NOTICE_TAG      1

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void sleep_ns(long ns)
{
    struct timespec time = {.tv_nsec = ns};

    nanosleep(&time, NULL);
}

static void keep_text(struct zipccl_mpi *m, const struct zipccl_error *text)
{
    pthread_mutex_lock(&m->text_lock);
    if (m->error.text[0] == '\0')
        m->error = *text;
    pthread_mutex_unlock(&m->text_lock);
}

/* Errors are no matter: those peers listen no more. */
void zipccl_mpi_tell(struct zipccl_mpi *m, zipccl_status status, uint32_t end,
                     const struct zipccl_error *text)
{
    if (atomic_exchange(&m->told, true))
        return;
    m->failed = true;
    zipccl_put_u32(m->notice, (uint32_t)status);
    zipccl_put_u32(m->notice + 4, end);
    memcpy(m->notice + 8, text->text, sizeof text->text);
    for (uint32_t p = 0; p < m->base.nranks; p++)
        if (p != m->base.rank)
            MPI_Isend(m->notice, (int)ZIPCCL_MPI_NOTICE_BYTES, MPI_BYTE, (int)p, NOTICE_TAG,
                      m->control, &m->telling[p]);
}

/* Pass on what has been the first failure here. */
static void tell_first(struct zipccl_mpi *m)
{
    struct zipccl_error text;

    pthread_mutex_lock(&m->text_lock);
    text = m->error;
    pthread_mutex_unlock(&m->text_lock);
    zipccl_mpi_tell(m, ZIPCCL_ERR_ABORTED, ZIPCCL_MPI_NO_RANK, &text);
}

int zipccl_mpi_listen(struct zipccl_mpi *m)
{
    return MPI_Irecv(m->arrived, (int)ZIPCCL_MPI_NOTICE_BYTES, MPI_BYTE, MPI_ANY_SOURCE, NOTICE_TAG,
                     m->control, &m->listening);
}

/* Take what has arrived, and listen on; true if a rank has failed. */
static bool take_notices(struct zipccl_mpi *m)
{
    struct zipccl_error text;
    MPI_Status from;
    int done = 0;

    while (m->listening != MPI_REQUEST_NULL &&
           MPI_Test(&m->listening, &done, &from) == MPI_SUCCESS && done) {
        m->failed = true;
        m->heard[from.MPI_SOURCE] = true;
        if (zipccl_get_u32(m->arrived + 4) == m->base.rank)
            m->mismatch = true;
        memcpy(text.text, m->arrived + 8, sizeof text.text);
        text.text[sizeof text.text - 1] = '\0';
        if (!atomic_load(&m->told)) /* else this rank had failed before */
            keep_text(m, &text);
        zipccl_mpi_listen(m);
    }
    return m->failed;
}

/* See whether anybody has failed or wants to abort; if so, all ranks are told. */
static zipccl_status check(struct zipccl_mpi *m)
{
    zipccl_status status = ZIPCCL_ERR_ABORTED;

    if (!take_notices(m) && !atomic_load(&m->abort_wanted))
        return ZIPCCL_OK;
    tell_first(m);
    if (m->mismatch)
        status = ZIPCCL_ERR_MISMATCH;
    m->mismatch = false;
    return status;
}

static bool all_done(MPI_Request *requests, size_t n)
{
    bool done = true;

    for (size_t i = 0; i < n; i++) {
        int one = 1;

        /* A request that failed is over as well. */
        if (requests[i] != MPI_REQUEST_NULL &&
            MPI_Test(&requests[i], &one, MPI_STATUS_IGNORE) == MPI_SUCCESS)
            done = done && one;
    }
    return done;
}

/* See that the notices leave, with 'limit_s' at most; MPI sends only while it is called. */
static void push_notices(struct zipccl_mpi *m, double limit_s)
{
    double end = now_s() + limit_s;

    while (!all_done(m->telling, m->base.nranks) && now_s() < end)
        sleep_ns(SLEEP_FIRST_NS);
}

/* Tell what an abort has left to say, unless a call is in progress: that one will. */
static void settle(struct zipccl_mpi *m)
{
    while (atomic_load(&m->abort_wanted) && !atomic_load(&m->told) &&
           pthread_mutex_trylock(&m->lock) == 0) {
        tell_first(m);
        push_notices(m, DRAIN_S);
        pthread_mutex_unlock(&m->lock);
    }
}

void zipccl_mpi_abort(struct zipccl_transport *t)
{
    struct zipccl_mpi *m = (struct zipccl_mpi *)t;
    struct zipccl_error text;

    zipccl_fail(&text, ZIPCCL_ERR_ABORTED, "aborted by rank %d", m->world[t->rank]);
    keep_text(m, &text);
    atomic_store(&m->abort_wanted, true);
    settle(m);
}

const char *zipccl_mpi_error_text(const struct zipccl_transport *t)
{
    struct zipccl_mpi *m = (struct zipccl_mpi *)(uintptr_t)t;
    bool failed;

    pthread_mutex_lock(&m->text_lock); /* written once, so that it may be read outside */
    failed = m->error.text[0] != '\0';
    pthread_mutex_unlock(&m->text_lock);
    return failed ? m->error.text : "";
}

zipccl_status zipccl_mpi_begin(struct zipccl_mpi *m)
{
    zipccl_status status;

    pthread_mutex_lock(&m->lock);
    status = check(m);
    if (status != ZIPCCL_OK) {
        pthread_mutex_unlock(&m->lock);
        settle(m);
    }
    return status;
}

zipccl_status zipccl_mpi_end(struct zipccl_mpi *m, zipccl_status status)
{
    pthread_mutex_unlock(&m->lock);
    settle(m);
    return status;
}

zipccl_status zipccl_mpi_fail(struct zipccl_mpi *m, zipccl_status status, uint32_t end,
                              const struct zipccl_error *text)
{
    keep_text(m, text);
    zipccl_mpi_tell(m, status, end, text);
    return status;
}

zipccl_status zipccl_mpi_fail_rc(struct zipccl_mpi *m, const char *what, int rc)
{
    struct zipccl_error text;
    char said[MPI_MAX_ERROR_STRING] = "";
    int length;

    MPI_Error_string(rc, said, &length);
    zipccl_fail(&text, ZIPCCL_ERR_IO, "rank %d: %s: %.300s", m->world[m->base.rank], what, said);
    return zipccl_mpi_fail(m, ZIPCCL_ERR_IO, ZIPCCL_MPI_NO_RANK, &text);
}

void zipccl_mpi_wait_start(struct zipccl_mpi_wait *wait)
{
    wait->start_s = wait->progress_s = now_s();
    wait->nidle = 0;
}

void zipccl_mpi_wait_progress(struct zipccl_mpi_wait *wait)
{
    wait->nidle = 0;
}

zipccl_status zipccl_mpi_wait_idle(struct zipccl_mpi *m, struct zipccl_mpi_wait *wait)
{
    double now = now_s();
    long ns;

    ZIPCCL_TRY(check(m));
    if (m->config.limit_s > 0 && now - wait->start_s > m->config.limit_s)
        return ZIPCCL_ERR_TIMEOUT;
    if (wait->nidle++ == 0)
        wait->progress_s = now;
    if (now - wait->progress_s < m->config.spin_s || wait->nidle % POLLS_PER_SLEEP != 0)
        return ZIPCCL_OK;
    /* Ranks may share cores, and the codec lane of this very rank wants one. */
    ns = SLEEP_FIRST_NS * (long)(wait->nidle / POLLS_PER_SLEEP);
    sleep_ns(ns < SLEEP_LAST_NS ? ns : SLEEP_LAST_NS);
    return ZIPCCL_OK;
}

void zipccl_mpi_drain(struct zipccl_mpi *m, MPI_Request *requests, size_t n, bool cancel)
{
    double end = now_s() + DRAIN_S;

    for (size_t i = 0; cancel && i < n; i++)
        if (requests[i] != MPI_REQUEST_NULL)
            MPI_Cancel(&requests[i]);
    for (;;) {
        bool done = all_done(requests, n);

        take_notices(m);
        if ((all_done(m->telling, m->base.nranks) && done) || now_s() > end)
            return;
        sleep_ns(SLEEP_FIRST_NS);
    }
}

uint32_t zipccl_mpi_silent_rank(struct zipccl_mpi *m)
{
    double end = now_s() + DRAIN_S;

    for (;;) {
        uint32_t p = 0;

        take_notices(m);
        all_done(m->telling, m->base.nranks);
        while (p < m->base.nranks && (p == m->base.rank || m->heard[p]))
            p++;
        if (p == m->base.nranks)
            return ZIPCCL_MPI_NO_RANK;
        if (now_s() > end)
            return p;
        sleep_ns(SLEEP_FIRST_NS);
    }
}
