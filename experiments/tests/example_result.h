/*
 * example_result.h - a replay's result made by hand, for tests of what is written about it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_TESTS_EXAMPLE_RESULT_H
#define ZIPCCL_EXPERIMENTS_TESTS_EXAMPLE_RESULT_H

#include "sim/result.h"

enum { ZIPCCL_EXAMPLE_ROWS = 4 };

/* Fill '*out' with borrowed memory that lives as long as the program; a copy may be changed. */
void zipccl_example_result(struct zipccl_replay_result *out);

#endif
