/*
 * test_check.c - every rule of the check transport is enforced, and right use passes
 *
 * Ranks are threads over the memory transport.  Each case breaks one rule on one rank; the other
 * ranks use the transport as they should, and none may be left waiting.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/coll_world.h"
#include "core/transport_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NRANKS 2u
#define NBYTES 96u

struct misuse;

struct job {
    const struct misuse *misuse;
    struct zipccl_transport *t[NRANKS];
    zipccl_status status[NRANKS];
    unsigned char *out[NRANKS], *in[NRANKS];
};

/* One rank's part; rank 0 is the one that errs. */
typedef zipccl_status play_fn(struct job *job, uint32_t rank, struct zipccl_transport *t);

struct misuse {
    const char *rule, *what;
    play_fn *play;
    const char *text; /* part of the error's text; NULL: none is expected */
    bool at_close;    /* found by zipccl_transport_check_close() */
    bool undestroyed; /* rank 0's handle */
};

/* Swap a message with the other rank; 'touch' is what happens between post and group_end. */
static zipccl_status swap_messages(struct job *job, uint32_t rank, struct zipccl_transport *t,
                                   size_t sent, void (*touch)(struct job *job))
{
    uint32_t peer = 1 - rank;

    ZIPCCL_TRY(t->ops->group_begin(t));
    ZIPCCL_TRY(t->ops->send(t, peer, job->out[rank], sent));
    ZIPCCL_TRY(t->ops->recv(t, peer, job->in[rank], NBYTES));
    if (rank == 0 && touch != NULL)
        touch(job);
    return t->ops->group_end(t);
}

static zipccl_status play_right(struct job *job, uint32_t rank, struct zipccl_transport *t)
{
    ZIPCCL_TRY(swap_messages(job, rank, t, NBYTES, NULL));
    if (job->in[rank][0] != 'a' + 1 - rank)
        return ZIPCCL_ERR_INTERNAL;
    ZIPCCL_TRY(t->ops->all_gather(t, job->out[rank], job->in[rank], NBYTES / 2, 1));
    ZIPCCL_TRY(t->ops->broadcast(t, job->in[rank], NBYTES, 1, 1));
    return swap_messages(job, rank, t, NBYTES, NULL);
}

static zipccl_status play_count(struct job *job, uint32_t rank, struct zipccl_transport *t)
{
    return swap_messages(job, rank, t, rank == 0 ? NBYTES - 1 : NBYTES, NULL);
}

static zipccl_status play_outside(struct job *job, uint32_t rank, struct zipccl_transport *t)
{
    if (rank == 0)
        return t->ops->send(t, 1, job->out[0], NBYTES);
    return swap_messages(job, rank, t, NBYTES, NULL);
}

static zipccl_status play_end_alone(struct job *job, uint32_t rank, struct zipccl_transport *t)
{
    if (rank == 0)
        return t->ops->group_end(t);
    return swap_messages(job, rank, t, NBYTES, NULL);
}

static zipccl_status play_collective_inside(struct job *job, uint32_t rank,
                                            struct zipccl_transport *t)
{
    zipccl_status status;

    if (rank == 1)
        return t->ops->all_gather(t, job->out[rank], job->in[rank], NBYTES / 2, 1);
    ZIPCCL_TRY(t->ops->group_begin(t));
    status = t->ops->all_gather(t, job->out[rank], job->in[rank], NBYTES / 2, 1);
    (void)t->ops->group_end(t);
    return status;
}

static zipccl_status play_order(struct job *job, uint32_t rank, struct zipccl_transport *t)
{
    if (rank == 0)
        return t->ops->broadcast(t, job->in[0], NBYTES / 2, 0, 1);
    return t->ops->all_gather(t, job->out[1], job->in[1], NBYTES / 2, 1);
}

static void write_sent(struct job *job)
{
    job->out[0][NBYTES - 1] ^= 1;
}

static zipccl_status play_write_sent(struct job *job, uint32_t rank, struct zipccl_transport *t)
{
    return swap_messages(job, rank, t, NBYTES, write_sent);
}

static void write_received(struct job *job)
{
    job->in[0][7] = 0;
}

static zipccl_status play_write_received(struct job *job, uint32_t rank, struct zipccl_transport *t)
{
    return swap_messages(job, rank, t, NBYTES, write_received);
}

/* Whoever reads early finds neither the old bytes nor the new ones. */
static zipccl_status play_read_early(struct job *job, uint32_t rank, struct zipccl_transport *t)
{
    unsigned char old = job->in[rank][3], early;

    ZIPCCL_TRY(t->ops->group_begin(t));
    ZIPCCL_TRY(t->ops->send(t, 1 - rank, job->out[rank], NBYTES));
    ZIPCCL_TRY(t->ops->recv(t, 1 - rank, job->in[rank], NBYTES));
    early = job->in[rank][3];
    ZIPCCL_TRY(t->ops->group_end(t));
    return early != old && early != job->in[rank][3] ? ZIPCCL_OK : ZIPCCL_ERR_INTERNAL;
}

static zipccl_status play_overlap(struct job *job, uint32_t rank, struct zipccl_transport *t)
{
    zipccl_status status;

    if (rank == 1)
        return swap_messages(job, rank, t, NBYTES, NULL);
    ZIPCCL_TRY(t->ops->group_begin(t));
    ZIPCCL_TRY(t->ops->send(t, 1, job->out[0], NBYTES));
    status = t->ops->recv(t, 1, job->out[0] + NBYTES - 1, NBYTES);
    (void)t->ops->group_end(t);
    return status;
}

/* A message of no bytes that nobody receives: the inner transport would wait for ever for more. */
static zipccl_status play_unmatched(struct job *job, uint32_t rank, struct zipccl_transport *t)
{
    if (rank == 1)
        return ZIPCCL_OK;
    ZIPCCL_TRY(t->ops->group_begin(t));
    return t->ops->send(t, 1, job->out[0], NBYTES); /* the group is never ended */
}

static zipccl_status play_alone(struct job *job, uint32_t rank, struct zipccl_transport *t)
{
    struct zipccl_native_call call = {.op = ZIPCCL_BROADCAST,
                                      .dtype = ZIPCCL_UINT8,
                                      .send = job->out[rank],
                                      .recv = job->in[rank],
                                      .count = 0,
                                      .channels = 1};

    /* Of no bytes, so that the inner transport does not wait for the other rank. */
    return rank == 0 ? t->ops->native(t, &call) : ZIPCCL_OK;
}

static zipccl_status play_nothing(struct job *job, uint32_t rank, struct zipccl_transport *t)
{
    (void)job;
    (void)rank;
    (void)t;
    return ZIPCCL_OK;
}

static const struct misuse misuses[] = {
    {"", "right use", play_right, NULL, false, false},
    {"", "an early reader finds rubbish", play_read_early, NULL, false, false},
    {"count", "one byte less than is received", play_count,
     "rank 0 sends 95 bytes to rank 1, which receives 96", false, false},
    {"group", "a send outside a group", play_outside, "rank 0 sends to rank 1 outside", false,
     false},
    {"group", "an end without a begin", play_end_alone, "rank 0 ends a group", false, false},
    {"group", "a collective inside a group", play_collective_inside,
     "rank 0 calls a collective inside", false, false},
    {"order", "another collective", play_order, "collective 0 is", false, false},
    {"lifetime", "a posted send buffer is written", play_write_sent,
     "rank 0: the buffer sent to rank 1 has changed", false, false},
    {"lifetime", "a posted receive buffer is written", play_write_received,
     "rank 0: the buffer for rank 1's message was written before group_end", false, false},
    {"lifetime", "a receive over a send", play_overlap,
     "rank 0 receives from rank 1 in a buffer that it sends to rank 1", false, false},
    {"leak", "a group that is never ended", play_unmatched,
     "rank 0 is destroyed inside a group with 1 messages", true, false},
    {"leak", "a collective that one rank skips", play_alone, "was called by 1 of 2 ranks", true,
     false},
    {"leak", "a handle that is not destroyed", play_nothing, "1 of 2 handles are not destroyed",
     true, true},
};

static bool play(void *context, uint32_t rank)
{
    struct job *job = context;

    job->status[rank] = job->misuse->play(job, rank, job->t[rank]);
    /* A rank that has failed leaves; nobody may wait for it. */
    if (job->status[rank] != ZIPCCL_OK)
        job->t[rank]->ops->abort(job->t[rank]);
    return true;
}

static bool said(const struct misuse *m, zipccl_status status, const struct zipccl_error *error)
{
    char rule[32];

    if (m->text == NULL)
        return status == ZIPCCL_OK;
    snprintf(rule, sizeof rule, "rule '%s': ", m->rule);
    return status != ZIPCCL_OK && strstr(error->text, rule) != NULL &&
           strstr(error->text, m->text) != NULL;
}

static bool run_misuse(const struct misuse *m)
{
    struct zipccl_check_hub *hub;
    struct zipccl_error during = {""}, closing = {""};
    struct job job = {.misuse = m};
    zipccl_status first, last;
    struct world w;
    bool ok;

    world_open_even(&w, 1, NRANKS);
    if (zipccl_transport_check_create(w.t, NRANKS, &hub, job.t) != ZIPCCL_OK)
        abort();
    for (uint32_t r = 0; r < NRANKS; r++) {
        job.out[r] = malloc(2 * NBYTES);
        job.in[r] = malloc(2 * NBYTES);
        if (job.out[r] == NULL || job.in[r] == NULL)
            abort();
        memset(job.out[r], 'a' + (int)r, 2 * NBYTES);
        memset(job.in[r], 'z', 2 * NBYTES);
    }
    world_run(&w, play, &job);
    first = zipccl_transport_check_error(hub, &during);
    for (uint32_t r = m->undestroyed ? 1 : 0; r < NRANKS; r++)
        job.t[r]->ops->destroy(job.t[r]);
    last = zipccl_transport_check_close(hub, &closing);
    ok = said(m, last, &closing) && (m->at_close ? first == ZIPCCL_OK : said(m, first, &during));
    /* The rank that breaks a rule while it runs is told so. */
    if (m->text == NULL || m->at_close)
        ok = ok && job.status[0] == ZIPCCL_OK && job.status[1] == ZIPCCL_OK;
    else
        ok = ok && (job.status[0] != ZIPCCL_OK || strcmp(m->rule, "count") == 0 ||
                    strcmp(m->rule, "order") == 0);
    printf("%-9s %-36s %s%s\n", m->rule, m->what, ok ? "" : "FAILED: ", closing.text);
    for (uint32_t r = 0; r < NRANKS; r++) {
        free(job.out[r]);
        free(job.in[r]);
    }
    world_close(&w);
    return ok;
}

/* Two ranks swap messages, then gather on a ring: what was counted for each pair. */
static bool test_bytes(void)
{
    static const struct misuse right = {"", "", play_right, NULL, false, false};
    struct zipccl_check_hub *hub;
    struct job job = {.misuse = &right};
    unsigned char bytes[4][2 * NBYTES] = {"b", "a"};
    uint64_t got[2];
    struct world w;

    world_open_even(&w, 1, NRANKS);
    if (zipccl_transport_check_create(w.t, NRANKS, &hub, job.t) != ZIPCCL_OK)
        abort();
    for (uint32_t r = 0; r < NRANKS; r++) {
        memset(bytes[r], 'a' + (int)r, sizeof bytes[r]);
        job.out[r] = bytes[r];
        job.in[r] = bytes[2 + r];
    }
    world_run(&w, play, &job);
    for (uint32_t r = 0; r < NRANKS; r++)
        got[r] = zipccl_transport_check_bytes(hub, r, 1 - r);
    for (uint32_t r = 0; r < NRANKS; r++)
        job.t[r]->ops->destroy(job.t[r]);
    zipccl_transport_check_close(hub, NULL);
    world_close(&w);
    printf("bytes 0 -> 1: %llu, 1 -> 0: %llu\n", (unsigned long long)got[0],
           (unsigned long long)got[1]);
    /* Two messages and half a block of the gather; the broadcast has rank 1 as root. */
    return got[0] == 2 * NBYTES + NBYTES / 2 && got[1] == 3 * NBYTES + NBYTES / 2;
}

/* Only one of two ranks is checked, as where each rank is a process: its own rules still hold. */
static bool test_one_rank(void)
{
    static const struct misuse right = {"", "", play_right, NULL, false, false};
    static const struct misuse wrong = {"", "", play_write_sent, NULL, false, false};
    bool ok = true;

    for (unsigned k = 0; k < 2; k++) {
        unsigned char bytes[4][2 * NBYTES];
        struct job job = {.misuse = k == 0 ? &right : &wrong};
        struct zipccl_check_hub *hub;
        struct zipccl_error error = {""};
        struct zipccl_transport *checked;
        zipccl_status status;
        struct world w;

        world_open_even(&w, 1, NRANKS);
        if (zipccl_transport_check_create(w.t, 1, &hub, &checked) != ZIPCCL_OK)
            abort();
        job.t[0] = checked;
        job.t[1] = w.t[1];
        for (uint32_t r = 0; r < NRANKS; r++) {
            memset(bytes[r], 'a' + (int)r, sizeof bytes[r]);
            memset(bytes[2 + r], 'z', sizeof bytes[2 + r]);
            job.out[r] = bytes[r];
            job.in[r] = bytes[2 + r];
        }
        world_run(&w, play, &job);
        checked->ops->destroy(checked);
        status = zipccl_transport_check_close(hub, &error);
        ok = ok && (k == 0 ? status == ZIPCCL_OK : strstr(error.text, "has changed") != NULL);
        world_close(&w);
    }
    printf("one checked rank of two: %s\n", ok ? "ok" : "FAILED");
    return ok;
}

int main(void)
{
    bool ok = test_bytes();

    ok = test_one_rank() && ok;

    for (size_t i = 0; i < sizeof misuses / sizeof *misuses; i++)
        ok = run_misuse(&misuses[i]) && ok;
    return ok ? 0 : 1;
}
