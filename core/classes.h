/*
 * classes.h - how much room fixed messages get: a class that narrows and widens with what was seen
 *
 * The rule alone: it knows no rank and no message.  Those who must agree on a class feed it the same
 * observations at the same calls, so they stay on the same class:
 *
 *   - calls of equal counts, once per (op, dtype, count): all ranks, with what all ranks saw, which
 *     they exchange before every ZIPCCL_CLASS_PERIOD-th call (comm_classes.c);
 *   - pairs of uneven calls, once per (op, dtype, pair, direction): the two ends, with the sizes of the
 *     messages between them, which both know, the sender from its codec and the receiver from headers.
 *
 * A class starts wide.  After each period of calls:
 *
 *   no overflow     the narrowest class that every message of the period would have fitted, short of
 *                   one that is barred
 *   some overflow   the next wider class with more room for what overflowed (neighbours of short messages
 *                   may have the same), ZIPCCL_CLASS_STRIDE wider at most; or, if ZIPCCL_CLASS_TROUBLES
 *                   calls or more overflowed, that is data that have changed, ZIPCCL_CLASS_STRIDE wider,
 *                   settled at most; the one that overflowed, and those with its room, are barred, for
 *                   ZIPCCL_CLASS_BAR calls at first and twice as many each time they overflow again
 *   overflow at the widest class, in a quarter of the period's calls or more
 *                   uncompressed, and the widest class barred, for ZIPCCL_CLASS_RETRY calls at first;
 *                   then it is tried again
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_CLASSES_H
#define ZIPCCL_CORE_CLASSES_H

#include "core/capacity.h"

#include <stdbool.h>
#include <stdint.h>

/* Calls from one decision to the next.  One overflow among them costs more than the next wider class:
 * a raw resend is 1/32 of the period's raw bytes, neighbouring classes differ by 1.0 to 1.3 %. */
#define ZIPCCL_CLASS_PERIOD 32u

/* Calls of a period that overflow at the widest class before it turns uncompressed: the class saves a
 * fifth of the bytes, a resend costs all of them, so more than a fifth of the calls is a loss. */
#define ZIPCCL_CLASS_TROUBLES 8u

/* Classes that so many widen by, and that the first calls leave free: 4 to 5 %. */
#define ZIPCCL_CLASS_STRIDE 4

/* Calls for which a class that overflowed is not tried again; doubles, up to the limit. */
#define ZIPCCL_CLASS_BAR       256u
#define ZIPCCL_CLASS_RETRY     4096u /* the same of the widest class */
#define ZIPCCL_CLASS_BAR_LIMIT 65536u

/* Why a class is what it is. */
enum zipccl_class_reason {
    ZIPCCL_CLASS_STARTED,    /* no period has changed it yet */
    ZIPCCL_CLASS_NARROWED,   /* every message of a period would have fitted it */
    ZIPCCL_CLASS_OVERFLOWED, /* a narrower one, or with NO_CLASS the widest, overflowed */
    ZIPCCL_CLASS_RETRIED     /* after the time without compression */
};

/* What was seen in a period. */
struct zipccl_class_seen {
    uint32_t troubled; /* bit i: some message of the period's call i overflowed */
    int fit;           /* narrowest class that all would have fitted, of those that overflowed the
                          next with more room; ZIPCCL_NO_CLASS if there is none;
                          ZIPCCL_NUM_CLASSES if there was no message */
};

struct zipccl_class_state {
    int now;       /* class of the next call; ZIPCCL_NO_CLASS: uncompressed */
    int narrowest; /* that is of use, see zipccl_class_narrowest() */
    enum zipccl_class_reason reason;
    uint64_t calls, decided;                   /* calls so far; their number at the last decision */
    struct zipccl_class_seen seen;             /* since then */
    uint64_t barred_until[ZIPCCL_NUM_CLASSES]; /* calls */
    uint32_t bar[ZIPCCL_NUM_CLASSES];          /* the same of the next time */
    uint64_t class_calls[ZIPCCL_NUM_CLASSES], uncompressed_calls, overflow_calls;
};

void zipccl_class_init(struct zipccl_class_state *state, int narrowest);

/* Calls for which a class is barred the first time that it overflows. */
uint32_t zipccl_class_first_bar(int cls);

/* Take in what 'b' saw as well as 'a': the calls of both are the same. */
struct zipccl_class_seen zipccl_class_merge(struct zipccl_class_seen a, struct zipccl_class_seen b);

/*
 * Count a call and what was seen of it.
 *
 * fit         as in struct zipccl_class_seen
 * compressed  false: the call was not coded, whatever the class
 */
void zipccl_class_note(struct zipccl_class_state *state, int fit, bool overflowed, bool compressed);

/* True if a period has ended since the last decision. */
bool zipccl_class_due(const struct zipccl_class_state *state);

/* Decide from 'seen', what all who must agree saw; only when one is due. */
void zipccl_class_decide(struct zipccl_class_state *state, struct zipccl_class_seen seen);

/*
 * Narrow in the midst of the first period, by what its first calls show, short of ZIPCCL_CLASS_STRIDE classes: few
 * calls say less than a period.  'seen' is what all who must agree saw; the period goes on.
 */
void zipccl_class_open(struct zipccl_class_state *state, struct zipccl_class_seen seen);

/* The class at which a plan is priced, where its class is going: the narrowest that nothing bars the way to, but
 * none narrower than settled that it does not have yet, since few data are shorter than Gaussian ones. */
int zipccl_class_ceiling(const struct zipccl_class_state *state);

/* Add what a call showed that was counted earlier, when nothing was known of it yet. */
void zipccl_class_note_late(struct zipccl_class_state *state, int fit, bool overflowed);

/* FNV-1a digest of what decisions depend on: equal on all who must agree. */
uint64_t zipccl_class_digest(const struct zipccl_class_state *state);

const char *zipccl_class_reason_text(enum zipccl_class_reason reason);

#endif
