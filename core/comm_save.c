/*
 * comm_save.c - write what a communicator has learnt; stop learning
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/comm_state.h"

#include "core/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void collect_even(const struct zipccl_comm *comm, struct zipccl_state *state)
{
    for (const struct zipccl_cache_node *node = comm->classes.oldest; node != NULL;
         node = node->newer) {
        const struct zipccl_even_class *c = (const struct zipccl_even_class *)node;

        if (c->state.decided > 0)
            state->even[state->neven++] = (struct zipccl_state_even){.op = c->op,
                                                                     .dtype = c->dtype,
                                                                     .count = c->count,
                                                                     .state = c->state,
                                                                     .trials = c->trials,
                                                                     .coded_ppm = c->coded_ppm,
                                                                     .effort = c->effort};
    }
}

static void collect_pairs(const struct zipccl_comm *comm, enum zipccl_op op,
                          enum zipccl_dtype dtype, struct zipccl_state *state)
{
    const struct zipccl_pair_rule *rule = &comm->pair_rules[op == ZIPCCL_SENDRECV][dtype];

    for (uint32_t i = 0; rule->classes != NULL && i < 2 * comm->transport->nranks; i++) {
        struct zipccl_state_pair pair = {
            .op = op, .dtype = dtype, .peer = i / 2, .incoming = i % 2 == 1};

        pair.state = pair.incoming ? rule->classes[i / 2].recv : rule->classes[i / 2].send;
        if (pair.state.decided > 0)
            state->pairs[state->npairs++] = pair;
    }
}

/* Copy what there is; the caller releases 'out' whatever the status. */
static zipccl_status collect(const struct zipccl_comm *comm, struct zipccl_state *out)
{
    static const enum zipccl_op ops[] = {ZIPCCL_ALLTOALLV, ZIPCCL_SENDRECV};
    size_t most_pairs = (size_t)2 * ZIPCCL_NUM_DTYPES * 2 * comm->transport->nranks;
    struct zipccl_comm_settings settings;

    zipccl_comm_settings(comm, &settings);
    *out = (struct zipccl_state){.rank = comm->transport->rank,
                                 .nranks = comm->transport->nranks,
                                 .agreement = settings.agreement,
                                 .options = settings.options,
                                 .params = settings.params,
                                 .topology = settings.topology,
                                 .even = calloc(comm->classes.n + 1, sizeof *out->even),
                                 .pairs = calloc(most_pairs, sizeof *out->pairs)};
    if (out->even == NULL || out->pairs == NULL)
        return ZIPCCL_ERR_NOMEM;
    collect_even(comm, out);
    for (unsigned k = 0; k < 2; k++)
        for (int dtype = 0; dtype < ZIPCCL_NUM_DTYPES; dtype++)
            collect_pairs(comm, ops[k], (enum zipccl_dtype)dtype, out);
    return ZIPCCL_OK;
}

zipccl_status zipccl_comm_save_state(struct zipccl_comm *comm, char **text, size_t *nbytes)
{
    struct zipccl_state state;
    zipccl_status status;

    if (comm == NULL)
        return ZIPCCL_ERR_ARG;
    comm->error.text[0] = '\0';
    if (text == NULL || nbytes == NULL)
        return zipccl_fail(&comm->error, ZIPCCL_ERR_ARG, "text and nbytes must not be NULL");
    status = collect(comm, &state);
    if (status == ZIPCCL_OK)
        status = zipccl_state_write(&state, text, nbytes);
    zipccl_state_release(&state);
    return status == ZIPCCL_OK
               ? status
               : zipccl_fail(&comm->error, status, "no memory for what has been learnt");
}

/* Write a new file; '*reason' is errno if it fails. */
static bool write_file(const char *path, const char *text, size_t nbytes, int *reason)
{
    FILE *file = fopen(path, "w");
    bool ok;

    if (file == NULL) {
        *reason = errno;
        return false;
    }
    ok = fwrite(text, 1, nbytes, file) == nbytes;
    *reason = errno;
    if (fclose(file) != 0) {
        *reason = ok ? errno : *reason;
        ok = false;
    }
    if (!ok)
        remove(path);
    return ok;
}

zipccl_status zipccl_comm_save_state_file(struct zipccl_comm *comm, const char *path)
{
    char *text, *partial;
    size_t nbytes, room;
    int reason = ENOMEM;
    bool ok;

    ZIPCCL_TRY(zipccl_comm_save_state(comm, &text, &nbytes));
    if (path == NULL) {
        free(text);
        return zipccl_fail(&comm->error, ZIPCCL_ERR_ARG, "path must not be NULL");
    }
    room = strlen(path) + 32;
    partial = malloc(room);
    if (partial != NULL)
        snprintf(partial, room, "%s.%u.partial", path, comm->transport->rank);
    ok = partial != NULL && write_file(partial, text, nbytes, &reason);
    if (ok && rename(partial, path) != 0) {
        reason = errno;
        remove(partial);
        ok = false;
    }
    free(partial);
    free(text);
    return ok ? ZIPCCL_OK
              : zipccl_fail(&comm->error, ZIPCCL_ERR_IO, "%s: %s", path, strerror(reason));
}

zipccl_status zipccl_comm_freeze(struct zipccl_comm *comm)
{
    uint64_t digest = ZIPCCL_COMM_HASH_START, *all;
    zipccl_status status = ZIPCCL_ERR_NOMEM;
    uint32_t odd;

    if (comm == NULL)
        return ZIPCCL_ERR_ARG;
    comm->error.text[0] = '\0';
    for (const struct zipccl_cache_node *node = comm->classes.newest; node != NULL;
         node = node->older)
        digest = zipccl_comm_hash_u64(
            digest, zipccl_comm_learn_digest((const struct zipccl_even_class *)node));
    all = malloc(comm->transport->nranks * sizeof *all);
    if (all == NULL)
        comm->transport->ops->abort(comm->transport);
    else
        status = zipccl_comm_gather_words(comm->transport, &digest, 1, all);
    odd = status == ZIPCCL_OK ? zipccl_comm_odd_rank(all, comm->transport->nranks, 1, 0) : 0;
    free(all);
    if (status != ZIPCCL_OK)
        return zipccl_transport_fail(comm->transport, status, "freeze", &comm->error);
    if (odd < comm->transport->nranks)
        return zipccl_fail(&comm->error, ZIPCCL_ERR_MISMATCH,
                           "rank %u has learnt something else than the other ranks", odd);
    comm->config.learning = ZIPCCL_LEARN_NOTHING;
    comm->times = false;
    return ZIPCCL_OK;
}
