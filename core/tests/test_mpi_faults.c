/*
 * test_mpi_faults.c - failures over MPI: what each rank gets, and what the texts say
 *
 * Run by mpirun with 3 processes.  Each case has a transport of its own; the processes outlive it, so
 * that they can compare notes.  "test_mpi_faults killed" is for check_mpi_killed.sh: rank 1 dies.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/mpi_world.h"
#include "core/zipccl.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NBYTES 200u

static uint8_t out[1 << 20], in[1 << 20];

/* What a case must have on this rank. */
static bool expect(const char *what, struct zipccl_transport *t, zipccl_status got,
                   zipccl_status wanted, const char *text)
{
    const char *said = t->ops->error_text(t);
    bool ok = got == wanted && strstr(said, text) != NULL;

    if (!ok)
        fprintf(stderr, "%s, rank %u: \"%s\", text \"%s\"; expected \"%s\", text \"%s\"\n", what,
                t->rank, zipccl_status_string(got), said, zipccl_status_string(wanted), text);
    return ok;
}

/* Rank 0 sends 'nbytes' to rank 1, which has room for NBYTES; rank 2 waits for what never comes. */
static bool counts_differ(struct zipccl_transport *t, size_t nbytes, const char *text)
{
    zipccl_status status;

    if (t->rank == 1)
        return expect("counts", t, t->ops->recv(t, 0, in, NBYTES), ZIPCCL_ERR_MISMATCH, text);
    if (t->rank == 2)
        return expect("counts", t, t->ops->recv(t, 0, in, 1), ZIPCCL_ERR_ABORTED, text);
    status = t->ops->send(t, 1, out, nbytes);
    if (status == ZIPCCL_OK) /* it was short enough to be off at once */
        status = t->ops->recv(t, 1, in, 1);
    return expect("counts", t, status, ZIPCCL_ERR_MISMATCH, text);
}

static bool shorter(struct zipccl_transport *t)
{
    return counts_differ(t, 100, "rank 0 sends 100 bytes to rank 1, which receives 200 bytes");
}

static bool longer(struct zipccl_transport *t)
{
    return counts_differ(t, 300, "rank 0 sends more bytes to rank 1 than the 200 bytes");
}

/* Too long to be off before the receiver has seen it. */
static bool much_longer(struct zipccl_transport *t)
{
    return counts_differ(t, sizeof out, "rank 0 sends more bytes to rank 1 than the 200 bytes");
}

/* Ranks 1 and 2 have no limit: they hear from rank 0. */
static bool late(struct zipccl_transport *t)
{
    static const char text[] = "rank 0 has waited 0.2 s for rank 1, to send 4096 bytes; missing in "
                               "all: 12288 bytes in 2 messages";
    zipccl_status status = t->ops->group_begin(t);

    if (t->rank > 0) {
        if (t->rank == 2)
            status = t->ops->send(t, 0, out, 100);
        if (status == ZIPCCL_OK)
            status = t->ops->recv(t, 0, in, 10);
        if (status == ZIPCCL_OK)
            status = t->ops->group_end(t);
        return expect("late", t, status, ZIPCCL_ERR_ABORTED, text);
    }
    status = t->ops->recv(t, 2, in, 100);
    if (status == ZIPCCL_OK)
        status = t->ops->recv(t, 1, in, 4096);
    if (status == ZIPCCL_OK)
        status = t->ops->recv(t, 1, in, 8192);
    if (status == ZIPCCL_OK)
        status = t->ops->group_end(t);
    return expect("late", t, status, ZIPCCL_ERR_TIMEOUT, text);
}

/* Rank 2 stays away from a collective of MPI's own. */
static bool late_native(struct zipccl_transport *t)
{
    struct zipccl_native_call call = {.op = ZIPCCL_ALL_REDUCE,
                                      .dtype = ZIPCCL_FLOAT32,
                                      .redop = ZIPCCL_SUM,
                                      .send = out,
                                      .recv = in,
                                      .count = 1000};

    if (t->rank == 2) {
        mpi_meet();
        return true;
    }
    if (t->rank == 0) {
        bool ok = expect("native", t, t->ops->native(t, &call), ZIPCCL_ERR_TIMEOUT,
                         "rank 0 has waited 0.2 s in MPI's own all_reduce of 1000 fp32 elements, "
                         "4000 bytes a block; rank 2 gives no sign of life in it");

        mpi_meet();
        return ok;
    }
    if (!expect("native", t, t->ops->native(t, &call), ZIPCCL_ERR_ABORTED, "rank 0 has waited"))
        return false;
    mpi_meet();
    return true;
}

static void *abort_it(void *p)
{
    struct zipccl_transport *t = p;

    t->ops->abort(t);
    return NULL;
}

/* Rank 0 aborts by a thread of its own while it waits, or may be about to. */
static bool aborted_by_thread(struct zipccl_transport *t)
{
    pthread_t thread;
    zipccl_status status;

    if (t->rank == 0 && pthread_create(&thread, NULL, abort_it, t) != 0)
        abort();
    status = t->ops->recv(t, (t->rank + 1) % 3, in, 10);
    if (t->rank == 0)
        pthread_join(thread, NULL);
    return expect("thread", t, status, ZIPCCL_ERR_ABORTED, "aborted by rank 0");
}

/* Rank 2 is in no call when it aborts. */
static bool aborted_outside(struct zipccl_transport *t)
{
    if (t->rank == 2)
        t->ops->abort(t);
    return expect("outside", t, t->ops->recv(t, (t->rank + 1) % 3, in, 10), ZIPCCL_ERR_ABORTED,
                  "aborted by rank 2");
}

/* A communicator with other options on one rank is none, on any rank. */
static bool other_options(struct zipccl_transport *t)
{
    struct zipccl_comm_config config;
    struct zipccl_error error = {""};
    struct zipccl_comm *comm = NULL;
    struct zipccl_exec *exec;
    zipccl_status status;
    bool ok;

    if (zipccl_exec_cpu_create(zipccl_isa_best(), &exec) != ZIPCCL_OK)
        abort();
    zipccl_comm_config_init(&config);
    if (t->rank == 1)
        config.max_staging_bytes /= 2;
    status = zipccl_comm_create(t, exec, &config, &comm, &error);
    ok = status == ZIPCCL_ERR_MISMATCH &&
         strcmp(error.text, "rank 1 has another options than the other ranks") == 0;
    if (!ok)
        fprintf(stderr, "options, rank %u: %s, text \"%s\"\n", t->rank,
                zipccl_status_string(status), error.text);
    zipccl_comm_destroy(comm);
    exec->ops->destroy(exec);
    return ok;
}

static struct zipccl_transport *open_transport(const struct zipccl_topology *topology,
                                               double limit_s)
{
    struct zipccl_transport_mpi_config config;
    struct zipccl_transport *t;
    struct zipccl_error error = {""};

    zipccl_transport_mpi_config_init(&config);
    config.limit_s = limit_s;
    if (zipccl_transport_mpi_create(MPI_COMM_WORLD, topology, &config, &t, &error) != ZIPCCL_OK) {
        fprintf(stderr, "%s\n", error.text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return t;
}

static bool run_case(const struct zipccl_topology *topology, bool (*fn)(struct zipccl_transport *t))
{
    struct zipccl_transport *t = open_transport(topology, mpi_rank() == 0 ? 0.2 : 0);
    bool ok = fn(t);

    /* Whatever it was: no call comes through any more. */
    if (fn != other_options && t->ops->recv(t, 0, in, 0) != ZIPCCL_ERR_ABORTED) {
        fprintf(stderr, "rank %u goes on after a failure\n", t->rank);
        ok = false;
    }
    mpi_meet();
    t->ops->destroy(t);
    return ok;
}

/* The last line that rank 1 says; the others wait for it until mpirun ends them. */
static int be_killed(const struct zipccl_topology *topology)
{
    struct zipccl_transport *t = open_transport(topology, 60);

    mpi_meet();
    if (t->rank == 1)
        raise(SIGKILL);
    t->ops->recv(t, 1, in, 10);
    MPI_Abort(MPI_COMM_WORLD, 3);
    return 1;
}

int main(int argc, char **argv)
{
    static bool (*const cases[])(struct zipccl_transport *) = {
        shorter,           longer,          much_longer,  late, late_native,
        aborted_by_thread, aborted_outside, other_options};
    struct zipccl_topology *topology;
    int ok = 1, all = 0;

    mpi_start(&argc, &argv);
    if (mpi_size() != 3 || zipccl_topology_create_even(3, 1, &topology) != ZIPCCL_OK) {
        fprintf(stderr, "%u processes, expected 3: mpirun -n 3\n", mpi_size());
        return 1;
    }
    if (argc > 1 && strcmp(argv[1], "killed") == 0)
        return be_killed(topology);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ok = run_case(topology, cases[i]) && ok;
    MPI_Allreduce(&ok, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (mpi_rank() == 0)
        printf("%zu cases\n", sizeof cases / sizeof *cases);
    zipccl_topology_destroy(topology);
    MPI_Finalize();
    return all ? 0 : 1;
}
