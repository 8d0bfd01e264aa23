/*
 * perf_run.c - what perf runs: every type, operator, root and size, on every rank of a world
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/perf/perf_run.h"

#include "experiments/perf/perf_plan.h"
#include "experiments/perf/perf_rank.h"
#include "experiments/perf/perf_report.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Elements of a generated pool at most: 64 superblocks of the codec. */
#define POOL_MAX_N ((size_t)1 << 20)

static bool is_reduction(const struct zipccl_perf_options *o)
{
    return zipccl_is_reduction(o->op);
}

/* True if what one of several types or operators lacks is told in the table, not as an error. */
static bool is_list(const struct zipccl_perf_options *o)
{
    return o->ndtypes > 1 || (is_reduction(o) && o->nredops > 1);
}

/* Bytes of the largest buffers of a rank. */
static void buffer_bytes(const struct zipccl_perf_options *o, uint32_t nranks, size_t *send,
                         size_t *recv)
{
    *send = *recv = 1;
    for (size_t d = 0; d < o->ndtypes; d++) {
        size_t element = zipccl_dtype_size(o->dtypes[d]);
        struct zipccl_perf_call call;

        if (o->plan != NULL)
            zipccl_perf_plan_call(o->plan, &call);
        else
            zipccl_perf_call_init(&call, o->op, o->dtypes[d], ZIPCCL_SUM, 0, o->max_bytes, nranks);
        *send = call.send_n * element > *send ? call.send_n * element : *send;
        *recv = call.recv_n * element > *recv ? call.recv_n * element : *recv;
    }
}

/* All sizes of one type, operator and root. */
static zipccl_status run_sizes(struct perf_rank *rank, enum zipccl_dtype dtype,
                               enum zipccl_redop redop, uint32_t root)
{
    const struct zipccl_perf_options *o = rank->job->options;
    struct zipccl_perf_call call;
    bool served = true;

    if (o->plan != NULL) {
        zipccl_perf_plan_call(o->plan, &call);
        call.has_in_place = rank->job->plan_in_place;
        ZIPCCL_TRY(perf_measure(rank, &call, &served));
    }
    for (uint64_t s = o->plan == NULL ? o->min_bytes : 0; s != 0 && served;
         s = zipccl_perf_next_size(o, s)) {
        zipccl_perf_call_init(&call, o->op, dtype, redop, root, s, rank->job->nranks);
        ZIPCCL_TRY(perf_measure(rank, &call, &served));
    }
    if (rank->whole->rank != 0)
        return ZIPCCL_OK;
    rank->job->served = rank->job->served || served;
    if (!served && is_list(o) && perf_table(rank->job) != NULL)
        fprintf(rank->job->table, "# %s of %s%s%s: nothing that was asked for serves it here\n",
                zipccl_op_name(o->op), zipccl_perf_type_name(dtype), is_reduction(o) ? ", " : "",
                is_reduction(o) ? zipccl_redop_name(redop) : "");
    return ZIPCCL_OK;
}

static zipccl_status run_type(struct perf_rank *rank, enum zipccl_dtype dtype)
{
    const struct zipccl_perf_options *o = rank->job->options;
    uint32_t nroots = o->op == ZIPCCL_BROADCAST && o->all_roots ? rank->job->nranks : 1;
    size_t nredops = is_reduction(o) ? o->nredops : 1;

    if (rank->job->pools[dtype].n == 0) {
        if (rank->whole->rank == 0 && perf_table(rank->job) != NULL)
            fprintf(rank->job->table, "# no %s in %s\n", zipccl_perf_type_name(dtype), o->input);
        return ZIPCCL_OK;
    }
    for (size_t k = 0; k < nredops; k++)
        for (uint32_t r = 0; r < nroots; r++)
            ZIPCCL_TRY(run_sizes(rank, dtype, o->redops[k], nroots > 1 ? r : o->root));
    return ZIPCCL_OK;
}

static zipccl_status run_rank(struct zipccl_transport *whole, void *arg)
{
    struct perf_job *job = arg;
    struct perf_rank rank;
    size_t send, recv;
    zipccl_status status;

    buffer_bytes(job->options, job->nranks, &send, &recv);
    status = perf_rank_open(&rank, job, whole, send, recv);
    for (uint32_t c = 0; c < job->options->cycles && status == ZIPCCL_OK; c++)
        for (size_t d = 0; d < job->options->ndtypes && status == ZIPCCL_OK; d++)
            status = run_type(&rank, job->options->dtypes[d]);
    if (status == ZIPCCL_OK)
        status = perf_rank_save_state(&rank);
    /* Peers may wait in this communicator, which the world's transport does not know. */
    if (status != ZIPCCL_OK && rank.transport != NULL)
        rank.transport->ops->abort(rank.transport);
    perf_rank_close(&rank);
    return status;
}

static zipccl_status open_pools(struct perf_job *job, struct zipccl_error *error)
{
    const struct zipccl_perf_options *o = job->options;
    size_t send, recv, most, found = 0;

    buffer_bytes(o, job->nranks, &send, &recv);
    for (size_t d = 0; d < o->ndtypes; d++) {
        most = send / zipccl_dtype_size(o->dtypes[d]);
        ZIPCCL_TRY(zipccl_perf_pool_open(&job->pools[o->dtypes[d]], o, o->dtypes[d],
                                         most < POOL_MAX_N ? most : POOL_MAX_N, error));
        found += job->pools[o->dtypes[d]].n > 0;
    }
    if (found == 0)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: no tensor of type %s", o->input_path,
                           o->ndtypes == 1 ? zipccl_dtype_name(o->dtypes[0]) : "asked for");
    return ZIPCCL_OK;
}

/* Buffers that do not fit would bring the machine down, not an error. */
static zipccl_status check_memory(const struct perf_job *job, struct zipccl_error *error)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t send, recv;
    double need, have = (double)pages * (double)page;

    buffer_bytes(job->options, job->nranks, &send, &recv);
    need = ((double)send + (double)recv) * job->world->nhost;
    if (pages <= 0 || page <= 0 || need <= 0.8 * have)
        return ZIPCCL_OK;
    return zipccl_fail(
        error, ZIPCCL_ERR_INPUT,
        "%u rank%s here with %.1f GiB of buffers each need more than four fifths of this "
        "machine's %.1f GiB: a smaller -e, or fewer ranks",
        job->world->nhost, job->world->nhost != 1 ? "s" : "",
        0x1p-30 * ((double)send + (double)recv), 0x1p-30 * have);
}

/* Ranks of one colour are a communicator; all of one size, so that rows are about one number. */
static zipccl_status split_world(struct perf_job *job, struct zipccl_error *error)
{
    struct zipccl_world *world = job->world;
    uint32_t *ranks = malloc(world->nranks * sizeof *ranks), n;
    struct zipccl_transport **mine = calloc(world->nlocal, sizeof *mine);
    zipccl_status status = ranks != NULL && mine != NULL ? ZIPCCL_OK : ZIPCCL_ERR_NOMEM;

    job->nranks = 0;
    for (uint32_t first = 0; first < world->nranks && status == ZIPCCL_OK; first++) {
        uint32_t colour = zipccl_perf_colour(job->options, first), before = 0;

        while (before < first && zipccl_perf_colour(job->options, before) != colour)
            before++;
        if (before < first)
            continue; /* made already */
        n = 0;
        for (uint32_t r = first; r < world->nranks; r++)
            if (zipccl_perf_colour(job->options, r) == colour)
                ranks[n++] = r;
        if (job->nranks == 0)
            job->nranks = n;
        if (n != job->nranks)
            status = zipccl_fail(error, ZIPCCL_ERR_INPUT,
                                 "NCCL_TESTS_SPLIT makes groups of %u and of %u ranks, expected "
                                 "groups of one size",
                                 job->nranks, n);
        else
            status = zipccl_world_group(world, ranks, n, mine, error);
        for (uint32_t l = 0; l < world->nlocal && status == ZIPCCL_OK; l++)
            if (mine[l] != NULL)
                job->members[l] = mine[l];
    }
    free(mine);
    free(ranks);
    return status;
}

/* Without a split a rank's own handle of the world serves; it is known once the rank runs. */
static zipccl_status keep_whole(struct zipccl_transport *whole, void *arg)
{
    struct perf_job *job = arg;

    job->members[whole->rank - job->world->first] = whole;
    return ZIPCCL_OK;
}

static zipccl_status prepare(struct perf_job *job, struct zipccl_error *error)
{
    const struct zipccl_perf_options *o = job->options;

    job->members = calloc(job->world->nlocal, sizeof(struct zipccl_transport *));
    if (job->members == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    job->nranks = job->world->nranks;
    job->nodes = job->world->topology->nnodes;
    if (o->split != ZIPCCL_SPLIT_NONE)
        ZIPCCL_TRY(split_world(job, error));
    else
        ZIPCCL_TRY(zipccl_world_run(job->world, keep_whole, job, error));
    job->nodes = job->members[0]->topology->nnodes;
    if (o->op == ZIPCCL_BROADCAST && !o->all_roots && o->root >= job->nranks)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "-r %u is not one of %u ranks", o->root,
                           job->nranks);
    if (o->plan != NULL)
        ZIPCCL_TRY(
            zipccl_perf_plan_check(o, job->members[0]->topology, &job->plan_in_place, error));
    ZIPCCL_TRY(check_memory(job, error));
    return open_pools(job, error);
}

static zipccl_status refuse(const struct zipccl_perf_options *o, struct zipccl_error *error)
{
    if (o->strategy != NULL)
        return zipccl_fail(error, ZIPCCL_ERR_UNSUPPORTED,
                           "strategy '%s' does not serve %s of %s here", o->strategy,
                           zipccl_op_name(o->op), zipccl_perf_type_name(o->dtypes[0]));
    return zipccl_fail(error, ZIPCCL_ERR_UNSUPPORTED,
                       "nothing that was asked for serves this call on this transport: its native "
                       "collectives do not reduce fp8, and plans of our own reduce by sum and avg, "
                       "bf16, fp16 and fp32");
}

static zipccl_status run(struct perf_job *job, struct zipccl_error *error)
{
    zipccl_status status;

    ZIPCCL_TRY(prepare(job, error));
    job->result->nranks = job->nranks;
    job->result->nodes = job->nodes;
    status = zipccl_world_run(job->world, run_rank, job, error);
    if (status != ZIPCCL_OK && job->status != ZIPCCL_OK) {
        *error = job->error;
        return zipccl_state_files_status(job->status, job->not_loaded);
    }
    if (status == ZIPCCL_OK && job->world->first == 0 && !job->served && job->status != ZIPCCL_OK) {
        *error = job->error; /* why the plan given does not run */
        return job->status;
    }
    if (status == ZIPCCL_OK && job->world->first == 0 && !job->served)
        return refuse(job->options, error);
    return status;
}

zipccl_status zipccl_perf_run(const struct zipccl_perf_options *options, struct zipccl_world *world,
                              const struct zipccl_cost_params *params,
                              struct zipccl_perf_result *result, FILE *table,
                              struct zipccl_error *error)
{
    struct perf_job job = {.options = options,
                           .params = params,
                           .world = world,
                           .result = result,
                           .table = table,
                           .status = ZIPCCL_OK};

    pthread_mutex_init(&job.lock, NULL);
    zipccl_status status = run(&job, error);
    pthread_mutex_destroy(&job.lock);
    for (int d = 0; d < ZIPCCL_NUM_DTYPES; d++)
        zipccl_perf_pool_close(&job.pools[d]);
    free(job.members);
    return status;
}
