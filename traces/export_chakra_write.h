/*
 * export_chakra_write.h - files of Chakra nodes, and how they come to their names
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_EXPORT_CHAKRA_WRITE_H
#define ZIPCCL_TRACES_EXPORT_CHAKRA_WRITE_H

#include "traces/trace.h"

/* A node; numbers below 0 and texts of NULL are left out. */
struct chakra_out {
    uint64_t id;
    const char *name;
    uint32_t type;
    int64_t ns;
    uint64_t *deps;
    size_t ndeps;
    uint32_t stream;
    int64_t comm, nbytes, src, dst, root;
    int32_t tag;
    const char *pg, *dtype;
    const char *tensor; /* type of the one input, as PyTorch says it; NULL: none */
    int64_t elements;   /* of it */
    double flops, hbm_bytes;
    bool communication; /* of which the time is all that is known */
};

struct chakra_writer;

/* Start the file of 'rank' under a temporary name. */
zipccl_status chakra_writer_open(const char *prefix, uint32_t rank, const char *generator,
                                 struct chakra_writer **out, struct zipccl_error *error);
zipccl_status chakra_write_node(struct chakra_writer *w, const struct chakra_out *node);
/* Close it and return 'status', or what closing failed with. */
zipccl_status chakra_writer_close(struct chakra_writer *w, zipccl_status status);

/* PREFIX.comm_group.json under its temporary name: groups numbered from 1, set by set. */
zipccl_status chakra_write_groups(const char *prefix, const struct zipccl_trace_header *header,
                                  struct zipccl_error *error);

/* Refuse names that files cannot get, as a folder has one of them: ZIPCCL_ERR_IO. */
zipccl_status chakra_check_targets(const char *prefix, uint32_t nranks, struct zipccl_error *error);

/* Give all files their names, or with a 'status' of failure remove them; returns that. */
zipccl_status chakra_rename_all(const char *prefix, uint32_t nranks, zipccl_status status,
                                struct zipccl_error *error);

#endif
