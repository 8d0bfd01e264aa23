/*
 * plan_state.c - learnt state for 'zipccl plan': read, and the call found in it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/plan/plan_state.h"

#include "core/regular_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FILE_BYTES ((size_t)64 << 20)

/* '*text' [*nbytes], which the caller frees. */
static zipccl_status read_file(const char *path, char **text, size_t *nbytes,
                               struct zipccl_error *error)
{
    size_t room = 1 << 16, n = 0;
    char *bytes = NULL, *more;
    FILE *file;
    bool lost;

    ZIPCCL_TRY(zipccl_open_regular(path, &file, error));
    do {
        more = realloc(bytes, room *= 2);
        if (more == NULL)
            break;
        bytes = more;
        n += fread(bytes + n, 1, room - n, file);
    } while (n == room && room < MOST_FILE_BYTES);
    lost = ferror(file) != 0;
    fclose(file);
    *text = bytes;
    *nbytes = n;
    if (more == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%.300s: out of memory", path);
    if (lost || n == room)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%.300s: %s", path,
                           lost ? "cannot be read" : "longer than 64 MiB");
    return ZIPCCL_OK;
}

static void find_call(struct zipccl_plan_learnt *l, enum zipccl_op op, enum zipccl_dtype dtype,
                      size_t count)
{
    for (size_t i = 0; i < l->state.neven; i++) {
        const struct zipccl_state_even *even = &l->state.even[i];

        if (even->op == op && even->dtype == dtype && even->count == count)
            l->call = even;
    }
    for (size_t i = 0; i < l->state.npairs; i++) {
        const struct zipccl_state_pair *pair = &l->state.pairs[i];

        if (pair->op != op || pair->dtype != dtype)
            continue;
        l->npairs++;
        l->pairs_in[pair->state.now - ZIPCCL_NO_CLASS]++;
    }
}

zipccl_status zipccl_plan_learnt_read(const char *path, enum zipccl_op op, enum zipccl_dtype dtype,
                                      size_t count, uint32_t nranks, struct zipccl_plan_learnt *out,
                                      struct zipccl_error *error)
{
    struct zipccl_error why = {""};
    char *text = NULL;
    size_t nbytes = 0;
    zipccl_status status;

    *out = (struct zipccl_plan_learnt){.path = path};
    status = read_file(path, &text, &nbytes, error);
    if (status == ZIPCCL_OK) {
        status = zipccl_state_read(text, nbytes, &out->state, &why);
        if (status != ZIPCCL_OK)
            zipccl_fail(error, status, "%.300s: %.180s", path,
                        status == ZIPCCL_ERR_NOMEM ? "out of memory" : why.text);
    }
    free(text);
    ZIPCCL_TRY(status);
    if (out->state.nranks != nranks)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%.300s: line 2: what was learnt is of %u ranks, expected %u, as the "
                           "call has",
                           path, out->state.nranks, nranks);
    find_call(out, op, dtype, count);
    return ZIPCCL_OK;
}

void zipccl_plan_learnt_release(struct zipccl_plan_learnt *learnt)
{
    zipccl_state_release(&learnt->state);
}
