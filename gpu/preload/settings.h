/*
 * settings.h - what the ZIPCCL_ variables of the environment say; docs/preload.md has the table
 *
 * Read once, when the library is loaded.  A value that cannot be read turns the library off, with a
 * warning that names it: half of what was asked for would be a surprise.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_PRELOAD_SETTINGS_H
#define ZIPCCL_GPU_PRELOAD_SETTINGS_H

#include "core/dtype.h"
#include "gpu/gate_mode.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum zipccl_shim_mode { ZIPCCL_SHIM_OFF, ZIPCCL_SHIM_OBSERVE, ZIPCCL_SHIM_ON };

/* Kinds of calls, as tables name them; a group's sends and receives are one call. */
enum zipccl_shim_op {
    ZIPCCL_SHIM_ALL_GATHER,
    ZIPCCL_SHIM_ALLTOALL,
    ZIPCCL_SHIM_ALLTOALLV, /* sends and receives of a group, several peers */
    ZIPCCL_SHIM_SENDRECV,  /* one peer, or outside of a group */
    ZIPCCL_SHIM_BROADCAST,
    ZIPCCL_SHIM_REDUCE_SCATTER,
    ZIPCCL_SHIM_ALL_REDUCE,
    ZIPCCL_SHIM_REDUCE, /* from here on never compressed */
    ZIPCCL_SHIM_GATHER,
    ZIPCCL_SHIM_SCATTER,
    ZIPCCL_SHIM_NUM_OPS
};

struct zipccl_shim_settings {
    enum zipccl_shim_mode mode;
    bool compress[ZIPCCL_SHIM_NUM_OPS]; /* ZIPCCL_OPS, and ZIPCCL_REDUCTIONS besides */
    bool always;                        /* ZIPCCL_CHOOSE=always: whatever the cost model says */
    enum zipccl_gate_mode gate;         /* ZIPCCL_GATE */
    size_t min_bytes;                   /* ZIPCCL_MIN_BYTES */
    size_t memory_bytes;                /* ZIPCCL_MEMORY, a communicator's staging at most */
    uint64_t verify_every;              /* ZIPCCL_VERIFY; 0: never */
    bool verify_disables;               /* ZIPCCL_VERIFY_ACTION=disable; else abort */
    uint64_t control_every;             /* ZIPCCL_CONTROL_EVERY */
    char control[512];                  /* ZIPCCL_CONTROL; "": none */
    char groups[512];                   /* ZIPCCL_GROUPS; "": all */
    char cluster[512];                  /* ZIPCCL_CLUSTER; "": assumed rates */
    char stats_file[512];               /* ZIPCCL_STATS_FILE; "": none */
    bool stats;                         /* ZIPCCL_STATS */
    int rank, world;                    /* as the launcher says; -1 and 0 where it does not */
};

/* As getenv(). */
typedef const char *zipccl_shim_lookup(const char *name);

/*
 * Read all variables.  False if one has a value that cannot be read: 'problem' then names it, what was
 * found and what was expected, and the mode is OFF.
 */
bool zipccl_shim_settings_read(zipccl_shim_lookup *lookup, struct zipccl_shim_settings *out,
                               char *problem, size_t room);

/* What must be equal on all ranks, as one number. */
uint64_t zipccl_shim_settings_digest(const struct zipccl_shim_settings *settings);

/*
 * True if ZIPCCL_GROUPS selects a communicator: entries apart by commas, each a pattern for its name
 * (* and ?), "size=N", or "ranks=0-7:16" in the launcher's numbers; '!' before an entry takes out what
 * it matches.  Later entries win; where all are taken out with '!', the others are in.
 *
 * ranks  [nranks] numbers of its members in the job; NULL if the launcher did not tell them
 */
bool zipccl_shim_group_selected(const char *groups, const char *name, const int *ranks, int nranks);

/* The ops that are compressed, with commas between; "none". */
void zipccl_shim_ops_text(const struct zipccl_shim_settings *settings, char *out, size_t room);

const char *zipccl_shim_op_name(enum zipccl_shim_op op);
const char *zipccl_shim_mode_name(enum zipccl_shim_mode mode);

#endif
