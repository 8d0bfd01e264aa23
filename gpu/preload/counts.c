/*
 * counts.c - what was called on a communicator, counted
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/counts.h"

#include <stdlib.h>
#include <string.h>

static const char *const reason_texts[ZIPCCL_SHIM_NUM_REASONS] = {
    [ZIPCCL_SHIM_TAKEN] = "given to the back end",
    [ZIPCCL_SHIM_OBSERVING] = "observing",
    [ZIPCCL_SHIM_SMALL] = "smaller than ZIPCCL_MIN_BYTES",
    [ZIPCCL_SHIM_TYPE] = "type that is not compressed",
    [ZIPCCL_SHIM_REDOP] = "reduction that is not sum or avg",
    [ZIPCCL_SHIM_OP] = "op not selected",
    [ZIPCCL_SHIM_GROUP] = "process group not selected",
    [ZIPCCL_SHIM_ONE_RANK] = "communicator of one rank",
    [ZIPCCL_SHIM_CAPTURED] = "captured into a graph",
    [ZIPCCL_SHIM_WINDOW] = "registered windows",
    [ZIPCCL_SHIM_NONBLOCKING] = "non-blocking communicator",
    [ZIPCCL_SHIM_ABORTED] = "aborted communicator",
    [ZIPCCL_SHIM_DIFFER] = "settings differ between ranks",
    [ZIPCCL_SHIM_STRANGER] = "rank 0 runs without zipccl",
    [ZIPCCL_SHIM_UNKNOWN] = "unknown communicator",
    [ZIPCCL_SHIM_SWITCHED_OFF] = "switched off by the control file",
    [ZIPCCL_SHIM_DISABLED] = "disabled after a mismatch",
    [ZIPCCL_SHIM_THREAD] = "several ranks in one thread",
    [ZIPCCL_SHIM_BACK_END] = "no back end",
};

const char *zipccl_shim_reason_text(enum zipccl_shim_reason reason)
{
    return reason_texts[reason];
}

/* Room for 'n' more kinds. */
static bool make_room(struct zipccl_shim_counts *counts, size_t n)
{
    struct zipccl_shim_kind *grown;

    if (counts->room - counts->nkinds >= n)
        return true;
    grown = realloc(counts->kinds, (counts->nkinds + n + 32) * sizeof *grown);
    if (grown == NULL)
        return false;
    counts->kinds = grown;
    counts->room = counts->nkinds + n + 32;
    return true;
}

static struct zipccl_shim_kind *kind_of(struct zipccl_shim_counts *counts, uint8_t op,
                                        uint8_t dtype, uint8_t size_class)
{
    struct zipccl_shim_kind *kind;

    for (size_t i = 0; i < counts->nkinds; i++) {
        kind = &counts->kinds[i];
        if (kind->op == op && kind->dtype == dtype && kind->size_class == size_class)
            return kind;
    }
    if (!make_room(counts, 1))
        return NULL;
    kind = &counts->kinds[counts->nkinds++];
    memset(kind, 0, sizeof *kind);
    kind->op = op;
    kind->dtype = dtype;
    kind->size_class = size_class;
    return kind;
}

void zipccl_shim_count(struct zipccl_shim_comm *comm, enum zipccl_shim_op op,
                       enum zipccl_dtype dtype, size_t elements, size_t bytes,
                       enum zipccl_shim_reason reason)
{
    struct zipccl_shim_kind *kind;
    uint8_t size_class = bytes > 0 ? (uint8_t)(63 - __builtin_clzll(bytes)) : 0;

    pthread_mutex_lock(&comm->lock);
    kind = kind_of(&comm->counts, (uint8_t)op, (uint8_t)dtype, size_class);
    if (kind != NULL) {
        kind->calls++;
        kind->elements += elements;
        kind->bytes += bytes;
    }
    comm->counts.reasons[op][reason]++;
    pthread_mutex_unlock(&comm->lock);
}

void zipccl_shim_count_check(struct zipccl_shim_comm *comm, enum zipccl_shim_op op,
                             enum zipccl_shim_verdict verdict)
{
    pthread_mutex_lock(&comm->lock);
    comm->counts.checks[op][verdict]++;
    pthread_mutex_unlock(&comm->lock);
}

void zipccl_shim_coded_add(struct zipccl_gpu_op_stats *sum, const struct zipccl_gpu_op_stats *more)
{
    sum->calls += more->calls;
    sum->raw_bytes += more->raw_bytes;
    sum->wire_bytes += more->wire_bytes;
    sum->coded_raw_bytes += more->coded_raw_bytes;
    sum->coded_wire_bytes += more->coded_wire_bytes;
    sum->overflows += more->overflows;
    sum->raw_resends += more->raw_resends;
    for (int r = 0; r < ZIPCCL_GPU_NUM_REASONS; r++)
        sum->reasons[r] += more->reasons[r];
}

bool zipccl_shim_counts_add(struct zipccl_shim_counts *sum, const struct zipccl_shim_counts *more)
{
    if (!make_room(sum, more->nkinds))
        return false;
    for (size_t i = 0; i < more->nkinds; i++) {
        const struct zipccl_shim_kind *k = &more->kinds[i];
        struct zipccl_shim_kind *into = kind_of(sum, k->op, k->dtype, k->size_class);

        into->calls += k->calls;
        into->elements += k->elements;
        into->bytes += k->bytes;
    }
    for (int op = 0; op < ZIPCCL_SHIM_NUM_OPS; op++) {
        for (int v = 0; v < ZIPCCL_SHIM_NUM_VERDICTS; v++)
            sum->checks[op][v] += more->checks[op][v];
        for (int r = 0; r < ZIPCCL_SHIM_NUM_REASONS; r++)
            sum->reasons[op][r] += more->reasons[op][r];
    }
    for (int op = 0; op < ZIPCCL_NUM_OPS; op++)
        zipccl_shim_coded_add(&sum->coded[op], &more->coded[op]);
    return true;
}
