/*
 * import_kineto_align.c - what the call sequences of several ranks have in common
 *
 * Each member is aligned with the first by the longest common subsequence; what all of them share
 * with it is kept.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_kineto.h"

#include <stdlib.h>
#include <string.h>

/* Entries of the table of one pair of members. */
#define MAX_TABLE ((size_t)1 << 26)

static bool is_all_to_all(const struct kineto_call *c)
{
    return c->op == ZIPCCL_ALLTOALL || c->op == ZIPCCL_ALLTOALLV;
}

bool kineto_calls_agree(const struct kineto_call *a, const struct kineto_call *b)
{
    if (is_all_to_all(a) && is_all_to_all(b))
        return a->dtype == b->dtype;
    return a->op == b->op && a->dtype == b->dtype && a->count == b->count;
}

static const struct kineto_call *call_of(const struct kineto_member *m, size_t i)
{
    return &m->rank->calls[m->calls[i]];
}

/* Partner in 'b' of each call of 'a', plus 1; 0: none.  'table' has (a->n + 1) * (b->n + 1). */
static void align_two(const struct kineto_member *a, const struct kineto_member *b, uint32_t *table,
                      uint32_t *partner)
{
    size_t width = b->n + 1, i = 0, j = 0;

    memset(table, 0, (a->n + 1) * width * sizeof *table);
    for (i = a->n; i-- > 0;)
        for (j = b->n; j-- > 0;) {
            uint32_t down = table[(i + 1) * width + j], right = table[i * width + j + 1];
            uint32_t both = kineto_calls_agree(call_of(a, i), call_of(b, j))
                                ? table[(i + 1) * width + j + 1] + 1
                                : 0;

            table[i * width + j] = both >= down && both >= right ? both
                                   : down > right                ? down
                                                                 : right;
        }
    memset(partner, 0, a->n * sizeof *partner);
    for (i = j = 0; i < a->n && j < b->n;) {
        uint32_t here = table[i * width + j];

        if (kineto_calls_agree(call_of(a, i), call_of(b, j)) &&
            here == table[(i + 1) * width + j + 1] + 1)
            partner[i++] = (uint32_t)++j;
        else if (here == table[(i + 1) * width + j])
            i++;
        else
            j++;
    }
}

/* Clear what one member lacks, then mark for all members what is left. */
static void mark(const struct kineto_member *members, size_t nmembers, const uint32_t *partners,
                 unsigned char *kept)
{
    size_t n = members[0].n, at = n;

    memset(kept, 1, n);
    for (size_t k = 1; k < nmembers; k++)
        for (size_t i = 0; i < n; i++)
            kept[i] &= partners[(k - 1) * n + i] > 0;
    for (size_t k = 1; k < nmembers; k++) {
        for (size_t i = 0; i < n; i++)
            if (kept[i])
                kept[at + partners[(k - 1) * n + i] - 1] = 1;
        at += members[k].n;
    }
}

zipccl_status kineto_align(const struct kineto_import *k, const struct kineto_member *members,
                           size_t nmembers, unsigned char **kept, bool *aligned)
{
    struct zipccl_place at = {members[0].rank->path, 0, k->importer->error};
    size_t n = members[0].n, total = n, least = n, widest = 0, common = 0;
    uint32_t *table, *partners;

    *kept = NULL;
    *aligned = false;
    for (size_t m = 1; m < nmembers; m++) {
        total += members[m].n;
        least = members[m].n < least ? members[m].n : least;
        widest = members[m].n > widest ? members[m].n : widest;
    }
    if (n == 0 || (n + 1) > MAX_TABLE / (widest + 1) || n > MAX_TABLE / nmembers)
        return ZIPCCL_OK;
    table = malloc((n + 1) * (widest + 1) * sizeof *table);
    partners = malloc(nmembers * n * sizeof *partners);
    *kept = calloc(total + 1, 1);
    if (table != NULL && partners != NULL && *kept != NULL) {
        for (size_t m = 1; m < nmembers; m++)
            align_two(&members[0], &members[m], table, partners + (m - 1) * n);
        mark(members, nmembers, partners, *kept);
        for (size_t i = 0; i < n; i++)
            common += (*kept)[i];
        *aligned = common > 0 && 2 * common >= least;
        free(table);
        free(partners);
        return ZIPCCL_OK;
    }
    free(table);
    free(partners);
    return zipccl_place_nomem(&at);
}
