/*
 * import_nccl.c - imports debug logs of NCCL and RCCL (NCCL_DEBUG=INFO, subsystems INIT and COLL)
 *
 * A log has calls and no times: the trace is communication alone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_nccl.h"

#include "traces/trace_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STREAMS 255

struct making {
    struct kineto_import k;
    struct nccl_log log;
};

static bool detect(const char *head, size_t nbytes)
{
    static const char mark[] = " NCCL INFO ";

    for (size_t i = 0; i + sizeof mark - 1 <= nbytes; i++)
        if (memcmp(head + i, mark, sizeof mark - 1) == 0)
            return true;
    return false;
}

static zipccl_status nomem(const struct making *m)
{
    return zipccl_fail(m->log.importer->error, ZIPCCL_ERR_NOMEM, "out of memory");
}

/* The largest communicator is taken for the world. */
static zipccl_status find_world(struct making *m)
{
    const struct zipccl_import_options *o = m->log.importer->options;
    struct zipccl_place at = {m->log.importer->paths[0], 0, m->log.importer->error};
    uint64_t world = m->log.nprocesses;

    for (size_t i = 0; i < m->log.nprocesses; i++)
        for (size_t c = 0; c < m->log.processes[i].ncomms; c++)
            if (m->log.processes[i].comms[c].nranks > world)
                world = m->log.processes[i].comms[c].nranks;
    if (o->nranks > 0 && o->nranks < world)
        return zipccl_place_fail(
            &at, "a world of %" PRIu64 " ranks, expected at most %" PRIu32 " as given", world,
            o->nranks);
    if (o->nranks > 0)
        world = o->nranks;
    if (world > ZIPCCL_TRACE_MAX_RANKS)
        return zipccl_place_fail(&at, "a world of %" PRIu64 " ranks, expected at most %" PRIu32,
                                 world, ZIPCCL_TRACE_MAX_RANKS);
    if (o->ranks_per_node > 0 && world % o->ranks_per_node != 0)
        return zipccl_place_fail(&at,
                                 "a world of %" PRIu64 " ranks, expected a multiple of the "
                                 "%" PRIu32 " ranks per node",
                                 world, o->ranks_per_node);
    m->k.world = (uint32_t)world;
    return zipccl_import_count(m->log.importer, true, "world", 0, o->nranks == 0,
                               "a log does not tell the number of ranks: taken to be %" PRIu64
                               ", that of the largest communicator; option nranks sets another",
                               world);
}

/* The rank of a process in the world, from what RCCL tells or a communicator of all. */
static uint32_t world_rank(const struct making *m, const struct nccl_process *p)
{
    if (p->global_rank != KINETO_NONE)
        return p->global_rank;
    for (size_t c = 0; c < p->ncomms; c++)
        if (p->comms[c].nranks == m->k.world && p->comms[c].rank != KINETO_NONE)
            return p->comms[c].rank;
    return KINETO_NONE;
}

/* The same log twice would double all traffic. */
static zipccl_status refuse_again(const struct making *m, const struct nccl_process *p,
                                  uint32_t rank)
{
    struct zipccl_place at = {p->again, 0, m->log.importer->error};

    return zipccl_place_fail(&at,
                             "rank %" PRIu32 ", expected another than that of %s (parts of one log "
                             "are to be joined)",
                             rank, p->path);
}

static zipccl_status set_ranks(struct making *m)
{
    uint64_t guessed = 0;

    for (size_t i = 0; i < m->log.nprocesses; i++) {
        const struct nccl_process *p = &m->log.processes[i];
        struct zipccl_place at = {p->path, 0, m->log.importer->error};
        struct kineto_rank *r = &m->k.ranks[i];
        uint32_t rank = world_rank(m, p);

        guessed += rank == KINETO_NONE;
        r->rank = rank == KINETO_NONE ? (uint32_t)i : rank;
        r->path = p->path;
        if (r->rank >= m->k.world)
            return zipccl_place_fail(&at, "rank %" PRIu32 ", expected 0 to %" PRIu32, r->rank,
                                     m->k.world - 1);
        if (p->again != NULL)
            return refuse_again(m, p, r->rank);
        for (size_t o = 0; o < i; o++)
            if (m->k.ranks[o].rank == r->rank)
                return zipccl_place_fail(&at,
                                         "rank %" PRIu32 " for two processes, %s and %s, "
                                         "expected one",
                                         r->rank, m->log.processes[o].name, p->name);
    }
    return zipccl_import_count(m->log.importer, true, "rank", 0, guessed,
                               "processes whose rank no INIT line tells: numbered as they come");
}

/* "[0, 4]": the ranks of a communicator, "" unless all are known. */
static zipccl_status members_of(struct making *m, const struct nccl_comm *comm, const char **out)
{
    uint32_t *ranks = malloc(((size_t)comm->nranks + 1) * sizeof *ranks), found = 0;
    size_t room = (size_t)comm->nranks * 12 + 3, n = 0;
    char *text;

    *out = "";
    if (ranks == NULL)
        return nomem(m);
    memset(ranks, 0xff, comm->nranks * sizeof *ranks);
    for (size_t i = 0; comm->id != 0 && i < m->log.nprocesses; i++)
        for (size_t c = 0; c < m->log.processes[i].ncomms; c++) {
            const struct nccl_comm *o = &m->log.processes[i].comms[c];

            if (o->id != comm->id || o->nranks != comm->nranks || ranks[o->rank] != KINETO_NONE)
                continue;
            ranks[o->rank] = m->k.ranks[i].rank;
            found++;
        }
    text = found > 0 && found == comm->nranks ? zipccl_arena_alloc(&m->k.arena, room, 1) : NULL;
    for (uint32_t i = 0; text != NULL && i < comm->nranks; i++)
        n += (size_t)snprintf(text + n, room - n, "%s%" PRIu32, i > 0 ? ", " : "[", ranks[i]);
    if (text != NULL)
        strcpy(text + n, "]");
    free(ranks);
    if (text == NULL && found > 0 && found == comm->nranks)
        return nomem(m);
    *out = text != NULL ? text : "";
    return ZIPCCL_OK;
}

/* The set and part of each communicator of a process. */
struct place {
    uint32_t set, part;
    bool used;
};

static zipccl_status place_comm(struct making *m, size_t process, const struct nccl_call *call,
                                struct place *place)
{
    const struct nccl_process *p = &m->log.processes[process];
    const struct nccl_comm *comm = &p->comms[call->comm];
    const struct kineto_file file = {.path = p->path};
    struct kineto_meta meta = {
        .line = call->line, .size = comm->nranks, .pg_name = "", .pg_desc = "", .first = -1};

    if (place->used)
        return ZIPCCL_OK;
    place->used = true;
    ZIPCCL_TRY(members_of(m, comm, &meta.pg_ranks));
    return kineto_find_group(&m->k, &file, m->k.ranks[process].rank, &meta, &place->set,
                             &place->part);
}

static bool is_pair(const struct nccl_call *c)
{
    return c->op == NCCL_SEND || c->op == NCCL_RECV;
}

/* Sends and receives of one group call: those that follow each other with one number. */
static size_t group_end(const struct nccl_process *p, size_t from)
{
    size_t to = from + 1;

    while (to < p->ncalls && is_pair(&p->calls[to]) && p->calls[to].comm == p->calls[from].comm &&
           p->calls[to].number == p->calls[from].number)
        to++;
    return to;
}

/* True if a group sends to and receives from everybody, at most leaving out itself: 'split'. */
static bool is_all_to_all(const struct nccl_call *calls, size_t n, uint32_t size, uint32_t own,
                          uint64_t *split, unsigned char *received)
{
    uint32_t sends = 0, recvs = 0;

    memset(split, 0xff, size * sizeof *split);
    memset(received, 0, size);
    for (size_t i = 0; i < n; i++) {
        uint32_t peer = calls[i].peer;

        if (peer >= size || calls[i].dtype != calls[0].dtype)
            return false;
        if (calls[i].op == NCCL_SEND && split[peer] == UINT64_MAX) {
            split[peer] = calls[i].count;
            sends += peer != own;
        } else if (calls[i].op == NCCL_RECV && !received[peer]) {
            received[peer] = 1;
            recvs += peer != own;
        } else {
            return false;
        }
    }
    if (split[own] == UINT64_MAX)
        split[own] = 0;
    return size > 2 && sends == size - 1 && recvs == size - 1;
}

static const enum zipccl_op op_of[] = {[NCCL_ALL_REDUCE] = ZIPCCL_ALL_REDUCE,
                                       [NCCL_ALL_GATHER] = ZIPCCL_ALL_GATHER,
                                       [NCCL_REDUCE_SCATTER] = ZIPCCL_REDUCE_SCATTER,
                                       [NCCL_BROADCAST] = ZIPCCL_BROADCAST,
                                       [NCCL_ALL_TO_ALL] = ZIPCCL_ALLTOALL,
                                       [NCCL_SEND] = ZIPCCL_SENDRECV,
                                       [NCCL_RECV] = ZIPCCL_SENDRECV};

static zipccl_status add(struct making *m, struct kineto_rank *r, const struct kineto_call *call)
{
    if (r->ncalls >= KINETO_NONE ||
        !kineto_grow(&r->calls, &r->call_room, r->ncalls, sizeof *r->calls))
        return nomem(m);
    r->calls[r->ncalls++] = *call;
    return ZIPCCL_OK;
}

/* Calls [from, to) of a process: one, or a group of sends and receives. */
static zipccl_status add_calls(struct making *m, size_t process, size_t from, size_t to,
                               const struct place *place, uint32_t own, bool all_to_all,
                               uint64_t *split)
{
    const struct nccl_process *p = &m->log.processes[process];
    struct kineto_rank *r = &m->k.ranks[process];
    uint32_t size = m->k.sets[place->set].size;

    for (size_t i = from; i < (all_to_all ? from + 1 : to); i++) {
        const struct nccl_call *c = &p->calls[i];
        bool reduces = c->op == NCCL_ALL_REDUCE || c->op == NCCL_REDUCE_SCATTER;
        struct kineto_call call = {.start_ns = (int64_t)from,
                                   .end_ns = (int64_t)from,
                                   .host_ns = (int64_t)from,
                                   .line = c->line,
                                   .count = c->count,
                                   .seq = (int64_t)(c->number < INT64_MAX ? c->number : 0),
                                   .set = place->set,
                                   .part = place->part,
                                   .lane = c->comm,
                                   .stream = c->stream,
                                   .kernel = (uint32_t)from,
                                   .op = (uint8_t)op_of[c->op],
                                   .dtype = c->dtype,
                                   .redop = reduces ? c->redop : (uint8_t)ZIPCCL_SUM,
                                   .pair = is_pair(c) && !all_to_all};

        if (c->op == NCCL_BROADCAST)
            call.root = c->peer < size ? c->peer : 0;
        if (all_to_all) {
            call.op = ZIPCCL_ALLTOALLV;
            call.count = 0;
            for (uint32_t k = 0; k < size; k++)
                call.count += split[k];
            call.count = (call.count + size - 1) / size;
            call.in_split = zipccl_arena_alloc(&r->arena, size, sizeof *split);
            if (call.in_split == NULL)
                return nomem(m);
            memcpy(call.in_split, split, size * sizeof *split);
        }
        if (call.pair && (c->peer == own || c->peer >= size))
            continue; /* what a rank sends itself crosses nothing */
        call.src = call.pair ? (c->op == NCCL_SEND ? own : c->peer) : 0;
        call.dst = call.pair ? (c->op == NCCL_SEND ? c->peer : own) : 0;
        ZIPCCL_TRY(add(m, r, &call));
    }
    return ZIPCCL_OK;
}

static zipccl_status make_rank(struct making *m, size_t process, struct place *places,
                               uint64_t *others)
{
    const struct nccl_process *p = &m->log.processes[process];
    struct kineto_rank *r = &m->k.ranks[process];
    uint64_t *split = malloc(((size_t)m->k.world + 1) * sizeof *split);
    unsigned char *received = malloc((size_t)m->k.world + 1);
    zipccl_status status = split != NULL && received != NULL ? ZIPCCL_OK : nomem(m);

    for (size_t i = 0, to; i < p->ncalls && status == ZIPCCL_OK; i = to) {
        struct place *place = &places[p->calls[i].comm];
        const struct kineto_set *s;
        uint32_t own = 0;
        bool all;

        to = is_pair(&p->calls[i]) ? group_end(p, i) : i + 1;
        *others += p->calls[i].op == NCCL_OTHER;
        if (p->calls[i].op == NCCL_OTHER)
            continue;
        status = place_comm(m, process, &p->calls[i], place);
        if (status != ZIPCCL_OK)
            break;
        s = &m->k.sets[place->set];
        while (own + 1 < s->size && s->ranks[(size_t)place->part * s->size + own] != r->rank)
            own++;
        all = is_pair(&p->calls[i]) &&
              is_all_to_all(&p->calls[i], to - i, s->size, own, split, received);
        status = add_calls(m, process, i, to, place, own, all, split);
    }
    free(split);
    free(received);
    return status;
}

static zipccl_status make_ranks(struct making *m)
{
    uint64_t others = 0;

    for (size_t i = 0; i < m->log.nprocesses; i++) {
        const struct nccl_process *p = &m->log.processes[i];
        struct kineto_rank *r = &m->k.ranks[i];
        struct place *places = calloc(p->ncomms + 1, sizeof *places);
        zipccl_status status = places != NULL ? make_rank(m, i, places, &others) : nomem(m);

        free(places);
        ZIPCCL_TRY(status);
        r->kernels_before = zipccl_arena_alloc(&r->arena, r->ncalls, sizeof *r->kernels_before);
        r->waits_for = zipccl_arena_alloc(&r->arena, r->ncalls, sizeof *r->waits_for);
        if (r->kernels_before == NULL || r->waits_for == NULL)
            return nomem(m);
        memset(r->waits_for, 0xff, r->ncalls * sizeof *r->waits_for);
        kineto_find_class(&m->k, r);
        if (p->nstreams + 1 > m->k.nstreams)
            m->k.nstreams = (uint32_t)p->nstreams + 1;
    }
    return zipccl_import_count(m->log.importer, true, "other op", 0, others,
                               "Reduce, Gather and Scatter, which a trace lacks, are left out");
}

static zipccl_status check_log(struct making *m)
{
    struct zipccl_place at = {m->log.importer->paths[0], 0, m->log.importer->error};
    size_t ncalls = 0;

    for (size_t i = 0; i < m->log.nprocesses; i++) {
        ncalls += m->log.processes[i].ncalls;
        if (m->log.processes[i].nstreams > MAX_STREAMS)
            return zipccl_place_fail(&at,
                                     "calls in %zu streams of one process, expected at most %d",
                                     m->log.processes[i].nstreams, MAX_STREAMS);
    }
    if (ncalls == 0)
        return zipccl_place_fail(&at, "no line with a call and \"opCount\", expected a log with "
                                      "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL");
    ZIPCCL_TRY(zipccl_import_count(m->log.importer, true, "broken lines", m->log.first_broken,
                                   m->log.nbroken,
                                   "lines of calls that lack something are left out"));
    return zipccl_import_count(m->log.importer, false, "no times", 0, 1,
                               "a log has no times: the trace is communication alone, with no "
                               "compute to hide it; speedups are those of communication");
}

static zipccl_status import(struct making *m)
{
    const struct zipccl_importer *importer = m->log.importer;

    for (size_t i = 0; i < importer->npaths; i++)
        ZIPCCL_TRY(nccl_read(&m->log, &importer->paths[i]));
    ZIPCCL_TRY(check_log(m));
    ZIPCCL_TRY(find_world(m));
    m->k.ranks = calloc(m->log.nprocesses + 1, sizeof *m->k.ranks);
    if (m->k.ranks == NULL)
        return nomem(m);
    m->k.nranks = m->log.nprocesses;
    ZIPCCL_TRY(set_ranks(m));
    ZIPCCL_TRY(make_ranks(m));
    return kineto_finish(&m->k);
}

static zipccl_status run(const struct zipccl_importer *importer)
{
    struct making m = {.k = {.importer = importer,
                             .what = "NCCL log",
                             .provenance = "imported from a debug log of NCCL: no times",
                             .generator = "traces/import_nccl 1",
                             .nstreams = 1},
                       .log = {.importer = importer}};
    zipccl_status status;

    importer->report->layers = "lines";
    status = import(&m);
    importer->report->nlayers = m.log.nlines;
    kineto_import_free(&m.k);
    nccl_free(&m.log);
    return status;
}

const struct zipccl_import_format zipccl_import_nccl = {
    .name = "nccl",
    .about = "log of NCCL or RCCL (NCCL_DEBUG_SUBSYS=INIT,COLL)",
    .detect = detect,
    .run = run,
};
