/*
 * real_replay_rank.c - a rank of a real replay: memory, communicators, and its streams as threads
 *
 * A stream's thread takes its ops in program order, waits until what they depend on is done on this
 * rank, and runs them.  A rank that fails aborts every transport that it has, so that nobody waits.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/replay/real_replay_state.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define CACHE_LINE 64

/* Staging of a communicator whose plans compress, next to the larger buffer: out and in. */
#define STAGING_PER_BUFFER 2.0

zipccl_status replay_fail(struct replay_job *job, zipccl_status status, const char *format, ...)
{
    va_list args;

    pthread_mutex_lock(&job->lock);
    if (job->status == ZIPCCL_OK || zipccl_tells_less(job->status, status)) {
        job->status = status;
        va_start(args, format);
        vsnprintf(job->error.text, sizeof job->error.text, format, args);
        va_end(args);
    }
    pthread_mutex_unlock(&job->lock);
    return status;
}

zipccl_status replay_fail_world(struct replay_rank *rank, zipccl_status status, const char *what)
{
    struct zipccl_error error;

    zipccl_transport_fail(rank->whole, status, what, &error);
    return replay_fail(rank->job, status, "%s", error.text);
}

/* True if 'rank' runs the event. */
static bool runs(const struct zipccl_program_event *e, uint32_t rank)
{
    return e->part_of != NULL && e->part_of[rank] != ZIPCCL_NO_PART;
}

/* Bytes that 'rank' sends of 'set' at most, and receives in 'stream'; ZIPCCL_NO_PART: of all. */
static size_t most_bytes(const struct replay_job *job, uint32_t rank, uint32_t set, uint32_t stream)
{
    const struct zipccl_program *p = job->program;
    size_t most = 0;

    for (size_t i = 0; i < p->nevents; i++) {
        const struct zipccl_program_event *e = &p->events[i];
        size_t send_n, recv_n, nbytes;

        if (e->group == NULL || !runs(e, rank))
            continue;
        if (set != ZIPCCL_NO_PART ? p->classes[e->class].set != set : e->event->stream != stream)
            continue;
        replay_sizes(&p->classes[e->class], replay_member(e->group, e->part_of[rank], rank),
                     &send_n, &recv_n);
        nbytes = (set != ZIPCCL_NO_PART ? send_n : recv_n) * zipccl_dtype_size(e->event->dtype);
        most = nbytes > most ? nbytes : most;
    }
    return most;
}

double replay_rank_bytes(const struct replay_job *job, uint32_t rank)
{
    const struct zipccl_real_replay_options *o = job->options;
    double nbytes = 0, most;

    for (uint32_t set = 0; set < job->nsets; set++)
        nbytes += (double)most_bytes(job, rank, set, 0);
    for (uint32_t s = 0; s < job->program->nstreams; s++) {
        most = (double)most_bytes(job, rank, ZIPCCL_NO_PART, s);
        nbytes += most;
        for (int mode = 0; mode < ZIPCCL_NUM_STEPS; mode++)
            if (o->modes[mode] && mode != ZIPCCL_STEP_RAW)
                nbytes += STAGING_PER_BUFFER * most;
    }
    return nbytes;
}

static void *allocate(const struct replay_rank *rank, size_t nbytes)
{
    void *p = NULL;

    if (rank->device != NULL)
        return rank->device->alloc(nbytes + CACHE_LINE);
    if (posix_memalign(&p, CACHE_LINE, nbytes + CACHE_LINE) != 0)
        return NULL;
    memset(p, 0, nbytes + CACHE_LINE);
    return p;
}

static void free_buffer(const struct replay_rank *rank, void *p)
{
    if (rank->device == NULL)
        free(p);
    else if (p != NULL)
        rank->device->free(p);
}

/* The elements of a set come to rank->send[set]. */
static zipccl_status fill_set(struct replay_rank *rank, uint32_t set, enum zipccl_dtype dtype,
                              size_t nbytes)
{
    size_t n = nbytes / zipccl_dtype_size(dtype);
    void *shadow = rank->device != NULL ? malloc(nbytes + 1) : rank->send[set];
    zipccl_status status = ZIPCCL_OK;

    if (shadow == NULL)
        return ZIPCCL_ERR_NOMEM;
    replay_elements(rank->job, set, dtype, rank->index, 0, n, shadow);
    if (rank->device != NULL) {
        status = rank->device->copy(rank->whole, rank->send[set], shadow, nbytes, true);
        free(shadow);
    }
    return status;
}

static zipccl_status fill_sets(struct replay_rank *rank)
{
    struct replay_job *job = rank->job;
    const struct zipccl_program *p = job->program;

    for (uint32_t i = 0; i < p->nclasses; i++) {
        uint32_t set = p->classes[i].set;
        enum zipccl_dtype dtype = p->classes[i].event->dtype;
        size_t nbytes = most_bytes(job, rank->index, set, 0);

        if (rank->send[set] != NULL)
            continue;
        rank->send[set] = allocate(rank, nbytes);
        if (rank->send[set] == NULL || fill_set(rank, set, dtype, nbytes) != ZIPCCL_OK)
            return replay_fail(job, ZIPCCL_ERR_NOMEM, "no memory for what rank %u sends",
                               rank->index);
    }
    return ZIPCCL_OK;
}

/* What files of a communicator begin with: one rank has several. */
static void name_state(const struct replay_key *key, char *out, size_t size)
{
    snprintf(out, size, "group-%u.stream-%u", key->group, key->stream);
}

static zipccl_status load_state(struct replay_rank *rank, uint32_t key)
{
    struct zipccl_comm *comm = rank->comms[key][ZIPCCL_STEP_ADAPTIVE];
    zipccl_status status;
    char name[64];

    if (comm == NULL)
        return ZIPCCL_OK;
    name_state(&rank->job->keys[key], name, sizeof name);
    status = zipccl_state_files_load(&rank->job->options->state, name, rank->index, comm);
    if (status == ZIPCCL_OK)
        return status;
    pthread_mutex_lock(&rank->job->lock);
    rank->job->not_loaded = true;
    pthread_mutex_unlock(&rank->job->lock);
    replay_fail(rank->job, status, "--state-load: %.480s", zipccl_comm_error(comm));
    return zipccl_state_files_status(status, true);
}

zipccl_status replay_save_state(struct replay_rank *rank)
{
    for (uint32_t k = 0; k < rank->job->nkeys; k++) {
        struct zipccl_comm *comm = rank->comms[k][ZIPCCL_STEP_ADAPTIVE];
        struct zipccl_error error;
        zipccl_status status = ZIPCCL_OK;
        char name[64];

        name_state(&rank->job->keys[k], name, sizeof name);
        if (comm != NULL)
            status = zipccl_state_files_save(&rank->job->options->state, name, rank->index, comm,
                                             &error);
        if (status != ZIPCCL_OK)
            return replay_fail(rank->job, status, "%s", error.text);
    }
    return ZIPCCL_OK;
}

static zipccl_status open_comms(struct replay_rank *rank, uint32_t key)
{
    static const enum zipccl_mode modes[ZIPCCL_NUM_STEPS] = {
        [ZIPCCL_STEP_RAW] = ZIPCCL_MODE_RAW,
        [ZIPCCL_STEP_COMPRESSED] = ZIPCCL_MODE_COMPRESSED,
        [ZIPCCL_STEP_ADAPTIVE] = ZIPCCL_MODE_ADAPTIVE,
    };
    const struct zipccl_real_replay_options *o = rank->job->options;
    struct zipccl_transport *transport = rank->job->keys[key].mine[rank->local];
    zipccl_status status;

    if (transport == NULL)
        return ZIPCCL_OK;
    if (rank->device != NULL) {
        status = rank->device->exec(transport, &rank->execs[key]);
        if (status != ZIPCCL_OK)
            return replay_fail(rank->job, status, "%s", zipccl_transport_text(transport));
    } else {
        status = zipccl_exec_cpu_create_mt(zipccl_isa_best(), o->codec_threads, &rank->execs[key]);
        if (status != ZIPCCL_OK)
            return replay_fail(rank->job, status, "cannot start the codec's threads");
        zipccl_time_exec(&rank->timed[key], rank->execs[key]);
    }
    for (int mode = 0; mode < ZIPCCL_NUM_STEPS; mode++) {
        struct zipccl_comm_config config;
        struct zipccl_error error = {""};

        if (!o->modes[mode])
            continue;
        zipccl_comm_config_init(&config);
        config.mode = modes[mode];
        config.params = *o->params;
        config.capacity_class = o->capacity_class;
        if (mode == ZIPCCL_STEP_ADAPTIVE)
            zipccl_state_files_config(&o->state, &config);
        status = zipccl_comm_create(transport, rank->execs[key], &config, &rank->comms[key][mode],
                                    &error);
        if (status != ZIPCCL_OK)
            return replay_fail(rank->job, status, "%s", error.text);
    }
    return load_state(rank, key);
}

static bool is_done(const struct replay_rank *rank, uint32_t op)
{
    const struct zipccl_program *p = rank->job->program;

    return rank->done[op] || !runs(&p->events[p->ops[op].event], rank->index);
}

/* Wait for what 'op' depends on; false if the rank has failed. */
static bool wait_for_deps(struct replay_rank *rank, uint32_t op)
{
    const struct zipccl_program *p = rank->job->program;
    const struct zipccl_program_op *o = &p->ops[op];
    bool fine;

    pthread_mutex_lock(&rank->lock);
    for (uint32_t d = 0; d < o->ndeps; d++)
        while (rank->status == ZIPCCL_OK && !is_done(rank, p->deps[o->first_dep + d]))
            pthread_cond_wait(&rank->changed, &rank->lock);
    fine = rank->status == ZIPCCL_OK;
    pthread_mutex_unlock(&rank->lock);
    return fine;
}

/* The rank gives up: no stream of it and no peer may wait for it. */
static void give_up(struct replay_rank *rank, zipccl_status status)
{
    pthread_mutex_lock(&rank->lock);
    if (rank->status == ZIPCCL_OK)
        rank->status = status;
    pthread_cond_broadcast(&rank->changed);
    pthread_mutex_unlock(&rank->lock);
    for (uint32_t k = 0; k < rank->job->nkeys; k++) {
        struct zipccl_transport *t = rank->job->keys[k].mine[rank->local];

        if (t != NULL)
            t->ops->abort(t);
    }
    rank->whole->ops->abort(rank->whole);
}

/* Nothing for 'seconds': the processor is free. */
static void sleep_for(double seconds)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)seconds;
    until.tv_nsec += (long)(1e9 * (seconds - (double)(time_t)seconds));
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
        ;
}

static double thread_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Work that takes 'seconds' of a processor, longer where others want it too. */
static void spin_for(double seconds)
{
    double end = thread_s() + seconds;

    while (thread_s() < end)
        ;
}

static void compute(const struct replay_rank *rank, const struct zipccl_program_event *e)
{
    const struct zipccl_real_replay_options *o = rank->job->options;
    double seconds = e->compute_s[rank->index];

    if (rank->skip || !(seconds > 0))
        return;
    if (o->gaps == ZIPCCL_GAPS_BUSY && !e->communication)
        spin_for(seconds);
    else
        sleep_for(seconds);
}

static void mark_done(struct replay_rank *rank, uint32_t op)
{
    pthread_mutex_lock(&rank->lock);
    rank->done[op] = 1;
    pthread_cond_broadcast(&rank->changed);
    pthread_mutex_unlock(&rank->lock);
}

static void run_stream(struct replay_stream *stream)
{
    struct replay_rank *rank = stream->rank;
    const struct zipccl_program *p = rank->job->program;

    for (uint32_t i = 0; i < stream->nops; i++) {
        uint32_t op = stream->ops[i];
        const struct zipccl_program_event *e = &p->events[p->ops[op].event];
        zipccl_status status = ZIPCCL_OK;

        if (!wait_for_deps(rank, op))
            return;
        rank->enter[op] = zipccl_now_s() - rank->start_s;
        if (e->group != NULL)
            status = replay_call(stream, op);
        else
            compute(rank, e);
        rank->end[op] = zipccl_now_s() - rank->start_s;
        if (status != ZIPCCL_OK) {
            give_up(rank, status);
            return;
        }
        mark_done(rank, op);
    }
}

static void *stream_main(void *arg)
{
    struct replay_stream *stream = arg;
    struct replay_rank *rank = stream->rank;

    prctl(PR_SET_TIMERSLACK, 1UL); /* sleeps end when they should */
    if (rank->device != NULL && rank->device->use(rank->whole) != ZIPCCL_OK)
        give_up(rank, replay_fail_world(rank, ZIPCCL_ERR_IO, "a stream's thread has no GPU"));
    pthread_mutex_lock(&rank->lock);
    for (;;) {
        while (stream->generation == rank->generation && !rank->stop)
            pthread_cond_wait(&rank->changed, &rank->lock);
        if (rank->stop)
            break;
        stream->generation = rank->generation;
        pthread_mutex_unlock(&rank->lock);
        run_stream(stream);
        pthread_mutex_lock(&rank->lock);
        rank->nrunning--;
        pthread_cond_broadcast(&rank->changed);
    }
    pthread_mutex_unlock(&rank->lock);
    return NULL;
}

/* The ops that this rank has in one stream. */
static zipccl_status collect_ops(struct replay_rank *rank, uint32_t index)
{
    const struct zipccl_program *p = rank->job->program;
    struct replay_stream *stream = &rank->streams[index];
    size_t splits = 4 * (size_t)rank->job->largest_group;

    stream->rank = rank;
    stream->ops = malloc((p->nops + 1) * sizeof *stream->ops);
    stream->splits = calloc(splits + 1, sizeof *stream->splits);
    stream->recv = allocate(rank, most_bytes(rank->job, rank->index, ZIPCCL_NO_PART, index));
    if (rank->device != NULL)
        stream->shadow = malloc(most_bytes(rank->job, rank->index, ZIPCCL_NO_PART, index) + 1);
    if (stream->ops == NULL || stream->splits == NULL || stream->recv == NULL ||
        (rank->device != NULL && stream->shadow == NULL))
        return replay_fail(rank->job, ZIPCCL_ERR_NOMEM, "no memory for a stream of rank %u",
                           rank->index);
    for (uint32_t op = 0; op < p->nops; op++) {
        const struct zipccl_program_event *e = &p->events[p->ops[op].event];

        if (e->event->stream == index && runs(e, rank->index))
            stream->ops[stream->nops++] = op;
    }
    return ZIPCCL_OK;
}

static zipccl_status open_streams(struct replay_rank *rank)
{
    for (uint32_t s = 0; s < rank->job->program->nstreams; s++)
        ZIPCCL_TRY(collect_ops(rank, s));
    for (uint32_t s = 0; s < rank->job->program->nstreams; s++) {
        struct replay_stream *stream = &rank->streams[s];

        if (stream->nops == 0)
            continue;
        if (pthread_create(&stream->thread, NULL, stream_main, stream) != 0)
            return replay_fail(rank->job, ZIPCCL_ERR_NOMEM, "rank %u: cannot start a stream",
                               rank->index);
        stream->started = true;
    }
    return ZIPCCL_OK;
}

static zipccl_status open_rank(struct replay_rank *rank)
{
    const struct replay_job *job = rank->job;
    uint32_t nkeys = job->nkeys;

    rank->execs = calloc(nkeys + 1, sizeof *rank->execs);
    rank->timed = calloc(nkeys + 1, sizeof *rank->timed);
    rank->comms = calloc(nkeys + 1, sizeof *rank->comms);
    rank->send = calloc(job->nsets + 1, sizeof *rank->send);
    rank->streams = calloc(job->program->nstreams, sizeof *rank->streams);
    rank->done = calloc(job->program->nops + 1, 1);
    if (rank->execs == NULL || rank->timed == NULL || rank->comms == NULL || rank->send == NULL ||
        rank->streams == NULL || rank->done == NULL)
        return replay_fail(rank->job, ZIPCCL_ERR_NOMEM, "no memory for rank %u", rank->index);
    ZIPCCL_TRY(fill_sets(rank));
    /* In the same order everywhere: creating one waits for its members. */
    for (uint32_t k = 0; k < nkeys; k++)
        ZIPCCL_TRY(open_comms(rank, k));
    return open_streams(rank);
}

zipccl_status replay_rank_open(struct replay_rank *rank, struct replay_job *job,
                               struct zipccl_transport *whole)
{
    zipccl_status status;

    *rank = (struct replay_rank){.job = job,
                                 .whole = whole,
                                 .index = whole->rank,
                                 .local = whole->rank - job->world->first,
                                 .device = job->world->device};
    pthread_mutex_init(&rank->lock, NULL);
    pthread_cond_init(&rank->changed, NULL);
    status = open_rank(rank);
    if (status != ZIPCCL_OK)
        give_up(rank, status);
    return status;
}

static void close_streams(struct replay_rank *rank)
{
    if (rank->streams == NULL)
        return;
    pthread_mutex_lock(&rank->lock);
    rank->stop = true;
    pthread_cond_broadcast(&rank->changed);
    pthread_mutex_unlock(&rank->lock);
    for (uint32_t s = 0; s < rank->job->program->nstreams; s++) {
        struct replay_stream *stream = &rank->streams[s];

        if (stream->started)
            pthread_join(stream->thread, NULL);
        free(stream->ops);
        free(stream->splits);
        free(stream->shadow);
        free_buffer(rank, stream->recv);
    }
}

void replay_rank_close(struct replay_rank *rank)
{
    close_streams(rank);
    for (uint32_t k = 0; k < rank->job->nkeys; k++) {
        for (int mode = 0; mode < ZIPCCL_NUM_STEPS && rank->comms != NULL; mode++)
            zipccl_comm_destroy(rank->comms[k][mode]);
        if (rank->execs != NULL && rank->execs[k] != NULL)
            rank->execs[k]->ops->destroy(rank->execs[k]);
    }
    for (uint32_t set = 0; set < rank->job->nsets && rank->send != NULL; set++)
        free_buffer(rank, rank->send[set]);
    free(rank->send);
    free(rank->streams);
    free(rank->comms);
    free(rank->timed);
    free(rank->execs);
    free(rank->done);
    pthread_cond_destroy(&rank->changed);
    pthread_mutex_destroy(&rank->lock);
}

zipccl_status replay_step(struct replay_rank *rank, int mode, bool check, double *enter,
                          double *end)
{
    unsigned char one = 1, *all = malloc(rank->whole->nranks);
    zipccl_status status = ZIPCCL_ERR_NOMEM;

    rank->mode = mode;
    rank->check = check;
    rank->skip = check || rank->job->options->gaps == ZIPCCL_GAPS_SKIP;
    rank->enter = enter;
    rank->end = end;
    memset(rank->done, 0, rank->job->program->nops);
    if (all != NULL)
        status = zipccl_world_gather(rank->whole, &one, 1, all);
    free(all);
    if (status != ZIPCCL_OK) {
        replay_fail_world(rank, status, "the ranks do not meet before a step");
        give_up(rank, status);
        return status;
    }
    pthread_mutex_lock(&rank->lock);
    for (uint32_t s = 0; s < rank->job->program->nstreams; s++)
        rank->nrunning += rank->streams[s].started;
    rank->start_s = zipccl_now_s();
    rank->generation++;
    pthread_cond_broadcast(&rank->changed);
    while (rank->nrunning > 0)
        pthread_cond_wait(&rank->changed, &rank->lock);
    status = rank->status;
    pthread_mutex_unlock(&rank->lock);
    return status;
}
