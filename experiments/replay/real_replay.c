/*
 * real_replay.c - runs the step of a training trace on real ranks: groups, steps, what is gathered
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/replay/real_replay_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static zipccl_status nomem(struct zipccl_error *error)
{
    return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
}

/* What the trace's work takes: as many ranks as the trace has, whatever the cluster has. */
static zipccl_status create_program(struct replay_job *job, struct zipccl_error *error)
{
    const struct zipccl_real_replay_options *o = job->options;
    struct zipccl_cluster cluster = {.gpu_flops = 1, .gpu_hbm_Bps = 1, .compute_hbm_share = 0};

    if (o->cluster != NULL)
        cluster = *o->cluster;
    cluster.nodes = 1;
    cluster.gpus_per_node = job->trace->header.nranks;
    ZIPCCL_TRY(zipccl_samples_open(job->trace->samples_path, 0, &job->samples, error));
    ZIPCCL_TRY(zipccl_program_create(job->trace, &cluster, job->samples, &job->program, error));
    if (o->cluster == NULL && job->program->scaled && o->gaps != ZIPCCL_GAPS_SKIP)
        return zipccl_fail(
            error, ZIPCCL_ERR_INPUT,
            "its compute is given as work, not as time: --cluster says how fast that "
            "is done, --gaps skip leaves it out");
    for (size_t i = 0; i < job->program->nevents; i++) {
        struct zipccl_program_event *e = &job->program->events[i];

        for (uint32_t r = 0; e->compute_s != NULL && r < job->program->nranks; r++)
            e->compute_s[r] = o->gaps == ZIPCCL_GAPS_SKIP ? 0
                              : e->communication          ? e->compute_s[r]
                                                          : e->compute_s[r] * o->gap_scale;
    }
    return ZIPCCL_OK;
}

/* One peer a side is what a sendrecv of ours does. */
static zipccl_status check_pairs(const struct zipccl_event *e, struct zipccl_error *error)
{
    for (uint32_t i = 0; i < e->npairs; i++)
        for (uint32_t k = 0; k < i; k++)
            if (e->pairs[i].src == e->pairs[k].src || e->pairs[i].dst == e->pairs[k].dst)
                return zipccl_fail(error, ZIPCCL_ERR_UNSUPPORTED,
                                   "event %" PRIu64 ": a member of this sendrecv has several peers "
                                   "on one side, which is not replayed on real ranks",
                                   e->id);
    return ZIPCCL_OK;
}

static zipccl_status find_key(struct replay_job *job, const struct zipccl_event *e, uint32_t *out)
{
    struct replay_key *keys;

    for (uint32_t k = 0; k < job->nkeys; k++)
        if (job->keys[k].group == e->group && job->keys[k].stream == e->stream) {
            *out = k;
            return ZIPCCL_OK;
        }
    keys = realloc(job->keys, (job->nkeys + 1) * sizeof *keys);
    if (keys == NULL)
        return ZIPCCL_ERR_NOMEM;
    job->keys = keys;
    keys[job->nkeys] = (struct replay_key){.group = e->group, .stream = e->stream};
    *out = job->nkeys++;
    return ZIPCCL_OK;
}

static zipccl_status find_keys(struct replay_job *job, struct zipccl_error *error)
{
    const struct zipccl_program *p = job->program;

    job->key_of = calloc(p->nevents + 1, sizeof *job->key_of);
    if (job->key_of == NULL)
        return nomem(error);
    for (size_t i = 0; i < p->nevents; i++) {
        const struct zipccl_program_event *e = &p->events[i];

        if (e->group == NULL)
            continue;
        ZIPCCL_TRY(check_pairs(e->event, error));
        if (find_key(job, e->event, &job->key_of[i]) != ZIPCCL_OK)
            return nomem(error);
        if (e->group->size > job->largest_group)
            job->largest_group = e->group->size;
    }
    for (uint32_t c = 0; c < p->nclasses; c++)
        if (p->classes[c].set >= job->nsets)
            job->nsets = p->classes[c].set + 1;
    return ZIPCCL_OK;
}

/* The transports of one key: a group for each part, of which a rank is in one at most. */
static zipccl_status open_key(struct replay_job *job, struct replay_key *key,
                              struct zipccl_error *error)
{
    const struct zipccl_trace_group *group = &job->trace->header.groups[key->group];
    uint32_t nlocal = job->world->nlocal;
    struct zipccl_transport **mine = calloc(nlocal, sizeof *mine);
    zipccl_status status = ZIPCCL_OK;

    key->mine = calloc(nlocal, sizeof(struct zipccl_transport *));
    if (mine == NULL || key->mine == NULL)
        status = nomem(error);
    for (uint32_t part = 0; part < group->nparts && status == ZIPCCL_OK; part++) {
        status = zipccl_world_group(job->world, group->ranks + (size_t)part * group->size,
                                    group->size, mine, error);
        for (uint32_t l = 0; l < nlocal && status == ZIPCCL_OK; l++)
            if (mine[l] != NULL)
                key->mine[l] = mine[l];
    }
    free(mine);
    return status;
}

/* Before anything is allocated: a trace of many GPUs does not fit a machine that runs all its ranks. */
static zipccl_status check_memory(const struct replay_job *job, struct zipccl_error *error)
{
    double have = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE), need = 0;
    const struct zipccl_world *world = job->world;

    for (uint32_t l = 0; l < world->nlocal; l++)
        need += replay_rank_bytes(job, world->first + l);
    need *= (double)world->nhost / world->nlocal; /* other processes' ranks as this one's */
    if (!(have > 0) || need <= 0.8 * have)
        return ZIPCCL_OK;
    return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                       "buffers of %u rank%s need about %.1f GiB, more than four fifths of this "
                       "machine's %.1f GiB: run the ranks on more machines, fewer of --mode, or a "
                       "smaller trace",
                       world->nhost, world->nhost != 1 ? "s" : "", 0x1p-30 * need, 0x1p-30 * have);
}

static zipccl_status prepare(struct replay_job *job, struct zipccl_error *error)
{
    const struct zipccl_trace_header *header = &job->trace->header;

    if (header->nranks != job->world->nranks)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "trace %.100s has %u ranks, but %u are there: start as many (-t %u, or "
                           "mpirun -np %u)",
                           header->name, header->nranks, job->world->nranks, header->nranks,
                           header->nranks);
    ZIPCCL_TRY(create_program(job, error));
    ZIPCCL_TRY(find_keys(job, error));
    ZIPCCL_TRY(check_memory(job, error));
    for (uint32_t k = 0; k < job->nkeys; k++)
        ZIPCCL_TRY(open_key(job, &job->keys[k], error));
    return ZIPCCL_OK;
}

/* Where the transport's messages are on a device: it gathers on all ranks. */
static zipccl_status collect_all(struct zipccl_transport *t, const void *mine, size_t nbytes,
                                 void *all)
{
    void *room = t->rank == 0 ? all : malloc(t->nranks * nbytes + 1);
    zipccl_status status = ZIPCCL_ERR_NOMEM;

    if (room != NULL)
        status = zipccl_world_gather(t, mine, nbytes, room);
    else
        t->ops->abort(t);
    if (room != all)
        free(room);
    return status;
}

/* Send 'nbytes' to rank 0, where all [nranks * nbytes] arrive in 'all', its own included. */
static zipccl_status collect(struct zipccl_transport *t, const void *mine, size_t nbytes, void *all)
{
    unsigned char *to = all;
    zipccl_status status, ended;

    if (t->ops->gather != NULL)
        return collect_all(t, mine, nbytes, all);
    if (t->rank == 0)
        memcpy(to, mine, nbytes);
    status = t->ops->group_begin(t);
    if (status != ZIPCCL_OK)
        return status;
    if (t->rank != 0)
        status = t->ops->send(t, 0, mine, nbytes);
    for (uint32_t r = 1; r < t->nranks && t->rank == 0 && status == ZIPCCL_OK; r++)
        status = t->ops->recv(t, r, to + r * nbytes, nbytes);
    if (status != ZIPCCL_OK)
        t->ops->abort(t);
    ended = t->ops->group_end(t); /* in any case: the buffers go away */
    return status != ZIPCCL_OK ? status : ended;
}

/* Times of a rank: all steps of all modes, and what its calls did. */
struct record {
    double *enter[ZIPCCL_NUM_STEPS], *end[ZIPCCL_NUM_STEPS]; /* [steps][nops] */
    struct replay_row *rows[ZIPCCL_NUM_STEPS];               /* [nrows] */
    double *ends;                                            /* [steps] of this rank */
    double *warm;                                            /* [2][nops] of steps not kept */
};

static void close_record(struct record *record)
{
    for (int m = 0; m < ZIPCCL_NUM_STEPS; m++) {
        free(record->enter[m]);
        free(record->end[m]);
        free(record->rows[m]);
    }
    free(record->ends);
    free(record->warm);
}

static bool open_record(const struct replay_job *job, struct record *record)
{
    size_t nops = job->program->nops, steps = job->options->steps;
    bool fine = true;

    memset(record, 0, sizeof *record);
    record->ends = calloc(steps, sizeof(double));
    record->warm = calloc(2 * nops + 1, sizeof(double));
    for (int m = 0; m < ZIPCCL_NUM_STEPS; m++) {
        if (!job->options->modes[m])
            continue;
        record->enter[m] = calloc(steps * nops + 1, sizeof(double));
        record->end[m] = calloc(steps * nops + 1, sizeof(double));
        record->rows[m] = calloc((size_t)job->program->nrows + 1, sizeof(struct replay_row));
        fine =
            fine && record->enter[m] != NULL && record->end[m] != NULL && record->rows[m] != NULL;
    }
    return fine && record->ends != NULL && record->warm != NULL;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* The step whose length is the median, the shorter of two; '*steps_s' [steps] of the slowest rank. */
static zipccl_status find_median(struct replay_rank *rank, const struct record *record, int mode,
                                 double *step_s, uint32_t *median)
{
    uint32_t steps = rank->job->options->steps, nranks = rank->whole->nranks;
    size_t nops = rank->job->program->nops;
    double *all = malloc((size_t)nranks * steps * sizeof *all), *sorted;
    zipccl_status status;

    if (all == NULL)
        return ZIPCCL_ERR_NOMEM;
    for (uint32_t s = 0; s < steps; s++) {
        record->ends[s] = 0;
        for (size_t op = 0; op < nops; op++)
            if (record->end[mode][s * nops + op] > record->ends[s])
                record->ends[s] = record->end[mode][s * nops + op];
    }
    status = zipccl_world_gather(rank->whole, record->ends, steps * sizeof *all, all);
    for (uint32_t s = 0; s < steps && status == ZIPCCL_OK; s++) {
        step_s[s] = 0;
        for (uint32_t r = 0; r < nranks; r++)
            if (all[(size_t)r * steps + s] > step_s[s])
                step_s[s] = all[(size_t)r * steps + s];
    }
    sorted = all; /* at least as long */
    if (status == ZIPCCL_OK) {
        memcpy(sorted, step_s, steps * sizeof *sorted);
        qsort(sorted, steps, sizeof *sorted, by_value);
        for (*median = 0; step_s[*median] != sorted[(steps - 1) / 2];)
            ++*median;
    }
    free(all);
    return status;
}

/* What rank 0 keeps of a mode. */
static bool open_kept(struct replay_job *job, int mode)
{
    size_t nranks = job->world->nranks, nops = job->program->nops;

    job->enter[mode] = malloc((nranks * nops + 1) * sizeof(double));
    job->end[mode] = malloc((nranks * nops + 1) * sizeof(double));
    job->rows[mode] = malloc((nranks * job->program->nrows + 1) * sizeof(struct replay_row));
    job->step_s[mode] = malloc(job->options->steps * sizeof(double));
    return job->enter[mode] != NULL && job->end[mode] != NULL && job->rows[mode] != NULL &&
           job->step_s[mode] != NULL;
}

static zipccl_status gather_mode(struct replay_rank *rank, const struct record *record, int mode)
{
    struct replay_job *job = rank->job;
    size_t nops = job->program->nops;
    bool keeps = rank->whole->rank == 0;
    double *step_s = malloc(job->options->steps * sizeof *step_s);
    uint32_t median = 0;
    zipccl_status status = ZIPCCL_ERR_NOMEM;

    if (step_s != NULL && (!keeps || open_kept(job, mode)))
        status = find_median(rank, record, mode, step_s, &median);
    if (status == ZIPCCL_OK)
        status = collect(rank->whole, record->enter[mode] + median * nops, nops * sizeof(double),
                         keeps ? job->enter[mode] : NULL);
    if (status == ZIPCCL_OK)
        status = collect(rank->whole, record->end[mode] + median * nops, nops * sizeof(double),
                         keeps ? job->end[mode] : NULL);
    if (status == ZIPCCL_OK)
        status = collect(rank->whole, record->rows[mode],
                         job->program->nrows * sizeof(struct replay_row),
                         keeps ? job->rows[mode] : NULL);
    if (status == ZIPCCL_OK && keeps)
        memcpy(job->step_s[mode], step_s, job->options->steps * sizeof *step_s);
    free(step_s);
    return status == ZIPCCL_OK
               ? status
               : replay_fail_world(rank, status, "the ranks' times cannot be gathered");
}

static zipccl_status run_steps(struct replay_rank *rank, struct record *record)
{
    const struct zipccl_real_replay_options *o = rank->job->options;
    size_t nops = rank->job->program->nops;

    for (uint32_t s = 0; s < o->warmup + o->steps; s++)
        for (int k = 0; k < ZIPCCL_NUM_STEPS; k++) {
            int mode = (int)((s + (uint32_t)k) % ZIPCCL_NUM_STEPS);
            bool kept = s >= o->warmup;
            size_t at = kept ? (s - o->warmup) * nops : 0;

            if (!o->modes[mode])
                continue;
            rank->rows = record->rows[mode];
            ZIPCCL_TRY(replay_step(rank, mode, false,
                                   kept ? record->enter[mode] + at : record->warm,
                                   kept ? record->end[mode] + at : record->warm + nops));
            if (!kept)
                memset(record->rows[mode], 0, rank->job->program->nrows * sizeof *rank->rows);
        }
    for (int mode = 0; mode < ZIPCCL_NUM_STEPS && o->check; mode++)
        if (o->modes[mode])
            ZIPCCL_TRY(replay_step(rank, mode, true, record->warm, record->warm + nops));
    return ZIPCCL_OK;
}

static zipccl_status gather(struct replay_rank *rank, const struct record *record)
{
    struct replay_job *job = rank->job;
    uint64_t *all = malloc(rank->whole->nranks * sizeof *all);
    zipccl_status status;

    for (int mode = 0; mode < ZIPCCL_NUM_STEPS; mode++)
        if (job->options->modes[mode]) {
            status = gather_mode(rank, record, mode);
            if (status != ZIPCCL_OK) {
                free(all);
                return status;
            }
        }
    status = all == NULL ? ZIPCCL_ERR_NOMEM
                         : zipccl_world_gather(rank->whole, &rank->wrong, sizeof rank->wrong, all);
    for (uint32_t r = 0; status == ZIPCCL_OK && r < rank->whole->nranks && rank->whole->rank == 0;
         r++)
        job->wrong += all[r];
    free(all);
    return status == ZIPCCL_OK ? status
                               : replay_fail_world(rank, status, "the checks cannot be gathered");
}

static zipccl_status run_rank(struct zipccl_transport *whole, void *arg)
{
    struct replay_job *job = arg;
    struct replay_rank rank;
    struct record record;
    zipccl_status status = replay_rank_open(&rank, job, whole);

    if (!open_record(job, &record) && status == ZIPCCL_OK)
        status =
            replay_fail(job, ZIPCCL_ERR_NOMEM, "no memory for the times of rank %u", whole->rank);
    if (status == ZIPCCL_OK)
        status = run_steps(&rank, &record);
    if (status == ZIPCCL_OK)
        status = gather(&rank, &record);
    if (status == ZIPCCL_OK)
        status = replay_save_state(&rank);
    close_record(&record);
    replay_rank_close(&rank);
    return status;
}

static void release(struct replay_job *job)
{
    for (int m = 0; m < ZIPCCL_NUM_STEPS; m++) {
        free(job->enter[m]);
        free(job->end[m]);
        free(job->rows[m]);
        free(job->step_s[m]);
    }
    for (uint32_t k = 0; k < job->nkeys; k++)
        free(job->keys[k].mine);
    free(job->keys);
    free(job->key_of);
    zipccl_program_destroy(job->program);
    zipccl_samples_close(job->samples);
    pthread_mutex_destroy(&job->lock);
}

static zipccl_status run(struct replay_job *job, struct zipccl_error *error)
{
    struct zipccl_error why = {""};
    zipccl_status status = prepare(job, &why);

    if (status != ZIPCCL_OK)
        return zipccl_fail(error, status, "%.180s%s%.320s",
                           job->trace->path != NULL ? job->trace->path : "",
                           job->trace->path != NULL ? ": " : "", why.text);
    status = zipccl_world_run(job->world, run_rank, job, error);
    if (status != ZIPCCL_OK && job->status != ZIPCCL_OK) {
        *error = job->error;
        return zipccl_state_files_status(job->status, job->not_loaded);
    }
    return status;
}

zipccl_status zipccl_real_replay(const struct zipccl_trace *trace,
                                 const struct zipccl_real_replay_options *options,
                                 struct zipccl_world *world, struct zipccl_replay_result **out,
                                 uint64_t *wrong, struct zipccl_error *error)
{
    struct replay_job job = {.trace = trace, .options = options, .world = world};
    zipccl_status status;
    double start = zipccl_now_s();

    *out = NULL;
    pthread_mutex_init(&job.lock, NULL);
    status = run(&job, error);
    if (status == ZIPCCL_OK && world->first == 0) {
        status = replay_result(&job, out, error);
        *wrong = job.wrong;
    }
    if (status == ZIPCCL_OK && *out != NULL)
        (*out)->wall_s = zipccl_now_s() - start;
    release(&job);
    return status;
}
