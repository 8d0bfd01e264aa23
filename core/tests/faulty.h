/*
 * faulty.h - a transport that breaks one message, to show that the tests would notice
 *
 * Test code.  It stands between the executor and another transport.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_TESTS_FAULTY_H
#define ZIPCCL_CORE_TESTS_FAULTY_H

#include "core/transport.h"

enum fault {
    FAULT_NONE,
    FAULT_DROP,   /* the message is never posted */
    FAULT_FLIP,   /* one byte differs when it arrives */
    FAULT_SHORTEN /* one byte less is sent */
};

struct faulty {
    struct zipccl_transport base;
    struct zipccl_transport *inner; /* borrowed */
    enum fault fault;
    uint32_t message; /* which one of this rank's messages to peers, from 0 */
    size_t byte;      /* FLIP: modulo its length */
    uint32_t nsent;   /* messages so far; all-gathers and broadcasts count as one */
    bool hit;         /* the fault has happened */
    uint8_t *copy;    /* the changed message, until its group has ended */
};

/* Fill 'f' to stand before 'inner'; nothing is allocated until the fault happens. */
void faulty_init(struct faulty *f, struct zipccl_transport *inner, enum fault fault,
                 uint32_t message, size_t byte);

/* Free what the fault left behind; 'inner' stays. */
void faulty_close(struct faulty *f);

#endif
