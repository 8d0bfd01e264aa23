/*
 * import_simai_fold.h - what a SimAI workload's header and layers imply
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_IMPORT_SIMAI_FOLD_H
#define ZIPCCL_TRACES_IMPORT_SIMAI_FOLD_H

#include "traces/import_simai.h"

/*
 * Fill what the file left open (group sizes, world, recomputation) and find the micro-batches.
 * What is assumed is counted.  Cost: rows times rows over ga, in the worst case.
 */
zipccl_status simai_complete(struct simai_workload *w);

#endif
