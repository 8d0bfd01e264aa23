/*
 * plan_trace.c - follows the bytes of one rank through a plan
 *
 * Each step becomes the ranges it reads and writes, each range with what it holds or must hold:
 * the bytes of which rank's send buffer, coded or not.  Ranges that overlap must be ordered; a read
 * must find what it needs; the writes to the receive buffer must be its blocks, each byte once.
 * What one rank sends is checked on that rank, so that the receiver may take it as given.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/plan_check.h"

#include "core/codec.h"

#include <stdlib.h>

/* Bytes [offset, offset + nbytes) of a rank's send buffer, coded or as they are. */
struct content {
    uint32_t rank;
    bool coded;
    size_t offset, nbytes;
};

/* A step with a raw resend may run either way; both are followed at once. */
enum when { ALWAYS, NO_OVERFLOW, OVERFLOW };

struct access {
    uint32_t step;
    uint8_t buf, when;
    bool write;
    bool noop; /* in place: source and destination are the same bytes */
    bool user; /* read of the send buffer, which in place lies in the receive buffer */
    size_t lo, hi;
    struct content content;
    const struct access *source; /* reads: the last write before */
};

struct trace {
    const struct zipccl_check *check;
    uint32_t rank;
    struct access *list;
    size_t n, room;
    zipccl_status status;
};

struct message {
    size_t n;
    size_t room; /* bytes that it may take */
    struct content content;
};

/* Elements of 'src' that go to 'dst' begin here in the send buffer of 'src'. */
static size_t block_in_send(const struct zipccl_check *c, uint32_t src, uint32_t dst)
{
    if (c->send_displs != NULL)
        return c->send_displs[(size_t)src * c->plan->nranks + dst];
    return c->plan->op == ZIPCCL_ALLTOALL ? dst * c->plan->count : 0;
}

static size_t block_in_recv(const struct zipccl_check *c, uint32_t src, uint32_t dst)
{
    if (c->recv_displs != NULL)
        return c->recv_displs[(size_t)dst * c->plan->nranks + src];
    return c->plan->op == ZIPCCL_BROADCAST ? 0 : src * c->plan->count;
}

/* Elements of the whole block from 'src' to 'dst', 0 if there is none. */
static size_t block_n(const struct zipccl_check *c, uint32_t src, uint32_t dst)
{
    if (c->splits != NULL && c->send_displs != NULL)
        return c->splits[(size_t)src * c->plan->nranks + dst];
    return c->plan->op == ZIPCCL_BROADCAST && src != c->plan->root ? 0 : c->plan->count;
}

static struct message message_of(const struct zipccl_check *c, const struct zipccl_step *s,
                                 uint32_t src, uint32_t dst)
{
    size_t n = zipccl_chunk_n(block_n(c, src, dst), c->plan->chunk_n, s->chunk);
    bool coded = s->form != ZIPCCL_FORM_RAW && n >= c->plan->raw_below_n;
    size_t first = block_in_send(c, src, dst) + s->chunk * c->plan->chunk_n;
    size_t room = n * c->size;

    if (coded && s->form == ZIPCCL_FORM_FIXED)
        room = zipccl_plan_fixed_bytes(c->plan, n);
    else if (coded)
        room = zipccl_bound((enum zipccl_dtype)c->plan->dtype, n);
    return (struct message){n, room, {src, coded, first * c->size, n * c->size}};
}

/* Byte offset of peer 'p' in 'place', seen by 'rank'. */
static size_t locate(const struct trace *t, const struct zipccl_place *place, uint32_t p)
{
    const struct zipccl_check *c = t->check;
    size_t at = place->base + t->rank * place->self_stride;
    const size_t *displs = place->buf == ZIPCCL_BUF_SEND ? c->send_displs : c->recv_displs;

    at += place->uneven ? displs[(size_t)t->rank * c->plan->nranks + p] : p * place->peer_stride;
    return place->buf == ZIPCCL_BUF_TX || place->buf == ZIPCCL_BUF_RX ? at : at * c->size;
}

/* Where the send buffer lies in the receive buffer, in place. */
static size_t alias(const struct trace *t)
{
    return t->check->plan->op == ZIPCCL_ALL_GATHER
               ? t->rank * t->check->plan->count * t->check->size
               : 0;
}

static struct access *record(struct trace *t, struct access a)
{
    if (t->status != ZIPCCL_OK)
        return NULL;
    if (t->n == t->room) {
        size_t room = t->room == 0 ? 256 : 2 * t->room;
        struct access *list = realloc(t->list, room * sizeof *list);

        if (list == NULL) {
            t->status = zipccl_fail(t->check->error, ZIPCCL_ERR_NOMEM, "out of memory");
            return NULL;
        }
        t->list = list;
        t->room = room;
    }
    t->list[t->n] = a;
    return &t->list[t->n++];
}

/* A range of staging must lie in the slot that its place names. */
static void touch_slot(struct trace *t, uint32_t step, const struct zipccl_place *place, size_t lo,
                       size_t nbytes)
{
    const struct zipccl_plan *plan = t->check->plan;
    size_t all = place->buf == ZIPCCL_BUF_TX ? plan->tx_bytes : plan->rx_bytes;
    size_t slot = all / plan->nslots, first = slot * place->slot;

    if (t->status == ZIPCCL_OK && (lo < first || nbytes > slot || lo - first > slot - nbytes))
        t->status = zipccl_check_fail(t->check, step, "staging",
                                      "rank %u: bytes %zu to %zu, slot %u is %zu to %zu", t->rank,
                                      lo, lo + nbytes, place->slot, first, first + slot);
}

static void touch(struct trace *t, uint32_t step, const struct zipccl_place *place, uint32_t p,
                  bool write, enum when when, size_t nbytes, struct content content)
{
    size_t lo = locate(t, place, p);
    struct access a = {.step = step,
                       .buf = place->buf,
                       .when = (uint8_t)when,
                       .write = write,
                       .lo = lo,
                       .hi = lo + nbytes,
                       .content = content};

    if (place->buf == ZIPCCL_BUF_TX || place->buf == ZIPCCL_BUF_RX) {
        touch_slot(t, step, place, lo, nbytes);
    } else if (place->buf == ZIPCCL_BUF_SEND) {
        a.user = true;
        a.content = (struct content){t->rank, false, lo, nbytes};
        if (t->check->in_place) {
            a.buf = ZIPCCL_BUF_RECV;
            a.lo += alias(t);
            a.hi += alias(t);
        }
    } else if (write && t->check->in_place && content.rank == t->rank) {
        a.noop = lo == content.offset + alias(t);
    }
    record(t, a);
}

/* What this rank sends in 'step', one call per message; 'p' is the peer, or 0 for all of them. */
static void touch_outgoing(struct trace *t, uint32_t step, uint32_t p)
{
    const struct zipccl_step *s = &t->check->plan->steps[step];
    struct message m = message_of(t->check, s, t->rank, p);
    enum when when = s->raw_of != ZIPCCL_STEP_NONE ? OVERFLOW : ALWAYS;

    if (m.n == 0 || (when == OVERFLOW && m.n < t->check->plan->raw_below_n))
        return;
    if (s->kind == ZIPCCL_STEP_SIZES && !m.content.coded)
        return;
    if (s->src.buf == ZIPCCL_BUF_SEND && locate(t, &s->src, p) != m.content.offset &&
        t->status == ZIPCCL_OK)
        t->status = zipccl_check_fail(t->check, step, "content",
                                      "rank %u takes byte %zu for peer %u, not byte %zu", t->rank,
                                      locate(t, &s->src, p), p, m.content.offset);
    if (s->kind == ZIPCCL_STEP_ENCODE) {
        touch(t, step, &s->src, p, false, ALWAYS, m.n * t->check->size, m.content);
        touch(t, step, &s->dst, p, true, ALWAYS, m.room, m.content);
        return;
    }
    touch(t, step, &s->src, p, false, when, m.room, m.content);
}

static uint32_t resend_of(const struct zipccl_plan *plan, uint32_t resolve)
{
    for (uint32_t k = resolve + 1; k < plan->nsteps; k++)
        if (plan->steps[k].kind == ZIPCCL_STEP_EXCHANGE && plan->steps[k].raw_of == resolve)
            return k;
    return resolve;
}

static void touch_incoming(struct trace *t, uint32_t step, uint32_t p)
{
    const struct zipccl_plan *plan = t->check->plan;
    const struct zipccl_step *s = &plan->steps[step];
    struct message m = message_of(t->check, s, p, t->rank);
    bool resend = s->raw_of != ZIPCCL_STEP_NONE;
    struct content raw = m.content;

    raw.coded = false;
    if (m.n == 0)
        return;
    if (s->kind == ZIPCCL_STEP_EXCHANGE) {
        if (!resend || m.n >= plan->raw_below_n)
            touch(t, step, &s->dst, p, true, resend ? OVERFLOW : ALWAYS, m.room, m.content);
        return;
    }
    if (s->kind == ZIPCCL_STEP_RESOLVE) {
        if (m.content.coded)
            touch(t, step, &s->src, p, false, ALWAYS, m.room, m.content);
        return;
    }
    /* DECODE: from the messages, or from where the resend has put raw elements. */
    touch(t, step, &s->src, p, false, resend && m.content.coded ? NO_OVERFLOW : ALWAYS, m.room,
          m.content);
    if (resend && m.content.coded) {
        const struct zipccl_step *again = &plan->steps[resend_of(plan, s->raw_of)];

        touch(t, step, &again->dst, p, false, OVERFLOW, m.n * t->check->size, raw);
    }
    touch(t, step, &s->dst, p, true, ALWAYS, m.n * t->check->size, raw);
}

static void touch_copy(struct trace *t, uint32_t step)
{
    const struct zipccl_step *s = &t->check->plan->steps[step];
    size_t nbytes = block_n(t->check, t->rank, t->rank) * t->check->size;
    struct content own = {t->rank, false, locate(t, &s->src, t->rank), nbytes};

    if (nbytes == 0)
        return;
    touch(t, step, &s->src, t->rank, false, ALWAYS, nbytes, own);
    touch(t, step, &s->dst, t->rank, true, ALWAYS, nbytes, own);
}

static void touch_step(struct trace *t, uint32_t step)
{
    const struct zipccl_plan *plan = t->check->plan;
    const struct zipccl_step *s = &plan->steps[step];
    bool sends = s->kind != ZIPCCL_STEP_RESOLVE && s->kind != ZIPCCL_STEP_DECODE;
    bool receives = s->kind != ZIPCCL_STEP_ENCODE && s->kind != ZIPCCL_STEP_SIZES;
    bool own = s->kind == ZIPCCL_STEP_EXCHANGE && s->lowering == ZIPCCL_LOWER_RING;
    uint32_t root = s->root;

    if (s->kind == ZIPCCL_STEP_COPY) {
        touch_copy(t, step);
    } else if (s->pattern == ZIPCCL_PATTERN_BROADCAST) {
        if (sends && t->rank == root)
            touch_outgoing(t, step, t->rank == 0);
        if (receives && t->rank != root)
            touch_incoming(t, step, root);
    } else {
        /* An all-gather has one message for all, whichever peer is asked about. */
        if (sends && s->pattern == ZIPCCL_PATTERN_ALL_GATHER)
            touch_outgoing(t, step, t->rank == 0);
        for (uint32_t p = 0; p < plan->nranks; p++) {
            if (sends && s->pattern != ZIPCCL_PATTERN_ALL_GATHER && p != t->rank)
                touch_outgoing(t, step, p);
            if (receives && (p != t->rank || own))
                touch_incoming(t, step, p);
        }
    }
}

static int by_place(const void *a, const void *b)
{
    const struct access *x = a, *y = b;

    if (x->buf != y->buf)
        return x->buf < y->buf ? -1 : 1;
    if (x->lo != y->lo)
        return x->lo < y->lo ? -1 : 1;
    return x->step < y->step ? -1 : x->step > y->step;
}

/* One of a pair of overlapping ranges is a write: is that safe? */
static zipccl_status check_pair(const struct trace *t, struct access *a, struct access *b)
{
    const struct zipccl_check *c = t->check;
    bool same_chunk = c->plan->steps[a->step].chunk == c->plan->steps[b->step].chunk;
    struct access *early = a->step <= b->step ? a : b, *late = early == a ? b : a;

    if (!a->write && !b->write)
        return ZIPCCL_OK;
    /* Either the messages count or their resend, never both. */
    if (a->when != b->when && a->when != ALWAYS && b->when != ALWAYS && same_chunk)
        return ZIPCCL_OK;
    if (a->buf == ZIPCCL_BUF_RECV && a->write && b->write)
        return zipccl_check_fail(c, late->step, "output",
                                 "rank %u: byte %zu is written by step %u too", t->rank,
                                 a->lo > b->lo ? a->lo : b->lo, early->step);
    if (a->noop || b->noop)
        return ZIPCCL_OK;
    if (a->user || b->user) {
        const struct access *read = a->user ? a : b, *write = a->user ? b : a;

        if (zipccl_check_ordered(c, read->step, write->step))
            return ZIPCCL_OK;
        return zipccl_check_fail(c, write->step, "in place",
                                 "rank %u: overwrites bytes that step %u may still send", t->rank,
                                 read->step);
    }
    if (!zipccl_check_ordered(c, early->step, late->step))
        return zipccl_check_fail(c, late->step, "order",
                                 "rank %u: no dependency on step %u, which uses the same bytes",
                                 t->rank, early->step);
    if (early->write && !late->write && (late->source == NULL || late->source->step < early->step))
        late->source = early;
    return ZIPCCL_OK;
}

static zipccl_status check_read(const struct trace *t, const struct access *a)
{
    const struct access *w = a->source;

    if (w == NULL)
        return zipccl_check_fail(t->check, a->step, "content",
                                 "rank %u: reads what no step has written", t->rank);
    if (w->lo != a->lo || w->hi < a->hi || w->content.rank != a->content.rank ||
        w->content.coded != a->content.coded || w->content.offset != a->content.offset ||
        w->content.nbytes != a->content.nbytes)
        return zipccl_check_fail(t->check, a->step, "content",
                                 "rank %u: finds another message, left by step %u", t->rank,
                                 w->step);
    return ZIPCCL_OK;
}

/* A write to the receive buffer must be a piece of the block that belongs there. */
static zipccl_status check_output(const struct trace *t, const struct access *a)
{
    const struct zipccl_check *c = t->check;
    uint32_t from = a->content.rank;
    size_t first = block_in_recv(c, from, t->rank) * c->size;
    size_t nbytes = block_n(c, from, t->rank) * c->size;
    size_t source = block_in_send(c, from, t->rank) * c->size;

    if (a->lo < first || a->hi > first + nbytes || a->content.offset != source + (a->lo - first))
        return zipccl_check_fail(c, a->step, "output",
                                 "rank %u: bytes %zu to %zu do not belong to rank %u's byte %zu",
                                 t->rank, a->lo, a->hi, from, a->content.offset);
    return ZIPCCL_OK;
}

static zipccl_status check_accesses(const struct trace *t)
{
    const struct zipccl_check *c = t->check;
    size_t wanted = 0, written = 0;

    if (t->n > 0)
        qsort(t->list, t->n, sizeof *t->list, by_place);
    for (size_t i = 0; i < t->n; i++)
        for (size_t k = i + 1;
             k < t->n && t->list[k].buf == t->list[i].buf && t->list[k].lo < t->list[i].hi; k++)
            ZIPCCL_TRY(check_pair(t, &t->list[i], &t->list[k]));
    for (size_t i = 0; i < t->n; i++) {
        const struct access *a = &t->list[i];

        if (!a->write && !a->user)
            ZIPCCL_TRY(check_read(t, a));
        if (a->write && a->buf == ZIPCCL_BUF_RECV) {
            ZIPCCL_TRY(check_output(t, a));
            written += a->hi - a->lo;
        }
    }
    for (uint32_t p = 0; p < c->plan->nranks; p++)
        wanted += block_n(c, p, t->rank) * c->size;
    if (written != wanted)
        return zipccl_fail(c->error, ZIPCCL_ERR_ARG, "rule 'output': rank %u gets %zu bytes of %zu",
                           t->rank, written, wanted);
    return ZIPCCL_OK;
}

zipccl_status zipccl_check_rank(const struct zipccl_check *c, uint32_t rank)
{
    struct trace t = {.check = c, .rank = rank, .status = ZIPCCL_OK};

    for (uint32_t i = 0; i < c->plan->nsteps; i++)
        touch_step(&t, i);
    if (t.status == ZIPCCL_OK)
        t.status = check_accesses(&t);
    free(t.list);
    return t.status;
}
