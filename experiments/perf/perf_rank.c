/*
 * perf_rank.c - one rank of a perf run: its buffers, communicators and calls
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/perf/perf_rank.h"

#include "experiments/perf/perf_plan.h"
#include "experiments/perf/perf_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_LINE 64

/* No Gaussian of any type begins with it twice, and no count of elements is that large. */
#define POISON 0xa5

zipccl_status perf_fail(struct perf_job *job, zipccl_status status, const char *text)
{
    pthread_mutex_lock(&job->lock);
    if (job->status == ZIPCCL_OK || zipccl_tells_less(job->status, status)) {
        job->status = status;
        zipccl_fail(&job->error, status, "%s", text);
    }
    pthread_mutex_unlock(&job->lock);
    return status;
}

zipccl_status perf_fail_world(struct perf_rank *rank, zipccl_status status, const char *what)
{
    struct zipccl_error error;

    zipccl_transport_fail(rank->whole, status, what, &error);
    return perf_fail(rank->job, status, error.text);
}

FILE *perf_table(struct perf_job *job)
{
    if (job->table != NULL && !job->begun)
        zipccl_perf_print_head(job->options, job->result, job->table);
    job->begun = true;
    return job->table;
}

const struct zipccl_strategy *perf_pinned(const struct zipccl_perf_options *options,
                                          enum zipccl_perf_mode mode)
{
    const struct zipccl_strategy *pinned;

    if (mode == ZIPCCL_PERF_NATIVE)
        return zipccl_strategy_find("native");
    if (options->strategy == NULL || mode == ZIPCCL_PERF_ADAPTIVE ||
        strcmp(options->strategy, "native") == 0)
        return NULL;
    pinned = zipccl_strategy_find(options->strategy);
    return pinned->compressed == (mode == ZIPCCL_PERF_COMPRESSED) ? pinned : NULL;
}

/* True if calls of 'mode' run the plan of --plan. */
static bool is_given(const struct zipccl_perf_options *o, enum zipccl_perf_mode mode)
{
    return o->plan != NULL && mode == zipccl_perf_plan_mode(o->plan);
}

/* Settings of the communicator whose calls are of 'mode'. */
static struct zipccl_comm_config config_of(const struct perf_job *job, enum zipccl_perf_mode mode)
{
    static const enum zipccl_mode modes[ZIPCCL_NUM_PERF_MODES] = {
        [ZIPCCL_PERF_RAW] = ZIPCCL_MODE_RAW,
        [ZIPCCL_PERF_NATIVE] = ZIPCCL_MODE_RAW,
        [ZIPCCL_PERF_COMPRESSED] = ZIPCCL_MODE_COMPRESSED,
        [ZIPCCL_PERF_ADAPTIVE] = ZIPCCL_MODE_ADAPTIVE,
    };
    const struct zipccl_perf_options *o = job->options;
    const struct zipccl_strategy *pinned = perf_pinned(o, mode);
    struct zipccl_comm_config config;

    zipccl_comm_config_init(&config);
    config.params = *job->params;
    config.mode = modes[mode];
    config.capacity_class = o->capacity_class;
    if (mode == ZIPCCL_PERF_COMPRESSED || mode == ZIPCCL_PERF_ADAPTIVE)
        config.effort = o->effort;
    if (pinned != NULL) {
        config.strategy = pinned->name;
        config.nchunks = mode != ZIPCCL_PERF_NATIVE ? o->nchunks : 0;
    }
    if (is_given(o, mode))
        config.plan = o->plan;
    if (mode == ZIPCCL_PERF_ADAPTIVE)
        zipccl_state_files_config(&o->state, &config);
    return config;
}

static zipccl_status load_state(struct perf_rank *rank)
{
    struct zipccl_comm *comm = rank->comms[ZIPCCL_PERF_ADAPTIVE];
    zipccl_status status =
        zipccl_state_files_load(&rank->job->options->state, "", rank->whole->rank, comm);
    struct zipccl_error error;

    if (status == ZIPCCL_OK)
        return status;
    zipccl_fail(&error, status, "--state-load: %.480s", zipccl_comm_error(comm));
    pthread_mutex_lock(&rank->job->lock);
    rank->job->not_loaded = true;
    pthread_mutex_unlock(&rank->job->lock);
    perf_fail(rank->job, status, error.text);
    return zipccl_state_files_status(status, true);
}

zipccl_status perf_rank_save_state(struct perf_rank *rank)
{
    struct zipccl_comm *comm = rank->comms[ZIPCCL_PERF_ADAPTIVE];
    struct zipccl_error error;
    zipccl_status status = comm == NULL ? ZIPCCL_OK
                                        : zipccl_state_files_save(&rank->job->options->state, "",
                                                                  rank->whole->rank, comm, &error);

    return status == ZIPCCL_OK ? status : perf_fail(rank->job, status, error.text);
}

static zipccl_status open_comms(struct perf_rank *rank)
{
    for (int m = 0; m < ZIPCCL_NUM_PERF_MODES; m++) {
        struct zipccl_comm_config config = config_of(rank->job, (enum zipccl_perf_mode)m);
        struct zipccl_error error = {""};
        zipccl_status status;

        if (!rank->job->options->modes[m])
            continue;
        status = zipccl_comm_create(rank->transport, rank->exec, &config, &rank->comms[m], &error);
        if (status != ZIPCCL_OK)
            return perf_fail(rank->job, status, error.text);
    }
    if (rank->comms[ZIPCCL_PERF_ADAPTIVE] == NULL)
        return ZIPCCL_OK;
    return load_state(rank);
}

/* A buffer that begins 'unalign' bytes off a cache line, its pages there already. */
static unsigned char *allocate(const struct zipccl_world_device *device, size_t nbytes,
                               uint32_t unalign, unsigned char **begin)
{
    void *memory = NULL;

    if (device != NULL) {
        memory = device->alloc(nbytes + unalign);
        *begin = (unsigned char *)memory + unalign;
        return memory;
    }
    if (posix_memalign(&memory, CACHE_LINE, nbytes + unalign + CACHE_LINE) != 0)
        return NULL;
    memset(memory, POISON, nbytes + unalign + CACHE_LINE);
    *begin = (unsigned char *)memory + unalign;
    return memory;
}

static zipccl_status open_exec(struct perf_rank *rank)
{
    zipccl_status status;

    if (rank->device != NULL) {
        rank->stream = rank->device->stream(rank->transport);
        status = rank->device->exec(rank->transport, &rank->exec);
        return status == ZIPCCL_OK
                   ? status
                   : perf_fail(rank->job, status, zipccl_transport_text(rank->transport));
    }
    status = zipccl_exec_cpu_create_mt(zipccl_isa_best(), rank->job->options->codec_threads,
                                       &rank->exec);
    if (status != ZIPCCL_OK)
        return perf_fail(rank->job, status, "cannot start the codec's threads");
    zipccl_time_exec(&rank->timed, rank->exec);
    return ZIPCCL_OK;
}

zipccl_status perf_rank_open(struct perf_rank *rank, struct perf_job *job,
                             struct zipccl_transport *whole, size_t send_bytes, size_t recv_bytes)
{
    const struct zipccl_perf_options *o = job->options;

    *rank = (struct perf_rank){.job = job,
                               .whole = whole,
                               .transport = job->members[whole->rank - job->world->first],
                               .device = job->world->device};
    ZIPCCL_TRY(open_exec(rank));
    rank->send_memory = allocate(rank->device, send_bytes, o->unalign, &rank->send);
    rank->recv_memory = allocate(rank->device, recv_bytes, o->unalign, &rank->recv);
    rank->splits = calloc(4 * (size_t)job->nranks, sizeof *rank->splits);
    if (rank->device != NULL)
        rank->shadow = malloc(send_bytes > recv_bytes ? send_bytes : recv_bytes);
    if (rank->send_memory == NULL || rank->recv_memory == NULL || rank->splits == NULL ||
        (rank->device != NULL && rank->shadow == NULL))
        return perf_fail(job, ZIPCCL_ERR_NOMEM, "no memory for the buffers");
    return open_comms(rank);
}

static void free_buffer(const struct perf_rank *rank, unsigned char *memory)
{
    if (rank->device == NULL)
        free(memory);
    else if (memory != NULL)
        rank->device->free(memory);
}

void perf_rank_close(struct perf_rank *rank)
{
    for (int m = 0; m < ZIPCCL_NUM_PERF_MODES; m++)
        zipccl_comm_destroy(rank->comms[m]);
    free(rank->splits);
    free(rank->shadow);
    free_buffer(rank, rank->recv_memory);
    free_buffer(rank, rank->send_memory);
    if (rank->exec != NULL)
        rank->exec->ops->destroy(rank->exec);
}

void perf_rank_prepare(struct perf_rank *rank, const struct zipccl_perf_call *call)
{
    uint32_t nranks = rank->transport->nranks, self = rank->transport->rank;
    size_t *s = rank->splits, send_at = 0, recv_at = 0;

    for (uint32_t p = 0; call->op == ZIPCCL_ALLTOALLV && p < nranks; p++) {
        s[p] = zipccl_perf_split_n(call->count, nranks, self, p);
        s[nranks + p] = send_at;
        s[2 * nranks + p] = zipccl_perf_split_n(call->count, nranks, p, self);
        s[3 * nranks + p] = recv_at;
        send_at += s[p];
        recv_at += s[2 * nranks + p];
    }
}

/* Where the send buffer of an in-place call begins in the receive buffer, or the other way round. */
static size_t own_bytes(const struct perf_rank *rank, const struct zipccl_perf_call *call)
{
    bool shares = call->op == ZIPCCL_ALL_GATHER || call->op == ZIPCCL_REDUCE_SCATTER;

    return shares ? rank->transport->rank * call->count * zipccl_dtype_size(call->dtype) : 0;
}

/* In place, everything lies in the larger of the two buffers. */
static unsigned char *send_of(const struct perf_rank *rank, const struct zipccl_perf_call *call,
                              bool in_place)
{
    if (!in_place || call->op == ZIPCCL_REDUCE_SCATTER)
        return rank->send;
    return rank->recv + own_bytes(rank, call);
}

static unsigned char *recv_of(const struct perf_rank *rank, const struct zipccl_perf_call *call,
                              bool in_place)
{
    if (in_place && call->op == ZIPCCL_REDUCE_SCATTER)
        return rank->send + own_bytes(rank, call);
    return rank->recv;
}

/* Copy what lies in rank->shadow to the device, or back. */
static zipccl_status copy_shadow(struct perf_rank *rank, unsigned char *d, size_t nbytes,
                                 bool to_device)
{
    zipccl_status status = rank->device->copy(rank->transport, to_device ? d : rank->shadow,
                                              to_device ? rank->shadow : d, nbytes, to_device);

    return status == ZIPCCL_OK
               ? status
               : perf_fail(rank->job, status, zipccl_transport_text(rank->transport));
}

const void *perf_rank_result(struct perf_rank *rank, const struct zipccl_perf_call *call,
                             bool in_place)
{
    unsigned char *result = recv_of(rank, call, in_place);

    if (rank->device == NULL)
        return result;
    return copy_shadow(rank, result, call->recv_n * zipccl_dtype_size(call->dtype), false) ==
                   ZIPCCL_OK
               ? rank->shadow
               : NULL;
}

zipccl_status perf_rank_wait(struct perf_rank *rank)
{
    zipccl_status status = rank->device != NULL ? rank->device->wait(rank->transport) : ZIPCCL_OK;

    return status == ZIPCCL_OK
               ? status
               : perf_fail(rank->job, status, zipccl_transport_text(rank->transport));
}

zipccl_status perf_rank_fill(struct perf_rank *rank, const struct zipccl_perf_call *call,
                             bool in_place, uint32_t salt, bool poison)
{
    size_t size = zipccl_dtype_size(call->dtype);
    unsigned char *send = send_of(rank, call, in_place);
    bool device = rank->device != NULL;

    if (poison && !(in_place && call->op == ZIPCCL_REDUCE_SCATTER)) {
        memset(device ? rank->shadow : rank->recv, POISON, call->recv_n * size);
        if (device)
            ZIPCCL_TRY(copy_shadow(rank, rank->recv, call->recv_n * size, true));
    }
    if (call->op == ZIPCCL_BROADCAST && rank->transport->rank != call->root)
        return ZIPCCL_OK;
    zipccl_perf_pool_copy(&rank->job->pools[call->dtype], rank->transport->rank, salt, 0,
                          call->send_n, device ? rank->shadow : send);
    return device ? copy_shadow(rank, send, call->send_n * size, true) : ZIPCCL_OK;
}

static zipccl_status serve(struct perf_rank *rank, const struct zipccl_perf_call *c,
                           struct zipccl_comm *comm, const void *send, void *recv)
{
    uint32_t n = rank->transport->nranks, self = rank->transport->rank;
    const size_t *s = rank->splits;
    void *stream = rank->stream; /* NULL on a CPU */

    switch (c->op) {
    case ZIPCCL_ALL_GATHER: return zipccl_all_gather(send, recv, c->count, c->dtype, comm, stream);
    case ZIPCCL_REDUCE_SCATTER:
        return zipccl_reduce_scatter(send, recv, c->count, c->dtype, c->redop, comm, stream);
    case ZIPCCL_ALL_REDUCE:
        return zipccl_all_reduce(send, recv, c->count, c->dtype, c->redop, comm, stream);
    case ZIPCCL_ALLTOALL: return zipccl_alltoall(send, recv, c->count, c->dtype, comm, stream);
    case ZIPCCL_ALLTOALLV:
        return zipccl_alltoallv(send, s, s + n, recv, s + 2 * n, s + 3 * n, c->dtype, comm, stream);
    case ZIPCCL_SENDRECV:
        return zipccl_sendrecv(send, c->count, (int)((self + 1) % n), recv, c->count,
                               (int)((self + n - 1) % n), c->dtype, comm, stream);
    case ZIPCCL_BROADCAST:
        return zipccl_broadcast(send, recv, c->count, c->dtype, c->root, comm, stream);
    default: return ZIPCCL_ERR_ARG;
    }
}

zipccl_status perf_rank_call(struct perf_rank *rank, const struct zipccl_perf_call *call,
                             enum zipccl_perf_mode mode, bool in_place)
{
    struct zipccl_comm *comm = rank->comms[mode];
    zipccl_status status =
        serve(rank, call, comm, send_of(rank, call, in_place), recv_of(rank, call, in_place));

    if (status == ZIPCCL_OK ||
        (status == ZIPCCL_ERR_UNSUPPORTED && !is_given(rank->job->options, mode)))
        return status;
    return perf_fail(rank->job, status, zipccl_comm_error(comm));
}

bool perf_rank_has_native(const struct perf_rank *rank, const struct zipccl_perf_call *call)
{
    const struct zipccl_transport_ops *ops = rank->transport->ops;

    return ops->native != NULL && ops->has_native != NULL &&
           ops->has_native(rank->transport, call->op, call->dtype, call->redop);
}
