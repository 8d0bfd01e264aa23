/*
 * gate_helper.c - the thread that sends again raw what a gate asked for
 *
 * Each gate has one.  NCCL may connect two ranks, or set up another algorithm, when they first need it, and then a call
 * waits for the same call of the other ranks.  One thread for several gates would wait for itself where two
 * ranks are in its process, and for another process's where both have two communicators and start with
 * different ones.
 *
 * The list below, for the end of the process, is the only thing here that is not a communicator's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/gate.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Between two looks: while something is being sent, and at most while nothing is. */
#define BUSY_NS 20000
#define IDLE_NS 200000

/* Looks at a resend under way from one question to NCCL whether it failed to the next. */
#define ASK_EVERY 64u

static struct {
    pthread_mutex_t mutex;
    struct zipccl_gate *first;
    bool leaves_at_exit;
    pid_t pid; /* that the threads are in; a process that it forked has none */
} helpers = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void wake(struct zipccl_gate *gate)
{
    if (atomic_exchange(&gate->asleep, false))
        sem_post(&gate->wake);
}

/* Let streams go on, whatever it takes; the communicator of resends is of no use then. */
static void shut(struct zipccl_gate *gate)
{
    const unsigned order[] = {ZIPCCL_GATE_CLOSED, ZIPCCL_GATE_WORD};

    for (unsigned i = 0; i < 2; i++) {
        uint32_t *word = gate->d_words + order[i];

        if (gate->write_value(gate->release, (CUdeviceptr)(uintptr_t)word, 1, 0) != CUDA_SUCCESS)
            cudaMemsetAsync(word, 1, 1, gate->release); /* little-endian: 1 as well */
    }
    if (!atomic_exchange(&gate->comm_gone, true))
        gate->api->CommAbort(gate->comm);
    gate->sending = false;
    atomic_store(&gate->closed, true);
}

static void give_up(struct zipccl_gate *gate, zipccl_status status, const char *what,
                    const char *why)
{
    pthread_mutex_lock(&gate->mutex);
    zipccl_fail(&gate->error, status, "rank %u: raw resend: %s: %s",
                gate->exec->transport->base.rank, what, why);
    pthread_mutex_unlock(&gate->mutex);
    atomic_store(&gate->status, (int)status);
    shut(gate);
}

static ncclResult_t post_all(const struct zipccl_gate *gate, const struct zipccl_gate_site *site)
{
    const struct zipccl_nccl_api *api = gate->api;
    ncclResult_t result = ncclSuccess;

    for (size_t i = 0; i < site->nposts && result == ncclSuccess; i++) {
        const struct zipccl_gate_post *p = &site->posts[i];

        if (p->flag != ZIPCCL_GATE_ALWAYS && gate->request->flags[p->flag] == 0)
            continue;
        result =
            p->send ? api->Send(p->buf, p->nbytes, ncclUint8, (int)p->peer, gate->comm, gate->side)
                    : api->Recv(p->buf, p->nbytes, ncclUint8, (int)p->peer, gate->comm, gate->side);
    }
    return result;
}

static ncclResult_t resend(const struct zipccl_gate *gate, const struct zipccl_gate_site *site)
{
    const struct zipccl_nccl_api *api = gate->api;
    ncclResult_t result, ended;

    if (site->ring_nbytes > 0 && site->broadcast)
        return api->Broadcast(site->ring_src, site->ring_dst, site->ring_nbytes, ncclUint8,
                              (int)site->root, gate->comm, gate->side);
    if (site->ring_nbytes > 0)
        return api->AllGather(site->ring_src, site->ring_dst, site->ring_nbytes, ncclUint8,
                              gate->comm, gate->side);
    result = api->GroupStart();
    if (result != ncclSuccess)
        return result;
    result = post_all(gate, site);
    ended = api->GroupEnd();
    return result != ncclSuccess ? result : ended;
}

static void start(struct zipccl_gate *gate, uint32_t number)
{
    const struct zipccl_gate_site *site = NULL;
    ncclResult_t result;
    CUresult written;

    pthread_mutex_lock(&gate->mutex);
    if (number <= gate->nsites)
        site = gate->sites[number - 1];
    pthread_mutex_unlock(&gate->mutex);
    /* The stream waits, so the site stays, and nobody rings before the word is written. */
    __atomic_store_n(&gate->request->bell, 0, __ATOMIC_RELAXED);
    if (site == NULL) {
        give_up(gate, ZIPCCL_ERR_INTERNAL, "request", "of no exchange");
        return;
    }
    result = resend(gate, site);
    if (result != ncclSuccess) {
        give_up(gate, ZIPCCL_ERR_IO, "NCCL", gate->api->GetErrorString(result));
        return;
    }
    written = gate->write_value(gate->side,
                                (CUdeviceptr)(uintptr_t)(gate->d_words + ZIPCCL_GATE_WORD), 1, 0);
    if (written != CUDA_SUCCESS || cudaEventRecord(gate->sent, gate->side) != cudaSuccess) {
        give_up(gate, ZIPCCL_ERR_IO, "CUDA", "cuStreamWriteValue32 or cudaEventRecord");
        return;
    }
    atomic_fetch_add(&gate->resends, 1);
    gate->sending = true;
    gate->since_s = now_s();
}

/* Look at a resend under way. */
static void follow(struct zipccl_gate *gate, bool ask)
{
    cudaError_t result = cudaEventQuery(gate->sent);
    ncclResult_t async = ncclSuccess;

    /* What failed may still have "happened". */
    if (ask || result == cudaSuccess)
        gate->api->CommGetAsyncError(gate->comm, &async);
    if (async != ncclSuccess && async != ncclInProgress)
        give_up(gate, ZIPCCL_ERR_IO, "NCCL", gate->api->GetErrorString(async));
    else if (result == cudaSuccess)
        gate->sending = false;
    else if (result != cudaErrorNotReady)
        give_up(gate, ZIPCCL_ERR_IO, "CUDA", cudaGetErrorString(result));
    else if (gate->limit_s > 0 && now_s() - gate->since_s > gate->limit_s)
        give_up(gate, ZIPCCL_ERR_IO, "wait for other ranks", "the limit is over");
}

/* True if there was something to do. */
static bool look_after(struct zipccl_gate *gate, unsigned turn)
{
    uint32_t number = __atomic_load_n(&gate->request->bell, __ATOMIC_ACQUIRE);
    bool closing = atomic_load(&gate->closing);

    if (atomic_load(&gate->closed) || (number == 0 && !gate->sending && !closing))
        return false;
    if (closing) {
        shut(gate);
        return true;
    }
    if (gate->sending)
        follow(gate, turn % ASK_EVERY == 0);
    if (number != 0 && !atomic_load(&gate->closed))
        start(gate, number);
    return true;
}

/* Sleep until there is a site that could ask, or something else to do. */
static void sleep_long(struct zipccl_gate *gate)
{
    atomic_store(&gate->asleep, true);
    if (atomic_load(&gate->asks) > 0 || atomic_load(&gate->stop))
        wake(gate);
    while (sem_wait(&gate->wake) != 0)
        continue; /* takes what wake() has posted, or who was faster */
}

static void *helper_main(void *arg)
{
    enum cudaStreamCaptureMode relaxed = cudaStreamCaptureModeRelaxed;
    struct zipccl_gate *gate = arg;
    long pause_ns = BUSY_NS;

    /* Its questions do no harm to what other threads capture. */
    cudaThreadExchangeStreamCaptureMode(&relaxed);
    cudaSetDevice(gate->device);
    for (unsigned turn = 1; !atomic_load(&gate->stop); turn++) {
        bool busy = look_after(gate, turn);
        struct timespec pause = {0, pause_ns};

        if (!busy && atomic_load(&gate->asks) == 0) {
            sleep_long(gate);
            continue;
        }
        nanosleep(&pause, NULL);
        pause_ns = busy ? BUSY_NS : pause_ns + pause_ns / 8;
        pause_ns = pause_ns < IDLE_NS ? pause_ns : IDLE_NS;
    }
    atomic_store(&gate->stopped, true);
    return NULL;
}

static void tell_to_stop(struct zipccl_gate *gate)
{
    atomic_store(&gate->stop, true);
    wake(gate);
}

/* A process that ends with gates: before CUDA takes pinned memory away, registered later than it. */
static void stop_at_exit(void)
{
    const struct timespec pause = {0, 1000000};
    unsigned ms = 0;

    if (getpid() != helpers.pid || pthread_mutex_trylock(&helpers.mutex) != 0)
        return;
    for (struct zipccl_gate *gate = helpers.first; gate != NULL; gate = gate->next)
        tell_to_stop(gate);
    for (struct zipccl_gate *gate = helpers.first; gate != NULL; gate = gate->next) {
        for (; !atomic_load(&gate->stopped) && ms < 1000; ms++)
            nanosleep(&pause, NULL);
        if (gate->helped && atomic_load(&gate->stopped)) {
            pthread_join(gate->thread, NULL);
            gate->helped = false;
        }
    }
    pthread_mutex_unlock(&helpers.mutex);
}

/* With the mutex. */
static zipccl_status begin_thread(struct zipccl_gate *gate)
{
    if (!helpers.leaves_at_exit) {
        if (atexit(stop_at_exit) != 0)
            return ZIPCCL_ERR_NOMEM;
        helpers.leaves_at_exit = true;
    }
    if (sem_init(&gate->wake, 0, 0) != 0)
        return ZIPCCL_ERR_NOMEM;
    if (pthread_create(&gate->thread, NULL, helper_main, gate) != 0) {
        sem_destroy(&gate->wake);
        return ZIPCCL_ERR_NOMEM;
    }
    helpers.pid = getpid();
    gate->helped = true;
    gate->next = helpers.first;
    helpers.first = gate;
    return ZIPCCL_OK;
}

zipccl_status zipccl_gate_helper_join(struct zipccl_gate *gate)
{
    zipccl_status status;

    pthread_mutex_lock(&helpers.mutex);
    status = begin_thread(gate);
    pthread_mutex_unlock(&helpers.mutex);
    return status;
}

void zipccl_gate_helper_leave(struct zipccl_gate *gate)
{
    struct zipccl_gate **at = &helpers.first;
    bool known, runs;

    pthread_mutex_lock(&helpers.mutex);
    while (*at != NULL && *at != gate)
        at = &(*at)->next;
    known = *at == gate;
    runs = gate->helped;
    if (known)
        *at = gate->next;
    pthread_mutex_unlock(&helpers.mutex);
    if (!known)
        return;
    if (runs) {
        tell_to_stop(gate);
        pthread_join(gate->thread, NULL);
        gate->helped = false;
    }
    sem_destroy(&gate->wake);
}

zipccl_status zipccl_gate_site_add(struct zipccl_gate *gate, struct zipccl_gate_site *site)
{
    uint32_t number = 0;

    pthread_mutex_lock(&gate->mutex);
    while (number < gate->nsites && gate->sites[number] != NULL)
        number++;
    if (number == gate->nsites) {
        uint32_t room = 2 * gate->nsites + 16;
        struct zipccl_gate_site **more = realloc(gate->sites, room * sizeof *more);

        if (more == NULL) {
            pthread_mutex_unlock(&gate->mutex);
            return ZIPCCL_ERR_NOMEM;
        }
        memset(more + number, 0, (room - number) * sizeof *more);
        gate->sites = more;
        gate->nsites = room;
    }
    gate->sites[number] = site;
    site->number = number;
    pthread_mutex_unlock(&gate->mutex);
    atomic_fetch_add(&gate->asks, 1);
    wake(gate);
    return ZIPCCL_OK;
}

static void site_free(struct zipccl_gate_site *site)
{
    free(site->posts);
    free(site->wire);
    free(site->raw);
    free(site->n);
    free(site->from);
    free(site);
}

void zipccl_gate_sites_free(struct zipccl_gate *gate, struct zipccl_gate_call *call)
{
    while (call->sites != NULL) {
        struct zipccl_gate_site *site = call->sites;

        call->sites = site->next;
        pthread_mutex_lock(&gate->mutex);
        if (site->number < gate->nsites && gate->sites[site->number] == site) {
            gate->sites[site->number] = NULL;
            atomic_fetch_sub(&gate->asks, 1);
        }
        pthread_mutex_unlock(&gate->mutex);
        site_free(site);
    }
}

void zipccl_gate_abort(struct zipccl_gate *gate)
{
    const struct timespec pause = {0, 1000000};

    if (gate == NULL)
        return;
    atomic_store(&gate->closing, true);
    atomic_fetch_add(&gate->asks, 1);
    wake(gate);
    for (unsigned ms = 0; !atomic_load(&gate->closed) && ms < 1000; ms++)
        nanosleep(&pause, NULL);
    atomic_fetch_sub(&gate->asks, 1);
    /* It may be inside NCCL, which this ends. */
    if (!atomic_load(&gate->closed) && !atomic_exchange(&gate->comm_gone, true))
        gate->api->CommAbort(gate->comm);
}

bool zipccl_gate_is_quiet(const struct zipccl_gate *gate)
{
    const struct timespec pause = {0, 1000000};

    if (gate == NULL || (!atomic_load(&gate->closed) && !atomic_load(&gate->closing)))
        return true;
    for (unsigned ms = 0; cudaStreamQuery(gate->side) == cudaErrorNotReady && ms < 1000; ms++)
        nanosleep(&pause, NULL);
    return cudaStreamQuery(gate->side) == cudaSuccess;
}
