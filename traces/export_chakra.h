/*
 * export_chakra.h - a trace as Chakra execution traces, one file a rank
 *
 * What ASTRA-sim and its kin read: PREFIX.RANK.et and PREFIX.comm_group.json.  Loops and repeats are
 * written out.  import_chakra.c reads the files back; traces/IMPORT.md tells what is lost.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_EXPORT_CHAKRA_H
#define ZIPCCL_TRACES_EXPORT_CHAKRA_H

#include "traces/trace.h"

/* More nodes than this, of all ranks together, are refused. */
#define ZIPCCL_EXPORT_MAX_NODES ((uint64_t)200000000)

struct zipccl_export_report {
    uint64_t nfiles, nnodes;
    uint64_t nuneven;  /* uneven all-to-alls, of which a file has what its rank sends in all */
    uint64_t nsamples; /* calls with samples, which the files cannot name */
};

/*
 * Write the files of all ranks, which appear only when all are complete.
 *
 * Memory: of one rank, a little an instance.  Cost: all instances, once a rank.
 * ZIPCCL_ERR_INPUT for more nodes than the limit; ZIPCCL_ERR_IO, with nothing left behind.
 */
zipccl_status zipccl_export_chakra(const struct zipccl_trace *trace, const char *prefix,
                                   struct zipccl_export_report *report, struct zipccl_error *error);

#endif
