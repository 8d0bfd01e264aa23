/*
 * result_check.h - whether a parsed result has the form of its schema, told by a table of rules
 *
 * Pages are made from files that others send: what they rely on is checked first, and a file that is
 * not of its form is refused with the place.  Keys without a rule are left alone, because later
 * versions of a schema only add keys.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_ANALYSIS_RESULT_CHECK_H
#define ZIPCCL_ANALYSIS_RESULT_CHECK_H

#include "core/status.h"

#include <stdbool.h>
#include <yajl/yajl_tree.h>

enum zipccl_rule_kind {
    ZIPCCL_RULE_TEXT,
    ZIPCCL_RULE_NUMBER, /* of any sign, of less than 1e18 */
    ZIPCCL_RULE_AMOUNT, /* the same, from 0 up */
    ZIPCCL_RULE_BOOL,
    ZIPCCL_RULE_NOTE,   /* a text or a number */
    ZIPCCL_RULE_OBJECT, /* by 'rules' */
    ZIPCCL_RULE_MAP,    /* an object of objects, each by 'rules' */
    ZIPCCL_RULE_LIST    /* of objects, each by 'rules'; of texts if 'rules' is NULL */
};

/* Of a rule without 'must' the key may be absent or null. */
struct zipccl_rule {
    const char *key; /* NULL ends a table */
    enum zipccl_rule_kind kind;
    bool must;
    const struct zipccl_rule *rules;
};

/*
 * Check 'object' by 'rules'.  ZIPCCL_ERR_INPUT: "PATH: rows[3].ratio: found a text, expected a
 * number".
 */
zipccl_status zipccl_result_check(yajl_val object, const struct zipccl_rule *rules,
                                  const char *path, struct zipccl_error *error);

/* What a value is, for messages: "a text", "nothing". */
const char *zipccl_value_kind(yajl_val value);

/* name, value, unit, source: settings and assumptions of every schema. */
extern const struct zipccl_rule zipccl_note_rules[];

/* Rules of schema "zipccl.replay". */
extern const struct zipccl_rule zipccl_replay_rules[];

#endif
