/*
 * transport_mpi.c - ranks as processes: groups of sends and receives, creation
 *
 * A group posts all its receives, then its sends, and polls until they are complete.  MPI matches
 * per pair in posting order, as the transport promises.  What a rank sends to itself is copied.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/transport_mpi_state.h"

#include "core/rings.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define PAYLOAD_TAG 0

static struct zipccl_mpi *mpi_of(struct zipccl_transport *t)
{
    return (struct zipccl_mpi *)t;
}

/* The pieces of one op: full ones, then a shorter one. */
static size_t npieces_of(const struct zipccl_mpi *m, const struct zipccl_mpi_op *op)
{
    return op->nbytes / m->config.piece_bytes + 1;
}

static bool is_own(const struct zipccl_mpi *m, const struct zipccl_mpi_op *op)
{
    return op->peer == m->base.rank;
}

/* Copy the k-th send to oneself into the k-th receive. */
static zipccl_status copy_own(struct zipccl_mpi *m)
{
    struct zipccl_error text;
    size_t s = 0, r = 0;

    for (;; s++, r++) {
        while (s < m->nops && !(is_own(m, &m->ops[s]) && m->ops[s].is_send))
            s++;
        while (r < m->nops && !(is_own(m, &m->ops[r]) && !m->ops[r].is_send))
            r++;
        if (s == m->nops && r == m->nops)
            return ZIPCCL_OK;
        if (s == m->nops || r == m->nops || m->ops[s].nbytes != m->ops[r].nbytes)
            break;
        if (m->ops[s].nbytes > 0)
            memmove(m->ops[r].dst, m->ops[s].src, m->ops[s].nbytes);
    }
    zipccl_fail(&text, ZIPCCL_ERR_MISMATCH,
                "rank %d sends itself a message of %zu bytes and receives one of %zu in its place",
                m->world[m->base.rank], s < m->nops ? m->ops[s].nbytes : 0,
                r < m->nops ? m->ops[r].nbytes : 0);
    return zipccl_mpi_fail(m, ZIPCCL_ERR_MISMATCH, ZIPCCL_MPI_NO_RANK, &text);
}

static zipccl_status reserve_pieces(struct zipccl_mpi *m, size_t n)
{
    if (n <= m->piece_capacity)
        return ZIPCCL_OK;
    if (n > INT_MAX)
        return ZIPCCL_ERR_NOMEM;
    free(m->pieces);
    free(m->requests);
    free(m->statuses);
    free(m->indices);
    m->piece_capacity = 0;
    m->pieces = malloc(n * sizeof *m->pieces);
    m->requests = malloc(n * sizeof(MPI_Request));
    m->statuses = malloc(n * sizeof *m->statuses);
    m->indices = malloc(n * sizeof *m->indices);
    if (m->pieces == NULL || m->requests == NULL || m->statuses == NULL || m->indices == NULL)
        return ZIPCCL_ERR_NOMEM;
    m->piece_capacity = n;
    return ZIPCCL_OK;
}

static zipccl_status post_op(struct zipccl_mpi *m, size_t i)
{
    const struct zipccl_mpi_op *op = &m->ops[i];
    size_t n = npieces_of(m, op), longest = m->config.piece_bytes;

    for (size_t k = 0; k < n; k++) {
        struct zipccl_mpi_piece *piece = &m->pieces[m->npieces];
        int rc;

        *piece = (struct zipccl_mpi_piece){.op = i, .offset = k * longest};
        piece->nbytes = k + 1 < n ? longest : op->nbytes - piece->offset;
        rc = op->is_send ? MPI_Isend(op->nbytes > 0 ? op->src + piece->offset : NULL,
                                     (int)piece->nbytes, MPI_BYTE, (int)op->peer, PAYLOAD_TAG,
                                     m->comm, &m->requests[m->npieces])
                         : MPI_Irecv(op->nbytes > 0 ? op->dst + piece->offset : NULL,
                                     (int)piece->nbytes, MPI_BYTE, (int)op->peer, PAYLOAD_TAG,
                                     m->comm, &m->requests[m->npieces]);
        if (rc != MPI_SUCCESS)
            return zipccl_mpi_fail_rc(m, op->is_send ? "MPI_Isend" : "MPI_Irecv", rc);
        m->npieces++;
    }
    return ZIPCCL_OK;
}

/* Receives first, so that nothing arrives before there is a place for it. */
static zipccl_status post_group(struct zipccl_mpi *m)
{
    struct zipccl_error text;
    size_t n = 0;

    m->npieces = 0;
    for (size_t i = 0; i < m->nops; i++)
        n += is_own(m, &m->ops[i]) ? 0 : npieces_of(m, &m->ops[i]);
    if (reserve_pieces(m, n) != ZIPCCL_OK) {
        zipccl_fail(&text, ZIPCCL_ERR_NOMEM, "rank %d has no memory for %zu messages",
                    m->world[m->base.rank], n);
        return zipccl_mpi_fail(m, ZIPCCL_ERR_NOMEM, ZIPCCL_MPI_NO_RANK, &text);
    }
    for (unsigned send = 0; send < 2; send++)
        for (size_t i = 0; i < m->nops; i++)
            if (!is_own(m, &m->ops[i]) && m->ops[i].is_send == (send == 1))
                ZIPCCL_TRY(post_op(m, i));
    return ZIPCCL_OK;
}

/* A message that has arrived must be as long as the place for it. */
static zipccl_status check_arrived(struct zipccl_mpi *m, struct zipccl_mpi_piece *piece, int rc,
                                   const MPI_Status *from)
{
    const struct zipccl_mpi_op *op = &m->ops[piece->op];
    int peer = m->world[op->peer], self = m->world[m->base.rank], class = MPI_SUCCESS, n = 0;
    struct zipccl_error text;

    piece->done = true;
    if (rc != MPI_SUCCESS)
        MPI_Error_class(rc, &class);
    if (rc != MPI_SUCCESS && class != MPI_ERR_TRUNCATE)
        return zipccl_mpi_fail_rc(m, op->is_send ? "send" : "receive", rc);
    if (op->is_send)
        return ZIPCCL_OK;
    if (rc == MPI_SUCCESS && MPI_Get_count(from, MPI_BYTE, &n) == MPI_SUCCESS &&
        (size_t)n == piece->nbytes)
        return ZIPCCL_OK;
    if (rc == MPI_SUCCESS)
        zipccl_fail(&text, ZIPCCL_ERR_MISMATCH,
                    "rank %d sends %zu bytes to rank %d, which receives %zu bytes", peer,
                    piece->offset + (size_t)n, self, op->nbytes);
    else
        zipccl_fail(&text, ZIPCCL_ERR_MISMATCH,
                    "rank %d sends more bytes to rank %d than the %zu bytes that it receives", peer,
                    self, op->nbytes);
    return zipccl_mpi_fail(m, ZIPCCL_ERR_MISMATCH, op->peer, &text);
}

/* The limit is over: name the first op that is not done, and all that is missing. */
static zipccl_status fail_late(struct zipccl_mpi *m)
{
    const struct zipccl_mpi_op *first = NULL;
    struct zipccl_error text;
    size_t missing = 0, of_first = 0, nops = 0, last = SIZE_MAX;

    for (size_t i = 0; i < m->npieces; i++) {
        if (m->pieces[i].done)
            continue;
        first = first == NULL ? &m->ops[m->pieces[i].op] : first;
        missing += m->pieces[i].nbytes;
        of_first += first == &m->ops[m->pieces[i].op] ? m->pieces[i].nbytes : 0;
        nops += m->pieces[i].op != last;
        last = m->pieces[i].op;
    }
    if (first == NULL) /* never: the caller waits for something */
        return ZIPCCL_ERR_INTERNAL;
    zipccl_fail(&text, ZIPCCL_ERR_TIMEOUT,
                "rank %d has waited %g s for rank %d, %s %zu bytes; missing in all: %zu bytes in "
                "%zu messages",
                m->world[m->base.rank], m->config.limit_s, m->world[first->peer],
                first->is_send ? "to take" : "to send", of_first, missing, nops);
    return zipccl_mpi_fail(m, ZIPCCL_ERR_TIMEOUT, ZIPCCL_MPI_NO_RANK, &text);
}

/* Leave out what is done, once it is half: many pieces are polled many times. */
static void compact(struct zipccl_mpi *m, size_t left)
{
    size_t kept = 0;

    if (left > m->npieces / 2)
        return;
    for (size_t i = 0; i < m->npieces; i++)
        if (!m->pieces[i].done) {
            m->pieces[kept] = m->pieces[i];
            m->requests[kept++] = m->requests[i];
        }
    m->npieces = kept;
}

static zipccl_status wait_group(struct zipccl_mpi *m)
{
    struct zipccl_mpi_wait wait;
    zipccl_status status;
    size_t left = m->npieces;

    zipccl_mpi_wait_start(&wait);
    while (left > 0) {
        int ndone = 0;
        int rc = MPI_Testsome((int)m->npieces, m->requests, &ndone, m->indices, m->statuses);

        if (rc != MPI_SUCCESS && rc != MPI_ERR_IN_STATUS)
            return zipccl_mpi_fail_rc(m, "MPI_Testsome", rc);
        for (int i = 0; i < ndone; i++)
            ZIPCCL_TRY(check_arrived(m, &m->pieces[m->indices[i]],
                                     rc == MPI_SUCCESS ? MPI_SUCCESS : m->statuses[i].MPI_ERROR,
                                     &m->statuses[i]));
        left -= ndone > 0 ? (size_t)ndone : 0;
        if (ndone > 0) {
            compact(m, left);
            zipccl_mpi_wait_progress(&wait);
            continue;
        }
        status = zipccl_mpi_wait_idle(m, &wait);
        if (status != ZIPCCL_OK)
            return status == ZIPCCL_ERR_TIMEOUT ? fail_late(m) : status;
    }
    return ZIPCCL_OK;
}

static zipccl_status run_group(struct zipccl_mpi *m)
{
    zipccl_status status = zipccl_mpi_begin(m);

    if (status != ZIPCCL_OK) {
        m->nops = 0;
        return status;
    }
    m->npieces = 0;
    status = copy_own(m);
    if (status == ZIPCCL_OK)
        status = post_group(m);
    if (status == ZIPCCL_OK)
        status = wait_group(m);
    for (size_t i = 0; status == ZIPCCL_OK && i < m->nops; i++)
        if (m->ops[i].is_send && !is_own(m, &m->ops[i]))
            m->bytes[m->ops[i].peer] += m->ops[i].nbytes;
    if (status != ZIPCCL_OK)
        zipccl_mpi_drain(m, m->requests, m->npieces, true);
    m->nops = 0;
    return zipccl_mpi_end(m, status);
}

static zipccl_status group_begin(struct zipccl_transport *t)
{
    mpi_of(t)->depth++;
    return ZIPCCL_OK;
}

static zipccl_status group_end(struct zipccl_transport *t)
{
    struct zipccl_mpi *m = mpi_of(t);

    if (m->depth == 0)
        return ZIPCCL_ERR_ARG;
    return --m->depth > 0 ? ZIPCCL_OK : run_group(m);
}

/* Note an op; outside a group it is a group of its own. */
static zipccl_status post(struct zipccl_mpi *m, struct zipccl_mpi_op op)
{
    if (op.peer >= m->base.nranks || (op.nbytes > 0 && op.src == NULL && op.dst == NULL))
        return ZIPCCL_ERR_ARG;
    if (m->nops == m->op_capacity) {
        size_t capacity = m->op_capacity == 0 ? 16 : 2 * m->op_capacity;
        struct zipccl_mpi_op *ops = realloc(m->ops, capacity * sizeof *ops);

        if (ops == NULL)
            return ZIPCCL_ERR_NOMEM;
        m->ops = ops;
        m->op_capacity = capacity;
    }
    m->ops[m->nops++] = op;
    return m->depth == 0 ? run_group(m) : ZIPCCL_OK;
}

static zipccl_status send_to(struct zipccl_transport *t, uint32_t peer, const void *buf,
                             size_t nbytes)
{
    return post(mpi_of(t), (struct zipccl_mpi_op){
                               .peer = peer, .src = buf, .nbytes = nbytes, .is_send = true});
}

static zipccl_status recv_from(struct zipccl_transport *t, uint32_t peer, void *buf, size_t nbytes)
{
    return post(mpi_of(t), (struct zipccl_mpi_op){.peer = peer, .dst = buf, .nbytes = nbytes});
}

static zipccl_status all_gather(struct zipccl_transport *t, const void *send, void *recv,
                                size_t nbytes, uint32_t channels)
{
    return zipccl_rings_all_gather(t, send, recv, nbytes, 1, channels);
}

static zipccl_status broadcast(struct zipccl_transport *t, void *buf, size_t nbytes, uint32_t root,
                               uint32_t channels)
{
    if (root >= t->nranks)
        return ZIPCCL_ERR_ARG;
    return zipccl_rings_broadcast(t, buf, nbytes, 1, root, channels);
}

/* True if no notice of this rank is under way any more. */
static bool has_told(struct zipccl_mpi *m)
{
    bool done = true;

    for (uint32_t p = 0; p < m->base.nranks; p++) {
        int one = 1;

        if (m->telling[p] != MPI_REQUEST_NULL &&
            MPI_Test(&m->telling[p], &one, MPI_STATUS_IGNORE) == MPI_SUCCESS)
            done = done && one;
    }
    return done;
}

static void free_mpi(struct zipccl_mpi *m)
{
    if (m->listening != MPI_REQUEST_NULL) {
        MPI_Cancel(&m->listening);
        MPI_Wait(&m->listening, MPI_STATUS_IGNORE);
    }
    zipccl_mpi_types_destroy(m);
    if (has_told(m))
        free(m->notice);
    if (m->failed) /* peers may be lost, and messages with them: leave all to MPI */
        return;
    if (m->control != MPI_COMM_NULL)
        MPI_Comm_free(&m->control);
    if (m->comm != MPI_COMM_NULL)
        MPI_Comm_free(&m->comm);
}

static void destroy(struct zipccl_transport *t)
{
    struct zipccl_mpi *m = mpi_of(t);

    if (t == NULL)
        return;
    if (m->arrived != NULL) /* else creation has failed early */
        free_mpi(m);
    free(m->ops);
    free(m->pieces);
    free(m->requests);
    free(m->statuses);
    free(m->indices);
    free(m->world);
    free(m->bytes);
    free(m->scratch);
    free(m->heard);
    free(m->telling);
    free(m->arrived);
    pthread_mutex_destroy(&m->text_lock);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

static const struct zipccl_transport_ops mpi_ops = {
    .name = "mpi",
    .group_begin = group_begin,
    .send = send_to,
    .recv = recv_from,
    .group_end = group_end,
    .all_gather = all_gather,
    .broadcast = broadcast,
    .native = zipccl_mpi_native,
    .has_native = zipccl_mpi_has_native,
    .abort = zipccl_mpi_abort,
    .destroy = destroy,
    .error_text = zipccl_mpi_error_text,
};

void zipccl_transport_mpi_config_init(struct zipccl_transport_mpi_config *config)
{
    *config = (struct zipccl_transport_mpi_config){.limit_s = 60,
                                                   .spin_s = 20e-6,
                                                   .piece_bytes = ZIPCCL_MPI_PIECE_BYTES,
                                                   .native_bytes = (size_t)1 << 30};
}

/* Everything but MPI's part; NULL if there is no memory. */
static struct zipccl_mpi *allocate(const struct zipccl_topology *topology, uint32_t rank,
                                   const struct zipccl_transport_mpi_config *config)
{
    struct zipccl_mpi *m = calloc(1, sizeof *m);
    size_t n = topology->nranks;

    if (m == NULL)
        return NULL;
    m->base = (struct zipccl_transport){&mpi_ops, rank, topology->nranks, topology};
    m->config = *config;
    m->comm = m->control = MPI_COMM_NULL;
    m->listening = MPI_REQUEST_NULL;
    zipccl_mpi_types_clear(m);
    pthread_mutex_init(&m->lock, NULL);
    pthread_mutex_init(&m->text_lock, NULL);
    m->world = calloc(n, sizeof *m->world);
    m->bytes = calloc(n, sizeof *m->bytes);
    m->heard = calloc(n, sizeof *m->heard);
    m->telling = calloc(n, sizeof(MPI_Request));
    m->notice = calloc(1, ZIPCCL_MPI_NOTICE_BYTES);
    if (m->world != NULL && m->bytes != NULL && m->heard != NULL && m->telling != NULL &&
        m->notice != NULL)
        m->arrived = calloc(1, ZIPCCL_MPI_NOTICE_BYTES);
    if (m->arrived == NULL) {
        free(m->notice);
        destroy(&m->base);
        return NULL;
    }
    for (size_t p = 0; p < n; p++)
        m->telling[p] = MPI_REQUEST_NULL;
    return m;
}

/* Numbers of comm's ranks in MPI_COMM_WORLD, for texts. */
static int name_ranks(struct zipccl_mpi *m)
{
    MPI_Group group, world;
    int rc;

    for (uint32_t p = 0; p < m->base.nranks; p++)
        m->world[p] = (int)p;
    MPI_Comm_group(m->comm, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    for (uint32_t p = 0; p < m->base.nranks; p++) {
        int from = (int)p, to = MPI_UNDEFINED;

        rc = MPI_Group_translate_ranks(group, 1, &from, world, &to);
        if (rc == MPI_SUCCESS && to != MPI_UNDEFINED)
            m->world[p] = to;
    }
    MPI_Group_free(&world);
    return MPI_Group_free(&group);
}

static int open_mpi(struct zipccl_mpi *m, MPI_Comm comm)
{
    int rc = MPI_Comm_dup(comm, &m->comm);

    if (rc == MPI_SUCCESS)
        rc = MPI_Comm_dup(comm, &m->control);
    if (rc == MPI_SUCCESS)
        rc = MPI_Comm_set_errhandler(m->comm, MPI_ERRORS_RETURN);
    if (rc == MPI_SUCCESS)
        rc = MPI_Comm_set_errhandler(m->control, MPI_ERRORS_RETURN);
    if (rc == MPI_SUCCESS)
        rc = name_ranks(m);
    if (rc == MPI_SUCCESS)
        rc = zipccl_mpi_types_create(m);
    return rc == MPI_SUCCESS ? zipccl_mpi_listen(m) : rc;
}

static zipccl_status check_arguments(MPI_Comm comm, const struct zipccl_topology *topology,
                                     const struct zipccl_transport_mpi_config *config,
                                     struct zipccl_error *error)
{
    int up = 0, threads = MPI_THREAD_SINGLE, nranks = 0;

    if (MPI_Initialized(&up) != MPI_SUCCESS || !up)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "MPI has not been initialised");
    MPI_Query_thread(&threads);
    if (threads < MPI_THREAD_SERIALIZED)
        return zipccl_fail(error, ZIPCCL_ERR_UNSUPPORTED,
                           "MPI's thread level is below MPI_THREAD_SERIALIZED; the wire lane is a "
                           "thread of its own");
    if (!(config->limit_s >= 0 && config->spin_s >= 0) || config->piece_bytes == 0 ||
        config->piece_bytes > INT_MAX || config->native_bytes == 0 ||
        config->native_bytes > INT_MAX)
        return zipccl_fail(
            error, ZIPCCL_ERR_ARG,
            "limit %g s, spin %g s, pieces of %zu and %zu bytes: expected none below "
            "0, and pieces of 1 to %d bytes",
            config->limit_s, config->spin_s, config->piece_bytes, config->native_bytes, INT_MAX);
    MPI_Comm_size(comm, &nranks);
    if (topology->nranks != (uint32_t)nranks)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "a topology of %u ranks for %d processes",
                           topology->nranks, nranks);
    return ZIPCCL_OK;
}

zipccl_status zipccl_transport_mpi_create(MPI_Comm comm, const struct zipccl_topology *topology,
                                          const struct zipccl_transport_mpi_config *config,
                                          struct zipccl_transport **out, struct zipccl_error *error)
{
    struct zipccl_transport_mpi_config defaults;
    struct zipccl_mpi *m;
    int rank, rc, length;
    char said[MPI_MAX_ERROR_STRING] = "";

    if (topology == NULL || out == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "topology and out must not be NULL");
    zipccl_transport_mpi_config_init(&defaults);
    config = config == NULL ? &defaults : config;
    ZIPCCL_TRY(check_arguments(comm, topology, config, error));
    MPI_Comm_rank(comm, &rank);
    m = allocate(topology, (uint32_t)rank, config);
    if (m == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "no memory for a transport of %u ranks",
                           topology->nranks);
    rc = open_mpi(m, comm);
    if (rc != MPI_SUCCESS) {
        MPI_Error_string(rc, said, &length);
        m->failed = true; /* other ranks may be in the middle of it */
        destroy(&m->base);
        return zipccl_fail(error, ZIPCCL_ERR_IO, "making a communicator of %u ranks: %.300s",
                           topology->nranks, said);
    }
    *out = &m->base;
    return ZIPCCL_OK;
}

zipccl_status zipccl_transport_mpi_create_group(MPI_Comm parent, const uint32_t *ranks, uint32_t n,
                                                int tag, const struct zipccl_topology *topology,
                                                const struct zipccl_transport_mpi_config *config,
                                                struct zipccl_transport **out,
                                                struct zipccl_error *error)
{
    int *members = malloc((n + (size_t)1) * sizeof *members);
    MPI_Group all, some;
    MPI_Comm comm = MPI_COMM_NULL;
    zipccl_status status;
    int rc;

    if (members == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "no memory for a group of %u ranks", n);
    for (uint32_t i = 0; i < n; i++)
        members[i] = (int)ranks[i];
    MPI_Comm_group(parent, &all);
    rc = MPI_Group_incl(all, (int)n, members, &some);
    if (rc == MPI_SUCCESS) {
        rc = MPI_Comm_create_group(parent, some, tag, &comm);
        MPI_Group_free(&some);
    }
    MPI_Group_free(&all);
    free(members);
    if (rc != MPI_SUCCESS || comm == MPI_COMM_NULL)
        return zipccl_fail(error, ZIPCCL_ERR_ARG,
                           "no group of %u ranks that all differ and hold the caller", n);
    status = zipccl_transport_mpi_create(comm, topology, config, out, error);
    MPI_Comm_free(&comm);
    return status;
}

uint64_t zipccl_transport_mpi_bytes(const struct zipccl_transport *t, uint32_t dst)
{
    return ((const struct zipccl_mpi *)t)->bytes[dst];
}

void zipccl_transport_mpi_reset_bytes(struct zipccl_transport *t)
{
    memset(mpi_of(t)->bytes, 0, t->nranks * sizeof *mpi_of(t)->bytes);
}
