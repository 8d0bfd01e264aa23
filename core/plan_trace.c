/*
 * plan_trace.c - follows the bytes of all ranks through a plan
 *
 * Each step becomes the ranges it reads and writes on each rank.  A read sees the last write before
 * it, and what that held goes where the step writes: through an exchange to other ranks, through a
 * REDUCE into a sum.  Whether ranges that overlap are ordered, and whether the right bytes end up in
 * the receive buffers, plan_hazard.c checks afterwards.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/plan_check.h"

#include "core/split.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

struct trace {
    const struct zipccl_check *check;
    const struct zipccl_plan *plan;
    struct zipccl_accesses *ranks; /* [nranks] */
    zipccl_status status;
};

/* One step as one rank runs it. */
struct view {
    struct trace *t;
    uint32_t step;
    const struct zipccl_step *s;
    struct zipccl_group g;
};

/* A message, or the raw elements that travel instead. */
struct message {
    size_t n;
    size_t room; /* bytes that it may take */
    bool coded;
};

/* A range of a message, as a step touches it. */
struct piece {
    size_t at, nbytes; /* from the start of its place */
    uint8_t part;      /* enum zipccl_part, or 0: all there is */
};

static const struct zipccl_content unknown = {.who = ZIPCCL_NOBODY};

static bool is_user(const struct zipccl_place *place)
{
    return place->buf == ZIPCCL_BUF_SEND || place->buf == ZIPCCL_BUF_RECV;
}

static struct view view_of(struct trace *t, uint32_t step, uint32_t rank)
{
    const struct zipccl_step *s = &t->plan->steps[step];

    return (struct view){t, step, s, zipccl_group_of(t->check->topology, s, rank)};
}

/* Block 'b' of the message from member 'from' to member 'to'. */
static struct message message_of(const struct view *v, uint32_t from, uint32_t to, uint32_t b)
{
    const struct zipccl_plan *plan = v->t->plan;
    size_t n = v->s->pattern == ZIPCCL_PATTERN_PAIRS
                   ? zipccl_chunk_n(zipccl_check_block_n(v->t->check, from, to), plan->chunk_n,
                                    v->s->chunk)
                   : zipccl_group_n(plan, v->s, &v->g, from, to, b);
    bool coded = v->s->form != ZIPCCL_FORM_RAW && n >= plan->raw_below_n;
    size_t room = n * v->t->check->size;

    if (coded && v->s->form == ZIPCCL_FORM_FIXED)
        room = zipccl_plan_fixed_bytes(plan, n);
    else if (coded)
        room = zipccl_bound((enum zipccl_dtype)plan->dtype, n);
    return (struct message){n, room, coded};
}

/* The elements of a message, and all of it where it is not in parts. */
static struct piece all_of(const struct message *m)
{
    return (struct piece){0, m->room, 0};
}

/* Pieces of a message that the step touches, at most three; returns how many. */
static unsigned pieces_of(const struct view *v, const struct message *m, struct piece *pieces)
{
    unsigned parts = v->s->part, npieces = 0;
    struct zipccl_split_cut split = {0, 0, 0};
    size_t front;

    if (parts != 0 && m->coded)
        split = zipccl_split_of((enum zipccl_dtype)v->t->plan->dtype, m->n);
    front = split.head + split.early;
    if (split.early == 0) { /* all tail */
        pieces[0] = all_of(m);
        return parts == 0 || (parts & ZIPCCL_PART_TAIL) != 0 ? 1 : 0;
    }
    if (v->s->kind == ZIPCCL_STEP_DECODE)
        parts |= ZIPCCL_PART_EARLY;
    if (v->s->kind == ZIPCCL_STEP_RESOLVE || v->s->kind == ZIPCCL_STEP_SIZES)
        parts = ZIPCCL_PART_HEAD;
    if (parts & ZIPCCL_PART_HEAD)
        pieces[npieces++] = (struct piece){0, split.head, ZIPCCL_PART_HEAD};
    if (parts & ZIPCCL_PART_EARLY)
        pieces[npieces++] = (struct piece){split.head, split.early, ZIPCCL_PART_EARLY};
    if (parts & ZIPCCL_PART_TAIL) /* of an EXACT one all of it may travel there */
        pieces[npieces++] = (struct piece){
            front, v->s->form == ZIPCCL_FORM_FIXED ? m->room - front : m->room, ZIPCCL_PART_TAIL};
    return npieces;
}

/* Byte offset of a block in its buffer. */
static size_t locate(const struct view *v, const struct zipccl_place *place, uint32_t p, uint32_t b)
{
    const struct zipccl_check *c = v->t->check;
    const size_t *displs = place->buf == ZIPCCL_BUF_SEND ? c->send_displs : c->recv_displs;
    size_t at = zipccl_place_offset(place, &v->g, p, b);

    if (place->uneven)
        at += displs[(size_t)v->g.rank * c->plan->nranks + p];
    return is_user(place) ? at * c->size : at;
}

static struct zipccl_access *record(struct trace *t, uint32_t rank, struct zipccl_access a)
{
    struct zipccl_accesses *r = &t->ranks[rank];

    if (t->status != ZIPCCL_OK)
        return NULL;
    if (r->n == r->room) {
        uint32_t room = r->room == 0 ? 256 : 2 * r->room;
        struct zipccl_access *list = realloc(r->list, room * sizeof *list);

        if (list == NULL) {
            t->status = zipccl_fail(t->check->error, ZIPCCL_ERR_NOMEM, "out of memory");
            return NULL;
        }
        r->list = list;
        r->room = room;
    }
    r->list[r->n] = a;
    return &r->list[r->n++];
}

/* A range of staging must lie in the slot that its place names. */
static void check_slot(const struct view *v, const struct zipccl_place *place, size_t lo,
                       size_t nbytes)
{
    const struct zipccl_plan *plan = v->t->plan;
    size_t all = place->buf == ZIPCCL_BUF_TX   ? plan->tx_bytes
                 : place->buf == ZIPCCL_BUF_RX ? plan->rx_bytes
                                               : plan->tmp_bytes;
    size_t slot = all / plan->nslots, first = slot * place->slot;

    if (v->t->status == ZIPCCL_OK && (lo < first || nbytes > slot || lo - first > slot - nbytes))
        v->t->status = zipccl_check_fail(
            v->t->check, v->step, "staging", "rank %u: bytes %zu to %zu, slot %u is %zu to %zu",
            v->g.rank, lo, lo + nbytes, place->slot, first, first + slot);
}

/* The range [lo, lo + nbytes) of 'place', in place in the buffer that both share. */
static struct zipccl_access range_of(const struct view *v, const struct zipccl_place *place,
                                     size_t lo, size_t nbytes)
{
    struct zipccl_access a = {.step = v->step,
                              .source = NONE,
                              .prev = NONE,
                              .resolve = ZIPCCL_STEP_NONE,
                              .buf = place->buf,
                              .lo = lo,
                              .hi = lo + nbytes};

    if (!is_user(place)) {
        check_slot(v, place, lo, nbytes);
    } else if (v->t->check->in_place) {
        a.buf = ZIPCCL_BUF_RECV;
        a.lo += zipccl_check_origin(v->t->check, v->g.rank, (enum zipccl_buf)place->buf);
        a.hi = a.lo + nbytes;
    }
    return a;
}

static uint32_t *newest(const struct view *v, const struct zipccl_access *a,
                        const struct zipccl_place *place)
{
    uint32_t slot = is_user(place) ? 0 : place->slot;

    return &v->t->ranks[v->g.rank].newest[a->buf * (UINT8_MAX + 1u) + slot];
}

static bool contradict(const struct zipccl_access *a, const struct zipccl_access *b)
{
    return a->resolve == b->resolve && a->when != b->when && a->when != ZIPCCL_ALWAYS &&
           b->when != ZIPCCL_ALWAYS;
}

/* The last write of an earlier step that 'read' may see; NONE if there is none. */
static uint32_t find_source(const struct view *v, const struct zipccl_access *read,
                            const struct zipccl_place *place)
{
    const struct zipccl_access *list = v->t->ranks[v->g.rank].list;
    uint32_t i = *newest(v, read, place);

    while (i != NONE && (list[i].step >= v->step || list[i].lo >= read->hi ||
                         list[i].hi <= read->lo || contradict(&list[i], read)))
        i = list[i].prev;
    return i;
}

/* What 'read' finds in the write 'w'; 'bad' if that is not a message of this chunk as expected. */
static struct zipccl_content take(const struct view *v, struct zipccl_access *read,
                                  const struct zipccl_access *w, const struct zipccl_place *place,
                                  const struct message *m, uint8_t part)
{
    struct zipccl_content found = w->content;

    if (found.who == ZIPCCL_NOBODY)
        return unknown;
    read->bad = w->lo > read->lo || w->hi < read->hi || found.coded != m->coded ||
                found.part != part || (!is_user(place) && found.chunk != v->s->chunk);
    if (m->coded)
        read->bad = read->bad || w->lo != read->lo || found.nbytes != m->n * v->t->check->size;
    else
        found.lo += read->lo - w->lo;
    found.nbytes = m->n * v->t->check->size;
    return read->bad ? unknown : found;
}

/* This rank reads a piece of a message of 'step' at 'place'; returns what is there. */
static struct zipccl_content read_piece(const struct view *v, const struct zipccl_place *place,
                                        uint32_t p, uint32_t b, struct message m,
                                        struct piece piece, enum zipccl_when when, uint16_t resolve)
{
    size_t lo = locate(v, place, p, b) + piece.at;
    struct zipccl_access a = range_of(v, place, lo, piece.nbytes);
    struct zipccl_content content;

    a.when = (uint8_t)when;
    a.resolve = resolve;
    if (place->buf == ZIPCCL_BUF_SEND) {
        a.user = true;
        content = (struct zipccl_content){.who = v->g.rank,
                                          .chunk = v->s->chunk,
                                          .level = ZIPCCL_LEVEL_DATA,
                                          .lo = lo,
                                          .nbytes = m.n * v->t->check->size};
    } else {
        a.source = find_source(v, &a, place);
        a.bad = a.source == NONE;
        content = a.bad
                      ? unknown
                      : take(v, &a, &v->t->ranks[v->g.rank].list[a.source], place, &m, piece.part);
    }
    record(v->t, v->g.rank, a);
    content.chunk = v->s->chunk;
    return content;
}

/* Elements that are as they are, or a message that is not in parts. */
static struct zipccl_content read_message(const struct view *v, const struct zipccl_place *place,
                                          uint32_t p, uint32_t b, struct message m,
                                          enum zipccl_when when, uint16_t resolve)
{
    return read_piece(v, place, p, b, m, all_of(&m), when, resolve);
}

static bool same_content(const struct zipccl_content *a, const struct zipccl_content *b)
{
    return a->who == b->who && a->level == b->level && a->lo == b->lo;
}

/* All pieces of a message that the step needs, which must be of one message. */
static struct zipccl_content read_pieces(const struct view *v, const struct zipccl_place *place,
                                         uint32_t p, uint32_t b, struct message m,
                                         enum zipccl_when when, uint16_t resolve)
{
    struct zipccl_content content = unknown;
    struct piece pieces[3];
    unsigned npieces = pieces_of(v, &m, pieces);

    for (unsigned i = 0; i < npieces; i++) {
        struct zipccl_content c = read_piece(v, place, p, b, m, pieces[i], when, resolve);

        if (v->t->status == ZIPCCL_OK && i > 0 && !same_content(&c, &content) &&
            c.who != ZIPCCL_NOBODY && content.who != ZIPCCL_NOBODY)
            v->t->status =
                zipccl_check_fail(v->t->check, v->step, "content",
                                  "rank %u: parts of two messages, of member %u", v->g.rank, p);
        if (i == 0 || c.who == ZIPCCL_NOBODY)
            content = c;
    }
    content.part = 0;
    return content;
}

static void write_piece(const struct view *v, const struct zipccl_place *place, uint32_t p,
                        uint32_t b, struct piece piece, enum zipccl_when when, uint16_t resolve,
                        struct zipccl_content content)
{
    const struct zipccl_check *c = v->t->check;
    struct zipccl_access a = range_of(v, place, locate(v, place, p, b) + piece.at, piece.nbytes);
    uint32_t *last = newest(v, &a, place);

    content.part = piece.part;
    a.write = true;
    a.when = (uint8_t)when;
    a.resolve = resolve;
    a.content = content;
    a.prev = *last;
    a.noop = c->in_place && is_user(place) && content.who == v->g.rank &&
             content.level == ZIPCCL_LEVEL_DATA && !content.coded &&
             a.lo == content.lo + zipccl_check_origin(c, v->g.rank, ZIPCCL_BUF_SEND);
    if (record(v->t, v->g.rank, a) != NULL)
        *last = v->t->ranks[v->g.rank].n - 1;
}

static void write_message(const struct view *v, const struct zipccl_place *place, uint32_t p,
                          uint32_t b, size_t nbytes, enum zipccl_when when, uint16_t resolve,
                          struct zipccl_content content)
{
    write_piece(v, place, p, b, (struct piece){0, nbytes, 0}, when, resolve, content);
}

/* A message of an EXCHANGE: read here, written on the other rank. */
static void pass(const struct view *v, uint32_t p, uint32_t b)
{
    bool resend = v->s->raw_of != ZIPCCL_STEP_NONE;
    bool shared = zipccl_step_shares_message(v->s);
    enum zipccl_when when = resend ? ZIPCCL_OVERFLOWED : ZIPCCL_ALWAYS;
    struct message m = message_of(v, v->g.self, p, b);
    struct view there = view_of(v->t, v->step, zipccl_group_rank(&v->g, p));
    struct piece pieces[3];
    unsigned npieces = m.n > 0 ? pieces_of(v, &m, pieces) : 0;

    if (resend && m.n < v->t->plan->raw_below_n)
        return;
    for (unsigned i = 0; i < npieces; i++)
        write_piece(
            &there, &v->s->dst, v->g.self, b, pieces[i], when, v->s->raw_of,
            read_piece(v, &v->s->src, shared ? v->g.self : p, b, m, pieces[i], when, v->s->raw_of));
}

static void trace_exchange(const struct view *v)
{
    bool own = v->s->lowering == ZIPCCL_LOWER_RING && v->s->pattern == ZIPCCL_PATTERN_ALL_GATHER;

    if (v->s->pattern == ZIPCCL_PATTERN_BROADCAST && v->g.self != v->g.root)
        return;
    for (uint32_t p = 0; p < v->g.size; p++)
        for (uint32_t b = 0; b < v->g.nblocks; b++)
            if (p != v->g.self || own)
                pass(v, p, b);
}

/* ENCODE and SIZES: what this rank is about to send. */
static void trace_outgoing(const struct view *v)
{
    bool shared = zipccl_step_shares_message(v->s);

    if (v->s->pattern == ZIPCCL_PATTERN_BROADCAST && v->g.self != v->g.root)
        return;
    for (uint32_t p = 0; p < v->g.size; p++)
        for (uint32_t b = 0; b < v->g.nblocks; b++) {
            struct message m = message_of(v, v->g.self, p, b), raw = m;
            struct zipccl_content content;
            struct piece pieces[3];
            unsigned npieces;

            if (m.n == 0 || (shared ? p != v->g.self : p == v->g.self))
                continue;
            if (v->s->kind == ZIPCCL_STEP_SIZES) {
                if (m.coded)
                    read_pieces(v, &v->s->src, p, b, m, ZIPCCL_ALWAYS, ZIPCCL_STEP_NONE);
                continue;
            }
            raw.coded = false;
            raw.room = m.n * v->t->check->size;
            content = read_message(v, &v->s->src, p, b, raw, ZIPCCL_ALWAYS, ZIPCCL_STEP_NONE);
            content.coded = m.coded;
            npieces = pieces_of(v, &m, pieces);
            for (unsigned i = 0; i < npieces; i++)
                write_piece(v, &v->s->dst, p, b, pieces[i], ZIPCCL_ALWAYS, ZIPCCL_STEP_NONE,
                            content);
        }
}

static uint32_t resend_of(const struct zipccl_plan *plan, uint32_t resolve)
{
    for (uint32_t k = resolve + 1; k < plan->nsteps; k++)
        if (plan->steps[k].kind == ZIPCCL_STEP_EXCHANGE && plan->steps[k].raw_of == resolve)
            return k;
    return resolve;
}

/* The values that came from member 'p', from the message or from where the resend has put them. */
static struct zipccl_content read_incoming(const struct view *v, uint32_t p, uint32_t b)
{
    const struct zipccl_plan *plan = v->t->plan;
    struct message m = message_of(v, p, v->g.self, b), raw = {m.n, m.n * v->t->check->size, false};
    bool resend = v->s->raw_of != ZIPCCL_STEP_NONE && m.coded;
    struct zipccl_content content, again;

    content = read_pieces(v, &v->s->src, p, b, m, resend ? ZIPCCL_NO_OVERFLOW : ZIPCCL_ALWAYS,
                          v->s->raw_of);
    content.coded = false;
    if (!resend)
        return content;
    again = read_message(v, &plan->steps[resend_of(plan, v->s->raw_of)].dst, p, b, raw,
                         ZIPCCL_OVERFLOWED, v->s->raw_of);
    if (v->t->status == ZIPCCL_OK && again.who != ZIPCCL_NOBODY && content.who != ZIPCCL_NOBODY &&
        !same_content(&again, &content))
        v->t->status = zipccl_check_fail(v->t->check, v->step, "content",
                                         "rank %u: the resend of member %u is not what the message "
                                         "holds",
                                         v->g.rank, p);
    return content;
}

static void trace_incoming(const struct view *v)
{
    for (uint32_t p = 0; p < v->g.size; p++)
        for (uint32_t b = 0; b < v->g.nblocks; b++) {
            struct message m = message_of(v, p, v->g.self, b);
            bool sends = v->s->pattern != ZIPCCL_PATTERN_BROADCAST || p == v->g.root;

            if (m.n == 0 || p == v->g.self || !sends)
                continue;
            if (v->s->kind == ZIPCCL_STEP_DECODE)
                write_message(v, &v->s->dst, p, b, m.n * v->t->check->size, ZIPCCL_ALWAYS,
                              ZIPCCL_STEP_NONE, read_incoming(v, p, b));
            else if (m.coded)
                read_pieces(v, &v->s->src, p, b, m, ZIPCCL_ALWAYS, ZIPCCL_STEP_NONE);
        }
}

/* Contributions must be each member's, of the same elements; returns their sum. */
static struct zipccl_content add(const struct view *v, struct zipccl_content sum,
                                 struct zipccl_content x, uint32_t p)
{
    bool second = v->s->group == ZIPCCL_GROUP_RAIL;
    uint8_t level = second ? ZIPCCL_LEVEL_NODE : ZIPCCL_LEVEL_DATA;
    uint32_t who = second ? p : zipccl_group_rank(&v->g, p);

    if (v->t->status != ZIPCCL_OK || x.who == ZIPCCL_NOBODY)
        return unknown;
    if (x.level != level || x.who != who || (p > 0 && x.lo != sum.lo))
        v->t->status = zipccl_check_fail(
            v->t->check, v->step, "reduce", "rank %u: contribution %u is byte %zu of %s %u",
            v->g.rank, p, x.lo, x.level == ZIPCCL_LEVEL_NODE ? "node" : "rank", x.who);
    return p == 0 ? x : sum;
}

static void trace_reduce(const struct view *v)
{
    for (uint32_t b = 0; b < v->g.nblocks; b++) {
        struct message own = message_of(v, v->g.self, v->g.self, b);
        struct zipccl_content sum = unknown;

        own.coded = false;
        own.room = own.n * v->t->check->size;
        if (own.n == 0)
            continue;
        for (uint32_t p = 0; p < v->g.size; p++) {
            struct zipccl_content x = p == v->g.self ? read_message(v, &v->s->self, p, b, own,
                                                                    ZIPCCL_ALWAYS, ZIPCCL_STEP_NONE)
                                                     : read_incoming(v, p, b);

            sum = p > 0 && sum.who == ZIPCCL_NOBODY ? unknown : add(v, sum, x, p);
        }
        if (sum.who != ZIPCCL_NOBODY) {
            bool node = v->s->group == ZIPCCL_GROUP_NODE;

            sum.who = node ? v->t->check->topology->node_of[v->g.rank] : 0;
            sum.level = node ? ZIPCCL_LEVEL_NODE : ZIPCCL_LEVEL_ALL;
        }
        write_message(v, &v->s->dst, v->g.self, b, own.room, ZIPCCL_ALWAYS, ZIPCCL_STEP_NONE, sum);
    }
}

static void trace_copy(const struct view *v)
{
    if (v->s->pattern == ZIPCCL_PATTERN_BROADCAST && v->g.self != v->g.root)
        return;
    for (uint32_t b = 0; b < v->g.nblocks; b++) {
        size_t n = v->s->pattern == ZIPCCL_PATTERN_PAIRS
                       ? zipccl_check_block_n(v->t->check, v->g.rank, v->g.rank)
                       : zipccl_group_n(v->t->plan, v->s, &v->g, v->g.self, v->g.self, b);
        struct message m = {n, n * v->t->check->size, false};

        if (n > 0)
            write_message(
                v, &v->s->dst, v->g.self, b, m.room, ZIPCCL_ALWAYS, ZIPCCL_STEP_NONE,
                read_message(v, &v->s->src, v->g.self, b, m, ZIPCCL_ALWAYS, ZIPCCL_STEP_NONE));
    }
}

static void trace_step(const struct view *v)
{
    switch (v->s->kind) {
    case ZIPCCL_STEP_ENCODE:
    case ZIPCCL_STEP_SIZES: trace_outgoing(v); break;
    case ZIPCCL_STEP_EXCHANGE: trace_exchange(v); break;
    case ZIPCCL_STEP_RESOLVE:
    case ZIPCCL_STEP_DECODE: trace_incoming(v); break;
    case ZIPCCL_STEP_REDUCE: trace_reduce(v); break;
    default: trace_copy(v); break;
    }
}

static bool prepare(struct trace *t)
{
    size_t nchains = (ZIPCCL_BUF_TMP + 1u) * (UINT8_MAX + 1u);

    t->ranks = calloc(t->plan->nranks, sizeof *t->ranks);
    for (uint32_t r = 0; t->ranks != NULL && r < t->plan->nranks; r++) {
        t->ranks[r].newest = malloc(nchains * sizeof *t->ranks[r].newest);
        if (t->ranks[r].newest == NULL)
            return false;
        memset(t->ranks[r].newest, 0xff, nchains * sizeof *t->ranks[r].newest);
    }
    return t->ranks != NULL;
}

zipccl_status zipccl_check_world(const struct zipccl_check *c)
{
    struct trace t = {.check = c, .plan = c->plan, .status = ZIPCCL_OK};
    uint32_t nranks = c->plan->nranks;

    if (!prepare(&t))
        t.status = zipccl_fail(c->error, ZIPCCL_ERR_NOMEM, "out of memory");
    for (uint32_t i = 0; i < c->plan->nsteps && t.status == ZIPCCL_OK; i++)
        for (uint32_t r = 0; r < nranks; r++) {
            struct view v = view_of(&t, i, r);

            trace_step(&v);
        }
    for (uint32_t r = 0; r < nranks && t.status == ZIPCCL_OK; r++)
        t.status = zipccl_check_accesses(c, r, &t.ranks[r]);
    for (uint32_t r = 0; t.ranks != NULL && r < nranks; r++) {
        free(t.ranks[r].list);
        free(t.ranks[r].newest);
    }
    free(t.ranks);
    return t.status;
}
