/*
 * comm.c - communicators: creation, agreement, statistics
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/comm_state.h"

#include "core/wire.h"

#include <stdlib.h>
#include <string.h>

/* Version of everything that both ends must do alike; part of the digest. */
#define AGREEMENT_VERSION 7u

#define DEFAULT_STAGING_BYTES ((size_t)256 << 20)

/* What ranks compare at creation, one word each so that a difference can be named. */
enum { WORD_VERSION, WORD_OPTIONS, WORD_PARAMS, WORD_TOPOLOGY, NUM_COMPARED };
static const char *const word_names[NUM_COMPARED] = {"version", "options", "cost parameters",
                                                     "topology"};

/* What they tell each other besides: whether times can be taken. */
enum { WORD_CLOCK = NUM_COMPARED, NUM_WORDS };

void zipccl_comm_config_init(struct zipccl_comm_config *config)
{
    *config = (struct zipccl_comm_config){
        .mode = ZIPCCL_MODE_ADAPTIVE,
        .capacity_class = ZIPCCL_CLASS_LEARN,
        .max_staging_bytes = DEFAULT_STAGING_BYTES,
        .learning = ZIPCCL_LEARN_TIMES,
        /* Round figures of one core per rank: memcpy between threads, codec of notes/codec.md at
         * its scalar end; assumptions until measured on the machine at hand.  For ratio the scalar
         * row as measured, experiments/codec_log.md. */
        .params = {.gpus_per_node = 0,
                   .nics_per_node = 1,
                   .nvlink_Bps = 8e9,
                   .nvlink_alpha_s = 5e-6,
                   .nic_Bps = 1e9,
                   .nic_alpha_s = 2e-5,
                   .encode_Bps = 2e9,
                   .decode_Bps = 3e9,
                   .codec_launch_s = 1e-6,
                   .fence_s = 1e-6,
                   .copy_Bps = 8e9,
                   .channels = 1,
                   .codec_sm_share = 1,
                   .ratio_encode_Bps = 2e8,
                   .ratio_decode_Bps = 2e8},
    };
}

uint64_t zipccl_comm_hash_u64(uint64_t hash, uint64_t x)
{
    for (unsigned i = 0; i < 8; i++)
        hash = (hash ^ ((x >> (8 * i)) & 0xff)) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t hash_double(uint64_t hash, double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    return zipccl_comm_hash_u64(hash, bits);
}

static uint64_t hash_options(const struct zipccl_comm_config *c)
{
    uint64_t hash = zipccl_comm_hash_u64(ZIPCCL_COMM_HASH_START, (uint64_t)c->mode);

    hash = zipccl_comm_hash_u64(hash, c->strategy != NULL);
    for (const char *p = c->strategy; p != NULL && *p != '\0'; p++)
        hash = zipccl_comm_hash_u64(hash, (unsigned char)*p);
    hash = zipccl_comm_hash_u64(hash, c->nchunks);
    hash = zipccl_comm_hash_u64(hash, c->capacity_class);
    hash = zipccl_comm_hash_u64(hash, (uint64_t)c->effort);
    if (c->plan != NULL)
        hash = zipccl_comm_hash_u64(hash, zipccl_plan_digest(c->plan));
    return zipccl_comm_hash_u64(hash, c->max_staging_bytes);
}

static uint64_t hash_params(const struct zipccl_cost_params *p)
{
    const uint32_t whole[] = {p->gpus_per_node, p->nics_per_node, p->channels, p->shared_cores};
    const double rates[] = {p->nvlink_Bps,       p->nvlink_alpha_s, p->nic_Bps,
                            p->nic_alpha_s,      p->fabric_Bps,     p->encode_Bps,
                            p->decode_Bps,       p->codec_launch_s, p->fence_s,
                            p->codec_sm_share,   p->copy_Bps,       p->ratio_encode_Bps,
                            p->ratio_decode_Bps, p->reduce_Bps,     p->nic_burst_bytes};
    uint64_t hash = ZIPCCL_COMM_HASH_START;

    for (unsigned i = 0; i < sizeof whole / sizeof *whole; i++)
        hash = zipccl_comm_hash_u64(hash, whole[i]);
    for (unsigned i = 0; i < sizeof rates / sizeof *rates; i++)
        hash = hash_double(hash, rates[i]);
    return hash;
}

static uint64_t hash_topology(const struct zipccl_topology *t)
{
    uint64_t hash = zipccl_comm_hash_u64(ZIPCCL_COMM_HASH_START, t->nranks);

    for (uint32_t r = 0; r < t->nranks; r++)
        hash = zipccl_comm_hash_u64(hash, t->node_of[r]);
    return hash;
}

static zipccl_status post_words(struct zipccl_transport *t, const uint8_t *mine, uint8_t *bytes,
                                size_t nbytes)
{
    for (uint32_t p = 0; p < t->nranks; p++) {
        if (p == t->rank)
            continue;
        ZIPCCL_TRY(t->ops->send(t, p, mine, nbytes));
        ZIPCCL_TRY(t->ops->recv(t, p, bytes + p * nbytes, nbytes));
    }
    return ZIPCCL_OK;
}

static zipccl_status exchange_words(struct zipccl_transport *t, const uint8_t *mine, uint8_t *bytes,
                                    size_t nbytes)
{
    zipccl_status status, ended;

    if (t->ops->gather != NULL)
        return t->ops->gather(t, mine, nbytes, bytes);
    ZIPCCL_TRY(t->ops->group_begin(t));
    status = post_words(t, mine, bytes, nbytes);
    if (status != ZIPCCL_OK)
        t->ops->abort(t);
    ended = t->ops->group_end(t); /* in any case: the buffers go away */
    return status != ZIPCCL_OK ? status : ended;
}

zipccl_status zipccl_comm_gather_words(struct zipccl_transport *t, const uint64_t *mine, uint32_t n,
                                       uint64_t *all)
{
    size_t nbytes = 8 * (size_t)n;
    uint8_t *bytes = malloc((size_t)t->nranks * nbytes);
    zipccl_status status = ZIPCCL_ERR_NOMEM;

    if (bytes != NULL) {
        uint8_t *own = bytes + t->rank * nbytes;

        for (uint32_t i = 0; i < n; i++)
            zipccl_put_u64(own + 8 * (size_t)i, mine[i]);
        status = exchange_words(t, own, bytes, nbytes);
    }
    for (size_t i = 0; status == ZIPCCL_OK && i < (size_t)t->nranks * n; i++)
        all[i] = zipccl_get_u64(bytes + 8 * i);
    free(bytes);
    if (status != ZIPCCL_OK)
        t->ops->abort(t);
    return status;
}

uint32_t zipccl_comm_odd_rank(const uint64_t *all, uint32_t nranks, uint32_t n, uint32_t word)
{
    uint64_t common = all[word];
    uint32_t lead = 0;

    /* Boyer-Moore: if a majority exists, 'common' is it; every rank finds the same. */
    for (uint32_t r = 0; r < nranks; r++) {
        uint64_t x = all[(size_t)r * n + word];

        if (lead == 0)
            common = x;
        lead = x == common ? lead + 1 : lead - 1;
    }
    for (uint32_t r = 0; r < nranks; r++)
        if (all[(size_t)r * n + word] != common)
            return r;
    return nranks;
}

void zipccl_comm_settings(const struct zipccl_comm *comm, struct zipccl_comm_settings *out)
{
    *out = (struct zipccl_comm_settings){.agreement = AGREEMENT_VERSION,
                                         .options = hash_options(&comm->config),
                                         .params = hash_params(&comm->config.params),
                                         .topology = hash_topology(comm->transport->topology)};
}

static zipccl_status agree(struct zipccl_comm *comm, struct zipccl_error *error)
{
    struct zipccl_transport *t = comm->transport;
    struct zipccl_comm_settings settings;
    uint64_t mine[NUM_WORDS], *all = malloc((size_t)t->nranks * sizeof mine);
    zipccl_status status;

    if (all == NULL) {
        t->ops->abort(t);
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "no memory for %u ranks", t->nranks);
    }
    zipccl_comm_settings(comm, &settings);
    mine[WORD_VERSION] = settings.agreement;
    mine[WORD_OPTIONS] = zipccl_comm_hash_u64(settings.options, (uint64_t)comm->config.learning);
    mine[WORD_PARAMS] = settings.params;
    mine[WORD_TOPOLOGY] = settings.topology;
    mine[WORD_CLOCK] = comm->exec->ops->clock_ns != NULL || comm->exec->ops->time_of != NULL;
    status = zipccl_comm_gather_words(t, mine, NUM_WORDS, all);
    if (status != ZIPCCL_OK)
        zipccl_transport_fail(t, status, "exchange of settings", error);
    for (uint32_t w = 0; status == ZIPCCL_OK && w < NUM_COMPARED; w++) {
        uint32_t odd = zipccl_comm_odd_rank(all, t->nranks, NUM_WORDS, w);

        if (odd < t->nranks)
            status = zipccl_fail(error, ZIPCCL_ERR_MISMATCH,
                                 "rank %u has another %s than the other ranks", odd, word_names[w]);
    }
    comm->times = comm->config.learning == ZIPCCL_LEARN_TIMES && comm->config.strategy == NULL &&
                  comm->config.mode == ZIPCCL_MODE_ADAPTIVE;
    for (uint32_t r = 0; status == ZIPCCL_OK && r < t->nranks; r++)
        comm->times = comm->times && all[(size_t)r * NUM_WORDS + WORD_CLOCK] == 1;
    free(all);
    return status;
}

static uint32_t largest_node(const struct zipccl_topology *t)
{
    uint32_t most = 0;

    for (uint32_t v = 0; v < t->nnodes; v++)
        if (zipccl_topology_node_size(t, v) > most)
            most = zipccl_topology_node_size(t, v);
    return most;
}

/* Check the settings, which are the same on all ranks by now, and fill in defaults. */
static zipccl_status configure(struct zipccl_comm *comm, struct zipccl_error *error)
{
    struct zipccl_comm_config *c = &comm->config;

    if ((unsigned)c->mode > ZIPCCL_MODE_ADAPTIVE)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "mode %d is none", (int)c->mode);
    if ((unsigned)c->effort >= ZIPCCL_NUM_EFFORTS ||
        (c->effort == ZIPCCL_EFFORT_RATIO &&
         !(c->params.ratio_encode_Bps > 0 && c->params.ratio_decode_Bps > 0)))
        return zipccl_fail(
            error, ZIPCCL_ERR_ARG,
            "effort %d: expected ZIPCCL_EFFORT_FAST, or ZIPCCL_EFFORT_RATIO with its "
            "rates in 'params'",
            (int)c->effort);
    if (c->strategy != NULL) {
        comm->pinned = zipccl_strategy_find(c->strategy);
        if (comm->pinned == NULL)
            return zipccl_fail(error, ZIPCCL_ERR_ARG, "no strategy is named \"%s\"", c->strategy);
        c->strategy = comm->pinned->name;
    }
    if ((unsigned)c->learning > ZIPCCL_LEARN_TIMES)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "learning %d is none", (int)c->learning);
    if (c->capacity_class >= ZIPCCL_NUM_CLASSES && c->capacity_class != ZIPCCL_CLASS_LEARN)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "capacity class %u is none of 0 to %d",
                           c->capacity_class, ZIPCCL_NUM_CLASSES - 1);
    if (c->max_staging_bytes == 0)
        c->max_staging_bytes = DEFAULT_STAGING_BYTES;
    if (c->params.gpus_per_node == 0)
        c->params.gpus_per_node = largest_node(comm->transport->topology);
    if (c->params.gpus_per_node < largest_node(comm->transport->topology))
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "%u GPUs per node, but a node has %u ranks",
                           c->params.gpus_per_node, largest_node(comm->transport->topology));
    comm->pairs = calloc(4 * (size_t)comm->transport->nranks, sizeof *comm->pairs);
    comm->pair_classes = calloc(4 * (size_t)comm->transport->nranks, sizeof *comm->pair_classes);
    if (comm->pairs == NULL || comm->pair_classes == NULL) {
        comm->transport->ops->abort(comm->transport);
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "no memory for a communicator");
    }
    return ZIPCCL_OK;
}

/* An exec tells owners apart by their addresses: calls of one that was here before are not ours. */
static void forget_ended(struct zipccl_comm *comm)
{
    const struct zipccl_exec_ops *ops = comm->exec->ops;
    struct zipccl_ended_call call;

    while (ops->ended != NULL && ops->ended(comm->exec, comm, &call))
        continue;
}

zipccl_status zipccl_comm_create(struct zipccl_transport *transport, struct zipccl_exec *exec,
                                 const struct zipccl_comm_config *config, struct zipccl_comm **out,
                                 struct zipccl_error *error)
{
    struct zipccl_comm *comm;
    zipccl_status status;

    if (transport == NULL || exec == NULL || out == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "transport, exec and out must not be NULL");
    comm = calloc(1, sizeof *comm);
    if (comm == NULL) {
        transport->ops->abort(transport); /* the other ranks wait for our settings */
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "no memory for a communicator");
    }
    comm->transport = transport;
    comm->exec = exec;
    comm->placement.topology = transport->topology;
    comm->most_plans = ZIPCCL_CACHED_PLANS;
    comm->most_kinds = ZIPCCL_CACHED_KINDS;
    if (config != NULL)
        comm->config = *config;
    else
        zipccl_comm_config_init(&comm->config);
    if (comm->config.plan != NULL) {
        comm->config.learning = ZIPCCL_LEARN_NOTHING;
        comm->config.capacity_class = comm->config.plan->capacity_class;
    }
    status = agree(comm, error);
    if (status == ZIPCCL_OK)
        status = configure(comm, error);
    forget_ended(comm);
    if (status != ZIPCCL_OK) {
        zipccl_comm_destroy(comm);
        return status;
    }
    *out = comm;
    return ZIPCCL_OK;
}

static void free_staging(struct zipccl_comm *comm, struct zipccl_staging *staging)
{
    if (staging->p != NULL)
        comm->exec->ops->free(comm->exec, staging->p);
}

void zipccl_comm_destroy(struct zipccl_comm *comm)
{
    if (comm == NULL)
        return;
    zipccl_comm_plans_destroy(comm);
    free_staging(comm, &comm->tx);
    free_staging(comm, &comm->rx);
    free_staging(comm, &comm->tmp);
    free_staging(comm, &comm->acc);
    zipccl_comm_classes_destroy(comm);
    free(comm->pair_classes);
    free(comm->pairs);
    free(comm);
}

void zipccl_comm_abort(struct zipccl_comm *comm)
{
    comm->transport->ops->abort(comm->transport);
}

const char *zipccl_comm_error(const struct zipccl_comm *comm)
{
    return comm->error.text;
}

const struct zipccl_plan *zipccl_comm_last_plan(const struct zipccl_comm *comm)
{
    return comm->last;
}

void zipccl_comm_get_stats(const struct zipccl_comm *comm, struct zipccl_comm_stats *stats)
{
    *stats = comm->stats;
    stats->wire_bytes += comm->late.wire_bytes;
    stats->overflows += comm->late.overflows;
    stats->raw_resends += comm->late.raw_resends;
}
