/*
 * transport_check_hub.h - what the handles of a check transport share
 *
 * Private to transport_check.c (one rank's rules) and transport_check_hub.c (rules between ranks).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_TRANSPORT_CHECK_HUB_H
#define ZIPCCL_CORE_TRANSPORT_CHECK_HUB_H

#include "core/transport_check.h"

#include <pthread.h>

/* One end of a message, waiting for the other. */
struct zipccl_check_end {
    struct zipccl_check_end *next;
    size_t nbytes;
    bool is_send;
};

/* A collective as one rank calls it; all must be alike. */
struct zipccl_check_call {
    enum { ZIPCCL_CHECK_ALL_GATHER, ZIPCCL_CHECK_BROADCAST, ZIPCCL_CHECK_NATIVE } kind;
    enum zipccl_op op;
    enum zipccl_dtype dtype;
    enum zipccl_redop redop;
    uint32_t root, channels;
    size_t count;
};

struct zipccl_check_entry {
    struct zipccl_check_entry *next;
    struct zipccl_check_call call;
    uint32_t ncalled; /* ranks that have been here */
    uint64_t number;
};

struct zipccl_check_rank;

struct zipccl_check_hub {
    pthread_mutex_t lock; /* held for a few instructions, never while waiting */
    uint32_t nranks, nlocal, nleft;
    const struct zipccl_topology *topology;
    bool *local;                      /* [nranks] has a handle here */
    struct zipccl_check_rank *ranks;  /* [nlocal] */
    struct zipccl_check_end **pairs;  /* [nranks * nranks] oldest first */
    uint64_t *bytes;                  /* [nranks * nranks] */
    struct zipccl_check_entry *calls; /* collectives that not all ranks have called, oldest first */
    bool aborted;
    zipccl_status status; /* of the first broken rule */
    struct zipccl_error error;
};

/* Note that 'rule' is broken; returns 'status'.  Only the first one keeps its text. */
zipccl_status zipccl_check_break(struct zipccl_check_hub *hub, zipccl_status status,
                                 const char *rule, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Match one end of a message from 'src' to 'dst'; MISMATCH if the other one names another count. */
zipccl_status zipccl_check_match(struct zipccl_check_hub *hub, uint32_t src, uint32_t dst,
                                 size_t nbytes, bool is_send);

/* Compare collective number 'number' of 'rank' with what the others have called. */
zipccl_status zipccl_check_compare(struct zipccl_check_hub *hub, uint32_t rank, uint64_t number,
                                   const struct zipccl_check_call *call);

void zipccl_check_count(struct zipccl_check_hub *hub, uint32_t src, uint32_t dst, uint64_t nbytes);

/* Count what 'rank' forwards in a collective. */
void zipccl_check_count_call(struct zipccl_check_hub *hub, uint32_t rank,
                             const struct zipccl_check_call *call);

#endif
