/*
 * timed_exec.h - times what an exec's codec calls take
 *
 * A table of calls put in front of an exec's own; nothing else about it changes.  It counts the calls
 * of one codec lane, so an exec serves one communicator call at a time, as a rank's does.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_TIMED_EXEC_H
#define ZIPCCL_EXPERIMENTS_TIMED_EXEC_H

#include "core/exec.h"

struct zipccl_timed_exec {
    struct zipccl_exec_ops ops; /* first: the exec's table, by which the calls find the rest */
    const struct zipccl_exec_ops *inner;
    double encode_s, decode_s; /* so far; set to 0 at will.  A sum counts as decoding if one of its
                                  terms is a message, additions included */
    double coded_raw, coded_wire; /* bytes of what was encoded, and of its messages as they are
                                     sent: with their room where that is fixed, twice where raw
                                     elements follow a message that did not fit */
};

/* Put 'timed' in front of 'exec', for as long as 'exec' lives. */
void zipccl_time_exec(struct zipccl_timed_exec *timed, struct zipccl_exec *exec);

/* Seconds since some time in the past, of a clock that does not jump. */
double zipccl_now_s(void);

#endif
