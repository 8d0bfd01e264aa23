/*
 * executor_wire.c - the steps of the wire lane: sizes, exchange, resolve, native
 *
 * Both ends of each message compute the same size for it: from the plan, from the pair's count,
 * or from a SIZES step.  Nothing that arrives is trusted before it is checked.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/executor_state.h"
#include "core/wire.h"

#include <string.h>

#define SIZE_WORD_BYTES 4u

/* In the word of a message in parts: they do not stand, it follows whole. */
#define VOID_BIT 0x80000000u

/* Of messages on a device, gpu/kernels.h. */
#define DEVICE_ALIGN 16u

/* A contiguous piece of what an EXCHANGE sends to a member. */
struct piece {
    size_t at, nbytes; /* from the start of the message's place */
};

/* Close a group whatever happened inside, so that the transport is left in order. */
static zipccl_status end_group(struct zipccl_run_state *s, zipccl_status status)
{
    zipccl_status ended;

    if (status != ZIPCCL_OK)
        s->transport->ops->abort(s->transport);
    ended = s->transport->ops->group_end(s->transport);
    return status != ZIPCCL_OK ? status : ended;
}

static zipccl_status post_size(struct zipccl_run_state *s, const struct zipccl_step *step,
                               const struct zipccl_group *g, uint32_t p, uint32_t b)
{
    const struct zipccl_transport_ops *ops = s->transport->ops;
    size_t n = zipccl_step_n_out(s, step, g, p, b);
    uint32_t peer = zipccl_group_rank(g, p), index = zipccl_index_in(g, p, b);

    if (zipccl_step_sends(s, step, g, p, b) &&
        zipccl_step_codes(s, step, n, zipccl_step_class_out(s, step, p))) {
        uint8_t *word = s->words + (size_t)index * SIZE_WORD_BYTES;
        const struct zipccl_slot_state *slot = &s->slots[step->src.slot];
        size_t nbytes = slot->size_out[zipccl_index_out(step, g, p, b)];
        bool is_void = slot->void_out[zipccl_index_out(step, g, p, b)];

        if (nbytes > (step->part == 0 ? UINT32_MAX : VOID_BIT - 1))
            return ZIPCCL_ERR_UNSUPPORTED;
        zipccl_put_u32(word, (uint32_t)nbytes | (is_void ? VOID_BIT : 0));
        ZIPCCL_TRY(ops->send(s->transport, peer, word, SIZE_WORD_BYTES));
        s->wire.wire_bytes += SIZE_WORD_BYTES;
    }
    n = zipccl_step_n_in(s, step, g, p, b);
    if (zipccl_step_receives(s, step, g, p, b) &&
        zipccl_step_codes(s, step, n, zipccl_step_class_in(s, step, p)))
        return ops->recv(s->transport, peer,
                         s->words + ((size_t)s->nranks + index) * SIZE_WORD_BYTES, SIZE_WORD_BYTES);
    return ZIPCCL_OK;
}

static zipccl_status post_sizes(struct zipccl_run_state *s, const struct zipccl_step *step,
                                const struct zipccl_group *g)
{
    for (uint32_t p = 0; p < g->size; p++)
        for (uint32_t b = 0; b < g->nblocks; b++)
            ZIPCCL_TRY(post_size(s, step, g, p, b));
    return ZIPCCL_OK;
}

/* Check a size that has arrived and keep it. */
static zipccl_status keep_size(struct zipccl_run_state *s, const struct zipccl_step *step,
                               const struct zipccl_group *g, uint32_t p, uint32_t b)
{
    struct zipccl_slot_state *slot = &s->slots[step->src.slot];
    size_t n = zipccl_step_n_in(s, step, g, p, b), nbytes, message;
    uint32_t index = zipccl_index_in(g, p, b);
    int cls = zipccl_step_class_in(s, step, p);
    struct zipccl_split_cut split = zipccl_step_split(s, step, n, cls);

    if (!zipccl_step_receives(s, step, g, p, b) || !zipccl_step_codes(s, step, n, cls))
        return ZIPCCL_OK;
    nbytes = zipccl_get_u32(s->words + ((size_t)s->nranks + index) * SIZE_WORD_BYTES);
    slot->void_in[index] = split.early > 0 && (nbytes & VOID_BIT) != 0;
    if (slot->void_in[index])
        nbytes &= VOID_BIT - 1;
    message = nbytes + (slot->void_in[index] ? 0 : split.head + split.early);
    if (message < ZIPCCL_MESSAGE_HEADER_BYTES ||
        message > zipccl_bound((enum zipccl_dtype)s->plan->dtype, n))
        return ZIPCCL_ERR_CORRUPT;
    slot->size_in[index] = nbytes;
    return ZIPCCL_OK;
}

static zipccl_status sizes(struct zipccl_run_state *s, const struct zipccl_step *step)
{
    struct zipccl_group g = zipccl_step_group(s, step);

    ZIPCCL_TRY(s->transport->ops->group_begin(s->transport));
    ZIPCCL_TRY(end_group(s, post_sizes(s, step, &g)));
    if (s->exec->ops->fence != NULL)
        s->exec->ops->fence(s->exec);
    for (uint32_t p = 0; p < g.size; p++)
        for (uint32_t b = 0; b < g.nblocks; b++)
            ZIPCCL_TRY(keep_size(s, step, &g, p, b));
    return ZIPCCL_OK;
}

/* True if this run of an EXCHANGE moves the message to (or from) member 'p': of the resends of
 * point-to-point messages only those that overflowed. */
static bool moves(const struct zipccl_run_state *s, const struct zipccl_step *step,
                  const struct zipccl_group *g, uint32_t p, uint32_t b, bool out)
{
    const struct zipccl_slot_state *slot = &s->slots[step->dst.slot];

    if (step->raw_of == ZIPCCL_STEP_NONE || zipccl_step_shares_message(step))
        return true;
    return out ? slot->over_out[zipccl_index_out(step, g, p, b)]
               : slot->over_in[zipccl_index_in(g, p, b)];
}

/* The longest EXACT message of the step; every member has seen the sizes of all. */
static size_t longest(const struct zipccl_run_state *s, const struct zipccl_step *step,
                      const struct zipccl_group *g)
{
    const struct zipccl_slot_state *slot = &s->slots[step->src.slot];
    bool broadcast = step->pattern == ZIPCCL_PATTERN_BROADCAST;
    size_t most = 0;

    for (uint32_t p = 0; p < g->size; p++)
        for (uint32_t b = 0; b < g->nblocks; b++) {
            uint32_t index = zipccl_index_in(g, p, b);
            size_t nbytes = p == g->self ? slot->size_out[index] : slot->size_in[index];

            if ((broadcast && p != g->root) || zipccl_step_n_in(s, step, g, p, b) == 0)
                continue;
            most = nbytes > most ? nbytes : most;
        }
    /* On a ring they lie end to end, and kernels want them aligned. */
    if (s->exec->ops->run != NULL && step->lowering == ZIPCCL_LOWER_RING)
        most = (most + DEVICE_ALIGN - 1) / DEVICE_ALIGN * DEVICE_ALIGN;
    return most;
}

/*
 * Pieces of one message of 'n' elements of 'step', at most two; returns how many.
 *
 * exact  bytes of an EXACT one, in parts of its tail
 */
static unsigned pieces_of(const struct zipccl_run_state *s, const struct zipccl_step *step,
                          size_t n, int cls, size_t exact, struct piece *pieces)
{
    unsigned parts = step->part == 0 ? ZIPCCL_PART_TAIL : step->part, npieces = 0;
    struct zipccl_split_cut split = zipccl_step_split(s, step, n, cls);
    size_t front = split.head + split.early, tail = n * s->element;

    if (zipccl_step_codes(s, step, n, cls))
        tail =
            step->form == ZIPCCL_FORM_EXACT ? exact : zipccl_step_capacity(s, step, n, cls) - front;
    if ((parts & ZIPCCL_PART_HEAD) && split.head > 0)
        pieces[npieces++] = (struct piece){0, split.head};
    if ((parts & ZIPCCL_PART_EARLY) && split.early > 0)
        pieces[npieces++] = (struct piece){split.head, split.early};
    if ((parts & ZIPCCL_PART_TAIL) && tail > 0)
        pieces[npieces++] = (struct piece){front, tail};
    return npieces;
}

/* True if 'step' is the one in which the elements of its messages count as sent. */
static bool counts_elements(const struct zipccl_step *step)
{
    return step->raw_of == ZIPCCL_STEP_NONE &&
           (step->part == 0 || (step->part & ZIPCCL_PART_TAIL) != 0);
}

/* Whether each message has a size of its own; while an early part leaves it is still to be found. */
static bool has_own_size(const struct zipccl_step *step)
{
    return step->form == ZIPCCL_FORM_EXACT && !zipccl_step_shares_message(step) &&
           step->part != ZIPCCL_PART_EARLY;
}

static zipccl_status post_send(struct zipccl_run_state *s, const struct zipccl_step *step,
                               const struct zipccl_group *g, uint32_t p, uint32_t b, size_t exact)
{
    const struct zipccl_slot_state *tx = &s->slots[step->src.slot];
    bool shared = zipccl_step_shares_message(step);
    /* A message for all lies once, in the caller's place. */
    const char *from = zipccl_place_from(s, &step->src, g, shared ? g->self : p, b);
    size_t n = zipccl_step_n_out(s, step, g, p, b);
    struct piece pieces[3];
    unsigned npieces;

    if (has_own_size(step))
        exact = tx->size_out[zipccl_index_out(step, g, p, b)];
    npieces = pieces_of(s, step, n, zipccl_step_class_out(s, step, p), exact, pieces);
    for (unsigned i = 0; i < npieces; i++) {
        ZIPCCL_TRY(s->transport->ops->send(s->transport, zipccl_group_rank(g, p),
                                           from + pieces[i].at, pieces[i].nbytes));
        s->wire.wire_bytes += pieces[i].nbytes;
    }
    if (counts_elements(step))
        s->wire.raw_bytes += n * s->element;
    return ZIPCCL_OK;
}

static zipccl_status post_recv(struct zipccl_run_state *s, const struct zipccl_step *step,
                               const struct zipccl_group *g, uint32_t p, uint32_t b, size_t exact)
{
    const struct zipccl_slot_state *rx = &s->slots[step->dst.slot];
    char *to = zipccl_place_to(s, &step->dst, g, p, b);
    size_t n = zipccl_step_n_in(s, step, g, p, b);
    struct piece pieces[3];
    unsigned npieces;

    if (has_own_size(step))
        exact = rx->size_in[zipccl_index_in(g, p, b)];
    npieces = pieces_of(s, step, n, zipccl_step_class_in(s, step, p), exact, pieces);
    for (unsigned i = 0; i < npieces; i++)
        ZIPCCL_TRY(s->transport->ops->recv(s->transport, zipccl_group_rank(g, p), to + pieces[i].at,
                                           pieces[i].nbytes));
    return ZIPCCL_OK;
}

static zipccl_status post_message(struct zipccl_run_state *s, const struct zipccl_step *step,
                                  const struct zipccl_group *g, uint32_t p, uint32_t b,
                                  size_t shared_exact)
{
    if (zipccl_step_sends(s, step, g, p, b) && moves(s, step, g, p, b, true))
        ZIPCCL_TRY(post_send(s, step, g, p, b, shared_exact));
    if (zipccl_step_receives(s, step, g, p, b) && moves(s, step, g, p, b, false))
        return post_recv(s, step, g, p, b, shared_exact);
    return ZIPCCL_OK;
}

static zipccl_status post_messages(struct zipccl_run_state *s, const struct zipccl_step *step,
                                   const struct zipccl_group *g, size_t shared_exact)
{
    for (uint32_t i = 1; i <= g->size; i++) /* every member starts with another peer */
        for (uint32_t b = 0; b < g->nblocks; b++)
            ZIPCCL_TRY(post_message(s, step, g, (g->self + i) % g->size, b, shared_exact));
    return ZIPCCL_OK;
}

/* One call of the transport's ring collective; blocks arrive end to end. */
static zipccl_status exchange_ring(struct zipccl_run_state *s, const struct zipccl_step *step,
                                   const struct zipccl_group *g, struct piece piece)
{
    const struct zipccl_transport_ops *ops = s->transport->ops;
    const char *src = zipccl_place_from(s, &step->src, g, g->self, 0) + piece.at;
    char *dst = zipccl_place_to(s, &step->dst, g, 0, 0) + piece.at;
    size_t npeers = s->nranks - 1, nbytes = piece.nbytes;

    if (step->pattern == ZIPCCL_PATTERN_ALL_GATHER) {
        if (ops->all_gather == NULL)
            return ZIPCCL_ERR_UNSUPPORTED;
        ZIPCCL_TRY(ops->all_gather(s->transport, src, dst, nbytes, step->channels));
    } else {
        if (ops->broadcast == NULL)
            return ZIPCCL_ERR_UNSUPPORTED;
        if (s->rank == step->root) /* broadcast only reads it there */
            dst = (char *)(uintptr_t)src;
        else
            npeers = 0;
        ZIPCCL_TRY(ops->broadcast(s->transport, dst, nbytes, step->root, step->channels));
    }
    s->wire.wire_bytes += npeers * nbytes;
    if (counts_elements(step))
        s->wire.raw_bytes += npeers * step->n * s->element;
    return ZIPCCL_OK;
}

/* Fill the messages of an EXACT all-gather with zeros, up to the longest. */
static void pad(struct zipccl_run_state *s, const struct zipccl_step *step,
                const struct zipccl_group *g, size_t nbytes)
{
    for (uint32_t b = 0; b < g->nblocks; b++) {
        size_t have = s->slots[step->src.slot].size_out[zipccl_index_in(g, g->self, b)];
        size_t n = zipccl_step_n_out(s, step, g, g->self, b);
        struct zipccl_split_cut split = zipccl_step_split(s, step, n, (int)s->plan->capacity_class);

        have += split.head + split.early;
        if (n > 0)
            s->exec->ops->zero(s->exec, zipccl_place_to(s, &step->src, g, g->self, b) + have,
                               split.head + split.early + nbytes - have);
    }
}

static zipccl_status exchange(struct zipccl_run_state *s, const struct zipccl_step *step)
{
    struct zipccl_group g = zipccl_step_group(s, step);
    struct zipccl_slot_state *rx = &s->slots[step->dst.slot];
    bool ring = step->lowering == ZIPCCL_LOWER_RING;
    bool staged = step->dst.buf == ZIPCCL_BUF_RX;
    struct piece pieces[3] = {{0, 0}};
    size_t exact = 0;

    if (step->raw_of != ZIPCCL_STEP_NONE) {
        if (!s->armed[step->raw_of])
            return ZIPCCL_OK;
        s->wire.raw_resends++;
        staged = false; /* the messages stay where they were; raw elements have their own place */
    }
    if (step->form == ZIPCCL_FORM_EXACT && zipccl_step_shares_message(step) &&
        step->part != ZIPCCL_PART_EARLY) {
        exact = longest(s, step, &g);
        if (step->pattern == ZIPCCL_PATTERN_ALL_GATHER)
            pad(s, step, &g, exact);
    }
    if (ring) {
        /* A ring sends one piece; what is not in parts has none that leaves early. */
        if (pieces_of(s, step, step->n, (int)s->plan->capacity_class, exact, pieces) == 0)
            return ZIPCCL_OK;
        if (staged)
            rx->rx_stride = step->pattern == ZIPCCL_PATTERN_BROADCAST ? 0 : pieces[0].nbytes;
        return exchange_ring(s, step, &g, pieces[0]);
    }
    if (staged)
        rx->rx_stride = step->dst.peer_stride;
    ZIPCCL_TRY(s->transport->ops->group_begin(s->transport));
    return end_group(s, post_messages(s, step, &g, exact));
}

/* Check the header of a message from member 'p'; '*over' if it overflowed. */
static zipccl_status read_header(const struct zipccl_run_state *s, const struct zipccl_step *step,
                                 const struct zipccl_group *g, uint32_t p, uint32_t b, size_t n,
                                 bool *over)
{
    struct zipccl_place src = zipccl_place_arrived(s, step->src);
    int cls = zipccl_step_class_in(s, step, p), fit;
    const void *at = zipccl_place_from(s, &src, g, p, b);
    struct zipccl_message message;

    if (s->exec->ops->message_read != NULL)
        ZIPCCL_TRY(s->exec->ops->message_read(s->exec, (enum zipccl_dtype)s->plan->dtype, n, at,
                                              &message));
    else
        ZIPCCL_TRY(zipccl_message_read(at, zipccl_step_capacity(s, step, n, cls), &message));
    if (message.n != n || (uint32_t)message.dtype != s->plan->dtype)
        return ZIPCCL_ERR_CORRUPT;
    *over = message.flags & ZIPCCL_MESSAGE_OVERFLOW;
    if (step->pattern != ZIPCCL_PATTERN_PAIRS || s->run->recv_fit == NULL)
        return ZIPCCL_OK;
    fit = zipccl_step_fit(s, n, cls, (size_t)message.nbytes, *over);
    if (fit < s->run->recv_fit[p])
        s->run->recv_fit[p] = (int8_t)fit;
    return ZIPCCL_OK;
}

/* True in '*any' if the message from or to member 'p' overflowed. */
static zipccl_status resolve_one(struct zipccl_run_state *s, const struct zipccl_step *step,
                                 const struct zipccl_group *g, uint32_t p, uint32_t b, bool *any)
{
    struct zipccl_slot_state *slot = &s->slots[step->src.slot];
    uint32_t index = zipccl_index_in(g, p, b);
    size_t n = zipccl_step_n_in(s, step, g, p, b);

    slot->over_in[index] = false;
    if (zipccl_step_receives(s, step, g, p, b) &&
        zipccl_step_codes(s, step, n, zipccl_step_class_in(s, step, p)))
        ZIPCCL_TRY(read_header(s, step, g, p, b, n, &slot->over_in[index]));
    if (slot->over_in[index] ||
        (zipccl_step_sends(s, step, g, p, b) && slot->over_out[zipccl_index_out(step, g, p, b)]))
        *any = true;
    return ZIPCCL_OK;
}

static zipccl_status resolve(struct zipccl_run_state *s, const struct zipccl_step *step)
{
    struct zipccl_group g = zipccl_step_group(s, step);
    bool any = false;

    for (uint32_t p = 0; p < g.size; p++)
        for (uint32_t b = 0; b < g.nblocks; b++)
            ZIPCCL_TRY(resolve_one(s, step, &g, p, b, &any));
    s->armed[step - s->plan->steps] = any;
    return ZIPCCL_OK;
}

/* Elements that a native collective hands over for the peers of this rank, NCCL's bus factors. */
static uint64_t native_elements(const struct zipccl_run_state *s)
{
    const struct zipccl_plan *plan = s->plan;
    uint64_t count = plan->count, npeers = s->nranks - 1, total = 0;

    switch ((enum zipccl_op)plan->op) {
    case ZIPCCL_ALL_REDUCE: return 2 * count * npeers / s->nranks;
    case ZIPCCL_BROADCAST: return s->rank == plan->root ? count * npeers : 0;
    case ZIPCCL_ALLTOALLV:
    case ZIPCCL_SENDRECV:
        for (uint32_t p = 0; p < s->nranks; p++)
            total += p == s->rank ? 0 : s->run->send_counts[p];
        return total;
    default: return count * npeers;
    }
}

static zipccl_status native(struct zipccl_run_state *s, const struct zipccl_step *step)
{
    const struct zipccl_plan *plan = s->plan;
    struct zipccl_native_call call = {
        .op = (enum zipccl_op)plan->op,
        .dtype = (enum zipccl_dtype)plan->dtype,
        .redop = (enum zipccl_redop)plan->redop,
        .root = plan->root,
        .send = s->run->send,
        .recv = s->run->recv,
        .count = plan->count,
        .send_counts = s->run->send_counts,
        .send_displs = s->run->send_displs,
        .recv_counts = s->run->recv_counts,
        .recv_displs = s->run->recv_displs,
        .channels = step->channels,
    };

    if (s->transport->ops->native == NULL)
        return ZIPCCL_ERR_UNSUPPORTED;
    s->wire.raw_bytes += native_elements(s) * s->element;
    s->wire.wire_bytes += native_elements(s) * s->element;
    return s->transport->ops->native(s->transport, &call);
}

zipccl_status zipccl_run_wire_step(struct zipccl_run_state *s, const struct zipccl_step *step)
{
    switch (step->kind) {
    case ZIPCCL_STEP_SIZES: return sizes(s, step);
    case ZIPCCL_STEP_EXCHANGE: return exchange(s, step);
    case ZIPCCL_STEP_RESOLVE: return resolve(s, step);
    case ZIPCCL_STEP_NATIVE: return native(s, step);
    default: return ZIPCCL_ERR_ARG;
    }
}
