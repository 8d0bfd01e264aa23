/*
 * comm_load.c - start from what another run had learnt, on all ranks or on none
 *
 * Each rank reads and checks its own text.  Then all exchange digests: of what they have learnt of
 * even calls, and for each pair of what its two ends have.  Whatever fails anywhere is known to all
 * before the first of them changes anything.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/comm_state.h"

#include "core/regular_file.h"
#include "core/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FILE_BYTES ((size_t)64 << 20)

/* Words that ranks exchange: whether all is well here, of even calls, of pairs out, of pairs in. */
enum { WORD_READY, WORD_EVEN, WORD_PAIRS };

/* What is loaded, until all agree. */
struct loading {
    struct zipccl_state state;
    struct zipccl_even_class **even; /* [state.neven] */
    uint64_t *words;                 /* [2 + 2 * nranks] */
};

static zipccl_status fail(struct zipccl_comm *comm, const char *found, const char *expected)
{
    return zipccl_fail(&comm->error, ZIPCCL_ERR_INPUT, "what was learnt is of %s, not %s", found,
                       expected);
}

/* The state is of this rank of a communicator with these settings. */
static zipccl_status check_settings(struct zipccl_comm *comm, const struct zipccl_state *state)
{
    struct zipccl_comm_settings own;

    zipccl_comm_settings(comm, &own);
    if (state->rank != comm->transport->rank || state->nranks != comm->transport->nranks)
        return zipccl_fail(&comm->error, ZIPCCL_ERR_INPUT,
                           "what was learnt is of rank %u of %u, not of rank %u of %u", state->rank,
                           state->nranks, comm->transport->rank, comm->transport->nranks);
    if (state->agreement != own.agreement)
        return fail(comm, "another version of zipccl", "this one");
    if (state->options != own.options)
        return fail(comm, "a communicator with other options", "these");
    if (state->params != own.params)
        return fail(comm, "a communicator with other rates", "these");
    if (state->topology != own.topology)
        return fail(comm, "ranks on other nodes", "these");
    return ZIPCCL_OK;
}

static zipccl_status wrong_class(struct zipccl_comm *comm, enum zipccl_op op,
                                 enum zipccl_dtype dtype, const char *what)
{
    return zipccl_fail(&comm->error, ZIPCCL_ERR_INPUT, "%s of %s: %s", zipccl_op_name(op),
                       zipccl_dtype_name(dtype), what);
}

static zipccl_status prepare_even(struct zipccl_comm *comm, struct loading *l, size_t i)
{
    const struct zipccl_state_even *from = &l->state.even[i];
    struct zipccl_even_class *c = calloc(1, sizeof *c);

    if (c == NULL)
        return ZIPCCL_ERR_NOMEM;
    l->even[i] = c;
    c->op = from->op;
    c->dtype = from->dtype;
    c->count = from->count;
    c->state = from->state;
    c->state.narrowest = zipccl_class_narrowest(c->dtype, c->count);
    c->trials = from->trials;
    c->coded_ppm = from->coded_ppm;
    c->effort = from->effort;
    if (c->state.now > c->state.narrowest)
        return wrong_class(comm, c->op, c->dtype, "a class that messages of its count do not have");
    l->words[WORD_EVEN] =
        zipccl_comm_hash_u64(l->words[WORD_EVEN], (uint64_t)c->op << 8 | (uint64_t)c->dtype);
    l->words[WORD_EVEN] = zipccl_comm_hash_u64(l->words[WORD_EVEN], c->count);
    l->words[WORD_EVEN] = zipccl_comm_hash_u64(l->words[WORD_EVEN], zipccl_comm_learn_digest(c));
    return ZIPCCL_OK;
}

static zipccl_status prepare_pair(struct zipccl_comm *comm, struct loading *l, size_t i)
{
    struct zipccl_state_pair *from = &l->state.pairs[i];
    struct zipccl_call call = {.op = from->op, .dtype = from->dtype};
    const struct zipccl_pair_rule *rule;
    uint64_t *word = &l->words[WORD_PAIRS + (from->incoming ? l->state.nranks : 0) + from->peer];

    zipccl_comm_offers(comm, &call);
    ZIPCCL_TRY(zipccl_comm_settle_pairs(comm, &call, &rule));
    if (rule->classes == NULL)
        return wrong_class(comm, from->op, from->dtype, "pairs have no classes here");
    from->state.narrowest = zipccl_class_narrowest(from->dtype, rule->chunk_n);
    if (from->state.now > from->state.narrowest)
        return wrong_class(comm, from->op, from->dtype, "a class that its messages do not have");
    *word = zipccl_comm_hash_u64(*word, (uint64_t)from->op << 8 | (uint64_t)from->dtype);
    *word = zipccl_comm_hash_u64(*word, zipccl_class_digest(&from->state));
    return ZIPCCL_OK;
}

/* Read and check what this rank has; nothing of the communicator changes. */
static zipccl_status prepare(struct zipccl_comm *comm, const char *text, size_t nbytes,
                             struct loading *l)
{
    if (comm->stats.calls > 0 || comm->classes.n > 0)
        return zipccl_fail(&comm->error, ZIPCCL_ERR_ARG,
                           "what was learnt is to be loaded before the first call");
    if (comm->config.capacity_class != ZIPCCL_CLASS_LEARN)
        return zipccl_fail(&comm->error, ZIPCCL_ERR_ARG,
                           "with a fixed capacity_class nothing is learnt");
    ZIPCCL_TRY(zipccl_state_read(text, nbytes, &l->state, &comm->error));
    ZIPCCL_TRY(check_settings(comm, &l->state));
    l->even = calloc(l->state.neven + 1, sizeof *l->even);
    if (l->even == NULL)
        return ZIPCCL_ERR_NOMEM;
    l->words[WORD_EVEN] = ZIPCCL_COMM_HASH_START;
    for (size_t i = 0; i < l->state.neven; i++)
        ZIPCCL_TRY(prepare_even(comm, l, i));
    for (size_t i = 0; i < l->state.npairs; i++)
        ZIPCCL_TRY(prepare_pair(comm, l, i));
    return ZIPCCL_OK;
}

/* All ranks come to the same verdict, from all words. */
static zipccl_status judge(struct zipccl_comm *comm, const uint64_t *all, uint32_t nwords)
{
    uint32_t nranks = comm->transport->nranks, odd;

    for (uint32_t r = 0; r < nranks; r++)
        if (all[(size_t)r * nwords + WORD_READY] == 0)
            return zipccl_fail(&comm->error, ZIPCCL_ERR_MISMATCH,
                               "rank %u cannot load what it had learnt", r);
    odd = zipccl_comm_odd_rank(all, nranks, nwords, WORD_EVEN);
    if (odd < nranks)
        return zipccl_fail(&comm->error, ZIPCCL_ERR_MISMATCH,
                           "rank %u had learnt something else of calls with equal counts than the "
                           "other ranks",
                           odd);
    for (uint32_t r = 0; r < nranks; r++)
        for (uint32_t p = 0; p < nranks; p++)
            if (all[(size_t)r * nwords + WORD_PAIRS + p] !=
                all[(size_t)p * nwords + WORD_PAIRS + nranks + r])
                return zipccl_fail(&comm->error, ZIPCCL_ERR_MISMATCH,
                                   "ranks %u and %u had learnt different things of the messages "
                                   "from %u to %u",
                                   r, p, r, p);
    return ZIPCCL_OK;
}

/* Tell the others how it went here, and hear of them. */
static zipccl_status compare(struct zipccl_comm *comm, const struct loading *l, bool ready)
{
    uint32_t nranks = comm->transport->nranks, nwords = WORD_PAIRS + 2 * nranks;
    uint64_t *all = malloc((size_t)nranks * nwords * sizeof *all);
    zipccl_status status = ZIPCCL_ERR_NOMEM;

    l->words[WORD_READY] = ready;
    if (all == NULL)
        comm->transport->ops->abort(comm->transport);
    else
        status = zipccl_comm_gather_words(comm->transport, l->words, nwords, all);
    if (status != ZIPCCL_OK && ready)
        zipccl_transport_fail(comm->transport, status, "exchange of what was learnt", &comm->error);
    /* A rank that failed keeps its own reason. */
    if (status == ZIPCCL_OK && ready)
        status = judge(comm, all, nwords);
    free(all);
    return status;
}

/* Nothing can fail any more. */
static void take(struct zipccl_comm *comm, struct loading *l)
{
    for (size_t i = 0; i < l->state.neven; i++) {
        zipccl_comm_class_add(comm, l->even[i]);
        l->even[i] = NULL;
    }
    for (size_t i = 0; i < l->state.npairs; i++) {
        const struct zipccl_state_pair *from = &l->state.pairs[i];
        struct zipccl_pair_rule *rule = zipccl_comm_pair_rule(comm, from->op, from->dtype);

        *(from->incoming ? &rule->classes[from->peer].recv : &rule->classes[from->peer].send) =
            from->state;
    }
}

static zipccl_status load(struct zipccl_comm *comm, const char *text, size_t nbytes,
                          zipccl_status before)
{
    struct loading l = {{0}, NULL, NULL};
    zipccl_status status = before, compared;

    l.words = calloc(WORD_PAIRS + 2 * (size_t)comm->transport->nranks, sizeof *l.words);
    if (l.words == NULL) {
        comm->transport->ops->abort(comm->transport);
        return zipccl_fail(&comm->error, ZIPCCL_ERR_NOMEM, "no memory for what was learnt");
    }
    if (status == ZIPCCL_OK)
        status = prepare(comm, text, nbytes, &l);
    if (status == ZIPCCL_ERR_NOMEM)
        zipccl_fail(&comm->error, status, "no memory for what was learnt");
    compared = compare(comm, &l, status == ZIPCCL_OK);
    if (status == ZIPCCL_OK)
        status = compared;
    if (status == ZIPCCL_OK)
        take(comm, &l);
    for (size_t i = 0; l.even != NULL && i < l.state.neven; i++)
        free(l.even[i]);
    free(l.even);
    free(l.words);
    zipccl_state_release(&l.state);
    return status;
}

zipccl_status zipccl_comm_load_state(struct zipccl_comm *comm, const char *text, size_t nbytes)
{
    zipccl_status status = ZIPCCL_OK;

    if (comm == NULL)
        return ZIPCCL_ERR_ARG;
    comm->error.text[0] = '\0';
    if (text == NULL)
        status = zipccl_fail(&comm->error, ZIPCCL_ERR_ARG, "text must not be NULL");
    return load(comm, text, nbytes, status);
}

/* '*text' [*nbytes], which the caller frees. */
static zipccl_status read_file(struct zipccl_comm *comm, const char *path, char **text,
                               size_t *nbytes)
{
    size_t room = 1 << 16, n = 0;
    char *bytes = NULL;
    FILE *file;
    bool lost;

    if (path == NULL)
        return zipccl_fail(&comm->error, ZIPCCL_ERR_IO, "no path: %s", strerror(EINVAL));
    ZIPCCL_TRY(zipccl_open_regular(path, &file, &comm->error));
    do {
        char *more = realloc(bytes, 2 * room);

        if (more == NULL) {
            free(bytes);
            fclose(file);
            return ZIPCCL_ERR_NOMEM;
        }
        bytes = more;
        room *= 2;
        n += fread(bytes + n, 1, room - n, file);
    } while (n == room && room < MOST_FILE_BYTES);
    lost = ferror(file) != 0;
    fclose(file);
    if (lost || n == room) {
        free(bytes);
        return zipccl_fail(&comm->error, ZIPCCL_ERR_IO, "%s: %s", path,
                           lost ? "cannot be read" : "longer than 64 MiB");
    }
    *text = bytes;
    *nbytes = n;
    return ZIPCCL_OK;
}

zipccl_status zipccl_comm_load_state_file(struct zipccl_comm *comm, const char *path)
{
    struct zipccl_error reason;
    char *text = NULL;
    size_t nbytes = 0;
    zipccl_status status;

    if (comm == NULL)
        return ZIPCCL_ERR_ARG;
    comm->error.text[0] = '\0';
    status = read_file(comm, path, &text, &nbytes);
    status = load(comm, text, nbytes, status);
    reason = comm->error;
    if (status == ZIPCCL_ERR_INPUT && text != NULL)
        zipccl_fail(&comm->error, status, "%.200s: %.300s", path, reason.text);
    free(text);
    return status;
}
