/*
 * state_words.h - what reader and writer of learnt state share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_STATE_WORDS_H
#define ZIPCCL_CORE_STATE_WORDS_H

#include "core/classes.h"
#include "core/codec.h"

#include <stddef.h>
#include <stdint.h>

/* Words for enum zipccl_class_reason and enum zipccl_effort; NULL ends them. */
extern const char *const zipccl_state_reasons[];
extern const char *const zipccl_state_efforts[];

/* FNV-1a over bytes. */
uint64_t zipccl_state_digest(const char *bytes, size_t nbytes);

#endif
