/*
 * test_comm.c - communicators: agreement, arguments, modes, uneven calls, abort
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/coll_world.h"
#include "core/zipccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: rank %u: %s is not so\n", __FILE__, __LINE__, rank,            \
                    #condition);                                                                   \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

struct job {
    const struct world *world;
    struct zipccl_comm_config config;
    struct coll_case c;
    uint32_t odd; /* the rank that does something else */
    unsigned variant;
    struct zipccl_comm *comms[MAX_RANKS];
};

static struct zipccl_comm *open_comm(const struct job *job, uint32_t rank)
{
    struct zipccl_comm *comm = NULL;
    struct zipccl_error error = {""};

    if (zipccl_comm_create(job->world->t[rank], job->world->exec[rank], &job->config, &comm,
                           &error) != ZIPCCL_OK) {
        fprintf(stderr, "rank %u: %s\n", rank, error.text);
        abort();
    }
    return comm;
}

static void differ(struct zipccl_comm_config *config, unsigned variant)
{
    switch (variant) {
    case 0: config->mode = ZIPCCL_MODE_RAW; break;
    case 1: config->strategy = "fixed direct"; break;
    case 2: config->nchunks = 7; break;
    case 3: config->capacity_class = 1; break;
    case 4: config->max_staging_bytes = 12345; break;
    case 7: config->effort = ZIPCCL_EFFORT_RATIO; break;
    case 8: config->params.ratio_decode_Bps *= 2; break;
    case 5: config->params.nic_Bps *= 2; break;
    default: config->params.channels = 9; break;
    }
}

/* Settings of one rank differ: all ranks hear which one, none hangs, the transport lives on. */
static bool agreement(void *context, uint32_t rank)
{
    struct job *job = context;
    struct zipccl_comm_config config = job->config;
    struct zipccl_comm *comm = NULL;
    struct zipccl_error error = {""};
    char name[16];

    if (rank == job->odd)
        differ(&config, job->variant);
    CHECK(zipccl_comm_create(job->world->t[rank], job->world->exec[rank], &config, &comm, &error) ==
          ZIPCCL_ERR_MISMATCH);
    CHECK(comm == NULL);
    snprintf(name, sizeof name, "rank %u ", job->odd);
    CHECK(strncmp(error.text, name, strlen(name)) == 0);
    config = job->config;
    config.strategy = "no such";
    CHECK(zipccl_comm_create(job->world->t[rank], job->world->exec[rank], &config, &comm, &error) ==
          ZIPCCL_ERR_ARG);
    config = job->config;
    config.effort = ZIPCCL_EFFORT_RATIO;
    config.params.ratio_encode_Bps = 0;
    CHECK(zipccl_comm_create(job->world->t[rank], job->world->exec[rank], &config, &comm, &error) ==
          ZIPCCL_ERR_ARG);
    config = job->config;
    config.params.gpus_per_node = 2;
    CHECK(zipccl_comm_create(job->world->t[rank], job->world->exec[rank], &config, &comm, &error) ==
          ZIPCCL_ERR_ARG);
    CHECK(strstr(error.text, "3 ranks") != NULL);
    comm = open_comm(job, rank);
    zipccl_comm_destroy(comm);
    CHECK(zipccl_comm_create(job->world->t[rank], job->world->exec[rank], NULL, &comm, NULL) ==
          ZIPCCL_OK);
    zipccl_comm_destroy(comm);
    return true;
}

static bool test_agreement(void)
{
    bool ok = true;

    for (unsigned variant = 0; variant < 9; variant++)
        for (uint32_t odd = 0; odd < 3; odd += 2) {
            struct world w;
            struct job job = {.world = &w, .odd = odd, .variant = variant};

            world_open_even(&w, 1, 3);
            zipccl_comm_config_init(&job.config);
            ok = world_run(&w, agreement, &job) && ok;
            world_close(&w);
        }
    return ok;
}

static zipccl_status call(struct zipccl_comm *comm, const struct coll_case *c, uint32_t nranks,
                          uint32_t rank, struct buffers *b)
{
    int dst = -1, src = -1;
    size_t send_at = 0, recv_at = 0;

    switch (c->op) {
    case ZIPCCL_ALL_GATHER:
        return zipccl_all_gather(b->send, b->recv, c->count, ZIPCCL_BFLOAT16, comm, NULL);
    case ZIPCCL_ALLTOALL:
        return zipccl_alltoall(b->send, b->recv, c->count, ZIPCCL_BFLOAT16, comm, NULL);
    case ZIPCCL_ALLTOALLV:
        return zipccl_alltoallv(b->send, b->displs[0], b->displs[1], b->recv, b->displs[2],
                                b->displs[3], ZIPCCL_BFLOAT16, comm, NULL);
    case ZIPCCL_BROADCAST:
        return zipccl_broadcast(rank == c->root ? b->send : NULL, b->recv, c->count,
                                ZIPCCL_BFLOAT16, c->root, comm, NULL);
    default: break;
    }
    for (uint32_t p = 0; p < nranks; p++) {
        if (b->displs[0][p] > 0) {
            dst = (int)p;
            send_at = b->displs[1][p];
        }
        if (b->displs[2][p] > 0) {
            src = (int)p;
            recv_at = b->displs[3][p];
        }
    }
    if (dst < 0 && src < 0) /* who exchanges nothing need not call */
        return ZIPCCL_OK;
    return zipccl_sendrecv(b->send + send_at, dst < 0 ? 0 : b->displs[0][dst], dst,
                           b->recv + recv_at, src < 0 ? 0 : b->displs[2][src], src, ZIPCCL_BFLOAT16,
                           comm, NULL);
}

/* Several calls on one communicator: the second of each kind finds its plan. */
static bool right_results(void *context, uint32_t rank)
{
    struct job *job = context;
    struct zipccl_comm *comm = open_comm(job, rank);
    static const enum zipccl_op ops[] = {ZIPCCL_ALL_GATHER, ZIPCCL_ALLTOALL, ZIPCCL_ALLTOALLV,
                                         ZIPCCL_SENDRECV, ZIPCCL_BROADCAST};
    const struct zipccl_plan *before = NULL;
    struct zipccl_comm_stats stats;
    bool ok = true;

    for (size_t i = 0; i < 2 * sizeof ops / sizeof *ops && ok; i++) {
        struct coll_case c = job->c;
        struct buffers b;
        zipccl_status status;

        c.op = ops[i / 2];
        c.split = c.op == ZIPCCL_SENDRECV ? SPLIT_ONE_WAY : SPLIT_RANDOM;
        buffers_open(&b, &c, job->world->nranks, rank);
        status = call(comm, &c, job->world->nranks, rank, &b);
        ok = status == ZIPCCL_OK && buffers_right(&b, &c) &&
             (i % 2 == 0 || before == zipccl_comm_last_plan(comm));
        if (!ok)
            fprintf(stderr, "rank %u, %s: %s %s\n", rank, zipccl_op_name(c.op),
                    zipccl_status_string(status), zipccl_comm_error(comm));
        before = zipccl_comm_last_plan(comm);
        buffers_close(&b);
        if (!ok)
            zipccl_comm_abort(comm);
    }
    zipccl_comm_get_stats(comm, &stats);
    if (ok)
        ok = stats.calls >= 8 && (job->c.count == 0 || job->world->nranks == 1 ||
                                  (stats.raw_bytes > 0 && stats.wire_bytes > 0));
    zipccl_comm_destroy(comm);
    return ok;
}

/* Every mode and strategy; uneven calls where ranks have different numbers of chunks. */
static bool test_results(void)
{
    static const uint32_t worlds[][2] = {{1, 1}, {1, 2}, {2, 2}, {1, 5}};
    static const size_t counts[] = {0, 5, 700, 70001};
    bool ok = true;

    for (size_t i = 0; i < sizeof worlds / sizeof *worlds - SANITIZED; i++)
        for (unsigned n = 0; n < 4; n++)
            for (unsigned s = 0; s < 13; s++) {
                struct world w;
                struct job job = {.world = &w,
                                  .c = {.count = counts[n], .root = 0, .kind = KIND_MIXED}};

                zipccl_comm_config_init(&job.config);
                job.config.params.channels = 2;
                if (s < 7)
                    job.config.strategy = zipccl_strategies[s]->name;
                else if (s >= 11)
                    job.config.strategy = s == 11 ? "fixed split" : "exact split";
                else
                    job.config.mode = (enum zipccl_mode)((s - 7) % 3);
                job.config.nchunks = 3;
                job.config.capacity_class = s % 2;
                if (n == 3) /* uneven calls of up to 70001 elements take several chunks */
                    job.config.max_staging_bytes = (size_t)1 << 20;
                job.c.strategy = zipccl_strategies[s % 7];
                world_open_even(&w, worlds[i][0], worlds[i][1]);
                if (!world_run(&w, right_results, &job)) {
                    case_print(&job.c, &w);
                    ok = false;
                }
                world_close(&w);
            }
    return ok;
}

/* Results are right with either effort, and what is sent is less with the greater one. */
static bool efforts(void *context, uint32_t rank)
{
    static const enum zipccl_op ops[] = {ZIPCCL_ALL_GATHER, ZIPCCL_ALLTOALL, ZIPCCL_ALLTOALLV,
                                         ZIPCCL_SENDRECV, ZIPCCL_BROADCAST};
    struct job *job = context;
    struct zipccl_comm_config configs[ZIPCCL_NUM_EFFORTS] = {job->config, job->config};
    uint64_t sent[ZIPCCL_NUM_EFFORTS];

    configs[ZIPCCL_EFFORT_RATIO].effort = ZIPCCL_EFFORT_RATIO;
    for (unsigned k = 0; k < ZIPCCL_NUM_EFFORTS; k++) {
        struct zipccl_comm *comm = NULL;
        struct zipccl_comm_stats stats;

        CHECK(zipccl_comm_create(job->world->t[rank], job->world->exec[rank], &configs[k], &comm,
                                 NULL) == ZIPCCL_OK);
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
            struct coll_case c = job->c;
            struct buffers b;

            c.op = ops[i];
            c.split = c.op == ZIPCCL_SENDRECV ? SPLIT_ONE_WAY : SPLIT_RANDOM;
            buffers_open(&b, &c, job->world->nranks, rank);
            CHECK(call(comm, &c, job->world->nranks, rank, &b) == ZIPCCL_OK);
            CHECK(buffers_right(&b, &c));
            buffers_close(&b);
        }
        CHECK(zipccl_comm_last_plan(comm)->effort == k);
        zipccl_comm_get_stats(comm, &stats);
        sent[k] = stats.wire_bytes;
        zipccl_comm_destroy(comm);
    }
    CHECK((double)sent[ZIPCCL_EFFORT_RATIO] < 0.997 * (double)sent[ZIPCCL_EFFORT_FAST]);
    return true;
}

static bool test_efforts(void)
{
    struct world w;
    struct job job = {.world = &w, .c = {.count = 70001, .root = 0, .kind = KIND_GAUSS}};
    bool ok;

    zipccl_comm_config_init(&job.config);
    job.config.strategy = "exact direct";
    job.config.mode = ZIPCCL_MODE_COMPRESSED;
    job.c.strategy = zipccl_strategy_find("exact direct");
    world_open_even(&w, 1, 3);
    ok = world_run(&w, efforts, &job);
    world_close(&w);
    return ok;
}

/* Pairs of more than one chunk at the default staging, with unequal ends of the communicator. */
static bool large_pairs(void *context, uint32_t rank)
{
    struct job *job = context;
    struct zipccl_comm *comm = open_comm(job, rank);
    struct coll_case c = job->c;
    struct buffers b;
    bool ok;

    c.op = rank < 2 ? ZIPCCL_SENDRECV : ZIPCCL_NUM_OPS;
    c.split = SPLIT_PAIRS;
    buffers_open(&b, &c, job->world->nranks, rank);
    ok = rank >= 2 || (call(comm, &c, job->world->nranks, rank, &b) == ZIPCCL_OK &&
                       buffers_right(&b, &c) && zipccl_comm_last_plan(comm)->nchunks == 3);
    buffers_close(&b);
    zipccl_comm_destroy(comm);
    return ok;
}

static bool test_large_pairs(void)
{
    static const char *const strategies[] = {"fixed direct", "exact direct"};
    bool ok = true;

    for (unsigned s = 0; s < 2; s++) {
        struct world w;
        struct job job = {.world = &w,
                          .c = {.count = 1200001,
                                .kind = KIND_MIXED,
                                .strategy = zipccl_strategy_find(strategies[s])}};

        zipccl_comm_config_init(&job.config);
        job.config.strategy = strategies[s];
        world_open_even(&w, 1, 3);
        ok = world_run(&w, large_pairs, &job) && ok;
        world_close(&w);
    }
    return ok;
}

static bool sums(void *context, uint32_t rank)
{
    struct job *job = context;
    struct zipccl_comm *comm = job->comms[rank];
    int32_t send[12], recv[12];

    for (int i = 0; i < 12; i++)
        send[i] = (int)rank * 100 + i;
    CHECK(zipccl_all_reduce(send, recv, 12, ZIPCCL_INT32, ZIPCCL_SUM, comm, NULL) == ZIPCCL_OK);
    for (int i = 0; i < 12; i++)
        CHECK(recv[i] == 300 + 3 * i);
    CHECK(zipccl_reduce_scatter(send, recv, 4, ZIPCCL_INT32, ZIPCCL_MAX, comm, NULL) == ZIPCCL_OK);
    for (int i = 0; i < 4; i++)
        CHECK(recv[i] == 200 + 4 * (int)rank + i);
    CHECK(zipccl_all_reduce(send, send, 12, ZIPCCL_INT32, ZIPCCL_MIN, comm, NULL) == ZIPCCL_OK);
    for (int i = 0; i < 12; i++)
        CHECK(send[i] == i);
    CHECK(zipccl_all_reduce(send, send, 4, ZIPCCL_FLOAT8_E4M3, ZIPCCL_SUM, comm, NULL) ==
          ZIPCCL_ERR_UNSUPPORTED);
    CHECK(zipccl_comm_error(comm)[0] != '\0');
    CHECK(zipccl_all_reduce(send, send, 12, ZIPCCL_INT32, ZIPCCL_MIN, comm, NULL) == ZIPCCL_OK);
    CHECK(zipccl_comm_error(comm)[0] == '\0');
    return true;
}

static bool arguments(void *context, uint32_t rank)
{
    struct job *job = context;
    struct zipccl_comm *comm = job->comms[rank];
    uint16_t x[8] = {0};
    size_t four[3] = {4, 4, 4}, huge[3] = {SIZE_MAX / 2, 0, 0}, none[3] = {0, 0, 0};
    const enum zipccl_dtype bf16 = ZIPCCL_BFLOAT16;

    CHECK(zipccl_all_gather(NULL, x, 2, bf16, comm, NULL) == ZIPCCL_ERR_ARG);
    CHECK(zipccl_all_gather(x, NULL, 2, bf16, comm, NULL) == ZIPCCL_ERR_ARG);
    CHECK(zipccl_all_gather(x, x + 1, 2, bf16, comm, NULL) == ZIPCCL_ERR_ARG);
    CHECK(zipccl_all_gather(x, x, 2, (enum zipccl_dtype)77, comm, NULL) == ZIPCCL_ERR_ARG);
    CHECK(zipccl_all_gather(x, x, SIZE_MAX / 4, bf16, comm, NULL) == ZIPCCL_ERR_ARG);
    CHECK(zipccl_all_gather(x, x, 2, bf16, NULL, NULL) == ZIPCCL_ERR_ARG);
    CHECK(zipccl_all_gather(x, x, 2, bf16, comm, x) == ZIPCCL_ERR_ARG);
    CHECK(zipccl_broadcast(x, x, 2, bf16, 3, comm, NULL) == ZIPCCL_ERR_ARG);
    CHECK(strstr(zipccl_comm_error(comm), "root 3") != NULL);
    CHECK(zipccl_all_reduce(x, x + 1, 2, bf16, ZIPCCL_SUM, comm, NULL) == ZIPCCL_ERR_ARG);
    CHECK(zipccl_all_reduce(x, x, 2, bf16, (enum zipccl_redop)9, comm, NULL) == ZIPCCL_ERR_ARG);
    CHECK(zipccl_reduce_scatter(x, x + 1, 2, bf16, ZIPCCL_SUM, comm, NULL) == ZIPCCL_ERR_ARG);
    CHECK(zipccl_alltoall(x, x, 2, bf16, comm, NULL) == ZIPCCL_ERR_ARG);
    CHECK(zipccl_alltoallv(x, NULL, none, x, none, none, bf16, comm, NULL) == ZIPCCL_ERR_ARG);
    CHECK(zipccl_alltoallv(x, huge, none, x, none, none, bf16, comm, NULL) == ZIPCCL_ERR_ARG);
    CHECK(zipccl_alltoallv(x, four, none, x, four, none, bf16, comm, NULL) == ZIPCCL_ERR_ARG);
    CHECK(zipccl_alltoallv(NULL, four, none, x, four, none, bf16, comm, NULL) == ZIPCCL_ERR_ARG);
    CHECK(zipccl_sendrecv(x, 1, 3, x + 1, 1, 0, bf16, comm, NULL) == ZIPCCL_ERR_ARG);
    CHECK(zipccl_sendrecv(x, 1, -1, x + 1, 1, 0, bf16, comm, NULL) == ZIPCCL_ERR_ARG);
    CHECK(zipccl_sendrecv(x, 1, (int)rank, x + 1, 2, (int)rank, bf16, comm, NULL) ==
          ZIPCCL_ERR_ARG);
    /* Nothing to move is no error, and the communicator still works. */
    CHECK(zipccl_sendrecv(NULL, 0, -1, NULL, 0, -1, bf16, comm, NULL) == ZIPCCL_OK);
    CHECK(zipccl_alltoallv(NULL, none, none, NULL, none, none, bf16, comm, NULL) == ZIPCCL_OK);
    CHECK(zipccl_all_gather(NULL, NULL, 0, bf16, comm, NULL) == ZIPCCL_OK);
    CHECK(zipccl_sendrecv(x, 2, (int)rank, x + 2, 2, (int)rank, bf16, comm, NULL) == ZIPCCL_OK);
    CHECK(zipccl_all_reduce(x, x, 8, bf16, ZIPCCL_SUM, comm, NULL) == ZIPCCL_OK);
    zipccl_comm_destroy(NULL);
    return true;
}

/* One rank calls with another count: MISMATCH on all, which is named, and no rank hangs. */
static bool other_count(void *context, uint32_t rank)
{
    struct job *job = context;
    struct zipccl_comm *comm = job->comms[rank];
    uint16_t x[3 * 64] = {0};

    CHECK(zipccl_all_gather(x + 64 * rank, x, rank == 1 ? 0 : 64, ZIPCCL_BFLOAT16, comm, NULL) ==
          ZIPCCL_ERR_MISMATCH);
    CHECK(strstr(zipccl_comm_error(comm), rank == 1 ? "rank 1 calls all_gather of 0 bf16 elements; "
                                                    : "rank 1 calls another") != NULL);
    return true;
}

/* Unequal ends of a pair: an error at both, and the third rank is set free. */
static bool other_pair_count(void *context, uint32_t rank)
{
    struct job *job = context;
    struct zipccl_comm *comm = job->comms[rank];
    size_t n = job->c.count;
    uint16_t *x = calloc(2 * n + 2, sizeof *x);
    zipccl_status status;

    if (x == NULL)
        abort();
    if (rank == 0)
        status = zipccl_sendrecv(x, n, 1, NULL, 0, -1, ZIPCCL_BFLOAT16, comm, NULL);
    else if (rank == 1)
        status = zipccl_sendrecv(NULL, 0, -1, x, n + 1, 0, ZIPCCL_BFLOAT16, comm, NULL);
    else
        status = zipccl_sendrecv(NULL, 0, -1, x, n, 0, ZIPCCL_BFLOAT16, comm, NULL);
    free(x);
    /* Where both counts have one fixed size, the header tells the receiver, after the sender is
     * done. */
    CHECK(status != ZIPCCL_OK || (rank == 0 && job->config.strategy != NULL));
    CHECK(rank != 2 || status == ZIPCCL_ERR_ABORTED);
    return true;
}

static bool abort_frees(void *context, uint32_t rank)
{
    struct job *job = context;
    struct zipccl_comm *comm = job->comms[rank];
    uint16_t x[3 * 64] = {0};

    if (rank == 0)
        zipccl_comm_abort(comm);
    CHECK(zipccl_all_gather(x + 64 * rank, x, 64, ZIPCCL_BFLOAT16, comm, NULL) ==
          ZIPCCL_ERR_ABORTED);
    CHECK(strstr(zipccl_comm_error(comm), "rank 0") != NULL);
    CHECK(zipccl_all_reduce(x, x, 64, ZIPCCL_BFLOAT16, ZIPCCL_SUM, comm, NULL) ==
          ZIPCCL_ERR_ABORTED);
    return true;
}

static bool open_one(void *context, uint32_t rank)
{
    struct job *job = context;

    job->comms[rank] = open_comm(job, rank);
    return true;
}

static bool close_one(void *context, uint32_t rank)
{
    zipccl_comm_destroy(((struct job *)context)->comms[rank]);
    return true;
}

/* All communicators exist before the first call: some calls abort the transport. */
static bool test_each(rank_fn *fn, const char *strategy, size_t count)
{
    struct world w;
    struct job job = {.world = &w, .c = {.count = count}};
    bool ok;

    zipccl_comm_config_init(&job.config);
    job.config.strategy = strategy;
    world_open_even(&w, 1, 3);
    world_run(&w, open_one, &job);
    ok = world_run(&w, fn, &job);
    world_run(&w, close_one, &job);
    world_close(&w);
    return ok;
}

int main(void)
{
    bool ok = test_agreement();

    ok = test_results() && ok;
    ok = test_efforts() && ok;
    ok = test_large_pairs() && ok;
    ok = test_each(sums, NULL, 0) && ok;
    ok = test_each(arguments, NULL, 0) && ok;
    ok = test_each(other_count, NULL, 0) && ok;
    ok = test_each(other_pair_count, NULL, 100) && ok;
    ok = test_each(other_pair_count, NULL, 5000) && ok;
    ok = test_each(other_pair_count, "fixed direct", 5000) && ok;
    ok = test_each(other_pair_count, "exact direct", 5000) && ok;
    ok = test_each(abort_frees, NULL, 0) && ok;
    printf("communicators: %s\n", ok ? "ok" : "FAILED");
    return ok ? 0 : 1;
}
