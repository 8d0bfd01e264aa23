/*
 * zipccl_gpu.c - GPU communicators: creation, agreement, failures, statistics
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/gate.h"
#include "gpu/gpu_state.h"
#include "gpu/host_hash.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEFAULT_STAGING_BYTES ((size_t)256 << 20)

/* Version of what is decided here alike on all ranks. */
#define AGREEMENT_VERSION 2u

/* What ranks tell each other at creation. */
enum {
    WORD_FAILED,
    WORD_VERSION,
    WORD_OPS,
    WORD_MIN_BYTES,
    WORD_GATE,
    NUM_COMPARED,
    WORD_HOST = NUM_COMPARED,
    NUM_WORDS
};
static const char *const word_names[NUM_COMPARED] = {"", "version", "set of ops", "minimum size",
                                                     "gate"};

const char *zipccl_gpu_reason_name(enum zipccl_gpu_reason reason)
{
    static const char *const names[ZIPCCL_GPU_NUM_REASONS] = {"compressed", "op off",   "small",
                                                              "type",       "redop",    "captured",
                                                              "one rank",   "plan raw", "disabled"};

    return (unsigned)reason < ZIPCCL_GPU_NUM_REASONS ? names[reason] : "?";
}

static zipccl_status check_options(const struct zipccl_gpu_options *o, struct zipccl_error *error)
{
    size_t most = o->max_staging_bytes > 0 ? o->max_staging_bytes : DEFAULT_STAGING_BYTES;

    if (o->staging != NULL && (o->staging_bytes < most || (uintptr_t)o->staging % 256 != 0))
        return zipccl_fail(error, ZIPCCL_ERR_ARG,
                           "staging of %zu bytes at %p: expected %zu (max_staging_bytes), aligned "
                           "to 256",
                           o->staging_bytes, o->staging, most);
    if ((unsigned)o->gate >= ZIPCCL_NUM_GATE_MODES)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "gate %d is none", (int)o->gate);
    if (o->ops >> ZIPCCL_NUM_OPS != 0)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "ops 0x%x has bits of no op", o->ops);
    return ZIPCCL_OK;
}

/* What one rank can do alone. */
static zipccl_status set_up(struct zipccl_gpu_comm *comm, struct zipccl_error *error)
{
    const struct zipccl_gpu_options *o = &comm->options;
    struct zipccl_exec_cuda_options options = {
        .nsms = o->codec_sms, .most_staging = o->max_staging_bytes, .staging = o->staging};
    zipccl_status status;

    ZIPCCL_TRY(check_options(o, error));
    comm->pairs = calloc(4 * (size_t)comm->transport->base.nranks, sizeof *comm->pairs);
    if (comm->pairs == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "no memory for a communicator");
    status = zipccl_exec_cuda_create(comm->transport, &options, &comm->exec);
    return status == ZIPCCL_OK ? status
                               : zipccl_fail(error, status, "%s", comm->transport->error.text);
}

/* Find the node of each rank: the caller's, or those of one host are one. */
static zipccl_status make_topology(struct zipccl_gpu_comm *comm, const uint64_t *words)
{
    uint32_t nranks = comm->transport->base.nranks, *nodes = calloc(nranks, sizeof *nodes);
    zipccl_status status = ZIPCCL_ERR_NOMEM;

    if (nodes == NULL)
        return status;
    for (uint32_t r = 0; r < nranks; r++) {
        if (comm->options.node_of != NULL) {
            nodes[r] = comm->options.node_of[r];
            continue;
        }
        while (words[nodes[r] * NUM_WORDS + WORD_HOST] != words[(size_t)r * NUM_WORDS + WORD_HOST])
            nodes[r]++; /* the first rank there */
    }
    status = zipccl_topology_create(nranks, nodes, &comm->topology);
    comm->transport->base.topology = comm->topology;
    free(nodes);
    return status;
}

/* Exchange settings; all ranks return alike, but for who knows why it failed. */
static zipccl_status agree(struct zipccl_gpu_comm *comm, zipccl_status mine_status, uint64_t *all,
                           struct zipccl_error *error)
{
    uint32_t nranks = comm->transport->base.nranks;
    uint64_t mine[NUM_WORDS] = {[WORD_FAILED] = mine_status != ZIPCCL_OK,
                                [WORD_VERSION] = AGREEMENT_VERSION,
                                [WORD_OPS] = comm->options.ops,
                                [WORD_MIN_BYTES] = comm->options.min_bytes,
                                [WORD_GATE] = (uint64_t)comm->options.gate,
                                [WORD_HOST] = zipccl_gpu_host_hash()};
    zipccl_status status;

    comm->transport->stream = comm->exec != NULL ? comm->exec->wire : NULL;
    status = zipccl_comm_gather_words(&comm->transport->base, mine, NUM_WORDS, all);
    if (mine_status != ZIPCCL_OK)
        return mine_status;
    if (status != ZIPCCL_OK)
        return zipccl_transport_fail(&comm->transport->base, status, "exchange of settings", error);
    for (uint32_t r = 0; r < nranks; r++)
        if (all[(size_t)r * NUM_WORDS + WORD_FAILED])
            return zipccl_fail(error, ZIPCCL_ERR_MISMATCH, "rank %u failed to set itself up", r);
    for (uint32_t w = WORD_VERSION; w < NUM_COMPARED; w++) {
        uint32_t odd = zipccl_comm_odd_rank(all, nranks, NUM_WORDS, w);

        if (odd < nranks)
            return zipccl_fail(error, ZIPCCL_ERR_MISMATCH,
                               "rank %u has another %s than the other ranks", odd, word_names[w]);
    }
    return ZIPCCL_OK;
}

/* The gate that was asked for, if all ranks can have it. */
static zipccl_status open_gate(struct zipccl_gpu_comm *comm, struct zipccl_error *error)
{
    zipccl_status status;
    bool able = false;

    if (comm->options.gate == ZIPCCL_GATE_OFF || comm->transport->base.nranks == 1)
        return ZIPCCL_OK;
    status = zipccl_gate_open(comm->exec, comm->options.gate, &able);
    if (status != ZIPCCL_OK)
        return zipccl_transport_fail(&comm->transport->base, status, "gate", error);
    if (!able && comm->options.notice != NULL)
        comm->options.notice(comm->options.notice_context,
                             "there is no gate: some rank's CUDA has no stream memory operations, "
                             "its NCCL no ncclCommSplit, or it can have no more threads");
    return ZIPCCL_OK;
}

static zipccl_status join(struct zipccl_gpu_comm *comm, zipccl_status mine,
                          struct zipccl_error *error)
{
    const struct zipccl_gpu_options *o = &comm->options;
    uint64_t *words = calloc((size_t)comm->transport->base.nranks * NUM_WORDS, sizeof *words);
    struct zipccl_comm_config config;
    zipccl_status status;

    if (words == NULL) /* the other ranks wait: as with NCCL, until they are aborted */
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "no memory for a communicator");
    status = agree(comm, mine, words, error);
    if (status == ZIPCCL_OK)
        status = make_topology(comm, words);
    free(words);
    ZIPCCL_TRY(status);
    ZIPCCL_TRY(open_gate(comm, error));
    zipccl_comm_config_init(&config);
    config.mode = o->mode;
    config.strategy = o->strategy;
    config.nchunks = o->nchunks;
    config.capacity_class = o->capacity_class;
    config.max_staging_bytes = o->max_staging_bytes;
    config.params = o->params;
    config.learning = o->learning;
    config.effort = o->effort;
    return zipccl_comm_create(&comm->transport->base, &comm->exec->base, &config, &comm->core,
                              error);
}

zipccl_status zipccl_gpu_create(ncclComm_t nccl, const struct zipccl_gpu_options *options,
                                struct zipccl_gpu_comm **out, struct zipccl_error *error)
{
    struct zipccl_gpu_comm *comm;
    zipccl_status status;

    if (nccl == NULL || options == NULL || options->nccl == NULL || out == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "nccl, options and out must not be NULL");
    comm = calloc(1, sizeof *comm);
    if (comm == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "no memory for a communicator");
    comm->options = *options;
    if (comm->options.max_staging_bytes == 0)
        comm->options.max_staging_bytes = DEFAULT_STAGING_BYTES;
    status = zipccl_transport_nccl_create(nccl, options->nccl, NULL, &comm->transport, error);
    if (status == ZIPCCL_OK)
        status = join(comm, set_up(comm, error), error);
    if (status != ZIPCCL_OK) {
        zipccl_gpu_destroy(comm);
        return status;
    }
    comm->options.strategy = NULL;
    comm->options.node_of = NULL;
    *out = comm;
    return ZIPCCL_OK;
}

void zipccl_gpu_destroy(struct zipccl_gpu_comm *comm)
{
    if (comm == NULL)
        return;
    zipccl_comm_destroy(comm->core);
    if (comm->exec != NULL)
        zipccl_exec_cuda_destroy(comm->exec);
    if (comm->transport != NULL)
        comm->transport->base.ops->destroy(&comm->transport->base);
    zipccl_topology_destroy(comm->topology);
    free(comm->pairs);
    free(comm->done);
    free(comm);
}

void zipccl_gpu_abort(struct zipccl_gpu_comm *comm)
{
    const struct timespec pause = {0, 1000000};
    struct zipccl_transport_nccl *t = comm->transport;

    atomic_store(&t->aborted, true);
    zipccl_gate_abort(comm->exec->gate);
    for (unsigned ms = 0; atomic_load(&comm->inside) > 0 && ms < 1000; ms++)
        nanosleep(&pause, NULL);
    for (unsigned part = 0; part < 2; part++)
        if (t->parts[part] != NULL) {
            t->api->CommAbort(t->parts[part]);
            t->parts[part] = NULL;
        }
}

void zipccl_gpu_disable(struct zipccl_gpu_comm *comm)
{
    comm->disabled = true;
}

zipccl_status zipccl_gpu_enter(struct zipccl_gpu_comm *comm)
{
    atomic_fetch_add(&comm->inside, 1);
    comm->error.text[0] = '\0';
    comm->last = NULL;
    if (!atomic_load(&comm->transport->aborted)) {
        /* Questions to events, and memory that grows, do no harm to what another thread captures. */
        comm->capture_mode = cudaStreamCaptureModeRelaxed;
        cudaThreadExchangeStreamCaptureMode(&comm->capture_mode);
        return ZIPCCL_OK;
    }
    zipccl_fail(&comm->error, ZIPCCL_ERR_ABORTED, "%s",
                comm->transport->error.text[0] != '\0' ? comm->transport->error.text : "aborted");
    atomic_fetch_sub(&comm->inside, 1);
    return ZIPCCL_ERR_ABORTED;
}

zipccl_status zipccl_gpu_leave(struct zipccl_gpu_comm *comm, zipccl_status status)
{
    cudaThreadExchangeStreamCaptureMode(&comm->capture_mode);
    if (status != ZIPCCL_OK && comm->error.text[0] == '\0') {
        const char *core = zipccl_comm_error(comm->core), *wire = comm->transport->error.text;

        zipccl_fail(&comm->error, status, "%s",
                    core[0] != '\0'   ? core
                    : wire[0] != '\0' ? wire
                                      : zipccl_status_string(status));
    }
    atomic_fetch_sub(&comm->inside, 1);
    return status;
}

zipccl_status zipccl_gpu_async_error(struct zipccl_gpu_comm *comm, struct zipccl_error *error)
{
    zipccl_status status;

    /* Inside like a call, so that who aborts does not take the node communicators away meanwhile. */
    atomic_fetch_add(&comm->inside, 1);
    status = zipccl_transport_nccl_async_error(comm->transport);
    if (status == ZIPCCL_OK)
        status = zipccl_exec_cuda_failed(comm->exec);
    atomic_fetch_sub(&comm->inside, 1);
    if (status == ZIPCCL_OK)
        return status;
    return zipccl_fail(error, status, "%s",
                       comm->transport->error.text[0] != '\0' ? comm->transport->error.text
                                                              : zipccl_status_string(status));
}

const char *zipccl_gpu_error(const struct zipccl_gpu_comm *comm)
{
    return comm->error.text;
}

void zipccl_gpu_count_plain(struct zipccl_gpu_comm *comm, enum zipccl_op op,
                            enum zipccl_gpu_reason reason, uint64_t calls, uint64_t raw)
{
    struct zipccl_gpu_op_stats *stats = &comm->stats[op];

    stats->calls += calls;
    stats->reasons[reason] += calls;
    stats->raw_bytes += raw;
    stats->wire_bytes += raw;
}

void zipccl_gpu_count_plan(struct zipccl_gpu_comm *comm, enum zipccl_op op, uint64_t calls,
                           const struct zipccl_comm_stats *before)
{
    struct zipccl_gpu_op_stats *stats = &comm->stats[op];
    struct zipccl_comm_stats now;
    bool compressed = comm->last != NULL && comm->last->compressed;

    if (comm->exec->gate != NULL && comm->exec->gate->plain) {
        zipccl_gpu_notice(comm, ZIPCCL_GPU_CAPTURED,
                          "captured calls whose plan exchanges sizes are passed to plain NCCL");
        zipccl_gpu_count_plain(comm, op, ZIPCCL_GPU_CAPTURED, calls,
                               comm->core->stats.raw_bytes - before->raw_bytes);
        comm->last = NULL;
        return;
    }
    now = comm->core->stats;
    stats->calls += calls;
    stats->reasons[compressed ? ZIPCCL_GPU_COMPRESSED : ZIPCCL_GPU_PLAN_RAW] += calls;
    stats->raw_bytes += now.raw_bytes - before->raw_bytes;
    stats->wire_bytes += now.wire_bytes - before->wire_bytes;
    stats->overflows += now.overflows - before->overflows;
    stats->raw_resends += now.raw_resends - before->raw_resends;
    if (compressed) {
        stats->coded_raw_bytes += now.raw_bytes - before->raw_bytes;
        stats->coded_wire_bytes += now.wire_bytes - before->wire_bytes;
    }
}

zipccl_status zipccl_gpu_order(struct zipccl_gpu_comm *comm, enum zipccl_op op, cudaStream_t stream,
                               struct zipccl_comm_stats *before)
{
    *before = comm->core->stats;
    if (comm->exec->gate != NULL)
        comm->exec->gate->op = op;
    return zipccl_exec_cuda_enter(comm->exec, stream);
}

uint64_t zipccl_gpu_gate_resends(const struct zipccl_gpu_comm *comm)
{
    return comm->exec->gate != NULL ? atomic_load(&comm->exec->gate->resends) : 0;
}

bool zipccl_gpu_has_gate(const struct zipccl_gpu_comm *comm)
{
    return comm->exec->gate != NULL;
}

void zipccl_gpu_get_stats(const struct zipccl_gpu_comm *comm, enum zipccl_op op,
                          struct zipccl_gpu_op_stats *out)
{
    *out = comm->stats[op];
    if (comm->exec->gate != NULL) {
        const struct zipccl_run_stats *late = &comm->exec->gate->late[op];

        out->overflows += late->overflows;
        out->raw_resends += late->raw_resends;
        out->wire_bytes += late->wire_bytes;
        out->coded_wire_bytes += late->wire_bytes;
    }
}

double zipccl_gpu_ratio(const struct zipccl_gpu_op_stats *stats)
{
    return stats->coded_wire_bytes > 0
               ? (double)stats->coded_raw_bytes / (double)stats->coded_wire_bytes
               : 0;
}

size_t zipccl_gpu_device_bytes(const struct zipccl_gpu_comm *comm)
{
    return zipccl_exec_cuda_bytes(comm->exec) + comm->transport->bounce_bytes +
           comm->transport->old_bytes;
}

struct zipccl_comm *zipccl_gpu_core(struct zipccl_gpu_comm *comm)
{
    return comm->core;
}

const struct zipccl_topology *zipccl_gpu_topology(const struct zipccl_gpu_comm *comm)
{
    return comm->topology;
}

const struct zipccl_plan *zipccl_gpu_last_plan(const struct zipccl_gpu_comm *comm)
{
    return comm->last;
}
